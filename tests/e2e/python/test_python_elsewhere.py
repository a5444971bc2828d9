# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python package in other interpreters, which need pytest, NumPy
and PIL. FREE_PYTHON names a free-threaded one, for which the package is built
separately; JAX_PYTHON names one that has jax. Without them these tests are
skipped."""
import os
import pathlib
import shutil
import subprocess

import pytest

from package import PACKAGE

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DEADLINE = 900


def run(*command, **env):
    kept = {k: v for k, v in os.environ.items() if k not in (
        "PYTHON_GIL", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")}
    r = subprocess.run(list(map(str, command)), env={**kept, **env}, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       timeout=DEADLINE)
    assert r.returncode == 0, r.stdout[-5000:]
    return r.stdout


def interpreter(variable, *modules):
    """The interpreter that the variable names, if it has these modules."""
    exe = shutil.which(os.environ.get(variable, ""))
    if not exe:
        pytest.skip(f"{variable} names no Python")
    for module in modules:
        if subprocess.run([exe, "-c", f"import {module}"],
                          capture_output=True, timeout=DEADLINE).returncode:
            pytest.skip(f"{exe} has no {module}")
    return exe


def pass_in(exe, folder, package, *files):
    printed = run(exe, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--basetemp", folder / "pytest", *(HERE / f for f in files),
               BETON_PACKAGE=str(package))
    assert " passed" in printed
    return printed


@pytest.fixture(scope="module")
def free():
    exe = interpreter("FREE_PYTHON", "numpy", "PIL", "pytest")
    printed = run(exe, "-c", "import sys; print(sys._is_gil_enabled())")
    if printed != "False\n":
        pytest.skip(f"FREE_PYTHON={exe} has a GIL")
    return exe


@pytest.fixture(scope="module")
def package(free, tmp_path_factory):
    """Built for it."""
    build = tmp_path_factory.mktemp("free")
    run("make", "-C", ROOT, f"-j{os.cpu_count()}", f"BUILD={build}",
        f"PYTHON={free}", "python")
    return build / "python"


def test_importing_it_brings_no_gil_back(free, package):
    # The interpreter warns where it does.
    printed = run(free, "-W", "error", "-c",
               "import sys, betonfs; print(sys._is_gil_enabled())",
               PYTHONPATH=str(package))
    assert printed == "False\n"


def test_many_threads_without_a_gil(free, package, tmp_path):
    printed = pass_in(free, tmp_path, package, "test_python_threads.py")
    assert "skipped" not in printed


def test_the_package_without_a_gil(free, package, tmp_path):
    pass_in(free, tmp_path, package, "test_python.py", "test_python_mix.py",
            "test_python_show.py")


def test_a_wheel_for_one_without_a_gil(free, package, tmp_path):
    pass_in(free, tmp_path, package, "test_python_wheel.py")


def test_jax(tmp_path):
    exe = interpreter("JAX_PYTHON", "jax", "PIL", "pytest")
    printed = pass_in(exe, tmp_path, PACKAGE, "test_python_jax.py")
    assert "skipped" not in printed
