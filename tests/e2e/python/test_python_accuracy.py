# SPDX-License-Identifier: Apache-2.0
"""Networks that classify pictures become as good through our loader as through
torch's DataLoader and, if it is installed, FFCV. If this Python has no torch,
FFCV_PYTHON may name one that has it; otherwise the tests are skipped. If FFCV
is installed, networks also learn photographs, in ../shared or BETON_SHARED."""
import io
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy as np
import pytest

from betonfile import Beton
from package import PACKAGE, betonfs

Image = pytest.importorskip("PIL.Image")

PROGRAM = str(pathlib.Path(__file__).parents[1] / "learning.py")
DEADLINE = 1800
SIZE, TRAIN, TEST, SEEDS = 32, 1600, 2000, 5


# --- pictures: five shapes in two colors, ten classes ---

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
    color = rng.uniform(60, 160, 3)
    shape = color + rng.uniform(30, 60)
    shape[2 * (label % 2)] += 40        # rather red, or rather blue
    pixels = np.where(mask[..., None], shape, color)
    pixels = pixels + rng.normal(0, 12, (SIZE, SIZE, 3))
    return label, pixels.clip(0, 255).astype(np.uint8)


def jpeg(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "jpeg", quality=90)
    return out.getvalue()


def write(path, jpegs, labels):
    betonfs.write(path, list(zip(jpegs, labels)),
                  {"image": "image", "label": "int"})


# --- networks that learn them ---

@pytest.fixture(scope="module")
def learning():
    """learning(task, directory) -> the output of learning.py."""
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

    def run(task, folder):
        r = subprocess.run([exe, PROGRAM, task, folder, str(SEEDS)], env=env,
                           text=True, capture_output=True, timeout=DEADLINE)
        assert r.returncode == 0, r.stderr
        print(r.stdout)
        return json.loads(r.stdout)
    return run


def check_alike(accuracies, least, apart):
    """Equal seeds begin with equal weights; what differs is chance. So the mean
    of the differences is within `apart`, or four of its standard errors."""
    ours = accuracies["ours"]
    assert statistics.mean(ours) > least
    for name in set(accuracies) - {"ours", "random"}:
        theirs = accuracies[name]
        differences = [a - b for a, b in zip(ours, theirs)]
        error = statistics.stdev(differences) / math.sqrt(SEEDS)
        assert abs(statistics.mean(differences)) <= max(apart, 4 * error), name
        assert statistics.mean(theirs) > least, name


@pytest.fixture(scope="module")
def shapes(tmp_path_factory, learning):
    folder = tmp_path_factory.mktemp("shapes")
    labels, pixels = zip(*map(picture, range(TRAIN + TEST)))
    jpegs = list(map(jpeg, pixels))
    write(folder / "train.beton", jpegs[:TRAIN], labels)
    write(folder / "test.beton", jpegs[TRAIN:], labels[TRAIN:])
    random = np.random.default_rng(0).permutation(labels[:TRAIN])
    write(folder / "random.beton", jpegs[:TRAIN], random)
    return learning("shapes", folder)


def test_networks_become_as_good(shapes):
    check_alike(shapes, 0.9, 0.02)


def test_nothing_is_learnt_of_wrong_labels(shapes):
    """So what is learnt is in the pictures, and the test would see if labels
    came with the wrong ones."""
    assert max(shapes["random"]) < 0.3


# --- photographs: animals and things ---

SHARED = pathlib.Path(os.environ.get(
    "BETON_SHARED", pathlib.Path(__file__).resolve().parents[4] / "shared"))
# The thousand classes of ImageNet are sorted by their ids, those of WordNet's
# nouns. Animals come first; this is the first other one, an abacus.
FIRST_THING = "n02666196"
FOLDS = SEEDS

# Arguments: the file; photographs and labels as JSON.
WRITE = """
import json, sys
from PIL import Image
from ffcv.fields import IntField, RGBImageField
from ffcv.writer import DatasetWriter

class Photos:
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, label = self.samples[i]
        return Image.open(path).convert("RGB"), label

writer = DatasetWriter(sys.argv[1], {
    "image": RGBImageField("jpg", max_resolution=128, jpeg_quality=90),
    "label": IntField()}, num_workers=2)
writer.from_indexed_dataset(Photos(json.loads(sys.argv[2])))
"""


def labeled():
    """Files, in an order that mixes both kinds, and labels that contain the
    kind and the network that does not learn this one."""
    files = sorted((SHARED / "data/photos").glob("n*.JPEG"))
    if not files:
        pytest.skip(f"no data/photos in {SHARED}")
    files = [files[i] for i in np.random.default_rng(0).permutation(len(files))]
    return [(str(f), int(f.name >= FIRST_THING) + 2 * (i % FOLDS))
            for i, f in enumerate(files)]


@pytest.fixture(scope="module")
def photos(tmp_path_factory, learning):
    folder = tmp_path_factory.mktemp("photos")
    samples = labeled()
    exe = os.environ.get("FFCV_PYTHON", sys.executable)
    r = subprocess.run([exe, "-c", "import ffcv"], capture_output=True)
    if r.returncode:
        pytest.skip(f"{exe} cannot import ffcv (set FFCV_PYTHON)")
    train = folder / "train.beton"
    subprocess.run([exe, "-c", WRITE, train, json.dumps(samples)], check=True,
                   timeout=DEADLINE)
    (folder / "test.beton").symlink_to(train)
    file = Beton(train)
    labels = [label for _, label in samples]
    assert file.labels() == labels
    write(folder / "random.beton", [image.bytes for image in file.images()],
          np.random.default_rng(0).permutation(labels))
    return learning("photos", folder)


def test_networks_become_as_good_on_photographs(photos):
    """Each is asked about the fifth of 500 that it did not learn, so one
    accuracy has a standard error of 0.05, and the mean 0.02; a guess: 0.5."""
    check_alike(photos, 0.6, 0.08)


def test_nothing_is_learnt_of_wrong_labels_of_photographs(photos):
    assert abs(statistics.mean(photos["random"]) - 0.5) < 0.1
