# SPDX-License-Identifier: Apache-2.0
"""Every wait for a daemon has an end: Ctrl-C, close() and exit do not wait for
one that is stopped, as one is whose disk does not answer."""
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import make
from conftest import DEADLINE
from package import PACKAGE

TIMES, LIMIT = 20, 2    # seconds


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Thousands of batches, so that some are always being made."""
    rng = np.random.default_rng(0)
    return make.Dataset(
        tmp_path_factory.mktemp("large") / "l.beton",
        [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, 40, 30, rng.bytes(3600)),
          "label": i} for i in range(3000)], 1 << 16)


TRAINER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import betonfs
loader = betonfs.Loader(sys.argv[2], spec="batch=8", delivery=sys.argv[3],
                        tensors="numpy")

def train():
    for i, batch in enumerate(batch for _ in range(1000) for batch in loader):
        if i == 20:
            print("trains", flush=True)

try:    # of a call: the jump at the end of a loop may be in no try block
    train()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    if sys.argv[4] != "exit":
        begin = time.monotonic()
        loader.close()
        print(time.monotonic() - begin, flush=True)
"""


def stop_and_interrupt(d, delivery, how, moment):
    """Seconds from the first SIGINT to the end of the trainer."""
    p = subprocess.Popen([sys.executable, "-c", TRAINER, PACKAGE, d.where,
                          delivery, how], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    try:
        assert p.stdout.readline() == "trains\n"
        time.sleep(moment)
        d.process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        p.send_signal(signal.SIGINT)
        said = p.stdout.readline()
        assert said == "interrupted\n", (said, p.stderr.read())
        if how == "twice":
            p.send_signal(signal.SIGINT)
        p.wait(DEADLINE)
        seconds = time.monotonic() - begin
        # communicate() would not see what came with the line above.
        said, errors = p.stdout.read(), p.stderr.read()
        assert how == "twice" or p.returncode == 0, errors
        if how == "close":
            assert float(said) < LIMIT
        return seconds
    finally:
        d.process.send_signal(signal.SIGCONT)
        p.kill()
        p.wait(DEADLINE)


@pytest.mark.parametrize("delivery", ["handover", "direct"])
def test_a_stopped_daemon_holds_nobody(large, daemon, delivery):
    d = daemon(large.path)
    took = [stop_and_interrupt(d, delivery, ("close", "exit", "twice")[i % 3],
                               i * 0.003) for i in range(TIMES)]
    assert max(took) < LIMIT, took
    assert (d.where / "samples/000007/label").read_text() == "7\n"
    assert d.end() == 0
