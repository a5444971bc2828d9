# SPDX-License-Identifier: Apache-2.0
"""The page of `beton info --html`: its figures are correct, its images are those
of the dataset, and it escapes all text of a dataset."""
import base64
import html.parser
import io
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

import dumped
import make
import package  # noqa: F401, skips without it
from conftest import BUILD, DEADLINE
from dumped import beton

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from damage import ALL_JPEG, DAMAGES  # noqa: E402

Image = pytest.importorskip("PIL.Image")

SIDE = 208      # of a thumbnail, at most
FIRST = 24      # of them that are seen at once
VOID = {"meta", "img", "rect", "path"}
TAGS = VOID | set(
    "html head title style body h1 h2 dl div dt dd p small b br table tr th td "
    "figure figcaption i svg g text section code pre ul li details summary "
    "footer".split())
ATTRIBUTES = set(
    "lang charset name content class style aria-label role alt src width "
    "height scope viewbox x y d text-anchor".split())


class Node:
    def __init__(self, tag, attrs=(), parent=None):
        self.tag, self.attrs, self.parent = tag, dict(attrs), parent
        self.children = []

    def all(self, tag, of=None):
        """Nodes of a tag, and of a class, within."""
        for c in self.children:
            if isinstance(c, Node):
                if c.tag == tag and of in (None, c.attrs.get("class")):
                    yield c
                yield from c.all(tag, of)

    def one(self, tag, of=None):
        found, = self.all(tag, of)
        return found

    @property
    def text(self):
        return "".join(c if isinstance(c, str) else
                       "\n" if c.tag == "br" else c.text
                       for c in self.children)


class Page(html.parser.HTMLParser):
    """A page as a tree; it must be well-formed, with nothing from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.source = text
        self.root = self.at = Node("")
        self.feed(text)
        self.close()
        assert self.at is self.root, f"<{self.at.tag}> is not closed"
        assert text.startswith("<!DOCTYPE html>")
        assert not re.search(r"https?:|url\(|@import|javascript:", text)

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, tag
        for key, value in attrs:
            assert key in ATTRIBUTES, (tag, key)
            assert key != "src" or value.startswith("data:image/jpeg;base64,")
            assert key != "style" or re.fullmatch(r"width:\d+\.\d%", value)
        node = Node(tag, attrs, self.at)
        self.at.children.append(node)
        if tag not in VOID and tag != "br":
            self.at = node

    def handle_startendtag(self, tag, attrs):
        assert tag in ("rect", "path")
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert tag == self.at.tag, (tag, self.at.tag)
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)

    # --- its contents ---

    @property
    def tiles(self):
        tiles = self.root.one("dl", "tiles")
        return {d.one("dt").text: d.one("dd").text for d in tiles.all("div")}

    @property
    def fields(self):
        """name -> (what it holds, its mean size)"""
        table = next(self.root.all("table"))
        return {r.one("th").text: tuple(c.text for c in r.all("td"))
                for r in list(table.all("tr"))[1:]}

    def section(self, stem):
        found, = [s for s in self.root.all("section")
                  if s.one("h2").children[0] == stem + " "]
        return found

    def bars(self, label, within=None):
        """name -> (number, width)"""
        table, = [t for t in (within or self.root).all("table", "bars")
                  if t.attrs["aria-label"] == label]
        return {r.one("th").text: (
            r.one("td", "n").text,
            float(re.search(r"[\d.]+", next(r.all("i")).attrs["style"])[0]))
            for r in table.all("tr")}

    @property
    def shots(self):
        return [Shot(f) for g in self.root.all("div", "shots")
                for f in g.all("figure")]


class Shot:
    def __init__(self, figure):
        text = figure.one("figcaption").text
        self.caption = text
        self.sample = int(re.search(r"sample (\d+)", text)[1])
        label = re.search(r"label (-?[\d,]+)", text)
        self.label = int(label[1].replace(",", "")) if label else None
        img = list(figure.all("img"))
        self.why = None if img else figure.one("div", "broken").text
        if img:
            self.img = img[0].attrs
            data = base64.b64decode(self.img["src"].split(",")[1],
                                    validate=True)
            self.image = Image.open(io.BytesIO(data))
            self.image.load()
            assert self.image.format == "JPEG"
            assert self.image.size == (int(self.img["width"]),
                                       int(self.img["height"]))


def card(section, title):
    found, = [c for c in section.all("figure", "card")
              if c.one("figcaption").text == title]
    return found


def counts(picture):
    """The title of each column of a histogram -> its count."""
    out = {}
    for g in picture.all("g"):
        name, n = g.one("title").text.split(": ")
        out[name] = int(n.split()[0].replace(",", ""))
    return out


def page_of(path, tmp_path, *options):
    where = tmp_path / "page.html"
    r = beton("info", path, "--html", where, *options)
    assert not r.stdout and not r.stderr, r
    return Page(where.read_text())


def jpeg(seed, width, height, quality=90):
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(few).resize((width, height), Image.BICUBIC) \
        .save(out, "jpeg", quality=quality)
    return out.getvalue()


def raw(data, width, height):
    return make.Image(make.RAW, width, height, data)


def jpg(data, width, height):
    return make.Image(make.JPG, width, height, data)


# --- the whole ---

@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("photos") / "p.beton", 40)


def test_every_type(photos, tmp_path):
    page = page_of(photos.path, tmp_path)
    size = os.path.getsize(photos.path)
    stored = {name: [len(photos.stored(i, name)) for i in range(40)]
              for name, kind, *_ in photos.fields
              if kind not in (make.INT, make.FLOAT)}
    mean = sum(map(sum, stored.values())) / 40 + photos.record.itemsize
    assert page.tiles["samples"] == "40"
    assert page.tiles["file size"] == "%.3g kB" % (size / 1000)
    assert page.tiles["mean sample size"] == "%.3g kB" % (mean / 1000)
    assert page.tiles["fields"] == "7"
    assert page.tiles["images stored as JPEG"] == "75 %"
    assert list(page.fields) == [f[0] for f in photos.fields]
    assert page.fields["vec"] == ("arrays, <f4 (2, 3)", "24 B")
    assert page.fields["tens"] == ("tensors, <i2 (5,)", "10 B")
    assert page.fields["label"] == ("integers", "8 B")
    assert page.fields["image"][1] == \
        "%.3g kB" % (np.mean(stored["image"]) / 1000)
    assert page.bars("How images are stored") == {
        "JPEG": ("30  (75 %)", 100.0), "raw": ("10  (25 %)", 33.3)}
    assert page.root.one("h1").text == "p.beton" == \
        next(page.root.all("title")).text
    assert not list(page.root.all("div", "damage"))
    space = page.bars("Bytes of the file")
    assert space["image"][0].startswith(
        "%.3g kB  (" % (sum(stored["image"]) / 1000))
    assert space["allocation table"][0].startswith(
        "%.3g kB" % (24 * len(photos.table) / 1000))


def test_images_are_those_of_the_dataset(photos, tmp_path):
    shots = page_of(photos.path, tmp_path).shots
    assert sorted(s.sample for s in shots) == list(range(40))
    for s in shots:
        v = photos.values[s.sample]["image"]
        size = v.width, v.height
        assert s.label == photos.values[s.sample]["label"]
        assert s.image.size == size and \
            f"{size[0]} × {size[1]}, " in s.caption
        assert ("raw" in s.caption) == (v.mode == make.RAW)
        assert s.img["alt"] == f"sample {s.sample}, label {s.label:,}"
        if v.mode == make.JPG:
            truth = np.asarray(Image.open(io.BytesIO(v.data)).convert("RGB"))
            off = np.abs(truth.astype(int) - np.asarray(s.image))
            assert off.mean() < 6, s.sample


@pytest.mark.parametrize("size, shown", [
    ((500, 375), (208, 156)), ((375, 500), (156, 208)), ((208, 1), (208, 1)),
    ((209, 1), (208, 1)), ((1, 1), (1, 1)), ((1000, 3), (208, 1)),
    ((416, 416), (208, 208))])
@pytest.mark.parametrize("mode", [make.JPG, make.RAW])
def test_large_ones_are_reduced(size, shown, mode, tmp_path):
    data = jpeg(1, *size)
    truth = Image.open(io.BytesIO(data)).convert("RGB")
    if mode == make.RAW:
        data = truth.tobytes()
    d = make.Dataset(tmp_path / "x.beton", [("image", make.IMAGE)],
                     [{"image": make.Image(mode, *size, data)}], 1 << 20)
    shot, = page_of(d.path, tmp_path).shots
    assert shot.image.size == shown and shot.label is None
    want = np.asarray(truth.resize(shown, Image.BOX)).astype(int)
    assert np.abs(want - np.asarray(shot.image)).mean() < 8


@pytest.mark.parametrize("n", [0, 1, 5, 25, 39])
def test_so_many_images(photos, tmp_path, n):
    page = page_of(photos.path, tmp_path, f"--thumbnails={n}")
    shots = page.shots
    assert len(shots) == n == len({s.sample for s in shots})
    more = list(page.root.all("details"))
    assert len(more) == (n > FIRST)
    if more:
        assert more[0].one("summary").text == f"{n - FIRST} more"
        assert len(list(more[0].all("img"))) == n - FIRST
    if n > 1:   # from all over the dataset
        assert max(s.sample for s in shots) - min(s.sample for s in shots) \
            >= 40 * (1 - 2 / n)


def test_the_same_page_each_time(photos, tmp_path):
    first = beton("info", photos.path, "--html", "-")
    assert first.stdout.startswith("<!DOCTYPE html>") and not first.stderr
    assert first.stdout == beton("info", photos.path, "--html=-").stdout
    assert first.stdout == page_of(photos.path, tmp_path).source


# --- numbers ---

def test_few_classes(tmp_path):
    labels = [3] * 5 + [-12] * 30 + [70] * 15
    d = make.Dataset(tmp_path / "x.beton", [("label", make.INT)],
                     [{"label": v} for v in labels])
    page = page_of(d.path, tmp_path)
    section = page.section("label")
    assert page.bars("Samples per value") == {
        "-12": ("30  (60 %)", 100.0), "3": ("5  (10 %)", 16.7),
        "70": ("15  (30 %)", 50.0)}
    assert list(page.bars("Samples per value")) == ["-12", "3", "70"]
    assert "3 different values, each with 5 to 30 samples, a ratio of 1 to 6." \
        in section.text
    assert not page.shots


def test_many_classes(tmp_path):
    """The most frequent have bars, and the rest is added up."""
    labels = np.repeat(np.arange(100), np.arange(100, 0, -1))
    np.random.default_rng(1).shuffle(labels)
    pixel = raw(bytes(3), 1, 1)
    d = make.Dataset(tmp_path / "x.beton",
                     [("label", make.INT), ("image", make.IMAGE)],
                     [{"label": int(v), "image": pixel} for v in labels])
    page = page_of(d.path, tmp_path)
    bars = page.bars("Samples per value")
    assert {int(k): int(v[0].split()[0]) for k, v in bars.items()} == \
        {i: 100 - i for i in range(20)}
    others = page.root.one("p", "others").text
    assert others == "other classes: 80 values, 3,240 samples (64.2 %)"
    ranks = counts(card(page.section("label"),
                        "samples per value, most frequent first"))
    assert ranks["rank 1"] == 100 and min(ranks.values()) >= 1
    assert list(ranks.values()) == sorted(ranks.values(), reverse=True)
    # There is an image of each class, with the right label.
    shots = page.shots
    assert sorted(s.label for s in shots) == list(range(100))
    assert all(labels[s.sample] == s.label for s in shots)
    # If there are fewer images than classes, each has another class.
    some = page_of(d.path, tmp_path, "--thumbnails=30").shots
    assert len({s.label for s in some}) == 30
    # If there are more, classes have equal numbers, as far as they have
    # images.
    many = page_of(d.path, tmp_path, "--thumbnails=1000").shots
    of = np.bincount([s.label for s in many], minlength=100)
    left = 1000
    want = np.zeros(100, int)
    while left:
        for k in range(100):
            if left and want[k] < 100 - k:
                want[k] += 1
                left -= 1
    assert of.tolist() == want.tolist()
    assert len({s.sample for s in many}) == 1000


def test_an_index_is_no_class(tmp_path):
    d = make.numbers(tmp_path / "x.beton", 600)
    section = page_of(d.path, tmp_path).section("label")
    assert "600 different values, one for each sample." in section.text
    columns = counts(card(section, "values"))
    assert sum(columns.values()) == 600
    assert all(v == 50 for v in columns.values())


def test_more_values_than_are_counted(tmp_path):
    d = make.Dataset(tmp_path / "x.beton", [("label", make.INT)],
                     [{"label": i // 2 << 40} for i in range(80000)])
    section = page_of(d.path, tmp_path).section("label")
    assert "More than 32,768 different values." in section.text
    assert sum(counts(card(section, "values")).values()) == 16384


def test_floats(tmp_path):
    values = np.concatenate([np.random.default_rng(1).normal(5, 2, 997),
                             [math.nan, math.inf, -math.inf]])
    d = make.Dataset(tmp_path / "x.beton", [("score", make.FLOAT)],
                     [{"score": float(v)} for v in values])
    section = page_of(d.path, tmp_path).section("score")
    finite = values[:997]
    assert "Range %.6g to %.6g, mean %.6g." % (
        finite.min(), finite.max(), finite.mean()) in section.text
    assert "3 values are not finite." in section.text
    for name, n in counts(card(section, "values")).items():
        low, high = name.split(" to ")
        low = -math.inf if low == "less" else float(low)
        high = math.inf if high == "more" else float(high)
        assert n == ((finite >= low) & (finite < high)).sum(), name


@pytest.mark.parametrize("values", [
    [math.nan], [-0.0] * 3, [5e-324, 0.0], [-1.7e308, 1.7e308],
    [1.7e308] * 3, [1.0, math.nextafter(1, 2)]], ids=str)
def test_odd_floats(values, tmp_path):
    d = make.Dataset(tmp_path / "x.beton", [("score", make.FLOAT)],
                     [{"score": v} for v in values])
    page = page_of(d.path, tmp_path)
    printed = page.section("score").text
    assert not re.search(r"nan|inf\b|-0\b", page.source + printed)


def test_sizes_of_images(tmp_path):
    sides = [100 + 3 * (i % 37) for i in range(300)]
    d = make.Dataset(tmp_path / "x.beton", [("image", make.IMAGE)],
                     [{"image": raw(bytes(3 * w), w, 1)} for w in sides])
    section = page_of(d.path, tmp_path).section("image")
    for title, truth in ("width", sides), ("size as stored",
                                           [3 * w for w in sides]):
        shown = card(section, title)
        total = 0
        for name, n in counts(shown).items():
            low, high = (float(x.split()[0].replace(",", ""))
                         for x in name.split(" to "))
            assert n == sum(low <= t < high for t in truth), name
            total += n
        assert total == 300
    middle = sorted(sides)[150]
    assert f"median {middle} px, 100 px to 208 px; 300 values" in \
        card(section, "width").text
    assert "all 1 px" in card(section, "height").text
    assert "All images are stored as raw." in section.text


def test_large_datasets_are_sampled(tmp_path):
    """A pattern that repeats after ten samples appears unchanged."""
    n = 5_000_000
    path = tmp_path / "x.beton"
    meta = 24 + 1041
    with open(path, "wb") as f:
        f.write(struct.pack("<HHIQQ", 2, 1, 4096, n, meta + 8 * n))
        f.write((b"\1label".ljust(17, b"\0") + bytes(1024)))
        (np.arange(n, dtype="<i8") % 10).tofile(f)
    page = page_of(path, tmp_path)
    assert "262,144 of 5,000,000 samples (5.24 %)" in page.source
    assert "sizes of 16,384 of them (0.328 %)" in page.source
    bars = page.bars("Samples per value")
    seen = [int(v[0].split()[0].replace(",", "")) for v in bars.values()]
    assert len(seen) == 10 and sum(seen) == 262144
    assert max(seen) < 1.05 * min(seen)


def test_tables_of_many_writers_cost_no_more(tmp_path):
    """Where each size takes many reads fewer are looked up."""
    n, runs = 60_000, 64
    fields = np.dtype([("i", make.PICTURE)], align=True)
    page, meta = 1 << 12, 24 + 1041
    first = -(-(meta + n * fields.itemsize) // page) * page
    at = first + page * np.arange(n)
    records = np.zeros(n, fields)
    records["i"]["f1"], records["i"]["f2"], records["i"]["f3"] = 7, 9, at
    order = np.argsort(np.arange(n) % runs, kind="stable")
    table = np.stack([np.arange(n), at, 100 + np.arange(n) % 50], 1)[order]
    path = tmp_path / "x.beton"
    with open(path, "wb") as f:
        f.write(struct.pack("<HHIQQ", 2, 1, page, n, first + page * n))
        f.write((b"\2image".ljust(17, b"\0") + bytes(1024)))
        records.tofile(f)
        f.seek(first + page * n)
        table.astype("<u8").tofile(f)
    shown = page_of(path, tmp_path, "--thumbnails=1")
    assert "all sizes" not in shown.source
    assert "sizes of 4,096 of them (6.83 %)" in shown.source
    image = shown.section("image")
    assert "all 7 px" in card(image, "width").text
    assert "100 B to 149 B; 4,096 values" in \
        card(image, "size as stored").text


def test_nothing_in_it(tmp_path):
    d = make.Dataset(tmp_path / "x.beton",
                     [("label", make.INT), ("image", make.IMAGE),
                      ("text", make.JSON), ("score", make.FLOAT)], [])
    page = page_of(d.path, tmp_path)
    assert page.tiles["samples"] == "0" and not page.shots


def test_more_fields_than_are_shown(tmp_path):
    fields = [(f"f{i}", make.INT) for i in range(70)]
    d = make.Dataset(tmp_path / "x.beton", fields,
                     [{f: i for f, _ in fields} for i in range(3)], 4096)
    page = page_of(d.path, tmp_path)
    assert len(page.fields) == 64 and "omits 6 more fields" in page.source
    assert page.tiles["fields"] == "70"


# --- text ---

def test_text_is_shown(tmp_path):
    texts = [('{"caption": "Grüße, 世界 %d"}' % i).encode() for i in range(3)]
    blobs = [b"plain text\n\tof lines", bytes(range(256)) * 2, b""]
    d = make.Dataset(tmp_path / "x.beton",
                     [("text", make.JSON), ("blob", make.BYTES)],
                     [{"text": t, "blob": b} for t, b in zip(texts, blobs)])
    page = page_of(d.path, tmp_path)
    shown = [p.text for p in page.section("text").all("pre")]
    assert shown == [t.decode() for t in texts]
    shown = [p.text for p in page.section("blob").all("pre")]
    assert shown[0] == blobs[0].decode() and shown[2] == ""
    assert bytes.fromhex(shown[1].replace("...", "")) == bytes(range(48))
    captions = [f.text for f in page.section("blob").all("figcaption")]
    assert captions[:3] == ["sample 0, 20 B", "sample 1, 512 B",
                            "sample 2, 0 B"]


def test_text_is_cut_between_characters(tmp_path):
    text = ("é" * 400).encode()
    d = make.Dataset(tmp_path / "x.beton", [("text", make.JSON)],
                     [{"text": b"x" * odd + text} for odd in (0, 1)])
    shown = [p.text for p in page_of(d.path, tmp_path).root.all("pre")]
    assert shown == ["é" * 160 + "...", "x" + "é" * 159 + "..."]


# --- whatever is in it ---

EVIL = ["</pre><script>document.title='x'</script>",
        "\"><img src=x onerror=alert(1)>", "'><svg onload=alert(1)>",
        "<!--", "]]>", "&lt;b&gt; &#60;b&#62;", "\u202eevil\u202c",
        "</style><style>*{display:none}</style>"]


@pytest.fixture
def hostile(tmp_path):
    """Names of fields and of the file, and texts."""
    fields = [("<script>x(", make.JSON), ("\"onload=\"y(", make.BYTES),
              ("</h2><b>&amp;", make.INT), ("<img src=x>", make.IMAGE),
              ("' x='<!--", make.FLOAT),
              ("</td></table>", make.NDARRAY, "<f4", (1,))]
    names = [f[0] for f in fields]
    path = tmp_path / "<script>n(1)<!-- & \"'.beton"
    return make.Dataset(path, fields, [dict(zip(names, (
        e.encode(), e.encode(), i % 2, raw(bytes(3), 1, 1), 0.5 * i,
        np.zeros(1, "<f4")))) for i, e in enumerate(EVIL[:6])])


def test_hostile_names_are_escaped(hostile, tmp_path):
    page = page_of(hostile.path, tmp_path)
    assert page.root.one("h1").text == os.path.basename(hostile.path)
    assert list(page.fields)[0].startswith("<script>x(\nfile-name form ")
    assert {f.split("\nfile-name form")[0] for f in page.fields} == \
        {f[0] for f in hostile.fields}
    shown = [p.text for p in page.root.all("pre")]
    assert shown == EVIL[:6] + EVIL[:6]
    assert len(page.shots) == 6


@pytest.mark.parametrize("text", EVIL + ["\x1b[31mred\x07", "a\0b"])
def test_texts_that_are_none(text, tmp_path):
    for data in text.encode(), b"\xff" + text.encode() + b"\xc3":
        d = make.Dataset(tmp_path / "x.beton", [("text", make.BYTES)],
                         [{"text": data}])
        shown = page_of(d.path, tmp_path).root.one("pre").text
        if re.search("[\x00-\x1f]", text) or b"\xff" in data:
            assert bytes.fromhex(shown.replace("...", "")) == data[:48]
        else:
            assert shown == text


@pytest.mark.parametrize("damage", DAMAGES,
                         ids=lambda d: d.name.replace(" ", "-"))
def test_damage_is_reported_and_no_failure(damage, tmp_path_factory, tmp_path):
    good = dumped.photos(tmp_path / "good.beton", 24)
    data = bytearray(open(good.path, "rb").read())
    damage.edit(good, data)
    path, where = tmp_path / "hurt.beton", tmp_path / "page.html"
    path.write_bytes(data)
    opens = beton("info", path, code=None).returncode == 0
    r = beton("info", path, "--html", where, code=0 if opens else 1)
    if not opens:
        assert not where.exists() and r.stderr.count("\n") == 1
        return
    page = Page(where.read_text())
    broken = {s.sample for s in page.shots if s.why}
    assert all(s.why is None or "invalid offset" not in s.why or "×" not in s.caption
               for s in page.shots)
    outcome = damage.outcome
    if outcome == ALL_JPEG:
        assert broken == {i for i in range(24)
                          if good.values[i]["image"].mode == make.JPG}
    elif outcome.kind == "harmless":
        assert not broken and not list(page.root.all("div", "damage"))
    elif outcome.kind in ("hurts", "undecodable"):
        assert broken == {i for i, f in outcome.values if f == "image"}
        reported = page.root.one("div", "damage").text
        assert all(f"{f}: 1 of " in reported for _, f in outcome.values)
        if outcome.kind == "hurts":
            assert all(f"sample {i}" in reported for i, _ in outcome.values)


# --- where it goes ---

def test_it_appears_complete_or_not_at_all(photos, tmp_path):
    where = tmp_path / "out" / "page.html"
    r = beton("info", photos.path, "--html", where, code=1)
    assert str(where) in r.stderr and r.stderr.count("\n") == 1
    where.parent.mkdir()
    where.write_text("before")
    before = os.stat(where).st_ino
    beton("info", photos.path, "--html", where)
    assert os.stat(where).st_ino != before
    assert os.listdir(where.parent) == ["page.html"]
    r = beton("info", photos.path, "--html", where.parent, code=1)
    assert "Is a directory" in r.stderr


def test_standard_output_that_is_full(photos):
    with open("/dev/full", "w") as full:
        r = subprocess.run([BUILD / "beton", "info", photos.path, "--html",
                            "-"], stdout=full, stderr=subprocess.PIPE,
                           text=True, timeout=DEADLINE)
    assert r.returncode == 1 and "No space left" in r.stderr


@pytest.mark.parametrize("options", [
    ("--html=x", "--json"), ("--html=x", "--spec=batch=4"),
    ("--html=x", "--thumbnails=2001"), ("--html=x", "--thumbnails=-1")])
def test_wrong_usage(photos, tmp_path, options):
    r = beton("info", photos.path, *options, code=2, cwd=tmp_path)
    assert r.stderr and not os.listdir(tmp_path)


def test_a_mount_has_none(photos, mount, tmp_path):
    where = mount(photos.path)
    r = beton("info", where, "--html", tmp_path / "x.html", code=1)
    assert "needs a FILE" in r.stderr and not (tmp_path / "x.html").exists()


# --- in a browser ---

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser",
            "google-chrome")
LOOK = """<script>addEventListener("load", () => {
  const all = [...document.images], e = document.documentElement;
  e.dataset.seen = JSON.stringify({
    images: all.length, scripts: document.scripts.length,
    good: all.filter(i => i.naturalWidth > 0).length,
    seen: all.filter(i => i.checkVisibility() && i.getBoundingClientRect().width > 40).length,
    wide: e.scrollWidth, room: e.clientWidth})})</script>"""


@pytest.fixture
def browse(tmp_path):
    """browse(page, width) -> what LOOK finds."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip("no " + ", ".join(BROWSERS))

    def do(page, width):
        path = tmp_path / "looked-at.html"
        path.write_text(page.source.replace("</body>", LOOK + "</body>"))
        r = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
             f"--window-size={width},900", path.as_uri()],
            capture_output=True, text=True, timeout=120)
        seen = re.search(r'data-seen="([^"]*)"', r.stdout)
        if r.returncode or not seen:
            pytest.skip(f"{browser} does not work here: {r.stderr[-300:]}")
        return json.loads(seen[1].replace("&quot;", '"'))
    return do


@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_shows_it(browse, photos, hostile, tmp_path, width):
    seen = browse(page_of(photos.path, tmp_path), width)
    assert seen["images"] == seen["good"] == 40 and seen["scripts"] == 1
    assert seen["seen"] == FIRST
    assert seen["wide"] <= seen["room"], "has to be scrolled sideways"
    seen = browse(page_of(hostile.path, tmp_path), width)
    assert seen["images"] == seen["good"] == 6 and seen["scripts"] == 1
    assert seen["wide"] <= seen["room"]
