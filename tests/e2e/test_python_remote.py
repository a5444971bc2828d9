# SPDX-License-Identifier: Apache-2.0
"""The Python package and a server that fails: what the user reads meanwhile, and
which exception comes in the end."""
import errno
import logging
import pathlib
import signal
import threading
import time

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
