# SPDX-License-Identifier: Apache-2.0
"""betonfs(8): the namespace, reading, and the start and end of a daemon."""
import errno
import io
import json
import mmap
import os
import random
import signal
import stat
import struct
import subprocess

import numpy as np
import pytest

import elsewhere
import make
from conftest import (BUILD, DEADLINE, SUSPICIOUS, betonfs, failing, mounts,
                      program, unmount, wait_until)


@pytest.fixture
def mnt(data, mount):
    return mount(data.path)


@pytest.fixture
def background(fuse, tmp_path):
    """background(*args) -> mountpoint of a daemon of its own. In the end, the
    fixture unmounts every mount in tmp_path."""
    where = []

    def do(*args, at=None):
        where.append(at or tmp_path / f"bg{len(where)}")
        r = betonfs(*args, where[-1])
        assert (r.returncode, r.stderr) == (0, "")
        return where[-1]

    yield do
    for w in [*where, *tmp_path.iterdir()]:
        if str(w) in mounts():
            unmount(w, "-z")


# --- names, attributes, contents ---

def test_the_top_directory(mnt):
    assert sorted(os.listdir(mnt)) == ["batches", "by", "columns",
                                       "dataset.json", "samples", "shards"]
    assert sorted(os.listdir(mnt / ".betonfs")) == [
        "jobs", "metrics", "options", "stats.json", "version"]
    assert (mnt / ".betonfs/version").read_text() == "betonfs 0.1.0\n"


def test_dataset_json_names_the_fields(data, mnt):
    d = json.loads((mnt / "dataset.json").read_text())
    assert (d["version"], d["samples"], d["page_size"]) == (1, 30, 4096)
    assert [f["stem"] for f in d["fields"]] == [f[0] for f in data.fields]


def same(data, i, name, got):
    """A file's bytes against what was stored."""
    kind = data.types[name]
    if kind in (make.NDARRAY, make.TENSOR):
        want = data.values[i][name]
        a = np.load(io.BytesIO(got))
        assert (a.dtype, a.shape) == (want.dtype, want.shape)
        assert a.tobytes() == want.tobytes()
    elif kind == make.FLOAT:
        assert got.endswith(b"\n") and float(got) == data.values[i][name]
    else:
        assert got == data.content(i, name)


@pytest.mark.quick
def test_samples_hold_every_value(data, mnt):
    assert sorted(os.listdir(mnt / "samples")) == \
        [data.name(i) for i in range(30)]
    for i in range(30):
        folder = mnt / "samples" / data.name(i)
        assert sorted(os.listdir(folder)) == \
            sorted(data.file(i, n) for n in data.types)
        for n in data.types:
            got = (folder / data.file(i, n)).read_bytes()
            assert len(got) == (folder / data.file(i, n)).stat().st_size
            same(data, i, n, got)


def test_columns_are_the_same_files(data, mnt):
    assert sorted(os.listdir(mnt / "columns")) == sorted(
        [*data.types, "label.npy", "score.npy"])
    for n in data.types:
        names = [data.name(i) + data.extension(i, n) for i in range(30)]
        assert sorted(os.listdir(mnt / "columns" / n)) == names
        for i, name in enumerate(names):
            one = (mnt / "columns" / n / name)
            other = mnt / "samples" / data.name(i) / data.file(i, n)
            assert one.stat() == other.stat()
            assert one.read_bytes() == other.read_bytes()


def test_a_column_of_numbers_is_an_array(data, mnt):
    for n in ("label", "score"):
        a = np.load(mnt / f"columns/{n}.npy", mmap_mode="r")
        assert a.tolist() == [v[n] for v in data.values]


@pytest.mark.parametrize("name", [
    "nothing", "samples/000030", "samples/0", "samples/0000001",
    "samples/000001/imagex", "samples/000001/image", "samples/000001/image.jpg",
    "samples/000000/image.ppm", "samples/000001/label.txt",
    "columns/nothing", "columns/vec.npy", "columns/image/000001",
    "columns/image/000030.jpg", "batches/default/x", "batches/default/01",
    "batches/default/0/0.batch", "batches/default/0/000000", "." * 200])
def test_other_names_do_not_exist(mnt, name):
    for _ in range(2):      # the second time the kernel remembers
        with failing(errno.ENOENT):
            os.stat(mnt / name)


def test_listings_report_types_and_inodes(data, mnt):
    for folder in (mnt, mnt / "samples", mnt / "samples/000003",
                   mnt / "columns", mnt / "columns/image", mnt / "batches"):
        for entry in os.scandir(folder):
            s = entry.stat(follow_symlinks=False)
            assert entry.inode() == s.st_ino
            assert entry.is_dir(follow_symlinks=False) == \
                stat.S_ISDIR(s.st_mode)


def test_ls_with_attributes_is_true(mnt):
    out = subprocess.run(["ls", "-lR", mnt], capture_output=True, text=True,
                         timeout=DEADLINE)
    assert out.returncode == 0 and not out.stderr
    listed = [w.split() for w in out.stdout.splitlines() if w.startswith("-")]
    assert sum(w[-1] == "label" for w in listed) == 30


def test_inodes_are_unique_and_survive_a_remount(data, mount):
    def inodes(where):
        paths = ["", "samples", "columns", "batches", "dataset.json",
                 "columns/label.npy", "columns/blob"]
        paths += [f"samples/{data.name(i)}/{data.file(i, n)}"
                  for i in range(30) for n in data.types]
        return {p: os.stat(where / p).st_ino for p in paths}
    first = inodes(mount(data.path))
    assert len(set(first.values())) == len(first)
    assert first[""] == 1
    assert inodes(mount(data.path)) == first


def test_owner_and_mode_mirror_the_dataset(data, mount):
    os.chmod(data.path, 0o640)
    s, where = os.stat(data.path), mount(data.path)
    for path, mode in ((where, 0o550), (where / "dataset.json", 0o440),
                       (where / "samples/000000/label", 0o440)):
        got = path.stat()
        assert (got.st_uid, got.st_gid) == (s.st_uid, s.st_gid)
        assert stat.S_IMODE(got.st_mode) == mode
        assert got.st_mtime_ns == s.st_mtime_ns


def test_owner_and_mode_can_be_chosen(data, mount):
    os.chmod(data.path, 0o600)
    where = mount(data.path, "-o", "uid=1234,gid=2345,umask=027")
    s = (where / "samples/000000/label").stat()
    assert (s.st_uid, s.st_gid) == (1234, 2345)
    assert stat.S_IMODE(s.st_mode) == 0o440
    assert stat.S_IMODE(where.stat().st_mode) == 0o550


def test_mount_attributes(data, mnt):
    source, kind, options = mounts()[str(mnt)]
    assert (source, kind) == (data.path, "fuse.betonfs")
    assert {"ro", "nosuid", "nodev"} <= set(options)
    v = os.statvfs(mnt)
    assert v.f_blocks * v.f_frsize >= os.path.getsize(data.path)
    assert (v.f_bfree, v.f_bavail, v.f_ffree, v.f_namemax) == (0, 0, 0, 255)


def test_odd_paths_are_shown_whole(tmp_path, mount):
    path = make.numbers(tmp_path / "a,b \\c.beton", 3).path
    where = mount(path)
    assert mounts()[str(where)][0] == path


def test_nothing_can_be_written(mnt):
    label = mnt / "samples/000000/label"
    for change in (lambda: os.open(label, os.O_RDWR),
                   lambda: os.truncate(label, 0),
                   lambda: os.unlink(label),
                   lambda: os.mkdir(mnt / "new"),
                   lambda: os.chmod(label, 0o600),
                   lambda: os.rename(label, mnt / "label")):
        with failing(errno.EROFS):
            change()


def test_a_file_has_no_files_below(mnt):
    with failing(errno.ENOTDIR):
        os.stat(mnt / "samples/000000/label/x")


def test_a_dataset_without_samples(tmp_path, mount):
    where = mount(make.numbers(tmp_path / "none.beton", 0).path)
    assert os.listdir(where / "samples") == []
    assert os.listdir(where / "columns/label") == []
    assert np.load(where / "columns/label.npy").shape == (0,)
    assert os.listdir(where / "batches/default/0") == []


def test_unusable_custom_fields_have_no_files(tmp_path, mount):
    d = make.Dataset(tmp_path / "custom.beton",
                     [("label", make.INT), ("mine", make.CUSTOM)],
                     [{"label": i, "mine": b"12345678"} for i in range(3)])
    where = mount(d.path)
    fields = json.loads((where / "dataset.json").read_text())["fields"]
    shown = {f["stem"] for f in fields if "unusable" not in f}
    for folder in (where / "samples/000000", where / "columns"):
        assert {n.split(".")[0] for n in os.listdir(folder)} == shown


# --- reading ---

@pytest.fixture(scope="module")
def blob(tmp_path_factory):
    return make.one_blob(tmp_path_factory.mktemp("blob") / "b.beton",
                         (3 << 20) + 12345)


@pytest.fixture
def big(blob, mount):
    return (mount(blob.path) / "samples/000000/blob.bin",
            blob.values[0]["blob"])


@pytest.mark.parametrize("size", [1000, 4096, 1 << 20, 1 << 26])
def test_pieces_of_one_size(big, size):
    path, want = big
    with open(path, "rb", 0) as f:
        assert b"".join(iter(lambda: f.read(size), b"")) == want


def test_pieces_of_one_byte(mnt, data):
    path = mnt / "samples/000002/image.jpg"
    with open(path, "rb", 0) as f:
        assert b"".join(iter(lambda: f.read(1), b"")) == \
            data.content(2, "image")


@pytest.mark.parametrize("flags", [0, os.O_DIRECT])
def test_random_pieces(big, flags):
    path, want = big
    rng, fd = random.Random(3), os.open(path, os.O_RDONLY | flags)
    buffer = mmap.mmap(-1, 1 << 20)
    for _ in range(100):
        at, n = rng.randrange(len(want) + 9), rng.choice([1, 511, 4096, 300000])
        got = os.preadv(fd, [memoryview(buffer)[:n]], at)
        assert buffer[:got] == want[at:at + n]
    os.close(fd)


def test_past_the_end_is_nothing(big):
    path, want = big
    fd = os.open(path, os.O_RDONLY)
    for at in (len(want), len(want) + 1, 1 << 40):
        assert os.pread(fd, 10, at) == b""
    os.close(fd)


def test_mapped(big):
    path, want = big
    with open(path, "rb") as f, \
            mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        for at in random.Random(1).sample(range(0, len(want), 4096), 200):
            assert m[at] == want[at]
        assert m[:] == want


# --- batches ---

def canonical(mnt, spec):
    p = mnt / "batches" / spec
    return os.readlink(p) if p.is_symlink() else spec


def test_default_is_made_of_the_options(data, mount):
    assert canonical(mount(data.path), "default") == \
        "order=random,batch=256,seed=0,drop_last=1"
    where = mount(data.path, "-o", "order=sequential", "-o",
                  "batch=7,seed=1,batch=8")
    assert canonical(where, "default") == \
        "order=sequential,batch=8,seed=1,drop_last=1"
    assert "batch=8\n" in (where / ".betonfs/options").read_text()


@pytest.mark.parametrize("spec,name", [
    ("batch=7", "order=random,batch=7,seed=0,drop_last=1"),
    ("drop_last=0,seed=5,order=sequential",
     "order=sequential,batch=256,seed=5,drop_last=0"),
    ("subset=3-9,window=8,block=2,order=quasi_random,batch=2",
     "order=quasi_random,batch=2,seed=0,drop_last=1,block=2,window=8,"
     "subset=3-9")])
def test_one_spec_has_one_directory(mnt, spec, name):
    assert (mnt / "batches" / spec).is_symlink()
    assert canonical(mnt, spec) == name
    assert not (mnt / "batches" / name).is_symlink()
    one, other = mnt / "batches" / spec / "3", mnt / "batches" / name / "3"
    assert one.stat().st_ino == other.stat().st_ino
    assert os.listdir(mnt / "batches") == ["default"]
    assert os.listdir(mnt / "batches" / name) == []


@pytest.mark.parametrize("spec", [
    "nosuchkey=1", "order=x", "batch=0", "batch=07", "batch=1,batch=2",
    "order=random,", ",", "subset=9-3", "window=5MB", "=", "order"])
def test_a_bad_spec_does_not_exist_and_reports_why(data, mount, spec):
    where = mount(data.path, expects="spec: ")
    with failing(errno.ENOENT):
        os.stat(where / "batches" / spec)
    with failing(errno.ENOENT):
        open(where / "batches" / spec / "0/000000.batch")


def test_an_epoch_lists_its_batches(mnt):
    for spec, n in (("batch=7", 4), ("batch=7,drop_last=0", 5),
                    ("batch=31", 0)):
        assert sorted(os.listdir(mnt / "batches" / spec / "11")) == \
            [f"{i:06d}.batch" for i in range(n)]


@pytest.mark.quick
def test_a_batch_is_the_same_however_it_is_read(mnt):
    path = mnt / "batches/batch=13/2/000001.batch"
    whole = path.read_bytes()
    assert len(whole) == path.stat().st_size and len(whole) > 4096
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 1 << 20)
    n = os.preadv(fd, [buffer], 0)
    os.close(fd)
    assert buffer[:n] == whole
    with open(path, "rb") as f, \
            mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        assert m[:] == whole


def test_a_batch_depends_on_its_path_alone(data, mount):
    name = "batches/order=random,batch=8,seed=3,drop_last=1/5/000002.batch"
    assert (mount(data.path) / name).read_bytes() == \
        (mount(data.path, "-s") / name).read_bytes()


# --- damage ---

def test_damaged_samples_fail_alone(data, mount):
    data.patch(data.where(2, "image"), b"\x09")             # mode
    data.patch(data.where(5, "blob"), struct.pack("<Q", 1 << 60))
    where = mount(data.path, expects="sample 2 field image: unknown image mode")
    assert "image" in os.listdir(where / "samples/000002")
    assert "000002" in os.listdir(where / "columns/image")
    for path in ("samples/000002/image", "columns/image/000002",
                 "samples/000005/blob.bin", "columns/blob/000005.bin"):
        for _ in range(2):
            with failing(errno.EIO):
                os.stat(where / path)
        with failing(errno.EIO):
            open(where / path)
    same(data, 2, "label", (where / "samples/000002/label").read_bytes())
    same(data, 3, "image", (where / "samples/000003/image.ppm").read_bytes())
    assert (where / "batches/batch=30/0/000000.batch").read_bytes()


def test_a_truncated_dataset_gives_errors_and_no_wrong_bytes(data, mount):
    where = mount(data.path, expects="read of")
    cut = data.place[20, "blob"] & ~4095
    os.truncate(data.path, cut)
    for i in range(30):
        path = where / "samples" / data.name(i) / data.file(i, "blob")
        stored = data.stored(i, "blob")
        if stored and data.place[i, "blob"] >= cut:
            with failing(errno.EIO):
                path.read_bytes()
        else:
            assert path.read_bytes() == stored
    assert (where / "batches/batch=30/0/000000.batch").read_bytes()


# --- the command line ---

def test_help_and_versions(fuse):
    for flag in ("-h", "--help"):
        r = betonfs(flag)
        assert r.returncode == 0 and "Examples:" in r.stdout
    first, second, third = betonfs("--version").stdout.splitlines()
    assert first == "betonfs 0.1.0" and second.startswith("  libfuse: 3.")
    assert third.startswith("  sandbox: ")
    keys = betonfs("--options").stdout.splitlines()
    assert {"ro", "uid", "umask", "order", "log"} <= set(keys)


@pytest.mark.quick
def test_failures_have_the_codes_of_mount(data, fuse, tmp_path):
    text, fifo = tmp_path / "text", tmp_path / "fifo"
    text.write_text("no dataset\n" * 100)
    os.mkfifo(fifo)
    cut = tmp_path / "cut.beton"
    with open(data.path, "rb") as f:
        cut.write_bytes(f.read()[:data.first_page + 100])
    where = tmp_path / "m"
    where.mkdir()
    for code, *args in ((1, data.path), (1, data.path, where, "-o", "nosuch"),
                        (1, "--nosuch", data.path, where),
                        (1, data.path, where, "-o", "batch=0"),
                        (32, tmp_path / "absent", where),
                        (33, text, where), (33, fifo, where),
                        (32, tmp_path, where), (33, "/dev/zero", where),
                        (34, cut, where), (32, data.path, text),
                        (32, data.path, text / "x"),
                        (32, data.path, tmp_path / "no/such")):
        r = betonfs(*args)
        assert r.returncode == code, (args, r)
        assert r.stderr.startswith(("betonfs: ", f"{program('betonfs')}: "))
        assert len(r.stderr.splitlines()) == 1 and not r.stdout
    assert str(where) not in mounts()


def test_words_of_fstab_are_accepted(data, mount):
    where = mount(data.path, "-o", "ro,defaults,nofail,_netdev,noauto,"
                  "x-systemd.automount,comment=x,noatime,user,noexec")
    assert "noexec" in mounts()[str(where)][2]


# --- the life of a daemon ---

def test_it_answers_when_the_command_returns(data, background):
    where = background(data.path)
    assert (where / "samples/000000/label").read_text() == "-3\n"


def test_it_lets_go_of_the_standard_streams(data, background, tmp_path):
    where = tmp_path / "piped"
    r = subprocess.run(f'"{BUILD}/betonfs" "{data.path}" "{where}" 2>&1 | cat',
                       shell=True, capture_output=True, timeout=DEADLINE)
    assert r.stdout == b"" and str(where) in mounts()


def test_paths_may_be_relative(data, background, tmp_path):
    r = betonfs("every.beton", "here", cwd=tmp_path)
    assert r.returncode == 0
    assert (tmp_path / "here/dataset.json").exists()


def test_messages_can_go_to_a_file(data, background, tmp_path):
    where = background(data.path, "-o", f"log={tmp_path}/log")
    assert not (where / "batches/bad=1").exists()
    line, = elsewhere.as_local((tmp_path / "log").read_text()).splitlines()
    assert "betonfs[" in line and "unknown key 'bad'" in line


@pytest.mark.quick
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("args", [(), ("-s",)])
def test_signals_unmount_and_end_with_0(data, daemon, how, args):
    d = daemon(data.path, *args)
    held = os.open(d.where / "samples/000000/label", os.O_RDONLY)
    d.process.send_signal(how)
    assert d.wait() == 0
    assert str(d.where) not in mounts() and d.where.is_dir()
    assert not SUSPICIOUS.search(d.printed())
    # The kernel ends the connection of rings a moment after the daemon.
    with pytest.raises(OSError) as e:
        os.close(held)
    assert e.value.errno in (errno.ENOTCONN, errno.ECONNABORTED,
                             errno.ECANCELED)


def test_a_missing_mountpoint_is_made_and_removed(data, background, tmp_path):
    where = tmp_path / "made"
    background(data.path, at=where)
    unmount(where)
    wait_until(lambda: not where.exists(), "the mountpoint to go")


def test_a_created_mountpoint_is_removed_after_a_signal(data, daemon, tmp_path):
    d = daemon(data.path, where=tmp_path / "made")
    d.process.terminate()
    assert d.wait() == 0 and not d.where.exists()


def test_a_failure_leaves_no_mountpoint(fuse, tmp_path):
    (tmp_path / "text").write_text("x" * 100)
    assert betonfs(tmp_path / "text", tmp_path / "made").returncode == 33
    assert not (tmp_path / "made").exists()


def test_a_stale_mountpoint_is_taken_over(data, daemon, tmp_path):
    where = tmp_path / "stale"
    where.mkdir()
    for _ in range(3):
        d = daemon(data.path, where=where)
        assert (where / "samples/000001/label").read_text() == "4\n"
        d.process.kill()
        d.wait()
    d = daemon(data.path, where=where)
    assert d.end() == 0 and str(where) not in mounts()


def test_a_reader_outlives_a_lazy_unmount(data, daemon):
    d = daemon(data.path)
    with open(d.where / "samples/000002/image.jpg", "rb", 0) as f:
        unmount(d.where, "-z")
        assert f.read() == data.content(2, "image")
    assert d.wait() == 0


def test_a_deleted_dataset_continues(data, mount):
    where = mount(data.path)
    os.unlink(data.path)
    assert (where / "samples/000029/label").read_text() == "200\n"


@pytest.mark.parametrize("options,expects", [
    ("window=64", "-o window=64 has no effect with order=random.*quasi_random"),
    ("order=sequential,block=4", "-o block=4 has no effect with order=seq"),
    ("batch=512",
     "batches/default has no batches: the dataset has 10 samples.* -o batch=10"),
])
def test_options_without_an_effect_are_named(tmp_path, mount, options, expects):
    make.numbers(tmp_path / "ten.beton", 10)
    where = mount(tmp_path / "ten.beton", "-o", options, expects=expects)
    assert len(os.listdir(where / "samples")) == 10


@pytest.mark.parametrize("options", ["order=quasi_random,window=64", "batch=10",
                                     "batch=512,drop_last=0"])
def test_options_with_an_effect_are_not(tmp_path, daemon, options):
    make.numbers(tmp_path / "ten.beton", 10)
    d = daemon(tmp_path / "ten.beton", "-o", options)
    d.end()
    assert d.printed() == ""
