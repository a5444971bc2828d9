# SPDX-License-Identifier: Apache-2.0
"""What a Loader is given, as the texts of the library."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Subset = str | range | slice | Iterable[int]


def spec_keys(spec: str | None) -> list[str]:
    """The keys of a text."""
    return [part.partition("=")[0].strip() for part in (spec or "").split(",")]


def spec_text(spec: str | None, **keys: Any) -> str:
    """The keys that are given, after those of `spec`, if that is given."""
    parts = [spec.strip()] if spec and spec.strip() else []
    for key, value in keys.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = int(value)
        parts.append(f"{key}={value}")
    return ",".join(parts)


def quoted(name: str) -> str:
    """The name as a string of a pipeline, which is a field where it is first."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def device_text(device: Any) -> str | None:
    """Return a device as <beton/loader.h> has it; N is that GPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    return None if device is None else str(device)


def whole_weights(weights: ArrayLike, bits: int = 62) -> NDArray[np.uint64]:
    """Whole numbers in the ratios of the weights, of together about 2^bits. Only
    powers of two are multiplied by, which is exact everywhere."""
    given = np.asarray(weights, np.float64)
    if given.ndim != 1 or not len(given):
        raise ValueError("weights are a list of numbers")
    if not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ValueError("weights are numbers from 0, and not all 0")
    bits -= (len(given) - 1).bit_length()
    _, exponent = np.frexp(given.max())
    # A weight that is not 0 does not become 0.
    scaled = np.ceil(np.ldexp(given, bits - int(exponent)))
    return np.asarray(scaled.astype(np.uint64))


class SubsetFile:
    """A subset as the library takes it: `key` for the spec, and `file`, if its
    ids are listed in one, which is memory and lives as long as the block. With
    weights there is one for every sample of it, or of a dataset, which has
    `samples` then."""

    def __init__(self, subset: Subset | None,
                 weights: ArrayLike | None = None) -> None:
        self.key: str | None = None
        self.file: str | None = None
        self.samples: int | None = None
        self._fd = -1
        self._weights = None if weights is None else whole_weights(weights)
        if self._weights is not None:
            if isinstance(subset, str):
                raise ValueError("weights go with a subset of numbers; the "
                                 "file of a named one has its own")
            if subset is None:
                self.samples = len(self._weights)
                subset = range(self.samples)
        if isinstance(subset, slice):
            if subset.step not in (None, 1) or subset.stop is None:
                raise ValueError("a slice as a subset needs an end, and no "
                                 "step")
            subset = range(subset.start or 0, subset.stop)
        if isinstance(subset, str):
            self.key, _, file = subset.partition(":")
            self.file = subset if file else None
        elif isinstance(subset, range) and subset.step == 1 and len(subset) \
                and self._weights is None:
            self.key = f"{subset.start}-{subset.stop}"
        elif subset is not None:
            self._list(subset)

    def _list(self, ids: Iterable[int]) -> None:
        numbers = np.fromiter(ids, np.int64) if not isinstance(
            ids, np.ndarray) else ids
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError("a subset is a list of sample numbers")
        lines = map(str, numbers.tolist())
        if self._weights is not None:
            if len(numbers) != len(self._weights):
                raise ValueError(f"{len(self._weights)} weights for "
                                 f"{len(numbers)} samples")
            lines = map("{} {}".format, lines, self._weights.tolist())
        text = "\n".join(lines) + "\n"
        self._fd = os.memfd_create("beton-subset", os.MFD_CLOEXEC)
        with open(self._fd, "w", closefd=False) as f:
            f.write(text if len(numbers) else "")
        self.key = "ids"
        self.file = f"ids:/proc/self/fd/{self._fd}"

    def __enter__(self) -> SubsetFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def place(rank: int | None, world: int | None) -> tuple[int, int]:
    """This process among those of the job: as given, or as torch.distributed
    says if it was initialised, or as the environment says."""
    if rank is not None and world is not None:
        return rank, world
    if rank is not None or world is not None:
        raise ValueError("rank and world are given together or not at all")
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is not None and dist.is_available() and dist.is_initialized():
        return int(dist.get_rank()), int(dist.get_world_size())
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 1
