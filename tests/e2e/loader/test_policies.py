# SPDX-License-Identifier: Apache-2.0
"""Policies of augmentation, through `beton dump`: against NumPy code written from
beton-operations(7), and against torchvision where TORCHVISION_PYTHON names an
interpreter that has it."""
import json
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest

import dumped
import make
import policies
from draws import Draws
from dumped import dump
from draws import beta

SEED, EPOCH = 7, 3
N, W, H = 400, 37, 29
MANY = 2000
HERE = pathlib.Path(__file__).parents[1]


def images(n):
    """Noise, and waves that hold few values."""
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:H, :W]
    for i in range(n):
        if i % 3:
            a, b, c = rng.uniform(0, 0.4, 3)
            waves = np.stack([np.sin(a * x + b * y + k) for k in range(3)], -1)
            low, high = np.sort(rng.integers(0, 256, 2))
            yield (low + (high - low) * (waves / 2 + 0.5)).astype(np.uint8)
        else:
            yield rng.integers(0, 256, (H, W, 3)).astype(np.uint8)


def dataset(path, n):
    made = list(images(n))
    return make.Dataset(path, [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, W, H, x.tobytes())} for x in made
    ]).path, np.stack(made)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dataset(tmp_path_factory.mktemp("policies") / "p.beton", N)


def results(path, text, tmp_path):
    """The image of each sample."""
    out = {}
    for b in dump(path, tmp_path / "x", "--spec",
                  f"batch=64,seed={SEED},drop_last=0", "--epoch", EPOCH,
                  "--pipeline", f"image | {text}"):
        out.update(zip(b.ids, b.outputs["image"]))
    return np.stack([out[i] for i in sorted(out)])


# --- the steps of a policy for a sample ---

def rand_augment(i, ops=2, magnitude=9, bins=31):
    d, names = Draws(SEED, EPOCH, i, "rand_augment:0"), list(policies.RAND)
    for _ in range(ops):
        name = names[d.below(len(names))]
        yield name, policies.magnitude(policies.RAND, name, magnitude, bins,
                                       d(), (H, W))


def trivial_augment(i, bins=31):
    d = Draws(SEED, EPOCH, i, "trivial_augment:0")
    names = list(policies.TRIVIAL)
    name, at = names[d.below(len(names))], d.below(bins)
    yield name, policies.magnitude(policies.TRIVIAL, name, at, bins, d(),
                                   (H, W))


def table(policy):
    """The policy as the manual page has it."""
    with open(HERE / "policies.json") as f:
        return json.load(f)[policy]


def auto_augment(i, policy):
    d = Draws(SEED, EPOCH, i, "auto_augment:0")
    rows = table(policy)
    for name, p, at in rows[d.below(len(rows))]:
        on, u = d() <= p, d()
        if on:
            yield name, policies.magnitude(policies.AUTO, name, at, 10, u,
                                           (H, W))


def color_jitter(i, ranges, p=1):
    """A range of factors for each step; of the hue, of turns."""
    d = Draws(SEED, EPOCH, i, "color_jitter:0")
    on, order = d() < p, list(range(4))
    for n in range(4, 1, -1):
        k = d.below(n)
        order[n - 1], order[k] = order[k], order[n - 1]
    by = [low + d() * (high - low) for low, high in ranges]
    names = "brightness", "contrast", "saturation", "hue"
    for k in order:
        if on and ranges[k] != ((1, 1) if k < 3 else (0, 0)):
            yield names[k], by[k]


def gamma(alpha, d):
    less = math.log(1 - d()) / alpha if alpha < 1 else 0
    e = (alpha if alpha >= 1 else alpha + 1) - 1 / 3
    while True:
        u, v, w = d(), d(), d()
        x = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
        c = (1 + x / math.sqrt(9 * e)) ** 3
        if c > 0 and math.log(1 - w) < x * x / 2 + e - e * c \
                + e * math.log(c):
            return math.exp(less) * e * c


def aug_mix(x, i, severity=3, width=3, depth=-1, alpha=1, all_ops=True):
    """The result for an image."""
    d, names = Draws(SEED, EPOCH, i, "aug_mix:0"), list(policies.AUG_MIX)
    if not all_ops:
        names = names[:-4]
    kept = beta(alpha, d)
    shares = np.array([gamma(alpha, d) for _ in range(width)])
    sums = np.float32(kept) * x.astype(np.float32)
    for share in shares / shares.sum():
        made, times = x, 1 + d.below(3)
        for _ in range(depth if depth > 0 else times):
            name, at = names[d.below(len(names))], d.below(severity)
            made = policies.run(made, [(name, policies.magnitude(
                policies.AUG_MIX, name, at, 10, d(), (H, W)))])
        sums = sums + np.float32((1 - kept) * share) * made.astype(np.float32)
    return np.minimum(sums, 255).astype(np.uint8)


JITTER = ((0.6, 1.4), (0.7, 1.3), (0, 2), (-0.1, 0.1))
CASES = [
    ("color_jitter(0.4, 0.3, 1, 0.1, like=torchvision)", color_jitter,
     {"ranges": JITTER}),
    ('color_jitter("0.5,1.75", hue="-0.5,0.5", p=0.7, like=torchvision)',
     color_jitter, {"ranges": ((0.5, 1.75), (1, 1), (1, 1), (-0.5, 0.5)),
                    "p": 0.7}),
    ('color_jitter(contrast="1.2,3", saturation="1,1.0", like=torchvision)',
     color_jitter, {"ranges": ((1, 1), (1.2, 3), (1, 1), (0, 0))}),
    ("rand_augment", rand_augment, {}),
    ("rand_augment(4, 30)", rand_augment, {"ops": 4, "magnitude": 30}),
    ("rand_augment(1, 5, bins=8)", rand_augment,
     {"ops": 1, "magnitude": 5, "bins": 8}),
    ("rand_augment(2, 0)", rand_augment, {"magnitude": 0}),
    ("trivial_augment", trivial_augment, {}),
    ("trivial_augment(5)", trivial_augment, {"bins": 5}),
    *((f"auto_augment({p})", auto_augment, {"policy": p})
      for p in ("imagenet", "cifar10", "svhn")),
]
NAMES = [text for text, _, _ in CASES]


@pytest.mark.parametrize("text,steps,args", CASES, ids=NAMES)
def test_a_policy_matches_the_manual(data, tmp_path, text, steps, args):
    path, stored = data
    got = results(path, text, tmp_path)
    for i, x in enumerate(stored):
        assert (got[i] == policies.run(x, steps(i, **args))).all(), \
            (i, list(steps(i, **args)))
    if "(2, 0)" not in text:
        assert (got != stored).any((1, 2, 3)).mean() > 0.5


@pytest.mark.parametrize("text,args", [
    ("", {}),
    ("5, 2, 4, 0.3", {"severity": 5, "width": 2, "depth": 4, "alpha": 0.3}),
    ("10, 1, alpha=3, all_ops=false", {"severity": 10, "width": 1, "alpha": 3,
                                       "all_ops": False})])
def test_a_mixture_of_chains(data, tmp_path, text, args):
    path, stored = data
    got = results(path, f"aug_mix({text}, interpolation=nearest)".replace(
        "(, ", "("), tmp_path)
    for i, x in enumerate(stored):
        assert (got[i] == aug_mix(x, i, **args)).all(), i
    assert (got != stored).any((1, 2, 3)).mean() > 0.5


def test_another_color_fills(data, tmp_path):
    path, stored = data
    got = results(path, 'rand_augment(3, 20, fill="9,80,200")', tmp_path)
    for i, x in enumerate(stored):
        assert (got[i] == policies.run(
            x, rand_augment(i, ops=3, magnitude=20),
            ("nearest", (9, 80, 200)))).all()


@pytest.mark.parametrize("text,expects", [
    ("rand_augment(2, 31)", "magnitude must be below bins"),
    ("rand_augment(2, 0, bins=1)", "bins of rand_augment takes"),
    ("rand_augment(interpolation=lots)", "interpolation of rand_augment tak"),
    ("auto_augment(cifar)", "policy of auto_augment takes"),
    ('trivial_augment(fill="1,2")', "a color has one number, or three"),
    ("float | rand_augment", "8-bit"),
    ("aug_mix(11)", "severity of aug_mix takes"),
    ("color_jitter(hue=-0.1, like=torchvision)", "hue is from 0 to 0.5"),
    ('color_jitter("1,0.5")', "LEAST is greater than MOST"),
    ("color_jitter(like=kornia)", "like of color_jitter takes"),
])
def test_a_policy_that_cannot_be(data, tmp_path, text, expects):
    r = dumped.beton("dump", data[0], "--out", tmp_path / "no",
                     "--pipeline", text, code=1)
    assert expects in r.stderr, r.stderr


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (2, 2), (3, 3)])
def test_small_images_have_policies(tmp_path, size):
    rng = np.random.default_rng(2)
    d = make.Dataset(tmp_path / "p.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, size[1], size[0],
                             rng.bytes(3 * size[0] * size[1]))}
        for _ in range(200)])
    for text in ("rand_augment(3, 30)", "trivial_augment",
                 "auto_augment(svhn, bilinear)", "aug_mix(10)",
                 "color_jitter(1, 1, 1, 0.5, like=torchvision)"):
        got = results(d.path, text, tmp_path)
        assert got.shape == (200, *size, 3)


# --- beside torchvision ---

def torchvision(tmp_path, images, steps, how="nearest", fill=(0, 0, 0)):
    python = os.environ.get("TORCHVISION_PYTHON")
    if not python:
        pytest.skip("TORCHVISION_PYTHON names no interpreter with torchvision")
    np.savez(tmp_path / "in.npz", images=images)
    (tmp_path / "steps.json").write_text(json.dumps(
        {"steps": steps, "how": how, "fill": fill}))
    subprocess.run([python, HERE / "beside_torchvision.py",
                    tmp_path / "in.npz", tmp_path / "steps.json",
                    tmp_path / "out.npy"], check=True, timeout=300)
    return np.load(tmp_path / "out.npy")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return dataset(tmp_path_factory.mktemp("many") / "p.beton", MANY)


@pytest.mark.parametrize("text,steps,args", CASES, ids=NAMES)
def test_a_policy_equals_torchvisions(many, tmp_path, text, steps, args):
    path, stored = many
    printed = [list(steps(i, **args)) for i in range(MANY)]
    theirs = torchvision(tmp_path, stored, printed)
    assert (results(path, text, tmp_path) == theirs).all()
