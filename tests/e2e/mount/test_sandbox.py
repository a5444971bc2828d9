# SPDX-License-Identifier: Apache-2.0
"""The sandbox of betonfs(8): it is on by default, all that a daemon does works
in it, and a kernel without it is no reason to serve nothing."""
import ctypes
import json
import os
import pathlib
import platform
import signal
import struct
import subprocess
import tempfile

import pytest

import make
from conftest import (DEADLINE, LIBC, SUSPICIOUS, betonfs, mounts, program,
                      unmount, wait_until)
from zerocopy import Client, read_direct

OTHER = 65534
PATIENCE = 2    # seconds, for a mount to go
USERS = [os.getuid()] + [OTHER] * (os.getuid() == 0)
ALL = "landlock,seccomp"
SPEC = "order=random,batch=4,seed=0,drop_last=1"
LANDLOCK, SECCOMP = 444, {"x86_64": 317, "aarch64": 277}.get(platform.machine())

root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture(params=USERS)
def uid(request):
    """Root mounts itself, and another user by fusermount3."""
    if request.param and os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
        pytest.skip("/dev/fuse is for root alone")
    return request.param


@pytest.fixture
def place(fuse, uid):
    """A directory of the user's, which every user may search, with a mountpoint
    that is unmounted at the end."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name).resolve()
        path.chmod(0o755)
        (path / "mnt").mkdir()
        for p in path, path / "mnt":
            os.chown(p, uid, uid)
        yield path
        while str(path / "mnt") in mounts():
            unmount(path / "mnt", "-z")


@pytest.fixture
def start(place, uid):
    """start(*args) -> pid of a daemon in the background, on mnt."""
    def do(*args, **how):
        data = make.every_type(place / "a.beton")
        r = betonfs(*args, data.path, place / "mnt", user=uid, group=uid,
                    extra_groups=[], **how)
        assert (r.returncode, r.stdout, r.stderr) == (0, "", "")
        return int(options(place, uid)["pid"])

    return do


def run(uid, *command):
    r = subprocess.run(list(map(str, command)), user=uid, group=uid,
                       extra_groups=[], capture_output=True, timeout=DEADLINE)
    assert r.returncode == 0, r.stderr
    return r.stdout


def options(place, uid):
    lines = run(uid, "cat", place / "mnt/.betonfs/options").decode()
    return dict(line.partition("=")[::2] for line in lines.splitlines())


def state(pid):
    """-> no_new_privs, the mode of seccomp"""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    words = dict(line.split(":", 1) for line in lines)
    return int(words["NoNewPrivs"]), int(words["Seccomp"])


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [int(n) for t in tasks for n in (t / "children").read_text().split()]


def is_gone(place):
    return str(place / "mnt") not in mounts()


def without(*numbers):
    """Code that runs later finds no such calls, as in an older kernel. Root
    needs no no_new_privs for that."""
    def code(*words):
        return struct.pack("HBBI", *words)

    program = code(0x20, 0, 0, 0)
    for n in numbers:
        program += code(0x15, 0, 1, n) + code(0x06, 0, 0, 0x50000 | 38)
    program += code(0x06, 0, 0, 0x7fff0000)
    filter = ctypes.create_string_buffer(program, len(program))
    fprog = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(filter)))

    def install():
        assert LIBC.prctl(22, 2, fprog, 0, 0) == 0

    install.keeps = filter, fprog
    return install


@pytest.fixture
def offered(start, place, uid):
    """Skips where the kernel has no sandbox."""
    start()
    found = options(place, uid)["sandbox"]
    unmount(place / "mnt")
    wait_until(lambda: is_gone(place), "the unmount")
    if found != ALL:
        pytest.skip(f"this kernel has {found}")


# --- on and off ---

def test_it_is_on(offered, start, place, uid):
    pid = start()
    assert state(pid) == (1, 2)
    assert options(place, uid)["sandbox"] == ALL
    # The watcher unmounts, for which it needs its rights.
    watcher, = children(pid)
    assert state(watcher) == state("self")
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    for task in tasks:
        assert state(f"{pid}/task/{task.name}") == (1, 2)
    # Threads name themselves, because /proc is out of reach.
    assert "beton\n" in [(t / "comm").read_text() for t in tasks]


@pytest.mark.parametrize("words,on", [
    ("sandbox", True), ("nosandbox", False), ("sandbox,nosandbox", False),
    ("nosandbox,sandbox", True)])
def test_the_last_word_counts(offered, start, place, uid, words, on):
    pid = start("-o", words)
    assert state(pid) == ((1, 2) if on else state("self"))
    assert options(place, uid)["sandbox"] == (ALL if on else "none")


def test_it_takes_no_value(place):
    r = betonfs("-o", "sandbox=1", place / "a.beton", place / "mnt")
    assert r.returncode == 1 and "sandbox without a value" in r.stderr


# --- what works in it ---

MODES = pytest.mark.parametrize("args", [
    (), ("-s",), ("-o", "xattr,cache=process,cache_size=32M,cold_size=8M")],
    ids=" ".join)


@MODES
def test_everything_is_read(offered, start, place, uid, args):
    pid = start(*args, "-o", f"log={place}/log")
    mnt = place / "mnt"
    everything = ["find", mnt, mnt / ".betonfs/", "-type", "f", "-exec", "cat",
                  "{}", "+"]
    assert len(run(uid, *everything)) > 100000
    run(uid, "ls", "-lR", mnt)
    for batch in "batch=4/0/000000", "batch=4/7/000003":
        path = mnt / "batches" / f"{batch}.batch"
        got = run(uid, "cat", path)
        assert got == run(uid, "dd", f"if={path}", "iflag=direct", "bs=1M",
                          "status=none")
    # The log is opened again.
    os.rename(place / "log", place / "old")
    os.kill(pid, signal.SIGHUP)
    wait_until((place / "log").exists, "the log")
    run(uid, "sh", "-c", f"ls {mnt}/batches/bad=1 || true")
    wait_until(lambda: "bad" in (place / "log").read_text(), "the line")
    printed = (place / "log").read_text() + (place / "old").read_text()
    assert not SUSPICIOUS.search(printed), printed


@MODES
def test_memory_is_handed_over(offered, start, place, uid, args):
    start(*args)
    mnt = place / "mnt"
    bench = json.loads(run(uid, program("beton"), "bench", mnt, "--json",
                           "--spec", "batch=4", "--pipeline", "label | int32",
                           "--until", "read", "--epochs", "2",
                           "--delivery", "zero-copy"))
    assert bench["delivery"] == "zero-copy"


def test_memory_is_the_file(data, mount):
    mnt = mount(data.path)
    client = Client(mnt)
    for i in range(5):
        path = f"batches/{SPEC}/0/{i:06}.batch"
        slot, seen = client.get(path)
        fd = os.open(mnt / path, os.O_RDONLY | os.O_DIRECT)
        assert seen == (mnt / path).read_bytes() == read_direct(fd)
        os.close(fd)
        client.put(slot)


# --- the end ---

@pytest.mark.parametrize("end", ["fusermount3", "SIGTERM", "SIGKILL"])
def test_no_mount_is_left(offered, start, place, uid, end):
    pid = start()
    if end == "fusermount3":
        run(uid, "fusermount3", "-u", place / "mnt")
    else:
        os.kill(pid, getattr(signal, end))
    wait_until(lambda: is_gone(place), "the unmount", PATIENCE)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") or
               " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text(),
               "the daemon's end")
    assert os.listdir(place / "mnt") == []


# --- a kernel that has less ---

LESS = pytest.mark.parametrize("missing,found", [
    ((LANDLOCK,), "seccomp"), ((SECCOMP,), "landlock"),
    ((LANDLOCK, SECCOMP), "none")], ids=["seccomp", "landlock", "none"])


@root
@LESS
def test_the_daemon_uses_the_supported_layers(start, place, uid, missing, found):
    if uid or not SECCOMP:
        pytest.skip("a user's filter needs no_new_privs")
    log = place / "log"
    start("-o", f"log={log}", preexec_fn=without(*missing))
    assert options(place, uid)["sandbox"] == found
    run(uid, "find", place / "mnt", "-type", "f", "-exec", "cat", "{}", "+")
    lines = [x for x in log.read_text().splitlines() if "sandbox" in x]
    assert len(lines) == 1 and f"sandbox: using {found}," in lines[0]


@root
@LESS
def test_a_client_that_insists_is_refused(place, uid, missing, found):
    if uid or not SECCOMP:
        pytest.skip("a user's filter needs no_new_privs")
    data = make.numbers(place / "a.beton", 20)
    r = betonfs("-o", "sandbox", data.path, place / "mnt",
                preexec_fn=without(*missing))
    assert r.returncode == 2 and r.stderr.count("\n") == 1
    assert "-o sandbox" in r.stderr and f"supports {found} instead" in r.stderr
    assert is_gone(place)
