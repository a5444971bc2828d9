# SPDX-License-Identifier: Apache-2.0
"""The real FFCV reads what betonfs.write() writes, every type of field.
FFCV_PYTHON names a Python that has it; without one these tests are skipped."""
import io
import json
import subprocess

import numpy as np
import pytest

import by_ffcv
from package import betonfs

Image = pytest.importorskip("PIL.Image")

python = by_ffcv.python
N = 40
FIELDS = {"label": "int", "score": "float", "image": "image", "blob": "bytes",
          "meta": "json", "vec": ("<f4", (2, 3)), "deep": ("<i2", (2, 1, 3)),
          "wide": ("<i8", (1,)), "tiny": ("|u1", (4,)), "mask": ("|b1", (5,))}


def jpeg(image):
    out = io.BytesIO()
    image.save(out, "jpeg", quality=90)
    return out.getvalue()


def sample(i):
    rng = np.random.default_rng(i)
    return {"label": -7 ** i if i < 20 else i, "score": i / 7,
            "image": by_ffcv.photo(i), "blob": rng.bytes(1 + i * 31),
            "meta": {"name": f"n\u00e4{i}", "list": [i, None, 1.5]},
            "vec": rng.normal(0, 1, (2, 3)).astype("<f4"),
            "deep": rng.integers(-9999, 9999, (2, 1, 3)).astype("<i2"),
            "wide": rng.integers(-2 ** 60, 2 ** 60, 1),
            "tiny": rng.integers(0, 256, 4, np.uint8),
            "mask": rng.integers(0, 2, 5).astype(bool)}


SAMPLES = [sample(i) for i in range(N)]


def written(path, mode):
    """A dataset of `mode`; kept: the JPEGs were encoded elsewhere."""
    samples = SAMPLES
    if mode == "image_cache":
        samples = [{**s, "image": jpeg(s["image"])} for s in SAMPLES]
    # Large blobs have pages end within the dataset.
    big = [{**s, "blob": s["blob"] + bytes(300_000)} for s in samples]
    betonfs.write(path, big, FIELDS, page_size=2 << 20, workers=2,
                  mode="raw" if mode == "raw" else "jpg")


def rows_of(got):
    """Where each sample is among the rows."""
    place = {float(v): row for row, v in enumerate(got["score"][:, 0])}
    return [place[s["score"]] for s in SAMPLES]


# FFCV compiles its loader every time: ten seconds each.
@pytest.mark.parametrize("mode, cache, order", [
    ("raw", "process", "QUASI_RANDOM"), ("jpg", "os", "SEQUENTIAL"),
    ("image_cache", "process", "SEQUENTIAL")])
def test_ffcv_reads_every_field(python, tmp_path, mode, cache, order):
    path, out = tmp_path / "x.beton", tmp_path / "out.npz"
    written(path, mode)
    subprocess.run([python, "-c", by_ffcv.READ, path, cache, order, out],
                   check=True, timeout=300)
    got = dict(np.load(out))
    assert set(got) == set(FIELDS)
    rows = rows_of(got)
    assert sorted(rows) == list(range(N))
    assert (rows == list(range(N))) == (order == "SEQUENTIAL")
    for row, s in zip(rows, SAMPLES):
        check(s, {name: column[row] for name, column in got.items()}, mode)


def check(want, row, mode):
    assert row["label"].tolist() == [want["label"]]
    assert row["score"].tolist() == [want["score"]]
    # It gives no length, and whatever was there before after a value's end.
    assert row["blob"][:len(want["blob"])].tobytes() == want["blob"]
    text = row["meta"].tobytes().partition(b"\0")[0]
    assert json.loads(text) == want["meta"]
    for name in "vec", "deep", "wide", "tiny", "mask":
        assert row[name].dtype == want[name].dtype
        assert np.array_equal(row[name], want[name]), name
    pixels = np.asarray(want["image"])
    assert row["image"].shape == pixels.shape
    off = np.abs(row["image"].astype(int) - pixels).mean()
    assert off <= (0 if mode == "raw" else 3)
