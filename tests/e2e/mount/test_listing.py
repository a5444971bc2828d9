# SPDX-License-Identifier: Apache-2.0
"""betonfs(8): long directories, read in pieces by many readers and from saved
positions; entries in the kernel's cache, and lookups that it avoids."""
import concurrent.futures
import ctypes
import os
import random
import re

import pytest

import make

N = 30000       # names of a directory: many replies


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64),
                ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = ctypes.c_void_p
libc.readdir.argtypes = libc.telldir.argtypes = libc.rewinddir.argtypes = \
    libc.closedir.argtypes = [ctypes.c_void_p]
libc.readdir.restype = ctypes.POINTER(Dirent)
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]


class Listing:
    def __init__(self, path):
        self.dir = libc.opendir(os.fsencode(path))
        assert self.dir, os.strerror(ctypes.get_errno())

    def next(self):
        entry = libc.readdir(self.dir)
        return entry.contents.name.decode() if entry else None

    def rest(self):
        return list(iter(self.next, None))

    def close(self):
        libc.closedir(self.dir)


@pytest.fixture
def long(tmp_path, mount):
    return mount(make.numbers(tmp_path / "n.beton", N).path)


def names():
    return [".", ".."] + [f"{i:06d}" for i in range(N)]


@pytest.mark.parametrize("folder", ["columns/label", "samples"])
@pytest.mark.parametrize("cached", [False, True])
def test_noted_places_stay_where_they_are(long, folder, cached):
    if cached:
        assert len(os.listdir(long / folder)) == N
    listing, places, rng = Listing(long / folder), {}, random.Random(1)
    for name in names():
        place = libc.telldir(listing.dir)
        assert listing.next() == name
        places[name] = place
    assert listing.next() is None
    for i in rng.sample(range(N + 2), 50):
        libc.seekdir(listing.dir, places[names()[i]])
        assert listing.next() == names()[i]
    libc.rewinddir(listing.dir)
    assert listing.rest() == names()
    listing.close()


def test_a_listing_continues_from_any_place_in_another_one(long):
    first = Listing(long / "columns/label")
    for _ in range(777):
        first.next()
    place = libc.telldir(first.dir)
    second = Listing(long / "columns/label")
    libc.seekdir(second.dir, place)
    assert second.rest() == first.rest() == names()[777:]
    first.close()
    second.close()


def pieces(folder, seed):
    """Reads in bursts and starts over now and then, as its own process."""
    listing, rng = Listing(folder), random.Random(seed)
    want = names()
    for _ in range(4):
        n = rng.randrange(N)
        if [listing.next() for _ in range(n)] != want[:n]:
            return False
        libc.rewinddir(listing.dir)
    ok = listing.rest() == want
    listing.close()
    return ok


def test_many_read_a_long_directory_at_once(long):
    with concurrent.futures.ProcessPoolExecutor(6) as pool:
        assert all(pool.map(pieces, [long / "columns/label"] * 12, range(12)))


def kernel():
    return tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])


@pytest.mark.skipif(kernel() < (5, 1), reason="opens directories")
def test_directories_are_not_opened(tmp_path, mount):
    data = make.every_type(tmp_path / "every.beton")
    where = mount(data.path, "-d", expects="opcode: READDIR")
    want = {data.file(i, f[0]) for i in range(2) for f in data.fields}
    for _ in range(2):
        for i in range(20):
            listed = os.listdir(where / "samples" / data.name(i))
            assert listed and set(listed) <= want
    log = (where.parent / (where.name + ".log")).read_text()
    assert log.count("opcode: OPENDIR") == 1
    assert "opcode: RELEASEDIR" not in log
    # Two calls list one; the second time round there is none.
    assert log.count("opcode: READDIR") == 2 * 20
