# SPDX-License-Identifier: Apache-2.0
"""FFCV's small helpers."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

_printing = threading.Lock()


def chunks(lst: Sequence[Any], n: int) -> Iterator[Any]:
    """Parts of n elements; the last one may be shorter."""
    return (lst[i:i + n] for i in range(0, len(lst), n))


def is_power_of_2(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def align_to_page(ptr: int, page_size: int) -> int:
    """The first multiple of a page's size that is not below `ptr`."""
    return -(-ptr // page_size) * page_size


def decode_null_terminated_string(bytes: Any) -> str:
    """The text of an array of bytes, up to a zero."""
    text: str = bytes.tobytes().partition(b"\0")[0].decode("ascii")
    return text


def s_print(*values: Any, **options: Any) -> None:
    """print(), for one thread at a time."""
    with _printing:
        print(*values, **options)
