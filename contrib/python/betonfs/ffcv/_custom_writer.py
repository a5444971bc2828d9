# SPDX-License-Identifier: Apache-2.0
"""Writes datasets with fields of users' own classes, which the library does not
know: their encode() stores values and fills in the metadata."""
from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from .fields.base import ARG_TYPE, BuiltInField, Field
from .types import (ALLOC_TABLE_TYPE, CURRENT_VERSION, CUSTOM, FieldDescType,
                    HeaderType, get_metadata_type)
from .utils import align_to_page


class _PageFull(MemoryError):
    """A sample does not fit what is left of a page; encode() passes it on."""


class CustomWriter:
    """A writer of `samples` samples, as the library's: append() each, in their
    order, then finish(), or abort(). A sample lies in one page. `classes` has
    names of classes, as UTF-8, by IntField."""

    def __init__(self, path: str, fields: Mapping[str, Field], samples: int,
                 page_size: int,
                 classes: Mapping[str, Sequence[bytes]] = {}) -> None:
        self._path = path
        self._fields = fields
        self._page_size = page_size
        self._metadata = np.zeros(samples, get_metadata_type(
            list(fields.values())))
        self._written = 0
        self._classes = classes
        self._table: list[tuple[int, int, int]] = []
        self._page = bytearray()
        self._begin = align_to_page(
            HeaderType.itemsize + len(fields) * FieldDescType.itemsize
            + self._metadata.nbytes, page_size)
        self._name = f"{path}.{os.getpid()}.tmp"
        self._file = open(self._name, "wb")
        self._file.seek(self._begin)

    # --- samples ---

    def append(self, values: tuple[Any, ...]) -> None:
        """Values are what BuiltInField.stored() gives, and those of users'
        fields as they are."""
        for fresh in False, True:
            if fresh:
                self._end_page()
            kept, entries = len(self._page), len(self._table)
            try:
                self._store(values)
                break
            except _PageFull:
                del self._page[kept:], self._table[entries:]
                if not kept:
                    raise ValueError(
                        f"sample {self._written}: it is larger than a page: "
                        f"page_size={self._page_size}; a larger one holds "
                        "it") from None
        self._written += 1

    def _store(self, values: tuple[Any, ...]) -> None:
        record = self._metadata[self._written:self._written + 1]
        for k, (name, field) in enumerate(self._fields.items()):
            try:
                _encode(field, record[f"f{k}"], values[k], self._malloc)
            except (ValueError, TypeError, KeyError) as e:
                raise ValueError(f"sample {self._written} field {name}: "
                                 f"{e}") from e

    def _malloc(self, size: Any) -> tuple[int, Any]:
        """Where some bytes are in the file, and their memory."""
        size = int(size)
        # A value is found by its place alone, so nothing shares one.
        if len(self._page) + max(size, 1) > self._page_size:
            raise _PageFull(f"{size} bytes")
        pointer, memory = self._take(max(size, 1))
        self._table.append((self._written, pointer, size))
        return pointer, memory[:size]

    def _take(self, size: int) -> tuple[int, Any]:
        at = len(self._page)
        if not at:
            # Memory that is handed out must not move.
            self._memory = np.zeros(self._page_size, np.uint8)
        self._page.extend(bytes(size))
        return self._begin + at, self._memory[at:at + size]

    def _end_page(self) -> None:
        if self._page:
            self._memory[len(self._page):] = 0
            self._file.write(self._memory.tobytes())
            self._begin += self._page_size
            self._page.clear()

    # --- the file ---

    def finish(self) -> None:
        """The dataset appears under its name."""
        names = {name: self._store_names(classes)
                 for name, classes in self._classes.items()}
        self._end_page()
        end = self._file.tell()
        table = np.array(self._table, ALLOC_TABLE_TYPE)
        self._file.write(table.tobytes())
        self._file.seek(0)
        header = (CURRENT_VERSION, len(self._fields), self._page_size,
                  self._written, end)
        self._file.write(np.array(header, HeaderType).tobytes())
        self._file.write(self._descriptors(names).tobytes())
        self._file.write(self._metadata[:self._written].tobytes())
        self._file.close()
        os.replace(self._name, self._path)

    def _store_names(self, names: Sequence[bytes]) -> bytes:
        """Behind the last value; returns the arguments of their field,
        beton(5)."""
        text = b"".join(name + b"\0" for name in names)
        if len(self._page) + len(text) > self._page_size:
            self._end_page()
        pointer, memory = self._take(len(text))
        memory[:] = np.frombuffer(text, np.uint8)
        return struct.pack("<8sQQQ", b"betoncls", pointer, len(text),
                           len(names))

    def _descriptors(self, names: Mapping[str, bytes]) -> Any:
        out = np.zeros(len(self._fields), FieldDescType)
        for descriptor, (name, field) in zip(out, self._fields.items()):
            raw = name.encode("ascii")
            if not 0 < len(raw) <= 16:
                raise ValueError(f"field {name!r}: a name has 1 to 16 bytes "
                                 "of ASCII")
            descriptor["type_id"] = getattr(field, "number", CUSTOM)
            descriptor["name"][:len(raw)] = np.frombuffer(raw, np.uint8)
            arguments = np.array(field.to_binary(), ARG_TYPE)
            descriptor["arguments"] = arguments.reshape(1).view(np.uint8)
            own = np.frombuffer(names.get(name, b""), np.uint8)
            descriptor["arguments"][:len(own)] = own
        return out

    def abort(self) -> None:
        """Leave no file."""
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name)


def _encode(field: Field, record: Any, value: Any, malloc: Any) -> None:
    if not isinstance(field, BuiltInField):
        field.encode(record, value, malloc)
        return
    if field.kind in ("int", "float"):
        record[0] = value
        return
    mode: tuple[int, ...] = ()
    if field.kind == "rgb_image":
        value, *mode = value
    data = np.frombuffer(cast(Any, value), np.uint8)
    if field.kind == "json":
        data = np.append(data, np.uint8(0))
    pointer, memory = malloc(data.size)
    memory[:] = data
    if field.kind in ("bytes", "json"):
        record[0] = pointer, data.size
    else:
        record[0] = (*mode, pointer) if mode else pointer
