# SPDX-License-Identifier: Apache-2.0
"""The Makefile builds the extension and the library, and this puts them into a
wheel. One wheel serves Python 3.11 and all later ones. A free-threaded Python
has no stable ABI, so its wheel serves that version alone.

The tree is that of the repository, or a source distribution, which contains the
Makefile and the C sources beside this file. BETON_BUILD is a build directory of
make to use. If AUDITWHEEL_PLAT is set, as in the images of manylinux, auditwheel
adds the libraries that libbeton needs; otherwise this does."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

import setuptools
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
IN_SDIST = (HERE / "Makefile").exists()
ROOT = HERE if IN_SDIST else HERE.parent.parent
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
LICENSE = "Apache-2.0"

# The sources of the library, from ROOT, and those of the extension, from HERE.
SOURCES = "Makefile", "fs", "include", "loader"
EXTENSION = "src",
SOURCE = re.compile(r"[A-Za-z][\w.-]*\.(?:c|h|[1-8]|html|css|map|abi)", re.ASCII)

# Tools and libraries that the build needs -> their packages in Debian.
TOOLS = {"make": "make", "pkg-config": "pkg-config"}
LIBRARIES = {"libjpeg": "libjpeg-dev", "libpng": "libpng-dev",
             "jansson": "libjansson-dev", "liblz4": "liblz4-dev"}
HEADERS = {"stdio.h": "libc6-dev", "uthash.h": "uthash-dev"}

# The libraries that libbeton needs and that a system may lack.
CARRIED = re.compile(r"^\s*(lib(?:jpeg|png16|jansson|lz4)\.\S+) => (/\S+)", re.M)


def version():
    text = (ROOT / "Makefile").read_text()
    return re.search(r"^VERSION := (\S+)$", text, re.M)[1]


def runs(*command, **how):
    try:
        return not subprocess.run(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, **how).returncode
    except OSError:
        return False


def missing_packages():
    """The Debian packages of all that the build needs and does not find."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    pkg_config = os.environ.get("PKG_CONFIG", "pkg-config")
    missing = [package for tool, package in TOOLS.items()
               if not shutil.which(pkg_config if tool == "pkg-config" else tool)]
    if not shutil.which(compiler[0]):
        missing.append("gcc")
        missing += HEADERS.values()
    else:
        missing += [package for header, package in HEADERS.items()
                    if not runs(*compiler, "-E", "-include", header, "-xc",
                                os.devnull)]
    missing += [package for name, package in LIBRARIES.items()
                if not runs(pkg_config, "--exists", name)]
    if not os.path.exists(sysconfig.get_path("include") + "/Python.h"):
        missing.append("python3-dev")
    return missing


class Build(build_ext):
    def build_extension(self, ext):
        missing = missing_packages()
        if missing:
            raise SystemExit(
                "betonfs: the build needs packages that are not installed. On "
                "Debian or Ubuntu, run:\n    apt-get install "
                + " ".join(missing))
        build = pathlib.Path(os.environ.get("BETON_BUILD") or
                             self.build_temp).resolve()
        subprocess.run(
            ["make", "-C", ROOT, f"-j{os.cpu_count()}", f"BUILD={build}",
             f"PYTHON={sys.executable}",
             f"python_tree={HERE.relative_to(ROOT)}", "python"], check=True)
        made = pathlib.Path(self.get_ext_fullpath(ext.name))
        into = made.parent.resolve()
        into.mkdir(parents=True, exist_ok=True)
        # There may be one for another interpreter beside it.
        (into / "bin").mkdir(exist_ok=True)
        for name in made.name, "libbeton.so.0", "bin/mkfs.beton":
            shutil.copy(build / "python" / "betonfs" / name, into / name)
        if not os.environ.get("AUDITWHEEL_PLAT"):
            self._carry(into)

    def _carry(self, into):
        """Copy libraries beside libbeton, where its run path finds them."""
        needs = subprocess.run(["ldd", into / "libbeton.so.0",
                                into / "bin/mkfs.beton"], check=True,
                               capture_output=True, text=True).stdout
        for name, path in CARRIED.findall(needs):
            if pathlib.Path(path).parent != into:
                shutil.copy(path, into / name)


def is_source(path):
    if path.is_symlink():
        return False
    if path.is_dir():
        return re.fullmatch(r"[a-z][a-z0-9_]*", path.name)
    return SOURCE.fullmatch(path.name)


def stray(folder, names):
    """The names that are no sources: a tree may contain notes, keys and cores."""
    return {name for name in names if not is_source(pathlib.Path(folder, name))}


class SourceDistribution(sdist):
    def finalize_options(self):
        super().finalize_options()
        # Otherwise an archive contains the name of the user who makes it.
        self.owner = self.owner or "root"
        self.group = self.group or "root"

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for top, names in (ROOT, SOURCES), (HERE, EXTENSION):
            for name in names:
                if (top / name).is_dir():
                    shutil.copytree(top / name, pathlib.Path(base_dir, name),
                                    ignore=stray, dirs_exist_ok=True)
                else:
                    shutil.copy2(top / name, base_dir)
        # The modes of the tree depend on a umask. These files are copies.
        for path in pathlib.Path(base_dir), *pathlib.Path(base_dir).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


# Expressions of SPDX are metadata since setuptools 77.
recent = int(setuptools.__version__.split(".")[0]) >= 77
setup(
    version=version(),
    ext_modules=[Extension("betonfs._beton", [],
                           py_limited_api=not FREE_THREADED)],
    cmdclass={"build_ext": Build, "sdist": SourceDistribution},
    options={} if FREE_THREADED else {
        "bdist_wheel": {"py_limited_api": "cp311"}},
    **{"license_expression" if recent else "license": LICENSE},
)
