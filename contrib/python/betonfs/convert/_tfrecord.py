# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of tf.train.Example. The package tfrecord has the messages, and
crc32c, which it needs, the checksums, which its own reader passes over."""
from __future__ import annotations

import bisect
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from ._source import (LOOK_AT, Column, Mistake, Options, Refused, RowSource,
                      as_bytes, as_list, is_image, library, mask_of)

# A record: its length, the CRC of that, the data, and the CRC of that.
_HEAD = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_TEXT_MAX = 4096
# Records over all files that decide the types, beside the first ones.
_SPREAD = 900


def _masked(crc: int) -> int:
    """The form of a CRC that the format stores."""
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


class _File:
    """The places of the records of a file."""

    def __init__(self, path: str, crc32c: Any) -> None:
        self.path, self._crc32c = path, crc32c
        self.file: BinaryIO = open(path, "rb")
        self.places = np.fromiter(self._scan(), np.uint64)

    def _scan(self) -> Iterator[int]:
        end, at, n = os.fstat(self.file.fileno()).st_size, 0, 0
        while at < end:
            head = os.pread(self.file.fileno(), _HEAD.size, at)
            if not n and head[:2] == b"\x1f\x8b":
                raise Mistake(f"{self.path}: compressed by gzip: decompress it "
                              "first")
            if len(head) < _HEAD.size:
                raise Mistake(f"{self.path}: record {n}: the file ends inside "
                              "it")
            size, crc = _HEAD.unpack(head)
            if crc != _masked(self._crc32c(head[:8])):
                raise Mistake(f"{self.path}: record {n}: " + (
                    "the CRC of its length is wrong" if n else
                    "no TFRecord file, or damaged"))
            if at + _HEAD.size + size + _CRC.size > end:
                raise Mistake(f"{self.path}: record {n}: the file ends inside "
                              "it")
            yield at
            at += _HEAD.size + size + _CRC.size
            n += 1

    def record(self, number: int) -> bytes:
        fd, at = self.file.fileno(), int(self.places[number])
        size, _ = _HEAD.unpack(os.pread(fd, _HEAD.size, at))
        data = os.pread(fd, size + _CRC.size, at + _HEAD.size)
        if len(data) < size + _CRC.size:
            raise Refused("the file became shorter")
        if _CRC.unpack(data[size:])[0] != _masked(self._crc32c(data[:size])):
            raise Refused("the CRC of its data is wrong")
        return data[:size]


@dataclass
class _Found:
    """The values that a feature has in some records."""
    kind: str | None = None     # bytes_list, float_list or int64_list
    counts: frozenset[int] = frozenset()
    images: bool = True         # all values begin like image files
    text: bool = True           # all values are short texts


def _is_text(value: bytes) -> bool:
    try:
        return len(value) <= _TEXT_MAX and "\0" not in value.decode()
    except UnicodeDecodeError:
        return False


def _names(keys: Sequence[str]) -> list[str]:
    """The last part of each key, or as many as no other key ends in."""
    split = [key.split("/") for key in keys]
    found = []
    for own in split:
        n = 1
        while n < len(own) and sum(
                other[-n:] == own[-n:] for other in split) > 1:
            n += 1
        found.append("_".join(own[-n:]))
    if "image/encoded" in keys and not any(s[-1] == "image" for s in split):
        found[list(keys).index("image/encoded")] = "image"
    return found


class TfRecord(RowSource):
    title = "TFRecord files"
    unit = "record"

    def __init__(self, paths: Sequence[str], options: Options) -> None:
        self._example = library("tfrecord.example_pb2", "tfrecord",
                                "a TFRecord file").Example
        crc32c = library("crc32c", "crc32c", "a TFRecord file").crc32c
        self._files = [_File(path, crc32c) for path in paths]
        self.parts, n = [], 0
        for path, file in zip(paths, self._files):
            self.parts.append((path, n))
            n += len(file.places)
        self._n = n
        self._starts = [first for _, first in self.parts]
        size = sum(map(os.path.getsize, paths))
        self.sample_bytes = size // max(n, 1)
        self.columns = self._columns(paths[0])

    def __len__(self) -> int:
        return self._n

    def _features(self, number: int) -> Any:
        part = bisect.bisect_right(self._starts, number) - 1
        while not len(self._files[part].places):
            part -= 1
        data = self._files[part].record(number - self._starts[part])
        try:
            example = self._example.FromString(data)
        except Exception:
            raise Refused("no tf.train.Example") from None
        features = example.features.feature
        # An Example has no second member, in which a SequenceExample has lists.
        if not len(features) and data[:1] == b"\x12":
            raise Refused("a tf.train.SequenceExample; mkfs.beton reads "
                          "tf.train.Example")
        return features

    # --- columns ---

    def _some(self) -> Iterator[int]:
        yield from range(min(self._n, LOOK_AT))
        step = max(1, self._n // _SPREAD)
        yield from range(LOOK_AT, self._n, step)

    def _columns(self, path: str) -> list[Column]:
        found: dict[str, _Found] = {}
        why = ""
        for number in self._some():
            try:
                features = self._features(number)
            except Refused as e:
                why = why or f"record {number}: {e}"
                continue
            if not len(features):
                why = why or f"record {number}: it has no features"
            found = found or {key: _Found() for key in sorted(
                features, key=str.encode)}
            for key, own in found.items():
                if key in features:
                    self._note(own, features[key])
        if not found:
            raise Mistake(f"{path}: {why or 'no records'}")
        self._keys = frozenset(found)
        columns = [self._column(name, key, found[key]) for name, key in
                   zip(_names(list(found)), found)]
        names = [column.name for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise Mistake(f"{path}: two features have the name '{name}'")
        return columns

    @staticmethod
    def _note(own: _Found, feature: Any) -> None:
        kind = feature.WhichOneof("kind")
        values = getattr(feature, kind).value if kind else ()
        own.kind = own.kind or (kind if len(values) else None)
        own.counts |= {len(values)}
        if kind == "bytes_list":
            own.images = own.images and all(map(is_image, values))
            own.text = own.text and all(map(_is_text, values))

    @staticmethod
    def _column(name: str, key: str, own: _Found) -> Column:
        one = own.counts == {1}
        if own.kind is None:
            return Column(name, refused="no values: leave it out with --fields",
                          key=(key, "none", None))
        if own.kind == "bytes_list":
            if not one:
                return Column(name, "json", key=(key, "texts", own.kind)) \
                    if own.text else Column(
                        name, refused="lists of bytes: leave it out with "
                        "--fields", key=(key, "none", None))
            kind = "image" if own.images else "text" if own.text else "bytes"
            types = ("mask",) if own.images else ("image",) \
                if kind == "bytes" else ()
            return Column(name, kind, types=types, key=(key, "one", own.kind))
        dtype = "<i8" if own.kind == "int64_list" else "<f4"
        if one:
            return Column(name, "int" if dtype == "<i8" else "float",
                          key=(key, "one", own.kind))
        if len(own.counts) == 1:
            return Column(name, "array", dtype, tuple(own.counts),
                          types=("list",), key=(key, "array", own.kind))
        return replace(as_bytes(Column(name, key=(key, "array", own.kind)),
                                as_list), dtype=dtype)

    def cast(self, column: Column, kind: str) -> Column:
        if kind == "mask":
            return as_bytes(column, mask_of)
        if kind == "list":
            return replace(as_bytes(column, as_list), dtype=column.dtype)
        return replace(column, type=kind, refused="", types=())

    # --- rows ---

    @staticmethod
    def _value(column: Column, features: Any) -> Any:
        key, form, expected = column.key
        if key not in features:
            raise Refused(f"it lacks the feature '{key}', which the first "
                          "record has")
        feature = features[key]
        kind = feature.WhichOneof("kind")
        values: Any = getattr(feature, kind).value if kind else []
        if len(values) and kind != expected:
            raise Refused(f"the feature '{key}' has another type than before")
        if form == "array":
            return np.array(values, column.dtype)
        if form == "texts":
            return json.dumps([v.decode() for v in values], ensure_ascii=False,
                              separators=(",", ":")).encode()
        if len(values) != 1:
            raise Refused(f"the feature '{key}' has {len(values)} values, but "
                          f"1 in other records; --fields={column.name}:list "
                          "stores any number")
        return values[0]

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        features = self._features(number)
        found = [self._value(column, features) for column in columns]
        for key in features:
            if key not in self._keys:
                raise Refused(f"it has a feature that the first record lacks: "
                              f"'{key}'")
        return found
