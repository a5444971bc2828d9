# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays as stages of a loader. If numba is installed, it
compiles them."""
from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _random
from ._batch import TupleBatch

Code = Callable[..., Any]


def find_numba() -> Any:
    """Return numba, or None if it is not installed."""
    if not importlib.util.find_spec("numba"):
        return None
    return importlib.import_module("numba")


def compile_code(numba: Any, code: Code, threads: int, signature: Any = None,
                 parallel: bool | None = None) -> Code:
    """Compile a function as FFCV does, without the GIL. It uses numba's
    threads if `parallel` is True, or if that is None and the function has the
    attribute `is_parallel`. Return a function unchanged if the user has
    compiled it."""
    if numba is None:
        warnings.warn(f"{code.__name__}: numba is not installed, so this runs "
                      "as plain Python, slowly", RuntimeWarning, stacklevel=3)
        return code
    if isinstance(code, numba.core.dispatcher.Dispatcher):
        own: Code = code
        return own
    threads = min(threads, numba.config.NUMBA_NUM_THREADS)
    if parallel is None:
        parallel = bool(getattr(code, "is_parallel", False))
    parallel = parallel and threads > 1
    if parallel:
        numba.set_num_threads(threads)
    compiled: Code = numba.njit(signature, fastmath=True, nogil=True,
                                error_model="numpy", parallel=parallel)(code)
    return compiled


# Held while NumPy's global generator, which all threads share, has our state.
_generator = threading.RLock()


@functools.cache
def seeding(numba: Any) -> Any:
    """Seeds np.random in compiled code of the thread."""
    return _random.seeding(numba.njit)


def call(code: Code, arguments: Iterable[Any], seed: int, epoch: int,
         number: int, place: int) -> Any:
    """Call a function so that its random numbers from np.random depend only on
    the seed, the batch, and its `place` among all functions of a loader.
    Restores the state of NumPy's global generator."""
    numba = sys.modules.get("numba")
    if numba and isinstance(code, numba.core.dispatcher.Dispatcher):
        seeding(numba)(seed, epoch, number, place)
        return code(*arguments)
    with _generator:
        state = np.random.get_state()
        _random.seeding()(seed, epoch, number, place)
        try:
            return code(*arguments)
        finally:
            np.random.set_state(state)


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return the tensor's memory as an array, without a copy."""
    if hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise TypeError(f"{name} is on {value.device}: functions of arrays "
                            "are for the CPU")
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, which is no array")
    return value


def _like(old: Any, new: Any) -> Any:
    """Convert a result to the framework of the output that it replaces."""
    if isinstance(new, np.ndarray) and hasattr(old, "detach"):
        return sys.modules["torch"].from_numpy(new)
    return new


def _replaced(batch: Any, name: str, new: Any) -> Any:
    if isinstance(batch, TupleBatch):
        i = batch._names.index(name)
        values = [*batch[:i], _like(batch[i], new), *batch[i + 1:]]
        changed = batch._of(values)
        for fact in ("_raw", "_convert", "_dataset"):
            setattr(changed, fact, getattr(batch, fact))
        return changed
    batch[name] = _like(batch[name], new)
    return batch


class Compiled:
    """The result of compiled()."""

    # If the iterating thread calls a function, it also calls all later
    # functions of the chain.
    chain: Any = None
    # Position among all functions of a loader. None: the position among the
    # transforms.
    place: int | None = None

    def __init__(self, code: Code, parallel: bool) -> None:
        functools.update_wrapper(self, code)
        self._plain = code
        self.name = code.__name__
        self.parallel = parallel or bool(getattr(code, "is_parallel", False))
        self.names = list(inspect.signature(
            getattr(code, "py_func", code)).parameters)
        if not self.names:
            raise TypeError(f"{code.__name__} has no parameters: they are the "
                            "names of outputs")
        self._code: Code | None = None

    def code(self) -> Code:
        if self._code is None:
            threads = len(os.sched_getaffinity(0)) if self.parallel else 1
            self._code = compile_code(find_numba(), self._plain, threads,
                                      parallel=self.parallel)
        return self._code

    def code_for(self, numba: Any, types: tuple[Any, ...],
                 shapes: dict[str, tuple[int, ...]]) -> Code:
        """Prepare it for the loader's threads, with the current types and
        shapes of outputs."""
        return self.code()

    def _given(self, batch: Any, name: str) -> Any:
        try:
            return getattr(batch, name)
        except AttributeError as e:
            raise AttributeError(f"{self.name}(): parameter {name!r} is no "
                                 f"output: {e}") from None

    def run(self, seed: int | None, place: int, batch: Any) -> Any:
        """Call it in the iterating thread. Without a seed, random numbers are
        unpredictable."""
        given = [self._given(batch, name) for name in self.names]
        given = [value if isinstance(value, (int, str)) else _array(name, value)
                 for name, value in zip(self.names, given)]
        if seed is None:
            result = self.code()(*given)
        else:
            result = call(self.code(), given, seed, batch.epoch, batch.number,
                          place)
        if result is None:
            return batch
        return _replaced(batch, self.names[0], result)

    def __call__(self, batch: Any) -> Any:
        return self.run(None, 0, batch)

    def __reduce__(self) -> Any:
        # As a decorator, it has the name of the function.
        code: Any = self._plain
        module = sys.modules.get(code.__module__)
        if getattr(module, code.__qualname__, None) is self:
            return code.__qualname__
        return Compiled, (code, self.parallel)


def compiled(code: Code | None = None, *, parallel: bool = False) -> Any:
    """Compile a function of NumPy arrays as a transform, for
    ``Loader(transforms=[...])``.

        @betonfs.compiled
        def darken(image, label):
            for i in range(len(image)):
                if label[i] == 3:
                    image[i] //= 2

    The names of its parameters are the names of outputs of the pipeline, or of
    facts of a batch: `ids`, `valid`, `epoch`, `number`, `rows`. It gets their
    memory, and changes it in place. If it returns a value, that replaces the
    first parameter; if it returns None, the first parameter stays.

    numba compiles it when the first iteration begins. The loader's threads call
    it if it returns nothing, takes no bytes, JSON, or arrays of a GPU, and all
    transforms before it are of this kind. Then it runs without the GIL, on
    several batches at a time, before you request these. If it raises an
    exception, you get a BetonError that contains its name.

    Otherwise the thread that iterates calls it. The same holds for a function
    with `parallel`, whose ``numba.prange`` uses all usable CPUs. If numba is not
    installed, the function runs as Python in that thread, and Python issues a
    warning.

    Random numbers of ``np.random`` in it are functions of the loader's seed,
    the epoch, the batch's number and the function's position among the
    transforms. They depend neither on the calling thread nor on the number of
    workers. This does not hold for threads of ``prange``. Without numba,
    ``random``, ``uniform``, ``normal``, ``randint`` and ``permutation`` give the
    same bits. In the thread that iterates, numba's generator is seeded for the
    call, and the state of NumPy's generator is restored after it.
    """
    if code is not None and not callable(code):
        raise TypeError(f"compiled({code!r}): a function of arrays")
    if code is None:
        return functools.partial(compiled, parallel=parallel)
    return Compiled(code, parallel)
