# SPDX-License-Identifier: Apache-2.0
"""Processes that make samples by number. They are not threads, because
datasets are written for the processes of torch's DataLoader: they draw from a
global generator, or move the position of an open file."""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import multiprocessing
import os
import pickle
import random
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from typing import Any, BinaryIO

import numpy as np

Make = Callable[[int], Any]
Process = tuple[BinaryIO, BaseProcess]      # what it sends, and itself
# What a process may be ahead by, besides the sample that it is at: the most
# that a pipe may have. Images take different times.
_PIPE = 1 << 20
_PR_SET_PDEATHSIG = 1
# Seconds to wait for a process to end.
_PATIENCE = 5


def add_place(error: BaseException, place: str) -> None:
    """Add the sample to an exception as a note, unless its message or a note
    has it."""
    texts = [str(error), *getattr(error, "__notes__", ())]
    if not any(re.match(rf"{place}\b", text) for text in texts):
        error.add_note(place)


class at:
    """A context that adds the sample's number to an exception. StopIteration
    becomes another class, because it would end a generator of the caller."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None, where: Any) -> None:
        if isinstance(error, StopIteration):
            raise RuntimeError(
                f"sample {self.number}: StopIteration") from error
        if isinstance(error, Exception):
            add_place(error, f"sample {self.number}")


# --- random numbers ---

class _Seeds:
    """Seeds of the global random generators. They are seeded again for every
    sample, from one number drawn from each generator and the sample's number. So
    the random numbers of a sample depend neither on the process that makes it
    nor on earlier samples."""

    def __init__(self) -> None:
        self.python = random.getrandbits(62)
        self.numpy = int(np.random.randint(1 << 32, dtype=np.uint64))
        torch = sys.modules.get("torch")
        self.torch = self.python if torch is None else \
            int(torch.randint(1 << 62, ()))

    def begin(self, number: int) -> None:
        random.seed(self.python + number)
        np.random.seed((self.numpy + number) % (1 << 32))
        torch = sys.modules.get("torch")
        if torch is not None:
            # Not manual_seed(), which is for those of GPUs too.
            torch.default_generator.manual_seed(self.torch + number)


@contextlib.contextmanager
def _kept_generators() -> Iterator[None]:
    """Restore the generators afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    torch = sys.modules.get("torch")
    torchs = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        if torch is not None:
            torch.set_rng_state(torchs)


def _forget_threads() -> None:
    """Replace locks after a fork: a thread that held NumPy's lock does not
    exist in this process and cannot release it. torch's threads do not exist
    either."""
    generator: Any = np.random.mtrand._rand
    generator._bit_generator.lock._at_fork_reinit()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


# --- what passes a pipe ---

def _loose(value: Any) -> Any:
    """Wrap bytes so that pickle need not copy them; it copies no arrays
    either."""
    if isinstance(value, tuple):
        return tuple(map(_loose, value))
    if isinstance(value, (bytes, memoryview)):
        return pickle.PickleBuffer(value)
    return value


def _send(out: BinaryIO, value: Any) -> None:
    """Send an object whole, or nothing if it does not pickle."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(_loose(value), 5, buffer_callback=buffers.append)
    parts = [b.raw() for b in buffers]
    pickle.dump((head, [len(p) for p in parts]), out)
    for part in parts:
        out.write(part)
    out.flush()


def _received(source: BinaryIO) -> Any:
    """Receive an object. Raise EOFError if the other end closes too early."""
    try:
        head, sizes = pickle.load(source)
    except pickle.UnpicklingError:
        raise EOFError from None
    parts = [source.read(n) for n in sizes]
    if [len(p) for p in parts] != sizes:
        raise EOFError
    return pickle.loads(head, buffers=parts)


def _subclasses(of: type[BaseException]) -> Iterator[type[BaseException]]:
    for kind in type.__subclasses__(of):
        yield kind
        yield from _subclasses(kind)


def _same_class(module: str, name: str, number: int) -> \
        type[BaseException] | None:
    """The class that had this id() in a forked process. Pickle finds no class
    that a function defined."""
    for kind in _subclasses(BaseException):
        if id(kind) == number and (kind.__module__, kind.__qualname__) == \
                (module, name):
            return kind
    return None


def _rebuilt(kinds: Sequence[tuple[str, str, int]], args: tuple[Any, ...],
             state: dict[str, Any]) -> BaseException:
    """An exception of the first of these classes that this process has. It
    skips the __init__() of a user, whose arguments need not be the
    exception's."""
    found = next(kind for kind in itertools.starmap(_same_class, kinds)
                 if kind is not None)
    error = found.__new__(found, *args)
    builtin: Any = next(kind for kind in found.__mro__
                        if kind.__module__ == "builtins")
    with contextlib.suppress(TypeError):
        builtin.__init__(error, *args)      # sets the errno of an OSError
    error.args = args
    error.__dict__.update(state)
    return error


class _Parts:
    """Pickles an exception as its classes, arguments and attributes."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        kinds = [(kind.__module__, kind.__qualname__, id(kind))
                 for kind in type(self.error).__mro__
                 if issubclass(kind, BaseException)]
        state = {name: value for name, value in vars(self.error).items()
                 if _pickles(value)}
        args = self.error.args if _pickles(self.error.args) else \
            (str(self.error),)
        return _rebuilt, (kinds, args, state)


def _pickles(value: Any) -> bool:
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    return True


def _survives(error: Exception) -> bool:
    """Whether pickle keeps its class and its message."""
    try:
        other = pickle.loads(pickle.dumps(error))
        return type(other) is type(error) and str(other) == str(error)
    except Exception:
        return False


def _sendable(error: Exception, number: int) -> Exception | _Parts:
    """An exception for another process, of the same class, with a note about
    its origin."""
    error.add_note(f"sample {number}, in a process of its own:\n"
                   + "".join(traceback.format_exception(error)))
    return error if _survives(error) else _Parts(error)


# --- processes ---

def _work(make: Make, seeds: _Seeds, numbers: Sequence[int], out: int,
          gate: tuple[int, int]) -> None:
    # Ignore signals, because the parent stops this process. If the parent is
    # killed, the kernel kills this process too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    os.close(gate[1])
    if not os.read(gate[0], 1) or parent is None or os.getppid() != parent.pid:
        return
    _forget_threads()
    with open(out, "wb") as to:
        for i in numbers:
            try:
                seeds.begin(i)
                _send(to, make(i))
            except Exception as e:
                _send(to, _sendable(e, i))
                break


def _start(make: Make, seeds: _Seeds, numbers: Sequence[int],
           gate: tuple[int, int]) -> Process:
    source, out = os.pipe()
    try:
        # The kernel refuses this if the user's pipes have too much memory.
        with contextlib.suppress(OSError):
            fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, _PIPE)
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(make, seeds, numbers, out, gate), daemon=True)
        process.start()
    except BaseException:
        os.close(source)
        raise
    finally:
        os.close(out)
    return open(source, "rb"), process


@contextlib.contextmanager
def _gate(n: int) -> Iterator[tuple[int, int]]:
    """A gate that n processes pass at the end of the block. If the block was
    interrupted during a fork, the new process may be unknown; it ends at the
    gate."""
    gate = os.pipe()
    try:
        yield gate
        os.write(gate[1], bytes(n))
    finally:
        os.close(gate[0])
        os.close(gate[1])


def _in_order(processes: Sequence[Process], n: int) -> Iterator[Any]:
    for i in range(n):
        source, process = processes[i % len(processes)]
        try:
            got = _received(source)
        except EOFError:
            process.join(_PATIENCE)
            raise RuntimeError(f"sample {i}: the process that makes it ended "
                               f"with {process.exitcode}") from None
        if isinstance(got, Exception):
            with at(i):
                raise got
        yield got
    for _, process in processes:
        process.join(_PATIENCE)


def _here(make: Make, seeds: _Seeds, n: int) -> Iterator[Any]:
    for i in range(n):
        with at(i):
            seeds.begin(i)
            made = make(i)
        yield made


@contextlib.contextmanager
def made(make: Make, n: int, workers: int) -> Iterator[Iterator[Any]]:
    """Iterate over the results of make() for 0 to n - 1, in this order. Results
    are tuples of numbers and bytes, or other objects that pickle. Each of
    `workers` processes makes every workers-th result, and blocks while its pipe
    is full. When the context ends, all processes have ended. If there is one
    worker, or if this process may not start others, it makes all results."""
    seeds = _Seeds()
    if workers < 2 or multiprocessing.current_process().daemon:
        with _kept_generators():
            yield _here(make, seeds, n)
        return
    workers = min(workers, n)
    processes: list[Process] = []
    try:
        with _gate(workers) as gate:
            for k in range(workers):
                processes.append(
                    _start(make, seeds, range(k, n, workers), gate))
        yield _in_order(processes, n)
    finally:
        for _, process in processes:
            process.kill()
        for source, process in processes:
            process.join()
            source.close()
