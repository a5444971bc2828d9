# SPDX-License-Identifier: Apache-2.0
"""Decoders: the first operation of each pipeline, which reads values of the
dataset.

The library runs these decoders. If a subclass overrides a method of FFCV, its
generate_code() returns the function to run, as in FFCV. The arguments of this
function are the samples' numbers, the memory that declare_state_and_memory()
requested, the metadata of all samples, and the storage. If numba is installed,
it compiles the function. The function gets the bytes of a value by
`self.memory_read(pointer, storage)`, and the functions of libffcv decode them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from . import libffcv
from ._chain import Chain, number, numbers
from ._crops import get_center_crop, get_random_crop
from .pipeline.allocation_query import Allocation, AllocationQuery
from .pipeline.compiler import Compiler
from .pipeline.state import State
from .transforms._base import BuiltIn

# How an image is stored, in the metadata.
IMAGE_MODES = {"jpg": 0, "raw": 1}
_JPG = IMAGE_MODES["jpg"]
_BYTE = np.dtype("u1")

Declared = tuple[State, Allocation | None]


def _memory(state: State, shape: Any, dtype: Any) -> Declared:
    return (replace(state, jit_mode=True, shape=shape, dtype=dtype),
            AllocationQuery(shape, dtype))


class Decoder(BuiltIn):
    """A decoder of fields of some kinds, by their names in dataset.json. If it
    has no pipeline string of its own, it returns values as stored."""

    kinds: tuple[str, ...] = ()

    def native(self, chain: Chain) -> str | None:
        return ""

    def generate_code(self) -> Callable[..., Any]:
        raise NotImplementedError


class BasicDecoder(Decoder):
    """Decode values of one size, which the metadata contains. The shape of the
    result is (batch, 1). A subclass sets `dtype`."""

    dtype: Any

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        return _memory(previous_state, (1,), np.dtype(self.dtype))

    def generate_code(self) -> Callable[..., Any]:
        def decode(indices: Any, destination: Any, metadata: Any,
                   storage_state: Any) -> Any:
            for k in range(len(indices)):
                destination[k] = metadata[indices[k]]
            return destination
        return decode


class IntDecoder(BasicDecoder):
    """(batch, 1) of int64."""

    kinds = ("int",)
    dtype = np.dtype("<i8")


class FloatDecoder(BasicDecoder):
    """(batch, 1) of float64."""

    kinds = ("float",)
    dtype = np.dtype("<f8")


class NDArrayDecoder(Decoder):
    """Arrays as they were written, and tensors too."""

    kinds = ("ndarray", "torch_tensor")

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        return _memory(previous_state, self.field.shape,
                       np.dtype(self.field.dtype))

    def generate_code(self) -> Callable[..., Any]:
        read, copy = self.memory_read, Compiler.compile(libffcv.memcpy)
        numbers_of = Compiler.get_iterator()

        def decode(indices: Any, destination: Any, metadata: Any,
                   storage_state: Any) -> Any:
            for k in numbers_of(len(indices)):
                copy(read(metadata[indices[k]], storage_state), destination[k])
            return destination
        decode.is_parallel = True   # type: ignore[attr-defined]
        return decode


class BytesDecoder(Decoder):
    """(batch, longest of the dataset) of uint8, with zeros after each value; of
    a dataset on a mount, as wide as the longest of the batch."""

    kinds = ("bytes", "json")

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        longest = int(self.metadata["size"].max(initial=0))
        return _memory(previous_state, (longest,), _BYTE)

    def generate_code(self) -> Callable[..., Any]:
        read, numbers_of = self.memory_read, Compiler.get_iterator()

        def decode(indices: Any, destination: Any, metadata: Any,
                   storage_state: Any) -> Any:
            for k in numbers_of(len(indices)):
                record = metadata[indices[k]]
                # An empty value may begin where the next value does.
                data = read(record["ptr"], storage_state)[:record["size"]]
                destination[k, :len(data)] = data
                destination[k, len(data):] = 0
            return destination
        decode.is_parallel = True   # type: ignore[attr-defined]
        return decode


def sizes_differ(name: str, records: Any) -> str | None:
    """Why images cannot be decoded as they are: a side differs."""
    for side in "width", "height":
        sizes = records[side]
        if len(sizes) and sizes.min() != sizes.max():
            return (f"images of {name} are from {sizes.min()} to "
                    f"{sizes.max()} pixels in {side}")
    return None


class SimpleRGBImageDecoder(Decoder):
    """Images as they are; all must have one size."""

    kinds = ("rgb_image",)

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        why = sizes_differ("this field", self.metadata)
        if why:
            raise TypeError(f"{why}: {type(self).__name__} is for images of "
                            "one size")
        first = self.metadata[0]
        shape = int(first["height"]), int(first["width"]), 3
        return _memory(previous_state, shape, _BYTE)

    def generate_code(self) -> Callable[..., Any]:
        read, numbers_of = self.memory_read, Compiler.get_iterator()
        imdecode = Compiler.compile(libffcv.imdecode)
        copy = Compiler.compile(libffcv.memcpy)
        jpg = _JPG

        def decode(indices: Any, destination: Any, metadata: Any,
                   storage_state: Any) -> Any:
            for k in numbers_of(len(indices)):
                record = metadata[indices[k]]
                data = read(record["data_ptr"], storage_state)
                h, w = record["height"], record["width"]
                if record["mode"] == jpg:
                    imdecode(data, destination[k], h, w, h, w, 0, 0, 1, 1,
                             False, False)
                else:
                    copy(data, destination[k])
            return destination
        decode.is_parallel = True   # type: ignore[attr-defined]
        return decode


class ResizedCropRGBImageDecoder(SimpleRGBImageDecoder):
    """A part of every image, resized to output_size, (height, width). That may
    be changed while a loader is used, and holds from the next epoch.

    A subclass may have a get_crop_generator of its own: a function of (height,
    width, scale, ratio) that gives (row, column, height, width)."""

    scale: Any = None
    ratio: Any = None

    def __init__(self, output_size: Sequence[int]) -> None:
        super().__init__()
        self.output_size = output_size

    @property
    def get_crop_generator(self) -> Callable[..., Any]:
        raise NotImplementedError

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        height, width = map(int, self.output_size)
        most = 3 * int(self.metadata["height"].max(initial=0)) \
            * int(self.metadata["width"].max(initial=0))
        state, out = _memory(previous_state, (height, width, 3), _BYTE)
        assert isinstance(out, AllocationQuery)
        return state, (out, AllocationQuery((most,), _BYTE))

    def generate_code(self) -> Callable[..., Any]:
        read, numbers_of = self.memory_read, Compiler.get_iterator()
        imdecode = Compiler.compile(libffcv.imdecode)
        resize = Compiler.compile(libffcv.resize_crop)
        crop = Compiler.compile(self.get_crop_generator)
        scale, ratio = (np.array(v) if isinstance(v, (tuple, list)) else v
                        for v in (self.scale, self.ratio))
        jpg = _JPG

        def decode(indices: Any, my_storage: Any, metadata: Any,
                   storage_state: Any) -> Any:
            destination, whole = my_storage
            for k in numbers_of(len(indices)):
                record = metadata[indices[k]]
                data = read(record["data_ptr"], storage_state)
                h, w = np.uint32(record["height"]), np.uint32(record["width"])
                if record["mode"] == jpg:
                    pixels = whole[k][:3 * h * w]
                    imdecode(data, pixels, h, w, h, w, 0, 0, 1, 1, False,
                             False)
                else:
                    pixels = data
                y, x, rows, columns = crop(h, w, scale, ratio)
                resize(pixels.reshape(h, w, 3), y, y + rows, x, x + columns,
                       destination[k])
            return destination
        decode.is_parallel = True   # type: ignore[attr-defined]
        return decode


class RandomResizedCropRGBImageDecoder(ResizedCropRGBImageDecoder):
    """A random part."""

    def __init__(self, output_size: Sequence[int],
                 scale: Sequence[float] = (0.08, 1.0),
                 ratio: Sequence[float] = (0.75, 4 / 3)) -> None:
        super().__init__(output_size)
        self.scale = scale
        self.ratio = ratio

    @property
    def get_crop_generator(self) -> Callable[..., Any]:
        return get_random_crop

    def native(self, chain: Chain) -> str | None:
        return (f"random_resized_crop({numbers(self.output_size)}, "
                f"scale={numbers(self.scale)}, ratio={numbers(self.ratio)})")


class CenterCropRGBImageDecoder(ResizedCropRGBImageDecoder):
    """The square in the middle, of `ratio` of the shorter side."""

    def __init__(self, output_size: Sequence[int], ratio: float) -> None:
        super().__init__(output_size)
        self.ratio = ratio

    @property
    def get_crop_generator(self) -> Callable[..., Any]:
        return get_center_crop

    def native(self, chain: Chain) -> str | None:
        return (f"center_crop({numbers(self.output_size)}, "
                f"ratio={number(self.ratio)})")
