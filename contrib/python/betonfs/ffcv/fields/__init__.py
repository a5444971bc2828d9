# SPDX-License-Identifier: Apache-2.0
"""The fields of a dataset, and how DatasetWriter stores their values."""
from .._crops import get_center_crop, get_random_crop
from ..decoders import (
    IMAGE_MODES,
    BasicDecoder,
    BytesDecoder,
    CenterCropRGBImageDecoder,
    FloatDecoder,
    IntDecoder,
    NDArrayDecoder,
    RandomResizedCropRGBImageDecoder,
    ResizedCropRGBImageDecoder,
    SimpleRGBImageDecoder,
)
from ._kinds import (
    BytesField,
    FloatField,
    IntField,
    JSONField,
    NDArrayField,
    RGBImageField,
    TorchTensorField,
    encode_jpeg,
    resizer,
    field_of,
)
from .base import ARG_TYPE, Field

# The decoders too: FFCV's modules of single fields have theirs.
__all__ = [
    "ARG_TYPE", "BasicDecoder", "BytesDecoder", "BytesField",
    "CenterCropRGBImageDecoder", "Field", "FloatDecoder", "FloatField",
    "IMAGE_MODES", "IntDecoder", "IntField", "JSONField", "NDArrayDecoder",
    "NDArrayField", "RGBImageField", "RandomResizedCropRGBImageDecoder",
    "ResizedCropRGBImageDecoder", "SimpleRGBImageDecoder", "TorchTensorField",
    "encode_jpeg", "field_of", "get_center_crop", "get_random_crop", "resizer",
]
