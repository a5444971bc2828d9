# SPDX-License-Identifier: Apache-2.0
"""Loaders that are open while their daemon ends and mounts again."""
import contextlib
import ctypes
import errno
import os
import signal
import threading
import time

import numpy as np
import pytest

import make
from conftest import unmount, wait_until
from zerocopy import Client
from loading import INFO, Loader

WARNING = 1
SPEC = "order=random,seed=7,batch=8"
PIPELINE = "image = image | random_resized_crop(16) | flip"
BATCHES = 25
ENDINGS = pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])


def images(path, seed):
    rng = np.random.default_rng(seed)
    return make.Dataset(
        path, [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, 40, 30, rng.bytes(3600)),
          "label": seed + i}
         for i in range(8 * BATCHES)], 1 << 14)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return images(tmp_path_factory.mktemp("restart") / "d.beton", 0)


class Reader(Loader):
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_char_p) for name in
                    ("spec", "source", "delivery", "why_direct")] + [
                        ("rest", ctypes.c_char * 128)]

    def __init__(self, path, **options):
        super().__init__(path, **{"spec": SPEC, "pipeline": PIPELINE,
                                  "workers": 1, "epochs": 1, **options})
        self.lib.beton_loader_error.restype = ctypes.c_char_p

    def info(self):
        out = self.Info()
        self.lib.beton_loader_info(self.handle, ctypes.byref(out))
        return out

    def delivery(self):
        return self.info().delivery.decode()

    def why(self):
        return (self.info().why_direct or b"").decode()

    def take(self, n):
        """The contents of the next batches, at most n of them."""
        out = []
        while len(out) < n and (batch := self.next()):
            out.append((batch.number, list(batch.ids[:batch.num_samples]),
                        [o.bytes() for o in batch.outputs[:1]]))
            self.release(batch)
        return out

    def error(self):
        """The next batch fails: its error, and its text."""
        batch = ctypes.c_void_p()
        r = self.lib.beton_loader_next(self.handle, ctypes.byref(batch))
        assert r not in (0, -errno.ENODATA)
        return -r, self.lib.beton_loader_error(self.handle).decode()

    def lines(self, *levels):
        return [text for level, text in self.printed if level in levels]


@pytest.fixture(scope="module")
def expected(dataset):
    with Reader(dataset.path) as loader:
        return loader.take(BATCHES + 1)


def end(d, how):
    d.process.send_signal(how)
    d.wait()
    unmount(d.where, "-z")


def settle(loader):
    """Waits until the loader has prefetched all that it may: from then on it
    sends the daemon nothing."""
    count = -1
    while loader.stats()["read"].items != count:
        count = loader.stats()["read"].items
        time.sleep(0.05)


@ENDINGS
@pytest.mark.parametrize("delivery", ["auto", "direct"])
def test_a_daemon_that_is_mounted_again_is_used_again(
        dataset, expected, daemon, how, delivery):
    d = daemon(dataset.path)
    with Reader(d.where, delivery=delivery) as loader:
        way = {"auto": "zero-copy"}.get(delivery, delivery)
        got = loader.take(3)
        assert loader.delivery() == way
        settle(loader)
        end(d, how)
        daemon(dataset.path, where=d.where)
        got += loader.take(BATCHES)
        assert got == expected
        assert loader.delivery() == way, loader.printed
        assert loader.why() == {"direct": "requested"}.get(way, "")


@ENDINGS
def test_a_loader_waits_for_the_mount(dataset, expected, daemon, how):
    """Batches are requested while there is no mount."""
    d = daemon(dataset.path)
    with Reader(d.where) as loader:
        got = loader.take(3)
        end(d, how)
        with contextlib.ExitStack() as stack:
            taker = threading.Thread(
                target=lambda: got.extend(loader.take(BATCHES)))
            taker.start()
            stack.callback(taker.join)
            wait_until(lambda: loader.lines(WARNING), "the line")
            daemon(dataset.path, where=d.where)
        assert got == expected
        assert loader.delivery() == "zero-copy", loader.printed
        assert len(loader.lines(WARNING)) == 1, loader.printed
        assert str(d.where) in loader.lines(WARNING)[0]
        assert any("mounted again" in line for line in loader.lines(INFO))


def test_batches_that_a_trainer_holds_survive(dataset, expected, daemon):
    d = daemon(dataset.path)
    with Reader(d.where, pipeline="image = image") as loader:
        held = loader.next()
        before = held.outputs[0].bytes()
        end(d, signal.SIGKILL)
        daemon(dataset.path, where=d.where)
        assert [b[0] for b in loader.take(BATCHES)] == \
            [b[0] for b in expected[1:]]
        assert held.outputs[0].bytes() == before
        loader.release(held)


def test_zero_copy_resumes_after_a_restart(dataset, daemon):
    """Others have all places of the new daemon, for a while."""
    d = daemon(dataset.path)
    with Reader(d.where, epochs=0) as loader, contextlib.ExitStack() as others:
        loader.take(3)
        settle(loader)
        end(d, signal.SIGTERM)
        d = daemon(dataset.path, where=d.where)
        with contextlib.suppress(OSError):
            while True:
                others.callback(Client(d.where).socket.close)
        loader.take(5)
        assert loader.delivery() == "direct" and loader.why()
        others.close()
        wait_until(lambda: loader.take(5) is None or
                   loader.delivery() == "zero-copy", "zero-copy delivery")
        assert not loader.why()


def test_another_dataset_in_its_place_is_refused(
        dataset, expected, daemon, tmp_path):
    other = images(tmp_path / "other.beton", 1)
    d = daemon(dataset.path)
    with Reader(d.where) as loader:
        got = loader.take(3)
        settle(loader)
        end(d, signal.SIGKILL)
        wrong = daemon(other.path, where=d.where)
        got += loader.take(2)
        for _ in range(3):
            assert loader.error()[0] == errno.ESTALE
        lines = [x for x in loader.lines(0) if "another dataset" in x]
        assert len(lines) == 1 and str(d.where) in lines[0], loader.printed
        # A right one is taken again.
        end(wrong, signal.SIGTERM)
        daemon(dataset.path, where=d.where)
        loader.seek(0)
        assert loader.take(BATCHES) == expected
        assert loader.delivery() == "zero-copy"
    assert got == expected[:5]


def test_a_mount_that_does_not_come_back_is_an_error(dataset, daemon):
    """Soon, and once: the batches after it fail at once."""
    d = daemon(dataset.path)
    with Reader(d.where) as loader:
        loader.take(3)
        settle(loader)
        end(d, signal.SIGKILL)
        loader.take(2)
        begin = time.monotonic()
        code, text = loader.error()
        assert code in (errno.ENOENT, errno.ENOTCONN) and \
            os.strerror(code) in text
        assert time.monotonic() - begin < 5
        begin = time.monotonic()
        for _ in range(10):
            loader.error()
        assert time.monotonic() - begin < 1
        assert len(loader.lines(WARNING)) == 1, loader.printed


def test_a_loader_that_waits_can_be_closed(dataset, daemon):
    d = daemon(dataset.path)
    with Reader(d.where) as loader:
        loader.take(3)
        settle(loader)
        end(d, signal.SIGKILL)
        loader.take(2)
        wait_until(lambda: loader.lines(WARNING), "the line")
        begin = time.monotonic()
    assert time.monotonic() - begin < 1
