# SPDX-License-Identifier: Apache-2.0
"""Where crops lie, by FFCV's rules. numba can compile these functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Crop = tuple[Any, Any, Any, Any]


def get_random_crop(height: Any, width: Any, scale: Any, ratio: Any) -> Crop:
    """Draw a crop by ``np.random``: (row, column, height, width).

    `scale` is (least, most) of the image's area, `ratio` of width by height. If
    ten draws do not fit, the crop is the largest in the middle.
    """
    logs = np.log(ratio)
    for _ in range(10):
        area = height * width * np.random.uniform(scale[0], scale[1])
        shape = np.exp(np.random.uniform(logs[0], logs[1]))
        w = int(round(np.sqrt(area * shape)))
        h = int(round(np.sqrt(area / shape)))
        if 0 < w <= width and 0 < h <= height:
            i = int(np.random.uniform(0, height - h + 1))
            j = int(np.random.uniform(0, width - w + 1))
            return i, j, h, w
    h, w = height, width
    if w < h * min(ratio):
        h = int(round(w / min(ratio)))
    elif w > h * max(ratio):
        w = int(round(h * max(ratio)))
    return (height - h) // 2, (width - w) // 2, h, w


def center_crop(height: Any, width: Any, ratio: Any) -> Crop:
    """The square in the middle, of `ratio` of the shorter side."""
    side = int(ratio * min(height, width))
    return (height - side) // 2, (width - side) // 2, side, side


def get_center_crop(height: Any, width: Any, _: Any, ratio: Any) -> Crop:
    """As center_crop(), with the arguments of get_random_crop()."""
    side = int(ratio * min(height, width))
    return (height - side) // 2, (width - side) // 2, side, side


def corner_crop(bottom: bool, right: bool) -> Callable[..., Crop]:
    """A function with the arguments of get_random_crop() that gives the square
    in a corner, of `ratio` of the shorter side."""
    def get_corner_crop(height: Any, width: Any, _: Any, ratio: Any) -> Crop:
        side = int(ratio * min(height, width))
        return (bottom * (height - side), right * (width - side), side, side)
    return get_corner_crop
