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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from . import _beton, _tensors
from ._batch import Maker
from ._checks import shown, truth
from ._dataset import (Dataset, Path, SampleSequence, class_names, field_facts,
                       path_text, reopen_dataset)
from ._epochs import Epoch, Epochs
from ._errors import BetonError, explain, make
from ._options import (Subset, SubsetFile, batch_size_of, device_text,
                       length_array, seed_of, spec_keys, spec_text,
                       tell_ignored, why_empty)
from ._pipeline import Pipeline, pipeline_text, tell_mistakes
from ._pool import Pool
from ._ranks import (check_caller, check_place, place, tell_disagreement,
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


def _lengths(path: str, lengths: str | ArrayLike | None) -> Any:
    """Numbers by which the samples are sorted, one for each."""
    if lengths is None:
        return None
    if isinstance(lengths, str):
        try:
            return Dataset(path).sizes(lengths)
        except (KeyError, ValueError) as e:
            raise ValueError(f"lengths={lengths!r}: {e.args[0]}") from None
    return length_array(lengths)


def _register() -> None:
    """What DataLoader(loader, batch_size=None) asks for."""
    data = sys.modules.get("torch.utils.data")
    if data is not None:
        data.IterableDataset.register(Loader)


# Arguments whose value is that of the time of opening.
_FIXED = frozenset(("drop_last", "epoch", "order", "pipeline", "seed", "subset",
                    "transforms", "weights"))


class Loader(Epochs):
    """Batches of ready tensors from a dataset FILE, or from a dataset on a
    MOUNT of betonfs, with the same bytes either way.

        loader = betonfs.Loader("train.beton", batch_size=256, pipeline={
            "image": "random_resized_crop(224) | flip | float | chw",
            "label": "label"})
        for batch in loader:
            train(batch["image"], batch["label"])

    Each ``iter(loader)`` is one epoch: the next one, or the one that
    :meth:`set_epoch` said, or the rest of the one that
    :meth:`load_state_dict` said. The same seed gives the same batches,
    whatever the number of workers, ranks or machines.

    Parameters
    ----------
    path
        The ``.beton`` file, or the directory of a dataset on a mount. A list
        of files with the same fields, or a pattern such as "train-*.beton", is
        one dataset, one file after the other, in the order of betonfs(8).
    batch_size, order, seed, drop_last, subset
        Keys of the SPEC, beton-orders(7): samples per batch (256); "random",
        "sequential", "quasi_random" or "bucketed" ("random"); a number (0);
        whether a short last batch is left out (True); and which samples: "A-B", a range,
        a list or array of sample numbers, a mask of a bool for each sample, a
        torch Subset, "NAME" of a mount, or "NAME:FILE". A number that is listed
        more than once is as many samples.
    train
        False: for validation. Unless you give them, order is "sequential",
        drop_last False, and pad "drop".
    pad
        Without drop_last, the batches may not be a multiple of the ranks.
        "drop": each sample comes once over all ranks, and a rank may have one
        batch less. "repeat": ranks have equally many batches; the last ones of
        some repeat samples, and ``batch.valid`` is False there.
    weights, num_samples
        Samples are drawn with replacement, each by its weight, a number from 0:
        one weight per sample of the dataset, or of the subset. An epoch has
        `num_samples` of them, or as many as there are weights. Which are drawn
        depends on seed and epoch alone. On a mount, a named subset has them:
        order="weighted", subset="NAME".
    lengths
        For batches of similar lengths, with little padding: samples come in
        order="bucketed", by these numbers, one for each sample, or by the sizes
        that the file has for the values of a field. No value is read for that.
        Keys `bucket` and `batch` of the spec say how similar lengths are.
    spec
        Such keys as text, "order=quasi_random,window=64MiB".
    pipeline
        What becomes of the fields, beton-transforms(7): text, or a dict of one
        text per output, ``{"image": "random_resized_crop(224) | flip"}``. A text
        that does not begin with a field is about the field of the output's name.
        A dict names all outputs: other fields are not even decoded. With a text,
        they come as they are, unless it drops them: ``image | drop``. A list of
        texts is one, joined by ``|``. None: plain tensors.
    device
        "cuda", "cuda:N" or N: outputs are in the memory of that GPU, but bytes and
        JSON. An output without `cuda(N)` in its pipeline is copied there when it
        is complete; operations after a `| cuda(N)` run on the GPU. "cpu", or not
        given: as the pipeline says. Without a driver or without this GPU it is a
        BetonError; without NVRTC the processor does what follows, and a warning
        says so.
    workers
        Threads that decode. 0: one per usable CPU.
    rank, world_size
        This process among those of the job. Not given: torch.distributed's if
        it was initialized, else RANK and WORLD_SIZE of the environment. In a
        worker of a DataLoader, each worker takes its share of these.
    on_error
        Samples that cannot be read: "raise" a BetonError, "skip" (the row is
        zero and ``batch.valid[row]`` False) or "zero" (and True).
    prefetch
        Batches made ahead. 0: 2.
    transforms
        Functions of a batch, called in their order on each; what they return
        is the batch, and None is a TypeError. :func:`compiled` makes them of
        functions of arrays, by numba; the first of these are called by the
        loader's threads, on several batches at a time, before they are ready.
        The rest is called in the thread that iterates.
    tensors
        "torch", "numpy", "jax", "cupy", "dlpack" (as they are, for any
        from_dlpack()), or "auto": torch where it is installed, else numpy.
        jax makes 32 bits of 64, in a copy, unless jax_enable_x64 is set.
    batch
        "dict" (:class:`Batch`), or "tuple": ``for images, labels in loader``.
    epoch
        The first one.
    shuffle, num_workers, generator
        Words of torch: order "random" or "sequential", `workers`, and a seed.
        For others, such as `collate_fn`, the TypeError names ours.
    cache, cache_size, cold_size, delivery, job, source, pinned
        As in <beton/loader.h>: "auto", "os" or "process" and its bytes; how a
        MOUNT's batches come; the job's name for its daemon; "constant",
        "memory" or "synthetic(...)", what is not real, for measuring
        (beton-transforms(7)); bytes that may be pinned for a GPU.

    Raises
    ------
    ValueError
        The spec, the pipeline or an option is wrong, or no epoch has a batch;
        the message says where, and what to do.
    BetonError
        An OSError: there is no such dataset, it cannot be read, or is damaged.

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
    Memory of a batch belongs to the user as long as the batch or any tensor of
    it lives, and is the loader's again after that. Waiting for a batch lets
    other Python threads run, and can be interrupted. A loader is used by one
    thread at a time; others wait. Its threads end when it is closed or
    collected; ``break`` leaves some batches made ahead, and no thread that does
    anything. A child of fork() cannot use it and gets a RuntimeError: open it
    there, or start processes by spawn (a loader pickles, by what it was opened
    with and where it stands).

    On a GPU, torch's tensors are complete on the stream that is current when the
    batch is taken, and the loader uses their memory again after the work of that
    stream. If you read a tensor on a side stream, let it wait for that stream
    first, and that stream for the side stream before you drop the batch:
    ``side.wait_stream(main)`` and ``main.wait_stream(side)``. `record_stream()`
    has no effect. With tensors="dlpack", `from_dlpack()` orders the stream that is
    current when it is called.
    """

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
        shuffle: bool | None = None,
        num_workers: int | None = None,
        generator: Any = None,
        world: int | None = None,
    ) -> None:
        if isinstance(subset, Iterator):
            subset = list(subset)   # it is read again where this is reopened
        either("seed", seed, "generator", generator)
        either("order", order, "shuffle", shuffle)
        either("workers", workers or None, "num_workers", num_workers)
        either("world_size", world_size, "world", world)
        if world is not None:
            world_size, world = world, None
        if generator is not None:
            seed, generator = seed_of(generator), None
        arguments = dict(locals())
        del arguments["self"]
        self._arguments = arguments
        self.path = path_text(path)
        self._pid = os.getpid()
        self.rank, self.world_size = place(rank, world_size)
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
        with SubsetFile(subset, weights, _lengths(self.path, lengths)) as part:
            self._core = self._open(
                part,
                spec=spec_text(spec, order=order, batch=batch_size, seed=seed,
                               drop_last=drop_last, num_samples=num_samples,
                               subset=part.key),
                subset=part.file, device=device_text(device),
                source=source, cache=cache, delivery=delivery, job=job,
                cache_size=cache_size, cold_size=cold_size, pinned=pinned,
                epoch=epoch, prefetch=prefetch, rank=self.rank,
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
                            convert, as_tuple, self.path)
        # Also when the program ends.
        self._finalizer = weakref.finalize(self, self._core.close)
        tell_ignored(spec, self.spec)
        tell_mistakes(self._text, bool(train), self._outputs)
        tell_torchvision(self.transforms, self._outputs)
        if rank is None:
            tell_disagreement(self.rank, self.state_dict()["fingerprint"],
                              self.spec)
        _register()
        self._tell()

    def _open(self, part: SubsetFile, **options: Any) -> _beton.Loader:
        try:
            self._text = pipeline_text(self._arguments["pipeline"], self.path)
            core = _beton.Loader(self.path, pipeline=self._text, **options)
        except ValueError as e:
            raise ValueError(part.named(str(e))) from None
        except BetonError as e:
            text = e.strerror or ""
            if part.named(text) == text:
                raise explain(e, self.path) from None
            raise make(e.errno or errno.EIO, part.named(text)) from None
        try:
            self._check(core, part)
        except ValueError:
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
            self._refuse_empty(f"{self.path}: " + why_empty(
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
        return Epoch(self, self._core.begin_epoch())

    def _begin(self) -> int:
        """Whose turn it is then; from where it stands."""
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
                self._tell()
        if raw is None:
            return None
        batch: Any = self._maker.make(raw)
        for call in self._pool.calls:
            batch = call(batch)
            if batch is None:
                raise TypeError(f"{_name_of(call)}() of transforms= returned "
                                "None: what it returns is the batch, so end "
                                "it with `return batch`")
        return batch

    def _tell(self) -> None:
        for level, text in self._core.messages():
            if self._matters(level, text):
                _log.warning("%s", text)

    def _matters(self, level: int, text: str) -> bool:
        # What is raised is not told twice.
        return level != _ERROR or self._arguments["on_error"] != "raise"

    # --- its place ---

    def _upcoming(self) -> int:
        """The epoch that the next batch is of, when the last one is over."""
        state = self.state_dict()
        over = state["batches"] >= self._core.info()["batches"]
        return int(state["epoch"]) + int(over)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is of this epoch, from its start; or its rest, if
        a state of it was loaded."""
        # Who iterated takes nothing any more, so that it stays where it is.
        self._core.begin()
        if not self._core.is_fresh() or self._upcoming() != epoch:
            self._core.seek(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where it stands, counting the batches that were given out: a small
        dict of strings and numbers, the same for all ranks."""
        state: dict[str, Any] = json.loads(self._core.state())
        state["pipeline"] = self._text or ""
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on after the last batch that the state
        counts, with any number of workers and ranks.

        Raises ValueError if the state is of another dataset or spec. Warns if
        it is of another pipeline, which changes no sample's place.
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
        """The next batch's place in its epoch on this rank, from 0. After
        :meth:`load_state_dict` it counts steps of this world size, and so
        continues the count of a run on fewer or more ranks:

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
    def batch_size(self) -> int:
        """Samples of a batch."""
        return batch_size_of(self.spec)

    @property
    def dataset(self) -> Dataset | Samples:
        """The samples that an epoch is of, one by one: a :class:`Dataset`, or
        of a `subset` of numbers its part. AttributeError for a subset with a
        name, and for synthetic data."""
        state = self.state_dict()
        if state.get("source") == _SYNTHETIC:
            raise AttributeError("synthetic data has no samples one by one")
        dataset = reopen_dataset(state["fingerprint"], self.path)
        if self._ids is not None:
            return Samples(dataset, self._ids)
        if "subset=" in self.spec:
            raise AttributeError("the samples of a named subset are in its "
                                 "file")
        return dataset

    @property
    def classes(self) -> list[str]:
        """Names of the classes, as Dataset.classes has them; [] if the dataset
        has none."""
        return class_names(field_facts(self.path))

    @property
    def spec(self) -> str:
        """In full, as batches are named on a mount."""
        return str(self._core.info()["spec"])

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """What a batch has: `name`, `dtype`, `shape` of a row, `ragged`. A
        length of None differs from sample to sample, or, padded, from batch to
        batch."""
        return self._core.outputs()

    def stats(self) -> dict[str, Any]:
        """What was done since it was opened, beton-stats(7): `stages` with
        their `items`, `bytes`, seconds `busy_s`, `input_wait_s` and
        `room_wait_s`, summed over threads, and `p50_s` to `p99_s` of an item;
        `throughput`, how loader and trainer kept up with each other; `failed_samples`;
        `kept` of cache(); and how it was done."""
        return {**self._core.info(), **self._core.stats()}

    def show(self, n: int = ROWS) -> Shown:
        """The next n samples as they come, after the transforms: a notebook
        shows them, ``show().save("look.html")`` writes a page. Outputs of three
        dimensions with 1 or 3 channels are pictures: those of uint8 as they
        are, others scaled from their least value to their greatest, as the page
        says; large ones are thinned out. The loader stays where it is."""
        with _reopen({**self._arguments, "workers": 1, "prefetch": 1,
                      "job": None, "rank": self.rank, "world_size": self.world_size},
                     self.state_dict()) as loader:
            return Shown(loader, n)

    def __repr__(self) -> str:
        if self._core.closed:
            return f"<betonfs.Loader {self.path!r}: closed>"
        info = self._core.info()
        outputs = ", ".join(
            f"{o['name']} {o['dtype']}"
            f"{'[ragged]' if o['ragged'] and not o['is_list'] else list(o['shape'])}"
            for o in self._core.outputs())
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (f"<betonfs.Loader {self.path!r}: {info['spec']}; "
                f"{info['steps']} batches of {outputs}; "
                f"{info['workers']} workers{rank}>")

    # Where types are checked, there are no other attributes.
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
