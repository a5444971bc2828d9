# SPDX-License-Identifier: Apache-2.0
"""What loaders and mixes of them have in common as Python sees them."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self


class Epochs(ABC):
    """Gives batches, one sequence of them at a time."""

    # Who iterates: a new one, or a move to another place, ends all before it.
    _turn = 0

    @abstractmethod
    def _next(self) -> Any:
        """A batch; None at the end of the epoch."""

    @abstractmethod
    def close(self) -> None:
        """Ends its threads. Batches that are kept stay valid."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class Epoch(Iterator[Any]):
    """The rest of the one that it stands in."""

    __slots__ = ("_of", "_turn", "_over")

    def __init__(self, of: Epochs) -> None:
        of._turn += 1
        self._of = of
        self._turn = of._turn
        self._over = False

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        if self._turn != self._of._turn:
            raise RuntimeError("the loader was iterated anew, or moved: a "
                               "loader is one sequence of batches at a time")
        batch = self._of._next()
        if batch is None:
            self._over = True
            raise StopIteration
        return batch
