# SPDX-License-Identifier: Apache-2.0
"""The parts of the page of `beton info --html`; e2e/tools/test_info_html.py reads
whole pages."""
import html.parser
import math
import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

import dumped  # noqa: E402
from package import betonfs  # noqa: E402, F401
from betonfs import _beton, _gallery  # noqa: E402
from betonfs._html import (Bins, Card, bars, columns, count,  # noqa: E402
                           escape, percent, size_text)

TINY, HUGE = 5e-324, sys.float_info.max


# --- text and numbers ---

@pytest.mark.parametrize("text, shown", [
    ("", ""), ("plain, 1 + 2", "plain, 1 + 2"),
    ("</script><b a=\"1\" b='2'>&amp;",
     "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#x27;2&#x27;&gt;&amp;amp;"),
    ("a\tb\nc\rd\x1b[31m\x7f\0\x9b", "a\tb\nc d [31m   "),
    ("\xa0\u07ff\u0800\ud7ff\ue000\U00010000\U0010ffff",
     "\xa0\u07ff\u0800\ud7ff\ue000\U00010000\U0010ffff"),
    ("\udcff<", " &lt;")])
def test_text_is_escaped(text, shown):
    assert escape(text) == shown
    escape(text).encode()


@pytest.mark.parametrize("data, size, shown", [
    (b"", 0, ""), (b"ab\r\n\t", 5, "ab \n\t"), (b"\x1b", 1, "1b "),
    (b"a\0b", 3, "61 00 62 "), (b"a\xc3\xa4", 3, "aä"), (b"a\xc3", 2, "61 c3 "),
    # Cut within a character.
    (b"a\xc3", 9, "a..."), (b"a\xf0\x90\x80", 9, "a..."), (b"a\xf0", 9, "a..."),
    (b"\xf0\x90\x80\x80", 9, "\U00010000..."),
    # No continuation could make a character of these bytes.
    (b"\x80\x80\x80\x80", 4, "80 80 80 80 "), (b"a\x80", 9, "61 80 "),
    (b"\xc0\xbc", 2, "c0 bc "), (b"\xed\xa0\x80", 3, "ed a0 80 "),
    (b"\xff" * 60, 60, "ff " * 48 + "..."),
    (b"<b>" * 3, 400, "&lt;b&gt;" * 3 + "...")])
def test_beginnings(data, size, shown):
    assert _gallery._beginning(data, size) == shown


@pytest.mark.parametrize("n, counted, size", [
    (0, "0", "0 B"), (999, "999", "999 B"), (1000, "1,000", "1 kB"),
    (84210, "84,210", "84.2 kB"), (99949, "99,949", "99.9 kB"),
    (99950, "99,950", "100 kB"), (999499, "999,499", "999 kB"),
    (40000, "40,000", "40 kB"), (999500, "999,500", "1 MB"),
    (1281167, "1,281,167", "1.28 MB"),
    (2**64 - 1, "18,446,744,073,709,551,615", "18447 PB")])
def test_numbers(n, counted, size):
    assert count(n) == counted and size_text(n) == size


@pytest.mark.parametrize("part, whole, shown", [
    (0, 7, "0 %"), (7, 7, "100 %"), (1, 8, "12.5 %"), (1, 1000, "0.1 %"),
    (1, 1001, "under 0.1 %"), (999, 1000, "99.9 %"),
    (99999, 100000, "over 99.9 %"), (1, 0, "0 %")])
def test_percents(part, whole, shown):
    assert percent(part, whole) == shown


# --- charts ---

def test_charts_escape_texts():
    out = bars('bars "x"', [("<b>", 2, "2 of 4 & 5"), ("most", 8, "8"),
                            ("none", 0, "0")])
    assert 'aria-label="bars &quot;x&quot;"' in out
    assert "&lt;b&gt;" in out and "<b>" not in out and "4 &amp; 5" in out
    assert all(f"width:{w}%" in out for w in ("25.0", "100.0", "0.0"))
    out = columns('columns "x"', [(3, '"three"', "<1"), (0, "none", "")])
    assert 'aria-label="columns &quot;x&quot;"' in out
    assert "<title>&quot;three&quot;</title>" in out and "&lt;1</text>" in out
    assert bars("none", []) and columns("none", [])


def test_bins_of_even_values():
    b = Bins(np.arange(1000.0), True)
    assert (b.first, b.width, b.counts) == (0, 50, [50] * 20)
    assert not b.below and not b.above


def test_bins_have_no_room_for_outliers():
    v = np.arange(1000) / 1000
    v[[0, -1]] = -1e9, 1e9
    b = Bins(v, False)
    assert b.below and b.above and sum(b.counts) == 1000
    assert (b.first, b.width) == (0, 0.05)
    # If there are few values, none is an exception.
    b = Bins(v[990:], False)
    assert not b.above and b.first + b.width * len(b.counts) >= 1e9


def test_bins_of_whole_numbers():
    b = Bins(np.array([3.0, 4, 4, 6]), True)
    assert (b.first, b.width, b.counts) == (3, 1, [1, 2, 0, 1])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pair", [
    (0, TINY), (1, math.nextafter(1, 2)), (-HUGE, HUGE), (HUGE / 2, HUGE),
    (1e300, 1.0001e300), (-1e-300, 1e300), (1e15, 1e15 + 1),
    (-2.3e-308, 2.3e-308), (-9.3e18, 9.3e18), (0.1, 0.3), (-HUGE, -HUGE / 2)])
def test_bins_of_extremes(pair):
    """Each value is counted once, however large it is."""
    for whole in False, True:
        b = Bins(np.array(pair, float), whole)
        assert sum(b.counts) in (0, 2) and len(b.counts) <= 32
        assert Card("x", "{:g}".format, whole).histogram(np.array(pair, float))
    assert Bins(np.array([0.1, 0.3]), False).counts


def test_no_bins():
    assert not Bins(np.empty(0), False).counts
    assert not Bins(np.full(3, 7.0), True).counts
    assert not Bins(np.array([-HUGE] * 60 + [HUGE] * 60), False).counts


# --- choosing ---

@pytest.mark.parametrize("samples, n", [(10, 10), (10, 99), (10, 3), (7, 0),
                                        (0, 5), (1 << 36, 1 << 18)])
def test_samples_are_spread_evenly(samples, n):
    ids = _gallery._spread(samples, n).tolist()
    n = min(n, samples)
    assert len(ids) == n
    assert all(i * samples // n <= k < (i + 1) * samples // n
               for i, k in enumerate(ids))


@pytest.mark.parametrize("counts, n, shares", [
    ([5, 1, 3], 9, [5, 1, 3]), ([5, 1, 3], 99, [5, 1, 3]),
    ([5, 1, 3], 4, [2, 1, 1]), ([5, 1, 3], 7, [3, 1, 3]),
    ([5, 1, 3], 1, [0, 1, 0]), ([9] * 8, 3, [0, 1, 0, 0, 1, 0, 1, 0]),
    ([5], 0, [0])])
def test_shares(counts, n, shares):
    assert _gallery._shares(np.array(counts), n).tolist() == shares


def test_labels(tmp_path):
    field = _gallery._Field(0, {"name": "x", "stem": "x", "type": "int",
                                "unusable": None, "classes": ("a", "é" * 60)})
    assert [field.label(i) for i in (-1300, 0, 2)] == ["-1,300", "0 a", "2"]
    assert field.label(1) == "1 " + "é" * 44 + "…"


# --- damage ---

class Checked(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ("rect", "path")

    def handle_endtag(self, tag):
        assert tag == self.open.pop()


@pytest.mark.filterwarnings("error")
def test_random_damage(tmp_path):
    """The page is complete, or the dataset does not open."""
    good = dumped.photos(tmp_path / "good.beton", 24, 1 << 14)
    data = pathlib.Path(good.path).read_bytes()
    rng = np.random.default_rng(1)
    path = tmp_path / "hurt.beton"
    facts = dict.fromkeys(("file_size", "page_size", "record", "metadata",
                           "table", "pages", "reads"), 100)
    opened = 0
    for _ in range(150):
        hurt = bytearray(data)
        for at in rng.integers(0, len(data), 3).tolist() + \
                rng.integers(0, 12000, 5).tolist():
            hurt[at] = rng.integers(256)
        path.write_bytes(hurt)
        try:
            core = _beton.Dataset(path)
        except (OSError, ValueError):
            continue
        opened += 1
        Checked(_gallery.html_of(core, facts, "hurt", 30))
    assert opened > 20
