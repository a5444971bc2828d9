# SPDX-License-Identifier: Apache-2.0
"""Blocks of rows in shared memory, as mkfs.beton maps them: its block.h has the
form."""
from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_MAGIC = 0x73776f726e6f7465
_INT, _REAL, _BYTES, _PIXELS = range(4)
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_BUFFER = 1 << 20


@dataclass
class Ints:
    values: NDArray[np.int64]


@dataclass
class Reals:
    values: NDArray[np.float64]


@dataclass
class Bytes:
    """The bytes of all rows: one buffer after the other, and where each row
    begins in them, and the last one ends."""
    offsets: NDArray[Any]
    buffers: Sequence[Any]

    @classmethod
    def of(cls, rows: Sequence[bytes]) -> Bytes:
        ends = np.cumsum([0, *map(len, rows)], dtype=np.uint64)
        return cls(ends, rows)


@dataclass
class Pixels:
    """Rows that are image files, or pixels: (rows, 3) of width, height and
    channels, which are 0 for a file."""
    files: Bytes
    sizes: NDArray[Any]


Packed = Ints | Reals | Bytes | Pixels


def joined(parts: Sequence[Packed]) -> Packed:
    """The rows of several columns of one kind, one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if isinstance(first, Ints | Reals):
        numbers = cast("Sequence[Ints | Reals]", parts)
        return type(first)(np.concatenate([p.values for p in numbers]))
    if isinstance(first, Pixels):
        images = cast("Sequence[Pixels]", parts)
        return Pixels(_joined_bytes([p.files for p in images]),
                      np.concatenate([p.sizes for p in images]))
    return _joined_bytes(cast("Sequence[Bytes]", parts))


def _joined_bytes(parts: Sequence[Bytes]) -> Bytes:
    starts = np.cumsum([0, *(p.offsets[-1] for p in parts)], dtype=np.uint64)
    ends = [p.offsets[:-1] + start for p, start in zip(parts, starts)]
    return Bytes(np.concatenate([*ends, starts[-1:]]),
                 [b for p in parts for b in p.buffers])


def shared(parts: Iterable[Any]) -> int:
    """A sealed file in memory with these buffers. The caller closes it."""
    fd = os.memfd_create("betonfs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(fd, "wb", buffering=_BUFFER, closefd=False) as out:
            for part in parts:
                out.write(part)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd


class _Layout:
    """Parts of a block, each aligned to 8 bytes."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.parts: list[Any] = []

    def add(self, buffers: Sequence[Any], size: int) -> int:
        start = self.at
        self.parts += buffers
        pad = -size % 8
        if pad:
            self.parts.append(bytes(pad))
        self.at += size + pad
        return start

    def array(self, a: NDArray[Any], dtype: str) -> int:
        own = np.ascontiguousarray(a, dtype)
        return self.add([own.data.cast("B")] if own.size else [], own.nbytes)

    def column(self, column: Packed) -> tuple[int, int, int, int]:
        if isinstance(column, Ints):
            return _INT, 0, self.array(column.values, "<i8"), 0
        if isinstance(column, Reals):
            return _REAL, 0, self.array(column.values, "<f8"), 0
        files = column.files if isinstance(column, Pixels) else column
        index = self.array(files.offsets, "<u8")
        if isinstance(column, Pixels):
            self.array(column.sizes, "<u8")
        size = int(files.offsets[-1])
        kind = _PIXELS if isinstance(column, Pixels) else _BYTES
        return kind, index, self.add(files.buffers, size), size


def block(columns: Sequence[Packed], rows: int, errors: dict[int, str]) -> int:
    """The block of these columns, as a sealed file in memory."""
    why = Bytes.of([errors.get(i, "").encode("utf-8", "replace")
                    for i in range(rows)])
    layout = _Layout(8 * (3 + 4 * (len(columns) + 1)))
    heads = [layout.column(column) for column in (why, *columns)]
    head = np.array([_MAGIC, rows, len(columns),
                     *(word for words in heads for word in words)], "<u8")
    return shared([head.tobytes(), *layout.parts])
