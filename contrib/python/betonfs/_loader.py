# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import inspect
import json
import logging
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from . import _beton, _tensors
from ._batch import Maker
from ._checks import public, shown, truth
from ._dataset import (Dataset, Path, SampleSequence, class_names, field_facts,
                       path_text, reopen_dataset)
from ._epochs import Epochs
from ._errors import BetonError, explain, make
from ._options import (Storage, Subset, SubsetFile, batch_size_of, device_text,
                       length_array, seed_of, spec_keys, spec_text, storage_text,
                       tell_ignored, why_empty)
from ._pipeline import Pipeline, pipeline_text, tell_mistakes
from ._pool import Pool
from ._ranks import (check_caller, check_place, place, warn_of_disagreement,
                     worker_place)
from ._show import ROWS, Shown
from ._torchvision import tell_torchvision
from ._words import LOADER_ATTRIBUTES, either, explained

_log = logging.getLogger("betonfs")
_ERROR = 0
_ON_ERROR = ("raise", "skip", "zero")
_SYNTHETIC = "synthetic"      # source of a state of synthetic data
_PADS = ("repeat", "drop")


def _choice(name: str, value: object, words: Sequence[str]) -> int:
    if name == "batch" and isinstance(value, int):
        raise ValueError(f"batch={value}: batch_size={value} is the number of "
                         "samples; batch= is " + " or ".join(words))
    if value not in words:
        raise ValueError(f"{name}={value!r}: there are " + ", ".join(words))
    return words.index(str(value))


def _name_of(function: object) -> str:
    return getattr(function, "__name__", "") or repr(function)


def _check_function(f: object) -> None:
    if not callable(f):
        raise TypeError(f"transforms: {shown(f)} is no function of a batch; "
                        "an operation is of pipeline=")
    if isinstance(f, type) and any("__call__" in c.__dict__ for c in f.__mro__):
        raise TypeError(f"transforms: {_name_of(f)} is a class: give an object "
                        f"of it, as {_name_of(f)}()")
    if inspect.iscoroutinefunction(f):
        raise TypeError(f"transforms: {_name_of(f)} is an async function, "
                        "which no loop waits for: give a plain one")


def _functions(transforms: object) -> tuple[Callable[[Any], Any], ...]:
    if transforms is None:
        return ()
    if isinstance(transforms, Mapping):
        raise TypeError("transforms: a dict of " + ", ".join(transforms)
                        + "; it is a list of functions of a batch, and "
                        "pipeline= takes a dict by output")
    if isinstance(transforms, str) or not (
            callable(transforms) or isinstance(transforms, Iterable)):
        raise TypeError(f"transforms={shown(transforms)}: a list of functions "
                        "of a batch; an operation is of pipeline=")
    given = transforms if isinstance(transforms, Iterable) else (transforms,)
    for f in given:
        _check_function(f)
    if given is not transforms:
        raise TypeError("transforms is a list of functions: "
                        f"transforms=[{_name_of(transforms)}]")
    return tuple(given)


def _lengths(path: str, lengths: str | ArrayLike | None,
             storage: str | None) -> Any:
    """Return the lengths by which to sort the samples, one for each."""
    if lengths is None:
        return None
    if isinstance(lengths, str):
        try:
            return Dataset(path, storage_options=storage).sizes(lengths)
        except (KeyError, ValueError) as e:
            raise ValueError(f"lengths={lengths!r}: {e.args[0]}") from None
    return length_array(lengths)


def _register() -> None:
    """Register Loader as an IterableDataset, so that
    DataLoader(loader, batch_size=None) accepts it."""
    data = sys.modules.get("torch.utils.data")
    if data is not None:
        data.IterableDataset.register(Loader)


def _teller(on_error: str,
            known: Collection[str]) -> Callable[[int, str], None]:
    """Return the function that logs the library's messages, except those that
    contain a `known` reason. It must not refer to the loader, so that the loader
    ends with its last reference."""
    def tell(level: int, text: str) -> None:
        # Do not log an error that is raised.
        if (level != _ERROR or on_error != "raise") \
                and not any(reason in text for reason in known):
            _log.warning("%s", text)
    return tell


# Arguments that you cannot change after the open.
_FIXED = frozenset(("drop_last", "epoch", "order", "pipeline", "seed", "subset",
                    "transforms", "weights"))


class Loader(Epochs):
    """Iterate over batches of tensors from a dataset FILE, or from a dataset on
    a MOUNT of betonfs. Both give the same bytes.

        loader = betonfs.Loader("train.beton", batch_size=256, pipeline={
            "image": "random_resized_crop(224) | flip | float | chw",
            "label": "label"})
        for batch in loader:
            train(batch["image"], batch["label"])

    Each ``iter(loader)`` is one epoch: the next one, the epoch that you passed
    to :meth:`set_epoch`, or the rest of the epoch that you restored by
    :meth:`load_state_dict`. The same seed gives the same batches, for any
    number of workers, ranks or machines.

    Parameters
    ----------
    path
        The ``.beton`` file, its URL as in beton-remote(7), or the directory of
        a dataset on a mount. A list of files with the same fields, or a pattern
        such as "train-*.beton", is one dataset. The order of its files is that
        of betonfs(8).
    batch_size
        Samples per batch (default: 256).
    order
        "random", "sequential", "quasi_random", "bucketed" or "weighted", see
        beton-orders(7) (default: "random").
    seed
        A whole number. It determines the order and all random operations
        (default: 0).
    drop_last
        True: leave out the last batch if it is short (default: True).
    subset
        The samples to load (default: all): a range "A-B", a list or array of
        sample numbers, a mask with a bool for each sample, a torch Subset, the
        "NAME" of a subset of the mount, or "NAME:FILE". If a list contains a
        number twice, an epoch contains that sample twice. Lists, `weights` and
        `lengths` need the dataset's file, or a mount that already has the
        list: mount the dataset with ``-o subset=NAME:FILE``, see beton-orders(7),
        and pass subset="NAME". Ranges work on every mount.
    train
        False: load for validation. Then the defaults are order="sequential",
        drop_last=False and pad="drop".
    pad
        If drop_last is False, the number of batches may not be a multiple of
        the number of ranks. "drop": all ranks together get each sample once,
        and a rank may get one batch less than others. "repeat": all ranks get
        the same number of batches; some of the last ones repeat samples, for
        which ``batch.valid`` is False.
    weights, num_samples
        Draw samples with replacement. `weights` has a number from 0 for each
        sample of the dataset, or of the subset. An epoch has `num_samples`
        samples (default: the number of weights). The drawn samples depend on
        seed and epoch alone. On a mount, a subset can contain the weights: use
        order="weighted", subset="NAME".
    lengths
        Make batches of similar lengths, so that they need little padding
        (order="bucketed"). `lengths` is one number for each sample, or the name
        of a field whose stored sizes are the lengths; the loader reads no value
        for that. The keys `bucket` and `batch` of the spec determine how
        similar the lengths of a batch are.
    spec
        More keys of the sampling spec, for example
        "order=quasi_random,window=64MiB", see beton-orders(7).
    pipeline
        The operations on each field, see beton-operations(7). Pass a dict of
        one pipeline string per output, for example
        ``{"image": "random_resized_crop(224) | flip"}``. A string that does not
        begin with a field applies to the field of the output's name. Fields
        that the dict does not name are not decoded. Otherwise pass one string:
        fields that it does not name become outputs as stored, unless it drops
        them, as in ``image | drop``. A list of strings is joined by ``|``.
        (default: None, all fields as stored)
    device
        "cuda", "cuda:N" or N: put all outputs but bytes and JSON into the
        memory of that GPU. If an output has no `cuda(N)` in its pipeline, the
        complete output is copied there. Operations after `| cuda(N)` run on the
        GPU. If there is no driver or no such GPU, this raises BetonError. If
        NVRTC is missing, the CPU runs these operations, and Python issues a
        warning (default: the pipeline decides).
    workers
        Threads that decode (default: 0, one per usable CPU).
    rank, world_size
        The number of this process, from 0, and the number of processes of the
        job. By default they come from torch.distributed if it is initialized,
        otherwise from RANK and WORLD_SIZE of the environment. In a DataLoader,
        each worker takes its share.
    on_error
        On a sample that cannot be read: "raise" a BetonError, "skip" it (the
        sample is zero, and ``batch.valid`` is False for it), or deliver "zero"
        (``batch.valid`` is True) (default: "raise"). "skip" and "zero" are for
        samples: if a server fails or the dataset was replaced, and 128 samples
        in a row, or all of an epoch, cannot be read, this raises BetonError,
        too. The following ``next()`` continues after that batch.
    prefetch
        Number of batches to prefetch (default: 0, which means 2, or for large
        batches one and the beginning of another).
    transforms
        Functions that take a batch and return a batch, in the order of their
        calls. If one returns None, iterating raises TypeError. If the first
        ones come from :func:`compiled`, the loader's threads call them on
        several batches at a time before you request these. Your thread calls
        the others.
    tensors
        "torch", "numpy", "jax", "cupy", "dlpack" (objects for any
        `from_dlpack()`), or "auto": torch if it is installed, otherwise numpy
        (default: "auto"). Unless you set jax_enable_x64, jax converts 64 bits
        to 32, in a copy. For outputs of bfloat16, numpy needs the package
        ml_dtypes.
    batch
        "dict" (:class:`Batch`), or "tuple" for
        ``for images, labels in loader`` (default: "dict").
    epoch
        The first epoch (default: 0).
    shuffle, num_workers, generator
        torch's names: the order "random" or "sequential", `workers`, and the
        seed. For other names, such as `collate_fn`, the TypeError contains the
        betonfs name.
    cache, cache_size, cold_size, delivery, job, source, pinned
        As in <beton/loader.h>. `cache` is "auto", "os" or "process", and the
        sizes are in bytes. `delivery` selects how the batches of a MOUNT
        arrive. `job` is the job's name for the daemon. `source` selects
        synthetic data for measuring: "constant", "memory" or "synthetic(...)",
        see beton-synthetic(7). `pinned` limits the pinned memory for a GPU, in
        bytes.
    verify
        Compare all bytes that are read from a FILE with the checksums in
        FILE.sums, which ``fsck.beton --sums FILE`` makes. Samples in a damaged
        part of the file fail; `on_error` selects how. A MOUNT must have been mounted
        with ``-o verify`` (default: False).
    storage_options
        How a URL is read: a dict or a text of the storage options of
        betonfs(8), such as {"disk": "/var/cache/beton", "connections": 32}.
        Credentials are no options: they come from the environment and from
        ~/.aws, see beton-remote(7). Options that are not given come from
        BETON_STORAGE_OPTIONS. Local files ignore them (default: None).
    on_demand
        Make only the batches that :meth:`batch` asks for, and none in advance.
        Iterating raises ValueError (default: False).

    Raises
    ------
    ValueError
        The spec, the pipeline or an option is wrong, or no epoch has a batch.
        The message contains the position of the mistake and a fix.
    TypeError
        An argument has a wrong type, or numpy lacks the type of an output.
    BetonError
        An OSError: there is no such dataset, it cannot be read, or it is
        damaged.

    Examples
    --------
    ::

        train = betonfs.Loader("train.beton", 256, pipeline={
            "image": "random_resized_crop(224) | flip | normalize(imagenet)"
                     " | float | chw", "label": "label"})
        val = betonfs.Loader("val.beton", 256, train=False, pipeline={
            "image": "center_crop(224) | normalize(imagenet) | float | chw",
            "label": "label"})

    Notes
    -----
    You own the memory of a batch as long as the batch or any of its tensors
    lives. After that the loader uses it again.

    While you wait for a batch, other Python threads run, signals interrupt the
    wait, and the logger "betonfs" receives warnings, for example of a server
    that does not answer. One thread at a time uses a loader, and others block.
    Closing or collecting the loader ends its threads. After ``break``, all
    threads are idle. If you take no batch for a second, or for twice your usual
    time, the memory of prefetched batches goes back to the system, and the next
    ``next()`` makes them again.

    A child of fork() cannot use the loader of its parent, and gets a
    RuntimeError. Therefore open it in the child, or start processes by spawn. A
    loader pickles as its arguments and its position.

    On a GPU, torch's tensors are complete on the stream that is current when
    you take the batch. The loader uses their memory again after the work of
    that stream. If you read a tensor on a side stream, first let the side
    stream wait: ``side.wait_stream(main)``. Before you drop the batch, call
    ``main.wait_stream(side)``. `record_stream()` has no effect. If tensors is
    "dlpack", `from_dlpack()` orders the stream that is current when you call
    it.
    """

    # enum beton_role of <beton/loader.h>, and the trainer's spare_workers.
    _role = 0
    _spare_workers = False
    _known: Collection[str] = ()    # reasons that are not logged
    _place = staticmethod(place)

    @explained
    def __init__(
        self,
        path: Path | Sequence[Path],
        batch_size: int | None = None,
        order: str | None = None,
        seed: int | None = None,
        pipeline: Pipeline | None = None,
        *,
        train: bool = True,
        drop_last: bool | None = None,
        pad: str | None = None,
        subset: Subset | None = None,
        weights: ArrayLike | None = None,
        num_samples: int | None = None,
        lengths: str | ArrayLike | None = None,
        spec: str | None = None,
        device: Any = None,
        workers: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        on_error: str = "raise",
        prefetch: int = 0,
        transforms: Sequence[Callable[[Any], Any]] = (),
        tensors: str = "auto",
        batch: str = "dict",
        epoch: int = 0,
        cache: str | None = None,
        cache_size: int = 0,
        cold_size: int = 0,
        delivery: str | None = None,
        job: str | None = None,
        source: str | None = None,
        pinned: int = 0,
        verify: bool = False,
        storage_options: Storage | None = None,
        on_demand: bool = False,
        shuffle: bool | None = None,
        num_workers: int | None = None,
        generator: Any = None,
    ) -> None:
        if isinstance(subset, Iterator):
            subset = list(subset)   # it is read again where this is reopened
        either("seed", seed, "generator", generator)
        either("order", order, "shuffle", shuffle)
        either("workers", workers or None, "num_workers", num_workers)
        if generator is not None:
            seed, generator = seed_of(generator), None
        arguments = dict(locals())
        del arguments["self"]
        self._arguments = arguments
        self.path = path_text(path)
        self._storage = storage_text(storage_options)
        self._pid = os.getpid()
        self.rank, self.world_size = self._place(rank, world_size)
        as_tuple = _choice("batch", batch, ("dict", "tuple")) == 1
        error = _choice("on_error", on_error, _ON_ERROR)
        self.tensors = _tensors.choose(tensors)
        convert = _tensors.converter(self.tensors)
        if shuffle is not None:
            order = "random" if truth("shuffle", shuffle) else "sequential"
        if weights is not None and order is None:
            order = "weighted"
        if order == "weighted" and weights is None and subset is None \
                and "subset" not in spec_keys(spec):
            raise ValueError('order="weighted" takes weights=, one for each '
                             "sample; a subset with a name may be a list with "
                             "weights")
        if order != "weighted" and (weights is not None
                                    or num_samples is not None):
            raise ValueError("weights= and num_samples= are for "
                             "order=\"weighted\", which weights= chooses "
                             f"unless order= is given, here order={order!r}")
        if lengths is not None and order is None:
            order = "bucketed"
        if order == "bucketed" and lengths is None and subset is None \
                and "subset" not in spec_keys(spec):
            raise ValueError('order="bucketed" takes lengths=, a field or one '
                             "number for each sample; without them, batches "
                             "have neighbors of the file; a subset with a "
                             "name may be a list by length")
        if lengths is not None and order != "bucketed":
            raise ValueError("lengths= are for order=\"bucketed\", which they "
                             f"choose unless order= is given, here {order!r}")
        if not truth("train", train):
            given = spec_keys(spec)
            if order is None and "order" not in given:
                order = "sequential"
            if drop_last is None and "drop_last" not in given:
                drop_last = False
        pads = _choice("pad", ("repeat" if train else "drop")
                       if pad is None else pad, _PADS)
        self.transforms = _functions(transforms)
        self._pool = Pool(self.transforms)
        with SubsetFile(subset, weights, _lengths(self.path, lengths, self._storage)) as part:
            self._core = self._open(
                part,
                spec=spec_text(spec, order=order, batch=batch_size, seed=seed,
                               drop_last=drop_last, num_samples=num_samples,
                               subset=part.key),
                subset=part.file, device=device_text(device),
                source=source, cache=cache, delivery=delivery, job=job,
                cache_size=cache_size, cold_size=cold_size, pinned=pinned, verify=verify,
                storage_options=self._storage,
                on_demand=truth("on_demand", on_demand), epoch=epoch, prefetch=prefetch, rank=self.rank,
                workers=workers if num_workers is None else num_workers,
                world_size=self.world_size, on_error=error, no_padding=pads == 1,
                callback=self._pool.numba is not None)
        self._no_padding = pads == 1
        self._ids = part.ids
        self._outputs = self._core.outputs()
        self._devices = {o["device_id"] for o in self._outputs
                         if o["device_type"] != _tensors.CPU}
        self._maker = Maker(tuple(o["name"] for o in self._outputs),
                            tuple(o["is_list"] for o in self._outputs)
                            if any(o["ragged"] for o in self._outputs) else (),
                            convert, as_tuple, public(self.path))
        # Also close the loaders when the program ends.
        self._finalizer = weakref.finalize(self, self._core.close)
        tell_ignored(spec, self.spec)
        tell_mistakes(self._text, bool(train), self._outputs)
        tell_torchvision(self.transforms, self._outputs)
        if rank is None:
            warn_of_disagreement(self.rank, self.state_dict()["fingerprint"],
                                 self.spec)
        _register()
        self._core.tell()

    def _open(self, part: SubsetFile, **options: Any) -> _beton.Loader:
        try:
            self._text = pipeline_text(self._arguments["pipeline"], self.path,
                                       self._storage)
            core = _beton.Loader(self.path, pipeline=self._text,
                                 role=self._role,
                                 spare_workers=self._spare_workers,
                                 tell=_teller(self._arguments["on_error"],
                                              self._known),
                                 **options)
        except ValueError as e:
            raise ValueError(part.named(str(e))) from None
        except BetonError as e:
            text = e.strerror or ""
            if part.named(text) == text:
                raise explain(e, self.path) from None
            raise make(e.errno or errno.EIO, part.named(text)) from None
        try:
            self._check(core, part)
            _tensors.check_types(self.tensors, core.outputs())
        except (TypeError, ValueError):
            core.close()
            raise
        return core

    def _check(self, core: _beton.Loader, part: SubsetFile) -> None:
        info, state = core.info(), json.loads(core.state())
        part.check(info["samples"], None if state.get("source") == _SYNTHETIC
                   else state["fingerprint"])
        empty = not info["batches"] or \
            not info["steps"] and "drop_last=1" in info["spec"]
        if empty:
            given = None if part.ids is None else len(part.ids)
            self._refuse_empty(f"{public(self.path)}: " + why_empty(
                info["spec"], info["samples"], given, info["batches"],
                self.world_size))

    def _refuse_empty(self, why: str) -> None:
        raise ValueError(why)

    # --- batches ---

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_core" in self.__dict__:
            raise AttributeError(
                f"a Loader's {name} cannot change: "
                + ("loader.set_epoch(epoch) sets it" if name == "epoch" else
                   f"open another one with {name}={shown(value)}"))
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self._pid != os.getpid() and worker_place():
            raise RuntimeError("this Loader has threads, which do not follow "
                               "it into a worker of a DataLoader: give the "
                               "DataLoader num_workers=0")
        check_place(self._arguments.get("rank"), self.world_size)
        check_caller(self.world_size)
        self._pool.start(self._core)
        return self._iteration(self._core.begin_epoch())

    def _begin(self) -> int:
        """Let the new iterator start at the current position."""
        self._pool.start(self._core)
        return self._core.begin()

    def __len__(self) -> int:
        """Batches of this rank in a whole epoch."""
        return int(self._core.info()["steps"])

    def _stream(self) -> int | None:
        """On which outputs in a GPU's memory are waited for."""
        if self._devices and self.tensors == "torch":
            torch = sys.modules["torch"]
            device, = self._devices
            return int(torch.cuda.current_stream(device).cuda_stream)
        return None

    def _next(self, turn: int) -> Any:
        core = self._core
        try:
            raw = core.next(self._stream() if self._devices else None, turn)
        finally:
            if core.has_messages:
                core.tell()
        return None if raw is None else self._finish(raw)

    def _finish(self, raw: Any) -> Any:
        batch: Any = self._maker.make(raw)
        for call in self._pool.calls:
            batch = call(batch)
            if batch is None:
                raise TypeError(f"{_name_of(call)}() of transforms= returned "
                                "None: what it returns is the batch, so end "
                                "it with `return batch`")
        return batch

    def batch(self, epoch: int, number: int) -> Any:
        """Make the batch of this number, from 0, in the epoch's sequence of all
        ranks, which has ``loader.batches`` batches. The batch is bit for bit
        the one that iterating delivers under this name, on any rank. The
        position of the loader does not change.

            batch = loader.batch(epoch=3, number=17)
        """
        self._pool.start(self._core)
        try:
            raw = self._core.make(epoch, number,
                                  self._stream() if self._devices else None)
        finally:
            if self._core.has_messages:
                self._core.tell()
        return self._finish(raw)

    # --- its place ---

    def _upcoming(self) -> int:
        """The epoch of the next batch, also between two epochs."""
        state = self.state_dict()
        over = state["batches"] >= self._core.info()["batches"]
        return int(state["epoch"]) + int(over)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration. The iteration starts at the
        epoch's beginning. If you loaded a state of this epoch, it continues
        there. An iterator that has delivered batches ends, and one that has
        delivered none follows."""
        untouched = self._untouched()
        # This ends a running iteration, so that the position stays the same.
        turn = self._core.begin()
        if not self._core.is_fresh() or self._upcoming() != epoch:
            turn = self._core.seek(epoch)
        if untouched:
            untouched._turn = turn

    def state_dict(self) -> dict[str, Any]:
        """Return the position as a small dict of strings and numbers, for a
        checkpoint. It counts the batches that your loop received, and is the
        same on all ranks."""
        state: dict[str, Any] = json.loads(self._core.state())
        state["pipeline"] = self._text or ""
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a checkpoint: the next iteration begins after the last
        batch that the state counts. The numbers of workers and ranks may differ
        from those of the checkpoint.

        Raises ValueError if the state belongs to another dataset or spec. Warns
        if it belongs to another pipeline, because that changes no order.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"{shown(state)} is no state: give what "
                            "state_dict() returned")
        own = dict(state)
        for key in ("version", "fingerprint", "spec", "epoch", "batches"):
            if key not in own:
                raise ValueError(f"no loader's state: it has no {key!r}; give "
                                 "what state_dict() returned")
        text = own.pop("pipeline", None)
        try:
            self._core.load(json.dumps(own, default=int))
        except BetonError as e:
            if e.errno == errno.ESTALE:
                raise ValueError(e.strerror) from None
            raise
        if text is not None and text != (self._text or ""):
            warnings.warn(f"the state is of pipeline {text!r}, the loader's is "
                          f"{self._text or ''!r}: the same samples come, and "
                          "tensors may be others", UserWarning, stacklevel=2)

    @property
    def step(self) -> int:
        """Index of the next batch in its epoch on this rank, from 0. After
        :meth:`load_state_dict` it counts steps of the present world size, so
        it continues the count of a run on fewer or more ranks:

            for step, batch in enumerate(loader, loader.step):
                train(batch)
        """
        info, state = self._core.info(), self.state_dict()
        left: int = info["batches"] - state["batches"]
        if left <= 0:
            return 0
        if "drop_last=1" in info["spec"]:
            left //= self.world_size
        else:
            first = self.rank if self._no_padding else 0
            left = max(0, -((first - left) // self.world_size))
        return int(info["steps"]) - left

    # --- facts ---

    @property
    def batches(self) -> int:
        """Number of batches in the sequence of all ranks of an epoch."""
        return int(self._core.info()["batches"])

    @property
    def batch_size(self) -> int:
        """Number of samples in a complete batch."""
        return batch_size_of(self.spec)

    @property
    def dataset(self) -> Dataset | Samples:
        """Single samples of an epoch. This is a :class:`Dataset`, or its part
        if `subset` is a list of sample numbers. A named subset and synthetic
        data raise AttributeError."""
        state = self.state_dict()
        if state.get("source") == _SYNTHETIC:
            raise AttributeError("synthetic data has no samples one by one")
        dataset = reopen_dataset(state["fingerprint"], self.path, None, None,
                                 None, self._storage)
        if self._ids is not None:
            return Samples(dataset, self._ids)
        if "subset=" in self.spec:
            raise AttributeError("the samples of a named subset are in its "
                                 "file")
        return dataset

    @property
    def classes(self) -> list[str]:
        """Names of the classes by label, as in Dataset.classes, or [] if the
        dataset has none."""
        return class_names(field_facts(self.path, self._storage))

    def _classes_of_outputs(self) -> dict[str, list[str]]:
        """The class names of each output that has the name of a field."""
        if self.state_dict().get("source") == _SYNTHETIC:
            return {}
        names = {output["name"] for output in self.outputs}
        return {f["stem"]: list(f.get("classes") or ())
                for f in field_facts(self.path, self._storage)
                if f["stem"] in names}

    @property
    def spec(self) -> str:
        """The complete sampling spec, as in the paths of batches on a mount."""
        return str(self._core.info()["spec"])

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """A list with a dict for each output of a batch. Its keys are `name`,
        `dtype` ("<V2" is bfloat16), `shape` (of one sample) and `ragged`. If a
        length in `shape` is None, it differs from sample to sample, or from
        batch to batch if the output is padded."""
        return self._core.outputs()

    def stats(self) -> dict[str, Any]:
        """Return statistics since the loader was opened, see beton-stats(7).

        `stages` contains for each stage `items`, `bytes`, the seconds `busy_s`,
        `input_wait_s` and `room_wait_s`, summed over threads, and the latencies
        `p50_s` to `p99_s` of one item. `throughput` compares the speed of the
        loader with that of the trainer. `image_cache` describes the
        decoded-image cache, `entry_points` the entry points of JPEGs that the
        loader keeps, see beton-optimize(1), and `failed_samples` is the number
        of samples in the batches that you have requested that could not be read
        or decoded. If the loader itself reads a URL, `network` has the figures
        of the network, named as in beton-metrics(7); otherwise it is None. Other
        keys describe the setup, for example `decoder`."""
        return {**self._core.info(), **self._core.stats()}

    def show(self, n: int = ROWS) -> Shown:
        """Return the next n samples after all transforms, as pictures. A
        notebook displays them, and ``show().save("look.html")`` writes a page.

        An output of three dimensions with 1 or 3 channels becomes pictures. If
        it is not uint8, its values are scaled from the least to the greatest,
        and the page contains both. Large pictures are thinned out. The position
        of the loader does not change."""
        with _reopen({**self._arguments, "workers": 1, "prefetch": 1,
                      "job": None, "rank": self.rank, "world_size": self.world_size},
                     self.state_dict()) as loader:
            return Shown(loader, n)

    def __repr__(self) -> str:
        if self._core.closed:
            return f"<betonfs.Loader {public(self.path)!r}: closed>"
        info = self._core.info()
        outputs = ", ".join(
            f"{o['name']} {_tensors.dtype_name(o['dtype'])}"
            f"{'[ragged]' if o['ragged'] and not o['is_list'] else list(o['shape'])}"
            for o in self._core.outputs())
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (f"<betonfs.Loader {public(self.path)!r}: {info['spec']}; "
                f"{info['steps']} batches of {outputs}; "
                f"{info['workers']} workers{rank}>")

    # Type checkers must not see this function.
    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            hint = LOADER_ATTRIBUTES.get(name)
            raise AttributeError(f"a Loader has no {name!r}"
                                 + (f": {hint}" if hint else ""))

    # --- the end ---

    def close(self) -> None:
        self._core.close()
        self._finalizer.detach()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._arguments, self.state_dict())


class Samples(SampleSequence):
    """Some samples of a dataset, in the order of a subset."""

    def __init__(self, dataset: Dataset,
                 indices: Sequence[int] | NDArray[Any]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def _one(self, i: Any) -> dict[str, Any]:
        return self.dataset[int(self.indices[self._sample(i)])]


def _reopen(arguments: dict[str, Any], state: dict[str, Any]) -> Loader:
    loader = Loader(**arguments)
    loader.load_state_dict(state)
    return loader
