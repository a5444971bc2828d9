# SPDX-License-Identifier: Apache-2.0
"""Bottlenecks for `beton doctor`: slow disks, and less of the machine."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import time

import numpy as np
import pytest

import make
from conftest import unmount, wait_until

Image = pytest.importorskip("PIL.Image")
CGROUP = pathlib.Path("/sys/fs/cgroup/cpu")


def picture(rng, w, h, **how):
    """Smooth with some noise, as photos are."""
    small = rng.integers(0, 255, (h // 16 + 1, w // 16 + 1, 3), np.uint8)
    big = np.asarray(Image.fromarray(small).resize((w, h))).astype(int)
    big += rng.integers(-12, 12, (h, w, 1))
    out = io.BytesIO()
    Image.fromarray(big.clip(0, 255).astype(np.uint8)).save(
        out, "JPEG", quality=90, **how)
    return make.Image(make.JPG, w, h, out.getvalue())


@contextlib.contextmanager
def control_group(**files):
    """-> a prefix for commands that are to run in a new one. None: there are no
    control groups here, or they are not ours."""
    group = CGROUP / f"beton-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        for name, value in files.items():
            (group / f"cpu.{name}").write_text(str(value))
        yield ["sh", "-c", f"echo $$ > {group}/tasks && exec \"$@\"", "sh"]
    finally:
        # Its processes have ended, but the kernel may still be counting.
        wait_until(lambda: not (group / "tasks").read_text(), "the group")
        group.rmdir()


@contextlib.contextmanager
def slow_disk(path, where, *filters):
    """The file again, through nbdkit's filters and without a page cache."""
    if not shutil.which("nbdkit") or not shutil.which("nbdfuse") or \
            not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no nbdkit, nbdfuse or /dev/fuse")
    where.mkdir(exist_ok=True)
    names = [f"--filter={f.split(':')[0]}" for f in filters]
    settings = [s for f in filters for s in f.split(":")[1:]]
    p = subprocess.Popen(
        ["nbdfuse", where / "slow.beton", "[", "nbdkit",
         "--exit-with-parent", *names, "file", path, *settings, "]"])
    try:
        wait_until(lambda: (where / "slow.beton").exists(), "nbdfuse")
        yield where / "slow.beton"
    finally:
        unmount(where)
        p.wait(20)
