# SPDX-License-Identifier: Apache-2.0
"""The Python package of the build, or of the directory in BETON_PACKAGE. A
module that imports this one can import betonfs; without the package its tests
are skipped."""
import contextlib
import os
import pathlib
import re
import sys

import numpy as np
import pytest

from dumped import BUILD

PACKAGE = pathlib.Path(os.environ.get("BETON_PACKAGE", BUILD / "python"))

if re.search(b"__[at]san_init", (BUILD / "libbeton.so").read_bytes()):
    pytest.skip("python has no sanitizer", allow_module_level=True)
if not list(PACKAGE.glob("betonfs/_beton*.so")):
    pytest.skip("the package needs Python 3.11 or later, with its headers",
                allow_module_level=True)
sys.path.insert(0, str(PACKAGE))

import betonfs  # noqa: E402


@contextlib.contextmanager
def opener(path, **usual):
    """Opens loaders, of this path and with these options unless it is given
    others, and closes them."""
    with contextlib.ExitStack() as opened:
        def open_one(path=path, **options):
            return opened.enter_context(
                betonfs.Loader(path, **{**usual, **options}))
        yield open_one


def snapshot(batch):
    """A copy of all that is in it."""
    def copy(v):
        if isinstance(v, betonfs.Ragged):
            return tuple(v), v.data.tobytes(), v.offsets.tobytes()
        return v.dtype.str, v.shape, v.tobytes()
    values = batch.items() if isinstance(batch, dict) else \
        zip(batch._names, batch)
    return (batch.epoch, batch.number, batch.ids.tolist(),
            batch.valid.tolist(), {k: copy(v) for k, v in values})


def same(a, b):
    return a.keys() == b.keys() and all(
        np.array_equal(a[k], b[k]) for k in a)
