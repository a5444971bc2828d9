# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..._compiled import compile_code, find_numba


class Compiler:
    """Compiles the functions of custom operations with numba, if it is
    installed. The operations of this package need no numba."""

    is_enabled = True
    num_threads = 1

    @classmethod
    def set_enabled(cls, enabled: bool) -> None:
        cls.is_enabled = enabled

    @classmethod
    def set_num_threads(cls, n: int) -> None:
        """Set the number of threads of compiled code, and not of torch."""
        cls.num_threads = n if n > 0 else len(os.sched_getaffinity(0))

    @classmethod
    def _numba(cls) -> Any:
        return find_numba() if cls.is_enabled else None

    @classmethod
    def has_numba(cls) -> bool:
        return cls._numba() is not None

    @classmethod
    def compile(cls, code: Callable[..., Any],
                signature: Any = None) -> Callable[..., Any]:
        if not cls.is_enabled:
            return code
        return compile_code(cls._numba(), code, cls.num_threads, signature)

    @classmethod
    def get_iterator(cls) -> Any:
        numba = cls._numba() if cls.num_threads > 1 else None
        return range if numba is None else numba.prange
