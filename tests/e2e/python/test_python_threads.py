# SPDX-License-Identifier: Apache-2.0
"""The Python package in many threads at once: exclusive work is done in turns,
and all results are right in whichever thread. If there is a GIL, threads are
switched as often as possible; test_python_elsewhere.py runs this without one.
"""
import gc
import queue
import random
import sys
import sysconfig
import threading

import numpy as np
import pytest

import dumped
from dumped import AUGMENT, DEADLINE
from package import betonfs
from betonfs import _beton
from package import same, snapshot

pytest.importorskip("PIL.Image")

N, SIZE, THREADS = 40, 4, 4
STEPS = N // SIZE
SPEC = f"batch={SIZE},seed=11,drop_last=0"


@pytest.fixture(autouse=True)
def often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("threads") / "p.beton", N)


def opened(data, **options):
    return betonfs.Loader(data.path, **{
        "spec": SPEC, "pipeline": AUGMENT, "tensors": "numpy", "workers": 2,
        **options})


@pytest.fixture
def load(data):
    loaders = []

    def open_one(**options):
        loaders.append(opened(data, **options))
        return loaders[-1]
    yield open_one
    for loader in loaders:
        loader.close()


@pytest.fixture(scope="module")
def epochs(data):
    """Copies of each batch of the first epochs."""
    with opened(data, workers=1) as loader:
        return [[snapshot(b) for b in loader] for _ in range(3)]


class Threads:
    """Each runs a function of its number, all at once; what they raise is
    raised at the end."""

    def __init__(self, *functions):
        self._errors = []
        self._start = threading.Barrier(len(functions))
        self._threads = [threading.Thread(target=self._run, args=(f, i),
                                          daemon=True)
                         for i, f in enumerate(functions)]
        for thread in self._threads:
            thread.start()

    def _run(self, function, i):
        try:
            self._start.wait(DEADLINE)
            function(i)
        except BaseException as e:
            self._errors.append(e)

    def end(self):
        for thread in self._threads:
            thread.join(DEADLINE)
            assert not thread.is_alive(), "a thread does not end"
        for error in self._errors:
            raise error


def at_once(function, n=THREADS):
    Threads(*[function] * n).end()


# --- loaders ---

def test_each_has_a_loader(load, epochs):
    def run(i):
        loader = load(workers=1 + i % 2)
        for want in epochs:
            assert [snapshot(b) for b in loader] == want
    at_once(run)


@pytest.mark.quick
def test_one_loader_is_taken_in_turns(load, epochs):
    loader = load()
    for want in epochs:
        it, seen = iter(loader), []

        def run(i):
            for batch in it:
                seen.append(snapshot(batch))
            assert next(it, None) is None
        at_once(run)
        assert sorted(seen, key=lambda s: s[1]) == want


def test_a_late_thread_takes_nothing_of_a_new_iteration(load):
    loader = load(pipeline="image | drop")
    for turn in range(20):
        it = iter(loader)

        def late(i):
            try:
                for batch in it:
                    assert batch.epoch == 2 * turn
            except RuntimeError as e:
                assert "another iteration" in str(e)
        others = Threads(*[late] * THREADS)
        next(it, None)
        mine = [(b.epoch, b.number) for b in iter(loader)]
        others.end()
        epoch = mine[0][0]      # the next, if the others took any
        assert mine == [(epoch, n) for n in range(STEPS)]
        loader.set_epoch(2 * turn + 2)


def test_a_turn_that_is_over_gets_no_batch(load):
    core = load()._core
    old = core.begin()
    assert core.next(None, old).number == 0
    new = core.begin()
    with pytest.raises(RuntimeError, match="another iteration"):
        core.next(None, old)
    assert core.next(None, new).number == 1
    assert not core.is_fresh()
    newer = core.seek(5)
    with pytest.raises(RuntimeError, match="position changed"):
        core.next(None, new)
    assert core.is_fresh() and core.next(None, newer).epoch == 5
    assert core.next(None, core.begin_epoch()).epoch == 6


def test_a_move_ends_iterators(load, epochs):
    loader = load()
    state = loader.state_dict()

    def iterate(i):
        try:
            for _ in range(20):
                for batch in loader:
                    assert batch.num_samples == SIZE
        except RuntimeError as e:
            assert "another iteration of the loader began" in str(e)

    def move(i):
        for k in range(20):
            loader.set_epoch(k % 3)
            loader.load_state_dict(state)
    Threads(iterate, iterate, move).end()
    loader.set_epoch(1)
    assert [snapshot(b) for b in loader] == epochs[1]


def test_others_look_while_one_iterates(load, epochs):
    loader = load()
    over = threading.Event()

    def iterate(i):
        try:
            for want in epochs:
                assert [snapshot(b) for b in loader] == want
        finally:
            over.set()

    def look(i):
        given = 0
        while not over.is_set():
            stats = loader.stats()
            assert stats["throughput"]["batches"] >= given
            given = stats["throughput"]["batches"]
            assert loader.state_dict()["epoch"] <= len(epochs)
            assert "p.beton" in repr(loader) and len(loader) == STEPS
            assert [o["name"] for o in loader.outputs][0] == "image"
            assert not loader._core.has_messages
    Threads(iterate, look, look, look).end()


def test_it_is_closed_by_any(load, epochs):
    for _ in range(10):
        loader = load()

        def iterate(i):
            seen = []
            try:
                for batch in loader:
                    seen.append(batch)
            except RuntimeError as e:
                assert "closed" in str(e) or "another iteration" in str(e)
            loader.close()
            assert loader._core.closed
            # Batches that were taken stay valid.
            for batch in seen:
                assert snapshot(batch) == epochs[batch.epoch][batch.number]
        at_once(iterate, 3)
        with pytest.raises(RuntimeError, match="closed"):
            loader.stats()


def test_messages_are_reported_once(data, tmp_path, caplog):
    damaged = dumped.photos(tmp_path / "own.beton", N)
    for i in range(0, N, SIZE):
        damaged.patch(damaged.place[i, "image"] + 2, bytes(60))
    with opened(damaged, on_error="skip", order="sequential") as loader:
        it = iter(loader)
        at_once(lambda i: list(it))
    reported = [r.getMessage() for r in caplog.records]
    first = [t for t in reported if "epoch 0" in t]    # more are prefetched
    assert all(sum(f"sample {i} " in t for t in first) == 1
               for i in range(0, N, SIZE)), reported


# --- batches ---

def test_batches_are_released_by_any(load, epochs):
    """In any order, tensors by themselves and after the end of the loader."""
    batches = queue.Queue(THREADS)

    def give(i):
        loader = load(prefetch=4)
        for _ in epochs:
            for batch in loader:
                batches.put((snapshot(batch), batch))
        for _ in range(THREADS):
            batches.put(None)

    def take(i):
        kept, rng = [], random.Random(i)

        def drop():
            want, image = kept.pop(rng.randrange(len(kept)))
            assert image.tobytes() == want[4]["image"][2]
        while (item := batches.get(timeout=DEADLINE)) is not None:
            want, batch = item
            kept.append((want, batch.image))
            assert batch.ids.tolist() == want[2] and batch.number == want[1]
            del item, batch
            while len(kept) > rng.randrange(6):
                drop()
        while kept:
            drop()
    Threads(give, *[take] * THREADS).end()


def test_a_batch_is_looked_at_by_all(load, epochs):
    batch = next(iter(load()))

    def run(i):
        for _ in range(50):
            assert snapshot(batch) == epochs[0][0]
            raw = batch._raw.outputs[0]
            assert memoryview(raw).nbytes == batch.image.nbytes
            assert np.from_dlpack(raw).ctypes.data == raw.pointer
            assert batch.num_samples == SIZE and "|" not in batch.dataset
            assert batch.meta.json() == [{"id": n} for n in batch.ids]
    at_once(run)


def test_loaders_die_in_other_threads(data, epochs):
    def run(i):
        for k in range(10):
            loader = opened(data, workers=1, prefetch=1 + k % 3)
            it = iter(loader)
            kept = [next(it) for _ in range(k % 4)]
            graves.put((loader, it, kept))
            del loader, it
            for batch in kept:
                assert snapshot(batch) == epochs[0][batch.number]
        graves.put(None)

    def bury(i):
        while graves.get(timeout=DEADLINE) is not None:
            pass
    graves = queue.Queue(3)
    Threads(run, bury, run, bury).end()
    gc.collect()


# --- functions of arrays ---

@betonfs.compiled
def noisy(label):
    for i in range(len(label)):
        for _ in range(50):
            label[i] = np.random.randint(0, 1 << 30)


@pytest.mark.filterwarnings("ignore:.*numba is not installed")
def test_random_numbers_of_functions_are_their_own(load):
    """Each loader has its own numbers, although NumPy's generator is shared by
    all threads."""
    options = {"transforms": [noisy], "pipeline": "image | drop"}

    def numbers(loader):
        return [b.label.tolist() for _ in range(3) for b in loader]
    want = numbers(load(**options))
    assert len({n for labels in want for n in labels}) > 2 * N
    for _ in range(5):
        def run(i):
            assert numbers(load(**options)) == want
        at_once(run)


@pytest.mark.filterwarnings("ignore:.*numba is not installed")
def test_all_may_begin_the_first_iteration(load):
    """The first iteration compiles the functions."""
    for _ in range(5):
        loader = load(transforms=[noisy], pipeline="image | drop")

        def run(i):
            try:
                for batch in loader:
                    assert batch.num_samples == SIZE
            except RuntimeError as e:
                assert "another iteration" in str(e)
        at_once(run)
        loader.set_epoch(7)
        assert {b.epoch for b in loader} == {7}


# --- several loaders as one ---

@pytest.mark.parametrize("cycle", [False, True])
def test_a_mix_is_taken_in_turns(load, cycle):
    def mix():
        return betonfs.Mix([load(), load(pipeline="image | drop", seed=3,
                                         spec=None, batch_size=8)],
                           weights=[2, 1], seed=5, cycle=cycle)

    def shown(batch):
        return batch.num_samples, batch.epoch, batch.number, batch.ids.tolist()
    alone, shared = mix(), mix()
    for _ in range(4):
        it, seen = iter(shared), []

        def run(i):
            for batch in it:
                seen.append(shown(batch))
                assert shared.state_dict()["seed"] == 5
            assert next(it, None) is None
        at_once(run)
        assert sorted(seen) == sorted(shown(b) for b in alone)
        assert shared.state_dict() == alone.state_dict()


# --- samples ---

def test_one_dataset_is_read_by_all(data):
    dataset = betonfs.Dataset(data.path)
    want = list(dataset)
    labels = dataset.column("label").tolist()

    def run(i):
        rng = np.random.default_rng(i)
        for n in rng.permutation(N).tolist():
            assert same(dataset[n], want[n])
        some = rng.integers(0, N, 9).tolist()
        batch = dataset.get_batch(some)
        assert batch["label"].tolist() == [labels[k] for k in some]
        assert all(np.array_equal(a, want[k]["image"])
                   for a, k in zip(batch["image"], some))
        assert dataset.column("label").tolist() == labels
        assert dataset.raw(i, "image") == data.values[i]["image"].data
        with pytest.raises(IndexError):
            dataset[N]
        assert f"{N} samples" in repr(dataset)
    at_once(run, 6)


def test_failures_are_of_the_thread_that_met_them(tmp_path):
    damaged = dumped.photos(tmp_path / "own.beton", N)
    for i in range(0, N, SIZE):
        damaged.patch(damaged.place[i, "image"] + 2, bytes(60))
    dataset = betonfs.Dataset(damaged.path)

    def run(i):
        for _ in range(50):
            with pytest.raises(betonfs.BetonError,
                               match=f"sample {SIZE * i} field image"):
                dataset.get(SIZE * i, "image")
            missing = tmp_path / f"none{i}.beton"
            for kind in betonfs.Dataset, betonfs.Loader:
                with pytest.raises(FileNotFoundError, match=missing.name):
                    kind(missing)
    at_once(run)


# --- writing ---

def writer(path, n, kind="int"):
    return _beton.Writer(path, (("x", {"int": 1, "float": 0}[kind], None, ()),
                                ), n, 0)


def test_one_writer_is_fed_by_all(tmp_path):
    each = 500
    w = writer(tmp_path / "w.beton", THREADS * each)
    at_once(lambda i: [w.append((i * each + k,)) for k in range(each)])
    w.finish()
    found = betonfs.Dataset(tmp_path / "w.beton").column("x").tolist()
    assert sorted(found) == list(range(THREADS * each))


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_a_writer_ends_under_its_users(tmp_path, end):
    for turn in range(10):
        path = tmp_path / f"w{turn}.beton"
        w = writer(path, 100000)
        written = []

        def append(i):
            try:
                for k in range(50000):
                    w.append((k,))
                    written.append(k)
            except ValueError as e:
                assert "finished" in str(e)

        def stop(i):
            while not written:
                pass
            getattr(w, end)()
        Threads(append, append, stop).end()
        with pytest.raises(ValueError, match="finished"):
            w.append((0,))
        w.abort()
        assert path.exists() == (end == "finish")
        if end == "finish":
            assert sorted(betonfs.Dataset(path).column("x")) == sorted(written)


def test_a_value_may_end_its_writer(tmp_path):
    class Ending:
        def __float__(self):
            w.abort()
            return 1.0
    w = writer(tmp_path / "w.beton", 1, "float")
    with pytest.raises(ValueError, match="finished"):
        w.append((Ending(),))


def test_many_files_are_written_at_once(tmp_path):
    rng = np.random.default_rng(0)
    samples = [{"image": rng.integers(0, 256, (9 + i, 12, 3), np.uint8),
                "label": i, "text": f"n{i}"} for i in range(30)]

    def run(i):
        path = tmp_path / f"w{i}.beton"
        assert betonfs.write(path, samples, mode="raw", workers=1 + i) == 30
        assert all(map(same, betonfs.Dataset(path), samples))
    at_once(run)


# --- the interpreter ---

@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"),
                    reason="this interpreter is not free-threaded")
def test_there_is_still_no_gil():
    assert not sys._is_gil_enabled()
