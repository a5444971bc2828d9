# SPDX-License-Identifier: Apache-2.0
"""The kinds of sources, and the choice of one."""
from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ._source import Mistake, Options, Source

_HEAD = 1 << 16


@dataclass(frozen=True)
class _Path:
    path: str
    head: bytes         # the first bytes of a file
    names: set[str]     # in a directory


@dataclass(frozen=True)
class _Kind:
    # The name of the kind in messages.
    words: str
    # Module and class: Class(paths, options).
    module: str
    name: str
    matches: Callable[[_Path], bool]


def _ends(*ends: str) -> Callable[[_Path], bool]:
    return lambda p: p.path.lower().endswith(ends)


def _has(*names: str) -> Callable[[_Path], bool]:
    return lambda p: bool(p.names.intersection(names))


def _is_hdf5(p: _Path) -> bool:
    """The signature may follow a block of the user's."""
    at = 0
    while at < len(p.head):
        if p.head[at:at + 8] == b"\x89HDF\r\n\x1a\n":
            return True
        at = 2 * at or 512
    return False


def _key_of(path: str) -> str | None:
    """The key of index.json that only one library writes."""
    try:
        with open(os.path.join(path, "index.json"), "rb") as file:
            index = json.load(file)
    except (OSError, ValueError):
        return None
    keys = index if isinstance(index, dict) else {}
    return next((key for key in ("shards", "chunks") if key in keys), None)


_SHARD = re.compile(r"-\d{5}-of-\d{5}")

# The first kind that matches a path takes it.
_KINDS: Sequence[_Kind] = (
    _Kind("a dataset of the Hugging Face Hub", "_huggingface", "Cached",
          lambda p: p.path.startswith("hf://")),
    _Kind("a dataset of torchvision", "_torchvision", "Pictures",
          lambda p: p.path.startswith("torchvision://")),
    _Kind("a Hugging Face dataset", "_huggingface", "Saved",
          _has("state.json", "dataset_dict.json")),
    _Kind("Parquet files", "_parquet", "Parquet",
          lambda p: p.head.startswith(b"PAR1") or _ends(".parquet")(p)),
    _Kind("HDF5 files", "_hdf5", "Hdf5",
          lambda p: _is_hdf5(p) or _ends(".h5", ".hdf5")(p)),
    _Kind("LMDB files (data.mdb)", "_lmdb", "Lmdb",
          lambda p: _has("data.mdb")(p) or _ends(".mdb", ".lmdb")(p) or
          p.head[:12] == bytes(10) + b"\x08\0"),
    _Kind("directories of MosaicML Streaming (.mds)", "_mds", "Mds",
          lambda p: _has("index.json")(p) and _key_of(p.path) == "shards"),
    _Kind("directories of LitData (.bin)", "_litdata", "LitData",
          lambda p: _has("index.json")(p) and _key_of(p.path) == "chunks"),
    _Kind("archives of NumPy arrays (.npz)", "_npz", "Npz", _ends(".npz")),
    _Kind("TFRecord files", "_tfrecord", "TfRecord",
          lambda p: _ends(".tfrecord", ".tfrecords", ".tfrec")(p) or
          bool(_SHARD.search(os.path.basename(p.path)))),
)


def _look_at(path: str) -> _Path:
    if "://" in path:
        return _Path(path, b"", set())
    if os.path.isdir(path):
        return _Path(path, b"", set(os.listdir(path)))
    try:
        with open(path, "rb") as file:
            return _Path(path, file.read(_HEAD), set())
    except OSError as e:
        raise Mistake(f"{path}: {e.strerror}") from None


def _kind_of(path: str, options: Options) -> _Kind:
    found = _look_at(path)
    for kind in _KINDS:
        if kind.matches(found):
            return kind
    if "dataset_info.json" in found.names:
        raise Mistake(f"{path}: a directory of the cache of load_dataset(); "
                      "give hf://NAME, or the directory that save_to_disk() "
                      "wrote")
    if os.path.isdir(path):
        raise Mistake(f"{path}: no image files: expected names that end in "
                      f"{options.pictures}, or a dataset of a library that "
                      "beton-sources(7) lists")
    if path.lower().endswith(".arrow"):
        raise Mistake(f"{path}: a file of a Hugging Face dataset; give the "
                      "directory that save_to_disk() wrote, or hf://NAME")
    raise Mistake(f"{path}: not a source: expected a directory of images or a "
                  "file of a kind that beton-sources(7) lists")


def opened(paths: Sequence[str], options: Options) -> Source:
    """The source that these paths are together."""
    kinds = [_kind_of(path, options) for path in paths]
    for path, kind in zip(paths, kinds):
        if kind != kinds[0]:
            raise Mistake(
                f"sources of two kinds: {paths[0]}: {kinds[0].words}, and "
                f"{path}: {kind.words}: make a dataset of each kind, and join "
                "them with beton merge")
    module = importlib.import_module("." + kinds[0].module, __package__)
    made: Any = getattr(module, kinds[0].name)
    found: Source = made(paths, options)
    return found
