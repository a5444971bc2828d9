# SPDX-License-Identifier: Apache-2.0
"""betonfs.ffcv without torch: one line with the reason, and --help."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import PACKAGE  # noqa: E402

NEEDED = "betonfs.ffcv needs torch: pip install torch"


@pytest.fixture
def run(tmp_path):
    """Run Python, where torch is not installed."""
    (tmp_path / "torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    (tmp_path / "script.py").write_text("import ffcv")

    def run(*args):
        return subprocess.run(
            [sys.executable, *args], cwd=tmp_path, text=True,
            capture_output=True, timeout=60,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{PACKAGE}"})
    return run


def test_a_script_without_torch_fails_in_one_line(run):
    r = run("-m", "betonfs.ffcv", "script.py")
    assert (r.returncode, r.stdout, r.stderr) == (1, "", NEEDED + "\n")


def test_help_needs_no_torch(run):
    for option in "--help", "-h":
        r = run("-m", "betonfs.ffcv", option)
        assert (r.returncode, r.stderr) == (0, "")
        assert r.stdout.startswith("usage: python -m betonfs.ffcv SCRIPT")


def test_an_import_without_torch_says_what_is_needed(run):
    r = run("-c", "import betonfs.ffcv")
    assert r.returncode == 1
    assert r.stderr.endswith(f"ModuleNotFoundError: {NEEDED}\n")
