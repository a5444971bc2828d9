# SPDX-License-Identifier: Apache-2.0
"""Loaders for validation: each sample once over all ranks, for code that does
not use `valid`; exact in the middle of an epoch, with any world size."""
import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import PACKAGE, betonfs, opener  # noqa: E402

N, B = 60, 20
WORLDS = [1, 2, 3, 8]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("validation") / "v.beton"
    betonfs.write(path, [{"label": i} for i in range(N)])
    return path


@pytest.fixture
def load(path):
    with opener(path, batch_size=B, tensors="numpy", workers=1) as open_one:
        yield open_one


def labels(loader):
    """The labels of each batch, as a metric gets them."""
    return [batch["label"].tolist() for batch in loader]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [B, 17, 7, 64])
def test_ranks_see_each_sample_once(load, world, size):
    ranks = [load(batch_size=size, train=False, rank=r, world_size=world)
             for r in range(world)]
    for epoch in range(3):
        got = [labels(x) for x in ranks]
        assert sorted(i for r in got for b in r for i in b) == list(range(N))
        steps = [len(r) for r in got]
        assert steps == [len(x) for x in ranks]
        assert max(steps) - min(steps) <= 1
        states = [x.state_dict() for x in ranks]
        assert all(s == states[0] for s in states)
        # All ranks together have the order of the file.
        turns = [b for k in range(max(steps)) for r in got for b in r[k:k + 1]]
        assert sum(turns, []) == list(range(N))


def test_options_implied_by_train_are_reported(load):
    assert load(train=False).spec == \
        f"order=sequential,batch={B},seed=0,drop_last=0"
    for options, part in (({"order": "random"}, "order=random"),
                          ({"shuffle": True}, "order=random"),
                          ({"spec": "order=random"}, "order=random"),
                          ({"drop_last": True}, "drop_last=1"),
                          ({"spec": "drop_last=1"}, "drop_last=1")):
        assert part in load(train=False, **options).spec
    assert load().spec == load(train=True).spec == \
        f"order=random,batch={B},seed=0,drop_last=1"


@pytest.mark.parametrize("world", [2, 8])
def test_padding_makes_equal_steps(load, world):
    for options in ({"train": False, "pad": "repeat"}, {"drop_last": False}):
        ranks = [load(rank=r, world_size=world, **options) for r in range(world)]
        got = [list(x) for x in ranks]
        assert {len(r) for r in got} == {-(-(N // B) // world)}
        assert sorted(int(i) for r in got for b in r
                      for i in b.ids[b.valid]) == list(range(N))
    with pytest.raises(ValueError, match="pad='zero'.*repeat, drop"):
        load(pad="zero")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("then", WORLDS)
def test_a_state_continues_in_another_world_size(load, world, then):
    options = {"train": False, "batch_size": 7}     # 9 batches
    ranks = [load(rank=r, world_size=world, **options) for r in range(world)]
    its = [iter(x) for x in ranks]
    seen = [b["label"].tolist() for it in its for b in [next(it)]]
    states = [x.state_dict() for x in ranks]
    assert all(s == states[0] for s in states)
    for r in range(then):
        other = load(rank=r, world_size=then, **options)
        other.load_state_dict(states[0])
        rest = labels(other)
        # After it a whole epoch.
        assert len(labels(other)) == len(other)
        seen += rest
    assert sorted(sum(seen, [])) == list(range(N))


@pytest.mark.parametrize("options", [
    {}, {"drop_last": False}, {"train": False}])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("then", WORLDS)
def test_steps_are_counted_in_the_world_size_that_resumes(load, world, then,
                                                     options):
    options = {**options, "batch_size": 3}     # 20 batches
    first = load(rank=0, world_size=world, **options)
    assert first.step == 0
    for step, _ in zip(range(2), first):
        assert first.step == (step + 1) % len(first)
    for rank in range(then):
        other = load(rank=rank, world_size=then, **options)
        other.load_state_dict(first.state_dict())
        assert other.step == len(other) - len(list(other))
        # The following epoch is whole.
        assert other.step == 0
        assert len(list(enumerate(other, other.step))) == len(other)


def test_a_rank_behind_its_last_batch_is_not_at_the_end(load):
    """Others have one more: 3 batches, 2 ranks."""
    ranks = [load(rank=r, world_size=2, train=False) for r in range(2)]
    its = [iter(x) for x in ranks]
    for it in its:
        next(it)
    states = [x.state_dict() for x in ranks]
    assert states[0] == states[1] and states[0]["batches"] == 2
    copy = pickle.loads(pickle.dumps(ranks[0]))
    assert labels(copy) == [list(range(40, 60))]
    copy.close()
    assert next(its[1], None) is None
    assert next(its[0])["label"].tolist() == list(range(40, 60))


def test_a_rank_may_have_no_batch(load):
    few = [load(rank=r, world_size=8, train=False) for r in range(8)]
    assert [len(x) for x in few] == [1, 1, 1, 0, 0, 0, 0, 0]
    few[7].set_epoch(4)
    assert labels(few[7]) == [] and labels(few[7]) == []
    few[1].set_epoch(4)
    assert len(labels(few[1])) == 1 and len(labels(few[1])) == 1
    assert few[7].state_dict() == few[1].state_dict()


def test_a_mix_needs_equal_steps(load):
    with betonfs.Mix([load(train=False), load(train=False)]) as mix:
        assert len(labels(mix))
    with pytest.raises(ValueError, match='pad="repeat"'):
        betonfs.Mix([load(train=False, rank=0, world_size=2)])


@pytest.mark.parametrize("world", WORLDS)
def test_the_loader_of_ffcv_gives_each_sample_once(path, monkeypatch, world):
    pytest.importorskip("torch")
    from betonfs.ffcv.loader import Loader, OrderOption
    seen = []
    monkeypatch.setenv("WORLD_SIZE", str(world))
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        loader = Loader(path, B, 1, order=OrderOption.SEQUENTIAL,
                        distributed=True, drop_last=False)
        mine = [np.asarray(b[0]).ravel().tolist() for b in loader]
        assert len(mine) == len(loader)
        seen += sum(mine, [])
        loader.close()
    assert sorted(seen) == list(range(N))


@pytest.mark.parametrize("source", ["constant", "memory", "memory(1KiB)"])
def test_replayed_batches_have_no_padding(load, source):
    for world in 2, 8:
        ranks = [load(rank=r, world_size=world, train=False, source=source)
                 for r in range(world)]
        for _ in range(3):
            numbers = [b.number for x in ranks for b in x]
            assert sorted(numbers) == list(range(N // B))


def test_accuracy_is_that_of_one_process(tmp_path):
    """A trained network and real processes of torch.distributed."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    colors = 100 + 30 * np.eye(3)
    betonfs.write(tmp_path / "v.beton", [
        {"image": rng.normal(colors[i % 3], 60, (8, 8, 3)).clip(0, 255)
         .astype(np.uint8), "label": i % 3} for i in range(N)], mode="raw")
    r = subprocess.run(
        [sys.executable, pathlib.Path(__file__).parent / "scripts/validation.py",
         tmp_path / "v.beton", str(B), *map(str, WORLDS)], timeout=300,
        capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": str(PACKAGE),
            "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"})
    assert r.returncode == 0, r.stdout + r.stderr
    reported = [json.loads(line) for line in r.stdout.splitlines()]
    assert [len(ranks) for ranks in reported] == WORLDS
    assert [sum(t.pop("batches") for t in ranks) for ranks in reported] == \
        [N // B] * len(WORLDS)
    (single,), *_ = reported
    # Neither chance nor perfect: a sample more or less would be seen.
    assert 0.4 < single["example"] < 1
    assert all(t == single for ranks in reported for t in ranks), reported
