# SPDX-License-Identifier: Apache-2.0
"""The programs and the Python package as they were built, for the pictures."""
import os
import pathlib
import subprocess
import sys

from svg import ROOT

BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()


def package():
    """The Python package betonfs."""
    sys.path.insert(0, str(BUILD / "python"))
    try:
        import betonfs
    except ImportError as e:
        sys.exit(f"{sys.argv[0]}: {e}: run make python")
    return betonfs


def output(name, *arguments, **more):
    """Run a program of the build, and return its standard output."""
    env = {**os.environ, "BETON_PYTHON": sys.executable,
           "PYTHONPATH": str(BUILD / "python")}
    return subprocess.run([BUILD / name, *arguments], text=True, check=True,
                          stdout=subprocess.PIPE, env=env, **more).stdout
