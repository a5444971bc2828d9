# SPDX-License-Identifier: Apache-2.0
"""python -m betonfs.ffcv SCRIPT [ARGUMENTS]: runs a script of FFCV's with this
package instead."""
from __future__ import annotations

import os
import runpy
import sys

from ._aliases import install

USAGE = "usage: python -m betonfs.ffcv SCRIPT [ARGUMENT...]\n" \
        "       python -m betonfs.ffcv -m MODULE [ARGUMENT...]\n" \
        "Run a script or module that imports ffcv with betonfs instead.\n"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return
    as_module = arguments[:1] == ["-m"]
    if as_module:
        del arguments[0]
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write(USAGE)
        sys.exit(2)
    if not hasattr(sys.modules[str(__package__)], "Loader"):
        sys.exit("betonfs.ffcv needs torch: pip install torch")
    sys.argv = arguments
    if not as_module and not sys.flags.safe_path:
        # For a script, sys.path begins with the script's directory.
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    install()
    if as_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
