# SPDX-License-Identifier: Apache-2.0
"""The operations of a pipeline that the library does not run. They run on batches
one after the other, in their order. Some custom operations run in the loader's
threads before them."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._compiled import Compiled, call, compile_code
from .._pool import Refused
from ._chain import SCALAR, Chain
from ._draws import Draws
from .pipeline.allocation_query import AllocationQuery, allocate
from .pipeline.compiler import Compiler
from .pipeline.operation import Operation
from .pipeline.state import State
from .transforms._base import BuiltIn, array_of, is_ours, numpy_dtype


@dataclass
class Batch:
    """The facts of a batch for operations. `done` are the indices of the
    operations that the loader's threads have run. `shared` is the memory of
    operations that stand in several pipelines."""

    seed: int
    epoch: int
    number: int
    ids: NDArray[np.int64]
    done: set[int]
    shared: dict[int, Any] = field(default_factory=dict)


def state_of(value: Any) -> State:
    if isinstance(value, torch.Tensor):
        return State(False, value.device, tuple(value.shape[1:]), value.dtype)
    return State(True, torch.device("cpu"), value.shape[1:], value.dtype)


class _Own:
    """An operation of a user's."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self._plain: Callable[..., Any] | None = None
        self._code: Callable[..., Any] | None = None
        self._init: Callable[..., Any] | None = None
        self._with_indices = self._with_counter = False
        self._stages: dict[Any, Any] = {}

    def forget(self) -> None:
        """Discard the code, so that the next batch generates it again."""
        self._plain = self._code = None

    def _ask(self) -> Callable[..., Any]:
        if self._plain is None:
            self._plain = self.op.generate_code()
            self._with_indices, self._with_counter = (
                bool(getattr(self._plain, name, False))
                for name in ("with_indices", "with_counter"))
            self._init = self.op.generate_code_for_shared_state()
        return self._plain

    def _prepare(self, compiled: bool) -> Callable[..., Any]:
        code = self._ask()
        if compiled:
            code = Compiler.compile(code)
            self._init = self._init and Compiler.compile(self._init)
        return code

    def stage(self, numba: Any, types: tuple[Any, ...], state: State,
              view: Callable[[Any], Any]) -> Any:
        """For the loader's threads: it changes its output in place."""
        after, query = self.op.declare_state_and_memory(state)
        dtype = numpy_dtype(state.dtype)
        code = self._ask()
        if not after.jit_mode or self._init is not None \
                or self._with_counter \
                or tuple(after.shape) != tuple(state.shape) \
                or numpy_dtype(after.dtype) != dtype:
            raise Refused
        key = types, state, view
        if key not in self._stages:
            # Threads of numba's would be entered by several at once.
            compiled: Any = compile_code(numba, code, 1, parallel=False)
            stage = _in_place(numba.njit, compiled, query, view,
                              self._with_indices)
            stage.compile(types)
            given = list(compiled.overloads.values())[-1].signature.return_type
            if (given.dtype, given.ndim) != (numba.from_dtype(dtype),
                                             len(state.shape) + 1):
                raise Refused
            self._stages[key] = stage
        return self._stages[key]

    def _asked(self, batch: Batch) -> tuple[Any, ...]:
        """More arguments, by attributes of the function: FFCV's with_indices,
        and FFCV-SSL's with_counter, the batch's number in its epoch."""
        return ((batch.ids,) if self._with_indices else ()) + (
            (batch.number,) if self._with_counter else ())

    def _shared(self, state: State, batch: Batch) -> tuple[Any, ...]:
        if self._init is None:
            return ()
        key = id(self.op)
        if key not in batch.shared:
            query = self.op.declare_shared_memory(state)
            batch.shared[key] = allocate(query, len(batch.ids))
            self._init(batch.shared[key])
        return batch.shared[key],

    def run(self, value: Any, batch: Batch, place: int) -> Any:
        state = state_of(value)
        after, query = self.op.declare_state_and_memory(state)
        if after.jit_mode:
            value = array_of(value)
        if self._code is None:
            self._code = self._prepare(after.jit_mode)
        memory = allocate(query, len(batch.ids))
        given = value, memory, *self._asked(batch), *self._shared(state, batch)
        if not after.jit_mode:
            return self._code(*given)
        return call(self._code, given, batch.seed, batch.epoch, batch.number,
                    place)


def _as_it_is(value: Any) -> Any:
    return value


def _with_an_axis(value: Any) -> Any:
    return value.reshape((len(value), 1))


def _channels_first(value: Any) -> Any:
    return value.transpose((0, 3, 1, 2))


def _view(chain: Chain) -> Callable[[Any], Any]:
    """Chain.finish() as compiled code."""
    if chain.halves:
        raise Refused
    if chain.kind == SCALAR and not chain.squeezed:
        return _with_an_axis
    return _channels_first if chain.first and not chain.planar else _as_it_is


def _in_place(jit: Any, code: Any, query: Any, view: Callable[[Any], Any],
              with_indices: bool) -> Any:
    """An operation's code, on an output as the library has it."""
    view = jit(view)
    if query is None:
        def memory(rows: int) -> Any:
            return None
    elif isinstance(query, AllocationQuery) and not isinstance(
            query.dtype, torch.dtype):
        shape, dtype = tuple(map(int, query.shape)), np.dtype(query.dtype)

        def memory(rows: int) -> Any:
            return np.empty((rows, *shape), dtype)
    else:
        raise Refused
    memory = jit(memory)

    @jit    # type: ignore[untyped-decorator]
    def store(result: Any, given: Any) -> None:
        if result.shape != given.shape:
            raise ValueError("not the shape that was declared")
        if (result.ctypes.data != given.ctypes.data
                or result.strides != given.strides):
            given[...] = result

    if with_indices:
        def stage(value: Any, indices: Any) -> None:
            given = view(value)
            store(code(given, memory(len(given)), indices), given)
    else:
        def stage(value: Any, indices: Any) -> None:
            given = view(value)
            store(code(given, memory(len(given))), given)
    return jit(stage)


class Pooled(Compiled):
    """An operation of a user's that follows what the library does, for its
    threads. It declares what it makes: the same as it is given."""

    parallel = False

    def __init__(self, own: _Own, output: str, after: Chain, is_first: bool,
                 place: int) -> None:
        self.name = type(own.op).__name__
        self.names = [output, "ids"]
        self.chain = output
        self.place = place
        self._own = own
        self._after = after
        self._is_first = is_first

    def code_for(self, numba: Any, types: tuple[Any, ...],
                 shapes: dict[str, tuple[int, ...]]) -> Any:
        dtype = numba.np.numpy_support.as_dtype(types[0].dtype)
        like = np.empty((2, *shapes[self.names[0]]), dtype)
        value = self._after.finish(torch.from_numpy(like))
        state = state_of(value if self._is_first else array_of(value))
        return self._own.stage(numba, types, state, _view(self._after))

    def run(self, seed: int | None, place: int, batch: Any) -> Any:
        """Stages run it."""
        return batch


class Decoding(_Own):
    """A decoder of a user's: the first operation, with no value before it."""

    def __init__(self, op: Operation, records: Any, storage: Any) -> None:
        super().__init__(op)
        self.records = records
        self.storage = storage

    def run(self, value: Any, batch: Batch, place: int) -> Any:
        state = State(True, torch.device("cpu"), None, np.dtype("u1"))
        _, query = self.op.declare_state_and_memory(state)
        if self._code is None:
            self._code = self._prepare(True)
        given = (batch.ids, allocate(query, len(batch.ids)), self.records,
                 self.storage, *self._asked(batch))
        return call(self._code, given, batch.seed, batch.epoch, batch.number,
                    place)


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

    def pooled(self, output: str, after: Chain) -> list[Pooled]:
        """The first of them, as far as they are users', if the library does
        what is before them."""
        users = itertools.takewhile(lambda op: isinstance(op, _Own), self.ops)
        return [Pooled(op, output, after, not i, self.place + i)
                for i, op in enumerate(users) if isinstance(op, _Own)]

    def run(self, value: Any, batch: Batch) -> Any:
        for i, op in enumerate(self.ops):
            if self.place + i in batch.done:
                value = array_of(value)
            elif isinstance(op, BuiltIn):
                value = op.apply(value, Draws(batch.seed, batch.epoch,
                                              batch.ids, self.place + i))
            else:
                value = op.run(value, batch, self.place + i)
        return value
