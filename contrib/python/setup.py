# SPDX-License-Identifier: Apache-2.0
"""The Makefile builds the extension and the library; this puts them into a
wheel, with what they need beside them. BETON_BUILD names a build directory of
make's that is there already. One wheel is for all interpreters of 3.11 and
later; a free-threaded one has no stable ABI, and makes a wheel for itself."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# The libraries that libbeton needs and that a system may lack.
CARRIED = re.compile(r"^\s*(lib(?:jpeg|png16|jansson|lz4)\.\S+) => (/\S+)", re.M)


def version():
    text = (ROOT / "Makefile").read_text()
    return re.search(r"^VERSION := (\S+)$", text, re.M)[1]


class Build(build_ext):
    def build_extension(self, ext):
        build = pathlib.Path(os.environ.get("BETON_BUILD") or
                             self.build_temp).resolve()
        subprocess.run(
            ["make", "-C", ROOT, f"-j{os.cpu_count()}", f"BUILD={build}",
             f"PYTHON={sys.executable}", "python"], check=True)
        made = pathlib.Path(self.get_ext_fullpath(ext.name))
        into = made.parent.resolve()
        into.mkdir(parents=True, exist_ok=True)
        # There may be one for another interpreter beside it.
        for name in made.name, "libbeton.so.0":
            shutil.copy(build / "python" / "betonfs" / name, into)
        self._carry(into)

    def _carry(self, into):
        """Copy libraries beside libbeton, where its run path finds them."""
        needs = subprocess.run(["ldd", into / "libbeton.so.0"], check=True,
                               capture_output=True, text=True).stdout
        for name, path in CARRIED.findall(needs):
            if pathlib.Path(path).parent != into:
                shutil.copy(path, into / name)


setup(
    version=version(),
    ext_modules=[Extension("betonfs._beton", [],
                           py_limited_api=not FREE_THREADED)],
    cmdclass={"build_ext": Build},
    options={} if FREE_THREADED else {
        "bdist_wheel": {"py_limited_api": "cp311"}},
)
