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
    """turned, moved, scaled and sheared at random"""

def array() -> Pipeline:
    """the array that a value of bytes has, with its type"""

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
    """a mixture of the image and of chains of random operations"""

def auto_augment(
    policy: Literal["imagenet", "cifar10", "svhn"] = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """two operations of a learned policy"""

def autocontrast(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the values of each channel reach from 0 to 255"""

def brightness(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """values times a random factor"""

def cache(
    what: Literal["decoded"],
    size: _Size,
) -> Pipeline:
    """images are kept here for later epochs; changes no pixel"""

def center_crop(
    size: _Wholes,
    ratio: _Real = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
) -> Pipeline:
    """the central square, resized"""

def chw() -> Pipeline:
    """channels first"""

def color_jitter(
    brightness: _Reals = ...,
    contrast: _Reals = ...,
    saturation: _Reals = ...,
    hue: _Reals = ...,
    p: _Real = ...,
    group: _Name | None = ...,
    like: Literal["ffcv", "torchvision"] = ...,
) -> Pipeline:
    """brightness, contrast, saturation and hue, by random factors"""

def contrast(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """values blended with the image's mean grey by a random factor"""

def cuda(
    device: _Whole = ...,
    point: Literal["here", "auto"] = ...,
) -> Pipeline:
    """from here on a GPU"""

def cutmix(
    alpha: _Real = ...,
    lambda_: Literal["batch", "sample"] = ...,
    group: _Name = ...,
) -> Pipeline:
    """a part of an image is that of the image before it"""

def cutout(
    size: _Wholes,
    fill: _Wholes = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """a random part of the image becomes a colour"""

def decode(
    quality: Literal["default", "exact", "draft", "gray", "gray16", "rgb", "rgb16"] = ...,
) -> Pipeline:
    """the quality of JPEG decoding"""

def double() -> Pipeline:
    """values as float64"""

def drop() -> Pipeline:
    """no output for this field"""

def elastic(
    alpha: _Real = ...,
    sigma: _Real = ...,
    p: _Real = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """pixels moved by smooth random distances"""

def equalize(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the values of each channel become as frequent as each other"""

def excerpt(
    length: _Whole,
    at: Literal["random", "center", "start", "end"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """so many rows of a list, one after the other"""

def five_crop(
    size: _Wholes,
) -> Pipeline:
    """the corners and the center, as five images"""

def flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """left and right exchanged, with a probability"""

def float() -> Pipeline:
    """values as float32"""

def follow(
    of: _Name,
    format: Literal["xyxy", "xywh", "cxcywh", "xy"] = ...,
    coordinates: Literal["pixels", "shares"] = ...,
    min_visible: _Real = ...,
    min_size: _Real = ...,
) -> Pipeline:
    """boxes or points, moved as the pixels of an output"""

def gain(
    factor: _Reals,
    unit: Literal["factor", "db"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the values of a list times a factor, which may be random"""

def gaussian_blur(
    size: _Whole,
    sigma: _Reals = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """blurred by a random standard deviation"""

def grayscale(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the three channels become their grey"""

def half() -> Pipeline:
    """values as float16"""

def hwc() -> Pipeline:
    """channels last"""

def int32() -> Pipeline:
    """values rounded and limited to 32 bits"""

def int64() -> Pipeline:
    """values rounded and limited to 64 bits"""

def invert(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """values become 255 less themselves"""

def json(
    type: Literal["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8"] = ...,
    row: _Wholes | None = ...,
) -> Pipeline:
    """the numbers of a JSON array, as a list"""

def keep_rows(
    of: _Name,
) -> Pipeline:
    """of a list, the rows whose boxes an output keeps"""

def length() -> Pipeline:
    """how many rows a list has"""

def mask(
    bits: _Whole = ...,
) -> Pipeline:
    """values are classes: never averaged, no colors"""

def mixup(
    alpha: _Real,
    lambda_: Literal["batch", "sample"] = ...,
    group: _Name = ...,
) -> Pipeline:
    """rows of a batch are mixed with those before them"""

def multi_crop(
    size: _Wholes,
    views: _Whole = ...,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """several random parts of the image, each resized"""

def normalize(
    mean: _Reals,
    std: _Reals | None = ...,
) -> Pipeline:
    """subtract the mean, divide by the standard deviation"""

def one_hot(
    classes: _Whole,
) -> Pipeline:
    """a label becomes 1 in its place among zeros, float32"""

def pack(
    rows: _Whole,
) -> Pipeline:
    """lists of a batch, the longest cut to fit a budget"""

def pad(
    padding: _Wholes,
    mode: Literal["constant", "edge", "reflect", "symmetric"] = ...,
    fill: _Wholes = ...,
    label: _Whole = ...,
) -> Pipeline:
    """a margin around the image"""

def pad_to(
    length: _Whole,
    value: _Real = ...,
    side: Literal["right", "left"] = ...,
    multiple: _Whole = ...,
) -> Pipeline:
    """a list cut, or filled up, to a length"""

def params(
    of: _Name,
) -> Pipeline:
    """where the pixels of an output's image come from"""

def perspective(
    distortion: _Real = ...,
    p: _Real = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """as seen from a random side"""

def poison(
    mask: _Name,
    alpha: _Name,
    ids: _Name,
    clamp: _Reals = ...,
) -> Pipeline:
    """some samples are blended with a mask"""

def posterize(
    bits: _Whole,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the lower bits of values become 0"""

def rand_augment(
    num_ops: _Whole = ...,
    magnitude: _Whole = ...,
    bins: _Whole = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """some random operations of one magnitude"""

def random_apply(
    operations: _Operations,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """operations, one after the other, or none of them"""

def random_choice(
    *operations: _Operations,
    weights: _Reals | None = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """one of several lists of operations, at random"""

def random_crop(
    size: _Wholes,
    padding: _Wholes = ...,
    pad_if_needed: _Whole = ...,
    fill: _Wholes = ...,
    mode: Literal["constant", "edge", "reflect", "symmetric"] = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """a random part of the image, maybe of a padded one"""

def random_erasing(
    p: _Real = ...,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    value: _Wholes = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """a random rectangle becomes a color or noise"""

def random_order(
    *operations: _Operations,
    group: _Name | None = ...,
) -> Pipeline:
    """all of several lists of operations, in a random order"""

def random_resized_crop(
    size: _Wholes,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """a random part of the image, resized"""

def random_translate(
    padding: _Whole,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """the image is moved, and a colour is where it was"""

def replace_label(
    ids: _Name,
    label: _Real,
) -> Pipeline:
    """the numbers of some samples become another"""

def resample(
    old: _Whole,
    new: _Whole,
    width: _Whole = ...,
    rolloff: _Real = ...,
) -> Pipeline:
    """sound at another rate"""

def resize(
    size: _Wholes,
    interpolation: Literal["area", "bilinear", "nearest", "bicubic", "lanczos"] | Enum = ...,
    max_size: _Whole | None = ...,
    side: Literal["shorter", "longer"] = ...,
) -> Pipeline:
    """the whole image, resized"""

def rotate(
    degrees: _Reals,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """turned about its middle by a random angle"""

def saturation(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """colours blended with their grey by a random factor"""

def sharpness(
    factor: _Reals,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """sharper, or blurred, by a factor"""

def solarize(
    threshold: _Real = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """values from a threshold on are inverted"""

def ten_crop(
    size: _Wholes,
) -> Pipeline:
    """five_crop of the image and of its mirror image"""

def tokenize(
    vocabulary: _Name,
    lower: Literal["true", "false"] = ...,
    unknown: _Name = ...,
    begin: _Name | None = ...,
    end: _Name | None = ...,
) -> Pipeline:
    """the tokens of a text, by a vocabulary of WordPiece"""

def trivial_augment(
    bins: _Whole = ...,
    interpolation: Literal["nearest", "bilinear"] | Enum = ...,
    fill: _Wholes = ...,
    group: _Name | None = ...,
    label: _Whole = ...,
) -> Pipeline:
    """one random operation of a random magnitude"""

def truncate(
    length: _Whole,
) -> Pipeline:
    """the first rows of a list"""

def uint8() -> Pipeline:
    """values rounded and limited to 0..255"""

def vertical_flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """top and bottom exchanged, with a probability"""

def window(
    length: _Whole,
    stride: _Whole = ...,
    at: Literal["random", "center", "start"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """some frames, one after the other"""
