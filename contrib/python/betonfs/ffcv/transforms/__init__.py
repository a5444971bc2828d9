# SPDX-License-Identifier: Apache-2.0
from ._image import (
    Cutout,
    Poison,
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomSaturation,
    RandomSolarization,
    RandomTranslate,
    RandomVerticalFlip,
)
from ._label import ImageMixup, LabelMixup, MixupToOneHot, ReplaceLabel
from ._tensor import (
    Convert,
    ModuleWrapper,
    NormalizeImage,
    Squeeze,
    ToDevice,
    ToTensor,
    ToTorchImage,
    View,
)

__all__ = [
    "Convert", "Cutout", "ImageMixup", "LabelMixup", "MixupToOneHot",
    "ModuleWrapper", "NormalizeImage", "Poison", "RandomBrightness",
    "RandomColorJitter", "RandomContrast", "RandomGrayscale",
    "RandomHorizontalFlip", "RandomResizedCrop", "RandomSaturation",
    "RandomSolarization", "RandomTranslate", "RandomVerticalFlip",
    "ReplaceLabel", "Squeeze", "ToDevice", "ToTensor", "ToTorchImage", "View",
]
