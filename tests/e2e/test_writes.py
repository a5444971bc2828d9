# SPDX-License-Identifier: Apache-2.0
"""Files that programs write: where they end up, who may read them, and what is
left after a failure."""
import os

import numpy as np
import pytest

import dumped
import make

NOBODY = 65534


@pytest.fixture
def data(tmp_path):
    (tmp_path / "in").mkdir()
    return make.numbers(tmp_path / "in" / "x.beton", 6)


def dump(data, out, *options, **how):
    return dumped.beton("dump", data.path, "--out", out, "--spec",
                        "batch=2,order=sequential", *options, **how)


def needs_root():
    if os.getuid():
        pytest.skip("needs root")


# --- links -------------------------------------------------------------------

def test_dump_follows_no_link_in_its_folder(data, tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    dump(data, out)
    first = next(out.glob("*0"))
    victim.write_text("old")
    for name in ("ids.npy", "label.npy", "valid.npy"):
        (first / name).unlink(missing_ok=True)
        (first / name).symlink_to(victim)
    dump(data, out)
    assert victim.read_text() == "old"
    assert not (first / "valid.npy").is_symlink()
    assert np.load(first / "ids.npy").tolist() == [0, 1]
    assert sorted(os.listdir(first)) == ["ids.npy", "label.npy"]


def test_dump_follows_no_link_to_a_folder_in_its_own(data, tmp_path):
    out, trap = tmp_path / "out", tmp_path / "trap"
    dump(data, out)
    first = next(out.glob("*0"))
    trap.mkdir()
    for p in first.iterdir():
        p.unlink()
    first.rmdir()
    first.symlink_to(trap)
    assert str(first) in dump(data, out, code=1).stderr
    assert not list(trap.iterdir())


def test_dump_may_be_given_a_link(data, tmp_path):
    (tmp_path / "true").mkdir()
    (tmp_path / "link").symlink_to("true")
    dump(data, f"{tmp_path}/link/")
    assert len(list((tmp_path / "true").iterdir())) == 3
    assert "Not a directory" in dump(data, data.path, code=1).stderr


def test_a_link_of_another_user_leads_nowhere(data, tmp_path):
    """In a folder such as /tmp, whatever fs.protected_symlinks is."""
    needs_root()
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    shared.chmod(0o1777)
    mine.mkdir()
    for name in ("folder", "state"):
        (shared / name).symlink_to(mine / name)
        os.chown(shared / name, NOBODY, NOBODY, follow_symlinks=False)
    r = dump(data, shared / "folder", code=1)
    assert str(shared / "folder") in r.stderr
    r = dump(data, tmp_path / "out", "--state", shared / "state", code=1)
    assert "another user's" in r.stderr
    assert not list(mine.iterdir())


# --- the state of a dump -----------------------------------------------------

def test_a_state_keeps_its_mode(data, tmp_path):
    state = tmp_path / "job"
    dump(data, tmp_path / "a", "--state", state, "--batches", ":1")
    state.chmod(0o600)
    dump(data, tmp_path / "b", "--state", state)
    assert state.stat().st_mode & 0o777 == 0o600
    assert [p.name[-1] for p in sorted((tmp_path / "b").iterdir())] \
        == ["1", "2"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "in", "job"]
