# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from .._chain import Chain
from .._draws import Draws
from ..pipeline.allocation_query import Allocation, AllocationQuery
from ..pipeline.operation import Operation
from ..pipeline.state import State


def dtype_name(dtype: Any) -> str:
    """The name of a type of torch, NumPy or ml_dtypes, such as "float32". Only
    torch and ml_dtypes have bfloat16."""
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    return str(np.dtype(dtype).name)


def torch_dtype(dtype: Any) -> Any:
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype_name(dtype) == "bfloat16":
        return torch.bfloat16
    return torch.from_numpy(np.empty(0, dtype)).dtype


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, torch.dtype):
        dtype = torch.empty(0, dtype=dtype).numpy().dtype
    out: np.dtype[Any] = np.dtype(dtype)
    return out


def array_of(value: Any) -> Any:
    """Return the NumPy array of an array or a tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bfloat16:
        raise TypeError("NumPy and compiled code have no bfloat16: put "
                        "Convert(torch.bfloat16) after the operations that "
                        "work on arrays")
    return value.cpu().numpy()


class BuiltIn(Operation):
    """An operation of this package. One class contains all of it: FFCV's
    arguments, the pipeline string, and an implementation in Python.

    native() returns the string that a chain is extended by, and updates the
    chain. If the library has nothing to do, it returns ""; if the library cannot
    run the operation, it returns None. apply() is the same operation in Python
    on a batch. It returns an array for an array, and a tensor for a tensor.
    """

    # Whether generate_code() makes its values, as for a user's class.
    runs_code = False

    def native(self, chain: Chain) -> str | None:
        return None

    def apply(self, value: Any, draws: Draws) -> Any:
        raise NotImplementedError

    # For operations of users that are made of these.

    def generate_code(self) -> Callable[..., Any]:
        """A function of a batch, which ignores the memory that it is given.
        Without `indices` the samples' numbers are their places in the batch."""
        def code(value: Any, _: Any = None, indices: Any = None) -> Any:
            if indices is None:
                indices = np.arange(len(value))
            seed = int(np.random.randint(2**31))
            return self.apply(value, Draws(seed, 0, np.asarray(indices), 0))
        code.with_indices = True    # type: ignore[attr-defined]
        return code

    def declare_state_and_memory(self, previous_state: State) \
            -> tuple[State, Allocation | None]:
        """No memory, but for a subclass that has other code for arrays: an
        array of what this operation makes, as FFCV's asks for."""
        state = replace(previous_state, jit_mode=False)
        if type(self).generate_code is BuiltIn.generate_code \
                or isinstance(state.dtype, torch.dtype):
            return state, None
        made = self.apply(np.zeros((1, *state.shape), state.dtype),
                          Draws(0, 0, np.zeros(1, np.int64), 0))
        if isinstance(made, torch.Tensor):
            return state, None
        query = AllocationQuery(made.shape[1:], made.dtype)
        return replace(state, jit_mode=True, shape=query.shape,
                       dtype=query.dtype), query


_HOOKS = ("generate_code", "declare_state_and_memory",
          "declare_shared_memory", "generate_code_for_shared_state",
          "get_crop_generator")
_PACKAGE = __name__.partition(".transforms")[0] + "."


def is_of_package(cls: type) -> bool:
    """Whether a class belongs to this package."""
    return cls.__module__.startswith(_PACKAGE)


@functools.cache
def _has_hooks(cls: type) -> bool:
    return any(hook in vars(c) for c in cls.__mro__
               if not is_of_package(c) and issubclass(c, Operation)
               for hook in _HOOKS)


def is_ours(op: Operation) -> TypeGuard[BuiltIn]:
    """Whether it is a built-in operation, and not a subclass with other
    code."""
    return isinstance(op, BuiltIn) and not op.runs_code \
        and not _has_hooks(type(op))


class ImageOperation(BuiltIn):
    """On uint8 arrays of (batch, height, width, 3), of its own, to change."""

    def images(self, images: NDArray[np.uint8],
               draws: Draws) -> NDArray[Any]:
        raise NotImplementedError

    def apply(self, value: Any, draws: Draws) -> Any:
        if not isinstance(value, torch.Tensor):
            return self.images(np.array(value), draws)
        first = value.ndim == 4 and value.shape[1] == 3 != value.shape[3]
        if first:
            value = value.permute(0, 2, 3, 1)
        out = torch.from_numpy(self.images(np.array(array_of(value)), draws))
        out = out.to(value.device)
        return out.permute(0, 3, 1, 2) if first else out
