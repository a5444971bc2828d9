# SPDX-License-Identifier: Apache-2.0
"""Progress of a long call: a bar of tqdm if it is installed, otherwise a bar of
our own on a terminal."""
from __future__ import annotations

import contextlib
import importlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_BAR, _TEXT = 40, 56
# Seconds without a bar, and between two.
_BEGIN, _INTERVAL = 1.0, 0.1
_LEFT_MAX = 100 * 3600 - 1


class Bar:
    """The bar that the programs of betonfs draw on standard error."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begin = time.monotonic()
        self._next = self._begin + _BEGIN
        self._visible = False
        self._terminal = sys.stderr.isatty()

    def show(self, done: int) -> None:
        now = time.monotonic()
        if not self._terminal or now < self._next:
            return
        self._next = now + _INTERVAL
        self._visible = True
        part = done / self._total if self._total else 0.0
        rate = done / (now - self._begin)
        left = (self._total - done) / rate if rate else 0.0
        left = int(min(left, _LEFT_MAX))
        width = max(0, min(_BAR, shutil.get_terminal_size().columns - _TEXT))
        bar = "#" * int(part * width)
        sys.stderr.write(
            f"\r[{bar:{width}}] {int(100 * part):3}%  {done}/{self._total}  "
            f"{rate:.0f}/s  {left // 3600}:{left // 60 % 60:02}:"
            f"{left % 60:02} left\033[K")
        sys.stderr.flush()

    def hide(self) -> None:
        if self._visible:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        self._visible = False


def _tqdm() -> Any:
    """tqdm's class, or None."""
    return importlib.import_module("tqdm").tqdm \
        if importlib.util.find_spec("tqdm") else None


def with_progress(samples: Iterable[Any], n: int,
                  progress: bool) -> Iterable[Any]:
    """The samples, with a bar if `progress` is set."""
    if not progress:
        return samples
    tqdm = _tqdm()
    shown: Iterable[Any] = _with_bar(samples, n) if tqdm is None else \
        tqdm(samples, total=n, unit="samples")
    return shown


def _with_bar(samples: Iterable[Any], n: int) -> Iterator[Any]:
    bar = Bar(n)
    try:
        for done, sample in enumerate(samples, 1):
            yield sample
            bar.show(done)
    finally:
        bar.hide()


@contextlib.contextmanager
def reported(progress: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function of the samples done and their total, which draws a bar; None
    without `progress`."""
    if not progress:
        yield None
        return
    tqdm = _tqdm()
    bars: list[Any] = []

    def report(done: int, total: int) -> None:
        if not bars:
            bars.append(Bar(total) if tqdm is None else
                        tqdm(total=total, unit="samples"))
        if tqdm is None:
            bars[0].show(done)
        else:
            bars[0].update(done - bars[0].n)
    try:
        yield report
    finally:
        for bar in bars:
            bar.hide() if tqdm is None else bar.close()
