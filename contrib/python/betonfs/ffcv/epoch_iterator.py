# SPDX-License-Identifier: Apache-2.0
"""An epoch as FFCV runs it: a thread that prefetches batches. It serves
subclasses of Loader, and may be subclassed; a Loader's own iteration is the
library's."""
from __future__ import annotations

import atexit
import contextlib
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .utils import chunks

QUASIRANDOM_ERROR_MSG = "Not enough memory: OrderOption.QUASI_RANDOM needs less"


def __getattr__(name: str) -> Any:
    # Not at import: processes that fork later must not have touched CUDA.
    if name == "IS_CUDA":
        return torch.cuda.is_available()
    raise AttributeError(name)


def select_buffer(buffer: Any, batch_slot: int, count: int) -> Any:
    """The part of allocate_memory() for one batch."""
    if buffer is None:
        return None
    if isinstance(buffer, tuple):
        return tuple(select_buffer(b, batch_slot, count) for b in buffer)
    return buffer[batch_slot][:count]


class _Failed:
    """Stands for a batch that could not be made: taking it apart raises the
    error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __iter__(self) -> Iterator[Any]:
        raise self.error


# Python ends threads that are not joined inside of torch's code, which then
# ends the program by SIGABRT.
_begun: weakref.WeakSet[EpochIterator] = weakref.WeakSet()


@atexit.register
def _join_all() -> None:
    for epoch in list(_begun):
        epoch.terminate_event.set()
        epoch.join()


class EpochIterator(threading.Thread):
    """Batches of samples in the given order. `loader` has a reader, a
    memory_manager, a graph and its code."""

    def __init__(self, loader: Any, order: Sequence[int]) -> None:
        super().__init__(daemon=True, name="beton")
        self.loader = loader
        self.order = order
        self.metadata = loader.reader.metadata
        self.current_batch_slot = 0
        batches = list(chunks(order, loader.batch_size))
        self.iter_ixes = iter(batches)
        self.closed = False
        self.output_queue: queue.Queue[Any] = queue.Queue(
            max(1, loader.batches_ahead))
        self.terminate_event = threading.Event()
        self.memory_context = loader.memory_manager.schedule_epoch(batches)
        self.memory_context.__enter__()
        self.storage_state = self.memory_context.state
        self._start_device()
        self.memory_allocations = loader.graph.allocate_memory(
            loader.batch_size, loader.batches_ahead + 2)
        _begun.add(self)
        self.start()

    def _start_device(self) -> None:
        slots = self.loader.batches_ahead + 2
        cuda = torch.cuda.is_available()
        stream: Any = torch.cuda.Stream
        self.cuda_streams: list[Any] = [
            stream() if cuda else None for _ in range(slots)]
        if cuda:
            self.current_stream = torch.cuda.current_stream()

    # --- in the thread ---

    def run(self) -> None:
        loader = self.loader
        loader.graph.begin(loader.seed or 0, max(0, loader.next_epoch - 1))
        for number, ids in enumerate(self.iter_ixes):
            slot = self.current_batch_slot
            self.current_batch_slot = (slot + 1) % (loader.batches_ahead + 2)
            try:
                result: Any = slot, self.run_pipeline(number, ids, slot, None)
            except Exception as e:
                result = _Failed(e)
            if not self._put(result) or isinstance(result, _Failed):
                return
        self._put(None)

    def _put(self, result: Any) -> bool:
        while not self.terminate_event.is_set():
            with contextlib.suppress(queue.Full):
                self.output_queue.put(result, timeout=0.5)
                return True
        return False

    def run_pipeline(self, b_ix: int, batch_indices: Any, batch_slot: int,
                     cuda_event: Any) -> tuple[Any, ...]:
        """One batch."""
        self.memory_context.start_batch(b_ix)
        stream = self.cuda_streams[batch_slot]
        # None: there is no GPU, and no stream to enter.
        with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
            result = self._stages(batch_indices)
        if stream:
            _keep(result, self.current_stream)
        return result

    def _stages(self, batch_indices: Any) -> tuple[Any, ...]:
        stages, outputs = self.loader.code
        known = {"batch_indices": batch_indices, "metadata": self.metadata,
                 "storage_state": self.storage_state}
        for stage, numbers in stages:
            for number, value in zip(numbers, stage(**known)):
                known[f"result_{number}"] = value
        return tuple(known[f"result_{number}"] for number in outputs)

    # --- in the thread that iterates ---

    def __iter__(self) -> EpochIterator:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.closed:
            raise StopIteration
        result = self.output_queue.get()
        if result is None:
            self.close()
            raise StopIteration
        try:
            slot, batch = result
        except BaseException:
            self.close()
            raise
        stream = self.cuda_streams[slot]
        if stream:
            self.current_stream.wait_stream(stream)
        return tuple(batch)

    def close(self) -> None:
        """End the thread, after the batch that it is at."""
        self.terminate_event.set()
        if not self.closed:
            self.closed = True
            self.memory_context.__exit__(None, None, None)

    def __del__(self) -> None:
        if hasattr(self, "terminate_event"):
            self.close()


def _keep(result: tuple[Any, ...], stream: Any) -> None:
    """Memory of tensors that another stream uses is not reused before that."""
    for value in result:
        if isinstance(value, torch.Tensor) and value.is_cuda:
            value.record_stream(stream)


__all__ = ["EpochIterator", "QUASIRANDOM_ERROR_MSG", "select_buffer"]
