# SPDX-License-Identifier: Apache-2.0
"""Requests of the kernel through io_uring: the choice, its reasons, and mounts that
use it. A kernel that has it enabled runs other files of tests with it, too."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import resources
from conftest import BUILD, DEADLINE, betonfs, wait_until

HERE = pathlib.Path(__file__).parent
PARAMETER = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
# Files of tests about names, files, batches, and the ends of daemons.
OTHERS = ("test_mount.py", "test_listing.py", "test_xattr.py", "test_stats.py",
          "test_batches.py", "test_datasets.py", "test_watcher.py")
OTHERS_SECONDS = 900


def why_not():
    """Why rings cannot be used here, or None."""
    if not PARAMETER.exists():
        return "the kernel lacks FUSE over io_uring"
    if PARAMETER.read_text().strip() != "Y":
        return f"{PARAMETER} is N"
    try:
        disabled = pathlib.Path("/proc/sys/kernel/io_uring_disabled")
        if disabled.read_text().strip() == "2":
            return "kernel.io_uring_disabled is 2"
    except OSError:
        pass
    return None


needs_rings = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
needs_none = pytest.mark.skipif(why_not() is None, reason="there are rings")


def options(mnt):
    return dict(line.partition("=")[::2] for line in
                (mnt / ".betonfs/options").read_text().splitlines())


def rings(mnt):
    return json.loads((mnt / ".betonfs/stats.json").read_text())["io_uring"]


# --- the choice ---

def test_off_is_off(data, mount):
    mnt = mount(data.path, "-o", "io_uring=off")
    assert options(mnt)["io_uring"] == "off"
    assert options(mnt)["io_uring_why"] == "-o io_uring=off"
    assert rings(mnt) == {"queues": 0, "answered": 0, "passed_on": 0,
                          "why": "-o io_uring=off"}


@pytest.mark.parametrize("flag", ["-s", "-d"])
def test_flags_that_exclude_it(data, mount, tmp_path, flag):
    mnt = mount(data.path, flag, expects="opcode" if flag == "-d" else None)
    assert options(mnt)["io_uring"] == "off"
    assert options(mnt)["io_uring_why"].startswith(flag)
    r = betonfs(flag, "-o", "io_uring=on", data.path, tmp_path / "no")
    assert r.returncode == 1 and r.stderr.count("\n") == 1
    assert f"-o io_uring=on: {flag} " in r.stderr
    assert f"leave out {flag}" in r.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("value", ["", "yes", "ON", "auto|on"])
def test_other_values_are_refused(data, fuse, tmp_path, value):
    r = betonfs("-o", f"io_uring={value}", data.path, tmp_path)
    assert r.returncode == 1
    assert "io_uring" in r.stderr and "auto, on, off" in r.stderr


@needs_none
def test_without_it_the_classic_way_is_taken(data, mount):
    mnt = mount(data.path)
    assert options(mnt)["io_uring"] == "off"
    why = options(mnt)["io_uring_why"]
    assert why and rings(mnt)["why"] == why


@needs_none
def test_on_says_what_is_missing(data, fuse, tmp_path):
    r = betonfs("-o", "io_uring=on", data.path, tmp_path / "no")
    assert r.returncode == 2 and r.stderr.count("\n") == 1
    assert r.stderr.startswith("betonfs: -o io_uring=on: ")
    assert "enable_uring" in r.stderr or "Linux 6.14" in r.stderr
    assert not (tmp_path / "no").exists()


# --- mounts with rings ---

@pytest.fixture
def mnt(data, mount):
    return mount(data.path, "-o", "io_uring=on")


@needs_rings
def test_auto_takes_it(data, mount):
    mnt = mount(data.path)
    assert options(mnt)["io_uring"] == "on"
    assert "io_uring_why" not in options(mnt) and not rings(mnt)["why"]
    assert rings(mnt)["queues"] >= os.cpu_count()


@needs_rings
def test_what_is_in_memory_is_answered_at_once(data, mnt):
    """Batches and statistics go to other threads."""
    folder = mnt / "samples" / data.name(1)
    for name in os.listdir(folder):
        (folder / name).read_bytes()
    before = rings(mnt)
    for i in range(20):
        for name in os.listdir(mnt / "samples" / data.name(i)):
            (mnt / "samples" / data.name(i) / name).read_bytes()
    after = rings(mnt)
    assert after["answered"] - before["answered"] > 100
    assert after["passed_on"] - before["passed_on"] < 20
    (mnt / "batches/batch=4/0/000000.batch").read_bytes()
    assert rings(mnt)["passed_on"] > after["passed_on"]


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """While this file exists, reads of datasets wait. The stand-in looks for it with a
    call that the sandbox forbids."""
    library = BUILD / "standin/slow_disk.so"
    if "-" in BUILD.name or not library.exists():
        pytest.skip("the stand-in is not for this build")
    gate = tmp_path / "slow"
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("SLOW_DISK", str(gate))
    return gate


@pytest.mark.parametrize("choice", ["off", pytest.param("on", marks=needs_rings)])
def test_values_that_the_kernel_has_need_no_disk(data, gate, daemon, choice):
    d = daemon(data.path, "-o", f"io_uring={choice},nosandbox")
    paths = [path for i in range(4)
             for path in (d.where / "samples" / data.name(i)).iterdir()]
    before = [path.read_bytes() for path in paths]
    gate.touch()
    try:
        r = subprocess.run(["cat", *paths], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=DEADLINE)
    finally:
        gate.unlink()
    assert r.stdout == b"".join(before) and r.returncode == 0
    d.check_that_it_let_go()


@needs_rings
def test_readers_that_wait_hold_up_no_others(data, gate, daemon):
    """A disk that does not answer holds up those who read from it. A reader that
    was killed ends with the answer of the disk, as without rings."""
    d = daemon(data.path, "-o", "io_uring=on,nosandbox")
    gate.touch()
    readers = [subprocess.Popen(["cat", d.where / "columns/label" /
                                 data.name(i % 20)], stdout=subprocess.PIPE)
               for i in range(40)]
    try:
        wait_until(lambda: rings(d.where)["passed_on"] >= 40, "the readers")
        for i in range(20):
            begin = time.monotonic()
            assert os.stat(d.where / "samples" / data.name(i))
            assert os.listdir(d.where)
            assert time.monotonic() - begin < DEADLINE / 4
        readers[0].kill()
    finally:
        gate.unlink()
    for i, reader in enumerate(readers):
        out = reader.communicate(timeout=DEADLINE)[0]
        assert reader.returncode == 0 and out or i == 0
    d.check_that_it_let_go()


@needs_rings
def test_a_killed_reader_leaves_nothing(data, daemon):
    """Whether its request is in the queue or being answered."""
    d = daemon(data.path, "-o", "io_uring=on")
    for i in range(10):
        p = subprocess.Popen(["cat", *(d.where / "batches" / f"batch=4,seed={i}" / "0"
                                       / "000000.batch",) * 50],
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        time.sleep(0.01 * i)
        p.kill()
        assert p.wait(DEADLINE) in (-9, 0, 1)
    d.check_that_it_let_go()


@needs_rings
def test_memory_is_bounded(data, daemon):
    """8 MiB per CPU, whatever was read."""
    off = daemon(data.path, "-o", "io_uring=off")
    on = daemon(data.path, "-o", "io_uring=on")
    for d in off, on:
        for _ in range(3):
            for path in (d.where / "samples").glob("*/*"):
                path.read_bytes()
    more = 1024 * (resources.status(on.process.pid, "RssAnon") -
                   resources.status(off.process.pid, "RssAnon"))
    assert more < rings(on.where)["queues"] * (8 << 20)


@needs_rings
def test_other_tests_with_it(fuse):
    env = dict(os.environ, BETON_TEST_IO_URING="on", BUILD=str(BUILD))
    r = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x",
                        *(HERE / name for name in OTHERS)], env=env, text=True,
                       stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=OTHERS_SECONDS)
    assert r.returncode == 0, r.stdout[-5000:] + r.stderr[-2000:]
    assert re.search(r"\d+ passed", r.stdout)
