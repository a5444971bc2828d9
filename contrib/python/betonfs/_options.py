# SPDX-License-Identifier: Apache-2.0
"""Convert the arguments of a Loader to the strings that the library takes."""
from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import is_whole, shown, truth, whole


class Part(Protocol):
    """torch.utils.data.Subset."""

    @property
    def dataset(self) -> Any: ...

    @property
    def indices(self) -> Sequence[int]: ...


Subset = str | range | slice | Iterable[int] | Part

# As pandas and fsspec have it: options of how a URL is read.
Storage = str | Mapping[str, Any]

_IDENTIFIER = re.compile(r"[\w.+-]+", re.ASCII)

# Greatest number of samples of a dataset, see beton(5).
_SAMPLES_MAX = 1 << 36

# Keys of a spec, and the orders that use them.
_ORDERS_OF = {"block": "quasi_random", "window": "quasi_random",
              "num_samples": "weighted", "bucket": "bucketed"}


def _storage_value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{key}=true" if value else f"{key}=false"
    if not isinstance(value, (str, int, os.PathLike)):
        # Not the value, which may be a secret.
        kind = type(value).__name__
        raise TypeError(f"storage_options: {key}: the value is a {kind}; pass "
                        "a text, a whole number or a bool, and only options "
                        "of beton-remote(7)")
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return f"{key}=" + text.replace(",", r"\,")


def storage_text(options: Storage | None) -> str | None:
    """Return storage options as the library takes them."""
    if options is None or isinstance(options, str):
        return options
    if not isinstance(options, Mapping):
        raise TypeError(f"storage_options={shown(options)}: a dict, such as "
                        '{"disk": "/var/cache/beton"}, or a text, such as '
                        '"disk=/var/cache/beton,connections=32"')
    return ",".join(_storage_value(str(key), value)
                    for key, value in options.items() if value is not None)


def spec_keys(spec: str | None) -> list[str]:
    """Return the keys of a spec."""
    return [part.partition("=")[0].strip() for part in (spec or "").split(",")]


def _order(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}={shown(value)}: a text, such as \"random\" or "
                        '"sequential"')
    if not value:
        raise ValueError(f"{name}='': a text, such as \"random\"")
    if "," in value or "=" in value:
        raise ValueError(f"{name}={value!r}: one name; spec={value!r} has "
                         "several keys")
    return value


# Arguments that are keys of a spec: their name there, and the check of the
# value.
_KEYS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "order": ("order", _order),
    "batch": ("batch_size", lambda name, v: whole(name, v, 1, 1 << 20)),
    "seed": ("seed", lambda name, v: whole(name, v, 0, (1 << 64) - 1)),
    "drop_last": ("drop_last", lambda name, v: int(truth(name, v))),
    "num_samples": ("num_samples", lambda name, v: whole(name, v, 1, 1 << 40)),
    "subset": ("subset", lambda name, v: v),
}


def spec_text(spec: str | None, **keys: Any) -> str:
    """Return a spec: the keys of `spec`, then those of other arguments."""
    if not isinstance(spec, str | None):
        raise TypeError(f"spec={spec!r}: a text, such as "
                        '"order=quasi_random,window=64MiB"')
    parts = [spec.strip()] if spec and spec.strip() else []
    own = spec_keys(spec)
    for key, value in keys.items():
        if value is None:
            continue
        name, checked = _KEYS[key]
        if key in own:
            raise ValueError(f"{key} is in spec=, and {name}= is given too: "
                             "give one of them")
        parts.append(f"{key}={checked(name, value)}")
    return ",".join(parts)


def seed_of(generator: Any) -> int:
    """Return the seed of a torch.Generator."""
    seed = getattr(generator, "initial_seed", None)
    if not callable(seed):
        raise TypeError(f"generator={shown(generator)}: a torch.Generator, "
                        "whose seed is taken; seed= takes a number")
    return int(seed()) % 2**64


def quoted(name: str) -> str:
    """Quote a field name for a pipeline string."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def identifier_or_string(text: str) -> str:
    """Return an identifier of a pipeline unchanged, and quote any other
    string."""
    return text if _IDENTIFIER.fullmatch(text) else quoted(text)


def device_text(device: Any) -> str | None:
    """Return a device in the form of <beton/loader.h>. A number N means that
    GPU."""
    if device == "":
        raise ValueError("device='': there are cpu, cuda, and cuda:N")
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    # torch writes "cpu:0" if a job has many processes.
    return None if device is None else re.sub(r"^cpu:\d+$", "cpu", str(device))


def _numbers(weights: Any) -> NDArray[np.float64]:
    """Return weights as an array of one dimension."""
    if hasattr(weights, "detach"):
        weights = weights.detach().cpu()
    try:
        given = np.asarray(weights)
        if given.dtype.kind == "O":     # such as numbers beyond 64 bits
            given = given.astype(np.float64)
        if given.dtype.kind not in "biuf":
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"weights={shown(weights)}: a list of numbers, one "
                         "for each sample") from None
    if given.ndim != 1 or not len(given):
        raise ValueError(f"weights={shown(weights)}: a list of numbers, not "
                         f"{given.ndim} dimensions of shape {given.shape}")
    return given.astype(np.float64)


def whole_weights(weights: ArrayLike, bits: int = 62) -> NDArray[np.uint64]:
    """Return whole numbers in the ratios of the weights, with a sum of about
    2^bits. Multiplies only by powers of two, which is exact on every
    machine."""
    given = _numbers(weights)
    wrong = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if wrong.size:
        raise ValueError(f"weights[{wrong[0]}]={given[wrong[0]]:g}: weights "
                         "are numbers from 0")
    if not given.any():
        raise ValueError("weights are numbers from 0, and not all 0")
    bits -= (len(given) - 1).bit_length()
    _, exponent = np.frexp(given.max())
    # A positive weight must not become 0.
    scaled = np.ceil(np.ldexp(given, bits - int(exponent)))
    return np.asarray(scaled.astype(np.uint64))


def is_part(value: Any) -> bool:
    return hasattr(value, "indices") and hasattr(value, "dataset")


def part_ids(part: Any) -> tuple[Any, Any]:
    """Return the sample numbers of a Subset, which may be nested, and its
    dataset."""
    ids = np.asarray(part.indices)
    while is_part(part.dataset):
        part = part.dataset
        ids = np.asarray(part.indices)[ids]
    return ids, part.dataset


def check_part(of: Any, samples: int, fingerprint: str | None) -> None:
    """Raise ValueError if a Subset is `of` another dataset than the one with
    this fingerprint. One of another class, such as the ImageFolder that the
    file was made of, must have as many samples."""
    own = getattr(of, "_fingerprint", None)
    if None not in (own, fingerprint) and own != fingerprint:
        raise ValueError(f"a Subset of {shown(of)}: its numbers are of "
                         "samples there, and this is another dataset")
    if hasattr(of, "__len__") and len(of) != samples:
        raise ValueError(f"a Subset of {type(of).__name__} of {len(of)} "
                         f"samples, for a dataset of {samples}")


def _id_array(ids: Any) -> NDArray[Any]:
    """Return the array of a list, a tensor or any iterable."""
    if isinstance(ids, (bytes, bytearray)):
        raise TypeError(f"subset={shown(ids)}: a text of str, such as "
                        '"0-100", or a list of sample numbers')
    if callable(ids):
        raise TypeError(f"subset={shown(ids)}: a list of sample numbers; "
                        "Dataset(path).filter(field, function) makes one")
    if hasattr(ids, "set_epoch") or hasattr(ids, "replacement"):
        raise TypeError(f"subset={shown(ids)}: a sampler draws again in every "
                        "epoch, a subset stays: order= chooses the order, "
                        "weights= draws, and ranks share an epoch without a "
                        "sampler")
    if not hasattr(ids, "__array__") and isinstance(ids, Iterable):
        ids = list(ids)
        truths = sum(isinstance(v, (bool, np.bool_)) for v in ids)
        if 0 < truths < len(ids):
            raise TypeError(f"subset={shown(ids)}: sample numbers, or a mask "
                            "of a bool for each sample, not both")
    if not hasattr(ids, "__len__") or getattr(ids, "shape", None) == ():
        raise TypeError(f"subset={shown(ids)}: a list of sample numbers, a "
                        "range, a mask, a torch Subset, or "
                        '"FIRST-END"')
    return np.asarray(ids) if len(ids) else np.zeros(0, np.int64)


def _check_ids(ids: NDArray[Any]) -> None:
    """Raise ValueError unless these are sample numbers."""
    if ids.dtype.kind == "O" and ids.ndim == 1 and all(map(is_whole, ids)):
        i = next(i for i, n in enumerate(ids) if not 0 <= n < 1 << 63)
        raise ValueError(f"subset[{i}]={ids[i]}: no dataset has this sample")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        first = f", as {shown(ids.flat[0])}," if ids.size else ""
        raise ValueError("a subset is a list of sample numbers, not "
                         f"{ids.dtype}{first} of {ids.ndim} dimensions")
    if not len(ids):
        raise ValueError("the subset is empty: it needs one sample at "
                         "least; without subset= there are all")
    if len(ids) > 2 and ids.max() <= 1 and ids.min() >= 0:
        raise ValueError(f"subset: {len(ids)} numbers that are all 0 or 1: a "
                         "mask is of bool, as mask.astype(bool); weights= "
                         "draws samples more often")
    wrong = np.flatnonzero(ids < 0)
    if wrong.size:
        raise ValueError(f"subset[{wrong[0]}]={ids[wrong[0]]}: sample numbers "
                         "are from 0")


def length_array(lengths: ArrayLike) -> NDArray[Any]:
    """Return the lengths of samples. Raise ValueError unless there is one
    number for each."""
    own = np.asarray(lengths)
    if own.ndim != 1 or own.dtype.kind not in "iuf" or not own.size \
            or (own.dtype.kind == "f" and not np.isfinite(own).all()):
        raise ValueError(f"lengths={shown(lengths)}: the name of a field, or "
                         "a number for each sample")
    return own


def _range_of(text: str) -> range:
    found = re.fullmatch(r"(\d+)-(\d+)", text)
    if not found:
        raise ValueError(f"lengths with subset={text!r}: they go with a list "
                         "or a range of numbers; the file of a named one is in "
                         "order of length itself")
    return range(int(found[1]), int(found[2]))


def by_length(subset: Subset | None, lengths: NDArray[Any]) -> NDArray[Any]:
    """Return the samples in order of length. The sort is stable."""
    if isinstance(subset, str):
        subset = _range_of(subset)
    if isinstance(subset, slice):
        subset = range(*subset.indices(len(lengths)))
    ids = np.arange(len(lengths)) if subset is None else _id_array(subset)
    if ids.dtype.kind == "b" and ids.ndim == 1:
        ids = np.flatnonzero(ids)
    _check_ids(ids)
    if ids.max() >= len(lengths):
        raise ValueError(f"{len(lengths)} lengths, and the subset has sample "
                         f"{ids.max()}")
    return np.asarray(ids[np.argsort(lengths[ids], kind="stable")])


def _check_range(ids: range) -> None:
    """Raise ValueError unless these are sample numbers that fit a list."""
    if min(ids[0], ids[-1]) < 0:
        raise ValueError(f"subset={ids}: sample numbers are from 0")
    if max(ids[0], ids[-1]) >= _SAMPLES_MAX:
        raise ValueError(f"subset={ids}: a dataset has at most {_SAMPLES_MAX} "
                         "samples")


class SubsetFile:
    """A subset as the library takes it. `key` is for the spec. If the subset is
    a list, `ids` are its numbers, and `file` is a file of them in memory, which
    lives as long as the block. If there are weights, there is one for every
    sample of the subset, or of the dataset. `samples` is the number of samples
    that the dataset must have, and `kind` the values that require it: weights,
    or those of a mask. `of` is the dataset of a Subset."""

    def __init__(self, subset: Subset | None,
                 weights: ArrayLike | None = None,
                 lengths: NDArray[Any] | None = None) -> None:
        self.key: str | None = None
        self.file: str | None = None
        self.ids: Sequence[int] | NDArray[Any] | None = None
        self.samples: int | None = None
        self.kind = "weights"
        self.of: Any = None
        self._fd = -1
        self._weights = None if weights is None else whole_weights(weights)
        if self._weights is not None:
            if isinstance(subset, str):
                raise ValueError(f"weights with subset={subset!r}: they go "
                                 "with a list or a range of numbers; the file "
                                 "of a named one has its own")
            if subset is None:
                self.samples = len(self._weights)
                subset = range(self.samples)
        if lengths is not None:
            self.samples, self.kind = len(lengths), "lengths"
            subset = by_length(subset, lengths)
        if isinstance(subset, slice):
            if subset.step not in (None, 1) or subset.stop is None \
                    or not is_whole(subset.stop) or subset.stop < 0:
                raise ValueError(f"subset={subset}: a slice as a subset needs "
                                 "an end from 0, and no step; range() may "
                                 "have one")
            subset = range(subset.start or 0, subset.stop)
        if isinstance(subset, range) and subset:
            _check_range(subset)
        if isinstance(subset, str):
            if "," in subset:
                raise ValueError(f"subset={subset!r}: one range or name; other "
                                 "keys are in spec=")
            self.key, _, file = subset.partition(":")
            self.file = subset if file else None
        elif isinstance(subset, range) and subset.step == 1 and len(subset) \
                and self._weights is None:
            self.key = f"{subset.start}-{subset.stop}"
            self.ids = subset
        elif is_part(subset):
            ids, self.of = part_ids(subset)
            self._list(_id_array(ids))
        elif subset is not None:
            self._list(_id_array(subset))

    def _list(self, ids: NDArray[Any]) -> None:
        if ids.dtype.kind == "b" and ids.ndim == 1:
            self.samples, self.kind = len(ids), "values of the mask"
            ids = np.flatnonzero(ids)
        _check_ids(ids)
        self.ids = ids
        lines = map(str, ids.tolist())
        if self._weights is not None:
            if len(ids) != len(self._weights):
                raise ValueError(f"{len(self._weights)} weights for "
                                 f"{len(ids)} samples")
            lines = map("{} {}".format, lines, self._weights.tolist())
        self._fd = os.memfd_create("beton-subset", os.MFD_CLOEXEC)
        with open(self._fd, "w", closefd=False) as f:
            f.write("\n".join(lines) + "\n")
        self.key = "ids"
        self.file = f"ids:/proc/self/fd/{self._fd}"

    def named(self, text: str) -> str:
        """Replace the library's terms in a message by the user's arguments."""
        name = self.kind if self.samples \
            and self.kind in ("weights", "lengths") else "subset"
        text = re.sub(rf"/proc/self/fd/{self._fd}:(\d+)",
                      lambda m: f"{name}[{int(m[1]) - 1}]", text)
        if self._fd >= 0:
            text = re.sub("the mount has no subset ids~.*", self._of_mount(),
                          text)
        if text.endswith("subset=NAME too, a list with weights"):
            text += "; weights= has one for each sample"
        return text.replace(f"/proc/self/fd/{self._fd}", name)

    def _of_mount(self) -> str:
        """Return what to do if the mount does not have the list."""
        what, order = "the list of subset=", ""
        if self._weights is not None:
            what, order = "these weights", 'order="weighted", '
        elif self.kind == "lengths":
            what, order = "the list by these lengths", 'order="bucketed", '
        return (f"the mount does not have {what}: mount the dataset with -o "
                f'subset=NAME:FILE and pass {order}subset="NAME", or open the '
                "dataset's file")

    def check(self, samples: int, fingerprint: str | None) -> None:
        """Raise ValueError if it belongs to another dataset than the one with
        this fingerprint, or to one of another size. None matches all."""
        if self.samples not in (None, samples):
            raise ValueError(f"{self.samples} {self.kind} for {samples} "
                             "samples")
        check_part(self.of, samples, fingerprint)

    def __enter__(self) -> SubsetFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def tell_ignored(given: str | None, spec: str) -> None:
    """Warn about keys that the order of a complete spec does not use."""
    used = spec_keys(spec)
    for part in (given or "").split(","):
        key, = spec_keys(part)
        if key in _ORDERS_OF and key not in used:
            warnings.warn(
                f"spec: {part.strip()} has no effect with "
                f"{spec.partition(',')[0]}; it is for "
                f"order={_ORDERS_OF[key]}", UserWarning, stacklevel=4)


def batch_size_of(spec: str) -> int:
    """Return the batch size of a complete spec."""
    found = re.search(r"\bbatch=(\d+)", spec)
    assert found
    return int(found[1])


def why_empty(spec: str, samples: int, given: int | None, batches: int,
              world_size: int) -> str:
    """Return the reason why no epoch has a batch. The dataset has `samples`
    samples, and the subset has `given`, or None without a subset."""
    batch = batch_size_of(spec)
    if batches:
        return (f"an epoch has {batches} batches for {world_size} ranks, and "
                "drop_last leaves out what is not one for each of them: give "
                "a smaller batch_size, or drop_last=False")
    draws = re.search(r"\bnum_samples=(\d+)", spec)
    subset = "subset=" in spec
    n: int | None = int(draws[1]) if draws else given if subset else samples
    if n == 0:
        return "the dataset has no samples"
    few = "the samples of the subset" if n is None else f"{n} samples"
    most = f"batch_size={n} or less" if n else "a smaller batch_size"
    return (f"an epoch has no batches: {few} are less than one batch of "
            f"{batch}, and drop_last leaves it out: give {most}, or "
            "drop_last=False")
