# SPDX-License-Identifier: Apache-2.0
"""The watcher of betonfs(8): no dead mount is left after any end of a daemon, and
the watcher holds no resource of the daemon."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import pytest

import make
from conftest import DEADLINE, SUSPICIOUS, mounts, program, wait_until

NOBODY = 65534
PATIENCE = 2    # seconds, for a dead mount to go
DEAD = "mnt: unmounted the mount of a daemon that had died\n"
USERS = [os.getuid()] + [NOBODY] * (os.getuid() == 0)


@pytest.fixture(params=USERS)
def uid(request):
    """Root mounts itself, and another user by fusermount3."""
    if request.param and os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
        pytest.skip("/dev/fuse is for root alone")
    return request.param


@pytest.fixture
def place(fuse, uid):
    """A directory of the user's, which every user may search."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name).resolve()
        path.chmod(0o755)
        (path / "mnt").mkdir()
        for p in path, path / "mnt":
            os.chown(p, uid, uid)
        yield path
        for name in os.listdir(path):
            while str(path / name) in mounts():
                subprocess.run(["fusermount3", "-uz", path / name])


@pytest.fixture
def data(place):
    return make.numbers(place / "a.beton", 20)


@pytest.fixture
def start(data, place, uid):
    """start(*args) -> pid of a daemon on mnt, in the background or not, and the
    process that was started."""
    started = []

    def do(*args, where=place / "mnt", **how):
        p = subprocess.Popen([program("betonfs"), *args, data.path, where],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, user=uid,
                             group=uid, extra_groups=[], **how)
        started.append(p)
        if "-f" not in args:
            printed = p.communicate(timeout=DEADLINE)[0]
            assert p.returncode == 0
            assert not printed or DEAD in printed and printed.count("\n") == 1
        wait_until(lambda: is_serving(where), "the mount")
        return daemon_of(where, uid), p

    # As root a test may not look into the mount of another user.
    yield do
    for p in started:
        if p.poll() is None:
            p.kill()
        p.wait()
        p.stdout.close()


def is_serving(where):
    return mounts().get(str(where), ("", ""))[1] == "fuse.betonfs"


def as_user(uid, *command):
    return subprocess.run(command, user=uid, group=uid, extra_groups=[],
                          capture_output=True, text=True, timeout=DEADLINE)


def daemon_of(where, uid):
    out = as_user(uid, "cat", where / ".betonfs/options")
    assert out.returncode == 0, out.stderr
    line, = [x for x in out.stdout.splitlines() if x.startswith("pid=")]
    return int(line[4:])


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [int(n) for t in tasks for n in (t / "children").read_text().split()]


def watcher_of(pid):
    watcher, = children(pid)
    assert pathlib.Path(f"/proc/{watcher}/comm").read_text() == \
        "betonfs-watch\n"
    return watcher


def ended(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


MODES = pytest.mark.parametrize("args", [
    (), ("-f",), ("-s",), ("-o", "auto_unmount"), ("-f", "-o", "auto_unmount")],
    ids=" ".join)


# --- no dead mount is left ---

@MODES
def test_a_killed_daemon_leaves_no_mount(start, place, uid, args):
    where = place / "mnt"
    for _ in range(3):      # each is mounted again at once
        pid, _ = start(*args)
        watcher = watcher_of(pid)
        assert as_user(uid, "cat", where / "samples/000003/label").stdout == \
            "3\n"
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: ended(pid), "the daemon's end")
        wait_until(lambda: str(where) not in mounts(), "the unmount", PATIENCE)
        wait_until(lambda: ended(watcher), "the watcher's end")
        assert os.listdir(where) == []


def test_a_mount_may_follow_before_the_dead_one_is_gone(start, place, uid):
    """The watcher of a daemon that was killed takes away no mount that lives."""
    for _ in range(20):
        pid, _ = start()
        os.kill(pid, signal.SIGKILL)
    watcher = watcher_of(pid := start()[0])
    wait_until(lambda: len([1 for p in processes("betonfs-watch")
                            if place_of(p) == str(place)]) <= 1,
               "the other watchers")
    assert not ended(watcher)
    assert daemon_of(place / "mnt", uid) == pid


def processes(name):
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (p / "comm").read_text() == name + "\n":
                yield p
        except OSError:
            pass


def place_of(process):
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
        return os.path.dirname(os.fsdecode(words[-2]))
    except (OSError, IndexError):
        return None


def test_it_is_unmounted_while_files_are_open(start, place, uid):
    where = place / "mnt"
    pid, _ = start()
    with subprocess.Popen(["sh", "-c", 'exec 9<"$0"; echo; cat',
                           where / "samples/000003/label"],
                          user=uid, group=uid, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "\n"
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: str(where) not in mounts(), "the unmount", PATIENCE)
        p.stdin.close()


@MODES
def test_a_created_directory_is_removed(start, place, args):
    pid, _ = start(*args, where=place / "made")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "made" not in os.listdir(place), "the directory",
               PATIENCE)


@pytest.mark.parametrize("how,code", [(signal.SIGTERM, 0), (signal.SIGINT, 0),
                                      (signal.SIGKILL, -9)])
def test_a_signal_to_all_of_a_group_unmounts(start, place, how, code):
    pid, p = start("-f", start_new_session=True)
    watcher = watcher_of(pid)
    os.killpg(p.pid, how)
    assert p.wait(DEADLINE) == code
    wait_until(lambda: str(place / "mnt") not in mounts(), "the unmount",
               PATIENCE)
    wait_until(lambda: ended(watcher), "the watcher's end")
    assert not SUSPICIOUS.search(p.stdout.read())


@pytest.mark.parametrize("args", [(), ("-f",)], ids=" ".join)
def test_its_end_is_the_end_of_both(start, place, uid, args):
    """Unmounted by the user, or by a signal: when the daemon has ended, the
    watcher has ended, too."""
    where = place / "mnt"
    for end in (lambda pid: as_user(uid, "fusermount3", "-u", where),
                lambda pid: os.kill(pid, signal.SIGTERM)):
        pid, p = start(*args)
        watcher = watcher_of(pid)
        end(pid)
        wait_until(lambda: p.poll() is not None and ended(pid), "the end")
        assert ended(watcher) and str(where) not in mounts()
        assert p.returncode == 0


def test_a_failure_leaves_nothing(place, uid):
    (place / "text").write_text("x" * 100)
    r = as_user(uid, program("betonfs"), place / "text", place / "made")
    assert r.returncode == 33 and not (place / "made").exists()
    assert not [p for p in processes("betonfs-watch")
                if place_of(p) == str(place)]


# --- a process that keeps nothing ---

@pytest.mark.parametrize("args", [(), ("-f",)], ids=" ".join)
def test_it_holds_no_descriptor_of_the_daemon(start, place, args, uid):
    read, write = os.pipe()
    pid, p = start(*args, pass_fds=[write])
    os.close(write)
    watcher = watcher_of(pid)
    fds = {int(f.name): os.readlink(f)
           for f in pathlib.Path(f"/proc/{watcher}/fd").iterdir()}
    assert {n: fds.pop(n) for n in range(3)} == dict.fromkeys(
        range(3), "/dev/null")
    assert [x.split(":")[0] for x in fds.values()] == ["socket"]
    assert os.readlink(f"/proc/{watcher}/cwd") == "/"
    assert os.getsid(watcher) == watcher
    os.close(read)


def test_signals_do_not_end_it(start, place):
    pid, _ = start()
    watcher = watcher_of(pid)
    for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT,
                signal.SIGPIPE):
        os.kill(watcher, how)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: str(place / "mnt") not in mounts(), "the unmount",
               PATIENCE)


def test_a_daemon_outlives_it(start, place, uid):
    """Then it is the next daemon that unmounts, as without a watcher."""
    where = place / "mnt"
    pid, p = start("-f", "-o", f"log={place}/log")
    os.kill(watcher_of(pid), signal.SIGKILL)
    assert as_user(uid, "cat", where / "samples/000004/label").stdout == "4\n"
    os.kill(pid, signal.SIGHUP)
    log = place / "log"
    wait_until(lambda: "still go to the old file" in log.read_text(), "the line")
    os.kill(pid, signal.SIGTERM)
    assert p.wait(DEADLINE) == 0
    assert f"mountpoint {where}: cannot unmount" in log.read_text()
    pid, _ = start()
    assert as_user(uid, "cat", where / "samples/000005/label").stdout == "5\n"


def test_messages_reach_syslog_in_the_name_of_the_daemon(start, place, uid):
    if os.getuid() or os.path.lexists("/dev/log"):
        pytest.skip("no root to make a /dev/log, or there is one")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind("/dev/log")
        try:
            os.chmod("/dev/log", 0o666)
            s.settimeout(DEADLINE)
            pid, _ = start()
            as_user(uid, "ls", place / "mnt/batches/bad=1")
            # 24 is the facility of daemons, and 4 a warning.
            while b"unknown key 'bad'" not in (line := s.recv(4096)):
                pass
        finally:
            os.unlink("/dev/log")
    assert line.startswith(b"<28>") and b" betonfs[%d]: " % pid in line
