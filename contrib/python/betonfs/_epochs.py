# SPDX-License-Identifier: Apache-2.0
"""The common Python interface of loaders and of mixes of them."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self


class Epochs(ABC):
    """Gives batches, one sequence of them at a time."""

    @abstractmethod
    def _next(self, turn: int) -> Any:
        """A batch; None at the end of the epoch. RuntimeError: another one
        iterates, or has moved it, since it was this one's turn."""

    @abstractmethod
    def close(self) -> None:
        """End the threads. Batches that you keep stay valid."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Epoch(Iterator[Any]):
    """The rest of the one that it stands in."""

    __slots__ = ("_of", "_turn", "_over")

    def __init__(self, of: Epochs, turn: int) -> None:
        self._of = of
        self._turn = turn
        self._over = False

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        batch = self._of._next(self._turn)
        if batch is None:
            self._over = True
            raise StopIteration
        return batch
