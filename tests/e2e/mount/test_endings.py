# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, close() and exit do not wait for a daemon that is stopped, or whose
disk does not answer."""
import signal
import subprocess
import sys
import threading
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
        printed = p.stdout.readline()
        assert printed == "interrupted\n", (printed, p.stderr.read())
        if how == "twice":
            p.send_signal(signal.SIGINT)
        p.wait(DEADLINE)
        seconds = time.monotonic() - begin
        # communicate() would not see what came with the line above.
        printed, errors = p.stdout.read(), p.stderr.read()
        assert how == "twice" or p.returncode == 0, errors
        if how == "close":
            assert float(printed) < LIMIT
        return seconds
    finally:
        d.process.send_signal(signal.SIGCONT)
        p.kill()
        p.wait(DEADLINE)


@pytest.mark.parametrize("delivery", ["zero-copy", "direct"])
def test_a_stopped_daemon_holds_no_reader(large, daemon, delivery):
    d = daemon(large.path)
    took = [stop_and_interrupt(d, delivery, ("close", "exit", "twice")[i % 3],
                               i * 0.003) for i in range(TIMES)]
    assert max(took) < LIMIT, took
    assert (d.where / "samples/000007/label").read_text() == "7\n"
    assert d.end() == 0


OPENER = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import betonfs

def tasks():
    return len(os.listdir("/proc/self/task"))

def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as f:
            found += f.read().split()
    return found

# Once: Python ends by the signal if it has ever interrupted eval().
pipeline = eval(sys.argv[3])

def open_one():
    return betonfs.Loader(sys.argv[2], 2, tensors="numpy", subset="5-9",
                          pipeline=pipeline)

open_one().close()
before = tasks()

def run():
    while True:
        os.write(1, b"opens\\n")     # at once, not to be cut by a signal
        open_one().close()

try:
    run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
if sys.argv[4] == "stay":
    sys.stdin.readline()
    end = time.monotonic() + 20
    while (tasks() > before or children()) and time.monotonic() < end:
        time.sleep(0.01)
    print(tasks() - before, children(), flush=True)
    open_one().close()
"""


def reported_until(p, line):
    while (printed := p.stdout.readline()) == "opens\n":
        pass
    assert printed == line, (printed, p.stderr.read())


class Opener:
    """Opens loaders, and its daemon stops meanwhile."""

    def __init__(self, d, pipeline="None", how="exit"):
        self.d = d
        self.p = subprocess.Popen(
            [sys.executable, "-c", OPENER, PACKAGE, d.where, pipeline, how],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def __enter__(self):
        # No test hangs, whatever the loader does.
        self.watch = threading.Timer(2 * DEADLINE, self.give_up)
        self.watch.start()
        assert self.p.stdout.readline() == "opens\n"
        return self

    def __exit__(self, *_):
        self.watch.cancel()
        self.give_up()
        self.p.communicate()

    def give_up(self):
        self.p.kill()
        self.resume()

    def stop(self):
        self.d.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.d.process.send_signal(signal.SIGCONT)

    def interrupt(self):
        """Seconds until Python has its KeyboardInterrupt."""
        begin = time.monotonic()
        self.p.send_signal(signal.SIGINT)
        reported_until(self.p, "interrupted\n")
        return time.monotonic() - begin

    def end(self):
        begin = time.monotonic()
        assert self.p.wait(DEADLINE) == 0, self.p.stderr.read()
        return time.monotonic() - begin


@pytest.mark.parametrize("pipeline", ["None", "{'image': 'center_crop(8)'}"])
def test_opening_ends_while_the_daemon_is_stopped(large, daemon, pipeline):
    d = daemon(large.path)
    for i in range(TIMES // 2):
        with Opener(d, pipeline) as opener:
            time.sleep(i * 0.003)
            opener.stop()
            time.sleep(0.05)
            assert opener.interrupt() < LIMIT
            # Python reads the names of fields for a dict, in a thread that
            # the kernel may hold as long as the daemon is stopped.
            if pipeline != "None":
                opener.resume()
            assert opener.end() < LIMIT
    assert (d.where / "samples/000007/label").read_text() == "7\n"
    assert d.end() == 0


def test_nothing_is_left_of_an_opening_once_the_daemon_continues(large, daemon):
    d = daemon(large.path)
    for i in range(4):
        with Opener(d, how="stay") as opener:
            time.sleep(i * 0.003)
            opener.stop()
            assert opener.interrupt() < LIMIT
            opener.resume()
            opener.p.stdin.write("\n")
            opener.p.stdin.flush()
            assert opener.p.stdout.readline() == "0 []\n"
            opener.end()


def test_opening_continues_with_the_daemon(large, daemon):
    d = daemon(large.path)
    with Opener(d) as opener:
        opener.stop()
        time.sleep(0.5)
        opener.resume()
        for _ in range(20):     # more than it opened before
            assert opener.p.stdout.readline() == "opens\n"
        opener.interrupt()
        opener.end()
