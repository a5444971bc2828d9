# SPDX-License-Identifier: Apache-2.0
"""Parts of a dataset as a sink of Ray Data. Only this module and _source import
ray.data."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ray.data import Dataset, Datasink
from ray.data.block import BlockAccessor

from .._writer import write as write_file
from ._shards import part


def _rows(blocks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        for row in BlockAccessor.for_block(block).iter_rows(
                public_row_format=True):
            yield dict(row)


class _Parts(Datasink):     # type: ignore[misc, unused-ignore]
    """Writes the rows of each task as one part, in the order of tasks."""

    def __init__(self, parts: str, arguments: dict[str, Any]) -> None:
        self._parts = parts
        self._arguments = arguments
        self.made: list[tuple[int, str]] = []

    def get_name(self) -> str:
        return "Beton"

    def write(self, blocks: Iterable[Any],
              ctx: Any) -> tuple[int, str] | None:
        own = list(blocks)
        n = sum(BlockAccessor.for_block(block).num_rows() for block in own)
        if not n:               # without a row there are no types
            return None
        to = part(self._parts, ctx.task_idx)
        # A task that runs again replaces the part.
        write_file(to, _rows(own), length=n, overwrite=True, **self._arguments)
        return ctx.task_idx, to

    def on_write_complete(self, result: Any) -> None:
        self.made = sorted(one for one in result.write_returns if one)


def write(rows: Dataset, parts: str, arguments: dict[str, Any],
          remote: dict[str, Any]) -> list[str]:
    """Write the rows in order, and return the paths of the parts."""
    sink = _Parts(parts, arguments)
    options = rows.context.execution_options
    usual, options.preserve_order = options.preserve_order, True
    try:
        rows.write_datasink(sink, ray_remote_args=remote)
    finally:
        options.preserve_order = usual
    if not sink.made:
        raise ValueError("the ray.data.Dataset has no row, and the rows "
                         "determine the fields")
    return [path for _, path in sink.made]
