# SPDX-License-Identifier: Apache-2.0
"""Types, places and shapes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..._ops import rows
from ..._tensors import type_name
from .._chain import BYTES, IMAGE, SCALAR, Chain, numbers
from .._draws import Draws
from ._base import BuiltIn, dtype_name, numpy_dtype, torch_dtype

# Conversions of the library that equal torch's; not fractions to whole numbers.
_WORDS = {type_name(op["dtype"]): word for word, op in rows().items()
          if op["dtype"] not in ("", "|u1")}
_EXACT = {"uint8": _WORDS.keys(), "int64": {"bfloat16", "float32", "float64"},
          "float32": {"bfloat16", "float16"},
          "float64": {"bfloat16", "float32"}}


class ToTensor(BuiltIn):
    """A tensor of the same memory."""

    def native(self, chain: Chain) -> str | None:
        chain.tensor = True
        return ""

    def apply(self, value: Any, draws: Draws) -> Any:
        if isinstance(value, torch.Tensor):
            return value
        return torch.from_numpy(np.ascontiguousarray(value))


class ToDevice(BuiltIn):
    """Moves tensors to a device."""

    def __init__(self, device: Any, non_blocking: bool = True) -> None:
        super().__init__()
        self.device = torch.device(device)
        self.non_blocking = non_blocking

    def native(self, chain: Chain) -> str | None:
        if self.device.type == "cpu" and chain.device < 0:
            chain.tensor = True
            return ""
        if (self.device.type != "cuda" or chain.device >= 0 or not chain.gpu
                or chain.kind == BYTES or not torch.cuda.is_available()):
            return None
        index = self.device.index
        if index is None:
            index = torch.cuda.current_device()
        chain.device = index
        chain.tensor = True
        return f"cuda({index})"

    def apply(self, value: Any, draws: Draws) -> Any:
        return torch.as_tensor(value).to(self.device,
                                         non_blocking=self.non_blocking)


class ToTorchImage(BuiltIn):
    """Batch, channel, height, width; in memory as it was if channels_last,
    else so too."""

    def __init__(self, channels_last: bool = True,
                 convert_back_int16: bool = True) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.convert_back_int16 = convert_back_int16

    def native(self, chain: Chain) -> str | None:
        if chain.kind != IMAGE or chain.first:
            return None
        chain.first = chain.tensor = True
        if self.convert_back_int16:
            chain.halves = False
        if self.channels_last:
            return ""
        chain.planar = True
        return "chw"

    def apply(self, value: Any, draws: Draws) -> Any:
        value = torch.as_tensor(value)
        if value.dtype == torch.int16 and self.convert_back_int16:
            value = value.view(torch.float16)
        value = value.permute(0, 3, 1, 2)
        how = torch.channels_last if self.channels_last \
            else torch.contiguous_format
        return value.contiguous(memory_format=how)


class Convert(BuiltIn):
    """Another type of numbers. Values of bfloat16 are tensors, because NumPy
    does not have this type."""

    def __init__(self, target_dtype: Any) -> None:
        super().__init__()
        self.target_dtype = target_dtype

    def native(self, chain: Chain) -> str | None:
        if chain.halves or chain.kind == BYTES:
            return None
        target = dtype_name(self.target_dtype)
        if target == chain.dtype:
            return ""
        if target not in _EXACT.get(chain.dtype, ()):
            return None
        chain.dtype = target
        chain.tensor = chain.tensor or target == "bfloat16"
        return _WORDS[target]

    def apply(self, value: Any, draws: Draws) -> Any:
        if dtype_name(self.target_dtype) == "bfloat16":
            value = torch.as_tensor(value)
        if isinstance(value, torch.Tensor):
            return value.to(torch_dtype(self.target_dtype))
        return value.astype(numpy_dtype(self.target_dtype))


class View(BuiltIn):
    """The same bytes as another type, or, of a number or a tuple of them, in
    another shape; the batch's axis is the first one of it. View(-1) gives
    labels of (batch)."""

    def __init__(self, target_dtype: Any) -> None:
        super().__init__()
        self.target_dtype = target_dtype
        self.shape: tuple[int, ...] | None = None
        if isinstance(target_dtype, int):
            self.shape = target_dtype,
        elif isinstance(target_dtype, (tuple, list)) and all(
                isinstance(n, int) for n in target_dtype):
            self.shape = tuple(target_dtype)

    def native(self, chain: Chain) -> str | None:
        if self.shape is not None:
            if self.shape != (-1,) or chain.kind != SCALAR:
                return None
            chain.squeezed = True
            return ""
        if chain.halves and dtype_name(self.target_dtype) == "float16":
            chain.halves = False
            return ""
        return None

    def apply(self, value: Any, draws: Draws) -> Any:
        if self.shape is not None:
            return value.reshape(self.shape)
        if isinstance(value, torch.Tensor):
            return value.view(torch_dtype(self.target_dtype))
        return value.view(numpy_dtype(self.target_dtype))


class Squeeze(BuiltIn):
    """Without axes of length 1; never without the one of the batch, unless
    that is named."""

    def __init__(self, *dims: int | Sequence[int]) -> None:
        super().__init__()
        self.dims = tuple(
            axis for given in dims
            for axis in (given if isinstance(given, Sequence) else (given,)))

    def native(self, chain: Chain) -> str | None:
        if chain.kind != SCALAR or self.dims not in ((), (1,), (-1,)):
            return None
        chain.squeezed = True
        return ""

    def apply(self, value: Any, draws: Draws) -> Any:
        dims = self.dims or tuple(range(1, value.ndim))
        ones = {d for d in dims if value.shape[d] == 1}
        if isinstance(value, torch.Tensor):
            return value.squeeze(tuple(ones)) if ones else value
        return value.squeeze(axis=tuple(ones)) if ones else value


class NormalizeImage(BuiltIn):
    """(value - mean) / std of each channel, both in units of bytes."""

    def __init__(self, mean: Any, std: Any, type: Any) -> None:
        super().__init__()
        self.mean = np.asarray(mean, float)
        self.std = np.asarray(std, float)
        if dtype_name(type) == "bfloat16":
            raise TypeError("NormalizeImage makes no bfloat16: use "
                            "NormalizeImage(mean, std, np.float32), ToTensor() "
                            "and Convert(torch.bfloat16)")
        self.type = numpy_dtype(type)
        table = (np.arange(256)[:, None] - self.mean) / self.std
        self.table = np.broadcast_to(table, (256, 3)).astype(self.type)

    def native(self, chain: Chain) -> str | None:
        mean, std = self.mean / 255, self.std / 255
        if (not chain.may_colour() or self.type.name not in
                ("float16", "float32") or (mean < 0).any() or (mean > 1).any()
                or (std <= 0).any() or (std > 16).any()):
            return None
        chain.dtype = self.type.name
        # numba has no halves, so that FFCV's arrays of them are int16.
        chain.halves = self.type == np.float16 and not chain.tensor
        text = f"normalize({numbers(np.atleast_1d(mean))}, " \
               f"{numbers(np.atleast_1d(std))})"
        return text + (" | half" if self.type == np.float16 else "")

    def apply(self, value: Any, draws: Draws) -> Any:
        tensor = isinstance(value, torch.Tensor)
        first = tensor and value.shape[1] == 3 != value.shape[3]
        if tensor:
            table = torch.from_numpy(self.table.copy()).to(value.device)
            if first:
                value = value.permute(0, 2, 3, 1)
            out = torch.stack([table[:, c][value[..., c].long()]
                               for c in range(3)], -1)
            return out.permute(0, 3, 1, 2) if first else out
        pixels = np.stack(
            [self.table[:, c][value[..., c]] for c in range(3)], -1)
        return pixels.view(np.int16) if self.type == np.float16 else pixels


class ModuleWrapper(BuiltIn):
    """A torch.nn.Module, or anything that is called with a tensor."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def apply(self, value: Any, draws: Draws) -> Any:
        return self.module(torch.as_tensor(value))
