# SPDX-License-Identifier: Apache-2.0
"""Crops of images. Where numba is installed these functions are compiled, and
compiled code may call them; else they are plain Python."""
from __future__ import annotations

from typing import Any

from ..._compiled import find_numba
from .. import libffcv
from .._crops import center_crop, get_random_crop as _random

_PLAIN = {"get_random_crop": _random, "get_center_crop": center_crop,
          "resize_crop": libffcv.resize_crop}


def __getattr__(name: str) -> Any:
    # numba takes long to import, and most programs need none of this.
    if name not in _PLAIN:
        raise AttributeError(name)
    numba, code = find_numba(), _PLAIN[name]
    globals()[name] = numba.njit(nogil=True)(code) if numba else code
    return globals()[name]
