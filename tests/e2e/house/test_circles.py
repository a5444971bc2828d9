# SPDX-License-Identifier: Apache-2.0
"""tests/lint/circles.py finds a planted circle of three files by their symbols,
and accepts a pair."""
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")),
                                reason="cc or nm is not installed")


def compiled(tmp_path, calls):
    """Objects of files in fs/base: each file has a function of its name, which
    calls others. Returns the output of circles.py."""
    for name, callees in calls.items():
        source = tmp_path / f"fs/base/{name}.c"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(f"void {c}(void);\n" for c in callees) +
                          f"void {name}(void) {{ {' '.join(f'{c}();' for c in callees)} }}\n")
        out = tmp_path / f"build/fs/base/{name}.o"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-c", "-o", out, source], check=True)
    run = subprocess.run([sys.executable, TOP / "tests/lint/circles.py",
                          tmp_path / "build", tmp_path], text=True, capture_output=True)
    assert not run.stderr
    return run.returncode, run.stdout


def test_a_circle_of_files_is_found(tmp_path):
    code, text = compiled(tmp_path, {"row": ["helper"], "helper": ["table"], "table": ["row"],
                                     "user": ["table"]})
    assert code == 1
    assert ("a circle of 3 files by symbols: fs/base/helper fs/base/row fs/base/table\n"
            in text)


def test_a_pair_is_accepted_and_an_old_object_ignored(tmp_path):
    compiled(tmp_path, {"moved": ["table"]})
    (tmp_path / "fs/base/moved.c").unlink()
    code, text = compiled(tmp_path, {"row": ["table"], "table": ["row", "moved"],
                                     "user": ["table"]})
    assert "a circle" not in text
