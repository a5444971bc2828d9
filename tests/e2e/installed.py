# SPDX-License-Identifier: Apache-2.0
"""The files of `make install`, and the compiler of the tested build."""
import fcntl
import os
import pathlib
import shutil
import subprocess

import pytest

from dumped import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, code=0, **how):
    r = subprocess.run(list(map(str, command)), capture_output=True,
                       text=True, timeout=300, **how)
    assert r.returncode == code, (command, r.stdout, r.stderr)
    return r


def flags():
    """The compiler and the flags that the tested build was made with."""
    stamp = BUILD / "flags"
    words = stamp.read_text().split() if stamp.exists() else ["cc"]
    return words[0], [w for w in words if w.startswith("-fsanitize=")]


CC, SANITIZER = flags()


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """DESTDIR of an installation under /usr, out of a copy of the build: the prefix
    is in beton.pc, and the tested build stays as it is. The processes of
    pytest-xdist share it."""
    for tool in ("make", CC, "pkg-config"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    dest = folder / "installed"
    quiet = {k: v for k, v in os.environ.items()
             if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD", "SAN")}
    san = ",".join(f.split("=")[1] for f in SANITIZER)
    with open(folder / "installed.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not dest.exists():
            build = folder / "installed.build"
            # Copies keep the times of files, so that make compiles nothing again.
            shutil.copytree(BUILD, build, symlinks=True, ignore=(
                lambda _, names: [n for n in names if n.startswith("test_")]))
            run("make", "-s", f"-j{os.cpu_count()}", "-C", ROOT, "install",
                f"DESTDIR={dest}.new", "PREFIX=/usr", f"CC={CC}", f"SAN={san}",
                f"BUILD={build}", env=quiet)
            shutil.rmtree(build)
            os.rename(f"{dest}.new", dest)
    return dest
