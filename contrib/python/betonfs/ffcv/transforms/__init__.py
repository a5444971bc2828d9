# SPDX-License-Identifier: Apache-2.0
from ._fork import (
    CenterCrop,
    CornerCrop,
    LabelColorJitter,
    LabelGaussianBlur,
    LabelGrayscale,
    LabelRandomHorizontalFlip,
    LabelRandomResizedCrop,
    LabelSolarization,
    LabelTranslate,
    PadRGBImageDecoder,
    RandAugment,
)
from ._image import (
    ColorJitter,
    Cutout,
    GaussianBlur,
    Poison,
    RandomBrightness,
    RandomColorJitter,
    RandomContrast,
    RandomCutout,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomSaturation,
    RandomSolarization,
    RandomTranslate,
    RandomVerticalFlip,
    Rotate,
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
    "CenterCrop", "ColorJitter", "Convert", "CornerCrop", "Cutout",
    "GaussianBlur", "ImageMixup", "LabelColorJitter", "LabelGaussianBlur",
    "LabelGrayscale", "LabelMixup", "LabelRandomHorizontalFlip",
    "LabelRandomResizedCrop", "LabelSolarization", "LabelTranslate",
    "MixupToOneHot", "ModuleWrapper", "NormalizeImage", "PadRGBImageDecoder",
    "Poison", "RandAugment", "RandomBrightness", "RandomColorJitter",
    "RandomContrast", "RandomCutout", "RandomErasing", "RandomGrayscale",
    "RandomHorizontalFlip", "RandomResizedCrop", "RandomSaturation",
    "RandomSolarization", "RandomTranslate", "RandomVerticalFlip",
    "ReplaceLabel", "Rotate", "Solarization", "Squeeze", "ToDevice",
    "ToTensor", "ToTorchImage", "View",
]
