# SPDX-License-Identifier: Apache-2.0
"""Several images of a sample, through `beton dump`: against NumPy code written
from beton-operations(7), and against single images."""
import numpy as np
import pytest

import dumped
import make
from draws import Draws
from dumped import dump
from orders import key
from draws import key_of_text

N, W, H = 24, 13, 9
SEED, EPOCH = 7, 3
SPEC = ("--spec", f"batch=5,seed={SEED},drop_last=0", "--epoch", EPOCH)


class Views(Draws):
    """The stream of an operation for a view of a sample."""

    def __init__(self, sample, op, view):
        super().__init__(SEED, EPOCH, sample, op)
        if view:
            self.key = key([SEED, EPOCH, sample, 0, key_of_text(op), view])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(6)
    path = tmp_path_factory.mktemp("views") / "p.beton"
    return make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.RAW, W, H, rng.bytes(3 * W * H)),
         "label": i} for i in range(N)])


def stored(data, i):
    return np.frombuffer(data.stored(i, "image"), np.uint8).reshape(H, W, 3)


def five(x, h, w):
    y, left = round((x.shape[0] - h) / 2), round((x.shape[1] - w) / 2)
    return [x[:h, :w], x[:h, -w:], x[-h:, :w], x[-h:, -w:],
            x[y:y + h, left:left + w]]


@pytest.mark.parametrize("h,w", [(4, 7), (5, 6), (H, W), (1, 1), (6, 12),
                                 (8, 8)])
def test_corners_and_the_center(data, tmp_path, h, w):
    text = (f'five = image | five_crop("{h},{w}"); '
            f'ten = image | ten_crop("{h},{w}") | float | chw')
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        assert b.outputs["five"].shape == (len(b.ids), 5, h, w, 3)
        assert b.outputs["ten"].shape == (len(b.ids), 10, 3, h, w)
        for row, i in enumerate(b.ids):
            x = stored(data, i)
            want = five(x, h, w)
            assert (b.row("five", row) == np.stack(want)).all()
            want += five(x[:, ::-1], h, w)
            assert (b.row("ten", row) == np.stack(want).transpose(
                0, 3, 1, 2)).all()


def test_operations_before_are_the_same_for_all_views(data, tmp_path):
    text = ("image | invert(0.5) | flip | vertical_flip | five_crop(4) | "
            "flip | cutout(2) | solarize(90, 0.5) | normalize(0, 1)")
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for row, i in enumerate(b.ids):
            x = stored(data, i)
            x = 255 - x if Views(i, "invert:0", 0)() < .5 else x
            x = x[:, ::-1] if Views(i, "flip:0", 0)() < .5 else x
            x = x[::-1] if Views(i, "vertical_flip:0", 0)() < .5 else x
            for view, part in enumerate(five(x, 4, 4)):
                if Views(i, "flip:1", view)() < .5:
                    part = part[:, ::-1]
                d, part = Views(i, "cutout:0", view), part.copy()
                d()
                y, left = d.below(3), d.below(3)
                part[y:y + 2, left:left + 2] = 0
                if Views(i, "solarize:0", view)() < .5:
                    part = np.where(part >= 90, 255 - part, part)
                want = part.astype(np.float32) * np.float32(1 / 255)
                assert (b.row("image", row)[view] == want).all()


def test_the_first_view_is_that_of_one(data, tmp_path):
    text = ('a = image | {0}(6, {1}scale="0.2,1", group=g) | '
            "random_apply(invert | flip, group=h, p=0.5) | "
            "saturation(0.5, group=s)")
    one = dump(data.path, tmp_path / "a", *SPEC, "--pipeline",
               text.format("multi_crop", "1, "))
    many = dump(data.path, tmp_path / "b", *SPEC, "--pipeline",
                text.format("multi_crop", "4, "))
    for a, b in zip(one, many, strict=True):
        assert a.outputs["a"].shape[1:] == (1, 6, 6, 3)
        assert b.outputs["a"].shape[1:] == (4, 6, 6, 3)
        assert (a.outputs["a"][:, 0] == b.outputs["a"][:, 0]).all()
        assert (b.outputs["a"][:, 1] != b.outputs["a"][:, 2]).any()


def test_a_crop_of_views_is_a_random_resized_crop(data, tmp_path):
    """Its random numbers are those of multi_crop:0 and its view."""
    text = 'image | multi_crop(4, 3, scale="0.3,0.4", ratio="1,1")'
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for row, i in enumerate(b.ids):
            for view in range(3):
                d = Views(i, "multi_crop:0", view)
                side = round((H * W * (.3 + (.4 - .3) * d())) ** .5)
                d()
                y, x = d.below(H - side + 1), d.below(W - side + 1)
                part = stored(data, i)[y:y + side, x:x + side]
                got = b.row("image", row)[view]
                assert part.min() <= got.min() and got.max() <= part.max()
                if side == 4:
                    assert (got == part).all()


@pytest.mark.parametrize("text,expects", [
    ("image | five_crop(10)", "needs images as large as its size"),
    ("image | five_crop(4) | ten_crop(2)", "cannot make views of v"),
    ("image | five_crop(4) | mixup(1)", "mixes single images, not several"),
    ("image | mixup(1) | five_crop(4)", "cannot follow mixup or cutmix"),
    ("image | float | five_crop(4)", "8-bit"),
    ("image | random_apply(five_crop(4))", "cannot stand in parentheses"),
    ("image | multi_crop(4, 65)", "views of multi_crop takes"),
    ('image | multi_crop(4, scale="1,0.5")', "least scale is greater than"),
])
def test_views_that_cannot_be(data, tmp_path, text, expects):
    r = dumped.beton("dump", data.path, "--out", tmp_path / "no",
                     "--pipeline", text, code=1)
    assert expects in r.stderr, r.stderr
