# SPDX-License-Identifier: Apache-2.0
"""shards/: tar archives of samples, read by tar and in the manner of WebDataset."""
import errno
import io
import json
import mmap
import os
import random
import re
import struct
import subprocess
import tarfile

import numpy as np
import pytest

import make
from conftest import DEADLINE, failing
from make import member


@pytest.fixture
def mnt(data, mount):
    return mount(data.path)


def test_members_are_the_files_of_the_samples(data, mnt):
    with tarfile.open(mnt / "shards/000000.tar") as t:
        members = t.getmembers()
        assert [m.name for m in members] == [
            member(data, i, n) for i in range(30) for n in data.types]
        for m, (i, n) in zip(members, [(i, n) for i in range(30)
                                       for n in data.types]):
            file = mnt / "samples" / data.name(i) / data.file(i, n)
            assert t.extractfile(m).read() == file.read_bytes()
            assert (m.mode, m.uid, m.gid, m.isreg()) == (0o444, 0, 0, True)
            assert m.mtime == int(os.stat(data.path).st_mtime)


def test_tar_reads_them(data, mnt, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    r = subprocess.run(["tar", "xf", mnt / "shards/000000.tar", "-C", out],
                       capture_output=True, text=True, timeout=DEADLINE)
    assert (r.returncode, r.stderr) == (0, "")
    assert len(os.listdir(out)) == 30 * len(data.types)
    for i in range(30):
        for n in data.types:
            want = mnt / "samples" / data.name(i) / data.file(i, n)
            assert (out / member(data, i, n)).read_bytes() == \
                want.read_bytes()


def test_any_piece_is_right(mnt):
    path = mnt / "shards/000000.tar"
    with open(path, "rb") as f:
        whole = f.read()
    assert len(whole) == path.stat().st_size
    assert len(whole) % 512 == 0 and not any(whole[-1024:])
    rng = random.Random(4)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 1 << 20)
    for _ in range(300):
        at = rng.randrange(len(whole) + 9)
        n = rng.choice([1, 100, 511, 513, 4096, 70000])
        got = os.preadv(fd, [memoryview(buffer)[:n]], at)
        assert buffer[:got] == whole[at:at + n]
    os.close(fd)


@pytest.mark.parametrize("n,sizes", [
    (0, []), (1, [1]), (999, [999]), (1000, [1000]), (1001, [1000, 1]),
    (2500, [1000, 1000, 500])])
def test_a_shard_has_a_thousand_samples(tmp_path, mount, n, sizes):
    where = mount(make.numbers(tmp_path / "n.beton", n).path)
    names = [f"{k:06d}.tar" for k in range(len(sizes))]
    assert sorted(os.listdir(where / "shards")) == names
    seen = []
    for name, size in zip(names, sizes):
        with tarfile.open(where / "shards" / name) as t:
            members = t.getmembers()
            assert len(members) == size
            seen += [(m.name, t.extractfile(m).read()) for m in members]
    assert seen == [(f"{i:06d}.cls", b"%d\n" % i) for i in range(n)]
    for name in (f"{len(sizes):06d}.tar", "0.tar", "000000", "000000.tarx",
                 "0000000.tar", "-00001.tar"):
        with failing(errno.ENOENT):
            os.stat(where / "shards" / name)


def test_the_same_bytes_from_every_mount(data, mount):
    one, other = mount(data.path), mount(data.path, "-s")
    name = "shards/000000.tar"
    assert (one / name).read_bytes() == (other / name).read_bytes()
    assert (one / name).stat().st_ino == (other / name).stat().st_ino
    assert (one / name).stat().st_ino not in \
        {p.stat().st_ino for p in (one / "samples").rglob("*")}


def test_listings_report_sizes(mnt):
    entry, = os.scandir(mnt / "shards")
    assert entry.is_file() and entry.inode() == entry.stat().st_ino
    out = subprocess.run(["ls", "-l", mnt / "shards"], capture_output=True,
                         text=True, timeout=DEADLINE, check=True).stdout
    assert str(entry.stat().st_size) in out.split()


def test_a_value_out_of_place_is_left_out(data, mount):
    data.patch(data.where(2, "image"), b"\x09")             # mode
    data.patch(data.where(5, "blob"), struct.pack("<Q", 1 << 60))
    where = mount(data.path, expects="sample 2 field image: unknown image mode")
    with tarfile.open(where / "shards/000000.tar") as t:
        got = {m.name: t.extractfile(m).read() for m in t.getmembers()}
    want = {member(data, i, n) for i in range(30) for n in data.types}
    assert want - set(got) == {"000002.jpg", "000005.bin"}
    assert got["000002.cls"] == b"11\n"
    assert got["000006.bin"] == data.stored(6, "blob")


def test_unreadable_shards_are_errors(data, mount):
    where = mount(data.path, expects="read of")
    fd = os.open(where / "shards/000000.tar", os.O_RDONLY | os.O_DIRECT)
    buffer, size = mmap.mmap(-1, 4096), os.fstat(fd).st_size
    os.truncate(data.path, data.first_page)
    # Headers and numbers are there, and so is the end.
    assert os.preadv(fd, [memoryview(buffer)[:2048]], 0) == 2048
    assert buffer[:10] == b"000000.cls" and buffer[512:515] == b"-3\n"
    assert os.preadv(fd, [memoryview(buffer)[:1024]], size - 1024) == 1024
    assert buffer[:1024] == bytes(1024)
    with failing(errno.EIO):
        os.preadv(fd, [buffer], 2560)
    os.close(fd)


def test_metadata_that_cannot_be_read_are_tried_again(data, mount):
    where = mount(data.path, expects="read of")
    whole = open(data.path, "rb").read()
    os.truncate(data.path, data.meta + 50)
    for _ in range(2):
        with failing(errno.EIO):
            os.stat(where / "shards/000000.tar")
    with open(data.path, "r+b") as f:
        f.write(whole)
    with tarfile.open(where / "shards/000000.tar") as t:
        assert len(t.getmembers()) == 30 * len(data.types)


def test_many_are_open_at_once(tmp_path, mount):
    """More than are kept; those that are open stay."""
    where = mount(make.numbers(tmp_path / "n.beton", 20000).path)
    files = [open(where / f"shards/{k:06d}.tar", "rb", 0) for k in range(20)]
    for k in random.Random(3).sample(range(20), 20):
        assert files[k].read(16).rstrip(b"\0") == b"%06d.cls" % (1000 * k)
    for f in files:
        f.close()


# --- WebDataset ---

def grouped(path):
    """Samples of a tar by the rules of webdataset: the key of a member ends at
    the first dot, members of one key that follow each other are a sample."""
    samples = []
    with tarfile.open(path) as t:
        for m in t:
            key, field = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$",
                                  m.name).groups()
            field = field.lower()
            if not samples or samples[-1]["__key__"] != key:
                samples.append({"__key__": key})
            assert field not in samples[-1]
            samples[-1][field] = t.extractfile(m).read()
    return samples


DECODERS = {"cls": int, "txt": bytes.decode, "json": json.loads,
            "npy": lambda b: np.load(io.BytesIO(b))}


def check_samples(data, samples):
    """Checks decoded samples. Images are compared by the callers, which decode
    them."""
    assert [s["__key__"] for s in samples] == [data.name(i) for i in range(30)]
    for s, want in zip(samples, data.values):
        assert s["cls"] == want["label"]
        assert float(s["txt"]) == want["score"]
        assert s["json"] == json.loads(want["meta"])
        assert s["bin"] == want["blob"]
        for name in ("vec", "tens"):
            got = s[name + ".npy"]
            assert got.dtype == want[name].dtype
            assert got.tolist() == want[name].tolist()


def test_samples_group_and_decode_by_the_rules(data, mnt):
    samples = grouped(mnt / "shards/000000.tar")
    for i, s in enumerate(samples):
        assert s[("jpg", "ppm")[i % 2]] == data.content(i, "image")
        for field in list(s):
            decode = DECODERS.get(field.split(".")[-1])
            if decode:
                s[field] = decode(s[field])
    check_samples(data, samples)


def test_webdataset_reads_and_decodes_them(data, mnt):
    wds = pytest.importorskip("webdataset")
    url = str(mnt / "shards/000000.tar")
    samples = list(wds.WebDataset(url, shardshuffle=False).decode())
    check_samples(data, samples)
    for i, s in enumerate(samples):
        assert s[("jpg", "ppm")[i % 2]] == data.content(i, "image")


def test_fields_of_one_kind_keep_their_stems(tmp_path, mount):
    image = make.Image(make.JPG, 1, 1, b"\xff\xd8")
    data = make.Dataset(
        tmp_path / "d.beton",
        [("left", make.IMAGE), ("right", make.IMAGE), ("a.b", make.INT),
         ("c", make.INT), ("x", make.FLOAT)],
        [{"left": image, "right": image, "a.b": i, "c": -i, "x": 0.5}
         for i in range(2)])
    got = grouped(mount(data.path) / "shards/000000.tar")
    assert [list(s) for s in got] == [
        ["__key__", "left.jpg", "right.jpg", "a.b.cls", "c.cls", "txt"]] * 2
