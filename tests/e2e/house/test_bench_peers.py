# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/peers runs without any other loader and prints the reason, counts
images that loaders do not deliver, and refuses to compare different work."""
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
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

BENCH = pathlib.Path(__file__).parents[3] / "contrib/bench"
NOWHERE = "/proc/nonexistent/python"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.beton"
    make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)], [
        {"image": make.Image(make.JPG, 60, 40, dumped.jpeg(i, 60, 40)),
         "label": i} for i in range(20)], 1 << 16)
    return path


# An interpreter that lies. Each loader but one fails in its way; DALI's figures are
# ours, less two images, or an end in the middle of the damaged images.
STAND_IN = f"""#!{sys.executable}
import json, os, subprocess, sys
program, name, *more = sys.argv[1:]
if name == "spdl":
    os.kill(os.getpid(), 9)
if name == "ffcv":
    print(json.dumps(dict(failed="RuntimeError: this | that")))
    sys.exit()
done = subprocess.run([sys.executable, program, "betonfs", *more],
                      stdout=subprocess.PIPE, check=True)
found = json.loads(done.stdout)
if "--count" in more:
    found = dict(count=dict([("0", 5)]), stopped="stops: RuntimeError")
else:
    found["images"] -= 2
print(json.dumps(found))
"""


@pytest.fixture
def stand_in(tmp_path):
    path = tmp_path / "python"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return path


def peers(file, *options, python=NOWHERE, code=0):
    others = [f"--{name}={python}" for name in ("ffcv", "dali", "spdl")]
    done = subprocess.run(
        [sys.executable, BENCH / "peers", file, "--times=2", "--batch=16",
         "--rounds=1", "--epochs=3", *others, *options], text=True,
        capture_output=True, timeout=10 * DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == code, done.stderr
    return done


def tables(text):
    """{the line before a table: {the first cell of a row: its other cells}}"""
    out, lines = {}, text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("|---"):
            rows = [[cell.strip() for cell in row.split("|")[1:-1]]
                    for row in "\n".join(lines[i - 1:]).split("\n\n")[0]
                    .splitlines()]
            assert len({len(row) for row in rows}) == 1, rows
            out[lines[i - 3]] = {row[0]: row[1:] for row in rows}
    return out


def is_on_a_disk(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], text=True,
                          stdout=subprocess.PIPE).stdout.strip() != "tmpfs"


def test_missing_peers_are_reported(file, tmp_path):
    done = peers(file, "--json", f"--plot={tmp_path}/p.svg",
                 f"--work={tmp_path}")
    case, = json.loads(done.stdout)["cases"]
    assert (case["workers"], case["cache"]) == (2, "warm")
    for name in ("ffcv", "dali", "spdl"):
        assert NOWHERE in case["peers"][name]["why"]
        assert f"name another interpreter with --{name}" in \
            case["peers"][name]["why"]
    ours = case["peers"]["betonfs"]
    assert ours["images_per_s"]["median"] > 0
    assert ours["cpu_us_per_image"]["median"] > 0
    # The process has at least the tensors of a batch.
    assert ours["memory"] > 16 * 3 * 224 * 224 * 4
    # Epochs of whole batches: 40 images are three of 16.
    assert ours["images"] == ours["wanted"] == 48
    assert "betonfs.Loader" in (tmp_path / "p.svg").read_text()
    assert not list(tmp_path.glob("beton-peers-*"))


def test_a_missing_module_names_the_option(file, tmp_path):
    python = tmp_path / "bare"
    python.write_text("#!/bin/sh\n"
                      """echo '{"not_here": "No module named that"}'\n""")
    python.chmod(0o755)
    done = peers(file, "--only=dali", f"--dali={python}")
    assert tables(done.stdout)["2 workers, warm page cache:"][
        "DALI, on the CPU"][0] == \
        "not here: No module named that; name another interpreter with --dali"


@pytest.mark.parametrize("option, message", [
    ("--epochs=2", "--epochs: at least 3"), ("--rounds=0", "--rounds: at least 1"),
    ("--batch=20", "--batch: a multiple of 16, not 20")])
def test_a_limit_is_named(file, option, message):
    assert message in peers(file, option, code=2).stderr


def test_the_readme_lists_the_loaders(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    from peer import LOADERS
    text = (BENCH / "README.md").read_text()
    for name, row in LOADERS.items():
        assert f"| `{name}` | {row.title} | `--{row.option}` |" in text


def test_every_case_has_a_table(file, tmp_path, stand_in):
    done = peers(file, "--workers=0,1", f"--plot={tmp_path}/p.svg",
                 python=stand_in)
    found = tables(done.stdout)
    assert list(found) == ["The main process, warm page cache:",
                           "1 worker, warm page cache:",
                           "images/s, medians:", "CPU us/image, medians:"]
    main, one, rates, cpu = found.values()
    for loader in ("betonfs.Loader", "FFCV", "DALI, on the CPU"):
        assert main[loader][0] == "always decodes in threads of its own"
    assert one["FFCV"][0] == "failed: RuntimeError: this / that"
    assert one["SPDL, simplejpeg, OpenCV"][0] == "died: Killed"
    assert one["betonfs.Loader"][5] == "48 of 48"
    assert one["DALI, on the CPU"][5] == "46 of 48"
    assert re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)",
                        one["DALI, on the CPU"][3])
    assert rates["workers, page cache"] == ["0, warm", "1, warm"]
    for overview, at in ((rates, 0), (cpu, 1)):
        assert overview["FFCV"] == ["", ""]
        assert overview["betonfs.Loader"] == \
            ["", one["betonfs.Loader"][at].split(" ")[0]]
    assert "betonfs 0." in done.stdout.splitlines()[-1]
    words = [e.text for e in ET.parse(tmp_path / "p.svg").iter()
             if e.tag.endswith("text")]
    assert sum(w.endswith("us; 1 worker, warm") for w in words) >= 2
    assert not [w for w in words if "FFCV" in w or "main process" in w]


def test_images_come_from_the_disk_if_the_cache_is_cold(file, tmp_path):
    if not is_on_a_disk(tmp_path):
        pytest.skip("no disk")
    done = peers(file, "--cold", "--times=30", f"--work={tmp_path}")
    warm, cold, *_ = tables(done.stdout).values()
    assert "read from the disk" not in warm[""]
    at = cold[""].index("read from the disk")
    # Batches that were made in advance did not come from there.
    assert int(cold["betonfs.Loader"][at].rstrip("%")) > 50


def test_memory_is_no_disk(file):
    if is_on_a_disk("/dev/shm"):
        pytest.skip("no tmpfs")
    done = peers(file, "--cold", "--work=/dev/shm", code=1)
    assert "name a directory of a disk" in done.stderr


def test_damaged_images_are_counted(file, stand_in):
    done = peers(file, "--damaged=2", python=stand_in)
    found = tables(done.stdout)["Damaged images:"]
    assert found["delivered, of 2"] == ["second half is zeros",
                                        "64 bytes changed", "no header"]
    assert found["betonfs.Loader"][2] == "0"
    assert found["DALI, on the CPU"][0] == "stops: RuntimeError"
    assert found["SPDL, simplejpeg, OpenCV"][0] == "died: Killed"


@pytest.mark.skipif("TORCHVISION_PYTHON" not in os.environ,
                    reason="TORCHVISION_PYTHON is not set")
def test_a_data_loader_leaves_out_what_it_cannot_decode(file):
    done = peers(file, "--damaged=2", "--only=pil", "--workers=1",
                 f"--torch={os.environ.get('TORCHVISION_PYTHON')}")
    found, counts = tables(done.stdout).values()
    assert found["DataLoader, PIL, torchvision"][5] == "48 of 48"
    assert counts["DataLoader, PIL, torchvision"][2] == "0"


def test_other_work_is_not_compared(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    module = types.ModuleType("peers")
    SourceFileLoader("peers", str(BENCH / "peers")).exec_module(module)
    first = {"shape": [16, 3, 224, 224], "dtype": "float32", "mean": 0.0,
             "std": 1.0}
    ours = {"betonfs": [{"first": first}]}

    def check(other):
        case = {**ours, "dali": [{"first": {**first, **other}}]}
        module.check({(2, "warm"): case})
    check({"mean": 0.1})
    check({"shape": [15, 3, 224, 224]})     # an image was damaged
    for other in ({"mean": 0.5}, {"std": 0.5}, {"dtype": "float16"},
                  {"shape": [16, 224, 224, 3]}):
        with pytest.raises(SystemExit, match="DALI.* does something else"):
            check(other)
