# SPDX-License-Identifier: Apache-2.0
"""Several datasets as one loader: the choice of the dataset, the end of an epoch,
and resuming."""
import json
import pickle

import pytest

import make
import orders
import parts
import rerouted
from package import betonfs

SIZES, SHARES = (40, 26), (3, 1)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mix")
    return [make.numbers(folder / f"{n}.beton", n).path for n in SIZES]


@pytest.fixture
def mix(paths):
    """Opens mixes, and closes them."""
    opened = []

    def open_one(weights=SHARES, seed=7, cycle=False, **options):
        options = {"batch_size": 2, "seed": 3, "tensors": "numpy",
                   "workers": 1, **options}
        loaders = [betonfs.Loader(path, **options) for path in paths]
        opened.append(betonfs.Mix(loaders, weights, seed=seed, cycle=cycle))
        return opened[-1]
    yield open_one
    for one in opened:
        one.close()


def facts(batches, paths):
    of = [rerouted.url(path) for path in paths]
    return [(of.index(b.dataset), b.epoch, b.number, b.ids.tolist())
            for b in batches]


def drawn(seed, epoch, step, shares=SHARES):
    """From the manual's key() and mix() alone."""
    k = orders.key([seed, epoch, 3])
    number = orders.mix(k + orders.WEYL * (step + 1) & orders.M)
    return int(number / 2**64 * sum(shares) >= shares[0])


def model(epoch, seed=7, sizes=tuple(n // 2 for n in SIZES)):
    """Which dataset each step is of, up to the first that has no more."""
    counts, steps = [0] * len(sizes), []
    while True:
        i = drawn(seed, epoch, len(steps))
        if counts[i] == sizes[i]:
            return steps
        counts[i] += 1
        steps.append(i)


def test_an_epoch_ends_with_the_first_dataset(mix, paths):
    loader = mix()
    for epoch in range(3):
        length = len(loader)
        got = facts(loader, paths)
        assert [i for i, *_ in got] == model(epoch) and length == len(got)
        for i, path in enumerate(paths):
            alone = betonfs.Loader(path, 2, seed=3, epoch=epoch,
                                   tensors="numpy", workers=1)
            mine = [f for f in got if f[0] == i]
            assert mine and mine == [
                (i, *f[1:]) for f in facts(alone, [path])][:len(mine)]
            alone.close()
    assert len({tuple(model(e)) for e in range(3)}) == 3


def test_an_epoch_that_cycles_ends_with_the_last_dataset(mix, paths):
    loader = mix(cycle=True)
    got = []
    for epoch in range(4):
        length = len(loader)
        got.append(facts(loader, paths))
        assert len(got[-1]) == length
        counts = [sum(f[0] == i for f in got[-1]) for i in range(2)]
        assert all(c >= n // 2 for c, n in zip(counts, SIZES))
        assert counts.count(SIZES[got[-1][-1][0]] // 2) == 1
    # Each dataset by itself is a sequence without gaps.
    for i, n in enumerate(SIZES):
        mine = [f[1:3] for steps in got for f in steps if f[0] == i]
        assert mine == [divmod(k, n // 2) for k in range(len(mine))]
    for epoch in 2, 0, 3, 1:
        loader.set_epoch(epoch)
        assert facts(loader, paths) == got[epoch]


@pytest.mark.parametrize("cycle", [False, True])
def test_a_state_continues_after_any_step(mix, paths, cycle):
    def run(loader):
        return [facts(loader, paths) for _ in range(2)]
    whole = run(mix(cycle=cycle))
    loader = mix(cycle=cycle)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    assert len(states) == len(whole[0]) + 1
    other = mix(cycle=cycle)
    for k, state in enumerate(states):
        other.load_state_dict(json.loads(json.dumps(state)))
        other.load_state_dict(other.state_dict())
        if k == len(whole[0]):      # the end is the next one's start
            assert other.state_dict()["epoch"] == 1
            assert facts(other, paths) == whole[1]
        else:
            assert other.state_dict()["steps"] == k
            assert run(other) == [whole[0][k:], whole[1]]


def test_a_loop_that_is_left_is_over(mix, paths):
    for cycle in False, True:
        loader = mix(cycle=cycle)
        facts(loader, paths)
        want = facts(loader, paths)
        loader.set_epoch(0)
        for _ in zip(range(5), loader):
            pass
        assert facts(loader, paths) == want
        loader.set_epoch(1)
        old = iter(loader)
        next(old)
        loader.set_epoch(1)
        assert facts(loader, paths) == want
        with pytest.raises(RuntimeError, match="another iteration"):
            next(old)


@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_take_batches_of_the_same_dataset(mix, paths, cycle, drop_last):
    options = {"world_size": 3, "drop_last": drop_last, "cycle": cycle}
    ranks = [facts(mix(rank=r, **options), paths) for r in range(3)]
    assert len(ranks[0]) > 3
    for step in zip(*ranks, strict=True):
        assert len({f[0] for f in step}) == 1
        assert [f[2] - step[0][2] for f in step] == [0, 1, 2]


def test_a_state_continues_in_another_world_size(mix, paths):
    loader = mix(rank=0, world_size=2)
    for _ in zip(range(4), loader):
        pass
    state = loader.state_dict()
    alone = mix()
    alone.load_state_dict(state)
    rest = facts(alone, paths)
    for i, own in enumerate(state["loaders"]):
        mine = [f[2] for f in rest if f[0] == i]
        assert mine == list(range(own["batches"],
                                  own["batches"] + len(mine)))


def test_states_of_others_are_refused(mix):
    state = mix().state_dict()
    for other in mix(seed=8), mix(cycle=True), mix(weights=[1, 1]):
        with pytest.raises(ValueError, match="the state is of"):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match="the state is of"):
        mix(batch_size=4).load_state_dict(state)


def test_a_mix_pickles_with_its_place(mix, paths):
    loader = mix()
    for _ in zip(range(5), loader):
        pass
    copy = pickle.loads(pickle.dumps(loader))
    want = mix()
    want.load_state_dict(loader.state_dict())
    with copy:
        assert facts(copy, paths) == facts(want, paths)


def test_a_mix_of_one_is_a_loader(paths):
    with betonfs.Mix([betonfs.Loader(paths[0], 2, workers=1,
                                     tensors="numpy")]) as one:
        got = facts(one, paths)
        assert [f[2] for f in got] == list(range(20)) and len(one) == 20
        assert [s["throughput"]["batches"] for s in one.stats()] == [20]
        assert "1 of" in repr(one)
    assert one.loaders[0]._core.closed


def labels(tmp_path, names, file="x", **options):
    path = parts.labels(tmp_path / f"{file}.beton", [0] * 8, names).path
    return betonfs.Loader(path, 2, workers=1, **options)


def test_classes_mean_the_same_in_all_datasets(tmp_path):
    train = labels(tmp_path, ["ant", "bee", "cat"], "train")
    for names in ["ant", "bee"], ["ant", "bee", "cat", "dog"]:
        betonfs.Mix([train, labels(tmp_path, names, "more")])
    val = labels(tmp_path, ["ant", "cat"], "val")
    with pytest.raises(ValueError, match="output 'label': class 1 of .*val.beton"
                       ".* is 'cat', but 'bee' in .*train.beton"):
        betonfs.Mix([train, val])
    own = labels(tmp_path, ["ant", "cat"], "own",
                 pipeline={"kind": "label | int32"})
    betonfs.Mix([train, own])
    with pytest.warns(UserWarning, match="none.beton' has no class names"):
        betonfs.Mix([train, labels(tmp_path, None, "none")])


def test_invalid_mixes_are_refused(paths):
    def opened(**options):
        return betonfs.Loader(paths[0], **{"batch_size": 8, "workers": 1,
                                           **options})
    with opened() as a, opened() as b, opened(rank=1, world_size=2) as other:
        for loaders, options, word in (
                ([], {}, "no loaders"), ([a, other], {}, "different ranks"),
                ([a, b], {"weights": [1]}, "1 weights for 2"),
                ([a, b], {"weights": [1, 0]}, "above 0")):
            with pytest.raises(ValueError, match=word):
                betonfs.Mix(loaders, **options)
    with pytest.raises(ValueError, match="no batch"):
        opened(batch_size=256)
