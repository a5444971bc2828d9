# SPDX-License-Identifier: Apache-2.0
"""Fixtures that mount datasets. Each test unmounts its mounts, and every daemon
must end with status 0 and without an unexpected warning."""
import atexit
import contextlib
import ctypes
import functools
import gc
import os
import pathlib
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import elsewhere
import make
import resources
from installed import root      # noqa: F401, for tests
from nodes import cluster      # noqa: F401, for tests
from servers import (certificate, faulty, haproxy,  # noqa: F401, for tests
                     link, moto, nginx, rclone, running)

BUILD = elsewhere.build()
# Exit codes of betonfs: betonfs(8).
EXIT_MOUNT, EXIT_NOT_DATASET, EXIT_DAMAGED = 32, 33, 34
DEADLINE = 20   # seconds, of whatever is waited for

SUSPICIOUS = re.compile(
    r"\b(error|warning|fatal|abort(ed)?|assert\w*|never freed)\b|"
    r"^==\d+==|Sanitizer",
    re.IGNORECASE | re.MULTILINE)

is_instrumented = "-" in BUILD.name     # sanitizers take memory of their own

# A shell ignores it for what runs in the background, and so would all programs.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def data(tmp_path):
    """Fields of every type; many modules have data of their own."""
    return make.every_type(tmp_path / "every.beton")


@pytest.fixture(scope="session", autouse=True)
def code_cache(tmp_path_factory):
    """Compiled code of tests is not kept among the user's."""
    os.environ["BETON_CACHE_DIR"] = str(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="session", autouse=True)
def interpreter(tmp_path_factory):
    """Programs that need Python run this one with the package of the build, or
    one that has the libraries of sources."""
    path = tmp_path_factory.mktemp("python") / "python3"
    package = os.environ.get("BETON_PACKAGE", str(BUILD / "python"))
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(package)} exec "
                    f'{shlex.quote(os.environ.get("SOURCES_PYTHON", sys.executable))} '
                    '"$@"\n')
    path.chmod(0o755)
    os.environ["BETON_PYTHON"] = str(path)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left():
    """In directories that all programs share. Those of others come and go."""
    before = resources.made()
    yield
    left = resources.made() - before
    wait_until(lambda: not left & resources.made(),
               "directories of compilers to go")


@pytest.fixture
def standins(monkeypatch):
    """Stand-ins for a GPU's libraries, which run kernels on the CPU."""
    for name in "cuda", "nvrtc":
        path = BUILD / f"standin/{name}.so"
        if not path.exists():
            pytest.skip(f"no {path}: make unit builds it")
        monkeypatch.setenv(f"BETON_{name.upper()}_LIBRARY", str(path))


REAL_GPU = os.environ.get("BETON_CUDA_TEST_REAL") == "1"


@pytest.fixture
def gpu(request):
    """Stand-ins or, with BETON_CUDA_TEST_REAL=1, the machine's own driver and
    NVRTC."""
    if not REAL_GPU:
        request.getfixturevalue("standins")


def failing(code):
    """The block fails with this errno."""
    return pytest.raises(OSError, match=os.strerror(code))


def wait_until(condition, what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long for " + what
        time.sleep(0.005)


def mounts():
    """mountpoint -> (source, type, options)"""
    out = {}
    for line in pathlib.Path("/proc/self/mounts").read_text(
            errors="surrogateescape").splitlines():
        source, where, kind, options = (
            re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), word)
            for word in line.split(" ")[:4])
        out[where] = source, kind, options.split(",")
    return out


def unmount(where, *flags):
    subprocess.run(["fusermount3", "-u", *flags, where], timeout=DEADLINE,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@functools.cache
def program(name):
    """A program that every user may run: a copy where other users may not
    search the directory of the build, such as below /root."""
    path = BUILD / name
    if all(p.stat().st_mode & 0o001 for p in (path, *path.parents)):
        return path
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    return pathlib.Path(shutil.copy(path, folder))


def betonfs(*args, **how):
    """Runs betonfs until it ends: in the background, until it is mounted."""
    return subprocess.run([program("betonfs"), *args], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=DEADLINE, **how)


LIBC = ctypes.CDLL(None)
OTHER = 65534   # the other user


def needs_other_users():
    """Skips where a program of another user could not start."""
    if os.getuid():
        pytest.skip("only root can be two users")
    if not os.stat("/").st_mode & 0o001:
        pytest.skip("the root directory does not let other users in")


def as_other(folder, function, *args, groups=()):
    """function(*args) of a process of another user in this directory, which
    that user need not be able to reach."""
    r, w = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            os.setgroups(groups)
            os.setgid(OTHER)
            os.setuid(OTHER)
            try:
                result = True, function(*args)
            except BaseException as e:
                result = False, e
            with open(w, "wb") as f:
                pickle.dump(result, f)
        finally:
            os._exit(0)
    os.close(w)
    with open(r, "rb") as f:
        pickled = f.read()
    os.waitpid(child, 0)
    works, result = pickle.loads(pickled)
    if not works:
        raise result
    return result


def end_with_parent():
    """So that a daemon unmounts when the tests are killed."""
    LIBC.prctl(1, signal.SIGTERM)       # PR_SET_PDEATHSIG


def with_rings(args):
    """The arguments of a daemon, with io_uring if BETON_TEST_IO_URING is set and
    the arguments do not exclude it."""
    if os.environ.get("BETON_TEST_IO_URING") != "on" or {"-s", "-d"} & {*args} or \
            any("io_uring" in str(arg) for arg in args):
        return args
    return ("-o", "io_uring=on", *args)


class Daemon:
    """betonfs in the foreground, a child of the test."""

    def __init__(self, file, where, *args):
        self.where = pathlib.Path(where)
        self.log = pathlib.Path(str(self.where) + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [BUILD / "betonfs", "-f", *with_rings(args), str(file), where],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=end_with_parent)
        self.resources = None
        try:
            wait_until(self.is_mounted, "the mount")
            self.resources = resources.Daemon(self.process.pid, self.where,
                                              is_instrumented)
        except BaseException:
            self.process.kill()
            self.end()
            raise

    def is_mounted(self):
        """Whether the mount answers. Then the daemon is confined, and its
        threads run."""
        assert self.process.poll() is None, "daemon ended: " + self.printed()
        if mounts().get(str(self.where), ("", ""))[1] != "fuse.betonfs":
            return False
        try:    # what is mounted there may be dead
            os.statvfs(self.where)
        except OSError:
            return False
        return True

    def printed(self):
        return elsewhere.as_local(self.log.read_text())

    def wait(self):
        try:
            return self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            stacks = subprocess.run(
                ["sh", "-c", f"cat /proc/{self.process.pid}/task/*/stack"],
                capture_output=True, text=True).stdout
            self.process.kill()
            raise AssertionError("daemon does not end:\n" + stacks) from None

    def check_memory(self):
        excess = self.resources.excess()
        assert not excess, excess

    def check_that_it_let_go(self):
        """The daemon has released everything that belonged to former readers."""
        end = time.monotonic() + DEADLINE
        while (leaks := self.resources.leaks()):
            assert time.monotonic() < end, leaks
            gc.collect()    # files that a test had open
            time.sleep(0.005)

    def serves(self):
        return (self.resources and self.process.poll() is None
                and resources.state(self.process.pid) != "T"
                and str(self.where) in mounts())

    def check(self, readers):
        """Unless the test killed it."""
        if not self.serves():
            return
        try:
            self.check_memory()
            if not readers:
                self.check_that_it_let_go()
        except OSError:
            wait_until(lambda: not self.serves(), "the end")

    def end(self, readers=False):
        """However it stands, nothing is left of it. Its exit code. `readers`:
        they have files open and connections."""
        try:
            self.check(readers)
        finally:
            code = self.let_end()
        if self.resources:
            wait_until(lambda: not self.resources.left(), "its processes")
        assert str(self.where) not in mounts()
        return code

    def let_end(self):
        if self.process.poll() is None:
            unmount(self.where)
        if str(self.where) in mounts():
            unmount(self.where, "-z")
        return self.wait()


@pytest.fixture
def fuse():
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no /dev/fuse")
    if not (BUILD / "betonfs").exists():
        pytest.skip(f"no betonfs in {BUILD}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed


@pytest.fixture
def mount(fuse, tmp_path, request):
    """mount(file, *args, expects=regex) -> mountpoint. The daemon's messages have
    to match `expects`; without it, suspicious messages fail the test."""
    number = 0

    def check(daemon, expects):
        # A failed test keeps its files open, because its frames live on.
        code = daemon.end(readers=request.node.failed)
        printed = daemon.printed()
        assert code == 0, printed
        if expects:
            assert re.search(expects, printed), printed
        else:
            assert not SUSPICIOUS.search(printed), printed

    # All are ended, also if one of them did not end well.
    with contextlib.ExitStack() as stack:
        def do(file, *args, expects=None):
            nonlocal number
            where = tmp_path / f"mnt{number}"
            number += 1
            where.mkdir()
            stack.callback(check, Daemon(file, where, *args), expects)
            return where

        yield do


@pytest.fixture
def daemon(fuse, tmp_path, request):
    """daemon(file, *args) -> Daemon, for tests of how one ends."""
    number = 0

    def end(d):
        try:
            if not request.node.failed:
                d.check(readers=False)
        finally:
            if d.process.poll() is None:
                d.process.kill()
            d.end()

    with contextlib.ExitStack() as stack:
        def do(file, *args, where=None):
            nonlocal number
            if where is None:
                where = tmp_path / f"dmn{number}"
                number += 1
                where.mkdir()
            d = Daemon(file, where, *args)
            stack.callback(end, d)
            return d

        yield do
