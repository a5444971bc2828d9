# SPDX-License-Identifier: Apache-2.0
"""An interpreter that has the real FFCV, and what it reads of a dataset."""
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")
# Arguments: file, cache, order, and the .npz for an array per field.
READ = """
import sys
import numpy as np
from ffcv.loader import Loader, OrderOption
from ffcv.reader import Reader

path, cache, order, out = sys.argv[1:]
loader = Loader(path, batch_size=7, num_workers=1, os_cache=cache == "os",
                order=getattr(OrderOption, order), drop_last=False, seed=1)
batches = [[x.numpy().copy() for x in batch] for batch in loader]
names = list(Reader(path).field_names)
np.savez(out, **{n: np.concatenate([b[i] for b in batches])
                 for i, n in enumerate(names)})
"""


@pytest.fixture(scope="module")
def python():
    """A Python that can import ffcv. Its numba needs its directory in PATH."""
    exe = os.environ.get("FFCV_PYTHON", sys.executable)
    if not shutil.which(exe):
        pytest.skip("FFCV_PYTHON=%s is not there" % exe)
    r = subprocess.run([exe, "-c", "import ffcv.loader"], capture_output=True)
    if r.returncode:
        pytest.skip("%s cannot import ffcv (set FFCV_PYTHON)" % exe)
    return exe


def photo(i):
    rng = np.random.default_rng(i)
    few = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(few).resize((48, 32), Image.BICUBIC)
