# SPDX-License-Identifier: Apache-2.0
"""The command python -m betonfs.convert: mkfs.beton, with this interpreter for
the sources that Python libraries read."""
from __future__ import annotations

import os
import sys

from .._programs import program


def main() -> None:
    """Become mkfs.beton."""
    path = program("mkfs.beton")
    os.environ["BETON_PYTHON"] = sys.executable
    os.execv(path, ["mkfs.beton", *sys.argv[1:]])


if __name__ == "__main__":
    main()
