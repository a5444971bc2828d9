# SPDX-License-Identifier: Apache-2.0
"""Servers and networks that fail: reads are tried again until they are complete,
and no batch has an error or a wrong byte."""
import errno
import os
import pathlib
import signal
import subprocess
import tarfile
import threading
import time

import pytest

import dumped
import make
import remote
from conftest import failing
from dumped import beton

SPEC = "order=random,batch=8,seed=5,drop_last=0"
# Faults after which a request is tried again.
TRANSIENT = {
    "503": {"kind": "status", "status": 503},
    "500": {"kind": "status", "status": 500},
    "429": {"kind": "status", "status": 429, "retry_after": 1},
    "408": {"kind": "status", "status": 408},
    "S3 is slow": {"kind": "status", "status": 503, "body":
                   "<Error><Code>SlowDown</Code></Error>"},
    "reset": {"kind": "reset"},
    "reset in the body": {"kind": "reset", "after": 5000},
    "closed": {"kind": "close"},
    "truncated": {"kind": "truncated"},
    "another range": {"kind": "wrong_range"},
    "stalled": {"kind": "stall", "seconds": 5},
    "slow": {"kind": "slow", "seconds": 2},
    "chunked": {"kind": "chunked"},
    "trailers without an end": {"kind": "trailers"},
    "lines without an end": {"kind": "lines"},
    "redirected": {"kind": "redirect"},
    "closed after it": {"kind": "last"},
    "garbage": {"kind": "garbage"},
    "another length": {"kind": "wrong_total"},
    "the whole object": {"kind": "whole"},
    "compressed": {"kind": "gzip"}}
# Final, if the server gives nothing else until the time for retries is over.
WRONG = ("another length", "the whole object", "compressed")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return remote.large(tmp_path_factory.mktemp("faults") / "large.beton",
                        samples=200, size=40_000)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """The digests of the local file."""
    return remote.dump(data.path, tmp_path_factory.mktemp("whole") / "near",
                       "--spec", SPEC)


def dump(url, out, *options, **how):
    return remote.dump(url, out, "--spec", SPEC, "--cache-size", "16MiB",
                       *options, **how)


@pytest.mark.parametrize("name", TRANSIENT)
def test_some_requests_fail(data, whole, faulty, name, tmp_path):
    server = faulty(pathlib.Path(data.path).parent, seed=len(name),
                    faults=[{"share": 0.05, **TRANSIENT[name]}])
    start = time.monotonic()
    assert dump(server.url("large.beton"), tmp_path / "far") == whole
    report = server.report()
    assert sum(report["faults"].values()) > 0, report["requests"]
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_together(data, whole, faulty, seed, tmp_path):
    server = faulty(pathlib.Path(data.path).parent, seed=seed, faults=[
        {"share": 0.01, **f, **({"seconds": 2} if f["kind"] == "stall" else {})}
        for f in TRANSIENT.values()])
    assert dump(server.url("large.beton"), tmp_path / "far") == whole


def test_an_answer_is_complete_with_its_last_byte(data, whole, faulty,
                                                  tmp_path):
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"from": 0, "kind": "unended", "seconds": 0}])
    assert dump(server.url("large.beton"), tmp_path / "far") == whole


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("name", ["503", "truncated", "another range",
                                  "reset"])
def test_the_first_requests_fail(data, faulty, name, number):
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"at": [number], **TRANSIENT[name]}])
    assert remote.info(server.url("large.beton")) == remote.info(data.path)


@pytest.mark.parametrize("name, text", [("the whole object", "ignores Range"),
                                        ("compressed", "Content-Encoding")])
def test_a_server_without_ranges_is_refused_at_once(data, faulty, name, text):
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"from": 0, **TRANSIENT[name]}])
    r = beton("info", server.url("large.beton"), code=1)
    assert len(r.stderr.splitlines()) == 1 and text in r.stderr
    assert server.report()["requests"] == 1


def test_an_object_whose_first_byte_is_slow(data, whole, faulty, tmp_path):
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"kind": "slow", "seconds": 3, "until": 2}])
    assert dump(server.url("large.beton"), tmp_path / "far") == whole
    assert server.report()["requests"] < 300


def test_a_name_server_that_does_not_answer():
    """Each attempt ends by its own limit, not with the look-up, for which other
    servers would wait, too."""
    library = dumped.BUILD / "standin/slow_names.so"
    if not library.exists():
        pytest.skip(f"no {library}")
    if dumped.BUILD.name.startswith("build-"):
        pytest.skip("sanitizers want to be loaded first")
    begin = time.monotonic()
    r = beton("info", "http://slow.test/large.beton", code=1, env={
        **os.environ, "LD_PRELOAD": str(library), "SLOW_NAMES": "18"})
    assert 9 < time.monotonic() - begin < 16
    assert "Resolving timed out" in r.stderr


def test_the_link_is_not_idle_while_the_first_batch_is_late(data, faulty,
                                                            tmp_path):
    """The server delays thirty answers of the first batch. Meanwhile, it sends
    those of the following batches."""
    server = faulty(pathlib.Path(data.path).parent, faults=[
        {"kind": "slow", "seconds": 6, "from": 40, "until": 70}])
    url = server.url("large.beton")
    reader = subprocess.Popen(
        [dumped.BUILD / "beton", "dump", url, "--out", tmp_path / "far", "--spec",
         "order=random,batch=64,seed=5"], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            if server.report()["requests"] > 120:
                break
            time.sleep(0.1)
        else:
            pytest.fail(str(server.report()))
        assert reader.poll() is None
    finally:
        reader.kill()
        reader.communicate()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 416])
def test_an_answer_that_is_final_is_not_asked_for_again(data, faulty, status):
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"kind": "status", "status": status, "from": 0}])
    start = time.monotonic()
    r = beton("info", server.url("large.beton"), code=1)
    assert time.monotonic() - start < 5
    assert len(r.stderr.splitlines()) == 1 and str(status) in r.stderr
    assert server.report()["requests"] <= 2


@pytest.mark.parametrize("name", ["403", *WRONG])
def test_samples_after_a_final_answer_are_not_valid(data, faulty, name,
                                                    tmp_path):
    """From some request on; the samples before it are correct."""
    fault = TRANSIENT.get(name, {"kind": "status", "status": 403})
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"from": 60, **fault}])
    batches = dumped.dump(server.url("large.beton"), tmp_path / "far",
                          "--spec", SPEC, "--on-error", "skip",
                          "--cache-size", "16MiB", code=None,
                          env=remote.environment(
                              {"BETON_STORAGE_OPTIONS": "retry=1s"}))
    valid = 0
    for b in batches:
        for row, i in enumerate(b.ids):
            if b.valid[row]:
                valid += 1
                assert b.row("blob", row) == data.values[i]["blob"]
    assert 0 < valid < len(data.values)


def test_the_reason_of_a_refusal_is_reported(data, faulty, tmp_path):
    body = "<Error><Code>AccountProblem</Code></Error>"
    server = faulty(pathlib.Path(data.path).parent,
                    faults=[{"kind": "status", "status": 403, "body": body,
                             "from": 60}])
    r = beton("dump", server.url("large.beton"), "--spec", SPEC, "--out",
              tmp_path / "far", "--cache-size", "16MiB", code=None)
    assert r.returncode and "Permission denied" in r.stderr
    assert r.stderr.count("(AccountProblem): reads fail until") == 1


class Running:
    """A dump in the background."""

    def __init__(self, url, out, *options, env=None):
        self.out = out
        self.process = subprocess.Popen(
            [dumped.BUILD / "beton", "dump", url, "--out", out, "--spec", SPEC,
             "--cache-size", "16MiB", *map(str, options)], text=True,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            env=remote.environment(env or {}))

    def wait_for_batches(self, count):
        end = time.monotonic() + dumped.DEADLINE
        while len(list(self.out.glob("*"))) < count:
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.01)

    def digest(self):
        _, errors = self.process.communicate(timeout=dumped.DEADLINE)
        assert self.process.returncode == 0, errors
        self.errors = errors
        return dumped.digest(self.out)


@pytest.mark.parametrize("seconds", [0.5, 3, 12])
def test_a_server_that_is_gone_for_some_seconds(data, whole, nginx, seconds,
                                                tmp_path):
    server = nginx(pathlib.Path(data.path).parent, rate=200_000)
    far = Running(server.url("large.beton"), tmp_path / "far")
    far.wait_for_batches(2)
    server.stop(signal.SIGKILL)
    time.sleep(seconds)
    server.start()
    assert far.digest() == whole


def test_a_balancer_in_maintenance(data, whole, nginx, haproxy, tmp_path):
    server = haproxy(nginx(pathlib.Path(data.path).parent, rate=200_000))
    far = Running(server.url("large.beton"), tmp_path / "far")
    far.wait_for_batches(2)
    server.set_maintenance(True)
    time.sleep(2)
    server.set_maintenance(False)
    assert far.digest() == whole
    assert "503" in far.errors or not far.errors


def test_a_balancer_that_drops(data, whole, nginx, haproxy, tmp_path):
    server = haproxy(nginx(pathlib.Path(data.path).parent), rules=[
        "http-request return status 503 if { rand(100) lt 3 }",
        "http-request reject if { rand(100) lt 3 }"])
    assert dump(server.url("large.beton"), tmp_path / "far") == whole


def test_a_server_that_is_restarted_again_and_again(data, whole, nginx,
                                                    tmp_path):
    server = nginx(pathlib.Path(data.path).parent, rate=300_000)
    far = Running(server.url("large.beton"), tmp_path / "far")
    done = threading.Event()

    def restart():
        while not done.wait(0.4):
            server.stop(signal.SIGQUIT)
            time.sleep(0.1)
            server.start()

    thread = threading.Thread(target=restart)
    thread.start()
    try:
        assert far.digest() == whole
    finally:
        done.set()
        thread.join()


def test_an_outage_is_logged_once(data, nginx, tmp_path):
    server = nginx(pathlib.Path(data.path).parent, rate=200_000)
    far = Running(server.url("large.beton"), tmp_path / "far")
    far.wait_for_batches(2)
    server.stop()
    time.sleep(3)
    server.start()
    far.digest()
    assert len(far.errors.splitlines()) <= 2, far.errors


def test_a_dump_of_a_server_that_is_gone_can_be_interrupted(data, nginx,
                                                            tmp_path):
    server = nginx(pathlib.Path(data.path).parent, rate=200_000)
    far = Running(server.url("large.beton"), tmp_path / "far")
    far.wait_for_batches(2)
    server.stop()
    time.sleep(0.5)
    far.process.send_signal(signal.SIGINT)
    far.process.wait(5)
    far.process.stderr.close()


def test_a_table_is_read_again_after_an_error(nginx, mount, tmp_path):
    """Its blocks, lists of samples by value, and layouts of shards."""
    make.two_numbers(tmp_path / "two.beton", 200_000)
    server = nginx(tmp_path)
    where = mount(server.url("two.beton"), "-o", "retry=1s",
                  expects="reads fail until")
    server.stop()
    for _ in range(2):
        for path in "by/other/007", "shards/000100.tar", "samples/123456/other":
            with failing(errno.ECONNREFUSED):
                (where / path).stat()
    server.start()
    assert len(os.listdir(where / "by/other")) == 1000
    with tarfile.open(where / "shards/000100.tar") as tar:
        assert len(tar.getmembers()) == 2000
    assert (where / "samples/123456/other").read_text() == "192\n"
