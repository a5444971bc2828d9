# SPDX-License-Identifier: Apache-2.0
"""Checksums of a dataset: with verify, a flipped bit anywhere fails the samples
around it and nothing else, and a message names it."""
import errno
import io
import json
import os
import random
import shutil

import numpy as np
import pytest

import make
import sums
from conftest import EXIT_DAMAGED, EXIT_MOUNT, betonfs
from dumped import beton, dump, read_dump
from batchfile import BatchFile

Image = pytest.importorskip("PIL.Image")

N, SIZE = 120, 40000
SPEC = "order=sequential,batch=40,seed=0,drop_last=0"
CACHES = {"os": "cache=os", "process": "cache=process,cache_size=32M"}


def jpeg(rng):
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 255, (8, 8, 3), np.uint8)).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Five MiB, with its side file."""
    rng = np.random.default_rng(4)
    d = make.Dataset(
        tmp_path_factory.mktemp("verify") / "good.beton",
        [("label", make.INT), ("blob", make.BYTES), ("image", make.IMAGE)],
        [{"label": i, "blob": rng.bytes(SIZE),
          "image": make.Image(make.JPG, 8, 8, jpeg(rng))}
         for i in range(N)], 1 << 16)
    sums.write(d.path)
    return d


@pytest.fixture
def data(whole, tmp_path):
    """A copy that a test may damage."""
    path = str(tmp_path / "hurt.beton")
    shutil.copy(whole.path, path)
    shutil.copy(sums.side(whole.path), sums.side(path))
    whole.hurt = path
    return whole


def flip(path, at, bit):
    with open(path, "r+b") as f:
        f.seek(at)
        byte, = f.read(1)
        f.seek(at)
        f.write(bytes([byte ^ 1 << bit]))


def block_of(at):
    return at // sums.BLOCK


def touched(data, i, at):
    """Whether a part of the sample lies in the block of this byte, by field."""
    where = {"label": (data.where(i, "label"), 8)}
    for name in "blob", "image":
        where[name] = data.place[i, name], len(data.stored(i, name))
    return {name: block_of(start) <= block_of(at) <= block_of(start + size - 1)
            for name, (start, size) in where.items()}


def verdict(mnt, path):
    try:
        return (mnt / path).read_bytes()
    except OSError as e:
        assert e.errno == errno.EIO
        return None


def test_the_side_file_is_the_manuals(data, tmp_path):
    """The C code reads what beton(5) describes."""
    assert sums.crc32c(b"123456789") == 0xe3069283
    assert len(dump(data.hurt, tmp_path / "out", "--verify")) > 0


@pytest.mark.parametrize("cache", CACHES)
def test_a_right_file_reads_as_without(data, mount, cache):
    mnt = mount(data.hurt, "-o", f"verify,{CACHES[cache]}")
    for i in range(0, N, 7):
        assert (mnt / "samples" / data.name(i) / "blob.bin").read_bytes() \
            == data.stored(i, "blob")
    for b in range(N // 40):
        f = BatchFile((mnt / f"batches/{SPEC}/0/{b:06}.batch").read_bytes())
        for row, i in enumerate(f.ids.tolist()):
            assert f.value("blob", row) == data.stored(i, "blob")
            assert not f.errors("blob")[row]
    stats = json.loads((mnt / ".betonfs/stats.json").read_text())
    assert stats["verify"]["bytes"] >= N * SIZE
    assert stats["verify"]["bad_blocks"] == 0
    assert stats["budget"]["by"]["verify"] >= 1 << 20
    metrics = (mnt / ".betonfs/metrics").read_text()
    assert "betonfs_verify_bad_blocks_total" in metrics
    assert "verify\n" in (mnt / ".betonfs/options").read_text()


@pytest.mark.parametrize("cache", CACHES)
def test_a_flipped_bit_fails_its_samples(data, mount, cache):
    at, bit = data.place[60, "blob"] + 1234, 5
    flip(data.hurt, at, bit)
    b = block_of(at)
    mnt = mount(data.hurt, "-o", f"verify,{CACHES[cache]}",
                expects=rf"hurt.beton: block {b} \(bytes {b << 16} to .*as if "
                        rf"bit {bit} of byte {at} were flipped: run fsck")
    bad = {i: touched(data, i, at) for i in range(N)}
    assert 1 <= sum(t["blob"] for t in bad.values()) < 5
    for i in range(N):
        where = f"samples/{data.name(i)}"
        for name in "blob", "image":
            got = verdict(mnt, f"{where}/{data.file(i, name)}")
            assert got == (None if bad[i][name] else data.stored(i, name))
        assert verdict(mnt, f"{where}/label") == b"%d\n" % i
    for k in range(N // 40):
        f = BatchFile((mnt / f"batches/{SPEC}/0/{k:06}.batch").read_bytes())
        for row, i in enumerate(f.ids.tolist()):
            for name in "label", "blob", "image":
                error = f.errors(name)[row]
                assert bool(error) == bad[i][name]
            if not bad[i]["blob"]:
                assert f.value("blob", row) == data.stored(i, "blob")
    stats = json.loads((mnt / ".betonfs/stats.json").read_text())
    assert stats["verify"]["bad_blocks"] == 1
    log = mnt.parent / (mnt.name + ".log")
    assert log.read_text().count(f"block {b} ") == 1


def test_without_verify_the_bit_is_served(data, mount):
    at = data.place[60, "blob"] + 1234
    flip(data.hurt, at, 5)
    mnt = mount(data.hurt)
    got = (mnt / "samples" / data.name(60) / "blob.bin").read_bytes()
    assert got[1234] == data.stored(60, "blob")[1234] ^ 1 << 5


# --- every part of the file ---

def parts(data):
    """Bits of every part: all of the header's numbers, and some of others."""
    rng = random.Random(6)
    size = os.path.getsize(data.path)
    table = size - 24 * len(data.table)
    yield from ((rng.choice(range(24)), bit) for bit in range(8))
    for first, end, n in ((24, data.meta, 10), (data.meta, data.meta_end, 8),
                          (data.meta_end, data.first_page, 2),
                          (data.first_page, table, 20), (table, size, 12)):
        yield from ((rng.randrange(first, end), rng.randrange(8))
                    for _ in range(n))


def test_every_flipped_bit_is_found(data, tmp_path):
    """No value comes out wrong, and no value of another block is lost."""
    fine = {i: data.stored(i, "blob") for i in range(N)}
    table = os.path.getsize(data.path) - 24 * len(data.table)
    for k, (at, bit) in enumerate(parts(data)):
        flip(data.hurt, at, bit)
        out = tmp_path / f"out{k}"
        r = beton("dump", data.hurt, "--out", out, "--verify", "--spec", SPEC,
                  "--on-error", "skip", code=None)
        if r.returncode:
            # The header is damaged, or metadata that the fingerprint hashes.
            assert at < data.meta_end, (at, bit, r.stderr)
        else:
            check(data, out, at, table, fine)
            assert "damaged" in r.stderr, (at, bit, r.stderr)
        flip(data.hurt, at, bit)
        shutil.rmtree(out, ignore_errors=True)


def check(data, out, at, table, fine):
    for b in read_dump(out):
        for row, i in enumerate(b.ids):
            bad = touched(data, i, at)
            # JPEGs have their sizes in the table.
            if block_of(at) >= block_of(table):
                bad["image"] = True
            assert b.valid[row] == (not any(bad.values())), (at, i)
            if b.valid[row]:
                assert b.row("blob", row) == fine[i]
                assert b.outputs["label"][row] == i


# --- side files ---

def refused(data, code, regex):
    where = os.path.dirname(data.hurt) + "/nowhere"
    os.makedirs(where, exist_ok=True)
    r = betonfs("-o", "verify", data.hurt, where)
    assert r.returncode == code, r.stderr
    assert regex in r.stderr
    return r.stderr


def test_no_side_file(data, fuse):
    os.unlink(sums.side(data.hurt))
    said = refused(data, EXIT_MOUNT, f"fsck.beton --sums {data.hurt}")
    assert said.count("\n") == 1
    r = beton("dump", data.hurt, "--verify", "--out", "x", code=1)
    assert "fsck.beton --sums" in r.stderr


def test_a_stale_side_file(data, fuse):
    with open(data.hurt, "ab") as f:
        f.write(bytes(24))
    refused(data, EXIT_MOUNT, "fsck.beton --update-sums")


def test_a_damaged_side_file(data, fuse):
    for at in 0, 9, 17, 30, 41, -1:
        with open(sums.side(data.hurt), "rb") as f:
            good = f.read()
        bad = bytearray(good)
        bad[at] ^= 16
        with open(sums.side(data.hurt), "wb") as f:
            f.write(bad)
        said = refused(data, EXIT_DAMAGED, ".sums: ")
        assert said.count("\n") == 1
        with open(sums.side(data.hurt), "wb") as f:
            f.write(good)


def test_a_damaged_header(data, fuse):
    flip(data.hurt, 24 + 3, 0)      # the name of a field
    refused(data, EXIT_DAMAGED, "damaged in its header")


# --- loaders ---

def test_a_loader_marks_the_samples(data):
    package = pytest.importorskip("package")
    at = data.place[60, "blob"] + 9
    flip(data.hurt, at, 0)
    bad = {i for i in range(N) if any(touched(data, i, at).values())}
    for cache in "os", "process":
        with package.betonfs.Loader(
                data.hurt, 40, train=False, verify=True, tensors="numpy",
                on_error="skip", cache=cache, cache_size=32 << 20,
                pipeline={"blob": "blob", "label": "label"}) as loader:
            for batch in loader:
                ids = np.asarray(batch.ids).tolist()
                for row, i in enumerate(ids):
                    if i in bad and touched(data, i, at)["blob"]:
                        assert not batch.valid[row]
                    else:
                        assert bytes(batch["blob"][row]) == \
                            data.stored(i, "blob")
        with pytest.raises(OSError):
            with package.betonfs.Loader(
                    data.hurt, 40, train=False, verify=True, tensors="numpy",
                    cache=cache, cache_size=32 << 20,
                    pipeline={"blob": "blob"}) as loader:
                list(loader)


def test_a_loader_without_sums(data):
    package = pytest.importorskip("package")
    os.unlink(sums.side(data.hurt))
    with pytest.raises(OSError, match="fsck.beton --sums"):
        package.betonfs.Loader(data.hurt, 40, verify=True, tensors="numpy")


def test_a_loader_of_a_mount(data, mount):
    package = pytest.importorskip("package")
    plain, checked = mount(data.hurt), mount(data.hurt, "-o", "verify")
    with pytest.raises(ValueError, match="-o verify"):
        package.betonfs.Loader(plain, 40, verify=True, tensors="numpy")
    with package.betonfs.Loader(checked, 40, train=False, verify=True,
                                tensors="numpy",
                                pipeline={"label": "label"}) as loader:
        assert sum(len(b.ids) for b in loader) == N


def test_several_files(data, mount, tmp_path):
    """One file of a pattern is damaged."""
    paths = []
    for k in range(3):
        paths.append(str(tmp_path / f"part-{k}.beton"))
        shutil.copy(data.path, paths[-1])
        shutil.copy(sums.side(data.path), sums.side(paths[-1]))
    at = data.place[60, "blob"]
    flip(paths[1], at, 1)
    mnt = mount(str(tmp_path / "part-*.beton"), "-o", "verify",
                expects=r"part-1.beton: block \d+ ")
    for i in range(0, 3 * N, 5):
        got = verdict(mnt, f"samples/{i:06}/blob.bin")
        bad = i // N == 1 and touched(data, i % N, at)["blob"]
        assert got == (None if bad else data.stored(i % N, "blob"))
