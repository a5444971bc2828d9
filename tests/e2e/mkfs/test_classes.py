# SPDX-License-Identifier: Apache-2.0
"""The names of classes: from directories into a dataset, and into every view
of its labels. FFCV does not see them."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

import betonfile
import make
from conftest import BUILD, DEADLINE, failing

Image = pytest.importorskip("PIL.Image")

FEW = ["Déjà vu", 'a "<b>', "golden_retriever"]
MANY = [f"a_class_of_{i:04}" for i in range(400)]   # more than fit in arguments
MARK = b"betoncls"


def folders(path, names):
    for i, name in enumerate(names):
        (path / name).mkdir(parents=True)
        Image.new("RGB", (3, 2), (i % 256, 0, 0)).save(path / name / "1.png")
    return path


def mkfs(*args):
    return subprocess.run([BUILD / "mkfs.beton", *args], text=True,
                          capture_output=True, timeout=DEADLINE)


def made(tmp_path, names):
    out = tmp_path / "classes.beton"
    r = mkfs("--mode=raw", folders(tmp_path / "src", names), out)
    assert (r.returncode, r.stderr) == (0, "")
    betonfile.Beton(out).check()
    return out


def beton(*args, code=0):
    r = subprocess.run([BUILD / "beton", *args], text=True,
                       capture_output=True, timeout=DEADLINE)
    assert r.returncode == code, r.stderr
    return r


def classes(path):
    fields = json.loads(beton("info", "--json", path).stdout)["fields"]
    return {f["stem"]: f.get("classes") for f in fields}


@pytest.mark.parametrize("names", [FEW, MANY], ids=["few", "many"])
def test_names_of_directories_travel(tmp_path, mount, names):
    path = made(tmp_path, names)
    assert classes(path) == {"image": None, "label": names}
    assert classes(mount(path)) == classes(path)
    assert betonfile.Beton(path).labels() == list(range(len(names)))
    r = beton("optimize", path, tmp_path / "copy.beton")
    assert classes(tmp_path / "copy.beton") == classes(path), r.stderr


def test_people_see_them(tmp_path):
    import package      # noqa: F401, skips without it
    path = made(tmp_path, FEW)
    assert 'label            int          <i8 3 classes: Déjà vu, a "<b>, ' \
        "golden_retriever\n" in beton("info", path).stdout
    page = beton("info", "--html", "-", path).stdout
    assert "2 golden_retriever" in page
    assert "1 a &quot;&lt;b&gt;" in page and 'a "<b>' not in page


def test_directories_have_them_on_request(tmp_path, mount):
    path = made(tmp_path, FEW)
    assert sorted(os.listdir(mount(path) / "by/label")) == ["0", "1", "2"]
    where = mount(path, "-o", "names") / "by/label"
    listed = [f"{i}-{name}" for i, name in enumerate(FEW)]
    assert sorted(os.listdir(where)) == listed
    for i, name in enumerate(listed):
        assert os.listdir(where / name) == [f"{i:06}.ppm"]
        assert os.listdir(where / str(i)) == [f"{i:06}.ppm"]
    for name in ("0-", "0-x", "3-golden_retriever", "golden_retriever", "02",
                 listed[1] + "x", "0" + listed[1], "-" + listed[1]):
        with failing(2):
            os.listdir(where / name)


def test_a_long_name_is_cut_between_characters(tmp_path, mount):
    """A name of a directory has 255 bytes at most."""
    path = made(tmp_path, ["é" * 127])
    name, = os.listdir(mount(path, "-o", "names") / "by/label")
    assert name == "0-" + "é" * 126


def test_names_of_any_bytes_can_be_shown(tmp_path):
    source = os.fsencode(tmp_path / "src")
    for name in b"\xff\xfe", b"b\nc\x1b":
        os.makedirs(source + b"/" + name)
        Image.new("RGB", (2, 2)).save(os.fsdecode(source + b"/" + name) +
                                      "/1.png")
    out = tmp_path / "x.beton"
    assert mkfs(tmp_path / "src", out).returncode == 0
    assert classes(out)["label"] == ["b?c?", "??"]


def test_too_many_names_are_left_out_with_a_word(tmp_path):
    source = folders(tmp_path / "src", ["a"])
    for i in range(4400):
        (source / f"{i:0240}").mkdir()
    out = tmp_path / "x.beton"
    r = mkfs(source, out)
    assert r.returncode == 0 and "it stores only the class numbers" in r.stderr
    assert classes(out)["label"] is None


def test_one_stray_image_is_named(tmp_path):
    source = folders(tmp_path / "src", ["a", "b"])
    shutil.copy(source / "a/1.png", source / "stray.png")
    r = mkfs(source, tmp_path / "x.beton")
    assert r.returncode == 0
    assert "no labels: 1 of 3 images are not in the directory of a class" in r.stderr
    assert "stray.png" in r.stderr and "move" in r.stderr


def test_a_directory_of_images_alone_needs_no_word(tmp_path):
    for i in range(3):
        Image.new("RGB", (2, 2)).save(tmp_path / f"{i}.png")
    r = mkfs(tmp_path, tmp_path / "x.beton")
    assert (r.returncode, r.stderr) == (0, "")


@pytest.mark.parametrize("off, value", [
    (8, 0xffffffffffffffff), (8, 1 << 40), (16, 0), (16, 1 << 21), (16, 3),
    (16, 1 << 63), (24, 0), (24, 4), (24, 1 << 63), (32, 0x0a0a0a0a0a0a0a0a)],
    ids=str)
def test_damaged_names_cost_only_the_names(tmp_path, off, value):
    path = made(tmp_path, FEW)
    data = bytearray(path.read_bytes())
    at = data.index(MARK) + off
    data[at:at + 8] = struct.pack("<Q", value)
    path.write_bytes(data)
    r = beton("info", "--json", path)
    assert [f.get("classes") for f in json.loads(r.stdout)["fields"]] == \
        [None, None]
    assert r.stderr == "" if (off, value) == (16, 0) else \
        r.stderr.count("\n") == 1 and "ignoring its class names" in r.stderr
    beton("dump", path, "--spec=order=sequential,batch=3",
          "--pipeline=label | int32", f"--out={tmp_path}/out")


def test_hostile_places_take_no_memory(tmp_path):
    """Many fields that all point to the same long text."""
    data = make.Dataset(tmp_path / "x.beton",
                        [(f"f{i}", make.INT) for i in range(200)],
                        [{f"f{i}": 0 for i in range(200)}])
    path = pathlib.Path(data.path)
    raw = bytearray(path.read_bytes())
    for i in range(200):
        at = 24 + 1041 * i + 17
        raw[at:at + 32] = MARK + struct.pack("<QQQ", 24, 200_000, 100_000)
    path.write_bytes(raw)
    r = beton("info", data.path)
    assert "200000 bytes at 24" in r.stderr
    assert r.stderr.count("\n") == 50      # no more in a second
