# SPDX-License-Identifier: Apache-2.0
"""Tables, checksums and several files of datasets behind URLs."""
import os
import shutil
import subprocess

import pytest

import make
import sums
from conftest import BUILD
from dumped import beton, photos

USAGE = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    make.numbers(str(folder / "many.beton"), 100_000)
    photos(folder / "all.beton", 60)
    sums.write(str(folder / "all.beton"))
    return folder


def dumped(path, out, order, *options):
    """The bytes of all files of a dump."""
    spec = f"order={order},batch=1000,seed=3,drop_last=0"
    beton("dump", path, "--spec", spec, "--batches=0:1", "--out", out,
          *options)
    return {p.relative_to(out): p.read_bytes()
            for p in sorted(out.rglob("*")) if p.is_file()}


def test_info_reads_some_blocks(folder, nginx):
    server = nginx(folder)
    here = beton("info", folder / "many.beton").stdout.splitlines()
    there = beton("info", server.url("many.beton")).stdout.splitlines()
    assert there[1:] == [line for line in here[1:]
                         if not line.startswith("on disk")]
    assert len(server.requests()) <= 8
    assert sum(r.sent for r in server.requests()) < 100_000


@pytest.mark.parametrize("name", ["many.beton", "all.beton"])
@pytest.mark.parametrize("order", ["random", "sequential"])
def test_batches_are_those_of_the_file(folder, nginx, name, order, tmp_path):
    server = nginx(folder)
    # Photographs differ in size.
    plain = ["--pipeline", "image | random_resized_crop(32)"] if name[0] == "a" else []
    here = dumped(folder / name, tmp_path / "here", order, *plain)
    if plain:
        plain.append("--verify")
    assert here and here == dumped(server.url(name), tmp_path / "there", order,
                                   *plain)


def test_urls_and_files_are_one_dataset(folder, nginx, tmp_path):
    server = nginx(folder)
    shutil.copy(folder / "many.beton", tmp_path / "more.beton")
    both = f"{{{server.url('many.beton')},{tmp_path}/more.beton}}"
    assert "200000 samples" in beton("info", both).stdout


def test_fsck_reads_urls_and_writes_no_checksums(folder, nginx):
    server = nginx(folder)
    url = server.url("all.beton")
    done = subprocess.run([BUILD / "fsck.beton", url], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and "sound" in done.stdout, done.stderr
    done = subprocess.run([BUILD / "fsck.beton", "--update-sums",
                           url + "?key=secret"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == USAGE
    assert "before you upload" in done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_fsck_finds_a_flipped_bit_behind_a_url(folder, nginx, tmp_path):
    for name in ("all.beton", "all.beton.sums"):
        shutil.copy(folder / name, tmp_path / name)
    with open(tmp_path / "all.beton", "r+b") as f:
        f.seek(os.path.getsize(tmp_path / "all.beton") // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))
    server = nginx(tmp_path)
    done = subprocess.run([BUILD / "fsck.beton", server.url("all.beton")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "bit 2" in done.stdout + done.stderr
