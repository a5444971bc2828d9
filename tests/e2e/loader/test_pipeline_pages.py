# SPDX-License-Identifier: Apache-2.0
"""Run every pipeline string in the manual pages about pipelines, and the commands
of beton-synthetic(7)."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from dumped import DEADLINE, beton
from package import PACKAGE, betonfs

ROOT = pathlib.Path(__file__).parents[3]
IMAGE_H, IMAGE_W = 60, 80
N = 20
# Blocks of code in these sections are pipeline strings, separated by blank
# lines or by lines of their own; all `.Dl` lines of a page are too.
BLOCKS = {
    "loader/pipeline/graph/beton-transforms.7": ["SYNOPSIS", "SEVERAL FIELDS",
                                        "EXAMPLES"],
    "loader/pipeline/ops/beton-operations.7": [],
    "loader/pipeline/ops/beton-ffcv.7": [],
    "loader/image/resize/beton-resize.7": ["SYNOPSIS"],
    "loader/pipeline/grid/beton-grids.7": ["SYNOPSIS", "FRAMES"],
    "loader/pipeline/list/beton-lists.7": ["SYNOPSIS", "BOXES AND POINTS"],
    "loader/run/transform/beton-image-cache.7": ["SYNOPSIS"],
    "loader/run/gpu/beton-gpu.7": ["SYNOPSIS"],
    "loader/run/jit/beton-jit.7": ["SYNOPSIS"],
}
# Some sections list pipeline strings line by line.
BY_LINE = {("loader/pipeline/grid/beton-grids.7", "SYNOPSIS"),
           ("loader/pipeline/grid/beton-grids.7", "FRAMES"),
           ("loader/pipeline/list/beton-lists.7", "SYNOPSIS"),
           ("loader/image/resize/beton-resize.7", "SYNOPSIS"),
           ("loader/run/transform/beton-image-cache.7", "SYNOPSIS")}


def plain(line):
    return line.replace(r"\(dq", '"').replace(r"\&", "").replace(r"\e", "\\")


def sections(text):
    """The text of each section by its name."""
    parts = re.split(r"^\.Sh (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def strings():
    """(page, pipeline string) of all examples."""
    for page, names in BLOCKS.items():
        text = (ROOT / page).read_text()
        for line in re.findall(r"^\.Dl (.*)$", text, re.M):
            yield page, plain(line)
        for name in names:
            for block in re.findall(r"^\.Bd -literal.*\n([^$]*?)^\.Ed",
                                    sections(text)[name], re.M):
                by_line = (page, name) in BY_LINE
                for one in re.split("\n" if by_line else "\n\n",
                                    block.strip()):
                    yield page, plain(one)


def sample(i, frames):
    rng = np.random.default_rng(i)
    size = IMAGE_H, IMAGE_W

    def pixels(*shape):
        return rng.integers(0, 256, shape, dtype=np.uint8)
    clip = [pixels(*size, 3) for _ in range(5 + i % 3)]
    boxes = np.sort(rng.random((1 + i % 3, 4)).astype(np.float32) * 60)
    return {
        "image": pixels(*size, 3), "label": i % 10,
        "mask": pixels(*size), "seg": pixels(*size) % 4,
        "scan": pixels(*size), "boxes": boxes,
        "labels": np.arange(len(boxes)), "tokens": np.arange(3 + i % 4),
        "text": b"an image of a cat", "polygons": b"[[1, 2.5], [3, 4]]",
        "sound": rng.integers(-99, 99, (300, 1), dtype=np.int16),
        **({"clip": clip} if frames else
           {"clip": pixels(40, 48, 64, 3), "second": pixels(*size, 3)}),
    }


FIELDS = {"image": "image", "label": "int",
          "mask": ("uint8", (IMAGE_H, IMAGE_W)), "seg": "mask",
          "scan": ("uint8", (IMAGE_H, IMAGE_W)),
          "boxes": ("float32", (None, 4)), "labels": ("int64", (None,)),
          "tokens": ("int64", (None,)), "text": "bytes", "polygons": "bytes",
          "sound": ("int16", (None, 1))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Datasets, and the files that the examples name."""
    at = tmp_path_factory.mktemp("pages")
    betonfs.write(at / "frames.beton", [sample(i, True) for i in range(N)],
                  {**FIELDS, "clip": "frames"}, mode="raw")
    betonfs.write(at / "array.beton", [sample(i, False) for i in range(N)],
                  {**FIELDS, "second": "image",
                   "clip": ("uint8", (40, 48, 64, 3))}, mode="raw")
    (at / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\ncat\nan\nimage\n")
    np.save(at / "mask.npy", np.ones((32, 32, 3), np.float32))
    code = (ROOT / "loader/run/jit/beton-jit.7").read_text().split(
        ".Sh CUSTOM OPERATIONS")[1]
    blocks = re.findall(r"\.Bd -literal[^\n]*\n(.*?)\.Ed\n", code, re.S)
    (at / "my_op.c").write_text(blocks[1])
    return at


def dataset(text):
    """The dataset with the fields of a pipeline string."""
    array = "second" in text or re.search(r"clip \| window", text)
    return "array.beton" if array else "frames.beton"


def run(folder, out, text):
    # A cache must not be larger than the memory of the machine.
    text = re.sub(r"\d+GiB", "1MiB", text)
    beton("dump", folder / dataset(text), "--spec", "batch=5",
          "--batches", "0:1", "--out", out, "--pipeline", text, cwd=folder)
    return {p.name[:-4]: np.load(p) for p in out.rglob("*.npy")}


@pytest.mark.parametrize("page, text", strings(),
                         ids=lambda v: v.split("/")[-1][:60])
def test_an_example_runs(folder, tmp_path, standins, page, text):
    found = run(folder, tmp_path / "o", text)
    assert found and all(len(v) for v in found.values())


def test_there_is_an_example_of_every_operation():
    page = (ROOT / "loader/pipeline/ops/beton-operations.7").read_text()
    examples = "\n".join(re.findall(r"^\.Dl (.*)$", page, re.M))
    for op in (ROOT / "loader/pipeline/ops").glob("*.c"):
        if op.stem not in ("uint8", "int64"):
            assert re.search(rf"\b{op.stem}\b", examples), op.stem


def test_boxes_are_written_and_read_as_the_page_defines(folder, tmp_path):
    page = (ROOT / "loader/pipeline/list/beton-lists.7").read_text()
    code = re.search(r"^\.Bd -literal -offset indent\n(betonfs.write.*?)^\.Ed",
                     page, re.M | re.S)[1]
    names = {"betonfs": betonfs, "samples":
             [{k: sample(i, True)[k] for k in ("image", "boxes")}
              for i in range(64)]}
    exec(code.replace("boxes.beton", str(tmp_path / "boxes.beton")), names)
    with names["loader"] as loader:
        batch = next(iter(loader))
        assert tuple(batch.boxes.shape) == (64, 20, 4)
        assert tuple(batch.image.shape) == (64, 224, 224, 3)


def commands():
    """Commands and pipeline strings of data sources in beton-synthetic(7)."""
    text = (ROOT / "loader/run/feed/beton-synthetic.7").read_text()
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", text, re.M | re.S)
    return [plain(line) for block in blocks for line in block.splitlines()] + \
        [plain(line) for line in re.findall(r"^\.Dl (.*)$", text, re.M)]


def test_the_synthetic_page_has_commands():
    assert [c for c in commands() if c.startswith("beton bench --source")]
    assert [c for c in commands() if c.startswith("BETON_SYNTHETIC=")]
    assert [c for c in commands() if c.startswith("synthetic(")]


TRAINER = """
import json
import betonfs
with betonfs.Loader("frames.beton", 5, pipeline={"label": "label"},
                    tensors="numpy") as loader:
    first = next(iter(loader)).label.tolist()
    print(json.dumps([b.label.tolist() == first for _ in range(2)
                      for b in loader]))
"""


@pytest.mark.parametrize("command", commands(), ids=lambda c: c[:60])
def test_a_synthetic_command_runs(folder, tmp_path, command):
    """Run the words of a command, with datasets and a trainer of the test. A
    block without a program is a data source."""
    words = shlex.split(re.sub(r"\d+GiB", "1MiB", command))
    if words[0].startswith("synthetic("):
        source = re.sub(r"\d+GiB", "1MiB", command)
        out = tmp_path / "o"
        beton("dump", "no.beton", "--spec", "batch=5", "--batches", "0:2",
              "--out", out, cwd=folder,
              env={**os.environ, "BETON_SYNTHETIC": source})
        images = [np.load(f) for f in sorted(out.rglob("image.npy"))]
        assert images[0].shape == (5, 375, 500, 3)
        assert (images[0] == images[1]).all() == source.endswith("constant")
        return
    variables = dict(w.split("=", 1) for w in words if re.match("[A-Z_]+=", w))
    program, *arguments = words[len(variables):]
    env = {**os.environ, **variables, "PYTHONPATH": str(PACKAGE)}
    if program == "beton":
        arguments = [a.replace("train.beton", "frames.beton") for a in arguments]
        r = beton(*arguments, "--epochs", 2, "--spec", "batch=5", "--pipeline",
                  "label", cwd=folder, env=env)
        assert "images/s" in r.stdout
    else:
        assert (program, arguments) == ("python", ["train.py"])
        r = subprocess.run([sys.executable, "-c", TRAINER], cwd=folder, env=env,
                           text=True, capture_output=True, timeout=DEADLINE)
        assert r.returncode == 0 and "synthetic" in r.stderr, r.stderr
        assert set(json.loads(r.stdout)) == {True}
