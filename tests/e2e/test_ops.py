# SPDX-License-Identifier: Apache-2.0
"""Operations, through `beton dump`: every row against NumPy code written from
beton-transforms(7), draws included."""
import numpy as np
import pytest

import dumped
import make
from draws import Draws
from dumped import digest, dump

N, W, H = 24, 13, 9
SEED, EPOCH = 7, 3
SPEC = ("--spec", f"batch=5,seed={SEED},drop_last=0", "--epoch", EPOCH)
F = np.float32


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Raw images of one size, and their classes."""
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("ops") / "p.beton"
    return make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.RAW, W, H, rng.bytes(3 * W * H)),
         "label": label(i)} for i in range(N)])


def stored(data, i):
    return np.frombuffer(data.stored(i, "image"), np.uint8).reshape(H, W, 3)


def truncated(v):
    return np.clip(v, 0, 255).astype(np.uint8)


def grey(x):
    x = x.astype(F)
    return F(0.2989) * x[..., 0] + F(0.587) * x[..., 1] + F(0.114) * x[..., 2]


def factor(d, magnitude, p):
    low = max(0, 1 - magnitude)
    if d() >= p:
        return F(1)
    return F(low + (1 + magnitude - low) * d())


# --- the definitions: an image and its draws -> an image ---

def vertical_flip(x, d):
    return x[::-1] if d() < 0.5 else x


def cutout(x, d):
    x, on = x.copy(), d() < 0.8
    y, x0 = d.below(H - 4 + 1), d.below(W - 7 + 1)
    if on:
        x[y:y + 4, x0:x0 + 7] = 9, 99, 199
    return x


def random_translate(x, d):
    big = np.full((H + 6, W + 6, 3), (50, 60, 70), np.uint8)
    big[3:3 + H, 3:3 + W] = x
    y, x0 = d.below(7), d.below(7)
    return big[y:y + H, x0:x0 + W]


def contrast(x, d):
    f = factor(d, 0.7, 0.8)
    if f == 1:
        return x
    mean = F(grey(x).astype(np.uint8).mean(dtype=np.float64))
    return truncated(f * x.astype(F) + (F(1) - f) * mean)


def color_jitter(x, d):
    on, v = d() < 0.8, x.astype(F)
    f = [F(max(0, 1 - m) + (1 + m - max(0, 1 - m)) * d())
         for m in (0.4, 0.3, 2)]
    t = 0.1 * (2 * d() - 1)
    if not on:
        return x
    v = np.clip(f[0] * v, 0, 255)
    mean = F(sum(grey(v).ravel().tolist()) / (H * W))
    v = np.clip(f[1] * v + (F(1) - f[1]) * mean, 0, 255)
    v = np.clip(f[2] * v + ((F(1) - f[2]) * grey(v))[..., None], 0, 255)
    c, s = np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)
    e, s = (1 - c) / 3, np.sqrt(1 / 3) * s
    m = F(c + e), F(e - s), F(e + s)
    return truncated(np.stack([
        m[-k] * v[..., 0] + m[(1 - k) % 3] * v[..., 1]
        + m[(2 - k) % 3] * v[..., 2] for k in range(3)], -1))


OPS = [
    (vertical_flip, "vertical_flip(0.5)"),
    (cutout, 'cutout("4,7", "9,99,199", 0.8)'),
    (random_translate, 'random_translate(3, "50,60,70")'),
    (contrast, "contrast(0.7, 0.8)"),
    (color_jitter, "color_jitter(0.4, 0.3, 2, 0.1, 0.8)"),
]


@pytest.mark.parametrize("define,text", OPS, ids=[t for _, t in OPS])
def test_an_operation_is_what_the_manual_says(data, tmp_path, define, text):
    changed = 0
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f"image | {text}"):
        for row, i in enumerate(b.ids):
            d = Draws(SEED, EPOCH, i, f"{define.__name__}:0")
            got = b.row("image", row)
            assert (got == define(stored(data, i), d)).all(), i
            changed += (got != stored(data, i)).any()
    assert changed > N / 4


def test_all_of_them_one_after_the_other(data, tmp_path):
    text = "image | " + " | ".join(t for _, t in OPS) + " | float | chw"
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        assert b.outputs["image"].dtype == F
        for row, i in enumerate(b.ids):
            want = stored(data, i)
            for define, _ in OPS:
                want = define(want, Draws(SEED, EPOCH, i,
                                          f"{define.__name__}:0"))
            assert (b.row("image", row) == want.transpose(2, 0, 1)).all()


# --- poison ---

@pytest.fixture
def poison(tmp_path):
    """Files of a mask, and how much of it; the arrays."""
    rng = np.random.default_rng(5)
    mask = rng.uniform(-50, 300, (H, W, 3)).astype(F)
    alpha = rng.uniform(0, 1, (H, W))
    paths = tmp_path / "mask.npy", tmp_path / "alpha.npy"
    for path, a in zip(paths, (mask, alpha)):
        np.save(path, a)
    return *paths, mask, alpha


@pytest.mark.parametrize("one", [False, True])
def test_some_images_are_poisoned(data, tmp_path, poison, one):
    mask_path, alpha_path, mask, alpha = poison
    if one:
        alpha_path = alpha = 0.3
    keep = np.broadcast_to(F(1 - np.float64(alpha)), (H, W))[..., None]
    added = F(mask.astype(float) * np.broadcast_to(alpha, (H, W))[..., None])
    text = f'image | poison("{mask_path}", "{alpha_path}", "1,2,20", "9,240")'
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for row, i in enumerate(b.ids):
            want = stored(data, i)
            if i in (1, 2, 20):
                want = np.clip(want.astype(F) * keep + added, 9,
                               240).astype(np.uint8)
                assert (want != stored(data, i)).any()
            assert (b.row("image", row) == want).all()


@pytest.mark.parametrize("mask,alpha,says", [
    (np.zeros((H, W, 4)), 0.1, "3 colours"),
    (np.zeros((H, W)), 0.1, "3 colours"),
    (np.zeros((H, W, 3)), np.zeros((H, W, 1)), "height and width"),
    (np.zeros((H, W, 3)), np.zeros((W, H)), "as the mask"),
    (np.zeros((W, H, 3)), 0.1, "not as high and wide as the image"),
    (np.zeros((H, W, 3), "S3"), 0.1, "not a .npy file"),
    (np.zeros((H, W, 3), order="F"), 0.1, "not a .npy file"),
    (b"nonsense", 0.1, "not a .npy file"),
    (np.zeros((H, W, 3)), "nan", "No such file")])
def test_a_mask_that_is_none_is_refused(data, tmp_path, mask, alpha, says):
    paths = []
    for name, a in ("mask", mask), ("alpha", alpha):
        paths.append(tmp_path / name)
        if isinstance(a, np.ndarray):
            with open(paths[-1], "wb") as f:
                np.save(f, a)
        elif isinstance(a, bytes):
            paths[-1].write_bytes(a)
        else:
            paths[-1] = a
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", 'poison("%s", "%s", 1)' % tuple(paths),
                     code=1)
    assert "poison" in r.stderr and says in r.stderr


def test_a_mask_that_was_cut_is_refused(data, tmp_path, poison):
    poison[0].write_bytes(poison[0].read_bytes()[:-1])
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", f'poison("{poison[0]}", 1, 1)', code=1)
    assert "shorter than its shape" in r.stderr


# --- labels ---

def label(i):
    return i * 5 % 8


@pytest.mark.parametrize("ids", ["list", "file"])
def test_labels_of_some_samples_are_replaced(data, tmp_path, ids):
    some = [0, 3, 11, 23]
    path = tmp_path / "some.txt"
    path.write_text("# these\n" + "\n".join(map(str, some[::-1])))
    text = path if ids == "file" else ", ".join(map(str, some))
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f'image | drop; label | replace_label("{text}", 77)'):
        assert b.outputs["label"].dtype == np.int64
        assert b.outputs["label"].tolist() == \
            [77 if i in some else label(i) for i in b.ids]


def test_labels_become_one_hot(data, tmp_path):
    text = "image | drop; label | replace_label(5, 8) | one_hot(9) | half"
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        want = np.eye(9)[[8 if i == 5 else label(i) for i in b.ids]]
        assert b.outputs["label"].dtype == np.float16
        assert (b.outputs["label"] == want).all()


def test_a_label_that_is_no_class_is_an_error_of_its_row(data, tmp_path):
    text = "image | drop; label | one_hot(7)"
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no", *SPEC,
                     "--pipeline", text, code=1)
    assert "one_hot: the label is none of the classes" in r.stderr
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text,
                  "--on-error", "skip"):
        for row, i in enumerate(b.ids):
            assert b.valid[row] == (label(i) < 7)
            assert b.row("label", row).sum() == (label(i) < 7)


@pytest.mark.parametrize("line,says", [
    ("7\n8 9", ":2: expected a sample's number"), ("x", ":1: expected"),
    ("99999999999999999999", ":1: expected"), (None, "No such file")])
def test_a_list_that_is_none_is_refused(data, tmp_path, line, says):
    path = tmp_path / "ids.txt"
    if line:
        path.write_text(line)
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", f'label | replace_label("{path}", 1)',
                     code=1)
    assert "replace_label: " + str(path) in r.stderr and says in r.stderr


def test_workers_do_not_matter(data, tmp_path):
    text = "image | random_resized_crop(8) | " + \
        " | ".join(t for _, t in OPS) + \
        " | normalize(imagenet) | half; label | one_hot(8)"
    sums = []
    for workers in (1, 2, 7):
        out = tmp_path / str(workers)
        dump(data.path, out, *SPEC, "--pipeline", text, "--workers", workers)
        sums.append(digest(out))
    assert sums[0] == sums[1] == sums[2]
