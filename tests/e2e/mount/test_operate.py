# SPDX-License-Identifier: Apache-2.0
"""betonfs(8) as an operator uses it: fstab, log rotation, descriptors from
outside, and crashes."""
import ctypes
import errno
import itertools
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import elsewhere
import make
from conftest import (BUILD, DEADLINE, betonfs, is_instrumented,
                      mounts, program, unmount, wait_until)

ROOT = os.getuid() == 0
NOBODY = 65534
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
libc = ctypes.CDLL(None, use_errno=True)
UNITS = pathlib.Path(__file__).resolve().parents[3] / "contrib/systemd"


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


def is_gone(pid):
    """Ended, though its parent may not have waited for it."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_the_soft_limit_of_descriptors_is_raised(data, where):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))

    assert betonfs(data.path, where, preexec_fn=limit).returncode == 0
    assert resource.prlimit(daemon_of(where),
                            resource.RLIMIT_NOFILE) == (1000, 1000)


def test_an_empty_operand_is_no_directory(data, where, fuse):
    before = mounts()
    for code, *operands in ((32, data.path, ""), (32, "", where)):
        r = subprocess.run([BUILD / "betonfs", *operands], cwd=where,
                           capture_output=True, text=True, timeout=DEADLINE)
        assert r.returncode == code and len(r.stderr.splitlines()) == 1
        assert "No such file or directory" in r.stderr
    assert mounts() == before
# --- output ---

@pytest.mark.parametrize("option", ["--help", "--version", "--options"])
def test_an_output_that_is_full_is_an_error(option):
    for path, code, printed in (("/dev/full", 2, "No space left on device"),
                             ("/dev/null", 0, "")):
        with open(path, "w") as out:
            r = subprocess.run([BUILD / "betonfs", option], stdout=out,
                               stderr=subprocess.PIPE, text=True)
        assert r.returncode == code and printed in r.stderr
        assert len(r.stderr.splitlines()) == (code != 0)


def wchan(pid):
    """The function of the kernel in which a process waits."""
    return pathlib.Path(f"/proc/{pid}/wchan").read_text()


@pytest.mark.skipif(is_instrumented,
                    reason="the leak sanitizer needs descriptors at its end")
def test_a_mount_that_is_refused_reports_why_in_one_line(data, where):
    """If there are too few descriptors, there is none left for /dev/fuse."""
    refused = 0
    for limit in range(5, 24):
        r = betonfs(data.path, where, preexec_fn=lambda n=limit:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        if r.returncode == 0:
            unmount(where)
        # The mount works without zero-copy delivery.
        printed = [x for x in r.stderr.splitlines()
                if "zero-copy delivery: " not in x]
        assert len(printed) == (r.returncode != 0)
        if r.returncode == 32:
            refused += 1
            assert f"mountpoint {where}: cannot mount: " in printed[0]
            assert "/dev/fuse: Too many open files" in printed[0]
    assert refused


# --- SIGHUP ---

def complain(where, word):
    """Makes the daemon log a line with this word."""
    assert not (where / f"batches/{word}=1").exists()


def test_hangup_opens_the_log_again(data, where, tmp_path):
    log, old = tmp_path / "log", tmp_path / "log.1"
    names = itertools.count()
    r = betonfs("-o", "log=log", data.path, where, cwd=tmp_path)
    assert r.returncode == 0
    pid = daemon_of(where)
    complain(where, "first")
    log.rename(old)
    complain(where, "second")
    for word in ("third", "fourth"):
        os.kill(pid, signal.SIGHUP)
        wait_until(log.exists, "the log to come back")
        assert not log.stat().st_mode & 0o077
        # The watcher makes the file a moment before the daemon writes to it.
        # A name is complained about once, as the kernel keeps its absence.
        wait_until(lambda: complain(where, f"soon{next(names)}") or
                   log.read_text(), "a line in the new log")
        complain(where, word)
        assert word in log.read_text()
        assert "first" in old.read_text() and "second" in old.read_text()
        assert word not in old.read_text()
        os.rename(log, tmp_path / "log.2")
    assert (where / "samples/000003/label").read_text() == "3\n"


def test_a_log_that_became_a_fifo_stops_nothing(data, daemon, tmp_path):
    log = tmp_path / "log"
    d = daemon(data.path, "-o", f"log={log}")
    log.rename(tmp_path / "old")
    os.mkfifo(log)
    d.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "neither a file" in (tmp_path / "old").read_text(),
               "the complaint")
    complain(d.where, "later")
    assert "later" in (tmp_path / "old").read_text()
    assert d.end() == 0


def test_a_log_that_cannot_be_opened_again_continues(data, daemon, tmp_path):
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


def test_a_log_must_not_block(data, where, tmp_path):
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    folder.mkdir()
    box = socket.socket(socket.AF_UNIX)
    box.bind(str(tmp_path / "socket"))
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for code, log in ((1, fifo), (1, tmp_path / "socket"), (2, folder),
                      (2, tmp_path / "absent/log")):
        for flags in ("-o", "-fo"):
            r = betonfs(flags, f"log={log}", data.path, where)
            assert r.returncode == code and f"log={log}: " in r.stderr
            assert len(r.stderr.splitlines()) == 1
    # The FIFO has no reader.
    os.close(reader)
    r = betonfs("-o", f"log={fifo}", data.path, where)
    assert r.returncode == 1 and "neither a file nor" in r.stderr
    assert str(where) not in mounts()
    box.close()


def test_a_log_is_the_users_own(data, daemon, tmp_path):
    log = tmp_path / "log"
    d = daemon(data.path, "-o", f"log={log}")
    complain(d.where, "word")
    assert "word" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert d.end() == 0


@pytest.mark.parametrize("log", ["/dev/stderr", "/dev/null", "/dev/full"])
def test_a_log_may_be_a_device(data, where, log):
    """Also a pipe that the daemon was given: it may be all that reads."""
    r, w = os.pipe()
    process = subprocess.Popen([BUILD / "betonfs", "-o", f"log={log}",
                                data.path, where], stdin=subprocess.DEVNULL,
                               stderr=w)
    os.close(w)
    assert process.wait(DEADLINE) == 0
    for i in range(5):
        complain(where, f"word{i}")
    assert (where / "samples/000003/label").read_text() == "3\n"
    if log == "/dev/stderr":
        assert b"word" in os.read(r, 1 << 16)
    os.close(r)
    complain(where, "later")
    assert (where / "samples/000004/label").read_text() == "4\n"


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


# --- crashes ---

def test_nothing_is_left_of_a_killed_daemon(data, daemon, tmp_path):
    before = set(os.listdir("/dev/shm"))
    d = daemon(data.path)
    assert (d.where / "batches/batch=4/0/000000.batch").read_bytes()
    d.process.kill()
    d.wait()
    left = set(os.listdir("/dev/shm")) - before
    wait_until(lambda: not left & set(os.listdir("/dev/shm")), "files of others")
    again = daemon(data.path, where=d.where)
    assert (d.where / "samples/000007/label").read_text() == "7\n"
    assert again.end() == 0 and str(d.where) not in mounts()


def test_a_mount_that_hides_another_reports_it(data, where, tmp_path):
    other = make.numbers(tmp_path / "a b.beton", 3)
    assert betonfs(data.path, where).stderr == ""
    r = betonfs(other.path, where)
    assert r.returncode == 0 and len(r.stderr.splitlines()) == 1
    assert f"mountpoint {where}: " in r.stderr and data.path in r.stderr
    assert len(os.listdir(where / "samples")) == 3
    # The name of the mount below, not of what is below that.
    assert other.path in betonfs(data.path, where).stderr
    for n in (20, 3, 20):
        assert len(os.listdir(where / "samples")) == n
        unmount(where)
    assert betonfs(data.path, where).stderr == ""


@pytest.mark.skipif(not ROOT, reason="users need allow_other for that")
@pytest.mark.parametrize("options", ["auto_unmount",
                                     "auto_unmount,allow_other"])
def test_auto_unmount(data, where, options):
    assert betonfs("-o", options, data.path, where).returncode == 0
    pid = daemon_of(where)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: str(where) not in mounts(), "the unmount")
    assert os.listdir(where) == []


@pytest.fixture
def public(fuse):
    """A directory that every user may search; what is mounted in it is
    unmounted in the end."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path
        for where in path.iterdir():
            while libc.umount2(os.fsencode(where), 2) == 0:
                pass


@pytest.fixture
def dead():
    """dead(where, uid): makes a mount of a daemon that died."""
    def do(where, uid):
        fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fd},rootmode=40000,user_id={uid},group_id={uid}"
        r = libc.mount(b"dead", os.fsencode(where), b"fuse.betonfs",
                       MS_RDONLY | MS_NOSUID | MS_NODEV, options.encode())
        os.close(fd)
        if r:
            pytest.skip("mount: " + os.strerror(ctypes.get_errno()))

    if not ROOT:
        pytest.skip("only root can mount")
    return do


@pytest.fixture(params=[0, NOBODY])
def uid(request):
    """Root, and a user who mounts by fusermount3."""
    if not ROOT:
        pytest.skip("only root can be another user")
    if request.param and os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
        pytest.skip("/dev/fuse is for root alone")
    return request.param


def test_daemons_that_find_a_dead_mount_unmount_no_other(dead, public, uid):
    """They start at once, on one mountpoint. fusermount3 refuses to mount on a
    mount, so that it is one of a user's that has to stay."""
    data, where = make.numbers(public / "a.beton", 20), public / "mnt"
    where.mkdir()
    os.chown(where, uid, uid)
    for _ in range(20):
        dead(where, uid)
        many = [subprocess.Popen([program("betonfs"), data.path, where],
                                 user=uid, group=uid, stderr=subprocess.PIPE,
                                 text=True) for _ in range(6)]
        printed = "".join(p.communicate(timeout=DEADLINE)[1] for p in many)
        good = sum(p.returncode == 0 for p in many)
        left = pathlib.Path("/proc/self/mounts").read_text(errors="surrogateescape")
        assert good == 6 if uid == 0 else good >= 1, printed
        assert left.count(f" {where} ") == good and "dead " not in left, printed
        assert os.strerror(errno.ENOTCONN) not in printed
        while libc.umount2(os.fsencode(where), 2) == 0:
            pass


# --- mount(8) ---

@pytest.fixture
def helper(tmp_path):
    """mount.beton(*args)"""
    link = tmp_path / "mount.beton"
    link.symlink_to(BUILD / "betonfs")
    return lambda *args: subprocess.run(
        [link, *args], text=True, capture_output=True, timeout=DEADLINE)


FSTAB = ("rw,nofail,_netdev,noauto,user,x-systemd.automount,"
         "x-systemd.idle-timeout=10min,x-systemd.requires=data.mount,batch=5")


def test_mount_calls_it(data, where, helper):
    r = helper(data.path, where, "-n", "-s", "-v", "-t", "beton", "-o", FSTAB)
    assert r.returncode == 0
    assert f"mounted on {where}: 1 dataset" in r.stderr     # of -v
    assert mounts()[str(where)][1] == "fuse.betonfs"
    assert os.readlink(where / "batches/default").startswith(
        "order=random,batch=5,")


def test_mount_calls_it_with_several(data, where, helper, tmp_path):
    odd = make.numbers(tmp_path / "a:b c.beton", 3).path
    r = helper(data.path + ":" + odd.replace(":", "\\:"), where, "-o", "ro")
    assert (r.returncode, r.stderr) == (0, "")
    assert sorted(os.listdir(where)) == ["a:b c", "train"]


def test_a_fake_mount_does_everything_else(data, where, helper, tmp_path):
    made = tmp_path / "made"
    for path in (where, made):
        r = helper(data.path, path, "-f", "-o", FSTAB)
        assert (r.returncode, r.stderr) == (0, "")
    assert str(where) not in mounts() and not made.exists()
    for code, *args in ((32, tmp_path / "absent", where),
                        (33, "/dev/null", where),
                        (32, data.path, data.path),
                        (1, data.path, where, "-o", "batch=0"),
                        (1, data.path, where, "-o", "nosuch"),
                        (1, data.path, where, "-d")):
        r = helper("-f", *args)
        assert r.returncode == code and len(r.stderr.splitlines()) == 1


def test_letters_of_mount_are_no_letters_of_betonfs(data, where):
    for letter in ("-n", "-t"):
        assert betonfs(letter, "x", data.path, where).returncode == 1
    assert str(where) not in mounts()


# --- an open /dev/fuse from outside ---

@pytest.fixture
def mounted_fd(where):
    """An open /dev/fuse, mounted as a privileged parent would do it."""
    if not ROOT:
        pytest.skip("only root can mount")
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = (f"fd={fd},rootmode=40000,user_id=0,group_id=0,"
               "default_permissions,allow_other")
    if libc.mount(b"outside", os.fsencode(where), b"fuse.betonfs",
                  MS_RDONLY | MS_NOSUID | MS_NODEV, options.encode()):
        os.close(fd)
        pytest.skip("mount: " + os.strerror(ctypes.get_errno()))
    yield fd
    libc.umount2(os.fsencode(where), 2)


@pytest.mark.parametrize("foreground", [True, False])
def test_a_descriptor_is_a_mountpoint(data, where, mounted_fd, foreground):
    command = [BUILD / "betonfs", data.path, f"/dev/fd/{mounted_fd}"]
    if foreground:
        command.append("-f")
    process = subprocess.Popen(command, pass_fds=[mounted_fd],
                               stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    os.close(mounted_fd)
    if not foreground:
        assert process.wait(DEADLINE) == 0
        assert elsewhere.as_local(process.stderr.read()) == ""
    assert (where / "samples/000011/label").read_text() == "11\n"
    pid = daemon_of(where)
    assert f"mountpoint=/dev/fd/{mounted_fd}" in \
        (where / ".betonfs/options").read_text().splitlines()
    assert libc.umount2(os.fsencode(where), 0) == 0
    if foreground:
        assert process.wait(DEADLINE) == 0
        assert elsewhere.as_local(process.stderr.read()) == ""
    wait_until(lambda: is_gone(pid), "the daemon to end")
    process.stderr.close()


def test_a_descriptor_must_be_an_open_dev_fuse(data, fuse):
    null = os.open("/dev/null", os.O_RDWR)
    for fd, keep in ((null, [null]), (null, []), (999999, [])):
        r = betonfs(data.path, f"/dev/fd/{fd}", pass_fds=keep)
        assert r.returncode == 32 and f"/dev/fd/{fd}" in r.stderr
        assert len(r.stderr.splitlines()) == 1
    os.close(null)
    for odd in ("/dev/fd/0", "/dev/fd/3x"):
        assert betonfs(data.path, odd).returncode == 32


# --- systemd ---

@pytest.mark.parametrize("unit", sorted(p.name for p in UNITS.iterdir()))
def test_units_are_valid(unit, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    for p in UNITS.iterdir():
        # The program must be there.
        (tmp_path / p.name.replace("@", "@x")).write_text(
            p.read_text().replace("/usr/local/bin", str(BUILD)))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no",
                        tmp_path / unit.replace("@", "@x")],
                       capture_output=True, text=True, timeout=60)
    if "Failed to initialize manager" in r.stderr:
        pytest.skip(r.stderr)
    assert r.returncode == 0 and unit.replace("@", "@x") not in r.stderr


def test_the_units_rights_are_enough(data, where):
    """Those of betonfs@.service, as far as there is a program to drop them."""
    if not ROOT or not shutil.which("setpriv"):
        pytest.skip("no root, or no setpriv")
    service = (UNITS / "betonfs@.service").read_text()
    line, = [x for x in service.splitlines() if x.startswith("Capability")]
    caps = ",".join("+" + c[4:].lower() for c in line.split("=")[1].split())
    rights = ["setpriv", "--no-new-privs", "--bounding-set", "-all," + caps]
    for stop in (["fusermount3", "-u", where], None):
        r = subprocess.run(
            rights + [BUILD / "betonfs", "-o", "allow_other", data.path,
                      where], capture_output=True, text=True, timeout=DEADLINE)
        assert (r.returncode, r.stderr) == (0, "")
        pid = daemon_of(where)
        if stop:
            assert subprocess.run(rights + stop).returncode == 0
        else:
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: is_gone(pid), "the daemon to end")
        assert str(where) not in mounts()


# --- the end ---

SPEC = "order=random,batch=4,seed=0,drop_last=1"


@pytest.fixture
def slow_disk(tmp_path, monkeypatch):
    """A file: as long as it exists, the disk does not answer."""
    library = BUILD / "standin/slow_disk.so"
    if not library.exists():
        pytest.skip(f"no {library}")
    if BUILD.name.startswith("build-"):
        pytest.skip("sanitizers want to be loaded first")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("SLOW_DISK", str(tmp_path / "slow"))
    return tmp_path / "slow"


def test_a_lookup_that_waits_at_the_end_ends(slow_disk, daemon,
                                                    monkeypatch, tmp_path):
    """The kernel cannot forget a batch that was read before a lookup in the
    same directory is answered. The signal comes before the lookup's turn."""
    d = daemon(make.every_type(tmp_path / "every.beton").path, "-s", "-o",
               "prefetch=0,nosandbox")
    monkeypatch.delenv("LD_PRELOAD")
    batches = d.where / "batches" / SPEC / "0"
    first, second = (open(batches / f"00000{i}.batch", "rb") for i in (0, 1))
    first.read()
    (d.where / "dataset.json").read_text()  # the kernel will not flush
    slow_disk.touch()
    d.process.send_signal(signal.SIGSTOP)
    first.close()
    read = subprocess.Popen(["cat"], stdin=second, stdout=subprocess.DEVNULL)
    wait_until(lambda: re.search("folio|page", wchan(read.pid)), "the read")
    lookup = subprocess.Popen(["stat", batches / "000002.batch"],
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    wait_until(lambda: "request_wait" in wchan(lookup.pid), "the lookup")
    d.process.send_signal(signal.SIGCONT)
    wait_until(lambda: any(re.search("rwsem_down_write|inval_entry",
                                     wchan(thread)) for thread in
                           os.listdir(f"/proc/{d.process.pid}/task")),
               "the request to the kernel")
    d.process.send_signal(signal.SIGTERM)
    slow_disk.unlink()
    try:
        assert d.wait() == 0
        for process in (read, lookup):
            process.wait(DEADLINE)
    finally:    # nothing else ends a daemon that waits so
        if str(d.where) in mounts():
            subprocess.run(["umount", "-f", "-l", d.where])


def by_signal(d):
    d.process.send_signal(signal.SIGTERM)


def by_force(d):
    if not ROOT:
        pytest.skip("only root may force a mount")
    subprocess.run(["umount", "-f", "-l", d.where], check=True)


@pytest.mark.parametrize("args, how", [((), by_signal), (("-s",), by_force)])
def test_a_disk_that_hangs_does_not_hold_up_the_end(
        slow_disk, daemon, monkeypatch, tmp_path, args, how):
    """Reads of a dataset never return, and the daemon ends all the same."""
    d = daemon(make.every_type(tmp_path / "every.beton").path, *args, "-o",
               "prefetch=0,nosandbox")
    monkeypatch.delenv("LD_PRELOAD")
    slow_disk.touch()
    cat = subprocess.Popen(["cat", d.where / "samples/000000/image.jpg"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until(lambda: "request_wait" in wchan(cat.pid), "the read")
    tasks = pathlib.Path(f"/proc/{d.process.pid}/task")
    wait_until(lambda: any("nanosleep" in (t / "wchan").read_text()
                           for t in tasks.iterdir()), "the disk to be read")
    begin = time.monotonic()
    how(d)
    try:
        assert d.process.wait(DEADLINE) == 2
        assert 9 < time.monotonic() - begin < 14
        assert str(d.where) not in mounts()
        assert cat.wait(DEADLINE) == 1
    finally:
        d.process.kill()
