# SPDX-License-Identifier: Apache-2.0
"""Interpolations and sizes of resizing, through `beton dump`: compared with
Pillow, and for torchvision's sizes with beton-operations(7)."""
import io
import json
import os
import subprocess

import numpy as np
import pytest

import make
from draws import Draws
from dumped import digest, dump

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
    image = Image.fromarray(np.ascontiguousarray(pixels))
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


# --- JPEG ---

@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """JPEGs of one size, with chroma of the same size and of half of it."""
    path = tmp_path_factory.mktemp("resizes") / "p.beton"
    values = []
    for i in range(30):
        out = io.BytesIO()
        p = np.asarray(Image.fromarray(picture(80 + i % 5)).resize((9, 7)))
        Image.fromarray(p).resize((133, 101), Image.BICUBIC).save(
            out, "jpeg", quality=80, subsampling=i % 3)
        values.append({"image": make.Image(make.JPG, 133, 101, out.getvalue())})
    return make.Dataset(path, [("image", make.IMAGE)], values, 1 << 16)


@pytest.mark.parametrize("quality", ["default", "exact", "draft"])
@pytest.mark.parametrize("how", ["nearest", "bicubic", "lanczos"])
def test_jpegs_are_pillows_in_every_quality(photos, tmp_path, how, quality):
    kept = "" if quality == "draft" else " | cache(decoded, 1MiB)"
    text = ("all = image | decode(exact); "
            "cut = image | decode(exact) | random_crop(40, group=a); "
            f"a = image | decode({quality}) | resize(50, {how}); "
            f'b = image | decode({quality}) | resize("13,300", {how}); '
            f"c = image | decode({quality}) | random_crop(40, group=a) | "
            f'flip(1) | resize("64,17", {how}); '
            f"d = image | decode({quality}){kept} | flip(1) | "
            f"resize(13, {how}) | chw")
    for i, got in rows(photos, tmp_path / "x", text):
        for name, size in ("a", (50, 65)), ("b", (13, 300)):
            want = by_pillow(got["all"], size, how)
            assert (got[name] == want).all(), (i, name)
        want = by_pillow(got["cut"][:, ::-1], (64, 17), how)
        assert (got["c"] == want).all(), i
        want = by_pillow(got["all"][:, ::-1], (13, 17), how)
        assert (got["d"].transpose(1, 2, 0) == want).all(), i


@pytest.mark.parametrize("how", HOWS)
def test_bytes_do_not_depend_on_threads_or_on_the_source(photos, mount,
                                                         tmp_path, how):
    text = (f'image | random_resized_crop("31,40", interpolation={how}) | '
            f"flip | resize(20, {how}) | normalize(imagenet) | chw")
    options = ["--spec", "batch=7,seed=2", "--pipeline", text]
    for workers in 1, 2, 8:
        dump(photos.path, tmp_path / f"{workers}", *options,
             "--jobs", workers)
    dump(mount(photos.path), tmp_path / "mount", *options, "--jobs", 3)
    assert len({str(digest(tmp_path / name))
                for name in ("1", "2", "8", "mount")}) == 1


# --- sizes ---

def by_torchvision(h, w, size, most, side):
    """The height and width that torchvision's Resize chooses."""
    short, long = min(h, w), max(h, w)
    if side == "longer":
        new = int(size * short / long), size
    else:
        new = size, int(size * long / short)
        if most and new[1] > most:
            new = int(most * new[0] / new[1]), most
    return new if h <= w else new[::-1]


ASKED = [(size, most, side) for size in (1, 7, 40, 111)
         for most, side in ((None, "shorter"), (size + 1, "shorter"),
                            (2 * size, "shorter"), (None, "longer"))]


@pytest.mark.parametrize("h, w", [(37, 53), (53, 37), (40, 40), (1, 90),
                                  (90, 1), (1, 1), (111, 112), (16, 33)])
def test_one_number_is_a_side(tmp_path, h, w):
    data = make.Dataset(tmp_path / "s.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, w, h, bytes(range(1, 4)) * (h * w))}],
        1 << 16)
    text = "; ".join(
        f"s{k} = image | resize({size}, nearest, side={side}"
        + (f", max_size={most})" if most else ")")
        for k, (size, most, side) in enumerate(ASKED))
    (_, got), = rows(data, tmp_path / "x", text)
    for k, asked in enumerate(ASKED):
        want = [max(1, n) for n in by_torchvision(h, w, *asked)]
        assert got[f"s{k}"].shape == (*want, 3), asked
        assert (got[f"s{k}"] == [1, 2, 3]).all()


THEIRS = """
import json, sys
import torch
library = torch.library.Library("torchvision", "FRAGMENT")
for name in "nms", "qnms":
    try:
        library.define(name + "(Tensor dets, Tensor scores, "
                       "float iou_threshold) -> Tensor")
    except RuntimeError:
        pass
import PIL.Image
from torchvision.transforms import v2
out = []
for h, w, size, most, side in json.load(sys.stdin):
    r = v2.Resize(None, max_size=size) if side == "longer" else \\
        v2.Resize(size, max_size=most)
    out.append(r(PIL.Image.new("RGB", (w, h))).size[::-1])
print(json.dumps(out))
"""


@pytest.mark.skipif("TORCHVISION_PYTHON" not in os.environ,
                    reason="TORCHVISION_PYTHON names no interpreter")
def test_torchvision_chooses_these_sizes():
    rng = np.random.default_rng(4)
    cases = [[*map(int, rng.integers(8, 700, 2)), *asked]
             for _ in range(40) for asked in ASKED[4:]]
    cases = [c for c in cases if min(by_torchvision(*c)) > 0]
    reported = json.loads(subprocess.run(
        [os.environ["TORCHVISION_PYTHON"], "-c", THEIRS],
        input=json.dumps(cases), capture_output=True, text=True,
        check=True).stdout)
    assert [tuple(t) for t in reported] == [by_torchvision(*c) for c in cases]


def test_the_longest_sides(tmp_path):
    """A side that would be too long is cut, and none becomes nothing."""
    data = make.Dataset(tmp_path / "s.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 900, 1, bytes(2700))}])
    text = ("a = image | resize(30, nearest); "
            "b = image | resize(30, nearest, max_size=31); "
            "c = image | resize(16384, nearest, side=longer); "
            "d = image | resize(3, lanczos, side=longer)")
    (_, got), = rows(data, tmp_path / "x", text)
    assert got["a"].shape == (30, 16384, 3)
    assert got["b"].shape == (1, 31, 3)
    assert got["c"].shape == (18, 16384, 3)
    assert got["d"].shape == (1, 3, 3)
