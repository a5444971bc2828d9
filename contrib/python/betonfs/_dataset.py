# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import importlib
import json
import operator
import os
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from . import _beton
from ._checks import (function, is_url, is_whole, path as checked_path, public,
                      shown)
from ._errors import BetonError, explain, make
from ._options import (Storage, check_part, is_part, part_ids,
                       storage_text)
from ._ragged import unpacked
from ._words import known_words, nearest

_T = TypeVar("_T")
Path = str | os.PathLike[str]
_Function = Callable[..., Any]
_SCALARS = ("int", "float")
_ARRAYS = ("ndarray", "torch_tensor")


def _described(path: str | os.PathLike[str], name: str) -> str:
    """Return a file of the mount that describes its dataset."""
    try:
        with open(os.path.join(path, name), encoding="utf-8",
                  errors="surrogateescape") as f:
            return f.read()
    except FileNotFoundError:
        raise make(errno.ENOENT, f"{os.fspath(path)}: a directory, and no "
                   "dataset on a mount of betonfs") from None
    except OSError as e:
        raise make(e.errno or errno.EIO, f"{e.filename}: {e.strerror}") \
            from None


def file_of(path: str) -> tuple[str, _beton.Dataset]:
    """Return the file of a dataset on a mount. Check that it is the mounted
    one."""
    options = _described(path, ".betonfs/options")
    of, = re.findall(r"^dataset=(.*)$", options, re.M)[:1] or [""]
    # The daemon escapes control characters and backslashes as in /proc/mounts.
    of = re.sub(r"\\([0-3][0-7]{2})", lambda m: chr(int(m[1], 8)), of)
    described = json.loads(_described(path, "dataset.json"))
    file = _beton.Dataset(of)
    if file.fingerprint != described["fingerprint"]:
        raise make(errno.ESTALE, f"{path}: {of} is not what is mounted")
    return of, file


def _open(path: str, storage: str | None) -> _beton.Dataset:
    """Return `path` if it is a FILE or a URL. For a dataset on a MOUNT, return
    the mounted file."""
    return file_of(path)[1] if os.path.isdir(path) \
        else _beton.Dataset(path, storage)


def _opened(path: str, storage: str | None) -> _beton.Dataset:
    # A server may not answer.
    if is_url(path):
        return _in_thread(lambda: _beton.Dataset(path, storage))
    try:
        return _open(path, storage)
    except BetonError as e:
        raise explain(e, path) from None


def _fields(path: str | os.PathLike[str],
            storage: str | None) -> list[dict[str, Any]]:
    if not os.path.isdir(path):
        return _beton.Dataset(path, storage).fields()
    fields: list[dict[str, Any]] = json.loads(
        _described(path, "dataset.json"))["fields"]
    return fields


def _in_thread(work: Callable[[], _T]) -> _T:
    """Call `work` in a thread that Ctrl-C abandons, because a mount whose
    daemon does not answer blocks the calling thread."""
    done: list[_T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as e:
            failed.append(e)
    thread = threading.Thread(target=run, name="beton", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return done[0]


def field_facts(path: str | os.PathLike[str],
                storage: str | None = None) -> list[dict[str, Any]]:
    """Describe each field by a dict: `name`; `stem`, its form in file names and
    outputs; `type`; and if no loader can read it, the reason as `unusable`.

    `path` is a FILE, a URL, or a dataset on a MOUNT.
    """
    return _in_thread(lambda: _fields(path, storage))


def class_names(fields: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the default class names: those of "label", or of the first field
    with names."""
    named = [f for f in fields if f.get("classes")]
    named.sort(key=lambda f: f["name"] != "label")
    return list(named[0]["classes"]) if named else []


# --- several files ---

def _listed(fields: Iterable[dict[str, Any]]) -> str:
    return ", ".join(f"{f['stem']} ({f['type']})" for f in fields)


_FILE = "a .beton file or URL, a list of them, or of a dataset on a mount"


def _in_list(path: Any) -> str:
    """Return a path as an alternative of a pattern. An existing file stands
    for itself."""
    text = checked_path("path", path, _FILE)
    if is_url(text) and "{" not in text:
        return re.sub(r"([}\\,])", r"\\\1", text)
    if os.path.lexists(text) or not re.search(r"[*?[{]", text):
        return re.sub(r"([*?[\]{},\\])", r"\\\1", text)
    return text if "{" in text else text.replace(",", r"\,")


def path_text(path: Any) -> str:
    """Return the path, or a pattern that matches the files of a list."""
    if not isinstance(path, (list, tuple)):
        return checked_path("path", path, _FILE)
    if not path:
        raise ValueError("a dataset of no files")
    if len(path) == 1:
        return path_text(path[0])
    return "{" + ",".join(map(_in_list, path)) + "}"


# --- transforms ---

def _image_of(fields: Sequence[dict[str, Any]]) -> str:
    """Return the field whose images to transform."""
    images = [f["stem"] for f in fields if f["type"] == "rgb_image"]
    if not images:
        raise ValueError("transform= is for images, and there is no image "
                         f"field among {_listed(fields)}")
    if len(images) > 1 and "image" not in images:
        raise ValueError(f"transform= is for one of {', '.join(images)}: none "
                         "is named \"image\"; transform samples in a Dataset "
                         "of your own")
    return images[0] if len(images) == 1 else "image"


def _target_of(fields: Sequence[dict[str, Any]]) -> str:
    """Return the field whose targets to transform."""
    others = [f["stem"] for f in fields if f["type"] != "rgb_image"]
    if len(others) == 1:
        return str(others[0])
    if "label" not in others:
        raise ValueError("target_transform= is for one of "
                         f"{', '.join(others) or 'no fields'}: none is named "
                         "\"label\"; transform samples in a Dataset of your "
                         "own")
    return "label"


def _function(name: str, value: Any, of: str) -> Any:
    if isinstance(value, (list, tuple)):
        raise TypeError(f"{name}={shown(value)}: one function of {of}; "
                        "torchvision's Compose makes one of several")
    return function(name, value, of)


class _Transforms:
    """Return the transforms of a sample, from the arguments of torchvision's
    datasets."""

    def __init__(self, fields: Sequence[dict[str, Any]],
                 transform: _Function | None, target: _Function | None,
                 both: _Function | None) -> None:
        self.given = (_function("transform", transform, "an image"),
                      _function("target_transform", target, "a target"),
                      _function("transforms", both, "an image and a target"))
        self.transform, self.target, self.both = self.given
        if both and (transform or target):
            raise ValueError("give transforms= or transform= and "
                             "target_transform=, not both")
        self.image_name = _image_of(fields) if transform or both else ""
        self.target_name = _target_of(fields) if target or both else ""
        self._picture = importlib.import_module("PIL.Image").fromarray \
            if self.image_name else None

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        image, target = self.image_name, self.target_name
        if self._picture:
            sample[image] = self._picture(sample[image])
        if self.both:
            sample[image], sample[target] = self.both(sample[image],
                                                      sample[target])
        if self.transform:
            sample[image] = self.transform(sample[image])
        if self.target:
            sample[target] = self.target(sample[target])
        return sample


# Attributes of torchvision's and Hugging Face's datasets, for hints.
_ATTRIBUTES = {
    **dict.fromkeys(("targets", "labels"),
                    'column("label") has the values of a field'),
    "features": "dataset.fields has the types",
    "data": "get_batch(range(len(dataset))) has all samples",
    "select": "get_batch() takes samples, and torch's Subset some of them",
    "map": "transform= is called on each sample",
    "shuffle": "a Loader has orders, and torch's DataLoader has shuffle=True",
    "close": "it is closed when it is collected",
}


class SampleSequence(Sequence[dict[str, Any]]):
    """Samples by number. A slice results in a list."""

    def _other_use(self, i: Any) -> str:
        """Return a hint for an index that is not a number."""
        if isinstance(i, (list, tuple)) or hasattr(i, "__array__"):
            return ", or a slice; Dataset.get_batch() takes a list of numbers"
        return ", or a slice"

    def _sample(self, i: Any) -> int:
        """Return the number of a sample, from 0. TypeError, IndexError."""
        if not is_whole(i):
            raise TypeError(f"{shown(i)}: the number of a sample"
                            + self._other_use(i))
        n = operator.index(i)
        if not -len(self) <= n < len(self):
            raise IndexError(f"sample {n} of {len(self)}")
        return n % len(self)

    @abstractmethod
    def _one(self, i: Any) -> dict[str, Any]:
        """Return a sample by its number, which may be negative. IndexError."""

    @overload
    def __getitem__(self, i: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, i: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self._one(k) for k in range(*i.indices(len(self)))]
        return self._one(i)


class Dataset(SampleSequence):
    """Read single samples of a ``.beton`` file, in any order, without a loader.

    If `path` is a dataset on a mount, the Dataset opens the mounted file, which
    this process must be able to read, too. A list of files with the same fields,
    or a pattern such as "train-*.beton", is one dataset. The order of its files
    is that of betonfs(8).

        dataset = betonfs.Dataset("train.beton")
        dataset[42]["image"], len(dataset), dataset.fields

    ``dataset[i]`` is a dict of field names to values: int, float, images as
    uint8 arrays of (height, width, 3), arrays (also those of differing
    lengths), bytes, and parsed JSON. A slice results in a list of dicts.

    transform, target_transform, transforms
        Functions of a PIL image, of a target, or of both, as in torchvision's
        datasets. ``dataset[i]`` contains their results. The image is the only
        image field, or the one named "image"; the target is the only other
        field, or the one named "label". The functions need Pillow.

            betonfs.Dataset("train.beton", transform=v2.RandomCrop(32))

    storage_options
        How a URL is read, as in Loader.

    The time to open a file does not depend on its size. Many threads and
    children of fork() may use one Dataset at once. It pickles as its path, so it
    works in torch.utils.data.DataLoader with workers. If other files are at that
    path when a process opens it again, it raises BetonError.

    If the file is missing or damaged, you get a BetonError, which is an OSError,
    and if a sample does not exist, an IndexError.
    """

    @known_words("Dataset")
    def __init__(self, path: Path | Sequence[Path],
                 transform: _Function | None = None,
                 target_transform: _Function | None = None,
                 transforms: _Function | None = None,
                 storage_options: Storage | None = None) -> None:
        self.path = path_text(path)
        self._storage = storage_text(storage_options)
        self._open()
        self._transforms = _Transforms(
            [f for f in self._fields if not f["unusable"]], transform,
            target_transform, transforms)
        self._index: dict[str, int] = {}
        for i, field in enumerate(self._fields):
            self._index.setdefault(field["name"], i)
        for i, field in enumerate(self._fields):
            self._index[field["stem"]] = i

    def _open(self, fingerprint: str | None = None) -> None:
        """Open the dataset. Raise BetonError if `fingerprint` is not None and the
        path contains another dataset by now."""
        file = _opened(self.path, self._storage)
        if fingerprint not in (None, file.fingerprint):
            raise make(errno.ESTALE, f"{public(self.path)}: another dataset than when "
                       "it was opened, for files were added or replaced: make "
                       "a new Dataset or Loader")
        self._file = file
        self._pid = os.getpid()
        self._fields = file.fields()

    @property
    def _core(self) -> _beton.Dataset:
        # A child of fork() lacks the reading threads.
        if self._pid != os.getpid():
            self._open(self._file.fingerprint)
        return self._file

    @property
    def _fingerprint(self) -> str:
        return self._file.fingerprint

    # --- fields and samples ---

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """Map the name of each field to `type`, `dtype`, `shape`, and, if no
        loader can read it, the reason as `unusable`."""
        return {f["stem"]: dict(f) for f in self._fields}

    @property
    def classes(self) -> list[str]:
        """Names of the classes by label, or [] if the file has none. They are
        those of the field "label", or of the first field that has names.
        ``fields[name]["classes"]`` has the names of every field.

            names = betonfs.Dataset("train.beton").classes
        """
        return class_names(self._fields)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Map the name of each class to its label, as ImageFolder does."""
        return {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return self._core.samples

    def _field(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"{shown(name)}: the name of one field, of "
                            + ", ".join(self.fields))
        try:
            return self._index[name]
        except KeyError:
            raise KeyError(f"{public(self.path)} has no field {name!r}; there are "
                           + ", ".join(self.fields)
                           + nearest(name, self.fields)) from None

    def _other_use(self, i: Any) -> str:
        if isinstance(i, str) and i in self._index:
            return f"; column({i!r}) has the values of a field, and " \
                f"dataset[0][{i!r}] that of a sample"
        return super()._other_use(i)

    # Type checkers must not see this function.
    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            hint = _ATTRIBUTES.get(name, "its fields are in dataset[i] and "
                                   "dataset.fields")
            raise AttributeError(f"a Dataset has no {name!r}: {hint}")

    # --- samples ---

    def _value(self, k: int, i: int) -> Any:
        field = self._fields[k]
        kind = field["type"]
        if kind in _SCALARS:
            return self._core.value(k, i)
        if kind == "rgb_image":
            height, width, *_ = self._core.value(k, i)
            return self._fill(k, i, np.empty((height, width, 3), np.uint8))
        if kind in _ARRAYS:
            return self._fill(k, i, np.empty(field["shape"], field["dtype"]))
        raw = self._core.read(k, i)
        if kind == "json":
            return json.loads(raw)
        array = unpacked(raw)
        return raw if array is None else array

    def _fill(self, k: int, i: int, into: NDArray[Any]) -> NDArray[Any]:
        # As bytes, because the buffer protocol cannot express all dtypes.
        self._core.fill(k, i, into.reshape(-1).view(np.uint8))
        return into

    def _one(self, i: Any) -> dict[str, Any]:
        n = self._sample(i)
        return self._transforms({
            field["stem"]: self._value(k, n)
            for k, field in enumerate(self._fields) if not field["unusable"]})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def get(self, i: int, field: str) -> Any:
        """Return one field of one sample, as it is stored.

            dataset.get(42, "label")
        """
        return self._value(self._field(field), self._sample(i))

    def raw(self, i: int, field: str) -> bytes:
        """Return the bytes of a value as they are stored, for example a JPEG,
        raw pixels, an array in C order, or JSON.

            open("42.jpg", "wb").write(dataset.raw(42, "image"))
        """
        k = self._field(field)
        if self._fields[k]["type"] in _SCALARS:
            raise ValueError(f"{field} is a number: get() has it")
        return self._core.read(k, self._sample(i))

    def get_batch(self, indices: Any,
                  fields: Sequence[str] | None = None) -> dict[str, Any]:
        """Return samples in this order, as a dict of field names to arrays of
        shape (samples, ...). Images of different sizes, bytes and JSON become
        lists. `indices` may be everything that subset() accepts.

            dataset.get_batch([3, 1, 4])["label"]
        """
        if isinstance(fields, str):
            raise TypeError(f"fields={fields!r}: a list, such as [{fields!r}]")
        numbers = self.subset(indices).tolist()
        names = list(fields) if fields is not None else [
            f["stem"] for f in self._fields if not f["unusable"]]
        return {name: self._column(self._field(name), numbers)
                for name in names}

    def _column(self, k: int, numbers: list[int]) -> Any:
        values = [self._value(k, i) for i in numbers]
        kind = self._fields[k]["type"]
        if kind in _SCALARS:
            return np.array(values, self._fields[k]["dtype"])
        if kind not in ("rgb_image", *_ARRAYS):
            return values
        alike = len({v.shape for v in values}) == 1
        return np.stack(values) if alike else values

    # --- columns ---

    def column(self, field: str) -> NDArray[Any]:
        """Return all values of an int or float field as an array.

            numpy.bincount(dataset.column("label"))
        """
        k = self._field(field)
        if self._fields[k]["type"] not in _SCALARS:
            raise ValueError(f"{field} is {self._fields[k]['type']}, and a "
                             f"column has numbers: get(i, {field!r}) has one "
                             "value")
        out = np.empty(len(self), self._fields[k]["dtype"])
        self._core.column(k, 0, out)
        return out

    def sizes(self, field: str) -> NDArray[np.int64]:
        """Return the stored size of each value of a field in bytes, without
        reading any value. For a JPEG it is the size of the JPEG file. For arrays
        of differing lengths it grows with the length.

            dataset.sizes("tokens").max()
        """
        k = self._field(field)
        if self._fields[k]["type"] in _SCALARS:
            raise ValueError(f"{field} is a number: Dataset(path).column("
                             f"{field!r}) has all of them")
        out = np.empty(len(self), np.int64)
        self._core.sizes(k, 0, out)
        return out

    def subset(self, samples: Any) -> NDArray[np.int64]:
        """Return sample numbers, for ``Loader(subset=...)``.

        `samples` is a bool mask of one value per sample, a list, array, range
        or slice of numbers, or a torch.utils.data.Subset of this dataset.
        Raises IndexError for a missing sample, and ValueError for a mask of
        another length or a Subset of another dataset.

            dataset.subset(dataset.column("label") < 10)
        """
        if is_part(samples):
            return self._subset_of(samples)
        if isinstance(samples, slice):
            samples = range(*samples.indices(len(self)))
        if hasattr(samples, "tolist"):
            samples = samples.tolist()
        if callable(samples):
            raise TypeError("a function of samples: filter(field, function) "
                            "takes one of a field's values")
        if isinstance(samples, (str, bytes)) or \
                not isinstance(samples, Iterable):
            raise TypeError(f"{shown(samples)}: a list of sample numbers, a "
                            "range, a slice, a mask, or a torch Subset")
        given = list(samples)
        if given and all(isinstance(v, (bool, np.bool_)) for v in given):
            if len(given) != len(self):
                raise ValueError(f"a mask of {len(given)} for {len(self)} "
                                 "samples")
            return np.flatnonzero(given).astype(np.int64)
        return np.array([self._sample(i) for i in given], np.int64)

    def _subset_of(self, part: Any) -> NDArray[np.int64]:
        ids, of = part_ids(part)
        check_part(of, len(self), self._fingerprint)
        return self.subset(ids)

    def filter(self, field: str, condition: Any) -> NDArray[np.int64]:
        """Return the numbers of the samples that meet a condition, for
        ``Loader(subset=...)`` and ``get_batch()``. `condition` is a function of
        a value of the field, or a bool mask with one value per sample.

            cats = dataset.filter("label", lambda v: v in (281, 282))
        """
        if callable(field):
            raise TypeError("filter(field, condition): a field's name comes "
                            "first, then a function of its values")
        k = self._field(field)
        if not callable(condition):
            mask = np.asarray(condition)
            if mask.dtype != np.bool_:
                raise TypeError(f"{shown(condition)}: filter() takes a "
                                "function of a value, or a bool mask, not "
                                f"{type(condition).__name__} of {mask.dtype}")
            return self.subset(mask)
        if self._fields[k]["type"] in _SCALARS:
            values: Iterable[Any] = self.column(field)
        else:
            values = (self._value(k, i) for i in range(len(self)))
        return np.array([i for i, v in enumerate(values) if condition(v)],
                        np.int64)

    def __repr__(self) -> str:
        return f"<betonfs.Dataset {public(self.path)!r}: {len(self)} samples of " \
               f"{_listed(self._fields)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen_dataset, (self._file.fingerprint, self.path,
                                *self._transforms.given, self._storage)


def reopen_dataset(fingerprint: str, *arguments: Any) -> Dataset:
    """Open a Dataset with these arguments. It must contain the same
    samples."""
    dataset = Dataset(*arguments)
    dataset._open(fingerprint)
    return dataset
