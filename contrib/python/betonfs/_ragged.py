# SPDX-License-Identifier: Apache-2.0
"""Arrays whose number of rows differs between samples, in files and in
batches."""
from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from . import _beton

# struct beton_array_header of <beton/batch.h>
_HEAD = struct.Struct("<8s4sI")
_MAGIC = b"BETONARR"
NDIM_MAX = 8
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2",
          "<f4", "<f8")


# --- in files ---

def packed(array: NDArray[Any]) -> bytes:
    """Return the value of a bytes field for this array, beton(5)."""
    head = _HEAD.pack(_MAGIC, array.dtype.str.encode(), array.ndim)
    return b"".join((head, struct.pack(f"<{array.ndim}Q", *array.shape),
                     np.ascontiguousarray(array).tobytes()))


def unpacked(value: bytes) -> NDArray[Any] | None:
    """Return the array in a value of a bytes field, or None if there is
    none."""
    if len(value) < _HEAD.size or not value.startswith(_MAGIC):
        return None
    _, dtype, ndim = _HEAD.unpack_from(value)
    kind = dtype.rstrip(b"\0").decode("ascii", "replace")
    at = _HEAD.size + 8 * ndim
    if kind not in DTYPES or not 0 < ndim <= NDIM_MAX or at > len(value):
        return None
    shape = struct.unpack_from(f"<{ndim}Q", value, _HEAD.size)
    row = np.dtype(kind).itemsize
    for n in shape[1:]:
        row *= n
    if not row or shape[0] * row != len(value) - at:
        return None
    return np.frombuffer(value, kind, offset=at).reshape(shape).copy()


# --- in batches ---

def _joined(rows: Iterable[Any]) -> tuple[Any, Any]:
    """The rows of all samples, and the offsets of each sample."""
    own = list(rows)
    ends = np.cumsum([0, *(len(row) for row in own)], dtype=np.int64)
    torch = sys.modules.get("torch")
    if torch is not None and own and isinstance(own[0], torch.Tensor):
        return torch.cat(own), torch.from_numpy(ends)
    return np.concatenate(own) if own else np.empty(0), ends


class RaggedArray(Sequence[Any]):
    """Arrays of differing lengths, one for each sample of a batch: the output
    of ``array`` and of other operations on lists, see beton-lists(7).

        boxes = next(iter(loader)).boxes
        boxes[0]                # those of the first sample, (n, 4)
        boxes.values            # those of all samples, joined
        boxes.offsets           # sample i has values[offsets[i]:offsets[i + 1]]
        boxes.lengths           # their number in each sample

    `values`, `offsets` and `boxes[i]` are tensors of the loader's framework,
    without a copy. ``RaggedArray(rows)`` takes a list of arrays or tensors, one
    for each sample.
    """

    __slots__ = ("values", "offsets", "_ends")
    values: Any
    offsets: Any

    _ends: Sequence[int]        # the offsets in CPU memory

    def __init__(self, rows: Iterable[Any]) -> None:
        self.values, self.offsets = _joined(rows)
        self._ends = self.offsets.tolist()

    @classmethod
    def of(cls, values: Any, offsets: Any,
           ends: Sequence[int] | None = None) -> RaggedArray:
        """Return a RaggedArray of joined values and the offsets of the samples.
        `ends` are the offsets as integers (default: read from `offsets`).

            betonfs.RaggedArray.of(values, torch.tensor([0, 3, 5]))
        """
        self = cls.__new__(cls)
        self.values = values
        self.offsets = offsets
        self._ends = offsets.tolist() if ends is None else ends
        return self

    @property
    def dtype(self) -> Any:
        """The data type of `values`."""
        return self.values.dtype

    @property
    def lengths(self) -> Any:
        """Number of rows of each sample, int64."""
        return self.offsets[1:] - self.offsets[:-1]

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"sample {i} of {len(self)}")
        return self.values[self._ends[i]:self._ends[i + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to(self, *args: Any, **kwargs: Any) -> RaggedArray:
        """Return it with ``values.to(...)``, and its offsets on the same device.

            boxes = boxes.to("cuda")
        """
        return self.moved(self.values.to(*args, **kwargs))

    def moved(self, values: Any) -> RaggedArray:
        """Return it with other values and the same offsets.

            boxes.moved(boxes.values.to("cuda") / 2)
        """
        if values is self.values:
            return self
        offsets = self.offsets.to(values.device) \
            if hasattr(self.offsets, "to") else self.offsets
        return RaggedArray.of(values, offsets, self._ends)

    def pin_memory(self) -> RaggedArray:
        """Return it in page-locked memory.

            boxes = boxes.pin_memory().to("cuda", non_blocking=True)
        """
        return RaggedArray.of(self.values.pin_memory(),
                              self.offsets.pin_memory(), self._ends)

    def nested(self) -> Any:
        """Return torch's nested tensor of the same memory, in jagged layout.

            tokens.nested()     # for torch.nn.functional's attention
        """
        torch = importlib.import_module("torch")
        return torch.nested.nested_tensor_from_jagged(self.values,
                                                      self.offsets)

    def __repr__(self) -> str:
        return (f"<RaggedArray: {self._ends[-1]} rows of {len(self)} samples, "
                f"{self.dtype} {tuple(self.values.shape[1:])}>")

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedArray.of, (self.values, self.offsets)


def of_tensor(t: _beton.Tensor, convert: Any) -> RaggedArray:
    """Make the output of a loader's batch."""
    assert t.offsets is not None
    return RaggedArray.of(convert(t), convert(t.offsets),
                          cast("Sequence[int]", memoryview(t.offsets)))
