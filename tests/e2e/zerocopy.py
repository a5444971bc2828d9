# SPDX-License-Identifier: Apache-2.0
"""A client of the zero-copy socket, with its own implementation of the
messages: it gets batches of a mount's daemon in shared memory."""
import mmap
import os
import socket
import struct

HELLO, GET, PUT, CANCEL, FORGET, WELCOME, BATCH, REPORT = range(1, 9)
VERSION = 4
MAGIC = int.from_bytes(b"betnover", "little")


def options_of(mnt):
    lines = (mnt / ".betonfs/options").read_text().splitlines()
    return {key: value for key, _, value in
            (line.partition("=") for line in lines)}


def hello(version=VERSION, magic=MAGIC, rank=0, world_size=1, job=b"test"):
    return struct.pack("<IIQII72s", HELLO, version, magic, rank, world_size, job)


FIGURES = ("open_s", "batches", "samples", "failed_samples", "read_bytes",
           "waits", "wait_s", "trainer_s", "queue_ready", "queue_capacity",
           *(f"{stage}_{what}" for what in ("busy_s", "delay_s")
             for stage in ("read", "decode", "transform", "upload")),
           *(f"{stage}_{what}" for what in ("busy_s", "delay_s")
             for stage in ("makers", "network")), "entry_hits")


def report(epoch=0, number=0, **figures):
    """Times are in nanoseconds."""
    return struct.pack(f"<IIQQ{len(FIGURES)}Q", REPORT, 0, epoch, number,
                       *(figures.pop(name, 0) for name in FIGURES))


def is_refused(what, *args, **more):
    try:
        what(*args, **more)
    except OSError:
        return True
    return False


def read_direct(fd, step=1 << 20):
    """A batch file that was opened with O_DIRECT."""
    size, at = os.fstat(fd).st_size, 0
    buffer = memoryview(mmap.mmap(-1, max(1, -(-size // step)) * step))
    while at < size:
        got = os.preadv(fd, [buffer[at:at + step]], at)
        if not got:     # it has got shorter: its metadata cannot be read
            break
        at += got
    return buffer[:at]


class Client:
    def __init__(self, mnt, greet=True, timeout=20):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout)
        self.socket.connect("\0" + options_of(mnt)["zero_copy"][1:])
        self.maps = {}
        self.requests = 0
        if greet:
            self.send(hello())
            assert struct.unpack("<II", self.recv()) == (WELCOME, VERSION)

    def send(self, message):
        self.socket.send(message)

    def recv(self):
        message, fds, _, _ = socket.recv_fds(self.socket, 4096, 1)
        if message and fds:
            _, _, _, slot, _, capacity, _, _ = struct.unpack(
                "<IiQQQQII", message)
            self.maps[slot] = mmap.mmap(fds[0], capacity,
                                        prot=mmap.PROT_READ)
            assert is_refused(os.ftruncate, fds[0], 0)
            assert is_refused(os.pwrite, fds[0], b"x", 0)
            assert is_refused(mmap.mmap, fds[0], capacity)
            os.close(fds[0])
        return message

    def ask(self, path):
        self.requests += 1
        path = os.fsencode(path)
        self.send(struct.pack("<IIQ", GET, len(path), self.requests) + path)

    def acquire(self, path):
        """-> (slot, a view of the memory itself) or an errno."""
        self.ask(path)
        kind, result, request, slot, size, *_ = struct.unpack(
            "<IiQQQQII", self.recv())
        assert (kind, request) == (BATCH, self.requests)
        return -result if result else (slot,
                                       memoryview(self.maps[slot])[:size])

    def get(self, path):
        """-> (slot, bytes) or an errno."""
        got = self.acquire(path)
        return got if isinstance(got, int) else (got[0], bytes(got[1]))

    def put(self, slot):
        self.send(struct.pack("<IIQ", PUT, 0, slot))

    def is_cut_off(self):
        try:
            while self.recv():
                pass
        except ConnectionResetError:
            pass
        return True
SPEC = "order=random,batch=4,seed=0,drop_last=1"


def path_of(batch, epoch=0):
    return f"batches/{SPEC}/{epoch}/{batch:06}.batch"
