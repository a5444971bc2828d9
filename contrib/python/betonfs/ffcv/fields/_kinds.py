# SPDX-License-Identifier: Apache-2.0
"""The fields, and how values are stored."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ... import _beton
from .._draws import Draws
from ..decoders import (
    BytesDecoder,
    FloatDecoder,
    IntDecoder,
    NDArrayDecoder,
    SimpleRGBImageDecoder,
)
from .base import ARG_TYPE, BuiltInField, Field

_RANGE = [("ptr", "<u8"), ("size", "<u8")]
_MODES = ("raw", "jpg", "smart", "proportion")
_ARGUMENTS = np.dtype([("shape", "<u8", (32,)), ("type_length", "<u8")])


def encode_jpeg(numpy_image: Any, quality: int) -> NDArray[np.uint8]:
    """The bytes of a JPEG, of a uint8 array of (height, width, 3)."""
    height, width, _ = numpy_image.shape
    jpeg, *_ = _beton.encode(np.ascontiguousarray(numpy_image), width, height,
                             False, int(quality), 0)
    return np.frombuffer(jpeg, np.uint8)


def resizer(image: Any, target_resolution: int | None) -> Any:
    """An image whose longer side is at most `target_resolution`."""
    if target_resolution is None or max(image.shape[:2]) <= target_resolution:
        return image
    height, width, _ = image.shape
    pixels, _, width, height = _beton.encode(
        np.ascontiguousarray(image), width, height, True, 90,
        int(target_resolution))
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


class IntField(BuiltInField):
    """Whole numbers, int64."""

    kind, number, record = "int", 1, "<i8"

    def stored(self, value: Any, sample: int) -> int:
        return int(value)

    def get_decoder_class(self) -> type[Any]:
        return IntDecoder


class FloatField(BuiltInField):
    """Numbers, float64."""

    kind, number, record = "float", 0, "<f8"

    def stored(self, value: Any, sample: int) -> float:
        return float(value)

    def get_decoder_class(self) -> type[Any]:
        return FloatDecoder


class RGBImageField(BuiltInField):
    """Images: PIL's, or uint8 arrays of (height, width, 3).

    write_mode is "raw", "jpg" of a jpeg_quality, "smart": JPEG where pixels
    take more than smart_threshold bytes, or "proportion": JPEG with
    compress_probability. Those whose longer side is above max_resolution are
    made smaller.
    """

    kind, number = "rgb_image", 2
    record = [("mode", "<u1"), ("width", "<u2"), ("height", "<u2"),
              ("data_ptr", "<u8")]

    def __init__(self, write_mode: str = "raw",
                 max_resolution: int | None = None,
                 smart_threshold: int | None = None, jpeg_quality: int = 90,
                 compress_probability: float = 0.5) -> None:
        if write_mode not in _MODES:
            raise ValueError(f"write_mode={write_mode!r}: there are "
                             + ", ".join(_MODES))
        self.write_mode = write_mode
        self.max_resolution = max_resolution
        self.smart_threshold = smart_threshold
        self.jpeg_quality = int(jpeg_quality)
        self.proportion = compress_probability

    def _raw(self, height: int, width: int, sample: int) -> bool:
        if self.write_mode == "smart":
            longest = max(height, width)
            limit = self.max_resolution or longest
            ratio = min(1, limit / longest)
            size = 3 * int(ratio * height) * int(ratio * width)
            return self.smart_threshold is None or size <= self.smart_threshold
        if self.write_mode == "proportion":
            u = Draws(0, 0, np.array([sample]), 0).uniform()[0]
            return not u < self.proportion
        return self.write_mode == "raw"

    def stored(self, value: Any, sample: int) -> Any:
        a = np.ascontiguousarray(value)
        if a.dtype != np.uint8 or a.ndim != 3 or a.shape[2] != 3:
            raise ValueError(f"an image of {a.dtype} {a.shape} is not uint8 "
                             "of (height, width, 3)")
        height, width, _ = a.shape
        return _beton.encode(a, width, height, self._raw(height, width, sample),
                             self.jpeg_quality, self.max_resolution or 0)

    def get_decoder_class(self) -> type[Any]:
        return SimpleRGBImageDecoder


class BytesField(BuiltInField):
    """Bytes, or arrays of uint8, of any lengths."""

    kind, number, record = "bytes", 3, _RANGE

    def stored(self, value: Any, sample: int) -> Any:
        return bytes(value)

    def get_decoder_class(self) -> type[Any]:
        return BytesDecoder


class JSONField(BytesField):
    """A field of values that json can write; unpack() reads them again."""

    kind, number = "json", 5

    def stored(self, value: Any, sample: int) -> Any:
        return json.dumps(value).encode()

    @staticmethod
    def unpack(batch: Any) -> Any:
        """Parse the JSON of one row, or of all rows of a batch as a list."""
        rows = np.asarray(batch)
        if rows.ndim == 1:
            return json.loads(rows.tobytes().partition(b"\0")[0])
        return [JSONField.unpack(row) for row in rows]


class NDArrayField(BuiltInField):
    """Arrays of one dtype and shape."""

    kind, number, record = "ndarray", 4, "<u8"

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = tuple(int(n) for n in shape)
        self.element_size = self.dtype.itemsize * int(np.prod(self.shape))

    @property
    def description(self) -> tuple[int, str | None, tuple[int, ...]]:
        return self.number, self.dtype.str, self.shape

    @classmethod
    def from_binary(cls, binary: Any) -> Field:
        raw = np.asarray(binary).view(np.uint8).reshape(-1)
        size = _ARGUMENTS.itemsize
        head = raw[:size].view(_ARGUMENTS)[0]
        text = raw[size:size + int(head["type_length"])].tobytes()
        (_, dtype), = json.loads(text)
        shape = tuple(int(n) for n in head["shape"] if n)
        return NDArrayField(np.dtype(dtype), shape)

    def to_binary(self) -> Any:
        text = json.dumps(self.dtype.descr).encode()
        head = np.zeros(1, _ARGUMENTS)
        head["shape"][0, :len(self.shape)] = self.shape
        head["type_length"] = len(text)
        raw = head.tobytes() + text
        return np.frombuffer(raw.ljust(ARG_TYPE.itemsize, b"\0"), ARG_TYPE)[0]

    def stored(self, value: Any, sample: int) -> Any:
        a = np.ascontiguousarray(value)
        if a.dtype != self.dtype or a.size != int(np.prod(self.shape)):
            raise ValueError(f"an array of {a.dtype} {a.shape} is not "
                             f"{self.dtype} {self.shape}")
        return a.reshape(-1).view(np.uint8)

    def get_decoder_class(self) -> type[Any]:
        return NDArrayDecoder


class TorchTensorField(NDArrayField):
    """Tensors of one dtype and shape."""

    kind, number = "torch_tensor", 6

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        super().__init__(torch.empty(0, dtype=dtype).numpy().dtype, shape)

    def stored(self, value: Any, sample: int) -> Any:
        return super().stored(value.numpy(), sample)


_KINDS: dict[str, type[BuiltInField]] = {
    c.kind: c for c in (IntField, FloatField, RGBImageField, BytesField,
                        JSONField)}


def field_of(kind: str, dtype: Any, shape: Any) -> BuiltInField | None:
    """Make the field for an entry of dataset.json; None: a custom field."""
    if kind in ("ndarray", "torch_tensor"):
        return NDArrayField(dtype, tuple(shape))
    return _KINDS[kind]() if kind in _KINDS else None
