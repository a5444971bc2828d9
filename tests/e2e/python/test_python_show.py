# SPDX-License-Identifier: Apache-2.0
"""The output of Loader.show() and of a batch in a notebook: HTML that is
complete by itself, with the pixels of the batch."""
import base64
import html.parser
import io
import re

import numpy as np
import pytest

from package import betonfs, opener

Image = pytest.importorskip("PIL.Image")

N = 20
SPEC = {"batch_size": 8, "drop_last": False, "seed": 3, "workers": 1,
        "tensors": "numpy"}


class Page(html.parser.HTMLParser):
    """The pictures and the texts; every element must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.images, self.captions, self.about = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag == "figcaption":
            self.captions.append("")
        if tag == "img":
            kind, _, data = dict(attrs)["src"].partition(",")
            assert kind == "data:image/png;base64"
            picture = Image.open(io.BytesIO(base64.b64decode(data)))
            assert picture.format == "PNG"
            self.images.append(np.asarray(picture))
        assert tag not in ("script", "link")
        if tag not in ("img", "br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["figcaption"]:
            self.captions[-1] += data + "\n"
        if self.open[-1:] == ["p"]:
            self.about += data


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(8)
    path = tmp_path_factory.mktemp("show") / "s.beton"
    betonfs.write(path, [
        {"image": rng.integers(0, 256, (6, 9, 3), np.uint8), "label": 7 * i,
         "text": f"<b>&{i}".encode() + b"\xff" * (i % 2) + b"x" * 70 * (i % 3),
         "vec": np.full(3, i / 4, "<f4")} for i in range(N)], mode="raw")
    return path


@pytest.fixture
def load(path):
    with opener(path, **SPEC) as open_one:
        yield open_one


def test_pictures_of_bytes_are_as_they_are(load):
    loader = load()
    batch = next(iter(load()))
    page = Page(loader.show(5).html)
    assert len(page.images) == len(page.captions) == 5
    for i in range(5):
        assert (page.images[i] == batch.image[i]).all()
        lines = page.captions[i].splitlines()
        assert f"sample: {batch.ids[i]}" in lines
        assert f"label: {batch.label[i]}" in lines
        assert f"vec: {batch.vec[i].tolist()}" in lines
        text = f"text: {batch.text[i].decode('utf-8', 'replace')}"
        assert lines[2] in (text, text[:66] + "...") or lines[3] in (
            text, text[:66] + "...")
    assert "scaled" not in page.about and "uint8[6, 9, 3]" in page.about


def test_normalized_pictures_are_scaled_and_it_reports_it(load):
    loader = load(pipeline="image | normalize(imagenet) | float | chw")
    batch = next(iter(loader))
    low, high = batch.image.min(), batch.image.max()
    want = (batch.image.astype(float) - low) / (float(high) - low) * 255
    page = Page(batch._repr_html_())
    assert len(page.images) == 8
    for got, w in zip(page.images, want):
        assert got.shape == (6, 9, 3)
        assert np.abs(got - w.transpose(1, 2, 0)).max() <= 0.5001
    assert f"scaled: {low:.4g} is black and {high:.4g} white" in page.about


def test_a_look_moves_nothing(load):
    want = [b.ids.tolist() for b in load()]
    loader, got = load(), []
    for batch in loader:
        shown = loader.show()
        got.append(batch.ids.tolist())
        # It is of what comes next.
        if len(got) == 1:
            ids = [int(re.search(r"sample: (\d+)", c)[1])
                   for c in Page(shown.html).captions]
            assert ids == want[1] + want[2]
    assert got == want
    assert loader.stats()["throughput"]["batches"] == len(want)


def test_a_page_is_saved(load, tmp_path):
    shown = load(subset=iter(range(9))).show(3)
    shown.save(tmp_path / "look.html")
    text = (tmp_path / "look.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and "http" not in text
    assert len(Page(text).images) == 3
    assert shown._repr_html_() == shown.html and "3 samples" in repr(shown)
    with pytest.raises(ValueError, match="n=0"):
        load().show(0)


@pytest.mark.parametrize("how", ["tuple", "dlpack", "dict of a transform"])
def test_batches_of_all_kinds(load, how):
    options = {"tuple": {"batch": "tuple"}, "dlpack": {"tensors": "dlpack"},
               "dict of a transform": {"transforms": [dict]}}[how]
    want = next(iter(load())).image
    page = Page(load(**options).show(2).html)
    assert all((g == w).all() for g, w in zip(page.images, want[:2],
                                              strict=True))
    assert "label: " in page.captions[0]


def test_numbers_that_are_none_and_large_pictures():
    a = np.zeros((2, 700, 300, 1), np.float32)
    a[0, 0, 0], a[0, 0, 3], a[0, 0, 6] = np.nan, np.inf, 5
    a[1, 0, 0] = -5
    page = Page(betonfs.Shown([{"x": a, "y": np.arange(2)}]).html)
    assert page.images[0].shape == (234, 100)
    assert page.images[0][0, :3].tolist() == [0, 255, 255]
    assert page.images[1][0, 0] == 0 and page.images[1][1, 1] == 128
    same = Page(betonfs.Shown([{"x": np.full((1, 4, 4, 3), 7.0)}]).html)
    assert not same.images[0].any()
    # Without a picture there are the texts.
    page = Page(betonfs.Shown([{"y": np.arange(3)}]).html)
    assert page.images == [] and len(page.captions) == 3
