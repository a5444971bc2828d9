# SPDX-License-Identifier: Apache-2.0
"""Directories of LitData, by its own reader."""
from __future__ import annotations

import bisect
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._mds import index_of
from ._source import (LOOK_AT, Column, Mistake, Options, Refused, RowSource,
                      array_of, as_bytes, as_list, image_or_bytes,
                      library, mask_of, reason_of, shortened)

REMEDY = "leave the value out with --fields"
# Formats whose bytes are an image file, or the bytes of another file.
_IMAGES = ("jpeg", "png", "image", "tiff", "tifffile")
_FILES = ("bytes", "file", "audio", "video", "pdf", "mesh", "nifti")
_REFUSED = {"pickle": "pickled Python objects", "graph": "graphs",
            "jpeg_array": "several images in a value"}


def _as_is() -> dict[str, Any]:
    """Serializers that return the bytes of files, so that images are neither
    decoded nor encoded again."""
    base: Any = library("litdata.streaming.serializers", "litdata",
                   "a directory of LitData").Serializer

    class AsIs(base):   # type: ignore[misc]
        def serialize(self, item: Any) -> Any:
            raise NotImplementedError

        def deserialize(self, data: Any) -> bytes:
            return bytes(data)

        def can_serialize(self, item: Any) -> bool:
            return False
    return {name: AsIs() for name in (*_IMAGES, *_FILES, *_REFUSED)}


def _kind(data_format: str) -> str:
    return data_format.partition(":")[0]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a sample, with the keys that lead there."""
    dot = "." if name else ""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{name}{dot}{key}")
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            yield from _leaves(one, f"{name}{dot}{i}")
    else:
        yield name or "value", value


class _Directory:
    """One directory. The library leaves decompressed chunks beside the chunks,
    so it sees links to these in a directory of our own."""

    def __init__(self, path: str, serializers: dict[str, Any]) -> None:
        index = index_of(path)
        try:
            self.config, self.chunks = index["config"], list(index["chunks"])
            names = [chunk["filename"] for chunk in self.chunks]
            self.formats = [_kind(f) for f in self.config["data_format"]]
        except (KeyError, TypeError):
            raise Mistake(f"{path}/index.json: damaged: no index of LitData") \
                from None
        self._check(path, names)
        self.path, self._serializers = path, serializers
        self.starts = np.cumsum([0] + [c["chunk_size"] for c in self.chunks])
        self._open()
        self.num = len(self.samples)

    def _open(self) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="betonfs-")
        for name in ("index.json", *(c["filename"] for c in self.chunks)):
            os.symlink(os.path.join(os.path.abspath(self.path), name),
                       os.path.join(self._own.name, name))
        try:
            self.samples = library(
                "litdata", "litdata", "a directory of LitData"
            ).StreamingDataset(self._own.name, shuffle=False, drop_last=False,
                               serializers=self._serializers)
        except Exception as e:
            raise Mistake(f"{self.path}: {shortened(str(e))}") from None
        self._kept = 0      # the first chunk that may be decompressed

    def _check(self, path: str, names: Sequence[str]) -> None:
        where = f"{path}/index.json"
        loader = self.config.get("item_loader") or "PyTreeLoader"
        if self.config.get("encryption"):
            raise Mistake(f"{where}: encrypted chunks: write them again "
                          "without encryption")
        if loader != "PyTreeLoader":
            raise Mistake(f"{where}: chunks of {loader}, for example of "
                          "tokens: write each sample as an array")
        for name in names:
            if "/" in name or name.startswith("."):
                raise Mistake(f"{where}: {name!r} is no name of a file")
            if not os.path.isfile(os.path.join(path, name)):
                raise Mistake(f"{where}: {name}: No such file")

    def sample(self, number: int) -> Any:
        chunk = bisect.bisect_right(self.starts, number) - 1
        if chunk < self._kept:
            self.close()
            self._open()
        for before in self.chunks[self._kept:max(chunk - 1, self._kept)]:
            self._forget(before["filename"])
            self._kept += 1
        return self.samples[number]

    def _forget(self, name: str) -> None:
        """Remove a decompressed chunk. The library decompresses the following
        ones ahead."""
        plain = re.sub(r"\.[a-z]+\.bin$", ".bin", name)
        if plain != name:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._own.name, plain))

    def close(self) -> None:
        self._own.cleanup()


class LitData(RowSource):
    title = "a directory of LitData (.bin)"
    unit = "sample"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        serializers = _as_is()
        self._all = [_Directory(path, serializers) for path in paths]
        self.parts, n = [], 0
        for path, one in zip(paths, self._all):
            for key in ("data_format", "data_spec"):
                if one.config.get(key) != self._all[0].config.get(key):
                    raise Mistake(f"{path}/index.json: other values than in "
                                  f"{paths[0]}: convert the directories apart")
            self.parts.append((path, n))
            n += one.num
        self._n = n
        self._starts = [first for _, first in self.parts]
        size = sum(c["chunk_bytes"] for one in self._all for c in one.chunks)
        self.sample_bytes = size // max(n, 1)
        self.columns = self._columns(paths[0])

    def __len__(self) -> int:
        return self._n

    # --- columns ---

    def _columns(self, path: str) -> list[Column]:
        formats = self._all[0].formats
        head: list[list[tuple[str, Any]]] = []
        for i in range(min(self._n, LOOK_AT)):
            try:
                head.append(list(_leaves(self._sample(i))))
            except Exception as e:
                if not head:
                    raise Mistake(f"{path}: sample 0: {reason_of(e)}") from None
                break
        if not head:
            raise Mistake(f"{path}: no samples")
        if len(head[0]) != len(formats):
            # Rows of Arrow have the lists of a sample in one value.
            formats = [""] * len(head[0])
        columns = []
        for i, (name, value) in enumerate(head[0]):
            values = [row[i][1] for row in head if len(row) == len(head[0])]
            columns.append(self._column(i, name, formats[i], value, values))
        return columns

    def _column(self, i: int, name: str, kind: str, value: Any,
                values: Sequence[Any]) -> Column:
        if kind in _REFUSED:
            return Column(name, refused=f"{_REFUSED[kind]}: {REMEDY}", key=i)
        if kind in _IMAGES:
            return Column(name, "image", types=("mask",), key=i)
        if hasattr(value, "convert") and hasattr(value, "mode"):
            return Column(name, "image", types=("mask",), key=i)
        if isinstance(value, bool | int):
            return Column(name, "int", key=i)
        if isinstance(value, float):
            return Column(name, "float", key=i)
        if isinstance(value, str):
            return Column(name, "text", key=i)
        if isinstance(value, bytes | bytearray | memoryview):
            return image_or_bytes(name, values, key=i)
        if hasattr(value, "__array__"):
            try:
                a = np.asarray(value)
            except Exception as e:
                return Column(name, refused=f"{reason_of(e)}: {REMEDY}", key=i)
            return replace(array_of(name, a, REMEDY, key=i),
                           tensor=hasattr(value, "numpy"))
        return Column(name, refused="a format that a dataset cannot hold: "
                      + REMEDY, key=i)

    def cast(self, column: Column, kind: str) -> Column:
        if kind == "mask":
            return as_bytes(column, mask_of)
        if kind == "list":
            return as_bytes(column, as_list)
        return replace(column, type=kind, refused="", types=())

    # --- rows ---

    def _sample(self, number: int) -> Any:
        part = bisect.bisect_right(self._starts, number) - 1
        return self._all[part].sample(number - self._starts[part])

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        values = [value for _, value in _leaves(self._sample(number))]
        if len(values) != len(self.columns):
            raise Refused(f"{len(values)} values instead of "
                          f"{len(self.columns)}")
        return [values[column.key] for column in columns]

    def close(self) -> None:
        for one in self._all:
            one.close()
