# SPDX-License-Identifier: Apache-2.0
"""The batches of a Loader: a dict or a tuple of tensors, with facts about
them.

Libraries that place batches on a device make a new one of the tensors, by
``type(batch)({name: f(tensor) ...})``. The names of a batch's outputs contain
its facts, so that the new batch has them as well.
"""
from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from . import _beton
from ._ragged import RaggedArray, of_tensor
from ._show import Shown
from ._tensors import Convert, Ragged, is_torch, to_numpy

_B = TypeVar("_B", bound="_Facts")
_FACTS = ("ids", "valid", "epoch", "number", "num_samples", "dataset")


class _Record:
    """Copies of facts, for batches that other libraries make from a batch."""

    __slots__ = ("epoch", "number", "num_samples", "dataset", "_ids", "_valid",
                 "_torch")

    def __init__(self, raw: _beton.Batch, dataset: str, torch: bool) -> None:
        self.epoch = raw.epoch
        self.number = raw.number
        self.num_samples = raw.num_samples
        self.dataset = dataset
        self._ids: NDArray[Any] = to_numpy(raw.ids).copy()
        self._valid: NDArray[Any] = to_numpy(raw.valid).copy()
        self._torch = torch

    def _array(self, value: NDArray[Any]) -> Any:
        torch = sys.modules.get("torch") if self._torch else None
        return torch.from_numpy(value) if torch else value

    @property
    def ids(self) -> Any:
        return self._array(self._ids)

    @property
    def valid(self) -> Any:
        return self._array(self._valid)


class _Name(str):
    """The name of an output, with the facts of its batch."""

    __slots__ = ("record",)
    record: _Record

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)

    # Type checkers must not see this function.
    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"{str(self)!r} is the name of an output, and no tensor with "
                f"{name!r}: take batch[{str(self)!r}]; `for x, y in loader` "
                'takes tensors with Loader(batch="tuple")')


def _name(name: str, record: _Record | None) -> str:
    """Return the name with other facts, or without any if `facts` is None."""
    if record is None:
        return str(name)
    own = _Name(name)
    own.record = record
    return own


def _moved(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of tensor.to(). Apply a type only to floating-point
    values, and a memory format only to images."""
    if isinstance(value, RaggedArray):
        return value.moved(_moved(value.values, args, kwargs))
    if not hasattr(value, "is_floating_point"):
        return value
    if not value.is_floating_point():
        args = tuple(a for a in args if type(a).__name__ != "dtype")
        kwargs = {k: v for k, v in kwargs.items() if k != "dtype"}
    if value.dim() != 4:
        kwargs = {k: v for k, v in kwargs.items() if k != "memory_format"}
    return value.to(*args, **kwargs) if args or kwargs else value


def _pinned(value: Any) -> Any:
    of = value.values if isinstance(value, RaggedArray) else value
    return value.pin_memory() if hasattr(of, "pin_memory") else value


class _Facts:
    """The facts of a batch, and the methods that apply to all its tensors."""

    __slots__ = ()

    # --- of a kind of batch ---

    def _own(self) -> tuple[_beton.Batch, Convert, str] | None:
        """The loader's tensors behind it, or None if another library made
        it."""
        raise NotImplementedError

    def _kept(self) -> _Record | None:
        """The facts in the names of its outputs."""
        raise NotImplementedError

    def _list(self) -> list[str]:
        """The names of the outputs."""
        raise NotImplementedError

    def _outputs(self) -> Iterable[Any]:
        raise NotImplementedError

    def _of(self: _B, values: Iterable[Any]) -> _B:
        """Return a batch of this kind, with the same facts and these
        outputs."""
        raise NotImplementedError

    # --- facts ---

    def _record(self) -> _Record:
        record = self._kept()
        if record is None:
            raise AttributeError(
                "this batch has no ids, valid, epoch or number: it was made "
                "without a loader, or by a library that makes new tuples; "
                "use batch=\"dict\"")
        found = {s[0] for s in (getattr(v, "shape", None)
                                for v in self._outputs()) if s}
        if found and record.num_samples not in found:
            raise AttributeError(
                f"this batch was cut or joined: it has {min(found)} samples of "
                f"{record.num_samples}; take ids, valid, epoch and number before that")
        return record

    @property
    def ids(self) -> Any:
        """Sample numbers, int64, one per sample of the batch."""
        own = self._own()
        return own[1](own[0].ids) if own else self._record().ids

    @property
    def valid(self) -> Any:
        """bool, one per sample: False if the sample is unreadable (with
        on_error="skip"), or if it is padding."""
        own = self._own()
        return own[1](own[0].valid) if own else self._record().valid

    @property
    def epoch(self) -> int:
        """The epoch of the batch, from 0."""
        own = self._own()
        return own[0].epoch if own else self._record().epoch

    @property
    def number(self) -> int:
        """The batch's number in the epoch's global sequence of all ranks, from
        0."""
        own = self._own()
        return own[0].number if own else self._record().number

    @property
    def num_samples(self) -> int:
        """The number of samples in the batch."""
        own = self._own()
        return own[0].num_samples if own else self._record().num_samples

    @property
    def dataset(self) -> str:
        """The path of the dataset, as passed to the loader."""
        own = self._own()
        return own[2] if own else self._record().dataset

    # --- all tensors ---

    def to(self: _B, *args: Any, **kwargs: Any) -> _B:
        """Return the batch with ``tensor.to(...)`` of each tensor, for example
        on a device, in ``torch.bfloat16``, or with
        ``memory_format=torch.channels_last``.

        A type changes only floating-point tensors, and a memory format only
        tensors of four dimensions. Bytes, JSON and NumPy arrays stay
        unchanged.

            batch = batch.to("cuda", torch.bfloat16)
        """
        return self._of(_moved(v, args, kwargs) for v in self._outputs())

    def pin_memory(self: _B) -> _B:
        """Return the batch with a copy of each tensor in page-locked memory,
        like ``pin_memory=True`` of torch's DataLoader.

            batch = batch.pin_memory().to("cuda", non_blocking=True)
        """
        return self._of(map(_pinned, self._outputs()))

    def __copy__(self: _B) -> _B:
        return self._of(self._outputs())

    def __deepcopy__(self: _B, memo: dict[int, Any]) -> _B:
        return self._of(copy.deepcopy(v, memo) for v in self._outputs())

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._list()]

    def _unknown(self, name: str) -> AttributeError:
        if name in _FACTS:
            self._record()      # raises if there is no such fact
        return AttributeError(
            f"a batch has no {name!r}; it has {', '.join(self._list())}, and "
            + ", ".join(_FACTS))

    def _repr_html_(self) -> str:
        """Return the first samples as pictures, for a notebook."""
        return Shown([self]).html


class Batch(dict[str, Any], _Facts):
    """A dict of the tensors of one batch, by the names of the outputs:
    ``batch["image"]`` or ``batch.image``. The attributes `ids`, `valid`,
    `epoch`, `number`, `num_samples` and `dataset` identify its samples.

        for batch in loader:
            train(batch["image"], batch["label"])
            print(batch.epoch, batch.number, batch.ids)

    You own the memory as long as the batch or one of its tensors lives, and you
    may write to it. After that the loader uses it again.

    Copies keep the attributes. So do the batches that Lightning, accelerate or
    torch make of this one, on another device or of other tensors.
    """

    __slots__ = ("_raw", "_convert", "_dataset")
    _raw: _beton.Batch
    _convert: Convert
    _dataset: str

    def _own(self) -> tuple[_beton.Batch, Convert, str] | None:
        try:
            return (object.__getattribute__(self, "_raw"), self._convert,
                    self._dataset)
        except AttributeError:
            return None

    def _kept(self) -> _Record | None:
        for name in self:
            if isinstance(name, _Name):
                return name.record
        return None

    def _list(self) -> list[str]:
        return [str(name) for name in self]

    def _outputs(self) -> Iterable[Any]:
        return self.values()

    def _of(self, values: Iterable[Any]) -> Batch:
        return type(self)(zip(self, values))

    def __getattr__(self, name: str) -> Any:
        try:
            return dict.__getitem__(self, name)
        except KeyError:
            raise self._unknown(name) from None

    def __missing__(self, name: str) -> Any:
        raise KeyError(f"a batch has no {name!r}; it has "
                       + ", ".join(self._list()))

    def copy(self) -> Batch:
        """Return a batch of the same tensors, like dict.copy()."""
        return self._of(self.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (self._list(), list(self.values()), self._kept())


def _batch(names: Iterable[str], values: Iterable[Any],
           record: _Record | None) -> Batch:
    return Batch((_name(n, record), v) for n, v in zip(names, values))


class TupleBatch(tuple[Any, ...], _Facts):
    """Outputs as a tuple, in the order of the pipeline, with the facts of a
    Batch.

        for images, labels in betonfs.Loader("train.beton", batch="tuple"):
            train(images, labels)

    `to()`, `pin_memory()` and copies keep these attributes. Libraries that make a new
    tuple of the tensors lose them; a Batch keeps them.
    """

    _names: tuple[str, ...]
    _raw: _beton.Batch | None = None
    _convert: Convert
    _dataset: str
    _facts: _Record | None = None

    def _own(self) -> tuple[_beton.Batch, Convert, str] | None:
        raw = self._raw
        return None if raw is None else (raw, self._convert, self._dataset)

    def _kept(self) -> _Record | None:
        if self._facts is None and self._raw is not None:
            self._facts = _Record(self._raw, self._dataset,
                                  is_torch(self._convert))
        return self._facts

    def _list(self) -> list[str]:
        return list(self.__dict__.get("_names", ()))

    def _outputs(self) -> Iterable[Any]:
        return self

    def _of(self, values: Iterable[Any]) -> TupleBatch:
        return _tuple_batch(tuple(self._list()), values, self._kept())

    def __getattr__(self, name: str) -> Any:
        names = self._list()
        if name not in names:
            raise self._unknown(name)
        return self[names.index(name)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _tuple_batch, (tuple(self._list()), list(self), self._kept())


def _tuple_batch(names: tuple[str, ...], values: Iterable[Any],
                 record: _Record | None) -> TupleBatch:
    batch = TupleBatch(values)
    batch._names = names
    batch._facts = record
    return batch


# --- torch's trees ---

def _flat(batch: Batch) -> tuple[list[Any], list[str]]:
    return list(batch.values()), list(batch)


def _unflat(values: Iterable[Any], names: Iterable[str]) -> Batch:
    return Batch(zip(names, values))


class _Shape(tuple[str, ...]):
    """Return the names of a TupleBatch's outputs, and its facts."""

    record: _Record | None = None


def _flat_tuple(batch: TupleBatch) -> tuple[list[Any], _Shape]:
    shape = _Shape(batch._list())
    shape.record = batch._kept()
    return list(batch), shape


def _unflat_tuple(values: Iterable[Any], shape: _Shape) -> TupleBatch:
    return _tuple_batch(tuple(shape), values, getattr(shape, "record", None))


def _register() -> None:
    """Register batches as trees of tensors in torch, once."""
    pytree: Any = sys.modules.get("torch.utils._pytree")
    if pytree is None or Batch in pytree.SUPPORTED_NODES:
        return
    for kind, flat, unflat, shape in (
            (Batch, _flat, _unflat, list),
            (TupleBatch, _flat_tuple, _unflat_tuple, _Shape)):
        pytree.register_pytree_node(
            kind, flat, unflat, serialized_type_name=f"betonfs.{kind.__name__}",
            to_dumpable_context=lambda names: list(map(str, names)),
            from_dumpable_context=shape)


# --- from a loader ---

def _value(t: _beton.Tensor, convert: Convert, is_list: bool) -> Any:
    if t.offsets is None:
        return convert(t)
    return of_tensor(t, convert) if is_list else Ragged(t, convert)


def _values(raw: _beton.Batch, convert: Convert,
            lists: tuple[bool, ...]) -> Iterable[Any]:
    if not lists:
        return map(convert, raw.outputs)
    return (_value(t, convert, is_list)
            for t, is_list in zip(raw.outputs, lists))


class Maker:
    """Makes batches of one kind."""

    def __init__(self, names: tuple[str, ...], lists: tuple[bool, ...],
                 convert: Convert, as_tuple: bool, dataset: str) -> None:
        self.names = names
        # Whether each output is a list. Empty if no output has offsets.
        self.lists = lists
        self.convert = convert
        self.as_tuple = as_tuple
        self.dataset = dataset
        self._torch = is_torch(convert)
        if self._torch:
            _register()

    def make(self, raw: _beton.Batch) -> Batch | TupleBatch:
        values = _values(raw, self.convert, self.lists)
        batch: Batch | TupleBatch
        if self.as_tuple:
            batch = TupleBatch(values)
            batch._names = self.names
        else:
            record = _Record(raw, self.dataset, self._torch)
            batch = Batch((_name(n, record), v)
                          for n, v in zip(self.names, values))
        batch._raw = raw
        batch._convert = self.convert
        batch._dataset = self.dataset
        return batch
