# SPDX-License-Identifier: Apache-2.0
"""Traces with a timeline of the loader's threads, for Chrome's viewer and for
Perfetto."""
import collections
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time

import pytest

import dumped
import loading
from conftest import wait_until
from dumped import AUGMENT, BUILD, beton
from loading import Loader, Options
from compiled import SLOW, needs_compiler

N, SIZE = 40, 4
STEPS = N // SIZE
SPEC = f"order=random,batch={SIZE},seed=0,drop_last=1"
QUARTER = 7889238 * 10**9   # what PyTorch's profiler counts its times from
ARGS = {
    "read": {"epoch", "batch"}, "collate": {"epoch", "batch"},
    "samples": {"batch", "first"}, "decode": {"sample", "samples"},
    "transform": {"sample", "samples"}, "upload": {"batch", "bytes"},
    "next": {"epoch", "batch"}, "wait": set(), "trainer": {"epoch", "batch"},
    "queue": {"ready"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("trace") / "p.beton", N)


def check_event(e):
    """The order that the format requires."""
    assert set(e) >= {"ph", "name", "pid", "tid", "ts", "args"}, e
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int)
    assert e["ts"] >= 0
    if e["ph"] == "X":
        assert e["dur"] >= 0 and set(e["args"]) == ARGS[e["name"]]
    elif e["ph"] == "C":
        assert set(e["args"]) == ARGS[e["name"]]
    elif e["ph"] == "M":
        assert e["name"] == "thread_name" and e["args"]["name"]
    else:
        assert e["ph"] == "i" and e["s"] in "tp"


class Trace:
    """A file, checked."""

    def __init__(self, path):
        reported = json.loads(path.read_text())
        assert reported["displayTimeUnit"] == "ms"
        self.base = reported["baseTimeNanoseconds"]
        assert self.base % QUARTER == 0
        self.events = reported["traceEvents"]
        for e in self.events:
            check_event(e)
        self.names = {e["tid"]: e["args"]["name"] for e in self.events
                      if e["ph"] == "M"}
        self.spans = [e for e in self.events if e["ph"] == "X"]

    def of(self, name):
        return [e for e in self.events if e["name"] == name]

    def seconds(self, name):
        return sum(e["dur"] for e in self.of(name)) / 1e6

    def check_nesting(self):
        """tid -> (name, name of what it is in) of its spans."""
        slack, found = 0.002, collections.defaultdict(set)
        by_thread = collections.defaultdict(list)
        for e in self.spans:
            by_thread[e["tid"]].append(e)
        for tid, spans in by_thread.items():
            assert tid in self.names
            stack = []
            for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
                end = e["ts"] + e["dur"]
                while stack and stack[-1][1] <= e["ts"] + slack:
                    stack.pop()
                if stack:
                    assert end <= stack[-1][1] + slack, (e, stack)
                found[self.names[tid]].add(
                    (e["name"], stack[-1][0] if stack else None))
                stack.append((e["name"], end))
        return found


def load(source, trace, **options):
    """An epoch; what was counted."""
    options = {"spec": SPEC, "pipeline": AUGMENT, "workers": 2, **options}
    with Loader(source, trace=str(trace) if trace else None,
                **options) as loader:
        loader.epoch()
        # Prefetched batches are complete, too.
        wait_until(lambda: loader.stats()["transform"].items
                   >= N + 2 * SIZE, "two more batches")
        return loader.stats()


def test_every_stage_of_every_thread_is_there(data, tmp_path):
    before = time.time_ns()
    s = load(data.path, tmp_path / "t.json")
    t = Trace(tmp_path / "t.json")
    found = t.check_nesting()
    assert found == {
        "beton reader": {("read", None)},
        "beton engine": {("collate", None)},
        "beton worker 0": found["beton worker 0"],
        "beton worker 1": found["beton worker 1"],
        "trainer": found["trainer"],
    }
    assert found["beton worker 0"] | found["beton worker 1"] == {
        ("samples", None), ("decode", "samples"), ("transform", "samples")}
    assert found["trainer"] <= {("next", None), ("wait", "next"),
                                ("trainer", None)}
    assert {e["tid"] for e in t.of("next")} == {os.getpid()}
    # Nothing is missing, and all is as long as was counted.
    for name in ("decode", "transform"):
        assert sum(e["args"]["samples"] for e in t.of(name)) == s[name].items
        assert t.seconds(name) == pytest.approx(1e-9 * s[name].busy_ns,
                                                abs=1e-4)
        assert {e["args"]["sample"] for e in t.of(name)} <= set(range(N))
    assert [e["args"]["batch"] for e in t.of("next")] == list(range(STEPS))
    assert len(t.of("trainer")) == len(t.of("queue")) == STEPS
    assert len(t.of("read")) == len(t.of("collate"))
    for e in t.spans:
        assert before <= t.base + 1000 * e["ts"] <= time.time_ns()


@needs_compiler
def test_the_slow_stage_is_the_widest(data, tmp_path):
    (tmp_path / "slow.c").write_text(SLOW)
    load(data.path, tmp_path / "t.json", pipeline="image | "
         f'random_resized_crop(12) | "{tmp_path}/slow.c".slow(20000)')
    t = Trace(tmp_path / "t.json")
    t.check_nesting()
    widths = {name: t.seconds(name) for name in
              ("read", "collate", "decode", "upload", "trainer")}
    assert t.seconds("transform") > 5 * max(widths.values())


def test_a_mount_is_traced_up_to_its_daemon(data, mount, tmp_path):
    load(mount(data.path), tmp_path / "t.json")
    t = Trace(tmp_path / "t.json")
    assert set(t.check_nesting()) == {"beton reader", "beton worker 0",
                                      "beton worker 1", "trainer"}


def test_the_environment_asks_for_one(data, tmp_path, monkeypatch):
    monkeypatch.setenv("BETON_TRACE", str(tmp_path / "env.json"))
    load(data.path, None)
    assert len(Trace(tmp_path / "env.json").of("next")) == STEPS
    load(data.path, tmp_path / "option.json")
    assert len(Trace(tmp_path / "option.json").of("next")) == STEPS
    monkeypatch.setenv("BETON_TRACE", "")
    load(data.path, None)
    assert len(os.listdir(tmp_path)) == 2
    monkeypatch.setenv("BETON_TRACE", str(tmp_path / "none/x.json"))
    printed = beton("bench", data.path, "--until", "read", code=1).stderr
    assert "none/x.json: cannot write the trace: No such file" in printed


def test_loaders_do_not_share_a_file(data, tmp_path):
    path = tmp_path / "t.json"
    with Loader(data.path, spec=SPEC, pipeline=AUGMENT, trace=str(path)) as a:
        with Loader(data.path, spec=SPEC, pipeline=AUGMENT,
                    trace=str(path)) as b:
            a.release(a.next())
            b.epoch()
    assert len(Trace(path).of("next")) == 1
    assert len(Trace(tmp_path / "t.2.json").of("next")) == STEPS


def test_a_killed_trainer_leaves_a_valid_file(data, tmp_path):
    path = tmp_path / "t.json"
    for size in range(200000, 300000, 20000):
        p = subprocess.Popen(
            [BUILD / "beton", "bench", data.path, "--spec", SPEC, "--pipeline",
             AUGMENT, "--epochs", "1000000", "--trace", path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # It is being written then.
        wait_until(lambda: path.exists() and path.stat().st_size > size,
                   "some of it")
        p.kill()
        assert p.wait() == -signal.SIGKILL
        assert len(Trace(path).events) > 1000
        path.unlink()


def test_bench_traces(data, tmp_path):
    beton("bench", data.path, "--spec", SPEC, "--pipeline", AUGMENT,
          "--epochs", 2, "--trace", tmp_path / "t.json")
    t = Trace(tmp_path / "t.json")
    t.check_nesting()
    assert len(t.of("next")) >= 2 * STEPS


def test_options_of_other_versions(data, monkeypatch):
    """Options of an older version, without traces and later members, and of a
    newer version with more."""
    class Older(ctypes.Structure):
        _fields_ = Options._fields_[:[name for name, _ in Options._fields_]
                                    .index("trace")]

    class Newer(ctypes.Structure):
        _fields_ = Options._fields_ + [("more", ctypes.c_uint64)]

    for other, more, opens in ((Older, {}, True), (Newer, {}, True),
                               (Newer, {"more": 1}, False)):
        monkeypatch.setattr(loading, "Options", other)
        with contextlib.nullcontext() if opens else \
                pytest.raises(AssertionError):
            with Loader(data.path, spec=SPEC, pipeline=AUGMENT,
                        **more) as loader:
                assert loader.epoch() == STEPS
