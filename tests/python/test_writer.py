# SPDX-License-Identifier: Apache-2.0
"""betonfs.write() stores values unchanged, or reports the reason."""
import errno
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from dumped import BUILD, DEADLINE  # noqa: E402
from package import betonfs  # noqa: E402

INT = {"label": "int"}


def labels(path, *values):
    betonfs.write(path, [(v,) for v in values], INT)
    return betonfs.Dataset(path).column("label").tolist()


# --- integers ---

def test_an_int_field_takes_integers(tmp_path):
    assert labels(tmp_path / "w.beton", 1, True, np.int8(-3), np.bool_(True),
                  np.array(5), np.array([6]), np.uint64(7), 2.0,
                  np.float32(-4)) == [1, 1, -3, 1, 5, 6, 7, 2, -4]


def test_an_int_field_takes_integers_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    assert labels(tmp_path / "w.beton", torch.tensor(3),
                  torch.tensor([4], dtype=torch.uint8)) == [3, 4]


@pytest.mark.parametrize("value, shown", [
    (1.7, "1.7"), (np.float32(0.5), "0.5"), (float("nan"), "nan"),
    (float("inf"), "inf"), ("3", "'3'"), (None, "None"),
    (np.array([1, 2]), "array"), (1 << 63, str(1 << 63)), (1j, "1j"),
    (-1e300, "-1e")])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_int_field_refuses_the_rest(tmp_path, value, shown, workers):
    with pytest.raises(ValueError, match="sample 1 field label: ") as printed:
        betonfs.write(tmp_path / "w.beton", [(0,), (value,)], INT,
                      workers=workers)
    assert shown in str(printed.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick
@pytest.mark.parametrize("dtype, value, shown", [
    ("int32", [1, 1.7], "1.7"), ("uint8", [300, 0], "300"),
    ("uint8", [-1, 0], "-1"), ("bool", [2, 0], "2"),
    ("int64", [float("nan"), 0], "nan"), ("float32", [1j, 0], "1j")])
def test_an_array_keeps_its_values(tmp_path, dtype, value, shown):
    path = tmp_path / "w.beton"
    with pytest.raises(ValueError, match="sample 0 field a: ") as printed:
        betonfs.write(path, [(np.array(value),)], {"a": (dtype, (2,))})
    assert shown in str(printed.value) and dtype in str(printed.value)


def test_an_array_that_fits_is_converted(tmp_path):
    path = tmp_path / "w.beton"
    betonfs.write(path, [{"a": np.array([1., 255.]), "b": [1, 2],
                          "c": np.array([0.1, 1e-9])}],
                  {"a": ("uint8", (2,)), "b": ("float64", (2,)),
                   "c": ("float32", (2,))})
    back = betonfs.Dataset(path)[0]
    assert back["a"].tolist() == [1, 255] and back["b"].tolist() == [1, 2]
    assert (back["c"] == np.array([0.1, 1e-9], "float32")).all()


# --- images of 16 bits ---

def ramp():
    """A row of 16 pixels from 0 to 65535, and its bytes as mkfs.beton makes
    them."""
    values = (np.arange(16) * 65535 // 15).astype(np.uint16)
    return np.tile(values, (4, 1)), values >> 8


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I"])
def test_an_image_of_16_bits_keeps_its_upper_8(tmp_path, mode):
    image = pytest.importorskip("PIL.Image")
    pixels, expected = ramp()
    if mode == "I":
        picture = image.fromarray(pixels.astype(np.int32))
    elif mode == "I;16B":
        picture = image.frombytes(mode, (16, 4), pixels.astype(">u2").tobytes())
    else:
        picture = image.fromarray(pixels)
    assert picture.mode == mode
    path = tmp_path / "w.beton"
    betonfs.write(path, [(picture,)], {"image": "image"}, mode="raw")
    back = betonfs.Dataset(path)[0]["image"]
    assert (back == expected[None, :, None]).all()


@pytest.mark.quick
def test_write_and_mkfs_make_the_same_file(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "in").mkdir()
    image.fromarray(ramp()[0]).save(tmp_path / "in" / "a.png")
    r = subprocess.run([BUILD / "mkfs.beton", "--mode=raw", tmp_path / "in",
                        tmp_path / "m.beton"], capture_output=True,
                       timeout=DEADLINE)
    if b"PNG" in r.stderr and r.returncode:
        pytest.skip("mkfs.beton was built without libpng")
    assert r.returncode == 0, r.stderr
    betonfs.write(tmp_path / "w.beton",
                  [(image.open(tmp_path / "in" / "a.png"),)],
                  {"image": "image"}, mode="raw")
    of = [betonfs.Dataset(tmp_path / name)[0]["image"]
          for name in ("m.beton", "w.beton")]
    assert (of[0] == of[1]).all() and of[0].max() == 255


@pytest.mark.parametrize("pixels", [
    np.full((2, 2), 65536, np.int32), np.full((2, 2), -1, np.int32),
    np.full((2, 2), 0.5, np.float32), np.full((2, 2), 256, np.float32),
    np.full((2, 2), np.nan, np.float32)])
def test_an_image_that_fits_no_8_bits_is_refused(tmp_path, pixels):
    image = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match="sample 0 field image: .*mode [IF]"):
        betonfs.write(tmp_path / "w.beton", [(image.fromarray(pixels),)],
                      {"image": "image"})


def test_a_float_image_of_whole_levels_is_taken(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(256, dtype=np.float32).reshape(16, 16)
    betonfs.write(tmp_path / "w.beton", [(image.fromarray(pixels),)],
                  {"image": "image"}, mode="raw")
    back = betonfs.Dataset(tmp_path / "w.beton")[0]["image"]
    assert (back == pixels[..., None]).all()


# --- samples ---

@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [list, iter])
def test_a_missing_field_has_the_samples_number(tmp_path, kind, workers):
    samples = [{"a": 1, "label": 2}, {"a": 1, "b": 3}]
    with pytest.raises(ValueError, match="sample 1: it has no field 'label'; "
                                         "it has a, b"):
        betonfs.write(tmp_path / "w.beton", kind(samples), length=2,
                      workers=workers)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size, needed", [
    (3 << 20, 4 << 20), ((4 << 20) + 1, 8 << 20)])
def test_a_sample_larger_than_a_page_reports_page_size(tmp_path, size, needed):
    samples = [{"blob": b"x", "label": 1}, {"blob": bytes(size), "label": 1}]
    path = tmp_path / "w.beton"
    with pytest.raises(OSError, match="sample 1: .*larger than a page") as printed:
        betonfs.write(path, samples, page_size=2 << 20)
    assert printed.value.errno == errno.EMSGSIZE
    assert str(size) in str(printed.value) and str(2 << 20) in str(printed.value)
    assert f"page_size={needed}" in str(printed.value)
    assert betonfs.write(path, samples, page_size=needed) == 2


# --- what is there already ---

def test_a_dataset_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "w.beton"
    assert labels(path, 1) == [1]
    with pytest.raises(FileExistsError, match="overwrite=True") as printed:
        betonfs.write(path, [(2,)], INT)
    assert printed.value.errno == errno.EEXIST and str(path) in str(printed.value)
    assert betonfs.Dataset(path).column("label").tolist() == [1]
    assert betonfs.write(path, [(3,)], INT, overwrite=True) == 1
    assert betonfs.Dataset(path).column("label").tolist() == [3]


def test_one_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "w.beton"

    def samples():
        yield (1,)
        path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        betonfs.write(path, samples(), INT, length=1)
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["w.beton"]


def test_a_script_of_ffcv_overwrites(tmp_path):
    pytest.importorskip("torch")
    from betonfs.ffcv.fields import IntField
    from betonfs.ffcv.writer import DatasetWriter
    for value in 1, 2:
        DatasetWriter(str(tmp_path / "w.beton"), {"label": IntField()},
                      num_workers=1).from_indexed_dataset([(value,)])
    assert betonfs.Dataset(tmp_path / "w.beton").column("label") == [2]


def test_appended_samples_follow(tmp_path):
    path = tmp_path / "x.beton"
    names = ["bee", "dog"]
    fields = {"label": "int", "text": "bytes"}

    def samples(n, first=0):
        return [{"label": i % 2, "text": b"t%d" % (first + i)}
                for i in range(n)]
    assert betonfs.write(path, samples(5), fields, classes=names) == 5
    # The fields may come in another order, and the classes may be others.
    more = [{"text": s["text"], "label": s["label"]} for s in samples(3, 5)]
    assert betonfs.write(path, more, {"text": "bytes", "label": "int"},
                         classes=["ant", "dog"], append=True) == 3
    ds = betonfs.Dataset(path)
    assert [bytes(ds[i]["text"]) for i in range(8)] == \
        [b"t%d" % i for i in range(8)]
    assert [int(ds[i]["label"]) for i in range(8)] == [0, 1, 0, 1, 0, 2, 1, 2]
    assert list(ds.classes) == ["bee", "dog", "ant"]


def test_a_failed_append_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.beton"
    betonfs.write(path, [{"a": 1}] * 4)
    old = path.read_bytes()
    with pytest.raises(ValueError, match="sample 2 field a"):
        betonfs.write(path, [{"a": 1}, {"a": 2}, {"a": "no"}], append=True)
    with pytest.raises(ValueError, match="field .a.: the new samples lack it"):
        betonfs.write(path, [{"b": 1}], append=True)
    with pytest.raises(OSError):
        betonfs.write(tmp_path / "absent.beton", [{"a": 1}], append=True)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["x.beton"]
