# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/makers: that it measures, and what it prints where other tools are
missing. The figures depend on the machine."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import dumped
import make
from dumped import BUILD

if re.search(b"__[at]san_init", (BUILD / "libbeton.so").read_bytes()):
    pytest.skip("python has no sanitizer", allow_module_level=True)
if BUILD.name != "build" or not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not in build/", allow_module_level=True)
if len(os.sched_getaffinity(0)) < 2:
    pytest.skip("two CPUs are needed", allow_module_level=True)

MAKERS = pathlib.Path(__file__).parents[3] / "contrib/bench/makers"
NOWHERE = "/proc/nonexistent/python"


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_it_measures_makers(kind, tmp_path):
    make.Dataset(tmp_path / "x.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.JPG, 60, 40, dumped.jpeg(i, 60, 40))}
        for i in range(100)], 1 << 16)
    done = subprocess.run(
        [sys.executable, MAKERS, tmp_path / "x.beton", "--json", "--batch=20",
         "--rounds=1", "--seconds=0.5", "--simulate=2", f"--type={kind}",
         *(f"--{name}={NOWHERE}" for name in ("ray", "torch", "tf"))],
        text=True, capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["cases"]) == ["local decoding", "a maker"]
    for case in found["cases"].values():
        assert case["images_per_s"]["median"] > 0
        assert case["trainer_us"]["median"] > 0
    assert {"Ray Data, PIL", "tf.data service"} <= set(found["not_here"])
    point, = found["simulated"]
    assert point["makers"] == 2 and point["images_per_s"] > 0
