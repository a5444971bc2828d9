# SPDX-License-Identifier: Apache-2.0
"""The common Python interface of loaders and of mixes of them."""
from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self


class Epochs(ABC):
    """Iterate over batches, with one iteration at a time."""

    _latest: weakref.ref[Epoch] | None = None

    @abstractmethod
    def _next(self, turn: int) -> Any:
        """Return a batch, or None at the end of the epoch. Raise RuntimeError
        if another iteration has begun, or if the position has changed."""

    @abstractmethod
    def close(self) -> None:
        """End its threads. Batches that you hold stay valid."""

    @abstractmethod
    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""

    def _iteration(self, turn: int) -> Epoch:
        """Return a new iteration, which is the latest from now on."""
        epoch = Epoch(self, turn)
        self._latest = weakref.ref(epoch)
        return epoch

    def _untouched(self) -> Epoch | None:
        """Return the latest iteration if it has delivered nothing. It follows
        the position: Lightning calls iter() first and set_epoch() second."""
        latest = self._latest() if self._latest else None
        return None if latest is None or latest._begun else latest

    @property
    def batch_sampler(self) -> Sampler:
        """Frameworks that know torch's DataLoader, such as Lightning, call
        ``batch_sampler.sampler.set_epoch(epoch)`` before each epoch."""
        return Sampler(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Sampler:
    """The part of a sampler of torch that a loader has."""

    def __init__(self, of: Epochs) -> None:
        self._of = of

    @property
    def sampler(self) -> Self:
        return self

    def set_epoch(self, epoch: int) -> None:
        self._of.set_epoch(epoch)


class Epoch(Iterator[Any]):
    """Continue the current epoch."""

    __slots__ = ("_of", "_turn", "_begun", "_over", "__weakref__")

    def __init__(self, of: Epochs, turn: int) -> None:
        self._of = of
        self._turn = turn
        self._begun = False
        self._over = False

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        self._begun = True
        batch = self._of._next(self._turn)
        if batch is None:
            self._over = True
            raise StopIteration
        return batch
