# SPDX-License-Identifier: Apache-2.0
"""Arrays with rows of their own in bytes fields, written from beton(5) and not
from the C."""
import struct

import numpy as np


def pack(a):
    """The value of a bytes field that is this array."""
    a = np.ascontiguousarray(a)
    return struct.pack(f"<8s4sI{a.ndim}Q", b"BETONARR", a.dtype.str.encode(),
                       a.ndim, *a.shape) + a.tobytes()


def rows(batch, name):
    """The rows of each sample of a dumped batch."""
    ends = batch.offsets[name]
    return [batch.outputs[name][a:b] for a, b in zip(ends, ends[1:])]
