# SPDX-License-Identifier: Apache-2.0
"""FFCV's own names, on betonfs: scripts of FFCV's run when they import

    import betonfs.ffcv as ffcv
    from betonfs.ffcv.loader import Loader, OrderOption
    from betonfs.ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
    from betonfs.ffcv.transforms import ToTensor, ToTorchImage

and as they are by

    python -m betonfs.ffcv train.py --epochs=16

The library runs the beginning of a pipeline, up to the first operation that it
does not have, as one compiled pass, see beton-ffcv(7) and beton-operations(7).
`loader.pipeline` is the pipeline string of this pass. All later operations run
in Python on whole batches, one after the other: custom operations, torch
modules and functions. If numba is installed, it compiles custom operations.

The loader's threads run a custom operation on several batches at a time if it
directly follows the library's operations, has no shared memory, and keeps shape
and dtype. This does not hold if `recompile` is set, or if another pipeline
begins with the output of an operation before it.

Intended differences from FFCV:

- Batches that are kept stay as they are: nothing is written over.
- `seed` determines augmentation, too. The same seed, epoch and sample give the
  same pixels, for any number of workers. Orders are other permutations than
  those of FFCV. `loader.next_epoch = 5` continues with the sixth epoch.
- QUASI_RANDOM can be distributed, and is a function of seed and epoch; its
  memory is bounded.
- Ranks take whole batches in turn, of one sequence for the job.
- Operations may stand in any order: after ToTensor, NormalizeImage and the
  others still do what they do.
- `break` leaves no thread behind, and an epoch allocates and compiles nothing
  again.
- If a loader has `indices`, its filter() returns samples among them.
- Squeeze() never removes the batch's axis. A Loader does not change its lists of
  operations, so you can pass them to another Loader.
- BytesDecoder fills rows up with zeros, not with what was there before.
- Errors of a writer's samples are raised, with their number; and what samples
  draw of global generators is each one's own, for any number of workers.
- torch's number of threads is not touched by any import.

The package has four limits. A subclass of a field of FFCV is stored as that
field, so that all programs read it, and readers need no custom_fields. Two
loops at a time need two Loaders. Operations draw other random numbers than
FFCV's. Random numbers of a user's operation from np.random depend only on
seed, epoch and batch.

A subclass of Loader or EpochIterator that replaces their parts, as avalanche
has them, gets batches that are made as FFCV makes them: by a thread that runs
all operations in Python and in compiled code. Decoders of users map the file,
that of a mount too, so it must be readable here.
"""
from __future__ import annotations

import sys

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as e:
    if e.name != "torch":
        raise
    # `python -m betonfs.ffcv` imports this package first. __main__ then prints
    # the usage, or this message without a traceback.
    if sys.argv[:1] != ["-m"] or __name__ not in sys.orig_argv:
        raise ModuleNotFoundError("betonfs.ffcv needs torch: pip install torch",
                                  name="torch") from None
else:
    from ._aliases import add
    from .loader import Loader
    from .writer import DatasetWriter

    add(__name__)

__version__ = "1.0.2"
__all__ = ["DatasetWriter", "Loader"]
