# SPDX-License-Identifier: Apache-2.0
"""Operations that filter whole images or map their places, through `beton
dump`: beside Pillow where it defines them, else beside NumPy code written from
beton-operations(7), draws included."""

import numpy as np
import pytest

import make
from draws import Draws
from dumped import dump
from warps import about, coefficients, matrix, within

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")
ImageEnhance = pytest.importorskip("PIL.ImageEnhance")

SEED, EPOCH, N = 5, 2, 40
SPEC = ("--spec", f"batch=1,seed={SEED},drop_last=0", "--epoch", EPOCH)
FILL = (9, 99, 199)
F = np.float32


def picture(i):
    """A picture of its own size, from one pixel on: ramps, waves and noise."""
    rng = np.random.default_rng(i)
    h, w = (1 + i % 3, 1 + i % 4) if i < 8 else rng.integers(3, 70, 2)
    y, x = np.mgrid[:h, :w]
    p = np.stack([255 * x / w, 255 * y / h,
                  127 + 127 * np.sin(x / 9) * np.cos(y / 7)], -1)
    return np.clip(p + rng.normal(0, 20, p.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file for each picture: rows of one output have one size."""
    folder = tmp_path_factory.mktemp("warps")
    return [make.Dataset(folder / f"{i}.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, *picture(i).shape[1::-1],
                             picture(i).tobytes())}],
        page_size=1 << 16) for i in range(N)]


def results(data, folder, text):
    """For each picture: it, the result, and the random numbers of its only
    sample."""
    name = text.partition("(")[0]
    for i, d in enumerate(data):
        for b in dump(d.path, folder / f"{i}", *SPEC, "--pipeline",
                      f"image | {text}"):
            yield (picture(i), b.row("image", 0),
                   Draws(SEED, EPOCH, 0, f"{name}:0"))


def apart(a, b):
    return np.abs(np.asarray(a).astype(int) - b).max(-1)


# --- as Pillow ---


def sharpness(x, d):
    d()
    return ImageEnhance.Sharpness(x).enhance(within(d, 0.3, 2.4))


def rotate(x, d):
    return x.rotate(about(d, 180), fillcolor=FILL)


AS_PILLOW = [
    ("equalize", lambda x, d: ImageOps.equalize(x)),
    ("autocontrast", lambda x, d: ImageOps.autocontrast(x)),
    ('sharpness("0.3,2.4")', sharpness),
    ("sharpness(0)", lambda x, d: ImageEnhance.Sharpness(x).enhance(0)),
    ('rotate(180, fill="9,99,199")', rotate),
    ('rotate("90,90", fill="9,99,199")',
     lambda x, d: x.rotate(90, fillcolor=FILL)),
]


@pytest.mark.parametrize("text,define", AS_PILLOW,
                         ids=[t for t, _ in AS_PILLOW])
def test_it_is_pillows(data, tmp_path, text, define):
    changed = 0
    for x, got, d in results(data, tmp_path, text):
        assert not apart(define(Image.fromarray(x), d), got).any()
        changed += apart(x, got).any()
    assert changed > N / 4


def test_bilinear_is_pillows_within_one(data, tmp_path):
    far = count = 0
    for x, got, d in results(data, tmp_path, "rotate(180, bilinear, 30)"):
        want = Image.fromarray(x).rotate(about(d, 180), Image.BILINEAR,
                                         fillcolor=(30, 30, 30))
        far += (apart(want, got) > 1).sum()
        count += got[..., 0].size
    assert far <= count / 10000


def test_affine_maps_are_torchvisions(data, tmp_path):
    far = count = 0
    text = 'affine(60, "0.3,0.2", "0.5,1.7", "-20,20,-10,30", fill="9,99,199")'
    for x, got, d in results(data, tmp_path, text):
        size = x.shape[1::-1]
        angle = about(d, 60)
        move = [round(about(d, 1) * v * s) for v, s in zip((0.3, 0.2), size)]
        scale = within(d, 0.5, 1.7)
        m = matrix(angle, scale, (within(d, -20, 20), within(d, -10, 30)),
                   move, size)
        want = Image.fromarray(x).transform(
            size, Image.AFFINE, m, Image.NEAREST, fillcolor=FILL)
        far += apart(want, got).astype(bool).sum()
        count += got[..., 0].size
    assert far <= count / 5000      # places on the border of two pixels


def test_perspective_is_pillows_within_one(data, tmp_path):
    far = count = 0
    for x, got, d in results(data, tmp_path, "perspective(0.6, fill=50)"):
        h, w = x.shape[:2]
        if min(h, w) < 3:
            continue
        d()
        to = []
        for right, low in ((0, 0), (1, 0), (1, 1), (0, 1)):
            px = d.below(int(0.6 * (w // 2)) + 1)
            py = d.below(int(0.6 * (h // 2)) + 1)
            to.append((w - 1 - px if right else px,
                       h - 1 - py if low else py))
        want = Image.fromarray(x).transform(
            (w, h), Image.PERSPECTIVE, coefficients(to, (w, h)),
            Image.BILINEAR, fillcolor=(50, 50, 50))
        far += (apart(want, got) > 1).sum()
        count += h * w
    assert far <= count / 1000


# --- by the manual ---

def blurred(x, size, sigma):
    i = np.arange(size) - size // 2
    of = np.exp(-0.5 * (i / sigma) ** 2)
    w = np.rint(of / sum(of.tolist()) * 32767).astype(np.int64)
    w[size // 2] = min(32768 - (w.sum() - w[size // 2]), 32767)

    def m(a, b):
        return (a * b + 2 ** 14) >> 15

    def lines(v, mean, k):      # along axis 0
        p = np.pad(v, ((k, k), (0, 0), (0, 0)), "reflect")
        n = len(v)
        total = m(p[k:k + n] if mean else 128 * p[k:k + n], w[k])
        for j in range(k):
            a, b = p[j:j + n], p[2 * k - j:2 * k - j + n]
            total = total + m((a + b + 1) >> 1 if mean else 64 * (a + b),
                              2 * w[j])
        return total

    c = lines(x.astype(np.int64), False, size // 2)
    r = lines(c.swapaxes(0, 1), True, size // 2).swapaxes(0, 1)
    return np.minimum((r + 64) >> 7, 255)


@pytest.mark.parametrize("size", [1, 3, 5, 23])
def test_blur_matches_the_manual(data, tmp_path, size):
    for x, got, d in results(data, tmp_path,
                             f'gaussian_blur({size}, "0.4,3", 0.8)'):
        on, sigma = d() < 0.8, within(d, 0.4, 3)
        want = blurred(x, size, sigma) if on else x
        assert not apart(want, got).any()


def test_elastic_moves_pixels_smoothly(data, tmp_path):
    moved = 0
    for x, got, d in results(data, tmp_path, "elastic(60, 3)"):
        moved += apart(x, got).any()
    assert moved > N / 2
    for x, got, d in results(data, tmp_path, "elastic(0, 3)"):
        assert not apart(x, got).any()


@pytest.mark.parametrize("text", [
    "perspective(0.5, p=0)", "elastic(p=0)", "gaussian_blur(5, p=0)",
    "equalize(0)", "autocontrast(0)", "sharpness(2, 0)", "rotate(0)",
    "affine", "sharpness(1)"])
def test_nothing_changes(data, tmp_path, text):
    for x, got, d in results(data, tmp_path, text):
        assert not apart(x, got).any()


# --- a part alone ---

CROPS = ['random_crop("199,231")', 'flip(1) | random_crop("240,209") | flip(1)',
         "random_resized_crop(99)", "center_crop(200, 0.7)"]


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("text", [
    "rotate(180, bilinear)", 'affine(60, "0.3,0.2", "0.5,1.7", 20)',
    "rotate(90, bilinear) | affine(9, 0.3, interpolation=bilinear)",
    "perspective(0.6, interpolation=bilinear)", "elastic(90, 4)"])
def test_a_crop_makes_no_difference(data, tmp_path, text, crop):
    """Only what a crop reads is warped; a warp that is not the last of its
    pass is whole."""
    part, whole = (
        [r for _, r, _ in results(data[-9:], tmp_path,
                                  "pad(150, mode=symmetric) | "
                                  f"{text} | {between}{crop}")]
        for between in ("", "random_apply(invert, 0) | "))
    assert len(part) == 9
    assert all((a == b).all() for a, b in zip(part, whole))
    assert sum(len(np.unique(a)) > 9 for a in part) > 4
