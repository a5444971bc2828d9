# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs work on a mount as on any file system."""
import io
import mmap
import os
import random
import shutil
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import dumped
import make
from conftest import DEADLINE

Image = pytest.importorskip("PIL.Image")

N = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("tools") / "t.beton", N)


@pytest.fixture
def mnt(data, mount):
    return mount(data.path)


def run(*command, **how):
    """Its output; it must succeed and complain about nothing."""
    if not shutil.which(str(command[0])):
        pytest.skip(f"{command[0]} is not installed")
    r = subprocess.run(command, capture_output=True, timeout=DEADLINE,
                       stdin=subprocess.DEVNULL, **how)
    assert r.returncode == 0 and not r.stderr, r
    return r.stdout


def samples_of(data):
    return [(i, name, f"samples/{data.name(i)}/{data.file(i, name)}")
            for i in range(N) for name in data.types]


def image_files(data, mode):
    return [(i, f"samples/{data.name(i)}/{data.file(i, 'image')}")
            for i in range(N) if data.values[i]["image"].mode == mode]


# --- programs for files ---

def test_cat(data, mnt):
    paths = [mnt / f"samples/{data.name(i)}/label" for i in range(N)]
    want = "".join("%d\n" % v["label"] for v in data.values)
    assert run("cat", *paths).decode() == want


def test_ls_shows_the_sizes(data, mnt):
    for i in range(N):
        folder = mnt / "samples" / data.name(i)
        rows = run("ls", "-l", folder).decode().splitlines()[1:]
        for row in rows:
            size, name = int(row.split()[4]), row.split()[-1]
            assert size == len((folder / name).read_bytes())
        assert len(rows) == len(data.types)


def test_find_finds_every_file(data, mnt):
    found = run("find", mnt / "samples", "-type", "f").decode().split()
    assert sorted(found) == sorted(str(mnt / p) for *_, p in samples_of(data))
    big = run("find", mnt / "columns/image", "-size", "+1k").decode().split()
    assert all(os.path.getsize(p) > 1024 for p in big)


def test_grep_and_wc(data, mnt):
    out = run("grep", "-rl", '"id": 7}', mnt / "samples").decode().split()
    assert out == [f"{mnt}/samples/000007/meta.json"]
    size = len(data.content(3, "image"))
    path = mnt / "samples/000003" / data.file(3, "image")
    assert int(run("wc", "-c", path).split()[0]) == size


def test_cp_copies_true_bytes(data, mnt, tmp_path):
    for top in ("samples", "columns"):
        run("cp", "-r", mnt / top, tmp_path / top)
        run("diff", "-r", mnt / top, tmp_path / top)
    copied = sum(len(names) for _, _, names in os.walk(tmp_path / "samples"))
    assert copied == N * len(data.types)


def test_tar_packs_true_bytes(data, mnt):
    packed = run("tar", "c", "-C", mnt, "samples")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for *_, path in samples_of(data):
            assert tar.extractfile(path).read() == (mnt / path).read_bytes()


def test_du_and_df_and_stat(data, mnt):
    assert int(run("du", "-sb", mnt / "samples").split()[0]) > 0
    assert str(mnt) in run("df", mnt).decode()
    assert b"regular file" in run("stat", mnt / "dataset.json")


@pytest.mark.parametrize("piece", ["1", "4096", "1048576"])
def test_dd_in_pieces(data, mnt, tmp_path, piece):
    path = mnt / "samples/000003" / data.file(3, "image")
    run("dd", f"if={path}", f"of={tmp_path / 'x'}", f"bs={piece}",
        "status=none")
    run("cmp", path, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == data.content(3, "image")


def test_head_and_tail(data, mnt):
    path = mnt / "samples/000003" / data.file(3, "image")
    want = data.content(3, "image")
    for n in (1, 63, 64, 1000):
        assert run("head", "-c", str(n), path) == want[:n]
        assert run("tail", "-c", str(n), path) == want[-n:]


def test_rsync_copies_once(data, mnt, tmp_path):
    for _ in range(2):
        out = run("rsync", "-a", "--itemize-changes", f"{mnt}/samples/",
                  tmp_path / "r/")
    assert out == b""
    run("diff", "-r", mnt / "samples", tmp_path / "r")


def test_sha256sum_of_a_batch_is_stable(mnt):
    path = mnt / "batches/batch=4/0/000001.batch"
    assert run("sha256sum", path) == run("sha256sum", path)
    assert run("sha256sum", "-b", mnt / "batches/default" / ".."
               / "batch=4/0/000001.batch").split()[0] == \
        run("sha256sum", path).split()[0]


# --- programs for images ---

def test_pil_opens_every_image(data, mnt):
    for i in range(N):
        v = data.values[i]["image"]
        with Image.open(mnt / "columns/image" / (
                data.name(i) + data.extension(i, "image"))) as im:
            assert im.size == (v.width, v.height)
            assert im.format == ("PPM" if v.mode == make.RAW else "JPEG")
            pixels = np.asarray(im.convert("RGB"))
        if v.mode == make.RAW:
            assert pixels.tobytes() == v.data
        else:
            with Image.open(io.BytesIO(v.data)) as im:
                assert (pixels == np.asarray(im)).all()


def test_identify_reports_format_and_size(data, mnt):
    for mode, word in ((make.JPG, "JPEG"), (make.RAW, "PPM")):
        i, path = image_files(data, mode)[0]
        v = data.values[i]["image"]
        printed = run("identify", mnt / path).decode()
        assert f"{word} {v.width}x{v.height}" in printed


def test_jpegtopnm_and_pnmtojpeg(data, mnt):
    i, path = image_files(data, make.JPG)[1]
    if not shutil.which("jpegtopnm"):
        pytest.skip("jpegtopnm is not installed")
    r = subprocess.run(["jpegtopnm", mnt / path], capture_output=True,
                       timeout=DEADLINE)
    v = data.values[i]["image"]
    assert r.returncode == 0
    assert r.stdout.startswith(b"P6\n%d %d\n" % (v.width, v.height))


def test_djpeg(data, mnt):
    i, path = image_files(data, make.JPG)[2]
    v = data.values[i]["image"]
    assert run("djpeg", mnt / path).startswith(
        b"P6\n%d %d\n" % (v.width, v.height))


# --- numpy ---

@pytest.mark.parametrize("how", [None, "r", "c"])
def test_numpy_loads_columns_and_arrays(data, mnt, how):
    for name in ("label", "score"):
        a = np.load(mnt / f"columns/{name}.npy", mmap_mode=how)
        assert a.tolist() == [v[name] for v in data.values]
    for i in range(N):
        a = np.load(mnt / f"samples/{data.name(i)}/vec.npy", mmap_mode=how)
        assert (a == data.values[i]["vec"]).all() and a.dtype == np.float32


def test_a_mapping_outlives_its_descriptor(data, mnt):
    i, path = image_files(data, make.RAW)[0]
    with open(mnt / path, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    assert m[:] == data.content(i, "image")
    m.close()


# --- readers at once ---

READ = """
import os, random, sys
paths = sys.argv[2:]
random.Random(int(sys.argv[1])).shuffle(paths)
for p in paths:
    with open(p, "rb") as f:
        print(p, hash(f.read()) & 0xffffffff)
"""


def test_eight_processes_read_the_same(data, mnt):
    paths = [str(mnt / p) for *_, p in samples_of(data)]
    env = dict(os.environ, PYTHONHASHSEED="0")
    readers = [subprocess.Popen([sys.executable, "-c", READ, str(k), *paths],
                                stdout=subprocess.PIPE, text=True, env=env)
               for k in range(8)]
    printed = [sorted(p.communicate(timeout=DEADLINE)[0].split("\n"))
            for p in readers]
    assert all(s == printed[0] for s in printed)
    assert len(printed[0]) == len(paths) + 1


@pytest.mark.parametrize("flags", [0, os.O_DIRECT], ids=["cached", "direct"])
def test_batches_in_random_pieces(mnt, flags):
    path = mnt / "batches/batch=6,seed=3/0/000001.batch"
    want, rng = path.read_bytes(), random.Random(1)
    fd = os.open(path, os.O_RDONLY | flags)
    buffer = mmap.mmap(-1, 1 << 20)
    for _ in range(150):
        at = rng.randrange(len(want) + 100)
        n = rng.choice([1, 13, 512, 4096, 70000])
        got = os.preadv(fd, [memoryview(buffer)[:n]], at)
        assert buffer[:got] == want[at:at + n]
    os.close(fd)
