# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

ARG_TYPE = np.dtype([("", "<u1", 1024)])


class Field(ABC):
    """A kind of values in a dataset. Users' own are written by their encode()
    and to_binary(), and read by a decoder of theirs."""

    @property
    @abstractmethod
    def metadata_type(self) -> np.dtype[Any]:
        """The dtype of the field's part of a sample's metadata record."""
        raise NotImplementedError

    @staticmethod
    def from_binary(binary: Any) -> Field:
        """A field of the arguments that a file has, ARG_TYPE."""
        raise NotImplementedError

    def to_binary(self) -> Any:
        """Its arguments for a file, a value of ARG_TYPE."""
        raise NotImplementedError

    def encode(self, destination: Any, field: Any, malloc: Any) -> None:
        """Store a value: `destination` is an array of one record of
        metadata_type, and malloc(size) gives (offset in the file, bytes)."""
        raise NotImplementedError

    @abstractmethod
    def get_decoder_class(self) -> type[Any]:
        raise NotImplementedError


class BuiltInField(Field):
    """A field of the library. `kind` is its name in dataset.json, and `number`
    the number of its type in a file."""

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

    def encode(self, destination: Any, field: Any, malloc: Any) -> None:
        """FFCV's, for users' own encode() to end with."""
        destination[0] = self.stored(field, destination.sample)

    @classmethod
    def from_binary(cls, binary: Any) -> Field:
        return cls()

    def to_binary(self) -> Any:
        return np.zeros(1, ARG_TYPE)[0]

    def stored(self, value: Any, sample: int) -> Any:
        """A value of a user's, as the writer takes it."""
        raise NotImplementedError


class _Destination:
    """Where users' encode() puts what is stored of one value: its bytes, or
    where they are, and of an image how it is stored and its size."""

    data: Any = None

    def __init__(self, sample: int) -> None:
        self.sample = sample
        self._image = dict.fromkeys(("mode", "width", "height"))

    def __setitem__(self, key: Any, value: Any) -> None:
        if key in (0, "ptr", "data_ptr"):
            self.data = value
        elif key in self._image:
            self._image[key] = int(value)
        elif key != "size":
            raise ValueError(f"encode() sets {key!r}, which is for the "
                             "field's own encode()")

    @property
    def value(self) -> Any:
        image = {"data_ptr": self.data, **self._image}
        missing = [name for name, value in image.items() if value is None]
        if len(missing) == len(image):
            raise ValueError("encode() sets nothing: destination takes what "
                             "malloc() returned")
        if self.data is None or 0 < len(missing) < len(self._image):
            done = ", ".join(repr(k) for k in image if k not in missing)
            raise ValueError(f"encode() sets {done} but not "
                             + ", ".join(map(repr, missing)))
        return self.data if missing else tuple(image.values())


def _malloc(size: int) -> tuple[Any, Any]:
    """Bytes, which stand for their place in the file too."""
    region = np.zeros(int(size), np.uint8)
    return region, region


def encode(field: BuiltInField, value: Any, sample: int) -> Any:
    """Encode a value for the writer, by the user's encode() if there is
    one."""
    if type(field).encode is BuiltInField.encode:
        return field.stored(value, sample)
    destination = _Destination(sample)
    field.encode(destination, value, _malloc)
    return destination.value
