# SPDX-License-Identifier: Apache-2.0
"""The C examples compile without a warning, work, and end with one clear line on
what they cannot read or write. The index lists every example."""
import pathlib
import re
import shutil
import subprocess

import pytest

import dumped
from conftest import DEADLINE
from installed import CC, SANITIZER

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "contrib/examples"
TESTS = "".join(p.read_text() for folder in ("python", "e2e")
                for p in (ROOT / "tests" / folder).glob("*.py"))


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True,
                          text=True, timeout=DEADLINE)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(NAME) -> the program."""
    for tool in CC, "pkg-config":
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    where = tmp_path_factory.mktemp("examples")
    libs = run("pkg-config", "--libs", "libjpeg", "libpng", "jansson",
               "liblz4").stdout.split()

    def build(name):
        out = where / name
        if not out.exists():
            r = run(CC, "-Wall", "-Wextra", "-Werror", *SANITIZER,
                    f"-I{ROOT / 'include'}", "-o", out,
                    EXAMPLES / f"{name}.c", BUILD / "libbeton.a", *libs,
                    "-lm", "-ldl", "-lpthread")
            assert r.returncode == 0, r.stderr
        return out
    return build


@pytest.fixture(scope="module")
def photos(compiled, tmp_path_factory):
    where = tmp_path_factory.mktemp("photos")
    r = run(compiled("pictures"), where / "photos", 6)
    assert (r.returncode, r.stderr) == (0, "")
    return where / "photos"


def test_pictures_become_a_dataset_that_the_trainer_reads(compiled, photos):
    assert sorted(str(p.relative_to(photos)) for p in photos.rglob("*.png")) \
        == [f"{name}/{n:03}.png" for name, first in (("cold", 0), ("warm", 1))
            for n in range(first, 6, 2)]
    path = photos.parent / "train.beton"
    r = run(BUILD / "mkfs.beton", photos, path)
    assert r.returncode == 0, r.stderr
    r = run(compiled("trainer"), path, 2)
    assert r.returncode == 0, r.stderr
    assert re.fullmatch(r"epoch 0: -?[\d.e+]+\nepoch 1: -?[\d.e+]+\n", r.stdout)


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "cut",
                                  "directory", "below a file"])
def test_trainer_names_an_unreadable_file(compiled, photos, tmp_path, kind):
    path = tmp_path / "train.beton"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("this is no dataset\n" * 1000)
    elif kind == "directory":
        path.mkdir()
    elif kind == "cut":
        assert run(BUILD / "mkfs.beton", photos, path).returncode == 0
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "below a file":
        path = path / "below"
        path.parent.write_bytes(b"")
    r = run(compiled("trainer"), path, 1)
    assert (r.returncode, r.stdout) == (1, ""), r
    line, = r.stderr.splitlines()
    assert line.startswith("trainer: ") and "train.beton" in line, line


def test_pictures_names_an_unwritable_file(compiled, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    r = run(compiled("pictures"), tmp_path / "file", 2)
    assert (r.returncode, r.stdout) == (1, "")
    line, = r.stderr.splitlines()
    assert line == f"pictures: cannot write {tmp_path}/file/cold/000.png"


@pytest.mark.parametrize("name,code", [("trainer", 1), ("pictures", 2)])
def test_without_arguments_they_print_their_usage(compiled, name, code):
    r = run(compiled(name))
    assert (r.returncode, r.stdout) == (code, "")
    assert r.stderr.count("\n") == 1 and f"usage: {name} " in r.stderr


def test_the_index_lists_every_example():
    rows = re.findall(r"^\| `([\w.]+)` \|", (EXAMPLES / "README.md").read_text(),
                      re.M)
    there = {p.name for p in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    assert len(rows) == len(set(rows)) and set(rows) == there


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")),
                         ids=lambda p: p.stem)
def test_python_examples_show_how_they_are_run(path):
    """A test runs each example by its name."""
    text = path.read_text()
    compile(text, str(path), "exec")
    head = text.partition('"""')[2].partition('"""')[0]
    assert re.search(rf"\b{path.name} ", head), head
    short = path.stem.removeprefix("train_")
    assert re.search(rf'"({path.stem}|{path.name}|{short})"', TESTS), path


def test_the_commands_of_the_index_work(photos, tmp_path):
    """As they stand, but make, in a tree that looks as this one."""
    for name in "contrib", "include":
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").symlink_to(BUILD)
    text = (EXAMPLES / "README.md").read_text()
    block = re.search(r"(?:^    .*\n)+", text, re.M)[0]
    commands = "".join(line[4:] + "\n" for line in block.splitlines()
                       if line.strip() != "make")
    assert commands.count("\n") == 5 and "./trainer train.beton 2" in commands
    if SANITIZER:
        pytest.skip("the page compiles without sanitizers")
    r = subprocess.run(["sh", "-euc", commands], cwd=tmp_path, text=True,
                       capture_output=True, timeout=DEADLINE)
    assert r.returncode == 0, r.stderr
    assert r.stdout.count("epoch ") == 2
