# SPDX-License-Identifier: Apache-2.0
"""Datasets of torchvision: torchvision://CIFAR10?root=DIR&train=1."""
from __future__ import annotations

import inspect
import io
import os
import urllib.parse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._words import nearest
from ._source import (Column, Mistake, Options, RowSource, array_of, as_bytes,
                      as_list, library, mask_of, read_file, shortened)

REMEDY = "leave the value out with --fields"
SCHEME = "torchvision://"
_TRUE, _FALSE = ("1", "true", "yes", "True"), ("0", "false", "no", "False")
# Read by mkfs.beton.
_FOLDERS = ("ImageFolder", "DatasetFolder")
_OURS = ("download", "transform", "target_transform", "transforms", "loader")
_MASK_MODES = ("L", "P", "1", "I;16")
# EXIF
_ORIENTATION, _UPRIGHT = 0x112, (None, 0, 1)


# --- opening ---

def _whole(title: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Mistake(f"{title}: {name}={text}: expected a whole "
                      "number") from None


def _value(title: str, name: str, text: str, parameter: Any) -> Any:
    """An argument of the class, of the type that its default has."""
    default = parameter.default
    if isinstance(default, tuple):
        return tuple(_whole(title, name, part) for part in text.split(","))
    if isinstance(default, bool):
        if text not in _TRUE + _FALSE:
            raise Mistake(f"{title}: {name}={text}: expected 1 or 0")
        return text in _TRUE
    if isinstance(default, int):
        return _whole(title, name, text)
    return os.path.expanduser(text) if name == "root" else text


def _parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """Those of the class and, if it takes any, of its bases."""
    found: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        own = inspect.signature(base.__init__).parameters.values()
        for p in own:
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and \
                    p.name != "self":
                found.setdefault(p.name, p)
        if not any(p.kind == p.VAR_KEYWORD for p in own):
            break
    return found


def _split(title: str, known: Sequence[str], split: str) -> tuple[str, str]:
    """The argument that chooses a split."""
    if "split" in known:
        return "split", split
    if "image_set" in known:
        return "image_set", split
    if "train" in known and split in ("train", "test"):
        return "train", "1" if split == "train" else "0"
    splits = "it has the splits train and test" if "train" in known else \
        "it has the arguments " + ", ".join(known)
    raise Mistake(f"{title}: --split={split}: {splits}")


def _arguments(title: str, kind: Any, query: str,
               split: str | None) -> dict[str, Any]:
    known = {name: p for name, p in _parameters(kind).items()
             if name not in _OURS}
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    if split is not None:
        pairs.append(_split(title, list(known), split))
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name == "download":
            raise Mistake(f"{title}: nothing is downloaded; leave out "
                          "download=")
        if name not in known:
            raise Mistake(f"{title}: no argument {name}=; there are "
                          + ", ".join(known) + nearest(name, known))
        given[name] = _value(title, name, text, known[name])
    for name, p in known.items():
        if p.default is p.empty and name not in given:
            raise Mistake(f"{title}: needs {name}=, for example "
                          f"{title}?{name}=DIR")
    if "download" in _parameters(kind):
        given["download"] = False
    return given


def _made(title: str, kind: Any, arguments: dict[str, Any]) -> Any:
    try:
        return kind(**arguments)
    except ImportError as e:
        raise Mistake(f"{title}: {e}") from e
    except Exception as e:
        reason = shortened(str(e).partition("You can use download=True")[0])
        once = ", ".join([f"{name}={value!r}" for name, value in
                          arguments.items() if name != "download"]
                         + ["download=True"])
        advice = f"; nothing is downloaded, so run torchvision.datasets." \
            f"{kind.__name__}({once}) once" if "download" in arguments else ""
        raise Mistake(f"{title}: {reason}{advice}") from e


# --- columns ---

def _is_picture(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode")


def _column(name: str, value: Any, place: tuple[int, ...],
            classes: Sequence[str]) -> Column:
    """The column of a value of the first sample."""
    is_first = place == (0,)
    if isinstance(value, bytes) and is_first or _is_picture(value) and (
            is_first or value.mode not in _MASK_MODES):
        return Column(name, "image", types=("mask", "png"), key=place)
    if _is_picture(value):
        return as_bytes(Column(name, key=place), mask_of)
    if isinstance(value, bool | int):
        return Column(name, "int", classes=classes if name == "label" else (),
                      key=place)
    if isinstance(value, float):
        return Column(name, "float", key=place)
    if isinstance(value, str):
        return Column(name, "text", key=place)
    if isinstance(value, bytes):
        return Column(name, "bytes", types=("image",), key=place)
    if isinstance(value, dict | list):
        return Column(name, "json", key=place)
    if not hasattr(value, "__array__"):
        return Column(name, refused=f"no field can store "
                      f"{type(value).__name__}: {REMEDY}", key=place)
    a = np.asarray(value)
    if a.shape:
        return array_of(name, a, REMEDY, key=place)
    return Column(name, "float" if a.dtype.kind == "f" else "int", key=place)


def _flat(sample: Any) -> list[tuple[tuple[int, ...], Any]]:
    """The values of a sample, with their places: a target may be a tuple."""
    values = sample if isinstance(sample, tuple) else (sample,)
    found: list[tuple[tuple[int, ...], Any]] = []
    for i, value in enumerate(values):
        if isinstance(value, tuple):
            found += [((i, k), one) for k, one in enumerate(value)]
        else:
            found.append(((i,), value))
    return found


def _first(title: str, dataset: Any) -> Any:
    """The first sample, from which the columns come."""
    if not len(dataset):
        return ()
    try:
        return dataset[0]
    except Exception as e:
        raise Mistake(f"{title}: sample 0: "
                      f"{type(e).__name__}: {shortened(str(e))}") from e


def _name(place: tuple[int, ...], value: Any) -> str:
    is_image = _is_picture(value) or isinstance(value, str | bytes)
    is_label = isinstance(value, bool | int) or hasattr(
        value, "__array__") and not np.shape(value) and \
        np.asarray(value).dtype.kind in "biu"
    name = {0: "image" if is_image else "data",
            1: "label" if is_label else "target"}.get(
                place[0], f"value{place[0]}")
    return name if len(place) == 1 else f"target{place[1]}" \
        if place[0] == 1 else f"{name}_{place[1]}"


def _class_names(dataset: Any) -> tuple[str, ...]:
    """Those of ImageNet are tuples of synonyms."""
    found = getattr(dataset, "classes", None)
    if not isinstance(found, list | tuple):
        return ()
    names = [", ".join(one) if isinstance(one, tuple) and
             all(isinstance(part, str) for part in one) else one
             for one in found]
    return tuple(names) if all(isinstance(n, str) for n in names) else ()


class _Dataset(RowSource):
    """A dataset of torchvision."""

    unit = "sample"
    keep = parallel = True

    def __init__(self, title: str, dataset: Any) -> None:
        self.title = title
        self._dataset = dataset
        classes = _class_names(dataset)
        first = _flat(_first(title, dataset))
        self.columns = [_column(_name(place, value), value, place, classes)
                        for place, value in first]
        self.parts = [(title, 0)]
        self.sample_bytes = sum(_size(value) for _, value in first)
        # Such classes read a file for each sample.
        decode = getattr(dataset, "loader", None)
        if not callable(decode) or not hasattr(dataset, "samples"):
            return

        def kept(path: str) -> Any:
            data = read_file(path)
            # Its images are not turned.
            return data if _is_upright_jpeg(data) else decode(path)
        dataset.loader = kept

    def __len__(self) -> int:
        return len(self._dataset)

    def cast(self, column: Column, kind: str) -> Column:
        if kind in ("mask", "png"):
            return as_bytes(column, mask_of)
        if kind == "list":
            return as_bytes(column, as_list)
        return replace(column, type=kind, types=())

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        values = dict(_flat(self._dataset[number]))
        return [values[column.key] for column in columns]


def _size(value: Any) -> int:
    """Bytes of a value, about."""
    if _is_picture(value):
        return int(3 * value.size[0] * value.size[1])
    return int(getattr(value, "nbytes", 0)) or \
        (len(value) if isinstance(value, str | bytes) else 64)


def _is_upright_jpeg(data: bytes) -> bool:
    """Whether an image file can be stored as it is: a JPEG that is RGB or gray,
    and that no viewer turns."""
    if data[:2] != b"\xff\xd8":
        return False
    image = library("PIL.Image", "pillow", "an image").open(io.BytesIO(data))
    return image.format == "JPEG" and image.mode in ("RGB", "L") and \
        image.getexif().get(_ORIENTATION) in _UPRIGHT


def Pictures(paths: Sequence[str], options: Options) -> _Dataset:
    """torchvision://CLASS?root=DIR"""
    if len(paths) > 1:
        raise Mistake(f"{paths[1]}: give one dataset of a library at a time, "
                      "and join the files with beton merge")
    name, _, query = paths[0].removeprefix(SCHEME).partition("?")
    title = SCHEME + name
    if name in _FOLDERS:
        root = dict(urllib.parse.parse_qsl(query)).get("root", "DIR")
        raise Mistake(f"{title}: mkfs.beton itself reads directories of images: "
                      f"give {root}")
    datasets = library("torchvision.datasets", "torchvision",
                       "a dataset of torchvision")
    kind = getattr(datasets, name, None)
    if not inspect.isclass(kind) or name not in datasets.__all__:
        raise Mistake(f"{title}: torchvision has no dataset {name!r}"
                      + nearest(name, datasets.__all__))
    dataset = _made(title, kind, _arguments(title, kind, query, options.split))
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise Mistake(f"{title}: it has no len() and no [i]")
    return _Dataset(f"torchvision's {name}", dataset)
