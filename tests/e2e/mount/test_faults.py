# SPDX-License-Identifier: Apache-2.0
"""A device that fails in the middle of an epoch, and a file that is cut off
there: what could not be read is marked, the rest is true, and all is well
when the fault is gone."""
import contextlib
import errno
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest

import zerocopy
import make
import orders
from conftest import unmount, wait_until
from dumped import BUILD, DEADLINE, SANITIZER, read_dump
from batchfile import BatchFile

N, BATCH = 1600, 20
BATCHES = N // BATCH
EIO = 5
SPEC = f"order=random,batch={BATCH},seed=3,drop_last=0"
SIZE = 85, 105
# Far from each other: a loader prefetches up to 20 batches.
FAILS_AT, HEALS_AT = 5, 50
ENOUGH = 22      # of a mount, which is 2 ahead
CACHES = {"os": "cache=os", "process": "cache=process,cache_size=16MiB"}
OWN = {"os": ["--cache", "os"],
       "process": ["--cache", "process", "--cache-size", "16MiB"]}
SAYS = "read of|reads fail until"
CUT = N // 2    # the first sample that is lost


@pytest.fixture
def data(tmp_path):
    """44 MB, more than a cache of 16 MiB holds and a loader reads ahead."""
    rng = np.random.default_rng(5)
    return make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("label", make.INT), ("blob", make.BYTES)], [
        {"image": make.Image(make.RAW, *SIZE,
                             rng.bytes(SIZE[0] * SIZE[1] * 3)),
         "label": i, "blob": rng.bytes(700 + i)} for i in range(N)], 1 << 16)


# --- what fails ---

class Device:
    """The dataset as a file of a device that fails on demand."""

    def __init__(self, data, folder):
        self.fault = folder / "fault"
        self.folder = folder / "device"
        self.folder.mkdir()
        self.path = self.folder / "d.beton"
        self.process = subprocess.Popen(
            ["nbdfuse", "-r", self.path, "--command", "nbdkit", "-s",
             "--exit-with-parent", "--filter=error", "file", data.path,
             "error-pread-rate=100%", f"error-pread-file={self.fault}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def is_there(self):
        assert self.process.poll() is None
        return self.path.exists()

    def may_hurt(self, i):
        return True

    def fail(self):
        self.fault.touch()
        open(self.path).close()     # by which the kernel forgets its pages

    def heal(self):
        self.fault.unlink()

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.resume()
        unmount(self.folder, "-z")
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class File:
    """The dataset itself, cut off, and whole again."""

    def __init__(self, data):
        self.path = data.path
        self.bytes = open(data.path, "rb").read()
        self.end = data.place[CUT, "image"]

    def may_hurt(self, i):
        return i >= CUT

    def fail(self):
        os.truncate(self.path, self.end)

    def heal(self):
        with open(self.path, "r+b") as f:
            f.seek(self.end)
            f.write(self.bytes[self.end:])


@pytest.fixture
def device(fuse, data, tmp_path, monkeypatch):
    # It is in FUSE, so failed reads are tried again.
    monkeypatch.setenv("BETON_STORAGE_OPTIONS", "retry=1s")
    for name in ("nbdkit", "nbdfuse"):
        if not shutil.which(name):
            pytest.skip(f"no {name}")
    if subprocess.run(["nbdkit", "--dump-plugin", "--filter=error", "null"],
                      capture_output=True).returncode:
        pytest.skip("no filter of nbdkit that fails")
    d = Device(data, tmp_path)
    try:
        wait_until(d.is_there, "the device")
        yield d
    finally:
        d.end()


@pytest.fixture(params=["device", "file"])
def source(request, fuse, data):
    if request.param == "file":
        return File(data)
    return request.getfixturevalue("device")


def ids_of(number):
    rule = orders.resolve(SPEC, N, 0)
    return [orders.sample(rule, 0, number * BATCH + k) for k in range(BATCH)]


# --- a mount ---

def hurt_rows(data, source, raw, number):
    """The rows of a batch file with a mark. All else must be true, and what
    is marked must be zeros."""
    b = BatchFile(raw)
    assert b.ids.tolist() == ids_of(number) and b.gaps_are_zero()
    hurt = set()
    for row, i in enumerate(b.ids.tolist()):
        for name in data.types:
            error, value = b.errors(name)[row], b.value(name, row)
            value = value[3] if name == "image" else value
            if error:
                assert error == EIO and not any(value), (number, i, name)
                assert source.may_hurt(i)
                hurt.add(row)
            elif name == "label":
                assert int.from_bytes(value, "little") == i
            else:
                assert value == data.stored(i, name), (number, i, name)
    return hurt


def path_of(number):
    return f"batches/{SPEC}/0/{number:06}.batch"


def by_read(mnt, number):
    return (mnt / path_of(number)).read_bytes()


def by_direct(mnt, number):
    fd = os.open(mnt / path_of(number), os.O_RDONLY | os.O_DIRECT)
    try:
        return bytes(zerocopy.read_direct(fd))
    finally:
        os.close(fd)


def by_zerocopy(mnt, number):
    client = zerocopy.Client(mnt)
    with client.socket:
        return client.get(path_of(number))[1]


WAYS = {"read": by_read, "direct": by_direct, "zero-copy": by_zerocopy}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("way", WAYS)
def test_a_mount_marks_failures_and_recovers(data, source, mount, cache,
                                               way):
    mnt = mount(source.path, "-o", CACHES[cache], expects=SAYS)

    def hurt(numbers):
        return sum(len(hurt_rows(data, source, WAYS[way](mnt, k), k))
                   for k in numbers)

    assert hurt(range(FAILS_AT)) == 0
    source.fail()
    lost = hurt(range(FAILS_AT, ENOUGH))
    # All but what was there already: read ahead, or still in the cache.
    assert lost > 5 * BATCH
    again = hurt(range(FAILS_AT, ENOUGH))
    assert again > 5 * BATCH
    source.heal()
    assert hurt(range(ENOUGH, ENOUGH + 8)) == 0
    assert hurt(range(ENOUGH)) == 0


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("direct", [False, True])
def test_a_batch_that_was_begun_ends_true_or_fails(data, source, mount, cache,
                                                   direct):
    """Its marks were read when there were none: no zeros may follow."""
    mnt = mount(source.path, "-o", CACHES[cache] + ",prefetch=0", expects=SAYS)
    number = next(k for k in range(20, BATCHES) if max(ids_of(k)[3:]) > CUT)
    want = by_read(mnt, number)
    fd = os.open(mnt / path_of(number),
                 os.O_RDONLY | (os.O_DIRECT if direct else 0))
    page = mmap.mmap(-1, -(-len(want) // 4096) * 4096)

    def piece(at, n):
        got = os.preadv(fd, [memoryview(page)[:n]], at)
        return page[:got]

    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        assert piece(0, 4096) == want[:4096]
        # The batch has to be collated again: after a reader reached its end,
        # the daemon holds nothing for others. The other batches exceed the
        # cache.
        for k in [number, *(k for k in range(BATCHES) if k != number)]:
            by_direct(mnt, k)
        source.fail()
        for at in range(4096, len(want), 65536):
            try:
                got = piece(at, 65536)
            except OSError as e:
                assert e.errno == errno.EIO
            else:
                assert got == want[at:at + 65536], at
        # A reader that opens it now gets it with marks, and after the repair
        # without.
        assert hurt_rows(data, source, by_direct(mnt, number), number)
        source.heal()
        assert by_direct(mnt, number) == by_read(mnt, number) == want
    finally:
        os.close(fd)


def waits_for_its_disk(d):
    """Whether some thread of a daemon does."""
    for task in pathlib.Path(f"/proc/{d.process.pid}/task").iterdir():
        if (task / "stat").read_text().rpartition(")")[2].split()[0] == "D":
            return True
    return False


def test_a_client_that_hangs_up_while_the_disk_hangs_is_not_waited_for(device, daemon):
    d = daemon(device.path, "-o", "cache=os,prefetch=0")
    by_read(d.where, 0)
    (d.where / path_of(1)).stat()       # by which its metadata are there
    gone = zerocopy.Client(d.where)
    open(device.path).close()
    device.hang()
    try:
        gone.ask(path_of(1))
        wait_until(lambda: waits_for_its_disk(d), "the disk")
        gone.socket.close()
        zerocopy.Client(d.where).socket.close()
    finally:
        device.resume()
    client = zerocopy.Client(d.where)
    assert client.get(path_of(1))[1] == by_read(d.where, 1)
    unmount(d.where)
    assert d.wait() == 0, d.printed()


# --- a loader on the file ---

class Dump:
    """A dump that stops at given batches. FIFOs replace two files of each: the
    dump blocks until the test reads them. The first shows that it arrived, and
    the second lets it continue."""

    FIFOS = "ids.npy", "image.npy"

    def __init__(self, source, out, cache, *args, stops):
        self.out, self.source = out, source
        for k in stops:
            (out / f"{k:06}").mkdir(parents=True)
            for name in self.FIFOS:
                os.mkfifo(out / f"{k:06}" / name)
        self.process = subprocess.Popen(
            [BUILD / "beton", "dump", source.path, "--out", out, "--spec",
             SPEC, "--jobs", "2", *OWN[cache], *args], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        threading.Thread(target=self.release, args=stops, daemon=True).start()

    def release(self, *stops):
        """Unblocks the readers of the FIFOs after the dump has ended."""
        self.process.wait()
        for k in stops:
            for name in self.FIFOS:
                with contextlib.suppress(OSError):
                    os.close(os.open(self.out / f"{k:06}" / name,
                                     os.O_WRONLY | os.O_NONBLOCK))

    def at(self, number, then):
        for name in self.FIFOS:
            path = self.out / f"{number:06}" / name
            written = path.read_bytes()
            path.unlink()
            path.write_bytes(written)
            if name == self.FIFOS[0]:
                then()

    def end(self, code):
        _, printed = self.process.communicate(timeout=DEADLINE)
        assert self.process.returncode == code, printed
        assert not SANITIZER.search(printed), printed
        return printed


def check_dump(data, source, batches, valid_if_hurt):
    """-> the numbers of the batches with samples that were lost."""
    hurt = set()
    for b in batches:
        assert b.ids == ids_of(b.number)
        for row, i in enumerate(b.ids):
            got = {"image": b.row("image", row).tobytes(),
                   "label": b.row("label", row), "blob": b.row("blob", row)}
            lost = [name for name in got if got[name] !=
                    (i if name == "label" else data.stored(i, name))]
            if not lost:
                continue
            assert source.may_hurt(i) and b.valid[row] == valid_if_hurt
            assert not any(np.any(np.frombuffer(np.array(got[name]), np.uint8))
                           for name in lost)
            hurt.add(b.number)
    return hurt


@pytest.mark.parametrize("cache", OWN)
@pytest.mark.parametrize("on_error", ["skip", "zero"])
def test_a_loader_continues_after_failures(data, source, tmp_path, cache,
                                          on_error):
    d = Dump(source, tmp_path / "out", cache, "--on-error", on_error, stops=(FAILS_AT, HEALS_AT))
    d.at(FAILS_AT, source.fail)
    d.at(HEALS_AT, source.heal)
    d.end(0)
    batches = read_dump(tmp_path / "out")
    assert len(batches) == BATCHES
    hurt = check_dump(data, source, batches, on_error == "zero")
    assert min(hurt) >= FAILS_AT and len(hurt) > 5
    assert max(hurt) < BATCHES - 2


@pytest.mark.parametrize("cache", OWN)
def test_a_loader_stops_at_a_failure_and_continues_later(data, source, tmp_path,
                                                        cache):
    out, state = tmp_path / "out", tmp_path / "state"
    d = Dump(source, out, cache, "--state", state, stops=(FAILS_AT,))
    d.at(FAILS_AT, source.fail)
    printed = d.end(1)
    assert "sample" in printed and "Input/output error" in printed
    done = len(list(out.iterdir()))
    assert FAILS_AT < done < HEALS_AT
    source.heal()
    Dump(source, out, cache, "--state", state, stops=()).end(0)
    batches = read_dump(out)
    assert len(batches) == BATCHES
    assert check_dump(data, source, batches, False) == set()
