# SPDX-License-Identifier: Apache-2.0
"""<beton/loader.h> in this process, for what programs do not do."""
import ctypes
import os
import pathlib
import re

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("spec", ctypes.c_char_p),
                ("subset", ctypes.c_char_p),
                ("pipeline", ctypes.c_char_p), ("source", ctypes.c_char_p),
                ("cache", ctypes.c_char_p), ("cache_size", ctypes.c_uint64),
                ("cold_size", ctypes.c_uint64),
                ("delivery", ctypes.c_char_p), ("job", ctypes.c_char_p),
                ("workers", ctypes.c_uint32),
                ("prefetch", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("world", ctypes.c_uint32), ("epoch", ctypes.c_uint64),
                ("epochs", ctypes.c_uint64), ("on_error", ctypes.c_int),
                ("until", ctypes.c_int), ("log", ctypes.c_void_p),
                ("log_arg", ctypes.c_void_p), ("error", ctypes.c_char_p),
                ("error_size", ctypes.c_size_t)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("ndim", ctypes.c_uint32), ("shape", ctypes.c_void_p),
                ("data", ctypes.c_void_p), ("size", ctypes.c_uint64),
                ("offsets", ctypes.c_void_p)]


class Batch(ctypes.Structure):
    _fields_ = [("epoch", ctypes.c_uint64), ("number", ctypes.c_uint64),
                ("rows", ctypes.c_uint32), ("num_outputs", ctypes.c_uint32),
                ("ids", ctypes.POINTER(ctypes.c_uint64)),
                ("valid", ctypes.c_void_p),
                ("outputs", ctypes.POINTER(Tensor))]


class Kept(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("used", ctypes.c_uint64),
                ("samples", ctypes.c_uint64), ("hits", ctypes.c_uint64)]


def load():
    path = BUILD / "libbeton.so"
    if re.search(b"__[at]san_init", path.read_bytes()):
        pytest.skip("python has no sanitizer")
    return ctypes.CDLL(str(path))


def open_loader(lib, path, **options):
    o = Options(size=ctypes.sizeof(Options), **options)
    loader = ctypes.c_void_p()
    assert lib.beton_loader_open(os.fsencode(path), ctypes.byref(o),
                                 ctypes.byref(loader)) == 0
    return loader
