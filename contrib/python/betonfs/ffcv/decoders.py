# SPDX-License-Identifier: Apache-2.0
"""What stands first in a pipeline: how values come out of the dataset."""
from __future__ import annotations

from collections.abc import Sequence

from ._chain import Chain, number, numbers
from .transforms._base import BuiltIn


class Decoder(BuiltIn):
    """Of fields of some kinds, by their names in dataset.json; without a text
    of its own it gives values as they are."""

    kinds: tuple[str, ...]

    def native(self, chain: Chain) -> str | None:
        return ""


class IntDecoder(Decoder):
    """(batch, 1) of int64."""

    kinds = ("int",)


class FloatDecoder(Decoder):
    """(batch, 1) of float64."""

    kinds = ("float",)


class NDArrayDecoder(Decoder):
    """Arrays as they were written, and tensors too."""

    kinds = ("ndarray", "torch_tensor")


class BytesDecoder(Decoder):
    """(batch, longest of the dataset) of uint8, with zeros after each value; of
    a dataset on a mount, as wide as the longest of the batch."""

    kinds = ("bytes", "json")


class SimpleRGBImageDecoder(Decoder):
    """Images as they are; all must have one size."""

    kinds = ("rgb_image",)


class ResizedCropRGBImageDecoder(SimpleRGBImageDecoder):
    """A part of every image, resized to output_size, (height, width). That may
    be changed while a loader is used, and holds from the next epoch."""

    def __init__(self, output_size: Sequence[int]) -> None:
        super().__init__()
        self.output_size = output_size


class RandomResizedCropRGBImageDecoder(ResizedCropRGBImageDecoder):
    """A random part."""

    def __init__(self, output_size: Sequence[int],
                 scale: Sequence[float] = (0.08, 1.0),
                 ratio: Sequence[float] = (0.75, 4 / 3)) -> None:
        super().__init__(output_size)
        self.scale = scale
        self.ratio = ratio

    def native(self, chain: Chain) -> str | None:
        return (f"random_resized_crop({numbers(self.output_size)}, "
                f"scale={numbers(self.scale)}, ratio={numbers(self.ratio)})")


class CenterCropRGBImageDecoder(ResizedCropRGBImageDecoder):
    """The square in the middle, of `ratio` of the shorter side."""

    def __init__(self, output_size: Sequence[int], ratio: float) -> None:
        super().__init__(output_size)
        self.ratio = ratio

    def native(self, chain: Chain) -> str | None:
        return (f"center_crop({numbers(self.output_size)}, "
                f"ratio={number(self.ratio)})")
