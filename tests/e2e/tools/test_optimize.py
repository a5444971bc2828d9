# SPDX-License-Identifier: Apache-2.0
"""beton optimize: the pixels and everything else stay unchanged."""
import errno
import io
import os
import re
import resource

import numpy as np
import pytest

import betonfile
import dumped
import make

Image = pytest.importorskip("PIL.Image")

N = 12
NAME = b"beton\0\1"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("optimize") / "p.beton", N)


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def jpegs(path):
    """The stored bytes of the JPEGs of field `image`."""
    b = betonfile.Beton(path)
    return [b.data[at:at + b.sizes[at]].tobytes()
            for mode, _, _, at in b.column("image").tolist()
            if mode == betonfile.JPG]


def optimize(data, out, *options):
    return dumped.beton("optimize", *options, data.path, out).stdout


@pytest.mark.quick
def test_pixels_and_values_stay(data, tmp_path):
    optimize(data, tmp_path / "o.beton")
    old, new = jpegs(data.path), jpegs(tmp_path / "o.beton")
    assert len(old) == len(new) > 0
    for a, b in zip(old, new):
        assert a != b and NAME in b
        assert np.array_equal(pixels(a), pixels(b))
    dumped.dump(data.path, tmp_path / "old", "--spec", "batch=5",
                "--pipeline", dumped.AUGMENT)
    dumped.dump(tmp_path / "o.beton", tmp_path / "new", "--spec", "batch=5",
                "--pipeline", dumped.AUGMENT)
    assert dumped.digest(tmp_path / "old") == dumped.digest(tmp_path / "new")


def huffman_tables(data):
    """The DHT segments, in one."""
    out, at = b"", 2
    while data[at + 1] != 0xda:
        size = int.from_bytes(data[at + 2:at + 4], "big")
        if data[at + 1] == 0xc4:
            out += data[at + 4:at + 2 + size]
        at += 2 + size
    return out


def test_all_share_their_tables(data, tmp_path):
    line = optimize(data, tmp_path / "o.beton")
    assert len(set(map(huffman_tables, jpegs(tmp_path / "o.beton")))) == 1
    assert huffman_tables(jpegs(data.path)[0]) != \
        huffman_tables(jpegs(tmp_path / "o.beton")[0])
    assert " 0 with tables of their own" in line


def test_an_unusual_jpeg_has_its_own_tables(tmp_path):
    """A large one of few colors among many of noise."""
    def jpeg(side, image):
        buf = io.BytesIO()
        image.resize((side, side)).convert("RGB").save(buf, "JPEG")
        return make.Image(make.JPG, side, side, buf.getvalue())

    noise = Image.effect_noise((400, 400), 250)
    values = [{"image": jpeg(400, noise)} for _ in range(40)]
    values.append({"image": jpeg(4000, Image.new("L", (1, 1), 99))})
    d = make.Dataset(tmp_path / "d.beton", [("image", make.IMAGE)], values,
                     1 << 23)
    line = optimize(d, tmp_path / "o.beton")
    tables = list(map(huffman_tables, jpegs(tmp_path / "o.beton")))
    assert len(set(tables[:-1])) == 1 and tables[-1] != tables[0]
    assert " 1 with tables of their own" in line


def test_the_last_line_reports_sizes(data, tmp_path):
    line = optimize(data, tmp_path / "o.beton")
    before, after = map(int, re.search(r"of (\d+) bytes -> (\d+)",
                                       line).groups())
    assert before == sum(map(len, jpegs(data.path)))
    assert after == sum(map(len, jpegs(tmp_path / "o.beton")))


def test_the_report_reports_quality_and_sampling(tmp_path):
    def jpeg(quality, mode="RGB", **how):
        buf = io.BytesIO()
        Image.effect_noise((64, 48), 50).convert(mode) \
            .save(buf, "JPEG", quality=quality, **how)
        return buf.getvalue()

    made = [jpeg(q) for q in (1, 37, 50, 50, 75, 90, 99, 100)]
    made += [jpeg(90, subsampling=s) for s in (0, 1)] + [jpeg(90, "L")]
    made += [jpeg(90, progressive=True), jpeg(90, "CMYK"), made[0][:99]]
    d = make.Dataset(tmp_path / "d.beton", [("image", make.IMAGE)],
                     [{"image": make.Image(make.JPG, 64, 48, m)}
                      for m in made], 1 << 16)
    lines = optimize(d, tmp_path / "o.beton",
                     "--quality-report").splitlines()
    sizes = list(map(len, made))
    assert lines[:-1] == [
        "quality 1: 1", "quality 37: 1", "quality 50: 2", "quality 75: 1",
        "quality 90: 5", "quality 99: 1", "quality 100: 1",
        "quality unknown: 2", "sampling gray: 1", "sampling 4:4:4: 1",
        "sampling 4:2:2: 1", "sampling 4:2:0: 9", "sampling other: 2",
        f"size: {min(sizes)} to {max(sizes)} bytes, "
        f"{sum(sizes) // len(sizes)} on average",
        lines[-2]]
    assert re.fullmatch(r"pixels: (1[0-3]) of \1 compared are the same",
                        lines[-2])


def test_without_an_index_it_is_smaller(data, tmp_path):
    optimize(data, tmp_path / "rows.beton")
    optimize(data, tmp_path / "fine.beton", "--step", 1)
    optimize(data, tmp_path / "none.beton", "--no-index")
    rows, fine, none = (sum(map(len, jpegs(tmp_path / f"{n}.beton")))
                        for n in ("rows", "fine", "none"))
    assert none < rows < fine
    assert none < sum(map(len, jpegs(data.path)))
    assert not any(NAME in j for j in jpegs(tmp_path / "none.beton"))


def test_the_file_is_the_same_for_any_number_of_workers(data, tmp_path):
    for n in (1, 3):
        optimize(data, tmp_path / f"{n}.beton", "--jobs", n)
    assert (tmp_path / "1.beton").read_bytes() == \
        (tmp_path / "3.beton").read_bytes()


def test_twice_is_once(data, tmp_path):
    optimize(data, tmp_path / "o.beton")
    once = (tmp_path / "o.beton").read_bytes()
    dumped.beton("optimize", tmp_path / "o.beton", tmp_path / "o.beton")
    assert (tmp_path / "o.beton").read_bytes() == once


def damaged(tmp_path):
    """Two images, of which the first ends early, and a label."""
    buf = io.BytesIO()
    Image.effect_noise((64, 64), 50).convert("RGB").save(buf, "JPEG")
    whole = buf.getvalue()
    values = [{"image": make.Image(make.JPG, 64, 64, d), "label": i}
              for i, d in enumerate((whole[:len(whole) // 2], whole))]
    return make.Dataset(tmp_path / "d.beton", [("image", make.IMAGE),
                                               ("label", make.INT)], values)


def test_damaged_values_stay(tmp_path):
    d = damaged(tmp_path)
    line = optimize(d, tmp_path / "o.beton")
    old, new = jpegs(d.path), jpegs(tmp_path / "o.beton")
    assert new[0] == old[0] and NAME in new[1]
    assert "1 with an index, 0 with tables of their own, 1 unchanged" in line


def test_a_file_that_may_not_grow_is_named_and_leaves_nothing(data, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    r = dumped.beton("optimize", data.path, tmp_path / "o.beton", code=1,
                     preexec_fn=limit)
    assert len(r.stderr.splitlines()) == 1
    assert "o.beton" in r.stderr and os.strerror(errno.EFBIG) in r.stderr
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_nothing(data, tmp_path):
    r = dumped.beton("optimize", tmp_path / "none.beton",
                     tmp_path / "o.beton", code=1)
    assert "none.beton" in r.stderr
    assert not list(tmp_path.iterdir())
