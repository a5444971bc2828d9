# SPDX-License-Identifier: Apache-2.0
"""The daemon's memory stays within the budget that it states, while readers
and loaders request all they can. Memory that was shared never shows data of
others."""
import concurrent.futures
import contextlib
import errno
import itertools
import mmap
import os
import pathlib
import resource
import socket
import struct
import threading
import time

import numpy as np
import pytest

import dumped
import make
from conftest import (DEADLINE, as_other, failing, is_instrumented,
                      wait_until)
from zerocopy import GET, PUT, Client, hello, options_of
from make import INT, IMAGE, RAW
from resources import MEMORY_MORE, MIB, budget, memory

ROWS = 60_000
SMALL = "cache=process,cache_size=16MiB"

instrumented = pytest.mark.skipif(
    is_instrumented, reason="sanitizers take memory of their own")
as_root = pytest.mark.skipif(os.geteuid() != 0,
                             reason="takes root to be another user")


class Watch(threading.Thread):
    """Samples memory until the end of a block, which it may not exceed."""

    def __init__(self, mnt, seconds=0.02):
        super().__init__()
        self.pid = int(options_of(mnt)["pid"])
        self.limit = budget(mnt)["limit"]
        self.seconds, self.most, self.stop = seconds, 0, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def run(self):
        while not self.stop.wait(self.seconds):
            self.most = max(self.most, memory(self.pid))

    def __exit__(self, *error):
        self.stop.set()
        self.join()
        if not any(error):
            assert 0 < self.most <= self.limit + MEMORY_MORE


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Many samples of two numbers."""
    path = tmp_path_factory.mktemp("data") / "rows.beton"
    return make.two_numbers(path, ROWS).path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Samples of 3 KiB, in batches of any size."""
    rng = np.random.default_rng(1)
    return make.Dataset(
        tmp_path_factory.mktemp("data") / "pictures.beton",
        [("image", IMAGE), ("label", INT)],
        [{"image": make.Image(RAW, 32, 32, rng.bytes(3072)), "label": i}
         for i in range(2048)]).path


def batch(size, seed=0, number=0):
    return (f"batches/order=random,batch={size},seed={seed},drop_last=1/0/"
            f"{number:06}.batch")


@instrumented
def test_layouts_are_bounded(rows, mount):
    mnt = mount(rows, "-o", SMALL)
    assert budget(mnt)["limit"] == 16 * MIB
    with Watch(mnt):
        for seed in range(64):
            assert (mnt / batch(ROWS, seed)).stat().st_size > 16 * ROWS
    used = budget(mnt)
    assert used["used"] == sum(used["by"].values()) <= used["limit"]


def test_oversized_batches_are_refused(rows, mount):
    """The layout of 29 MB has no room; everything else continues."""
    path = pathlib.Path(rows).with_name("more.beton")
    make.two_numbers(path, 15 * ROWS)
    mnt = mount(path, "-o", SMALL, expects="no memory for .* of layouts")
    with failing(12):   # ENOMEM
        (mnt / batch(15 * ROWS)).stat()
    assert (mnt / batch(256)).read_bytes()
    assert budget(mnt)["refused"] >= 1


@instrumented
@pytest.mark.parametrize("options", ["cache=os", SMALL])
def test_readers_at_once_are_bounded(pictures, mount, options):
    """16 readers of batches of 3 MiB each, of which two fit at a time."""
    mnt = mount(pictures, "-o", options)

    def read(seed):
        fd = os.open(mnt / batch(1024, seed), os.O_RDONLY | os.O_DIRECT)
        page = mmap.mmap(-1, MIB)
        try:
            return sum(os.preadv(fd, [page], at)
                       for at in range(0, 4 * MIB, MIB))
        finally:
            os.close(fd)

    with Watch(mnt), concurrent.futures.ThreadPoolExecutor(16) as pool:
        sizes = set(pool.map(read, range(64)))
    assert len(sizes) == 1 and sizes.pop() > 3 * MIB


@instrumented
def test_mappings_that_are_kept_are_counted(pictures, mount):
    """Loaders that take a batch, keep the mapping and hang up: what they keep
    stays charged, and others are served."""
    mnt = mount(pictures, "-o", "cache=process,cache_size=64MiB")
    kept = []
    with Watch(mnt):
        for seed in range(40):
            client = Client(mnt)
            got = client.acquire(batch(512, seed))
            kept.append((client.maps, got))
            client.socket.close()
        refused = [got for _, got in kept if isinstance(got, int)]
        assert refused and set(refused) == {28}     # ENOSPC
        assert (mnt / batch(512, 99)).read_bytes()
    used = budget(mnt)
    assert used["by"]["abandoned"] or used["by"]["slots"]
    assert used["used"] <= used["limit"]
    assert 0 < used["pinned"] <= used["limit"] // 2 + 16 * MIB
    # Once it is unmapped, the memory is shared again.
    kept.clear()

    seeds = itertools.count(100)

    def is_shared():
        client = Client(mnt)
        got = client.acquire(batch(512, next(seeds)))
        is_there = not isinstance(got, int)
        del got
        client.socket.close()
        client.maps.clear()
        return is_there

    wait_until(is_shared, "memory to share")


def of_job(mnt, job):
    client = Client(mnt, greet=False)
    client.send(hello(job=job))
    assert client.recv()
    return client


def test_a_loader_that_gives_nothing_back_stops_no_reader(pictures, mount):
    """It holds all it may, also of batches whose memory is larger than they
    need. Whole batches are read as files meanwhile, as large as any."""
    mnt = mount(pictures, "-o", "cache=process,cache_size=128MiB")
    for seed in range(8):
        (mnt / batch(1200, seed)).read_bytes()
    greedy = Client(mnt)
    held = [greedy.acquire(batch(600, seed)) for seed in range(60)]
    assert any(isinstance(got, int) for got in held)
    begin = time.monotonic()
    assert (mnt / batch(1300, 7)).read_bytes()
    assert (mnt / batch(2048, 7)).read_bytes()
    assert time.monotonic() - begin < DEADLINE / 2
    polite = of_job(mnt, b"polite")
    assert not isinstance(polite.acquire(batch(100, 5)), int)
    assert len(held) == 60


def test_a_second_job_has_a_share(pictures, mount):
    """The second job gets memory whatever the first one holds, and however
    long."""
    mnt = mount(pictures, "-o", "cache=process,cache_size=128MiB")
    first = Client(mnt)
    held = [first.acquire(batch(600, seed)) for seed in range(60)]
    taken = sum(not isinstance(got, int) for got in held)
    second = of_job(mnt, b"second")
    assert taken >= 4
    assert not isinstance(second.acquire(batch(600, 99)), int)


def as_other_users(client, mnt):
    """The same client, with the connection of another user. The daemon
    identifies the user who connected."""
    ours, theirs = socket.socketpair()

    def connect():
        other = Client(pathlib.Path(), greet=False)
        socket.send_fds(theirs, [b"x"], [other.socket.fileno()])

    as_other(mnt, connect)
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    client.socket.close()
    client.socket = socket.socket(fileno=fds[0])
    client.socket.settimeout(DEADLINE)
    client.send(hello())
    assert client.recv()
    return client


@as_root
def test_another_user_takes_no_share_by_the_name_of_a_job(pictures, mount):
    os.chmod(pictures, 0o644)
    mnt = mount(pictures, "-o", "allow_other,cache=process,cache_size=128MiB")
    other = as_other_users(Client(mnt, greet=False), mnt)
    held = [other.acquire(batch(600, seed)) for seed in range(60)]
    assert any(isinstance(got, int) for got in held)
    assert not isinstance(Client(mnt).acquire(batch(600, 99)), int)


# --- open files ---

def open_until_refused(path):
    """The error number, and how many files were open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    files = []
    try:
        while len(files) < 19000:
            files.append(os.open(path, os.O_RDONLY))
    except OSError as e:
        code = e.errno
    else:
        code = 0
    for fd in files:
        os.close(fd)
    return code, len(files)


@instrumented
@as_root
def test_a_user_cannot_keep_all_memory_by_open_files(rows, mount):
    """Texts are made when they are opened, and stay until they are closed."""
    mnt = mount(rows, "-o", SMALL + ",allow_other",
                expects="user 65534 cannot open more files")
    with Watch(mnt):
        code, count = as_other(mnt, open_until_refused, ".betonfs/stats.json")
        assert code == errno.ENFILE and 100 < count < 10000
    wait_until(lambda: budget(mnt)["pinned"] < 65536, "their end")


@as_root
def test_a_users_files_leave_room_for_others(rows, mount):
    mnt = mount(rows, "-o", SMALL + ",allow_other",
                expects="user 65534 cannot open more files")
    held, go = os.pipe(), os.pipe()

    def hold(path):
        files = []
        with contextlib.suppress(OSError):
            while True:
                files.append(open(path))
        os.write(held[1], b"1")
        os.read(go[0], 1)
        return len(files)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(as_other, mnt, hold, ".betonfs/stats.json")
        os.read(held[0], 1)
        try:
            assert (mnt / batch(256)).read_bytes()
            assert budget(mnt)["by"]["files"] > MIB
        finally:
            os.write(go[1], b"1")
        assert other.result() > 100


@as_root
def test_a_layout_counts_once_for_all_files_of_a_user(rows, mount):
    mnt = mount(rows, "-o", SMALL)
    with contextlib.ExitStack() as stack:
        pinned = []
        for _ in range(30):     # 30 layouts are more than its share
            stack.enter_context(open(mnt / batch(ROWS // 3), "rb"))
            pinned.append(budget(mnt)["pinned"])
        assert pinned[0] > 16 * ROWS // 3
        assert pinned[-1] < pinned[0] + 64 * 1024
    wait_until(lambda: budget(mnt)["pinned"] < 65536, "the last to be closed")


# --- memory that was shared ---

def private_bytes(mapping, marks):
    return sum(mapping[:].count(mark) for mark in marks)


@as_root
def test_shared_memory_never_shows_a_private_batch(tmp_path, mount):
    """Another user keeps mappings of batches of a public dataset, while all
    batches of a private one are read by root."""
    marks = [struct.pack("<Q", 0x5ec2e7 << 32 | i) for i in range(64)]
    public = dumped.photos(tmp_path / "public.beton", 256)
    private = make.Dataset(
        tmp_path / "private.beton", [("blob", make.BYTES)],
        [{"blob": marks[i] * 400} for i in range(64)])
    os.chmod(public.path, 0o644)
    os.chmod(private.path, 0o600)
    where = mount(public.path, "-o",
                  "allow_other,cache=process,cache_size=64MiB",
                  str(private.path))
    maps = keep_mappings(where, 12)
    for seed in range(16):
        spec = f"order=random,batch=8,seed={seed},drop_last=1"
        for n in range(8):
            (where / f"private/batches/{spec}/0/{n:06}.batch").read_bytes()
        root = Client(where)
        got = root.acquire(f"private/batches/{spec}/0/000000.batch")
        assert not isinstance(got, int)
        assert bytes(got[1]).count(marks[0][4:]) > 0
        root.socket.close()
    assert sum(private_bytes(m, marks) for m in maps) == 0


def keep_mappings(where, n):
    """Memory as a process of another user has it: each batch is released, and
    its mapping is not. Here it is mapped from that process's descriptors."""
    ours, theirs = socket.socketpair()
    name = options_of(where / "public")["zero_copy"]
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            acquire_and_pass_on(name, theirs, n)
        finally:
            os._exit(0)
    theirs.close()
    maps = []
    while True:
        message, fds, _, _ = socket.recv_fds(ours, 64, 1)
        if not message:
            break
        capacity, = struct.unpack("<Q", message)
        maps.append(mmap.mmap(fds[0], capacity, prot=mmap.PROT_READ))
        os.close(fds[0])
    os.waitpid(child, 0)
    assert maps
    return maps


def acquire_and_pass_on(name, to, n):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("\0" + name[1:])
    s.send(hello())
    s.recv(100)
    for i in range(n):
        path = ("public/batches/order=random,batch=16,seed=%d,drop_last=1/0/"
                "000000.batch" % i).encode()
        s.send(struct.pack("<IIQ", GET, len(path), i + 1) + path)
        message, fds, _, _ = socket.recv_fds(s, 4096, 1)
        _, result, _, slot, _, capacity, _, _ = struct.unpack(
            "<IiQQQQII", message)
        if fds:
            socket.send_fds(to, [struct.pack("<Q", capacity)], fds)
            os.close(fds[0])
        if not result:
            s.send(struct.pack("<IIQ", PUT, 0, slot))
