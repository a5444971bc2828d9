# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import json
import operator
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from . import _beton
from ._errors import make

_T = TypeVar("_T")
_SCALARS = ("int", "float")
_ARRAYS = ("ndarray", "torch_tensor")


def _told(path: str | os.PathLike[str], name: str) -> str:
    """A text of a mount's about its dataset."""
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


def _open(path: str) -> _beton.Dataset:
    """A FILE, or that of a dataset on a MOUNT: there, samples are files
    already."""
    if not os.path.isdir(path):
        return _beton.Dataset(path)
    options = _told(path, ".betonfs/options")
    of, = re.findall(r"^dataset=(.*)$", options, re.M)[:1] or [""]
    # Control characters and backslashes are written as in /proc/mounts.
    of = re.sub(r"\\([0-3][0-7]{2})", lambda m: chr(int(m[1], 8)), of)
    told = json.loads(_told(path, "dataset.json"))
    file = _beton.Dataset(of)
    if (os.path.getsize(of), file.samples,
            [f["name"] for f in file.fields()]) != (
                told["file_size"], told["samples"],
                [f["name"] for f in told["fields"]]):
        raise make(errno.ESTALE, f"{path}: {of} is not what is mounted")
    return file


def _fields(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    if not os.path.isdir(path):
        return _beton.Dataset(path).fields()
    fields: list[dict[str, Any]] = json.loads(
        _told(path, "dataset.json"))["fields"]
    return fields


def _in_thread(work: Callable[[], _T]) -> _T:
    """Call `work` in a thread that Ctrl-C abandons, for a mount whose daemon does
    not answer holds the thread that asks."""
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


def field_facts(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return facts of each field: `name`, `stem`, which file names and outputs
    have, `type`, and why it is `unusable`, if it is.

    `path` is a FILE, or a dataset on a MOUNT.
    """
    return _in_thread(lambda: _fields(path))


class Dataset(Sequence[dict[str, Any]]):
    """Single samples of a ``.beton`` file, in any order, without a loader. Of a
    dataset on a mount it reads the file that is mounted, which must be there for
    this process too.

    ``dataset[i]`` is a dict of field names to values: int, float, images as
    uint8 arrays of (height, width, 3), arrays as they were written, bytes, and
    JSON parsed. A slice is a list of those.

    Opens in no time, whatever the size of the file. May be used by many threads
    at once, and in children of fork(); pickles by its path; so
    torch.utils.data.DataLoader can have it with workers.

    Raises BetonError, an OSError, if it cannot be read or is damaged, and
    IndexError for samples that there are not.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._open()
        self._index: dict[str, int] = {}
        for i, field in enumerate(self._fields):
            self._index.setdefault(field["name"], i)
        for i, field in enumerate(self._fields):
            self._index[field["stem"]] = i

    def _open(self) -> None:
        self._file = _open(self.path)
        self._pid = os.getpid()
        self._fields = self._file.fields()

    @property
    def _core(self) -> _beton.Dataset:
        # A child of fork() has none of the threads that read.
        if self._pid != os.getpid():
            self._open()
        return self._file

    # --- what there is ---

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """name -> `type`, `dtype`, `shape`, and why it is `unusable`, if."""
        return {f["stem"]: dict(f) for f in self._fields}

    def __len__(self) -> int:
        return self._core.samples

    def _field(self, name: str) -> int:
        try:
            return self._index[name]
        except KeyError:
            raise KeyError(f"{self.path} has no field {name!r}; there are "
                           + ", ".join(self.fields)) from None

    def _sample(self, i: Any) -> int:
        n = operator.index(i)
        if not -len(self) <= n < len(self):
            raise IndexError(f"sample {n} of {len(self)}")
        return n % len(self)

    # --- samples ---

    def _value(self, k: int, i: int) -> Any:
        field = self._fields[k]
        kind = field["type"]
        if kind in _SCALARS:
            return self._core.value(k, i)
        if kind == "rgb_image":
            height, width, _ = self._core.value(k, i)
            return self._fill(k, i, np.empty((height, width, 3), np.uint8))
        if kind in _ARRAYS:
            return self._fill(k, i, np.empty(field["shape"], field["dtype"]))
        raw = self._core.read(k, i)
        return json.loads(raw) if kind == "json" else raw

    def _fill(self, k: int, i: int, into: NDArray[Any]) -> NDArray[Any]:
        # As bytes, for there are dtypes that no buffer can tell.
        self._core.fill(k, i, into.reshape(-1).view(np.uint8))
        return into

    @overload
    def __getitem__(self, i: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, i: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        n = self._sample(i)
        return {field["stem"]: self._value(k, n)
                for k, field in enumerate(self._fields)
                if not field["unusable"]}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def get(self, i: int, field: str) -> Any:
        """One field of one sample."""
        return self._value(self._field(field), self._sample(i))

    def raw(self, i: int, field: str) -> bytes:
        """The bytes of a value as they are stored: a JPEG, raw pixels, an array
        in C order, JSON."""
        k = self._field(field)
        if self._fields[k]["type"] in _SCALARS:
            raise ValueError(f"{field} is a number")
        return self._core.read(k, self._sample(i))

    def get_batch(self, indices: Iterable[int],
                  fields: Sequence[str] | None = None) -> dict[str, Any]:
        """Samples in this order, a dict of field names to arrays of shape
        (samples, ...); images of different sizes, bytes and JSON are lists."""
        numbers = [self._sample(i) for i in indices]
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
        """All values of an int or float field."""
        k = self._field(field)
        if self._fields[k]["type"] not in _SCALARS:
            raise ValueError(f"{field} is no number")
        out = np.empty(len(self), self._fields[k]["dtype"])
        self._core.column(k, 0, out)
        return out

    def filter(self, field: str,
               condition: Callable[[Any], Any]) -> NDArray[np.int64]:
        """Numbers of the samples for whose value of a field the condition is
        true, for ``Loader(subset=...)`` and ``get_batch()``."""
        k = self._field(field)
        if self._fields[k]["type"] in _SCALARS:
            values: Iterable[Any] = self.column(field)
        else:
            values = (self._value(k, i) for i in range(len(self)))
        return np.array([i for i, v in enumerate(values) if condition(v)],
                        np.int64)

    def __repr__(self) -> str:
        fields = ", ".join(f"{f['stem']} ({f['type']})" for f in self._fields)
        return f"<betonfs.Dataset {self.path!r}: {len(self)} samples of " \
               f"{fields}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self.path,)
