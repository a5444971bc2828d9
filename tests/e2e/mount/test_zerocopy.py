# SPDX-License-Identifier: Apache-2.0
"""Batches in the daemon's memory, over its socket: the same bytes as by any other
delivery, and a daemon that no client can disturb."""
import errno
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess

import numpy as np
import pytest

import dumped
import make
from conftest import unmount, wait_until
from dumped import AUGMENT, BUILD, SANITIZER, beton, digest, dump
from zerocopy import (BATCH, FORGET, GET, PUT, SPEC, VERSION, Client, hello,
                      options_of, path_of, report)
from loading import Loader

N = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("zero-copy") / "p.beton", N)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    rng = np.random.default_rng(0)
    return make.Dataset(
        tmp_path_factory.mktemp("large") / "l.beton",
        [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, 40, 30, rng.bytes(3600)),
          "label": i} for i in range(3000)], 1 << 16)


def descriptors(daemon):
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def memory(daemon):
    """Pieces of memory that it has."""
    maps = pathlib.Path(f"/proc/{daemon.process.pid}/maps").read_text()
    return maps.count("beton-batch")


# --- the same bytes ---

@pytest.mark.parametrize("spec, pipeline", [
    (SPEC, AUGMENT),
    ("batch=3,seed=11,drop_last=0", "image | drop"),
    ("order=sequential,batch=16,drop_last=0", "image | center_crop(8)"),
    ("order=quasi_random,batch=7,block=2,window=9",
     "image | center_crop(9); label | int32; score | float; blob | drop"),
])
def test_every_way_gives_the_same(data, mount, tmp_path, spec, pipeline):
    options = ["--spec", spec, "--pipeline", pipeline]
    mnt = mount(data.path)
    dump(data.path, tmp_path / "file", *options)
    want = digest(tmp_path / "file")
    for way in ("zero-copy", "direct", "auto"):
        dump(mnt, tmp_path / way, *options, "--delivery", way)
        assert digest(tmp_path / way) == want


@pytest.mark.quick
def test_a_batch_is_the_file(data, mount):
    mnt = mount(data.path)
    client = Client(mnt)
    for i in range(N // 4):
        slot, seen = client.get(path_of(i))
        assert seen == (mnt / path_of(i)).read_bytes()
        client.put(slot)
    # One descriptor per piece of memory, not per batch.
    assert len(client.maps) < N // 4


def test_bad_samples_are_reported_the_same(tmp_path, mount):
    own = dumped.photos(tmp_path / "own.beton", N)
    options = ["--spec", SPEC, "--pipeline", AUGMENT, "--on-error", "skip"]
    mnt = mount(own.path, expects="sample")
    os.truncate(own.path, own.place[25, "image"])
    for way in ("zero-copy", "direct"):
        dump(mnt, tmp_path / way, *options, "--delivery", way)
    assert digest(tmp_path / "zero-copy") == digest(tmp_path / "direct")


@pytest.mark.parametrize("until", ["read", "all"])
def test_the_loader_reports_which_way(data, mount, until):
    mnt = mount(data.path)

    def way(source, *options):
        return json.loads(beton("bench", source, "--spec", SPEC, "--pipeline",
                                AUGMENT, "--until", until, "--json", "--epochs",
                                2, *options).stdout)["delivery"]

    assert way(mnt) == "zero-copy"
    assert way(mnt, "--delivery", "zero-copy") == "zero-copy"
    assert way(mnt, "--delivery", "direct") == "direct"
    assert way(data.path) == "in-process"


def test_where_the_socket_cannot_be_reached_files_are_read(data, mount):
    mnt = mount(data.path)
    alone = ["unshare", "-n"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("no network namespace of our own")
    r = subprocess.run([*alone, BUILD / "beton", "bench", mnt, "--spec", SPEC,
                        "--until", "read", "--json"], capture_output=True,
                       check=True)
    assert json.loads(r.stdout)["delivery"] == "direct"
    r = subprocess.run([*alone, BUILD / "beton", "bench", mnt, "--delivery",
                        "zero-copy"], capture_output=True, text=True)
    assert r.returncode == 1 and "refused" in r.stderr


# --- what the user holds is the user's ---

def test_held_columns_do_not_change(large, mount):
    source = mount(large.path)
    with Loader(source, spec="order=random,batch=50",
                delivery="zero-copy") as loader:
        kept = [loader.next() for _ in range(50)]   # of the 60 of an epoch
        for b in kept:
            image, label = b.outputs[0], b.outputs[1]
            assert image.name == b"image" and image.size == 50 * 3600
            ids = b.ids[:50]
            assert label.array().tolist() == ids
            assert image.bytes() == b"".join(large.stored(i, "image")
                                             for i in ids)


# --- who is gone ---

def test_killed_loaders_give_everything_back(data, daemon):
    d = daemon(data.path, "-o", "prefetch=0")
    before = descriptors(d)
    with Client(d.where).socket:
        pass
    for i in range(50):
        ready, report = os.pipe()
        child = os.fork()
        if not child:
            try:
                client = Client(d.where)
                for k in range(3):
                    client.get(path_of((i + k) % (N // 4)))
                client.ask(path_of(0, 1 + i))
                os.write(report, b"x")
                signal.pause()
            finally:
                os._exit(1)
        os.close(report)
        assert os.read(ready, 1) == b"x"
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    # Memory, and nothing else, stays for the next readers.
    wait_until(lambda: descriptors(d) <= before + 10, "the sockets to close")
    assert memory(d) <= 10
    assert Client(d.where).get(path_of(1))[1] == \
        (d.where / path_of(1)).read_bytes()


def test_memory_outlives_a_killed_daemon(data, daemon):
    d = daemon(data.path)
    client = Client(d.where)
    slot, before = client.get(path_of(2))
    d.process.kill()
    d.process.wait()
    assert client.maps[slot][:len(before)] == before
    assert client.is_cut_off()


def test_a_killed_daemon_is_an_error_for_a_loader(large, daemon):
    for until in ("read", "all"):
        d = daemon(large.path)
        p = subprocess.Popen([BUILD / "beton", "bench", d.where, "--spec",
                              "batch=8", "--epochs", "1000000", "--until",
                              until, "--delivery", "zero-copy"], text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_until(lambda: memory(d) >= 3, "some batches")
        d.process.kill()
        _, printed = p.communicate(timeout=10)
        assert p.returncode == 1, (p.returncode, printed)
        assert printed and not SANITIZER.search(printed)


def test_an_unmounted_daemon_ends_loaders_that_are_connected(data, daemon):
    d = daemon(data.path)
    clients = [Client(d.where) for _ in range(5)]
    held = [c.get(path_of(i)) for i, c in enumerate(clients)]
    for c in clients:
        for i in range(20):
            c.ask(path_of(i % 10, 5))
    unmount(d.where, "-z")
    assert d.wait() == 0, d.printed()
    for c, (slot, seen) in zip(clients, held):
        assert c.maps[slot][:len(seen)] == seen
        assert c.is_cut_off()


# --- who is rude ---

def number(kind, n):
    return struct.pack("<IIQ", kind, 0, n)


@pytest.mark.parametrize("message", [
    b"x", bytes(4), bytes(5000), hello()[:-1], hello() + b"x",
    hello(version=VERSION - 1), hello(version=VERSION + 1), hello(magic=1),
    hello(rank=3, world_size=3),
    hello(job=b"j" * 72), hello(job=b"\n"), number(PUT, 1), report()],
    ids=str)
def test_a_bad_beginning_is_disconnected(data, mount, message):
    mnt = mount(data.path, expects="disconnected process")
    client = Client(mnt, greet=False)
    client.send(message)
    assert client.is_cut_off()
    assert Client(mnt).get(path_of(0))[1] == (mnt / path_of(0)).read_bytes()


def test_bad_messages_are_disconnected(data, mount):
    mnt = mount(data.path, expects="disconnected process")
    path = path_of(0).encode()
    for message in (
            hello(), b"", report()[:-8], report() + bytes(8), report(batches=1 << 63),
            report(epoch=1 << 62 | 1), number(PUT, 1), number(PUT, 1 << 63),
            number(99, 1), number(PUT, 1)[:8], number(BATCH, 1),
            struct.pack("<IIQ", GET, len(path) + 1, 1) + path,
            struct.pack("<IIQ", GET, 0xffffffff, 1) + path,
            struct.pack("<IIQ", GET, 0, 1),
            struct.pack("<IIQ", GET, 2000, 1) + b"a" * 2000,
            struct.pack("<IIQ", GET, 3, 1) + b"a\0b"):
        client = Client(mnt)
        client.send(message)
        assert client.is_cut_off()
    client = Client(mnt)
    slot, _ = client.get(path_of(0))
    client.put(slot)
    client.put(slot)
    assert client.is_cut_off()
    # Descriptors that a client sends are closed.
    with open("/dev/null") as null:
        client = Client(mnt)
        socket.send_fds(client.socket, [number(FORGET, 1)], [null.fileno()] * 9)
        assert client.get(path_of(0))[0]


def test_figures_may_not_fall(data, mount):
    mnt = mount(data.path, expects="figures that decrease")
    client = Client(mnt)
    client.send(report(samples=5, epoch=7, number=3))
    client.send(report(samples=5, epoch=6, number=9))
    client.send(report(samples=1 << 61))
    assert client.get(path_of(0))[0]
    client.send(report(samples=4))
    assert client.is_cut_off()


def test_a_flood_is_disconnected(data, mount):
    mnt = mount(data.path, expects="disconnected process")
    flood = Client(mnt)
    with pytest.raises(OSError):
        for i in range(100000):
            flood.ask(path_of(i % 11))
    # A client that never releases gets no more, and others are still served.
    greedy, polite = Client(mnt), Client(mnt)
    got = [greedy.get(path_of(i % 10)) for i in range(100)]
    assert sum(isinstance(g, tuple) for g in got) <= 64
    assert got[-1] == errno.ENOSPC
    for i in range(10):
        slot, seen = polite.get(path_of(i))
        assert seen == (mnt / path_of(i)).read_bytes()
        polite.put(slot)


def test_a_limit_of_file_sizes_ends_no_daemon(data, mount):
    want = (mount(data.path) / path_of(0)).read_bytes()
    mnt = mount(data.path)
    resource.prlimit(int(options_of(mnt)["pid"]), resource.RLIMIT_FSIZE,
                     (4096, 4096))
    assert (mnt / path_of(0)).read_bytes() == want
    assert Client(mnt).get(path_of(0)) == errno.ENOSPC


@pytest.mark.parametrize("path", [
    "/", ".", "..", "../..", "batches", "batches/..", "dataset.json", "x" * 1024,
    "batches/default/0/000000.batch", "batches//" + SPEC, "/etc/passwd",
    f"batches/{SPEC}/../{SPEC}/0/000000.batch", f"batches/{SPEC}/0/000099.batch",
    f"batches/{SPEC}/0/000000.batch/x", "samples/000000/label",
    f"batches/{SPEC}/99999999999999999999/000000.batch"])
def test_other_paths_are_errors(data, mount, path):
    client = Client(mount(data.path))
    assert isinstance(client.get(path), int)
    assert isinstance(client.get(path_of(0)), tuple)


# --- who may ---

def as_another_user(mnt, path):
    """The result for a process of another user: an answer, or none at all."""
    name = options_of(mnt)["zero_copy"]
    r, w = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect("\0" + name[1:])
            try:
                s.send(hello())
                s.recv(100)
                s.send(struct.pack("<IIQ", GET, len(path), 1) + path.encode())
                message = s.recv(100)
            except OSError:
                message = b""
            os.write(w, message or b"closed")
        finally:
            os._exit(0)
    os.close(w)
    os.waitpid(child, 0)
    answer = os.read(r, 100)
    os.close(r)
    if answer == b"closed":
        return None
    return -struct.unpack("<IiQQQQII", answer)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to be another user")
def test_other_users_need_permissions(tmp_path, mount):
    d = dumped.photos(tmp_path / "p.beton", N)
    os.chmod(d.path, 0o644)
    assert as_another_user(mount(d.path, expects="refused user 65534"),
                     path_of(0)) is None
    assert as_another_user(mount(d.path, "-o", "allow_root",
                           expects="refused user 65534"), path_of(0)) is None
    assert as_another_user(mount(d.path, "-o", "allow_other"), path_of(0)) == 0
    os.chmod(d.path, 0o640)
    assert as_another_user(mount(d.path, "-o", "allow_other",
                           expects="refused user 65534"), path_of(0)) is None
    mnt = mount(d.path, "-o", "allow_other,gid=65534")
    assert as_another_user(mnt, path_of(0)) == 0
