# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._checks import is_url, path as checked_path, shown, truth, whole
from . import _shards
from ._needed import needed
from ._read import absolute, remote_args, threads

if TYPE_CHECKING:
    import ray.data

    from .._dataset import Path

_SHARDS_MAX = 1 << 20

# Options of mkfs.beton that a shard cannot have.
_REFUSED = {
    "--shard": "shards= sets the number of shards",
    "--append": "betonfs.merge() appends the new dataset to another one",
    "--sums": "run `fsck.beton --sums` on the dataset when it is complete",
    "--dry-run": "run mkfs.beton on one node for that",
    "-n": "run mkfs.beton on one node for that",
    "-j": "num_cpus of ray_remote_args= is the number of threads",
    "--jobs": "num_cpus of ray_remote_args= is the number of threads",
}

# Arguments of betonfs.write() that a part cannot have.
_FIXED = {
    "append": "betonfs.merge() appends the new dataset to another one",
    "length": "Ray Data counts the rows",
    "progress": "Ray Data shows the progress",
    "workers": "num_cpus of ray_remote_args= is the number of threads",
}


def _options(options: Any) -> tuple[str, ...]:
    if isinstance(options, str) or not isinstance(options, Sequence) or \
            not all(isinstance(one, str) for one in options):
        raise TypeError(f"options={shown(options)}: a list of options of "
                        'mkfs.beton, such as ["--mode=keep", "--index"]')
    for option in options:
        why = _REFUSED.get(option.split("=")[0])
        if why:
            raise ValueError(f"options: {option}: {why}")
    return tuple(options)


def _sources(source: Any) -> list[str] | None:
    """The paths in `source`, or None if it is no path."""
    if isinstance(source, (str, bytes, os.PathLike)):
        source = [source]
    if not isinstance(source, (list, tuple)):
        return None
    if not source:
        raise ValueError("source: the list is empty")
    return [absolute(checked_path("source", one, "a source of mkfs.beton"))
            for one in source]


def _directory(directory: Any, path: str) -> str:
    """Where the parts are, until they are merged."""
    if directory is not None:
        return str(absolute(checked_path("directory", directory,
                                         "a directory of all nodes")))
    if is_url(path):
        raise ValueError("a dataset behind a URL takes directory=, a directory "
                         "that all nodes share, for its parts")
    return os.path.dirname(path)


@contextmanager
def _parts(ray: Any, path: str, directory: str, replace: bool) -> Iterator[str]:
    """A new directory for parts, which tasks make and remove: this process may
    not see it."""
    parts = _get(ray, [ray.remote(_shards.begin).remote(path, directory,
                                                        replace)])[0]
    try:
        yield parts
    finally:
        ray.get(ray.remote(_shards.end).remote(parts))


def _get(ray: Any, tasks: list[Any]) -> list[Any]:
    """Return the results of tasks. If one fails, the others end, and its own
    exception is raised."""
    left = list(tasks)
    try:
        while left:
            done, left = ray.wait(left)
            ray.get(done)
        return list(ray.get(tasks))
    except ray.exceptions.RayTaskError as e:
        raise e.cause from None
    finally:
        for task in left:
            ray.cancel(task, force=True)


def _from_files(ray: Any, sources: list[str], parts: str, shards: int,
                command: Sequence[str], remote: dict[str, Any]) -> list[str]:
    usual = {"retry_exceptions": [_shards.Killed], **remote}
    shard = ray.remote(**usual)(_shards.make)
    mkfs = (*command, f"--jobs={threads(remote)}")
    return _get(ray, [shard.remote(mkfs, sources, parts, i, shards)
                      for i in range(shards)])


def _usual_shards(ray: Any, remote: Mapping[str, Any]) -> int:
    """One for each task that the cluster runs at a time."""
    cpus = ray.cluster_resources().get("CPU", 1)
    return max(1, int(cpus // (remote.get("num_cpus") or 1)))


def _from_rows(rows: Any, parts: str, shards: int | None,
               arguments: dict[str, Any], remote: dict[str, Any]) -> list[str]:
    sink = needed("betonfs.ray._sink", "write")
    arguments["workers"] = threads(remote)
    return list(sink.write(rows if shards is None else rows.repartition(shards),
                           parts, arguments, remote))


def _check_kind(sources: Any, source: Any, options: Sequence[str],
                arguments: Mapping[str, Any]) -> None:
    if sources is not None and arguments:
        raise TypeError(f"{next(iter(arguments))}= is for a ray.data.Dataset; "
                        "options= has options of mkfs.beton for files")
    if sources is None:
        if not isinstance(source, needed("ray.data", "write").Dataset):
            raise TypeError(f"source={shown(source)}: a path, a list of paths, "
                            "or a ray.data.Dataset")
        if options:
            raise TypeError("options= are of mkfs.beton for files; a "
                            "ray.data.Dataset takes arguments of "
                            "betonfs.write()")
    for name in arguments:
        if name in _FIXED:
            raise TypeError(f"write() has no argument {name}=: {_FIXED[name]}")


def write(
    source: Path | Sequence[Path] | ray.data.Dataset,
    path: Path,
    shards: int | None = None,
    *,
    options: Sequence[str] = (),
    directory: Path | None = None,
    program: str = "mkfs.beton",
    overwrite: bool = False,
    ray_remote_args: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> int:
    """Write a dataset in parts on all nodes of the cluster, merge the parts,
    and return the number of samples.

        betonfs.ray.write("imagenet/train", "train.beton", shards=64,
                          options=["--max-resolution=500"])
        betonfs.ray.write(ray.data.read_images("photos"), "photos.beton")

    Ray runs a task again if its node or process is lost, at most three times
    unless you set ``max_retries``. The new file appears, or replaces an old
    file, when it is complete. After an error, an old file is unchanged, and the
    parts are removed.

    source
        A path or a list of paths: the sources of ``mkfs.beton``, for example a
        directory of images or tar archives, see beton-sources(7). Each task
        runs ``mkfs.beton --shard=I/N``. The file has the same bytes as that of
        one ``mkfs.beton`` with these options.

        A ray.data.Dataset: each task writes its rows as one part by
        :func:`betonfs.write`, in the order of the dataset. The columns are the
        fields.
    path
        The new file, or the URL of an object. All nodes see its directory.
    shards
        The number of parts. Default for paths: as many as the cluster runs at a
        time. Each task reads the list of all samples, so use more only if a
        lost task would cost much time. Default for a ray.data.Dataset: one for
        each write task of Ray Data; if you set it, the rows are repartitioned,
        which holds all of them in Ray's object store.
    options
        Options of mkfs.beton(8), for example ["--mode=keep", "--shuffle"].
    directory
        A directory that all nodes share, with room for all parts (default: that
        of `path`). The parts are in a new directory inside it.
    program
        The name or the path of mkfs.beton on the nodes (default: "mkfs.beton").
    overwrite
        Replace an existing file (default: False, raise FileExistsError).
    ray_remote_args
        Arguments of ray.remote() for each task that writes a part, for example
        {"num_cpus": 8, "max_retries": 5} (default: one CPU). A task encodes in
        `num_cpus` threads.
    arguments
        For a ray.data.Dataset, arguments of :func:`betonfs.write`: `fields`,
        `mode`, `quality`, `max_resolution`, `classes` and `page_size`.

    If a source or a sample is wrong, this raises the error of mkfs.beton as a
    RuntimeError with its message, or that of betonfs.write(). If Ray is not
    installed, this raises ImportError.
    """
    to = str(absolute(checked_path("path", path, "the file to write")))
    given = _options(options)
    sources = _sources(source)
    remote = remote_args(ray_remote_args)
    if shards is not None:
        shards = whole("shards", shards, 1, _SHARDS_MAX)
    ray = needed("ray", "write")
    _check_kind(sources, source, given, arguments)
    replace = truth("overwrite", overwrite)
    if not ray.is_initialized():
        ray.init()
    with _parts(ray, to, _directory(directory, to), replace) as parts:
        made = _from_rows(source, parts, shards, arguments, remote) \
            if sources is None else _from_files(
                ray, sources, parts, shards or _usual_shards(ray, remote),
                (program, *given), remote)
        merge = ray.remote(_shards.merge)
        return int(_get(ray, [merge.remote(made, to, replace)])[0])
