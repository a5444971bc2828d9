# SPDX-License-Identifier: Apache-2.0
"""Networks of torch that learn: from a mount in several processes, which see
one sequence of batches, also from the middle of an epoch in other numbers of
processes; and from arrays and texts, with the values that torch's own
DataLoader has of the same file. FFCV_PYTHON names a Python that has torch, if
this one has not; without one these tests are skipped."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from package import PACKAGE, betonfs
from compiled import SLOW, needs_compiler

HERE = pathlib.Path(__file__).resolve().parents[1]
DEADLINE = 300
EPOCHS, N = 3, 60
BATCHES = 15


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    """trainer(kind, path) -> what training.py prints."""
    exe = os.environ.get("FFCV_PYTHON", sys.executable)
    if not shutil.which(exe):
        pytest.skip(f"FFCV_PYTHON={exe} is not there")
    env = {**{k: v for k, v in os.environ.items()
              if k not in ("RANK", "WORLD_SIZE")}, "OMP_NUM_THREADS": "1",
           "PYTHONPATH": str(PACKAGE)}
    r = subprocess.run(
        [exe, "-c", "import importlib.util as u, betonfs; "
         "raise SystemExit(u.find_spec('torch') is None)"],
        env=env, capture_output=True, timeout=DEADLINE)
    if r.returncode:
        pytest.skip(f"{exe} has no torch (set FFCV_PYTHON)")

    def run(kind, path, folder=None, **more):
        folder = folder or tmp_path_factory.mktemp(kind)
        p = subprocess.run(
            [exe, HERE / "training.py", kind, path, folder],
            env={**env, **more}, capture_output=True, text=True,
            timeout=DEADLINE)
        assert p.returncode == 0, p.stderr
        return json.loads(p.stdout)
    return run


# --- several processes, one sequence of batches ---

@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Pictures that are rather red, green or blue."""
    rng = np.random.default_rng(4)
    samples = []
    for i in range(N):
        pixels = rng.integers(0, 160, (8, 8, 3), np.uint8)
        pixels[..., i % 3] += 80
        samples.append({"image": pixels, "label": i % 3})
    path = tmp_path_factory.mktemp("images") / "i.beton"
    betonfs.write(path, samples, mode="raw")
    return path


def by_number(ranks, epoch):
    """Number -> ids and pixels of an epoch's batches that are no padding."""
    return {b["number"]: (b["ids"], b["pixels"]) for r in ranks
            for b in r["saw"] if b["epoch"] == epoch and any(b["valid"])}


def losses(ranks, epoch):
    return [v for r in ranks for b in r["saw"] if b["epoch"] == epoch
            for v in b["loss"]]


def test_processes_share_every_epoch(images, mount, trainer):
    out = trainer("images", mount(images))
    ranks = out["whole"]
    # As DDP needs it, also where batches do not divide.
    assert [r["steps"] for r in ranks] == [8, 8]
    assert [len(r["saw"]) for r in ranks] == [8 * EPOCHS] * 2
    for epoch in range(EPOCHS):
        ids = [i for r in ranks for b in r["saw"] if b["epoch"] == epoch
               for i, valid in zip(b["ids"], b["valid"]) if valid]
        assert sorted(ids) == list(range(N))
        assert sorted(by_number(ranks, epoch)) == list(range(BATCHES))
    orders = [[v[0] for _, v in sorted(by_number(ranks, e).items())]
              for e in range(EPOCHS)]
    assert orders[0] != orders[1] != orders[2]
    assert ranks[0]["weights"] == ranks[1]["weights"]
    means = [np.mean(losses(ranks, e)) for e in range(EPOCHS)]
    assert means[0] > means[1] > means[2]
    assert means[2] < means[0] / 2
    check_going_on(out)


def check_going_on(out):
    """Three steps of two processes, then three processes to the end."""
    want = by_number(out["whole"], 0)
    before, after = by_number(out["before"], 0), by_number(out["after"], 0)
    assert sorted(before) == list(range(6))
    assert sorted(after) == list(range(6, BATCHES))
    assert {**before, **after} == want
    assert by_number(out["after"], 1) == by_number(out["whole"], 1)
    assert [len(r["saw"]) for r in out["after"]] == [3 + 5] * 3
    assert len({str(r["weights"]) for r in out["after"]}) == 1
    # It learned before, and did not begin again.
    assert np.mean(losses(out["after"], 1)) < np.mean(losses(out["whole"], 0))


# --- without its data ---

@needs_compiler
def test_a_script_is_run_again_without_its_data(images, trainer, tmp_path):
    """As it is, and what is left is its own time."""
    (tmp_path / "slow.c").write_text(SLOW)
    real = trainer("timed", images, tmp_path)
    synthetic = trainer("timed", images, tmp_path, BETON_SYNTHETIC="constant")
    assert real["steps"] == synthetic["steps"] == BATCHES
    assert len(real["pixels"]) == len(synthetic["pixels"]) == EPOCHS * BATCHES
    assert set(synthetic["pixels"]) == {synthetic["pixels"][0]} == {real["pixels"][0]}
    assert len(set(real["pixels"])) == EPOCHS * BATCHES
    assert real["transformed"] >= EPOCHS * N > synthetic["transformed"]
    # The time of an epoch beyond the trainer's own work.
    data = min(real["epochs"]) - real["own"]
    assert data > 5 * real["own"]
    assert min(synthetic["epochs"]) - synthetic["own"] < 0.1 * data


# --- beside torch's own DataLoader ---

def write_sparse(path):
    """Sums of a few of 32 hidden numbers."""
    rng = np.random.default_rng(6)
    hidden = rng.normal(0, 1, 32).astype("<f4")
    samples = []
    for _ in range(400):
        index = rng.choice(32, 4, replace=False)
        weight = rng.normal(0, 1, 4).astype("<f4")
        samples.append({"index": index, "weight": weight,
                        "target": float(weight @ hidden[index])})
    betonfs.write(path, samples)


def write_text(path):
    """Sentences of three languages, by their words."""
    rng = np.random.default_rng(7)
    words = ["the of and to in is that for it with".split(),
             "der die und das nicht mit ein für auf über".split(),
             "le la et les des une dans qui où être".split()]
    samples = [{"text": " ".join(rng.choice(words[i % 3], rng.integers(3, 12)))
                .encode(), "label": i % 3} for i in range(400)]
    betonfs.write(path, samples)


@pytest.fixture(scope="module")
def beside(trainer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("beside")
    write_sparse(folder / "sparse.beton")
    write_text(folder / "text.beton")
    return trainer("beside", folder)


@pytest.mark.parametrize("kind", ["sparse", "text"])
def test_other_than_images_are_learned_too(beside, kind):
    out = beside[kind]
    ours, torchs = out["ours"], out["torchs"]
    assert ours["values"] == torchs["values"]
    assert ours["loss"] == torchs["loss"]
    assert ours["loss"][2] < ours["loss"][1] < ours["loss"][0]
    assert ours["loss"][2] < ours["loss"][0] / 2
    for epoch in out["order"]:
        assert sorted(i for ids in epoch for i in ids) == list(range(400))
