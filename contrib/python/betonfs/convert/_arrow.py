# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow: the fields that they become, and their values without a copy
for each one."""
from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _png, _ragged
from ._block import Bytes, Ints, Packed, Reals, joined
from ._source import (Column, Refused, as_bytes, dumped, image_or_bytes,
                      library, mask_of, packed, read_file)

REMEDY = "leave the column out with --fields"
_NDIM_MAX = 8


def arrow() -> Any:
    return library("pyarrow", "pyarrow", "a table of Arrow")


@dataclass(frozen=True)
class Key:
    """Where the values of a column are, and in which form."""
    # Names from the table's column down to the child of a struct.
    path: tuple[str, ...]
    # The values of an array, and its reasons for rows without one.
    pack: Callable[[Column, Any, dict[int, str]], Packed]


# --- forms ---

def _nulls(column: Column, a: Any, errors: dict[int, str]) -> None:
    if a.null_count:
        for i in np.flatnonzero(a.is_null().to_numpy(zero_copy_only=False)):
            errors.setdefault(int(i), f"column '{column.name}': a null")


def _numbers(a: Any, dtype: str) -> NDArray[Any]:
    """The numbers of an array without nulls."""
    own = a.fill_null(0) if a.null_count else a
    return np.asarray(own.to_numpy(zero_copy_only=False)).astype(dtype)


def _pack_ints(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    pa = arrow()
    _nulls(column, a, errors)
    kind = a.type
    if pa.types.is_boolean(kind):
        a = a.cast(pa.uint8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        a = a.view(pa.int32())
    elif pa.types.is_temporal(kind):
        a = a.view(pa.int64())
    if a.type == pa.uint64():
        large = _numbers(a, "u8")
        for i in np.flatnonzero(large > np.uint64(2**63 - 1)):
            errors.setdefault(int(i), f"column '{column.name}': {large[i]} is "
                              "too large for an integer field")
        return Ints(large.astype("i8"))
    return Ints(_numbers(a, "i8"))


def _pack_reals(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    _nulls(column, a, errors)
    return Reals(_numbers(a, "f8"))


def _pack_bytes(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    """The offsets and bytes of Arrow, as they are."""
    pa = arrow()
    _nulls(column, a, errors)
    if pa.types.is_fixed_size_binary(a.type):
        width = a.type.byte_width
        ends = np.arange(len(a) + 1, dtype=np.uint64) * np.uint64(width)
        data = memoryview(a.buffers()[1])
        return Bytes(ends, [data[width * a.offset:
                                 width * (a.offset + len(a))]])
    a = a.cast(pa.large_binary())
    _, index, data = a.buffers()
    ends = np.frombuffer(index, "<i8", len(a) + 1, 8 * a.offset)
    own = memoryview(data)[int(ends[0]):int(ends[-1])] if data else b""
    return Bytes((ends - ends[0]).astype(np.uint64), [own])


def pack_objects(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    return packed(column, a.to_pylist(), errors)


# --- lists ---

def _is_list(kind: Any) -> bool:
    t = arrow().types
    return bool(t.is_list(kind) or t.is_large_list(kind)
                or t.is_fixed_size_list(kind) or t.is_list_view(kind)
                or t.is_large_list_view(kind))


def _storage(a: Any) -> Any:
    """The array below extension types and dictionaries."""
    pa = arrow()
    while True:
        if isinstance(a.type, pa.BaseExtensionType):
            a = a.storage
        elif pa.types.is_dictionary(a.type):
            a = a.dictionary_decode()
        else:
            return a


def item_dtype(kind: Any) -> str | None:
    """The type of NumPy of the numbers in lists; None: no numbers."""
    pa = arrow()
    while _is_list(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "|b1"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return str(np.dtype(kind.to_pandas_dtype()).newbyteorder("<").str)
    return None


def _ndim(kind: Any) -> int:
    n = 0
    while _is_list(kind):
        kind, n = kind.value_type, n + 1
    return n


@dataclass
class _Lists:
    """Lists of numbers of some rows."""
    sizes: list[NDArray[Any]]   # by level: the items of each list
    numbers: NDArray[Any]       # of all rows
    nulls: set[int]             # rows with a null in a list


def _lists(a: Any, dtype: str) -> _Lists:
    pa = arrow()
    sizes: list[NDArray[Any]] = []
    nulls: set[int] = set()
    rows = np.arange(len(a))        # that each list of a level belongs to
    while _is_list(a.type):
        if pa.types.is_fixed_size_list(a.type):
            n = np.full(len(a), a.type.list_size, np.int64)
        else:
            n = _numbers(a.value_lengths(), "i8")
        if a.null_count:
            missing = a.is_null().to_numpy(zero_copy_only=False)
            nulls.update(rows[missing].tolist())
            n = np.where(missing, 0, n)
        sizes.append(n)
        rows = np.repeat(rows, n)
        a = _storage(a.flatten())
    if a.null_count:
        nulls.update(rows[a.is_null().to_numpy(zero_copy_only=False)].tolist())
    numbers = _numbers(a, dtype)
    return _Lists(sizes, numbers, nulls)


def _shapes(found: _Lists) -> tuple[list[tuple[int, ...] | None],
                                    NDArray[Any]]:
    """The shape of each row, None if its lists differ in length, and where the
    numbers of each row begin."""
    levels = found.sizes
    shapes: list[tuple[int, ...] | None] = [(int(n),) for n in levels[0]]
    starts = np.concatenate([[0], np.cumsum(levels[0])])
    for own in levels[1:]:
        ends = np.concatenate([[0], np.cumsum(own)])
        for i, shape in enumerate(shapes):
            part = own[starts[i]:starts[i + 1]]
            if shape is not None:
                same = part.size and (part == part[0]).all()
                # Without lists, the rest of the shape is not known.
                shapes[i] = (*shape, int(part[0])) if same else \
                    None if part.size else (*shape, 0)
        starts = ends[starts]
    return shapes, starts


def _pack_array(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    found = _lists(a, column.dtype)
    item = np.dtype(column.dtype).itemsize
    if len(found.sizes) == 1:       # no loop over rows
        wrong = found.sizes[0] != column.shape[0]
        starts = np.concatenate([[0], np.cumsum(found.sizes[0])])
    else:
        shapes, starts = _shapes(found)
        wrong = np.array([shape != column.shape for shape in shapes], bool)
    _nulls(column, a, errors)
    for i in found.nulls:
        errors.setdefault(i, f"column '{column.name}': a null in a list")
    for i in map(int, np.flatnonzero(wrong)):
        errors.setdefault(i, (
            f"column '{column.name}': a list of another length than that of "
            f"the first row; --fields={column.name}:list stores lists of any "
            "length"))
    data = np.ascontiguousarray(found.numbers)
    return Bytes((starts * item).astype(np.uint64),
                 [data.view("u1").data] if data.size else [])


def _pack_ragged(column: Column, a: Any, errors: dict[int, str]) -> Packed:
    found = _lists(a, column.dtype)
    shapes, starts = _shapes(found)
    tail = column.shape[1:]
    _nulls(column, a, errors)
    rows = []
    for i, shape in enumerate(shapes):
        own = b""
        if i in found.nulls:
            errors.setdefault(i, f"column '{column.name}': a null in a list")
        elif shape is None or shape[0] and shape[1:] != tail:
            errors.setdefault(i, f"column '{column.name}': lists of several "
                              "lengths in one row")
        else:
            part = found.numbers[starts[i]:starts[i + 1]]
            own = _ragged.packed(part.reshape(-1, *tail) if tail else part)
        rows.append(own)
    return Bytes.of(rows)


def _of_list(name: str, key: Key, head: Any) -> Column:
    """The column of lists of numbers, whose first rows `head` has."""
    dtype = item_dtype(head.type)
    assert dtype is not None
    if _ndim(head.type) > _NDIM_MAX:
        return Column(name, refused=f"more than 8 dimensions: {REMEDY}",
                      key=key)
    shapes = {shape for i, shape in enumerate(_shapes(_lists(head, dtype))[0])
              if head[i].is_valid}
    whole = {shape for shape in shapes if shape is not None and all(shape)}
    ragged = replace(key, pack=_pack_ragged)
    if len(shapes) == 1 and len(whole) == 1:
        shape, = whole
        return Column(name, "array", dtype, shape, key=key,
                      types=("list",) if dtype in _ragged.DTYPES else ())
    tails = {shape[1:] for shape in whole}
    if dtype not in _ragged.DTYPES or len(tails) > 1 or None in shapes:
        return Column(name, refused=f"lists of several lengths: {REMEDY}",
                      key=key)
    tail = tails.pop() if tails else (1,) * (_ndim(head.type) - 1)
    return Column(name, "bytes", dtype, (0, *tail), key=ragged)


# --- columns ---

def jsonable(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        raise Refused("bytes are no JSON")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    return value


def _as_json(value: Any) -> bytes:
    return dumped(jsonable(value))


def _is_json(kind: Any) -> bool:
    """Whether JSON can hold the values of a type."""
    pa = arrow()
    if _is_list(kind):
        return _is_json(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_json(f.type) for f in kind)
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind)
                or t.is_string(kind) or t.is_large_string(kind)
                or t.is_null(kind))


def _is_text(kind: Any) -> bool:
    t = arrow().types
    return bool(t.is_string(kind) or t.is_large_string(kind)
                or t.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    t = arrow().types
    return bool(t.is_binary(kind) or t.is_large_binary(kind)
                or t.is_binary_view(kind) or t.is_fixed_size_binary(kind))


def is_picture(kind: Any) -> bool:
    """Whether a struct is {bytes, path}, as Hugging Face has images."""
    pa = arrow()
    return bool(pa.types.is_struct(kind)) and \
        {f.name for f in kind} == {"bytes", "path"} and all(
            _is_bytes(f.type) if f.name == "bytes" else
            _is_text(f.type) or pa.types.is_null(f.type) for f in kind)


def array_of(name: str, path: tuple[str, ...], dtype: str,
             shape: tuple[int, ...]) -> Column:
    """The column of arrays of one shape."""
    return Column(name, "array", dtype, shape, key=Key(path, _pack_array),
                  types=("list",) if dtype in _ragged.DTYPES else ())


def ragged_of(name: str, path: tuple[str, ...], dtype: str,
              row: tuple[int, ...]) -> Column:
    """The column of arrays of any number of rows of one shape."""
    if dtype not in _ragged.DTYPES:
        return Column(name, refused=f"lists of {np.dtype(dtype)}: {REMEDY}",
                      key=Key(path, pack_objects))
    return Column(name, "bytes", dtype, (0, *row), key=Key(path, _pack_ragged))


def json_of(name: str, path: tuple[str, ...], kind: Any) -> Column:
    """The column of values of a type that JSON has."""
    if _is_json(kind):
        return Column(name, "json", key=Key(path, pack_objects),
                      convert=_as_json)
    return Column(name, refused=f"values of {kind}, which JSON cannot hold: "
                  f"{REMEDY}", key=Key(path, pack_objects))


def column_array(table: Any, name: str) -> Any:
    """A column of a table as one array."""
    chunks = table.column(name).chunks
    if not chunks:
        return arrow().array([], table.column(name).type)
    return chunks[0] if len(chunks) == 1 else arrow().concat_arrays(chunks)


def column_of(name: str, path: tuple[str, ...], head: Any) -> Column:
    """The column of values whose first ones are in the array `head`."""
    pa = arrow()
    t = pa.types
    is_json_type = isinstance(head.type, pa.BaseExtensionType) and \
        head.type.extension_name == "arrow.json"
    head = _storage(head)
    kind = head.type

    def key(pack: Any) -> Key:
        return Key(path, pack)
    if is_json_type:
        return Column(name, "json", key=key(_pack_bytes))
    if t.is_integer(kind) or t.is_boolean(kind) or t.is_date(kind) or \
            t.is_time(kind) or t.is_timestamp(kind):
        return Column(name, "int", key=key(_pack_ints))
    if t.is_floating(kind):
        return Column(name, "float", key=key(_pack_reals))
    if _is_text(kind):
        return Column(name, "text", key=key(_pack_bytes))
    if _is_bytes(kind):
        return image_or_bytes(name, head.drop_null().to_pylist(),
                              key=key(_pack_bytes))
    if _is_list(kind) and item_dtype(kind):
        return _of_list(name, key(_pack_array), head)
    if t.is_map(kind):
        why = "maps"
    elif t.is_decimal(kind):
        why = "decimal numbers"
    elif t.is_null(kind):
        why = "a column of nulls"
    elif _is_json(kind):
        return Column(name, "json", key=key(pack_objects), convert=_as_json)
    elif _is_list(kind):
        why = "lists of other values than numbers"
    else:
        why = f"values of {kind}"
    return Column(name, refused=f"{why}: {REMEDY}", key=key(pack_objects))


def picture_of(name: str, path: tuple[str, ...], head: Any,
               is_image: bool | None, below: str | None) -> Column:
    """The column of a struct {bytes, path}. is_image None: by the first values.
    Files are read from their path if `below` is not None, relative to it."""
    def pack(column: Column, a: Any, errors: dict[int, str]) -> Packed:
        _nulls(column, a, errors)
        data = a.field("bytes")
        if data.null_count and below is not None:
            return packed(replace(column, type="bytes",
                                  convert=lambda v: _file(v, below)),
                          a.to_pylist(), errors)
        return _pack_bytes(column, data, errors)
    key = Key(path, pack)
    if is_image is None:
        return image_or_bytes(name, head.field("bytes").drop_null().to_pylist(),
                              key=key)
    return Column(name, "image", types=("mask", "png"), key=key)


def _file(value: Any, below: str) -> bytes:
    """The bytes of an image, or those of its file."""
    if value["bytes"] is not None:
        return bytes(value["bytes"])
    if not value["path"]:
        raise Refused("a null")
    return read_file(os.path.join(below, value["path"]))


def frames_of(name: str, path: tuple[str, ...],
              encode: Callable[[Any], bytes], below: str) -> Column:
    """The column of lists of {bytes, path}: a sample has several images."""
    def frames(value: Any) -> bytes:
        return _png.joined([encode(_file(one, below)) for one in value])
    return Column(name, "bytes", key=Key(path, pack_objects), convert=frames)


def cast(column: Column, kind: str) -> Column:
    """See Source.cast()."""
    if kind in ("image", "bytes"):
        return replace(column, type=kind, refused="", types=())
    if kind == "list":
        return replace(column, type="bytes", types=(),
                       shape=(0, *column.shape[1:]),
                       key=replace(column.key, pack=_pack_ragged))
    if kind in ("mask", "png"):
        own = column.key.pack

        def pack(c: Column, a: Any, errors: dict[int, str]) -> Packed:
            files = own(c, a, errors)
            return packed(as_bytes(c, mask_of), _rows(files), errors)
        return replace(column, type="bytes", types=(),
                       key=replace(column.key, pack=pack))
    raise AssertionError(kind)


def _rows(files: Packed) -> list[bytes]:
    assert isinstance(files, Bytes)
    data = b"".join(bytes(b) for b in files.buffers)
    return [data[int(a):int(b)]
            for a, b in zip(files.offsets[:-1], files.offsets[1:])]


def meaning(kind: Any) -> Any:
    """The kind of values of a type, whatever their width. It is equal for
    columns that may follow each other."""
    pa = arrow()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "integer" if pa.types.is_integer(kind) else "float"
    if _is_text(kind) or _is_bytes(kind):
        return "text" if _is_text(kind) else "bytes"
    if pa.types.is_dictionary(kind):
        return meaning(kind.value_type)
    if pa.types.is_struct(kind):
        return tuple((f.name, meaning(f.type)) for f in kind)
    return kind


def _values(column: Column, batch: Any, errors: dict[int, str]) -> Packed:
    a = _storage(batch.column(column.key.path[0]))
    for name in column.key.path[1:]:
        _nulls(column, a, errors)
        a = _storage(a.field(name))
    found: Packed = column.key.pack(column, a, errors)
    return found


def read(columns: Sequence[Column],
         batches: Sequence[Any]) -> tuple[list[Packed], dict[int, str]]:
    """The values of record batches that follow each other."""
    errors: dict[int, str] = {}
    found: list[list[Packed]] = [[] for _ in columns]
    first = 0
    for batch in batches:
        own: dict[int, str] = {}
        for column, parts in zip(columns, found):
            parts.append(_values(column, batch, own))
        errors.update({first + i: why for i, why in own.items()})
        first += len(batch)
    return [joined(parts) for parts in found], errors
