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
from ..pipeline.allocation_query import Allocation
from ..pipeline.operation import Operation
from ..pipeline.state import State


def torch_dtype(dtype: Any) -> Any:
    if isinstance(dtype, torch.dtype):
        return dtype
    return torch.from_numpy(np.empty(0, dtype)).dtype


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if isinstance(dtype, torch.dtype):
        dtype = torch.empty(0, dtype=dtype).numpy().dtype
    out: np.dtype[Any] = np.dtype(dtype)
    return out


class BuiltIn(Operation):
    """An operation that this package has: one class is all there is to it, with
    FFCV's arguments, its text, and what it does where there is none.

    native() gives its text at the end of a chain and says what the chain is
    then; "" where the library has nothing to do, None where it cannot.
    apply() is the same in Python, on a batch, and gives an array for an array
    and a tensor for a tensor.
    """

    def native(self, chain: Chain) -> str | None:
        return None

    def apply(self, value: Any, draws: Draws) -> Any:
        raise NotImplementedError

    # For operations of users that are made of these.

    def generate_code(self) -> Callable[..., Any]:
        def code(value: Any, _: Any, indices: Any) -> Any:
            seed = int(np.random.randint(2**31))
            return self.apply(value, Draws(seed, 0, np.asarray(indices), 0))
        code.with_indices = True    # type: ignore[attr-defined]
        return code

    def declare_state_and_memory(self, previous_state: State) \
            -> tuple[State, Allocation | None]:
        return replace(previous_state, jit_mode=False), None


_HOOKS = ("generate_code", "declare_state_and_memory",
          "declare_shared_memory", "generate_code_for_shared_state",
          "get_crop_generator")
_PACKAGE = __name__.partition(".transforms")[0] + "."


def is_own(cls: type) -> bool:
    """A class of this package."""
    return cls.__module__.startswith(_PACKAGE)


@functools.cache
def _has_hooks(cls: type) -> bool:
    return any(hook in vars(c) for c in cls.__mro__
               if not is_own(c) and issubclass(c, Operation)
               for hook in _HOOKS)


def is_ours(op: Operation) -> TypeGuard[BuiltIn]:
    """And no subclass with code of its own."""
    return isinstance(op, BuiltIn) and not _has_hooks(type(op))


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
        out = torch.from_numpy(self.images(np.array(value.cpu().numpy()), draws))
        out = out.to(value.device)
        return out.permute(0, 3, 1, 2) if first else out
