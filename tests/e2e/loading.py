# SPDX-License-Identifier: Apache-2.0
"""A ctypes binding of <beton/loader.h> for tests, in the process of the test."""
import ctypes
import os
import re

import numpy as np
import pytest

import rerouted
from dumped import BUILD


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("spec", ctypes.c_char_p),
                ("subset", ctypes.c_char_p),
                ("pipeline", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("cache", ctypes.c_char_p), ("cache_size", ctypes.c_uint64),
                ("cold_size", ctypes.c_uint64),
                ("delivery", ctypes.c_char_p), ("job", ctypes.c_char_p),
                ("workers", ctypes.c_uint32),
                ("prefetch", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("world_size", ctypes.c_uint32), ("epoch", ctypes.c_uint64),
                ("epochs", ctypes.c_uint64), ("on_error", ctypes.c_int),
                ("until", ctypes.c_int), ("pinned", ctypes.c_uint64),
                ("log", ctypes.c_void_p),
                ("log_arg", ctypes.c_void_p), ("error", ctypes.c_char_p),
                ("error_size", ctypes.c_size_t),
                ("trace", ctypes.c_char_p), ("callback", ctypes.c_bool),
                ("device", ctypes.c_char_p),
                ("interrupted", ctypes.c_void_p),
                ("interrupted_arg", ctypes.c_void_p),
                ("no_padding", ctypes.c_bool),
                ("verify", ctypes.c_uint64),
                ("storage_options", ctypes.c_char_p),
                ("on_demand", ctypes.c_uint64), ("role", ctypes.c_uint64),
                ("spare_workers", ctypes.c_uint64)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("ndim", ctypes.c_uint32),
                ("shape", ctypes.POINTER(ctypes.c_uint64)),
                ("data", ctypes.c_void_p), ("size", ctypes.c_uint64),
                ("offsets", ctypes.c_void_p),
                ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32)]

    def bytes(self):
        return ctypes.string_at(self.data, self.size)

    def array(self):
        """A copy."""
        return np.frombuffer(self.bytes(), self.dtype.decode()) \
            .reshape(self.shape[:self.ndim])


class Batch(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_uint64), ("number", ctypes.c_uint64),
                ("num_samples", ctypes.c_uint32), ("num_outputs", ctypes.c_uint32),
                ("ids", ctypes.POINTER(ctypes.c_uint64)),
                ("valid", ctypes.c_void_p),
                ("outputs", ctypes.POINTER(Tensor))]


class Kept(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("used", ctypes.c_uint64),
                ("samples", ctypes.c_uint64), ("hits", ctypes.c_uint64)]


class Stage(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p)] + [
        (name, ctypes.c_uint64) for name in
        ("items", "bytes", "busy_ns", "input_wait_ns", "room_wait_ns",
         "delay_ns", "p50_ns", "p90_ns", "p99_ns")]


class Pace(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("size", "batches", "samples", "waits", "wait_ns",
                 "trainer_ns", "queue_capacity", "queue_ready", "queue_empty",
                 "queue_full")]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
INFO = 2

ENODATA = -61


class Loader:
    """Ends with the block."""

    def __init__(self, path, **options):
        so = BUILD / "libbeton.so"
        if re.search(b"__[at]san_init", so.read_bytes()):
            pytest.skip("python has no sanitizer")
        self.lib = ctypes.CDLL(str(so))
        self.handle = ctypes.c_void_p()
        o = Options(**{k: v.encode() if isinstance(v, str) else v
                       for k, v in options.items()})
        o.size = ctypes.sizeof(o)
        self.printed = []
        self.log = LOG(lambda _, level, text:
                       self.printed.append((level, text.decode())))
        o.log = ctypes.cast(self.log, ctypes.c_void_p)
        assert self.lib.beton_loader_open(
            os.fsencode(rerouted.url(path)), ctypes.byref(o), ctypes.byref(self.handle)) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.beton_loader_close(self.handle)

    def next(self):
        """A batch, to be released, or None at the end of an epoch."""
        batch = ctypes.POINTER(Batch)()
        r = self.lib.beton_loader_next(self.handle, ctypes.byref(batch))
        assert r in (0, ENODATA)
        return None if r else batch.contents

    def release(self, batch):
        self.lib.beton_loader_release(self.handle, ctypes.byref(batch))

    def epoch(self):
        """The batches of the rest of an epoch, dropped; how many."""
        n = 0
        while (batch := self.next()):
            self.release(batch)
            n += 1
        return n

    def stats(self):
        """name -> what a stage counts"""
        out = (Stage * 16)()
        n = self.lib.beton_loader_stats(self.handle, out, 16)
        return {s.name.decode(): s for s in out[:n]}

    def throughput(self, size=None):
        out = Pace(size=ctypes.sizeof(Pace) if size is None else size)
        r = self.lib.beton_loader_throughput(self.handle, ctypes.byref(out))
        return r or out

    def seek(self, epoch):
        assert self.lib.beton_loader_seek(self.handle,
                                          ctypes.c_uint64(epoch)) == 0

    def state(self):
        text = ctypes.create_string_buffer(4096)
        assert self.lib.beton_loader_state(self.handle, text, 4096) == 0
        return text.value

    def load(self, state):
        assert self.lib.beton_loader_load(self.handle, state) == 0

    def entry_points(self):
        """The capacity, used bytes, samples and hits."""
        out = (ctypes.c_uint64 * 5)(ctypes.sizeof(ctypes.c_uint64) * 5)
        assert self.lib.beton_loader_entry_points(self.handle, out) == 0
        return tuple(out[1:])

    def kept(self):
        out = Kept()
        self.lib.beton_loader_image_cache(self.handle, ctypes.byref(out))
        return out
