# SPDX-License-Identifier: Apache-2.0
"""mypy checks the types of the package, and the examples of its pages."""
import pathlib
import re
import shutil
import subprocess

import pytest

from dumped import DEADLINE

PYTHON = pathlib.Path(__file__).resolve().parents[3] / "contrib/python"
CONFIG = PYTHON / "pyproject.toml"

# Names that the pages leave to the reader.
NAMES = """
from collections.abc import Iterable
from typing import Any
import betonfs
def train(*batch: Any) -> None: ...
def test(*batch: Any) -> None: ...
text: str = ""
w: list[float] = []
n: int = 0
pairs: Iterable[tuple[Any, str]] = []
torchvision_dataset: Any = []
"""


# Older ones know less of NumPy's types.
OLDEST = 1, 10


def mypy(*arguments, where):
    exe = shutil.which("mypy")
    if not exe:
        pytest.skip("mypy is not installed")
    printed = subprocess.run([exe, "--version"], capture_output=True, text=True,
                          timeout=DEADLINE).stdout
    version = tuple(map(int, re.findall(r"\d+", printed)[:2]))
    if version < OLDEST:
        pytest.skip(f"{printed.strip()} is older than %d.%d" % OLDEST)
    r = subprocess.run(
        [exe, "--config-file", CONFIG, "--strict", "--cache-dir", where,
         *arguments], capture_output=True, text=True, cwd=PYTHON,
        timeout=5 * DEADLINE)
    assert r.returncode == 0, r.stdout + r.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_the_package(cache):
    mypy("betonfs", where=cache)


def is_code(text):
    try:
        compile(text, "page", "exec")
    except SyntaxError:
        return False
    return "betonfs" in text or "dataset" in text


def blocks():
    """Blocks that use betonfs: marked on one page, indented on the other."""
    readme = (PYTHON / "README.md").read_text()
    indented = [re.sub("^    ", "", block, flags=re.M) for block in
                re.findall(r"(?:^    .*\n)+", readme, re.M)]
    # Words that explain a line stand far behind it.
    plain = [re.sub(r"(?<=\S) {6,}\S.*$", "", block, flags=re.M)
             for block in indented]
    marked = re.findall(r"^```python betonfs\n(.*?)^```$",
                        (PYTHON / "MIGRATION.md").read_text(), re.M | re.S)
    return [b for b in plain if is_code(b)] + marked


def test_examples_of_pages_type_check(cache, tmp_path):
    """Functions of the reader's have no types, but all that they call has."""
    shown = blocks()
    assert len(shown) >= 9
    for number, code in enumerate(shown):
        (tmp_path / f"page{number}.py").write_text(NAMES + code)
    mypy("--allow-untyped-defs", "--allow-untyped-calls",
         "--no-check-untyped-defs", "--allow-redefinition",
         *tmp_path.glob("*.py"), where=cache)


def test_wrong_types_are_found(cache, tmp_path):
    (tmp_path / "wrong.py").write_text(
        "import betonfs\nbetonfs.Loader('x', batch_size='4')\n")
    with pytest.raises(AssertionError, match="batch_size"):
        mypy(tmp_path / "wrong.py", where=cache)
