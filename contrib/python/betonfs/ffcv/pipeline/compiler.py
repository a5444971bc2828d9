# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import Any


class Compiler:
    """Compiles functions of users' operations with numba, where it is
    installed. What this package has itself needs none."""

    is_enabled = True
    num_threads = 1

    @classmethod
    def set_enabled(cls, enabled: bool) -> None:
        cls.is_enabled = enabled

    @classmethod
    def set_num_threads(cls, n: int) -> None:
        """Of compiled code; torch's threads are not touched."""
        cls.num_threads = n if n > 0 else len(os.sched_getaffinity(0))

    @classmethod
    def _numba(cls) -> Any:
        if not cls.is_enabled or not importlib.util.find_spec("numba"):
            return None
        return importlib.import_module("numba")

    @classmethod
    def compile(cls, code: Callable[..., Any],
                signature: Any = None) -> Callable[..., Any]:
        numba = cls._numba()
        if numba is None:
            if cls.is_enabled:
                warnings.warn(f"{code.__name__}: numba is not installed, so "
                              "this runs as plain Python, slowly",
                              RuntimeWarning, stacklevel=2)
            return code
        threads = min(cls.num_threads, numba.config.NUMBA_NUM_THREADS)
        parallel = bool(getattr(code, "is_parallel", False)) and threads > 1
        # Functions that users compiled themselves are taken as they are.
        if isinstance(code, numba.core.dispatcher.Dispatcher):
            own: Callable[..., Any] = code
            return own
        numba.set_num_threads(threads)
        compiled: Callable[..., Any] = numba.njit(
            signature, fastmath=True, nogil=True, error_model="numpy",
            parallel=parallel)(code)
        return compiled

    @classmethod
    def get_iterator(cls) -> Any:
        numba = cls._numba() if cls.num_threads > 1 else None
        return range if numba is None else numba.prange
