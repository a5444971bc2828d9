# SPDX-License-Identifier: Apache-2.0
"""LMDB databases. Entries are samples, or pairs of an image and a text."""
from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ._source import (LOOK_AT, Column, Mistake, Options, Refused, RowSource,
                      image_or_bytes, library, shortened)

_PAIRS = b"num-samples"
# Keys of entries that are no samples begin so.
_ODD = b"__"


def _wrapping(value: bytes) -> str | None:
    """The program that wrote a value that is no bytes of a file."""
    if value[:1] == b"\x80" and value[1:2] in b"\2\3\4\5" and \
            value[-1:] == b".":
        return "pickled Python objects"
    if value[:1] == b"\x08" and value[2:3] == b"\x10" and len(value) > 5:
        return "Caffe's Datum records"
    return None


class _Entries:
    """A database, read in the order of keys."""

    def __init__(self, path: str) -> None:
        lmdb = library("lmdb", "lmdb", "an LMDB database")
        try:
            self._env = lmdb.open(path, readonly=True, lock=False, max_dbs=0,
                                  subdir=os.path.isdir(path), create=False,
                                  readahead=True)
            self._txn = self._env.begin(buffers=True)
            self.num = self._txn.stat()["entries"]
            self._check(path, self._txn.stat()["psize"])
        except lmdb.Error as e:
            raise Mistake(f"{path}: {shortened(str(e))}") from None
        self.odd = sum(1 for _ in self._odd())
        self.pairs = self._num_pairs(path)
        self.num = self.num - self.odd if self.pairs is None else self.pairs
        self._next = 0
        self._entries: Iterator[tuple[Any, Any]] = iter(())

    def _check(self, path: str, page: int) -> None:
        """The library maps the file, so a missing page would end the process."""
        file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
        size, need = os.path.getsize(file), \
            (self._env.info()["last_pgno"] + 1) * page
        if size < need:
            raise Mistake(f"{file}: {size} bytes, but its pages take {need}: it "
                          "was cut off")

    def _odd(self) -> Iterator[bytes]:
        cursor = self._txn.cursor()
        if cursor.set_range(_ODD):
            for key in cursor.iternext(keys=True, values=False):
                if not bytes(key).startswith(_ODD):
                    return
                yield bytes(key)

    def _num_pairs(self, path: str) -> int | None:
        value = self._txn.get(_PAIRS)
        if value is None:
            return None
        text = bytes(value)
        digits = bytes(itertools.takewhile(b"0123456789".__contains__, text))
        n = int(digits or b"0")
        if n > self.num:
            raise Mistake(f"{path}: num-samples is {n}, but there are "
                          f"{self.num} entries")
        return n

    def keys(self) -> Iterator[bytes]:
        for key in self._txn.cursor().iternext(keys=True, values=False):
            if not bytes(key[:2]) == _ODD:
                yield bytes(key)

    def _all(self) -> Iterator[tuple[Any, Any]]:
        for key, value in self._txn.cursor():
            if not bytes(key[:2]) == _ODD:
                yield key, value

    def entry(self, number: int) -> tuple[bytes, bytes]:
        """An entry. Those before it are passed over."""
        if number < self._next or not self._next:
            self._entries, self._next = self._all(), 0
        while self._next < number:
            next(self._entries)
            self._next += 1
        self._next += 1
        key, value = next(self._entries)
        return bytes(key), bytes(value)

    def pair(self, number: int) -> tuple[bytes, bytes]:
        found = []
        for name in ("image", "label"):
            key = f"{name}-{number + 1:09}"
            value = self._txn.get(key.encode())
            if value is None:
                raise Refused(f"no key {key}")
            found.append(bytes(value))
        return found[0], found[1]


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


class Lmdb(RowSource):
    title = "LMDB files (data.mdb)"
    unit = "entry"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self._all = [_Entries(path) for path in paths]
        self.parts, n = [], 0
        for path, entries in zip(paths, self._all):
            if (entries.pairs is None) != (self._all[0].pairs is None):
                raise Mistake(f"{path}: other keys than in {paths[0]}: convert "
                              "the files apart")
            self.parts.append((path, n))
            n += entries.num
            self.ignored += entries.odd
        self._n = n
        self._starts = [first for _, first in self.parts]
        self.columns = self._pairs() if self._all[0].pairs is not None \
            else self._found(paths[0])
        size = sum(os.path.getsize(p if os.path.isfile(p) else
                                   os.path.join(p, "data.mdb")) for p in paths)
        self.sample_bytes = size // max(n, 1)

    def __len__(self) -> int:
        return self._n

    @staticmethod
    def _pairs() -> list[Column]:
        return [Column("image", "image", key=0), Column("label", "text", key=1)]

    def _found(self, path: str) -> list[Column]:
        head = [self._all[0].entry(i)
                for i in range(min(self._all[0].num, LOOK_AT))]
        values = [value for _, value in head]
        column = image_or_bytes("image", values, key=1)
        odd = next((w for v in values if (w := _wrapping(v))), None)
        if column.type != "image" and not column.refused:
            if odd:
                raise Mistake(f"{path}: values are {odd}: write them by "
                              "betonfs.write()")
            column = image_or_bytes("value", values, key=1)
        text = all(_is_text(key) for entries in self._all
                   for key in entries.keys())
        return [column, Column("key", "text" if text else "bytes", key=0)]

    def cast(self, column: Column, kind: str) -> Column:
        from dataclasses import replace

        from ._source import as_bytes, mask_of
        if kind == "mask":
            return as_bytes(column, mask_of)
        return replace(column, type=kind, refused="", types=())

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        part = bisect.bisect_right(self._starts, number) - 1
        entries, own = self._all[part], number - self._starts[part]
        values = entries.entry(own) if entries.pairs is None \
            else entries.pair(own)
        return [values[column.key] for column in columns]
