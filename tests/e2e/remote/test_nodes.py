# SPDX-License-Identifier: Apache-2.0
"""A training on four machines, without the software of a cluster: a process on each
node, and one server of static files. The nodes are network namespaces. torchrun
starts the processes if TORCHVISION_PYTHON or RAY_PYTHON names an interpreter with
torch; plain processes with a rank always run."""
import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import make
from node_rank import options, seen
from nodes import SERVER, end, find_python
from package import PACKAGE, betonfs

RANK = pathlib.Path(__file__).parents[1] / "node_rank.py"
DEADLINE = 100
SAMPLES, NODES = 600, 4
SAVE = 3            # steps of each rank before its state is saved
PORT = 29500        # of torchrun on the first node


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """44 MB of pixels: tables and headers are a small part of them."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(110, 180, (SAMPLES, 2)).tolist()
    return make.Dataset(
        tmp_path_factory.mktemp("nodes") / "train.beton",
        [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, w, h, rng.bytes(w * h * 3)), "label": i}
         for i, (w, h) in enumerate(sizes)], 1 << 18)


@pytest.fixture(scope="module")
def right(data):
    """order -> batches of the first epoch, of one process and the local file."""
    @functools.cache
    def one(order):
        with betonfs.Loader(data.path, **options(order), rank=0,
                            world_size=1) as loader:
            return [seen(b) for b in loader]
    return one


@pytest.fixture
def server(cluster, nginx, data):
    """nginx on the fifth machine."""
    with cluster.server.inside():
        return nginx(pathlib.Path(data.path).parent, host=SERVER, port=8080)


class Job:
    """A process on each of these nodes: node k opens sources[k]. torchrun of the
    interpreter `exe` starts it, or the test itself."""

    def __init__(self, nodes, sources, out, order, exe=None, state=""):
        self.out, self.nodes, self.exe = out, nodes, exe
        out.mkdir()
        processes = []
        try:
            for k, source in enumerate(sources):
                processes.append(self.start(
                    k, [RANK, source, out, order, state, SAVE]))
            codes = [p.wait(DEADLINE) for p in processes]
        finally:
            for p in processes:
                end(p)
        logs = [self.log(k).read_text() for k in range(len(nodes))]
        assert not any(codes), "\n".join(logs)

    def log(self, k):
        return self.out / f"{k}.log"

    def command(self, k, program):
        if not self.exe:
            return [sys.executable, *program]
        return [self.exe, "-m", "torch.distributed.run", "--nnodes",
                len(self.nodes), "--nproc-per-node", 1, "--node-rank", k,
                "--master-addr", self.nodes[0].address, "--master-port", PORT,
                *program]

    def start(self, k, program):
        env = {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
               # gloo otherwise takes the address of the name of the machine.
               "GLOO_SOCKET_IFNAME": "eth0"}
        if not self.exe:
            env.update(RANK=str(k), WORLD_SIZE=str(len(self.nodes)))
        with self.nodes[k].inside(), open(self.log(k), "w") as log:
            return subprocess.Popen(
                list(map(str, self.command(k, program))), env=env, stdout=log,
                stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def ranks(self):
        """The outputs of all processes, by rank."""
        return [json.loads((self.out / f"{k}.json").read_text())
                for k in range(len(self.nodes))]


def check(job, want):
    """All ranks together have these batches, and their steps are equal."""
    ranks, world = job.ranks(), len(job.nodes)
    assert [(r["rank"], r["world"]) for r in ranks] == \
        [(k, world) for k in range(world)]
    assert {len(r["batches"]) for r in ranks} == {-(-len(want) // world)}
    # A batch without a valid sample only makes the steps equal.
    got = [b for r in ranks for b in r["batches"] if any(b["valid"])]
    assert sorted(got, key=lambda b: b["number"]) == want
    total = sum(b["sum"] for r in ranks for b in r["batches"])
    assert {r["total"] for r in ranks} == {total if job.exe else None}
    return ranks


def check_samples(ranks):
    """Each sample comes once."""
    ids = [i for r in ranks for b in r["batches"]
           for i, valid in zip(b["ids"], b["valid"]) if valid]
    assert sorted(ids) == list(range(SAMPLES))


def check_bytes(server, data, ahead=0):
    """All nodes together read the file about once, and so many bytes of the next
    epoch."""
    size = pathlib.Path(data.path).stat().st_size
    sent = sum(r.sent for r in server.requests())
    assert sent <= 1.10 * size + ahead, sent / size


def run_jobs(cluster, server, data, right, folder, order, exe):
    """An epoch of four nodes, and two nodes that resume it in the middle."""
    url = server.url("train.beton")
    job = Job(cluster.nodes, [url] * NODES, folder / "four", order, exe)
    ranks = check(job, right(order))
    check_samples(ranks)
    check_bytes(server, data)
    states = [r["state"] for r in ranks]
    assert states[0] and states == [states[0]] * NODES
    (folder / "state").write_text(json.dumps(states[0]))
    job = Job(cluster.nodes[:2], [url] * 2, folder / "two", order, exe,
              folder / "state")
    check(job, right(order)[SAVE * NODES:])


def test_torchrun_on_four_nodes(cluster, server, data, right,
                                tmp_path):
    run_jobs(cluster, server, data, right, tmp_path, "quasi_random",
             find_python())


@pytest.mark.parametrize("order", ["quasi_random", "random"])
def test_plain_processes_on_four_nodes(cluster, server, data, right,
                                       tmp_path, order):
    run_jobs(cluster, server, data, right, tmp_path, order, None)


def test_a_mount_on_each_of_four_nodes(cluster, server, data, right,
                                       mount, tmp_path):
    """The daemons need not communicate either."""
    places = []
    for node in cluster.nodes:
        with node.inside():
            places.append(mount(server.url("train.beton"), "-o",
                                "cache_size=16MiB"))
    job = Job(cluster.nodes, places, tmp_path / "four", "quasi_random")
    check_samples(check(job, right("quasi_random")))
    # An eighth of each cache may be in flight.
    check_bytes(server, data, NODES * (2 << 20))
