# SPDX-License-Identifier: Apache-2.0
"""The batches that test_ray.py compares. ray_trainer.py uses this under another
Python, so it needs no more than NumPy."""
import hashlib

import numpy as np

SIZE = 4
SPEC = f"order=random,batch={SIZE},seed=3,drop_last=0"
PIPELINE = {"image": "random_resized_crop(96) | gaussian_blur(9, 2) | flip | float"
            " | chw",
            "blob": "blob", "score": "score"}
OPTIONS = {"batch_size": SIZE, "seed": 3, "drop_last": False, "pad": "drop",
           "tensors": "numpy", "pipeline": PIPELINE}


def parts(value):
    """The bytes of an output, which may be ragged."""
    rows = [value] if isinstance(value, np.ndarray) else value
    return [row if isinstance(row, bytes) else np.ascontiguousarray(row).tobytes()
            for row in rows]


def digest(batch):
    """[epoch, number, SHA-256 of everything in the batch]"""
    h = hashlib.sha256()
    for name in sorted(PIPELINE):
        for part in parts(batch[name]):
            h.update(part)
    h.update(np.asarray(batch.ids).astype("<i8").tobytes())
    h.update(np.asarray(batch.valid).astype("u1").tobytes())
    return [batch.epoch, batch.number, h.hexdigest()]
