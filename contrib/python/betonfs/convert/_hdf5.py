# SPDX-License-Identifier: Apache-2.0
"""HDF5 files, by h5py. Datasets with the same number of rows are columns."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._block import Bytes, Ints, Packed, Pixels, Reals, joined
from ._source import (LOOK_AT, Column, Form, Mistake, Options, Source, array_of,
                      as_bytes, as_list, image_or_bytes, library, packed,
                      shortened)

REMEDY = "leave the dataset out with --fields"
_IMAGES = ("image", "images", "img")
_DEPTH_MAX = 8
# A row that touches more chunks costs h5py over 70 MB.
_CHUNKS_MAX = 1 << 16
_CACHE = 64 << 20
_SIDE_MAX = 0xffff


@dataclass(frozen=True)
class _Key:
    path: str           # of the dataset
    form: str           # int, float, text, bytes, array or image
    rows: int = 0


def _paths(h5py: Any, group: Any, depth: int = 0) -> Iterator[str]:
    """The datasets of a file, in the byte order of names. Links that leave the
    file are not followed."""
    for name in sorted(group, key=str.encode):
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            try:
                found = group[name]
            except (KeyError, OSError, ValueError, RuntimeError):
                yield f"{group.name.rstrip('/')}/{name}"
                continue
            if isinstance(found, h5py.Dataset):
                yield found.name
            elif isinstance(found, h5py.Group) and depth < _DEPTH_MAX:
                yield from _paths(h5py, found, depth + 1)


def _missing_filter(h5py: Any, dataset: Any) -> str | None:
    plist = dataset.id.get_create_plist()
    for i in range(plist.get_nfilters()):
        code, _, _, name = plist.get_filter(i)
        if not h5py.h5z.filter_avail(code):
            return f"{code} ({name.decode(errors='replace')})"
    return None


def _num_chunks(dataset: Any) -> int:
    """Chunks that a row touches."""
    n = 1
    for side, chunk in zip(dataset.shape[1:], (dataset.chunks or (1,))[1:]):
        n *= -(-side // chunk)
    return n


def _form(column: Column) -> Form:
    """Bytes of a file may look like images or not."""
    if column.key.form == "bytes":
        return Form(column.refused or "bytes")
    shape = f" {column.dtype} {column.shape}" if column.shape else ""
    return Form(column.key.form + shape, column.classes)


class RunSource(Source):
    """Files whose libraries read ranges of rows. Runs of rows are read at once."""
    _n = 0      # rows of all files

    @abstractmethod
    def _part(self, column: Column, part: int, begin: int, end: int,
              errors: dict[int, str], at: int) -> Packed:
        """The values of rows of one file, which are rows `at` of the block."""

    def read(self, columns: Sequence[Column],
             rows: Sequence[int]) -> tuple[list[Packed], dict[int, str]]:
        errors: dict[int, str] = {}
        found: list[list[Packed]] = [[] for _ in columns]
        for at, n, part, row in _runs(rows, self.parts, self._n):
            for column, own in zip(columns, found):
                own.append(self._part(column, part, row, row + n, errors, at))
        return [joined(own) for own in found], errors


class Hdf5(RunSource):
    title = "HDF5 files"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self._h5py = library("h5py", "h5py", "an HDF5 file")
        self._files = [self._opened(path) for path in paths]
        self.columns = self._columns(paths[0], self._files[0])
        self.forms: list[dict[str, Form]] = [
            {c.name: _form(c) for c in self.columns if not c.refused}]
        self.parts, n = [], 0
        for i, (path, file) in enumerate(zip(paths, self._files)):
            self.parts.append((path, n))
            n += self._rows_of(path, file) if i else self._rows
        self._n = n
        self.sample_bytes = sum(
            self._files[0][c.key.path].nbytes // max(self._rows, 1)
            for c in self.columns if not c.refused)

    def __len__(self) -> int:
        return self._n

    def _opened(self, path: str) -> Any:
        try:
            return self._h5py.File(path, "r", rdcc_nbytes=_CACHE,
                                   rdcc_nslots=4099)
        except (OSError, ValueError, RuntimeError) as e:
            raise Mistake(f"{path}: {shortened(str(e))}") from None

    # --- columns ---

    def _refusal(self, dataset: Any) -> str | None:
        if not dataset.shape or len(dataset.shape) > 9:
            return "no rows, or more than 8 dimensions in a row"
        if dataset.is_virtual or dataset.external:
            return "data in another file"
        missing = _missing_filter(self._h5py, dataset)
        if missing:
            return f"compressed by filter {missing}, which is not installed; " \
                "h5repack -f GZIP=4 writes another copy, or"
        if _num_chunks(dataset) > _CHUNKS_MAX:
            return f"a row of more than {_CHUNKS_MAX} chunks; h5repack makes " \
                "larger ones, or"
        return None

    def _column(self, name: str, dataset: Any) -> Column:
        """The column of a dataset, by its type and shape."""
        path, flat = dataset.name, len(dataset.shape) == 1
        why = self._refusal(dataset)
        if why:
            join = " " if why.endswith(", or") else ": "
            return Column(name, refused=f"{why}{join}{REMEDY}",
                          key=_Key(path, "bytes"))
        rows = dataset.shape[0]
        text = self._h5py.check_string_dtype(dataset.dtype)
        items = self._h5py.check_vlen_dtype(dataset.dtype)
        members = self._h5py.check_enum_dtype(dataset.dtype)
        if text and flat:
            return Column(name, "text", key=_Key(path, "text", rows))
        if items is not None and np.dtype(items) == np.uint8 and flat:
            return image_or_bytes(name, dataset[:LOOK_AT],
                                  key=_Key(path, "bytes", rows))
        if items is not None and np.dtype(items).kind in "biuf" and flat:
            return as_bytes(Column(name, key=_Key(path, "list", rows)), as_list)
        if text or dataset.dtype.kind not in "biufc":
            return Column(name, refused=("arrays of strings: " if text else
                          "values of a type that a dataset cannot hold: ")
                          + REMEDY, key=_Key(path, "bytes"))
        if flat and dataset.dtype.kind in "biu":
            return Column(name, "int", classes=_names(members),
                          key=_Key(path, "int", rows))
        if flat and dataset.dtype.kind == "f":
            return Column(name, "float", key=_Key(path, "float", rows))
        own = np.empty(dataset.shape[1:] or (1,), dataset.dtype)
        column = array_of(name, own, REMEDY, key=_Key(path, "array", rows))
        return self._as_image(name, dataset, column)

    def _as_image(self, name: str, dataset: Any, column: Column) -> Column:
        """An array whose name and shape are those of images."""
        shape = dataset.shape[1:]
        channels = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
        if name.rpartition(".")[2].lower() not in _IMAGES or \
                dataset.dtype != np.uint8 or channels not in (1, 3, 4) or \
                max(shape[:2]) > _SIDE_MAX or column.refused:
            return column
        return replace(column, type="image", dtype="", shape=(),
                       types=("array",),
                       key=replace(column.key, form="image"))

    def _columns(self, path: str, file: Any) -> list[Column]:
        found = list(_paths(self._h5py, file))
        if not found:
            raise Mistake(f"{path}: no datasets")
        ends = [p.rpartition("/")[2] for p in found]
        names = [end if ends.count(end) == 1 else p[1:].replace("/", ".")
                 for p, end in zip(found, ends)]
        columns = []
        for own, name in zip(found, names):
            try:
                columns.append(self._column(name, file[own]))
            except (KeyError, OSError, ValueError, RuntimeError, TypeError) as e:
                columns.append(Column(
                    name, refused=f"h5py cannot open it ({shortened(str(e))}): "
                    f"{REMEDY}"[:150], key=_Key(own, "bytes")))
        good = [c for c in columns if not c.refused]
        chosen = next((c for c in good if c.type == "image"),
                      good[0] if good else None)
        self._rows = chosen.key.rows if chosen else 0
        return [c if c.refused or c.key.rows == self._rows else
                replace(c, types=(), refused=f"{c.key.rows} rows instead of "
                        f"{self._rows}: {REMEDY}") for c in columns]

    def _rows_of(self, path: str, file: Any) -> int:
        """The rows of another file. Adds the forms of its datasets."""
        rows, forms = set(), {}
        for column in self.columns:
            if column.refused or column.key.path not in file:
                continue
            found = self._column(column.name, file[column.key.path])
            forms[column.name] = _form(found)
            rows.add(found.key.rows)
        if len(rows) > 1:
            raise Mistake(f"{path}: datasets have {min(rows)} and {max(rows)} "
                          "rows: convert the files apart")
        self.forms.append(forms)
        return rows.pop() if rows else 0

    def cast(self, column: Column, kind: str) -> Column:
        if kind in ("image", "bytes"):
            return replace(column, type=kind, refused="", types=())
        dataset = self._files[0][column.key.path]
        if kind == "array":
            own = np.empty(dataset.shape[1:], dataset.dtype)
            return array_of(column.name, own, REMEDY,
                            key=replace(column.key, form="array"))
        if kind == "mask":
            from ._source import mask_of
            return replace(as_bytes(column, mask_of),
                           key=replace(column.key, form="list"))
        return replace(as_bytes(column, as_list),
                       key=replace(column.key, form="list"))

    # --- rows ---

    def _part(self, column: Column, part: int, begin: int, end: int,
              errors: dict[int, str], at: int) -> Packed:
        dataset = self._files[part][column.key.path]
        form = column.key.form
        own = {i - at: why for i, why in errors.items()}
        try:
            values = dataset[begin:end]
        except (OSError, ValueError, RuntimeError) as e:
            why = f"dataset '{column.name}': {shortened(str(e))}"
            values = np.empty((0,), np.uint8)
            for i in range(end - begin):
                own.setdefault(i, why)
            form = "lost"
        found = _packed(column, form, values, end - begin, dataset, own)
        errors.update({at + i: why for i, why in own.items()})
        return found


def _names(members: dict[str, int] | None) -> tuple[str, ...]:
    """The names of an enumeration whose values are 0, 1, 2 ..."""
    if not members:
        return ()
    by_value = {int(value): name for name, value in members.items()}
    if sorted(by_value) != list(range(len(members))):
        return ()
    return tuple(by_value[i] for i in range(len(by_value)))


def _runs(rows: Sequence[int], parts: Sequence[tuple[str, int]],
          n: int) -> Iterator[tuple[int, int, int, int]]:
    """Runs of rows that follow each other in one part: the place in `rows`, the
    number of rows, the part, and the first row in it."""
    starts = [first for _, first in parts] + [n]
    at = part = 0
    while at < len(rows):
        while rows[at] >= starts[part + 1]:
            part += 1
        k = 1
        while at + k < len(rows) and rows[at + k] == rows[at] + k and \
                rows[at + k] < starts[part + 1]:
            k += 1
        yield at, k, part, rows[at] - starts[part]
        at += k


def _packed(column: Column, form: str, values: Any, n: int, dataset: Any,
            errors: dict[int, str]) -> Packed:
    if form == "lost":
        if column.type == "int":
            return Ints(np.zeros(n, np.int64))
        return Reals(np.zeros(n)) if column.type == "float" else \
            Bytes.of([b""] * n)
    if form == "int":
        large = values > 2**63 - 1 if values.dtype == np.uint64 else ()
        for i in np.flatnonzero(large):
            errors.setdefault(int(i), f"dataset '{column.name}': {values[i]} "
                              "is too large for an integer field")
        return Ints(values.astype(np.int64))
    if form == "float":
        return Reals(values.astype(np.float64))
    if form == "image":
        sizes = np.array([[values.shape[2], values.shape[1],
                           values.shape[3] if values.ndim == 4 else 1]] * n)
        return Pixels(_rows(values, n), sizes)
    if form == "array":
        return _rows(values.astype(column.dtype, copy=False), n)
    if form == "text":
        return Bytes.of([_text(v, dataset) for v in values])
    return packed(column, list(values) if form == "list" else
                  [np.asarray(v, np.uint8).tobytes() for v in values], errors)


def _rows(values: Any, n: int) -> Bytes:
    own = np.ascontiguousarray(values)
    size = own.nbytes // max(n, 1)
    return Bytes(np.arange(n + 1, dtype=np.uint64) * np.uint64(size),
                 [own.reshape(-1).view(np.uint8).data] if own.size else [])


def _text(value: Any, dataset: Any) -> bytes:
    own = bytes(value)
    # Fortran pads strings of a fixed length with spaces.
    if dataset.dtype.kind == "S" and \
            dataset.id.get_type().get_strpad() == 2:
        return own.rstrip(b" ")
    return own
