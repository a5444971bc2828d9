# SPDX-License-Identifier: Apache-2.0
"""The beginning of a pipeline as a pipeline string, see beton-operations(7), and
the form of its result as a tensor of FFCV."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

IMAGE, SCALAR, ARRAY, BYTES = "image", "scalar", "array", "bytes"


class Files:
    """Values that a pipeline string can only name as files. They are files in
    memory, until the block ends."""

    def __init__(self) -> None:
        self._fds: list[int] = []

    def _new(self) -> tuple[int, str]:
        fd = os.memfd_create("beton-ffcv", os.MFD_CLOEXEC)
        self._fds.append(fd)
        return fd, f'"/proc/self/fd/{fd}"'

    def ids(self, numbers: Iterable[int]) -> str:
        fd, name = self._new()
        with open(fd, "w", closefd=False) as f:
            f.writelines(f"{int(i)}\n" for i in numbers if i >= 0)
        return name

    def array(self, a: Any) -> str:
        fd, name = self._new()
        with open(fd, "wb", closefd=False) as f:
            np.save(f, np.ascontiguousarray(a))
        return name

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


def number(x: Any) -> str:
    """As a word of a text."""
    v = float(x)
    return str(int(v)) if v.is_integer() and abs(v) < 2**53 else repr(v)


def numbers(xs: Iterable[Any]) -> str:
    """As a list in quotes."""
    return '"' + ",".join(map(number, xs)) + '"'


class Chain:
    """Operations so far, and what the values are after them: `dtype` in memory,
    `tensor` or array, channels `first` or last, `planar` where they are so in
    memory too, and so on. `device` -1 is the CPU."""

    def __init__(self, kind: str, dtype: str, files: Files,
                 gpu: bool = True, mixing: bool = True) -> None:
        self.kind = kind
        self.dtype = dtype
        self.files = files
        self.gpu = gpu
        self.mixing = mixing
        self.ops: list[str] = []
        self.device = -1
        self.tensor = False
        self.first = False
        self.planar = False
        self.squeezed = False
        self.halves = False     # float16 that FFCV calls int16
        self.coloured = False   # a color since pixels were last made
        self.mixed = -1         # where mixup stands

    # --- where operations may stand, as the library has it ---

    def may_move(self) -> bool:
        """Pixels, to other places."""
        return self.kind == IMAGE and not self.planar and self.device < 0

    def may_colour(self) -> bool:
        return (self.kind == IMAGE and not self.planar
                and self.dtype == "uint8")

    def may_resize(self) -> bool:
        return self.may_move() and self.may_colour() and not self.coloured

    def may_whole(self) -> bool:
        """Whole images of bytes."""
        return self.may_move() and self.may_colour()

    def mix(self, alpha: float, same: bool) -> str | None:
        """Rows, once."""
        if not self.mixing or self.mixed >= 0 or not \
                1 / 1024 <= alpha <= 1024:
            return None
        self.mixed = len(self.ops)
        return f"mixup({number(alpha)}, {'batch' if same else 'sample'})"

    # --- the result ---

    def text(self) -> str:
        return "".join(" | " + op for op in self.ops if op)

    def finish(self, value: Any) -> Any:
        """Return the value as FFCV's operation returns it, without a copy."""
        if self.kind == SCALAR and not self.squeezed:
            value = value.reshape(-1, 1)
        if self.halves:
            value = value.view(torch.int16)
        if self.first and not self.planar:
            value = value.permute(0, 3, 1, 2)
        if not self.tensor and isinstance(value, torch.Tensor):
            value = value.numpy()
        return value
