# SPDX-License-Identifier: Apache-2.0
"""The pictures of the documentation: a script draws each of them again, and those
that do not depend on a machine are the committed ones."""
import base64
import io
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from conftest import is_instrumented
from dumped import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/lint"))
import words  # noqa: E402

DRAW, PICTURES = ROOT / "contrib/docs/draw", ROOT / "contrib/docs/pictures"
SVG = "{http://www.w3.org/2000/svg}"
BYTES_MAX = 100_000
BY_BROWSER = {"doctor", "info"}
SCRIPTS = sorted(p.name for p in DRAW.iterdir() if p.is_file() and
                 not p.suffix)

needs_python = pytest.mark.skipif(
    is_instrumented or not list(BUILD.glob("python/betonfs/_beton*.so")),
    reason="the package is not built, or Python has no sanitizer")


def run(name, out, **env):
    return subprocess.run(
        [sys.executable, DRAW / name, "--out", out], capture_output=True,
        text=True, timeout=180,
        env={**os.environ, "BUILD": str(BUILD), **env})


def drawn(name, tmp_path):
    out = tmp_path / f"{name}.svg"
    r = run(name, out)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")
    return out.read_text()


def committed(name):
    return (PICTURES / f"{name}.svg").read_text()


def texts(picture):
    return [e.text for e in ET.fromstring(picture).iter(SVG + "text")]


def titles(picture):
    return [e.text for e in ET.fromstring(picture).iter(SVG + "title")]


def test_a_script_for_each_picture():
    assert SCRIPTS == sorted(p.stem for p in PICTURES.iterdir())
    assert BY_BROWSER == {p.stem for p in PICTURES.glob("*.png")}
    assert all(os.access(DRAW / name, os.X_OK) for name in SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_pictures_are_small_and_readable(name):
    path, = PICTURES.glob(f"{name}.*")
    assert path.stat().st_size < BYTES_MAX
    if path.suffix == ".png":
        assert Image.open(path).width >= 800
        return
    text = path.read_text()
    root = ET.fromstring(text)
    assert root.tag == SVG + "svg" and root.get("role") == "img"
    assert root[0].tag == SVG + "title" and len(root[0].text) > 20
    # Every class has a color for light pages and one for dark pages.
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    used = {c for e in root.iter() for c in e.get("class", "").split()}
    for class_ in used - {"mono"}:
        assert all(re.search(rf"^\.{class_} \{{", part, re.M)
                   for part in (light, dark)), class_
    # No path of the machine, and the terms of the manual.
    assert "/tmp" not in text
    for line in filter(None, texts(text)):
        assert not [advice for term, advice in words.TERMS
                    if term.search(line)], line


def test_cost_has_the_figures_of_the_table(tmp_path):
    now = drawn("cost", tmp_path)
    assert now == committed("cost"), "run make pictures"
    table = (ROOT / "contrib/bench/README.md").read_text()
    found = [t.removesuffix(" µs") for t in texts(now) if t.endswith(" µs")]
    for key, figure in zip(("betonfs.Loader", "FFCV",
                            "DataLoader, PIL, torchvision"), found,
                           strict=True):
        assert re.search(rf"^\| {key} \| [^|]*\| {figure} \(", table, re.M)


@needs_python
def test_shuffle_draws_the_same_orders(tmp_path):
    now = drawn("shuffle", tmp_path)
    assert now == committed("shuffle"), "run make pictures"
    assert "1.0 classes per batch" in texts(now)


def images(picture):
    for e in ET.fromstring(picture).iter(SVG + "image"):
        data = e.get("href").removeprefix("data:image/png;base64,")
        yield np.array(Image.open(io.BytesIO(base64.b64decode(data)))
                       .convert("RGB")).astype(int)


@needs_python
def test_operations_draws_the_same_images(tmp_path):
    """Pillow's versions choose other colors for a palette."""
    now = drawn("operations", tmp_path)
    assert texts(now) == texts(committed("operations"))
    assert titles(now) == titles(committed("operations"))
    both = list(zip(images(now), images(committed("operations")), strict=True))
    assert len(both) == len(titles(now)) - 1
    for a, b in both:
        assert a.shape == b.shape and abs(a - b).mean() < 6
    # No two operations give the same image.
    distinct = {a.tobytes() for a, _ in both}
    assert len(distinct) == len(both)


LANES = {"beton reader", "beton engine", "beton worker 0", "beton worker 1",
         "trainer", "queue"}


@needs_python
def test_trace_shows_the_spans_of_each_thread(tmp_path):
    for picture in (drawn("trace", tmp_path), committed("trace")):
        assert LANES <= set(texts(picture))
        spans = {t.split(":")[0] for t in titles(picture)[1:]}
        assert {"collate", "samples", "decode", "transform",
                "trainer"} <= spans


@needs_python
@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="no /dev/fuse")
def test_top_shows_the_jobs(tmp_path):
    for picture in (drawn("top", tmp_path), committed("top")):
        shown = " ".join(texts(picture)).split()
        assert {"JOB", "IMG/S", "EPOCH", "BATCH", "WAIT", "VERDICT", "clip",
                "resnet", "decode"} <= set(shown)
        # A row for each rank, and no other job.
        assert shown.count("rank") == 4
        assert not any(w.startswith("session-") for w in shown)


@pytest.mark.parametrize("name", sorted(BY_BROWSER))
def test_without_a_browser_a_picture_stays(name, tmp_path):
    out = tmp_path / "out.png"
    out.write_bytes(b"as it is")
    r = run(name, out, PATH=str(tmp_path))
    assert (r.returncode, r.stdout) == (0, "")
    assert "install chromium" in r.stderr and r.stderr.count("\n") == 1
    assert out.read_bytes() == b"as it is"
