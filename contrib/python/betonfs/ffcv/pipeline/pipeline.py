# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .allocation_query import Allocation, allocate_query
from .operation import Operation
from .state import State


class Pipeline:
    """The operations of one field: their code, and what they ask for."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.original_state = State(True, torch.device("cpu"), None,
                                    np.dtype("u1"))
        self.operations = operations
        self.operation_blocks, _ = self.parse_pipeline()
        self.compiled_ops = self.compile_ops()

    def parse_pipeline(self, batch_size: int = 16) \
            -> tuple[list[tuple[bool, list[int]]],
                     dict[int, Allocation | None]]:
        """Numbers of operations that follow each other and are all compiled, or
        all not; and the memory that each one asks for."""
        blocks: list[tuple[bool, list[int]]] = []
        queries: dict[int, Allocation | None] = {}
        state = self.original_state
        for k, op in enumerate(self.operations):
            state, queries[k] = op.declare_state_and_memory(state)
            if not blocks or blocks[-1][0] != state.jit_mode:
                blocks.append((state.jit_mode, []))
            blocks[-1][1].append(k)
        return blocks, queries

    def compile_ops(self) -> dict[int, Callable[..., Any]]:
        return {k: op.generate_code() for k, op in enumerate(self.operations)}

    def allocate_memory(self, batch_size: int,
                        batches_ahead: int) -> dict[int, Any]:
        """Memory for several batches, by the operation's number."""
        _, queries = self.parse_pipeline(batch_size)
        return {k: _allocate(query, batch_size, batches_ahead)
                for k, query in queries.items()}


def _allocate(query: Any, batch_size: int, batches_ahead: int) -> Any:
    if query is None:
        return None
    if isinstance(query, Sequence):
        return tuple(_allocate(q, batch_size, batches_ahead) for q in query)
    return allocate_query(query, batch_size, batches_ahead)
