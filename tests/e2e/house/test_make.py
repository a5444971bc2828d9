# SPDX-License-Identifier: Apache-2.0
"""make help lists every target that you may call, and every variable that it
lists has an effect. Lint compares the places that contain the version."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEXT = (ROOT / "Makefile").read_text()


def make(*arguments):
    env = {k: v for k, v in os.environ.items() if k != "MAKEFLAGS"}
    return subprocess.run(["make", "-C", ROOT, "--no-print-directory",
                           *arguments], env=env, capture_output=True,
                          text=True, timeout=120)


def rows():
    r = make("help")
    assert r.returncode == 0 and not r.stderr, r.stderr
    lines = r.stdout.splitlines()
    assert lines[0].startswith("betonfs - ")
    assert "# " not in r.stdout and "One makefile" not in r.stdout
    return [line for line in lines if line.startswith("  ")]


def test_help_is_aligned():
    starts = {re.match(r"  \S+ +", row).end() for row in rows()}
    assert len(rows()) > 20 and starts == {25}
    assert max(map(len, rows())) <= 88


def test_help_lists_every_target():
    listed = [row.split()[0] for row in rows()]
    targets = [name for name in listed if "=" not in name]
    assert len(targets) == len(set(targets))
    phony = re.search(r"^\.PHONY: (.*)$", TEXT, re.M)[1].split()
    assert set(phony) - {"FORCE"} <= set(targets)
    for name in targets:
        assert re.search(rf"^(?:[\w.-]+ )*{re.escape(name)}(?: [\w.-]+)*\s*:",
                         TEXT, re.M), name


def test_help_lists_variables_that_make_reads():
    names = {row.split()[0].partition("=")[0] for row in rows()
             if "=" in row.split()[0]}
    assert {"V", "WERROR", "SAN", "BUILD", "CC", "PREFIX"} <= names
    for name in names:
        assert f"$({name})" in TEXT or f"$(if $({name})" in TEXT or \
            f"$(or $({name})" in TEXT, name


def test_python_without_its_headers_names_the_package():
    """The tests that need no package still run, so it is no error."""
    r = make("-s", "PYTHON=/nonexistent", "python")
    assert r.returncode == 0
    assert r.stdout == ("make python: /nonexistent is older than 3.11, or "
                        "python3-dev is not installed\n")


@pytest.mark.parametrize("place,old,new", [
    ("Makefile", r"^VERSION := \d+", "VERSION := 97"),
    ("include/beton/beton.h", r"(_VERSION_MINOR )\d+", r"\g<1>97"),
    ("tests/e2e/mkfs/test_mkfs.py", r"(mkfs\.beton )\d+(\.\d+\.)", r"\g<1>97\2"),
    ("contrib/CHANGELOG.md", r"^## \d+", "## 97")])
def test_lint_finds_a_version_that_differs(tmp_path, place, old, new):
    for path in ("Makefile", "include/beton/beton.h", "contrib/CHANGELOG.md",
                 "tests/e2e/mkfs/test_mkfs.py", "tests/e2e/mount/test_mount.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "tests/python").mkdir()
    lint = ["sh", ROOT / "tests/lint/version.sh", tmp_path]
    right = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert (right.returncode, right.stdout) == (0, ""), right
    text = (tmp_path / place).read_text()
    changed = re.sub(old, new, text, flags=re.M)
    assert changed != text
    (tmp_path / place).write_text(changed)
    r = subprocess.run(lint, capture_output=True, text=True, timeout=60)
    assert r.returncode == 1
    assert "97" in r.stdout or "no section" in r.stdout


@pytest.fixture
def unit(tmp_path):
    """A tree of one unit test, which is a shell script, and the call of make."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    built = [f"build/{name}" for name in (
        "tests/unit/test_a.o", "programs.a", "libbeton.a", "standin/link",
        "standin/netfs")]
    for name in "tests/unit/test_a.c", "tests/fuzz/corpus", *built:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    program = tmp_path / "build/test_a"
    return lambda script: program.write_text(f"#!/bin/sh\n{script}\n"), \
        lambda: make(*(f"--assume-old={name}" for name in built), "-C", tmp_path,
                     "BUILD=build", "EMULATOR=sh", "unit")


def test_a_unit_test_runs_again_only_if_it_changed(unit):
    write, run = unit
    write("echo skip: no disk; echo checks >> runs")
    r = run()
    assert r.returncode == 0 and "1 of them now" in r.stdout
    assert "skip: no disk" in r.stdout and "checks" not in r.stdout
    r = run()
    assert r.returncode == 0 and "0 of them now" in r.stdout
    write("echo all of it; echo and why >&2; exit 3")
    for _ in range(2):      # it is not taken for passed
        r = run()
        assert r.returncode and "now" not in r.stdout
        assert "FAILED: build/test_a\nall of it\nand why\n" in r.stdout
    write("exit 0")
    assert "1 of them now" in run().stdout
