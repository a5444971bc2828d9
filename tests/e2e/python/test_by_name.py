# SPDX-License-Identifier: Apache-2.0
"""Batches by name: bit for bit those of an iteration, in any order, from any
rank, and without a change of the position."""
import random
import time

import numpy as np
import pytest

import dumped
from dumped import AUGMENT
from package import betonfs
from package import snapshot

pytest.importorskip("PIL.Image")

N, SIZE = 42, 4
SPEC = f"batch={SIZE},seed=3,drop_last=0"
BATCHES = -(-N // SIZE)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("names") / "p.beton", N)


def opened(data, **options):
    return betonfs.Loader(data.path, **{
        "spec": SPEC, "pipeline": AUGMENT, "tensors": "numpy", "workers": 2,
        "pad": "drop", **options})


@pytest.fixture(scope="module")
def whole(data):
    """Two epochs of an iteration: (epoch, number) -> batch."""
    with opened(data) as loader:
        found = {}
        for _ in range(2):
            for batch in loader:
                found[batch.epoch, batch.number] = snapshot(batch)
    assert len(found) == 2 * BATCHES
    return found


@pytest.mark.parametrize("options", [
    {}, {"rank": 2, "world_size": 4}, {"workers": 1, "prefetch": 1},
    {"on_demand": True}, {"on_demand": True, "prefetch": 8},
    {"cache": "process", "cache_size": 4 << 20}], ids=str)
def test_a_batch_by_name_is_that_of_an_iteration(data, whole, options):
    names = list(whole) * 2
    random.Random(7).shuffle(names)
    with opened(data, **options) as loader:
        assert loader.batches == BATCHES
        for name in names:
            batch = loader.batch(*name)
            assert (batch.epoch, batch.number) == name
            assert snapshot(batch) == whole[name]


def test_an_iteration_goes_on_beside_it(data, whole):
    with opened(data) as loader:
        for i, batch in enumerate(loader):
            assert snapshot(batch) == whole[0, i]
            state = loader.state_dict()
            last = BATCHES - 1 - i
            assert snapshot(loader.batch(1, last)) == whole[1, last]
            # Held as others are.
            assert snapshot(batch) == whole[0, i]
            assert loader.state_dict() == state
        assert i == BATCHES - 1
        assert [b.number for b in loader] == list(range(BATCHES))


def test_batches_are_made_before_they_are_taken(data, whole):
    with opened(data, on_demand=True, prefetch=3) as loader:
        core = loader._core
        for number in range(5):
            core.ask(0, number)
        deadline = time.monotonic() + 20
        while not all(core.ask(0, number) for number in range(3)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        # The others wait for room.
        time.sleep(0.2)
        assert loader.stats()["stages"]["read"]["items"] == 3
        for number in range(5):
            assert snapshot(loader.batch(0, number)) == whole[0, number]
        assert loader.stats()["stages"]["read"]["items"] == 5


def test_batches_that_are_never_taken_leave_room(data, whole):
    with opened(data, on_demand=True, prefetch=2) as loader:
        for k in range(200):
            loader._core.ask(2 + k, k % BATCHES)
        for name in random.Random(1).sample(list(whole), 10):
            assert snapshot(loader.batch(*name)) == whole[name]


def test_on_demand_makes_nothing_else(data):
    with opened(data, on_demand=True) as loader:
        time.sleep(0.3)
        assert loader.stats()["stages"]["read"]["items"] == 0
        with pytest.raises(ValueError, match="by name"):
            next(iter(loader))
        assert loader.batch(0, 0).number == 0


@pytest.mark.parametrize("name, text", [
    ((0, BATCHES), "no batch 11 of epoch 0"), ((1 << 63, 0), "epoch"),
    ((-1, 0), "epoch"), ((0, -1), "number"), ((0, 1.5), "number")])
def test_other_names_are_refused(data, name, text):
    with opened(data) as loader:
        with pytest.raises((ValueError, TypeError, betonfs.BetonError,
                            OverflowError), match=text):
            loader.batch(*name)
        assert loader.batch(0, 0).number == 0


def test_transforms_apply(data, whole):
    def black(batch):
        batch["image"] = np.zeros_like(batch["image"])
        return batch

    with opened(data, transforms=[black]) as loader:
        found = loader.batch(1, 2)
        assert not found["image"].any()
        assert found.ids.tolist() == whole[1, 2][2]


def test_a_closed_loader_makes_none(data):
    loader = opened(data)
    loader.close()
    with pytest.raises(RuntimeError, match="closed"):
        loader.batch(0, 0)
