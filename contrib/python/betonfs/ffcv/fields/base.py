# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

ARG_TYPE = np.dtype([("", "<u1", 1024)])


class Field(ABC):
    """A kind of values in a dataset. Users' own are read by a decoder of
    theirs, and cannot be written."""

    @property
    @abstractmethod
    def metadata_type(self) -> np.dtype[Any]:
        """What a sample's record has of it."""
        raise NotImplementedError

    @staticmethod
    def from_binary(binary: Any) -> Field:
        raise NotImplementedError

    @abstractmethod
    def get_decoder_class(self) -> type[Any]:
        raise NotImplementedError


class BuiltInField(Field):
    """One that the library knows, by `kind`, which is its name in
    dataset.json, and `number`, which is its type's in a file."""

    kind: str
    number: int
    record: Any

    @property
    def metadata_type(self) -> np.dtype[Any]:
        record: np.dtype[Any] = np.dtype(self.record)
        return record

    @property
    def description(self) -> tuple[int, str | None, tuple[int, ...]]:
        """For the writer: type, dtype and shape."""
        return self.number, None, ()

    def stored(self, value: Any, sample: int) -> Any:
        """A value of a user's, as the writer takes it."""
        raise NotImplementedError
