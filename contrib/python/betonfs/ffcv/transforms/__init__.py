# SPDX-License-Identifier: Apache-2.0
from ._image import (
    ColorJitter,
    Cutout,
    Poison,
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomCutout,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomSaturation,
    RandomSolarization,
    RandomTranslate,
    RandomVerticalFlip,
    Solarization,
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
    "ColorJitter", "Convert", "Cutout", "ImageMixup", "LabelMixup",
    "MixupToOneHot", "ModuleWrapper", "NormalizeImage", "Poison",
    "RandomBrightness", "RandomColorJitter", "RandomContrast", "RandomCutout",
    "RandomGrayscale", "RandomHorizontalFlip", "RandomResizedCrop",
    "RandomSaturation", "RandomSolarization", "RandomTranslate",
    "RandomVerticalFlip", "ReplaceLabel", "Solarization", "Squeeze",
    "ToDevice", "ToTensor", "ToTorchImage", "View",
]
