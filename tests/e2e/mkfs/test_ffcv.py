# SPDX-License-Identifier: Apache-2.0
"""The real FFCV reads what mkfs.beton writes, and makes of our random numbers
what our operations do. FFCV_PYTHON names a Python that has it; without one
these tests are skipped."""
import os
import subprocess

import numpy as np
import pytest

import by_ffcv
import make
from draws import Draws
from by_ffcv import READ, photo
from dumped import dump

Image = pytest.importorskip("PIL.Image")

python = by_ffcv.python
BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """40 PNG files of one size in four classes; the pixels of each."""
    folder = tmp_path_factory.mktemp("ffcv") / "src"
    want = []
    for i in range(40):
        path = folder / ("class%d" % (i // 10)) / ("%02d.png" % i)
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(i).save(path)
        want.append(np.asarray(photo(i)))
    return folder, np.stack(want)


# FFCV compiles its loader every time: ten seconds each.
@pytest.mark.parametrize("mode, cache, order", [
    ("raw", "os", "SEQUENTIAL"), ("jpg", "process", "QUASI_RANDOM"),
    ("proportion=0.5", "process", "SEQUENTIAL"), ("keep", "os", "SEQUENTIAL")])
def test_ffcv_reads_the_same(python, source, tmp_path, mode, cache, order):
    folder, want = source
    path, out = tmp_path / "x.beton", tmp_path / "out.npz"
    subprocess.run([os.path.join(BUILD, "mkfs.beton"), "--mode", mode,
                    "--quality=100", folder, path], check=True)
    subprocess.run([python, "-c", READ, path, cache, order, out], check=True,
                   timeout=300)
    got = np.load(out)
    assert got["image"].shape == want.shape
    # Which sample a row is, by its pixels: JPEG is near, others are far.
    far = np.abs(got["image"][:, None].astype(int) - want[None]) \
        .mean(axis=(2, 3, 4))
    ids = far.argmin(axis=1)
    assert far.min(axis=1).max() <= (0 if mode == "raw" else 3)
    assert sorted(ids.tolist()) == list(range(40))
    if order == "SEQUENTIAL":
        assert ids.tolist() == list(range(40))
    assert got["label"][:, 0].tolist() == (ids // 10).tolist()


@pytest.mark.parametrize("how", ["optimize", "index"])
def test_ffcv_sees_no_difference(python, source, tmp_path, how):
    """Files with shared Huffman tables, and with an index."""
    mkfs = [os.path.join(BUILD, "mkfs.beton"), source[0]]
    plain, fast = tmp_path / "plain.beton", tmp_path / "fast.beton"
    subprocess.run(mkfs + [plain], check=True)
    if how == "optimize":
        subprocess.run([os.path.join(BUILD, "beton"), how, plain, fast],
                       check=True)
    else:
        subprocess.run(mkfs + ["--index", fast], check=True)
    assert b"beton\0\1" in fast.read_bytes()
    got = {}
    for path in (plain, fast):
        out = tmp_path / "out.npz"
        subprocess.run([python, "-c", READ, path, "process", "SEQUENTIAL",
                        out], check=True, timeout=300)
        got[path] = dict(np.load(out))
    assert got[plain]["image"].shape == source[1].shape
    for name in got[plain]:
        assert np.array_equal(got[plain][name], got[fast][name])


# --- operations ---

# FFCV's transforms as plain Python, with our draws in the place of NumPy's.
# Arguments: .npz of images, ids and draws, the .npz for the results.
APPLY = """
import sys
import numpy as np
import torch
import ffcv.transforms as T
import ffcv.transforms.flip, ffcv.transforms.translate

given = dict(np.load(sys.argv[1]))
images, ids, n = given["images"], given["ids"], len(given["ids"])
got = {}


def draw(name, column):
    return iter(given[name][:, column])


class Fake:
    # rand(n) and uniform(a, b, n) of a column of draws each
    def __init__(self, name):
        self.name, self.both = name, None

    def rand(self, *shape):
        return given[self.name][:, 0]

    def uniform(self, low, high, n):
        return low + (high - low) * given[self.name][:, 1]

    def randint(self, low=0, high=None):
        if high is None:
            low, high = 0, low
        self.both = self.both or iter(given[self.name].ravel())
        return low + int(next(self.both) * (high - low))

    def seed(self, seed):
        assert seed == ids[-1]

    def beta(self, a, b, n=None):
        return given[self.name][-1, 0] if n is None else given[self.name][:, 0]


def run(name, op, x, *more):
    fake = Fake(name)
    for f in ("rand", "uniform", "randint", "seed", "beta"):
        setattr(np.random, f, getattr(fake, f))
    T.flip.rand, T.translate.randint = fake.rand, fake.randint
    return np.array(op.generate_code()(x, *more))


h, w = images.shape[1:3]
new = np.empty_like
got["flip"] = run("flip", T.RandomHorizontalFlip(0.6), images.copy(),
                  new(images))
got["cutout"] = run("cutout", T.Cutout(6, (1, 2, 3)), images.copy())
got["random_translate"] = run(
    "random_translate", T.RandomTranslate(5, (9, 8, 7)), images.copy(),
    np.empty((n, h + 10, w + 10, 3), np.uint8))
for name, op in (("brightness", T.RandomBrightness),
                 ("contrast", T.RandomContrast),
                 ("saturation", T.RandomSaturation)):
    got[name] = run(name, op(0.7, 0.8), images.copy(), new(images))
got["poison"] = run("flip", T.Poison(given["mask"], given["alpha"],
                                     given["some"], (3, 250)), images.copy(),
                    np.empty(images.shape, np.float32), ids)
got["replace_label"] = run("flip", T.ReplaceLabel(given["some"], 77),
                           given["labels"].copy(), None, ids)
for name, same in ("batch", True), ("sample", False):
    got["mixup_" + name] = run("mixup_" + name, T.ImageMixup(0.4, same),
                               images, new(images), ids)
    got["labels_" + name] = run("mixup_" + name, T.LabelMixup(0.4, same),
                                given["labels"], np.empty((n, 3), "f4"), ids)
    got["hot_" + name] = T.MixupToOneHot(10).generate_code()(
        torch.tensor(got["labels_" + name]), torch.empty(n, 10)).numpy()
got["normalize"] = run("flip", T.NormalizeImage(
    np.array([120., 110, 100]), np.array([60., 50, 70]), np.float32), images,
    np.empty(images.shape, np.float32), ids)
np.savez(sys.argv[2], **got)
"""

SEED, EPOCH, COUNT = 9, 2, 40


def drawn(ids):
    """The random numbers of our operations, a row per sample."""
    def table(op, count):
        return np.array([[d() for _ in range(count)] for d in
                         (Draws(SEED, EPOCH, i, op) for i in ids)])
    t = {name: table(f"{name}:0", 2) for name in
         ("flip", "random_translate", "brightness", "contrast", "saturation")}
    t["cutout"] = table("cutout:0", 3)[:, 1:]  # FFCV has no probability
    return t


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Random images with labels, as arrays and as a dataset."""
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (COUNT, 20, 30, 3), np.uint8)
    labels = rng.integers(0, 10, (COUNT, 1))
    path = tmp_path_factory.mktemp("ffcv") / "raw.beton"
    make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.RAW, 30, 20, x.tobytes()), "label": int(y)}
        for x, (y,) in zip(images, labels)], 1 << 13)
    return path, images, labels


def ours(path, out, text):
    """One batch of all samples, in a random order."""
    b, = dump(path, out, "--spec", f"batch={COUNT},seed={SEED}", "--epoch",
              EPOCH, "--pipeline", text)
    return b


def test_ffcv_makes_the_same_of_our_draws(python, raw, tmp_path):
    path, images, labels = raw
    rng = np.random.default_rng(1)
    some = np.array([0, 5, 17, 39])
    mask, alpha = rng.uniform(0, 255, (20, 30, 3)), rng.random((20, 30))
    np.save(tmp_path / "mask.npy", mask)
    np.save(tmp_path / "alpha.npy", alpha)
    listed = ",".join(map(str, some))
    texts = {
        "flip": "flip(0.6)", "cutout": 'cutout(6, "1,2,3")',
        "random_translate": 'random_translate(5, "9,8,7")',
        "brightness": "brightness(0.7, 0.8)",
        "contrast": "contrast(0.7, 0.8)",
        "saturation": "saturation(0.7, 0.8)",
        "poison": f'poison("{tmp_path}/mask.npy", "{tmp_path}/alpha.npy", '
                  f'"{listed}", "3,250")',
        "normalize": f'normalize("{120 / 255},{110 / 255},{100 / 255}", '
                     f'"{60 / 255},{50 / 255},{70 / 255}")',
        "mixup_batch": "mixup(0.4)", "mixup_sample": "mixup(0.4, sample)"}
    text = "image | drop" + "".join(
        f"; {k} = image | {v}" for k, v in texts.items() if "mixup" not in k)
    text += f'; replace_label = label | replace_label("{listed}", 77)'
    for k, per in ("b", "batch"), ("s", "sample"):
        how = f"mixup(0.4, {per}, group={k})"
        text += (f"; mixup_{per} = image | {how}; labels_{per} = label | "
                 f"{how}; hot_{per} = label | one_hot(10) | {how}")
    b = ours(path, tmp_path / "x", text)
    given = drawn(b.ids)
    for per in "batch", "sample":
        given["mixup_" + per] = b.outputs["labels_" + per][:, 2:].astype("f8")
    np.savez(tmp_path / "given.npz", images=images[b.ids], some=some,
             labels=labels[b.ids], ids=np.array(b.ids), mask=mask,
             alpha=alpha, **given)
    subprocess.run([python, "-c", APPLY, tmp_path / "given.npz",
                    tmp_path / "got.npz"], check=True, timeout=300)
    got = dict(np.load(tmp_path / "got.npz"))
    for name in "flip", "cutout", "random_translate":
        assert np.array_equal(b.outputs[name], got[name]), name
        assert not np.array_equal(got[name], images[b.ids]), name
    # It calculates in float64, and truncates too.
    for name in ("brightness", "contrast", "saturation", "poison",
                 "mixup_batch", "mixup_sample"):
        off = np.abs(b.outputs[name].astype(int) - got[name])
        print(name, (off > 0).mean())
        assert off.max() <= 1 and (off > 0).mean() < 0.02, name
        assert not np.array_equal(got[name], images[b.ids]), name
    assert np.allclose(b.outputs["normalize"], got["normalize"], atol=1e-5)
    assert np.array_equal(b.outputs["replace_label"],
                          got["replace_label"][:, 0])
    for per in "batch", "sample":
        assert np.array_equal(b.outputs["labels_" + per],
                              got["labels_" + per])
        differ = got["labels_" + per][:, 0] != got["labels_" + per][:, 1]
        # If labels are equal, FFCV's result is 1 - l.
        assert np.allclose(b.outputs["hot_" + per][differ],
                           got["hot_" + per][differ], atol=1e-6)
        assert (b.outputs["hot_" + per].sum(axis=1) > 0.999).all()
        assert differ.any() and not differ.all()
