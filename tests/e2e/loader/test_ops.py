# SPDX-License-Identifier: Apache-2.0
"""Operations, through `beton dump`: every row against NumPy code written from
beton-operations(7), draws included."""
import math

import numpy as np
import pytest

import dumped
import make
from draws import Draws
from dumped import digest, dump
from definitions import (color_jitter, contrast, cutout, noise_erasing,
                         random_erasing, random_translate, vertical_flip)

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


# --- the definitions: an image and its draws -> an image ---


def padded_for(x, d, size, margins, mode):
    """torchvision's RandomCrop with pad_if_needed."""
    left, top, right, bottom = margins
    more_y = max(0, size[0] - len(x) - top - bottom)
    more_x = max(0, size[1] - x.shape[1] - left - right)
    fill = dict(constant_values=77) if mode == "constant" else {}
    big = np.pad(x, ((top + more_y, bottom + more_y),
                     (left + more_x, right + more_x), (0, 0)), mode, **fill)
    y = d.below(len(big) - size[0] + 1)
    x0 = d.below(big.shape[1] - size[1] + 1)
    return big[y:y + size[0], x0:x0 + size[1]]


OPS = [
    (vertical_flip, "vertical_flip(0.5)"),
    (random_erasing,
     'random_erasing(0.8, "0.1,0.9", "0.5,3", value="9,99,199")'),
    (noise_erasing, "random_erasing(1, value=random, group=n)"),
    (cutout, 'cutout("4,7", "9,99,199", 0.8)'),
    (random_translate, 'random_translate(3, "50,60,70")'),
    (contrast, "contrast(0.7, 0.8)"),
    (color_jitter, "color_jitter(0.4, 0.3, 2, 0.1, 0.8)"),
]


def stream(text):
    """The name of the random numbers of an operation."""
    return text.split("(")[0] + (":n" if "group=n" in text else ":0")


@pytest.mark.quick
@pytest.mark.parametrize("define,text", OPS, ids=[t for _, t in OPS])
def test_an_operation_matches_the_manual(data, tmp_path, define, text):
    changed = 0
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f"image | {text}"):
        for row, i in enumerate(b.ids):
            d = Draws(SEED, EPOCH, i, stream(text))
            got = b.row("image", row)
            assert (got == define(stored(data, i), d)).all(), i
            changed += (got != stored(data, i)).any()
    assert changed > N / 4


# The names that torchvision has for operations, with its defaults.
THEIRS = [
    ("RandomHorizontalFlip", "flip"), ("random_horizontal_flip(0.3)", "flip(0.3)"),
    ("random_vertical_flip", "vertical_flip(0.5)"),
    ("RandomGrayscale", "grayscale(0.1)"), ("random_invert", "invert(0.5)"),
    ("RandomSolarize(99)", "solarize(99, 0.5)"),
    ("random_posterize(2)", "posterize(2, 0.5)"),
    ("random_posterize(2, p=1)", "posterize(2)"),
]


@pytest.mark.parametrize("theirs,ours", THEIRS, ids=[t for t, _ in THEIRS])
def test_a_name_of_torchvision_is_accepted(data, tmp_path, theirs, ours):
    for name, text in (("a", theirs), ("b", ours)):
        dump(data.path, tmp_path / name, *SPEC, "--pipeline", f"image | {text}")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
@pytest.mark.parametrize("sides", [(1, 2, 3, 4), (30, 40, 50, 60)])
def test_padding_repeats_samples(data, tmp_path, mode, sides):
    left, top, right, bottom = sides
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f'image | pad("{left},{top},{right},{bottom}", {mode})'):
        for row, i in enumerate(b.ids):
            assert (b.row("image", row) == np.pad(
                stored(data, i), ((top, bottom), (left, right), (0, 0)),
                mode)).all()


@pytest.mark.parametrize("text,sides", [
    ("2", (2, 2, 2, 2)), ('"1,2"', (1, 2, 1, 2)), ('"0,0,0,3"', (0, 0, 0, 3))])
def test_padding_of_a_color(data, tmp_path, text, sides):
    left, top, right, bottom = sides
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  f'image | pad({text}, fill="7,8,9") | flip(1) | float'):
        for row, i in enumerate(b.ids):
            want = np.full((H + top + bottom, W + left + right, 3), (7, 8, 9))
            want[top:top + H, left:left + W] = stored(data, i)
            assert (b.row("image", row) == want[:, ::-1]).all()


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("size,margins", [
    ((H, W), (2, 2, 2, 2)), ((5, 6), (1, 20, 0, 3)), ((40, 50), (0, 0, 0, 0)),
    ((40, 3), (1, 2, 3, 4)), ((1, 1), (16, 0, 30, 0)), ((3, 4), (0, 0, 0, 0)),
    ((H, W), (0, 0, 0, 0))])
def test_a_part_of_the_padded_image(data, tmp_path, mode, size, margins):
    text = f'''random_crop("{size[0]},{size[1]}", "{",".join(map(str, margins))}",
                       true, 77, {mode}) | hwc'''
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for row, i in enumerate(b.ids):
            d = Draws(SEED, EPOCH, i, "random_crop:0")
            want = padded_for(stored(data, i), d, size, margins, mode)
            assert (b.row("image", row) == want).all()


def test_random_crops_of_one_group_take_the_same_part(data, tmp_path):
    """One is a geometry, and one draws another image. Without a group each of
    them has numbers of its own."""
    text = ("a = image | random_crop(5, group=g); "
            "b = image | random_crop(5, pad_if_needed=true, group=g); "
            "c = image | random_crop(5); "
            "e = image | random_crop(5, pad_if_needed=true)")
    differ = 0
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        assert (b.outputs["a"] == b.outputs["b"]).all()
        differ += (b.outputs["c"] != b.outputs["e"]).any()
    assert differ


def test_all_of_them_one_after_the_other(data, tmp_path):
    text = "image | " + " | ".join(t for _, t in OPS) + " | float | chw"
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        assert b.outputs["image"].dtype == F
        for row, i in enumerate(b.ids):
            want = stored(data, i)
            for define, op in OPS:
                want = define(want, Draws(SEED, EPOCH, i, stream(op)))
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


@pytest.mark.parametrize("mask,alpha,expects", [
    (np.zeros((H, W, 4)), 0.1, "3 colors"),
    (np.zeros((H, W)), 0.1, "3 colors"),
    (np.zeros((H, W, 3)), np.zeros((H, W, 1)), "height and width"),
    (np.zeros((H, W, 3)), np.zeros((W, H)), "as the mask"),
    (np.zeros((W, H, 3)), 0.1, "not as high and wide as the image"),
    (np.zeros((H, W, 3), "S3"), 0.1, "not a .npy file"),
    (np.zeros((H, W, 3), order="F"), 0.1, "not a .npy file"),
    (b"nonsense", 0.1, "not a .npy file"),
    (np.zeros((H, W, 3)), "nan", "No such file")])
def test_a_mask_that_is_none_is_refused(data, tmp_path, mask, alpha, expects):
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
    assert "poison" in r.stderr and expects in r.stderr


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
    assert "one_hot: the label is not from 0 to classes - 1" in r.stderr
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text,
                  "--on-error", "skip"):
        for row, i in enumerate(b.ids):
            assert b.valid[row] == (label(i) < 7)
            assert b.row("label", row).sum() == (label(i) < 7)


@pytest.mark.parametrize("line,expects", [
    ("7\n8 9", ":2: expected a sample id"), ("x", ":1: expected"),
    ("99999999999999999999", ":1: expected"), (None, "No such file")])
def test_a_list_that_is_none_is_refused(data, tmp_path, line, expects):
    path = tmp_path / "ids.txt"
    if line:
        path.write_text(line)
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", f'label | replace_label("{path}", 1)',
                     code=1)
    assert "replace_label: " + str(path) in r.stderr and expects in r.stderr


# --- mixup ---

def share(alpha, sample):
    d = Draws(SEED, EPOCH, sample, "mixup:0")
    while True:
        u, v = d(), d()
        if alpha <= 1:
            x, y = math.log(1 - u) / alpha, math.log(1 - v) / alpha
            if math.exp(x) + math.exp(y) <= 1:
                return 1 / (1 + math.exp(y - x))
        else:
            w = 2 * v - 1
            s = u * u + w * w
            if 0 < s <= 1:
                return .5 + u * w / s * math.sqrt(1 - s ** (2 / (2 * alpha
                                                                - 1)))


def mixed(own, other, l):
    own, other = own.astype(F), other.astype(F)
    return other + F(l) * (own - other)


def mix_check(data, b, alpha, per):
    """The label's shares are right, and the image has the same."""
    for row, i in enumerate(b.ids):
        y, other, l = b.row("label", row)
        want = share(alpha, i if per == "sample" else b.ids[-1])
        assert (y, other) == (label(i), label(b.ids[row - 1]))
        assert len(b.ids) == 1 and l == 1 or abs(l - want) < 1e-6
        got = mixed(stored(data, i), stored(data, b.ids[row - 1]), l)
        assert (b.row("image", row) == got.astype(np.uint8)).all()


@pytest.mark.parametrize("alpha", [0.2, 1, 3])
@pytest.mark.parametrize("per", ["batch", "sample"])
def test_rows_are_mixed_with_those_before(data, tmp_path, alpha, per):
    how = f"mixup({alpha}, {per})"
    for batch in (5, 1, 24):
        for b in dump(data.path, tmp_path / str(batch), "--epoch", EPOCH,
                      "--spec", f"batch={batch},seed={SEED},drop_last=0",
                      "--pipeline", f"image | {how}; label | {how}"):
            mix_check(data, b, alpha, per)


def test_later_operations_use_the_mixture(data, tmp_path):
    middle = dump(data.path, tmp_path / "a", *SPEC, "--pipeline",
                  "image | random_translate(2) | mixup(0.4)")
    last = dump(data.path, tmp_path / "b", *SPEC, "--pipeline",
                "image | random_translate(2) | mixup(0.4) | vertical_flip | "
                "normalize(0, 1) | chw")
    for a, b in zip(middle, last, strict=True):
        for row, i in enumerate(a.ids):
            want = vertical_flip(a.row("image", row),
                                 Draws(SEED, EPOCH, i, "vertical_flip:0"))
            want = want.astype(F) * F(1 / 255)
            assert (b.row("image", row) == want.transpose(2, 0, 1)).all()


def test_one_hot_labels_are_mixed(data, tmp_path):
    plain = dump(data.path, tmp_path / "a", *SPEC, "--pipeline",
                 "image | drop; label | mixup(0.4, sample)")
    hot = dump(data.path, tmp_path / "b", *SPEC, "--pipeline",
               "image | drop; label | one_hot(8) | mixup(0.4, sample)")
    for a, b in zip(plain, hot, strict=True):
        for row in range(len(a.ids)):
            y, other, l = a.row("label", row)
            want = np.zeros(8)
            want[int(y)] += l
            want[int(other)] += 1 - l
            assert np.allclose(b.row("label", row), want, atol=1e-6)


MIXUP = ("image | random_resized_crop(8) | flip | mixup(0.3) | cutout(3) | "
         "normalize(imagenet) | half; x = image | resize(\"5,6\") | "
         "mixup(0.7, sample, group=a) | float; "
         "label | one_hot(9) | mixup(0.3) | half")


def test_mixtures_do_not_depend_on_the_worker_that_makes_them(data, mount, tmp_path):
    sums = []
    for k, (source, workers) in enumerate([
            (data.path, 1), (data.path, 2), (data.path, 8),
            (mount(data.path), 3)]):
        out = tmp_path / str(k)
        dump(source, out, *SPEC, "--pipeline", MIXUP, "--jobs", workers)
        sums.append(digest(out))
    assert all(s == sums[0] for s in sums)


def test_ranks_mix_as_one_process_does(data, tmp_path):
    dump(data.path, tmp_path / "one", *SPEC, "--pipeline", MIXUP)
    want = digest(tmp_path / "one")
    got = {}
    for rank in range(3):
        out = tmp_path / str(rank)
        dump(data.path, out, *SPEC, "--pipeline", MIXUP, "--rank", rank,
             "--world-size", 3)
        got.update(digest(out, "valid.npy"))
    assert {k: v for k, v in got.items() if k < len(want)} == want
    # Padding repeats a batch, mixtures and all.
    assert [got[k] == want[k - len(want)] for k in got if k >= len(want)] \
        == [True]


def test_a_mixture_continues_where_it_was_left(data, tmp_path):
    dump(data.path, tmp_path / "all", *SPEC, "--pipeline", MIXUP)
    got, state = {}, tmp_path / "state"
    for part, workers in ("0:2", 3), ("2:5", 1):
        out = tmp_path / part
        dump(data.path, out, *SPEC[:2], *([] if state.exists() else SPEC[2:]),
             "--pipeline", MIXUP, "--batches", part, "--state", state,
             "--jobs", workers)
        got.update(digest(out))
    assert got == digest(tmp_path / "all")


@pytest.mark.parametrize("how", ["skip", "zero"])
def test_a_partner_of_a_damaged_sample_stays_as_it_is(data, tmp_path, how):
    """In its image and in its label, which was never damaged."""
    hurt = make.Dataset(tmp_path / "hurt.beton", data.fields, data.values)
    hurt.patch(hurt.where(7, "image") + 5, b"\x07\0\0\0\0\0\0\0")
    text = "image | mixup(0.4); label | mixup(0.4)"
    met = 0
    for g, b in zip(dump(data.path, tmp_path / "g", *SPEC, "--pipeline", text),
                    dump(hurt.path, tmp_path / "b", *SPEC, "--pipeline", text,
                         "--on-error", how), strict=True):
        assert g.ids == b.ids
        for row, i in enumerate(b.ids):
            assert b.valid[row] == (i != 7 or how == "zero")
            if i == 7:
                assert not b.row("image", row).any()
                assert (b.row("label", row) == g.row("label", row)).all()
            elif b.ids[row - 1] == 7:
                met += 1
                assert (b.row("image", row) == stored(data, i)).all()
                assert b.row("label", row).tolist() == [label(i)] * 2 + [1]
            else:
                for name in ("image", "label"):
                    assert (b.row(name, row) == g.row(name, row)).all()
    assert met == 1
    r = dumped.beton("dump", hurt.path, "--out", tmp_path / "no", *SPEC,
                     "--pipeline", text, code=1)
    assert "sample 7 field image" in r.stderr


def test_mixtures_of_a_gpu_are_the_same(data, tmp_path, standins):
    """Everything after cuda() runs on the GPU."""
    text = ("image | flip | mixup(0.3) | contrast(0.5)%s | brightness(0.4) | "
            "normalize(imagenet) | half | chw; "
            "label | one_hot(9) | mixup(0.3)%s")
    sums = []
    for k, cuda in enumerate(["", " | cuda(0)", " | cuda(0, auto)"]):
        dump(data.path, tmp_path / str(k), *SPEC, "--pipeline",
             text % (cuda, cuda))
        sums.append(digest(tmp_path / str(k)))
    assert sums[0] == sums[1] == sums[2]


def test_workers_do_not_matter(data, tmp_path):
    text = "image | random_resized_crop(8) | " + \
        " | ".join(t for _, t in OPS) + \
        " | normalize(imagenet) | half; label | one_hot(8)"
    sums = []
    for workers in (1, 2, 7):
        out = tmp_path / str(workers)
        dump(data.path, out, *SPEC, "--pipeline", text, "--jobs", workers)
        sums.append(digest(out))
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize("british, american", [
    ("greyscale(0.5) | normalise(imagenet)",
     "grayscale(0.5) | normalize(imagenet)"),
    ("colour_jitter(0.4, 0.4)", "color_jitter(0.4, 0.4)"),
    ("centre_crop(8, 0.5)", "center_crop(8, 0.5)"),
    ("RandomPosterise(3)", "RandomPosterize(3)"),
    ("decode(grey) | resize(8)", "decode(gray) | resize(8)"),
])
def test_british_spelling_draws_the_same(data, tmp_path, british, american):
    for name, pipeline in (("b", british), ("a", american)):
        dump(data.path, tmp_path / name, *SPEC, "--pipeline", pipeline)
    assert digest(tmp_path / "b") == digest(tmp_path / "a")
