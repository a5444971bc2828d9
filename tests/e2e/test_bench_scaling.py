# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/scaling: that it measures, and that its table agrees with its
figures. The figures depend on the machine."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import dumped
import make
from dumped import BUILD

SCALING = pathlib.Path(__file__).parents[2] / "contrib/bench/scaling"
CPUS = os.cpu_count()

if not shutil.which("cc"):
    pytest.skip("a custom operation needs a compiler", allow_module_level=True)


def scaling(*args):
    done = subprocess.run(
        [sys.executable, SCALING, "--bin", BUILD, "--rounds=1", "--epochs=2",
         "--seconds=0.2", *args], text=True, capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scaling") / "x.beton"
    make.Dataset(path, [("image", make.IMAGE)], [
        {"image": make.Image(make.JPG, 60, 40, dumped.jpeg(i, 60, 40))}
        for i in range(300)], 1 << 16)
    return path


def test_it_measures(file):
    found = json.loads(scaling("--json", "--workers=1,2", file))
    assert list(found["rates"]["sleeping"]) == ["1", "2"]
    assert list(found["rates"]["decoding"]) == [
        str(n + 1) for n in range(CPUS)]
    # An image takes a worker a millisecond or more.
    for n, rates in found["rates"]["sleeping"].items():
        assert 0 < rates[0] <= 1000 * int(n)
    # More than the row of the output, which has 0.6 MB.
    assert 1.2e6 < found["bytes_per_image"] < 1.4e6
    assert found["copied_per_s"] > 0


def test_its_table_has_the_model(file):
    out = scaling("--workers=1,3", file)
    *_, last = out.strip().splitlines()
    assert last.startswith("| 3 |") and last.split(" | ")[2].strip(" |") in (
        "CPUs", "memory")


def test_one_worker_is_the_reference():
    done = subprocess.run([sys.executable, SCALING, "--workers=2,4"],
                          text=True, capture_output=True)
    assert done.returncode == 1
    assert "one is 1" in done.stderr
