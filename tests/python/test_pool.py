# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays that the loader's own threads call: on what, in which
thread, with which random numbers, and what becomes of them when something goes
wrong or ends. They need numba."""
import ctypes
import gc
import os
import pathlib
import pickle
import sys
import threading

import numpy as np
import pytest

numba = pytest.importorskip("numba")
sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

import dumped  # noqa: E402
from conftest import wait_until  # noqa: E402
from package import betonfs, opener  # noqa: E402
from betonfs import _pool  # noqa: E402

DATA = ('synthetic(100, image="uint8[6,8,3]", label="int64<9", '
        'vec="float32[3]", blob="bytes[7]")')
B, STEPS = 8, 13

pthread_self = ctypes.CDLL(None).pthread_self
pthread_self.restype = ctypes.c_int64
pthread_self.argtypes = ()


@pytest.fixture
def load():
    with opener("/nowhere", batch_size=B, seed=5, drop_last=False,
                source=DATA, tensors="numpy", workers=2) as open_one:
        yield lambda *transforms, **options: open_one(
            transforms=transforms, **options)


def who(label):
    for i in range(len(label)):
        label[i] = pthread_self()


def callers(loader, name="label"):
    """Threads that wrote who they are."""
    return {int(t) for b in loader for t in np.asarray(getattr(b, name))}


def is_pooled(loader):
    mine = pthread_self()
    found = callers(loader)
    assert found == {mine} or mine not in found
    return mine not in found


def compiled(code, **how):
    return betonfs.compiled(code, **how)


# --- who calls it ---

@pytest.mark.parametrize("options", [
    {}, {"batch": "tuple"}, {"workers": 1, "prefetch": 1}, {"tensors": "torch"},
    {"order": "sequential", "source": DATA + " | memory"}])
def test_the_loaders_threads_call_it(load, options):
    if options.get("tensors") == "torch":
        pytest.importorskip("torch")
    loader = load(compiled(who), **options)
    assert is_pooled(loader)
    if "prefetch" not in options and "source" not in options:
        assert is_pooled(pickle.loads(pickle.dumps(loader)))
    assert loader.stats()["stages"]["transform"]["busy_s"] > 0


@numba.njit(parallel=True)
def threaded(a):
    for i in numba.prange(len(a)):
        a[i] += 1


def test_unfit_operations_run_in_the_iterating_thread(load):
    def returns(label):
        who_(label)
        return label

    def of_threads(label, vec):
        threaded(vec)
        who_(label)

    def plain(batch):
        return batch

    who_ = numba.njit(who)
    for first in ([compiled(returns)], [compiled(of_threads)],
                  [compiled(who, parallel=True)], [plain, compiled(who)],
                  [compiled(lambda dataset, label: who_(label))]):
        assert not is_pooled(load(*first))
    # Functions before it still run in the threads.
    loader = load(compiled(who), lambda b: {"label": b.label.copy()})
    assert pthread_self() not in {int(t) for b in loader for t in b["label"]}


def test_without_numba_it_is_called_by_the_iterating_thread(load, monkeypatch):
    monkeypatch.setattr(betonfs._compiled, "find_numba", lambda: None)
    monkeypatch.setattr(_pool, "find_numba", lambda: None)
    loader = load(compiled(who))
    with pytest.warns(RuntimeWarning, match="numba is not installed"):
        assert not is_pooled(loader)


def test_the_operation_receives_the_batch(load):
    def reported(vec, ids, valid, epoch, number, rows, image):
        for i in range(rows):
            vec[i, 0] = ids[i] + 1000 * valid[i]
            vec[i, 1] = 100 * epoch + number
            vec[i, 2] = image.shape[1] + 10 * image.shape[2]
        image[:] = 255 - image

    sizes = 'random_resized_crop("0=5,1=6")'
    loader = load(compiled(reported), rank=2, world_size=3, pipeline=sizes)
    assert is_pooled(load(compiled(reported), compiled(who), pipeline=sizes))
    other = load(rank=2, world_size=3, pipeline=sizes)
    for epoch in range(2):
        for b, plain in zip(loader, other, strict=True):
            assert np.array_equal(b.image, 255 - plain.image)
            want = np.column_stack((
                b.ids + 1000 * b.valid, np.full(b.num_samples, 100 * epoch + b.number),
                np.full(b.num_samples, 11 * (5 + epoch)))).astype("f4")
            assert np.array_equal(b.vec, want)


def test_a_repeated_batch_is_changed_once(load):
    def add(label):
        label += 100

    for source in "constant", "memory":
        loader = load(compiled(add), source=f"{DATA} | {source}")
        for _ in range(3):
            assert all((b.label // 100 == 1).all() for b in loader)


def test_rows_that_failed_can_be_seen(load, tmp_path):
    def left(image, label, valid):
        for i in range(len(label)):
            label[i] = valid[i]

    data = dumped.photos(tmp_path / "own.beton", 40)
    data.patch(data.place[17, "image"] + 2, bytes(60))
    options = {"path": data.path, "source": None, "pipeline": "center_crop(8)"}
    loader = load(compiled(left), on_error="skip", **options)
    assert all((b.label == (b.ids != 17)).all() for b in loader)
    it, errors = iter(load(compiled(left), **options)), []
    for _ in range(5):
        try:
            assert (next(it).label == 1).all()
        except betonfs.BetonError as e:
            errors.append(str(e))
    assert len(errors) == 1 and "sample 17" in errors[0]


# --- random numbers ---

def noise(image, vec):
    for i in range(len(vec)):
        vec[i, 0] = np.random.random()
        vec[i, 1] = np.random.normal(0., 1.)
        vec[i, 2] = np.random.uniform(2., 3.)
        image[i, 0, 0, 0] = np.random.randint(0, 256)


def again(label):
    label[:] = np.random.permutation(len(label))


NOISE = betonfs.compiled(noise), betonfs.compiled(again)


def seen(loader, epochs=1):
    return {(b.epoch, b.number): (b.vec.tobytes(), b.label.tobytes(),
                                  b.image.tobytes())
            for _ in range(epochs) for b in loader}


def test_numbers_are_those_of_seed_epoch_and_batch(load, monkeypatch):
    want = seen(load(*NOISE), 2)
    assert len({v for v, _, _ in want.values()}) == 2 * STEPS
    for workers in 1, 8:
        for prefetch in 1, 4:
            loader = load(*NOISE, workers=workers, prefetch=prefetch)
            assert seen(loader, 2) == want
    ranks = {}
    for r in range(2):
        ranks.update(seen(load(*NOISE, rank=r, world_size=2)))
    assert {k: ranks[k] for k in want if not k[0]} == {
        k: v for k, v in want.items() if not k[0]}
    assert seen(load(*NOISE, seed=6)) != seen(load(*NOISE))
    # In the middle of an epoch, in another one.
    loader, rest = load(*NOISE), load(*NOISE, workers=3)
    first = dict(zip(range(5), loader))
    rest.load_state_dict(loader.state_dict())
    assert seen(rest) == {k: v for k, v in want.items() if k[0] == 0
                          and k[1] >= len(first)}
    # Called by who iterates, and without numba.
    monkeypatch.setattr(_pool, "find_numba", lambda: None)
    assert seen(load(*NOISE), 2) == want
    monkeypatch.setattr(betonfs._compiled, "find_numba", lambda: None)
    plain = [betonfs.compiled(noise), betonfs.compiled(again)]
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    with pytest.warns(RuntimeWarning, match="numba is not installed"):
        assert seen(load(*plain), 2) == want
    assert np.random.get_state()[1].tolist() == before


# --- what goes wrong ---

def test_its_exception_fails_the_batch(load, capfd):
    @betonfs.compiled
    def picky(label, number):
        if number % 2:
            raise ValueError("odd")
        label[:] = 7

    it, errors = iter(load(betonfs.compiled(who), picky)), []
    for n in range(STEPS):
        try:
            assert (next(it).label == 7).all() and n % 2 == 0
        except betonfs.BetonError as e:
            errors.append(str(e))
    assert next(it, None) is None
    assert len(errors) == STEPS // 2
    assert "epoch 0 batch 1: picky() raised an exception" in errors[0]
    assert capfd.readouterr().err == ""


def test_uncompilable_operations_are_reported(load):
    @betonfs.compiled
    def wrong(label):
        label.no_such_thing()

    loader = load(wrong)
    for _ in range(2):
        with pytest.raises(numba.core.errors.TypingError,
                           match="no_such_thing"):
            next(iter(loader))


def test_two_threads_may_begin_at_once(load):
    loader, errors = load(compiled(who)), []
    together = threading.Barrier(2)

    def begin():
        together.wait()
        try:
            iter(loader)
        except BaseException as e:
            errors.append(e)

    begins = [threading.Thread(target=begin) for _ in range(2)]
    for t in begins:
        t.start()
    for t in begins:
        t.join()
    assert not errors and is_pooled(loader)


# --- ends ---

def threads():
    return len(os.listdir("/proc/self/task"))


def files():
    return len(os.listdir("/proc/self/fd"))


def test_a_loader_may_be_closed_while_numba_compiles(load, monkeypatch):
    before = threads()
    loader = load(compiled(who))
    compile_callback = _pool.compile_callback

    def slowly(*arguments):
        closer = threading.Thread(target=loader.close)
        closer.start()
        closer.join()
        return compile_callback(*arguments)

    monkeypatch.setattr(_pool, "compile_callback", slowly)
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)
    wait_until(lambda: threads() <= before, "the threads")


def test_nothing_is_left_of_it(load):
    loader = load(compiled(who))
    next(iter(loader))
    before = files(), threads()
    for _ in range(1000):
        for _ in zip(range(2), loader):
            pass
    assert (files(), threads()) == before
    loader.close()
    before = threads()
    # Loaders that were not iterated, or not closed.
    for k in range(20):
        other = betonfs.Loader("/nowhere", source=DATA, batch_size=B, workers=2,
                               transforms=[compiled(who)])
        if k == 7:
            next(iter(other))
    del other
    gc.collect()
    wait_until(lambda: threads() <= before, "the threads")


def test_a_child_of_fork_gets_an_error(load):
    loader = load(compiled(who))
    it = iter(loader)
    next(it)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            next(it)
        except RuntimeError as e:
            code = 0 if "fork" in str(e) else 2
        try:
            loader.close()
            del it, loader
            gc.collect()
        except BaseException:
            code = 3
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert 1 + len(list(it)) == STEPS
