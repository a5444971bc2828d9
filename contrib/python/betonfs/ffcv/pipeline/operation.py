# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .allocation_query import Allocation, AllocationQuery
from .state import State


class Operation(ABC):
    """An operation on a batch of one field. Like FFCV's class, it is the base of
    custom operations.

    `generate_code()` gives a function of the batch and of the memory that
    `declare_state_and_memory()` asked for. Where the state that it declares
    has jit_mode, the function gets NumPy arrays and is compiled by numba; else
    it is Python and gets what the operation before it gave: arrays, or tensors
    after ToTensor. If the function has an attribute `with_indices` that is
    true, a third argument are the samples' numbers.
    """

    metadata: Any = None
    memory_read: Any = None
    field: Any = None

    def __init__(self) -> None:
        pass

    def accept_field(self, field: Any) -> None:
        self.field = field

    def accept_globals(self, metadata: Any, memory_read: Any) -> None:
        self.metadata = metadata
        self.memory_read = memory_read

    @abstractmethod
    def generate_code(self) -> Callable[..., Any]:
        raise NotImplementedError

    def declare_shared_memory(self, previous_state: State) \
            -> Allocation | None:
        """Memory for all samples of a batch that several pipelines share."""
        return None

    def generate_code_for_shared_state(self) -> Callable[..., Any] | None:
        """A function that fills the shared memory, once for every batch."""
        return None

    @abstractmethod
    def declare_state_and_memory(self, previous_state: State) \
            -> tuple[State, Allocation | None]:
        raise NotImplementedError


# FFCV's own tutorial imports the query from here.
__all__ = ["Allocation", "AllocationQuery", "Operation", "State"]
