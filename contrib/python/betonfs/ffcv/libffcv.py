# SPDX-License-Identifier: Apache-2.0
"""FFCV's functions on bytes and pixels, by this package's codec.

Plain Python calls them with NumPy arrays, and so does code that numba compiles:
``Compiler.compile(imdecode)`` gives such a function. They hold neither the GIL
nor a lock. Images are uint8 arrays of (height, width, 3) in C order.
"""
from __future__ import annotations

from ctypes import (CDLL, c_bool, c_int, c_int64, c_size_t, c_ssize_t,
                    c_uint32, c_uint64, c_void_p)
from typing import Any

from .. import _beton

lib = CDLL(_beton.__file__)

ctypes_imdecode = lib.beton_ffcv_imdecode
ctypes_imdecode.argtypes = [
    c_void_p, c_uint64, c_uint32, c_uint32, c_void_p, c_uint32, c_uint32,
    c_uint32, c_uint32, c_uint32, c_uint32, c_bool, c_bool]
ctypes_resize = lib.beton_ffcv_resize
ctypes_resize.argtypes = 11 * [c_int64]
ctypes_pad = lib.beton_ffcv_pad
ctypes_pad.argtypes = 11 * [c_int64]
ctypes_memcopy = lib.beton_ffcv_memcpy
ctypes_memcopy.argtypes = [c_void_p, c_void_p, c_uint64]
ctypes_memcopy.restype = None
read_c = CDLL(None).pread
read_c.argtypes = [c_int, c_void_p, c_size_t, c_int64]
read_c.restype = c_ssize_t


def imdecode(source: Any, dst: Any, source_height: int, source_width: int,
             crop_height: Any = None, crop_width: Any = None,
             offset_x: int = 0, offset_y: int = 0, scale_factor_num: int = 1,
             scale_factor_denom: int = 1, enable_crop: bool = False,
             do_flip: bool = False) -> Any:
    """Decode a JPEG, or with `enable_crop` a part of it, to the beginning of
    `dst`.

    `source` is its bytes, `source_height` and `source_width` its size. Pixels
    become scale_factor_num/scale_factor_denom as many per side, at most 1, and
    `do_flip` exchanges left and right. ValueError: not a JPEG of that size.
    In compiled code give all arguments.
    """
    rows = int(crop_height if enable_crop else source_height)
    columns = int(crop_width if enable_crop else source_width)
    more = scale_factor_denom - 1
    rows = (rows * scale_factor_num + more) // scale_factor_denom
    columns = (columns * scale_factor_num + more) // scale_factor_denom
    if 3 * rows * columns > dst.size * dst.itemsize:
        raise ValueError("imdecode: dst is too small for the image")
    r = ctypes_imdecode(source.ctypes.data, source.size, source_height,
                        source_width, dst.ctypes.data, crop_height or 0,
                        crop_width or 0, offset_x, offset_y, scale_factor_num,
                        scale_factor_denom, enable_crop, do_flip)
    if r != 0:
        raise ValueError("imdecode: not a JPEG of the size that was given, "
                         "or damaged")
    return r


def resize_crop(source: Any, start_row: int, end_row: int, start_col: int,
                end_col: int, destination: Any) -> None:
    """Resize rows and columns [start, end) of an image to all of `destination`,
    by the area that pixels cover. ValueError: they are not inside."""
    if source.strides[0] != 3 * source.shape[1] or source.strides[-1] != 1 \
            or destination.strides[0] != 3 * destination.shape[1] \
            or destination.strides[-1] != 1:
        raise ValueError("resize_crop: images are uint8 arrays of (height, width, 3) "
                         "in C order")
    if ctypes_resize(0, source.ctypes.data, source.shape[0], source.shape[1],
                     start_row, end_row, start_col, end_col,
                     destination.ctypes.data, destination.shape[0],
                     destination.shape[1]) != 0:
        raise ValueError("resize_crop: the crop is not inside the image")


def pad(source: Any, start_row: int, end_row: int, start_col: int,
        end_col: int, destination: Any) -> None:
    """Copy rows and columns [start, end) of an image to the top left of
    `destination`; the rest of that becomes black. ValueError: they are not
    inside the image, or do not fit."""
    if source.strides[0] != 3 * source.shape[1] or source.strides[-1] != 1 \
            or destination.strides[0] != 3 * destination.shape[1] \
            or destination.strides[-1] != 1:
        raise ValueError("pad: images are uint8 arrays of (height, width, 3) "
                         "in C order")
    if ctypes_pad(0, source.ctypes.data, source.shape[0], source.shape[1],
                  start_row, end_row, start_col, end_col,
                  destination.ctypes.data, destination.shape[0],
                  destination.shape[1]) != 0:
        raise ValueError("pad: the crop is not inside the image, or larger "
                         "than the destination")


def memcpy(source: Any, dest: Any) -> None:
    """Copy the bytes of an array to the beginning of another one. Both are in C
    order. ValueError: they do not fit."""
    if source.size * source.itemsize > dest.size * dest.itemsize:
        raise ValueError("memcpy: the source is larger than the destination")
    ctypes_memcopy(source.ctypes.data, dest.ctypes.data,
                   source.size * source.itemsize)


def read(fileno: int, destination: Any, offset: int) -> Any:
    """Fill an array of uint8 with bytes of a file from `offset` on; returns how
    many there are."""
    return read_c(fileno, destination.ctypes.data, destination.size, offset)
