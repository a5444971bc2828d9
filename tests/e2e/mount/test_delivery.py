# SPDX-License-Identifier: Apache-2.0
"""Batches for many consumers at once, by every delivery, with memory for fewer
batches than are in use. The tests compare every byte."""
import collections
import contextlib
import errno
import hashlib
import mmap
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import zerocopy
import make
import orders
from dumped import DEADLINE
from batchfile import BatchFile, check_values

SAMPLES, BATCH, EPOCHS = 120, 10, 2
BATCHES = SAMPLES // BATCH
SPEC = f"order=random,batch={BATCH},seed=11,drop_last=0"
PATHS = [(e, n) for e in range(EPOCHS) for n in range(BATCHES)]

# A batch takes 4 MiB. If the cache has 32 MiB, half of them is for batches in
# use, and half of that for shared ones. If the kernel caches, both have 256
# MiB.
CACHES = {"os": "cache=os",
          "process": "cache=process,cache_size=32MiB,cold_size=16MiB"}
# One job may hold 3/4 of the shared memory: three times the bytes that are
# left.
SHARED = {"os": 48, "process": 1}
HOARD = 100     # the first epoch of batches that are held for the whole time


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(7)

    def image(i):
        w, h = 300 + 4 * (i % 9), 320
        noise = rng.bytes(w * h * 3 // (1 + i % 3))
        return make.Image(make.RAW, w, h, (noise * 4)[:w * h * 3])

    return make.Dataset(
        tmp_path_factory.mktemp("delivery") / "d.beton",
        [("image", make.IMAGE), ("label", make.INT), ("blob", make.BYTES)],
        [{"image": image(i), "label": 5 * i - 9, "blob": rng.bytes(97 * i)}
         for i in range(SAMPLES)], page_size=1 << 19)


def path_of(epoch, number):
    return f"batches/{SPEC}/{epoch}/{number:06}.batch"


def digest(raw):
    return hashlib.blake2b(raw, digest_size=16).digest()


def check(data, raw, epoch, number):
    """Against the samples and the manual alone; no byte is left out."""
    b = BatchFile(raw)
    h = b.header
    rule = orders.resolve(SPEC, SAMPLES, 0)
    assert (h["epoch"], h["batch"], h["batches"]) == (epoch, number, BATCHES)
    assert (b.spec, h["samples"], b.num_samples) == (SPEC, SAMPLES, BATCH)
    assert b.ids.tolist() == [orders.sample(rule, epoch, number * BATCH + k)
                              for k in range(BATCH)]
    check_values(data, b)
    assert b.gaps_are_zero()


@pytest.fixture(scope="module")
def truth(data):
    """A function that checks a batch in full when its digest is new, and compares digests after that."""
    known, lock = {}, threading.Lock()

    def is_true(raw, epoch, number):
        key = epoch, number, digest(raw)
        with lock:
            if key in known:
                return True
        check(data, bytes(raw), epoch, number)
        with lock:
            known[key] = True
            assert len([k for k in known if k[:2] == key[:2]]) == 1
        return True

    return is_true


# --- ways: each yields a function that returns the bytes, any number of times
# until the end, or None if the daemon shares no more ---

@contextlib.contextmanager
def by_read(mnt, path, client):
    with open(mnt / path, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        yield lambda: b"".join(os.pread(f.fileno(), 300000, at)
                               for at in range(0, size, 300000))


@contextlib.contextmanager
def by_mmap(mnt, path, client):
    with open(mnt / path, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    with m:
        yield lambda: m     # also after the close


@contextlib.contextmanager
def by_direct(mnt, path, client):
    fd = os.open(mnt / path, os.O_RDONLY | os.O_DIRECT)
    try:
        yield lambda: zerocopy.read_direct(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def by_zerocopy(mnt, path, client):
    got = client.acquire(path)
    assert isinstance(got, tuple) or got == errno.ENOSPC, got
    if got == errno.ENOSPC:
        yield None
        return
    yield lambda: got[1]
    client.put(got[0])


WAYS = {"read": by_read, "mmap": by_mmap, "direct": by_direct,
        "zero-copy": by_zerocopy}


class Consumer(threading.Thread):
    """Checks every batch when it comes, and again when it is released."""

    def __init__(self, mnt, way, truth, first):
        super().__init__(daemon=True)
        self.mnt, self.way, self.truth = mnt, way, truth
        self.paths = PATHS[first:] + PATHS[:first]
        self.held = collections.deque()
        self.seen, self.refused, self.failure = 0, 0, None
        self.client = zerocopy.Client(mnt, timeout=DEADLINE)

    def open(self, epoch, number):
        """True, or False if the daemon shares no more."""
        context = self.way(self.mnt, path_of(epoch, number), self.client)
        look = context.__enter__()
        if not look:
            context.__exit__(None, None, None)
            return False
        assert self.truth(look(), epoch, number)
        self.held.append((context, look, epoch, number))
        self.seen += 1
        return True

    def let_go(self):
        context, look, epoch, number = self.held.popleft()
        assert self.truth(look(), epoch, number)
        context.__exit__(None, None, None)

    def consume(self):
        for epoch, number in self.paths:
            while not self.open(epoch, number):
                self.refused += 1
                if not self.held:   # others hold all: a loader reads the file
                    self.way = by_direct
                else:
                    self.let_go()
            self.way = self.usual
            if len(self.held) > BATCHES:
                self.let_go()
        while self.held:
            self.let_go()

    def run(self):
        self.usual = self.way
        try:
            self.consume()
        except BaseException as e:
            self.failure = e


# --- those who behave badly meanwhile ---

DIE = """
import mmap, os, signal, sys
sys.path.insert(0, sys.argv[1])
import pathlib, zerocopy
way, mnt, paths = sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
client = zerocopy.Client(mnt)
keep = []
if way == "zero-copy":
    keep.append(client.acquire(paths.pop()))
    while paths:
        client.ask(paths.pop())
for path in paths:
    flags = os.O_DIRECT if way == "direct" else 0
    fd = os.open(mnt / path, os.O_RDONLY | flags)
    if way == "mmap":
        keep.append(mmap.mmap(fd, 0, prot=mmap.PROT_READ))
        keep[-1][len(keep[-1]) // 2]
    else:
        os.preadv(fd, [mmap.mmap(-1, 1 << 20)], 1 << 20)
print("x", flush=True)
signal.pause()
"""


def die(mnt, way, k):
    """Killed with half of what it wanted."""
    paths = [path_of(k % EPOCHS, (k + i) % BATCHES) for i in range(3)]
    child = subprocess.Popen(
        [sys.executable, "-c", DIE, os.path.dirname(zerocopy.__file__), way, mnt,
         *paths], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert child.stdout.read(1) == b"x"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


def close_early(mnt, way, k):
    path = path_of(k % EPOCHS, k % BATCHES)
    if way == "zero-copy":
        client = zerocopy.Client(mnt)
        for i in range(3):
            client.ask(path_of(k % EPOCHS, (k + i) % BATCHES))
        client.socket.close()
        return
    fd = os.open(mnt / path,
                 os.O_RDONLY | (os.O_DIRECT if way == "direct" else 0))
    if way == "mmap":
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
            assert m[:8] == b"BETONBAT"
    else:
        os.preadv(fd, [mmap.mmap(-1, 4096)], 0)
    os.close(fd)


def hoard(mnt, truth):
    """Takes batches until the daemon shares no more, and checks them. -> the
    held ones, which the test checks again at its end."""
    client, held = zerocopy.Client(mnt, timeout=DEADLINE), []
    for k in range(1000):
        epoch, number = HOARD + k // BATCHES, k % BATCHES
        got = client.acquire(path_of(epoch, number))
        if got == errno.ENOSPC:
            return client, held
        assert truth(got[1], epoch, number)
        held.append((*got, epoch, number))
    raise AssertionError("the daemon shares everything")


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("consumers", [2, 8])
def test_no_byte_differs(data, mount, truth, cache, way, consumers):
    mnt = mount(data.path, "-o", CACHES[cache])
    client, held = hoard(mnt, truth)
    assert len(held) == SHARED[cache]
    while way == "zero-copy" and len(held) > SHARED[cache] // 2:
        client.put(held.pop()[0])
    threads = [Consumer(mnt, WAYS[way], truth, k * 7 % len(PATHS))
               for k in range(consumers)]
    for t in threads:
        t.start()
    rude = 0
    while any(t.is_alive() for t in threads):
        close_early(mnt, way, rude)
        if rude % 4 == 0:
            die(mnt, way, rude)
        rude += 1
    for t in threads:
        t.join()
        assert not t.failure, repr(t.failure)
        assert t.seen == len(PATHS)
    for _, seen, epoch, number in held:
        assert truth(seen, epoch, number)
    for epoch, number in PATHS:
        assert truth((mnt / path_of(epoch, number)).read_bytes(), epoch,
                     number)
