# SPDX-License-Identifier: Apache-2.0
"""The library's errors as Python exceptions."""
from __future__ import annotations

import errno
import os
from typing import Any

from ._checks import public


class BetonError(OSError):
    """A dataset, a batch or a mount is unreadable. `errno` is the kind of
    failure. `strerror` describes it, with file and position.

    If Python has a class for an errno, the error is also an instance of that
    class: `except FileNotFoundError` works.

        try:
            loader = betonfs.Loader("train.beton")
        except betonfs.BetonError as e:
            print(e.errno, e.strerror)
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle cannot find these classes by their names.
        return make, self.args, self.__dict__


class _NotFound(BetonError, FileNotFoundError):
    pass


class _Permission(BetonError, PermissionError):
    pass


class _IsADirectory(BetonError, IsADirectoryError):
    pass


class _Exists(BetonError, FileExistsError):
    pass


# Pickles find a class by __qualname__: torch takes the one of a worker's error.
for _c in (_NotFound, _Permission, _IsADirectory, _Exists):
    _c.__name__ = "BetonError"

_CLASSES: dict[int, type[BetonError]] = {
    errno.ENOENT: _NotFound,
    errno.EACCES: _Permission,
    errno.EPERM: _Permission,
    errno.EISDIR: _IsADirectory,
    errno.EEXIST: _Exists,
}

# Error numbers of wrong arguments, in contrast to damaged data.
_VALUES = {errno.EINVAL}


def make(code: int, message: str, path: str | None = None) -> Exception:
    """Make the exception for an errno and the library's message."""
    if code == errno.ENOMEM:
        return MemoryError(message)
    if code in _VALUES:
        return ValueError(message)
    if message == os.strerror(code) and path:
        message = f"{public(path)}: {message}"
    return _CLASSES.get(code, BetonError)(code, message)


def _is_mounted(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "dataset.json"))


def _hint(path: str, code: int | None) -> str:
    """Return advice about a path that is not a dataset."""
    if code not in (errno.EISDIR, errno.ENOENT, errno.ENOTDIR) \
            or not os.path.isdir(path) or _is_mounted(path):
        return ""
    found = sorted(os.path.join(path, name) for name in os.listdir(path)
                   if _is_mounted(os.path.join(path, name)))
    why = "a directory, and no dataset on a mount of betonfs"
    return why + (f": open {' or '.join(found[:8])}" if found else
                  ": mount a dataset there, or pack images by mkfs.beton")


def explain(error: BetonError, path: str) -> Exception:
    """Make the error of a path that does not open, with advice."""
    hint = _hint(path, error.errno)
    return make(error.errno or errno.EIO, f"{path}: {hint}") if hint else error
