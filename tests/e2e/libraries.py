# SPDX-License-Identifier: Apache-2.0
"""Python libraries that read sources for mkfs.beton. SOURCES_PYTHON names an
interpreter that has pyarrow, h5py, lmdb, mosaicml-streaming, litdata and tfrecord."""
import functools
import os
import subprocess
import sys

import pytest

from dumped import BUILD

PYTHON = os.environ.get("SOURCES_PYTHON", sys.executable)
PACKAGE = os.environ.get("BETON_PACKAGE", str(BUILD / "python"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": PACKAGE}


@functools.cache
def has(library):
    return not subprocess.run([PYTHON, "-c", f"import {library}"],
                              capture_output=True, env=ENVIRONMENT).returncode


def need(*libraries):
    """Skips a test if the interpreter lacks the package of betonfs or one of these
    libraries."""
    for library in ("betonfs", *libraries):
        if not has(library):
            pytest.skip(f"{PYTHON} has no {library} "
                        "(SOURCES_PYTHON may name one that has it)")
