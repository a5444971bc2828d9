# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/peers runs without any other loader and prints the reason, and
it refuses to compare different work."""
import json
import pathlib
import re
import subprocess
import sys
import types
from importlib.machinery import SourceFileLoader

import pytest

import dumped
import make
from dumped import BUILD, DEADLINE

if re.search(b"__[at]san_init", (BUILD / "libbeton.so").read_bytes()):
    pytest.skip("python has no sanitizer", allow_module_level=True)
if BUILD.name != "build" or not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not in build/", allow_module_level=True)
pytest.importorskip("PIL.Image")

BENCH = pathlib.Path(__file__).parents[2] / "contrib/bench"
NOWHERE = "/proc/nonexistent/python"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.beton"
    make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.JPG, 60, 40, dumped.jpeg(i, 60, 40)),
         "label": i} for i in range(20)], 1 << 16)
    return path


def peers(file, *options):
    others = [f"--{name}={NOWHERE}" for name in ("ffcv", "dali", "spdl")]
    return subprocess.run(
        [sys.executable, BENCH / "peers", file, "--times=2", "--batch=16",
         "--rounds=1", "--epochs=3", *others, *options], text=True,
        capture_output=True, timeout=10 * DEADLINE, stdin=subprocess.DEVNULL)


def test_missing_peers_are_reported(file, tmp_path):
    done = peers(file, "--json", f"--plot={tmp_path}/p.svg",
                 f"--work={tmp_path}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"FFCV", "DALI, on the CPU", "SPDL, simplejpeg, OpenCV"} <= \
        set(found["not_here"])
    assert NOWHERE in found["not_here"]["FFCV"]
    ours = found["peers"]["betonfs.Loader"]
    assert ours["images_per_s"]["median"] > 0
    assert ours["cpu_us_per_image"]["median"] > 0
    assert "betonfs.Loader" in (tmp_path / "p.svg").read_text()
    assert not list(tmp_path.glob("beton-peers-*"))


def test_other_work_is_not_compared(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    module = types.ModuleType("peers")
    SourceFileLoader("peers", str(BENCH / "peers")).exec_module(module)
    first = {"shape": [16, 3, 224, 224], "dtype": "float32", "mean": 0.0,
             "std": 1.0}
    ours = {module.OURS: [{"first": first}]}
    module.check({**ours, "near": [{"first": {**first, "mean": 0.1}}]})
    for other in ({"mean": 0.5}, {"std": 0.5}, {"dtype": "float16"},
                  {"shape": [16, 224, 224, 3]}):
        with pytest.raises(SystemExit, match="does something else"):
            module.check({**ours, "x": [{"first": {**first, **other}}]})
