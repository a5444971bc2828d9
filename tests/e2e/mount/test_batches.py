# SPDX-License-Identifier: Apache-2.0
"""Batch files, read by a reader that is written from beton-batch(5): their
contents, and that their bytes depend only on their names."""
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import make
from conftest import wait_until
from dumped import beton, dump, show, DEADLINE
from batchfile import BatchFile, FIXED, check_values

SPEC = "order=random,batch=12,seed=5,drop_last=0"


def files(mnt, spec=SPEC, epoch=0):
    folder = mnt / "batches" / spec / str(epoch)
    return [folder / name for name in sorted(os.listdir(folder))]


def contents(mnt, **which):
    return [p.read_bytes() for p in files(mnt, **which)]


# --- what is in them ---

@pytest.mark.quick
def test_a_stranger_can_read_a_batch(data, mount):
    seen = []
    for number, raw in enumerate(contents(mount(data.path), epoch=7)):
        b = BatchFile(raw)
        h = b.header
        assert b.spec == SPEC
        assert (h["epoch"], h["batch"], h["batches"]) == (7, number, 3)
        assert (h["seed"], h["batch_size"], h["drop_last"]) == (5, 12, 0)
        assert h["samples"] == 30 and b.num_samples == [12, 12, 6][number]
        assert list(b.fields) == list(data.types)
        assert [int(f["type"]) for f in b.fields.values()] == \
            list(data.types.values())
        check_values(data, b)
        assert b.gaps_are_zero()
        seen += b.ids.tolist()
    assert sorted(seen) == list(range(30))


def test_numbers_and_arrays_are_tensors_in_place(data, mount):
    b = BatchFile(contents(mount(data.path))[0])
    for name, dtype, shape in (("label", "<i8", ()), ("score", "<f8", ()),
                               ("vec", "<f4", (2, 3)), ("tens", "<i2", (5,))):
        f = b.fields[name]
        assert f["column"] == FIXED and f["dtype"].decode() == dtype
        assert tuple(f["shape"][:f["ndim"]]) == shape
        a = b.array(dtype, f["column_off"], *shape)
        want = [data.values[i][name] for i in b.ids]
        assert (a == np.array(want, dtype)).all()


def test_raw_images_of_one_size_are_a_tensor(tmp_path, mount):
    rng = np.random.default_rng(0)
    d = make.Dataset(tmp_path / "raw.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 5, 4, rng.bytes(60))}
        for _ in range(9)])
    b = BatchFile(contents(mount(d.path), spec="batch=9")[0])
    f = b.fields["image"]
    assert (f["column"], f["stride"]) == (FIXED, 60)
    assert f["shape"][:3].tolist() == [4, 5, 3]
    check_values(d, b)


def test_show_reports_where_everything_is(data, mount):
    for path in files(mount(data.path)):
        raw, d = path.read_bytes(), show(path)
        b = BatchFile(raw)
        assert d["spec"] == SPEC and d["ids"] == b.ids.tolist()
        assert [f["name"] for f in d["fields"]] == list(data.types)
        for f in d["fields"]:
            for row, v in enumerate(f["values"]):
                got = raw[v["offset"]:v["offset"] + v["size"]]
                want = b.value(f["name"], row)
                if f["type"] == "rgb_image":
                    assert (["jpg", "raw"].index(v["mode"]), v["width"],
                            v["height"], got) == want
                else:
                    assert got == want
        text = beton("show", path).stdout
        assert SPEC in text and all(n in text for n in data.types)


def test_a_copied_batch_file_is_as_good(data, mount, tmp_path):
    path = files(mount(data.path))[0]
    copy = tmp_path / "copy.batch"
    copy.write_bytes(path.read_bytes())
    assert show(copy) == show(path)


@pytest.mark.parametrize("hurt", [
    lambda b: b[:-1], lambda b: b[:100], lambda b: b"", lambda b: b + b"\0",
    lambda b: b"x" + b[1:], lambda b: b[:200] + b"\xff" + b[201:]],
    ids=["short", "cut", "empty", "long", "magic", "bit"])
def test_show_refuses_other_files(data, mount, tmp_path, hurt):
    bad = tmp_path / "bad.batch"
    bad.write_bytes(hurt(files(mount(data.path))[0].read_bytes()))
    r = beton("show", bad, code=1)
    assert r.stderr.count("\n") == 1 and str(bad) in r.stderr


# --- that nothing else matters ---

def test_one_reader_or_eight_get_the_same_bytes(data, mount):
    mnt = mount(data.path)
    alone = contents(mnt)
    again, got = mount(data.path), []

    def read(k):
        names = files(again)
        random.Random(k).shuffle(names)
        for p in names * 3:
            got.append((p.name, p.read_bytes()))

    threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(DEADLINE)
        assert not t.is_alive()
    assert len(got) == 8 * 3 * len(alone)
    for name, raw in got:
        assert raw == alone[int(name[:6])]


def test_a_remount_and_other_options_change_nothing(data, mount):
    first = contents(mount(data.path))
    assert contents(mount(data.path, "-o", "jobs=8,batch=3,seed=9")) == \
        first
    assert contents(mount(data.path, "-s")) == first


def test_a_copy_of_the_dataset_gives_the_same_bytes(data, mount, tmp_path):
    copy = tmp_path / "elsewhere.beton"
    copy.write_bytes(open(data.path, "rb").read())
    assert contents(mount(copy)) == contents(mount(data.path))


def test_every_way_of_reading_gives_the_same_bytes(data, mount):
    path = files(mount(data.path))[1]
    whole, rng = path.read_bytes(), random.Random(4)
    fd = os.open(path, os.O_RDONLY)
    for step in (997, 4096, 1 << 20):
        got = b"".join(os.pread(fd, step, at)
                       for at in range(0, len(whole), step))
        assert got == whole
    for _ in range(200):
        at, n = rng.randrange(len(whole)), rng.randrange(1, 3000)
        assert os.pread(fd, n, at) == whole[at:at + n]
    os.close(fd)


def test_file_and_mount_give_a_trainer_the_same(data, mount, tmp_path):
    """Plain tensors: what is dumped is what the batch file holds."""
    mnt = mount(data.path)
    options = ["--spec", SPEC, "--pipeline", "image | drop"]
    one = dump(data.path, tmp_path / "a", *options)
    other = dump(mnt, tmp_path / "b", *options)
    for a, b, raw in zip(one, other, contents(mnt), strict=True):
        f = BatchFile(raw)
        assert a.number == b.number == f.header["batch"]
        assert a.ids == b.ids == f.ids.tolist()
        for name in a.outputs:
            for row in range(f.num_samples):
                want = f.value(name, row)
                for x in (a, b):
                    got = x.row(name, row)
                    assert getattr(got, "tobytes", lambda: got)() == want


READ = """
import hashlib, os, sys
for folder in sys.argv[1:]:
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            print(name, hashlib.sha256(f.read()).hexdigest())
"""


def test_processes_with_different_specs_do_not_meet(data, mount):
    mnt = mount(data.path)
    specs = ["batch=3,seed=1", "batch=3,seed=2", "order=sequential,batch=4",
             "order=quasi_random,batch=5,block=2,window=8"]

    def start(spec):
        folders = [str(mnt / "batches" / spec / str(e)) for e in range(6)]
        return subprocess.Popen([sys.executable, "-c", READ, *folders],
                                stdout=subprocess.PIPE, text=True)

    together = [start(s) for s in specs]
    printed = [p.communicate(timeout=DEADLINE)[0] for p in together]
    for spec, text in zip(specs, printed):
        alone = start(spec).communicate(timeout=DEADLINE)[0]
        assert text == alone and len(text) > 100


# --- samples that cannot be read ---

def test_damaged_samples_are_marked_and_the_rest_is_right(data, mount):
    data.patch(data.where(4, "image") + 5, struct.pack("<Q", 1 << 50))
    data.patch(data.where(9, "vec"), struct.pack("<Q", 3))
    bad = {(4, "image"), (9, "vec")}
    mnt = mount(data.path, expects="sample (4|9) field (image|vec)")
    found = set()
    for path in files(mnt):
        b = BatchFile(path.read_bytes())
        check_values(data, b, bad)
        for row, i in enumerate(b.ids.tolist()):
            for name in data.types:
                if not b.errors(name)[row]:
                    continue
                found.add((i, name))
                value = b.value(name, row)
                zero = value[3] if name == "image" else value
                assert b.errors(name)[row] == 117 and not any(zero)
        for f in show(path)["fields"]:
            for i, v in zip(b.ids.tolist(), f["values"]):
                assert ("error" in v) == ((i, f["name"]) in bad)
                assert v.get("error", "EUCLEAN") == "EUCLEAN"
    assert found == bad


def test_a_batch_leaves_the_page_cache_when_it_is_closed(data, daemon):
    """The daemon asks the kernel to forget its name, and so its pages, and
    counts the success. It does not if the pages were never there."""
    def reported():
        return d.log.read_text().count("NOTIFY: code=3")     # of an entry

    def forgot():
        return re.search(r"NOTIFY: code=3.*?opcode: FORGET",
                         d.log.read_text(), re.DOTALL)

    d = daemon(data.path, "-d")
    path = d.where / "batches/batch=4/0/000001.batch"
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 1 << 20)
    os.preadv(fd, [page], 0)
    os.close(fd)
    (d.where / "samples/000000").stat()
    assert not reported()
    expected = path.read_bytes()
    wait_until(forgot, "the kernel to forget")
    assert path.read_bytes() == expected
    wait_until(lambda: reported() == 2, "the second request to the kernel")
