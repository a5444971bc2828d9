# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/planes.c: the titles and names that it prints, which the README
explains, and files that it leaves out."""
import pathlib
import re
import shutil
import subprocess

import pytest

import dumped
from dumped import BUILD, DEADLINE

BENCH = pathlib.Path(__file__).parents[3] / "contrib/bench"

if not shutil.which("cc"):
    pytest.skip("no compiler", allow_module_level=True)
if re.search(b"__[at]san_init", (BUILD / "libbeton.so").read_bytes()) or \
        BUILD.name != "build":
    pytest.skip("the library has other flags", allow_module_level=True)
if not pathlib.Path("/usr/include/jpeglib.h").exists():
    pytest.skip("no libjpeg", allow_module_level=True)
pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("planes") / "planes"
    root = BENCH.parents[1]
    subprocess.run(
        ["cc", "-O2", f"-I{root}", f"-I{root}/include", "-o", path,
         BENCH / "planes.c", BUILD / "libbeton.a", "-ljpeg", "-ljansson",
         "-llz4", "-lm", "-lpthread"], check=True, timeout=DEADLINE)
    return path


def planes(program, *args, code=0):
    done = subprocess.run([program, *args], text=True, capture_output=True,
                          timeout=DEADLINE)
    assert done.returncode == code, done.stderr
    return done


def test_the_readme_explains_every_line(program, tmp_path):
    paths = [tmp_path / f"{i}.jpg" for i in range(2)]
    for i, path in enumerate(paths):
        path.write_bytes(dumped.jpeg(i, 120, 80))
    done = planes(program, "3", *paths, "/etc/passwd")
    assert done.stderr.startswith("planes: /etc/passwd: left out: ")
    count, title, *lines = done.stdout.splitlines()
    assert count == "2 files, median of 3 passes"
    assert re.split("  +", title) == ["decoder", "CPU us/file", "speed"]
    names = [re.split("  +", line)[0] for line in lines]
    assert lines[0].split()[-1] == "1.00"
    text = (BENCH / "README.md").read_text()
    section = text.split("\n## Decoding JPEGs\n")[1].split("\n## ")[0]
    assert names == re.findall(r"^\| `([^`]*)` \|", section, re.M)


def test_no_file_is_left(program):
    done = planes(program, "3", "/etc/passwd", code=1)
    left_out, last = done.stderr.splitlines()
    assert left_out == "planes: /etc/passwd: left out: not a JPEG"
    assert last.startswith("planes: no file could be measured")


def test_passes_have_a_limit(program):
    for passes in ("0", "1001"):
        assert "1 to 1000 PASSES" in planes(program, passes, "/etc/passwd",
                                            code=1).stderr
