# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .. import _beton
from .._processes import add_place
from .._writer import (Values, fill, given, indexed, names_of_classes,
                       storable)
from ._custom_writer import CustomWriter
from .fields.base import BuiltInField, Field, encode

MIN_PAGE_SIZE = 1 << 21
MAX_PAGE_SIZE = 1 << 32


class _Encoder:
    """As betonfs.write()'s, of FFCV's fields."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.fields = fields

    def sample(self, number: int, sample: Any) -> tuple[Any, ...]:
        values = tuple(sample)
        if len(values) != len(self.fields):
            raise ValueError(f"sample {number}: {len(values)} values for "
                             f"{len(self.fields)} fields")
        out = []
        for (name, field), value in zip(self.fields.items(), values):
            try:
                out.append(encode(field, value, number) if isinstance(
                    field, BuiltInField) else value)
            except Exception as e:
                place = f"sample {number} field {name}"
                if type(e) in (ValueError, TypeError):
                    raise ValueError(f"{place}: {e}") from e
                add_place(e, place)
                raise
        return tuple(out)


Todos = Sequence[Any]


def worker_job_indexed_dataset(encoder: _Encoder, workers: int, todos: Todos,
                               dataset: Any) -> AbstractContextManager[Values]:
    """Samples of dataset[i], for _write_common(): each todo is a list of pairs,
    a sample's place in the file and i."""
    pairs = sorted(itertools.chain.from_iterable(todos))
    return indexed(encoder, dataset, [int(i) for _, i in pairs], workers)


def worker_job_webdataset(encoder: _Encoder, workers: int, todos: Todos,
                          pipeline: Callable[[Any], Any]) \
        -> AbstractContextManager[Values]:
    """Samples of shards, for _write_common(): each todo is a shard and the
    place of its first sample in the file."""
    dataset = importlib.import_module("webdataset").WebDataset
    shards = sorted(todos, key=lambda todo: int(todo[1]))
    return given(encoder, itertools.chain.from_iterable(
        pipeline(dataset(shard)) for shard, _ in shards), workers)


class DatasetWriter:
    """Writes a dataset; it appears under its name when it is complete.

    `fields` are names and kinds of what samples are tuples of. One that is a
    user's own class stores values by its encode(), in this process, and what it
    is by its to_binary(). A subclass of a field of this package is written as
    that one, so that all programs read it. `page_size` is a
    power of two from 2 MiB, and no sample may be larger. `num_workers`
    processes get and encode samples, threads encode those of web datasets;
    below 1: one per usable CPU. If a sample fails, its exception is raised with a
    note of its number.

    The names of classes that a dataset has as `classes`, as torchvision's have,
    are stored with its only IntField, where FFCV does not look.
    """

    def __init__(self, fname: str | os.PathLike[str],
                 fields: Mapping[str, Any],
                 page_size: int = 4 * MIN_PAGE_SIZE,
                 num_workers: int = -1) -> None:
        if page_size & (page_size - 1) or not \
                MIN_PAGE_SIZE <= page_size < MAX_PAGE_SIZE:
            raise ValueError(f"page_size={page_size}: it is a power of two "
                             f"from {MIN_PAGE_SIZE} to before {MAX_PAGE_SIZE}")
        for name, field in fields.items():
            if not isinstance(field, Field):
                raise ValueError(f"field {name!r}: {type(field).__name__} is "
                                 "no subclass of ffcv.fields.base.Field")
        self.fname = os.fspath(fname)
        self.fields = dict(fields)
        self.page_size = page_size
        self.num_workers = num_workers if num_workers > 0 \
            else len(os.sched_getaffinity(0))

    def _classes(self, dataset: Any) -> dict[str, Any]:
        """Names of classes that the dataset has, for its only IntField."""
        labels = [name for name, field in self.fields.items()
                  if getattr(field, "kind", "") == "int"]
        # FFCV asks for none, so those that cannot be stored are no error.
        try:
            found = names_of_classes(None, dataset, labels)
        except ValueError:
            return {}
        return {name: names for name, names in found.items()
                if storable(*names)}

    def _write(self, values: AbstractContextManager[Values], n: int,
               classes: Mapping[str, Any] = {}) -> None:
        known = {name: f for name, f in self.fields.items()
                 if isinstance(f, BuiltInField)}
        if len(known) < len(self.fields):
            own: Any = CustomWriter(
                self.fname, self.fields, n, self.page_size,
                {name: names for name, (names,) in classes.items()})
            fill(own, values, n, True, self.page_size)
            return
        fill(_beton.Writer(
            self.fname,
            tuple((name, *f.description, *classes.get(name, ()))
                  for name, f in known.items()),
            n, self.page_size), values, n, True, self.page_size)

    def _write_common(self, num_samples: int, queue_content: Iterable[Any],
                      work_fn: Callable[..., Any],
                      extra_worker_args: Sequence[Any]) -> None:
        """FFCV's, which users call whose shards need not be counted."""
        if work_fn not in (worker_job_indexed_dataset, worker_job_webdataset):
            raise ValueError(
                f"{work_fn!r} is neither worker_job_indexed_dataset nor "
                "worker_job_webdataset: call from_indexed_dataset()")
        self._write(work_fn(_Encoder(self.fields), self.num_workers,
                            list(queue_content), *extra_worker_args),
                    int(num_samples))

    def from_indexed_dataset(self, dataset: Any,
                             indices: Sequence[int] | None = None,
                             chunksize: int = 100,
                             shuffle_indices: bool = False) -> None:
        """Write samples of an object that has len() and [i]: all, or those of
        `indices`, in their order or shuffled by NumPy's global generator.
        `chunksize` has no effect."""
        numbers = np.arange(len(dataset)) if indices is None \
            else np.array(indices)
        if shuffle_indices:
            np.random.shuffle(numbers)
        self._write(indexed(_Encoder(self.fields), dataset, numbers.tolist(),
                            self.num_workers), len(numbers),
                    self._classes(dataset))

    def from_webdataset(self, shards: Sequence[str],
                        pipeline: Callable[[Any], Any]) -> None:
        """Write the samples of shards. `pipeline` gets each shard as
        webdataset's WebDataset. All shards are read twice, because their samples
        are counted first."""
        dataset = importlib.import_module("webdataset").WebDataset
        n = sum(1 for shard in shards for _ in pipeline(dataset(shard)))
        self._write_common(n, ((shard, k) for k, shard in enumerate(shards)),
                           worker_job_webdataset, (pipeline,))


__all__ = ["DatasetWriter", "worker_job_indexed_dataset",
           "worker_job_webdataset"]
