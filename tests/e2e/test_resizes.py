# SPDX-License-Identifier: Apache-2.0
"""Interpolations and sizes of resizing, through `beton dump`: beside Pillow,
and beside torchvision's sizes as beton-transforms(7) says them."""
import io

import numpy as np
import pytest

import make
from draws import Draws
from dumped import beton, digest, dump

Image = pytest.importorskip("PIL.Image")

SEED, EPOCH = 6, 1
SPEC = ("--spec", f"batch=100,seed={SEED},drop_last=0", "--epoch", EPOCH)
IMAGES, SIZES = 100, 20
HOWS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR,
        "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
# Since 13, Pillow resizes tall images in the other order.
OLD = int(Image.__version__.split(".")[0]) < 13


def picture(i):
    """Noise that is often black or white, so that filters overshoot."""
    rng = np.random.default_rng(i)
    h, w = 1 + rng.integers(0, 8 if i < 10 else 120, 2)
    p = rng.normal(127, 20 + 3 * i, (h, w, 3))
    return np.clip(p, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("resizes") / "r.beton"
    return make.Dataset(path, [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, *picture(i).shape[1::-1],
                             picture(i).tobytes())} for i in range(IMAGES)], 1 << 16)


def by_pillow(pixels, size, how):
    h, w = size
    image = Image.fromarray(pixels)
    if OLD:
        return np.asarray(image.resize((w, h), HOWS[how]))
    return np.asarray(image.resize((w, image.height), HOWS[how])
                      .resize((w, h), HOWS[how]))


def sizes(how):
    """Most of them near, and some far from the images'."""
    rng = np.random.default_rng(sum(map(ord, how)))
    near = 1 + rng.integers(0, 150, (SIZES - 4, 2))
    return [*near.tolist(), [1, 1], [1, 300], [400, 2], [64, 64]]


def rows(data, out, text, spec=SPEC):
    """[(id, {output: row})]"""
    return [(i, {n: b.row(n, k) for n in b.outputs})
            for b in dump(data.path, out, *spec, "--pipeline", text)
            for k, i in enumerate(b.ids)]


@pytest.mark.parametrize("how", HOWS)
def test_two_thousand_resizes_are_pillows(data, tmp_path, how):
    to = sizes(how)
    text = "; ".join(f'r{k} = image | resize("{h},{w}", {how})'
                     for k, (h, w) in enumerate(to))
    cases = 0
    for i, got in rows(data, tmp_path / "x", text):
        for k, size in enumerate(to):
            want = by_pillow(picture(i), size, how)
            assert (got[f"r{k}"] == want).all(), (i, size)
            cases += 1
    assert cases == 2000


def crop_of(pixels, i, k):
    """The part that random_resized_crop(scale=s, ratio=1) takes: a square."""
    d = Draws(SEED, EPOCH, i, f"random_resized_crop:g{k}")
    h, w = pixels.shape[:2]
    for _ in range(10):
        area, _ = h * w * (0.1 + 0.9 * d()), d()
        side = int(np.rint(np.sqrt(area)))
        if 0 < side <= min(h, w):
            y = int(d() * (h - side + 1))
            x = int(d() * (w - side + 1))
            return pixels[y:y + side, x:x + side]
    side = min(h, w)
    y, x = (h - side) // 2, (w - side) // 2
    return pixels[y:y + side, x:x + side]


@pytest.mark.parametrize("how", HOWS)
def test_two_thousand_crops_are_pillows(data, tmp_path, how):
    to = sizes(how)
    text = "; ".join(
        f'r{k} = image | random_resized_crop("{h},{w}", "0.1,1", "1,1", {how}, '
        f"g{k}) | flip({k % 2})" for k, (h, w) in enumerate(to))
    cases = 0
    for i, got in rows(data, tmp_path / "x", text):
        for k, size in enumerate(to):
            want = by_pillow(crop_of(picture(i), i, k), size, how)
            if k % 2:
                want = want[:, ::-1]
            assert (got[f"r{k}"] == want).all(), (i, k, size)
            cases += 1
    assert cases == 2000
