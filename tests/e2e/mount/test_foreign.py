# SPDX-License-Identifier: Apache-2.0
"""A directory of another user that looks like a mount: a loader refuses it for
any content of its files, and changes nothing."""
import json
import os
import shutil

import numpy as np
import pytest

import make
from dumped import SANITIZER, beton

N = 8
FIRST = "order=sequential,batch=1,seed=0,drop_last=0"
SPEC = "order=sequential,batch=4,seed=0,drop_last=0"


@pytest.fixture
def foreign(tmp_path, mount):
    """A copy of what a loader reads of a mount, in a directory of its own."""
    rng = np.random.default_rng(3)
    data = make.Dataset(
        tmp_path / "d.beton",
        [("label", make.INT), ("vec", make.NDARRAY, "<f4", (2, 3))],
        [{"label": i, "vec": rng.normal(0, 1, (2, 3)).astype("<f4")}
         for i in range(N)])
    mnt, copy = mount(data.path), tmp_path / "copy"
    for spec in (FIRST, SPEC):
        shutil.copytree(mnt / "batches" / spec / "0",
                        copy / "batches" / spec / "0")
    shutil.copy(mnt / "dataset.json", copy)
    os.chmod(copy / "dataset.json", 0o600)
    return copy


def change(foreign, **members):
    """Other members of the first array."""
    path = foreign / "dataset.json"
    d = json.loads(path.read_text())
    field = next(f for f in d["fields"] if f["type"] == "ndarray")
    field.update(members)
    path.write_text(json.dumps(d))


def dump(foreign, code):
    """Dumps into a directory some levels down; nothing else may change."""
    root = foreign.parent / "here"
    (root / "a/b").mkdir(parents=True)
    r = beton("dump", foreign, "--spec", SPEC, "--out", root / "a/b/out",
              code=code)
    assert not SANITIZER.search(r.stderr)
    assert sorted(p.name for p in root.iterdir()) == ["a"]
    assert sorted(p.name for p in (root / "a").iterdir()) == ["b"]
    return r.stderr


def test_the_copy_itself_is_read(foreign):
    assert dump(foreign, 0) == ""


@pytest.mark.parametrize("stem", ["../../../pwned", "/tmp/pwned", "..", ""])
def test_stems_are_no_paths(foreign, stem):
    change(foreign, stem=stem)
    assert "stem" in dump(foreign, 1)


@pytest.mark.parametrize("shape", [[1 << 62], [1 << 40, 1 << 40], [-1], "x"])
def test_shapes_are_bounded(foreign, shape):
    change(foreign, shape=shape)
    assert "shape" in dump(foreign, 1)


def test_a_shape_that_the_batches_do_not_have(foreign):
    change(foreign, shape=[1 << 20])
    assert "announces" in dump(foreign, 1)


@pytest.mark.parametrize("kind", ["fifo", "folder", "zeros", "long"])
def test_a_description_is_a_small_file(foreign, kind):
    path = foreign / "dataset.json"
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    assert "not the description of a dataset" in dump(foreign, 1)
