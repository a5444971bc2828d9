# SPDX-License-Identifier: Apache-2.0
"""The manual page of a command describes every key of its --json."""
import json
import shutil

import pytest

import make
from dumped import beton
from manual import documented_keys
from stats import keys_of


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make.numbers(tmp_path_factory.mktemp("data") / "x.beton", 200)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A dataset with every type of field."""
    return make.every_type(tmp_path_factory.mktemp("data") / "x.beton")


def keys(*args):
    return keys_of(json.loads(beton(*args, "--json").stdout))


def test_info(data, images):
    described = documented_keys("info")
    assert keys("info", images.path) - described == set()
    assert keys("info", data.path, "--spec", "batch=5") - described == set()


def test_info_of_several_files(data, tmp_path):
    for name in "ab":
        shutil.copy(data.path, tmp_path / f"{name}.beton")
    found = keys("info", f"{tmp_path}/*.beton")
    assert "files" in found and found - documented_keys("info") == set()


def test_show(images, mount):
    batch = mount(images.path) / "batches/batch=5/0/000000.batch"
    found = keys("show", batch)
    assert "width" in found and found - documented_keys("show") == set()


def test_bench(data):
    found = keys("bench", data.path, "--spec", "batch=5", "--epochs", "2")
    assert "p99_us" in found and found - documented_keys("bench") == set()


def test_doctor(data):
    report = json.loads(beton("doctor", data.path, "--spec", "batch=5",
                              "--seconds", "5", "--json").stdout)
    del report["evidence"]["scores"]    # the names of verdicts
    found = keys_of(report)
    assert "spread" in found and found - documented_keys("doctor") == set()
