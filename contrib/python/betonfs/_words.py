# SPDX-License-Identifier: Apache-2.0
"""The words of other loaders, and what they are called here."""
from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SAMPLER = ("order= chooses the order, subset= the samples, and weights= draws "
            "them as a WeightedRandomSampler does")
_RANKS = ("each rank of torch.distributed, or of RANK and WORLD_SIZE, takes its "
          "share without an argument; rank= and world_size= choose another")
_FFCV = ("betonfs.ffcv.Loader takes FFCV's arguments; here pipeline= has a "
         "text, or a dict of a text for each output")
_LAST = ("without chw in the pipeline, images are (height, width, channels), "
         "and batch.image.permute(0, 3, 1, 2) is channels_last without a copy")
_DTYPE = ("each type is an operation of the pipeline, for example float, half "
          "and bfloat16")
_SPEC = 'a key of spec=, as in spec="order=quasi_random,window=64MiB"'

# Arguments of torch's DataLoader, of FFCV's Loader and of others.
_HINTS = {
    "batch_sampler": _SAMPLER,
    "sampler": _SAMPLER,
    "replacement": _SAMPLER,
    "collate_fn": "the loader collates; transforms=[f] calls f on each batch",
    "pin_memory": 'device="cuda" returns batches on the GPU, copied there from '
                  "pinned memory; batch.pin_memory() copies a batch into such "
                  "memory",
    "pin_memory_device": 'device="cuda:0" returns batches on that GPU',
    "non_blocking": 'device="cuda" returns batches on the GPU, and nothing '
                    "waits for the copy",
    "channels_last": _LAST,
    "memory_format": _LAST,
    "dtype": _DTYPE,
    "bfloat16": _DTYPE,
    "persistent_workers": "the threads stay until the loader is closed; leave "
                          "it out",
    "worker_init_fn": "workers= are threads without Python; transforms=[f] "
                      "calls f on each batch",
    "multiprocessing_context": "workers= are threads; leave it out",
    "timeout": "a wait can be interrupted; leave it out",
    "prefetch_factor": "prefetch= is the number of batches to prefetch",
    "batches_ahead": "prefetch= is the number of batches to prefetch",
    "distributed": _RANKS,
    "num_replicas": _RANKS,
    "os_cache": 'cache="os" is os_cache=True, cache="process" is '
                "os_cache=False",
    "bucket": 'a key of spec=, as in spec="bucket=256"',
    "max_tokens": "an operation cuts a batch to N tokens, as in "
                  'pipeline={"tokens": "tokens | pack(N)"}; lengths= makes '
                  "batches of similar lengths",
    "window": _SPEC,
    "block": _SPEC,
    "transform": "pipeline= has operations of the loader, and "
                 "transforms=[f] calls f on each batch",
    "target_transform": 'pipeline={"label": ...} has operations on a field, '
                        "and transforms=[f] calls f on each batch",
    "pipelines": _FFCV,
    "custom_fields": _FFCV,
    "order_kwargs": _FFCV,
    "recompile": _FFCV,
    "indices": "subset= lists the numbers of samples",
    "fname": "path= is the file, or the dataset on a mount",
    "root": "path= is the file, or the dataset on a mount",
    "dataset": "path= is the file, or the dataset on a mount",
    "epochs": "each iter(loader) is one epoch",
}


# Attributes of torch's DataLoader and of others that have no one name here.
LOADER_ATTRIBUTES = {
    "sampler": "loader.set_epoch(epoch) is sampler.set_epoch(epoch), and each "
               "iter(loader) is the next epoch without it; "
               "load_state_dict(state) resumes after batches that "
               "skip_first_batches() would skip. In the Trainer of "
               "transformers, set ignore_data_skip=True, and load the state in "
               "get_train_dataloader()",
    "collate_fn": "transforms=[f] calls f on each batch",
    "num_workers": 'loader.stats()["workers"] has the number of threads',
    "drop_last": "loader.spec has it",
    "device": "loader.outputs has the outputs' devices",
    "pin_memory": 'device="cuda" copies from pinned memory',
    "reset": "each iter(loader) begins an epoch; set_epoch(0) goes back",
    "shuffle": 'loader.spec has the order; order="random" is shuffled',
    "fields": "loader.dataset.fields has them, loader.outputs the outputs",
    "next": "iterate: for batch in loader, or next(iter(loader))",
}


def nearest(word: str, words: Iterable[str]) -> str:
    """Return "; did you mean `WORD'?", or "" if nothing is near."""
    found = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean `{found[0]}'?" if found else ""


# Arguments of FFCV's DatasetWriter and of other writers.
_WRITER_HINTS = {
    "write_mode": "mode= is \"jpg\" or \"raw\"",
    "jpeg_quality": "quality= is that of JPEG, from 1 to 100",
    "compress_probability": "mode= is \"jpg\" or \"raw\"; betonfs.ffcv's "
                            "DatasetWriter takes FFCV's arguments",
    "chunksize": "workers= take samples one by one; leave it out",
    "shuffle_indices": "samples are stored in their order; torch's Subset of "
                       "shuffled indices has another",
    "num_samples": "length= is the most samples that are taken",
}

_MERGE_HINTS = {
    "append": "overwrite=True appends if path is also the first of the sources",
    "files": "sources= lists the files",
    "paths": "sources= lists the files",
    "out": "path= is the new file",
    "output": "path= is the new file",
    "workers": "files are copied, not encoded; leave it out",
}

_CALLS = {"Loader": _HINTS, "write": _WRITER_HINTS, "merge": _MERGE_HINTS}


def _unknown(call: str, name: str, known: Iterable[str]) -> TypeError:
    hint = _CALLS.get(call, {}).get(name)
    return TypeError(f"{call}() has no argument {name}="
                     + (f": {hint}" if hint else nearest(name, known)))


def known_words(call: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate the function of a call: its TypeError for an argument that it
    has not names our word for it."""
    def of(function: Callable[_P, _R]) -> Callable[_P, _R]:
        known = [name for name in inspect.signature(function).parameters
                 if name != "self"]

        @functools.wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for name in kwargs:
                if name not in known:
                    raise _unknown(call, name, known)
            return function(*args, **kwargs)

        return checked
    return of


explained = known_words("Loader")


def either(ours: str, value: object, theirs: str, other: object) -> None:
    """Raise TypeError if both of two words for the same are given."""
    if value is not None and other is not None:
        raise TypeError(f"{theirs}= is another word for {ours}=: give one of "
                        "them")
