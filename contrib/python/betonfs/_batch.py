# SPDX-License-Identifier: Apache-2.0
"""A batch as users have it: a dict or a tuple of tensors, and its facts."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _beton
from ._show import Shown
from ._tensors import Convert, Ragged


class _Facts:
    """What is known of a batch besides its outputs. Taken from the loader's
    memory when it is asked for."""

    __slots__ = ()
    _raw: _beton.Batch
    _convert: Convert
    _dataset: str

    @property
    def ids(self) -> Any:
        """Sample numbers, int64, one per row."""
        return self._convert(self._raw.ids)

    @property
    def valid(self) -> Any:
        """bool, one per row: False where a row could not be read (with
        on_error="skip"), or only fills a batch up for a rank."""
        return self._convert(self._raw.valid)

    @property
    def epoch(self) -> int:
        return self._raw.epoch

    @property
    def number(self) -> int:
        """In the epoch's global sequence of all ranks, from 0."""
        return self._raw.number

    @property
    def rows(self) -> int:
        return self._raw.rows

    @property
    def dataset(self) -> str:
        """The path that its loader was opened with."""
        return self._dataset

    def _repr_html_(self) -> str:
        """What notebooks show: its first rows as pictures."""
        return Shown([self]).html


class Batch(dict[str, Any], _Facts):
    """Outputs by name, `batch["image"]` or `batch.image`, and `ids`, `valid`,
    `epoch`, `number`, `rows`, `dataset`.

    The memory belongs to the batch and to every tensor of it: as long as any of
    them lives, it stays as it is, and may be written to. After that the loader
    uses it again.
    """

    __slots__ = ("_raw", "_convert", "_dataset")

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class TupleBatch(tuple[Any, ...], _Facts):
    """Outputs in their order, `images, labels = batch`; else as Batch."""

    _names: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[self._names.index(name)]

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def _values(raw: _beton.Batch, convert: Convert,
            ragged: bool) -> Iterable[Any]:
    if not ragged:
        return map(convert, raw.outputs)
    return (convert(t) if t.offsets is None else Ragged(t, convert)
            for t in raw.outputs)


class Maker:
    """Makes batches of one kind."""

    def __init__(self, names: tuple[str, ...], ragged: bool,
                 convert: Convert, as_tuple: bool, dataset: str) -> None:
        self.names = names
        self.ragged = ragged
        self.convert = convert
        self.as_tuple = as_tuple
        self.dataset = dataset

    def make(self, raw: _beton.Batch) -> Batch | TupleBatch:
        values = _values(raw, self.convert, self.ragged)
        batch: Batch | TupleBatch
        if self.as_tuple:
            batch = TupleBatch(values)
            batch._names = self.names
        else:
            batch = Batch(zip(self.names, values))
        batch._raw = raw
        batch._convert = self.convert
        batch._dataset = self.dataset
        return batch
