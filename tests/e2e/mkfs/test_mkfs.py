# SPDX-License-Identifier: Apache-2.0
"""mkfs.beton: the images that it accepts, stores and refuses."""
import errno
import io
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import time
import zlib

import numpy as np
import pytest

import betonfile
import make as make_data
from mkfs import MKFS, make, picture, pixels, refused, run, save, truth

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def flat(tmp_path):
    """Eight JPEG files in one directory."""
    source = tmp_path / "src"
    for i in range(8):
        save(source / ("%d.jpg" % i), picture(i), quality=92)
    return source


# --- order and labels --------------------------------------------------------

def test_samples_are_in_byte_order_of_their_paths(tmp_path):
    source = tmp_path / "src"
    names = ["b/1.png", "a/2.png", "B/x.png", "a/10.png", "a-b/1.png",
             "a/sub/deep.png", "\u00e4/1.png", "a b/z.PNG", "a/Z.png"]
    for i, name in enumerate(names):
        save(source / name, Image.new("RGB", (2, 1), (i, 0, 0)))
    ds = make(source, "--mode", "raw")
    order = sorted(names, key=os.fsencode)
    classes = sorted({n.split("/")[0] for n in names}, key=os.fsencode)
    assert [names[i.bytes[0]] for i in ds.images()] == order
    assert ds.labels() == [classes.index(n.split("/")[0]) for n in order]


def test_names_need_not_be_utf8(tmp_path):
    source = os.fsencode(tmp_path / "src")
    os.makedirs(source + b"/\xff")
    picture(0).save(os.fsdecode(source + b"/\xff/\xfe\x80.png"))
    assert make(tmp_path / "src").labels() == [0]


def test_an_image_at_the_top_means_no_labels(tmp_path):
    source = tmp_path / "src"
    save(source / "a" / "1.png", picture(1))
    save(source / "top.png", picture(2))
    assert [f.name for f in make(source).fields] == ["image"]
    out = tmp_path / "out.beton"
    assert "1 of 2 images" in run(source, out).stderr.decode()
    # Directories of classes that are given as sources.
    save(tmp_path / "b" / "1.png", picture(3))
    r = run(source / "a", tmp_path / "b", out)
    assert r.returncode == 0
    assert "no labels" in r.stderr.decode()
    assert "2 samples without labels" in r.stdout.decode()
    r = run(source / "a", out)
    assert not r.stderr and b"without labels" in r.stdout


def test_several_sources_share_their_classes(tmp_path):
    for name in ("one/b/1.png", "one/d/2.png", "two/a/3.png", "two/b/4.png"):
        save(tmp_path / name, Image.new("RGB", (1, 1), (int(name[-5]), 0, 0)))
    out = tmp_path / "out.beton"
    r = run("--mode=raw", tmp_path / "two/", tmp_path / "one", out)
    assert r.returncode == 0
    ds = betonfile.Beton(out).check()
    assert [i.bytes[0] for i in ds.images()] == [3, 4, 1, 2]
    assert ds.labels() == [0, 1, 1, 2]


def test_a_class_without_good_images_keeps_its_number(tmp_path):
    source = tmp_path / "src"
    save(source / "c" / "1.png", picture(1))
    save(source / "b" / "1.png", picture(1))
    (source / "b" / "1.png").write_bytes(b"no picture")
    (source / "a").mkdir()
    r = run("--on-error=skip", source, tmp_path / "out.beton")
    assert r.returncode == 0
    assert "'a'" in r.stderr.decode()
    assert betonfile.Beton(tmp_path / "out.beton").labels() == [2]


def test_other_files_are_ignored_and_counted(flat):
    (flat / "notes.txt").write_text("x")
    (flat / ".hidden.jpg").write_text("x")
    (flat / ".git").mkdir()
    os.mkfifo(flat / "pipe.jpg")
    out = flat.parent / "out.beton"
    r = run(flat, out)
    assert r.returncode == 0
    assert b"8 samples" in r.stdout and b"4 other files ignored" in r.stdout


def test_links_are_followed_but_not_in_circles(tmp_path):
    source = tmp_path / "src"
    save(tmp_path / "elsewhere" / "x.png", picture(1))
    save(source / "a" / "1.png", picture(2))
    os.symlink("../../elsewhere/x.png", source / "a" / "2.png")
    os.symlink("../elsewhere", source / "b")
    os.symlink("..", source / "a" / "up")
    os.symlink(".", source / "self")
    ds = make(source)
    assert ds.samples == 3 and ds.labels() == [0, 0, 1]


# --- what is stored ----------------------------------------------------------

def test_jpg_is_the_default_and_ffcvs_kind_of_jpeg(flat):
    for image in make(flat).images():
        im = Image.open(io.BytesIO(image.bytes))
        assert image.mode == betonfile.JPG
        assert im.size == (image.width, image.height) == (60, 40)
        assert not im.info.get("progressive") and "jfif" in im.info
        assert im.layer[0][1:3] == (2, 2), "4:2:0"


@pytest.mark.quick
def test_raw_is_exactly_the_decoded_pixels(flat):
    for i, image in enumerate(make(flat, "--mode=raw").images()):
        assert (pixels(image) == truth(flat / ("%d.jpg" % i))).all()


def test_smart_stores_large_images_as_jpeg(tmp_path):
    source = tmp_path / "src"
    save(source / "1.png", picture(1, 20, 10))
    save(source / "2.png", picture(2, 20, 11))
    ds = make(source, "--mode=smart", "--smart-threshold=600")
    assert [i.mode for i in ds.images()] == [betonfile.RAW, betonfile.JPG]
    ds = make(source, "--mode=smart")
    assert [i.mode for i in ds.images()] == [betonfile.RAW] * 2


def test_a_proportion_is_drawn_per_sample_and_seed(tmp_path):
    source = tmp_path / "src"
    for i in range(200):
        save(source / ("%03d.png" % i), picture(i, 4, 4))
    modes = [[i.mode for i in make(source, "--mode=proportion=0.3",
                                   "--seed", s).images()] for s in (1, 1, 2)]
    assert modes[0] == modes[1] != modes[2]
    assert 35 <= modes[0].count(betonfile.JPG) <= 85
    for p, mode in (("0", betonfile.RAW), ("1", betonfile.JPG)):
        ds = make(source, "--mode", "proportion=" + p)
        assert {i.mode for i in ds.images()} == {mode}


def without_index(data):
    """A JPEG without the segment that --index adds, which it must have."""
    at = data.index(b"\xff\xe9")
    size = int.from_bytes(data[at + 2:at + 4], "big")
    assert data[at + 4:at + 10] == b"beton\0"
    return data[:at] + data[at + 2 + size:]


@pytest.mark.parametrize("mode", ["jpg", "keep", "raw"])
def test_an_index_is_all_that_is_added(flat, mode):
    plain = [i.bytes for i in make(flat, "--mode", mode).images()]
    ds = make(flat, "--mode", mode, "--index")
    indexed = [i.bytes for i in ds.images()]
    if mode != "raw":
        indexed = list(map(without_index, indexed))
    assert indexed == plain


def test_an_index_that_is_there_stays(flat):
    for i, image in enumerate(make(flat, "--index").images()):
        (flat / ("%d.jpg" % i)).write_bytes(image.bytes)
    ds = make(flat, "--mode=keep", "--index")
    assert [i.bytes for i in ds.images()] == \
        [p.read_bytes() for p in sorted(flat.iterdir())]


def test_keep_keeps_plain_jpeg_files_byte_for_byte(tmp_path):
    source = tmp_path / "src"
    rotated = Image.Exif()
    rotated[0x112] = 6
    kept = ["gray.jpg", "plain.jpg", "s444.jpg"]
    save(source / "gray.jpg", picture(1).convert("L"))
    save(source / "plain.jpg", picture(2), comment=b"stays", quality=50)
    save(source / "s444.jpg", picture(3), subsampling=0)
    save(source / "progressive.jpg", picture(4), progressive=True)
    save(source / "rotated.jpg", picture(5), exif=rotated, quality=95)
    save(source / "lossless.png", picture(6))
    save(source / "cmyk.jpg", picture(7).convert("CMYK"), quality=95)
    save(source / "large.jpg", picture(8, 200, 100), quality=95)
    ds = make(source, "--mode=keep", "--max-resolution=100")
    for name, image in zip(sorted(os.listdir(source)), ds.images()):
        data = (source / name).read_bytes()
        assert image.mode == betonfile.JPG
        assert (image.bytes == data) == (name in kept), name
        im = Image.open(io.BytesIO(image.bytes))
        assert im.mode == ("L" if name == "gray.jpg" else "RGB")
        assert im.size == (image.width, image.height)
        assert not im.info.get("progressive") and 0x112 not in im.getexif()
    sizes = {n: (i.width, i.height)
             for n, i in zip(sorted(os.listdir(source)), ds.images())}
    assert sizes["rotated.jpg"] == (40, 60)
    assert sizes["large.jpg"] == (100, 50)


def test_resizing_follows_ffcvs_arithmetic(tmp_path):
    source = tmp_path / "src"
    sizes = [(300, 200), (200, 300), (49, 50), (64, 64), (1000, 3), (199, 7)]
    for i, (w, h) in enumerate(sizes):
        save(source / ("%d.png" % i), picture(i, w, h))
    ds = make(source, "--mode=raw", "--max-resolution=49")
    for (w, h), image in zip(sizes, ds.images()):
        ratio = min(1, 49 / max(w, h))
        want = [max(1, int(ratio * w)), max(1, int(ratio * h))]
        assert [image.width, image.height] == want


def test_halving_averages_four_pixels(tmp_path):
    source = tmp_path / "src"
    save(source / "1.png", picture(1, 64, 32))
    image, = make(source, "--mode=raw", "--max-resolution=32").images()
    p = truth(source / "1.png").astype(int)
    want = (p[::2, ::2] + p[1::2, ::2] + p[::2, 1::2] + p[1::2, 1::2] + 2) >> 2
    assert (pixels(image) == want).all()


def test_quality_grows_files(flat):
    total = [sum(len(i.bytes) for i in make(flat, "--quality", q).images())
             for q in (10, 50, 90, 100)]
    assert total == sorted(total)


# --- inputs ------------------------------------------------------------------

@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
def test_exif_orientation_is_applied(tmp_path, orientation, suffix):
    exif = Image.Exif()
    exif[0x112] = orientation
    source = tmp_path / "src"
    save(source / ("1" + suffix), picture(1, 19, 11), exif=exif.tobytes(),
         lossless=True)
    image, = make(source, "--mode=raw").images()
    assert (pixels(image) == truth(source / ("1" + suffix))).all()


@pytest.mark.parametrize("endian", "<>")
def test_exif_of_either_byte_order_is_read(tmp_path, endian):
    tiff = (b"II*\0" if endian == "<" else b"MM\0*") + \
        struct.pack(endian + "IHHHIHHI", 8, 1, 0x112, 3, 1, 6, 0, 0)
    source = tmp_path / "src"
    save(source / "1.png", picture(1, 19, 11), exif=tiff)
    image, = make(source, "--mode=raw").images()
    assert (image.width, image.height) == (11, 19)


def with_alpha(im):
    im = im.convert("RGBA")
    im.putalpha(Image.linear_gradient("L").resize(im.size))
    return im


KINDS = {
    "gray.png": (lambda im: im.convert("L"), {}),
    "gray.jpg": (lambda im: im.convert("L"), {}),
    "one_bit.png": (lambda im: im.convert("1"), {}),
    "palette.png": (lambda im: im.quantize(200), {}),
    "palette16.png": (lambda im: im.quantize(16), {"bits": 4}),
    "transparent.png": (lambda im: im.quantize(9), {"transparency": 3}),
    "alpha.png": (with_alpha, {}),
    "gray_alpha.png": (lambda im: with_alpha(im).convert("LA"), {}),
    "lossless.webp": (lambda im: im, {"lossless": True}),
    "lossy.webp": (lambda im: im, {"quality": 80}),
    "progressive.jpg": (lambda im: im, {"progressive": True}),
    "s422.jpg": (lambda im: im, {"subsampling": 1}),
    "UPPER.JPEG": (lambda im: im, {}),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_image_gives_pillows_pixels(tmp_path, name):
    convert, how = KINDS[name]
    source = tmp_path / "src"
    save(source / name, convert(picture(1, 37, 23)), **how)
    image, = make(source, "--mode=raw").images()
    assert (pixels(image) == truth(source / name)).all()


def test_cmyk_becomes_rgb(tmp_path):
    source = tmp_path / "src"
    save(source / "1.jpg", picture(1).convert("CMYK"), quality=95)
    image, = make(source, "--mode=raw").images()
    far = np.abs(pixels(image).astype(int) - truth(source / "1.jpg"))
    assert far.mean() < 3


def png(color, depth, width, rows, interlace=0):
    """A PNG of kinds that Pillow does not write."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + \
            struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, len(rows), depth, color, 0, 0,
                       interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + \
        chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + \
        chunk(b"IEND", b"")


@pytest.mark.parametrize("color, channels", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_of_16_bits_the_upper_8_stay(tmp_path, color, channels):
    a = np.random.default_rng(0).integers(0, 65536, (5, 7, channels))
    source = tmp_path / "src"
    source.mkdir()
    rows = [r.astype(">u2").tobytes() for r in a]
    (source / "1.png").write_bytes(png(color, 16, 7, rows))
    image, = make(source, "--mode=raw").images()
    want = (a[..., :3] if channels > 2 else a[..., :1]) >> 8
    assert (pixels(image) == np.broadcast_to(want, (5, 7, 3))).all()


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_gray_levels_spread_over_all(tmp_path, depth):
    source = tmp_path / "src"
    source.mkdir()
    (source / "1.png").write_bytes(png(0, depth, 8 // depth, [b"\x1b"]))
    image, = make(source, "--mode=raw").images()
    bits = np.unpackbits(np.uint8([0x1b])).reshape(-1, depth)
    levels = bits @ (1 << np.arange(depth)[::-1]) * 255 // (2 ** depth - 1)
    assert pixels(image)[0, :, 0].tolist() == levels.tolist()


# --- repeatability -----------------------------------------------------------

@pytest.mark.quick
@pytest.mark.parametrize("options", [
    ("--mode=jpg",), ("--mode=proportion=0.5", "--shuffle", "--seed=3"),
    ("--mode=keep", "--max-resolution=50")])
def test_the_number_of_jobs_changes_nothing(flat, options):
    one = make(flat, "--jobs=1", *options).data
    assert (one == make(flat, "-j4", *options).data).all()
    assert (one == make(flat, "--jobs", "7", *options).data).all()


def test_shuffle_is_a_permutation_keyed_by_the_seed(tmp_path):
    source = tmp_path / "src"
    for i in range(40):
        save(source / ("c%d" % (i % 3)) / ("%02d.png" % i),
             Image.new("RGB", (1, 1), (i, i % 3, 0)))
    straight, a, again, b = (
        make(source, "--mode=raw", *o) for o in
        ([], ["--shuffle"], ["--shuffle", "--seed=0"],
         ["--shuffle", "--seed=1"]))

    def order(ds):
        return [i.bytes[0] for i in ds.images()]
    assert order(a) == order(again)
    assert len({tuple(order(d)) for d in (straight, a, b)}) == 3
    for ds in (straight, a, b):
        assert sorted(order(ds)) == list(range(40))
        assert ds.labels() == [i.bytes[1] for i in ds.images()]


def test_limit_takes_the_first(flat):
    ds = make(flat, "--limit", 3, "--mode=raw")
    want = make(flat, "--mode=raw").images()[:3]
    assert [i.bytes for i in ds.images()] == [i.bytes for i in want]


# --- pages -------------------------------------------------------------------

def test_pages_hold_whole_samples(tmp_path):
    source = tmp_path / "src"
    for i in range(7):
        save(source / ("%d.png" % i), picture(i, 500, 500))
    ds = make(source, "--mode=raw", "--page-size=2M")
    assert ds.page_size == 2 << 20
    assert ds.table_at == (1 + 4) * ds.page_size


def test_pages_grow_for_a_large_image_unless_an_option_forbids_it(tmp_path):
    source = tmp_path / "src"
    save(source / "1.png", picture(1, 10, 10))
    save(source / "2.png", picture(2, 2000, 1500))
    ds = make(source, "--mode=raw")
    assert ds.page_size == 16 << 20
    assert (pixels(ds.images()[1]) == truth(source / "2.png")).all()
    out = tmp_path / "other.beton"
    refused(run("--mode=raw", "--page-size=4M", source, out), "2.png",
            "--page-size=16M")
    assert not out.exists()


# --- what goes wrong ---------------------------------------------------------

def bad_files():
    good, as_png = io.BytesIO(), io.BytesIO()
    picture(1).save(good, "JPEG")
    picture(1).save(as_png, "PNG")
    good, as_png = good.getvalue(), as_png.getvalue()
    wide = png(2, 8, 70000, [bytes(3 * 70000)])
    huge = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    huge = as_png[:16] + huge + struct.pack(">I", zlib.crc32(b"IHDR" + huge)) \
        + as_png[33:]
    return {
        "text.jpg": b"just text\n", "empty.png": b"", "cut.jpg": good[:200],
        "half.jpg": good[:len(good) // 2], "cut.png": as_png[:60],
        "flipped.png": as_png[:70] + b"\xff\xff" + as_png[72:],
        "wide.png": wide, "huge.png": huge,
        "riff.webp": b"RIFF\x20\0\0\0WEBPVP8 \x10\0\0\0" + bytes(16),
        "magic.png": b"\x89PNG\r\n\x1a\n", "magic.jpg": b"\xff\xd8\xff",
    }


@pytest.mark.parametrize("name", bad_files())
def test_a_bad_image_ends_everything(flat, name):
    (flat / name).write_bytes(bad_files()[name])
    out = flat.parent / "out" / "x.beton"
    out.parent.mkdir()
    text = refused(run(flat, out), name)
    assert len(text.splitlines()) == 1
    assert os.listdir(out.parent) == []


def test_bad_images_can_be_skipped(flat):
    for name, data in bad_files().items():
        (flat / name).write_bytes(data)
    os.symlink("nowhere", flat / "dangling.jpg")
    out = flat.parent / "out.beton"
    r = run("--on-error=skip", "--mode=raw", flat, out)
    assert r.returncode == 0
    lines = r.stderr.decode().splitlines()
    names = sorted([*bad_files(), "dangling.jpg"])
    assert [re.search(r"src/(\S+):.*; skipped$", x)[1] for x in lines] == names
    assert b"%d skipped" % len(names) in r.stdout
    ds = betonfile.Beton(out).check()
    assert [len(i.bytes) for i in ds.images()] == [60 * 40 * 3] * 8


def test_a_failure_of_the_source_is_no_bad_image(flat, mount):
    """Images in a mount whose dataset becomes shorter cannot be read."""
    jpeg = (flat / "0.jpg").read_bytes()
    data = make_data.Dataset(
        flat.parent / "in.beton", [("image", make_data.IMAGE)],
        [{"image": make_data.Image(make_data.JPG, 60, 40, jpeg)}] * 4)
    samples = mount(data.path, expects="Input/output error") / "samples"
    assert len([p.stat() for p in samples.glob("*/image.jpg")]) == 4
    os.truncate(data.path, data.first_page)
    out = flat.parent / "out.beton"
    text = refused(run("--on-error=skip", flat, samples, out), "image.jpg",
                   os.strerror(errno.EIO))
    assert "skipped" not in text and not out.exists()


def test_a_directory_that_does_not_answer_is_no_other_file(flat, daemon, data):
    dead = daemon(data.path)
    # The watcher would unmount it.
    tasks = pathlib.Path(f"/proc/{dead.process.pid}/task")
    for children in tasks.glob("*/children"):
        for pid in children.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    dead.process.kill()
    dead.process.wait()
    os.symlink(dead.where, flat / "folder")
    out = flat.parent / "out.beton"
    text = refused(run("--on-error=skip", flat, out), "src/folder",
                   os.strerror(errno.ENOTCONN))
    assert len(text.splitlines()) == 1 and not out.exists()


def test_truncated_and_mangled_files_never_crash(tmp_path):
    rng = np.random.default_rng(0)
    source = tmp_path / "src"
    for suffix, how in ((".jpg", {}), (".png", {}), (".webp", {}),
                        (".jpg", {"progressive": True})):
        buffer = io.BytesIO()
        picture(3, 90, 70).save(buffer, Image.registered_extensions()[suffix],
                                **how)
        for i in range(40):
            data = np.frombuffer(buffer.getvalue(), np.uint8).copy()
            at = rng.integers(0, len(data), 3)
            data[at] = rng.integers(0, 256, 3)
            name = "%s%d%s" % ("p" if how else "b", i, suffix)
            source.mkdir(exist_ok=True)
            (source / name).write_bytes(
                data.tobytes()[:rng.integers(1, len(data) + 1) if i % 2
                               else len(data)])
    save(source / "z.png", picture(1))
    r = run("--on-error=skip", source, tmp_path / "out.beton")
    assert r.returncode == 0, r.stderr
    betonfile.Beton(tmp_path / "out.beton").check()


def test_no_good_image_is_an_error(tmp_path):
    source = tmp_path / "src"
    source.mkdir()
    out = tmp_path / "out.beton"
    refused(run(source, out), "src")
    (source / "1.jpg").write_bytes(b"")
    refused(run("--on-error=skip", source, out), "out.beton")
    assert not out.exists()


def test_sources_that_are_no_directory_are_refused(flat):
    out = flat.parent / "out.beton"
    refused(run(flat.parent / "absent", out), "absent")
    refused(run(flat / "1.jpg", out), "1.jpg",
            "not a source: expected a directory")
    (flat.parent / "in.beton").write_bytes(b"x")
    refused(run(flat.parent / "in.beton", out), "in.beton",
            "not a .beton file")
    assert not out.exists()


def test_targets_that_cannot_be_are_refused(flat):
    refused(run(flat, flat.parent), flat.parent.name)
    refused(run(flat, flat.parent / "no" / "out.beton"), "out.beton")
    os.mkfifo(flat.parent / "fifo")
    refused(run(flat, flat.parent / "fifo"), "fifo", "regular file")


@pytest.mark.parametrize("options, word", [
    (["--mode", "bmp"], "bmp"), (["--mode=proportion=2"], "proportion=2"),
    (["--mode=proportion"], "proportion"), (["--mode=jpg=3"], "jpg=3"),
    (["--quality", "0"], "quality"), (["--quality=101"], "quality"),
    (["--quality=9x"], "9x"), (["--limit=-3"], "-3"), (["--limit=0"], "limit"),
    (["--seed=18446744073709551616"], "seed"),
    (["--page-size=3000000"], "power of two"), (["--page-size=1M"], "1M"),
    (["--page-size=4G"], "4G"), (["--on-error=maybe"], "maybe"),
    (["--on-error=stop|skip"], "stop|skip"), (["--no-such"], "--no-such"),
    (["-x"], "-x"), (["--shuffle=1"], "shuffle"), (["--jobs=0"], "jobs")])
def test_wrong_usage_exits_with_2(flat, options, word):
    refused(run(*options, flat, flat.parent / "out.beton"), word, code=2)


def test_missing_operands_and_values_are_wrong_usage(flat):
    refused(run(), "--help", code=2)
    refused(run(flat), "DATASET", code=2)
    refused(run(flat, "out.beton", "--quality"), "quality", code=2)


def test_operands_may_begin_with_dashes_after_two(tmp_path):
    save(tmp_path / "--src" / "1.png", picture(1))
    r = subprocess.run([MKFS, "--", "--src", "--out"], cwd=tmp_path,
                       capture_output=True)
    assert r.returncode == 0, r.stderr
    betonfile.Beton(tmp_path / "--out").check()


def test_an_old_file_stays_until_the_new_one_is_complete(flat):
    out = flat.parent / "out.beton"
    out.write_bytes(b"\2\0old")
    (flat / "bad.jpg").write_bytes(b"bad")
    refused(run(flat, out), "bad.jpg")
    assert out.read_bytes() == b"\2\0old"
    (flat / "bad.jpg").unlink()
    assert run(flat, out).returncode == 0
    betonfile.Beton(out).check()
    assert sorted(os.listdir(flat.parent)) == ["out.beton", "src"]


def test_a_file_that_is_no_dataset_stays(flat):
    """For example the last table, if the name of the dataset was forgotten."""
    text = b"n\n1\n2\n"
    tables = [flat.parent / f"{i}.csv" for i in range(2)]
    for t in tables:
        t.write_bytes(text)
    refused(run(*tables), "1.csv", "no dataset has this name")
    assert tables[1].read_bytes() == text
    assert sorted(os.listdir(flat.parent)) == ["0.csv", "1.csv", "src"]
    # An incomplete dataset of FFCV.
    tables[1].write_bytes(bytes(4096))
    assert run(*tables).returncode == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM,
                                 signal.SIGKILL])
def test_a_signal_leaves_nothing(tmp_path, how):
    source = tmp_path / "src"
    source.mkdir()
    picture(1, 1500, 1500).save(source / "0.png", compress_level=0)
    for i in range(1, 60):
        os.link(source / "0.png", source / ("%d.png" % i))
    out = tmp_path / "out"
    out.mkdir()
    p = subprocess.Popen([MKFS, "-j1", source, out / "x.beton"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 10
    # A file without a name shows as an open one.
    while not any("out" in f for f in open_files(p.pid)):
        assert time.monotonic() < deadline and p.poll() is None
        time.sleep(0.005)
    p.send_signal(how)
    p.communicate(timeout=20)
    assert p.returncode == -how
    if how == signal.SIGKILL and any(n.startswith(".beton-")
                                     for n in os.listdir(out)):
        pytest.skip("a file system without O_TMPFILE")
    assert os.listdir(out) == []


def open_files(pid):
    """The files that a process has open; they may come and go meanwhile."""
    folder = "/proc/%d/fd" % pid
    for name in os.listdir(folder):
        try:
            yield os.readlink(os.path.join(folder, name))
        except FileNotFoundError:
            pass


def small_files():
    """No file may grow beyond 4 MiB, as on a file system with such a limit."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))


def test_a_file_that_may_not_grow_is_named_and_leaves_nothing(tmp_path):
    source, out = tmp_path / "src", tmp_path / "out"
    for i in range(8):
        save(source / ("%d.png" % i), picture(i, 600, 600))
    out.mkdir()
    r = subprocess.run([MKFS, "--mode=raw", source, out / "x.beton"],
                       stdin=subprocess.DEVNULL, capture_output=True,
                       preexec_fn=small_files, timeout=60)
    text = refused(r, "x.beton", os.strerror(errno.EFBIG))
    assert len(text.splitlines()) == 1
    assert os.listdir(out) == []


def test_a_full_disk_is_named_and_left_empty(flat):
    disk = flat.parent / "disk"
    disk.mkdir()
    if os.getuid() or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk],
            capture_output=True).returncode:
        pytest.skip("needs root to mount a small disk")
    try:
        r = run("--mode=raw", flat, disk / "x.beton")
        refused(r, "x.beton", "No space left")
        assert os.listdir(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


# --- talking -----------------------------------------------------------------

def test_help_names_every_option():
    text = run("--help").stdout.decode()
    options = run("--options").stdout.decode().split()
    assert "mode" in options and "on-error" in options
    for name in options:
        assert re.search(r"--%s\b" % name, text), name


def test_version_is_the_projects():
    first, *features = run("--version").stdout.splitlines()
    assert first == b"mkfs.beton 0.1.0"
    assert b"  webp: " in b"\n".join(features)
