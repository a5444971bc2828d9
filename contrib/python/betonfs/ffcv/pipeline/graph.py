# SPDX-License-Identifier: Apache-2.0
"""Pipelines as FFCV runs them, batch by batch in Python, for subclasses of
Loader and EpochIterator. A Loader itself has the library do most of it."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._stages import Batch, Decoding, Stages
from .operation import Operation
from .pipeline_spec import PipelineSpec

Stage = Callable[..., tuple[Any, ...]]


def as_operation(op: Any) -> Operation:
    """A module or a function is called with tensors."""
    if isinstance(op, Operation):
        return op
    if callable(op):
        from ..transforms import ModuleWrapper
        return ModuleWrapper(op)
    raise ValueError(f"{op!r} is no operation, module or function")


def copy_of(value: Any) -> Any:
    """For operations that work in place."""
    return value.clone() if hasattr(value, "clone") else value.copy()


class Node:
    """One operation of one pipeline; `parent` is the one before it, and None
    for a decoder. `users` is how many take what it gives."""

    def __init__(self, number: int, op: Operation, parent: Node | None,
                 field: str) -> None:
        self.id = number
        self.op = op
        self.parent = parent
        self.field = field
        self.users = 0
        self.run: Any = None
        if parent is not None:
            parent.users += 1


class Graph:
    """All operations of a loader, each after those whose result it takes.

    `fieldname_to_fix` is the number of each field or output in the metadata.
    """

    seed = 0
    epoch = 0

    def __init__(self, pipeline_specs: Mapping[str, PipelineSpec],
                 handlers: Mapping[str, Any],
                 fieldname_to_fix: Mapping[str, int], metadata: Any,
                 memory_read: Callable[..., Any]) -> None:
        self.pipeline_specs = pipeline_specs
        self.handlers = handlers
        self.fieldname_to_fix = fieldname_to_fix
        self.metadata = metadata
        self.memory_read = memory_read
        self.nodes: list[Node] = []
        self.leaf_nodes: dict[str, Node] = {}
        self._batch: tuple[Any, Batch] | None = None
        self._number = 0
        self._build()

    def _build(self) -> None:
        later: dict[str, PipelineSpec] = {}
        for name, spec in self.pipeline_specs.items():
            if not isinstance(spec.source, str):
                later[name] = spec
                continue
            spec.accept_decoder(
                self.handlers[spec.source].get_decoder_class(), name)
            assert spec.decoder is not None
            first = self._add(spec.decoder, None, spec.source)
            self._chain(name, spec, first)
        while later:
            name = next((n for n, s in later.items()
                         if self._found(s.source)), "")
            if not name:
                raise ValueError(f"{list(later.values())[0].source!r} is an "
                                 "operation of no other pipeline")
            spec = later.pop(name)
            found = self._found(spec.source)
            if len(found) > 1:
                raise ValueError(f"{spec.source!r} is an operation of several "
                                 "pipelines, not of one")
            self._chain(name, spec, found[0])

    def _found(self, op: Any) -> list[Node]:
        return [node for node in self.nodes if node.op is op]

    def _add(self, op: Any, parent: Node | None, field: str) -> Node:
        self.nodes.append(Node(len(self.nodes), as_operation(op), parent,
                               field))
        return self.nodes[-1]

    def _chain(self, name: str, spec: PipelineSpec, node: Node) -> None:
        for op in spec.transforms:
            node = self._add(op, node, node.field)
        node.users += 1
        self.leaf_nodes[name] = node

    # --- code ---

    def collect_requirements(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The memory that operations ask for, and their code, both by `operation` and
        `shared` and the number of the node. Memory is made for each batch."""
        for node in self.nodes:
            k = self.fieldname_to_fix[node.field]
            node.op.accept_field(self.handlers[node.field])
            node.op.accept_globals(self.metadata[f"f{k}"], self.memory_read)
        code = {node.id: self._runner(node) for node in self.nodes}
        return ({"operation": {}, "shared": {}},
                {"operation": code, "shared": {}})

    def _runner(self, node: Node) -> Stage:
        if node.parent is None:
            return self._decoding(node)
        stages, parent = Stages([node.op], node.id), node.parent

        def run(**known: Any) -> tuple[Any, ...]:
            value = known[f"result_{parent.id}"]
            if parent.users > 1:
                value = copy_of(value)
            return stages.run(value, self._batch_of(known)),
        return run

    def _decoding(self, node: Node) -> Stage:
        k = self.fieldname_to_fix[node.field]
        decoding = Decoding(node.op, None, None)

        def run(**known: Any) -> tuple[Any, ...]:
            decoding.records = np.asarray(known["metadata"][f"f{k}"])
            decoding.storage = known["storage_state"]
            return decoding.run(None, self._batch_of(known), node.id),
        return run

    def _batch_of(self, known: Mapping[str, Any]) -> Batch:
        """One for all operations on a batch, for they share memory."""
        given = known["batch_indices"]
        if self._batch is None or self._batch[0] is not given:
            ids = np.asarray(given).astype(np.int64)
            self._batch = given, Batch(self.seed, self.epoch, self._number, ids,
                                       set())
            self._number += 1
        return self._batch[1]

    def begin(self, seed: int, epoch: int) -> None:
        """An epoch, whose random numbers are functions of both."""
        self.seed, self.epoch = seed & (2**64 - 1), epoch
        self._number, self._batch = 0, None

    def codegen_all(self, code: Mapping[str, Any]) \
            -> tuple[list[tuple[Stage, list[int]]], list[int]]:
        """The stages in their order, each with the numbers of what it gives,
        and the numbers of the outputs. A stage takes `batch_indices`,
        `metadata`, `storage_state` and, by `result_N`, what others gave."""
        stages = [(code["operation"][node.id], [node.id])
                  for node in self.nodes]
        return stages, [node.id for node in self.leaf_nodes.values()]

    def allocate_memory(self, batch_size: int, batches_ahead: int) \
            -> dict[str, dict[int, Any]]:
        """None: each batch has memory of its own, and nothing is written
        over."""
        return {"operation": {}, "shared": {}}
