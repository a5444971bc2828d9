# SPDX-License-Identifier: Apache-2.0
"""Read the memory, descriptors and threads of a daemon from /proc, and list the
temporary files of our programs."""
import collections
import contextlib
import json
import os
import pathlib
import re
import tempfile

MIB = 1 << 20
# A daemon has this besides data: programs, stacks, heaps of threads.
MEMORY_MORE = 64 * MIB
# The most threads, as fs/ states them. libfuse ends those that are idle.
FUSE_THREADS = 10 + 1       # IDLE_THREADS, and the one that waits for them
ENGINE_THREADS = 2 + 128    # THREADS_DEFAULT + ENGINE_THREADS_MORE
SOURCE_THREADS = 16         # of each dataset
OTHER_THREADS = 4           # plan, zerocopy, inval, log_output
PATHS = tuple(dict.fromkeys((tempfile.gettempdir(), "/tmp", "/dev/shm")))
MADE = re.compile(r"betonfs-[0-9a-f]{16}")  # by the just-in-time compiler


def status(pid, name):
    """A figure of /proc/PID/status, in its unit."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1])


def state(pid):
    """A letter of proc(5); X without such a process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return text.rpartition(")")[2].split()[0]


def has_ended(pid):
    return state(pid) in "ZX"


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            text = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue    # the thread has ended
        found += map(int, text.split())
    return found


def kind_of(pid, fd):
    """The word before the colon of what has no name: socket, pipe, memfd; a
    device or the like by name; "file", which may be renamed, or "direct". TCP
    sockets are "connection"."""
    target = os.readlink(f"/proc/{pid}/fd/{fd}")
    if (named := re.match(r"/?(memfd|socket|pipe):", target)):
        if named[1] == "socket" and target[8:-1] in tcp_inodes(pid):
            return "connection"
        return named[1]
    if not target.startswith("/") or target.startswith("/dev/"):
        return target
    flags = re.search(r"^flags:\s*([0-7]+)", pathlib.Path(
        f"/proc/{pid}/fdinfo/{fd}").read_text(), re.MULTILINE)[1]
    return "direct" if int(flags, 8) & os.O_DIRECT else "file"


def tcp_inodes(pid):
    """The sockets of its network namespace."""
    return {line.split()[9] for name in ("tcp", "tcp6") for line in
            pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
            [1:]}


def descriptors(pid):
    """kind -> how many"""
    found = collections.Counter()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[kind_of(pid, fd)] += 1
    return found


def memfd_bytes(pid):
    """Memory of memfds, also of those that are not mapped."""
    total = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("/memfd:"):
                total += 512 * os.stat(path).st_blocks
        except FileNotFoundError:
            continue
    return total


def memory(pid):
    """Bytes of anonymous and shared memory."""
    return 1024 * status(pid, "RssAnon") + max(1024 * status(pid, "RssShmem"),
                                               memfd_bytes(pid))


def threads(pid):
    """(those of ours, those of libfuse and the first)"""
    names = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            names.append(
                pathlib.Path(f"/proc/{pid}/task/{task}/comm").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    ours = names.count("beton\n")
    return ours, len(names) - ours


def budget(mnt):
    return json.loads((mnt / ".betonfs/stats.json").read_text())["budget"]


def made():
    """Directories that a program of ours made for a while."""
    return {os.path.join(path, name) for path in PATHS
            for name in os.listdir(path) if MADE.fullmatch(name)}


class Daemon:
    """A daemon right after it mounted, when nothing has used it yet."""

    def __init__(self, pid, mnt, is_instrumented=False):
        self.pid, self.mnt = pid, mnt
        self.is_instrumented = is_instrumented
        self.descriptors = descriptors(pid)
        self.children = children(pid)
        self.threads_max = ENGINE_THREADS + OTHER_THREADS + \
            self.descriptors["file"] * SOURCE_THREADS

    def excess(self):
        """Words for memory beyond what the daemon states, or None."""
        b = budget(self.mnt)
        if b["used"] > b["limit"] or b["used"] != sum(b["by"].values()):
            return f"budget: {b}"
        if self.is_instrumented:
            return None
        has = memory(self.pid)
        return f"{has} bytes of memory, budget: {b}" \
            if has > b["limit"] + MEMORY_MORE else None

    def leaks(self):
        """Resources that the daemon holds although nothing uses it: words, or
        nothing."""
        return [x for x in (self.more_descriptors(), self.more_threads(),
                            self.more_memory()) if x]

    def more_descriptors(self):
        """kind -> (at the mount, now). Slots keep memory for the next batch,
        the first direct read opens a dataset again, for good, and connections
        to servers stay for the next requests."""
        now, then = descriptors(self.pid), self.descriptors
        return {kind: (then[kind], now[kind]) for kind in now | then
                if now[kind] != then[kind]
                and kind not in ("memfd", "connection") and not (
                    kind == "direct" and now[kind] <= then["file"])}

    def more_threads(self):
        ours, fuse = threads(self.pid)
        # The thread sanitizer has a thread too.
        most = FUSE_THREADS + self.is_instrumented
        return f"{ours} threads, {fuse} of libfuse" \
            if ours > self.threads_max or fuse > most else None

    def more_memory(self):
        """Loaders that the daemon still counts, memory that it does not."""
        b = budget(self.mnt)
        by, has = b["by"], memfd_bytes(self.pid)
        return f"{has} bytes of memfds, budget: {b}" \
            if by["connections"] or has > by["slots"] + by["abandoned"] \
            else None

    def left(self):
        """Its processes that live."""
        return [pid for pid in self.children if not has_ended(pid)]
