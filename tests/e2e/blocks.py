# SPDX-License-Identifier: Apache-2.0
"""The code blocks of a Markdown page, and a directory to run them in.

Blocks of ```console, ```sh, ```python and ```c run in their order, each in a
process of its own, with the programs of the build. Comments before a block:

    <!-- needs: fuse torch -->   otherwise the block is left out; see NEEDS. After
                                 `ray`, modules are those of RAY_PYTHON
    <!-- place: imagenet -->     makes data for the block; see places.py
    <!-- file: train.py -->      writes the block to that file instead

A ```console block has commands after `$ `, continued after `> `, and their output.
In the output, `...` stands for any text, on a line by itself for any lines.
Numbers that measure something may differ, see `pattern`.
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import dumped
import places
from conftest import mounts, unmount

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("TORCHVISION_PYTHON", sys.executable)
RAY_PYTHON = os.environ.get("RAY_PYTHON", sys.executable)
DEADLINE = 120
KINDS = "console", "sh", "python", "c"

COMMENT = re.compile(r"<!-- (needs|place|file): (.*?) -->")
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.M | re.S)
# A number that measures: of a quantity with a unit, or with a fraction.
MEASURED = re.compile(
    r"\d[\d.,]*(?=/s\b| (?:bytes|s|ms|us|MB|GB|[KMG]iB|samples/s)\b| ?%)|"
    r"\d+\.\d+|\+- +\d+")
# All numbers of lines that begin with the name of a measured quantity, or that
# are rows of them.
MEASURES = re.compile(r"(?:\S+/s|CPU us/\S+|peak RSS|first batch|[a-z ]+) {2,}")
NUMBER = r"[\d.,]*\d"


class Block(NamedTuple):
    kind: str
    code: str
    line: int
    needs: tuple = ()
    places: tuple = ()
    file: str = ""


def blocks(path):
    """The blocks of a page that run or become files."""
    text = pathlib.Path(path).read_text()
    out = []
    for m in FENCE.finditer(text):
        if m[1] not in KINDS:
            continue
        head = re.search(r"(?:^<!--[^\n]*-->\n)*\Z", text[:m.start()], re.M)[0]
        said = {"needs": [], "place": [], "file": []}
        for name, words in COMMENT.findall(head):
            said[name] += words.split()
        out.append(Block(m[1], m[2], text.count("\n", 0, m.start()) + 1,
                         tuple(said["needs"]), tuple(said["place"]),
                         "".join(said["file"])))
    return out


# --- what a block may need ---------------------------------------------------


@functools.cache
def has_module(name, python=PYTHON):
    return subprocess.run([python, "-c", f"import {name}"],
                          capture_output=True, timeout=DEADLINE).returncode == 0


def has_fuse():
    return os.access("/dev/fuse", os.R_OK | os.W_OK) and \
        bool(shutil.which("fusermount3")) and (BUILD / "betonfs").exists()


NEEDS = {
    "fuse": (has_fuse, "no /dev/fuse or no fusermount3"),
    "torch": (lambda: has_module("torch"),
              "torch is not installed, and TORCHVISION_PYTHON names no "
              "interpreter with it"),
    "ray": (lambda: has_module("ray, torch", RAY_PYTHON),
            "RAY_PYTHON names no interpreter with ray and torch"),
    "numba": (lambda: has_module("numba"), "numba is not installed"),
    "cc": (lambda: bool(shutil.which("cc")), "cc is not installed"),
    "nginx": (lambda: bool(shutil.which("nginx")), "nginx is not installed"),
    "root": (lambda: os.geteuid() == 0, "this is not root"),
}


def missing(block):
    """Why this block cannot run here, or None."""
    for name in block.needs:
        there, reason = NEEDS[name]
        if not there():
            return reason
    return None


# --- expected output ---------------------------------------------------------


def pattern(line):
    """The regular expression of a line of expected output. A number that
    measures something may be any other; the others are exact."""
    row = MEASURES.match(line)
    out = ""
    for part in re.split(r"(\.\.\.)", line.rstrip()):
        if part == "...":
            out += ".*"
            continue
        measured = re.compile(NUMBER) if row else MEASURED
        at = 0
        for m in measured.finditer(part):
            out += re.escape(part[at:m.start()])
            out += r"\+- +\d+" if m[0].startswith("+") else NUMBER
            at = m.end()
        out += re.escape(part[at:])
    return re.sub(r"(?:\\ )+", " +", out)


def expression(expected):
    """The pattern that matches all lines of an output."""
    out = ""
    for line in expected:
        out += r"(?:[^\n]*\n)*?" if line.strip() == "..." \
            else pattern(line) + r"[ \t]*\n"
    return out


def matches(expected, found):
    if found and not found.endswith("\n"):
        found += "\n"
    return bool(re.fullmatch(expression(expected), found))


def commands(code):
    """[(command, lines of its output)] of a session."""
    out = []
    for line in code.splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif line.startswith("> ") and out and not out[-1][1]:
            out[-1] = out[-1][0] + "\n" + line[2:], []
        else:
            assert out, f"output before the first command: {line}"
            out[-1][1].append(line)
    return out


# --- running -----------------------------------------------------------------


class Session:
    """Runs the blocks of a page in `folder`."""

    def __init__(self, folder, page):
        self.folder = pathlib.Path(folder)
        self.page = pathlib.Path(page)
        self.made = set()
        self.ran = 0
        package = os.environ.get("BETON_PACKAGE", str(BUILD / "python"))
        self.env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": package,
                    "OMP_NUM_THREADS": "1"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for where in mounts():
            if where.startswith(f"{self.folder}/"):
                unmount(where, "-z")

    def place(self, name):
        if name not in self.made:
            self.made.add(name)
            places.PLACES[name](self.folder)

    def execute(self, command, python):
        """(exit code, output); a daemon may keep the output open."""
        path = [str(BUILD), *([os.path.dirname(python)] if "/" in python
                              else []), os.environ["PATH"]]
        out = self.folder / ".output"
        with open(out, "wb") as f:
            code = subprocess.run(command, cwd=self.folder,
                                  env={**self.env, "PATH": ":".join(path)},
                                  stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                  timeout=DEADLINE).returncode
        return code, out.read_text(errors="replace")

    def run(self, block):
        where = f"{self.page.name}:{block.line}"
        for name in block.places:
            self.place(name)
        self.ran += 1
        python = RAY_PYTHON if "ray" in block.needs else PYTHON
        if block.file:
            (self.folder / block.file).write_text(block.code)
            if block.kind == "python":
                compile(block.code, where, "exec")
            return
        if block.kind == "console":
            for command, expected in commands(block.code):
                code, found = self.execute(["bash", "-c", command], python)
                assert code == 0, f"{where}: $ {command}\n{found}"
                assert matches(expected, found), \
                    f"{where}: $ {command}\n" + "\n".join(expected) + \
                    f"\n--- printed:\n{found}"
            return
        if block.kind == "c":
            file = self.folder / "block.c"
            file.write_text(block.code)
            command = ["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                       f"-I{ROOT / 'include'}", file]
        elif block.kind == "python":
            command = [python, "-c", block.code]
        else:
            command = ["bash", "-euc", block.code]
        code, found = self.execute(command, python)
        assert code == 0, f"{where}:\n{block.code}\n--- printed:\n{found}"


def run_page(path, folder, given=(), only=KINDS):
    """Runs all blocks of a page, in a directory with these places. Returns
    (number of blocks that ran, reasons why others did not)."""
    reasons = []
    with Session(folder, path) as session:
        for name in given:
            session.place(name)
        for block in blocks(path):
            reason = missing(block)
            if reason:
                reasons.append(f"{path.name}:{block.line}: {reason}")
                for name in block.places:       # later blocks use it, too
                    session.place(name)
            elif block.kind in only:
                session.run(block)
        return session.ran, reasons
