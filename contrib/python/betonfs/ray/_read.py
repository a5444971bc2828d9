# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._checks import is_url, shown, whole
from .._dataset import Path
from .._loader import Loader
from .._pipeline import Pipeline
from ._needed import needed

if TYPE_CHECKING:
    import ray.data

_EPOCHS_MAX = 1 << 40

# Arguments of a Loader that have one value here.
_FIXED = {
    "tensors": "the columns are Arrow's",
    "batch": "an output is a column",
    "on_demand": "the tasks ask for their batches by name",
    "rank": "the tasks of all nodes make one sequence of batches",
    "world_size": "the tasks of all nodes make one sequence of batches",
}


def _check(arguments: Mapping[str, Any]) -> None:
    for name in arguments:
        if name in _FIXED:
            raise TypeError(f"read() has no argument {name}=: {_FIXED[name]}")


def absolute(path: Any) -> Any:
    """The path as processes with another working directory need it."""
    if isinstance(path, (list, tuple)):
        return [absolute(one) for one in path]
    if not isinstance(path, (str, os.PathLike)) or is_url(os.fspath(path)) \
            or not os.fspath(path):
        return path                     # the loader refuses other types
    return os.path.abspath(os.fspath(path))


def remote_args(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"ray_remote_args={shown(given)}: a dict of arguments "
                        'of ray.remote(), such as {"num_cpus": 4}')
    return {"num_cpus": 1, **(given or {})}


def _split(function: Any, remote: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ray.remote() as this function of Ray Data takes them: by
    name in newer releases, and the others in a dict."""
    named = inspect.signature(function).parameters
    rest = {k: v for k, v in remote.items() if k not in named}
    own = {k: v for k, v in remote.items() if k in named}
    return {**own, "ray_remote_args": rest} if rest else own


def threads(remote: Mapping[str, Any]) -> int:
    """The number of threads of a task that has these arguments of
    ray.remote()."""
    return max(1, int(remote.get("num_cpus") or 1))


def read(
    path: Path | Sequence[Path],
    batch_size: int | None = None,
    order: str | None = None,
    seed: int | None = None,
    pipeline: Pipeline | None = None,
    *,
    epoch: int = 0,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> ray.data.Dataset:
    """Return the batches of one epoch as a ray.data.Dataset, for inference,
    curation and statistics. Each task of Ray Data makes a run of consecutive
    batches with the threads of betonfs.

        dataset = betonfs.ray.read("val.beton", 256, train=False, pipeline={
            "image": "center_crop(224) | normalize(imagenet) | float | chw",
            "label": "label"})
        dataset.map_batches(Model, batch_size=256, num_gpus=1, concurrency=4)

    A row is one sample of a batch. Its columns are

    ``epoch``, ``batch``, ``row``
        The epoch, the number of the batch in the epoch, and the position of the
        sample in the batch, int64, from 0.
    ``id``
        The number of the sample in the dataset, int64.
    ``valid``
        bool: False if the sample is unreadable, with on_error="skip".
    one for each output
        Numbers are Arrow's numbers, and arrays are tensors of Ray Data. Arrays
        of differing shapes are variable-shaped tensors. Bytes and JSON are
        binary.

    Ray Data returns rows in any order, as its tasks end. If you need the order
    of a Loader, sort by these columns:

        dataset.sort(["epoch", "batch", "row"])

    The values are bit for bit those of ``betonfs.Loader`` with the same
    arguments.

    Parameters
    ----------
    path
        As in :class:`betonfs.Loader`. All nodes of the cluster and this process
        read it, so it is a URL or a file in a directory that they share.
    batch_size, order, seed, pipeline
        As in Loader. By default an epoch is in random order and without its
        last short batch. ``train=False`` delivers each sample once.
    epoch
        The epoch to read (default: 0).
    override_num_blocks, concurrency
        As in ray.data.read_datasource(): the number of blocks, and the greatest
        number of tasks at a time (default: Ray Data decides). A task has one
        batch or more.
    ray_remote_args
        Arguments of ray.remote() for each task, for example
        {"num_cpus": 4, "resources": {"decoder": 1}} (default: one CPU). A task
        decodes in `num_cpus` threads, unless you set `workers`.
    arguments
        Other arguments of Loader. ``tensors``, ``batch``, ``on_demand``,
        ``rank`` and ``world_size`` raise TypeError.

    Errors are those of Loader. If a sample cannot be read and on_error is
    "raise", its task fails. If the dataset is replaced before a task reads it,
    the task raises ValueError. An output that has the name of one of the first five
    columns raises ValueError. If Ray Data is not installed, this raises
    ImportError.
    """
    _check(arguments)
    epoch = whole("epoch", epoch, 0, _EPOCHS_MAX)
    remote = remote_args(ray_remote_args)
    data = needed("ray.data", "read")
    if not arguments.get("num_workers"):
        arguments["workers"] = arguments.get("workers") or threads(remote)
    with Loader(absolute(path), batch_size, order, seed, pipeline,
                tensors="numpy", on_demand=True, rank=0, world_size=1,
                **arguments) as loader:
        source = needed("betonfs.ray._source", "read").Batches(loader, epoch)
    return data.read_datasource(
        source, concurrency=concurrency,
        override_num_blocks=override_num_blocks,
        **_split(data.read_datasource, remote))
