# SPDX-License-Identifier: Apache-2.0
"""Processes that make samples by number. They are not threads, because
datasets are written for the processes of torch's DataLoader: they draw from a
global generator, or move the position of an open file."""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import pickle
import random
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


@contextlib.contextmanager
def at(number: int) -> Iterator[None]:
    """Add the sample's number to an exception."""
    try:
        yield
    except Exception as e:
        e.add_note(f"sample {number}")
        raise


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


def _sendable(error: Exception, number: int) -> Exception:
    """An exception that another process can unpickle, with a note about its
    origin. If its class cannot be unpickled, the class is another one."""
    where = f"sample {number}, in a process of its own:\n" + \
        "".join(traceback.format_exception(error))
    error.add_note(where)
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:
        pass
    return RuntimeError(where)


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
