# SPDX-License-Identifier: Apache-2.0
"""by/: a directory per value of an int field, with the files of a column."""
import errno
import os
import random
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import make
from conftest import DEADLINE, failing

IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff",
          ".webp")
N = 60
LABELS = [(i * 7) % 5 * 51 for i in range(N)]     # 0, 51, 102, 153, 204


def labeled(path, labels, extra=()):
    """Images of both modes with these labels; `extra` are more columns."""
    def image(i):
        if i % 2:
            return make.Image(make.RAW, 2, 1, bytes([i % 256] * 6))
        return make.Image(make.JPG, 2, 1, b"\xff\xd8\xff%d" % i)
    return make.Dataset(
        path, [("label", make.INT), ("image", make.IMAGE), *extra],
        [{"label": v, "image": image(i), **{name: v for name, _ in extra}}
         for i, v in enumerate(labels)])


@pytest.fixture
def data(tmp_path):
    return labeled(tmp_path / "classes.beton", LABELS)


@pytest.fixture
def mnt(data, mount):
    return mount(data.path)


def files_of(data, value, field="label"):
    return [data.name(i) + data.extension(i, "image")
            for i, row in enumerate(data.values) if row[field] == value]


def test_every_sample_is_in_the_directory_of_its_value(data, mnt):
    assert os.listdir(mnt / "by") == ["label"]
    assert sorted(os.listdir(mnt / "by/label")) == \
        ["000", "051", "102", "153", "204"]
    for value in set(LABELS):
        folder = mnt / "by/label" / f"{value:03d}"
        assert os.listdir(folder) == files_of(data, value)
        for name in os.listdir(folder):
            i = int(name.split(".")[0])
            other = mnt / "samples" / data.name(i) / data.file(i, "image")
            assert (folder / name).stat() == other.stat()
            assert (folder / name).read_bytes() == data.content(i, "image")


def test_names_are_found_without_listing(data, mnt):
    name = files_of(data, 204)[3]
    assert (mnt / "by/label/204" / name).read_bytes() == \
        data.content(int(name[:6]), "image")


@pytest.mark.parametrize("name", [
    "nothing", "image", "label/0", "label/0000", "label/001", "label/205",
    "label/-00", "label/-51", "label/-051", "label/+51", "label/ 51",
    "label/051.0", "label/99999999999999999999999", "label/", "label/0a0",
    "label/051/000000.jpg", "label/051/000060.jpg", "label/051/000003",
    "label/051/000003.jpg", "label/051/000003.ppmx", "label/051/3.ppm"])
def test_other_names_do_not_exist(data, mnt, name):
    assert LABELS[3] == 51 and (mnt / "by/label/051/000003.ppm").exists()
    if name == "label/":
        return
    with failing(errno.ENOENT):
        os.stat(mnt / "by" / name)


@pytest.mark.parametrize("values,names", [
    ([5], ["5"]),
    ([-1, 0, 1, 9], ["-1", "0", "1", "9"]),
    ([-1, 100], ["-001", "100"]),
    ([-20, -3, 7], ["-03", "-20", "07"]),
    ([-2 ** 63, -1, 0, 2 ** 63 - 1],
     ["-0000000000000000001", "-9223372036854775808", "0" * 19,
      "9223372036854775807"])])
def test_names_read_as_numbers(tmp_path, mount, values, names):
    data = labeled(tmp_path / "d.beton", values * 2)
    tree = mount(data.path) / "by/label"
    assert sorted(os.listdir(tree)) == names
    assert [int(n) for n in os.listdir(tree)] == sorted(values)
    for value, name in zip(map(int, names), names):
        assert os.listdir(tree / name) == files_of(data, value)
        assert (tree / name).stat().st_ino in \
            [e.inode() for e in os.scandir(tree)]


def test_every_int_field_has_a_tree(tmp_path, mount):
    data = make.Dataset(
        tmp_path / "d.beton",
        [("a", make.INT), ("x", make.FLOAT), ("b", make.INT),
         ("left", make.IMAGE), ("right", make.IMAGE)],
        [{"a": i % 3, "x": 1.0, "b": i,
          "left": make.Image(make.RAW, 1, 1, b"\1\2\3"),
          "right": make.Image(make.JPG, 1, 1, b"\xff\xd8")}
         for i in range(12)])
    where = mount(data.path)
    assert sorted(os.listdir(where / "by")) == ["a", "b"]
    assert os.listdir(where / "by/a/2") == \
        [f"{i:06d}.ppm" for i in (2, 5, 8, 11)]
    assert os.listdir(where / "by/b/07") == ["000007.ppm"]
    inodes = [p.stat().st_ino for p in (where / "by").rglob("*")
              if p.is_dir()]
    assert len(set(inodes)) == len(inodes) == 2 + 3 + 12


def test_without_images_it_shows_the_first_field(tmp_path, mount):
    data = make.Dataset(
        tmp_path / "d.beton", [("text", make.BYTES), ("label", make.INT)],
        [{"text": b"%d" % i, "label": i % 2} for i in range(6)])
    where = mount(data.path)
    assert os.listdir(where / "by/label/1") == \
        ["000001.bin", "000003.bin", "000005.bin"]
    assert (where / "by/label/1/000003.bin").read_bytes() == b"3"


def test_without_ints_there_is_no_tree(tmp_path, mount):
    assert os.listdir(mount(make.one_blob(tmp_path / "b", 9).path) / "by") == []


def test_without_samples_a_tree_is_empty(tmp_path, mount):
    where = mount(make.numbers(tmp_path / "none.beton", 0).path)
    assert os.listdir(where / "by/label") == []
    with failing(errno.ENOENT):
        os.stat(where / "by/label/0")


@pytest.mark.parametrize("kinds", [1, 3, 20000])
def test_long_listings_are_whole(tmp_path, mount, kinds):
    """More than fits one reply of a listing, in either kind of directory."""
    n = 20000
    labels = [(i * 7919) % n % kinds - kinds // 2 for i in range(n)]
    data = make.Dataset(tmp_path / "d.beton", [("label", make.INT)],
                        [{"label": v} for v in labels])
    tree = mount(data.path) / "by/label"
    assert [int(name) for name in os.listdir(tree)] == sorted(set(labels))
    for value in random.Random(1).sample(sorted(set(labels)), min(kinds, 50)):
        name, = [s for s in os.listdir(tree) if int(s) == value]
        assert os.listdir(tree / name) == \
            [f"{i:06d}" for i in range(n) if labels[i] == value]


def test_inodes_survive_a_remount(data, mount):
    def inodes(where):
        return {str(p.relative_to(where)): p.stat().st_ino
                for p in (where / "by").rglob("*")}
    first = inodes(mount(data.path))
    assert len(set(first.values())) == len(first) == 1 + 5 + N
    assert inodes(mount(data.path)) == first


def test_ordinary_tools_walk_it(data, mnt, tmp_path):
    def run(*command):
        return subprocess.run(command, capture_output=True, text=True,
                              check=True, timeout=DEADLINE).stdout
    assert run("ls", "-lR", mnt / "by").count(".jpg") == N // 2
    assert len(run("find", mnt / "by", "-type", "f").split()) == N
    assert len(run("find", mnt / "by", "-type", "d").split()) == 7
    run("cp", "-r", mnt / "by", tmp_path / "copy")
    run("diff", "-r", mnt / "by", tmp_path / "copy")


def test_many_first_users_see_the_same(data, mount):
    where = mount(data.path)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda k: sorted(os.listdir(
            where / "by/label" / ("", "051")[k % 2])), range(16)))
    assert got[0::2] == [["000", "051", "102", "153", "204"]] * 8
    assert got[1::2] == [files_of(data, 51)] * 8


def test_an_error_is_not_remembered(data, mount):
    where = mount(data.path, expects="read of")
    whole = open(data.path, "rb").read()
    os.truncate(data.path, data.meta + 50)
    for _ in range(2):
        with failing(errno.EIO):
            os.listdir(where / "by/label")
        with failing(errno.EIO):
            os.stat(where / "by/label/051")
    with open(data.path, "r+b") as f:
        f.write(whole)
    assert len(os.listdir(where / "by/label")) == 5
    assert os.listdir(where / "by/label/051") == files_of(data, 51)


def test_a_damaged_image_is_listed_and_fails(data, mount):
    data.patch(data.where(3, "image"), b"\x09")      # mode
    where = mount(data.path, expects="sample 3 field image: unknown image mode")
    assert sorted(os.listdir(where / "by/label/051")) == \
        sorted(["000003", *files_of(data, 51)[1:]])
    with failing(errno.EIO):
        open(where / "by/label/051/000003")


def test_too_many_samples_are_refused(tmp_path, mount):
    path, n = tmp_path / "huge.beton", 2 ** 28 + 1
    small = make.numbers(path, 1)
    end = small.meta + 8 * n
    small.patch(8, struct.pack("<QQ", n, end))
    os.truncate(path, end)
    where = mount(path, expects="268435457 samples are too many to group by label")
    assert os.listdir(where / "by") == ["label"]
    assert (where / "by/label").is_dir()
    for look in (os.listdir, lambda p: os.stat(p / "0")):
        with failing(errno.EFBIG):
            look(where / "by/label")


# --- torchvision ---

def image_directory(root):
    """The classes and samples of a directory by the rules of ImageFolder."""
    classes = sorted(e.name for e in os.scandir(root) if e.is_dir())
    return classes, [
        (os.path.join(folder, name), k) for k, c in enumerate(classes)
        for folder, _, names in sorted(os.walk(root / c, followlinks=True))
        for name in sorted(names) if name.lower().endswith(IMAGES)]


def check_directory(data, classes, samples):
    assert [int(c) for c in classes] == sorted(set(LABELS))
    assert len(samples) == N
    for path, k in samples:
        i = int(os.path.basename(path)[:6])
        assert LABELS[i] == int(classes[k])
        assert open(path, "rb").read() == data.content(i, "image")


def test_an_image_directory_by_the_rules(data, mnt):
    check_directory(data, *image_directory(mnt / "by/label"))


def test_an_image_directory_of_torchvision(data, mnt):
    folder = pytest.importorskip("torchvision.datasets").ImageFolder(
        str(mnt / "by/label"))
    check_directory(data, folder.classes, folder.samples)
    assert (folder.classes, folder.samples) == image_directory(mnt / "by/label")
