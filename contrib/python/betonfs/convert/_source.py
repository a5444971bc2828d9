# SPDX-License-Identifier: Apache-2.0
"""Sources of samples for mkfs.beton, which a Python library reads."""
from __future__ import annotations

import importlib
import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _png, _ragged
from ._block import Bytes, Ints, Packed, Pixels, Reals

# Characters of a library's error.
_REASON_MAX = 300
# Rows whose values decide the type of a column, if its own type does not.
LOOK_AT = 100
# Bytes of a block, about.
BLOCK_BYTES = 4 << 20
_BLOCK_ROWS = 4096


class Mistake(Exception):
    """The reason why a source cannot be read, in one line."""


class Refused(ValueError):
    """The reason why the value of one sample cannot be read."""


@dataclass(frozen=True)
class Column:
    """A value that every sample has, as struct input_field of mkfs.beton."""
    name: str
    # image, int, float, text, bytes, json or array
    type: str = "bytes"
    # Arrays only.
    dtype: str = ""
    shape: tuple[int, ...] = ()
    # Names of the classes, if it is the number of a class.
    classes: Sequence[str] = ()
    # Why no field can hold it, with what to do.
    refused: str = ""
    # Types that Source.cast() can make of it.
    types: Sequence[str] = ()
    # Whether arrays are PyTorch's.
    tensor: bool = False
    # For the source's own use.
    key: Any = None
    # Makes the values out of those that the library returns.
    convert: Callable[[Any], Any] | None = field(default=None, compare=False)

    def described(self, index: int) -> dict[str, Any]:
        return {"index": index, "name": self.name, "type": self.type,
                "dtype": self.dtype, "shape": list(self.shape),
                "classes": list(self.classes), "refused": self.refused,
                "types": "|".join(self.types), "tensor": self.tensor}


@dataclass(frozen=True)
class Form:
    """All that a column must share in several files, to mean the same there."""
    text: str
    # These may differ: mkfs.beton unites them by name.
    classes: Sequence[str] = ()


@dataclass(frozen=True)
class Options:
    """Options of mkfs.beton that a source needs."""
    # Extensions of the images that it reads itself.
    pictures: str = ""
    split: str | None = None
    mode: str = "keep"
    quality: int = 90
    max_resolution: int = 0


class Source:
    """A source of samples, which are read in ascending order of their numbers,
    though some may be left out. Subclasses set these attributes."""

    title: str              # "Parquet files"
    unit = "row"            # what messages call a sample
    columns: list[Column]
    # Path, and number of the first sample.
    parts: Sequence[tuple[str, int]] = ()
    # The forms of the columns of each part by name, unless the source itself
    # has compared them.
    forms: Sequence[Mapping[str, Form]] = ()
    ignored = 0             # files or entries that are no samples
    keep = False            # images stay as they are by default
    parallel = False        # processes read faster than one
    sample_bytes = 1 << 16  # of a sample, about

    def __len__(self) -> int:
        raise NotImplementedError

    def read(self, columns: Sequence[Column],
             rows: Sequence[int]) -> tuple[list[Packed], dict[int, str]]:
        """The values of ascending rows, by column, and for each row that
        cannot be read, by its place in `rows`, the reason."""
        raise NotImplementedError

    def cast(self, column: Column, kind: str) -> Column:
        """The column with values of a type in column.types."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove what the source has made."""

    def described(self) -> dict[str, Any]:
        """For mkfs.beton (schema.h)."""
        rows = max(1, min(_BLOCK_ROWS, BLOCK_BYTES // max(1, self.sample_bytes)))
        return {"title": self.title, "unit": self.unit, "samples": len(self),
                "rows": rows, "ignored": self.ignored, "keep": self.keep,
                "lanes": self.parallel, "parts": list(self.parts),
                "forms": self._described_forms(),
                "fields": [column.described(i)
                           for i, column in enumerate(self.columns)]}


    def _described_forms(self) -> list[dict[str, Any]]:
        if all(form == self.forms[0] for form in self.forms):
            return []
        return [{name: {"form": own.text, "classes": list(own.classes)}
                 for name, own in form.items()} for form in self.forms]


class RowSource(Source):
    """A source whose library returns one sample at a time."""

    def row(self, columns: Sequence[Column], number: int) -> Sequence[Any]:
        """The values of a sample. May raise Refused."""
        raise NotImplementedError

    def read(self, columns: Sequence[Column],
             rows: Sequence[int]) -> tuple[list[Packed], dict[int, str]]:
        errors: dict[int, str] = {}
        values: list[list[Any]] = [[] for _ in columns]
        for i, number in enumerate(rows):
            try:
                row = self.row(columns, number)
            except Exception as e:
                errors[i] = reason_of(e)
                row = [None] * len(columns)
            for own, value in zip(values, row):
                own.append(value)
        return [packed(column, own, errors)
                for column, own in zip(columns, values)], errors


# --- values ---

def shortened(text: str) -> str:
    """An error of a library in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _REASON_MAX else line[:_REASON_MAX - 3] + "..."


def reason_of(e: BaseException) -> str:
    text = shortened(str(e))
    return text if isinstance(e, Refused | Mistake) and text else \
        f"{type(e).__name__}: {text}"


def _integer(value: Any) -> int:
    number = operator.index(value.item() if hasattr(value, "item") else value)
    if not -1 << 63 <= number < 1 << 63:
        raise Refused(f"{number} is too large for an integer field")
    return number


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _array(column: Column, value: Any) -> bytes:
    a = np.asarray(value)
    if a.shape != column.shape:
        raise Refused(f"an array of {a.shape}, and not {column.shape} as in "
                      "the first sample")
    if a.dtype.newbyteorder("<") != np.dtype(column.dtype):
        raise Refused(f"an array of {a.dtype}, and not of "
                      f"{np.dtype(column.dtype)} as in the first sample")
    return np.ascontiguousarray(a, column.dtype).tobytes()


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


_OF_TYPE: dict[str, Callable[[Column, Any], Any]] = {
    "int": lambda column, value: _integer(value),
    "float": lambda column, value: float(value),
    "text": lambda column, value: _text(value),
    "bytes": lambda column, value: bytes(value),
    "json": lambda column, value: value if isinstance(value, bytes)
    else dumped(value),
    "array": _array,
}
_EMPTY: dict[str, Any] = {"int": 0, "float": 0.0}
_MODES = {"L": 1, "RGB": 3, "RGBA": 4}


def pixels(image: Any) -> tuple[bytes, tuple[int, int, int]]:
    """Pixels of a PIL image or a uint8 array: bytes, width, height, channels.
    Other modes become RGB as in mkfs.beton: 16 bits keep the upper 8."""
    if hasattr(image, "convert"):
        if image.mode not in _MODES:
            from .._writer import _rgb
            image = _rgb(image)
    a = np.ascontiguousarray(image)
    if a.dtype != np.uint8 or a.ndim not in (2, 3) or \
            a.ndim == 3 and a.shape[2] not in (1, 3, 4):
        raise Refused(f"an array of {a.dtype} {a.shape} is no image")
    channels = a.shape[2] if a.ndim == 3 else 1
    return a.tobytes(), (a.shape[1], a.shape[0], channels)


_PIXELS_MAX = 1 << 30     # of picture.h


def picture(file: Any) -> tuple[bytes, tuple[int, int, int]]:
    """Decode an image file by Pillow: upright RGB pixels of the first frame."""
    pil = library("PIL.Image", "pillow", "an image of this format")
    pil.MAX_IMAGE_PIXELS = None
    try:
        with pil.open(file) as image:
            if image.width * image.height > _PIXELS_MAX:
                raise Mistake(f"{image.width} x {image.height} pixels; an image "
                              f"may have {_PIXELS_MAX}")
            upright = library("PIL.ImageOps", "pillow", "an image").\
                exif_transpose(image)
            data, size = pixels(upright if upright.mode.startswith(("I", "F"))
                                else upright.convert("RGB"))
    except Mistake:
        raise
    except Exception as e:
        raise Mistake(shortened(str(e)) or type(e).__name__) from None
    return data, size


def packed(column: Column, values: Sequence[Any],
           errors: dict[int, str]) -> Packed:
    """Values of Python in the form of a block. A value that is none of the
    column's adds its reason to `errors`; rows that are there have no value."""
    if column.type == "image":
        return _packed_images(column, values, errors)
    one = _OF_TYPE[column.type]
    found: list[Any] = []
    for i, value in enumerate(values):
        made = _EMPTY.get(column.type, b"")
        if i not in errors:
            try:
                if value is None:
                    raise Refused("a null")
                if column.convert:
                    value = column.convert(value)
                made = one(column, value)
            except Exception as e:
                errors[i] = f"column '{column.name}': {reason_of(e)}"
        found.append(made)
    if column.type == "int":
        return Ints(np.array(found, np.int64))
    if column.type == "float":
        return Reals(np.array(found, np.float64))
    return Bytes.of(found)


def _packed_images(column: Column, values: Sequence[Any],
                   errors: dict[int, str]) -> Packed:
    found: list[bytes] = []
    sizes = np.zeros((len(values), 3), np.uint64)
    for i, value in enumerate(values):
        data = b""
        if i not in errors:
            try:
                if value is None:
                    raise Refused("a null")
                if column.convert:
                    value = column.convert(value)
                if isinstance(value, bytes | bytearray | memoryview):
                    data = bytes(value)
                else:
                    data, sizes[i] = pixels(value)
            except Exception as e:
                errors[i] = f"column '{column.name}': {reason_of(e)}"
        found.append(data)
    files = Bytes.of(found)
    return Pixels(files, sizes) if sizes.any() else files


# --- types ---

_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM",
           b"II*\0", b"MM\0*", b"\xff\x0a", b"\0\0\0\x0cJXL ")


def is_image(data: Any) -> bool:
    """Whether bytes begin like an image file that mkfs.beton decodes."""
    head = bytes(memoryview(data)[:16])
    return head.startswith(_IMAGES) or \
        head[:4] == b"RIFF" and head[8:12] == b"WEBP" or \
        head[4:8] == b"ftyp" and head[8:12] in (
            b"avif", b"avis", b"heic", b"heix", b"hevc", b"mif1", b"msf1")


def image_or_bytes(name: str, values: Sequence[Any], **more: Any) -> Column:
    """The column of bytes whose first values these are: images, if all begin
    like image files."""
    found = [is_image(v) for v in values if v is not None]
    if found and all(found):
        return Column(name, "image", types=("mask",), **more)
    if any(found):
        at = found.index(False)
        return Column(name, "bytes", types=("image", "bytes"), refused=(
            f"row {at} is no image, but {sum(found)} of the first {len(found)} "
            f"are: --fields={name}:image --on-error=skip leaves it out, and "
            f"--fields={name}:bytes stores bytes"), **more)
    return Column(name, "bytes", types=("image",), **more)


def mask_of(value: Any) -> bytes:
    """A mask as PNG: a PNG file stays as it is."""
    if isinstance(value, bytes | memoryview) and \
            bytes(value[:8]) != b"\x89PNG\r\n\x1a\n":
        import io
        value = library("PIL.Image", "pillow", "a mask").open(io.BytesIO(value))
    return _png.stored(value, True)


def as_bytes(column: Column, convert: Callable[[Any], Any]) -> Column:
    """The column with values that `convert` makes of them."""
    return replace(column, type="bytes", dtype="", shape=(), classes=(),
                   refused="", types=(), convert=convert)


def as_list(value: Any) -> bytes:
    """An array of any number of rows as a field of bytes has it, beton(5)."""
    a = np.asarray(value)
    return _ragged.packed(a.astype(a.dtype.newbyteorder("<"), copy=False))


def array_of(name: str, a: NDArray[Any], remedy: str, **more: Any) -> Column:
    """The column of arrays like this one."""
    if a.dtype.kind not in "biufc" or a.dtype.itemsize > 16 or not a.ndim:
        return Column(name, refused="values of a type that a dataset cannot "
                      f"hold: {remedy}", **more)
    if not a.size:
        return Column(name, refused=f"arrays without elements: {remedy}",
                      **more)
    kind = a.dtype.newbyteorder("<").str
    if a.ndim > 8:
        return Column(name, refused=f"more than 8 dimensions: {remedy}", **more)
    lists = ("list",) if kind in _ragged.DTYPES else ()
    return Column(name, "array", kind, a.shape, types=lists, **more)


# --- libraries ---

def library(name: str, install: str, wants: str) -> Any:
    """Import a library. It is used only if the source needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        missing = (e.name or name).partition(".")[0]
        if missing != name.partition(".")[0]:
            raise Mistake(f"{wants} needs the Python library {install}, which "
                          f"does not import: {e}") from None
        raise Mistake(f"{wants} needs the Python library {install}: "
                      f"pip install {install}") from None


def read_file(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()
