# SPDX-License-Identifier: Apache-2.0
"""The image formats of mkfs.beton: pixels like Pillow's, and damaged files."""
import io
import os
import pathlib
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

import betonfile
from conftest import BUILD
from mkfs import make, picture, pixels, refused, run, save, truth

Image = pytest.importorskip("PIL.Image")
ImageCms = pytest.importorskip("PIL.ImageCms")
ImageOps = pytest.importorskip("PIL.ImageOps")
features = pytest.importorskip("PIL.features")

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/picture"
FORMATS = dict(re.findall(r"^  (.*): (yes|no)",
                          run("--version").stdout.decode(), re.M))
NAMES = {".webp": "webp", ".tif": "tiff", ".avif": "avif", ".heic": "heic",
         ".jxl": "jpeg xl"}
W, H = 37, 23


def need(suffix):
    """Skips a test if this build or this Pillow lacks a format."""
    if FORMATS.get(NAMES.get(suffix), "yes") != "yes":
        pytest.skip(f"mkfs.beton was built without {suffix}")


def raw(source, *options):
    return [pixels(i) for i in make(source, "--mode=raw", *options).images()]


def one(tmp_path, name, data):
    """The pixels of one file."""
    need(pathlib.Path(name).suffix)
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src" / name).write_bytes(data)
    return raw(tmp_path / "src")[0]


def with_alpha(im):
    im = im.convert("RGBA")
    im.putalpha(Image.linear_gradient("L").resize(im.size))
    return im


def noisy():
    a = np.array(picture(1, W, H))
    a[4:9, 3:20] = np.random.default_rng(0).integers(0, 256, (5, 17, 3))
    return Image.fromarray(a)


PLAIN = {
    "rgb": lambda im: im, "gray": lambda im: im.convert("L"),
    "bits": lambda im: im.convert("1"), "palette": lambda im: im.quantize(200),
    "palette16": lambda im: im.quantize(16),
}


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("suffix", [".bmp", ".gif", ".tif"])
def test_pixels_are_pillows(tmp_path, kind, suffix):
    need(suffix)
    file = tmp_path / "src" / ("1" + suffix)
    save(file, PLAIN[kind](noisy()))
    assert (raw(tmp_path / "src")[0] == truth(file)).all()


MORE = {
    "alpha.bmp": (with_alpha, {}),
    "transparent.gif": (lambda im: im.quantize(9), {"transparency": 3}),
    "interlaced.gif": (lambda im: im.quantize(99), {"interlace": 1}),
    "plain.gif": (lambda im: im.quantize(99), {"interlace": 0}),
    "alpha.tif": (with_alpha, {}),
    "gray_alpha.tif": (lambda im: with_alpha(im).convert("LA"), {}),
    "cmyk.tif": (lambda im: im.convert("CMYK"), {}),
    "lzw.tif": (lambda im: im, {"compression": "tiff_lzw"}),
    "deflate.tif": (lambda im: im, {"compression": "tiff_adobe_deflate"}),
    "packbits.tif": (lambda im: im, {"compression": "packbits"}),
    "jpeg.tif": (lambda im: im, {"compression": "jpeg"}),
    "gray_jpeg.tif": (lambda im: im.convert("L"), {"compression": "jpeg"}),
    "group4.tif": (lambda im: im.convert("1"), {"compression": "group4"}),
}


@pytest.mark.parametrize("name", MORE)
def test_more_kinds_give_pillows_pixels(tmp_path, name):
    need(name[name.index("."):])
    if "compression" in MORE[name][1] and not features.check("libtiff"):
        pytest.skip("Pillow has no libtiff")
    convert, how = MORE[name]
    save(tmp_path / "src" / name, convert(noisy()), **how)
    assert (raw(tmp_path / "src")[0] == truth(tmp_path / "src" / name)).all()


# Columns and rows of the upright image, by orientation.
UPRIGHT = {
    1: lambda a: a, 2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1], 5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1), 7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_a_tiff_is_turned_upright(tmp_path, orientation):
    need(".tif")
    exif = Image.Exif()
    exif[0x112] = orientation
    save(tmp_path / "src/1.tif", noisy(), exif=exif.tobytes())
    want = UPRIGHT[orientation](np.asarray(noisy()))
    assert (raw(tmp_path / "src")[0] == want).all()


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_the_first_frame_of_an_animation_counts(tmp_path, suffix):
    need(suffix)
    if suffix == ".webp" and not features.check("webp"):
        pytest.skip("Pillow has no WebP")
    file = tmp_path / "src" / ("1" + suffix)
    save(file, noisy(), save_all=True, lossless=True,
         append_images=[noisy().rotate(180)])
    assert (raw(tmp_path / "src")[0] == truth(file)).all()


def test_a_frame_may_be_smaller_than_the_screen(tmp_path):
    buffer = io.BytesIO()
    Image.new("P", (4, 3), 1).save(buffer, "GIF", palette=bytes(range(9)))
    data = bytearray(buffer.getvalue())
    data[6:10] = struct.pack("<HH", 9, 8)       # the screen
    at = data.index(b",\0\0\0\0\4\0\3\0")
    data[at + 1:at + 5] = struct.pack("<HH", 2, 5)
    got = one(tmp_path, "1.gif", bytes(data))
    assert got.shape == (8, 9, 3)
    assert (got == truth(tmp_path / "src/1.gif")).all()


# --- BMP ---------------------------------------------------------------------

def bmp(bits, data, width, height, compression=0, palette=b"", masks=b""):
    at = 54 + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + struct.pack(
        "<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(data), 0,
        0, len(palette) // 4, 0) + masks + palette + data


@pytest.mark.parametrize("compression, masks", [
    (0, ()), (3, (0x7c00, 0x3e0, 0x1f)), (3, (0xf800, 0x7e0, 0x1f))])
def test_bmp_of_16_bits(tmp_path, compression, masks):
    a = np.random.default_rng(0).integers(0, 65536, (3, 6)).astype("<u2")
    got = one(tmp_path, "1.bmp", bmp(16, a[::-1].tobytes(), 6, 3, compression,
                                     masks=struct.pack(f"<{len(masks)}I",
                                                       *masks)))
    for c, mask in enumerate(masks or (0x7c00, 0x3e0, 0x1f)):
        low = mask & -mask
        want = (a.astype(int) & mask) // low * 255 // (mask // low)
        assert (got[..., c] == want).all()


def test_bmp_that_pillow_cannot_decode(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/1.bmp").write_bytes(bmp(2, bytes(4), 4, 1, 0, bytes(16)))
    refused(run(tmp_path / "src", tmp_path / "x.beton"), "1.bmp", "pixel depth")


@pytest.mark.parametrize("height", [3, -3])
def test_bmp_of_32_bits_and_either_direction(tmp_path, height):
    a = np.random.default_rng(0).integers(0, 256, (3, 5, 4)).astype(np.uint8)
    rows = a if height < 0 else a[::-1]
    got = one(tmp_path, "1.bmp", bmp(32, rows.tobytes(), 5, height))
    assert (got == a[..., 2::-1]).all()


def test_bmp_of_os2(tmp_path):
    palette = bytes(range(48))
    data = b"BM" + struct.pack("<IHHI", 0, 0, 0, 26 + 48) + struct.pack(
        "<IHHHH", 12, 2, 1, 1, 4) + palette + bytes([0x5a, 0, 0, 0])
    got = one(tmp_path, "1.bmp", data)
    assert got[0].tolist() == [[17, 16, 15], [32, 31, 30]]


# --- TIFF --------------------------------------------------------------------

def tiff(a, planar, tiled, color=2, endian="<", absent=(), tags=None):
    """A TIFF of kinds that Pillow does not write; a is (H, W, C). The strips or
    tiles `absent` are left out; tags are {tag: numbers or bytes}."""
    h, w, c = a.shape
    order = np.dtype(a.dtype).newbyteorder(endian)
    planes = np.moveaxis(a, -1, 0)[..., None] if planar else a[None]
    units = []
    for p in planes:
        if not tiled:
            units += [p[y:y + 5].astype(order).tobytes()
                      for y in range(0, h, 5)]
            continue
        full = np.zeros((-(-h // 16) * 16, -(-w // 16) * 16, p.shape[2]),
                        order)
        full[:h, :w] = p
        units += [full[y:y + 16, x:x + 16].tobytes()
                  for y in range(0, h, 16) for x in range(0, w, 16)]
    body, places = b"", []
    units = [b"" if i in absent else u for i, u in enumerate(units)]
    for u in units:
        places.append(8 + len(body) if u else 0)
        body += u
    long = {256: [w], 257: [h], 258: [a.dtype.itemsize * 8] * c, 259: [1],
            262: [color], 277: [c], 284: [2 if planar else 1]}
    kind = (322, 323, 324, 325) if tiled else (None, 278, 273, 279)
    if tiled:
        long[322] = [16]
    long[kind[1]] = [16 if tiled else 5]
    long[kind[2]], long[kind[3]] = places, [len(u) for u in units]
    long |= tags or {}
    entries, more = b"", b""
    end = 8 + len(body) + 2 + 12 * len(long) + 4
    for tag, values in sorted(long.items()):
        text = isinstance(values, bytes)
        packed = values if text else struct.pack(f"{endian}{len(values)}I", *values)
        entries += struct.pack(endian + "HHI", tag, 2 if text else 4, len(values)) + (
            packed.ljust(4, b"\0") if len(packed) <= 4
            else struct.pack(endian + "I", end + len(more)))
        more += b"" if len(packed) <= 4 else packed
    return (b"II*\0" if endian == "<" else b"MM\0*") + \
        struct.pack(endian + "I", 8 + len(body)) + body + \
        struct.pack(endian + "H", len(long)) + entries + bytes(4) + more


@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_of_a_tiff_of_16_bits_the_upper_8_stay(tmp_path, channels, planar,
                                               tiled, endian):
    a = np.random.default_rng(0).integers(0, 65536, (H, W, channels))
    got = one(tmp_path, "1.tif", tiff(a.astype(np.uint16), planar, tiled,
                                      2 if channels > 2 else 1, endian))
    assert (got == (a[..., :3] >> 8)).all()


@pytest.mark.parametrize("planar", [False, True])
def test_cmyk_in_planes_is_the_same_cmyk(tmp_path, planar):
    a = np.asarray(noisy().convert("CMYK"))
    got = one(tmp_path, "1.tif", tiff(a, planar, True, 5))
    assert (got == np.asarray(Image.fromarray(a, "CMYK").convert("RGB"))).all()


def test_gray_of_a_tiff_may_be_inverted(tmp_path):
    a = np.asarray(noisy())[..., :1].copy()
    got = one(tmp_path, "1.tif", tiff(a, False, False, 0))
    assert (got == 255 - a).all()


@pytest.mark.parametrize("nothing", [None, 200])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("planar, tiled", [(False, False), (False, True),
                                           (True, False), (True, True)])
def test_what_a_tiff_leaves_out_is_nothing(tmp_path, planar, tiled, dtype, nothing):
    """GDAL's SPARSE_OK: strips and tiles of offset 0 and size 0."""
    a = np.full((40, 40, 3), 77, dtype)
    tags = {42113: b"%d\0" % nothing} if nothing else {}
    got = one(tmp_path, "1.tif", tiff(a, planar, tiled, 2, "<", {1}, tags))
    whole = np.full((40, 40, 3), 77, dtype)
    if planar:
        rows = slice(0, 16) if tiled else slice(5, 10)
        whole[rows, 16:32 if tiled else None, 0] = nothing or 0
        if not tiled:
            whole[5:10, :, 0] = nothing or 0
    elif tiled:
        whole[:16, 16:32] = nothing or 0
    else:
        whole[5:10] = nothing or 0
    assert (got == whole >> (8 if dtype == "u2" else 0)).all()


def refusal(tmp_path, data):
    need(".tif")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/1.tif").write_bytes(data)
    done = run("--mode=raw", tmp_path / "src", tmp_path / "x.beton")
    assert done.returncode == 1
    return done.stderr.decode()


@pytest.mark.parametrize("form, word", [(2, "signed"), (3, "floating-point")])
def test_numbers_that_pixels_cannot_hold_are_refused(tmp_path, form, word):
    dtype = "u2" if form == 2 else "u4"
    data = tiff(np.ones((9, 9, 1), dtype), False, False, 1, tags={339: [form]})
    assert f"{word} samples: scale them" in refusal(tmp_path, data)


@pytest.mark.parametrize("channels, color", [(13, 1), (3, 1), (5, 2)])
def test_bands_that_pixels_would_lose_are_refused(tmp_path, channels, color):
    data = tiff(np.ones((9, 9, channels), "u1"), False, False, color)
    assert f"{channels} bands, of which an image has" in refusal(tmp_path, data)


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("colors", [1, 3])
def test_colors_are_divided_by_associated_alpha(tmp_path, colors, planar, dtype):
    a = np.zeros((20, 20, colors + 1), "u1")
    a[..., :colors] = 100
    a[..., -1] = 128
    a[0, 0, -1] = 0
    want = np.full((20, 20, 3), 199)    # as Pillow: 100 * 255 // 128
    want[0, 0] = 100
    data = tiff(a.astype(dtype) << (8 if dtype == "u2" else 0), planar, False,
                1 if colors == 1 else 2, tags={338: [1]})
    assert (one(tmp_path, "1.tif", data) == want).all()
    data = tiff(a, planar, False, 1 if colors == 1 else 2, tags={338: [2]})
    assert (one(tmp_path, "1.tif", data) == 100).all()


@pytest.mark.parametrize("mode", ["YCbCr", "LAB"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_tiff_of_any_colors_is_turned_upright(tmp_path, mode, orientation):
    im = picture(1, W, H)
    if mode == "LAB":
        im = ImageCms.profileToProfile(im, ImageCms.createProfile("sRGB"),
                                       ImageCms.createProfile("LAB"),
                                       outputMode="LAB")
    else:
        im = im.convert(mode)
    upright = None
    for tag in 1, orientation:
        out = io.BytesIO()
        im.save(out, "tiff", tiffinfo={274: tag})
        got = one(tmp_path, "1.tif", out.getvalue())
        upright = got if upright is None else upright
    want = Image.fromarray(upright.astype("u1"))
    want.getexif()[274] = orientation
    assert (got == np.asarray(ImageOps.exif_transpose(want))).all()


# --- AVIF, HEIC, JPEG XL -----------------------------------------------------

def model():
    """The image of which the files of the corpus were made."""
    y, x = np.mgrid[:6, :8]
    return np.stack([x * 36, y * 50, (x * 7 + y * 5) * 3], -1)


@pytest.mark.parametrize("name, turns, close", [
    ("turned.avif", 1, 12), ("turned.heic", 1, 12), ("lossless.jxl", 0, 0),
    ("lossy.jxl", 0, 12), ("alpha.jxl", 0, 0)])
def test_formats_of_optional_libraries(tmp_path, name, turns, close):
    got = one(tmp_path, name, (CORPUS / name).read_bytes())
    want = np.rot90(model(), -turns)
    assert got.shape == want.shape
    assert np.abs(got - want).mean() <= close


def test_the_orientation_of_a_jpeg_xl_is_applied(tmp_path):
    got = one(tmp_path, "1.jxl", (CORPUS / "turned.jxl").read_bytes())
    assert (got == truth(CORPUS / "turned.png")).all()


@pytest.mark.parametrize("suffix, plugin, how", [
    (".avif", None, {"quality": 100, "subsampling": "4:4:4"}),
    (".heic", "pillow_heif", {"quality": 100, "chroma": 444}),
    (".jxl", "pillow_jxl", {"lossless": True})])
@pytest.mark.parametrize("kind", [
    lambda im: im, lambda im: im.convert("L"), with_alpha],
    ids=["rgb", "gray", "alpha"])
def test_pixels_are_those_of_plugins(tmp_path, suffix, plugin, how, kind):
    need(suffix)
    if plugin:
        module = pytest.importorskip(plugin)
        getattr(module, "register_heif_opener", lambda: None)()
    elif suffix == ".avif" and ".avif" not in Image.registered_extensions():
        pytest.skip("Pillow has no AVIF")
    file = tmp_path / "src" / ("1" + suffix)
    save(file, kind(noisy()), **how)
    far = raw(tmp_path / "src")[0].astype(int) - truth(file)
    assert np.abs(far).max() <= (suffix != ".jxl")


@pytest.mark.parametrize("name, library", [
    ("turned.avif", "libheif"), ("turned.heic", "libheif"),
    ("lossless.jxl", "libjxl")])
def test_a_missing_library_is_no_damage(tmp_path, name, library):
    """An empty file takes the place of the library. Nothing is skipped; without
    such images the library is not needed."""
    need(pathlib.Path(name).suffix)
    program = BUILD / "mkfs.beton"
    soname = re.search(rf"{library}\.so[.0-9]*".encode(),
                       program.read_bytes())[0].decode()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / soname).write_bytes(b"")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / name).write_bytes((CORPUS / name).read_bytes())
    save(tmp_path / "src/z.png", picture(1, W, H))

    def made():
        return subprocess.run(
            [program, "--on-error=skip", tmp_path / "src",
             tmp_path / "out.beton"], capture_output=True, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "lib")})

    r = made()
    assert r.returncode == 1
    package = soname.replace(".so.", "")
    assert f"{name}: install {soname}, package {package} of Debian" in r.stderr
    assert not (tmp_path / "out.beton").exists()
    (tmp_path / "src" / name).unlink()
    assert made().returncode == 0
    assert len(betonfile.Beton(tmp_path / "out.beton").images()) == 1


# --- what goes wrong ---------------------------------------------------------

def test_an_unknown_file_names_the_formats(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/1.tiff").write_bytes(b"no image")
    refused(run(tmp_path / "src", tmp_path / "out.beton"),
            "not a JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, HEIC or JPEG XL "
            "image")
    shutil.rmtree(tmp_path / "src")
    (tmp_path / "src").mkdir()
    refused(run(tmp_path / "src", tmp_path / "out.beton"), "no image files: "
            "expected names that end in .jpg, .jpeg, ", ".heif or .jxl")


BAD = sorted(p.name for p in CORPUS.iterdir()
             if p.suffix not in (".jpg", ".png"))


@pytest.mark.parametrize("suffix", sorted({n[n.index("."):] for n in BAD}))
def test_damaged_files_are_skipped_in_one_line(tmp_path, suffix):
    need(suffix)
    # This seed makes no large image, which Pillow decodes for long.
    rng = np.random.default_rng(1)
    source = tmp_path / "src"
    source.mkdir()
    for name in BAD:
        if not name.endswith(suffix):
            continue
        good = np.frombuffer((CORPUS / name).read_bytes(), np.uint8)
        for i in range(30):
            data = good.copy()
            data[rng.integers(0, len(data), 2)] = rng.integers(0, 256, 2)
            data = data[:rng.integers(12, len(data) + 1)] if i % 2 else data
            (source / f"{i}{name}").write_bytes(data.tobytes())
        (source / f"cut{name}").write_bytes(good[:len(good) // 2].tobytes())
    save(source / "good.png", picture(1))
    r = run("--on-error=skip", source, tmp_path / "out.beton")
    assert r.returncode == 0, r.stderr
    # The decoders of AV1 and JPEG XL print lines of their own.
    lines = [line for line in r.stderr.decode().splitlines()
             if line.startswith("mkfs.beton: ") or suffix not in NAMES]
    assert all(re.search(r"; skipped$", line) for line in lines), lines
    assert any("cut" in line for line in lines)
    betonfile.Beton(tmp_path / "out.beton").check()


# --- keep --------------------------------------------------------------------

def jpeg(**how):
    buffer = io.BytesIO()
    noisy().resize((90, 70)).save(buffer, "JPEG", quality=90, **how)
    return buffer.getvalue()


def scan_of(data):
    return data.index(b"\xff\xda") + 14


def hurt(data):
    """The same structure, with codes that are no codes."""
    at = scan_of(data) + 40
    return data[:at] + b"\xff\0" * 100 + data[at + 200:]


@pytest.fixture
def source(tmp_path):
    (tmp_path / "src").mkdir()
    return tmp_path / "src"


def test_keep_does_not_decode_unless_asked(source, tmp_path):
    data = hurt(jpeg())
    (source / "1.jpg").write_bytes(data)
    kept, = make(source, "--mode=keep").images()
    assert kept.bytes == data and (kept.width, kept.height) == (90, 70)
    out = tmp_path / "other.beton"
    refused(run("--mode=keep", "--check", source, out), "1.jpg")
    refused(run("--mode=jpg", source, out), "1.jpg")
    (source / "1.jpg").write_bytes(jpeg())
    kept, = make(source, "--mode=keep", "--check").images()
    assert kept.bytes == jpeg()


BROKEN = {
    "no end": lambda d: d[:-2],
    "half": lambda d: d[:len(d) // 2],
    "empty scan": lambda d: d[:scan_of(d)] + b"\xff\xd9",
    "short scan": lambda d: d[:scan_of(d) + 10] + b"\xff\xd9",
    "no tables": lambda d: d.replace(b"\xff\xc4", b"\xff\xef"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_keep_finds_damaged_structure(source, tmp_path, how):
    (source / "1.jpg").write_bytes(BROKEN[how](jpeg()))
    r = run("--mode=keep", "--check", source, tmp_path / "out.beton")
    assert run("--mode=keep", source, tmp_path / "out.beton").stderr \
        == r.stderr
    if how not in ("no end", "no tables"):      # libjpeg has the usual ones
        refused(r, "1.jpg")


@pytest.mark.parametrize("how", [
    {}, {"subsampling": 0}, {"subsampling": 1}, {"progressive": True}])
def test_check_changes_no_byte_of_good_files(source, how):
    (source / "1.jpg").write_bytes(jpeg(**how))
    (source / "2.jpg").write_bytes(jpeg(exif=b"Exif\0\0II*\0\x08\0\0\0\1\0"
                                        b"\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"))
    save(source / "3.jpg", noisy().convert("L"))
    save(source / "4.jpg", noisy().convert("CMYK"))
    assert (make(source, "--mode=keep").data.copy() ==
            make(source, "--mode=keep", "--check").data).all()


@pytest.mark.parametrize("restarts", [1, 3, 8])
def test_restart_markers_have_their_order(source, restarts):
    """cjpeg writes them; keep takes them undecoded, and not if one is gone."""
    if not shutil.which("cjpeg"):
        pytest.skip("no cjpeg")
    buffer = io.BytesIO()
    noisy().resize((90, 70)).save(buffer, "PPM")
    data = subprocess.run(["cjpeg", "-restart", f"{restarts}B"],
                          input=buffer.getvalue(), capture_output=True,
                          check=True).stdout
    (source / "1.jpg").write_bytes(data)
    kept, = make(source, "--mode=keep").images()
    assert kept.bytes == data
    assert (raw(source)[0] == truth(source / "1.jpg")).all()
