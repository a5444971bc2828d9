# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and points that follow warps, lists of operations and policies,
through `beton dump`: against their image, NumPy code written from
beton-lists(7), and torchvision's v2."""
import json
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest

import make
import policies
from arrays import pack, rows
from draws import Draws
from dumped import beton, digest, dump
from warps import about, coefficients, matrix, within

SEED, EPOCH, N = 13, 1, 24
SPEC = ("--spec", f"batch=8,seed={SEED},drop_last=0", "--epoch", EPOCH)
W, H = 47, 35
PALETTE = np.random.default_rng(2).integers(1, 256, (256, 3), dtype=np.uint8)
PYTHON = os.environ.get("TORCHVISION_PYTHON")
HERE = pathlib.Path(__file__).parents[1]


def classes(i, w=W, h=H):
    y, x = np.mgrid[:h, :w]
    return ((y + i) // 5 * 7 + (x + 2 * i) // 6).astype(np.uint8) % 60 + 1


def sample(i):
    rng = np.random.default_rng(i)
    mask = classes(i)
    x, y = (np.sort(rng.uniform(0, s, (i % 5, 2)), 1) for s in (W, H))
    return {
        "image": make.Image(make.RAW, W, H, PALETTE[mask].tobytes()),
        "mask": mask, "colors": PALETTE[mask], "gray": PALETTE[mask][..., 1:2],
        "deep": mask.astype("<u2") * 1000, "labels": mask.astype("<i8") << 33,
        "bands": rng.normal(0.4, 3, (H, W, 5)).astype("<f4"),
        "frames": rng.integers(0, 256, (3, H, W, 2), dtype=np.uint8),
        "boxes": pack(np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1)),
        "points": pack(rng.uniform(0, (W, H), (4, 2)))}


FIELDS = [
    ("image", make.IMAGE), ("mask", make.NDARRAY, "|u1", (H, W)),
    ("colors", make.NDARRAY, "|u1", (H, W, 3)),
    ("gray", make.NDARRAY, "|u1", (H, W, 1)),
    ("deep", make.NDARRAY, "<u2", (H, W)),
    ("labels", make.NDARRAY, "<i8", (H, W)),
    ("bands", make.NDARRAY, "<f4", (H, W, 5)),
    ("frames", make.NDARRAY, "|u1", (3, H, W, 2)),
    ("boxes", make.BYTES), ("points", make.BYTES)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("moves") / "m.beton"
    return make.Dataset(path, FIELDS, [sample(i) for i in range(N)], 1 << 17)


def each(data, out, text):
    """id -> {output: row}"""
    return {i: {n: rows(b, n)[k] if n in b.offsets else b.row(n, k)
                for n in b.outputs}
            for b in dump(data.path, out, *SPEC, "--pipeline", text)
            for k, i in enumerate(b.ids)}


# --- grids ---

NEAREST = [
    "rotate(180)", 'affine(60, "0.3,0.2", "0.5,1.7", "-20,20,-10,30")',
    "perspective(0.6, interpolation=nearest)",
    "elastic(90, 4, interpolation=nearest)", 'random_crop("40,30", "9,8,7,6")',
    'random_crop("50,60", 3, true, mode=reflect)',
    'random_crop("20,90", pad_if_needed=true, mode=symmetric)',
    'random_crop("50,60", 20, mode=edge)', "random_translate(9)",
    "random_apply(rotate(40) | flip | vertical_flip, p=0.7)",
    "random_choice(rotate(90), flip, random_translate(4) | affine(30))",
    "random_order(rotate(50), perspective(0.3, interpolation=nearest), flip)",
    "random_apply(random_choice(rotate(70), elastic(80, 3, 1, nearest)), "
    "p=0.8)", "flip(1) | rotate(45) | center_crop(20, 0.9, nearest)",
    'pad("4,2") | rotate(180) | random_resized_crop(60, interpolation=nearest)'
]


@pytest.mark.parametrize("text", NEAREST)
def test_a_mask_is_where_its_image_is(data, tmp_path, text):
    """Each pixel has the color of its class, or is new in both."""
    got = each(data, tmp_path / "x", f"(colors, mask) | {text}; "
               "image | drop")
    moved = 0
    for i, g in got.items():
        assert (np.where(g["mask"][..., None] > 0, PALETTE[g["mask"]], 0)
                == g["colors"]).all(), i
        moved += g["mask"].shape != (H, W) or (g["mask"] != classes(i)).any()
    assert moved > N / 3


IMAGES = [t for t in NEAREST if "nearest)" not in t.partition("|")[2]] + [
    "rotate(180, bilinear, 30)", 'affine(60, 0.3, "0.5,2", 20, bilinear)',
    "perspective(0.6, fill=9)", "elastic(90, 4, fill=7)",
    "random_apply(brightness(0.5) | rotate(30, bilinear) | invert, p=0.7)"]
NO_WORD = [t for t in IMAGES if "_crop(60" not in t and "crop(20, 0.9" not in t]


@pytest.mark.parametrize("text", NO_WORD)
def test_grids_of_bytes_get_the_bits_of_images(data, tmp_path, text):
    got = each(data, tmp_path / "x", f"(image, colors, gray) | {text}")
    for i, g in got.items():
        assert (g["image"] == g["colors"]).all(), i
        assert (g["image"][..., 1:2] == g["gray"]).all(), i


@pytest.mark.parametrize("text", ["rotate(90)", 'affine(30, 0.2, "0.5,2", 9)',
                                  "perspective(0.5, interpolation=nearest)",
                                  "elastic(60, 4, 1, nearest)",
                                  'random_crop("30,60", 9)'])
def test_numbers_of_any_type_are_copied(data, tmp_path, text):
    got = each(data, tmp_path / "x",
               f"(places, labels, deep, frames) = (mask | int64, labels, "
               f"deep, frames) | {text}")
    for i, g in got.items():
        where = g["places"]
        assert (g["labels"] == where << 33).all()
        assert (g["deep"] == where * 1000).all()
        assert ((g["frames"] == 0) | (where > 0)[None, ..., None]).all()
        stored = data.values[i]["frames"]
        for f in range(3):
            assert set(map(tuple, g["frames"][f].reshape(-1, 2))) <= \
                set(map(tuple, stored[f].reshape(-1, 2))) | {(0, 0)}


def test_other_numbers_are_blended_in_float32(data, tmp_path):
    """A mean of four, by weights of 2^-11."""
    F = np.float32
    got = each(data, tmp_path / "x", "bands | rotate(180, bilinear, 2)")
    for i, g in got.items():
        d = Draws(SEED, EPOCH, i, "rotate:0")
        r = math.radians(about(d, 180))
        c, s = math.cos(r), math.sin(r)
        m = (c, -s, -c * W / 2 + s * H / 2 + W / 2,
             s, c, -s * W / 2 - c * H / 2 + H / 2)

        def fixed(v):
            return math.floor(v * 65536 + 0.5)
        y, x = np.mgrid[:H, :W]
        at = [fixed(m[k + 2] + m[k] / 2 + m[k + 1] / 2) + fixed(m[k]) * x
              + fixed(m[k + 1]) * y for k in (0, 3)]
        inside = np.logical_and(*(
            (a >= 0) & (a < n << 16) for a, n in zip(at, (W, H))))
        side = []
        for a, n in zip(at, (W, H)):
            k = a - 32768
            side.append((np.clip(k >> 16, 0, n - 1),
                         np.clip((k >> 16) + 1, 0, n - 1),
                         (((k & 65535) >> 5) / F(2048)).astype(F)[..., None]))
        (x0, x1, fx), (y0, y1, fy) = side
        v = data.values[i]["bands"]
        one = F(1)
        top = v[y0, x0] * (one - fx) + v[y0, x1] * fx
        low = v[y1, x0] * (one - fx) + v[y1, x1] * fx
        want = top * (one - fy) + low * fy
        assert (g["bands"] == np.where(inside[..., None], want, F(2))).all()


@pytest.mark.parametrize("text", ["rotate(90, label=7)",
                                  "affine(30, 0.5, label=7)",
                                  "perspective(0.9, label=7)",
                                  "elastic(900, 4, label=7)",
                                  "random_crop(60, 20, label=7)",
                                  "rand_augment(4, 30, label=7)",
                                  "trivial_augment(label=7)",
                                  "auto_augment(svhn, label=7)",
                                  "random_apply(rotate(90, label=7), p=0.9)"])
def test_new_pixels_of_a_mask_have_a_class(data, tmp_path, text):
    plain = text.replace(", label=7", "").replace("label=7", "")
    got = each(data, tmp_path / "x", f"(image, mask) | {text}")
    zero = each(data, tmp_path / "y", f"(image, mask) | {plain}")
    new = 0
    for i in got:
        want = np.where(zero[i]["mask"], zero[i]["mask"], 7)
        assert (got[i]["mask"] == want).all()
        assert (got[i]["image"] == zero[i]["image"]).all()
        new += (zero[i]["mask"] == 0).sum()
    assert new > N


def test_colors_in_parentheses_are_for_images_alone(data, tmp_path):
    text = ("random_apply(color_jitter(0.4, 0.3, 2) | rotate(30) | invert | "
            "flip | cutout(3), p=0.8) | random_choice(solarize(100), "
            "brightness(0.3) | vertical_flip) | random_apply(invert)")
    bare = ("random_apply(rotate(30, group=0) | flip(group=0), p=0.8, group=0)"
            " | random_choice(flip(0), vertical_flip(group=0), group=0)")
    last = "; gray | rotate(20) | flip"
    got = each(data, tmp_path / "x", f"(mask, image) | {text}{last}")
    other = each(data, tmp_path / "y", f"(image, mask) | {text}{last}")
    want = each(data, tmp_path / "z", f"image | {text}; mask | mask | {bare}")
    for i in got:
        for n in "mask", "image":
            assert (got[i][n] == want[i][n]).all(), (i, n)
        for n in "mask", "image", "gray":
            assert (got[i][n] == other[i][n]).all(), (i, n)


@pytest.mark.parametrize("text", ["rand_augment(3, 20)", "trivial_augment",
                                  "auto_augment", "auto_augment(cifar10)",
                                  "auto_augment(svhn, bilinear)",
                                  "random_apply(rand_augment, p=0.7)"])
def test_a_mask_follows_a_policy(data, tmp_path, text):
    """By the warps alone: in NumPy, of the draws of the policy."""
    got = each(data, tmp_path / "x", f"(image, mask) | {text}; p = "
               "params(image); boxes | follow(image, min_size=0)")
    moved = 0
    for i, g in got.items():
        back = np.linalg.inv(np.vstack([g["p"][:6].reshape(2, 3),
                                        [0, 0, 1]]))
        y, x = np.mgrid[:H, :W] + 0.5
        at = np.einsum("ij,jyx->iyx", back, np.stack([x, y, x * 0 + 1]))[:2]
        ix, iy = np.floor(at).astype(int)
        inside = (ix >= 0) & (ix < W) & (iy >= 0) & (iy < H)
        want = np.where(inside, classes(i)[np.clip(iy, 0, H - 1),
                                           np.clip(ix, 0, W - 1)], 0)
        warped = not np.allclose(back, np.eye(3))
        moved += warped
        if not warped:
            assert (g["mask"] == classes(i)).all()
        # Several warps round several times, and what left does not return.
        assert (g["mask"] == want).mean() > 0.75, i
        corners = np.stack([data.values[i]["boxes"]])
        assert len(g["boxes"]) == i % 5 or warped, corners
    assert moved > N / 8


def test_a_mask_follows_each_step_of_a_policy(data, tmp_path):
    got = each(data, tmp_path / "x", "(image, mask) | rand_augment(3, 20); "
               "p = params(image)")
    for i, g in got.items():
        d = Draws(SEED, EPOCH, i, "rand_augment:0")
        mask = classes(i)[..., None]
        for _ in range(3):
            name = list(policies.RAND)[d.below(len(policies.RAND))]
            m = policies.magnitude(policies.RAND, name, 20, 31, d(), (H, W))
            if name[:5] in ("Shear", "Trans", "Rotat") and m:
                mask = policies.OPS[name](mask, m, ("nearest", (0,)))
        assert (g["mask"] == mask[..., 0]).all(), i


# --- neighbors that are one resampling ---

def product(a, b):
    """The map of places that is b's and then a's."""
    return [a[0] * b[0] + a[1] * b[3], a[0] * b[1] + a[1] * b[4],
            a[0] * b[2] + a[1] * b[5] + a[2],
            a[3] * b[0] + a[4] * b[3], a[3] * b[1] + a[4] * b[4],
            a[3] * b[2] + a[4] * b[5] + a[5]]


def lattice(m, w=W, h=H):
    """Places in 2^-16 pixels."""
    def fixed(v):
        return math.floor(v * 65536 + 0.5)
    y, x = np.mgrid[:h, :w]
    return [fixed(m[k + 2] + m[k] / 2 + m[k + 1] / 2) + fixed(m[k]) * x
            + fixed(m[k + 1]) * y for k in (0, 3)]


def inside(at, w=W, h=H):
    return (at[0] >= 0) & (at[0] < w << 16) & (at[1] >= 0) & (at[1] < h << 16)


def warped(x, maps, fill):
    """By the product of maps, of which the first is the first operation's."""
    whole, seen = (1, 0, 0, 0, 1, 0), True
    for m in reversed(maps):
        whole = product(m, whole)
        at = lattice(whole)
        seen = seen & inside(at)
    out = x[np.clip(at[1] >> 16, 0, H - 1), np.clip(at[0] >> 16, 0, W - 1)]
    return np.where(seen if x.ndim == 2 else seen[..., None], out, fill)


def turned(d, most):
    r = math.radians(about(d, most))
    c, s = math.cos(r), math.sin(r)
    return (c, -s, -c * W / 2 + s * H / 2 + W / 2,
            s, c, -s * W / 2 - c * H / 2 + H / 2)


def moved(d):
    angle = about(d, 20)
    move = [round(about(d, 1) * 0.3 * s) for s in (W, H)]
    scale = within(d, 0.5, 1.7)
    return matrix(angle, scale, (about(d, 10), 0), move, (W, H))


AFFINE = 'affine(20, 0.3, "0.5,1.7", 10%s)'
JOINED = [
    (f"rotate(90) | {AFFINE % ''} | rotate(30)", [[0, 1, 2]]),
    (f"{AFFINE % ''} | rotate(90, group=1)", [[1, 0]]),
    # Another operation, argument or parenthesis between them separates them.
    (f"rotate(90) | vertical_flip(0) | {AFFINE % ''}", [[0], [1]]),
    (f"rotate(90) | {AFFINE % ', label=1, fill=1'}", [[0], [1]]),
    (f"random_apply(rotate(90) | {AFFINE % ''}, 1)", [[0], [1]])]


@pytest.mark.parametrize("text, parts", JOINED)
def test_neighbors_are_one_resampling(data, tmp_path, text, parts):
    got = each(data, tmp_path / "x", f"(image, mask, colors) | {text}")
    fill = int("fill=1" in text)
    apart = 0
    for i, g in got.items():
        d = [Draws(SEED, EPOCH, i, n)
             for n in ("rotate:0", "affine:0", "rotate:1")]
        maps = [turned(d[0 if "group=1" not in text else 2], 90), moved(d[1]),
                turned(d[2], 30) if len(parts[0]) == 3 else None]
        mask, image = classes(i), PALETTE[classes(i)]
        for k, part in enumerate(parts):
            those = [maps[j] for j in part]
            mask = warped(mask, those, fill * k)
            image = warped(image, those, fill * k)
        apart += (g["mask"] != mask).sum()
        apart += (g["image"] != image).any(-1).sum()
        assert (g["image"] == g["colors"]).all()
    assert apart <= N * H * W / 5000


def test_bilinear_neighbors_blur_once(data, tmp_path):
    """A turn and its opposite are the image again, where it stayed inside."""
    angle = "%s,%s" % (30, 30)
    got = each(data, tmp_path / "x", f'a = image | rotate("{angle}", bilinear) '
               f'| rotate("-30,-30", bilinear); b = image | rotate("{angle}", '
               'bilinear) | rotate("-30,-30", bilinear, 1)')
    for i, g in got.items():
        stored = PALETTE[classes(i)].astype(int)
        kept = g["a"].any(-1)
        assert np.abs(g["a"] - stored)[kept].max() <= 1
        assert np.abs(g["b"] - stored)[kept].max() > 20
        assert 0.5 < kept.mean() < 1


# --- boxes and points ---

def followed(matrix, points):
    """By the 14 numbers of params."""
    m = np.vstack([matrix[:6].reshape(2, 3), matrix[11:]])
    p = np.hstack([points, np.ones((len(points), 1))]) @ m.T
    return p[:, :2] / p[:, 2:]


CHAINS = ["rotate(180)", 'affine(60, "0.3,0.2", "0.5,1.7", "-20,20,-10,30")',
          "perspective(0.6)", 'random_crop("40,30", "9,8,7,6")',
          "random_apply(rotate(40) | flip, p=0.7) | "
          "random_order(perspective(0.4), vertical_flip, affine(30))",
          "rand_augment(4, 25)", "auto_augment(cifar10)",
          'flip | rotate(20) | random_resized_crop("20,30") | perspective']


@pytest.mark.parametrize("text", CHAINS)
def test_params_are_where_points_go(data, tmp_path, text):
    got = each(data, tmp_path / "x", f"image = {text}; p = params(image); "
               "points | follow(image, xy); boxes | drop")
    for i, g in got.items():
        stored = np.frombuffer(data.values[i]["points"][32:], "<f8")
        want = followed(g["p"], stored.reshape(-1, 2))
        assert np.allclose(g["points"], want, atol=1e-9)
        assert g["p"][6:10].tolist() == [H, W, *g["image"].shape[:2]]
        if "perspective" not in text:
            assert g["p"][11:].tolist() == [0, 0, 1]


@pytest.mark.parametrize("text", CHAINS)
def test_params_are_where_pixels_go(tmp_path, text):
    """The image's values are their own coordinates."""
    y, x = np.mgrid[:200, :240]
    picture = np.stack([x, y, 0 * x + 255], 2).astype(np.uint8)
    d = make.Dataset(tmp_path / "d.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 240, 200, picture.tobytes())}] * 12,
        1 << 20)
    if "augment" in text or "resized" in text:  # colors, and other sizes
        pytest.skip("values are no places")
    seen = 0
    for b in dump(d.path, tmp_path / "x", "--spec", "batch=12", "--pipeline",
                  f"image = {text}; p = params(image)"):
        for row in range(12):
            p, out = b.row("p", row), b.row("image", row)
            h, w = out.shape[:2]
            back = np.linalg.inv(np.vstack([p[:6].reshape(2, 3), p[11:]]))
            at = np.random.default_rng(row).integers(0, (w, h), (40, 2))
            got = out[at[:, 1], at[:, 0]]
            want = np.hstack([at + 0.5, np.ones((40, 1))]) @ back.T
            want = want[:, :2] / want[:, 2:] - 0.5
            kept = got[:, 2] == 255
            assert np.abs(want - got[:, :2])[kept].max(initial=0) <= 3
            seen += kept.sum()
    assert seen > 60


@pytest.mark.parametrize("text", CHAINS[:4])
def test_a_box_is_the_hull_of_its_corners(data, tmp_path, text):
    got = each(data, tmp_path / "x", f"image = {text}; p = params(image); "
               "boxes | follow(image, min_size=0); "
               "seen = boxes | follow(image, min_visible=0.6, min_size=0)")
    dropped = 0
    for i, g in got.items():
        b = np.frombuffer(data.values[i]["boxes"][32:], "<f8").reshape(-1, 4)
        seen = []
        for got_box, box in zip(g["boxes"], b, strict=True):
            at = followed(g["p"], box[[[0, 1], [2, 1], [2, 3], [0, 3]]])
            whole = np.stack([at.min(0), at.max(0)])
            want = whole.clip(0, g["p"][[9, 8]])
            assert np.allclose(got_box, want.ravel(), atol=1e-9)
            if np.prod(want[1] - want[0]) >= 0.6 * np.prod(whole[1] - whole[0]):
                seen.append(got_box)
        assert (g["seen"] == np.reshape(seen, (-1, 4))).all()
        dropped += len(b) - len(seen)
    assert dropped or "perspective" in text    # moves corners inward


TEXT = ("(image, mask) | random_apply(rotate(40) | color_jitter(0.3) | "
        "perspective(0.3), p=0.8) | rand_augment(3) | elastic(30, 4); "
        "(a, b) = (image, mask) | affine(20, 0.1) | rotate(9) | random_crop(60, 20) | "
        "random_choice(flip, rotate(90), vertical_flip); "
        "(bands, frames) | rotate(30, bilinear) | perspective; "
        "p = params(a); boxes | follow(a, min_visible=0.2); "
        "points | follow(a, xy); n = boxes | follow(a) | length")


@pytest.mark.parametrize("where", ["file", "mount"])
def test_workers_and_mounts_change_nothing(data, tmp_path, mount, where):
    source = mount(data.path) if where == "mount" else data.path
    sums = []
    for workers in 1, 2, 8:
        out = tmp_path / str(workers)
        dump(source, out, *SPEC, "--jobs", workers, "--pipeline", TEXT)
        sums.append(digest(out))
    dump(data.path, tmp_path / "file", *SPEC, "--pipeline", TEXT)
    assert sums == [digest(tmp_path / "file")] * 3


# --- what cannot be ---

@pytest.mark.parametrize("text, why", [
    ("image | elastic; boxes | follow(image)",
     "output `image' bends straight lines, which boxes cannot follow; leave "
     "out elastic"),
    ("image | random_apply(flip | elastic); p = params(image)",
     "bends straight lines"),
    ("image | aug_mix; boxes | follow(image)",
     "mixes differently warped images"),
    ("mask | mask | aug_mix", "works on 8-bit RGB images only"),
    ("mask | mask | random_apply(invert)", "a mask has classes"),
    ("mask | mask | random_choice(flip, cutout(3))", "a mask has classes"),
    ("gray | rand_augment", "works on 8-bit RGB images only"),
    ("gray | random_apply(contrast(1))", "8-bit RGB images only"),
    ("bands | random_apply(brightness(1))", "8-bit values"),
    ('gray | rotate(3, fill="1,2,3")', "one number as fill"),
    ("labels | perspective", "does not average labels"),
    ("labels | random_apply(rotate(9, bilinear))", "does not average labels"),
    ("mask | mask | rotate(9, label=65536)", "label of rotate takes whole numbers from 0 to 65535")])
def test_unfit_arguments_are_refused(data, tmp_path, text, why):
    r = beton("dump", data.path, "--out", tmp_path / "no", "--spec",
              "batch=1", "--pipeline", text, code=1)
    assert why in r.stderr


HOSTILE = np.array([
    [np.nan, 0, 9, 9], [0, 0, np.inf, 9], [-np.inf, 0, 3, 3],
    [-1e308, -1e308, 1e308, 1e308], [1e308, 1e308, -1e308, -1e308],
    [0, 0, 5e-324, 5e-324], [2, 2, 2, 2], [-3e30, 1, 4e30, 3]])


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (65535, 1), (40, 30)])
@pytest.mark.parametrize("text", [
    "rotate(180)", "perspective(1)", 'affine(90, 1, "0.001,900", 89)',
    'random_crop("3,5", 7)', "random_translate(16384)", "trivial_augment",
    "random_apply(rotate(90) | perspective(1), p=1)"])
def test_hostile_boxes_and_sizes(tmp_path, size, text):
    w, h = size
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES), ("none", make.BYTES)], [
        {"image": make.Image(make.RAW, w, h, bytes(3 * w * h)),
         "boxes": pack(HOSTILE), "none": pack(HOSTILE[:0])}] * 20, 1 << 18)
    form = "xyxy", "xywh", "cxcywh"
    out = dump(d.path, tmp_path / "x", "--spec", "batch=10", "--pipeline",
               f"image = {text} | random_crop(1); p = params(image); "
               + "; ".join(f"b{k} = boxes | follow(image, {f}, min_size=0)"
                           for k, f in enumerate(form))
               + "; v = boxes | follow(image, min_visible=0.5, min_size=0); "
               "q = boxes | follow(image, xy); none | follow(image)",
               "--on-error", "skip", code=None)
    for b in out:
        for name in "b0", "b1", "b2", "v":
            got = b.outputs[name]
            assert np.isfinite(got).all()
        got = b.outputs["b0"]
        assert (got >= 0).all() and (got <= 1).all()
        assert not len(b.outputs["none"])
        assert all(len(r) <= len(HOSTILE) for r in rows(b, "b0"))


# --- torchvision ---

beside = pytest.mark.skipif(
    not PYTHON, reason="TORCHVISION_PYTHON names no interpreter with "
    "torchvision")


def torchvision(cases, masks, tmp_path):
    (tmp_path / "in.json").write_text(json.dumps(cases))
    np.savez(tmp_path / "in.npz", **masks)
    subprocess.run([PYTHON, HERE / "moved_by_torchvision.py",
                    tmp_path / "in.json", tmp_path / "in.npz",
                    tmp_path / "out.json", tmp_path / "out.npz"],
                   check=True, timeout=300)
    return (json.loads((tmp_path / "out.json").read_text()),
            np.load(tmp_path / "out.npz"))


def turn(d, w, h):
    return [["rotate", {"angle": about(d, 180)}]]


def sheared(d, w, h):
    angle = about(d, 60)
    move = [round(about(d, 1) * v * s) for v, s in zip((0.3, 0.2), (w, h))]
    return [["affine", {"angle": angle, "translate": move,
                        "scale": within(d, 0.5, 1.7),
                        "shear": [within(d, -20, 20), within(d, -10, 30)]}]]


def seen_from(d, w, h):
    d()
    to = []
    for right, low in ((0, 0), (1, 0), (1, 1), (0, 1)):
        px = d.below(int(0.6 * (w // 2)) + 1)
        py = d.below(int(0.6 * (h // 2)) + 1)
        to.append((w - 1 - px if right else px, h - 1 - py if low else py))
    return [["perspective", {
        "startpoints": None, "endpoints": None,
        "coefficients": coefficients(to, (w, h)).tolist()}]]


def cut_of_padded(left, top, right, bottom, height, width):
    def steps(d, w, h):
        y = d.below(h + top + bottom - height + 1)
        x = d.below(w + left + right - width + 1)
        return [["pad", {"padding": [left, top, right, bottom]}],
                ["crop", {"top": y, "left": x, "height": height,
                          "width": width}]]
    return steps


def translated(d, w, h):
    y, x = d.below(19), d.below(19)
    return [["pad", {"padding": [9, 9, 9, 9]}],
            ["crop", {"top": y, "left": x, "height": h, "width": w}]]


LIKE = {
    "rotate(180)": turn,
    'affine(60, "0.3,0.2", "0.5,1.7", "-20,20,-10,30")': sheared,
    "perspective(0.6)": seen_from,
    'random_crop("12,11", "9,8,7,6")': cut_of_padded(9, 8, 7, 6, 12, 11),
    "random_translate(9)": translated,
    'pad("3,9,2,1")': lambda d, w, h: [["pad", {"padding": [3, 9, 2, 1]}]],
    "rotate(180) | perspective(0.6)": lambda d, w, h: turn(d[0], w, h)
    + seen_from(d[1], w, h),
}


def draws(i, text):
    names = [f"{part.partition('(')[0].strip()}:0" for part in text.split("|")]
    d = [Draws(5, 0, i, n) for n in names]
    return d if len(d) > 1 else d[0]


@beside
@pytest.mark.parametrize("text", LIKE)
def test_a_thousand_lists_are_torchvisions(tmp_path, text):
    rng = np.random.default_rng(7)
    samples = []
    for i in range(1000):
        w, h = (int(v) for v in rng.integers(9, 400, 2))
        ends = np.sort(rng.uniform(-0.1, 1.1, (2, i % 5, 2)), 2) \
            * [[[w]], [[h]]]
        samples.append({
            "image": make.Image(make.JPG, w, h, b"x"), "size": (w, h),
            "b": np.stack([*ends[..., 0], *ends[..., 1]], 1),
            "p": rng.uniform(0, (w, h), (3, 2))})
        samples[-1].update(boxes=pack(samples[-1]["b"]),
                           points=pack(samples[-1]["p"]))
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES), ("points", make.BYTES)],
        samples, 1 << 16)
    cases, mine = [], []
    for b in dump(d.path, tmp_path / "x", "--spec", "batch=500,seed=5",
                  "--pipeline", f"image = {text} | resize(\"9,9\"); "
                  f"same = image | {group(text)} | cutout(1); "
                  "boxes | follow(same, min_size=0); points | follow(same, xy)",
                  "--on-error", "skip", code=None):
        for i, *got in zip(b.ids, rows(b, "boxes"), rows(b, "points")):
            s = samples[i]
            cases.append({"size": s["size"], "boxes": s["b"].tolist(),
                          "points": s["p"].tolist(),
                          "steps": LIKE[text](draws(i, text), *s["size"])})
            mine.append(got)
    theirs, _ = torchvision(cases, {}, tmp_path)
    most = 0.0
    for got, want in zip(mine, theirs, strict=True):
        for a, b in zip(got, want):
            b = np.reshape(b, a.shape)
            most = max([most, *np.abs(a - b).ravel() / np.maximum(
                1, np.abs(b)).ravel()])
    assert len(mine) == 1000 and most < 1e-5, most


def group(text):
    """The same draws as the first operation of its name."""
    return " | ".join(p.strip()[:-1] + ", group=0)" if "pad(" not in p else p
                      for p in text.split("|"))


def from_border(steps, w, h, at):
    """How far the places of pixels are from a border of two pixels."""
    name, args = steps[-1]
    if name == "perspective":
        m = np.append(args["coefficients"], 1)
    else:
        m = np.append(matrix(args["angle"], args.get("scale", 1),
                             args.get("shear", (0, 0)),
                             args.get("translate", (0, 0)), (w, h)),
                      (0, 0, 1))
        if name == "rotate":    # turns the other way
            m = np.append(matrix(-args["angle"], 1, (0, 0), (0, 0), (w, h)),
                          (0, 0, 1))
    y, x = at
    to = m.reshape(3, 3) @ np.stack([x + 0.5, y + 0.5, x * 0 + 1.0])
    to = to[:2] / to[2]
    return np.abs(to - np.rint(to)).min(0)


@beside
@pytest.mark.parametrize("text", [t for t in LIKE if "|" not in t])
def test_masks_are_torchvisions_but_on_borders(tmp_path, text):
    """At positions on the border of two pixels, either may be taken."""
    wrong = apart = count = 0
    cases, stored, mine = [], {}, {}
    warps = text[0] in "rap" and text[:3] in ("rot", "aff", "per")
    for w, h, n in (61, 47, 400), (33, 64, 400), (19, 13, 200):
        masks = [classes(i, w, h) for i in range(n)]
        d = make.Dataset(tmp_path / f"{w}.beton", [
            ("image", make.IMAGE), ("mask", make.NDARRAY, "|u1", (h, w))], [
            {"image": make.Image(make.RAW, w, h, bytes(3 * w * h)),
             "mask": m} for m in masks], 1 << 18)
        first = len(cases)
        for b in dump(d.path, tmp_path / f"x{w}", "--spec",
                      "batch=100,seed=5", "--pipeline",
                      f"(image, mask) | {text}"):
            mine.update((first + i, m) for i, m in
                        zip(b.ids, b.outputs["mask"]))
        for i, m in enumerate(masks):
            stored[str(len(cases))] = m
            cases.append({"size": (w, h), "boxes": [], "points": [],
                          "steps": LIKE[text](draws(i, text), w, h)})
    _, theirs = torchvision(cases, stored, tmp_path)
    for i, case in enumerate(cases):
        off = mine[i] != theirs[str(i)]
        count += off.size
        apart += off.sum()
        wrong += off.any()
        if warps:
            at = np.nonzero(off)
            assert (from_border(case["steps"], *case["size"], at) < 1e-3).all()
    print(f"{text}: {apart} of {count} pixels, in {wrong} masks")
    assert apart <= count / 2000 if warps else apart == 0
