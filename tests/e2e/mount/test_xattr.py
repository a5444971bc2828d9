# SPDX-License-Identifier: Apache-2.0
"""Extended attributes of values, with -o xattr."""
import errno
import os
import struct
import subprocess

import pytest

import make
from conftest import DEADLINE, failing

PREFIX = "user.beton."


@pytest.fixture
def mnt(data, mount):
    return mount(data.path, "-o", "xattr")


TYPES = {"label": "int", "score": "float", "image": "rgb_image",
         "blob": "bytes", "meta": "json", "vec": "ndarray",
         "tens": "torch_tensor"}
DTYPES = {"label": ("<i8",), "score": ("<f8",), "vec": ("<f4", "2,3"),
          "tens": ("<i2", "5")}


def wanted(data, i, name):
    value, kind = data.values[i][name], data.types[name]
    scalar = kind in (make.INT, make.FLOAT)
    out = {"type": TYPES[name],
           "offset": str(data.where(i, name) if scalar
                         else data.place[i, name]),
           "size": str(8 if scalar else len(data.stored(i, name)))}
    out.update(zip(("dtype", "shape"), DTYPES.get(name, ())))
    if kind == make.IMAGE:
        out.update(width=str(value.width), height=str(value.height),
                   mode="raw" if value.mode == make.RAW else "jpg")
    return out


def attributes(path):
    return {name[len(PREFIX):]: os.getxattr(path, name).decode()
            for name in os.listxattr(path)}


def test_values_report_where_they_are(data, mnt):
    for i in (0, 1, 29):
        for name in data.types:
            for path in (mnt / "samples" / data.name(i) / data.file(i, name),
                         mnt / "columns" / name /
                         (data.name(i) + data.extension(i, name))):
                assert attributes(path) == wanted(data, i, name)
    path = mnt / "by/label/004/000001.ppm"
    assert attributes(path) == wanted(data, 1, "image")


def test_the_bytes_are_there(data, mnt):
    a = attributes(mnt / "samples/000003/blob.bin")
    with open(data.path, "rb") as f:
        f.seek(int(a["offset"]))
        assert f.read(int(a["size"])) == data.values[3]["blob"]
    a = attributes(mnt / "samples/000003/label")
    with open(data.path, "rb") as f:
        f.seek(int(a["offset"]))
        assert struct.unpack("<q", f.read(int(a["size"]))) == (18,)


@pytest.mark.parametrize("path,name", [
    ("samples/000000/label", "user.beton.width"),
    ("samples/000000/label", "user.beton."),
    ("samples/000000/label", "user.beton.typex"),
    ("samples/000000/label", "user.other"),
    ("samples/000000/blob.bin", "user.beton.dtype"),
    ("samples/000000", "user.beton.type"),
    ("dataset.json", "user.beton.size"),
    ("shards/000000.tar", "user.beton.size")])
def test_others_have_none(mnt, path, name):
    with failing(errno.ENODATA):
        os.getxattr(mnt / path, name)


def test_only_values_have_a_list(mnt):
    for path in (".", "samples", "samples/000000", "by/label", "by/label/004",
                 "columns/label.npy", "dataset.json", "shards/000000.tar",
                 "batches/default"):
        assert os.listxattr(mnt / path, follow_symlinks=False) == []


def test_nothing_can_be_set(mnt):
    with failing(errno.EROFS):
        os.setxattr(mnt / "samples/000000/label", "user.beton.type", b"x")


def test_without_the_option_there_are_none(data, mount):
    where = mount(data.path)
    for _ in range(2):
        with failing(errno.ENOTSUP):
            os.getxattr(where / "samples/000000/label", "user.beton.type")
        with failing(errno.ENOTSUP):
            os.listxattr(where / "samples/000000/label")
    assert "xattr" not in (where / ".betonfs/options").read_text().split()


def test_the_option_is_reported(mnt):
    assert "xattr" in (mnt / ".betonfs/options").read_text().split()


def test_ls_and_tar_get_along(mnt, tmp_path):
    for command in (["ls", "-lR", mnt / "samples"],
                    ["cp", "-a", mnt / "samples/000000", tmp_path / "copy"]):
        r = subprocess.run(command, capture_output=True, text=True,
                           timeout=DEADLINE)
        assert r.returncode == 0, r.stderr


def test_damaged_values_fail(data, mount):
    data.patch(data.where(5, "blob"), struct.pack("<Q", 1 << 60))
    where = mount(data.path, "-o", "xattr", expects="sample 5 field blob")
    with failing(errno.EIO):
        os.getxattr(where / "samples/000005/blob.bin", "user.beton.size")
    assert attributes(where / "samples/000006/blob.bin")
