# SPDX-License-Identifier: Apache-2.0
"""Parquet files, by pyarrow."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any


from . import _arrow
from ._block import Packed
from ._source import (LOOK_AT, BLOCK_BYTES, Column, Form, Mistake, Options,
                      Source, library, shortened)

# Bytes that pyarrow reads of a column at a time.
_READ = 1 << 20


def _features(schema: Any) -> dict[str, Any]:
    """The description of the columns that Hugging Face has left."""
    try:
        found = json.loads((schema.metadata or {})[b"huggingface"])
        features = found["info"]["features"]
        return features if isinstance(features, dict) else {}
    except (KeyError, ValueError, TypeError):
        return {}


def _classes(feature: Any) -> tuple[str, ...]:
    names = feature.get("names") if isinstance(feature, dict) else None
    if isinstance(names, list) and all(isinstance(n, str) for n in names):
        return tuple(names)
    return ()


def _columns(head: Any) -> list[Column]:
    """The columns of a table whose first rows `head` has."""
    features = _features(head.schema)
    found = []
    for name in head.schema.names:
        a = _arrow.column_array(head, name)
        if _arrow.is_picture(a.type):
            known = True if features.get(name, {}).get("_type") == "Image" \
                else None
            found.append(_arrow.picture_of(name, (name,), a, known, None))
        elif _arrow.arrow().types.is_struct(a.type):
            for child in a.type:
                below = _arrow.column_of(f"{name}.{child.name}",
                                         (name, child.name),
                                         a.field(child.name))
                if below.type == "json" and not below.refused and \
                        _arrow.arrow().types.is_struct(child.type):
                    below = replace(below, type="bytes", types=("json",),
                                    refused=f"nested values: {_arrow.REMEDY}")
                found.append(below)
        else:
            column = _arrow.column_of(name, (name,), a)
            found.append(replace(column,
                                 classes=_classes(features.get(name))))
    return found


def _forms(schema: Any) -> dict[str, Form]:
    features = _features(schema)
    return {name: Form(str(_arrow.meaning(schema.field(name).type)),
                       _classes(features.get(name))) for name in schema.names}


class Parquet(Source):
    title = "Parquet files"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self._pq = library("pyarrow.parquet", "pyarrow", "a Parquet file")
        self._files = [self._opened(path) for path in paths]
        self.parts, n = [], 0
        for path, file in zip(paths, self._files):
            self.parts.append((path, n))
            n += file.metadata.num_rows
        self._n = n
        self.columns = _columns(self._head())
        self.forms = [_forms(file.schema_arrow) for file in self._files]
        groups = [f.metadata.row_group(i) for f in self._files
                  for i in range(f.metadata.num_row_groups)]
        self.sample_bytes = sum(g.total_byte_size for g in groups) // max(n, 1)
        # The batches that are being read.
        self._wanted: tuple[str, ...] = ()
        self._batches: Iterator[tuple[int, Any]] = iter(())
        self._next = 0          # the row after the last batch
        self._batch: Any = None
        self._first = 0

    def __len__(self) -> int:
        return self._n

    def _opened(self, path: str) -> Any:
        try:
            return self._pq.ParquetFile(path, buffer_size=_READ,
                                        pre_buffer=False)
        except (OSError, ValueError) as e:
            raise Mistake(f"{path}: {shortened(str(e))}") from None

    def _head(self) -> Any:
        """The first rows, of the first file that has some."""
        file = next((f for f in self._files if f.metadata.num_rows),
                    self._files[0])
        batch = next(file.iter_batches(LOOK_AT), None)
        pa = _arrow.arrow()
        if batch is None:
            return file.schema_arrow.empty_table()
        return pa.Table.from_batches([batch]).replace_schema_metadata(
            file.schema_arrow.metadata)

    def cast(self, column: Column, kind: str) -> Column:
        if kind == "json":
            return replace(column, type="json", refused="", types=(),
                           convert=_arrow._as_json,
                           key=replace(column.key, pack=_arrow.pack_objects))
        return _arrow.cast(column, kind)

    # --- rows ---

    def _open_batches(self, row: int) -> Iterator[tuple[int, Any]]:
        """The batches from that which has a row on, with their first rows."""
        rows = max(1, min(65536, BLOCK_BYTES // max(1, self.sample_bytes)))
        for (_, first), file in zip(self.parts, self._files):
            at = first
            for i in range(file.metadata.num_row_groups):
                n = file.metadata.row_group(i).num_rows
                if at + n > row:
                    for batch in file.iter_batches(
                            rows, row_groups=[i], columns=list(self._wanted),
                            use_threads=False):
                        yield at, batch
                        at += len(batch)
                else:
                    at += n

    def _rows(self, begin: int, end: int) -> list[Any]:
        """Slices of batches with these rows."""
        found = []
        if begin < self._first:
            self._batches, self._batch = self._open_batches(begin), None
        while begin < end:
            if self._batch is None or begin >= self._first + len(self._batch):
                self._first, self._batch = next(self._batches)
                continue
            n = min(end, self._first + len(self._batch)) - begin
            found.append(self._batch.slice(begin - self._first, n))
            begin += n
        return found

    def read(self, columns: Sequence[Column],
             rows: Sequence[int]) -> tuple[list[Packed], dict[int, str]]:
        wanted = tuple(dict.fromkeys(c.key.path[0] for c in columns))
        if wanted != self._wanted or self._batch is None:
            self._wanted = wanted
            self._batches, self._batch = self._open_batches(rows[0]), None
            self._first = 0
        parts: list[Any] = []
        at = 0
        while at < len(rows):
            n = 1
            while at + n < len(rows) and rows[at + n] == rows[at] + n:
                n += 1
            parts += self._rows(rows[at], rows[at] + n)
            at += n
        return _arrow.read(columns, parts)
