# SPDX-License-Identifier: Apache-2.0
"""Random numbers as pure functions of integers, as in beton-orders(7)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

WEYL = np.uint64(0x9e3779b97f4a7c15)


def mix(x: Any) -> Any:
    """mix() of beton-orders(7), the finisher of splitmix64, of a number or an
    array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return x ^ (x >> np.uint64(31))


def _wrapping(code: Any) -> Any:
    """Version for compiled code, modulo 2^64."""
    return np.errstate(over="ignore")(code)


def _key(jit: Callable[[Any], Any]) -> Any:
    step = jit(mix)

    def key(*words: Any) -> Any:
        k = step(WEYL + np.uint64(len(words)))
        for word in words:
            k = step((k ^ np.uint64(word)) + WEYL)
        return k
    return jit(key)


# key() of beton-orders(7).
key = _key(_wrapping)


def seeding(jit: Callable[[Any], Any] = _wrapping) -> Any:
    """A function that seeds np.random for a function of arrays and a batch:
    NumPy's own generator, or, compiled by `jit`, the thread's in compiled code.
    Both give the same numbers then."""
    key = _key(jit)

    def start(seed: Any, epoch: Any, number: Any, place: Any) -> None:
        k = key(np.uint64(seed), np.uint64(epoch), np.uint64(number),
                np.uint64(place))
        np.random.seed(k >> np.uint64(32))
    return jit(start)
