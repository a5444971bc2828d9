# SPDX-License-Identifier: Apache-2.0
"""A file of checksums never stays beside another dataset than its own, by
whichever program the dataset was replaced."""
import resource
import struct
import subprocess
import sys

import pytest

import make
from conftest import BUILD, DEADLINE

WRITE = """
import sys, betonfs
betonfs.write(sys.argv[1], [{"label": 1}], fields={"label": "int"},
              overwrite=True)
"""


def run(program, *args, **how):
    return subprocess.run([BUILD / program, *map(str, args)], text=True,
                          capture_output=True, timeout=DEADLINE, **how)


@pytest.fixture
def old(tmp_path):
    """A dataset with checksums, at the name that every program writes."""
    path = tmp_path / "x" / "train.beton"
    path.parent.mkdir()
    make.numbers(path, 500)
    assert run("fsck.beton", "--sums", path).returncode == 0
    assert sums(path).stat().st_size > 40
    return path


@pytest.fixture
def other(tmp_path):
    return make.numbers(tmp_path / "other.beton", 700).path


def sums(path):
    return path.with_name(path.name + ".sums")


REMOVED = "train.beton.sums: removed, because it contained the checksums of " \
    "the replaced file; fsck.beton --update-sums makes new ones"


@pytest.mark.parametrize("command", [
    "mkfs.beton {other} {old}", "mkfs.beton --append {other} {old}",
    "beton optimize {other} {old}", "beton optimize {old} {old}",
    "beton merge {other} {more} {old}", "beton merge {old} {other} {old}"])
def test_checksums_of_the_replaced_file_go(tmp_path, old, other, command):
    more = make.numbers(tmp_path / "more.beton", 3).path
    r = run(*command.format(old=old, other=other, more=more).split())
    assert r.returncode == 0 and REMOVED in r.stderr, r
    assert [p.name for p in old.parent.iterdir()] == ["train.beton"]
    assert run("fsck.beton", old).returncode == 0


def test_repair_removes_them(tmp_path, old):
    bad = make.every_type(tmp_path / "bad.beton", 20)
    bad.patch(bad.where(4, "blob"), struct.pack("<Q", 1 << 40))
    r = run("fsck.beton", f"--repair={old}", bad.path)
    assert REMOVED in r.stderr, r
    assert [p.name for p in old.parent.iterdir()] == ["train.beton"]
    assert run("fsck.beton", old).returncode == 0


def test_split_removes_them(tmp_path, other):
    where = tmp_path / "shards"
    assert run("beton", "split", "--shards=2", other, where).returncode == 0
    made = sorted(where.iterdir())
    for path in made:
        assert run("fsck.beton", "--sums", path).returncode == 0
    r = run("beton", "split", "--shards=2", other, where)
    assert r.returncode == 0 and r.stderr.count("removed, because") == 2, r
    assert sorted(where.iterdir()) == made


def test_python_removes_them(old):
    import package      # noqa: F401, skips without it
    r = subprocess.run([sys.executable, "-c", WRITE, old], text=True,
                       capture_output=True, timeout=DEADLINE,
                       env={"PYTHONPATH": str(BUILD / "python")})
    assert r.returncode == 0, r
    assert not sums(old).exists()


def test_new_checksums_replace_them(old, other):
    before = sums(old).read_bytes()
    r = run("mkfs.beton", "-q", "--sums", other, old)
    assert (r.returncode, r.stderr) == (0, "")
    assert sums(old).read_bytes() != before
    assert run("fsck.beton", old).returncode == 0


def test_a_failure_leaves_both_files(old, other):
    files = old.read_bytes(), sums(old).read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    assert run("mkfs.beton", other, old, preexec_fn=limit).returncode == 1
    assert (old.read_bytes(), sums(old).read_bytes()) == files
    assert sorted(p.name for p in old.parent.iterdir()) == [
        "train.beton", "train.beton.sums"]
