# SPDX-License-Identifier: Apache-2.0
"""The records of a file, as NumPy's dtypes, and the classes of its fields."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .fields import (BytesField, FloatField, IntField, JSONField, NDArrayField,
                     RGBImageField, TorchTensorField)
from .fields.base import Field

CURRENT_VERSION = 2
CUSTOM = 255

HeaderType = np.dtype([("version", "<u2"), ("num_fields", "<u2"),
                       ("page_size", "<u4"), ("num_samples", "<u8"),
                       ("alloc_table_ptr", "<u8")])
FieldDescType = np.dtype([("type_id", "<u1"), ("name", "<u1", (16,)),
                          ("arguments", "<u1", (1024,))])
ALLOC_TABLE_TYPE = np.dtype([("sample_id", "<u8"), ("ptr", "<u8"),
                             ("size", "<u8")])

TYPE_ID_HANDLER: dict[int, Any] = {CUSTOM: None, **{
    field.number: field for field in (
        FloatField, IntField, RGBImageField, BytesField, NDArrayField,
        JSONField, TorchTensorField)}}


def get_handlers(field_descriptors: Iterable[Any]) -> list[Field | None]:
    """A field for each record of FieldDescType; None: of a user's class."""
    classes = [(TYPE_ID_HANDLER[int(d["type_id"])], d["arguments"])
               for d in field_descriptors]
    return [c and c.from_binary(arguments) for c, arguments in classes]


def get_metadata_type(handlers: Sequence[Field]) -> np.dtype[Any]:
    """The record of a sample, with f0, f1... for the fields."""
    return np.dtype([("", h.metadata_type) for h in handlers], align=True)
