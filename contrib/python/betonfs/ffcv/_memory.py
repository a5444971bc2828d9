# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file for decoders of users, which numba compiles."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .pipeline.compiler import Compiler
from .reader import Reader


def _read(pointer: Any, storage: Any) -> Any:
    """What was allocated at a place of the file."""
    data, starts, sizes = storage
    i = np.searchsorted(starts, pointer, side="right") - 1
    if i < 0 or starts[i] != pointer:
        return data[:0]
    return data[pointer:pointer + sizes[i]]


def memory_of(reader: Reader) -> tuple[Callable[..., Any], Any]:
    """What decoders call, and what they hand to it. The whole allocation table
    is in memory then."""
    table = reader.alloc_table
    table = table[np.lexsort((table["size"], table["ptr"]))]
    data = np.memmap(reader.file_name, np.uint8, "r")
    starts = np.ascontiguousarray(table["ptr"])
    sizes = np.ascontiguousarray(table["size"])
    inside = sizes <= np.uint64(len(data)) - np.minimum(
        starts, np.uint64(len(data)))
    sizes[~inside] = 0
    return Compiler.compile(_read), (np.asarray(data), starts, sizes)
