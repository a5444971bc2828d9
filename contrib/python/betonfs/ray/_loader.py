# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import ray

from .._checks import truth, whole
from .._dataset import Path
from .._loader import Loader as _Loader
from .._pipeline import Pipeline
from .._ranks import distributed, place
from ._team import Team, maker_class

# Arguments of a Loader that are of the trainer alone.
_OWN = ("transforms", "device", "tensors", "batch", "rank", "world_size",
        "prefetch", "workers", "num_workers", "job", "pinned", "epoch")


def _connect() -> None:
    """Join the cluster that this machine belongs to."""
    if ray.is_initialized():
        return
    try:
        ray.init(address="auto")
    except ConnectionError as e:
        raise ConnectionError(
            "no Ray cluster answers here: start one by `ray start --head`, or "
            "join one by `ray start --address=HOST:6379`, or call ray.init() "
            f"first for makers on this machine alone. Ray's reason: {e}") \
            from None


def _count(makers: object) -> int | str:
    if isinstance(makers, str):
        if makers != "auto":
            raise ValueError(f'makers={makers!r}: a number, or "auto"')
        return "auto"
    return int(whole("makers", makers, 0, 4096))


def _train_place(rank: int | None,
                 world_size: int | None) -> tuple[int, int]:
    """Rank and world size as of a betonfs.Loader; but in a worker of Ray Train
    without torch.distributed, those of the worker."""
    train = sys.modules.get("ray.train")
    if train and rank is None and world_size is None and not distributed():
        try:
            context = train.get_context()
            found = context.get_world_rank(), context.get_world_size()
        except RuntimeError:    # this is no worker of Ray Train
            found = None, None
        if found[0] is not None and found[1] is not None:
            rank, world_size = found
    return place(rank, world_size)


def _absolute(path: Path | Sequence[Path]) -> Path | list[Path]:
    """Makers have other working directories."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return _one_absolute(path)
    return [_one_absolute(each) for each in path]


def _one_absolute(path: Path) -> Path:
    text = os.fsdecode(path)
    return path if "://" in text or text.startswith("{") else os.path.abspath(text)


class Loader(_Loader):
    """Iterate over batches that other machines of a Ray cluster decode.

        loader = betonfs.ray.Loader("s3://bucket/train.beton", 256, makers=8,
            pipeline={"image": "random_resized_crop(224) | flip | cuda(0)"
                               " | normalize(imagenet) | half | chw",
                      "label": "label"})
        for batch in loader:
            train(batch["image"], batch["label"])

    Order, bits, checkpoints and all attributes are those of
    :class:`betonfs.Loader`, and a checkpoint moves between both. Makers may
    start, end and fail at any time: no batch is lost, and none comes twice.

    A maker sends images as 8-bit pixels. This machine runs the operations after
    that, such as normalize and float, on its GPU or its CPU.

    Parameters
    ----------
    path
        As in :class:`betonfs.Loader`. All nodes must be able to open it: use a
        URL, or a path that is the same everywhere, such as that of NFS.
        Credentials are not sent to the makers: each node has its own.
    makers
        The number of makers of this rank, or "auto": begin with one, and ask
        for one more, also from Ray's autoscaler, as long as the trainer waits
        for more than 1 % of the time and each new maker makes it faster
        (default: "auto").
    maker_options
        Options of Ray's actors, such as ``{"num_cpus": 4}``: a maker decodes
        with as many threads. By default a maker has one CPU of another node
        than this one, if there is one.
    local
        True: this machine's `workers` decode as well, and get their batches
        first. False: they only replace makers that are lost or stalled
        (default: True).
    arguments
        All other arguments are those of :class:`betonfs.Loader`. In a worker of
        Ray Train, rank and world size are those of the worker. `prefetch` is
        the number of batches that are in the making or ready; each maker works
        on two (default: 0, which means 18, and fewer if they would need more
        than 2 GiB).

    Raises
    ------
    ConnectionError
        There is no Ray cluster here.

    Notes
    -----
    `loader.stats()["makers"]` has the number of makers that are linked now
    (`makers`), the `batches`, `samples` and `bytes` that came from makers, the
    batches that began `here`, those that were `repeated` because a maker
    stalled, those that a maker `refused`, the makers `lost`, and `latency_s`, the
    mean time from asking a maker to the end of its answer.

    Batches travel unencrypted, through TCP connections from this machine to
    the nodes of the makers. A random key keeps other programs out. Use it in a
    network that you would trust with Ray itself.
    """

    _role = 2
    _place = staticmethod(_train_place)

    def __init__(
        self,
        path: Path | Sequence[Path],
        batch_size: int | None = None,
        order: str | None = None,
        seed: int | None = None,
        pipeline: Pipeline | None = None,
        *,
        makers: int | str = "auto",
        maker_options: Mapping[str, Any] | None = None,
        local: bool = True,
        **arguments: Any,
    ) -> None:
        count = _count(makers)
        self._spare_workers = not truth("local", local)
        self._own = {"makers": makers, "maker_options": maker_options,
                     "local": local}
        _connect()
        actors = maker_class({} if maker_options is None else maker_options)
        super().__init__(path, batch_size, order, seed, pipeline, **arguments)
        sent = {k: v for k, v in self._arguments.items() if k not in _OWN}
        self._team = Team(self._core, {**sent, "path": _absolute(path), "tensors": "numpy",
                                       "rank": 0, "world_size": 1}, count,
                          actors)
        self._team_finalizer = weakref.finalize(self, self._team.close)

    def close(self) -> None:
        super().close()
        self._team_finalizer()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, ({**self._arguments, **self._own}, self.state_dict())


def _reopen(arguments: dict[str, Any], state: dict[str, Any]) -> Loader:
    loader = Loader(**arguments)
    loader.load_state_dict(state)
    return loader
