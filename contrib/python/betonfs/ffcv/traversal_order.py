# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class TraversalOrder(ABC):
    """An order of a user's own: a subclass is given as Loader's `order`."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.indices = loader.indices
        self.seed = loader.seed
        self.distributed = loader.distributed
        self.sampler = None

    @abstractmethod
    def sample_order(self, epoch: int) -> Sequence[int]:
        """Of this process, in this epoch."""
        raise NotImplementedError
