# SPDX-License-Identifier: Apache-2.0
"""Images of any channels and numbers, and masks, through `beton dump`: against
8-bit RGB images, and NumPy code written from beton-grids(7)."""
import io
import subprocess

import numpy as np
import pytest

import make
from dumped import BUILD, beton, digest, dump

Image = pytest.importorskip("PIL.Image")

N, W, H, C = 12, 23, 17, 5
SEED, EPOCH = 7, 3
SPEC = ("--spec", f"batch=5,seed={SEED},drop_last=0", "--epoch", EPOCH)
F = np.float32


def png(array, **how):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "png", **how)
    return out.getvalue()


def classes(i):
    """Big shapes of a few classes."""
    y, x = np.mgrid[:H, :W]
    return ((y + i) // 6 * 3 + (x + 2 * i) // 7).astype(np.uint8) % 9


PALETTE = np.random.default_rng(2).integers(0, 256, (256, 3), dtype=np.uint8)


def sample(i):
    rng = np.random.default_rng(i)
    rgb = rng.integers(0, 256, (H, W, 3), dtype=np.uint8)
    mask = classes(i)
    own = classes(i)[:H - i, :W - 2 * (i % 3)]
    return {
        "image": make.Image(make.RAW, W, H, rgb.tobytes()), "rgb": rgb,
        "gray": rgb[..., 1].copy(), "one": rgb[..., 1:2].copy(),
        "deep": rng.integers(0, 65536, (H, W)).astype("<u2"),
        "bands": rng.normal(0.4, 3, (H, W, C)).astype("<f4"),
        "half": rng.normal(0, 1, (H, W, 2)).astype("<f2"),
        "mask": mask, "labels": mask.astype("<i8") << 33,
        "drawn": make.Image(make.RAW, W, H, PALETTE[mask].tobytes()),
        "colors": PALETTE[mask],
        "maskrgb": make.Image(make.RAW, W, H,
                              np.stack([mask] * 3, -1).tobytes()),
        "png": png(own), "frames": rng.integers(
            0, 256, (3, H, W, 3), dtype=np.uint8),
    }


FIELDS = [
    ("image", make.IMAGE), ("rgb", make.NDARRAY, "|u1", (H, W, 3)),
    ("gray", make.NDARRAY, "|u1", (H, W)),
    ("one", make.NDARRAY, "|u1", (H, W, 1)),
    ("deep", make.NDARRAY, "<u2", (H, W)),
    ("bands", make.TENSOR, "<f4", (H, W, C)),
    ("half", make.NDARRAY, "<f2", (H, W, 2)),
    ("mask", make.NDARRAY, "|u1", (H, W)),
    ("labels", make.NDARRAY, "<i8", (H, W)),
    ("drawn", make.IMAGE), ("colors", make.NDARRAY, "|u1", (H, W, 3)),
    ("maskrgb", make.IMAGE), ("png", make.BYTES),
    ("frames", make.NDARRAY, "|u1", (3, H, W, 3))]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("grids") / "g.beton"
    return make.Dataset(path, FIELDS, [sample(i) for i in range(N)], 1 << 17)


def rows(data, out, text):
    """id -> {output: row}"""
    return {i: {n: b.row(n, k) for n in b.outputs}
            for b in dump(data.path, out, *SPEC, "--pipeline", text)
            for k, i in enumerate(b.ids)}


def refused(data, tmp_path, text):
    return beton("dump", data.path, "--out", tmp_path / "no", "--spec",
                "batch=1", "--pipeline",
                 text, code=1).stderr


# --- 8-bit arrays are what images are ---

CHAINS = [
    "center_crop(8)", "center_crop(16, 0.5)", "resize(9)",
    'resize("31,40")', 'resize("8,11", bilinear)', 'resize("31,9", bilinear)',
    'resize("8,11", bicubic)', 'resize("31,9", bicubic)',
    'resize("7,50", lanczos) | flip(1)', "resize(25, lanczos)",
    'resize("9,40", nearest)', "center_crop(8, 1, nearest) | flip(1)",
    "random_resized_crop(8, group=a)", "resize(11) | flip(group=b)",
    'random_resized_crop("30,9", interpolation=bilinear, group=a) | '
    "flip(1) | center_crop(7)",
    "flip(1) | center_crop(9) | flip(1) | resize(5)",
    "vertical_flip(group=c) | flip(group=b)",
    'pad("1,2,3,4", reflect) | flip(1)', 'pad("30,2", symmetric)',
    'pad(3, fill="1,2,3") | random_resized_crop(9, group=a)',
    'cutout("4,7", "9,8,7", group=d) | flip(1)',
    'random_translate(3, "5,6,7", group=e)', "brightness(0.5, 1, group=f)",
    "contrast(0.7, 1, group=g) | flip(1)", "saturation(0.5, 1, group=h)",
    "color_jitter(0.4, 0.3, 2, 0.1, group=i) | resize(9)", "invert | half",
    "normalize(imagenet) | chw", 'normalize("0.1,0.2,0.3", 0.5) | half | chw',
    "resize(9) | double | chw", "solarize(100) | float",
    "multi_crop(9, 3, group=a) | flip(group=b)",
    'multi_crop("7,5", interpolation=nearest, group=a) | float | chw',
    "flip(group=b) | five_crop(8) | invert", 'ten_crop("5,9") | half']


@pytest.mark.parametrize("chain", CHAINS)
def test_an_array_of_three_channels_is_an_image(data, tmp_path, chain):
    got = rows(data, tmp_path / "x", f"a = image | {chain}; b = rgb | {chain}")
    for i in range(N):
        assert got[i]["a"].dtype == got[i]["b"].dtype
        assert (got[i]["a"] == got[i]["b"]).all(), i


ONE = [c for c in CHAINS if "1,2,3\"" not in c and "\"9,8" not in c
       and "\"5,6" not in c and "contrast" not in c and "satur" not in c
       and "jitter" not in c and "normal" not in c and "chw" not in c]


@pytest.mark.parametrize("field", ["gray", "one"])
@pytest.mark.parametrize("chain", ONE)
def test_one_channel_is_one_of_three(data, tmp_path, chain, field):
    got = rows(data, tmp_path / "x",
               f"a = image | {chain}; b = {field} | {chain}")
    for i in range(N):
        want = got[i]["a"][..., 1]
        if field == "one":
            want = want[..., None]
        assert got[i]["b"].shape == want.shape
        assert (got[i]["b"] == want).all(), i


# --- several views ---

def five(x, side):
    """The views of five_crop."""
    y, left = round((H - side) / 2), round((W - side) / 2)
    return [x[:side, :side], x[:side, -side:], x[-side:, :side],
            x[-side:, -side:], x[y:y + side, left:left + side]]


@pytest.mark.parametrize("field", ["gray", "one", "deep", "bands", "half",
                                   "mask", "labels", "frames"])
def test_views_of_a_grid_are_its_parts(data, tmp_path, field):
    got = rows(data, tmp_path / "x",
               f"{field} | five_crop(8) | flip(1)" +
               " | chw" * (field == "frames"))
    for i in range(N):
        x = data.values[i][field]
        frames = x if field == "frames" else x[None]
        want = np.stack([np.stack([part[:, ::-1] for part in five(f, 8)])
                         for f in frames], 1)
        want = want.transpose(0, 1, 4, 2, 3) if field == "frames" \
            else want[:, 0]
        assert got[i][field].shape == want.shape
        assert (got[i][field] == want).all(), i


@pytest.mark.parametrize("field", ["mask", "png"])
def test_views_of_a_mask_are_those_of_its_image(data, tmp_path, field):
    """Each view is cut from the same place, and has its classes alone."""
    how = "interpolation=nearest, group=a"
    text = (f"drawing = maskrgb | multi_crop(9, 4, {how}) | flip(group=f); "
            f"{field} | mask | multi_crop(9, 4, {how}) | flip(group=f)")
    got = rows(data, tmp_path / "x", text)
    for i in range(N):
        assert got[i][field].shape == (4, 9, 9)
        assert set(np.unique(got[i][field])) <= set(range(9))
        if field == "mask":
            assert (got[i][field] == got[i]["drawing"][..., 0]).all(), i


# --- other numbers ---

def box(n, m):
    """[m, n] weights of the area of each pixel."""
    w = np.zeros((m, n), F)
    for i in range(m):
        at, end = i * n / m, (i + 1) * n / m
        for k in range(n):
            share = min(end, k + 1) - max(at, k)
            if share > 1e-3:
                w[i, k] = share / (n / m)
    return w


def triangle(n, m):
    scale = n / m
    support = max(scale, 1)
    k = np.arange(n)
    w = np.maximum(0, 1 - abs((k + .5 - (np.arange(m)[:, None] + .5) * scale)
                              / support))
    return (w / w.sum(1, keepdims=True)).astype(F)


def cubic_at(x):
    x = abs(x)
    return np.where(x < 1, 1.5 * x ** 3 - 2.5 * x ** 2 + 1, np.where(
        x < 2, -0.5 * x ** 3 + 2.5 * x ** 2 - 4 * x + 2, 0))


def lanczos_at(x):
    return np.where(abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def kernel(at):
    def weights(n, m):
        scale = n / m
        x = (np.arange(n) + .5 - (np.arange(m)[:, None] + .5) * scale) \
            / max(scale, 1)
        w = at(x)
        return (w / w.sum(1, keepdims=True)).astype(F)
    return weights


def linear(n, m):
    w = np.zeros((m, n), F)
    for i in range(m):
        first = min(int(i * (n / m)), n - 1)
        f = F((i + 1) - (first + 1) * (m / n))
        f = 0 if f <= 0 or first + 1 == n else f - int(f)
        w[i, first] = 1 - f
        if f:
            w[i, first + 1] = f
    return w


def resized(x, h, w, weights):
    v = x.astype(np.float64)
    v = np.einsum("ik,yk...->yi...", weights(x.shape[1], w), v)
    return np.einsum("ik,kx...->ix...", weights(x.shape[0], h), v)


@pytest.mark.parametrize("field", ["deep", "bands", "half"])
@pytest.mark.parametrize("how,size,weights", [
    ("area", (9, 11), box), ("area", (8, 23), box), ("area", (40, 50), linear),
    ("area", (8, 50), linear), ("bilinear", (9, 11), triangle),
    ("bilinear", (40, 11), triangle), ("bicubic", (9, 11), kernel(cubic_at)),
    ("bicubic", (40, 11), kernel(cubic_at)),
    ("lanczos", (9, 50), kernel(lanczos_at)),
    ("lanczos", (5, 11), kernel(lanczos_at))])
def test_resizing_of_other_numbers(data, tmp_path, field, how, size, weights):
    h, w = size
    got = rows(data, tmp_path / "x", f'{field} | resize("{h},{w}", {how})')
    for i in range(N):
        stored = data.values[i][field]
        want = resized(stored, h, w, weights)
        if field == "deep":
            want = want.clip(0, 65535)
        assert got[i][field].dtype == stored.dtype
        off = abs(got[i][field].astype(np.float64) - want).max()
        assert off <= {"deep": 0.51, "bands": 1e-5, "half": 4e-3}[field]


def nearest(n, m):
    return (2 * np.arange(m) + 1) * n // (2 * m)


@pytest.mark.parametrize("field", ["gray", "rgb", "deep", "bands", "half",
                                   "labels", "frames"])
@pytest.mark.parametrize("size", [(9, 11), (40, 60), (1, 1), (17, 50)])
def test_nearest(data, tmp_path, field, size):
    h, w = size
    got = rows(data, tmp_path / "x",
               f'{field} | resize("{h},{w}", nearest) | flip(1)')
    for i in range(N):
        x = data.values[i][field]
        axis = int(field == "frames")
        want = np.take(np.take(x, nearest(H, h), axis), nearest(W, w), axis + 1)
        assert (got[i][field] == np.flip(want, axis + 1)).all()


def test_normalizing_any_channels(data, tmp_path):
    mean = [0.1, 0.9, 0.5, 0, 1]
    std = [0.3, 2, 1, 16, 0.5]
    text = "bands | flip(1) | normalize(\"%s\", \"%s\") | chw" % (
        ",".join(map(str, mean)), ",".join(map(str, std)))
    text += "; deep | normalize(0.25, 2); frames | normalize(0.5, 0.5) | chw"
    got = rows(data, tmp_path / "x", text)
    for i in range(N):
        x, deep = data.values[i]["bands"], data.values[i]["deep"]
        want = (x[:, ::-1] - F(mean)) * F(1 / np.array(std))
        assert (got[i]["bands"] == want.transpose(2, 0, 1)).all()
        assert (got[i]["deep"] == (deep.astype(F) - F(65535 * 0.25))
                * F(1 / (65535 * 2))).all()
        want = (data.values[i]["frames"].astype(F) - F(127.5)) * F(1 / 127.5)
        assert (got[i]["frames"] == want.transpose(0, 3, 1, 2)).all()


def test_numbers_become_others_before_and_after(data, tmp_path):
    got = rows(data, tmp_path / "x", "a = bands | half | resize(9, nearest);"
               "b = bands | resize(9, nearest) | half; c = gray | float | "
               "resize(9); d = gray | float | normalize(0, 1)")
    for i in range(N):
        assert got[i]["a"].dtype == np.float16
        assert (got[i]["a"] == got[i]["b"]).all()
        want = resized(data.values[i]["gray"], 9, 9 * W // H, box)
        assert abs(got[i]["c"] - want).max() < 1e-4
        assert (got[i]["d"] == data.values[i]["gray"].astype(F)
                * F(1 / 255)).all()


# --- masks ---

GEOMETRY = ["center_crop(16, 0.9)", "resize(9)", 'resize("31,40")',
            "random_resized_crop(12, group=a) | flip(group=b)",
            "flip(1) | vertical_flip(group=c) | random_resized_crop(40)",
            'pad("3,1", reflect) | resize(20)', "flip | random_translate(3)"]


@pytest.mark.parametrize("chain", GEOMETRY)
@pytest.mark.parametrize("field", ["mask", "maskrgb"])
def test_a_mask_has_the_classes_of_the_nearest_pixels(data, tmp_path, chain,
                                                      field):
    got = rows(data, tmp_path / "x", f"{field} | mask | {chain}; "
               f"mine = mask | mask | int64 | {chain}")
    for i in range(N):
        assert got[i][field].dtype == np.uint8 and got[i][field].ndim == 2
        assert got[i]["mine"].dtype == np.int64
        assert set(got[i][field].flat) <= set(classes(i).flat) | {0}


@pytest.mark.parametrize("chain", GEOMETRY)
def test_mask_and_image_agree(data, tmp_path, chain):
    """Every pixel of the colors is that of the class, by the nearest pixel;
    resized by area, every one that lies within a class."""
    text = f"(colors, mask, drawn) | {chain}"
    near = chain.replace("center_crop(16, 0.9", "center_crop(16, 0.9, nearest")
    near = near.replace("resize(9", "resize(9, nearest")
    near = near.replace("resize(20", "resize(20, nearest")
    near = near.replace('40")', '40", nearest)')
    near = near.replace("crop(40", "crop(40, interpolation=nearest")
    near = near.replace("crop(12", "crop(12, interpolation=nearest")
    got = rows(data, tmp_path / "x", text)
    same = rows(data, tmp_path / "y", f"(colors, mask) | {near}")
    inside = 0
    for i in range(N):
        mask = same[i]["mask"]
        assert (mask == got[i]["mask"]).all()
        moved = (same[i]["colors"] == 0).all(-1)
        assert ((same[i]["colors"] == PALETTE[mask]).all(-1) | moved).all()
        edges = np.pad(mask, 2, mode="edge")
        around = np.lib.stride_tricks.sliding_window_view(edges, (5, 5))
        within = (around == mask[..., None, None]).all((2, 3)) & ~moved
        for field in "colors", "drawn":
            assert (got[i][field][within] == PALETTE[mask[within]]).all()
        inside += within.sum()
    assert inside > N


def test_colors_are_for_images_alone(data, tmp_path):
    text = ("(image, mask) | random_resized_crop(12) | flip | "
            "color_jitter(0.4, 0.3, 2, 0.1) | brightness(0.5, 1) | "
            "cutout(3) | normalize(imagenet) | half | chw")
    got = rows(data, tmp_path / "x", text)
    alone = rows(data, tmp_path / "y", text.replace("(image, mask)", "image")
                 + "; mask | mask | random_resized_crop(12, group=0) | "
                 "flip(group=0)")
    for i in range(N):
        assert (got[i]["image"] == alone[i]["image"]).all()
        assert (got[i]["mask"] == alone[i]["mask"]).all()
        assert got[i]["image"].dtype == np.float16
        assert got[i]["mask"].dtype == np.uint8


def test_a_statement_of_several_counts_as_one(data, tmp_path):
    """Random numbers of later statements do not depend on how many fields an
    earlier one has."""
    want = None
    for k, first in enumerate(("image | flip(0.5)", "(image, mask) | flip",
                               "(mask, image, rgb) | flip")):
        got = rows(data, tmp_path / str(k), first + "; gray | flip")
        if want:
            assert all((got[i]["gray"] == want[i]["gray"]).all()
                       and (got[i]["image"] == want[i]["image"]).all()
                       for i in range(N))
        want = got


def test_names_and_operations_of_a_field(data, tmp_path):
    got = rows(data, tmp_path / "x", "(a, b, c) = (image, png | mask,\n"
               "labels) | random_resized_crop(8) |\n flip\nimage | drop; mask | drop")
    again = rows(data, tmp_path / "y", "(image, labels) | random_resized_crop(8) "
                 "| flip; (mask | mask | int64) | center_crop(8)")
    for i in range(N):
        assert got[i]["b"].shape == (8, 8) and got[i]["c"].dtype == np.int64
        assert (got[i]["a"] == again[i]["image"]).all()
        assert (got[i]["c"] == again[i]["labels"]).all()
        assert again[i]["mask"].dtype == np.int64
        assert "mask" not in got[i] and "gray" in got[i]


@pytest.mark.parametrize("text,expects", [
    ("(image, mask) | colr_jitter", "no operation is called `colr_jitter'"),
    ("(image, mask | flip", "column"), ("()", "column"), ("(image,)", "column"),
    ("(a, b) = (image)", "2 names for 1 fields"),
    ("(a, b) = image", "as many fields as names"),
    ("(flip, mask)", "no field \"flip\""), ("(mask, mask)", "already"),
    ("(mask, labels) | normalize(0, 1)", "none of these fields"),
    ("a = (image, mask) | flip", "column"),
    ("mask | mask | brightness(1)", "a mask has classes"),
    ("mask | mask | cutout(3)", "a mask has classes"),
    ("mask | resize(9) | mask", "must be the first operation"),
    ("bands | mask", "whole numbers"),
    ("labels | resize(9)", "does not average labels"),
    ("bands | brightness(1)", "8-bit values"),
    ("gray | saturation(1)", "three channels"),
    ("gray | contrast(1)", "8-bit RGB"),
    ('gray | pad(3, fill="1,2,3")', "one number as fill"),
    ('bands | normalize("1,1,1", 1)', "one per channel"),
    ("gray | normalize(imagenet)", "three channels"),
    ("gray | chw | resize(9)", "before chw"),
    ("gray | cache(decoded, 1MiB)", "images"),
    ("png | mask", "set one, as in"), ("png | resize(9)", "images only"),
    ("png | mask | resize(9)", "set one, as in"),
    ("labels | resize(9, bicubic)", "does not average labels")])
def test_unfit_operations_are_refused(data, tmp_path, text, expects):
    assert expects in refused(data, tmp_path, text)


# --- PNG ---

@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Classes in PNGs of several kinds; also of no kind."""
    wide = classes(3).astype(np.uint16) * 300
    palette = Image.fromarray(classes(1), "P")
    palette.putpalette(PALETTE.tobytes())
    out = io.BytesIO()
    palette.save(out, "png", bits=4)
    bits = (classes(2) % 2).astype(bool)
    values = [png(classes(0)), out.getvalue(), png(bits), png(wide),
              png(np.stack([classes(4), classes(5), classes(6)], -1)),
              png(classes(0))[:-30], b"nonsense"]
    path = tmp_path_factory.mktemp("png") / "p.beton"
    d = make.Dataset(path, [("seg", make.BYTES)],
                     [{"seg": v} for v in values], 1 << 14)
    d.want = [classes(0), classes(1), bits, wide, classes(4)]
    return d


@pytest.mark.parametrize("bits", [8, 16])
def test_masks_in_pngs(stored, tmp_path, bits):
    text = f'seg | mask({bits}) | resize("{H},{W}")'
    r = beton("dump", stored.path, "--out", tmp_path / "x", "--spec",
              "batch=1,order=sequential", "--pipeline", text, "--on-error",
              "skip", code=None)
    for i, want in enumerate(stored.want):
        file = tmp_path / "x" / f"{i:06}" / "seg.npy"
        fits = bits == 16 or want.max() < 256
        got = np.load(file)[0]
        assert got.dtype == f"u{bits // 8}"
        assert (got == (want if fits else 0)).all(), i
    assert f"{4 - bits // 8} samples" in r.stderr


@pytest.mark.parametrize("i,expects", [
    (3, "a class is above 255; use mask(16)"), (5, "PNG: "),
    (6, "not a PNG")])
def test_damaged_pngs(stored, tmp_path, i, expects):
    r = beton("dump", stored.path, "--out", tmp_path / "x", "--spec",
              f"batch=1,order=sequential,subset={i}-{i + 1}", "--pipeline",
              "seg | mask | resize(\"9,9\")", code=1)
    assert f"sample {i}" in r.stderr and expects in r.stderr


def test_everything_is_the_same_for_any_number_of_workers(data, tmp_path):
    text = ("(image, mask, png) | random_resized_crop(12) | flip | "
            "vertical_flip | pad(2) | chw; (bands, deep, frames) | "
            "random_resized_crop(9, interpolation=bilinear) | flip | "
            "normalize(0.5, 1)")
    sums = []
    for workers in 1, 2, 8:
        out = tmp_path / str(workers)
        dump(data.path, out, *SPEC, "--pipeline", text, "--jobs", workers)
        sums.append(digest(out))
    assert sums[0] == sums[1] == sums[2]


def test_mount_and_file_agree(data, mount, tmp_path):
    text = ("(image, mask, png) | random_resized_crop(12) | flip | chw; "
            "(bands, deep) | random_resized_crop(9) | normalize(0.5, 1)")
    point = mount(data.path)
    dump(data.path, tmp_path / "file", *SPEC, "--pipeline", text)
    dump(point, tmp_path / "mount", *SPEC, "--pipeline", text)
    assert digest(tmp_path / "file") == digest(tmp_path / "mount")


# --- gray ---

def gray(x):
    r, g, b = (x[..., c].astype(np.uint32) for c in range(3))
    return ((19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16).astype(np.uint8)


def photo(i, size, mode="RGB"):
    rng = np.random.default_rng(i)
    few = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(few).resize(size, Image.BICUBIC).convert(mode)


def encoded(image, **how):
    out = io.BytesIO()
    image.save(out, "jpeg", **how)
    return out.getvalue()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """JPEGs of several kinds and a raw image, all of a size."""
    size = W, H = 61, 47
    files = [encoded(photo(i, size, mode), **how) for i, (mode, how) in
             enumerate([("RGB", {}), ("RGB", {"subsampling": 0}),
                        ("RGB", {"progressive": True}), ("L", {}),
                        ("RGB", {"subsampling": 1, "restart_marker_blocks": 2}),
                        ("CMYK", {})])]
    raw = np.asarray(photo(9, size))
    path = tmp_path_factory.mktemp("gray") / "g.beton"
    d = make.Dataset(path, [("image", make.IMAGE), ("blob", make.BYTES)], [
        {"image": make.Image(make.JPG, W, H, f), "blob": f} for f in files] + [
        {"image": make.Image(make.RAW, W, H, raw.tobytes()), "blob": png(raw)}],
        1 << 16)
    luma = []
    for i, f in enumerate(files):
        opened = Image.open(io.BytesIO(f))
        if opened.mode == "CMYK":
            luma.append(gray(np.asarray(opened.convert("RGB"))))
            continue
        opened.draft("L", size)
        luma.append(np.asarray(opened))
        assert opened.mode == "L"
    d.want = luma + [gray(raw)]
    d.size = W, H
    return d


@pytest.mark.parametrize("crop", [False, True])
@pytest.mark.parametrize("field", ["image", "blob"])
def test_gray_is_luma(photos, tmp_path, crop, field):
    W, H = photos.size
    size = f'resize("{H},{W}")' if field == "blob" else "flip(0)"
    step = "center_crop(29, 0.617022)" if crop else size
    got = dump(photos.path, tmp_path / "x", "--spec",
               "batch=7,order=sequential,drop_last=0", "--pipeline",
               f"a = {field} | decode(gray) | {step}; "
               f"b = {field} | decode(gray) | {step} | chw")
    for i, want in enumerate(photos.want):
        if crop:
            want = want[9:38, 16:45]
        assert (got[0].row("a", i) == want[..., None]).all(), i
        assert (got[0].row("b", i) == want[None]).all(), i


def test_bytes_become_colors(photos, tmp_path):
    W, H = photos.size
    got = dump(photos.path, tmp_path / "x", "--spec",
               "batch=7,order=sequential,drop_last=0", "--pipeline",
               f'a = blob | decode(rgb) | resize("{H},{W}") | flip(1); '
               "b = image | decode(exact) | flip(1)")
    assert (got[0].outputs["a"] == got[0].outputs["b"]).all()


@pytest.mark.parametrize("text,expects", [
    ("image | decode(rgb)", "already is 8-bit RGB"),
    ("image | resize(9) | decode(gray)", "first operation"),
    ("blob | decode | resize(9)", "gray, gray16, rgb and rgb16"),
    ("image | mask", "JPEG changes the classes")])
def test_undecodable_values(photos, tmp_path, text, expects):
    assert expects in refused(photos, tmp_path, text)


# --- mkfs.beton ---

def test_a_directory_of_masks(tmp_path):
    for i in range(6):
        size = 30 + i, 24 + 2 * i
        folder = tmp_path / "images" / f"c{i % 2}"
        masks = tmp_path / "masks" / f"c{i % 2}"
        for f in folder, masks:
            f.mkdir(parents=True, exist_ok=True)
        photo(i, size).save(folder / f"{i}.jpg")
        Image.fromarray(np.full(size[::-1], 10 + i, np.uint8)) \
            .save(masks / f"{i}.png")

    def mkfs(*options):
        return subprocess.run(
            [BUILD / "mkfs.beton", *options, f"--masks={tmp_path}/masks",
             tmp_path / "images", tmp_path / "d.beton"], text=True,
            capture_output=True, timeout=60)
    r = mkfs()
    assert r.returncode == 0, r.stderr
    got = dump(tmp_path / "d.beton", tmp_path / "x", "--spec", "batch=6",
               "--pipeline", "(image, mask) | random_resized_crop(9) | flip")
    masks, labels = got[0].outputs["mask"], got[0].outputs["label"]
    assert sorted(masks[:, 0, 0]) == [*range(10, 16)]
    assert (masks == masks[:, :1, :1]).all()
    assert (masks[:, 0, 0] % 2 == labels).all()
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(
        tmp_path / "masks" / "c0" / "2.png")
    (tmp_path / "masks" / "c1" / "3.png").unlink()
    r = mkfs("--on-error=skip")
    assert r.returncode == 0 and "2 skipped" in r.stdout
    assert "5x5, but the image is stored as 32x28" in r.stderr
    assert "No such file" in r.stderr
