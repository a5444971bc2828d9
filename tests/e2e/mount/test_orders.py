# SPDX-License-Identifier: Apache-2.0
"""The samples, batches and ranks that an order gives to a trainer."""
import json
import os
import pathlib

import pytest

import make
import orders
from dumped import beton, ids, dump, show

N = 53

SPECS = [
    "order=sequential,batch=7,drop_last=0",
    "order=random,batch=8",
    "order=random,batch=5,seed=18446744073709551615,drop_last=0",
    "order=quasi_random,batch=6,block=4,window=20,seed=3",
    "order=quasi_random,batch=9,drop_last=0",
    "order=quasi_random,batch=4,block=1,window=1KiB",
    "order=random,batch=10,subset=11-50,drop_last=0",
    "order=quasi_random,batch=3,block=5,window=7,subset=0-1,drop_last=0",
    "order=bucketed,batch=6,bucket=20,seed=3",
    "order=bucketed,batch=7,bucket=1,drop_last=0,subset=11-50",
    "order=bucketed,batch=5,drop_last=0",
    "order=bucketed,batch=60,drop_last=0",
    "batch=1000",
    "batch=1000,drop_last=0",
    "batch=1",
    "",
]


def test_the_manual_prints_the_model():
    page = pathlib.Path(__file__).parents[3] / "fs/base/order/beton-orders.7"
    module = pathlib.Path(orders.__file__).read_text()
    license, code = module.split("\n", 1)
    assert license.startswith("# SPDX")
    assert f".Bd -literal\n{code}.Ed\n" in page.read_text()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return make.numbers(tmp_path_factory.mktemp("orders") / "n.beton", N).path


def model(spec, epoch=0):
    """The global sequence, from the manual alone. Records are 8 bytes."""
    s = orders.resolve(spec, N, 8 * N)
    size, n = int(s["batch"]), s["n"]
    all_ids = [orders.sample(s, epoch, i) for i in range(n)]
    end = n // size * size if int(s["drop_last"]) else n
    return [all_ids[i:min(i + size, n)] for i in range(0, end, size)]


@pytest.mark.parametrize("epoch", [0, 1, 2 ** 63 - 1])
@pytest.mark.parametrize("spec", SPECS)
def test_batches_are_those_of_the_manual(numbers, tmp_path, spec, epoch):
    got = ids(numbers, tmp_path / "out", "--spec", spec, "--epoch", epoch)
    assert got == dict(enumerate(model(spec, epoch)))


def test_epochs_end_where_a_state_can_still_be_written(numbers, tmp_path):
    r = beton("dump", numbers, "--out", tmp_path / "x", "--epoch", 2 ** 63,
              code=2)
    assert "--epoch" in r.stderr


@pytest.mark.parametrize("spec", SPECS)
def test_a_mount_gives_the_same_batches(numbers, mount, spec):
    folder = mount(numbers) / "batches" / (spec or "default") / "4"
    files = sorted(os.listdir(folder))
    assert files == ["%06d.batch" % i for i in range(len(files))]
    assert [show(folder / f)["ids"] for f in files] == model(spec, 4)


@pytest.mark.parametrize("order", ["sequential", "random", "quasi_random"])
def test_an_epoch_has_every_sample_once(numbers, tmp_path, order):
    for epoch in range(3):
        got = ids(numbers, tmp_path / str(epoch), "--spec",
                  f"order={order},batch=4,drop_last=0", "--epoch", epoch)
        assert sorted(sum(got.values(), [])) == list(range(N))


def test_epochs_and_seeds_are_different_orders(numbers, tmp_path):
    seen = set()
    for seed in range(3):
        for epoch in range(3):
            out = tmp_path / f"{seed}{epoch}"
            got = ids(numbers, out, "--spec", f"seed={seed},batch=53",
                      "--epoch", epoch)
            seen.add(tuple(got[0]))
    assert len(seen) == 9


@pytest.mark.parametrize("drop_last", [0, 1])
@pytest.mark.parametrize("world", [1, 2, 3, 5, 8, 20])
def test_ranks_take_turns_in_one_sequence(numbers, tmp_path, world,
                                          drop_last):
    spec = f"batch=4,drop_last={drop_last},seed=2"
    sequence = model(spec)
    n = len(sequence)
    steps = n // world if drop_last else -(-n // world)
    taken = []
    for rank in range(world):
        batches = dump(numbers, tmp_path / str(rank), "--spec", spec,
                       "--rank", rank, "--world-size", world, "--jobs", 1)
        assert [b.number for b in batches] == \
            [rank + world * k for k in range(steps)]
        for b in batches:
            assert b.ids == sequence[b.number % n]
            padding = b.number >= n
            assert b.valid == [not padding] * len(b.ids)
            if not padding:
                taken += b.ids
    assert len(set(taken)) == len(taken)
    assert drop_last or sorted(taken) == list(range(N))


def test_padding_repeats_the_values_too(tmp_path):
    path = make.every_type(tmp_path / "d.beton", 10).path
    no_image = "image | drop"
    args = ["--spec", "batch=4,drop_last=0", "--world-size", 4, "--pipeline",
            no_image]
    first = dump(path, tmp_path / "0", "--rank", 0, *args)
    last = dump(path, tmp_path / "3", "--rank", 3, *args)
    assert [b.number for b in first + last] == [0, 3]
    assert last[0].valid == [False] * 4
    for name, a in first[0].outputs.items():
        assert (a == last[0].outputs[name]).all()


@pytest.mark.parametrize("span,want", [
    ("0:0", []), ("0:2", [0, 1]), ("3:5", [3, 4]), (":1", [0]),
    ("11:", [11, 12]), ("40:50", []), ("12:1000", [12])])
def test_a_range_of_batches(numbers, tmp_path, span, want):
    spec = "batch=4"
    got = ids(numbers, tmp_path / "x", "--spec", spec, "--batches", span)
    assert got == {i: model(spec)[i] for i in want}


def test_a_range_past_the_end_is_reported(numbers, tmp_path):
    r = beton("dump", numbers, "--spec", "batch=4", "--batches", "13:15",
              "--out", tmp_path / "x")
    assert "13, but an epoch has 13" in r.stderr


def test_a_range_picks_from_the_global_sequence_of_all_ranks(numbers,
                                                             tmp_path):
    for rank in range(3):
        got = ids(numbers, tmp_path / str(rank), "--spec", "batch=4",
                  "--batches", "4:9", "--rank", rank, "--world-size", 3)
        assert list(got) == [i for i in range(4, 9) if i % 3 == rank]


def test_datasets_without_samples_have_no_batches(tmp_path):
    path = make.numbers(tmp_path / "none.beton", 0).path
    for spec in ("", "drop_last=0", "order=quasi_random"):
        assert ids(path, tmp_path / ("x" + spec), "--spec", spec) == {}


@pytest.mark.parametrize("spec,word", [
    ("order=rando", "order=rando"), ("batch=0", "batch=0"), ("x=1", "'x'"),
    ("seed=1,seed=2", "twice"), ("batch=5,", "key=value"),
    ("subset=0-54", "subset"), ("subset=9-9", "subset"),
    ("window=1PB,order=quasi_random", "window")])
def test_a_bad_spec_is_refused_with_its_reason(numbers, tmp_path, spec, word):
    for args in (["dump", numbers, "--out", tmp_path / "x"],
                 ["bench", numbers], ["info", numbers]):
        r = beton(*args, "--spec", spec, code=1)
        assert r.stderr.count("\n") == 1 and word in r.stderr


def test_info_resolves_and_judges_a_spec(tmp_path):
    """60 classes of 50 samples, sorted: the worst case for an order."""
    path = make.Dataset(tmp_path / "c.beton", [("label", make.INT)],
                        [{"label": i // 50} for i in range(3000)]).path

    def quality(spec):
        return json.loads(beton("info", path, "--json", "--spec",
                                spec).stdout)
    d = quality("batch=50,order=quasi_random,window=500,block=5")
    assert d["spec"] == ("order=quasi_random,batch=50,seed=0,drop_last=1,"
                         "block=5,window=500")
    assert (d["batches"], d["measure"]) == (60, "classes")
    assert d["quality"]["worst"] <= d["quality"]["mean"] <= 50
    assert quality("batch=50,order=sequential")["quality"]["mean"] == 1
    full = quality("batch=50")["quality"]["mean"]
    assert 30 < full < 40       # 60 (1 - (59 / 60)^50) = 34.1
