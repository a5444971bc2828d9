# SPDX-License-Identifier: Apache-2.0
"""Ranks of torch.distributed that do not share one epoch get a warning: two
processes with gloo. Correct arguments cause no warning."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import PACKAGE, betonfs  # noqa: E402

torch = pytest.importorskip("torch")

N, DEADLINE = 40, 120

# Arguments: the rank, the file of the store, the dataset, and the arguments of
# the loader. Prints the warnings, then the number of each sample that came.
SCRIPT = """
import sys, warnings
import torch.distributed as dist
rank, store, path, given = int(sys.argv[1]), *sys.argv[2:]
import betonfs
dist.init_process_group("gloo", init_method="file://" + store, rank=rank,
                        world_size=2)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    loader = betonfs.Loader(path, pipeline={"label": "label"},
                            tensors="torch", **eval(given))
for w in seen:
    print("warned:", w.message)
for batch in loader:
    print("ids:", *batch.ids.tolist())
dist.barrier()
"""

WITH_ACCELERATE = """
import sys
rank, store, path = int(sys.argv[1]), *sys.argv[2:]
import os
os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2",
                  MASTER_ADDR="127.0.0.1", MASTER_PORT="1",
                  ACCELERATE_USE_CPU="1")
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + store, rank=rank,
                        world_size=2)
import accelerate, betonfs
from torch.utils.data import DataLoader
accelerator = accelerate.Accelerator()
loader = betonfs.Loader(path, 5, pipeline={"label": "label"}, tensors="torch")
wrapped = accelerator.prepare(DataLoader(loader, batch_size=None))
if rank:
    raise SystemExit     # it waits for the first rank's batches
try:
    next(iter(wrapped))
except RuntimeError as e:
    print("warned:", e)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks") / "train.beton"
    betonfs.write(path, [{"image": np.zeros((4, 4, 3), np.uint8), "label": i}
                         for i in range(N)], mode="raw")
    return path


def run_ranks(tmp_path, script, *args):
    """The output of each rank."""
    command = [sys.executable, "-c", script]
    ranks = [subprocess.Popen(
        [*command, str(rank), str(tmp_path / "store"), *map(str, args)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin",
             "GLOO_SOCKET_IFNAME": "lo"}) for rank in range(2)]
    printed = [p.communicate(timeout=DEADLINE) for p in ranks]
    assert not any(p.returncode for p in ranks), printed
    return [out.splitlines() for out, _ in printed]


def reported(lines):
    return [line for rank in lines for line in rank
            if line.startswith("warned:")]


@pytest.mark.parametrize("given, differs", [
    ("dict(batch_size=5, seed=rank)", "seed="),
    ("dict(batch_size=5 + rank)", "batch="),
    ("dict(batch_size=5, subset=list(range(rank, 40, 2)))", "subset=ids")])
def test_ranks_of_different_specs_are_reported(path, tmp_path, given, differs):
    printed, = reported(run_ranks(tmp_path, SCRIPT, path, given))
    assert printed.count(differs) >= 2, printed
    assert "rank 0" in printed and "rank 1" in printed


@pytest.mark.parametrize("given", [
    "dict(batch_size=5, seed=3)",
    "dict(batch_size=5, train=False)",
    "dict(batch_size=5, seed=rank, rank=0, world_size=1)"])
def test_ranks_that_agree_get_no_warning(path, tmp_path, given):
    lines = run_ranks(tmp_path, SCRIPT, path, given)
    assert not reported(lines)
    ids = [int(i) for rank in lines for line in rank
           for i in line.split()[1:]]
    assert sorted(ids) == sorted(list(range(N)) * (1 + ("world_size=1" in given)))


def test_accelerate_does_not_share_a_share(path, tmp_path):
    pytest.importorskip("accelerate")
    printed, = reported(run_ranks(tmp_path, WITH_ACCELERATE, path))
    assert "prepare() the Loader itself" in printed
