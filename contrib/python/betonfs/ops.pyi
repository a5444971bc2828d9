# SPDX-License-Identifier: Apache-2.0
# The text of betonfs._ops.stubs().
import builtins
import os
from collections.abc import Mapping, Sequence
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

def of(pipeline: Any) -> Pipeline: ...

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
    interpolation: Literal["area", "bilinear"] = ...,
) -> Pipeline:
    """the central square, resized"""

def chw() -> Pipeline:
    """channels first"""

def color_jitter(
    brightness: _Real = ...,
    contrast: _Real = ...,
    saturation: _Real = ...,
    hue: _Real = ...,
    p: _Real = ...,
    group: _Name | None = ...,
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

def cutout(
    size: _Wholes,
    fill: _Wholes = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """a random part of the image becomes a colour"""

def decode(
    quality: Literal["default", "exact", "draft"] = ...,
) -> Pipeline:
    """the quality of JPEG decoding"""

def double() -> Pipeline:
    """values as float64"""

def drop() -> Pipeline:
    """no output for this field"""

def flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """left and right exchanged, with a probability"""

def float() -> Pipeline:
    """values as float32"""

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

def mixup(
    alpha: _Real,
    lambda_: Literal["batch", "sample"] = ...,
    group: _Name = ...,
) -> Pipeline:
    """rows of a batch are mixed with those before them"""

def normalize(
    mean: _Reals,
    std: _Reals | None = ...,
) -> Pipeline:
    """subtract the mean, divide by the standard deviation"""

def one_hot(
    classes: _Whole,
) -> Pipeline:
    """a label becomes 1 in its place among zeros, float32"""

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

def random_resized_crop(
    size: _Wholes,
    scale: _Reals = ...,
    ratio: _Reals = ...,
    interpolation: Literal["area", "bilinear"] = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """a random part of the image, resized"""

def random_translate(
    padding: _Whole,
    fill: _Wholes = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """the image is moved, and a colour is where it was"""

def replace_label(
    ids: _Name,
    label: _Real,
) -> Pipeline:
    """the numbers of some samples become another"""

def resize(
    size: _Wholes,
    interpolation: Literal["area", "bilinear"] = ...,
) -> Pipeline:
    """the whole image, resized"""

def saturation(
    magnitude: _Real,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """colours blended with their grey by a random factor"""

def solarize(
    threshold: _Real = ...,
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """values from a threshold on are inverted"""

def uint8() -> Pipeline:
    """values rounded and limited to 0..255"""

def vertical_flip(
    p: _Real = ...,
    group: _Name | None = ...,
) -> Pipeline:
    """top and bottom exchanged, with a probability"""
