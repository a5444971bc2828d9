# SPDX-License-Identifier: Apache-2.0
"""Where compiled decoders get the bytes of values from: the mapped file.

A manager gives a function, compile_reader(), of the pointer that a value's
metadata has and of a storage, which the context of an epoch has as `state`.
Both managers read by the system's page cache; the loader's own cache serves
what the library decodes.
"""
from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .._compiled import find_numba
from .pipeline.compiler import Compiler
from .reader import Reader

BATCHES_TYPE = Sequence[Sequence[int]]


class MemoryContext(AbstractContextManager[Any], ABC):
    """The storage of one epoch."""

    @property
    @abstractmethod
    def state(self) -> Any:
        raise NotImplementedError

    def start_batch(self, batch: int) -> None:
        """A batch is about to be read."""


class MemoryManager(ABC):
    """The allocation table. `ptrs` and `sizes` are sorted by place;
    `sample_to_pages` and `page_to_samples` are dicts of sets."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        table = reader.alloc_table
        table = table[np.lexsort((table["size"], table["ptr"]))]
        self.ptrs = np.ascontiguousarray(table["ptr"])
        self.sizes = np.ascontiguousarray(table["size"])

    @functools.cached_property
    def _pages(self) -> tuple[Mapping[int, set[int]], Mapping[int, set[int]]]:
        samples: Mapping[int, set[int]] = defaultdict(set)
        pages: Mapping[int, set[int]] = defaultdict(set)
        table = self.reader.alloc_table
        numbers = table["ptr"] // np.uint64(self.reader.page_size)
        for sample, page in zip(table["sample_id"].tolist(), numbers.tolist()):
            samples[sample].add(page)
            pages[page].add(sample)
        return samples, pages

    @property
    def sample_to_pages(self) -> Mapping[int, set[int]]:
        return self._pages[0]

    @property
    def page_to_samples(self) -> Mapping[int, set[int]]:
        return self._pages[1]

    @abstractmethod
    def schedule_epoch(self, batches: BATCHES_TYPE) -> MemoryContext:
        raise NotImplementedError

    @abstractmethod
    def compile_reader(self) -> Callable[..., Any]:
        raise NotImplementedError

    @property
    @abstractmethod
    def state_type(self) -> Any:
        raise NotImplementedError


def _read(pointer: Any, storage: Any) -> Any:
    """The bytes that were allocated at a place of the file."""
    data, starts, sizes = storage
    i = np.searchsorted(starts, pointer, side="right") - 1
    if i < 0 or starts[i] != pointer:
        return data[:0]
    return data[pointer:pointer + sizes[i]]


class OSCacheContext(MemoryContext):
    """The mapped file, and its table."""

    def __init__(self, manager: MemoryManager) -> None:
        self.manager = manager
        self._state: Any = None

    def __exit__(self, *_: object) -> None:
        """The file stays mapped, for the next epoch."""

    @property
    def state(self) -> Any:
        if self._state is None:
            data = np.memmap(self.manager.reader.data_file, np.uint8, "r")
            starts, sizes = self.manager.ptrs, self.manager.sizes.copy()
            inside = sizes <= np.uint64(len(data)) - np.minimum(
                starts, np.uint64(len(data)))
            sizes[~inside] = 0
            self._state = np.asarray(data), starts, sizes
        return self._state


class OSCacheManager(MemoryManager):
    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self.context = OSCacheContext(self)

    def schedule_epoch(self, batches: BATCHES_TYPE) -> MemoryContext:
        return self.context

    def compile_reader(self) -> Callable[..., Any]:
        return Compiler.compile(_read)

    @property
    def state_type(self) -> Any:
        """numba's type of the state."""
        numba = find_numba()
        data = numba.types.Array(numba.uint8, 1, "C", readonly=True)
        return numba.types.Tuple([data, numba.uint64[::1], numba.uint64[::1]])


class ProcessCacheContext(OSCacheContext):
    pass


class ProcessCacheManager(OSCacheManager):
    """The same: the library's own cache does not serve decoders of users."""


__all__ = ["BATCHES_TYPE", "MemoryContext", "MemoryManager", "OSCacheContext",
           "OSCacheManager", "ProcessCacheContext", "ProcessCacheManager"]
