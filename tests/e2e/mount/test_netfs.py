# SPDX-License-Identifier: Apache-2.0
"""Datasets on a network file system: build/standin/netfs, in FUSE, whose reads
are slow or fail."""
import errno
import os
import subprocess
import threading
import time

import numpy as np
import pytest

import make
from conftest import BUILD, DEADLINE, mounts, unmount, wait_until
from dumped import digest, dump
from loading import Loader

SAMPLES, BATCH = 3000, 8
SPEC = f"order=sequential,batch={BATCH}"


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("netfs") / "d.beton"
    make.Dataset(path, [("blob", make.BYTES)],
                 [{"blob": rng.bytes(9000)} for _ in range(SAMPLES)], 1 << 16)
    return path


class Far:
    """The files of a directory, `ms` milliseconds away."""

    def __init__(self, folder, ms):
        self.root, self.seen = folder / "server", folder / "seen"
        self.root.mkdir()
        self.seen.mkdir()
        self.server = subprocess.Popen(
            [BUILD / "standin/netfs", self.root, self.seen, str(ms)])
        wait_until(lambda: str(self.seen) in mounts(), "the mount")

    def put(self, path):
        (self.root / "new").write_bytes(path.read_bytes())
        os.replace(self.root / "new", self.root / "d.beton")
        return self.seen / "d.beton"

    def fail(self, error):
        (self.root / "errno").write_text(str(error))
        os.replace(self.root / "errno", self.root / ".errno")

    def recover(self):
        (self.root / ".errno").unlink()

    def close(self):
        unmount(self.seen)
        self.server.wait(DEADLINE)


@pytest.fixture
def far(tmp_path):
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    if not (BUILD / "standin/netfs").exists():
        pytest.skip("no build/standin/netfs: make unit builds it")
    far = Far(tmp_path, 2)
    yield far
    far.close()


def open_loader(path):
    return Loader(path, spec=SPEC, cache="process", cache_size=256 << 20,
                  prefetch=1, workers=1, epochs=1)


def take(loader, n):
    for _ in range(n):
        batch = loader.next()
        assert batch
        loader.release(batch)


def texts(loader):
    return [text for _, text in loader.printed]


@pytest.mark.parametrize("error", [errno.EIO, errno.ETIMEDOUT])
def test_failures_that_pass_change_no_tensor(far, blobs, tmp_path, error):
    path = far.put(blobs)
    dump(blobs, tmp_path / "local", "--spec", SPEC)
    far.fail(error)
    threading.Timer(2, far.recover).start()
    dump(path, tmp_path / "far", "--spec", SPEC, "--cache", "process")
    assert digest(tmp_path / "far") == digest(tmp_path / "local")


def test_an_outage_is_two_lines(far, blobs):
    path = far.put(blobs)
    with open_loader(path) as loader:
        take(loader, 1)
        far.fail(errno.EIO)
        threading.Timer(2.5, far.recover).start()
        assert loader.epoch() == SAMPLES // BATCH - 1
        lines = [t for t in texts(loader) if str(path) in t]
        assert len(lines) == 2, lines
        assert lines[0].endswith("Input/output error: trying again for 300 s")
        assert "answers again after" in lines[1]


def test_a_stale_handle_of_the_same_file(far, blobs):
    with open_loader(far.put(blobs)) as loader:
        take(loader, 1)
        far.fail(errno.ESTALE)
        assert loader.epoch() == SAMPLES // BATCH - 1


def test_another_file_is_never_read(far, blobs):
    path = far.put(blobs)
    with open_loader(path) as loader:
        take(loader, 1)
        far.put(blobs)
        far.fail(errno.ESTALE)
        begin = time.monotonic()
        with pytest.raises(AssertionError):
            loader.epoch()
        assert time.monotonic() - begin < 5
        lines = [t for t in texts(loader) if "another file" in t]
        assert len(lines) == 1 and str(path) in lines[0]


def test_a_daemon_waits_for_the_server(far, blobs, mount, tmp_path):
    """Its sandbox lets it open no path, so the server must find the file."""
    path = far.put(blobs)
    dump(blobs, tmp_path / "local", "--spec", SPEC)
    mnt = mount(path, "-o", "cache=process,cache_size=64MiB")
    far.fail(errno.ESTALE)
    threading.Timer(0.5, far.recover).start()
    dump(mnt, tmp_path / "far", "--spec", SPEC)
    assert digest(tmp_path / "far") == digest(tmp_path / "local")
