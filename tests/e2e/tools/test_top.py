# SPDX-License-Identifier: Apache-2.0
"""beton top: it shows the work that is done, and restores the terminal."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import dumped
import elsewhere
import make
from conftest import DEADLINE, unmount, wait_until
from dumped import AUGMENT, BUILD, SANITIZER, beton
from zerocopy import report
from loading import Loader
from manual import documented_keys
from zerocopy import SPEC
from stats import PLAIN, keys_of, named, rank_of

N = 40
S = 10**9


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("top") / "p.beton", N)


def once(mnt, *args):
    return json.loads(beton("top", mnt, "--once", "--json", "--interval",
                            "0.1", *args).stdout)


def by_name(reported):
    return {job["name"]: job for job in reported["jobs"]}


# --- contents ---

def test_processes_of_two_jobs(data, mount, tmp_path, monkeypatch):
    """Two jobs of two ranks, while others read files, and after their end."""
    mnt = mount(data.path, "-o", "cache=process,cache_size=64MiB")
    for job in ("train", "eval"):
        monkeypatch.setenv("BETON_JOB", job)
        processes = [subprocess.Popen(
            [BUILD / "beton", "dump", mnt, "--spec", SPEC, *PLAIN, "--rank",
             str(rank), "--world-size", "2", "--delivery", "zero-copy", "--out",
             tmp_path / f"{job}{rank}"]) for rank in (0, 1)]
        assert [p.wait(DEADLINE) for p in processes] == [0, 0]
    (mnt / "batches/batch=5/0/000000.batch").read_bytes()
    files = f"session-{os.getsid(0)}"
    wait_until(lambda: all(j["connections"] == 0
                           for j in once(mnt)["jobs"]), "their end")
    reported = once(mnt)
    found = by_name(reported)
    assert set(found) == {"train", "eval", files}
    for job in ("train", "eval"):
        assert found[job]["verdict"] == "ended"
        assert found[job]["samples_per_s"] is None
        assert [(r["rank"], r["world_size"], r["loaders"], r["failed_samples"],
                 r["number"]) for r in found[job]["ranks"]] == \
            [(0, 2, 0, 0, 8), (1, 2, 0, 0, 9)]
    assert found[files]["verdict"] in ("files", "stalled_files")
    assert found[files]["ranks"] == []
    assert reported["cache"]["mode"] == "process" and reported["cache"]["used"] > 0
    budget = reported["budget"]
    assert budget["used"] == sum(budget["by"].values()) <= budget["limit"]
    assert budget["by"]["slots"] > 0 and budget["by"]["files"] >= 0
    assert reported["readers"] >= 2
    text = beton("top", mnt, "--once", "--interval", "0.1").stdout
    assert "\033" not in text and str(mnt) in text
    assert re.search(r"^train .* ended\n  rank 0 .*\n  rank 1 ", text, re.M)


def test_loaders_at_work(data, mount):
    """Real figures of two jobs of two ranks, in the middle of their work."""
    mnt = mount(data.path)
    with contextlib.ExitStack() as stack:
        loaders = [stack.enter_context(Loader(
            mnt, spec=SPEC, pipeline=AUGMENT, job=job, rank=rank, world_size=2,
            delivery="zero-copy"))
            for job in ("train", "eval") for rank in (0, 1)]
        top = subprocess.Popen(
            [BUILD / "beton", "top", mnt, "--once", "--json", "--interval",
             "3"], stdout=subprocess.PIPE, text=True)
        while top.poll() is None:
            for loader in loaders:
                if (batch := loader.next()):
                    loader.release(batch)
        reported = json.loads(top.stdout.read())
    assert top.returncode == 0 and reported["seconds"] >= 3
    assert reported["cache"]["mode"] == elsewhere.CACHE
    assert reported["delivery"]["batches_per_s"] > 0
    # The batch that shows the shapes of outputs is not another job's.
    assert set(by_name(reported)) == {"train", "eval"}
    for job in reported["jobs"]:
        assert job["verdict"] in ("not_data", "waits")
        assert job["connections"] == 2 and job["batches_per_s"] > 0
        assert job["samples_per_s"] == pytest.approx(
            sum(r["samples_per_s"] for r in job["ranks"]))
        assert job["wait_share"] == max(r["wait_share"] for r in job["ranks"])
        for r in job["ranks"]:
            assert r["samples_per_s"] > 0 and r["loaders"] == 1
            assert 0 <= r["wait_share"] <= 1 and 0 <= r["queue_fill"] <= 1


FIRST = {"open_s": 10 * S, "batches": 100, "samples": 1000, "wait_s": 5 * S,
         "trainer_s": 5 * S, "queue_ready": 20, "queue_capacity": 200,
         "read_delay_s": 5 * S}
# Twice as fast, and waiting a fifth of its time, for decoding.
LATER = {"open_s": 20 * S, "batches": 300, "samples": 3000, "wait_s": 7 * S,
         "trainer_s": 13 * S, "queue_ready": 320, "queue_capacity": 600,
         "read_delay_s": 5 * S, "decode_delay_s": 2 * S, "failed_samples": 3}


def test_a_stream_of_differences(data, mount):
    mnt = mount(data.path)
    client = named(mnt, b"train", rank=1, world_size=4)
    client.send(report(epoch=2, number=9, **FIRST))
    wait_until(lambda: rank_of(mnt, "train", 1), "its word")
    with subprocess.Popen(
            [BUILD / "beton", "top", mnt, "--json", "--interval", "0.2"],
            stdout=subprocess.PIPE, text=True) as top:
        job = json.loads(top.stdout.readline())["jobs"][0]
        assert (job["text"], job["samples_per_s"], job["wait_share"]) == \
            ("waits for read", 100, 0.5)
        client.send(report(epoch=3, number=1, **LATER))
        while job["failed_samples"] == 0:
            job = json.loads(top.stdout.readline())["jobs"][0]
        assert (job["text"], job["samples_per_s"], job["wait_share"]) == \
            ("waits for decode", 200, 0.2)
        [rank] = job["ranks"]
        assert (rank["rank"], rank["epoch"], rank["number"]) == (1, 3, 1)
        assert (rank["queue_fill"], rank["failed_samples"]) == (0.75, 3)
        assert rank["waits_for"] == "decode"
        top.send_signal(signal.SIGTERM)
        assert top.wait(DEADLINE) == 0


def test_the_manual_describes_every_key(data, mount):
    mnt = mount(data.path)
    client = named(mnt, b"train")
    client.send(report(**FIRST))
    wait_until(lambda: rank_of(mnt, "train", 0), "its word")
    reported = once(mnt)
    assert keys_of(reported["jobs"])
    assert keys_of(reported) - documented_keys("top") == set()


# --- what is no mount ---

def test_a_dataset_of_several(data, mount, tmp_path):
    other = make.numbers(tmp_path / "val.beton", 20)
    mnt = mount(other.path, "-o", "cache=process,cache_size=64MiB", data.path)
    (mnt / "val/batches/batch=5/0/000000.batch").read_bytes()
    for top, has in ((mnt, True), (mnt / "val", False)):
        printed = beton("top", "--once", "--interval", "0.1", top).stdout
        assert ("cache hits" in printed and "disk " in printed and
                "memory " in printed) == has
        assert ("see the directory above" in printed) != has
        assert "session-" in printed


def test_no_mount(tmp_path):
    printed = beton("top", tmp_path, "--once", code=1).stderr
    assert printed == f"beton: {tmp_path}: not a mount of betonfs\n"
    assert beton("top", tmp_path / "none", code=1).stderr.count("\n") == 1


@pytest.mark.parametrize("value", ["0", "0.05", "1e9", "nan", "x", "", "-1"])
def test_bad_intervals(tmp_path, value):
    assert "--interval" in beton("top", tmp_path, f"--interval={value}",
                                 code=2).stderr


def fake(folder, make_file):
    (folder / ".betonfs").mkdir()
    make_file(folder / ".betonfs/stats.json")


@pytest.mark.parametrize("make_file", [
    os.mkfifo,
    os.mkdir,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"\xff" * 100),
    lambda path: path.write_text('{"version": 2}'),
    lambda path: path.write_text('{"version": 1, "jobs": [{"name": 1}]}'),
])
@pytest.mark.parametrize("how", [["--once"], ["--json"], []])
def test_hostile_mounts(tmp_path, make_file, how):
    fake(tmp_path, make_file)
    printed = beton("top", tmp_path, *how, code=1).stderr
    assert printed.count("\n") == 1 and "stats.json: " in printed


# --- a terminal ---

class Terminal:
    """beton top in a window; what it writes is kept."""

    def __init__(self, mnt, *args, size=(24, 80), **env):
        self.main, self.other = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self.other)
        self.printed = b""
        self.process = subprocess.Popen(
            [BUILD / "beton", "top", mnt, "--interval", "0.1", *args],
            stdin=self.other, stdout=self.other, stderr=self.other,
            start_new_session=True, env={**os.environ, **env},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, columns):
        fcntl.ioctl(self.other, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.main], [], [], 0)[0]:
            self.printed += os.read(self.main, 65536)
        return self.printed

    def wait_for(self, pattern):
        """Waits for the pattern, and consumes the output up to it."""
        end = time.monotonic() + DEADLINE
        while not (m := re.search(pattern, self.read(), re.S)):
            assert time.monotonic() < end, (pattern, self.printed)
            select.select([self.main], [], [], 0.1)
        self.printed = self.printed[m.end():]
        return m

    def type(self, keys):
        os.write(self.main, keys)

    def is_given_back(self):
        return termios.tcgetattr(self.other) == self.before

    def end(self):
        """Its exit code; all must be as it was."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < end, self.printed
            self.read()
        self.read()
        assert self.is_given_back()
        assert not SANITIZER.search(self.printed.decode(errors="replace"))
        assert self.printed.rfind(LEAVE) > self.printed.rfind(ENTER)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)
        os.close(self.other)


ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"


@pytest.fixture
def terminal():
    with contextlib.ExitStack() as stack:
        def do(*args, **how):
            t = Terminal(*args, **how)
            stack.callback(t.close)
            t.wait_for(rb"\033\[7mJOB")
            assert not t.is_given_back()
            return t
        yield do


def test_keys_and_sizes(data, mount, terminal):
    mnt = mount(data.path)
    clients = [named(mnt, job, rank=rank, world_size=2)
               for job in (b"train", b"eval") for rank in (0, 1)]
    t = terminal(mnt)
    for client in clients:
        client.send(report(**FIRST))
    t.wait_for(rb"eval [^\n]*50%[^\n]* waits for read.*?  rank 1")
    t.type(b"w")
    t.wait_for(rb"w wait\*")
    t.type(b"r")
    t.wait_for(rb"JOB[^\n]*\n[^\n]*eval [^\n]*\n[^\n]*train ")
    t.resize(8, 40)
    # The first picture that is narrow, and so is all of it.
    m = t.wait_for(rb"\033\[H((?:(?!\033\[H).)*"
                   rb"\033\[Jq quit  sort: n name s speed w wait\* f f)\033")
    lines = re.sub(rb"\033\[[0-9]*[a-zA-Z]", b"", m[1]).split(b"\n")
    assert len(lines) <= 8
    assert all(len(line.rstrip(b"\r")) <= 40 for line in lines)
    # Other keys do no harm.
    t.type(b"\033[A\033[B\033[5~\033[6~\033OA\033\0xyz\xff jk" * 9)
    t.wait_for(rb"q quit")
    t.type(b"q")
    assert t.end() == 0


@pytest.mark.parametrize("how", ["INT", "TERM", "HUP", "QUIT"])
def test_signals_give_the_terminal_back(data, mount, terminal, how):
    t = terminal(mount(data.path))
    t.process.send_signal(getattr(signal, "SIG" + how))
    assert t.end() == 0


def test_control_c(data, mount, terminal):
    t = terminal(mount(data.path))
    t.type(b"\x03")
    assert t.end() == 0


def state_of(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text() \
        .rsplit(")")[-1].split()[0]


def test_a_stop_gives_the_terminal_back(data, mount, terminal):
    t = terminal(mount(data.path))
    t.process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state_of(t.process) == "T", "the stop")
    assert t.is_given_back()
    t.wait_for(re.escape(LEAVE))
    t.process.send_signal(signal.SIGCONT)
    t.wait_for(re.escape(ENTER))
    t.wait_for(rb"\033\[7mJOB")
    assert not t.is_given_back()
    t.type(b"q")
    assert t.end() == 0


def test_a_mount_that_disappears(data, daemon, terminal):
    d = daemon(data.path)
    t = terminal(d.where)
    unmount(d.where)
    assert t.end() == 1
    printed = t.printed.split(LEAVE)[-1]
    assert printed == b"beton: %s: the mount disappeared\r\n" % bytes(d.where)


def test_a_daemon_that_is_killed(data, daemon, terminal):
    d = daemon(data.path)
    t = terminal(d.where)
    d.process.kill()
    assert t.end() == 1
    assert t.printed.split(LEAVE)[-1].endswith(b": the mount disappeared\r\n")


def test_a_daemon_that_does_not_answer(data, daemon, terminal):
    """If the user quits, beton top does not wait for the daemon."""
    d = daemon(data.path)
    # To look for leaks it would wait for the thread that waits. The daemon stops
    # between two readings: a process whose request it has taken cannot end.
    t = terminal(d.where, "--interval", "2", ASAN_OPTIONS="detect_leaks=0")
    d.process.send_signal(signal.SIGSTOP)
    try:
        t.wait_for(rb"the mount does not answer")
        t.type(b"q")
        assert t.end() == 0
    finally:
        d.process.send_signal(signal.SIGCONT)
