# SPDX-License-Identifier: Apache-2.0
"""Networks that learn to tell pictures apart become as good through our loader
as through torch's DataLoader and, where it is, FFCV. FFCV_PYTHON names a Python
that has torch, if this one has not; without one this is skipped."""
import io
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

import numpy as np
import pytest

from package import PACKAGE, betonfs

Image = pytest.importorskip("PIL.Image")

PROGRAM = os.path.join(os.path.dirname(__file__), "learning.py")
DEADLINE = 900
SIZE, TRAIN, TEST, SEEDS = 32, 1600, 2000, 5


# --- pictures: five shapes in two colours, ten classes ---

SHAPES = [
    lambda y, x, r: x * x + y * y < r * r,                          # disc
    lambda y, x, r: (x * x + y * y < r * r)
    & (x * x + y * y > r * r / 3),                                  # ring
    lambda y, x, r: (abs(x) < r) & (abs(y) < r)
    & (abs(y) % (r / 2) < r / 4),                                   # bars
    lambda y, x, r: (abs(x) < r) & (abs(y) < r)
    & ((abs(x) < r / 4) | (abs(y) < r / 4)),                        # cross
    lambda y, x, r: (abs(x) * 2 < y + r) & (abs(y) < r)]            # triangle


def picture(i):
    """Which of the classes it is, and pixels: the shape is anywhere, and of any
    size and brightness, as is what is behind it; all of it is noisy."""
    rng = np.random.default_rng(i)
    label = int(rng.integers(2 * len(SHAPES)))
    r = rng.uniform(5, 10)
    y, x = np.ogrid[:SIZE, :SIZE]
    mask = SHAPES[label // 2](y - rng.uniform(10, SIZE - 10),
                              x - rng.uniform(10, SIZE - 10), r)
    colour = rng.uniform(60, 160, 3)
    shape = colour + rng.uniform(30, 60)
    shape[2 * (label % 2)] += 40        # rather red, or rather blue
    pixels = np.where(mask[..., None], shape, colour)
    pixels = pixels + rng.normal(0, 12, (SIZE, SIZE, 3))
    return label, pixels.clip(0, 255).astype(np.uint8)


def jpeg(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "jpeg", quality=90)
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """As learning.py wants it."""
    folder = tmp_path_factory.mktemp("accuracy")
    pictures = [picture(i) for i in range(TRAIN + TEST)]
    labels = [label for label, _ in pictures]
    jpegs = [jpeg(pixels) for _, pixels in pictures[:TRAIN]]
    fields = {"image": "image", "label": "int"}
    betonfs.write(folder / "train.beton", list(zip(jpegs, labels)), fields)
    random = np.random.default_rng(0).permutation(labels[:TRAIN])
    betonfs.write(folder / "random.beton", list(zip(jpegs, random)), fields)
    np.savez(folder / "train.npz", labels=labels[:TRAIN],
             data=np.frombuffer(b"".join(jpegs), np.uint8),
             ends=np.cumsum([len(j) for j in jpegs]))
    np.savez(folder / "test.npz", labels=labels[TRAIN:],
             pixels=[pixels for _, pixels in pictures[TRAIN:]])
    return folder


@pytest.fixture(scope="module")
def accuracies(folder):
    exe = shutil.which(os.environ.get("FFCV_PYTHON", sys.executable))
    if not exe:
        pytest.skip("FFCV_PYTHON is not there")
    # numba finds its libraries by PATH.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PACKAGE),
           "PATH": os.path.dirname(exe) + os.pathsep + os.environ["PATH"]}
    r = subprocess.run([exe, "-c", "import torch, PIL, betonfs"], env=env,
                       capture_output=True, timeout=DEADLINE)
    if r.returncode:
        pytest.skip(f"{exe} has no torch or PIL (set FFCV_PYTHON)")
    r = subprocess.run([exe, PROGRAM, folder, str(SEEDS)], env=env, text=True,
                       capture_output=True, timeout=DEADLINE)
    assert r.returncode == 0, r.stderr
    print(r.stdout)
    return json.loads(r.stdout)


def test_networks_become_as_good(accuracies):
    """Equal seeds begin with equal weights; what differs is chance. So the mean
    of the differences is within two points, or four of its standard errors."""
    ours = accuracies["ours"]
    assert statistics.mean(ours) > 0.9
    for name in set(accuracies) - {"ours", "random"}:
        theirs = accuracies[name]
        apart = [a - b for a, b in zip(ours, theirs)]
        error = statistics.stdev(apart) / math.sqrt(SEEDS)
        assert abs(statistics.mean(apart)) <= max(0.02, 4 * error), name
        assert statistics.mean(theirs) > 0.9, name


def test_nothing_is_learnt_of_wrong_labels(accuracies):
    """So what is learnt is in the pictures, and the test would see if labels
    came with the wrong ones."""
    assert max(accuracies["random"]) < 0.3
