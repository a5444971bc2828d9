# SPDX-License-Identifier: Apache-2.0
"""The tasks that write a dataset in parts. They run on any node."""
from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence

from .._merge import merge as merge_files
from .._writer import refuse_existing

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class Killed(RuntimeError):
    """A signal ended mkfs.beton, for example because memory was short. Another
    attempt can succeed."""


def part(parts: str, number: int) -> str:
    """The path of a part. The directory of parts must be there."""
    if not os.path.isdir(parts):
        raise FileNotFoundError(
            f"{parts} is not on the node {socket.gethostname()}: directory= is "
            "one that all nodes share")
    return os.path.join(parts, f"part-{number:05d}.beton")


def begin(path: str, directory: str, replace: bool) -> str:
    """Make a directory for the parts of this file, and return its path."""
    if not replace:
        refuse_existing(path, "betonfs.ray.write")
    name = os.path.basename(path) or "dataset"
    return tempfile.mkdtemp(prefix=f".{name}.parts-", dir=directory)


def end(parts: str) -> None:
    shutil.rmtree(parts, ignore_errors=True)


def merge(parts: Sequence[str], path: str, replace: bool) -> int:
    """Join the parts in this order, and return the number of samples."""
    return merge_files(parts, path, overwrite=replace)


def _end_with_task() -> None:
    """Let the kernel kill this process when the process of the task ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def make(mkfs: Sequence[str], sources: Sequence[str], parts: str, number: int,
         count: int) -> str:
    """Write one shard, and return its path."""
    to = part(parts, number)
    try:
        done = subprocess.run(
            [*mkfs, "--quiet", f"--shard={number}/{count}", "--", *sources, to],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, preexec_fn=_end_with_task)
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"{mkfs[0]} is not on the node {socket.gethostname()}: install it, "
            "or give its path as program=") from e
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode < 0:
        raise Killed(f"shard {number} of {count}: signal {-done.returncode} "
                     f"ended {mkfs[0]}" + (f": {said}" if said else ""))
    if done.returncode:
        raise RuntimeError(said or f"{mkfs[0]} failed with status "
                           f"{done.returncode}")
    return to
