# SPDX-License-Identifier: Apache-2.0
"""The examples for frameworks, killed by SIGKILL in the middle of an epoch, and
resumed from their last checkpoint with another world size: samples are those of an
uninterrupted run, each once. A framework that is not installed is skipped;
COMPOSER_PYTHON names a Python that has Composer."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import PACKAGE, betonfs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "contrib/examples"
DEADLINE = 300
N, VAL, B, EPOCHS = 96, 20, 8, 3
BATCHES = N // B                    # of an epoch
# The checkpoint counts these, one epoch and some of the next one.
SAVED = BATCHES + 8


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frameworks")
    rng = np.random.default_rng(0)
    for name, n in ("train", N), ("val", VAL):
        betonfs.write(folder / f"{name}.beton", [
            {"image": rng.integers(0, 256, (40, 40, 3), np.uint8),
             "label": i % 3} for i in range(n)], mode="raw")
    return folder


def find_python(module, variable=""):
    """A Python that has the module; skips where there is none."""
    exe = shutil.which(os.environ.get(variable, sys.executable))
    for needed in "torch", module:
        if not exe or subprocess.run([exe, "-c", f"import {needed}"],
                                     capture_output=True).returncode:
            pytest.skip(f"{needed} is not installed")
    return exe


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Run:
    """One program in a process group of its own, until it ends or is killed."""

    def __init__(self, folder, command, kill_at=-1, when=None):
        self.record = folder / f"record{kill_at}"
        self.record.mkdir()
        self.log = folder / f"log{kill_at}"
        env = {**os.environ, "RECORD": str(self.record),
               "KILL_AT": str(kill_at), "OMP_NUM_THREADS": "1",
               "KILL_WHEN": f"{folder}/{when}" if when else "::",
               "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "1",
               "PYTHONPATH": f"{HERE / 'recorder'}:{PACKAGE}"}
        with open(self.log, "w") as log:
            process = subprocess.Popen(
                list(map(str, command)), cwd=folder, env=env, stdout=log,
                stderr=log, start_new_session=True)
        try:
            self.code = process.wait(DEADLINE)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def batches(self, least=1, most=1 << 30):
        """(epoch, number, ids) of each batch that some rank took in its steps
        `least` to `most`, sorted; step 0 is validation."""
        lines = [json.loads(line) for path in self.record.glob("*.jsonl")
                 for line in path.read_text().splitlines()]
        return sorted((x["epoch"], x["number"], tuple(x["ids"]))
                      for x in lines if least <= x["step"] <= most)


def uninterrupted(path):
    with betonfs.Loader(path, B, seed=1, tensors="numpy",
                        pipeline={"label": "label"}) as loader:
        return [(b.epoch, b.number, tuple(b.ids.tolist()))
                for _ in range(EPOCHS) for b in loader]


def torchrun(exe, world):
    return [exe, "-m", "torch.distributed.run", "--nproc-per-node", world,
            "--master-addr", "127.0.0.1", "--master-port", free_port()]


def composer(exe, world, script):
    return [exe, "-m", "composer.cli.launcher", "-n", world, script]


def lightning(exe, world, script):
    return [exe, script, "--devices", world]


def ray(exe, world, script):
    return [exe, script, "--workers", world]


def with_torchrun(exe, world, script):
    return [*torchrun(exe, world), script]


class Example:
    """How an example is started, and what it is given to resume."""

    def __init__(self, start, module=None, every=4, resume=(), when=None,
                 python=""):
        self.start, self.module, self.every = start, module, every
        self.resume, self.when, self.python = resume, when, python


CASES = {
    "accelerate": Example(with_torchrun),
    "composer": Example(composer, python="COMPOSER_PYTHON"),
    "lightning": Example(lightning, resume=("--resume", "out/last.ckpt")),
    # Its reports are slow, and count only when its controller has noticed.
    "ray": Example(ray, "ray.train", every=8, when='out/betonfs/'
                   'checkpoint_manager_snapshot.json:1:"epoch":1'),
    "torchrun": Example(with_torchrun, "torch"),
    "transformers": Example(with_torchrun),
}


@pytest.mark.parametrize("before,after", [(2, 1), (1, 2)])
@pytest.mark.parametrize("name", CASES)
def test_a_killed_run_resumes_in_another_world_size(data, tmp_path, name, before,
                                               after):
    case = CASES[name]
    exe = find_python(case.module or name, case.python)
    script = EXAMPLES / f"train_{name}.py"
    arguments = [data / "train.beton", data / "val.beton", "--classes", 3,
                 "--batch-size", B, "--epochs", EPOCHS, "--directory", "out",
                 "--save-every", case.every // before]
    first = Run(tmp_path, [*case.start(exe, before, script), *arguments],
                kill_at=SAVED // before + 1, when=case.when)
    log = first.log.read_text()
    assert first.code, log
    assert len(first.batches()) == SAVED + before, log
    then = Run(tmp_path, [*case.start(exe, after, script), *arguments,
                          *case.resume])
    assert not then.code, then.log.read_text()
    log = then.log.read_text()
    assert sorted(first.batches(most=SAVED // before) + then.batches()) == \
        uninterrupted(data / "train.beton"), log
    seen = [i for _, _, ids in then.batches(0, 0) for i in ids]
    assert sorted(seen) == sorted(2 * list(range(VAL))), log
