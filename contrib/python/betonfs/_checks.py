# SPDX-License-Identifier: Apache-2.0
"""Check arguments. Each function returns the value, or raises an error that
contains the argument's name, the value, and the valid values."""
from __future__ import annotations

import operator
import os
import re
from typing import Any

import numpy as np

# Greatest number of characters of a value in a message.
_SHOWN = 80


def shown(value: Any) -> str:
    """Return the value for a message, in one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else text[:_SHOWN - 3] + "..."


def is_whole(value: Any) -> bool:
    """Whether it is a whole number of Python, NumPy or torch, but not a
    bool."""
    if isinstance(value, (bool, np.bool_)):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Return a whole number in this range. Raise TypeError or ValueError."""
    if not is_whole(value):
        raise TypeError(f"{name}={shown(value)}: a whole number from {least} "
                        f"to {most}, no text or fraction")
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name}={number}: a number from {least} to {most}")
    return number


def truth(name: str, value: Any) -> bool:
    """Return True or False, also for 1 or 0. Raise TypeError for other types,
    such as strings, which are always true."""
    if isinstance(value, (bool, np.bool_)) or \
            is_whole(value) and operator.index(value) in (0, 1):
        return bool(value)
    raise TypeError(f"{name}={shown(value)}: True or False")


def is_url(text: str) -> bool:
    """Return whether a path is a URL."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def public(text: str) -> str:
    """Return a path without the users and the queries of URLs, which can be
    secrets."""
    if "://" not in text:
        return text
    text = re.sub(r"(://)[^/?#]*@", r"\1", text)
    if is_url(text):
        return re.sub(r"[?#].*", "", text, flags=re.S)
    return re.sub(r"\\?[?#](\\.|[^,}\\])*", "", text, flags=re.S)


def path(name: str, value: Any, of: str) -> str:
    """Return the path as a string. The TypeError describes it as the path `of`
    a thing."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}={shown(value)}: the path of {of}")
    text: str = os.fsdecode(os.fspath(value))
    if not text or "\0" in text:
        raise ValueError(f"{name}={text!r}: the path of {of}")
    if isinstance(value, os.PathLike) and re.match(
            r"(https?|s3|gs|az):/[^/]", text):
        raise ValueError(f"{name}={public(text)!r}: pathlib removes a slash of "
                         "a URL: pass the URL as a str")
    return text


def function(name: str, value: Any, of: str) -> Any:
    """Return a function, or None. The TypeError contains the argument `of` the
    function."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}={shown(value)}: a function of {of}")
    return value
