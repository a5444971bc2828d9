# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import errno
import itertools
import json
import operator
import os
import warnings
from collections import deque
from collections.abc import (Callable, Iterable, Iterator, Mapping, Sequence,
                             Set)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _beton, _png
from ._checks import is_url, is_whole, path as checked_path, public, shown, truth, whole
from ._errors import BetonError, make
from ._processes import add_place, at, made
from ._progress import with_progress
from ._ragged import DTYPES, NDIM_MAX, packed
from ._words import known_words

# <beton/batch.h>
_TYPES = {"float": 0, "int": 1, "image": 2, "bytes": 3, "array": 4, "json": 5,
          "mask": 3, "png": 3, "frames": 3, "ragged": 3}
# Fields that are spelled (dtype, shape).
_SHAPED = ("array", "ragged")

# <beton/writer.h>
_PAGE_MIN, _PAGE_SIZE, PAGE_MAX = 2 << 20, 8 << 20, 2 << 30
_SIDE_MAX = 0xffff
_NAME_MAX = 16
_THREADS_MAX = 4096

# Names of classes, beton(5).
_NAMES_MAX, _CONTROL = 1 << 20, {*range(32), 127}

# type, dtype, shape; of "ragged" that of a row
Field = tuple[str, str | None, tuple[int, ...]]
# Samples as the writer takes them, in their order.
Values = Iterator[tuple[Any, ...]]


def _is_image(value: Any) -> bool:
    if hasattr(value, "convert") and hasattr(value, "size"):
        return True     # PIL's
    return (isinstance(value, np.ndarray) and value.dtype == np.uint8
            and value.ndim == 3 and value.shape[2] == 3)


def _field_of(name: str, value: Any) -> Field:
    """Derive the type of a field from its value in the first sample."""
    if _is_image(value):
        return "image", None, ()
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return "int", None, ()
    if isinstance(value, (float, np.floating)):
        return "float", None, ()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", None, ()
    if isinstance(value, (str, dict, list)):
        return "json", None, ()
    if hasattr(value, "__array__"):
        a = np.asarray(value)
        if not a.shape:
            raise ValueError(f"field {name!r}: an array of shape () is a "
                             "number: give fields= with \"float\" or \"int\"")
        return "array", a.dtype.str, a.shape
    raise ValueError(f"field {name!r}: {shown(value)} of "
                     f"{type(value).__name__} is no image, number, bytes, "
                     "array or JSON")


_FIELDS = ', '.join(f'"{kind}"' for kind in _TYPES if kind not in _SHAPED) + \
    ", or (dtype, shape) of an array; a shape may begin with None"


def _check_ragged(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    if dtype not in DTYPES:
        raise ValueError(f"field {name!r}: arrays of differing lengths are of "
                         "bool, integers of 8 to 64 bits and floats of 16 to "
                         f"64 bits, not of {np.dtype(dtype)}")
    if len(shape) >= NDIM_MAX:
        raise ValueError(f"field {name!r}: {1 + len(shape)} dimensions, and "
                         f"arrays of differing lengths have {NDIM_MAX} at most")


def _array_field(name: str, dtype: Any, shape: Any) -> Field:
    try:
        kind = np.dtype(dtype).str
    except TypeError:
        raise ValueError(f"field {name!r}: {shown(dtype)} is no dtype of "
                         "NumPy") from None
    sides = (shape,) if is_whole(shape) or shape is None else shape
    is_ragged = isinstance(sides, (tuple, list)) and sides[:1] in ((None,),
                                                                   [None])
    if is_ragged:
        sides = sides[1:]
    if not isinstance(sides, (tuple, list)) or \
            not all(is_whole(n) and n > 0 for n in sides):
        raise ValueError(f"field {name!r}: {shown(shape)} is no shape: a tuple "
                         "of whole numbers from 1, such as (3, 4); (None, 4) "
                         "is of arrays of differing lengths")
    own = tuple(map(operator.index, sides))
    if is_ragged:
        _check_ragged(name, kind, own)
    return "ragged" if is_ragged else "array", kind, own


def _parse_field(name: str, field: Any) -> Field:
    """"image", or an array's (dtype, shape)."""
    if isinstance(field, str) and field in _TYPES and field not in _SHAPED:
        return field, None, ()
    if isinstance(field, (tuple, list)) and len(field) == 2:
        return _array_field(name, *field)
    raise ValueError(f"field {name!r}: {shown(field)} is none of {_FIELDS}")


def _check_names(fields: Iterable[Any]) -> None:
    for name in fields:
        if not isinstance(name, str):
            raise TypeError(f"fields: {shown(name)} is no name: a field has "
                            "a text")
        if not (name.isascii() and 0 < len(name) <= _NAME_MAX):
            raise ValueError(f"fields: {shown(name)} has {len(name)} "
                             f"characters: a name has 1 to {_NAME_MAX} of "
                             "ASCII")


def _parse_fields(fields: Any) -> dict[str, Field]:
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields={shown(fields)}: a dict of names to "
                        + _FIELDS)
    _check_names(fields)
    return {name: _parse_field(name, field) for name, field in fields.items()}


# --- values ---

def _one(value: Any) -> Any:
    """The number in an array or a tensor that has one element."""
    return value.item() if hasattr(value, "item") else value


def _integer(value: Any) -> int:
    """The value as an integer of 64 bits; no fraction is cut off."""
    try:
        one = _one(value)
        if isinstance(one, float) and one.is_integer():
            one = int(one)
        number = operator.index(one)
    except (TypeError, ValueError):
        raise ValueError(f"{shown(value)} is not an integer; round it, or make "
                         "the field \"float\"") from None
    if not -1 << 63 <= number < 1 << 63:
        raise ValueError(f"{value!r} is not in the 64 bits of an int field")
    return number


def _real(value: Any) -> float:
    """The value as a floating-point number; no whole one is rounded."""
    try:
        one = _one(value)
        real = float(one)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{shown(value)} is no floating-point number") \
            from None
    if is_whole(one) and int(real) != int(one):
        raise ValueError(f"{one} is no number of 64 bits of a \"float\" field; "
                         "make the field \"int\"")
    return real


def _bytes(value: Any) -> bytes:
    """The bytes of a value that has bytes: bytes(5) would be five zeros."""
    if isinstance(value, str):
        raise ValueError(f"{shown(value)} is text, and no bytes: store "
                         "text.encode(), or make the field \"json\"")
    try:
        return memoryview(value).tobytes()
    except (TypeError, ValueError, BufferError):
        raise ValueError(f"{shown(value)} of {type(value).__name__} is no "
                         "bytes; bytes(...) makes them of whole numbers") \
            from None


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError) as e:
        hint = "; store its tolist(), or make the field (dtype, shape)" \
            if "ndarray" in str(e) else ""
        raise ValueError(f"no JSON: {e}{hint}") from None


def _differs(given: NDArray[Any], stored: NDArray[Any]) -> NDArray[Any]:
    """Where a conversion to a narrower type changed a number."""
    if stored.dtype.kind not in "biu":      # it may only lose digits
        return np.asarray((given.imag != 0)
                          | np.isfinite(given) & ~np.isfinite(stored))
    return np.asarray(stored != given)


def _sizes_hint(a: NDArray[Any]) -> str:
    if a.ndim == 2 and a.dtype.kind in "bu":
        return "; a \"mask\" field has classes of any height and width"
    return ""


def _array(value: Any, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The value as an array of the field's type, without a number lost."""
    try:
        given = np.asarray(value)
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = np.ascontiguousarray(given, dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{shown(value)} is no array of {np.dtype(dtype)} "
                         f"{shape}") from None
    if a.shape != shape:
        # It makes an axis for an array of none.
        a = a.reshape(shape) if shape == given.shape else a
    if a.shape != shape:
        raise ValueError(f"an array of {given.shape}, not {shape}"
                         + _sizes_hint(given))
    if given.dtype.kind in "biufc" and a.dtype.kind in "biuf" \
            and not np.can_cast(given.dtype, a.dtype, "safe"):
        lost = given[_differs(given, a)]
        if lost.size:
            raise ValueError(f"{lost.flat[0]} of an array of {given.dtype} "
                             f"is no value of {a.dtype}; convert the array")
    return a


def _rows(value: Any, dtype: str, row: tuple[int, ...]) -> NDArray[Any]:
    """The value as an array of so many rows as it has."""
    want = ", ".join(map(str, (None, *row)))
    try:
        given = tuple(np.shape(value))
    except ValueError:
        raise ValueError(f"{shown(value)} is no array of ({want})") from None
    if given == (0,):           # an empty list
        return np.empty((0, *row), dtype)
    if len(given) != 1 + len(row) or given[1:] != row:
        raise ValueError(f"an array of {given}, not ({want})")
    return _array(value, dtype, given)


# --- images ---

def _upper_8(image: Any) -> NDArray[Any]:
    """The pixels of an image of 16 bits, in 8, as mkfs.beton stores them."""
    pixels = np.asarray(image)
    if pixels.min() < 0 or pixels.max() > 0xffff:
        raise ValueError(f"an image of mode {image.mode} has values from "
                         f"{pixels.min()} to {pixels.max()}, more than 16 "
                         "bits; scale it to 8 bits and convert it to mode L")
    return (pixels >> 8).astype(np.uint8)


def _whole_levels(image: Any) -> NDArray[Any]:
    """The pixels of an image of floats that are levels of 8 bits."""
    pixels = np.asarray(image)
    with np.errstate(invalid="ignore"):
        levels = pixels.astype(np.uint8)
    if not (levels == pixels).all():
        raise ValueError(f"an image of mode F has values from {pixels.min()} "
                         f"to {pixels.max()} that are not integers from 0 to "
                         "255; scale it and convert it to mode L")
    return levels


def _rgb(image: Any) -> Any:
    """The pixels of a PIL image; its own conversion limits values to 255."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        gray = _upper_8(image)
    elif image.mode == "F":
        gray = _whole_levels(image)
    else:
        return image.convert("RGB")
    return np.repeat(gray[..., None], 3, axis=2)


def _axes_hint(a: NDArray[Any]) -> str:
    if a.ndim == 3 and a.shape[0] == 3:
        return "; transpose(1, 2, 0) puts the channels last"
    if a.ndim == 2 or a.ndim == 3 and a.shape[2] == 1:
        return "; an array field, as (\"uint8\", shape), keeps one channel"
    return ""


def _pixels(value: Any) -> NDArray[Any]:
    """The pixels of an image, uint8 of (height, width, 3)."""
    if isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{shown(value)} is a name, and no image: give the "
                         "file's bytes, or PIL.Image.open(name)")
    if hasattr(value, "convert"):
        value = _rgb(value)
    if not (hasattr(value, "__array__")
            or hasattr(value, "__array_interface__")):
        raise ValueError(f"{shown(value)} is no image: one is PIL's, a uint8 "
                         "array of (height, width, 3), or the bytes of a JPEG")
    a = np.ascontiguousarray(value)
    if a.dtype != np.uint8 or a.ndim != 3 or a.shape[2] != 3:
        raise ValueError(f"an image of {a.dtype} {a.shape} is not uint8 "
                         "of (height, width, 3)" + _axes_hint(a))
    if not all(0 < side <= _SIDE_MAX for side in a.shape[:2]):
        raise ValueError(f"an image of {a.shape} has a side that is not from "
                         f"1 to {_SIDE_MAX}")
    return a


def _kept(jpeg: bytes) -> Any:
    try:
        return _beton.keep(jpeg)
    except ValueError as e:
        if "cut off" in str(e):
            raise
        raise ValueError(f"{e}; PIL.Image.open() decodes other formats") \
            from None


class _Encoder:
    """Turns samples into what the writer appends; for any thread or process."""

    def __init__(self, fields: dict[str, Field], mode: str, quality: int,
                 max_resolution: int, is_complete: bool,
                 num_classes: Mapping[str, int]) -> None:
        if mode not in ("jpg", "raw"):
            raise ValueError(f"mode={mode!r}: there are jpg, raw")
        self.fields = fields
        self.raw = mode == "raw"
        self.quality = whole("quality", quality, 1, 100)
        self.max_resolution = whole("max_resolution", max_resolution, 0,
                                    _SIDE_MAX)
        # Whether the fields are all that a sample may have.
        self.is_complete = is_complete
        # Numbers of classes of the fields whose classes have names.
        self.num_classes = num_classes

    def _image(self, value: Any) -> Any:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _kept(bytes(value))
        a = _pixels(value)
        return _beton.encode(a, a.shape[1], a.shape[0], self.raw, self.quality,
                             self.max_resolution)

    def _frame(self, value: Any) -> bytes:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        if self.raw:
            return _png.stored(_pixels(value), False)
        image = self._image(value)
        return bytes(image[0])

    def _frames(self, value: Any) -> bytes:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ValueError(f"{shown(value)} is no list of images")
        return _png.joined([self._frame(one) for one in value])

    def _value(self, field: Field, value: Any) -> Any:
        kind, dtype, shape = field
        if kind == "image":
            return self._image(value)
        if kind == "int":
            return _integer(value)
        if kind == "float":
            return _real(value)
        if kind == "json":
            return _json(value)
        if kind == "frames":
            return self._frames(value)
        if kind in ("mask", "png"):
            return _png.stored(value, kind == "mask")
        if kind == "array":
            assert dtype is not None
            return _array(value, dtype, shape).reshape(-1).view(np.uint8)
        if kind == "ragged":
            assert dtype is not None
            return packed(_rows(value, dtype, shape))
        return _bytes(value)

    def _of_mapping(self, number: int, sample: Mapping[str, Any]) -> list[Any]:
        for name in self.fields:
            if name not in sample:
                raise ValueError(
                    f"sample {number}: it has no field {name!r}; it has "
                    + (", ".join(map(str, sample)) or "nothing"))
        if self.is_complete and len(sample) != len(self.fields):
            more = next(name for name in sample if name not in self.fields)
            raise ValueError(
                f"sample {number}: it has {more!r}, and the first sample has "
                + ", ".join(self.fields) + "; fields= chooses those to store")
        return [sample[name] for name in self.fields]

    def _values(self, number: int, sample: Any) -> list[Any]:
        """The values of a sample, in the order of the fields."""
        if isinstance(sample, Mapping):
            return self._of_mapping(number, sample)
        if isinstance(sample, (str, bytes)) or not isinstance(sample, Iterable):
            raise ValueError(f"sample {number}: {shown(sample)} is no dict by "
                             "field, and no tuple of "
                             + ", ".join(self.fields))
        values = list(sample)
        if len(values) != len(self.fields):
            raise ValueError(f"sample {number}: {len(values)} values for "
                             f"{len(self.fields)} fields: "
                             + ", ".join(self.fields))
        return values

    def _check_class(self, name: str, value: Any) -> None:
        number = self.num_classes.get(name, 0)
        if number and value >= number:
            raise ValueError(
                f"{value}, and there are names of {number} classes, from 0: "
                "name all in classes=, or give classes=[] for none")

    def sample(self, number: int, sample: Any) -> tuple[Any, ...]:
        out = []
        for (name, field), value in zip(self.fields.items(),
                                        self._values(number, sample)):
            try:
                out.append(self._value(field, value))
                self._check_class(name, out[-1])
            except Exception as e:
                place = f"sample {number} field {name}"
                # Classes of a user stay, so that `except` finds them.
                if type(e) in (ValueError, TypeError):
                    raise ValueError(f"{place}: {e}") from e
                add_place(e, place)
                raise
        return tuple(out)


def counted(samples: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """As enumerate(), and an exception of the iterable has the number of the
    sample that it did not give."""
    rest = iter(samples)
    for i in itertools.count():
        try:
            sample = next(rest)
        except StopIteration:
            return
        except Exception as e:
            add_place(e, f"sample {i}")
            raise
        yield i, sample


@contextlib.contextmanager
def given(encoder: Any, samples: Iterator[Any],
          workers: int) -> Iterator[Values]:
    """Encode samples that this process takes, one after the other. Threads
    encode the following samples meanwhile, without the GIL."""
    def encode(i: int, sample: Any) -> Any:
        with at(i):
            return encoder.sample(i, sample)
    if workers < 2:
        yield (encode(i, sample) for i, sample in counted(samples))
        return
    ahead: deque[Future[Any]] = deque()

    def encoded(pool: ThreadPoolExecutor) -> Values:
        for i, sample in counted(samples):
            ahead.append(pool.submit(encode, i, sample))
            if len(ahead) >= 4 * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    with ThreadPoolExecutor(workers) as pool:
        try:
            yield encoded(pool)
        finally:
            for future in ahead:
                future.cancel()


def indexed(encoder: Any, samples: Any, numbers: Sequence[int],
            workers: int) -> AbstractContextManager[Values]:
    """Those of these numbers, by processes."""
    return made(lambda k: encoder.sample(k, samples[numbers[k]]), len(numbers),
                workers)


def frame_encoder(raw: bool, quality: int,
                  max_resolution: int) -> Callable[[Any], bytes]:
    """A function that encodes one image of a "frames" field: as JPEG, or as PNG
    if `raw`."""
    return _Encoder({}, "raw" if raw else "jpg", quality, max_resolution, False,
                    {})._frame


def refuse_existing(path: str | os.PathLike[str], call: str = "write") -> None:
    """Raise FileExistsError if there is something at the path, or a dataset at
    the URL. The writer itself replaces no other object."""
    text = os.fspath(path)
    if is_url(text):
        try:
            _beton.Dataset(text)
        except OSError:
            return
    elif not os.path.lexists(text):
        return
    raise make(errno.EEXIST, f"{public(text)} exists; {call}() "
               "replaces it with overwrite=True")


def _too_large(number: int, values: tuple[Any, ...], page_size: int) -> str:
    """The message for a sample that does not fit into a page."""
    stored = [v[0] if isinstance(v, tuple) else v for v in values]
    sizes = [memoryview(v).nbytes for v in stored
             if not isinstance(v, (int, float))]
    page = _PAGE_MIN
    while page < sum(sizes):
        page *= 2
    cure = f"write it with page_size={page}" if page <= PAGE_MAX else \
        f"page_size= is at most {PAGE_MAX}"
    return (f"sample {number}: its {sum(sizes)} bytes are larger than a page "
            f"of {page_size or _PAGE_SIZE}; {cure}")


def _append(writer: _beton.Writer, value: tuple[Any, ...], number: int,
            page_size: int) -> None:
    try:
        writer.append(value)
    except BetonError as e:
        text = _too_large(number, value, page_size) \
            if e.errno == errno.EMSGSIZE else f"sample {number}: {e.strerror}"
        raise type(e)(e.errno, text) from None


def fill(writer: _beton.Writer, values: AbstractContextManager[Values], n: int,
         progress: bool, page_size: int,
         new: str | os.PathLike[str] | None = None) -> int:
    """Complete the file, or leave none, and return the number of samples.

    `new` is the path of a file that must not exist at the end.
    """
    written = 0
    try:
        # Processes begin before the bar has a thread.
        with values as encoded:
            for value in with_progress(encoded, n, progress):
                if written == n:
                    raise ValueError(f"there are more than {n} samples: give "
                                     "length= the most that may come")
                with at(written):
                    _append(writer, value, written, page_size)
                written += 1
        if new is not None:
            refuse_existing(new)
        writer.finish()
    except BaseException:
        writer.abort()
        raise
    return written


def _fields_of(sample: Any) -> dict[str, Field]:
    if not isinstance(sample, Mapping):
        raise ValueError(f"sample 0: {shown(sample)} is no dict: fields= must "
                         "be given")
    _check_names(sample)
    return {name: _field_of(name, value) for name, value in sample.items()}


def _found_classes(samples: Any, label: str) -> Sequence[str] | None:
    """Those of a dataset or, below Subsets, of the one that they are of. A
    function that makes other labels of its own leaves the names without
    meaning. Datasets of Hugging Face have them by column."""
    while samples is not None:
        if getattr(samples, "target_transform", None) is not None:
            return None
        columns = getattr(samples, "features", None)
        found = getattr(columns.get(label), "names", None) \
            if isinstance(columns, Mapping) \
            else getattr(samples, "classes", None)
        if isinstance(found, (list, tuple)):
            return found if found and all(
                isinstance(name, str) for name in found) else None
        samples = getattr(samples, "dataset", None)
    return None


def _encoded(names: Sequence[str]) -> tuple[tuple[bytes, ...]]:
    if isinstance(names, str):
        raise ValueError(f"classes: a list of names, not one text {names!r}")
    if isinstance(names, (Mapping, Set)) or not isinstance(names, Iterable):
        raise TypeError(f"classes={shown(names)}: a list of names in the order "
                        "of their labels, or a dict of such lists by field")
    given = list(names)
    for name in given:
        if not isinstance(name, str) or "\0" in name:
            raise ValueError(f"classes: {shown(name)} is no name of a class")
    return tuple(name.encode("utf-8", "replace") for name in given),


def storable(names: Sequence[bytes]) -> bool:
    """Whether a dataset can hold these names."""
    return sum(len(name) + 1 for name in names) <= _NAMES_MAX and all(
        name and not set(name) & _CONTROL for name in names)


def names_of_classes(
        classes: Sequence[str] | Mapping[str, Sequence[str]] | None,
        samples: Any, labels: Sequence[str]) -> dict[str, Any]:
    """The argument of a field of _beton.Writer for the names of its classes;
    `labels` are the "int" fields."""
    if isinstance(classes, Mapping):
        for name in classes:
            if name not in labels:
                raise ValueError(f"classes: {name!r} is no \"int\" field; "
                                 f"there are {', '.join(labels) or 'none'}")
        return {name: _encoded(own) for name, own in classes.items()}
    if classes is not None and len(labels) != 1:
        raise ValueError(f"classes: there are {len(labels)} \"int\" fields; "
                         "give a dict of names by field")
    if classes is not None:
        return {labels[0]: _encoded(classes)}
    found = _found_classes(samples, labels[0]) if len(labels) == 1 else None
    return {} if found is None else {labels[0]: _encoded(found)}


def _count(samples: Any, length: int | None) -> int | None:
    """How many samples come at most; None: of an iterable, and not given."""
    if isinstance(samples, (str, bytes, os.PathLike)) or not (
            isinstance(samples, Iterable) or hasattr(samples, "__getitem__")):
        raise TypeError(f"samples={shown(samples)}: a list of samples, a "
                        "dataset with len() and [i], or an iterable")
    if isinstance(samples, Mapping):
        raise TypeError(f"samples: a dict of {', '.join(map(str, samples))}; "
                        "write() takes a list of samples, each a dict by field")
    if length is not None:
        length = whole("length", length, 0, 1 << 40)
    if hasattr(samples, "__getitem__") and hasattr(samples, "__len__"):
        own = len(samples)
        return own if length is None else min(length, own)
    return length


def _stored(item: tuple[str, Field]) -> tuple[str, Field]:
    """A field as the file has it: arrays of differing lengths are bytes."""
    name, (kind, dtype, shape) = item
    return (name, ("bytes", None, ())) if kind == "ragged" else \
        (name, (kind, dtype, shape))


@known_words("write")
def write(
    path: str | os.PathLike[str],
    samples: Any,
    fields: Mapping[str, Any] | None = None,
    *,
    mode: str = "jpg",
    quality: int = 90,
    max_resolution: int = 0,
    classes: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    page_size: int = 0,
    length: int | None = None,
    workers: int = 1,
    progress: bool = False,
    overwrite: bool = False,
    append: bool = False,
) -> int:
    """Write a dataset, and return the number of samples that were written. The
    file, or the object of a URL such as "s3://bucket/train.beton", appears
    under its name when it is complete.

    samples
        A sequence with ``len()`` and ``[i]``, or an iterable. For an iterable,
        set `length`, an upper limit of the number of samples. A sample is a
        dict by field, or a tuple in the order of the fields.
    fields
        A dict of names to types: "image", "int", "float", "bytes", "json", or
        (dtype, shape) for arrays (default: the types of the first sample, which
        must be a dict).

        If a shape begins with None, the arrays have differing lengths, for
        example the boxes of a sample, ("float32", (None, 4)). FFCV reads them
        as bytes.

        "mask" stores whole numbers of (height, width), or PIL images of mode L,
        P, 1 or I;16, as PNG in a bytes field, without loss and of any size.
        "png" does the same for images of 8 or 16 bits, also (height, width, 3).
        "frames" stores a list of images as JPEGs, or as PNGs if mode="raw". If
        the images are bytes of JPEG or PNG files, they stay unchanged.
    mode, quality, max_resolution
        "jpg" stores images as JPEGs of this quality, and "raw" as pixels
        (default: "jpg", 90). If max_resolution is above 0, images whose longer
        side exceeds it are made smaller, as in FFCV. Images are PIL images or
        uint8 arrays of (height, width, 3). The bytes of a JPEG file stay
        unchanged. PIL images of 16 bits keep their upper 8 bits.
    classes
        Names of the classes by label: a list for the only "int" field, or a
        dict of lists by field (default: ``samples.classes`` of a torchvision
        dataset, or the names in the column of a Hugging Face dataset). A label
        without a name is an error. FFCV ignores names; Dataset.classes has
        them.
    page_size
        Size of a page in bytes, a power of two from 2 MiB (default: 0, which
        means 8 MiB). No sample may be larger.
    length
        Upper limit of the number of samples, if `samples` is an iterable.
    workers
        Number of processes that get and encode the samples of a sequence
        (default: 1, the calling process). Samples of an iterable are taken in
        the calling thread, and so many threads encode them. The file is the
        same for any number.

        The processes are forked, as those of torch's DataLoader. They share the
        files that the dataset opened before, and their positions, so open files
        in ``[i]``. The processes are daemons, so they cannot start processes
        themselves. If write() runs in such a process, it starts none.

        If ``[i]`` draws from the global generators of Python, NumPy or torch,
        its numbers depend only on i and on the generators' state when write()
        began, for any `workers`. If the dataset has a generator of its own,
        each process has a copy that gives the same numbers. Therefore make it
        from i in ``[i]``.
    progress
        Show a progress bar (default: False). If tqdm is installed, it draws
        the bar, also in notebooks. Otherwise the bar needs a terminal.
    overwrite
        Replace an existing file (default: False, raise FileExistsError).
    append
        Add the samples to the end of the dataset at `path`, which exists
        (default: False). Its fields must be those of the samples. If a field
        has class names, known classes keep their numbers, and new classes
        follow. A new file with the samples of both replaces the old one when
        it is complete.

    Integers are stored as they are: for an "int" field, and for an array of
    integers, write() refuses a number with a fraction or out of range.

    If a value cannot be written, write() raises a ValueError with the number of
    the sample. If the file cannot be written, it raises a BetonError, which is
    an OSError. An exception of the dataset keeps its class, also from another
    process, and a note contains the number of the sample:
    ``e.__notes__``, which tracebacks show.

        betonfs.write("train.beton", dataset, mode="raw", workers=8,
                      fields={"image": "image", "label": "int"})
        betonfs.write("train.beton", more, append=True,
                      fields={"image": "image", "label": "int"})
    """
    path = checked_path("path", path, "the file to write")
    append = truth("append", append)
    overwrite = truth("overwrite", overwrite) or append
    progress = truth("progress", progress)
    workers = whole("workers", workers, 0, _THREADS_MAX)
    page_size = whole("page_size", page_size, 0, PAGE_MAX)
    if not overwrite:
        refuse_existing(path)
    head: list[Any] = []
    rest: Iterator[Any] = iter(())
    by_number = hasattr(samples, "__getitem__") and hasattr(samples, "__len__")
    most = _count(samples, length)
    if most is None:
        raise ValueError("an iterable needs length=, the most it may give")
    n = most
    if not by_number:
        rest = iter(samples)
        head = [sample for _, sample in itertools.islice(counted(rest), 1)]
        n = n if head else 0
    if fields is not None:
        known = _parse_fields(fields)
    elif not n:
        raise ValueError("without samples, fields= must be given")
    elif by_number:
        # By a process too: what a sample opens is not to be shared.
        with made(lambda i: _fields_of(samples[i]), 1, workers) as found:
            known, = found
    else:
        with at(0):
            known = _fields_of(head[0])
    names = names_of_classes(classes, samples, [
        name for name, field in known.items() if field[0] == "int"])
    encoder = _Encoder(known, mode, quality, max_resolution, fields is None,
                       {name: len(own) for name, (own,) in names.items()})
    writer = _beton.Writer(
        path, tuple((k, _TYPES[t], d, s, *names.get(k, ()))
                    for k, (t, d, s) in map(_stored, known.items())), n,
        page_size, append)
    return fill(writer, indexed(encoder, samples, range(n), workers)
                if by_number else
                given(encoder, itertools.chain(head, rest), workers), n,
                progress, page_size, None if overwrite else path)
