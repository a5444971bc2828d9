# SPDX-License-Identifier: Apache-2.0
"""Encode arrays as PNG without loss: masks, and images of 16 bits."""
from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SIDE_MAX = 1 << 14
_GRAY, _RGB = 0, 2


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data \
        + struct.pack(">I", zlib.crc32(kind + data))


def encode(pixels: NDArray[Any]) -> bytes:
    """Return the PNG of a uint8 or uint16 array, (height, width) or (height,
    width, 3)."""
    height, width = pixels.shape[:2]
    big = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">"))
    rows = big.reshape(height, -1).view(np.uint8)
    data = np.zeros((height, 1 + rows.shape[1]), np.uint8)   # no filter
    data[:, 1:] = rows
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize,
                       _RGB if pixels.ndim == 3 else _GRAY, 0, 0, 0)
    return _SIGNATURE + _chunk(b"IHDR", head) \
        + _chunk(b"IDAT", zlib.compress(data.tobytes())) + _chunk(b"IEND", b"")


def _array_of(value: Any) -> NDArray[Any]:
    if hasattr(value, "convert") and getattr(value, "mode", "") not in (
            "1", "L", "P", "RGB") and not value.mode.startswith("I"):
        raise ValueError(f"a PNG holds no image of mode {value.mode}; convert "
                         "it to mode L, P, RGB or I;16")
    a = np.asarray(value)
    return a[..., 0] if a.ndim == 3 and a.shape[2] == 1 else a


def _narrowed(a: NDArray[Any]) -> NDArray[Any]:
    """Convert whole numbers to uint8, or to uint16 if one is above 255."""
    if a.dtype in (np.uint8, np.uint16):
        return a
    if a.dtype.kind not in "biu":
        raise ValueError(f"an array of {a.dtype}: a PNG has whole numbers; "
                         "give the field (dtype, shape)")
    low, high = int(a.min()), int(a.max())
    if low < 0 or high > 0xffff:
        raise ValueError(f"values from {low} to {high}: a PNG has 0 to 65535")
    return a.astype(np.uint8 if high < 256 else np.uint16)


def stored(value: Any, is_mask: bool) -> bytes:
    """Return the PNG of an array or a PIL image. Return bytes unchanged."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        if bytes(value[:8]) != _SIGNATURE:
            raise ValueError("the bytes are no PNG")
        return bytes(value)
    a = _array_of(value)
    if a.ndim != 2 and (is_mask or a.ndim != 3 or a.shape[2] != 3):
        raise ValueError(f"an array of {a.shape}: "
                         + ("a mask has (height, width)" if is_mask else
                            "a PNG has (height, width), or 3 channels"))
    if not all(0 < side <= _SIDE_MAX for side in a.shape[:2]):
        raise ValueError(f"an array of {a.shape} has a side that is not from "
                         f"1 to {_SIDE_MAX}")
    return encode(_narrowed(a))


def joined(images: Sequence[bytes]) -> bytes:
    """Join several images to one value of a bytes field, beton-grids(7)."""
    if not images:
        raise ValueError("a list of no image")
    sizes = np.array([len(images), *map(len, images)], "<u4")
    return b"".join((b"betonimg", sizes.tobytes(), *images))
