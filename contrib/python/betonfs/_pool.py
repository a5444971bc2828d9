# SPDX-License-Identifier: Apache-2.0
"""The batch callback: functions of arrays that numba compiled, joined to one C
function for beton_loader_set_callback(). The loader's threads call it on each
batch before the batch is ready."""
from __future__ import annotations

import errno
import functools
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _beton
from ._compiled import Compiled, find_numba, seeding
from ._tensors import CPU

# struct beton_batch and struct beton_tensor of <beton/loader.h>.
_BATCH = np.dtype([("epoch", "u8"), ("number", "u8"), ("num_samples", "u4"),
                   ("num_outputs", "u4"), ("ids", "u8"), ("valid", "u8"),
                   ("outputs", "u8")])
_TENSOR = np.dtype([("name", "u8"), ("dtype", "u8"), ("ndim", "u8"),
                    ("shape", "u8"), ("data", "u8"), ("size", "u8"),
                    ("offsets", "u8"), ("device", "u8")])

# The expression of each fact of a batch in compiled code.
_FACTS = {
    "ids": "carray(at(batch.ids), batch.num_samples, int64)",
    "valid": "carray(at(batch.valid), batch.num_samples, bool_)",
    "epoch": "int64(batch.epoch)",
    "number": "int64(batch.number)",
    "num_samples": "int64(batch.num_samples)",
}

_HOOK = """
def callback(_, address, why, size):
    batch = carray(address, 1, BATCH)[0]
    tensors = carray(at(batch.outputs), batch.num_outputs, TENSOR)
    stage = 0
{arrays}
    try:
{calls}
    except Exception:
        text = carray(why, size, uint8)
        for k in range(min(size, len(ERRORS[stage]))):
            text[k] = ERRORS[stage][k]
        return -EIO
    return 0
"""
# Shapes can change between epochs.
_ARRAY = """\
    shape = carray(at(tensors[{i}].shape), {ndim}, int64)
    array{i} = carray(at(tensors[{i}].data), ({shape}), dtype{i})
"""
_CALL = """\
        stage = {i}
        seed(SEED, batch.epoch, batch.number, {place})
        code{i}({arguments})
"""


@dataclass(frozen=True)
class Stage:
    """A compiled function that changes arrays in place and returns nothing."""

    name: str
    code: Any
    arguments: tuple[str, ...]  # outputs and facts
    place: int                  # among all functions, for its random numbers


@dataclass(frozen=True)
class Output:
    """An output of a loader. It has a dtype if it is an array in memory."""

    name: str
    dtype: str | None
    ndim: int       # of a batch

    @staticmethod
    def of(facts: dict[str, Any]) -> Output:
        is_array = facts["device_type"] == CPU and not facts["ragged"]
        return Output(facts["name"], facts["dtype"] if is_array else None,
                      len(facts["shape"]) + 1)


Outputs = tuple[Output, ...]


class Refused(Exception):
    """The loader's threads cannot run the function."""


def type_of(numba: Any, outputs: Outputs, name: str) -> Any:
    """Return the numba type of a parameter."""
    types = numba.types
    if name in _FACTS:
        return {"ids": types.int64[::1], "valid": types.bool_[::1]}.get(
            name, types.int64)
    for o in outputs:
        if o.name == name and o.dtype:
            return types.Array(numba.from_dtype(np.dtype(o.dtype)), o.ndim, "C")
    raise Refused(name)


def check(numba: Any, stage: Stage, given: tuple[Any, ...]) -> None:
    """Compile it. Raise Refused if it returns a result, or if it uses numba's
    threads, which serve one thread at a time."""
    stage.code.compile(given)
    compiled = stage.code.overloads[given]
    if compiled.signature.return_type != numba.types.none \
            or "numba_parallel_for" in compiled.library.get_llvm_str():
        raise Refused(stage.name)


def _pointer(numba: Any) -> Any:
    """Make a typed pointer from an address."""
    def at(typing: Any, address: Any) -> Any:
        def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            to = context.get_value_type(signature.return_type)
            return builder.inttoptr(given[0], to)
        return numba.types.voidptr(address), make
    return numba.extending.intrinsic(at)


def _errors(stages: tuple[Stage, ...]) -> Any:
    """Return the error message of each stage, as rows of bytes that end with
    0."""
    messages = [f"{s.name}() raised an exception".encode() for s in stages]
    rows = np.zeros((len(messages), max(map(len, messages)) + 1), np.uint8)
    for row, text in zip(rows, messages):
        row[:len(text)] = np.frombuffer(text, np.uint8)
    return rows


# Users reopen loaders, for example after a change.
@functools.lru_cache(16)
def compile_callback(numba: Any, stages: tuple[Stage, ...], outputs: Outputs,
                 seed: int) -> Any:
    """Compile a beton_callback_fn that calls all stages, one after the other. If
    a stage raises an exception, the batch fails with the function's name."""
    used = {name for stage in stages for name in stage.arguments}
    scope: dict[str, Any] = {
        "BATCH": _BATCH, "TENSOR": _TENSOR, "ERRORS": _errors(stages),
        "SEED": np.uint64(seed), "EIO": errno.EIO, "at": _pointer(numba),
        "seed": seeding(numba), "carray": numba.carray,
        "bool_": np.bool_, "int64": np.int64, "uint8": np.uint8}
    arrays, calls, known = [], [], dict(_FACTS)
    for i, o in enumerate(outputs):
        if o.name not in used - set(_FACTS):
            continue
        scope[f"dtype{i}"] = np.dtype(o.dtype)
        known[o.name] = f"array{i}"
        arrays.append(_ARRAY.format(i=i, ndim=o.ndim, shape="".join(
            f"shape[{k}], " for k in range(o.ndim))))
    for i, stage in enumerate(stages):
        scope[f"code{i}"] = stage.code
        calls.append(_CALL.format(i=i, place=stage.place, arguments=", ".join(
            known[name] for name in stage.arguments)))
    exec(_HOOK.format(arrays="".join(arrays), calls="".join(calls)), scope)
    types = numba.types
    return numba.cfunc(types.int32(types.voidptr, types.voidptr, types.voidptr,
                                   types.size_t))(scope["callback"])


class Pool:
    """The transforms of a loader: the first of them, as far as they are for it,
    are the threads', and `calls` what is left for who iterates. `numba` None:
    all of them."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self._transforms = transforms
        wanted = transforms and isinstance(transforms[0], Compiled) \
            and not transforms[0].parallel
        self.numba = find_numba() if wanted else None
        self.calls: list[Callable[[Any], Any]] = []
        self.places: set[int] = set()   # of those that the threads call
        self._callback: Any = None      # is code as long as it lives
        self._started = False
        self._lock = threading.Lock()

    def start(self, core: _beton.Loader) -> None:
        """Set the batch callback once. The threads of the loader wait for
        it."""
        with self._lock:
            if not self._started:
                self._start(core)
                self._started = True

    def _start(self, core: _beton.Loader) -> None:
        found = re.search(r"\bseed=(\d+)", core.info()["spec"])
        assert found
        seed, facts = int(found[1]), core.outputs()
        outputs = tuple(map(Output.of, facts))
        shapes = {o["name"]: tuple(o["shape"]) for o in facts}
        stages, calls = self._divide(outputs, shapes, seed)
        if stages:
            self._callback = compile_callback(self.numba, tuple(stages), outputs, seed)
        if self.numba is not None:
            core.callback(self._callback.address if stages else 0)
        self.places = {stage.place for stage in stages}
        self.calls = calls

    def _divide(self, outputs: Outputs, shapes: dict[str, tuple[int, ...]],
                seed: int) -> tuple[list[Stage], list[Callable[[Any], Any]]]:
        stages: list[Stage] = []
        calls: list[Callable[[Any], Any]] = []
        ended: set[Any] = set()
        for i, transform in enumerate(self._transforms):
            if not isinstance(transform, Compiled):
                calls.append(transform)
                ended.add(None)
                continue
            place = i if transform.place is None else transform.place
            try:
                if self.numba is None or transform.chain in ended:
                    raise Refused
                stages.append(self._stage(transform, outputs, shapes, place))
            except Exception:
                # numba raises the same error again when the function is called.
                calls.append(functools.partial(transform.run, seed, place))
                ended.add(transform.chain)
        return stages, calls

    def _stage(self, transform: Compiled, outputs: Outputs,
               shapes: dict[str, tuple[int, ...]], place: int) -> Stage:
        if transform.parallel:
            raise Refused
        given = tuple(type_of(self.numba, outputs, name)
                      for name in transform.names)
        code = transform.code_for(self.numba, given, shapes)
        stage = Stage(transform.name, code, tuple(transform.names), place)
        check(self.numba, stage, given)
        return stage
