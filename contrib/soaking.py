# SPDX-License-Identifier: Apache-2.0
"""Parts of contrib/soak: machines that are short of memory or disk, clocks that
jump, other users, and figures over time."""
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import resources

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20
SLACK = 16 * MIB    # of memory that is flat, and a tenth of it
MORE_FDS = 16       # of descriptors that are flat
HIERARCHIES = (     # directory of control groups, file of the limit
    (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (pathlib.Path("/sys/fs/cgroup"), "memory.max"))


class Group:
    """A control group with a limit of memory, or `why` there is none."""

    def __init__(self, name, limit):
        self.path, self.why = None, "no control groups that limit memory"
        for folder, file in HIERARCHIES:
            path = folder / name
            try:
                path.mkdir()
                (path / file).write_text(str(limit))
            except OSError as e:
                self.why = str(e)
                with contextlib.suppress(OSError):
                    path.rmdir()
                continue
            self.path, self.why = path, None
            return

    def enter(self):
        """In a child, before its program."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def end(self):
        for _ in range(200):
            if not self.path:
                return
            with contextlib.suppress(OSError):
                self.path.rmdir()
                self.path = None
            time.sleep(0.01)


class SmallDisk:
    """A file system of 64 KiB, or `why` there is none."""

    def __init__(self, path):
        self.path, self.why = path, None
        path.mkdir()
        r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "soak",
                            path], capture_output=True, text=True)
        if r.returncode:
            self.path, self.why = None, r.stderr.strip()

    def fill(self):
        with contextlib.suppress(OSError), open(self.path / "fill", "wb") as f:
            f.write(bytes(MIB))

    def end(self):
        if self.path:
            subprocess.run(["umount", "-l", self.path], check=False)


def jumping_clock(work):
    """(a library to preload or None, why there is none)"""
    out = work / "clock_jumps.so"
    try:
        r = subprocess.run(["cc", "-shared", "-fPIC", "-o", out, ROOT /
                            "tests/standin/clock_jumps.c"],
                           capture_output=True, text=True)
    except OSError as e:
        return None, str(e)
    return (None, r.stderr.strip()) if r.returncode else (out, None)


# Runs as another user, who cannot reach our files: the client comes with it.
STRANGER = """
import hashlib, pathlib, sys
mnt, batch = pathlib.Path(sys.argv[1]), sys.argv[2]
client = Client(mnt / "open")
for name, want in ("open", True), ("private", False):
    path = mnt / name / batch
    try:
        seen = path.read_bytes()
    except PermissionError:
        seen = b""
    got = client.get(f"{name}/{batch}")
    shared = b"" if isinstance(got, int) else got[1]
    for data in seen, shared:
        if bool(data) != want:
            sys.exit(f"{name}: {len(data)} bytes")
    print(hashlib.blake2b(seen, digest_size=16).hexdigest(),
          hashlib.blake2b(shared, digest_size=16).hexdigest())
"""


def as_stranger(uid, mnt, batch):
    client = (ROOT / "tests/e2e/zerocopy.py").read_text()
    return subprocess.run(
        [sys.executable, "-", mnt, batch], input=client + STRANGER, text=True,
        capture_output=True, user=uid, group=uid, extra_groups=[], cwd="/",
        timeout=200)


class Sampler(threading.Thread):
    """Memory, descriptors and threads of processes, over time."""

    def __init__(self, pids, seconds):
        super().__init__(daemon=True)
        self.pids, self.seconds = pids, seconds
        self.rows = {name: [] for name in pids}
        self.stopped = threading.Event()
        self.start()

    def run(self):
        while not self.stopped.wait(self.seconds):
            for name, pid in self.pids.items():
                with contextlib.suppress(OSError):
                    self.rows[name].append((
                        resources.memory(pid),
                        sum(resources.descriptors(pid).values()),
                        sum(resources.threads(pid))))

    def end(self):
        self.stopped.set()
        self.join()

    def halves(self, name):
        """Medians of the third and the last quarter, each as in a row."""
        rows = self.rows[name]
        n = len(rows)
        if n < 8:
            return None
        return [[int(statistics.median(column)) for column in zip(*part)]
                for part in (rows[n // 2:n * 3 // 4], rows[n * 3 // 4:])]

    def figures(self):
        out = {}
        for name, rows in self.rows.items():
            if not rows:
                continue
            out[name] = {
                what: {"most": max(column), "medians": [h[i] for h in
                                                        self.halves(name) or []]}
                for i, (what, column) in enumerate(
                    zip(("memory", "descriptors", "threads"), zip(*rows)))}
        return out

    def findings(self, is_instrumented):
        """Words for what grew in the last half."""
        for name in self.rows:
            both = self.halves(name)
            if not both:
                continue
            (memory, fds, _), (memory_last, fds_last, _) = both
            if not is_instrumented and \
                    memory_last > memory * 1.1 + SLACK:
                yield f"{name}: memory grew from {memory} to {memory_last}"
            if fds_last > fds + MORE_FDS:
                yield f"{name}: descriptors grew from {fds} to {fds_last}"
