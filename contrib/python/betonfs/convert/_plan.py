# SPDX-License-Identifier: Apache-2.0
"""The fields of the new dataset: --fields=NAME[:TYPE][=SOURCE],..., as in
mkfs.beton."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._words import nearest
from .._writer import storable
from ._source import Column, Mistake, Source, Type

_NAME_MAX = 16
# Texts in fields of these names are classes, as in mkfs.beton.
_CLASS_NAMES = ("label", "class", "category")
_TYPES = ("image", "int", "float", "bytes", "json", "mask", "png", "frames",
          "class", "array", "list")
_ITEM = re.compile(r"(?P<name>[^:=]*)(?::(?P<type>[^=]*))?(?:=(?P<source>.*))?")


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@dataclass
class Field:
    name: str
    column: Column
    type: Type
    value: Callable[[Any], Any] = _same
    classes: Sequence[str] = ()

    def described(self) -> str:
        """As mkfs.beton --dry-run prints it."""
        if isinstance(self.type, tuple):
            dtype, shape = self.type
            text = f"ndarray {dtype} " + "x".join(
                "N" if n is None else str(n) for n in shape)
        else:
            text = {"image": "rgb_image"}.get(self.type, str(self.type))
        if self.classes:
            text += f", {len(self.classes)} classes"
        if self.column.name != self.name:
            text += f", from {self.column.name}"
        return text


def _asked(text: str) -> list[tuple[str, str | None, str]]:
    """The items of --fields: name, type and column."""
    found = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if not match or not match["name"]:
            raise Mistake(f"--fields: {item!r}: expected "
                          "NAME[:TYPE][=SOURCE]", 2)
        found.append((match["name"], match["type"],
                      match["source"] or match["name"]))
    return found


def _check_name(name: str) -> None:
    if not name.isascii() or len(name) > _NAME_MAX:
        raise Mistake(f"field {name!r}: a name has 1 to {_NAME_MAX} ASCII "
                      f"characters; rename it with --fields=SHORT={name}", 2)


def _array_type(source: Source, column: Column, is_list: bool) -> Type:
    """That of the value in the first sample."""
    if not len(source):
        raise Mistake(f"field {column.name!r}: without samples, arrays have no "
                      "shape", 2)
    source.prepare([column.name], None)
    a = np.asarray(source.row(0)[0])
    if not a.shape or a.dtype.kind not in "biuf":
        raise Mistake(f"field {column.name!r}: {column.kind} is no array", 2)
    return a.dtype.str, (None, *a.shape[1:]) if is_list else a.shape


def _of_classes(source: Source, name: str, column: Column) -> Field:
    """A field of the numbers of texts, in the byte order of these."""
    if column.type != "text":
        raise Mistake(f"field {name!r}: {column.kind} is no text, so it cannot "
                      "become a class", 2)
    names = sorted(source.names(column.name), key=str.encode)
    number = {name: i for i, name in enumerate(names)}
    return Field(name, column, "int", number.__getitem__, names)


def _field(source: Source, name: str, wanted: str | None,
           column: Column) -> Field:
    _check_name(name)
    if wanted is not None and wanted not in _TYPES:
        raise Mistake(f"field {name!r}: no type {wanted!r}; there are "
                      + ", ".join(_TYPES) + nearest(wanted, _TYPES), 2)
    if wanted is None and column.type is None:
        raise Mistake(f"column {column.name!r}: no field can store "
                      f"{column.kind}; choose the columns to store with "
                      "--fields", 2)
    if wanted == "class" or wanted is None and column.type == "text" and \
            name in _CLASS_NAMES:
        return _of_classes(source, name, column)
    if wanted in ("array", "list"):
        return Field(name, column, _array_type(source, column,
                                               wanted == "list"))
    kind = wanted or column.type
    classes = column.classes if kind == "int" else ()
    if not storable([c.encode("utf-8", "replace") for c in classes]):
        classes = ()
    return Field(name, column, "bytes" if kind == "text" else kind,
                 _text if kind in ("bytes", "text") else _same, classes)


def fields_of(source: Source, asked: str | None) -> list[Field]:
    """The fields that --fields asks for; None: all of the source."""
    columns = {column.name: column for column in source.columns}
    items = [(name, None, name) for name in columns] if asked is None \
        else _asked(asked)
    if not items:
        raise Mistake(f"{source.title}: it has no samples, so its fields are "
                      "unknown")
    fields: list[Field] = []
    for name, wanted, column in items:
        if column not in columns:
            raise Mistake(f"--fields: the source has no column {column!r}; it "
                          "has " + ", ".join(columns)
                          + nearest(column, columns), 2)
        if any(name == other.name for other in fields):
            raise Mistake(f"--fields: {name!r} is named twice", 2)
        fields.append(_field(source, name, wanted, columns[column]))
    return fields


class Samples:
    """Samples for betonfs.write(): tuples in the order of the fields."""

    def __init__(self, source: Source, fields: Sequence[Field], n: int,
                 keep: int | None) -> None:
        source.prepare([field.column.name for field in fields], keep)
        self._source, self._fields, self._n = source, fields, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        if not 0 <= number < self._n:
            raise IndexError(number)
        return tuple(field.value(value) for field, value in
                     zip(self._fields, self._source.row(number)))
