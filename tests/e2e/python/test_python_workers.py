# SPDX-License-Identifier: Apache-2.0
"""The processes that produce samples for write(): they do not affect the
written data, their failures are reported, and none is left."""
import importlib.machinery
import json
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import types

import numpy as np
import pytest

from conftest import DEADLINE, wait_until
from package import PACKAGE, betonfs
from betonfs._processes import made

N = 50


class Drawn:
    """Samples that take any number of values from the global generators."""

    def __len__(self):
        return N

    def __getitem__(self, i):
        return {"number": i, "real": random.random(),
                "blob": np.random.bytes(np.random.randint(0, 3000)),
                "vec": np.random.normal(0, 1, (2, 3)),
                "image": np.random.randint(0, 256, (9, 8, 3), np.uint8)}


def written(path, samples, seed=1, **options):
    random.seed(seed)
    np.random.seed(seed)
    betonfs.write(path, samples, overwrite=True, **options)
    return path.read_bytes()


# --- what is written ---

def test_the_file_is_the_same_for_any_number_of_processes(tmp_path):
    path, after = tmp_path / "w.beton", []
    first = written(path, Drawn())
    for workers in 1, 2, 3, N + 10:
        assert written(path, Drawn(), workers=workers) == first
        after.append((random.random(), np.random.random()))
    assert len(set(after)) == 1
    back = betonfs.Dataset(path)
    assert back.column("number").tolist() == list(range(N))
    assert len(set(back.column("real").tolist())) == N
    assert len({s["image"].tobytes() for s in map(back.__getitem__,
                                                  range(N))}) == N
    # A second one of this process has other numbers.
    betonfs.write(path, Drawn(), workers=2, overwrite=True)
    assert path.read_bytes() != first
    assert written(path, Drawn(), seed=2, workers=2) != first


class Owned(Drawn):
    """Whose process opened it, which is what its file belongs to."""
    opened = None

    def __getitem__(self, i):
        self.opened = self.opened or os.getpid()
        return {"number": i, "here": int(self.opened == os.getpid()),
                "process": os.getpid()}


@pytest.mark.parametrize("fields", [
    None, {"number": "int", "here": "int", "process": "int"}])
def test_each_process_opens_its_own(tmp_path, fields):
    betonfs.write(tmp_path / "w.beton", Owned(), fields, workers=3)
    back = betonfs.Dataset(tmp_path / "w.beton")
    assert back.column("number").tolist() == list(range(N))
    assert back.column("here").tolist() == [1] * N
    processes = back.column("process").tolist()
    assert len(set(processes)) == 3 and os.getpid() not in processes


def test_an_iterable_is_taken_here(tmp_path):
    def samples():
        for i in range(N):
            yield {"number": i, "process": os.getpid(), "real": random.random()}
    first = written(tmp_path / "w.beton", samples(), length=N)
    assert written(tmp_path / "w.beton", samples(), length=N,
                   workers=4) == first
    random.seed(1)
    back = betonfs.Dataset(tmp_path / "w.beton")
    assert back.column("process").tolist() == [os.getpid()] * N
    assert back.column("real").tolist() == [random.random() for _ in range(N)]


class Columns:
    """An iterable whose [name] is a column, as streams of rows have it."""

    def __iter__(self):
        return ({"number": i} for i in range(N))

    def __getitem__(self, name):
        raise KeyError(name)


@pytest.mark.parametrize("workers", [1, 2])
def test_samples_without_length_are_iterated(tmp_path, workers):
    path = tmp_path / "w.beton"
    assert betonfs.write(path, Columns(), length=2 * N, workers=workers) == N
    assert betonfs.Dataset(path).column("number").tolist() == list(range(N))


class Large(Drawn):
    SIZE = 40 << 20

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"blob": bytes([i]) * self.SIZE, "text": "x" * i,
                "vec": np.full(self.SIZE // 8, i, np.uint8)}


def test_large_samples_pass(tmp_path):
    betonfs.write(tmp_path / "w.beton", Large(), workers=2,
                  page_size=64 << 20)
    for i, got in enumerate(betonfs.Dataset(tmp_path / "w.beton")):
        assert got["blob"] == bytes([i]) * Large.SIZE
        assert got["vec"].tobytes() == bytes([i]) * (Large.SIZE // 8)
        assert got["text"] == "x" * i


def test_processes_are_a_little_ahead():
    """A pipe cannot hold a sample, so each process is one ahead."""
    begun = multiprocessing.Value("i", 0)

    def make(i):
        with begun:
            begun.value += 1
        return i, bytes(3 << 20)
    with made(make, N, 4) as values:
        for i, (number, _) in enumerate(values):
            assert number == i
            assert begun.value <= i + 1 + 2 * 4


def test_values_pass_as_they_are():
    """Also those of fields that users wrote."""
    def make(i):
        array = np.arange(12, dtype=">i2").reshape(3, 4)
        return (i, 0.5, b"", bytes(9), bytearray(9), array, array[:, ::2],
                np.int64(i), np.array(i), memoryview(bytes(9)), (b"x", 1, 2))
    with made(make, 3, 2) as values:
        for i, got in enumerate(values):
            want = make(i)
            assert [bytes(v) for v in got[2:5]] == [b"", bytes(9), bytes(9)]
            for k in 0, 1, 7, 8, 9, 10:
                assert got[k] == want[k]
            assert np.array_equal(got[5], want[5]) and got[5].dtype == ">i2"
            assert np.array_equal(got[6], want[6])


def write_a_level_down(path):
    with open(path.with_suffix(".printed"), "w") as f:
        written(path, Drawn(), workers=3)
        f.write("written")


def test_a_process_that_may_have_none_writes_too(tmp_path):
    want = written(tmp_path / "a.beton", Drawn(), workers=3)
    process = multiprocessing.get_context("fork").Process(
        target=write_a_level_down, args=(tmp_path / "b.beton",), daemon=True)
    process.start()
    process.join(DEADLINE)
    assert (tmp_path / "b.printed").read_text() == "written"
    assert (tmp_path / "b.beton").read_bytes() == want


def test_processes_begin_before_the_bar(tmp_path, monkeypatch):
    """It has a thread, and a process with threads is better not forked."""
    began = []

    def tqdm(samples, **options):
        began.append(len(multiprocessing.active_children()))
        return samples
    module = types.ModuleType("tqdm")
    module.__spec__ = importlib.machinery.ModuleSpec("tqdm", None)
    module.tqdm = tqdm
    monkeypatch.setitem(sys.modules, "tqdm", module)
    # Pipes do not hold what each has, so none has ended.
    betonfs.write(tmp_path / "w.beton", [{"blob": bytes(3 << 20)}] * 9,
                  workers=3, progress=True)
    assert began == [3]


# --- what fails ---

class Refusal(Exception):
    """That cannot be made again from its arguments."""

    def __init__(self, i, why):
        super().__init__(f"{i}: {why}")


class Failing(Drawn):
    def __init__(self, fail):
        self.fail = fail

    def __getitem__(self, i):
        if i == 33:
            self.fail()
        return super().__getitem__(i)


def fails(path, samples, workers, error):
    """The error and its notes as a traceback has them."""
    with pytest.raises(error) as e:
        betonfs.write(path, samples, workers=workers)
    assert type(e.value) is error or error is OSError
    assert list(path.parent.iterdir()) == []
    assert not multiprocessing.active_children()
    return "\n".join([str(e.value), *getattr(e.value, "__notes__", [])])


def raises(error):
    def fail():
        raise error
    return fail


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [
    KeyError("why"), ValueError("why"), BrokenPipeError("why"),
    EOFError("why")])
def test_errors_of_samples_have_their_class_and_place(tmp_path, error, workers):
    printed = fails(tmp_path / "w.beton", Failing(raises(error)), workers,
                 type(error))
    assert "why" in printed and "sample 33" in printed
    if workers > 1:
        assert "self.fail()" in printed    # where it was raised


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", [list, iter])
def test_an_end_in_the_middle_is_no_end(tmp_path, kind, workers):
    class Ends:
        def __array__(self, *args, **options):
            raise StopIteration
    samples = [{"vec": np.zeros(3)} if i != 33 else {"vec": Ends()}
               for i in range(N)]
    with pytest.raises(RuntimeError, match="StopIteration"):
        betonfs.write(tmp_path / "w.beton", kind(samples), length=N,
                      workers=workers)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_no_pickle_has_its_class(tmp_path):
    printed = fails(tmp_path / "w.beton", Failing(raises(Refusal(33, "no"))), 3,
                 Refusal)
    assert "Refusal: 33: no" in printed and "sample 33" in printed


@pytest.mark.parametrize("workers", [1, 3])
def test_errors_of_encoding_have_their_class_and_place(tmp_path, workers):
    class Broken(Drawn):
        def __getitem__(self, i):
            wrong = {"vec": "x"} if i == 44 else {}
            return {**super().__getitem__(i), **wrong}
    printed = fails(tmp_path / "w.beton", Broken(), workers, ValueError)
    assert "sample 44 field vec" in printed


@pytest.mark.parametrize("workers", [1, 3])
def test_errors_of_the_package_have_their_class_and_place(tmp_path, workers):
    folder = tmp_path / "in"
    folder.mkdir()

    def fail():
        betonfs.Dataset(tmp_path / "none.beton")
    with pytest.raises(FileNotFoundError) as e:
        betonfs.write(folder / "w.beton", Failing(fail), workers=workers)
    assert isinstance(e.value, betonfs.BetonError)
    assert "none.beton" in e.value.strerror
    assert "sample 33" in e.value.__notes__[-1]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("how, code", [
    (lambda: os._exit(7), "7"),
    (lambda: os.kill(os.getpid(), signal.SIGKILL), "-9")])
def test_a_process_that_ends_is_reported(tmp_path, how, code):
    printed = fails(tmp_path / "w.beton", Failing(how), 3, RuntimeError)
    assert "sample 33" in printed and printed.endswith(code)


def test_unpicklable_samples_are_reported():
    with pytest.raises(TypeError, match="pickle"):
        with made(lambda i: (i, sys.stdout), N, 2) as values:
            list(values)
    assert not multiprocessing.active_children()


# --- what ends early ---

ENDLESS = """
import os, pathlib, signal, sys, time
sys.path.insert(0, sys.argv[1])
import betonfs
here = pathlib.Path(sys.argv[2])
# Handlers of a user's are not those of the processes.
signal.signal(signal.SIGTERM, lambda *_: None)
class Endless:
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        (here / f"{os.getpid()}.pid").touch()
        while i > 100:
            time.sleep(60)
        return {"blob": bytes(100)}
try:
    betonfs.write(here / "w.beton", Endless(), {"blob": "bytes"}, workers=3)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def lives(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # If no process waits for orphans, they stay as zombies.
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("everybody", [False, True])
def test_no_process_is_left(tmp_path, how, everybody):
    """Interrupts the caller, or all processes as a terminal does, while all
    wait for a sample that does not come."""
    p = subprocess.Popen([sys.executable, "-c", ENDLESS, PACKAGE, tmp_path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, start_new_session=True)

    def pids():
        return [int(f.stem) for f in tmp_path.glob("*.pid")]
    try:
        wait_until(lambda: len(pids()) == 3, "processes")
        if everybody and how == signal.SIGINT:
            os.killpg(p.pid, how)
        else:
            p.send_signal(how)
        printed = p.communicate(timeout=DEADLINE)
    finally:
        p.kill()
    wait_until(lambda: not any(map(lives, pids())), "processes to end")
    if how == signal.SIGINT:
        assert printed == ("interrupted\n", "")
        assert not list(tmp_path.glob("*w.beton*"))


HELD = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
sys.path.insert(0, sys.argv[1])
import betonfs
lock = np.random.mtrand._rand._bit_generator.lock
other = ThreadPoolExecutor(1)
os.register_at_fork(before=lambda: other.submit(lock.acquire).result(),
                    after_in_parent=lambda: other.submit(lock.release).result())
betonfs.write(sys.argv[2], [{"a": 1}] * 9, workers=2)
"""


def test_a_thread_may_draw_while_processes_begin(tmp_path):
    """The lock of NumPy's generator is its own then, and stays so in a
    process where that thread is not."""
    subprocess.run([sys.executable, "-c", HELD, PACKAGE, tmp_path / "w.beton"],
                   check=True, timeout=DEADLINE)
    assert len(betonfs.Dataset(tmp_path / "w.beton")) == 9


# --- torch ---

def test_torch_is_not_imported(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit('imported')")
    r = subprocess.run(
        [sys.executable, "-c", """
import betonfs, json, sys
betonfs.write(sys.argv[1], [{"a": 1}] * 9, workers=2)
print(json.dumps("torch" in sys.modules))""", tmp_path / "w.beton"],
        env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{tmp_path}"}, text=True,
        capture_output=True, timeout=DEADLINE)
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout) is False
