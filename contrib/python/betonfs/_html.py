# SPDX-License-Identifier: Apache-2.0
"""Parts of an HTML page that needs no scripts and no other file: escaped text,
numbers for readers, bars, histograms, and the frame."""
from __future__ import annotations

import html
import math
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Control characters but line ends and tabs, and halves of surrogate pairs.
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def escape(text: str) -> str:
    """Return text as HTML. Control characters become blanks."""
    return html.escape(CONTROL.sub(" ", text))


# --- numbers ---

def count(n: Any) -> str:
    return f"{int(n):,}"


def size_text(n: float) -> str:
    """Return a size in bytes with its unit: 84.2 kB."""
    if n < 999.5:
        return f"{n:.0f} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        n /= 1000
        if n < 999.5:
            break
    return f"{n:.3g} {unit}" if n < 999.5 else f"{n:.0f} {unit}"


def percent(part: float, whole: float) -> str:
    v = 100 * part / whole if whole > 0 else 0.0
    if 0 < v < 0.1:
        return "under 0.1 %"
    return "over 99.9 %" if 99.9 < v < 100 else f"{v:.3g} %"


# --- charts ---

def bars(title: str, rows: Iterable[tuple[str, float, str]]) -> str:
    """Return a table of bars: name, value, and the number beside it. `title`
    describes it to readers who do not see it."""
    listed = list(rows)
    most = max((value for _, value, _ in listed), default=0) or 1
    return f'<table class="bars" aria-label="{escape(title)}">\n' + "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f'<td><i style="width:{100 * value / most:.1f}%"></i></td>'
        f'<td class="n">{escape(number)}</td></tr>\n'
        for name, value, number in listed) + "</table>\n"


# A histogram, in units of its picture: its width, its highest column, its
# floor, and room for half the text of a tick.
_WIDTH, _TALL, _FLOOR, _HEIGHT, _TICK_ROOM = 340, 92, 96, 112, 30


def columns(title: str, of: list[tuple[float, str, str]]) -> str:
    """Return a histogram: the value of each column, the text under the pointer,
    and the text below its left edge."""
    most = max((value for value, *_ in of), default=0) or 1
    width = _WIDTH / max(1, len(of))
    out = [f'<svg role="img" aria-label="{escape(title)}" '
           f'viewBox="0 0 {_WIDTH} {_HEIGHT}">\n']
    for i, (value, text, _) in enumerate(of):
        # A small value is visible, too.
        tall = max(_TALL * value / most, 1.0 if value else 0.0)
        out.append(
            f'<g><title>{escape(text)}</title><rect x="{i * width:.1f}" '
            f'y="{_FLOOR - tall:.1f}" width="{width - (width > 4):.1f}" '
            f'height="{tall:.1f}"/></g>\n')
    out.append(f'<path d="M0 {_FLOOR}.5H{_WIDTH}"/>\n')
    for i, (*_, tick) in enumerate(of):
        at = i * width
        anchor = "start" if at < _TICK_ROOM else \
            "end" if at > _WIDTH - _TICK_ROOM else "middle"
        if tick:
            out.append(
                f'<path d="M{at:.1f} {_FLOOR}v4"/><text x="{at:.1f}" '
                f'y="{_HEIGHT - 2}" text-anchor="{anchor}">{escape(tick)}'
                "</text>\n")
    return "".join(out) + "</svg>\n"


def _round_up(v: float) -> float:
    """Return the smallest of ..., 1, 2, 5, 10, ... that is at least v, or 0."""
    power = 10.0 ** math.floor(math.log10(v)) if v > 0 else 0.0
    if power < sys.float_info.min:
        return 0.0
    return next((step * power for step in (1, 2, 5, 10)
                 if step * power >= v * (1 - 1e-9)), 0.0)


class Bins:
    """A histogram of ascending finite values. Bins begin at round numbers: bin
    i at first + i * width. `whole`: no bin is narrower than 1. There are no
    counts if all values are equal, or if their range exceeds a double.

    Outliers, farther from the rest than the rest is wide, are in the first and
    the last bin; `below` and `above` report that there are some.
    """
    _LEAST, _WANTED, _MOST = 6, 24, 32
    _FEW = 100      # a hundredth of the values at each end may be outliers

    def __init__(self, v: NDArray[np.float64], whole: bool) -> None:
        self.counts: list[int] = []
        self.below = self.above = False
        n = len(v)
        if not n or v[0] == v[-1]:
            return
        low, high = float(v[0]), float(v[-1])
        left, right = float(v[n // self._FEW]), float(v[n - 1 - n // self._FEW])
        if right > left:
            self.below = left - low > right - left
            self.above = high - right > right - left
        low, high = left if self.below else low, right if self.above else high
        if math.isinf(high - low):
            return
        # About the square root of the number of values.
        wanted = min(max(math.sqrt(n), self._LEAST), self._WANTED)
        self.width = max(_round_up((high - low) / wanted), float(whole))
        if not self.width or math.isinf(low / self.width):
            return
        self.first = math.floor(low / self.width) * self.width
        if math.isinf(self.first):
            return
        # Rounding of both ends may add a bin at each.
        num = 1 + int(min((high - self.first) / self.width, self._MOST - 1))
        with np.errstate(over="ignore"):
            at = ((v - self.first) / self.width).clip(0, num - 1)
        self.counts = np.bincount(at.astype(np.int64), minlength=num).tolist()


class Card:
    """A picture with a title. `unit` prints a number of its histogram; `whole`:
    they are whole numbers."""
    _TICKS, _TICK_LENGTH = 4, 11    # below a histogram, and characters of each

    def __init__(self, title: str, unit: Callable[[float], str] = str,
                 whole: bool = False) -> None:
        self._title, self._unit, self._whole = title, unit, whole

    def html(self, content: str) -> str:
        return f'<figure class="card"><figcaption>{escape(self._title)}' \
            f"</figcaption>\n{content}</figure>\n"

    def histogram(self, v: NDArray[np.float64]) -> str:
        """Return a histogram of ascending values with median and range. If all
        are equal, return a line instead, and nothing if there are none."""
        if not len(v):
            return ""
        unit = self._unit
        if v[0] == v[-1]:
            return self.html(f'<p class="all">all {unit(v[0])}</p>')
        b = Bins(v, self._whole)
        content = columns(f"histogram: {self._title}",
                          [self._column(b, i) for i in range(len(b.counts))]
                          ) if b.counts else ""
        return self.html(f"{content}<p>median {unit(v[len(v) // 2])}, "
                         f"{unit(v[0])} to {unit(v[-1])}; {count(len(v))} "
                         "values</p>")

    def _column(self, b: Bins, i: int) -> tuple[float, str, str]:
        n = len(b.counts)
        x, after = b.first + i * b.width, b.first + (i + 1) * b.width
        # Rounding errors near 0 are 0.
        start, end = (self._unit(0.0 if abs(v) < b.width / 1e6 else v)
                      for v in (x, after))
        below, above = not i and b.below, i + 1 == n and b.above
        if self._whole and b.width == 1 and not below and not above:
            text = start
        else:
            text = f"{'less' if below else start} to {'more' if above else end}"
        tick = "" if i % -(-n // self._TICKS) else \
            start if len(start) <= self._TICK_LENGTH else f"{x:.3g}"
        return b.counts[i], f"{text}: {count(b.counts[i])}", tick


# --- the page ---

_STYLE = """
:root {
  color-scheme: light dark; --ink: #1d2430; --soft: #5b6575; --page: #fff;
  --card: #f5f6f9; --line: #dde1e8; --bar: #4f7fbf; --bad: #b4451f;
  --tint: #fbf1ec }
@media (prefers-color-scheme:dark) { :root {
  --ink: #e4e8ef; --soft: #9aa5b5; --page: #14181f; --card: #1c222c;
  --line: #333b48; --bar: #6f9ddb; --bad: #e0764d; --tint: #33221b } }
* { box-sizing: border-box }
body {
  font: 15px/1.45 system-ui,sans-serif; color: var(--ink);
  background: var(--page); max-width: 1120px; margin: 2em auto;
  padding: 0 1em; print-color-adjust: exact;
  -webkit-print-color-adjust: exact }
h1 { margin: 0; font-size: 1.5em; overflow-wrap: anywhere }
h2 { margin: 2.2em 0 .6em; font-size: 1.15em }
h2 small { font-weight: 400 }
small, summary, footer, .others { color: var(--soft) }
table { border-collapse: collapse; width: 100% }
td, th {
  text-align: left; vertical-align: top; padding: .35em .6em;
  border-bottom: 1px solid var(--line) }
td.n, th.n {
  white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums }
code, pre {
  font: 13px ui-monospace,monospace; background: var(--card);
  padding: 0 .2em; overflow-wrap: anywhere; unicode-bidi: isolate }
.bars { margin: .8em 0 }
.bars td, .bars th {
  border: 0; padding: .12em .4em .12em 0; font-weight: 400;
  vertical-align: middle }
.bars th {
  width: 1%; max-width: 13em; text-align: right; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap }
.bars .n { width: 1%; text-align: left; padding-right: 0 }
.bars i {
  display: block; height: 1.15em; min-width: 1px; border-radius: 2px;
  background: var(--bar) }
.others { margin: .3em 0 }
svg { display: block; width: 100%; height: auto }
svg text { font: 11px system-ui,sans-serif; fill: var(--soft) }
svg rect { fill: var(--bar) }
svg path { stroke: var(--line) }
.tiles, .cards, .shots, .texts {
  display: grid; gap: .8em;
  grid-template-columns: repeat(auto-fill,minmax(min(300px,100%),1fr)) }
.tiles {
  gap: .6em; margin: 1.2em 0;
  grid-template-columns: repeat(auto-fit,minmax(140px,1fr)) }
.tiles div, .card {
  background: var(--card); border-radius: 8px; padding: .7em .9em }
.tiles dt { color: var(--soft); font-size: .85em }
.tiles dd { margin: 0; font-size: 1.3em; font-weight: 600 }
figure { margin: 0; min-width: 0 }
.card figcaption { font-weight: 600; margin-bottom: .5em }
.card p { margin: .5em 0 0; color: var(--soft); font-size: .87em }
.card p.all { font-size: 1.1em; color: var(--ink) }
.scroll { overflow-x: auto }
.shots {
  gap: 10px; margin: .8em 0;
  grid-template-columns: repeat(auto-fill,minmax(120px,1fr)) }
.shots img, .broken {
  display: block; width: 100%; height: auto; aspect-ratio: 1;
  object-fit: contain; background: var(--card); border-radius: 6px }
.shots img.tiny { image-rendering: pixelated }
.broken {
  padding: .6em; font-size: .75em; line-height: 1.3; color: var(--bad);
  background: var(--tint); overflow: hidden; overflow-wrap: anywhere }
.shots figcaption {
  font-size: .75em; line-height: 1.35; margin-top: .3em; color: var(--soft);
  overflow-wrap: anywhere }
.shots b { color: var(--ink) }
.broken b { color: inherit }
summary { cursor: pointer }
.damage {
  border-left: 6px solid var(--bad); background: var(--tint);
  padding: .7em 1em; margin: 1em 0 }
.damage ul { margin: .3em 0 0; padding-left: 1.2em }
.texts {
  margin-bottom: .8em;
  grid-template-columns: repeat(auto-fill,minmax(min(340px,100%),1fr)) }
.texts pre {
  margin: 0; padding: .6em .8em; border-radius: 0 0 8px 8px;
  white-space: pre-wrap; max-height: 13em; overflow: hidden }
.texts figcaption {
  font-size: .8em; color: var(--soft); background: var(--card);
  padding: .4em 1em; border-radius: 8px 8px 0 0;
  border-bottom: 1px solid var(--line) }
footer { margin-top: 3em; font-size: .85em }
"""


def page(title: str, body: str) -> str:
    """Return a page with this text as title and heading, in the reader's light
    or dark theme."""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
{body}</body></html>
"""
