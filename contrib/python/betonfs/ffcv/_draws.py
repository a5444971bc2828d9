# SPDX-License-Identifier: Apache-2.0
"""Random numbers of operations that run in Python. As those of the library they
are functions of seed, epoch and sample, and of nothing else."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._random import WEYL, mix

_M64 = 2**64 - 1


class Draws:
    """For one operation, by its `place`, and one batch. Each call of uniform()
    gives the next number of every sample."""

    def __init__(self, seed: int, epoch: int, ids: NDArray[np.int64],
                 place: int) -> None:
        self.seed = seed & _M64
        self.epoch = epoch
        self.ids = ids
        self.place = place
        self._drawn = 0

    def uniform(self, low: float = 0, high: float = 1) \
            -> NDArray[np.float64]:
        key: NDArray[np.uint64] = np.zeros(len(self.ids), np.uint64)
        for part in (self.seed, self.epoch, self.place, self._drawn):
            key = mix(key + np.uint64((part + int(WEYL)) & _M64))
        key = mix(key + self.ids.astype(np.uint64))
        self._drawn += 1
        unit = (key >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return low + (high - low) * unit

    def index(self, count: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to before count."""
        return (self.uniform() * count).astype(np.int64)

    def batch(self) -> np.random.Generator:
        """For numbers of the whole batch: the same for all outputs of it."""
        last = int(self.ids[-1]) if len(self.ids) else 0
        return np.random.default_rng((self.seed, self.epoch, last))
