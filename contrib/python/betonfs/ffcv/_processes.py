# SPDX-License-Identifier: Apache-2.0
"""Processes that get samples of an indexed dataset and encode them. Not
threads: datasets are written for processes, those of FFCV and of torch, and
draw from the one global generator, or move the place of an open file."""
from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Generator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

Samples = Generator[tuple[Any, ...], None, None]
# Samples that are sent at a time, and so the most that a process is ahead.
_CHUNK = 16


def _sendable(error: Exception) -> Exception:
    """With where it comes from; of another class, where its own cannot be made
    again."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def _work(encoder: Any, dataset: Any, numbers: Sequence[int], begins: range,
          out: Connection, others: Sequence[Connection]) -> None:
    # The parent says when to stop, and its end must be seen by all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for connection in others:
        connection.close()
    # torch's own threads are not there after a fork.
    torch.set_num_threads(1)
    try:
        for begin in begins:
            chunk = numbers[begin:begin + _CHUNK]
            out.send([encoder.sample(begin + k, dataset[i])
                      for k, i in enumerate(chunk)])
    except BrokenPipeError:
        pass
    except Exception as e:
        out.send(_sendable(e))


def _received(source: Connection) -> Any:
    try:
        got = source.recv()
    except EOFError:
        raise RuntimeError("a process that gets samples has ended") from None
    if isinstance(got, Exception):
        raise got
    return got


def encoded(encoder: Any, dataset: Any, numbers: Sequence[int],
            workers: int) -> Samples:
    """Samples in the order of their numbers, as the writer takes them. Each
    process has every workers-th chunk; a pipe that is full lets it wait."""
    begins = range(0, len(numbers), _CHUNK)
    workers = min(workers, len(begins))
    if workers < 2 or multiprocessing.current_process().daemon:
        for k, i in enumerate(numbers):
            yield encoder.sample(k, dataset[i])
        return
    context = multiprocessing.get_context("fork")
    sources: list[Connection] = []
    processes = []
    try:
        for k in range(workers):
            source, out = context.Pipe(duplex=False)
            sources.append(source)
            process = context.Process(target=_work, daemon=True, args=(
                encoder, dataset, numbers, begins[k::workers], out, sources))
            process.start()
            processes.append(process)
            out.close()
        for k in range(len(begins)):
            yield from _received(sources[k % workers])
    finally:
        for process in processes:
            process.terminate()
            process.join()
        for source in sources:
            source.close()
