# SPDX-License-Identifier: Apache-2.0
"""The examples for Lightning, accelerate and transformers run if these libraries
are installed, and mypy accepts them."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import PACKAGE, betonfs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "contrib/examples"
DEADLINE = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples") / "d.beton"
    rng = np.random.default_rng(0)
    betonfs.write(path, [{"image": rng.integers(0, 256, (40, 48, 3), np.uint8),
                          "label": i % 3} for i in range(24)], mode="raw")
    return path


def run(name, *arguments, where, needs=None):
    for needed in "torch", needs or name.partition("_")[2]:
        if not importlib.util.find_spec(needed):
            pytest.skip(f"{needed} is not installed")
    r = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *map(str, arguments),
         "--classes", "3", "--batch-size", "8", "--directory", where / "out"],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
             "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, cwd=where, timeout=DEADLINE)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


def segmentation(where, python, loader, *arguments):
    """The IoU of each seed."""
    r = subprocess.run(
        [python, EXAMPLES / "train_segmentation.py", "--directory", where,
         "--loader", loader, *map(str, arguments)], text=True,
        capture_output=True, timeout=DEADLINE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
             "CUDA_VISIBLE_DEVICES": ""})
    assert r.returncode == 0, r.stdout + r.stderr
    return [float(line.split()[-1]) for line in r.stdout.splitlines()]


def test_segmentation(tmp_path):
    if not importlib.util.find_spec("torch"):
        pytest.skip("torch is not installed")
    scores = segmentation(tmp_path, sys.executable, "betonfs", "--seeds", 1)
    assert len(scores) == 1 and 0.5 < scores[0] <= 1


def test_segmentation_is_as_good_as_with_torchvision(tmp_path):
    python = os.environ.get("TORCHVISION_PYTHON")
    if not python:
        pytest.skip("TORCHVISION_PYTHON names no interpreter with torchvision")
    ours, theirs = (segmentation(tmp_path, python, loader, "--seeds", 3)
                    for loader in ("betonfs", "torchvision"))
    assert np.mean(ours) > np.mean(theirs) - 0.02


def losses(where, name):
    """The loss of each epoch, and the lines printed after them."""
    python = sys.executable
    if not importlib.util.find_spec("torch"):
        python = os.environ.get("TORCHVISION_PYTHON")
        if not python:
            pytest.skip("torch is not installed, and TORCHVISION_PYTHON names "
                        "no interpreter that has it")
    r = subprocess.run(
        [python, EXAMPLES / f"{name}.py", "--directory", where], text=True,
        capture_output=True, timeout=DEADLINE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
             "CUDA_VISIBLE_DEVICES": ""})
    assert r.returncode == 0, r.stdout + r.stderr
    lines = r.stdout.splitlines()
    epochs = [line for line in lines if line.startswith("epoch ")]
    return [float(e.split()[-1]) for e in epochs], lines[len(epochs):]


@pytest.mark.parametrize("name,most", [
    ("contrastive", 0.8), ("video", 0.3), ("audio", 0.3), ("tokens", 0.4)])
def test_training_on_other_data_learns(tmp_path, name, most):
    seen, rest = losses(tmp_path, f"train_{name}")
    assert seen[-1] < most * seen[0]
    if name == "tokens":
        own, plain = (float(word.strip(",")) for word in rest[0].split()
                      if word[0].isdigit())
        assert own < 0.7 * plain


def test_lightning(data, tmp_path):
    out = run("train_lightning", data, data, where=tmp_path)
    assert "'accuracy': " in out and "'loss': " in out
    saved, = (tmp_path / "out").rglob("*.ckpt")
    out = run("train_lightning", data, data, "--resume", saved, "--epochs", 3,
              where=tmp_path)
    assert "'loss': " in out


def test_accelerate(data, tmp_path):
    out = run("train_accelerate", data, data, where=tmp_path)
    assert out.split()[::6] == ["epoch", "epoch"]
    assert all(0 <= float(a) <= 1 for a in out.split()[5::6])
    # It resumes after the last epoch.
    out = run("train_accelerate", data, data, "--epochs", 3, where=tmp_path)
    assert "epoch 2: loss" in out and "epoch 1" not in out


def test_transformers(data, tmp_path):
    out = run("train_transformers", data, data, where=tmp_path)
    assert 0 < float(out.strip().split("\n")[-1]) < 10


def test_torchrun(data, tmp_path, monkeypatch):
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0),
                        ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", 0)):
        monkeypatch.setenv(name, str(value))
    out = run("train_torchrun", data, data, where=tmp_path, needs="torch")
    accuracies = [float(line.split()[-1]) for line in out.splitlines()]
    # The accuracy is a fraction of 24 samples.
    assert len(accuracies) == 2 and all(
        0 <= a <= 1 and abs(24 * a - round(24 * a)) < 0.01
        for a in accuracies)


def test_types_of_the_examples(tmp_path):
    exe = shutil.which("mypy")
    if not exe:
        pytest.skip("mypy is not installed")
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\ndisallow_subclassing_any = false\n"
        + "".join(f"[mypy-{name}.*]\nfollow_imports = skip\n"
                  "ignore_missing_imports = true\n" for name in
                  ("torch", "lightning", "accelerate", "transformers",
                   "ray", "composer", "PIL", "torchvision")))
    r = subprocess.run(
        [exe, "--config-file", tmp_path / "mypy.ini", "--cache-dir", tmp_path,
         *sorted(EXAMPLES.glob("*.py"))], capture_output=True, text=True,
        cwd=tmp_path, env={**os.environ, "MYPYPATH":
                           str(ROOT / "contrib/python")}, timeout=DEADLINE)
    assert r.returncode == 0, r.stdout + r.stderr
