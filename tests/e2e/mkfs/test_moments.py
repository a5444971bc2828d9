# SPDX-License-Identifier: Apache-2.0
"""Merge, append and split end at any moment: by kill -9, because the disk is full,
or because a file may not grow. The old file stays whole, nothing else is left, and
another run makes the right file.

BETON_MOMENTS=200 sets the number of moments for each command; the last line
prints how they ended."""
import collections
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import dumped
import make

MOMENTS = int(os.environ.get("BETON_MOMENTS", 5))
NAMES = "old.beton", "new.beton"


class Command:
    """Arguments of beton, and the files of its directory: `kept` before it runs,
    `made` after it."""

    def __init__(self, name, args, kept, made):
        self.name, self.args, self.kept, self.made = name, args, kept, made

    def start(self, folder, limit=None):
        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            [dumped.BUILD / "beton", *self.args], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
            preexec_fn=limit_files if limit else None)

    def check(self, folder, done):
        """Every file is whole, and old or new as one; `done`: it succeeded."""
        got = {p: (folder / p).read_bytes() for p in os.listdir(folder)}
        for name, data in got.items():
            assert data in (self.kept.get(name), self.made.get(name)), name
        assert set(self.kept) <= set(got)
        if done:
            assert got == self.made

    def put(self, folder):
        """The files as they were before."""
        for name in os.listdir(folder):
            (folder / name).unlink()
        for name, data in self.kept.items():
            (folder / name).write_bytes(data)


def read(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Each command on files of several pages."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    for k, name in enumerate(NAMES):
        make.Dataset(folder / name, [("label", make.INT), ("blob", make.BYTES)],
                     [{"label": i, "blob": rng.bytes(5000 + 777 * (i % 9))}
                      for i in range(800 + 100 * k)], 1 << 20)
    made = []
    for name, args in [
            ("merge", ["merge", "-q", *NAMES, "out.beton"]),
            ("append", ["merge", "-q", *NAMES, NAMES[0]]),
            ("split", ["split", "-q", "--shards=3", NAMES[0], "part-{}.beton"])]:
        kept = read(folder)
        work = tmp_path_factory.mktemp(name)
        if name == "merge":     # the output exists
            kept["out.beton"] = kept[NAMES[1]]
        c = Command(name, args, kept, None)
        c.put(work)
        assert c.start(work).wait(60) == 0
        c.made = read(work)
        made.append(c)
    return made


@pytest.fixture(params=["merge", "append", "split"])
def command(request, commands):
    c, = [c for c in commands if c.name == request.param]
    return c


def finish(command, folder):
    """Another run makes the right files. If nothing is left to do, the old files
    come back first, because an append would add the samples twice."""
    if read(folder) == command.made:
        command.put(folder)
    assert command.start(folder).wait(60) == 0
    command.check(folder, True)
    command.put(folder)


def report(command, way, ends):
    print(f"{command.name}, {way}: {MOMENTS} moments: " +
          ", ".join(f"{n} {end}" for end, n in sorted(ends.items())))


def test_kill(command, tmp_path):
    random.seed(command.name)
    command.put(tmp_path)
    start = time.monotonic()
    assert command.start(tmp_path).wait(60) == 0
    took = time.monotonic() - start
    command.put(tmp_path)
    ends = collections.Counter()
    for _ in range(MOMENTS):
        with command.start(tmp_path) as p:
            time.sleep(random.uniform(0, took))
            p.kill()
        done = p.returncode == 0
        assert done or p.returncode == -signal.SIGKILL
        command.check(tmp_path, done)
        ends["complete" if done else "killed"] += 1
        finish(command, tmp_path)
    report(command, "kill -9", ends)


def test_files_that_may_not_grow(command, tmp_path):
    random.seed(command.name)
    command.put(tmp_path)
    most = max(map(len, command.made.values()))
    ends = collections.Counter()
    for _ in range(MOMENTS):
        p = command.start(tmp_path, random.randrange(1, most + most // 8))
        error = p.communicate(timeout=60)[1]
        assert p.returncode in (0, 1)
        assert p.returncode == 0 or ": cannot write: " in error
        assert len(error.splitlines()) == p.returncode
        command.check(tmp_path, p.returncode == 0)
        ends["failed" if p.returncode else "complete"] += 1
        finish(command, tmp_path)
    report(command, "a limit of files", ends)


@pytest.fixture
def disk(tmp_path):
    """A small disk, and a function that sets its size."""
    where = tmp_path / "disk"
    where.mkdir()

    def resize(size):
        subprocess.run(["mount", "-o", f"remount,size={size}", where],
                       check=True)

    if os.getuid() or not shutil.which("mount") or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "none", where],
            capture_output=True).returncode:
        pytest.skip("needs root to mount a small disk")
    yield where, resize
    subprocess.run(["umount", where], check=True)


def test_a_full_disk(command, disk):
    folder, resize = disk
    random.seed(command.name)
    command.put(folder)
    used = sum(f.stat().st_blocks * 512 for f in folder.iterdir())
    # At most, before the new file replaces the old one.
    need = used + sum(len(d) for name, d in command.made.items()
                      if command.kept.get(name) != d)
    ends = collections.Counter()
    for _ in range(MOMENTS):
        resize(random.randrange(used + 65536, need + (need - used) // 8))
        p = command.start(folder)
        error = p.communicate(timeout=60)[1]
        assert p.returncode in (0, 1)
        assert p.returncode == 0 or "No space left on device" in error
        assert len(error.splitlines()) == p.returncode
        command.check(folder, p.returncode == 0)
        ends["failed" if p.returncode else "complete"] += 1
        resize("64m")
        finish(command, folder)
    report(command, "a full disk", ends)
