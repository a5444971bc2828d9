# SPDX-License-Identifier: Apache-2.0
"""Batches as a source of Ray Data. Only this module and _sink import
ray.data."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.data.extensions import ArrowTensorArray, ArrowVariableShapedTensorArray

from .._loader import Loader
from .._ragged import RaggedArray
from .._tensors import Ragged

# Batches that a task asks for before it takes the first.
_AHEAD = 2

COLUMNS = ("epoch", "batch", "row", "id", "valid")


# --- columns ---

def _native(array: Any) -> Any:
    """The array in the byte order of this machine, which Arrow needs."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _column(value: Any) -> Any:
    """An output of a batch as an array of Arrow, one element per sample."""
    if isinstance(value, Ragged):
        return pa.array(list(value), pa.large_binary())
    if isinstance(value, RaggedArray):
        return ArrowVariableShapedTensorArray.from_numpy(
            [_native(row) for row in value])
    array = _native(value)
    return pa.array(array) if array.ndim == 1 else \
        ArrowTensorArray.from_numpy(array)


def _table(batch: Any) -> Any:
    """A batch as a table of Arrow, one row per sample."""
    n = batch.num_samples
    facts = (np.full(n, batch.epoch), np.full(n, batch.number), np.arange(n),
             batch.ids, batch.valid.astype(bool))
    columns = dict(zip(COLUMNS, map(pa.array, facts)))
    for name, value in batch.items():
        columns[name] = _column(value)
    return pa.table(columns)


# --- tasks ---

def _batches(loader: Loader, epoch: int, numbers: range) -> Iterator[Any]:
    """Make batches in this order, each while the caller uses those before."""
    loader._pool.start(loader._core)
    for number in numbers[:_AHEAD]:
        loader._core.ask(epoch, number)
    for number in numbers:
        if number + _AHEAD in numbers:
            loader._core.ask(epoch, number + _AHEAD)
        yield loader.batch(epoch, number)


def _limited(tables: Iterable[Any], most: int | None) -> Iterator[Any]:
    """The first rows of tables, at most so many."""
    for table in tables:
        if most is not None:
            table = table.slice(0, most)
            most -= table.num_rows
        yield table
        if most == 0:
            return


def _reader(reopen: Callable[[], Loader], epoch: int, numbers: range,
            most: int | None) -> Callable[[], Iterable[Any]]:
    def read() -> Iterator[Any]:
        with reopen() as loader:
            yield from _limited(map(_table, _batches(loader, epoch, numbers)),
                                most)
    return read


def _metadata(**facts: Any) -> BlockMetadata:
    """Facts in advance; releases of Ray differ in which of them there are."""
    known = {f.name for f in dataclasses.fields(BlockMetadata)}
    usual = {"schema": None, "exec_stats": None, **facts}
    return BlockMetadata(**{k: v for k, v in usual.items() if k in known})


# --- the source ---

class Batches(Datasource):      # type: ignore[misc, unused-ignore]
    """The batches of an epoch of this loader, which may be closed after that.
    """

    def __init__(self, loader: Loader, epoch: int) -> None:
        super().__init__()
        outputs = loader.outputs
        for output in outputs:
            if output["name"] in COLUMNS:
                raise ValueError(
                    f"an output has the name {output['name']!r} of a column "
                    f"of read(), as have {', '.join(COLUMNS)}: give it "
                    "another one, with a dict as pipeline=")
        # As a pickled loader is opened; it refuses another dataset.
        function, given = loader.__reduce__()
        self._reopen = functools.partial(function, *given)
        self._path = loader.path
        self._epoch = epoch
        self._batches = loader.batches
        self._batch_size = loader.batch_size
        self._samples = _count(loader)
        self._sample = _sample_size(outputs)

    def get_name(self) -> str:
        return "Beton"

    def estimate_inmemory_data_size(self) -> int | None:
        return self._size(range(self._batches))

    def _size(self, numbers: range) -> int | None:
        """Bytes of these batches, or None if samples differ in size."""
        if self._sample is None:
            return None
        return len(numbers) * self._batch_size * self._sample

    def _rows(self, numbers: range, most: int | None) -> int | None:
        """The number of samples in these batches, or None if it is unknown."""
        if self._samples is None:
            return None
        rows = min(numbers.stop * self._batch_size, self._samples) \
            - numbers.start * self._batch_size
        return rows if most is None else min(rows, most)

    def get_read_tasks(self, parallelism: int,
                       per_task_row_limit: int | None = None,
                       data_context: Any = None) -> list[ReadTask]:
        n = max(1, min(parallelism, self._batches))
        runs = (range(self._batches * i // n, self._batches * (i + 1) // n)
                for i in range(n))
        return [self._task(run, per_task_row_limit) for run in runs]

    def _task(self, numbers: range, most: int | None) -> ReadTask:
        return ReadTask(
            _reader(self._reopen, self._epoch, numbers, most),
            _metadata(num_rows=self._rows(numbers, most),
                      size_bytes=self._size(numbers),
                      input_files=[self._path]))


def _count(loader: Loader) -> int | None:
    """The number of samples of an epoch, or None if the spec lacks it."""
    if "drop_last=1" in loader.spec:
        return loader.batches * loader.batch_size
    return None if "subset=" in loader.spec else \
        int(loader._core.info()["samples"])


def _sample_size(outputs: Iterable[dict[str, Any]]) -> int | None:
    """Bytes of a sample in the columns, or None if samples differ."""
    size = 4 * 8 + 1
    for output in outputs:
        if output["ragged"] or None in output["shape"]:
            return None
        size += int(np.dtype(output["dtype"]).itemsize
                    * np.prod(output["shape"], dtype=np.int64))
    return size
