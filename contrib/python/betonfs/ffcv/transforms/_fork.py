# SPDX-License-Identifier: Apache-2.0
"""Names of FFCV's forks: those that are decoders here, and those that have no
operation here yet, which say so when they are made."""
from __future__ import annotations

from typing import Any


def CenterCrop(output_size: Any, ratio: float) -> Any:
    """FFCV-SSL's name of CenterCropRGBImageDecoder."""
    from ..decoders import CenterCropRGBImageDecoder
    return CenterCropRGBImageDecoder(output_size, ratio)


class _Missing:
    """An operation of a fork's that this package has not."""

    instead: str

    def __init__(self, *args: Any, **named: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} of FFCV's forks is not there: "
            f"{self.instead}")


class RandAugment(_Missing):
    instead = ("put torchvision.transforms.v2.RandAugment after "
               "ToTorchImage()")


class CornerCrop(_Missing):
    instead = ("take CenterCropRGBImageDecoder, a decoder with a "
               "get_crop_generator of yours, or torchvision's v2.functional."
               "crop after ToTorchImage()")


class PadRGBImageDecoder(_Missing):
    instead = ("write a decoder with ffcv.libffcv.pad, or put torchvision."
               "transforms.v2.Pad after ToTorchImage()")


class _Drawn(_Missing):
    """What a fork gives of the numbers that another operation drew."""

    instead = ("numbers that an operation draws are not given out; draw them "
               "in an operation of yours, or use torchvision's v2, which "
               "changes boxes with their images")


class LabelColorJitter(_Drawn):
    pass


class LabelGaussianBlur(_Drawn):
    pass


class LabelGrayscale(_Drawn):
    pass


class LabelRandomHorizontalFlip(_Drawn):
    pass


class LabelRandomResizedCrop(_Drawn):
    pass


class LabelSolarization(_Drawn):
    pass


class LabelTranslate(_Drawn):
    pass


__all__ = ["CenterCrop", "CornerCrop", "LabelColorJitter",
           "LabelGaussianBlur", "LabelGrayscale", "LabelRandomHorizontalFlip",
           "LabelRandomResizedCrop", "LabelSolarization", "LabelTranslate",
           "PadRGBImageDecoder", "RandAugment"]
