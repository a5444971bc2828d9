# SPDX-License-Identifier: Apache-2.0
"""Arbitrary names: sampling specs, epochs and batches never run out."""
import ctypes
import errno
import os
import pathlib
import threading

import pytest

import make
from conftest import LIBC, as_other, failing, is_instrumented
from zerocopy import Client

SPEC = "order=random,batch=4,seed=0,drop_last=1"
REMEMBERED = 16384
# A mount that numbers names for good has 262144 numbers.
MANY = 270000


@pytest.fixture
def data(tmp_path):
    return make.numbers(tmp_path / "train.beton", 20)


def flood(top, start, n):
    """Looks up unused sampling specs. How many lookups failed."""
    failed = 0
    for i in range(start, start + n):
        try:
            os.stat(f"{top}/batches/order=random,batch=1,seed={i},drop_last=1")
        except OSError:
            failed += 1
    return failed


def rss(mnt):
    """The daemon's resident memory, in bytes."""
    options = (mnt / ".betonfs/options").read_text()
    pid = options.partition("pid=")[2].split()[0]
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


class Trainer(threading.Thread):
    """Reads all batches again and again: by their paths, from directories that
    it keeps open, and without a copy."""

    def __init__(self, mnt):
        super().__init__()
        self.mnt, self.stop, self.rounds = mnt, threading.Event(), 0
        self.want, self.error = {}, None
        self.client = Client(mnt)
        self.folders = [os.open(mnt / "batches" / SPEC / str(epoch),
                                os.O_RDONLY) for epoch in (0, 1)]

    def check(self, name, content):
        assert self.want.setdefault(name, content) == content, name

    def read_all(self):
        for epoch, folder in enumerate(self.folders):
            assert len(os.listdir(folder)) == 5
            for i in range(5):
                name = f"{i:06}.batch"
                path = f"batches/{SPEC}/{epoch}/{name}"
                fd = os.open(name, os.O_RDONLY, dir_fd=folder)
                self.check(path, os.read(fd, 1 << 20))
                os.close(fd)
                self.check(path, (self.mnt / path).read_bytes())
                slot, content = self.client.get(path)
                self.check(path, content)
                self.client.put(slot)

    def run(self):
        try:
            while not self.stop.is_set():
                self.read_all()
                self.rounds += 1
                self.stop.wait(0.1)
        except BaseException as e:
            self.error = e

    def end(self):
        self.stop.set()
        self.join()
        for folder in self.folders:
            os.close(folder)
        assert not self.error, repr(self.error)
        assert self.rounds > 3


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_a_user_that_names_many_takes_nothing_from_others(data, mount):
    mnt = mount(data.path, "-o", "allow_other")
    trainer = Trainer(mnt)
    trainer.start()
    failed = as_other(mnt, flood, ".", 0, MANY)
    trainer.end()
    assert failed == 0
    assert (mnt / "batches/batch=19/0/000000.batch").stat().st_size
    assert as_other(mnt, flood, ".", MANY, 10) == 0
    if not is_instrumented:
        assert rss(mnt) < 48 << 20


def test_a_forgotten_name_is_made_again(data, mount):
    """The kernel still has the paths, with numbers that mean nothing now."""
    mnt = mount(data.path)
    top = mnt / "batches"
    paths = [top / SPEC / "3" / f"{i:06}.batch" for i in range(5)]
    before = [p.read_bytes() for p in paths]
    listed = sorted(os.listdir(top / SPEC / "3"))
    assert os.readlink(top / "batch=4") == SPEC
    inode = paths[0].stat().st_ino
    opened = open(paths[0], "rb")
    folder = os.open(top / SPEC / "2", os.O_RDONLY)
    assert len(os.listdir(folder)) == 5
    start = 0
    for _ in range(2):
        assert flood(mnt, start, REMEMBERED + 100) == 0
        start += REMEMBERED + 100
        assert sorted(os.listdir(top / SPEC / "3")) == listed
        assert [p.read_bytes() for p in paths] == before
        assert (top / "batch=4/3/000002.batch").read_bytes() == before[2]
        assert os.readlink(top / "default").startswith("order=random,batch=256")
    # An open file stays what it was, and its directory with it.
    assert opened.read() == before[0]
    assert os.fstat(opened.fileno()).st_ino == inode
    opened.close()
    # A directory of a name that was forgotten leads nowhere.
    with failing(errno.ESTALE):
        os.stat("000000.batch", dir_fd=folder)
    os.close(folder)


def test_an_inode_number_is_never_used_again(data, mount):
    mnt = mount(data.path)
    seen = set()
    for start in range(0, 3 * REMEMBERED, REMEMBERED // 2):
        seen.add((mnt / "batches" / SPEC).stat().st_ino)
        seen.add((mnt / "batches" / SPEC / "0").stat().st_ino)
        seen.add((mnt / "batches" / SPEC / "0/000001.batch").stat().st_ino)
        before = len(seen)
        assert flood(mnt, start, REMEMBERED // 2) == 0
        for i in range(start, start + 50):
            path = f"order=random,batch=1,seed={i},drop_last=1"
            seen.add((mnt / "batches" / path).stat().st_ino)
        assert len(seen) == before + 50


class Handle(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int),
                ("bytes", ctypes.c_ubyte * 128)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root opens by handle")
def test_a_handle_of_a_forgotten_name_is_stale(data, mount):
    mnt = mount(data.path)
    path = mnt / "batches" / SPEC / "0/000003.batch"
    path.stat()
    handle, number = Handle(size=128), ctypes.c_int()
    LIBC.open_by_handle_at.argtypes = (ctypes.c_int, ctypes.c_void_p,
                                       ctypes.c_int)
    if LIBC.name_to_handle_at(-100, os.fsencode(path), ctypes.byref(handle),
                              ctypes.byref(number), 0):
        pytest.skip("no handles")
    top = os.open(mnt, os.O_RDONLY)
    # While the name is remembered, the handle may open it.
    fd = LIBC.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY)
    if fd >= 0:
        assert os.read(fd, 1 << 20) == path.read_bytes()
        os.close(fd)
    assert flood(mnt, 0, REMEMBERED + 100) == 0
    assert LIBC.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY) < 0
    os.close(top)
