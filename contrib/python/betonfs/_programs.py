# SPDX-License-Identifier: Apache-2.0
"""The programs of betonfs."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys

_OWN = pathlib.Path(__file__).parent / "bin"


def program(name: str) -> str:
    """The path of a program: that of this package, or of PATH. If there is none,
    exit with a message."""
    own = _OWN / name
    found = os.fspath(own) if os.access(own, os.X_OK) else shutil.which(name)
    if found is None:
        sys.exit(f"betonfs: there is no program {name}: build and install it "
                 "with make install, or install this package from the source "
                 "tree with pip install ./contrib/python")
    return found
