# SPDX-License-Identifier: Apache-2.0
"""The Python package and a server that fails: what the user reads meanwhile, and
which exception comes in the end."""
import errno
import logging
import pathlib
import signal
import threading
import time

import numpy as np
import pytest

import remote
from package import betonfs

SAMPLES, BATCH = 160, 8
DOWN = {"from": 0, "kind": "reset"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return remote.large(tmp_path_factory.mktemp("python") / "large.beton",
                        samples=SAMPLES, size=250_000)


@pytest.fixture
def server(data, faulty):
    return faulty(pathlib.Path(data.path).parent)


class Lines(logging.Handler):
    """Collects the lines of the log, and calls `then` with each."""

    def __init__(self):
        super().__init__()
        self.texts, self.then = [], lambda text: None

    def emit(self, record):
        self.texts.append(record.getMessage())
        self.then(self.texts[-1])

    def of(self, text):
        return [line for line in self.texts if text in line]


@pytest.fixture
def lines():
    handler = Lines()
    logging.getLogger("betonfs").addHandler(handler)
    yield handler
    logging.getLogger("betonfs").removeHandler(handler)


def load(server, retry="60s", **options):
    return betonfs.Loader(
        server.url("large.beton"), BATCH, order="sequential", tensors="numpy",
        drop_last=False, prefetch=1, cache_size=16 << 20,
        storage_options={"retry": retry}, **options)


def test_an_outage_is_logged_while_the_loop_waits(server, lines):
    """The server is mended only after the line."""
    with_line = threading.Event()

    def mend(text):
        if "trying again" in text:
            with_line.set()
            server.play()
    loader = load(server)
    batches = iter(loader)
    next(batches)
    lines.then = mend
    server.play(faults=[DOWN])
    assert sum(1 for _ in batches) == SAMPLES // BATCH - 1
    assert with_line.is_set()
    assert lines.of("the server answers again")


def test_an_outage_is_logged_while_it_opens(server, lines):
    server.play(faults=[DOWN])
    lines.then = lambda text: server.play() if "trying again" in text else None
    assert sum(1 for _ in load(server)) == SAMPLES // BATCH
    assert len(lines.of("trying again")) == 1


@pytest.mark.parametrize("opens", [False, True])
def test_ctrl_c_ends_the_wait(server, opens):
    if opens:
        batches = iter(load(server))
        next(batches)
    server.play(faults=[DOWN])
    timer = threading.Timer(
        1, lambda: signal.pthread_kill(threading.main_thread().ident,
                                       signal.SIGINT))
    start = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        if opens:
            list(batches)
        else:
            load(server)
    assert time.monotonic() - start < 5
    timer.join()


@pytest.fixture
def other(tmp_path):
    return remote.large(tmp_path / "other.beton", samples=SAMPLES,
                        size=250_000, seed=5)


def two_epochs(loader, batches):
    """The rest of an epoch may have fewer samples than may be lost in a row."""
    list(batches)
    list(loader)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_replaced_object_is_estale(server, lines, other, on_error):
    loader = load(server, on_error=on_error)
    batches = iter(loader)
    next(batches)
    server.play(replaced={"at": 0, "by": str(other.path)})
    with pytest.raises(betonfs.BetonError, match="the dataset was replaced") \
            as raised:
        two_epochs(loader, batches)
    assert raised.value.errno == errno.ESTALE
    assert len(lines.of("the object was replaced")) == 1


@pytest.mark.parametrize("on_error", ["skip", "zero"])
def test_skipping_ends_in_an_outage(server, lines, on_error):
    """The samples of an outage are few, and so are the lines."""
    loader = load(server, retry="1s", on_error=on_error)
    batches = iter(loader)
    next(batches)
    server.play(faults=[DOWN])
    with pytest.raises(betonfs.BetonError,
                       match=r"\d+ samples in a row could not be read: "
                       "on_error skips no more"):
        two_epochs(loader, batches)
    assert 0 < loader.stats()["failed_samples"] < 2 * SAMPLES
    assert len(lines.texts) <= 8, lines.texts


def test_skipped_samples_of_a_short_outage(server, lines):
    """One line has the first one, and another one the number of others."""
    loader = load(server, retry="1s", on_error="skip", workers=1)
    batches = iter(loader)
    valid = [next(batches).valid]
    server.play(faults=[DOWN])
    for batch in batches:
        valid.append(batch.valid)
        if not valid[-1].all():
            server.play()
    valid = np.concatenate(valid)
    lost = int(np.sum(~valid))
    assert lost == loader.stats()["failed_samples"]
    assert 0 < lost < len(valid) and valid[-1]
    assert len(lines.of(": sample ")) == 1, lines.texts
    others = "1 sample" if lost == 2 else f"{lost - 1} samples"
    assert lost == 1 or lines.of(f": {others} after the first one"), lines.texts


def test_a_batch_that_does_not_fit_says_what_to_change(data):
    loader = betonfs.Loader(data.path, SAMPLES, tensors="numpy",
                            cache="process", cache_size=16 << 20)
    with pytest.raises(betonfs.BetonError,
                       match=r"a batch has \d+ bytes, but at most \d+ fit into "
                       "memory: half of cache_size: use a smaller batch, or a "
                       "larger cache_size") as raised:
        next(iter(loader))
    assert raised.value.errno == errno.EFBIG
