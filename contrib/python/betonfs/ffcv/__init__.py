# SPDX-License-Identifier: Apache-2.0
"""FFCV's own names, on betonfs: scripts of FFCV's run when they import

    import betonfs.ffcv as ffcv
    from betonfs.ffcv.loader import Loader, OrderOption
    from betonfs.ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
    from betonfs.ffcv.transforms import ToTensor, ToTorchImage

and as they are by

    python -m betonfs.ffcv train.py --epochs=16

A pipeline's beginning, as far as the library knows its operations, becomes one
compiled pass, beton-transforms(7); `loader.pipeline` shows its text. What comes
after it, which is operations of users, torch modules and functions, runs in
Python on whole batches, one after the other. Operations of users are compiled
by numba, where that is installed; those that directly follow the library's, have
no shared memory, and give the shape and dtype that they get, are run by the
loader's threads, on several batches at a time, before these are ready. Not with
`recompile`, nor after what another pipeline begins with.

What is different, and meant to be:

- Batches that are kept stay as they are: nothing is written over.
- `seed` is that of augmentation too. The same seed, epoch and sample give the
  same pixels, for any number of workers; orders are other permutations than
  FFCV's. `loader.next_epoch = 5` goes on with the sixth epoch.
- QUASI_RANDOM can be distributed, and is a function of seed and epoch; its
  memory is bounded.
- Ranks take whole batches in turn, of one sequence for the job.
- Operations may stand in any order: after ToTensor, NormalizeImage and the
  others still do what they do.
- `break` leaves no thread behind, and nothing is allocated or compiled anew in
  each epoch.
- filter() of a loader with `indices` gives samples of those.
- Squeeze() never takes the batch's axis; lists of operations that are given to
  a Loader are not changed, and serve for the next one.
- BytesDecoder fills rows up with zeros, not with what was there before.
- Errors of a writer's samples are raised, with their number; and what samples
  draw of global generators is each one's own, for any number of workers.
- torch's number of threads is not touched by any import.

And what cannot be had: a subclass of a field of FFCV's is written as that
field, so all programs read it, and no custom_fields are asked for; two loops at
a time need two Loaders; operations draw other random numbers than FFCV's; what
one of a user's draws by np.random depends on seed, epoch and batch alone.

A subclass of Loader or EpochIterator that replaces their parts, as avalanche
has them, gets batches that are made as FFCV makes them: by a thread that runs
all operations in Python and in compiled code. Decoders of users map the file,
that of a mount too, so it must be readable here.
"""
from __future__ import annotations

from ._aliases import add
from .loader import Loader
from .writer import DatasetWriter

add(__name__)

__version__ = "1.0.2"
__all__ = ["DatasetWriter", "Loader"]
