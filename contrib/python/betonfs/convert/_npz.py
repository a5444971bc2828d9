# SPDX-License-Identifier: Apache-2.0
"""Archives of NumPy (.npz): each array is a column, and its rows are samples.
Rows are read as they come out of the archive, so memory holds a few."""
from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, IO

import numpy as np

from ._block import Bytes, Packed
from ._hdf5 import RunSource, _packed
from ._source import (Column, Form, Mistake, Options, array_of, shortened)

REMEDY = "leave the array out with --fields"
_IMAGES = ("image", "images", "img")
_SIDE_MAX = 0xffff
_COPY = 1 << 20


@dataclass
class _Array:
    """An array in an archive, of which rows are read forward."""
    archive: zipfile.ZipFile
    member: str
    dtype: Any
    shape: tuple[int, ...]
    fortran: bool
    stream: IO[bytes] | None = None
    next: int = 0
    whole: Any = None       # in Fortran order: a map of a copy

    @property
    def row(self) -> int:
        return int(self.dtype.itemsize * np.prod(self.shape[1:], dtype=object))

    def _open(self) -> None:
        if self.stream is not None:
            self.stream.close()
        self.stream, self.next = self.archive.open(self.member), 0
        _header(self.stream)

    def rows(self, begin: int, end: int) -> Any:
        if self.fortran and len(self.shape) > 1:
            return self._mapped()[begin:end]
        if self.stream is None or begin < self.next:
            self._open()
        assert self.stream is not None
        skip = (begin - self.next) * self.row
        while skip:
            n = len(self.stream.read(min(skip, _COPY)))
            if not n:
                raise ValueError("the archive ends inside the array")
            skip -= n
        data = self.stream.read((end - begin) * self.row)
        if len(data) != (end - begin) * self.row:
            raise ValueError("the archive ends inside the array")
        self.next = end
        return np.frombuffer(data, self.dtype).reshape(
            (end - begin, *self.shape[1:]))

    def _mapped(self) -> Any:
        """The array of a copy below TMPDIR."""
        if self.whole is None:
            with tempfile.TemporaryFile() as copy, \
                    self.archive.open(self.member) as stream:
                _header(stream)
                while data := stream.read(_COPY):
                    copy.write(data)
                copy.flush()
                self.whole = np.memmap(copy, self.dtype, "r", 0, self.shape, "F")
        return self.whole


def _header(stream: Any) -> tuple[tuple[int, ...], bool, Any]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(stream)
    else:
        header = np.lib.format.read_array_header_2_0(stream)
    shape, fortran, dtype = header
    return shape, fortran, dtype


class Npz(RunSource):
    title = "archives of NumPy arrays (.npz)"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self.parts, self._n = [], 0
        self._files: list[dict[str, _Array]] = []
        for path in paths:
            arrays = self._arrays(path)
            self._files.append(arrays)
            self.parts.append((path, self._n))
            self._n += next(iter(arrays.values())).shape[0]
        self.forms = [{name: Form(f"{a.dtype} {a.shape[1:]}")
                       for name, a in file.items()} for file in self._files]
        if not self._n:
            raise Mistake(f"{paths[0]}: no rows")
        self.columns = [self._column(name, a)
                        for name, a in self._files[0].items()]
        self.sample_bytes = sum(a.row for a in self._files[0].values())

    def __len__(self) -> int:
        return self._n

    def _arrays(self, path: str) -> dict[str, _Array]:
        found: dict[str, _Array] = {}
        try:
            archive = zipfile.ZipFile(path)
            for name in archive.namelist():
                if not name.endswith(".npy"):
                    self.ignored += 1
                    continue
                with archive.open(name) as stream:
                    shape, fortran, dtype = _header(stream)
                if not shape:
                    raise Mistake(f"{path}: {name}: a scalar, which has no "
                                  "rows")
                found[name[:-4]] = _Array(archive, name, dtype, shape, fortran)
        except (OSError, ValueError, zipfile.BadZipFile, EOFError,
                NotImplementedError) as e:
            raise Mistake(f"{path}: {shortened(str(e))}") from None
        if not found:
            raise Mistake(f"{path}: no arrays")
        rows = {a.shape[0]: name for name, a in found.items()}
        if len(rows) > 1:
            few, more = list(rows)[:2]
            raise Mistake(f"{path}: '{rows[few]}' has {few} rows, but "
                          f"'{rows[more]}' has {more}: save arrays of one "
                          "length in a file of their own")
        return found

    @staticmethod
    def _column(name: str, a: _Array) -> Column:
        kind, flat = a.dtype.kind, len(a.shape) == 1
        shape = a.shape[1:]
        if kind in "US" and flat:
            return Column(name, "text", key=(name, "text"))
        if kind in "biu" and flat:
            return Column(name, "int", key=(name, "int"))
        if kind == "f" and flat and a.dtype.itemsize <= 8:
            return Column(name, "float", key=(name, "float"))
        channels = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
        if name in _IMAGES and a.dtype == np.uint8 and \
                channels in (1, 3, 4) and max(shape[:2]) <= _SIDE_MAX:
            return Column(name, "image", key=(name, "image"))
        if kind in "USMmV":
            return Column(name, refused=f"values of {a.dtype}: {REMEDY}",
                          key=(name, "lost"))
        own = np.empty(shape or (1,), a.dtype) if kind != "O" else \
            np.empty((1,), "O")
        return array_of(name, own, REMEDY, key=(name, "array"))

    def cast(self, column: Column, kind: str) -> Column:
        from dataclasses import replace

        from ._source import as_bytes, as_list
        return replace(as_bytes(column, as_list), key=(column.key[0], "list"))

    def _part(self, column: Column, part: int, begin: int, end: int,
              errors: dict[int, str], at: int) -> Packed:
        name, form = column.key
        own = {i - at: why for i, why in errors.items()}
        array = self._files[part][name]
        try:
            values = array.rows(begin, end)
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as e:
            for i in range(end - begin):
                own.setdefault(i, f"array '{name}': {shortened(str(e))}")
            values, form = np.empty(0, np.uint8), "lost"
        if form == "text" and values.dtype.kind == "U":
            found: Packed = Bytes.of([str(v).encode("utf-8", "surrogatepass")
                                      for v in values])
        elif form == "text":
            found = Bytes.of([bytes(v) for v in values])
        else:
            found = _packed(column, form, values, end - begin, None, own)
        errors.update({at + i: why for i, why in own.items()})
        return found
