# SPDX-License-Identifier: Apache-2.0
"""A source of samples, and the mistakes of a command line."""
from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# A type of betonfs.write(): "image", or a pair of dtype and shape.
Type = Any

# Characters of a library's error.
_REASON_MAX = 300


class Mistake(Exception):
    """One line for the user, and the exit status: 2 for a wrong command, and 1
    if the work failed."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Column:
    """A value that every sample of a source has."""
    name: str
    # The default type of its field; None: no field can store it.
    type: Type
    # The name of its kind, for messages.
    kind: str
    # Names of the classes, if it is the number of a class.
    classes: Sequence[str] = field(default=())


def shortened(text: str) -> str:
    """An error of a library in one line."""
    line = " ".join(text.split())
    return line if len(line) <= _REASON_MAX else line[:_REASON_MAX - 3] + "..."


class Source(Protocol):
    title: str
    columns: Sequence[Column]

    def __len__(self) -> int: ...

    def prepare(self, columns: Sequence[str], keep: int | None) -> None:
        """Choose the columns of rows. If `keep` is not None, images that are
        JPEG files come as bytes; if it is not 0, it is the longest side of
        these."""

    def row(self, number: int) -> Sequence[Any]:
        """The values of a sample, in the order of the chosen columns."""

    def names(self, column: str) -> Sequence[str]:
        """The distinct texts of a column."""


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


# EXIF
_ORIENTATION, _UPRIGHT = 0x112, (None, 0, 1)


def jpeg_to_keep(data: bytes, longest: int, upright: bool) -> bool:
    """Whether an image file can be stored as it is: a JPEG that is RGB or gray
    and not too large. `upright` is whether the library turns images by their
    EXIF orientation."""
    if data[:2] != b"\xff\xd8":
        return False
    image = library("PIL.Image", "pillow", "an image").open(io.BytesIO(data))
    if image.format != "JPEG" or image.mode not in ("RGB", "L"):
        return False
    if longest and max(image.size) > longest:
        return False
    return not upright or image.getexif().get(_ORIENTATION) in _UPRIGHT


def read_file(path: str | os.PathLike[str]) -> bytes:
    with open(path, "rb") as file:
        return file.read()
