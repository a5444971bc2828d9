# SPDX-License-Identifier: Apache-2.0
"""The Python package: the same batches as `beton dump`, memory that its owner
may keep, and no thread, descriptor or memory left after close()."""
import ctypes
import errno
import gc
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import dumped
import make
from conftest import wait_until
from dumped import AUGMENT, DEADLINE, dump
from package import PACKAGE, betonfs, opener, same, snapshot
pytest.importorskip("PIL.Image")

N, SIZE = 40, 4
SPEC = f"batch={SIZE},seed=11,drop_last=0"
STEPS = N // SIZE


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("python") / "p.beton", N)


@pytest.fixture
def load(data):
    """Opens loaders of numpy arrays, and closes them. In a test's arguments it
    follows `mount`, so that it ends before the daemon is counted."""
    with opener(data.path, spec=SPEC, pipeline=AUGMENT, tensors="numpy",
                workers=2) as open_one:
        yield open_one


# --- batches ---

@pytest.mark.quick
@pytest.mark.parametrize("how", ["file", "mount"])
def test_batches_are_those_of_dump(data, mount, load, tmp_path, how):
    want = dump(data.path, tmp_path / "x", "--spec", SPEC, "--pipeline",
                AUGMENT)
    loader = load(mount(data.path) if how == "mount" else data.path)
    assert len(loader) == len(want) == STEPS
    for batch, w in zip(loader, want, strict=True):
        assert batch.number == w.number and batch.num_samples == SIZE
        assert batch.ids.tolist() == w.ids
        assert batch.valid.tolist() == w.valid
        assert set(batch) == set(w.outputs)
        for name, a in w.outputs.items():
            if name in w.offsets:
                rows = [w.row(name, i) for i in range(SIZE)]
                assert list(batch[name]) == rows
                assert (batch[name].offsets == w.offsets[name]).all()
                assert batch[name].data.tobytes() == a.tobytes()
            else:
                assert batch[name].dtype == a.dtype
                assert (batch[name] == a).all()
                assert getattr(batch, name) is batch[name]
        assert [m["id"] for m in batch.meta.json()] == w.ids


def test_epochs_follow_each_other(load):
    loader = load()
    seen = [[(b.epoch, b.number, tuple(b.ids)) for b in loader]
            for _ in range(3)]
    assert [e[0][0] for e in seen] == [0, 1, 2]
    assert all(len(e) == STEPS for e in seen)
    assert len({tuple(i for _, _, i in e) for e in seen}) == 3
    loader.set_epoch(1)
    assert [(b.epoch, b.number, tuple(b.ids)) for b in loader] == seen[1]
    # After a break the next epoch comes, from its start.
    for b in loader:
        assert b.epoch == 2
        break
    assert next(iter(loader)).epoch == 3
    loader.set_epoch(3)
    assert next(iter(loader)).number == 0


def test_an_iterator_ends_with_its_epoch_or_the_next_one(load):
    loader = load()
    first = iter(loader)
    assert len(list(first)) == STEPS
    assert next(first, None) is None
    second = iter(loader)
    next(second)
    iter(loader)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(second)


def test_a_tuple_is_unpacked(load):
    text = "image | center_crop(8); blob | drop; meta | drop; vec | drop; " \
           "tens | drop; score | drop"
    as_dict = [snapshot(b) for b in load(pipeline=text)]
    loader = load(pipeline=text, batch="tuple")
    for batch, want in zip(loader, as_dict, strict=True):
        images, labels = batch
        assert images.shape == (SIZE, 8, 8, 3) and labels.shape == (SIZE,)
        assert batch.image is images and batch.label is labels
        assert snapshot(batch) == want


def test_a_pipeline_is_a_dict_of_outputs(load):
    batch = next(iter(load(pipeline={
        "image": "center_crop(8) | float", "y": "label | int32",
        "score": "", "blob": None, "meta": None, "vec": None,
        "tens": "tens | float"})))
    assert {k: (v.dtype.str, v.shape[1:]) for k, v in batch.items()} == {
        "image": ("<f4", (8, 8, 3)), "y": ("<i4", ()), "score": ("<f8", ()),
        "tens": ("<f4", (5,))}


# Names of fields as the grammar of pipelines has none: dashes, inner dots,
# quotes, backslashes, spaces, marks; and those of operations and of numbers.
ODD = ["my-image", "y.z", 'it"s', "a\\b", "a b", "p|q;r", "#x", "flip", "drop",
       "cuda", "7"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "odd.beton"
    rng = np.random.default_rng(7)
    betonfs.write(path, [
        {name: rng.integers(0, 256, (12, 12, 3), np.uint8) if name == ODD[0]
         else 100 * i + k for k, name in enumerate(ODD)} for i in range(8)])
    return path


def stem(name):
    return "".join(c if c.isalnum() or c in "-._" else f"%{ord(c):02X}"
                   for c in name)


def columns(path, pipeline):
    with betonfs.Loader(path, 8, "sequential", pipeline=pipeline,
                        tensors="numpy", workers=1) as loader:
        batch, = loader
        return {name: batch[name] for name in batch}


@pytest.mark.parametrize("k", range(1, len(ODD)))
@pytest.mark.parametrize("named", [str, stem])
def test_a_dict_has_fields_of_any_name(odd, k, named):
    want = [100 * i + k for i in range(8)]
    name = named(ODD[k])
    got = columns(odd, {name: "int32"})
    assert list(got) == [stem(ODD[k])]      # and nothing that is not named
    assert got[stem(name) if named is str else name].tolist() == want
    assert got[stem(ODD[k])].dtype == np.int32
    assert columns(odd, {name: ""})[stem(ODD[k])].tolist() == want
    assert set(columns(odd, {name: None})) == {
        stem(n) for n in ODD if n != ODD[k]}
    # An output with a name of its own, and one named by the first field.
    quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    for output in "my.out-1", "y_", stem(ODD[k]):
        got = columns(odd, {output: f"{quoted}|float", "my-image": None})
        if "%" not in output:
            assert got[output].tolist() == want
        assert got[output].dtype == np.float32


def test_a_dict_has_images_and_outputs_with_dashes_and_dots(odd):
    got = columns(odd, {"my-image": "resize(8)", "small.x-1": "my-image |\n"
                        "center_crop(4) # the middle", "y.z": " \nhalf\n",
                        "a b": "int32 # | drop", "k-1": "my-image | flip(1)"})
    assert got["my-image"].shape == (8, 8, 8, 3)
    assert got["small.x-1"].shape == (8, 4, 4, 3)
    assert got["y.z"].dtype == np.float16 and got["a%20b"].dtype == np.int32
    assert got["k-1"].shape == (8, 12, 12, 3)


@pytest.mark.parametrize("name", ["x y", "x;y", "x | y", "x = y", ""])
def test_an_output_has_a_name_of_the_grammar(odd, name):
    with pytest.raises(ValueError, match="name of an output"):
        columns(odd, {name: "my-image | float"})
    with pytest.raises(ValueError, match="has no field"):
        columns(odd, {name: None})


# Each with its largest value; what does not fit must not become what does.
@pytest.mark.parametrize("name, most", [
    ("workers", 4096), ("prefetch", 4096), ("rank", 2**32 - 1),
    ("world_size", 2**32 - 1), ("epoch", 2**63 - 1), ("cache_size", 2**64 - 1),
    ("cold_size", 2**64 - 1), ("pinned", 2**64 - 1)])
def test_numbers_are_checked(load, name, most):
    other = {"rank": {"world_size": 1}, "world_size": {"rank": 0}}.get(name, {})
    for wrong in -1, most + 1, most + 2, 2**32 + most, 2**64 + 1, 2**100:
        if wrong > most or wrong < 0:
            with pytest.raises(ValueError, match=re.escape(
                    f"{name}={wrong}: a number from 0 to {most}")):
                load(**{name: wrong}, **other)
    for none in 1.0, "1":
        with pytest.raises(TypeError):
            load(**{name: none}, **other)
    if name in ("epoch", "pinned"):
        load(**{name: most})
    assert load(**{name: np.uint8(1)}, **{**other, "world_size": 2}
                if name == "rank" else other)


@pytest.mark.parametrize("epoch", [-1, 2**63, 2**64 + 3])
def test_an_epoch_is_checked(load, epoch):
    loader = load()
    with pytest.raises(ValueError, match=f"epoch={epoch}: a number from 0"):
        loader.set_epoch(epoch)
    assert next(iter(loader)).epoch == 0


def test_options_are_keys_of_the_spec(load):
    loader = load(spec="order=quasi_random,block=3", batch_size=5, seed=7,
                  drop_last=False, subset=range(3, 30))
    assert loader.spec.startswith("order=quasi_random,batch=5,seed=7,"
                                  "drop_last=0,block=3,")
    assert loader.spec.endswith("subset=3-30")
    ids = np.concatenate([b.ids for b in loader])
    assert sorted(ids) == list(range(3, 30))


@pytest.mark.parametrize("kind", [list, np.array, iter])
def test_a_subset_is_a_list_of_samples(load, kind):
    some = [31, 4, 15, 9, 26]
    loader = load(subset=kind(some), spec="batch=2,drop_last=0")
    assert sorted(np.concatenate([b.ids for b in loader])) == sorted(some)
    assert "subset=ids~" in loader.spec


def test_a_subset_may_list_a_sample_more_than_once(load):
    with load(subset=[7, 3, 7, 7], spec="batch=2,order=sequential") as loader:
        batches = list(loader)
    assert [b.ids.tolist() for b in batches] == [[7, 3], [7, 7]]
    images = {image.tobytes() for b in batches for image in b["image"]}
    assert len(images) == 4     # augmented again


def drawn(loader, epochs=1):
    return [b.ids.tolist() for _ in range(epochs) for b in loader]


def test_samples_are_drawn_by_their_weights(load):
    weights = np.zeros(N)
    weights[[3, 30]] = 1e-3, 9e-3
    loader = load(weights=weights, num_samples=1000, pipeline="image | drop")
    assert len(loader) == 1000 // SIZE
    first, second = (sum(drawn(loader), []) for _ in range(2))
    assert len(first) == 1000 and set(first) == {3, 30} and first != second
    assert 60 < first.count(3) < 140
    # Ratios count, of any kind of numbers.
    again = load(weights=weights * 2**70, num_samples=1000,
                 pipeline="image | drop")
    assert again.spec == loader.spec and sum(drawn(again), []) == first
    few = load(weights=[1, 0, 1], subset=[5, 6, 7], pipeline="image | drop")
    assert few.spec.startswith("order=weighted,batch=4,seed=11,drop_last=0,"
                               "num_samples=3,subset=ids~")
    assert set(sum(drawn(few, 20), [])) == {5, 7}
    same = [load(weights=np.array(w), pipeline="image | drop").spec
            for w in (np.full(N, 3, np.int16), np.full(N, .75))]
    assert same[0] == same[1]


def test_draws_continue_in_another_world_size(load):
    options = {"weights": np.arange(N) % 5 / 7, "num_samples": 101}
    whole = [snapshot(b) for b in load(**options)]
    assert len(whole) == 26 and len({i for b in whole for i in b[2]}) < 101
    loader = load(**options)
    for _ in zip(range(7), loader):
        pass
    state = loader.state_dict()
    rest = []
    for rank in range(3):
        other = load(rank=rank, world_size=3, workers=1, **options)
        other.load_state_dict(state)
        rest += [snapshot(b) for b in other]
        assert len(rest) == 7 * (rank + 1)      # the same for all
    real = sorted((b for b in rest if b[1] < 26), key=lambda b: b[1])
    assert real == whole[7:]
    with pytest.raises(ValueError, match="the loader's is"):
        load(weights=np.ones(N), num_samples=101).load_state_dict(state)
    copy = pickle.loads(pickle.dumps(loader))
    assert [snapshot(b) for b in copy] == whole[7:]
    copy.close()


@pytest.mark.parametrize("options,word", [
    ({"weights": [1.0] * (N - 1)}, "39 weights for 40 samples"),
    ({"weights": [1.0] * (N + 1)}, "the dataset has 40"),
    ({"weights": [1, 2], "subset": [1, 2, 3]}, "2 weights for 3 samples"),
    ({"weights": [1.0, -1.0]}, "numbers from 0"),
    ({"weights": [1.0, float("nan")]}, "numbers from 0"),
    ({"weights": [0.0] * N}, "not all 0"), ({"weights": []}, "a list"),
    ({"weights": [[1.0]]}, "a list"),
    ({"weights": [1.0] * N, "subset": "0-9"}, "named one"),
    ({"weights": [1.0] * N, "order": "random"}, "for order="),
    ({"num_samples": 5}, "for order="),
    ({"order": "weighted"}, "list with weights"),
    ({"weights": [1.0] * N, "num_samples": 0}, "num_samples=0")])
def test_wrong_weights_are_refused(load, options, word):
    with pytest.raises(ValueError, match=word):
        load(**options)


def test_a_mount_draws_by_a_named_subset(mount, load, data, tmp_path):
    weights = [i % 3 for i in range(N)]
    (tmp_path / "w").write_text("".join(
        f"{i} {w}\n" for i, w in enumerate(weights)))
    where = mount(data.path, "-o", f"subset=rare:{tmp_path / 'w'}")
    options = {"order": "weighted", "num_samples": 50, "batch_size": 4,
               "seed": 11, "spec": None}
    mine = load(where, subset="rare", **options)
    file = load(subset=f"rare:{tmp_path / 'w'}", **options)
    assert mine.spec == file.spec
    assert [snapshot(b) for b in mine] == [snapshot(b) for b in file]


ADD = 'mount the dataset with -o subset=NAME:FILE and pass {}subset="NAME", or ' \
      "open the dataset's file"


@pytest.mark.parametrize("options, what", [
    ({"subset": [31, 4, 15]}, "the list of subset=: " + ADD.format("")),
    ({"subset": np.arange(N) > 30}, "the list of subset=: " + ADD.format("")),
    ({"weights": np.ones(N)},
     "these weights: " + ADD.format('order="weighted", ')),
    ({"weights": [1, 2, 1], "subset": [5, 6, 7]},
     "these weights: " + ADD.format('order="weighted", ')),
    ({"lengths": range(N)},
     "the list by these lengths: " + ADD.format('order="bucketed", '))])
def test_a_mount_without_a_list_names_the_option(mount, load, data, options,
                                                 what):
    where = mount(data.path, expects="subset=ids~")
    with pytest.raises(ValueError) as e:
        load(where, batch_size=2, spec=None, **options)
    assert str(e.value) == f"{where}: the mount does not have {what}"


def test_a_mount_without_a_file_of_a_list_names_the_option(mount, load, data,
                                                           tmp_path):
    (tmp_path / "w").write_text("3\n1\n")
    where = mount(data.path, expects="subset=few~")
    with pytest.raises(ValueError) as e:
        load(where, subset=f"few:{tmp_path / 'w'}")
    assert str(e.value).endswith(": mount the dataset with -o subset=few:FILE, "
                                 "or open the dataset's file")


def test_a_mount_may_have_the_list(mount, load, data, tmp_path):
    (tmp_path / "w").write_text("31\n4\n15\n")
    where = mount(data.path, "-o", f"subset=mine:{tmp_path / 'w'}")
    mine = load(where, subset="mine", order="random", batch_size=2, spec=None)
    file = load(subset=f"mine:{tmp_path / 'w'}", order="random", batch_size=2,
                spec=None)
    assert [snapshot(b) for b in mine] == [snapshot(b) for b in file]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Arrays of 256 KiB: a batch is 1 MiB."""
    path = tmp_path_factory.mktemp("arrays") / "a.beton"
    rng = np.random.default_rng(5)
    betonfs.write(path, ({"a": rng.integers(0, 99, 1 << 15), "k": i}
                         for i in range(N)), length=N)
    return path


@pytest.mark.parametrize("options", [
    [], ["-o", "cache=process,cache_size=32MiB"]])
def test_columns_in_memory_of_a_daemon_are_the_users(mount, load, arrays,
                                                     options):
    """A program holds more batches than the daemon lets it, and writes to
    them."""
    of_file = load(arrays, pipeline=None)
    plain = [snapshot(b) for _ in range(2) for b in of_file]
    mnt = mount(arrays, *options)
    mine = load(mnt, pipeline=None, delivery="zero-copy")
    other = load(mnt, pipeline=None, delivery="zero-copy")
    held = []
    for _ in range(2):
        for b, c in zip(mine, other, strict=True):
            assert snapshot(b) == snapshot(c) == plain[len(held)]
            b.a[:] = -len(held)
            held.append(b)
    assert len(held) == 2 * STEPS
    mine.close()
    for i, b in enumerate(held):
        assert (b.a == -i).all() and b.ids.tolist() == plain[i][2]


def test_a_child_of_fork_has_the_batches_of_its_parent(mount, load, arrays):
    loader = load(mount(arrays), pipeline=None, delivery="zero-copy")
    batches = iter(loader)
    held = next(batches)
    expected = held.a.copy()
    go, went = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.read(go[0], 1)
        os.write(went[1], b"y" if (held.a == expected).all() else b"n")
        os._exit(0)
    del held
    gc.collect()
    for _ in batches:       # in the same memory
        pass
    os.write(go[1], b"g")
    assert os.read(went[0], 1) == b"y"
    os.waitpid(child, 0)
    for fd in *go, *went:
        os.close(fd)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "l.beton"
    rng = np.random.default_rng(0)
    betonfs.write(path, ({"blob": rng.bytes(1 << 20)} for _ in range(N)),
                  length=N)
    return path


@pytest.mark.parametrize("options", [
    {"weights": np.arange(N) % 4, "num_samples": 200},
    {"subset": [*range(0, N, 2)] * 3}])
def test_repeated_samples_may_have_left_the_cache(load, large, options):
    """40 MiB of samples in a cache of 16."""
    options = {"pipeline": None, **options}
    small = load(large, cache="process", cache_size=16 << 20, **options)
    plain = load(large, workers=1, **options)
    for mine, other in zip(small, plain, strict=True):
        assert mine.ids.tolist() == other.ids.tolist()
        assert list(mine.blob) == list(other.blob)


def test_transforms_are_called_on_batches(load):
    def label_only(batch):
        return {"label": batch.label + 1}

    def double(batch):
        return {k: 2 * v for k, v in batch.items()}
    want = [b.label.copy() for b in load()]
    got = list(load(transforms=[label_only, double]))
    assert all((g["label"] == 2 * (w + 1)).all()
               for g, w in zip(got, want, strict=True))


# --- its place ---

def marked(image, label, ids):
    for i in range(len(image)):
        if label[i] == 3 * ids[i] - 7:
            image[i] ^= np.uint8(i)


@betonfs.compiled
def halved(image):
    return image[:, ::2] ^ np.uint8(255)


PLAIN = "center_crop(16)"


@pytest.mark.filterwarnings("ignore:.*numba is not installed")
@pytest.mark.parametrize("batch", ["dict", "tuple"])
@pytest.mark.parametrize("tensors", ["numpy", "torch"])
def test_functions_of_arrays_are_stages(load, tensors, batch):
    if tensors == "torch":
        pytest.importorskip("torch")
    stages = [betonfs.compiled(marked, parallel=True), halved]
    options = {"pipeline": PLAIN, "order": "sequential", "spec": "batch=8"}
    loader = load(transforms=stages, tensors=tensors, batch=batch, **options)
    for mine, plain in zip(loader, load(**options), strict=True):
        rows = np.arange(8, dtype=np.uint8)[:, None, None, None]
        want = plain["image"][:, ::2] ^ rows ^ 255
        assert (np.asarray(mine.image) == want).all()
        assert type(mine.image) is type(mine.label)
        assert mine.ids.tolist() == plain.ids.tolist()
    copy = pickle.loads(pickle.dumps(loader))
    copy.set_epoch(0)
    assert np.asarray(next(iter(copy)).image).shape == (8, 8, 16, 3)
    copy.close()


@pytest.mark.filterwarnings("ignore:.*numba is not installed")
def test_other_than_array_functions_are_reported(load):
    for code, error, word in (
            (lambda nothing: None, AttributeError, "nothing"),
            (lambda meta: None, TypeError, "Ragged, which is no array")):
        loader = load(transforms=[betonfs.compiled(code)])
        with pytest.raises(error, match=word):
            next(iter(loader))
    with pytest.raises(TypeError, match="names of outputs"):
        betonfs.compiled(lambda: None)


def test_without_numba_functions_are_python(load, monkeypatch):
    monkeypatch.setattr(betonfs._compiled, "find_numba", lambda: None)
    loader = load(transforms=[betonfs.compiled(marked)], pipeline=PLAIN)
    with pytest.warns(RuntimeWarning, match="numba is not installed"):
        next(iter(loader))


def test_numba_compiles_them(load):
    numba = pytest.importorskip("numba")

    @betonfs.compiled
    def kind(image):
        image[:] = 7
    batch = next(iter(load(transforms=[kind], pipeline=PLAIN)))
    assert (batch.image == 7).all()
    assert isinstance(kind._code, numba.core.dispatcher.Dispatcher)
    assert kind._code.nopython_signatures


@pytest.mark.quick
def test_a_state_continues_in_another_world_size(load):
    want = {b.number: snapshot(b) for b in load()}
    ranks = [load(rank=r, world_size=2) for r in range(2)]
    assert [len(r) for r in ranks] == [STEPS // 2] * 2
    got, states = {}, []
    for loader in ranks:
        for _, b in zip(range(2), loader):
            got[b.number] = snapshot(b)
        states.append(loader.state_dict())
    assert states[0] == states[1] and states[0]["batches"] == 4
    for r in range(3):
        loader = load(rank=r, world_size=3, workers=1)
        loader.load_state_dict(states[0])
        loader.set_epoch(0)     # as trainers do that know the epoch
        for b in loader:
            got[b.number] = snapshot(b)
        assert next(iter(loader)).epoch == 1
    assert {k: got[k] for k in want} == want


def test_a_state_at_an_end_is_the_next_epoch(load):
    loader = load()
    want = [[snapshot(b) for b in loader] for _ in range(2)]
    other = load()
    list(other)
    state = other.state_dict()
    third = load()
    third.load_state_dict(state)
    assert [snapshot(b) for b in third] == want[1]


def test_states_of_others_are_refused(load):
    loader = load()
    state = loader.state_dict()
    with pytest.raises(ValueError, match="is of spec"):
        load(seed=12, spec=f"batch={SIZE}").load_state_dict(state)
    with pytest.raises(ValueError, match="another dataset"):
        loader.load_state_dict({**state, "fingerprint": "0" * 32})
    for bad in ({}, {**state, "version": 99}, {"epoch": "x"}):
        with pytest.raises(ValueError):
            loader.load_state_dict(bad)
    assert len(list(loader)) == STEPS


def test_a_loader_pickles_with_its_place(load):
    loader = load(subset=[31, 4, 15, 9, 26, 8], spec="batch=2,drop_last=0")
    it = iter(loader)
    next(it)
    other = pickle.loads(pickle.dumps(loader))
    assert [snapshot(b) for b in other] == [snapshot(b) for b in it]
    other.close()


def test_ranks_come_from_the_environment(load, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert next(iter(load())).number == 1
    assert next(iter(load(rank=0, world_size=1))).number == 0
    with pytest.raises(ValueError, match="together"):
        load(rank=0)


def test_stats_count_the_work(load):
    loader = load()
    list(loader)
    stats = loader.stats()
    assert stats["stages"]["transform"]["items"] >= N
    assert stats["stages"]["next"]["p50_s"] > 0
    assert stats["throughput"]["batches"] == STEPS
    assert stats["throughput"]["samples"] == N
    assert stats["spec"] == loader.spec and stats["samples"] == N


# --- memory ---

def test_tensors_are_the_loaders_memory(load):
    batch = next(iter(load()))
    for raw, value in zip(batch._raw.outputs, batch.values()):
        if isinstance(value, betonfs.Ragged):
            value = value.data
        assert value.ctypes.data == raw.pointer
        assert value.flags.writeable
    raw = batch._raw.outputs[0]
    if hasattr(np, "from_dlpack"):
        assert np.from_dlpack(raw).ctypes.data == raw.pointer
    view = memoryview(raw)
    assert (view.format, view.shape) == ("f", (SIZE, 3, 12, 12))
    assert view.c_contiguous
    assert (np.asarray(view) == batch.image).all()


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


def managed(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object,
                                                  ctypes.c_char_p)
    m = Managed.from_address(get(capsule, b"dltensor_versioned"))
    m.capsule = capsule     # its memory
    return m


def test_dlpack_is_as_the_standard_has_it(load):
    raw = next(iter(load(tensors="dlpack")))["image"]
    assert raw.__dlpack_device__() == (1, 0)
    for version in (1, 0), (1, 1), (2, 0):
        for more in {}, {"copy": None}, {"copy": False}, {
                "dl_device": (1, 0)}, {"stream": None}:
            m = managed(raw.__dlpack__(max_version=version, **more))
            assert (m.major, m.minor, m.flags) == (1, 0, 0)
            assert m.data == raw.pointer and m.offset == 0
            assert (m.device_type, m.device) == (1, 0)
            assert (m.code, m.bits, m.lanes) == (2, 32, 1)
            assert m.shape[:m.ndim] == [SIZE, 3, 12, 12]
            assert m.strides[:m.ndim] == [432, 144, 12, 1]
    for version in None, (0, 8):
        assert '"dltensor"' in repr(raw.__dlpack__(max_version=version))
    with pytest.raises(BufferError, match="another device"):
        raw.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError):
        raw.__dlpack__((1, 0))
    for name in "dl_device", "max_version":
        for none in [1, 0], 1, "10", (1,), (1, 0, 0), ("1", 0), (2**40, 0):
            with pytest.raises(TypeError, match=f"{name} is a tuple of two"):
                raw.__dlpack__(**{name: none})


def test_a_copy_by_dlpack_keeps_no_batch(load):
    loader = load(tensors="dlpack")
    raw = next(iter(loader))["image"]
    want, pointer = bytes(raw), raw.pointer
    m = managed(raw.__dlpack__(max_version=(1, 0), copy=True))
    assert m.flags == 2 and m.data != pointer and m.data % 64 == 0
    del raw
    pointers = {b["image"].pointer for _ in range(3) for b in loader}
    assert pointer in pointers
    assert ctypes.string_at(m.data, len(want)) == want


def test_arrays_of_others_are_made_by_dlpack(load):
    raw = next(iter(load(tensors="dlpack")))["image"]
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("this NumPy's from_dlpack() has no copy=")
    # NumPy 2.1 and 2.2 return a read-only array for every exporter, NumPy's own
    # arrays included; test_dlpack_is_as_the_standard_has_it checks the flag that
    # later versions obey.
    writeable = np.from_dlpack(np.zeros(1)).flags.writeable
    if np.lib.NumpyVersion(np.__version__) >= "2.3.0":
        assert writeable
    for more in {}, {"copy": False}, {"device": "cpu"}:
        a = np.from_dlpack(raw, **more)
        assert a.ctypes.data == raw.pointer
        assert a.flags.writeable == writeable
    a = np.from_dlpack(raw, copy=True)
    assert a.ctypes.data != raw.pointer and a.flags.writeable == writeable
    assert a.tobytes() == bytes(raw)


def test_torch_takes_them_by_dlpack(load):
    torch = pytest.importorskip("torch")
    raw = next(iter(load(tensors="dlpack")))["image"]
    assert torch.from_dlpack(raw).data_ptr() == raw.pointer
    try:
        a = torch.from_dlpack(raw, copy=True)
    except TypeError:
        pytest.skip("this torch's from_dlpack() has no copy=")
    assert a.data_ptr() != raw.pointer and a.numpy().tobytes() == bytes(raw)
    for more in {"copy": False}, {"device": "cpu"}:
        assert torch.from_dlpack(raw, **more).data_ptr() == raw.pointer


def test_kept_batches_stay_valid(load):
    loader = load()
    want = [snapshot(b) for b in load() for _ in range(1)]
    kept = list(loader)
    one = kept[3].image         # a tensor alone keeps its batch
    pixels = one.tobytes()
    pointers = {b.image.ctypes.data for b in kept}
    assert len(pointers) == STEPS
    for _ in range(3):
        for b in loader:
            b.image[...] = -1
    assert [snapshot(b) for b in kept] == want
    loader.close()
    assert [snapshot(b) for b in kept] == want
    del kept, b, loader
    gc.collect()
    assert one.tobytes() == pixels


def test_memory_is_used_again(load):
    loader = load(prefetch=2)
    pointers = set()
    for _ in range(20):
        for b in loader:
            pointers.add(b.image.ctypes.data)
    # The ring, and what is held while the next one is asked for.
    assert len(pointers) <= 5


def threads():
    return len(os.listdir("/proc/self/task"))


# Threads of pytest-xdist and of libraries, which are none of the module threading.
OTHER_THREADS = threads() - threading.active_count()


def files():
    return len(os.listdir("/proc/self/fd"))


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_life(path, k):
    """A loader that ends in one of the ways there are; how many batches."""
    n = 0
    loader = betonfs.Loader(path, spec="batch=1", pipeline=AUGMENT,
                            tensors="numpy", workers=2)
    for turn in range(3):
        try:
            for batch in loader:
                n += 1
                if n % (7 + k % 30) == 0:
                    break
                if n % 31 == 0:
                    raise KeyError(n)
        except KeyError:
            pass
    if k % 3 == 0:
        loader.close()
    elif k % 3 == 1:
        with loader:
            kept = batch
            assert kept.num_samples == 1
    return n


def test_ten_thousand_batches_leave_nothing(data):
    seen, k = 0, 0
    while seen < 2000:
        seen, k = seen + one_life(data.path, k), k + 1
    gc.collect()
    before = files(), resident()
    count = threading.active_count() + OTHER_THREADS
    while seen < 12000:
        seen, k = seen + one_life(data.path, k), k + 1
    gc.collect()
    wait_until(lambda: threads() <= count, "the threads")
    assert files() == before[0]
    assert resident() - before[1] < 8 << 20


# --- failures ---

def test_errors_are_exceptions(load, data, tmp_path):
    with pytest.raises(FileNotFoundError) as e:
        load(tmp_path / "none.beton")
    assert isinstance(e.value, betonfs.BetonError)
    assert "none.beton" in str(e.value)
    (tmp_path / "text").write_text("this is no dataset" * 100)
    with pytest.raises(betonfs.BetonError, match="text"):
        load(tmp_path / "text")
    for bad in ({"spec": "batch=0"}, {"spec": "color=1"}, {"order": "odd"},
                {"pipeline": "image | no_such_thing"}, {"rank": 2, "world_size": 2},
                {"on_error": "ignore"}, {"tensors": "numbers"},
                {"batch": "list"}, {"cache": "disk"}):
        with pytest.raises(ValueError):
            load(**bad)
    with pytest.raises(ValueError, match="no_such_thing"):
        load(pipeline="image | no_such_thing")


@pytest.fixture
def damaged(tmp_path):
    """Sample 17 is no JPEG."""
    d = dumped.photos(tmp_path / "own.beton", N)
    d.patch(d.place[17, "image"] + 2, bytes(60))
    return d.path


def test_a_bad_sample_is_raised_with_its_number(load, damaged):
    loader = load(damaged)
    seen, errors, it = 0, [], iter(loader)
    while True:
        try:
            next(it)
            seen += 1
        except betonfs.BetonError as e:
            errors.append(str(e))
        except StopIteration:
            break
    assert (seen, len(errors)) == (STEPS - 1, 1)
    assert "sample 17" in errors[0] and "image" in errors[0]


def test_bad_samples_can_be_skipped(load, damaged, caplog):
    invalid = [i for b in load(damaged, on_error="skip")
               for i in b.ids[~b.valid]]
    assert invalid == [17]
    assert "sample 17" in caplog.text
    assert all(b.valid.all() for b in load(damaged, on_error="zero"))
    loader = load(damaged, on_error="zero")
    list(loader)
    assert loader.stats()["failed_samples"] >= 1


def test_a_closed_loader_reports_it(load):
    with load() as loader:
        next(iter(loader))
    for call in (lambda: next(iter(loader)), loader.state_dict,
                 loader.stats, lambda: len(loader)):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    loader.close()
    assert "closed" in repr(loader)


def test_a_child_of_fork_gets_an_error(load):
    loader = load()
    it = iter(loader)
    kept = next(it)
    want = kept.image.tobytes()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            next(it)
        except RuntimeError as e:
            code = 0 if "fork" in str(e) else 2
        try:
            code = code or (0 if kept.image.tobytes() == want else 3)
            loader.close()
            del kept, it, loader
            gc.collect()
        except BaseException:
            code = 4
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert 1 + len(list(it)) == STEPS


def test_threads_take_turns(load):
    loader = load()
    it, seen, lock = iter(loader), [], threading.Lock()

    def run():
        for b in it:
            with lock:
                seen.append(snapshot(b))
    workers = [threading.Thread(target=run) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert sorted(s[1] for s in seen) == list(range(STEPS))


WAITING = """
import sys
sys.path.insert(0, sys.argv[1])
import betonfs
loader = betonfs.Loader(sys.argv[2], spec="batch=1", tensors="numpy",
                        pipeline="image | center_crop(8)", prefetch=1)
print("open", flush=True)
sys.stdin.readline()
try:
    print("loop", flush=True)
    for batch in loader:
        pass
except KeyboardInterrupt:
    print("interrupted", len(loader.state_dict()), flush=True)
"""


def test_waiting_is_interrupted(data, daemon):
    d = daemon(data.path)
    p = subprocess.Popen([sys.executable, "-c", WAITING, PACKAGE, d.where],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)

    def sleeps():
        with open(f"/proc/{p.pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "S"
    try:
        assert p.stdout.readline() == "open\n"
        # From now on no batch comes but those that were prefetched.
        d.process.send_signal(signal.SIGSTOP)
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "loop\n"
        wait_until(sleeps, "the loader to wait")
        p.send_signal(signal.SIGINT)
        assert p.stdout.readline() == "interrupted 6\n"
    finally:
        d.process.send_signal(signal.SIGCONT)
        try:
            p.wait(DEADLINE)
        finally:
            p.kill()
    assert p.returncode == 0


OPENING = """
import sys
sys.path.insert(0, sys.argv[1])
import betonfs
try:
    betonfs.Loader(sys.argv[2], tensors="numpy",
                   pipeline='image | center_crop(8) | "own.c".f')
except KeyboardInterrupt:
    print("interrupted")
"""


def test_opening_is_interrupted(data, tmp_path):
    """Where it waits for the compiler, which ends as well."""
    begun, slow = tmp_path / "begun", tmp_path / "cc"
    (tmp_path / "own.c").write_text("static void f(float *v, void *at) {}")
    slow.write_text(f"#!/bin/sh\necho $$ > {begun}.new\n"
                    f"mv {begun}.new {begun}\nexec sleep 600\n")
    slow.chmod(0o755)
    p = subprocess.Popen(
        [sys.executable, "-c", OPENING, PACKAGE, data.path], cwd=tmp_path,
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "BETON_CC": str(slow),
             "BETON_CACHE_DIR": str(tmp_path / "cache")})
    try:
        wait_until(begun.exists, "the compiler to begin")
        p.send_signal(signal.SIGINT)
        # Without a signal it would be a minute.
        assert p.communicate(timeout=20)[0] == "interrupted\n"
    finally:
        p.kill()
        p.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


# --- torch ---

def test_torch_tensors_are_the_loaders_memory(load, data):
    torch = pytest.importorskip("torch")
    want = [snapshot(b) for b in load()]
    loader = load(tensors="auto")
    kept = []
    for batch, w in zip(loader, want, strict=True):
        assert isinstance(batch.image, torch.Tensor)
        assert batch.image.shape == (SIZE, 3, 12, 12)
        assert batch.image.data_ptr() == batch._raw.outputs[0].pointer
        assert batch.image.numpy().tobytes() == w[4]["image"][2]
        assert batch.ids.tolist() == w[2]
        assert batch.label.dtype == torch.int64
        kept.append(batch["image"])
    loader.close()
    assert [k.numpy().tobytes() for k in kept] == [
        w[4]["image"][2] for w in want]


def test_torch_sees_the_memory_used_again(load):
    pytest.importorskip("torch")
    loader = load(tensors="torch")
    pointers = {b.image.data_ptr() for _ in range(10) for b in loader}
    assert len(pointers) <= 5


# --- samples ---

@pytest.fixture
def dataset(data):
    return betonfs.Dataset(data.path)


@pytest.mark.quick
def test_samples_equal_written_values(data, dataset):
    assert len(dataset) == N
    assert {k: f["type"] for k, f in dataset.fields.items()} == {
        "image": "rgb_image", "label": "int", "score": "float",
        "blob": "bytes", "meta": "json", "vec": "ndarray",
        "tens": "torch_tensor"}
    for i, sample in enumerate(dataset):
        v = data.values[i]
        assert dataset.raw(i, "image") == v["image"].data
        assert sample["image"].shape == (v["image"].height,
                                         v["image"].width, 3)
        assert sample["label"] == v["label"] == dataset.get(i, "label")
        assert sample["score"] == v["score"]
        assert sample["blob"] == v["blob"] and sample["meta"] == {"id": i}
        assert (sample["vec"] == v["vec"]).all()
        assert (sample["tens"] == v["tens"]).all()
        assert sample["tens"].dtype == np.int16
    assert same(dataset[-1], sample)
    assert all(map(same, dataset[5:9], [dataset[i] for i in range(5, 9)]))
    for bad in (N, -N - 1):
        with pytest.raises(IndexError):
            dataset[bad]
    with pytest.raises(KeyError, match="color"):
        dataset.get(0, "color")


def test_pixels_are_those_of_an_exact_decode(data, dataset, tmp_path):
    for i in range(8):
        one = make.Dataset(tmp_path / f"{i}.beton", [("image", make.IMAGE)],
                           [{"image": data.values[i]["image"]}], 1 << 16)
        with betonfs.Loader(one.path, spec="batch=1", tensors="numpy",
                            pipeline="image | decode(exact)") as loader:
            batch = next(iter(loader))
        assert (batch.image[0] == dataset.get(i, "image")).all()


def test_a_batch_of_samples_is_stacked(dataset):
    some = [7, 3, 3, 39]
    batch = dataset.get_batch(some)
    assert batch["label"].tolist() == [3 * i - 7 for i in some]
    assert batch["vec"].shape == (4, 2, 3)
    assert batch["meta"] == [{"id": i} for i in some]
    assert [v.shape for v in batch["image"]] == [
        dataset[i]["image"].shape for i in some]
    alike = dataset.get_batch(np.array([0, 15, 30]), fields=["image"])
    assert alike["image"].shape == (3, *dataset[0]["image"].shape)


def test_columns_and_filters(data, dataset, load):
    assert dataset.column("label").tolist() == [
        v["label"] for v in data.values]
    assert (dataset.column("score") == [v["score"] for v in data.values]).all()
    some = dataset.filter("label", lambda v: v % 2 == 0)
    assert some.tolist() == [i for i in range(N) if (3 * i - 7) % 2 == 0]
    assert dataset.filter("meta", lambda v: v["id"] > 35).tolist() == [
        36, 37, 38, 39]
    labels = np.concatenate([b.label for b in load(subset=some)])
    assert sorted(labels) == sorted(dataset.column("label")[some])


def test_a_dataset_pickles_to_other_processes(dataset):
    other = pickle.loads(pickle.dumps(dataset))
    assert same(other[3], dataset[3])
    pid = os.fork()
    if not pid:
        os._exit(0 if same(dataset[3], other[3]) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_dataset_on_a_mount_is_its_file(data, dataset, mount, tmp_path):
    where = mount(data.path)
    mounted = betonfs.Dataset(where)
    assert mounted.path == str(where) and str(where) in repr(mounted)
    assert mounted.fields == dataset.fields and len(mounted) == N
    for mine, want in zip(mounted[3:9:2], dataset[3:9:2], strict=True):
        assert same(mine, want)
    for one in mounted, pickle.loads(pickle.dumps(mounted)):
        assert same(one[7], dataset[7])
        assert same(one.get_batch([5, -1, 5], ("label", "vec")),
                    dataset.get_batch([5, -1, 5], ("label", "vec")))


def test_a_file_on_a_mount_may_have_any_name(data, mount, tmp_path):
    odd = tmp_path / "x\ndataset=\\012\ty.beton"
    os.link(data.path, odd)
    assert len(betonfs.Dataset(mount(odd))) == N


def test_a_directory_may_be_none_of_a_mount(data, mount, tmp_path):
    for path in tmp_path, mount(data.path) / "samples":
        with pytest.raises(FileNotFoundError, match="no dataset on a mount"):
            betonfs.Dataset(path)
    with pytest.raises(betonfs.BetonError, match="no dataset on a mount"):
        betonfs.Loader(tmp_path, pipeline={"image": "flip"})


def test_a_mount_whose_file_is_another_is_reported(data, mount, tmp_path):
    path = tmp_path / "moves.beton"
    path.write_bytes(open(data.path, "rb").read())
    where = mount(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="moves.beton"):
        betonfs.Dataset(where)
    betonfs.write(path, [{"label": 1}])
    with pytest.raises(betonfs.BetonError, match="is not what is mounted"):
        betonfs.Dataset(where)


def test_a_dataset_serves_many_threads(dataset):
    want = [dataset[i]["image"] for i in range(N)]
    wrong = []

    def run(seed):
        for i in np.random.default_rng(seed).permutation(N):
            if not np.array_equal(dataset[int(i)]["image"], want[i]):
                wrong.append(i)
    workers = [threading.Thread(target=run, args=(s,)) for s in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_damage_is_reported_with_its_place(damaged, tmp_path):
    dataset = betonfs.Dataset(damaged)
    assert dataset.get(17, "label") == 44
    for _ in range(200):    # however often it is asked for
        with pytest.raises(betonfs.BetonError, match="sample 17 field image"):
            dataset[17]
    with pytest.raises(FileNotFoundError, match="none.beton"):
        betonfs.Dataset(tmp_path / "none.beton")


def test_a_torch_dataloader_has_it(dataset):
    torch = pytest.importorskip("torch")

    def collate(samples):
        return torch.tensor([s["label"] for s in samples])
    loader = torch.utils.data.DataLoader(dataset, 8, num_workers=2,
                                         collate_fn=collate)
    assert torch.cat(list(loader)).tolist() == \
        dataset.column("label").tolist()


# --- writing ---

def pictures(n):
    rng = np.random.default_rng(n)
    return [{"image": rng.integers(0, 256, (9 + i, 12, 3), np.uint8),
             "label": i, "score": i / 4, "blob": rng.bytes(i),
             "meta": {"name": f"n\u00e4{i}"},
             "vec": rng.normal(0, 1, (2, 3)).astype("<f4")}
            for i in range(n)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", [list, iter])
def test_written_values_are_read_back(tmp_path, kind, workers):
    samples = pictures(25)
    path = tmp_path / "w.beton"
    assert betonfs.write(path, kind(samples), mode="raw", workers=workers,
                         length=30) == 25
    back = betonfs.Dataset(path)
    assert len(back) == 25
    assert all(map(same, back, samples))


def test_images_are_written_as_they_are_or_as_jpeg(tmp_path, data):
    from PIL import Image
    jpeg = data.values[0]["image"].data
    path = tmp_path / "w.beton"
    pixels = np.full((40, 60, 3), (10, 200, 90), np.uint8)
    betonfs.write(path, [(Image.fromarray(pixels).convert("L"), 1), (jpeg, 2),
                         (pixels, 3)],
                  fields={"image": "image", "label": "int"}, max_resolution=30)
    back = betonfs.Dataset(path)
    assert back.raw(1, "image") == jpeg
    assert back[0]["image"].shape == back[2]["image"].shape == (20, 30, 3)
    assert np.abs(back[2]["image"].astype(int) - pixels[0, 0]).max() < 8
    assert back.column("label").tolist() == [1, 2, 3]


def test_a_failed_write_leaves_no_file(tmp_path):
    path = tmp_path / "w.beton"
    good = pictures(3)
    for bad, why in (({**good[0], "label": "x"}, "sample 3 field label"),
                     ({**good[0], "vec": np.zeros(7)}, "sample 3 field vec"),
                     ({**good[0], "image": b"no"}, "sample 3 field image"),
                     ({**good[0], "blob": bytes(3 << 20)}, "sample 3")):
        with pytest.raises((ValueError, OSError), match=why):
            betonfs.write(path, [*good, bad], page_size=2 << 20)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="length"):
        betonfs.write(path, iter(good))
    with pytest.raises(ValueError, match="no image, number"):
        betonfs.write(path, [{"x": object()}])
    with pytest.raises(FileNotFoundError):
        betonfs.write(tmp_path / "none" / "w.beton", good)


def test_a_file_that_may_not_grow_is_not_a_sample_too_large(tmp_path):
    large = {"x": "bytes"}
    with pytest.raises(OSError, match="larger than a page") as sample:
        betonfs.write(tmp_path / "w.beton", [(bytes(3 << 20),)], large,
                      page_size=2 << 20)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, most))
    try:
        with pytest.raises(OSError, match="w.beton.*File too large") as file:
            betonfs.write(tmp_path / "w.beton", [(bytes(1 << 20),)] * 20, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert file.value.errno == errno.EFBIG != sample.value.errno
    assert list(tmp_path.iterdir()) == []


# --- the package ---

def test_repr(load, data):
    text = repr(load())
    assert "p.beton" in text and "image <f4[3, 12, 12]" in text
    assert f"{STEPS} batches" in text


def test_every_dtype_is_delivered(tmp_path, load):
    kinds = ["|u1", "|i1", "|b1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8",
             "<f2", "<f4", "<f8", "<c8", "<c16", ">f4", "|S5", "<U3",
             "<M8[s]"]
    rng = np.random.default_rng(3)
    rows = [{f"f{k}": np.frombuffer(
        rng.integers(0, 2, 3 * np.dtype(d).itemsize, np.uint8).tobytes(), d)
        for k, d in enumerate(kinds)} for _ in range(4)]
    fields = [(f"f{k}", make.NDARRAY, d, (3,)) for k, d in enumerate(kinds)]
    d = make.Dataset(tmp_path / "kinds.beton", fields, rows, 1 << 16)
    batch = next(iter(load(d.path, pipeline=None, spec="batch=4")))
    for k, name in enumerate(kinds):
        a = batch[f"f{k}"]
        assert a.dtype == np.dtype(name) and a.shape == (4, 3)
        for row, i in enumerate(batch.ids):
            assert a[row].tobytes() == rows[i][f"f{k}"].tobytes()
