# SPDX-License-Identifier: Apache-2.0
"""betonfs.ray.Loader on Ray clusters of several nodes on this machine: the batches
are those of a betonfs.Loader, whatever happens to makers and nodes. RAY_PYTHON names a
Python that has ray; without one these tests are skipped."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import numpy as np
import pytest

import dumped
from package import PACKAGE, betonfs
from ray_batches import OPTIONS, PIPELINE, SIZE, SPEC, digest

pytest.importorskip("PIL.Image")

HERE = pathlib.Path(__file__).resolve().parents[1]
TRAINER = HERE / "ray_trainer.py"
CLUSTER = HERE.parents[1] / "contrib/cluster"
DEADLINE = 90
SAMPLES = 198
BATCHES = -(-SAMPLES // SIZE)


def find_python():
    exe = os.environ.get("RAY_PYTHON", sys.executable)
    r = subprocess.run([exe, "-c", "import ray, betonfs"], capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(PACKAGE)},
                       timeout=DEADLINE)
    if r.returncode:
        pytest.skip(f"{exe} has no ray (set RAY_PYTHON)")
    return exe


def need(exe, module):
    r = subprocess.run([exe, "-c", f"import {module}"], capture_output=True,
                       timeout=DEADLINE, text=True)
    if r.returncode:
        pytest.skip(f"{exe}: {r.stderr.strip().splitlines()[-1]}")


# --- processes of Ray ---------------------------------------------------------


def marked(mark):
    """IDs of all processes with this text in their environment."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


class Ray:
    """Runs programs of ray_trainer.py. All processes that they start end with it,
    and Ray's files are in a directory of its own."""

    def __init__(self, exe):
        self.exe = exe
        self.mark = f"BETON_RAY_MARK={uuid.uuid4()}"
        # Not that of pytest: Ray's sockets need a short path.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ray"))
        self.env = {
            **{k: v for k, v in os.environ.items()
               if k not in ("RANK", "WORLD_SIZE", "RAY_ADDRESS")},
            "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
            "RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_memory_monitor_refresh_ms": "0",
            # Ray notices a lost node within seconds.
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "3",
            self.mark.split("=")[0]: self.mark.split("=")[1]}

    def start(self, *command, **how):
        return subprocess.Popen(
            [self.exe, TRAINER, *map(str, command)], text=True,
            start_new_session=True, stdout=subprocess.PIPE,
            stderr=open(self.folder / "stderr", "a"),
            **{"env": self.env, "cwd": self.folder, **how})

    def errors(self):
        return (self.folder / "stderr").read_text()[-4000:]

    def run(self, case, path, cwd=None, **options):
        """Returns what the case prints."""
        p = self.start(case, path, json.dumps(options), cwd=cwd or self.folder,
                       stdin=subprocess.DEVNULL)
        try:
            out, _ = p.communicate(timeout=DEADLINE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        assert p.returncode == 0, self.errors()
        # Ray prints there, too.
        return json.loads(re.findall(r"^RESULT (.*)$", out, re.M)[-1])

    def end(self):
        end = time.monotonic() + DEADLINE
        while (left := marked(self.mark)) and time.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not left


@pytest.fixture
def alone():
    """Programs that start a cluster of their own, or none."""
    ray = Ray(find_python())
    try:
        yield ray
    finally:
        ray.end()


@pytest.fixture(scope="module")
def cluster():
    """Programs on a cluster with a head and two more nodes of two CPUs."""
    ray = Ray(find_python())
    try:
        p = ray.start("cluster", "2,2", stdin=subprocess.PIPE)
        ray.env["BETON_RAY"] = p.stdout.readline().strip()
        assert ray.env["BETON_RAY"], ray.errors()
        yield ray
        p.stdin.close()
        p.wait(DEADLINE)
    finally:
        ray.end()


# --- what has to come ---------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("ray") / "p.beton", SAMPLES).path


def local(path, epochs=2, **options):
    """The digests of a loader without makers."""
    with betonfs.Loader(path, **{**OPTIONS, **options}) as loader:
        return [digest(batch) for _ in range(epochs) for batch in loader]


@pytest.fixture(scope="module")
def whole(data):
    """Two epochs."""
    return local(data)


# --- failures (the batches, and how late they are) ----------------------------


# If this machine decodes as well, a batch must cost it some time: otherwise it makes
# all of them.
COSTLY = {**PIPELINE, "image": "random_resized_crop(160)"
                               + 6 * " | gaussian_blur(31, 7)" + " | float | chw"}


@pytest.mark.parametrize("makers, kills, options", [
    (1, 6, {}), (2, 7, {"local": True, "workers": 1, "pipeline": COSTLY}),
    (4, 7, {})], ids=["one", "two_and_local", "four"])
def test_killed_makers_lose_no_batch(cluster, data, makers, kills, options):
    found = cluster.run("makers_die", data, makers=makers, kills=kills, **options)
    print(found["longest_s"], found["stats"])
    least = 0 if options.pop("local", False) else BATCHES // 5
    assert found["batches"] == local(data, **options)
    assert found["kills"] == kills
    assert found["stats"]["batches"] > least
    # A maker that is killed before it has a link is not lost.
    assert found["stats"]["lost"] > 0
    assert found["longest_s"] < 1.0


def test_killed_nodes_and_a_slow_maker_lose_no_batch(alone, data, whole, tmp_path):
    found = alone.run("nodes_die", data)
    print(found["longest_s"], found["stats"])
    assert found["batches"] == whole
    assert (found["kills"], found["stats"]["lost"] >= 3) == (3, True)
    assert found["longest_s"] < 1.0
    assert found["batches"] == [x for epoch in range(2) for x in
                                dumped_digests(data, tmp_path / str(epoch), epoch)]


def dumped_digests(path, out, epoch):
    """The digests of the batches that `beton dump` writes."""
    made = dumped.dump(path, out, "--spec", SPEC, "--epoch", epoch, "--pipeline",
                       "; ".join(PIPELINE.values()))
    return [digest(Dumped(epoch, b)) for b in made]


class Dumped(dict):
    """A batch of a dump, as one of a loader."""

    def __init__(self, epoch, batch):
        n = len(batch.ids)
        super().__init__(
            {k: [batch.row(k, i) for i in range(n)]
             if k in batch.offsets else batch.outputs[k] for k in batch.outputs})
        self.epoch, self.number = epoch, batch.number
        self.ids = np.array(batch.ids, np.int64)
        self.valid = np.array(batch.valid)


def test_without_makers_the_trainer_makes_all(cluster, data, whole):
    found = cluster.run("all_dead", data)
    assert found["batches"] == whole[:BATCHES]
    assert found["longest_s"] < 2.0
    assert found["stats"]["makers"] == 0 and found["stats"]["here"] > 0
    assert sum("put aside" in line for line in found["lines"]) == 2
    assert any(re.match(r"WARNING the maker process \d+ on [\d.]+ was lost: .*: this "
                        "machine makes all batches", line) for line in found["lines"])
    assert not [x for x in found["lines"] if x.startswith("ERROR")]


# --- positions ----------------------------------------------------------------


def test_a_state_moves_between_both_loaders(cluster, data):
    at, world, other = random.randint(1, 12), 2, 3
    found = cluster.run("states", data, at=at, world=world, other=other)
    expected = local(data, 3)
    one, two = at * world, at * world + other
    assert found["first"] == expected[0:one:world]
    assert found["then"] == expected[one:two]
    assert found["rest"] == expected[two:2 * BATCHES]


def test_several_loaders_at_once(cluster, data):
    found = cluster.run("several", data)
    train, val = zip(*found["both"], strict=True)
    assert list(train) == local(data, 1)
    assert list(val) == local(data, 1, train=False, seed=None)
    expected = local(data, 1, epoch=5)
    assert found["ranks"] == [expected[0::2], expected[1::2]]
    assert found["sent"] > 0


def test_loaders_end_with_their_makers(cluster, data, whole):
    found = cluster.run("ends", data)
    assert found["copied"] == whole[:BATCHES]
    assert "closed" in found["closed"]


@pytest.mark.parametrize("with_torch", [True, False], ids=["torch", "plain"])
def test_workers_of_ray_train_share_an_epoch(cluster, data, whole, tmp_path,
                                             with_torch):
    need(cluster.exe, "ray.train.torch" if with_torch else
         "ray.train.v2.api.data_parallel_trainer")
    found = cluster.run("train", data, out=str(tmp_path), with_torch=with_torch)
    assert [x["place"] for x in found] == [[0, 2], [1, 2]]
    assert [x["is_distributed"] for x in found] == [with_torch] * 2
    for rank in range(2):
        assert found[rank]["batches"] == whole[rank:BATCHES:2] + \
            whole[BATCHES + rank::2]
        assert found[rank]["stats"]["batches"] > 0


# --- resources ----------------------------------------------------------------


def test_memory_is_bounded_while_the_trainer_sleeps(cluster, tmp_path):
    size = 64
    seconds = int(os.environ.get("BETON_RAY_SLEEP", "6"))
    path = dumped.photos(tmp_path / "p.beton", 3000).path
    found = cluster.run("sleeps", path, seconds=seconds, batch_size=size)
    print(found)
    # The trainer took 26 batches, and 18 are ready.
    assert 0 < found["made"]["batches"] <= 44 and found["then"] == found["made"]
    for before, after in zip(found["before"], found["after"], strict=True):
        assert after <= before + (2 << 20)
    assert found["store"] < 1 << 20
    assert found["first_s"] < 10


def test_strangers_are_refused(cluster, data, whole):
    found = cluster.run("strangers", data)
    assert found["batches"] == whole[:BATCHES]
    assert found["refused_s"] < 3 and found["longest_s"] < 1
    assert found["ended_s"] < 15
    assert found["stats"]["makers"] == 1 and found["stats"]["lost"] == 0


def test_makers_grow_with_a_trainer_that_waits(cluster, data):
    found = cluster.run("grows", data)
    print(found)
    assert 2 <= found["actors"] <= 5 and found["most"] >= 2
    assert [line for line in found["lines"]
            if re.match(r"INFO makers: \d; one more does not help", line)]


# --- mistakes -----------------------------------------------------------------


def test_wrong_arguments_are_refused(cluster, data):
    found = cluster.run("mistakes", data)
    assert not found["makers"]
    for wrong, kind, text in found["found"]:
        print(wrong, kind, text)
        assert kind in ("TypeError", "ValueError"), (wrong, kind, text)
        name = re.match(r"{'(\w+)'", wrong)[1]
        assert name.replace("bach_size", "batch_size") in text, (wrong, text)


def test_without_a_cluster_the_error_says_how_to_start_one(alone, data):
    found = alone.run("no_cluster", data)
    assert found and found["error"] == "ConnectionError"
    assert "ray start --head" in found["text"]


def test_makers_that_cannot_open_the_dataset_are_put_aside(cluster, data, whole):
    # Makers have another working directory.
    name = pathlib.Path(data)
    before = len((cluster.folder / "stderr").read_text())
    found = cluster.run("only_here", f"/proc/self/cwd/{name.name}", cwd=name.parent)
    print(found["lines"])
    assert found["batches"] == whole
    aside = [line for line in found["lines"] if "put aside" in line]
    assert len(aside) == 2
    for line in aside:
        assert re.fullmatch(r"WARNING a maker is put aside, process \d+ on [\d.]+: "
                            r"\[Errno 2\] \S+p\.beton: No such file or directory",
                            line), line
    # Ray prints nothing of its own.
    assert "Traceback" not in (cluster.folder / "stderr").read_text()[before:]
    assert found["stats"]["batches"] == 0 and not found["makers"]


def test_a_relative_path_is_that_of_the_trainer(cluster, data, whole):
    name = pathlib.Path(data)
    found = cluster.run("relative", name.name, cwd=name.parent)
    assert found["batches"] == whole[:BATCHES]
    assert found["stats"]["batches"] > 0


def test_a_maker_with_another_pipeline_is_put_aside(cluster, data, whole):
    found = cluster.run("other_pipeline", data)
    assert found["batches"] == whole
    line, = [line for line in found["lines"] if "put aside" in line]
    assert "another pipeline" in line


def test_a_maker_of_another_version_is_put_aside(alone, data, whole, tmp_path):
    package = tmp_path / "other"
    shutil.copytree(PACKAGE, package)
    own = betonfs.__version__.encode() + b"\0"
    other = own[:-2] + bytes([own[-2] ^ 1]) + b"\0"
    for library in package.glob("betonfs/*.so*"):
        library.write_bytes(library.read_bytes().replace(own, other))
    found = alone.run("other_version", data, package=str(package))
    assert found["batches"] == whole
    line, = [line for line in found["lines"] if "put aside" in line]
    assert other[:-1].decode() in line and "install the same version" in line


# --- contrib/cluster ----------------------------------------------------------

SRUN = """#!/bin/bash
# The command after the options, on one node.
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""
PROGRAM = """
import sys, time
import betonfs.ray
with betonfs.ray.Loader(sys.argv[1], 4, makers=1, local=False, pipeline={"label": "label"},
                        tensors="numpy") as loader:
    while not loader.stats()["makers"]["makers"]:
        time.sleep(0.1)
    print(sum(len(b.ids) for b in loader), loader.stats()["makers"]["batches"] > 0)
"""


def test_a_script_of_slurm(alone, data):
    """Both nodes are this machine."""
    folder = alone.folder
    for name, text in ("srun", SRUN), ("train.py", PROGRAM):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    env = {**alone.env, "SLURM_JOB_ID": str(random.randrange(10000)),
           "HEAD": "127.0.0.1",
           "PATH": f"{folder}:{os.path.dirname(alone.exe)}:{os.environ['PATH']}"}
    log = folder / "log"
    with open(log, "w") as out:     # Ray's processes keep it open
        r = subprocess.run(
            ["bash", CLUSTER / "slurm-ray.sbatch", "train.py", data], cwd=folder,
            env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            timeout=DEADLINE)
    printed = log.read_text()
    assert r.returncode == 0, printed
    assert f"{SAMPLES // SIZE * SIZE} True" in printed.splitlines(), printed


def test_the_groups_of_kuberay_fit():
    yaml = pytest.importorskip("yaml")
    spec = yaml.safe_load((CLUSTER / "kuberay-makers.yaml").read_text())["spec"]
    groups = {g["groupName"]: g for g in spec["workerGroupSpecs"]}
    assert set(groups) == {"trainers", "makers"} and spec["enableInTreeAutoscaling"]
    for group in spec["headGroupSpec"], groups["trainers"]:
        assert group["rayStartParams"]["num-cpus"] == "0"
    assert groups["makers"]["minReplicas"] == 0
    for group in spec["headGroupSpec"], *groups.values():
        pod = group["template"]["spec"]
        volumes = {v["name"] for v in pod.get("volumes", ())}
        for container in pod["containers"]:
            assert {m["name"] for m in container.get("volumeMounts", ())} <= volumes
    # Only the makers' nodes offer CPUs, so that makers need no selector.
    assert "num-cpus" not in groups["makers"]["rayStartParams"]
    assert len({g["template"]["spec"]["serviceAccountName"]
                for g in groups.values()}) == 1
