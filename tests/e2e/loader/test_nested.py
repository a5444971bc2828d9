# SPDX-License-Identifier: Apache-2.0
"""Operations in parentheses of others, through `beton dump`: against NumPy code
written from beton-operations(7), draws included."""
import numpy as np
import pytest

import dumped
import make
import definitions
from draws import Draws
from dumped import dump

N, W, H = 24, 13, 9
SEED, EPOCH = 7, 3
SPEC = ("--spec", f"batch=5,seed={SEED},drop_last=0", "--epoch", EPOCH)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Raw images of one size."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("nested") / "p.beton"
    return make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.RAW, W, H, rng.bytes(3 * W * H)),
         "label": i} for i in range(N)])


def stored(data, i):
    return np.frombuffer(data.stored(i, "image"), np.uint8).reshape(H, W, 3)


# --- the definitions: an image and the number of the sample -> an image ---

def draws(i, op, number=0):
    return Draws(SEED, EPOCH, i, f"{op}:{number}")


def invert(x, i):
    return 255 - x


def solarize(x, i):
    return np.where(x >= 100, 255 - x, x)


def posterize(x, i):
    return x & 0xf0


def flip(x, i):
    return x[:, ::-1] if draws(i, "flip")() < 0.5 else x


def drawn(name):
    """A definition of definitions.py, with the first stream of its name."""
    return lambda x, i: getattr(definitions, name)(x, draws(i, name))


def in_turn(*parts):
    def run(x, i):
        for part in parts:
            x = part(x, i)
        return x
    return run


def random_apply(part, p, number=0):
    def run(x, i):
        return part(x, i) if draws(i, "random_apply", number)() < p else x
    return run


def random_choice(*parts, weights=None):
    def run(x, i):
        d = draws(i, "random_choice")
        if not weights:
            return parts[d.below(len(parts))](x, i)
        at = d() * sum(weights)
        for part, weight in zip(parts, weights):
            at -= weight
            if at < 0:
                return part(x, i)
    return run


def random_order(*parts):
    def run(x, i):
        d, order = draws(i, "random_order"), list(range(len(parts)))
        for n in range(len(parts), 1, -1):
            k = d.below(n)
            order[n - 1], order[k] = order[k], order[n - 1]
        return in_turn(*(parts[k] for k in order))(x, i)
    return run


JITTER = "color_jitter(0.4, 0.3, 2, 0.1, 0.8)"
CUTOUT = 'cutout("4,7", "9,99,199", 0.8)'
MOVE = 'random_translate(3, "50,60,70")'
TEXTS = [
    (f"random_apply({JITTER} | {CUTOUT} | {MOVE}, p=0.8)",
     random_apply(in_turn(drawn("color_jitter"), drawn("cutout"),
                          drawn("random_translate")), 0.8)),
    ("random_apply(solarize(100) | posterize(4) | flip | invert)",
     random_apply(in_turn(solarize, posterize, flip, invert), 0.5)),
    ("random_choice(invert, solarize(100) | flip, posterize(4))",
     random_choice(invert, in_turn(solarize, flip), posterize)),
    ('random_choice(invert, flip, posterize(4), weights="1,0,2")',
     random_choice(invert, flip, posterize, weights=[1, 0, 2])),
    (f"random_order({CUTOUT}, invert | flip, {MOVE}, solarize(100))",
     random_order(drawn("cutout"), in_turn(invert, flip),
                  drawn("random_translate"), solarize)),
    (f"random_apply(invert, p=0.3) | random_apply(random_choice({CUTOUT}, "
     "random_apply(solarize(100) | invert, p=0.7)), p=0.9)",
     in_turn(random_apply(invert, 0.3), random_apply(random_choice(
         drawn("cutout"), random_apply(in_turn(solarize, invert), 0.7, 2)),
         0.9, 1))),
    ("random_apply(\n  pad(0) |\n  invert, p=1)", invert),
]


@pytest.mark.parametrize("text,define", TEXTS, ids=[t for t, _ in TEXTS])
def test_operations_in_parentheses(data, tmp_path, text, define):
    changed = 0
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f"image | {text} | float"):
        for row, i in enumerate(b.ids):
            got = b.row("image", row)
            assert (got == define(stored(data, i), i)).all(), i
            changed += (got != stored(data, i)).any()
    assert changed > N / 4


@pytest.mark.parametrize("text", [
    "grayscale(0.6)", "saturation(0.9, 0.7)", "brightness(0.5, 0.7)",
    "saturation(0.9) | grayscale(0.4) | brightness(0.4) | posterize(5)",
    "contrast(0.7, 0.8)", "vertical_flip"])
def test_parentheses_change_no_bit(data, tmp_path, text):
    one = dump(data.path, tmp_path / "a", *SPEC, "--pipeline",
               f"image | {text}")
    two = dump(data.path, tmp_path / "b", *SPEC, "--pipeline",
               f"image | random_apply({text}, p=1)")
    for a, b in zip(one, two, strict=True):
        assert (a.outputs["image"] == b.outputs["image"]).all()


def test_groups_and_epochs_hold_in_parentheses(data, tmp_path):
    text = ('a = image | random_apply(cutout("0=2,3=5", group=g), p=0.5, '
            'group=h); b = image | random_apply(cutout(5, group=g), p=0.5, '
            "group=h)")
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        assert (b.outputs["a"] == b.outputs["b"]).all()


@pytest.mark.parametrize("text,column,expects", [
    ("random_apply", 1, "random_apply needs operations in parentheses"),
    ("random_apply(p=0.5)", 1, "random_apply needs operations"),
    ("random_apply(0.5)", 14, "no operation is called `0.5'"),
    ("random_apply(invert | bler, p=0.5)", 23, "no operation is called"),
    ("random_apply(invert, flip)", 22, "p of random_apply takes numbers"),
    ("random_apply(invert, cutout(3))", 22, "p of random_apply is a value"),
    ("random_apply(invert, 0.5, g, flip(1))", 30, "one list of operations"),
    ("random_apply(center_crop(8))", 14, "center_crop cannot stand in paren"),
    ("random_apply(invert | float)", 23, "float cannot stand in parentheses"),
    ("random_apply(normalize(imagenet))", 14, "normalize changes the size or"),
    ("random_apply(pad(1) | invert)", 14, "pad changes the size or the type"),
    ("random_apply(mixup(1))", 14, "mixup cannot stand in parentheses"),
    ('random_apply("f.c".g(1))', 14, "g is a custom operation and"),
    ("random_apply(flip(q=1))", 19, "flip has no parameter `q'"),
    ("random_apply(flip(1.5))", 19, "p of flip takes numbers from 0 to 1"),
    ("random_choice(invert | flip)", 1, "needs 2 lists of operations or mor"),
    ('random_choice(invert, flip, weights="1,2,3")', 1, "give as many weights"),
    ('random_choice(invert, flip, weights="0,0")', 1, "at least one weight must be"),
    ("random_order(operations=flip, invert)", 14, "have no name"),
    ("chw | random_apply(invert)", 7, "random_apply must stand before chw"),
    ("cutout(flip(1))", 8, "size of cutout is a value"),
    ("random_choice(" + "invert, " * 16 + "invert)", 143,
     "takes 16 lists of operations at most"),
])
def test_a_mistake_in_parentheses_has_its_column(data, tmp_path, text, column,
                                                 expects):
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", text, code=1)
    assert f"column {column}: " in r.stderr and expects in r.stderr, r.stderr
