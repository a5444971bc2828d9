# SPDX-License-Identifier: Apache-2.0
# The text of betonfs._ops.stubs().
import builtins
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from ._ops import Pipeline as Pipeline

_Whole = builtins.int | Mapping[builtins.int, builtins.int] | str
_Wholes = (builtins.int | Sequence[builtins.int]
           | Mapping[builtins.int, builtins.int | Sequence[builtins.int]] | str)
_Real = builtins.float | Mapping[builtins.int, builtins.float] | str
_Reals = (builtins.float | Sequence[builtins.float]
          | Mapping[builtins.int, builtins.float | Sequence[builtins.float]]
          | str)
_Name = str | os.PathLike[str] | builtins.float | Sequence[builtins.int]
_Size = builtins.int | str
_Operations = str | Sequence[str]

def of(pipeline: Any) -> Pipeline: ...

def affine(
    degrees: _Reals = ...,
    translate: _Reals = ...,
    scale: _Reals = ...,
    shear: _Reals = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Rotate, move, scale and shear the image at random."""

def array() -> Pipeline:
    """Read the array that a bytes field stores, as a list."""

def aug_mix(
    severity: _Whole = ...,
    width: _Whole = ...,
    depth: _Whole = ...,
    alpha: _Real = ...,
    all_ops: Literal["true", "false"] = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Mix the image with randomly augmented copies of itself."""

def auto_augment(
    policy: Literal["imagenet", "cifar10", "svhn"] = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Apply two operations of a learned policy."""

def autocontrast(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Stretch the values of each channel to 0..255."""

def bfloat16() -> Pipeline:
    """Convert values to bfloat16."""

def brightness(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Multiply values by a random factor."""

def cache(
    what: Literal["decoded"],
    size: _Size,
) -> Pipeline:
    """Cache images here for later epochs, without changing a pixel."""

def center_crop(
    size: _Wholes,
    ratio: _Real = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
) -> Pipeline:
    """Crop the central square and resize it."""

def chw() -> Pipeline:
    """Order the axes channel, height, width."""

def color_jitter(
    brightness: _Reals = ...,
    contrast: _Reals = ...,
    saturation: _Reals = ...,
    hue: _Reals = ...,
    p: _Real = ...,
    group: _Name | None = ...,
    like: Literal["ffcv", "torchvision"] = ...,
) -> Pipeline:
    """Change brightness, contrast, saturation and hue at random."""

def contrast(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Blend values with the image's mean gray by a random factor."""

def cuda(
    device: _Whole = ...,
    placement: Literal["gpu", "auto"] = ...,
) -> Pipeline:
    """Give the output on a GPU, and run later operations there."""

def cutmix(
    alpha: _Real = ...,
    lambda_: Literal["batch", "sample"] = ...,
    group: _Name = ...,
) -> Pipeline:
    """Fill a rectangle of each image from the image before it."""

def cutout(
    size: _Wholes,
    fill: _Wholes = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Fill a random rectangle with a color."""

def decode(
    quality: Literal["default", "exact", "draft", "gray", "gray16", "rgb", "rgb16"] = ...,
) -> Pipeline:
    """Choose how JPEGs are decoded."""

def double() -> Pipeline:
    """Convert values to float64."""

def drop() -> Pipeline:
    """Make no output of this field."""

def elastic(
    alpha: _Real = ...,
    sigma: _Real = ...,
    p: _Real = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Move pixels by smooth random distances."""

def equalize(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Equalize the histogram of each channel."""

def excerpt(
    length: _Whole,
    at: Literal["random", "center", "start", "end"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Take consecutive rows of a list."""

def five_crop(
    size: _Wholes,
) -> Pipeline:
    """Crop the corners and the center, as five images."""

def flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Exchange left and right at random."""

def float() -> Pipeline:
    """Convert values to float32."""

def follow(
    of: _Name,
    format: Literal["xyxy", "xywh", "cxcywh", "xy"] = ...,
    coordinates: Literal["pixels", "shares"] = ...,
    min_visible: _Real = ...,
    min_size: _Real = ...,
) -> Pipeline:
    """Move boxes or points with the pixels of an output."""

def gain(
    factor: _Reals,
    unit: Literal["factor", "db"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Multiply the values of a list by a factor, fixed or random."""

def gaussian_blur(
    size: _Whole,
    sigma: _Reals = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Blur the image with a random standard deviation."""

def grayscale(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Replace the three channels by their gray."""

def half() -> Pipeline:
    """Convert values to float16."""

def hwc() -> Pipeline:
    """Order the axes height, width, channel."""

def int32() -> Pipeline:
    """Round values and limit them to 32 bits."""

def int64() -> Pipeline:
    """Round values and limit them to 64 bits."""

def invert(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Replace each value by 255 less the value."""

def json(
    type: Literal["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8"] = ...,
    row: _Wholes | None = ...,
) -> Pipeline:
    """Read the numbers of a JSON array, as a list."""

def keep_rows(
    of: _Name,
) -> Pipeline:
    """Keep the rows of a list whose boxes an output keeps."""

def length() -> Pipeline:
    """Count the rows of a list."""

def mask(
    bits: _Whole = ...,
) -> Pipeline:
    """Treat values as classes: do not average them."""

def mixup(
    alpha: _Real,
    lambda_: Literal["batch", "sample"] = ...,
    group: _Name = ...,
) -> Pipeline:
    """Blend each sample of a batch with the sample before it."""

def multi_crop(
    size: _Wholes,
    views: _Whole = ...,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Crop several random parts of the image and resize each."""

def normalize(
    mean: _Reals,
    std: _Reals | None = ...,
) -> Pipeline:
    """Subtract the mean and divide by the standard deviation."""

def one_hot(
    classes: _Whole,
) -> Pipeline:
    """Convert a class to 1 at its index among zeros, float32."""

def pack(
    rows: _Whole,
) -> Pipeline:
    """Limit the rows of a batch by cutting its longest lists."""

def pad(
    padding: _Wholes,
    mode: Literal["constant", "edge", "reflect", "symmetric"] = ...,
    fill: _Wholes = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Add a margin around the image."""

def pad_to(
    length: _Whole,
    value: _Real = ...,
    side: Literal["right", "left"] = ...,
    multiple: _Whole = ...,
) -> Pipeline:
    """Cut or fill lists to one length."""

def params(
    of: _Name,
) -> Pipeline:
    """Describe where the pixels of an output come from."""

def perspective(
    distortion: _Real = ...,
    p: _Real = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Change the perspective of the image at random."""

def poison(
    mask: _Name,
    alpha: _Name,
    ids: _Name,
    clamp: _Reals = ...,
) -> Pipeline:
    """Blend some samples with an image."""

def posterize(
    bits: _Whole,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Set the lower bits of values to 0."""

def rand_augment(
    num_ops: _Whole = ...,
    magnitude: _Whole = ...,
    bins: _Whole = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Apply random operations of one magnitude."""

def random_apply(
    operations: _Operations,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Apply operations one after the other, or none of them."""

def random_choice(
    *operations: _Operations,
    weights: _Reals | None = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Apply one of several lists of operations."""

def random_crop(
    size: _Wholes,
    padding: _Wholes = ...,
    pad_if_needed: _Whole = ...,
    fill: _Wholes = ...,
    mode: Literal["constant", "edge", "reflect", "symmetric"] = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Crop a random part of the image, optionally padded first."""

def random_erasing(
    p: _Real = ...,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    value: _Wholes = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Replace a random rectangle by a color or noise."""

def random_order(
    *operations: _Operations,
    group: _Name | None = ...,
) -> Pipeline:
    """Apply several lists of operations in a random order."""

def random_resized_crop(
    size: _Wholes,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Crop a random part of the image and resize it."""

def random_translate(
    padding: _Whole,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Move the image by a random distance."""

def replace_label(
    ids: _Name,
    label: _Real,
) -> Pipeline:
    """Replace the labels of some samples."""

def resample(
    old: _Whole,
    new: _Whole,
    width: _Whole = ...,
    rolloff: _Real = ...,
) -> Pipeline:
    """Convert the sampling rate of sound."""

def resize(
    size: _Wholes,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    max_size: _Whole | None = ...,
    side: Literal["shorter", "longer"] = ...,
) -> Pipeline:
    """Resize the whole image."""

def rotate(
    degrees: _Reals,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Rotate the image about its center by a random angle."""

def saturation(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Blend colors with their gray by a random factor."""

def sharpness(
    factor: _Reals,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Sharpen or blur the image by a factor."""

def solarize(
    threshold: _Real = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Invert values from a threshold on."""

def ten_crop(
    size: _Wholes,
) -> Pipeline:
    """Crop like five_crop, also from the mirror image."""

def tokenize(
    vocabulary: _Name,
    lower: Literal["true", "false"] = ...,
    unknown: _Name = ...,
    begin: _Name | None = ...,
    end: _Name | None = ...,
) -> Pipeline:
    """Split a text into tokens of a WordPiece vocabulary."""

def trivial_augment(
    bins: _Whole = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """Apply one random operation of a random magnitude."""

def truncate(
    length: _Whole,
) -> Pipeline:
    """Keep the first rows of a list."""

def uint8() -> Pipeline:
    """Round values and limit them to 0..255."""

def vertical_flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Exchange top and bottom at random."""

def window(
    length: _Whole,
    stride: _Whole = ...,
    at: Literal["random", "center", "start"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """Take consecutive frames of a value."""
