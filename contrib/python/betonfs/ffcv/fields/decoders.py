# SPDX-License-Identifier: Apache-2.0
from ..decoders import (
    BytesDecoder,
    CenterCropRGBImageDecoder,
    FloatDecoder,
    IntDecoder,
    NDArrayDecoder,
    RandomResizedCropRGBImageDecoder,
    ResizedCropRGBImageDecoder,
    SimpleRGBImageDecoder,
)

__all__ = [
    "BytesDecoder", "CenterCropRGBImageDecoder", "FloatDecoder", "IntDecoder",
    "NDArrayDecoder", "RandomResizedCropRGBImageDecoder",
    "ResizedCropRGBImageDecoder", "SimpleRGBImageDecoder",
]
