# SPDX-License-Identifier: Apache-2.0
"""Convert the memory of a batch to arrays of a framework, without a copy."""
from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast, overload

import numpy as np

from . import _beton

Convert = Callable[[_beton.Tensor], Any]

CPU = 1


_BFLOAT16 = "<V2"


def _numpy_dtype(name: str) -> Any:
    if name != _BFLOAT16:
        return np.dtype(name)
    if not importlib.util.find_spec("ml_dtypes"):
        raise TypeError("NumPy has no bfloat16 without the package ml_dtypes: "
                        'install it, or use tensors="torch", or float instead '
                        "of bfloat16 in the pipeline")
    return importlib.import_module("ml_dtypes").bfloat16


def dtype_name(dtype: str) -> str:
    """Return the name of an output's type for a person."""
    return "bfloat16" if dtype == _BFLOAT16 else dtype


def type_name(dtype: str) -> str:
    """Return its name in torch and ml_dtypes, such as "float32"."""
    return "bfloat16" if dtype == _BFLOAT16 else np.dtype(dtype).name


def check_types(tensors: str, outputs: Iterable[dict[str, Any]]) -> None:
    """Raise TypeError if an output becomes an array of a type that NumPy does
    not have."""
    for o in outputs:
        if o["dtype"] == _BFLOAT16 and (tensors == "numpy" or tensors == "cupy"
                                        and o["device_type"] == CPU):
            try:
                _numpy_dtype(o["dtype"])
            except TypeError as e:
                raise TypeError(f"output {o['name']!r}: {e}") from None


def to_numpy(t: _beton.Tensor) -> Any:
    return np.ndarray(t.shape, _numpy_dtype(t.dtype), cast(memoryview, t))


def to_float32(t: _beton.Tensor) -> Any:
    """Return a copy of an output of bfloat16, the upper half of a float32."""
    bits = np.ndarray(t.shape, "<u2", cast(memoryview, t))
    return (bits.astype("<u4") << 16).view("<f4")


def _torch() -> Convert:
    from_dlpack = importlib.import_module("torch.utils.dlpack").from_dlpack

    def to_torch(t: _beton.Tensor) -> Any:
        # Only NumPy has types for strings and dates.
        if not t.has_dlpack:
            return to_numpy(t)
        # The stream already waits for the batch.
        return from_dlpack(t.__dlpack__(stream=-1))

    setattr(to_torch, "is_torch", True)
    return to_torch


def is_torch(convert: Convert) -> bool:
    """Whether the framework is torch."""
    return getattr(convert, "is_torch", False)


def _jax() -> Convert:
    from_dlpack = importlib.import_module("jax.dlpack").from_dlpack
    device_put = importlib.import_module("jax").device_put

    # Unless jax_enable_x64 is set, jax converts 64 bits to 32, in a copy. An
    # array of from_dlpack() is committed to the CPU, so that jitted steps run
    # there or are refused. device_put() shares the memory, too, if the default
    # device is a CPU, and otherwise copies.

    def to_jax(t: _beton.Tensor) -> Any:
        if not t.has_dlpack:
            return to_numpy(t)
        if t.__dlpack_device__()[0] != CPU:
            return from_dlpack(t)
        return device_put(to_numpy(t))

    return to_jax


def _cupy() -> Convert:
    from_dlpack = importlib.import_module("cupy").from_dlpack

    def to_cupy(t: _beton.Tensor) -> Any:
        if t.__dlpack_device__()[0] == CPU:
            return to_numpy(t)
        return from_dlpack(t)

    return to_cupy


_FRAMEWORKS: dict[str, Callable[[], Convert]] = {
    "numpy": lambda: to_numpy,
    "torch": _torch,
    "jax": _jax,
    "cupy": _cupy,
    "dlpack": lambda: lambda t: t,
}


def choose(name: str) -> str:
    """Resolve `auto`: torch if it is installed, otherwise numpy."""
    if name == "auto":
        return "torch" if importlib.util.find_spec("torch") else "numpy"
    if name not in _FRAMEWORKS:
        raise ValueError(f"tensors={name!r}: there are auto, "
                         + ", ".join(_FRAMEWORKS))
    return name


def converter(name: str) -> Convert:
    """For a name that choose() gave; imports the framework."""
    return _FRAMEWORKS[name]()


class Ragged(Sequence[bytes]):
    """Values of a bytes or a JSON field, whose sizes differ, one for each sample.

    `rows[i]` has the bytes of sample i. `data` (uint8) has the bytes of all
    samples, without a copy. Those of sample i are from `offsets[i]` to before
    `offsets[i + 1]` (int64, one more than samples).

        captions = next(iter(loader)).caption
        captions[0], captions.json()[0], len(captions)

    ``Ragged(rows)`` makes one of an iterable of bytes, with NumPy's arrays;
    libraries that rebuild sequences do so.
    """

    __slots__ = ("_raw", "_ends", "data", "offsets")

    def __init__(self, rows: _beton.Tensor | Iterable[bytes],
                 convert: Convert | None = None) -> None:
        if convert is None:
            self._join(cast(Iterable[bytes], rows))
            return
        raw = cast(_beton.Tensor, rows)
        offsets = raw.offsets
        assert offsets is not None
        # Parts of one memoryview may not be taken by several threads: where
        # there is no GIL, it counts them wrongly.
        self._raw = to_numpy(raw)
        self._ends = memoryview(offsets)
        self.data = convert(raw)
        self.offsets = convert(offsets)

    def _join(self, rows: Iterable[bytes]) -> None:
        own = list(rows)
        self._raw = self.data = np.frombuffer(b"".join(own), np.uint8)
        self.offsets = np.cumsum([0, *map(len, own)], dtype=np.int64)
        self._ends = memoryview(self.offsets)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, i: int) -> bytes: ...
    @overload
    def __getitem__(self, i: slice) -> list[bytes]: ...

    def __getitem__(self, i: int | slice) -> bytes | list[bytes]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        row: bytes = self._raw[self._ends[i]:self._ends[i + 1]].tobytes()
        return row

    def __iter__(self) -> Iterator[bytes]:
        return (self[i] for i in range(len(self)))

    def json(self) -> list[Any]:
        """Return the values as parsed JSON, in a list."""
        return [json.loads(row) for row in self]

    def __repr__(self) -> str:
        return f"<Ragged: {len(self)} rows, {len(self._raw)} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ragged, (list(self),)
