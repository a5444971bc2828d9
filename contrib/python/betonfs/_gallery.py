# SPDX-License-Identifier: Apache-2.0
"""The page of `beton info --html`: numbers, charts and images of a dataset.

`beton` runs this module as a program, which prints the page. The dataset is
untrusted. Damage is not a failure: the page counts and describes it. Memory
holds the numbers of one field, the thumbnails and one image, whatever the
number of samples.
"""
from __future__ import annotations

import base64
import codecs
import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _beton
from ._checks import public
from ._errors import BetonError
from ._html import (CONTROL, Card, bars, columns, count, escape, page, percent,
                    size_text)
from ._progress import Bar
from ._random import mix

# Up to _ALL samples have their numbers read. If there are more, _SPREAD have.
_ALL, _SPREAD = 4 << 20, 1 << 18
_AT_ONCE = 1 << 16
# Values whose size is looked up. A lookup in a large allocation table costs
# one read for each thread that wrote the file. If all lookups together exceed
# _READS, fewer values are looked up.
_VALUES, _VALUES_LEAST = 1 << 14, 256
_READS = 16 * _VALUES
_CLASSES_MAX = 1 << 15      # the largest ImageNet has 21,841
_FIELDS_MAX = 64
_DAMAGED = 8                # damaged samples that are listed
# Larger values and images are not worth reading or decoding for a thumbnail.
_STORED_MAX = _PIXELS_MAX = 512 << 20
# Pixels of a thumbnail's longer side. The page shows it at two thirds of that,
# because many screens have two pixels per CSS pixel. It enlarges tiny images,
# which makes artifacts visible: they have a better quality.
_SIDE, _TINY = 208, 64
_QUALITY, _QUALITY_TINY = 78, 95
_ENLARGED = 100             # smaller ones are enlarged without smoothing
_FIRST = 24                 # images outside the fold-out part
_TEXTS, _TEXT_BYTES, _HEX_BYTES = 6, 320, 48
_CLASSES_ALL, _CLASSES_TOP = 32, 20     # bars for all classes, or the largest
_PROFILE = 68               # columns of a chart of many classes

_WORDS = {"float": "floating-point numbers", "int": "integers",
          "rgb_image": "images", "bytes": "bytes", "ndarray": "arrays",
          "json": "JSON", "torch_tensor": "tensors", "custom": "custom"}


def _spread(samples: int, n: int) -> NDArray[np.int64]:
    """Return the numbers of n samples that are spread over all."""
    if n >= samples:
        return np.arange(samples)
    edges = np.arange(n + 1) * samples // max(n, 1)
    first, room = edges[:-1], np.diff(edges)
    # A random position within the share: with a fixed step, labels that repeat
    # every ten samples would all be the same.
    chosen: NDArray[np.int64] = first + (
        mix(np.arange(n, dtype=np.uint64)) % room.astype(np.uint64)
    ).astype(np.int64)
    return chosen


def _shares(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Divide n samples among classes of these sizes, evenly. If there are fewer
    samples than classes, return one each for classes spread over all."""
    num = len(counts)
    wanted = np.zeros(num, np.int64)
    if n < num:
        wanted[(2 * np.arange(n) + 1) * num // (2 * n)] = 1
        return wanted
    while n and len(more := np.flatnonzero(wanted < counts)[:n]):
        wanted[more] += 1
        n -= len(more)
    return wanted


class _Field:
    def __init__(self, k: int, about: dict[str, Any]) -> None:
        self.k, self.about = k, about
        self.name, self.stem = about["name"], about["stem"]
        self.type = "" if about["unusable"] else about["type"]
        self.counts: tuple[Any, Any] | None = None      # of classes
        self.numbers: NDArray[Any] = np.empty(0)        # finite, ascending
        self.sizes = self.widths = self.heights = self.numbers
        self.finite, self.range = 0, ""
        self.raws = 0
        self.damaged: list[int] = []
        self.images = self.failed = 0

    @property
    def is_number(self) -> bool:
        return self.type in ("int", "float")

    @property
    def holds(self) -> str:
        about = self.about
        text = _WORDS[about["type"]]
        if about["type"] in ("ndarray", "torch_tensor"):
            text += f', <code>{escape(about["dtype"])}</code> {about["shape"]}'
        if about["unusable"]:
            text += escape(f"; not usable: {about['unusable']}")
        return text

    @property
    def mean_size(self) -> float:
        return float(self.sizes.mean()) if self.sizes.size else 0.0

    def label(self, value: int) -> str:
        """Return a value, and the name of its class if it has one."""
        names = self.about["classes"] or ()
        text = f"{value:,}"
        if 0 <= value < len(names):
            text += f" {names[value]}"
        return text if len(text) < 48 else text[:46] + "…"


class _Survey:
    """Numbers about a dataset. In a large one they are those of some samples,
    spread evenly, and the same ones each time."""

    def __init__(self, core: _beton.Dataset, facts: dict[str, int],
                 images: int, progress: bool) -> None:
        self.core = core
        self.samples = core.samples
        fields = core.fields()
        self.omitted = max(0, len(fields) - _FIELDS_MAX)
        self.fields = [_Field(*f) for f in enumerate(fields[:_FIELDS_MAX])]
        # If custom fields leave the size of records open, none can be read.
        n = self.samples if facts["record"] else 0
        self.records = n if n <= _ALL else _SPREAD
        reads = facts["reads"]
        self.values = min(n, _VALUES, max(_VALUES_LEAST, _READS // reads)
                          if reads else n)
        self._done = 0
        self._total = self.values * len(self.fields) + images + sum(
            self.records for f in self.fields if f.is_number)
        self._bar = Bar(self._total) if progress else None
        self.labels: _Field | None = None   # printed below images
        self.classes: _Field | None = None  # by which images are chosen

    def read(self) -> None:
        for f in self.fields:
            self._read(f)
        counted = [f for f in self.fields if f.type == "int"]
        # Values are classes if on average two samples share each.
        self.classes = next((f for f in counted if f.counts and 1 < len(
            f.counts[0]) <= self.records // 2), None)
        self.labels = self.classes or (counted[0] if counted else None)

    def step(self, n: int = 1) -> None:
        self._done = min(self._done + n, self._total)
        if self._bar:
            self._bar.show(self._done)

    def end(self) -> None:
        if self._bar:
            self._bar.hide()

    # --- numbers ---

    def _column(self, f: _Field, n: int) -> NDArray[Any]:
        """Return the numbers of n samples."""
        out = np.empty(n, np.int64 if f.type == "int" else np.float64)
        if n < self.samples:
            for at, i in enumerate(_spread(self.samples, n).tolist()):
                out[at] = self.core.value(f.k, i)
                self.step()
            return out
        for i in range(0, n, _AT_ONCE):
            some = out[i:i + _AT_ONCE]
            self.core.column(f.k, i, some)
            self.step(len(some))
        return out

    def _read(self, f: _Field) -> None:
        if f.is_number:
            values = self._column(f, self.records)
            finite = values[np.isfinite(values)]
            f.finite = finite.size
            if f.type == "int":
                found = np.unique(values, return_counts=True)
                f.counts = found if len(found[0]) <= _CLASSES_MAX else None
            elif f.finite:
                # The sum could exceed a double. Adding 0 turns -0 into 0.
                f.range = "Range {:.6g} to {:.6g}, mean {:.6g}.".format(
                    finite.min() + 0.0, finite.max() + 0.0,
                    (finite / f.finite).sum() + 0.0)
            values = self._column(f, self.values)
            f.numbers = np.sort(values[np.isfinite(values)].astype(np.float64))
        elif f.type:
            self._look_up(f)

    def _look_up(self, f: _Field) -> None:
        found = []
        for i in _spread(self.samples, self.values).tolist():
            self.step()
            try:
                found.append(self.core.value(f.k, i))
            except BetonError:
                f.damaged.append(i)
        if not found:
            return
        heights, widths, sizes, raws = np.array(found, np.float64).T
        f.sizes = np.sort(sizes)
        if f.type == "rgb_image":
            f.widths, f.heights = np.sort(widths), np.sort(heights)
            f.raws = int(raws.sum())

    def pick(self, n: int) -> list[int]:
        """Choose at most n samples. Each class gets equally many, in order of
        classes. If there are more classes than n, choose one sample of some
        classes. Without classes, spread the samples evenly."""
        n = min(n, self.records)
        if not n or not self.classes or not self.classes.counts:
            chosen: list[int] = _spread(self.samples, n).tolist()
            return chosen
        counts = self.classes.counts[1]
        order = np.argsort(self._column(self.classes, self.records),
                           kind="stable")
        starts = np.cumsum(counts) - counts
        at = [start + (2 * np.arange(wants) + 1) * has // (2 * wants)
              for start, has, wants in zip(starts, counts, _shares(counts, n))
              if wants]
        chosen = _spread(self.samples, self.records)[
            order[np.concatenate(at)]].tolist()
        return chosen


# --- charts ---

def _whole(x: float) -> str:
    # Larger doubles cannot represent every integer.
    return f"{int(x):,}" if abs(x) <= 2 ** 53 else _real(x)


def _real(x: float) -> str:
    return f"{x + 0.0:.4g}"


def _pixels(x: float) -> str:
    return _whole(x) + " px"


def _classes(f: _Field, values: NDArray[Any], counts: NDArray[Any]) -> str:
    """Return bars of all classes, or of the most frequent ones."""
    n, total = len(values), counts.sum()
    rank = np.argsort(-counts, kind="stable")
    shown = range(n) if n <= _CLASSES_ALL else rank[:_CLASSES_TOP]
    out = bars("Samples per value", (
        (f.label(int(values[i])), counts[i],
         f"{count(counts[i])}  ({percent(counts[i], total)})") for i in shown))
    if n > _CLASSES_ALL:
        # One bar for the others would dwarf those above.
        others = counts[rank[_CLASSES_TOP:]]
        out += ('<p class="others">other classes: '
                f"{count(len(others))} values, {count(others.sum())} samples "
                f"({percent(others.sum(), total)})</p>\n")
    return out


def _profile(counts: NDArray[Any]) -> str:
    """Return a card with the frequencies of many classes."""
    c, title = -np.sort(-counts), "samples per value, most frequent first"
    num = min(len(c), _PROFILE)
    at = [i * len(c) // num for i in range(num)]
    ticks = {0: "most frequent", num - 1: "rarest"}
    return Card(title).html(columns(title, [
        (c[k], f"rank {count(k + 1)}: {count(c[k])} samples", ticks.get(i, ""))
        for i, k in enumerate(at)])
        + f"<p>median {count(c[len(c) // 2])}, {count(c[-1])} to "
        f"{count(c[0])} samples</p>")


def _balance(counts: NDArray[Any]) -> str:
    low, high = counts.min(), counts.max()
    if low == high:
        return f", each with {count(low)} samples"
    return f", each with {count(low)} to {count(high)} samples, a ratio of " \
        f"1 to {high / low:.3g}"


# --- sections ---

class _Page:
    def __init__(self, survey: _Survey, facts: dict[str, int], name: str,
                 images: int) -> None:
        self.s, self.facts = survey, facts
        shared = sum(f.type == "rgb_image" for f in survey.fields)
        self.images = images // max(1, shared)
        # The sections come first, because they find damaged images.
        sections = "".join(map(self._section, survey.fields))
        self.html = page(name, self._head() + sections + self._foot())

    def _section(self, f: _Field) -> str:
        write = {"int": self._int, "float": self._float,
                 "rgb_image": self._image, "bytes": self._text,
                 "json": self._text}.get(f.type)
        if not write:
            return ""
        return f"<section><h2>{escape(f.stem)} <small>{_WORDS[f.type]}" \
            f"</small></h2>\n{''.join(write(f))}</section>\n"

    def _int(self, f: _Field) -> Iterator[str]:
        if not self.s.records:
            return
        if not f.counts:
            yield f"<p>More than {count(_CLASSES_MAX)} different values.</p>\n"
        else:
            values, counts = f.counts
            n, repeat = len(values), len(values) < self.s.records
            yield f"<p>{count(n)} different value{'s' if n > 1 else ''}" + (
                _balance(counts) if repeat else ", one for each sample"
            ) + ".</p>\n"
            if repeat:
                yield _classes(f, values, counts)
                yield '<div class="cards">\n'
                if n > _CLASSES_ALL:
                    yield _profile(counts)
                yield "</div>\n"
                return
        yield from _cards((Card("values", _whole, True), f.numbers))

    def _float(self, f: _Field) -> Iterator[str]:
        if f.range:
            yield f"<p>{f.range}</p>\n"
        if self.s.records > f.finite:
            yield f"<p>{count(self.s.records - f.finite)} values are not " \
                "finite.</p>\n"
        yield from _cards((Card("values", _real), f.numbers))

    def _text(self, f: _Field) -> Iterator[str]:
        yield '<div class="texts">\n'
        for i in _spread(self.s.samples, min(_TEXTS, self.s.values)).tolist():
            yield f"<figure><figcaption>sample {i}, "
            try:
                size = self.s.core.value(f.k, i)[2]
                shown = _beginning(self.s.core.read(f.k, i, _TEXT_BYTES), size)
                yield f"{size_text(size)}</figcaption><pre>{shown}"
            except BetonError as e:
                yield f"damaged</figcaption><pre>{escape(_why(e, f))}"
            yield "</pre></figure>\n"
        yield "</div>\n"
        yield from _cards((Card("size", size_text, True), f.sizes))

    def _image(self, f: _Field) -> Iterator[str]:
        figures = [self._figure(f, i) for i in self.s.pick(self.images)]
        n = f.images = len(figures)
        # Those that are visible at first are spread over all, so that they show
        # many classes.
        first = [n <= _FIRST or i * _FIRST // n != (i + 1) * _FIRST // n
                 for i in range(n)]
        yield '<div class="shots">\n'
        yield from (x for x, visible in zip(figures, first) if visible)
        if n > _FIRST:
            yield f"</div>\n<details><summary>{n - _FIRST} more</summary>" \
                '<div class="shots">\n'
            yield from (x for x, visible in zip(figures, first) if not visible)
            yield "</div></details>\n"
        else:
            yield "</div>\n"
        yield _modes(f.sizes.size - f.raws, f.raws)
        yield from _cards((Card("size as stored", size_text, True), f.sizes),
                          (Card("width", _pixels, True), f.widths),
                          (Card("height", _pixels, True), f.heights))

    def _figure(self, f: _Field, i: int) -> str:
        self.s.step()
        about = f"sample {i}"
        labels = self.s.labels
        label = labels and escape(f"{labels.stem} " + labels.label(
            self.s.core.value(labels.k, i)))
        caption = f"<b>{label}</b><br>{about}" if label else about
        if label:
            about += f", {label}"
        try:
            height, width, size, raw = self.s.core.value(f.k, i)
            if width:
                caption += f"<br>{width} &times; {height}, {size_text(size)}"
                caption += ", raw" * (raw and f.raws < f.sizes.size)
            picture = self._picture(f, i, height, width, size, about)
        except (BetonError, MemoryError) as e:
            f.failed += 1
            picture = '<div class="broken"><b>cannot be shown</b><br>' \
                f"{escape(_why(e, f))}</div>"
        return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>\n"

    def _picture(self, f: _Field, i: int, height: int, width: int, size: int,
                 alt: str) -> str:
        if size > _STORED_MAX or height * width > _PIXELS_MAX:
            raise BetonError(errno.EFBIG, os.strerror(errno.EFBIG))
        pixels = np.empty(3 * height * width, np.uint8)
        self.s.core.fill(f.k, i, pixels)
        quality = _QUALITY_TINY if max(width, height) <= _TINY else _QUALITY
        jpeg, _, width, height = _beton.encode(pixels, width, height, False,
                                               quality, _SIDE)
        tiny = ' class="tiny"' * (max(width, height) < _ENLARGED)
        return f'<img{tiny} width="{width}" height="{height}" alt="{alt}" ' \
            f'src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}">'

    # --- the dataset ---

    def _head(self) -> str:
        s, facts = self.s, self.facts
        sample = facts["record"] + sum(f.mean_size for f in s.fields)
        images = sum(f.sizes.size for f in s.fields if f.type == "rgb_image")
        raws = sum(f.raws for f in s.fields)
        tiles = {"samples": count(s.samples),
                 "file size": size_text(facts["file_size"]),
                 "mean sample size": size_text(sample),
                 "fields": count(len(s.fields) + s.omitted),
                 "pages": f"{count(facts['pages'])} of "
                          f"{size_text(facts['page_size'])}"}
        if images:
            tiles["images stored as JPEG"] = percent(images - raws, images)
        return ('<dl class="tiles">\n' + "".join(
            f"<div><dt>{name}</dt><dd>{value}</dd></div>\n"
            for name, value in tiles.items())
            + f"</dl>\n<p>{self._coverage()}</p>\n{self._damage()}"
            '<h2>Fields</h2>\n<div class="scroll"><table>\n<tr>'
            '<th scope="col">name</th><th scope="col">content</th>'
            '<th scope="col" class="n">mean size</th></tr>\n'
            + "".join(map(self._row, s.fields)) + "</table></div>\n"
            + f"<p>The page omits {count(s.omitted)} more fields.</p>\n"
            * bool(s.omitted))

    def _row(self, f: _Field) -> str:
        name = escape(f.name)
        if f.name != f.stem:
            name += f"<br><small>file-name form {escape(f.stem)}</small>"
        size = size_text(8 if f.about["type"] in ("int", "float")
                         else f.mean_size)
        return f'<tr><th scope="row">{name}</th><td>{f.holds}</td>' \
            f'<td class="n">{size}</td></tr>\n'

    def _coverage(self) -> str:
        s = self.s
        of = f"{count(s.samples)} samples"
        some = f"all {of}" if s.records == s.samples else \
            f"{count(s.records)} of {of} ({percent(s.records, s.samples)}), " \
            "spread evenly"
        sizes = "all sizes" if s.values == s.samples else \
            f"the sizes of {count(s.values)} of them " \
            f"({percent(s.values, s.samples)}), spread evenly"
        return f"The figures cover the labels and numbers of {some}, and " \
            f"{sizes}."

    def _damage(self) -> str:
        found = ""
        for f in self.s.fields:
            n = len(f.damaged)
            if n:
                listed = ", ".join(map(str, f.damaged[:_DAMAGED]))
                found += f"<li>{escape(f.stem)}: {count(n)} of " \
                    f"{count(self.s.values)} values have an invalid offset " \
                    f"or size: sample{'s' if n > 1 else ''} {listed}" \
                    f"{' and others' if n > _DAMAGED else ''}</li>\n"
            if f.failed:
                found += f"<li>{escape(f.stem)}: {count(f.failed)} of the " \
                    f"{count(f.images)} images below cannot be shown</li>\n"
        return '<div class="damage"><b>This dataset is damaged</b><ul>\n' \
            f"{found}</ul></div>\n" if found else ""

    def _foot(self) -> str:
        facts, n = self.facts, self.s.samples
        parts = {f.stem: f.mean_size * n for f in self.s.fields
                 if f.mean_size}
        parts |= {"metadata": facts["metadata"],
                  "allocation table": facts["table"]}
        # A negative rest is the error of sizes that were estimated from some
        # samples.
        left = facts["file_size"] - sum(parts.values())
        if left > 0:
            parts["unused"] = left
        return "<h2>Bytes by field</h2>\n" + bars("Bytes of the file", (
            (name, x, f"{size_text(x)}  ({percent(x, facts['file_size'])})")
            for name, x in parts.items())) + \
            f"<footer>Fingerprint {self.s.core.fingerprint}. Made by beton " \
            f"{_beton.version}. Images are reduced copies; beton-info(1) " \
            "explains the page.</footer>\n"


def _cards(*cards: tuple[Card, NDArray[Any]]) -> Iterable[str]:
    return ('<div class="cards">\n',
            *(card.histogram(values) for card, values in cards), "</div>\n")


def _modes(jpegs: int, raws: int) -> str:
    if not jpegs or not raws:
        return f"<p>All images are stored as {'raw' if raws else 'JPEG'}." \
            "</p>\n" * bool(jpegs or raws)
    return bars("How images are stored", (
        (name, n, f"{count(n)}  ({percent(n, jpegs + raws)})")
        for name, n in (("JPEG", jpegs), ("raw", raws))))


def _beginning(data: bytes, size: int) -> str:
    """Return the beginning of a value of `size` bytes: text, or digits."""
    cut = "..." * (len(data) < size)
    try:
        # No part of a character at the end.
        text = codecs.getincrementaldecoder("utf-8")().decode(data, not cut)
        if not CONTROL.search(text.replace("\r", "")):
            return escape(text) + cut
    except UnicodeDecodeError:
        pass
    return "".join(f"{b:02x} " for b in data[:_HEX_BYTES]) \
        + "..." * (_HEX_BYTES < size)


def _why(e: BaseException, f: _Field) -> str:
    if not isinstance(e, OSError):
        return "out of memory"
    if e.errno == errno.EUCLEAN:
        return "invalid offset or size"
    # Without the path, and the sample that the caption has.
    _, found, why = str(e.strerror).rpartition(f" field {f.stem}: ")
    return why if found else os.strerror(e.errno or errno.EIO)


def html_of(core: _beton.Dataset, facts: dict[str, int], name: str,
            images: int, progress: bool = False) -> str:
    """Return the page of a dataset, with at most so many images in all.

    `facts` are numbers of the file: the sizes file_size, page_size, record,
    metadata, and table (of allocations) in bytes; pages; and the reads that
    finding the size of a value takes, or 0.
    """
    survey = _Survey(core, facts, images, progress)
    try:
        survey.read()
        return _Page(survey, facts, name, images).html
    finally:
        survey.end()


def main() -> None:
    path, storage, images, progress, facts = sys.argv[1:]
    try:
        text = html_of(_beton.Dataset(path, storage or None),
                       json.loads(facts), public(path).rpartition("/")[2],
                       int(images), progress == "1")
    except (OSError, ValueError, MemoryError) as e:
        sys.exit(f"beton: {getattr(e, 'strerror', e)}")
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except OSError as e:
        sys.exit(f"beton: standard output: {e.strerror}")


if __name__ == "__main__":
    main()
