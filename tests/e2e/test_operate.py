# SPDX-License-Identifier: Apache-2.0
"""betonfs(8) as an operator uses it."""
import os
import signal

import pytest

import make
from conftest import betonfs, mounts, unmount, wait_until

@pytest.fixture
def data(tmp_path):
    return make.numbers(tmp_path / "train.beton", 20)


@pytest.fixture
def where(fuse, tmp_path):
    """A mountpoint, unmounted in the end."""
    path = tmp_path / "mnt"
    path.mkdir()
    yield path
    if str(path) in mounts():
        unmount(path, "-z")


def daemon_of(where):
    for line in (where / ".betonfs/options").read_text().splitlines():
        if line.startswith("pid="):
            return int(line[4:])


# --- SIGHUP ---

def complain(where, word):
    """Makes the daemon say something with this word."""
    assert not (where / f"batches/{word}=1").exists()


def test_hangup_opens_the_log_again(data, where, tmp_path):
    log, old = tmp_path / "log", tmp_path / "log.1"
    r = betonfs("-o", "log=log", data.path, where, cwd=tmp_path)
    assert r.returncode == 0
    pid = daemon_of(where)
    complain(where, "first")
    log.rename(old)
    complain(where, "second")
    for word in ("third", "fourth"):
        os.kill(pid, signal.SIGHUP)
        wait_until(log.exists, "the log to come back")
        complain(where, word)
        assert word in log.read_text()
        assert "first" in old.read_text() and "second" in old.read_text()
        assert word not in old.read_text()
        os.rename(log, tmp_path / "log.2")
    assert (where / "samples/000003/label").read_text() == "3\n"


def test_a_log_that_cannot_be_opened_again_goes_on(data, daemon, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    d = daemon(data.path, "-o", f"log={folder}/log")
    folder.rename(tmp_path / "moved")
    d.process.send_signal(signal.SIGHUP)
    log = tmp_path / "moved/log"
    wait_until(lambda: "No such file" in log.read_text(), "the complaint")
    complain(d.where, "later")
    assert "later" in log.read_text() and not folder.exists()
    assert d.end() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("options", [(), ("-o", "log=/dev/null"), ("-s",)])
def test_hangup_does_not_end_it_and_others_do(data, daemon, how, options):
    d = daemon(data.path, *options)
    for i in range(20):
        d.process.send_signal(signal.SIGHUP)
        path = d.where / f"samples/{i:06}/label"
        assert path.read_text() == f"{i}\n"
    d.process.send_signal(how)
    assert d.wait() == 0 and str(d.where) not in mounts()
