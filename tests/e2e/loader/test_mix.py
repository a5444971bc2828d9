# SPDX-License-Identifier: Apache-2.0
"""Rows that are mixed with others, through `beton dump`: cutmix, a choice of
mixtures, and soft labels, against code written from beton-operations(7)."""
import math

import numpy as np
import pytest

import dumped
import make
from draws import Draws, beta
from dumped import dump

N, W, H = 24, 13, 9
SEED, EPOCH = 7, 3
SPEC = ("--spec", f"batch=5,seed={SEED},drop_last=0", "--epoch", EPOCH)
F = np.float32
CLASSES = 8


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(6)
    path = tmp_path_factory.mktemp("mix") / "p.beton"
    return make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.RAW, W, H, rng.bytes(3 * W * H)),
         "label": label(i)} for i in range(N)])


def stored(data, i):
    return np.frombuffer(data.stored(i, "image"), np.uint8).reshape(H, W, 3)


def label(i):
    return i * 5 % CLASSES


def mixup(own, other, alpha, d):
    share = F(beta(alpha, d))
    own, other = own.astype(F), other.astype(F)
    return (other + share * (own - other)).astype(np.uint8), share


def cutmix(own, other, alpha, d):
    r = 0.5 * math.sqrt(1 - beta(alpha, d))
    x, y, a, b = d.below(W), d.below(H), int(r * W), int(r * H)
    x0, x1, y0, y1 = max(x - a, 0), min(x + a, W), max(y - b, 0), min(y + b, H)
    out = own.copy()
    out[y0:y1, x0:x1] = other[y0:y1, x0:x1]
    return out, F(1 - (x1 - x0) * (y1 - y0) / (W * H))


def soft(own, other, share):
    out = np.zeros(CLASSES, F)
    out[other] = F(1) - share
    out[own] = 1 if own == other else share
    return out


def check(data, b, mix, alpha, last):
    """The images and the labels of a batch."""
    for row, i in enumerate(b.ids):
        other = b.ids[row - 1]
        d = Draws(SEED, EPOCH, last(b, i), f"{mix.__name__}:0")
        image, share = mix(stored(data, i), stored(data, other), alpha, d)
        assert (b.row("image", row) == image).all(), (i, other)
        assert (b.row("label", row) == soft(label(i), label(other),
                                            share)).all()


def of_batch(b, i):
    return b.ids[-1]


def of_sample(b, i):
    return i


@pytest.mark.parametrize("of", [of_batch, of_sample])
@pytest.mark.parametrize("alpha", [0.3, 1, 2])
@pytest.mark.parametrize("order", ["one_hot(8) | {}", "{} | one_hot(8)"])
@pytest.mark.parametrize("mix", [mixup, cutmix])
def test_soft_labels_in_any_order(data, tmp_path, mix, order, alpha, of):
    how = f"{mix.__name__}({alpha}, lambda={of.__name__[3:]})"
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f"label | {order.format(how)}; image | {how}"):
        if len(b.ids) > 1:
            check(data, b, mix, alpha, of)
        else:
            assert b.row("label", 0).tolist() == np.eye(CLASSES)[
                label(b.ids[0])].tolist()


@pytest.mark.parametrize("weights", [None, [1, 3, 2]])
@pytest.mark.parametrize("order", ["one_hot(8) | {}", "{} | one_hot(8)"])
def test_one_of_several_mixtures_for_a_batch(data, tmp_path, weights, order):
    parts = [(mixup, 0.4), (cutmix, 1), (mixup, 3)]
    texts = ["mixup(0.4, group=0)", "cutmix", "mixup(3, group=b)"]
    text = ", ".join(texts) + (f', weights="{",".join(map(str, weights))}"'
                               if weights else "")
    how, seen = f"random_choice({text})", set()
    for b in dump(data.path, tmp_path / "x", "--spec",
                  f"batch=2,seed={SEED}", "--epoch", EPOCH, "--pipeline",
                  f"image | {how}; label | {order.format(how)}"):
        d = Draws(SEED, EPOCH, b.ids[-1], "random_choice:0")
        at = d.below(3) if not weights else \
            int(np.searchsorted(np.cumsum(weights), d() * sum(weights),
                                "right"))
        seen.add(at)
        mix, alpha = parts[at]
        if at < 2:
            check(data, b, mix, alpha, of_batch)
        else:
            share = F(beta(3, Draws(SEED, EPOCH, b.ids[-1], "mixup:b")))
            assert (b.row("label", 0) == soft(
                label(b.ids[0]), label(b.ids[1]), share)).all()
    assert len(seen) > 1


def test_labels_and_shares_as_they_are(data, tmp_path):
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  "image | cutmix | float | chw; label | cutmix | half"):
        assert b.outputs["label"].shape[1:] == (3,)
        for row, i in enumerate(b.ids):
            y, other, share = b.row("label", row)
            assert (y, other) == (label(i), label(b.ids[row - 1]))
            assert 0 <= share <= 1


@pytest.mark.parametrize("text,column,expects", [
    ("label | cutmix", 9, "cutmix of labels needs that of an image"),
    ("image | cutmix(group=a); label | cutmix(group=b)", 34, "of an image"),
    ("image | cutmix; label | cutmix(0.5)", 25, "has other arguments in an"),
    ("image | cutmix | mixup(1)", 18, "is in this statement already"),
    ("image | random_choice(mixup(1), cutmix); label | random_choice(mixup(1)"
     ", cutmix(2))", 50, "has other arguments"),
    ("label | random_choice(mixup(1), cutmix)", 9, "needs that of an image"),
    ("image | random_choice(mixup(1), flip)", 33, "flip cannot stand beside"),
    ("image | random_choice(flip, mixup(1))", 29, "mixup cannot stand in par"),
    ("image | random_choice(mixup(1) | flip, cutmix)", 34, "must be alone in their lists"),
    ("image | random_apply(cutmix)", 22, "cutmix cannot stand in parenthes"),
    ("a = image | cutmix; b = image | resize(5) | cutmix; label | cutmix", 61,
     "finds images of two sizes"),
    ("label | mixup(1) | half | one_hot(8)", 27, "one_hot works on single"),
])
def test_mixtures_that_cannot_be(data, tmp_path, text, column, expects):
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", text, code=1)
    assert expects in r.stderr and f"column {column}: " in r.stderr, r.stderr


def test_a_mixed_label_that_is_no_class_is_an_error_of_its_row(data, tmp_path):
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no", *SPEC,
                     "--pipeline", "label | mixup(1) | one_hot(7)", code=1)
    assert "one_hot: the label is not from 0 to classes - 1" in r.stderr


def test_two_views_are_cut_without_labels(data, tmp_path):
    text = ("a = image | cutmix; b = image | resize(5) | cutmix; "
            "label | cutmix(group=c); c = image | cutmix(group=c)")
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for row, i in enumerate(b.ids):
            want, _ = cutmix(stored(data, i), stored(data, b.ids[row - 1]), 1,
                             Draws(SEED, EPOCH, b.ids[-1], "cutmix:0"))
            assert (b.row("a", row) == want).all() or len(b.ids) == 1
