# SPDX-License-Identifier: Apache-2.0
"""The rank of this process in its job."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ._checks import is_whole


def _of_environment(name: str, least: int) -> int:
    text = os.environ[name].strip()
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise ValueError(f"{name}={os.environ[name]!r} of the environment: a "
                         f"whole number from {least}; rank= and world_size= stand "
                         "instead of it")
    return int(text)


def distributed() -> tuple[int, int] | None:
    """Return rank and world size of torch.distributed, if it is
    initialized."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return int(dist.get_rank()), int(dist.get_world_size())


def _process() -> tuple[int, int]:
    found = distributed()
    if found:
        return found
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _of_environment("RANK", 0), _of_environment("WORLD_SIZE", 1)
    if "WORLD_SIZE" in os.environ and _of_environment("WORLD_SIZE", 1) > 1:
        warnings.warn(
            f"WORLD_SIZE={os.environ['WORLD_SIZE']} and no RANK in the "
            "environment: this process takes all batches, as if it were "
            "alone; give rank= and world_size=, or set RANK", UserWarning,
            stacklevel=5)
    return 0, 1


def worker_place() -> tuple[int, int] | None:
    """Return number and count of the DataLoader's workers, in a worker."""
    data = sys.modules.get("torch.utils.data")
    find: Callable[[], Any] | None = getattr(data, "get_worker_info", None)
    info = find() if find else None
    return None if info is None else (int(info.id), int(info.num_workers))


def check_place(rank: int | None, world_size: int) -> None:
    """Raise RuntimeError if a loader that took this process for the only one
    (`rank` None, `world_size` 1) is one of several by now."""
    now = distributed() if rank is None and world_size == 1 else None
    if now and now[1] > 1 and worker_place() is None:
        raise RuntimeError(
            "this Loader was opened before torch.distributed was initialized, "
            "so that every rank would get the whole epoch: open it after "
            "init_process_group(), or pass rank=0, world_size=1")


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and world size of this process: as given, or those of
    torch.distributed if it is initialized, or those of the environment. In a
    DataLoader, each worker of each process counts as a rank."""
    if rank is not None and world_size is not None:
        if is_whole(world_size) and world_size == 0:
            raise ValueError("world_size=0: the number of processes, from 1")
        return rank, world_size
    if rank is not None or world_size is not None:
        given = f"rank={rank}" if world_size is None else f"world_size={world_size}"
        other = "world_size=" if world_size is None else "rank="
        raise ValueError(f"{given} without {other}: they are given together, "
                         "or not at all")
    rank, world_size = _process()
    worker = worker_place()
    if worker is None:
        return rank, world_size
    number, count = worker
    if count > 1 and not number:
        warnings.warn(
            f"this Loader is in one of {count} workers of a DataLoader, and "
            "each takes its share of the batches. A Loader has threads of its "
            "own: iterate over it, or give the DataLoader num_workers=0",
            UserWarning, stacklevel=4)
    # The DataLoader asks its workers in turn, so that batches keep their
    # order.
    return rank + world_size * number, world_size * count


# --- whether the ranks agree ---

# Number of loaders that this process opened as one of several ranks, by
# dataset.
_opened: dict[str, int] = {}


def _first_text(key: str, text: str) -> str | None:
    """Return the text of the first rank with this key, or None if the ranks
    have no common store."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    find: Callable[[], Any] | None = getattr(c10d, "_get_default_store", None)
    try:
        return str(find().compare_set(key, "", text).decode()) if find else None
    except (RuntimeError, ValueError, NotImplementedError):
        return None


def _beside(spec: str, other: str) -> str:
    """Return the keys of a complete spec that differ from another one."""
    keys = other.split(",")
    own = [key for key in spec.split(",") if key not in keys]
    return ",".join(own) or spec


def warn_of_disagreement(rank: int, fingerprint: str, spec: str) -> None:
    """Warn if another rank of torch.distributed opened this one of its loaders
    of a dataset with another spec: batches of two epochs would be mixed."""
    found = distributed()
    if not found or found[1] < 2 or worker_place() is not None:
        return
    nth = _opened[fingerprint] = _opened.get(fingerprint, 0) + 1
    first = _first_text(f"betonfs/{fingerprint}/{nth}", f"{rank} {spec}")
    if first is None:
        return
    other, _, theirs = first.partition(" ")
    if theirs != spec:
        warnings.warn(
            f"rank {rank} has {_beside(spec, theirs)}, and rank {other} has "
            f"{_beside(theirs, spec)}: ranks share one epoch, of the same "
            "seed, batch_size and subset; otherwise samples come twice or "
            "never. For an epoch of its own, pass rank=0, world_size=1",
            UserWarning, stacklevel=4)


# --- who iterates ---

# Frames between a loader and a wrapper of accelerate: torch's iterator, its
# fetcher, and the generators of both.
_FRAMES_MAX = 12

# Modules whose frames are looked into, and no others: before Python 3.13, a look
# at the variables of a frame makes a copy, which keeps the user's last batch.
_FETCH = "torch.utils.data._utils.fetch"
_ACCELERATE = "accelerate.data_loader"
_WRAPPERS = _FETCH, _ACCELERATE


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_FRAMES_MAX):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def check_caller(world_size: int) -> None:
    """Raise the error of a DataLoader that would stack batches, and of
    accelerate's wrappers, which give each rank a share of this rank's share."""
    if "torch.utils.data" not in sys.modules:
        return
    for frame in _callers():
        module = frame.f_globals.get("__name__")
        if module not in _WRAPPERS:
            continue
        if module == _FETCH and frame.f_locals.get("auto_collation"):
            raise ValueError(
                "a DataLoader with a batch_size puts batches of a Loader into "
                "batches: iterate over the Loader itself, or give the "
                "DataLoader batch_size=None")
        owner = type(frame.f_locals.get("self"))
        if world_size > 1 and owner.__module__ == _ACCELERATE and \
                owner.__name__ in ("DataLoaderDispatcher",
                                   "IterableDatasetShard"):
            raise RuntimeError(
                "accelerate shares the batches of this rank among all ranks, "
                "and a Loader has taken its share already, so that samples "
                "would be lost: prepare() the Loader itself, which accelerate "
                "leaves as it is, and no DataLoader of it")
