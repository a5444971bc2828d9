# SPDX-License-Identifier: Apache-2.0
"""Every damage of tests/damage.py against every program: each returns correct
values or an error, and never crashes, hangs or alarms a sanitizer."""
import errno
import io
import os
import pathlib
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import dumped
import make
from conftest import (BUILD, DEADLINE, EXIT_DAMAGED, EXIT_NOT_DATASET,
                      Daemon)
from dumped import SANITIZER, beton, dump
from batchfile import BatchFile, check_values
from make import member

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from damage import ALL_JPEG, DAMAGES, all_images  # noqa: E402

pytest.importorskip("PIL.Image")

N = 24
PIPELINE = "image | center_crop(8)"
SPEC = "order=random,batch=5,seed=0,drop_last=0"


def test_there_are_many_damages_each_with_a_name():
    assert len(DAMAGES) >= 50
    assert len({d.name for d in DAMAGES}) == len(DAMAGES)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The good file and what a trainer gets of it."""
    folder = tmp_path_factory.mktemp("good")
    d = dumped.photos(folder / "good.beton", N)
    d.rows = {i: {name: np.asarray(b.row(name, row)).tobytes()
                  for name in b.outputs}
              for b in dump(d.path, folder / "out", "--spec", SPEC,
                            "--pipeline", PIPELINE)
              for row, i in enumerate(b.ids)}
    return d


def name_of(damage):
    return damage.name.replace(" ", "-")


@pytest.fixture(params=DAMAGES, ids=name_of)
def hurt(request, good, tmp_path):
    """A damaged copy; .outcome has the expected outcome."""
    damage = request.param
    data = bytearray(open(good.path, "rb").read())
    damage.edit(good, data)
    path = tmp_path / "hurt.beton"
    path.write_bytes(data)
    good.hurt, good.outcome = str(path), damage.outcome
    if damage.outcome == ALL_JPEG:
        good.outcome = all_images(good, make.JPG)
    return good


def one_line_about(printed, path):
    assert printed.count("\n") == 1 and os.path.basename(path) in printed, printed


def opens(hurt):
    """Whether `beton info` takes it; that is settled for all programs."""
    r = beton("info", hurt.hurt, code=None)
    if r.returncode:
        one_line_about(r.stderr, hurt.hurt)
    if hurt.outcome.kind != "anything":
        assert (r.returncode != 0) == (hurt.outcome.kind == "refused")
    return r.returncode == 0


def test_info_and_dump_report_the_same(hurt, tmp_path):
    ok, out = opens(hurt), tmp_path / "out"
    r = beton("dump", hurt.hurt, "--out", out, "--spec", SPEC, "--pipeline",
              PIPELINE, "--on-error", "skip", code=None)
    if not ok:
        assert r.returncode == 1
        one_line_about(r.stderr, hurt.hurt)
    elif hurt.outcome.kind != "anything":
        assert r.returncode == 0, r.stderr
        check_dump(hurt, dumped.read_dump(out))


def check_dump(hurt, batches):
    """Rows with a hurt value are marked, all others are true."""
    bad = {i for i, _ in hurt.outcome.values}
    seen = set()
    for b in batches:
        for row, i in enumerate(b.ids):
            seen.add(i)
            assert b.valid[row] == (i not in bad), i
            for name in b.outputs:
                got = np.asarray(b.row(name, row)).tobytes()
                if (i, name) in hurt.outcome.values:
                    assert not any(got)
                elif i not in bad:
                    assert got == hurt.rows[i][name]
    assert seen == set(range(N))


@pytest.mark.parametrize("hurt", [
    d for d in DAMAGES
    if d.outcome == ALL_JPEG or d.outcome.kind in ("hurts", "undecodable")],
    ids=name_of, indirect=True)
def test_raise_names_the_sample(hurt, tmp_path):
    """Without --on-error a hurt value ends the dump, and is named."""
    r = beton("dump", hurt.hurt, "--out", tmp_path / "x", "--spec", SPEC,
              "--pipeline", PIPELINE, code=1)
    assert any(f"sample {i} " in r.stderr for i, _ in hurt.outcome.values)
    assert any(f"field {f}" in r.stderr for _, f in hurt.outcome.values)


def mounted(hurt, where):
    where.mkdir()
    if opens(hurt):
        return Daemon(hurt.hurt, where)
    r = subprocess.run([BUILD / "betonfs", "-f", hurt.hurt, where],
                       capture_output=True, text=True, timeout=DEADLINE,
                       stdin=subprocess.DEVNULL)
    assert r.returncode == (EXIT_NOT_DATASET if "not a .beton file" in r.stderr
                            else EXIT_DAMAGED), r
    one_line_about(r.stderr, hurt.hurt)
    return None


@pytest.fixture
def daemon_of(fuse, hurt, tmp_path):
    """The daemon of the damaged file; None where it refuses to start."""
    d = mounted(hurt, tmp_path / "mnt")
    yield d
    if not d:
        return
    assert d.end() == 0, d.printed()
    printed = d.printed()
    assert not SANITIZER.search(printed), printed
    if hurt.outcome.kind in ("harmless", "undecodable"):
        assert not printed
    if hurt.outcome.kind == "hurts":
        assert any(f"sample {i} field {f}" in printed
                   for i, f in hurt.outcome.values)


def test_a_mount_delivers_the_truth_or_an_error(hurt, daemon_of, tmp_path):
    if not daemon_of:
        return
    if hurt.outcome.kind == "anything":
        read_some(daemon_of.where)
        return
    check_files(hurt, daemon_of.where)
    check_shard(hurt, daemon_of.where)
    check_batches(hurt, daemon_of.where)
    check_dump(hurt, dump(daemon_of.where, tmp_path / "m", "--spec", SPEC,
                          "--pipeline", PIPELINE, "--on-error", "skip"))


def read_some(mnt):
    """Something of everything that is shown; errors are no news."""
    count = 0
    for top in ("samples", "columns", "by", "shards", f"batches/{SPEC}/0"):
        for folder, _, names in os.walk(mnt / top):
            for name in names[:40] + names[-2:]:
                count += read_one(os.path.join(folder, name))
    beton("dump", mnt, "--out", f"{mnt}.out", "--spec", SPEC, "--pipeline",
          "image | drop", "--on-error", "skip", code=None)
    assert os.listdir(mnt)


def read_one(path):
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as e:
        assert e.errno in (errno.EIO, errno.EUCLEAN), path
        return 0
    try:
        size = os.fstat(fd).st_size
        for at in (0, size // 2, max(0, size - 4096), size + 10):
            os.pread(fd, 1 << 20, at)
    except OSError as e:
        assert e.errno in (errno.EIO, errno.EUCLEAN), path
    finally:
        os.close(fd)
    return 1


def check_files(hurt, mnt):
    raw = open(hurt.hurt, "rb").read()
    for i in range(N):
        for name in hurt.types:
            for path in (mnt / "samples" / hurt.name(i) / hurt.file(i, name),
                         mnt / "columns" / name /
                         (hurt.name(i) + hurt.extension(i, name))):
                if (hurt.outcome.kind, (i, name) in hurt.outcome.values) == \
                        ("hurts", True):
                    with pytest.raises(OSError) as e:
                        path.read_bytes()
                    assert e.value.errno in (errno.EIO, errno.ENOENT)
                    continue
                check_file(hurt, raw, i, name, path.read_bytes())


def check_shard(hurt, mnt):
    """It is whole, and has every member but the hurt values."""
    want = {member(hurt, i, name): mnt / "samples" / hurt.name(i) /
            hurt.file(i, name) for i in range(N) for name in hurt.types
            if hurt.outcome.kind != "hurts" or
            (i, name) not in hurt.outcome.values}
    with tarfile.open(mnt / "shards/000000.tar") as t:
        got = {m.name: t.extractfile(m).read() for m in t.getmembers()}
    assert got == {k: path.read_bytes() for k, path in want.items()}


def check_file(hurt, raw, i, name, got):
    kind = hurt.types[name]
    if (i, name) in hurt.outcome.values:    # what lies in the file now
        at = hurt.place[i, name]
        assert got == raw[at:at + len(got)]
    elif kind in (make.NDARRAY, make.TENSOR):
        assert np.load(io.BytesIO(got)).tobytes() == hurt.stored(i, name)
    elif kind == make.FLOAT:
        assert float(got) == hurt.values[i][name]
    else:
        assert got == hurt.content(i, name)


def check_batches(hurt, mnt):
    seen = set()
    for path in sorted((mnt / "batches" / SPEC / "0").iterdir()):
        b = BatchFile(path.read_bytes())
        check_values(hurt, b, hurt.outcome.values)
        for row, i in enumerate(b.ids.tolist()):
            seen.add(i)
            for name in hurt.types:
                marked = bool(b.errors(name)[row])
                assert marked == (hurt.outcome.kind == "hurts" and
                                  (i, name) in hurt.outcome.values)
    assert seen == set(range(N))
