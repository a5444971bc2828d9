# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _beton
from ._checks import path as checked_path, shown, truth, whole
from ._errors import BetonError, make
from ._progress import reported
from ._words import known_words
from ._writer import PAGE_MAX, refuse_existing

_KINDS = (str, bytes, os.PathLike)


def _sources(sources: Any) -> tuple[bytes, ...]:
    given = [sources] if isinstance(sources, _KINDS) else sources
    if not isinstance(given, Iterable):
        raise TypeError(f"sources={shown(sources)}: a list of files, or a "
                        "pattern such as \"part-*.beton\"")
    paths = tuple(os.fsencode(checked_path("sources", one, "a dataset"))
                  for one in given)
    if not paths:
        raise ValueError("sources: the list is empty, and the first file "
                         "determines the fields")
    return paths


def _in_python(message: str) -> str:
    """A message of the library with the names of this function's arguments."""
    return message.replace("--keep-numbers", "keep_numbers=True") \
        .replace("--page-size=", "page_size=")


def _merge(sources: tuple[bytes, ...], path: str, page_size: int,
           keep_numbers: bool, progress: bool) -> int:
    with reported(progress) as report:
        try:
            return _beton.merge(sources, path, page_size, keep_numbers, report)
        except BetonError as e:
            raise make(e.errno or 0, _in_python(e.strerror or str(e))) \
                from None
        except ValueError as e:
            raise ValueError(_in_python(str(e))) from None


@known_words("merge")
def merge(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    page_size: int = 0,
    keep_numbers: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> int:
    """Make one dataset of several files, and return the number of its samples.
    Nothing is decoded or encoded, so this takes little longer than copying the
    files. `beton merge` does the same.

    sources
        Paths of the files, or one pattern such as ``"part-*.beton"``, whose
        files follow each other in the order of their names. The first file
        determines the fields. The others need the same fields, by name and
        type, in any order.
    path
        The new file. It appears, or replaces an old file, when it is complete.
        To append files to a dataset, make it the first of the `sources` and
        also `path`, with ``overwrite=True``.
    page_size
        Size of a page in bytes, a power of two from 2 MiB (default: 0, which
        means the largest page size of the files). No sample may be larger.
    keep_numbers
        Keep all labels as they are, and take the class names of the first file
        that has any (default: False). If it is False, the new file has the
        class names of all files, and every sample keeps the name of its class:
        labels of later files change if their names have other numbers there.
    overwrite
        Replace an existing file (default: False, raise FileExistsError).
    progress
        Show a progress bar (default: False). If tqdm is installed, it draws
        the bar, also in notebooks. Otherwise the bar needs a terminal.

    If fields or classes do not match, merge() raises a ValueError with the
    names of the file and of the field. If a file cannot be read or written, it
    raises a BetonError, which is an OSError. After an error, and after Ctrl-C,
    an old file at `path` is unchanged.

    You need no merge to train on several files: ``betonfs.Loader`` and
    ``betonfs.Dataset`` take a list.

        betonfs.merge("part-*.beton", "train.beton", progress=True)
        betonfs.merge(["train.beton", "more.beton"], "train.beton",
                      overwrite=True)
    """
    path = checked_path("path", path, "the file to write")
    page_size = whole("page_size", page_size, 0, PAGE_MAX)
    keep_numbers = truth("keep_numbers", keep_numbers)
    progress = truth("progress", progress)
    paths = _sources(sources)
    if not truth("overwrite", overwrite):
        refuse_existing(path, "merge")
    return _merge(paths, path, page_size, keep_numbers, progress)
