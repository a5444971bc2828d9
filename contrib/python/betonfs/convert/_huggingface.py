# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face: directories of save_to_disk(), and datasets that are
in the local cache."""
from __future__ import annotations

import io
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._writer import frame_encoder
from . import _arrow
from ._block import Packed
from ._source import (LOOK_AT, Column, Mistake, Options, Source, library,
                      shortened)

SCHEME = "hf://"
_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE")
_NAME = re.compile(r"hf://(?P<name>[\w.-]+(?:/[\w.-]+)?)(?::(?P<split>[^?]+))?"
                   r"(?:\?config=(?P<config>[^&]+))?", re.ASCII)


def _datasets() -> Any:
    """The library, which must not use the network."""
    for name in _OFFLINE:
        os.environ[name] = "1"
    found = library("datasets", "datasets", "a dataset of Hugging Face")
    found.config.HF_DATASETS_OFFLINE = found.config.HF_HUB_OFFLINE = True
    found.disable_progress_bars()
    found.logging.set_verbosity_error()
    return found


# --- columns ---

def _is_list(feature: Any) -> bool:
    """Whether it is a list; older versions of the library have [feature]."""
    return isinstance(feature, list) or type(feature).__name__ in (
        "List", "LargeList", "Sequence")


def _inner(feature: Any) -> Any:
    return feature[0] if isinstance(feature, list) else feature.feature


def _array(name: str, feature: Any, head: Any) -> Column:
    """The column of Array2D and the like, whose shape the feature has."""
    shape = tuple(feature.shape)
    dtype = np.dtype(feature.dtype).newbyteorder("<").str
    if None in shape[1:]:
        return Column(name, refused="arrays that differ in more than their "
                      f"first dimension: {_arrow.REMEDY}",
                      key=_arrow.Key((name,), _arrow.pack_objects))
    if shape[0] is None:
        return _arrow.ragged_of(name, (name,), dtype, shape[1:])
    return _arrow.array_of(name, (name,), dtype, shape)


def _list(name: str, feature: Any, head: Any) -> Column:
    """Lists have the length of the feature, or any length."""
    sides: list[int | None] = []
    while _is_list(feature):
        length = getattr(feature, "length", -1)
        sides.append(None if length is None or length < 0 else length)
        feature = _inner(feature)
    dtype = _arrow.item_dtype(head.type)
    if dtype is None or None in sides[1:] or 0 in sides:
        return _arrow.json_of(name, (name,), head.type)
    shape = tuple(side or 0 for side in sides)
    if sides[0] is None:
        return _arrow.ragged_of(name, (name,), dtype, shape[1:])
    return _arrow.array_of(name, (name,), dtype, shape)


def _column(name: str, feature: Any, head: Any, options: Options,
            below: str) -> Column:
    """The column of a feature, whose first values `head` has."""
    kind = type(feature).__name__
    if kind == "Image":
        return _arrow.picture_of(name, (name,), head, True, below)
    if _is_list(feature) and type(_inner(feature)).__name__ == "Image":
        return _arrow.frames_of(name, (name,), _frame_encoder(options), below)
    if re.fullmatch(r"Array\dD", kind):
        return _array(name, feature, head)
    if _is_list(feature):
        return _list(name, feature, head)
    if isinstance(feature, Mapping) or kind in (
            "Translation", "TranslationVariableLanguages", "Json"):
        return _arrow.json_of(name, (name,), head.type)
    if kind not in ("Value", "ClassLabel"):
        return Column(name, refused=f"no field can store {kind}: "
                      + _arrow.REMEDY, key=_arrow.Key((name,),
                                                      _arrow.pack_objects))
    column = _arrow.column_of(name, (name,), head)
    if kind == "ClassLabel":
        return replace(column, classes=tuple(feature.names or ()))
    return column


def _frame_encoder(options: Options) -> Callable[[bytes], bytes]:
    """Encodes an image of several in a sample as mkfs.beton does the others.
    With --mode=keep, JPEG and PNG files stay as they are."""
    def encoded(data: bytes) -> bytes:
        is_file = data[:2] == b"\xff\xd8" or data[:8] == b"\x89PNG\r\n\x1a\n"
        if options.mode == "keep" and is_file and not options.max_resolution:
            return data
        image = library("PIL.Image", "pillow", "an image").open(io.BytesIO(data))
        return encode(image)
    encode = frame_encoder(options.mode == "raw", options.quality,
                           options.max_resolution)
    return encoded


# --- rows ---

class Rows(Source):
    """A split of a dataset."""

    keep = True

    def __init__(self, title: str, rows: Any, below: str,
                 options: Options) -> None:
        self.title = title
        self._rows = rows.with_format("arrow")
        head = self._rows[:LOOK_AT]
        self.columns = [
            _column(name, feature, _arrow.column_array(head, name), options,
                    below)
            for name, feature in rows.features.items()]
        n = len(rows)
        self.sample_bytes = head.nbytes // max(len(head), 1)
        self.parts = [(title.rpartition(", ")[2], 0)]
        self._n = n

    def __len__(self) -> int:
        return self._n

    def cast(self, column: Column, kind: str) -> Column:
        return _arrow.cast(column, kind)

    def read(self, columns: Sequence[Column],
             rows: Sequence[int]) -> tuple[list[Packed], dict[int, str]]:
        names = list(dict.fromkeys(c.key.path[0] for c in columns))
        chosen = self._rows.select_columns(names)
        table = chosen[rows[0]:rows[-1] + 1] if len(rows) == \
            rows[-1] + 1 - rows[0] else chosen[list(rows)]
        return _arrow.read(columns, table.to_batches())


# --- sources ---

def _choose(title: str, splits: Sequence[str], split: str | None) -> str:
    if split in splits:
        return str(split)
    if split is None and len(splits) == 1:
        return splits[0]
    listed = ", ".join(splits) or "none"
    raise Mistake(f"{title}: " + (
        f"choose one of its splits with --split: {listed}" if split is None
        else f"--split={split}: it has the splits {listed}"))


def _one(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        raise Mistake(f"{paths[1]}: give one dataset of a library at a time, "
                      "and join the files with beton merge")
    return paths[0]


def Saved(paths: Sequence[str], options: Options) -> Rows:
    """The directory that save_to_disk() has written."""
    path, split = _one(paths), options.split
    where = pathlib.Path(path)
    parts = where / "dataset_dict.json"
    if parts.is_file():
        try:
            names = json.loads(parts.read_text())["splits"]
        except (ValueError, KeyError, TypeError):
            raise Mistake(f"{parts}: damaged") from None
        where /= _choose(path, names, split)
    elif split is not None:
        raise Mistake(f"{path}: --split={split}: it has no splits")
    try:
        rows = _datasets().load_from_disk(os.fspath(where))
    except Mistake:
        raise
    except Exception as e:
        raise Mistake(f"{where}: {shortened(str(e))}") from e
    return Rows(f"a Hugging Face dataset, {where}", rows, os.getcwd(), options)


def _load(datasets: Any, name: str, config: str | None,
          split: str | None) -> Any:
    again = f"load_dataset({name!r}" + (f", {config!r}" if config else "") + ")"
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as e:
        reason = shortened("; ".join(str(e).split("\n")))
        raise Mistake(
            f"{SCHEME}{name}: not complete in {datasets.config.HF_DATASETS_CACHE}"
            f" ({reason}); nothing is downloaded, so run datasets.{again} once"
        ) from e


def Cached(paths: Sequence[str], options: Options) -> Rows:
    """hf://NAME[:SPLIT][?config=CONFIG]"""
    source, split = _one(paths), options.split
    match = _NAME.fullmatch(source)
    if not match:
        raise Mistake(f"{source}: expected hf://NAME[:SPLIT][?config=CONFIG], "
                      "for example hf://uoft-cs/cifar10:train")
    name = match["name"]
    if os.path.isdir(name):
        raise Mistake(f"{source}: there is a directory {name}, which the "
                      "library would read instead; use another working "
                      "directory")
    if split is not None and match["split"] is not None:
        raise Mistake(f"{source}: --split={split}: the source contains a "
                      "split, so leave out --split")
    split = split or match["split"]
    # A slice, such as train[:10%], is the library's to read.
    is_slice = split is not None and not split.isidentifier()
    rows = _load(_datasets(), name, match["config"],
                 split if is_slice else None)
    if isinstance(rows, Mapping):
        rows = rows[_choose(source, list(rows), split)]
    return Rows(f"a Hugging Face dataset, {source}", rows, os.getcwd(), options)
