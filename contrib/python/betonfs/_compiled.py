# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays as stages of a loader, compiled by numba where it is
installed."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._batch import TupleBatch

Code = Callable[..., Any]


def find_numba() -> Any:
    """None: it is not installed."""
    if not importlib.util.find_spec("numba"):
        return None
    return importlib.import_module("numba")


def compile_code(numba: Any, code: Code, threads: int,
                 signature: Any = None) -> Code:
    """As FFCV does: without the GIL, and with numba's threads where the function
    says that it `is_parallel`. Functions that users compiled themselves are
    taken as they are."""
    if numba is None:
        warnings.warn(f"{code.__name__}: numba is not installed, so this runs "
                      "as plain Python, slowly", RuntimeWarning, stacklevel=3)
        return code
    if isinstance(code, numba.core.dispatcher.Dispatcher):
        own: Code = code
        return own
    threads = min(threads, numba.config.NUMBA_NUM_THREADS)
    parallel = bool(getattr(code, "is_parallel", False)) and threads > 1
    numba.set_num_threads(threads)
    compiled: Code = numba.njit(signature, fastmath=True, nogil=True,
                                error_model="numpy", parallel=parallel)(code)
    return compiled


def _array(name: str, value: Any) -> NDArray[Any]:
    """Its memory, and no copy."""
    if hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise TypeError(f"{name} is on {value.device}: functions of arrays "
                            "are for the CPU")
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, which is no array")
    return value


def _like(old: Any, new: Any) -> Any:
    """A result, as the framework of what it replaces has arrays."""
    if isinstance(new, np.ndarray) and hasattr(old, "detach"):
        return sys.modules["torch"].from_numpy(new)
    return new


def _replaced(batch: Any, name: str, new: Any) -> Any:
    if isinstance(batch, TupleBatch):
        i = batch._names.index(name)
        values = [*batch[:i], _like(batch[i], new), *batch[i + 1:]]
        changed = TupleBatch(values)
        for fact in ("_names", "_raw", "_convert", "_dataset"):
            setattr(changed, fact, getattr(batch, fact))
        return changed
    batch[name] = _like(batch[name], new)
    return batch


class Compiled:
    """What compiled() gives."""

    def __init__(self, code: Code, parallel: bool) -> None:
        functools.update_wrapper(self, code)
        self._plain = code
        self._parallel = parallel
        self._names = list(inspect.signature(
            getattr(code, "py_func", code)).parameters)
        if not self._names:
            raise TypeError(f"{code.__name__} has no parameters: they are the "
                            "names of outputs")
        self._code: Code | None = None

    def _compile(self) -> Code:
        code = self._plain
        if self._parallel:
            code.is_parallel = True     # type: ignore[attr-defined]
        return compile_code(find_numba(), code,
                            len(os.sched_getaffinity(0))
                            if self._parallel else 1)

    def __call__(self, batch: Any) -> Any:
        if self._code is None:
            self._code = self._compile()
        given = [getattr(batch, name) for name in self._names]
        result = self._code(*(
            value if isinstance(value, (int, str)) else _array(name, value)
            for name, value in zip(self._names, given)))
        if result is None:
            return batch
        return _replaced(batch, self._names[0], result)

    def __reduce__(self) -> Any:
        # Where it decorates, its name is the function's.
        code: Any = self._plain
        module = sys.modules.get(code.__module__)
        if getattr(module, code.__qualname__, None) is self:
            return code.__qualname__
        return Compiled, (code, self._parallel)


def compiled(code: Code | None = None, *, parallel: bool = False) -> Any:
    """Makes a stage of a function of NumPy arrays, for
    ``Loader(transforms=[...])``.

        @betonfs.compiled
        def darken(image, label):
            for i in range(len(image)):
                if label[i] == 3:
                    image[i] //= 2

    Its parameters are named as outputs of the pipeline, or as facts of a batch,
    `ids`, `valid`, `epoch`, `number`; it gets their memory, and changes it in
    place. What it returns takes the place of the first one; None: it stays.

    numba compiles it at the first batch, and it runs without the GIL; where numba
    is not installed, it runs as Python, and a warning says so. With `parallel`,
    ``numba.prange`` takes all usable CPUs. Batches pass it in the thread that
    iterates.
    """
    if code is None:
        return functools.partial(compiled, parallel=parallel)
    return Compiled(code, parallel)
