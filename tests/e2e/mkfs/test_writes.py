# SPDX-License-Identifier: Apache-2.0
"""Files that programs write: their paths, their permissions, and the files left
after a failure."""
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import betonfile
import dumped
import make
from conftest import BUILD, needs_other_users, wait_until

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


# --- programs that write -----------------------------------------------------

@pytest.fixture
def disk(tmp_path):
    """A disk of 16 KiB."""
    where = tmp_path / "disk"
    where.mkdir()
    if os.getuid() or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k", "none", where],
            capture_output=True).returncode:
        pytest.skip("needs root to mount a small disk")
    yield where
    subprocess.run(["umount", where], check=True)


def noise(seed, side=64):
    """A JPEG that does not become small."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3),
                                                  np.uint8)
    out = io.BytesIO()
    image.fromarray(pixels).save(out, "jpeg", quality=95)
    return make.Image(make.JPG, side, side, out.getvalue())


@pytest.fixture
def images(tmp_path):
    (tmp_path / "in").mkdir(exist_ok=True)
    data = make.Dataset(tmp_path / "in" / "i.beton", [("image", make.IMAGE)],
                        [{"image": noise(i)} for i in range(8)], 1 << 16)
    data.folder = tmp_path / "in"
    return data


def by_mkfs(images, out):
    source = images.folder / "src"
    source.mkdir()
    for i, v in enumerate(images.values):
        (source / f"{i}.jpg").write_bytes(v["image"].data)
    return subprocess.run([BUILD / "mkfs.beton", "--mode=keep", source, out],
                          capture_output=True, text=True)


def by_optimize(images, out):
    return dumped.beton("optimize", images.path, out, code=None)


def by_info(images, out):
    import package      # noqa: F401, skips without it
    return dumped.beton("info", "--html", out, images.path, code=None)


def by_dump(images, out):
    folder = images.folder / "dump"
    fill = out.parent / "fill"
    fill.write_bytes(bytes(16384 - 4096 * len(os.listdir(out.parent))))
    try:
        return dumped.beton("dump", images.path, "--out", folder, "--state",
                            out, "--batches", ":0", code=None)
    finally:
        fill.unlink()


def by_python(images, out):
    from package import betonfs     # skips without the package
    try:
        betonfs.write(out, [{"blob": v["image"].data} for v in images.values],
                      overwrite=True)
    except OSError as e:
        return subprocess.CompletedProcess([], 1, "", f"{e}\n")
    raise AssertionError("written")


# --- links -------------------------------------------------------------------

def test_dump_follows_no_link_in_its_directory(data, tmp_path):
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


def test_dump_follows_no_link_to_a_directory_in_its_own(data, tmp_path):
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
    (tmp_path / "link").symlink_to("true/")
    dump(data, f"{tmp_path}/link//")
    assert len(list((tmp_path / "true").iterdir())) == 3
    assert "No such file" in dump(data, "", code=1).stderr
    assert "Not a directory" in dump(data, data.path, code=1).stderr


def test_a_link_of_another_user_leads_nowhere(data, tmp_path):
    """Writes in a directory such as /tmp, whatever fs.protected_symlinks is."""
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
    assert "belongs to another user" in r.stderr
    assert not list(mine.iterdir())


# --- places ------------------------------------------------------------------

def test_a_dataset_may_be_optimized_into_itself(images):
    want = [v["image"].data for v in images.values]
    os.chmod(images.path, 0o600)
    for _ in range(2):
        dumped.beton("optimize", images.path, images.path)
    assert os.stat(images.path).st_mode & 0o777 == 0o600
    image = pytest.importorskip("PIL.Image")
    b = betonfile.Beton(images.path).check()
    for got, jpeg in zip(b.images(), want, strict=True):
        assert np.array_equal(*(np.asarray(image.open(io.BytesIO(x)))
                                for x in (got.bytes, jpeg)))


@pytest.mark.parametrize("old", [False, True])
def test_the_last_of_several_writers_stays(images, tmp_path, old):
    out = tmp_path / "out"
    out.mkdir()
    if old:
        (out / "x.beton").write_bytes(b"\2\0old")
    every = [subprocess.Popen([BUILD / "beton", "optimize", images.path,
                               out / "x.beton"], stdout=subprocess.DEVNULL)
             for _ in range(8)]
    assert [p.wait(60) for p in every] == [0] * 8
    assert os.listdir(out) == ["x.beton"]
    assert betonfile.Beton(out / "x.beton").check().samples == 8


@pytest.mark.parametrize("write", [by_mkfs, by_optimize, by_info])
@pytest.mark.parametrize("kind, why", [
    ("folder", "Is a directory"), ("fifo", "not a regular file"),
    ("full", "not a regular file"), ("pipe", "not a regular file"),
    ("none/x", "No such file"), ("file/x", "Not a directory"),
    ("loop", "Too many levels")])
def test_no_other_place_is_written(images, tmp_path, write, kind, why):
    out = tmp_path / "out"
    out.mkdir()
    (out / "folder").mkdir()
    (out / "file").write_text("old")
    os.mkfifo(out / "fifo")
    (out / "full").symlink_to("/dev/full")
    # As /dev/stdout is one. The output of the programs is a pipe here.
    (out / "pipe").symlink_to("/proc/self/fd/1")
    (out / "loop").symlink_to("loop")
    before = sorted(os.listdir(out))
    r = write(images, out / kind)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1, r
    assert str(out / kind) in r.stderr and why in r.stderr
    assert sorted(os.listdir(out)) == before and not r.stdout
    assert all((out / x).is_symlink() for x in ("full", "pipe", "loop"))


def test_standard_output_may_be_a_file(images, tmp_path):
    out = tmp_path / "x.beton"
    with open(out, "w") as f:
        subprocess.run([BUILD / "beton", "optimize", images.path,
                        "/dev/stdout"], stdout=f, check=True)
    betonfile.Beton(out).check()


def test_a_link_may_lead_to_another_disk(images, disk, tmp_path):
    small = make.numbers(tmp_path / "in" / "n.beton", 4)
    link = tmp_path / "link"
    link.symlink_to(disk / "x.html")
    r = by_optimize(images, link)
    assert r.returncode == 1 and "No space left" in r.stderr
    state = dumped.beton("dump", small.path, "--out", tmp_path / "dump",
                         "--state", link)
    assert not state.stderr
    assert os.listdir(disk) == ["x.html"] and link.is_symlink()


def test_a_disk_that_is_read_only_is_named(images, disk):
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    r = by_optimize(images, disk / "x.beton")
    assert r.returncode == 1 and "Read-only" in r.stderr
    assert len(r.stderr.splitlines()) == 1


# --- other users -------------------------------------------------------------

def as_another_user():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@pytest.fixture
def open_path(tmp_path):
    """A directory that other users reach, too."""
    needs_other_users()
    # Those of pytest, and of the worker of pytest-xdist, if there is one.
    depth = 3 if os.environ.get("PYTEST_XDIST_WORKER") else 2
    for p in (tmp_path, *tmp_path.parents[:depth]):
        p.chmod(0o755)
    return tmp_path


@pytest.fixture
def optimize(images, open_path):
    """optimize(out) by another user, who may not reach the build."""
    program = shutil.copy(BUILD / "beton", open_path)

    def do(out, code=0):
        return dumped.beton("optimize", images.path, out, code=code,
                            executable=program, preexec_fn=as_another_user)
    return do


@pytest.mark.parametrize("mode", [0o555, 0o655, 0o000])
def test_permissions_of_a_directory_count(optimize, open_path, mode):
    folder = open_path / "closed"
    folder.mkdir()
    (folder / "x.beton").write_bytes(b"\2\0old")
    folder.chmod(mode)
    r = optimize(folder / "x.beton", code=1)
    assert "x.beton" in r.stderr and "Permission denied" in r.stderr
    assert len(r.stderr.splitlines()) == 1
    assert os.listdir(folder) == ["x.beton"]


def test_another_user_may_write_where_the_directory_is_his(optimize, open_path):
    folder = open_path / "his"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o300)     # not to be listed, nor synced
    for _ in range(2):
        optimize(folder / "x.beton")
    assert os.listdir(folder) == ["x.beton"]
    assert (folder / "x.beton").stat().st_uid == NOBODY


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


# --- a full disk -------------------------------------------------------------

@pytest.mark.parametrize("write", [by_mkfs, by_optimize, by_info, by_dump,
                                   by_python])
@pytest.mark.parametrize("old", [None, "\0\0old"])
def test_a_full_disk_is_named_and_left_as_it_was(images, disk, write, old):
    out = disk / "x.out"
    if old and write is not by_dump:    # whose state is read first
        out.write_text(old)
    r = write(images, out)
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1, r
    assert "x.out" in r.stderr and "No space left" in r.stderr
    if out.exists():
        assert out.read_text() == old
    assert os.listdir(disk) == (["x.out"] if out.exists() else [])


def test_a_full_disk_costs_no_array_of_a_dump(images, disk):
    fields = "image | resize(64)"
    r = dumped.beton("dump", images.path, "--out", disk, "--spec",
                     "batch=2,order=sequential", "--pipeline", fields, code=1)
    assert "image.npy" in r.stderr and "No space left" in r.stderr
    assert [p.name for p in disk.glob("*/*")] == ["ids.npy"]


# --- signals -----------------------------------------------------------------

WRITE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import betonfs
def samples():
    yield {"blob": bytes(1 << 20)}
    while True:
        time.sleep(1)
betonfs.write(sys.argv[2], samples(), length=9)
"""


def mkfs_for_long(tmp_path, out):
    source, image = tmp_path / "src", noise(0, 1024)
    source.mkdir()
    for i in range(60):
        (source / f"{i}.jpg").write_bytes(image.data)
    return [BUILD / "mkfs.beton", "-j1", "--index", source, out]


def optimize_for_long(tmp_path, out):
    data = make.Dataset(tmp_path / "large.beton", [("image", make.IMAGE)],
                        [{"image": noise(0, 1024)}] * 40, 1 << 21)
    return [BUILD / "beton", "optimize", "--jobs=1", data.path, out]


def python_for_long(tmp_path, out):
    from package import PACKAGE     # skips without the package
    return [sys.executable, "-c", WRITE, PACKAGE, out]


def has_file(process, folder):
    """Whether the process has a file in the directory open, with a name or
    without."""
    assert process.poll() is None
    for p in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            # A file without a name shows as "/path/#1234 (deleted)", and one
            # in another namespace of mounts by its path outside of a chroot.
            if f"{folder}/" in os.readlink(p):
                return True
        except FileNotFoundError:
            pass    # closed meanwhile
    return False


def left_by(command, folder, how):
    """The names in the directory after a signal to a program that writes
    there."""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: has_file(p, folder), "the file")
        p.send_signal(how)
        p.wait(20)
    finally:
        p.kill()
        p.wait()
    assert p.returncode == -how
    return os.listdir(folder)


LONG = pytest.mark.parametrize("command", [mkfs_for_long, optimize_for_long,
                                           python_for_long])
SIGNALS = pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM,
                                          signal.SIGKILL])


@LONG
@SIGNALS
def test_a_signal_leaves_nothing(tmp_path, command, how):
    out = tmp_path / "out"
    out.mkdir()
    try:
        os.close(os.open(out, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("a file system without O_TMPFILE")
    assert left_by(command(tmp_path, out / "x.beton"), out, how) == []


@LONG
@SIGNALS
def test_an_interrupted_file_is_recognized(tmp_path, command, how):
    """Without O_TMPFILE, as on some file systems, or without /proc."""
    out = tmp_path / "out"
    out.mkdir()
    needs_root()
    hidden = ["unshare", "-m", "sh", "-c",
              'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, BUILD / "mkfs.beton", "--version"],
                      capture_output=True).returncode:
        pytest.skip("no namespace of mounts, or a sanitizer needs /proc")
    left = left_by([*hidden, *command(tmp_path, out / "x.beton")], out, how)
    cleans = {mkfs_for_long: (signal.SIGINT, signal.SIGTERM),
              python_for_long: (signal.SIGINT,), optimize_for_long: ()}
    assert len(left) <= (how not in cleans[command])
    for name in left:
        assert re.fullmatch(r"\.beton-[0-9a-f]{8}\.tmp", name)
