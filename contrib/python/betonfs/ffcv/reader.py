# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import functools
import json
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _beton
from .._checks import is_url, public
from .._dataset import file_of
from .._options import Storage, storage_text
from .fields import field_of
from .fields.base import Field

_HEADER = struct.Struct("<HHIQQ")
_DESCRIPTOR = 1041
_ARGUMENTS = 17
_ENTRY = np.dtype([("sample_id", "<u8"), ("ptr", "<u8"), ("size", "<u8")])


def _class(field: Any) -> type:
    """Return the class of an instance; a class is returned as it is."""
    return field if isinstance(field, type) else type(field)


class Reader:
    """The header and the tables of a dataset. `metadata` and `alloc_table` are
    mapped from `data_file`, which is the file, or the file that a mount
    shows."""

    def __init__(self, fname: str | os.PathLike[str],
                 custom_handlers: Mapping[str, type[Field]] = {},
                 storage_options: Storage | None = None) -> None:
        self.file_name = os.fspath(fname)
        is_remote = is_url(self.file_name)
        self.is_file = not is_remote and not os.path.isdir(self.file_name)
        if self.is_file or is_remote:
            dataset = _beton.Dataset(self.file_name,
                                     storage_text(storage_options))
            self.num_samples = dataset.samples
            self.fields = dataset.fields()
        else:
            with open(os.path.join(self.file_name, "dataset.json")) as f:
                described = json.load(f)
            self.num_samples = int(described["samples"])
            self.fields = described["fields"]
        self.field_names = [f["name"] for f in self.fields]
        self.num_fields = len(self.fields)
        self.handlers: dict[str, Field] = {}
        for i, field in enumerate(self.fields):
            self.handlers[field["name"]] = self._handler(
                i, field, custom_handlers)
        self._metadata: Any = None

    def _handler(self, i: int, field: Mapping[str, Any],
                 custom: Mapping[str, type[Field]]) -> Field:
        name = field["name"]
        known = field_of(field["type"], field.get("dtype"),
                         field.get("shape", ()))
        # A subclass of one that is known was written as that one.
        if name in custom and (known is None or not issubclass(
                _class(custom[name]), type(known))):
            return custom[name].from_binary(self._arguments(i))
        if known is None:
            raise ValueError(f"field {name!r} has a custom class: pass it in "
                             "custom_fields")
        return known

    def _arguments(self, i: int) -> NDArray[np.uint8]:
        at = _HEADER.size + _DESCRIPTOR * i + _ARGUMENTS
        return np.fromfile(self.data_file, np.uint8, 1024, offset=at)

    @functools.cached_property
    def data_file(self) -> str:
        """OSError: that of a mount is not to be read here."""
        if is_url(self.file_name):
            raise OSError(errno.EREMOTE, f"{public(self.file_name)}: the "
                          "tables of a URL are no file: use betonfs.Dataset")
        return self.file_name if self.is_file else file_of(self.file_name)[0]

    @property
    def header(self) -> dict[str, int]:
        with open(self.data_file, "rb") as f:
            values = _HEADER.unpack(f.read(_HEADER.size))
        return dict(zip(("version", "num_fields", "page_size", "num_samples",
                         "alloc_table_ptr"), values))

    @property
    def page_size(self) -> int:
        return self.header["page_size"]

    @property
    def metadata_type(self) -> np.dtype[Any]:
        return np.dtype([("", h.metadata_type)
                         for h in self.handlers.values()], align=True)

    @property
    def metadata(self) -> Any:
        """A record per sample, with f0, f1... for the fields."""
        if self._metadata is None:
            at = _HEADER.size + _DESCRIPTOR * self.num_fields
            self._metadata = np.memmap(self.data_file, self.metadata_type, "r",
                                       at, self.num_samples)
        return self._metadata

    def column(self, name: str) -> Any:
        """The part of a field in all metadata records."""
        return self.metadata[f"f{self.field_names.index(name)}"]

    @property
    def alloc_table(self) -> Any:
        return np.fromfile(self.data_file, _ENTRY,
                           offset=self.header["alloc_table_ptr"])
