# SPDX-License-Identifier: Apache-2.0
"""The words of other loaders, and what they are called here."""
from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec

_P = ParamSpec("_P")

_SAMPLER = ("order= chooses the order, subset= the samples, and weights= draws "
            "them as a WeightedRandomSampler does")
_RANKS = ("each rank of torch.distributed, or of RANK and WORLD_SIZE, takes its "
          "share without an argument; rank= and world= choose another")
_FFCV = ("betonfs.ffcv.Loader takes FFCV's arguments; here pipeline= has a "
         "text, or a dict of a text for each output")
_SPEC = 'a key of spec=, as in spec="order=quasi_random,window=64MiB"'

# Arguments of torch's DataLoader, of FFCV's Loader and of others.
_HINTS = {
    "batch_sampler": _SAMPLER,
    "sampler": _SAMPLER,
    "replacement": _SAMPLER,
    "collate_fn": "the loader collates; transforms=[f] calls f on each batch",
    "pin_memory": 'device="cuda" returns batches on the GPU, copied there from '
                  "pinned memory",
    "pin_memory_device": 'device="cuda:0" returns batches on that GPU',
    "persistent_workers": "the threads stay until the loader is closed; leave "
                          "it out",
    "worker_init_fn": "workers= are threads without Python; transforms=[f] "
                      "calls f on each batch",
    "multiprocessing_context": "workers= are threads; leave it out",
    "timeout": "a wait can be interrupted; leave it out",
    "prefetch_factor": "prefetch= is the number of batches made ahead",
    "batches_ahead": "prefetch= is the number of batches made ahead",
    "distributed": _RANKS,
    "num_replicas": _RANKS,
    "world_size": _RANKS,
    "os_cache": 'cache="os" is os_cache=True, cache="process" is '
                "os_cache=False",
    "window": _SPEC,
    "block": _SPEC,
    "draws": "num_samples= is the number of samples drawn for an epoch",
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


def nearest(word: str, words: Iterable[str]) -> str:
    """Return "; did you mean `WORD'?", or "" if nothing is near."""
    found = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean `{found[0]}'?" if found else ""


def _unknown(name: str, known: Iterable[str]) -> TypeError:
    hint = _HINTS.get(name)
    return TypeError(f"Loader() has no argument {name}="
                     + (f": {hint}" if hint else nearest(name, known)))


def explained(init: Callable[_P, None]) -> Callable[_P, None]:
    """Return the function with a TypeError that names our word for an argument
    that it has not."""
    known = [name for name in inspect.signature(init).parameters
             if name != "self"]

    @functools.wraps(init)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> None:
        for name in kwargs:
            if name not in known:
                raise _unknown(name, known)
        init(*args, **kwargs)

    return checked


def either(ours: str, value: object, theirs: str, other: object) -> None:
    """Raise TypeError if both of two words for the same are given."""
    if value is not None and other is not None:
        raise TypeError(f"{theirs}= is another word for {ours}=: give one of "
                        "them")
