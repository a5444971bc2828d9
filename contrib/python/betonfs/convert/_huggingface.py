# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face: directories of save_to_disk(), and datasets that are
in the local cache."""
from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._ragged import DTYPES
from ._source import (Column, Mistake, Type, jpeg_to_keep, library, read_file,
                      shortened)

SCHEME = "hf://"
_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE")
_NAME = re.compile(r"hf://(?P<name>[\w.-]+(?:/[\w.-]+)?)(?::(?P<split>[^?]+))?"
                   r"(?:\?config=(?P<config>[^&]+))?", re.ASCII)
_NUMBER = re.compile(r"u?int(8|16|32|64)|bool")
_REAL = re.compile(r"float(16|32|64)")


def _datasets() -> Any:
    """The library, which must not use the network."""
    for name in _OFFLINE:
        os.environ[name] = "1"
    found = library("datasets", "datasets", "a dataset of Hugging Face")
    found.config.HF_DATASETS_OFFLINE = found.config.HF_HUB_OFFLINE = True
    found.disable_progress_bars()
    found.logging.set_verbosity_error()
    return found


# --- types ---

def _list_type(feature: Any, length: int) -> Type:
    """The type of a list of numbers, or of lists of one length; None: JSON."""
    inner = _type_of(feature)
    size = None if length < 0 else length
    if size == 0:
        return None
    dtype = getattr(feature, "dtype", "")
    if isinstance(inner, tuple):
        dtype, shape = inner
        if None in shape:
            return None
        return dtype, (size, *shape)
    if inner not in ("int", "float") or dtype not in _dtypes():
        return None
    return dtype, (size,)


def _dtypes() -> set[str]:
    return {np.dtype(kind).name for kind in DTYPES}


def _is_list(feature: Any) -> bool:
    """Whether it is a list; older versions of the library have [feature]."""
    return isinstance(feature, list) or type(feature).__name__ in (
        "List", "LargeList", "Sequence")


def _type_of_list(feature: Any) -> Type:
    inner = feature[0] if isinstance(feature, list) else feature.feature
    if type(inner).__name__ == "Image":
        return "frames"
    found = _list_type(inner, getattr(feature, "length", -1))
    return "json" if found is None and _is_json(inner) else found


def _is_json(feature: Any) -> bool:
    """Whether JSON can contain a value."""
    if isinstance(feature, Mapping):
        return all(map(_is_json, feature.values()))
    if _is_list(feature):
        return _is_json(feature[0] if isinstance(feature, list)
                        else feature.feature)
    return _type_of(feature) in ("int", "float", "json", "text")


def _type_of(feature: Any) -> Type:
    """The type of a field, also "text"; None: no field can store it."""
    if isinstance(feature, Mapping):
        return "json" if _is_json(feature) else None
    if _is_list(feature):
        return _type_of_list(feature)
    name = type(feature).__name__
    if name == "Image":
        return "image"
    if name == "ClassLabel":
        return "int"
    if re.fullmatch(r"Array\dD", name):
        shape = tuple(feature.shape)
        return None if None in shape[1:] else (feature.dtype, shape)
    if name in ("Translation", "TranslationVariableLanguages", "Json"):
        return "json"
    dtype = str(getattr(feature, "dtype", "")) if name == "Value" else ""
    if _NUMBER.fullmatch(dtype):
        return "int"
    if _REAL.fullmatch(dtype):
        return "float"
    if dtype in ("string", "large_string"):
        return "text"
    return "bytes" if dtype in ("binary", "large_binary") else None


def _column(name: str, feature: Any) -> Column:
    kind = type(feature).__name__
    if kind == "Value":
        kind = str(feature.dtype)
    classes = feature.names if type(feature).__name__ == "ClassLabel" else ()
    return Column(name, _type_of(feature), kind, tuple(classes))


# --- rows ---

class Rows:
    """A split of a dataset."""

    def __init__(self, title: str, rows: Any) -> None:
        self.title = title
        self._all = self._rows = rows.with_format(None)
        self._images: dict[str, Any] = {}       # kept -> their feature
        self._longest = 0
        self._chosen: list[str] = []
        self.columns: Sequence[Column] = [
            _column(name, feature)
            for name, feature in rows.features.items()]

    def __len__(self) -> int:
        return len(self._rows)

    def prepare(self, columns: Sequence[str], keep: int | None) -> None:
        image = _datasets().Image
        self._rows = self._all.select_columns(list(dict.fromkeys(columns)))
        self._chosen = list(columns)
        self._images = {}
        if keep is None:
            return
        self._longest = keep
        for name, feature in dict(self._rows.features).items():
            if type(feature).__name__ == "Image" and feature.decode:
                self._images[name] = feature
                self._rows = self._rows.cast_column(
                    name, image(mode=feature.mode, decode=False))

    def _kept(self, feature: Any, value: Any) -> Any:
        """The bytes of a file that stays as it is, or pixels."""
        if value is None:
            return None
        data = value.get("bytes")
        path = value.get("path")
        if data is None and path and os.path.isfile(path):
            data = read_file(path)
        if data is not None and feature.mode in (None, "RGB") and \
                jpeg_to_keep(data, self._longest, True):
            return data
        return feature.decode_example(value)

    def row(self, number: int) -> Sequence[Any]:
        row = self._rows[number]
        for name, feature in self._images.items():
            row[name] = self._kept(feature, row[name])
        return [row[name] for name in self._chosen]

    def names(self, column: str) -> Sequence[str]:
        found = self._all.unique(column)
        if None in found:
            raise Mistake(f"column {column!r}: some samples have no value, so "
                          "they have no class")
        return list(found)


# --- sources ---

def is_saved(path: str) -> bool:
    """Whether save_to_disk() wrote this directory."""
    return any(os.path.isfile(os.path.join(path, name))
               for name in ("state.json", "dataset_dict.json"))


def _choose(title: str, splits: Sequence[str], split: str | None) -> str:
    if split in splits:
        return str(split)
    if split is None and len(splits) == 1:
        return splits[0]
    listed = ", ".join(splits) or "none"
    raise Mistake(f"{title}: " + (
        f"choose one of its splits with --split: {listed}" if split is None
        else f"--split={split}: it has the splits {listed}"), 2)


def saved(path: str, split: str | None) -> Rows:
    where = pathlib.Path(path)
    parts = where / "dataset_dict.json"
    if parts.is_file():
        try:
            names = json.loads(parts.read_text())["splits"]
        except (ValueError, KeyError, TypeError):
            raise Mistake(f"{parts}: damaged") from None
        where /= _choose(path, names, split)
    elif split is not None:
        raise Mistake(f"{path}: --split={split}: it has no splits", 2)
    try:
        rows = _datasets().load_from_disk(os.fspath(where))
    except Mistake:
        raise
    except Exception as e:
        raise Mistake(f"{where}: {shortened(str(e))}") from e
    return Rows(f"a Hugging Face dataset, {where}", rows)


def _load(datasets: Any, name: str, config: str | None,
          split: str | None) -> Any:
    again = f"load_dataset({name!r}" + (f", {config!r}" if config else "") + ")"
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as e:
        reason = shortened("; ".join(str(e).split("\n")))
        raise Mistake(
            f"{SCHEME}{name}: not complete in {datasets.config.HF_DATASETS_CACHE}"
            f" ({reason}); convert downloads nothing, so run "
            f"datasets.{again} once") from e


def cached(source: str, split: str | None) -> Rows:
    """hf://NAME[:SPLIT][?config=CONFIG]"""
    match = _NAME.fullmatch(source)
    if not match:
        raise Mistake(f"{source}: expected hf://NAME[:SPLIT][?config=CONFIG], "
                      "for example hf://uoft-cs/cifar10:train", 2)
    name = match["name"]
    if os.path.isdir(name):
        raise Mistake(f"{source}: there is a directory {name}, which the "
                      "library would read instead; use another working "
                      "directory", 2)
    if split is not None and match["split"] is not None:
        raise Mistake(f"{source}: --split={split}: the source contains a "
                      "split, so leave out --split", 2)
    split = split or match["split"]
    # A slice, such as train[:10%], is the library's to read.
    is_slice = split is not None and not split.isidentifier()
    rows = _load(_datasets(), name, match["config"],
                 split if is_slice else None)
    if isinstance(rows, Mapping):
        rows = rows[_choose(source, list(rows), split)]
    return Rows(f"a Hugging Face dataset, {source}", rows)
