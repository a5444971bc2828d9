# SPDX-License-Identifier: Apache-2.0
"""Files that FFCV wrote, compared with the values that FFCV reads from them. The
files are in ../shared (or BETON_SHARED); without it these tests are skipped."""
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import struct

import pytest

from dumped import AUGMENT, beton, digest, dump
from batchfile import BatchFile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARED = pathlib.Path(os.environ.get("BETON_SHARED", ROOT.parent / "shared"))
GOLDEN = sorted((SHARED / "data/golden").glob("*.beton.json"))

pytestmark = pytest.mark.skipif(not GOLDEN,
                                reason=f"no data/golden in {SHARED}")


def unpacked(path, folder):
    """The dataset beside its JSON; an .xz becomes a file of the directory."""
    plain = path.with_suffix("")
    if plain.exists():
        return plain
    out = folder / plain.name
    with lzma.open(f"{plain}.xz") as packed, open(out, "wb") as f:
        shutil.copyfileobj(packed, f)
    return out


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def check_value(want, got, kind):
    """Compares the JSON of a value with the bytes in a batch."""
    if "int" in want:
        assert got == struct.pack("<q", want["int"])
    elif "hex" in want and kind == 0:
        assert got.hex() == want["hex"]
    elif "mode" in want:
        mode, width, height, data = got
        assert (mode, width, height) == \
            (want["mode"], want["width"], want["height"])
        assert len(data) == want["size"]
        assert sha256(data) == want["stored_sha256"]
    elif "json" in want:
        assert json.loads(got) == want["json"]
        assert sha256(got + b"\0") == want["sha256"]
    elif "sha256" in want:
        assert sha256(got) == want["sha256"]
    else:
        raise AssertionError(want)


def check_samples(truth, mnt):
    names = [f["name"] for f in truth["fields"]]
    kinds = [f["type_id"] for f in truth["fields"]]
    reported = {s["id"]: s["fields"] for s in truth["samples"]}
    folder, seen = mnt / "batches/batch=64,drop_last=0,seed=4/2", set()
    for path in sorted(folder.iterdir()):
        b = BatchFile(path.read_bytes())
        assert list(b.fields) == names and b.gaps_are_zero()
        for row, i in enumerate(b.ids.tolist()):
            seen.add(i)
            for name, kind in zip(names, kinds):
                if i in reported and kind != 255:
                    assert not b.errors(name)[row]
                    check_value(reported[i][name], b.value(name, row), kind)
    assert seen == set(range(truth["header"]["num_samples"]))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.name.split(".")[0])
def test_batches_equal_the_values_of_ffcv(path, mount, tmp_path):
    truth, file = json.loads(path.read_text()), unpacked(path, tmp_path)
    if "samples" not in truth:
        assert "unfinished" in beton("info", file, code=1).stderr
        return
    info = json.loads(beton("info", "--json", file).stdout)
    assert info["samples"] == truth["header"]["num_samples"]
    assert [f["name"] for f in info["fields"]] == \
        [f["name"] for f in truth["fields"]]
    if any("unusable" in f for f in info["fields"]):
        return
    check_samples(truth, mount(file))


def test_photographs_are_the_same_by_file_and_mount(mount, tmp_path):
    path = SHARED / "data/photos500.beton"
    if not path.exists():
        pytest.skip(f"no {path}")
    options = ["--spec", "batch=50,seed=1", "--pipeline", AUGMENT]
    dump(path, tmp_path / "a", *options, "--jobs", 1)
    for rank in range(2):
        dump(mount(path), tmp_path / "b", *options, "--jobs", 3,
             "--rank", rank, "--world-size", 2)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert len(digest(tmp_path / "a")) == 10


def difference_from_exact(tmp_path, quality, operations):
    path = SHARED / "data/photos500.beton"
    if not path.exists():
        pytest.skip(f"no {path}")
    pixels = [[b.outputs["image"].astype(int) for b in
               dump(path, tmp_path / q, "--spec", "batch=100,seed=3",
                    "--pipeline", f"image | decode({q}) | {operations}")]
              for q in ("exact", quality)]
    differences = [abs(a - b) for a, b in zip(*pixels)]
    assert len(differences) == 5
    return sum(d.mean() for d in differences) / 5


@pytest.mark.parametrize("operations", [
    "random_resized_crop(160) | flip",
    "resize(180, bilinear) | center_crop(160, 0.9)",
])
def test_photographs_in_default_quality_are_near_exact(tmp_path, operations):
    assert 0 < difference_from_exact(tmp_path, "default", operations) <= 0.3


@pytest.mark.parametrize("operations, bound", [
    ("center_crop(160, 1)", 3),
    ("center_crop(64, 1) | flip", 3),
    ("center_crop(96, 1, bilinear)", 1.5),
])
def test_drafts_of_photographs_are_near_exact(tmp_path, operations, bound):
    assert 0.5 < difference_from_exact(tmp_path, "draft", operations) < bound
