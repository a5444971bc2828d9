# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import enum
import functools
import inspect
import os
import re
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .. import BetonError
from .. import Loader as _Loader
from .. import Ragged
from .._checks import is_url, public
from .._options import Storage, quoted
from ._chain import ARRAY, BYTES, IMAGE, SCALAR, Chain, Files
from ._stages import Batch, Decoding, Pooled, Stages
from .decoders import Decoder, ResizedCropRGBImageDecoder, sizes_differ
from .epoch_iterator import EpochIterator
from .memory_managers import (MemoryManager, OSCacheManager,
                              ProcessCacheManager)
from .pipeline.compiler import Compiler
from .pipeline.graph import Graph, as_operation, copy_of
from .pipeline.operation import Operation
from .pipeline.pipeline_spec import PipelineSpec
from .reader import Reader
from .transforms import ImageMixup, LabelMixup, RandomResizedCrop
from .transforms._base import is_ours, is_of_package
from .traversal_order import (LibraryOrder, QuasiRandom, Random, Sequential,
                              TraversalOrder)


def _numbers(indices: Any) -> Any:
    """Numbers of samples; a mask of bool has those that it takes."""
    own = np.asarray(indices)
    return np.flatnonzero(own) if own.dtype == bool \
        else own.astype(np.int64, copy=False)


@enum.unique
class OrderOption(enum.Enum):
    SEQUENTIAL = enum.auto()
    RANDOM = enum.auto()
    QUASI_RANDOM = enum.auto()


def _forced() -> bool:
    return os.environ.get("FFCV_DEFAULT_CACHE_PROCESS", "0") not in ("", "0")


DEFAULT_PROCESS_CACHE = _forced()
DEFAULT_OS_CACHE = not DEFAULT_PROCESS_CACHE
ORDER_TYPE = OrderOption
ORDER_MAP: dict[OrderOption, type[LibraryOrder]] = {
    OrderOption.SEQUENTIAL: Sequential,
    OrderOption.RANDOM: Random,
    OrderOption.QUASI_RANDOM: QuasiRandom,
}

_DEFAULT = object()
_FILE = re.compile("/proc/self/fd/[0-9]+")
_KINDS = {"int": (SCALAR, "int64"), "float": (SCALAR, "float64"),
          "rgb_image": (IMAGE, "uint8"), "bytes": (BYTES, "uint8"),
          "json": (BYTES, "uint8")}


class _Core(_Loader):
    """`known` is why the library cannot find values that the reader can."""

    def __init__(self, known: Collection[str], *args: Any,
                 **named: Any) -> None:
        self._known = known
        super().__init__(*args, **named)

    def _refuse_empty(self, why: str) -> None:
        """Only warn, because FFCV's scripts continue without a batch."""
        warnings.warn(why, RuntimeWarning, stacklevel=7)


class _Output:
    """One element of a batch: the name of an output of the library, if it has
    a part in it, and what is done then."""

    def __init__(self, name: str, field: str, ops: list[Operation],
                 place: int) -> None:
        self.name = name
        self.field = field
        self.ops = ops
        self.place = place
        self.chain: Chain | None = None
        self.parts: list[tuple[int, Stages]] = []
        self.planned = -1
        self.decoding: Decoding | None = None
        self.width = 0      # of bytes, in columns
        # What of its operations other pipelines begin with.
        self.kept: dict[int, Any] = {}
        self.source: tuple[_Output, int] | None = None
        self.native = 0     # how many operations are in the text

    def translate(self, chain: Chain, most: int) -> str:
        """The longest beginning that the library can do, as a statement."""
        self.native = 0
        last = min([most, *(k + 1 for k in self.kept)])
        for op in self.ops[:last]:
            if not is_ours(op):
                break
            text = op.native(chain)
            if text is None:
                break
            chain.ops.append(text)
            self.native += 1
        self.chain = chain
        return chain.text()

    def run(self, raw: Any, batch: Batch) -> Any:
        value = self._begin(raw, batch)
        for i, stages in self.parts:
            value = stages.run(value, batch)
            if i in self.kept:
                self.kept[i] = copy_of(value)
        return value

    def _begin(self, raw: Any, batch: Batch) -> Any:
        if self.source is not None:
            output, i = self.source
            return copy_of(output.kept[i])
        if self.decoding is not None:
            return self.decoding.run(None, batch, self.place)
        assert self.chain is not None
        value = raw[self.name]
        if isinstance(value, Ragged):
            value = _padded(value, self.width)
        value = self.chain.finish(value)
        if self.native - 1 in self.kept:
            self.kept[self.native - 1] = copy_of(value)
        return value

    def pooled(self) -> list[Pooled]:
        """The custom operations that the library's threads may run. Empty if
        another pipeline begins with the output before them."""
        if self.source is not None or self.decoding is not None \
                or self.native - 1 in self.kept or not self.parts:
            return []
        assert self.chain is not None
        return self.parts[0][1].pooled(self.name, self.chain)

    def release(self) -> None:
        """Discard the values that other pipelines began with."""
        self.kept = dict.fromkeys(self.kept)

    def forget(self) -> None:
        """Discard the compiled code of custom operations."""
        if self.decoding is not None:
            self.decoding.forget()
        for _, stages in self.parts:
            stages.forget()

    def plan(self) -> None:
        """The rest, cut after each operation that others begin with."""
        first = self.native if self.source is None else 0
        # Compiled code stays valid as long as the library runs the same operations.
        if self.planned == first:
            return
        self.planned = first
        cuts = sorted({k + 1 for k in self.kept if k >= first}
                      | {len(self.ops)})
        self.parts.clear()
        for end in cuts:
            stages = Stages(self.ops[first:end], self.place + first)
            self.parts.append((end - 1, stages))
            first = end


def _padded(rows: Ragged, width: int) -> Any:
    sizes = [len(row) for row in rows]
    out = torch.zeros((len(rows), width or max(sizes, default=0)),
                      dtype=torch.uint8)
    for into, begin, size in zip(out, rows.offsets.tolist(), sizes):
        into[:size] = rows.data[begin:begin + size]
    return out


class Epoch(Iterator[tuple[Any, ...]]):
    """The batches of one epoch, from the library. After the loader has begun
    another epoch, this one continues with a core of its own."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self._loader = loader
        self._epoch = epoch
        self._core = loader._core
        self._samples = loader._subset
        self._batches: Iterator[Any] | None = iter(self._core)
        self._state: dict[str, Any] | None = None

    def leave(self) -> None:
        """Note the position, because the loader continues with another epoch."""
        if self._batches is None or self._state is not None:
            return
        if self._core._upcoming() == self._epoch:
            self._state = self._core.state_dict()
        else:
            self._batches = None    # all are given

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self._batches is None:
            raise StopIteration
        if self._state is not None:
            self._core = self._loader._another(self._samples, self._epoch)
            self._core.load_state_dict(self._state)
            self._batches = iter(self._core)
            self._state = None
        try:
            raw = next(self._batches)
        except StopIteration:
            self.close()
            raise
        return self._loader._finish(raw, self._epoch, self._core)

    def close(self) -> None:
        """It has no more batches."""
        self._batches = None
        if self._core is not self._loader._core:
            self._core.close()


class Loader:
    """Batches of a dataset as tuples of tensors, in the order of its fields:
    FFCV's Loader, on this package's.

    Parameters
    ----------
    fname
        The ``.beton`` file, or a dataset on a mount.
    batch_size
        Samples per batch.
    num_workers
        Threads. Below 1: one per usable CPU.
    os_cache
        True: read through the system's page cache; False: through a cache of
        its own, of bounded size; not given: as it fits into memory. A URL
        always has a cache of its own.
    order
        OrderOption.SEQUENTIAL, RANDOM, QUASI_RANDOM, or a TraversalOrder.
    distributed
        Of the batches of the job, those of this rank of torch.distributed.
    seed
        Of order and augmentation. None: 0 if distributed, else any.
    indices
        Samples, each once. None: all.
    pipelines
        Maps names to lists of operations, to a PipelineSpec, or to None: not in
        batches. If a name is no field, its PipelineSpec contains the source.
    custom_fields
        name -> class of a field that is a user's own.
    drop_last
        Without a last batch that is short.
    batches_ahead
        Number of batches to prefetch.
    recompile
        Operations are asked for their code in every epoch.
    path
        FFCV-SSL's name of `fname`.
    custom_field_mapper
        name -> field: further outputs of a field, as FFCV-SSL has them.
    on_error
        Samples that cannot be read: "raise", or "zero".
    storage_options
        How a URL is read, as in betonfs.Loader.

    A subclass may have its own __iter__, next_traversal_order(), or __init__
    that sets reader, memory_manager, graph and so on itself. Its batches are
    made as FFCV makes them, by EpochIterator, a thread that runs all operations
    in Python and in compiled code. They may have numbers twice.
    """

    # Defaults for a subclass that has not called __init__().
    _indices: Any = None
    _core: _Core = None    # type: ignore[assignment]
    _subset: Any = None     # of what _core was opened with
    _current: Callable[[], Epoch | None] = staticmethod(lambda: None)
    _code: Any = None
    _outputs: list[_Output] = []
    on_error = "raise"
    _cache: str | None = None
    _storage_options: Storage | None = None
    custom_field_mapper: Mapping[str, str] = {}

    def __init__(
        self,
        fname: str | os.PathLike[str] | None = None,
        batch_size: int | None = None,
        num_workers: Any = -1,
        os_cache: Any = _DEFAULT,
        order: Any = OrderOption.SEQUENTIAL,
        distributed: bool = False,
        seed: int | None = None,
        indices: Sequence[int] | None = None,
        pipelines: Mapping[str, Any] = {},
        custom_fields: Mapping[str, Any] = {},
        drop_last: bool = True,
        batches_ahead: int = 3,
        recompile: bool = False,
        order_kwargs: Mapping[str, Any] = {},
        *,
        path: str | os.PathLike[str] | None = None,
        custom_field_mapper: Mapping[str, str] | None = None,
        on_error: str = "raise",
        storage_options: Storage | None = None,
    ) -> None:
        fname = path if fname is None else fname
        if fname is None or batch_size is None:
            raise TypeError("Loader needs fname and batch_size")
        if isinstance(num_workers, (OrderOption, type)):
            # FFCV-SSL has the order there, and then num_workers.
            order, num_workers = num_workers, -1
            if isinstance(os_cache, int) and not isinstance(os_cache, bool):
                num_workers, os_cache = os_cache, _DEFAULT
        if seed is None:
            seed = 0 if distributed else int(np.random.randint(2**31 - 1))
        custom_field_mapper = dict(custom_field_mapper or {})
        self._args = dict(locals())
        for name in "self", "path":
            del self._args[name]
        self.custom_field_mapper = custom_field_mapper
        self.fname = self.path = os.fspath(fname)
        self.batch_size = batch_size
        self.num_workers = num_workers if num_workers > 0 \
            else len(os.sched_getaffinity(0))
        self.batches_ahead = batches_ahead
        self.seed = int(seed)
        self.distributed = distributed
        self.drop_last = drop_last
        self.recompile = recompile
        self.on_error = on_error
        self.next_epoch = 0
        self.reader = Reader(self.fname, custom_fields, storage_options)
        self._indices = None if indices is None else _numbers(indices)
        self._os_cache = os_cache
        self._cache = None if is_url(self.fname) else _cache(os_cache)
        self._storage_options = storage_options
        Compiler.set_num_threads(self.num_workers)
        self.traversal_order = self._order(order, order_kwargs)
        self.pipeline_specs = self._specs(pipelines)
        self._outputs = self._plan()
        self._native = True
        self._gpu = True
        self._mixing = True
        self._sized = on_error == "zero" or not self.reader.is_file
        self._opened: Any = None
        self._open(0)

    # --- samples and outputs ---

    @property
    def indices(self) -> Any:
        """Numbers of its samples."""
        if self._indices is None:
            return np.arange(self.reader.num_samples, dtype=np.int64)
        return self._indices

    @indices.setter
    def indices(self, numbers: Any) -> None:
        self._indices = _numbers(numbers)

    def _order(self, order: Any, options: Mapping[str, Any]) -> Any:
        if isinstance(order, OrderOption):
            return ORDER_MAP[order](self)
        if isinstance(order, TraversalOrder):
            return order
        if isinstance(order, type) and issubclass(order, TraversalOrder):
            return order(self, **options)
        raise ValueError(f"{order!r} is no order, and no subclass of "
                         "TraversalOrder")

    @property
    def _own_order(self) -> TraversalOrder | None:
        """A user's, where it is none of the library's."""
        order: TraversalOrder = self.traversal_order
        return None if isinstance(order, LibraryOrder) \
            and is_of_package(type(order)) else order

    def _specs(self, pipelines: Mapping[str, Any]) -> dict[str, PipelineSpec]:
        """By output, those of fields first, in the order of the file."""
        given: dict[str, PipelineSpec] = {}
        mapped = self.custom_field_mapper
        for name, spec in pipelines.items():
            if spec is None:
                continue
            if isinstance(spec, PipelineSpec):
                given[name] = spec
            elif isinstance(spec, Sequence) and not isinstance(spec, str):
                given[name] = PipelineSpec(mapped.get(name, name),
                                           transforms=spec)
            else:
                raise ValueError(f"the pipeline of {name!r} is no list of "
                                 "operations, and no PipelineSpec")
        specs = {}
        for name in self.reader.handlers:
            if name in given:
                specs[name] = given.pop(name)
            elif name not in pipelines:
                specs[name] = PipelineSpec(name)
        for name, source in mapped.items():
            if name not in pipelines:
                specs[name] = PipelineSpec(source)
        return {**specs, **given}

    def _decoder(self, name: str, spec: PipelineSpec) -> list[Any]:
        """The operations of a pipeline, a decoder first."""
        assert isinstance(spec.source, str)
        if spec.source not in self.reader.handlers:
            raise ValueError(f"the pipeline of {name!r} is for a field "
                             f"{spec.source!r}, and there are "
                             + ", ".join(self.reader.handlers))
        spec.accept_decoder(
            self.reader.handlers[spec.source].get_decoder_class(), name)
        return [spec.decoder, *spec.transforms]

    def _plan(self) -> list[_Output]:
        outputs: list[_Output] = []
        by_op: dict[int, list[tuple[_Output, int]]] = {}
        place = 0
        for k, (name, spec) in enumerate(self.pipeline_specs.items()):
            if isinstance(spec.source, str):
                ops = self._decoder(name, spec)
                field = spec.source
            else:
                ops, field = spec.transforms, ""
            output = _Output(f"o{k}", field, [as_operation(op) for op in ops],
                             place)
            place += len(ops)
            outputs.append(output)
            for i, op in enumerate(output.ops):
                by_op.setdefault(id(op), []).append((output, i))
        for output, spec in zip(outputs, self.pipeline_specs.values()):
            if isinstance(spec.source, str):
                self._check(output)
                continue
            found = by_op.get(id(spec.source), [])
            if len(found) != 1:
                raise ValueError(f"{spec.source!r} is an operation of "
                                 f"{len(found)} other pipelines, not of one")
            output.source, = found
            origin, i = output.source
            origin.kept[i] = None
            output.field = origin.field
            for op in output.ops:
                op.accept_field(self.reader.handlers[output.field])
        return outputs

    def _check(self, output: _Output) -> None:
        """Whose decoder it has; those of users get what they ask for."""
        decoder, k = output.ops[0], self.reader.field_names.index(output.field)
        kind = self.reader.fields[k]["type"]
        for op in output.ops:
            op.accept_field(self.reader.handlers[output.field])
        # If custom fields hide the layout of records from the library, use that of
        # the reader.
        if not is_ours(decoder) or not isinstance(decoder, Decoder) \
                or kind not in decoder.kinds \
                or self.reader.fields[k].get("unusable"):
            self._check_own(output, decoder, kind)
            return
        if kind in ("bytes", "json") and self.reader.is_file:
            sizes = self.reader.column(output.field)["size"]
            output.width = int(sizes.max(initial=0))
        if not all(is_ours(op) for op in output.ops) \
                and self.reader.is_file:
            for op in output.ops:
                op.accept_globals(self.reader.column(output.field), None)

    def _check_own(self, output: _Output, decoder: Any, kind: str) -> None:
        """A decoder that the library cannot run."""
        if is_of_package(type(decoder)) and kind not in ("custom", *decoder.kinds):
            raise ValueError(
                f"field {output.field!r} is of type {kind}, which "
                f"{type(decoder).__name__} does not decode")
        try:
            records = np.array(self.reader.column(output.field))
        except OSError as e:
            raise ValueError(
                f"field {output.field!r}: {type(decoder).__name__} reads the "
                f"dataset's file, not the mount: {e}: give the Loader the "
                f"file of {public(self.fname)}, where this process can read "
                "it") from None
        read = self.memory_manager.compile_reader()
        for op in output.ops:
            op.accept_globals(records, read)
        with self.memory_manager.schedule_epoch([]) as context:
            output.decoding = Decoding(decoder, records, context.state)
        output.native = 1

    # --- as FFCV runs it, for subclasses ---

    @functools.cached_property
    def memory_manager(self) -> MemoryManager:
        """Where decoders of users get bytes from."""
        manager = ProcessCacheManager if self._cache == "process" \
            else OSCacheManager
        return manager(self.reader)

    @functools.cached_property
    def field_name_to_f_ix(self) -> dict[str, int]:
        """The number of each field in the metadata."""
        return {name: k for k, name in enumerate(self.reader.handlers)}

    @functools.cached_property
    def graph(self) -> Graph:
        """All operations, in Python and in compiled code."""
        return Graph(self.pipeline_specs, self.reader.handlers,
                     self.field_name_to_f_ix, self.reader.metadata,
                     self.memory_manager.compile_reader())

    @functools.cached_property
    def pipelines(self) -> dict[str, Any]:
        """By output, the operations after the decoder."""
        return {name: spec.transforms
                for name, spec in self.pipeline_specs.items()}

    @functools.cached_property
    def first_traversal_order(self) -> Any:
        return self.next_traversal_order()

    def generate_code(self) -> None:
        """Compile all operations again, for EpochIterator."""
        _, code = self.graph.collect_requirements()
        self._code = self.graph.codegen_all(code)

    @property
    def code(self) -> Any:
        """The stages that EpochIterator runs, and the numbers of outputs."""
        if self._code is None:
            self.generate_code()
        return self._code

    @code.setter
    def code(self, code: Any) -> None:
        self._code = code

    @property
    def code_per_stage(self) -> Any:
        """FFCV-SSL's name of `code`."""
        return self.code

    def _is_native(self) -> bool:
        """Whether the library makes the batches."""
        kind = type(self)
        return bool(self._outputs) and all(
            getattr(kind, name) is getattr(Loader, name)
            for name in ("next_traversal_order", "generate_code"))

    def _as_ffcv(self) -> EpochIterator:
        order = self.next_traversal_order()
        if self.drop_last:
            order = order[:len(order) // self.batch_size * self.batch_size]
        self.next_epoch += 1
        if self.recompile:
            self.generate_code()
        return EpochIterator(self, order)

    def _check_sizes(self, output: _Output) -> None:
        """Images that are decoded as they are have one size."""
        decoder = output.ops[0]
        if output.source is not None or not is_ours(decoder) \
                or "rgb_image" not in getattr(decoder, "kinds", ()) \
                or isinstance(decoder, ResizedCropRGBImageDecoder) \
                or any(isinstance(op, RandomResizedCrop) for op in output.ops):
            return
        records = self.reader.column(output.field)
        if self._indices is not None:
            records = records[self._indices]
        why = sizes_differ(f"field {output.field!r}", records)
        if why:
            raise TypeError(f"{why}: {type(decoder).__name__} is for images "
                            "of one size")

    # --- the library ---

    def _text(self, files: Files) -> str:
        statements = []
        most = 1000 if self._native else 1
        used = set()
        fields = dict(zip(self.reader.field_names, self.reader.fields))
        for output in self._outputs:
            if output.decoding is None and output.source is None:
                field = fields[output.field]
                kind, dtype = _KINDS.get(field["type"]) or (
                    ARRAY, np.dtype(field["dtype"]).name)
                text = output.translate(Chain(
                    kind, dtype, files, self._gpu, self._mixing), most)
                statements.append(
                    f"{output.name} = {quoted(output.field)}{text}")
                used.add(output.field)
            output.plan()
        if self._mixing and self._split():
            self._mixing = False
            return self._text(files)
        statements += [f"{quoted(name)} | drop" for name, f in fields.items()
                       if name not in used and not f.get("unusable")]
        return "; ".join(statements)

    def _split(self) -> bool:
        """Whether images are mixed by the library and their labels in Python,
        or the other way round, by other numbers."""
        here = [i < o.native for o in self._outputs
                for i, op in enumerate(o.ops)
                if isinstance(op, (ImageMixup, LabelMixup))]
        return any(here) and not all(here)

    def _samples(self, epoch: int) -> Any:
        """The subset, and whether it is new in every epoch."""
        order = self._own_order
        if order is None:
            return self._indices
        return np.asarray(order.sample_order(epoch), np.int64)

    def _how(self) -> tuple[Any, ...]:
        """The settings that users may change between epochs, besides operations."""
        order = "sequential" if self._own_order is not None \
            else self.traversal_order.name
        return order, self.batch_size, self.drop_last, self.seed

    def _open(self, epoch: int) -> None:
        """Where anything changed: decoders may, between epochs."""
        with Files() as files:
            text = self._text(files)
            samples = self._samples(epoch)
            now = [self._how(), _FILE.sub("", text), None if samples is None
                   else samples.tobytes(),
                   [_facts(op) for o in self._outputs
                    for op in o.ops[:o.native]]]
            if now == self._opened:
                return
            try:
                core = self._try(text, samples, epoch)
            except (ValueError, BetonError) as e:
                core = self._retry(e, text, files, samples, epoch)
        if self._core is not None:
            self._core.close()
        self._core = core
        self._subset = samples
        self._opened = now

    def _another(self, samples: Any, epoch: int) -> _Core:
        """Open a second core, because another epoch begins before this one has
        ended."""
        with Files() as files:
            return self._try(self._text(files), samples, epoch)

    def _retry(self, error: Exception, text: str, files: Files, samples: Any,
               epoch: int) -> _Core:
        """Open the library again with fewer operations for it."""
        if "cuda(" in text:
            self._gpu = False
        elif isinstance(error, ValueError) and any(
                o.native > 1 for o in self._outputs):
            self._native = False
        else:
            raise error
        warnings.warn(f"more of the pipeline runs in Python, for {error}",
                      RuntimeWarning, stacklevel=4)
        text = self._text(files)
        try:
            return self._try(text, samples, epoch)
        except (ValueError, BetonError) as e:
            return self._retry(e, text, files, samples, epoch)

    def _try(self, text: str, samples: Any, epoch: int,
             **options: Any) -> _Core:
        own = self._own_order is not None
        order, batch_size, drop_last, seed = self._how()
        alone: dict[str, Any] = {"rank": 0, "world_size": 1}
        known = {f["unusable"] for f in self.reader.fields
                 if f.get("unusable")}
        return _Core(
            known, self.fname, batch_size, order, seed & (2**64 - 1), text,
            subset=samples,
            workers=self.num_workers, prefetch=self.batches_ahead,
            tensors="torch", epoch=epoch, cache=self._cache,
            storage_options=self._storage_options,
            on_error=self.on_error, **{
                "transforms": self._pooled(), "drop_last": drop_last,
                "pad": "drop" if order == "sequential" else "repeat",
                **({} if self.distributed and not own else alone), **options})

    def _pooled(self) -> list[Pooled]:
        if self.recompile:
            return []
        ops = [op for output in self._outputs for op in output.pooled()]
        return ops if ops and Compiler.has_numba() else []

    # --- batches ---

    def _finish(self, raw: Any, epoch: int, core: _Core) -> tuple[Any, ...]:
        ids = raw.ids.numpy()
        batch = Batch(self.seed & (2**64 - 1), epoch, raw.number, ids,
                      core._pool.places)
        # Those that begin with what another one keeps come after it.
        done = {o.name: o.run(raw, batch) for o in sorted(
            self._outputs, key=lambda o: o.source is not None)}
        for o in self._outputs:
            o.release()
        return tuple(done[o.name] for o in self._outputs)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if not self._is_native():
            return self._as_ffcv()
        epoch, last = self.next_epoch, self._current()
        if last is not None:
            last.leave()
        if not self._sized:
            for output in self._outputs:
                self._check_sizes(output)
            self._sized = True
        self._open(epoch)
        if self.recompile:
            self._code = None
            for output in self._outputs:
                output.forget()
        self._core.set_epoch(epoch)
        self.next_epoch = epoch + 1
        begun = Epoch(self, epoch)
        self._current = weakref.ref(begun)
        return begun

    def __len__(self) -> int:
        if self._is_native() and self._own_order is None:
            if self._opened[0] != self._how():
                self._open(self.next_epoch)
            return len(self._core)
        samples = len(self.first_traversal_order)
        return samples // self.batch_size if self.drop_last \
            else -(-samples // self.batch_size)

    def next_traversal_order(self) -> Any:
        """Numbers of the samples of the next epoch; without reading any."""
        return np.asarray(
            self.traversal_order.sample_order(self.next_epoch), np.int64)

    def filter(self, field_name: str,
               condition: Callable[[Any], Any]) -> Loader:
        """A loader of those samples for whose value of a field, as its pipeline
        gives it, the condition is true."""
        spec = self.pipeline_specs.get(field_name) or PipelineSpec(field_name)
        only = {name: None for name in self.reader.handlers}
        # A subclass may have noted more.
        known = inspect.signature(Loader.__init__).parameters
        given = {k: v for k, v in self._args.items() if k in known}
        arguments = {**given, "order": OrderOption.SEQUENTIAL,
                     "drop_last": False, "distributed": False,
                     "pipelines": {**only, field_name: spec}}
        chosen: list[int] = []
        loader = Loader(**arguments)
        for raw in loader._core:
            values, = loader._finish(raw, 0, loader._core)
            chosen += [i for i, value in zip(raw.ids.tolist(), values)
                       if condition(value)]
        loader.close()
        return Loader(**{**given, "indices": np.array(chosen, np.int64)})

    # --- more than FFCV's ---

    @property
    def pipeline(self) -> str:
        """The pipeline string that the library runs, see beton-operations(7)."""
        with Files() as files:
            return self._text(files)

    def stats(self) -> dict[str, Any]:
        """As betonfs.Loader's."""
        return self._core.stats()

    def close(self) -> None:
        """Ends its threads. Batches that are kept stay valid."""
        if self._core is not None:
            self._core.close()


def _facts(op: Operation) -> Any:
    """Arguments that are too long for the text."""
    return [(k, v.tobytes()) for k, v in vars(op).items()
            if isinstance(v, np.ndarray)]


def _cache(os_cache: Any) -> str | None:
    if os_cache is _DEFAULT:
        return "process" if _forced() else None
    return "os" if os_cache else "process"


__all__ = ["DEFAULT_OS_CACHE", "DEFAULT_PROCESS_CACHE", "Epoch",
           "EpochIterator", "Loader", "ORDER_MAP", "ORDER_TYPE",
           "OrderOption"]
