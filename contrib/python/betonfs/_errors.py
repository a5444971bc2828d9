# SPDX-License-Identifier: Apache-2.0
"""What the library's errors are in Python."""
from __future__ import annotations

import errno
import os
from typing import Any


class BetonError(OSError):
    """A dataset, a batch or a mount that cannot be read: `errno` says what kind
    of failure, `strerror` what was found, with file and place.

    Where Python has a class of its own for an errno, the error is of that too:
    `except FileNotFoundError` works.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Those classes cannot be found by their names.
        return make, self.args, self.__dict__


class _NotFound(BetonError, FileNotFoundError):
    pass


class _Permission(BetonError, PermissionError):
    pass


class _IsADirectory(BetonError, IsADirectoryError):
    pass


class _Exists(BetonError, FileExistsError):
    pass


for _c in (_NotFound, _Permission, _IsADirectory, _Exists):
    _c.__name__ = _c.__qualname__ = "BetonError"

_CLASSES: dict[int, type[BetonError]] = {
    errno.ENOENT: _NotFound,
    errno.EACCES: _Permission,
    errno.EPERM: _Permission,
    errno.EISDIR: _IsADirectory,
    errno.EEXIST: _Exists,
}

# What the caller said, and not what was found.
_VALUES = {errno.EINVAL}


def make(code: int, message: str, path: str | None = None) -> Exception:
    """For an errno and what the library says of it."""
    if code == errno.ENOMEM:
        return MemoryError(message)
    if code in _VALUES:
        return ValueError(message)
    if message == os.strerror(code) and path:
        message = f"{path}: {message}"
    return _CLASSES.get(code, BetonError)(code, message)
