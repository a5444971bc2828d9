# SPDX-License-Identifier: Apache-2.0
"""Orders of samples. The three of this package are the library's; a subclass of
TraversalOrder is one of a user's own."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Loader
from .._options import quoted


class TraversalOrder(ABC):
    """An order of a user's own: a subclass is given as Loader's `order`."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.indices = loader.indices
        self.seed = loader.seed
        self.distributed = loader.distributed
        self.sampler: Any = None

    @abstractmethod
    def sample_order(self, epoch: int) -> Sequence[int]:
        """The samples of this process in an epoch, in order."""
        raise NotImplementedError


class LibraryOrder(TraversalOrder):
    """An order of the library's, by its `name`."""

    name: str

    def sample_order(self, epoch: int) -> Any:
        """Without reading any value but a small one."""
        reader = self.loader.reader
        fields = sorted(reader.fields, key=lambda f: (
            bool(f.get("unusable")), f["type"] not in ("int", "float")))
        text = "; ".join(f"{quoted(f['name'])} | drop" for f in fields[1:]
                         if not f.get("unusable"))
        alone: dict[str, Any] = {} if self.distributed else {
            "rank": 0, "world_size": 1}
        with Loader(self.loader.fname, self.loader.batch_size, self.name,
                    self.seed & (2**64 - 1), text,
                    subset=getattr(self.loader, "_indices", self.indices),
                    drop_last=False, tensors="numpy", epoch=epoch,
                    workers=1, **alone) as core:
            ids = [np.asarray(batch.ids) for batch in core]
        return np.concatenate(ids) if ids else np.zeros(0, np.int64)


class Sequential(LibraryOrder):
    """As they are in the file, or in `indices`."""

    name = "sequential"


class Random(LibraryOrder):
    """A permutation of all."""

    name = "random"


class QuasiRandom(LibraryOrder):
    """A permutation that reads the file in large pieces."""

    name = "quasi_random"


__all__ = ["QuasiRandom", "Random", "Sequential", "TraversalOrder"]
