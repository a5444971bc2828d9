# SPDX-License-Identifier: Apache-2.0
"""Names of FFCV's forks. Some are decoders here. For those that have no operation
here yet, the constructor raises an error that names a replacement."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import libffcv
from .._crops import corner_crop
from ..decoders import (IMAGE_MODES, CenterCropRGBImageDecoder, Declared,
                        ResizedCropRGBImageDecoder, SimpleRGBImageDecoder)
from ..pipeline.allocation_query import AllocationQuery
from ..pipeline.compiler import Compiler
from ..pipeline.state import State


def CenterCrop(output_size: Any, ratio: float) -> Any:
    """FFCV-SSL's name of CenterCropRGBImageDecoder."""
    return CenterCropRGBImageDecoder(output_size, ratio)


class CornerCrop(ResizedCropRGBImageDecoder):
    """The square in a corner, of `ratio` of the shorter side, resized to
    output_size, (height, width). `corner` is "top_left", "top_right",
    "bottom_left" or "bottom_right"; ValueError: another word.

    FFCV-SSL takes the bottom of the image for "top" as well; this class does
    not."""

    runs_code = True
    corners = ("top_left", "top_right", "bottom_left", "bottom_right")

    def __init__(self, output_size: Sequence[int], ratio: float,
                 corner: str = "top_left") -> None:
        if corner not in self.corners:
            raise ValueError(f"corner={corner!r}: one of "
                             f"{', '.join(self.corners)}")
        super().__init__(output_size)
        self.ratio = ratio
        self.corner = corner

    @property
    def get_crop_generator(self) -> Callable[..., Any]:
        vertical, horizontal = self.corner.split("_")
        return corner_crop(vertical == "bottom", horizontal == "right")


class PadRGBImageDecoder(SimpleRGBImageDecoder):
    """Images of differing sizes, each in the top left of an array as high and
    as wide as the highest and the widest; the rest is black.
    (batch, height, width, 3) of uint8."""

    runs_code = True

    def declare_state_and_memory(self, previous_state: State) -> Declared:
        height, width = (int(self.metadata[side].max(initial=0))
                         for side in ("height", "width"))
        shape, byte = (height, width, 3), np.dtype("u1")
        return (replace(previous_state, jit_mode=True, shape=shape,
                        dtype=byte),
                (AllocationQuery(shape, byte),
                 AllocationQuery((3 * height * width,), byte)))

    def generate_code(self) -> Callable[..., Any]:
        read, numbers_of = self.memory_read, Compiler.get_iterator()
        imdecode = Compiler.compile(libffcv.imdecode)
        pad = Compiler.compile(libffcv.pad)
        jpg = IMAGE_MODES["jpg"]

        def decode(indices: Any, my_storage: Any, metadata: Any,
                   storage_state: Any) -> Any:
            destination, whole = my_storage
            for k in numbers_of(len(indices)):
                record = metadata[indices[k]]
                data = read(record["data_ptr"], storage_state)
                h, w = np.uint32(record["height"]), np.uint32(record["width"])
                if record["mode"] == jpg:
                    pixels = whole[k][:3 * h * w]
                    imdecode(data, pixels, h, w, h, w, 0, 0, 1, 1, False,
                             False)
                else:
                    pixels = data
                pad(pixels.reshape(h, w, 3), 0, h, 0, w, destination[k])
            return destination
        decode.is_parallel = True   # type: ignore[attr-defined]
        return decode


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


class _Drawn(_Missing):
    """A fork's access to the random numbers of another operation."""

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
