# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/scaling: that it measures, and that its table agrees with its
figures. The figures depend on the machine."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types
from importlib.machinery import SourceFileLoader

import pytest

import dumped
import make
from dumped import BUILD

SCALING = pathlib.Path(__file__).parents[3] / "contrib/bench/scaling"
CPUS = os.cpu_count()

if not shutil.which("cc"):
    pytest.skip("a custom operation needs a compiler", allow_module_level=True)


def scaling(*args):
    done = subprocess.run(
        [sys.executable, SCALING, "--bin", BUILD, "--rounds=1", "--epochs=2",
         "--seconds=0.2", *args], text=True, capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scaling") / "x.beton"
    make.Dataset(path, [("image", make.IMAGE)], [
        {"image": make.Image(make.JPG, 60, 40, dumped.jpeg(i, 60, 40))}
        for i in range(300)], 1 << 16)
    return path


def test_it_measures(file):
    found = json.loads(scaling("--json", "--workers=1,2", file).stdout)
    assert list(found["rates"]["sleeping"]) == ["1", "2"]
    assert list(found["rates"]["decoding"]) == [
        str(n + 1) for n in range(CPUS)]
    # An image takes a worker a millisecond or more.
    for n, rates in found["rates"]["sleeping"].items():
        assert 0 < rates[0] <= 1000 * int(n)
    # More than the sample of the output, which has 0.6 MB.
    assert 1.2e6 < found["bytes_per_image"] < 1.4e6
    assert found["copied_per_s"] > 0


def test_its_table_has_the_model(file):
    done = scaling("--workers=1,3", file)
    assert "| rate per worker / rate of 1 worker |" in done.stdout
    assert "scaling: round 1 of 1, sleeping, 3 workers: " in done.stderr
    *_, last = done.stdout.strip().splitlines()
    assert last.startswith("| 3 |") and last.split(" | ")[2].strip(" |") in (
        "CPUs", "memory")


def test_one_worker_is_the_reference():
    done = subprocess.run([sys.executable, SCALING, "--workers=2,4"],
                          text=True, capture_output=True)
    assert done.returncode == 1
    assert "one is 1" in done.stderr


def test_a_file_that_is_no_dataset_is_found_at_once():
    done = subprocess.run([sys.executable, SCALING, "--bin", BUILD,
                           "/etc/passwd"], text=True, capture_output=True,
                          timeout=dumped.DEADLINE)
    assert done.returncode == 1
    assert done.stderr.startswith("scaling: /etc/passwd: not a .beton file")
    assert len(done.stderr.splitlines()) == 1


def test_workers_do_not_make_each_other_faster(monkeypatch):
    """A share above 1 is noise."""
    monkeypatch.syspath_prepend(SCALING.parent)
    module = types.ModuleType("scaling")
    SourceFileLoader("scaling", str(SCALING)).exec_module(module)
    found = {"rates": {"sleeping": {1: [800], 2: [1200], 4: [3600]},
                       "decoding": {1: [1000]}},
             "copied_per_s": 1e9, "bytes_per_image": 1}
    assert module.predicted(found, 4) == (4000, False)
    assert module.predicted(found, 2) == (1500, False)
    assert module.predicted({**found, "bytes_per_image": 5e5}, 4) == \
        (2000, True)
