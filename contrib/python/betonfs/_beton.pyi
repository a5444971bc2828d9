# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Callable
from typing import Any

version: str

class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]
    pointer: int
    has_dlpack: bool
    offsets: Tensor | None
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Batch:
    epoch: int
    number: int
    num_samples: int
    outputs: tuple[Tensor, ...]
    ids: Tensor
    valid: Tensor

class Loader:
    closed: bool
    has_messages: bool
    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        spec: str | None = None,
        subset: str | None = None,
        pipeline: str | None = None,
        device: str | None = None,
        source: str | None = None,
        cache: str | None = None,
        delivery: str | None = None,
        job: str | None = None,
        cache_size: int = 0,
        cold_size: int = 0,
        pinned: int = 0,
        epoch: int = 0,
        workers: int = 0,
        prefetch: int = 0,
        rank: int = 0,
        world_size: int = 0,
        on_error: int = 0,
        callback: bool = False,
        no_padding: bool = False,
        verify: bool = False,
        storage_options: str | None = None,
        on_demand: bool = False,
        role: int = 0,
        spare_workers: bool = False,
        # is called with the level and the text of each message
        tell: Callable[[int, str], None],
    ) -> Loader: ...
    def close(self) -> None: ...
    def callback(self, address: int, /) -> None: ...
    def next(self, stream: int | None, turn: int, /) -> Batch | None: ...
    # whether make() would not block
    def ask(self, epoch: int, number: int, /) -> bool: ...
    def make(self, epoch: int, number: int, stream: int | None = None,
             /) -> Batch: ...
    # run one end of a link, until it ends
    def serve(self, socket: Any, /) -> None: ...
    def attach(self, socket: Any, /) -> None: ...
    def begin(self) -> int: ...
    def begin_epoch(self) -> int: ...
    def is_fresh(self) -> bool: ...
    def state(self) -> str: ...
    def load(self, state: str, /) -> int: ...
    def seek(self, epoch: int, /) -> int: ...
    def info(self) -> dict[str, Any]: ...
    def outputs(self) -> list[dict[str, Any]]: ...
    def stats(self) -> dict[str, Any]: ...
    def tell(self) -> None: ...

class Dataset:
    samples: int
    fingerprint: str
    def __new__(
        cls,
        path: str | os.PathLike[str],
        storage_options: str | None = None,
    ) -> Dataset: ...
    def fields(self) -> list[dict[str, Any]]: ...
    def value(self, field: int, sample: int, /) -> Any: ...
    def read(self, field: int, sample: int, most: int = ..., /) -> bytes: ...
    def fill(self, field: int, sample: int, into: Any, /) -> None: ...
    def column(self, field: int, first: int, into: Any, /) -> None: ...
    def sizes(self, field: int, first: int, into: Any, /) -> None: ...

class Writer:
    def __new__(
        cls,
        path: str | os.PathLike[str],
        # name, type, dtype, shape and, of integers, the names of classes
        fields: tuple[tuple[Any, ...], ...],
        samples: int,
        page_size: int,
        append: bool = ...,
    ) -> Writer: ...
    def append(self, values: tuple[Any, ...], /) -> None: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...

def encode(
    pixels: Any,
    width: int,
    height: int,
    raw: bool,
    quality: int,
    max_resolution: int,
    /,
) -> tuple[bytes, int, int, int]: ...
def merge(
    sources: tuple[bytes, ...],
    path: str | os.PathLike[str],
    page_size: int,
    keep_numbers: bool,
    report: Callable[[int, int], None] | None,
    /,
) -> int: ...
def keep(jpeg: bytes, /) -> tuple[bytes, int, int, int]: ...
def operations() -> str: ...
