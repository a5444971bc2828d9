# SPDX-License-Identifier: Apache-2.0
"""Directories of MosaicML Streaming, by its own reader."""
from __future__ import annotations

import bisect
import json
import mmap
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._source import (LOOK_AT, Column, Mistake, Options, RowSource, array_of,
                      as_bytes, as_list, image_or_bytes, library, mask_of,
                      reason_of, shortened)

REMEDY = "leave the column out with --fields"
_INTS = ("int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
         "uint64", "str_int")
_REALS = ("float16", "float32", "float64", "str_float")
# Whose bytes are the value.
_PLAIN = {"str": "text", "json": "json", "jpeg": "image", "png": "image"}
_REFUSED = {"str_decimal": "decimal numbers",
            "pkl": "pickled Python objects"}


def _safe(path: str, directory: str) -> str:
    """The path of a file below a directory, which an index names."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "" in parts:
        raise Mistake(f"{directory}/index.json: {path!r} is no name of a file "
                      "below it")
    return os.path.join(directory, path)


def index_of(directory: str) -> Any:
    path = os.path.join(directory, "index.json")
    try:
        with open(path, "rb") as file:
            return json.load(file)
    except OSError as e:
        raise Mistake(f"{path}: {e.strerror}") from None
    except ValueError as e:
        raise Mistake(f"{path}: not JSON: {shortened(str(e))}") from None


@dataclass
class _Shard:
    directory: str
    described: dict[str, Any]

    def data(self, decompress: Callable[[str, bytes], bytes]) -> Any:
        """The bytes of the shard, decompressed."""
        raw = _safe(self.described["raw_data"]["basename"], self.directory)
        packed = self.described.get("zip_data")
        if not packed or os.path.exists(raw):
            with open(raw, "rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with open(_safe(packed["basename"], self.directory), "rb") as file:
            return decompress(self.described["compression"], file.read())


class Mds(RowSource):
    title = "a directory of MosaicML Streaming (.mds)"
    unit = "sample"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        name = "streaming.base.format.mds.encodings"
        self._decode = library(name, "mosaicml-streaming",
                               "a directory of MosaicML Streaming").mds_decode
        self._decompress = library("streaming.base.compression",
                                   "mosaicml-streaming",
                                   "a compressed shard").decompress
        self._shards: list[_Shard] = []
        self._starts: list[int] = []
        self.parts = []
        self._n = 0
        size = 0
        for path in paths:
            for shard in self._shards_of(path):
                self._shards.append(_Shard(path, shard))
                self._starts.append(self._n)
                self.parts.append((os.path.join(
                    path, shard["raw_data"]["basename"]), self._n))
                self._n += shard["samples"]
                size += shard["raw_data"]["bytes"]
        self.sample_bytes = size // max(self._n, 1)
        self._open = -1
        self._data: Any = b""
        self._ends: Any = ()
        self.columns = self._columns()

    def __len__(self) -> int:
        return self._n

    def _shards_of(self, path: str) -> list[dict[str, Any]]:
        index = index_of(path)
        where = f"{path}/index.json"
        try:
            version, shards = index["version"], list(index["shards"])
            for shard in shards:
                if shard["format"] != "mds":
                    raise Mistake(f"{where}: shards of format "
                                  f"{shard['format']!r}: write them again by "
                                  "MDSWriter")
                _safe(shard["raw_data"]["basename"], path)
                same = [shard[key] == (self._shards or [_Shard(path, shards[0])
                                                        ])[0].described[key]
                        for key in ("column_names", "column_encodings",
                                    "column_sizes")]
                if not all(same):
                    raise Mistake(f"{where}: shards with other columns: convert "
                                  "them apart")
                if shard["samples"] < 0 or shard["raw_data"]["bytes"] < 0:
                    raise KeyError
        except (KeyError, TypeError, AttributeError):
            raise Mistake(f"{where}: damaged: no index of version 2") from None
        if version != 2:
            raise Mistake(f"{where}: not an index of version 2")
        return shards

    # --- columns ---

    def _columns(self) -> list[Column]:
        if not self._shards:
            raise Mistake(f"{self.title}: no shards")
        first = self._shards[0].described
        return [self._column(i, name, encoding) for i, (name, encoding) in
                enumerate(zip(first["column_names"],
                              first["column_encodings"]))]

    def _head(self, i: int, n: int) -> list[bytes]:
        """The first values of a column that can be read."""
        found = []
        for number in range(min(n, self._n)):
            try:
                found.append(self._raw(number)[i])
            except Exception:
                break
        return found

    def _column(self, i: int, name: str, encoding: str) -> Column:
        kind = encoding.partition(":")[0]

        def decode(value: bytes) -> Any:
            return self._decode(encoding, value)
        if kind in _INTS:
            return Column(name, "int", key=i, convert=decode)
        if kind in _REALS:
            return Column(name, "float", key=i, convert=decode)
        if kind in _PLAIN:
            masks = ("mask",) if _PLAIN[kind] == "image" else ()
            return Column(name, _PLAIN[kind], types=masks, key=i)
        if kind == "bytes":
            return image_or_bytes(name, self._head(i, LOOK_AT), key=i)
        if kind == "pil":
            return Column(name, "image", types=("mask",), key=i, convert=decode)
        if kind == "ndarray":
            head = self._head(i, 1)
            try:
                a = np.asarray(decode(head[0]))
            except Exception as e:
                return Column(name, refused=f"{reason_of(e)}: {REMEDY}", key=i)
            return replace(array_of(name, a, REMEDY, key=i), convert=decode)
        why = _REFUSED.get(kind, "an encoding that a dataset cannot hold")
        return Column(name, refused=f"{why}: {REMEDY}", key=i)

    def cast(self, column: Column, kind: str) -> Column:
        decode = column.convert or bytes
        if kind == "mask":
            return as_bytes(column, lambda v: mask_of(decode(v)))
        if kind == "list":
            return as_bytes(column, lambda v: as_list(decode(v)))
        return replace(column, type=kind, refused="", types=())

    # --- rows ---

    def _move_to(self, i: int) -> None:
        if i == self._open:
            return
        shard = self._shards[i]
        self._open = -1
        self._data = shard.data(self._decompress)
        n = shard.described["samples"]
        if len(self._data) < 4 * (n + 2):
            raise Mistake("the shard is shorter than its table")
        self._ends = np.frombuffer(self._data[:4 * (n + 2)], "<u4")[1:]
        self._open = i

    def _raw(self, number: int) -> list[bytes]:
        """The bytes of each column of a sample."""
        i = bisect.bisect_right(self._starts, number) - 1
        while self._shards[i].described["samples"] == 0:
            i -= 1
        self._move_to(i)
        own = number - self._starts[i]
        begin, end = int(self._ends[own]), int(self._ends[own + 1])
        data = bytes(self._data[begin:end])
        sizes = list(self._shards[i].described["column_sizes"])
        at = 0
        for k, size in enumerate(sizes):
            if not size:
                sizes[k] = int.from_bytes(data[at:at + 4], "little")
                at += 4
        if at + sum(sizes) != len(data) or end > len(self._data):
            raise Mistake("damaged: its columns have other sizes than the "
                          "sample")
        found = []
        for size in sizes:
            found.append(data[at:at + size])
            at += size
        return found

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        raw = self._raw(number)
        return [raw[column.key] for column in columns]
