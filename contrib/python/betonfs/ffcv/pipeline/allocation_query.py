# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import torch


@dataclass(frozen=True)
class AllocationQuery:
    """Memory for every sample of a batch, of this shape: a tensor if the dtype
    is torch's, else an array."""

    shape: Any
    dtype: Any
    device: Any = None


Allocation = Union[AllocationQuery, Sequence[AllocationQuery]]


def allocate(query: Allocation | None, rows: int) -> Any:
    """For one batch; it is the batch's, so that nothing is overwritten."""
    if query is None:
        return None
    if not isinstance(query, AllocationQuery):
        return tuple(allocate(q, rows) for q in query)
    shape = (rows, *map(int, query.shape))
    if isinstance(query.dtype, torch.dtype):
        return torch.empty(shape, dtype=query.dtype, device=query.device)
    return np.empty(shape, query.dtype)


def allocate_query(memory_allocation: AllocationQuery, batch_size: int,
                   batches_ahead: int) -> Any:
    """Memory for several batches, (batches_ahead, batch_size, ...)."""
    return [allocate(memory_allocation, batch_size)
            for _ in range(batches_ahead)]
