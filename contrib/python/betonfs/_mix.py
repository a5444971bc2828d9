# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import shown, truth, whole
from ._epochs import Epochs
from ._loader import Loader
from ._options import whole_weights
from ._random import WEYL, key, mix
from ._words import known_words

# Number of draws to compute at a time.
_BLOCK = 4096
# Separates these random numbers from other uses of the seed, beton-orders(7).
_FOR_MIX = 3


class _Draws:
    """The loader of each step of an epoch."""

    def __init__(self, seed: int, weights: ArrayLike) -> None:
        self._seed = seed
        # Products with numbers of 32 bits stay below 2^64.
        self.weights = whole_weights(weights, 31)
        self._sums = np.cumsum(self.weights, dtype=np.uint64)
        self._blocks: dict[tuple[int, int], NDArray[np.intp]] = {}

    def block(self, epoch: int, number: int) -> NDArray[np.intp]:
        """Draw the steps from _BLOCK * number on."""
        found = self._blocks.get((epoch, number))
        if found is None:
            at = np.arange(number * _BLOCK + 1, (number + 1) * _BLOCK + 1,
                           dtype=np.uint64)
            numbers = mix(key(self._seed, epoch, _FOR_MIX) + at * WEYL)
            ticks = ((numbers >> np.uint64(32)) * self._sums[-1]
                     >> np.uint64(32))
            found = np.searchsorted(self._sums, ticks, "right")
            if len(self._blocks) > 64:
                self._blocks.clear()
            self._blocks[epoch, number] = found
        return found

    def at(self, epoch: int, step: int) -> int:
        return int(self.block(epoch, step // _BLOCK)[step % _BLOCK])

    def length(self, epoch: int, lengths: Sequence[int], cycle: bool
               ) -> tuple[int, NDArray[np.int64]]:
        """Return the number of steps of an epoch, and the number for each
        loader."""
        most = np.array(lengths, np.int64)
        counts = np.zeros(len(most), np.int64)
        number = 0
        while True:
            drawn = self.block(epoch, number)
            ones = drawn[:, None] == np.arange(len(most))
            after = counts + np.cumsum(ones, 0)
            # Find the first step that draws from an exhausted loader, or after
            # which all are exhausted.
            over = (after >= most).all(1) if cycle else (after > most).any(1)
            if over.any():
                last = int(over.argmax())
                end = last + 1 if cycle else last
                counts += ones[:end].sum(0)
                return number * _BLOCK + end, counts
            counts = after[-1]
            number += 1


def _loaders(given: Any) -> tuple[Loader, ...]:
    """Check the loaders of a mix. Each may occur once."""
    if isinstance(given, Epochs) or not isinstance(given, (list, tuple)):
        raise TypeError(f"loaders={shown(given)}: a list of loaders, such as "
                        "[betonfs.Loader(a), betonfs.Loader(b)]")
    for loader in given:
        if not isinstance(loader, Loader):
            raise TypeError(f"loaders: {shown(loader)} is no betonfs.Loader")
    if len(set(map(id, given))) < len(given):
        raise ValueError("loaders: one of them is given twice; weights= gives "
                         "it a larger share")
    return tuple(given)


def _check_classes(loaders: Sequence[Loader]) -> None:
    """Refuse outputs of one name whose numbers mean several classes: one list
    of names must begin with the other."""
    known: dict[str, tuple[Loader, list[str]]] = {}
    for loader in loaders:
        for output, more in loader._classes_of_outputs().items():
            first, names = known.setdefault(output, (loader, more))
            for i, (mine, its) in enumerate(zip(names, more)):
                if mine != its:
                    raise ValueError(
                        f"output {output!r}: class {i} of {loader.path!r} is "
                        f"{its!r}, but {mine!r} in {first.path!r}: beton merge "
                        "unites the classes; if these are different tasks, "
                        "give the outputs different names by pipeline=")
            if (not names) != (not more):
                warnings.warn(
                    f"output {output!r}: "
                    f"{(first if more else loader).path!r} has no class names, "
                    f"but {(loader if more else first).path!r} has some: equal "
                    "numbers may mean different classes", stacklevel=4)
            if len(more) > len(names):
                known[output] = loader, more


class Mix(Epochs):
    """Iterate over the batches of several loaders. Each batch comes from one
    loader, which is drawn at random by its weight.

        photos = betonfs.Loader("photos.beton", 256)
        drawings = betonfs.Loader("drawings.beton", 256)
        for batch in betonfs.Mix([photos, drawings], weights=[0.7, 0.3]):
            train(batch.image, batch.dataset)

    The draw of a step depends only on `seed`, the epoch and the step, so all
    ranks take their batches from the same loader, and equally many of them.
    ``batch.dataset`` names the dataset of a batch.

    If loaders have outputs of the same name and class names for them, the shorter
    list must be the beginning of the longer one.

    Parameters
    ----------
    loaders
        The loaders. The mix owns them from then on, and closes them.
    weights
        A number above 0 for each loader (default: the same for all).
    seed
        Seed of the draws (default: 0). The loaders have seeds of their own.
    cycle
        False: the epoch ends when the mix draws an exhausted loader. Then all
        loaders begin their next epoch. True: the epoch ends when the mix has
        drawn each loader as often as it has batches. A loader that ends
        earlier begins its next epoch. In the mix's next epoch, all loaders
        continue at their positions.
    """

    @known_words("Mix")
    def __init__(self, loaders: Sequence[Loader],
                 weights: ArrayLike | None = None, *, seed: int = 0,
                 cycle: bool = False) -> None:
        self.loaders = _loaders(loaders)
        seed = whole("seed", seed, 0, (1 << 64) - 1)
        cycle = truth("cycle", cycle)
        if not self.loaders:
            raise ValueError("a mix of no loaders")
        if len({(x.rank, x.world_size) for x in self.loaders}) > 1:
            raise ValueError("the loaders are of different ranks")
        self._world = self.loaders[0].world_size
        if self._world > 1 and any(x._no_padding for x in self.loaders):
            raise ValueError("ranks of a mix take equal steps: open its "
                             'loaders with pad="repeat"')
        self._draws = _Draws(seed, [1] * len(self.loaders)
                             if weights is None else weights)
        if len(self._draws.weights) != len(self.loaders):
            raise ValueError(f"{len(self._draws.weights)} weights for "
                             f"{len(self.loaders)} loaders")
        self.cycle = cycle
        if not self._draws.weights.all():
            raise ValueError("weights of a mix are above 0")
        _check_classes(self.loaders)
        self.seed = seed
        # Guards the position. A thread holds it while it waits for a batch.
        self._lock = threading.RLock()
        # Number of the iteration. A new iteration, or a move, ends the older ones.
        self._turn = 0
        self._ended = False
        self._fresh = False
        self._epoch = -1
        self.set_epoch(0)

    # --- batches ---

    def __len__(self) -> int:
        """Batches of this rank in the current or next epoch. The number is
        random and differs between epochs."""
        return self._length(self._epoch)[0]

    def _length(self, epoch: int) -> tuple[int, NDArray[np.int64]]:
        return self._draws.length(epoch, [len(x) for x in self.loaders],
                                  self.cycle)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            if not self._fresh:
                self.set_epoch(self._epoch + 1)
            return self._iteration(self._start())

    def _start(self) -> int:
        """Begin an iteration at the current position. Return its number."""
        self._fresh = self._ended = False
        self._turns = [x._begin() for x in self.loaders]
        self._turn += 1
        return self._turn

    def _is_over(self, i: int) -> bool:
        if self.cycle:
            return all(taken >= len(x) * self._world for taken, x in
                       zip(self._taken, self.loaders))
        return not self._left[i]

    def _take(self, i: int) -> Any:
        loader = self.loaders[i]
        batch = loader._next(self._turns[i])
        if batch is None and self.cycle:
            self._turns[i] = loader._core.begin()
            self._left[i] = len(loader)
            batch = loader._next(self._turns[i])
        return batch

    def _next(self, turn: int) -> Any:
        with self._lock:
            if self._turn != turn:
                raise RuntimeError("another iteration of the mix began, or its "
                                   "position changed: run one iteration at a "
                                   "time")
            return None if self._ended else self._step_on()

    def _step_on(self) -> Any:
        i = self._draws.at(self._epoch, self._step)
        batch = None
        if not self._is_over(i):
            try:
                batch = self._take(i)
            except Exception:
                self._count(i)
                raise
        if batch is None:
            self._ended = True
            self._begin(self._epoch + 1)
        else:
            self._count(i)
        return batch

    def _count(self, i: int) -> None:
        self._step += 1
        self._left[i] -= 1
        self._taken[i] += self._world

    # --- its place ---

    def _rest(self, loader: Loader, state: Mapping[str, Any],
              epoch: int) -> int:
        """Return the remaining steps of a loader's epoch. If cycle is True, this is the epoch of its next batch."""
        batches = loader._core.info()["batches"]
        left: int = batches - state["batches"]
        if left <= 0 or not (self.cycle or state["epoch"] == epoch):
            return len(loader) if self.cycle else 0
        if "drop_last=1" in loader.spec:
            return left // self._world
        return -(-left // self._world)

    def _stand(self, epoch: int, states: Sequence[Mapping[str, Any]]) -> None:
        self._epoch = epoch
        self._step = 0
        # Batches of each loader in this epoch, of all ranks.
        self._taken = [0] * len(self.loaders)
        self._left = [self._rest(x, state, epoch)
                      for x, state in zip(self.loaders, states)]
        self._fresh = True

    def _begin(self, epoch: int) -> None:
        """Begin an epoch. The loaders are at the end of the previous one."""
        if not self.cycle:
            for loader in self.loaders:
                loader.set_epoch(epoch)
        self._stand(epoch, [x.state_dict() for x in self.loaders])

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration. It starts at the epoch's
        beginning. If you loaded a state of this epoch, it continues there."""
        with self._lock:
            untouched = self._untouched()
            self._turn += 1
            if self._epoch != epoch or not (self._fresh or untouched):
                if self.cycle:
                    self._replay(epoch)
                self._begin(epoch)
            if untouched:
                untouched._turn = self._start()

    def _replay(self, epoch: int) -> None:
        """Move each loader to its position after so many epochs."""
        taken = np.zeros(len(self.loaders), np.int64)
        for e in range(epoch):
            taken += self._length(e)[1]
        for loader, n in zip(self.loaders, taken.tolist()):
            own, steps = divmod(n, len(loader))
            loader.load_state_dict({**loader.state_dict(), "epoch": own,
                                    "batches": steps * self._world})

    def state_dict(self) -> dict[str, Any]:
        """Return the position as a small dict, for a checkpoint. It counts the
        batches that your loop received, and is the same on all ranks."""
        with self._lock:
            return {"version": 1, "seed": self.seed, "cycle": self.cycle,
                    "weights": self._draws.weights.tolist(),
                    "epoch": self._epoch, "steps": self._step,
                    "batches": list(self._taken),
                    "loaders": [x.state_dict() for x in self.loaders]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a checkpoint: the next iteration begins after the last
        batch that the state counts. If the number of ranks differs from that of
        the checkpoint, each dataset continues exactly, but an epoch has another
        number of steps, and other draws.

        Raises ValueError if the state belongs to another mix, dataset or spec.
        """
        mine = self.state_dict()
        if not isinstance(state, Mapping) or not mine.keys() <= state.keys():
            raise ValueError(f"{shown(state)} is no state of a mix: give what "
                             "its state_dict() returned")
        for what in ("version", "seed", "cycle", "weights"):
            if state[what] != mine[what]:
                raise ValueError(f"the state is of {what} {state[what]}, the "
                                 f"mix's is {mine[what]}")
        with self._lock:
            self._turn += 1
            for loader, own in zip(self.loaders, state["loaders"],
                                   strict=True):
                loader.load_state_dict(own)
            self._stand(state["epoch"], state["loaders"])
            self._step = state["steps"]
            self._taken = list(state["batches"])
            # The end of an epoch is the start of the next one.
            if self._step and self._is_over(self._draws.at(self._epoch,
                                                           self._step)):
                self._begin(self._epoch + 1)

    # --- facts ---

    def stats(self) -> list[dict[str, Any]]:
        """The statistics of the loaders, in their order."""
        return [x.stats() for x in self.loaders]

    def __repr__(self) -> str:
        share = self._draws.weights / self._draws.weights.sum()
        parts = ", ".join(f"{s:.3g} of {x.path!r}"
                          for s, x in zip(share, self.loaders))
        return f"<betonfs.Mix: {parts}>"

    # --- the end ---

    def close(self) -> None:
        """Close the loaders. Batches that you hold stay valid."""
        for loader in self.loaders:
            loader.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.loaders, self.state_dict())


def _reopen(loaders: Sequence[Loader], state: dict[str, Any]) -> Mix:
    mix = Mix(loaders, state["weights"], seed=state["seed"],
              cycle=state["cycle"])
    mix.load_state_dict(state)
    return mix
