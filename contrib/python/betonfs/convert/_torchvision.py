# SPDX-License-Identifier: Apache-2.0
"""Datasets of torchvision: torchvision://CIFAR10?root=DIR&train=1."""
from __future__ import annotations

import inspect
import os
import urllib.parse
from collections.abc import Sequence
from typing import Any

from .._words import nearest
from ._source import (Column, Mistake, Type, jpeg_to_keep, library, read_file,
                      shortened)

SCHEME = "torchvision://"
_TRUE, _FALSE = ("1", "true", "yes", "True"), ("0", "false", "no", "False")
# Read by mkfs.beton.
_FOLDERS = ("ImageFolder", "DatasetFolder")
_OURS = ("download", "transform", "target_transform", "transforms", "loader")
_MASK_MODES = ("L", "P", "1", "I;16")


# --- opening ---

def _whole(title: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Mistake(f"{title}: {name}={text}: expected a whole number",
                      2) from None


def _value(title: str, name: str, text: str, parameter: Any) -> Any:
    """An argument of the class, of the type that its default has."""
    default = parameter.default
    if isinstance(default, tuple):
        return tuple(_whole(title, name, part) for part in text.split(","))
    if isinstance(default, bool):
        if text not in _TRUE + _FALSE:
            raise Mistake(f"{title}: {name}={text}: expected 1 or 0", 2)
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
    raise Mistake(f"{title}: --split={split}: {splits}", 2)


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
            raise Mistake(f"{title}: convert downloads nothing; leave out "
                          "download=", 2)
        if name not in known:
            raise Mistake(f"{title}: no argument {name}=; there are "
                          + ", ".join(known) + nearest(name, known), 2)
        given[name] = _value(title, name, text, known[name])
    for name, p in known.items():
        if p.default is p.empty and name not in given:
            raise Mistake(f"{title}: needs {name}=, for example "
                          f"{title}?{name}=DIR", 2)
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
        advice = f"; convert downloads nothing, so run torchvision.datasets." \
            f"{kind.__name__}({once}) once" if "download" in arguments else ""
        raise Mistake(f"{title}: {reason}{advice}") from e


# --- types ---

def _is_picture(value: Any) -> bool:
    return hasattr(value, "convert") and hasattr(value, "mode")


def _type_of(value: Any, is_first: bool) -> Type:
    if isinstance(value, bytes) and is_first or _is_picture(value) and (
            is_first or value.mode not in _MASK_MODES):
        return "image"
    if _is_picture(value):
        return "mask"
    if isinstance(value, bool | int):
        return "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, dict | list):
        return "json"
    shape = getattr(value, "shape", None)
    if shape is None or not hasattr(value, "__array__"):
        return None
    if not tuple(shape):
        return "float" if "float" in str(value.dtype) else "int"
    return str(value.dtype).removeprefix("torch."), tuple(shape)


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


def _name(place: tuple[int, ...], kind: Type) -> str:
    name = {0: "image" if kind in ("image", "text") else "data",
            1: "label" if kind == "int" else "target"}.get(
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


class Pictures:
    """A dataset of torchvision."""

    def __init__(self, title: str, dataset: Any) -> None:
        self.title = title
        self._dataset = dataset
        self._places: dict[str, tuple[int, ...]] = {}
        self._chosen: list[tuple[int, ...]] = []
        columns = []
        for place, value in _flat(_first(title, dataset)):
            kind = _type_of(value, place == (0,))
            name = _name(place, kind)
            self._places[name] = place
            columns.append(Column(
                name, kind, type(value).__name__,
                _class_names(dataset) if name == "label" else ()))
        self.columns: Sequence[Column] = columns

    def __len__(self) -> int:
        return len(self._dataset)

    def prepare(self, columns: Sequence[str], keep: int | None) -> None:
        self._chosen = [self._places[name] for name in columns]
        # Such classes read a file for each sample.
        decode = getattr(self._dataset, "loader", None)
        if keep is None or not callable(decode) or \
                not hasattr(self._dataset, "samples"):
            return

        def kept(path: str) -> Any:
            data = read_file(path)
            # Its images are not turned.
            return data if jpeg_to_keep(data, keep, False) else decode(path)
        self._dataset.loader = kept

    def row(self, number: int) -> Sequence[Any]:
        values = dict(_flat(self._dataset[number]))
        return [values[place] for place in self._chosen]

    def names(self, column: str) -> Sequence[str]:
        place = self._places[column]
        return list({dict(_flat(self._dataset[i]))[place]: None
                     for i in range(len(self))})


def opened(source: str, split: str | None, out: str) -> Pictures:
    name, _, query = source.removeprefix(SCHEME).partition("?")
    title = SCHEME + name
    if name in _FOLDERS:
        root = dict(urllib.parse.parse_qsl(query)).get("root", "DIR")
        raise Mistake(f"{title}: mkfs.beton reads directories of images: "
                      f"mkfs.beton {root} {out}", 2)
    datasets = library("torchvision.datasets", "torchvision",
                       "a dataset of torchvision")
    kind = getattr(datasets, name, None)
    if not inspect.isclass(kind) or name not in datasets.__all__:
        raise Mistake(f"{title}: torchvision has no dataset {name!r}"
                      + nearest(name, datasets.__all__), 2)
    dataset = _made(title, kind, _arguments(title, kind, query, split))
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise Mistake(f"{title}: it has no len() and no [i]", 2)
    return Pictures(f"torchvision's {name}", dataset)
