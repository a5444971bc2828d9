# SPDX-License-Identifier: Apache-2.0
"""What is left of a pipeline when the library has done its part, run on batches
one after the other, in their order, whatever kinds the operations are of."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._draws import Draws
from .pipeline.allocation_query import allocate
from .pipeline.compiler import Compiler
from .pipeline.operation import Operation
from .pipeline.state import State
from .transforms._base import BuiltIn, is_ours


@dataclass
class Batch:
    """What operations may know of a batch; `shared` is the memory that was made
    for operations that stand in several pipelines."""

    seed: int
    epoch: int
    ids: NDArray[np.int64]
    shared: dict[int, Any] = field(default_factory=dict)


def state_of(value: Any) -> State:
    if isinstance(value, torch.Tensor):
        return State(False, value.device, tuple(value.shape[1:]), value.dtype)
    return State(True, torch.device("cpu"), value.shape[1:], value.dtype)


def as_array(value: Any) -> Any:
    return value.cpu().numpy() if isinstance(value, torch.Tensor) else value


def as_tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


class _Own:
    """An operation of a user's."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self._code: Callable[..., Any] | None = None
        self._init: Callable[..., Any] | None = None
        self._with_indices = False

    def forget(self) -> None:
        """Its code is made anew for the next batch."""
        self._code = None

    def _prepare(self, compiled: bool) -> Callable[..., Any]:
        code = self.op.generate_code()
        self._with_indices = bool(getattr(code, "with_indices", False))
        self._init = self.op.generate_code_for_shared_state()
        if compiled:
            code = Compiler.compile(code)
            self._init = self._init and Compiler.compile(self._init)
        return code

    def _shared(self, state: State, batch: Batch) -> tuple[Any, ...]:
        if self._init is None:
            return ()
        key = id(self.op)
        if key not in batch.shared:
            query = self.op.declare_shared_memory(state)
            batch.shared[key] = allocate(query, len(batch.ids))
            self._init(batch.shared[key])
        return batch.shared[key],

    def run(self, value: Any, batch: Batch) -> Any:
        state = state_of(value)
        after, query = self.op.declare_state_and_memory(state)
        value = as_array(value) if after.jit_mode else as_tensor(value)
        if self._code is None:
            self._code = self._prepare(after.jit_mode)
        memory = allocate(query, len(batch.ids))
        indices = (batch.ids,) if self._with_indices else ()
        return self._code(value, memory, *indices, *self._shared(state, batch))


class Decoding(_Own):
    """A decoder of a user's: the first operation, with no value before it."""

    def __init__(self, op: Operation, records: Any, storage: Any) -> None:
        super().__init__(op)
        self.records = records
        self.storage = storage

    def run(self, value: Any, batch: Batch) -> Any:
        state = State(True, torch.device("cpu"), None, np.dtype("u1"))
        _, query = self.op.declare_state_and_memory(state)
        if self._code is None:
            self._code = self._prepare(True)
        return self._code(batch.ids, allocate(query, len(batch.ids)),
                          self.records, self.storage)


class Stages:
    """Operations in their order. `place` is the number of the first one, among
    all of the loader."""

    def __init__(self, ops: Sequence[Operation], place: int) -> None:
        self.ops = [op if is_ours(op) else _Own(op) for op in ops]
        self.place = place

    def forget(self) -> None:
        for op in self.ops:
            if isinstance(op, _Own):
                op.forget()

    def run(self, value: Any, batch: Batch) -> Any:
        for i, op in enumerate(self.ops):
            if isinstance(op, BuiltIn):
                value = op.apply(value, Draws(batch.seed, batch.epoch,
                                              batch.ids, self.place + i))
            else:
                value = op.run(value, batch)
        return value


