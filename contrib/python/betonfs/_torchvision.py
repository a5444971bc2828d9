# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision as a pipeline string. torchvision is not imported:
its classes are known by their names."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _ops

_DTYPES = {"torch.float32": "float", "torch.float16": "half",
           "torch.float64": "double"}


def _op(name: str, *args: Any, **kwargs: Any) -> str:
    return _ops.function(name)(*args, **kwargs)


def _refuse(transform: Any, why: str) -> ValueError:
    return ValueError(f"{type(transform).__name__} has no pipeline string: "
                      f"{why}; give it as transforms=[...], which calls it on "
                      "batches")


def _pair(size: Any) -> tuple[int, ...]:
    """A size as torchvision takes it: (side,) or (height, width)."""
    given = tuple(size) if isinstance(size, Sequence) else (size,)
    return tuple(map(int, given))


def _square(t: Any) -> tuple[int, int]:
    size = _pair(t.size)
    return (size[0], size[-1])


def _interpolation(t: Any) -> str:
    how = str(getattr(t.interpolation, "value", t.interpolation))
    if how != "bilinear":
        raise _refuse(t, f"interpolation={how}, and only bilinear is the same "
                         "here")
    if getattr(t, "antialias", True) is False:
        raise _refuse(t, "antialias=False")
    return how


class _Translation:
    """What the transforms so far are, with what follows the decoded pixels
    gathered: floating-point type, mean and std, and the order of axes."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.short = 0      # the shorter side, if it is known
        self.dtype = ""
        self.normal = ""
        self.chw = False

    # --- pixels ---

    def pixels(self, t: Any, text: str, short: int | None = None) -> None:
        if self.dtype:
            raise _refuse(t, "it follows the conversion to floating point; "
                             "put it before that")
        self.ops.append(text)
        self.short = self.short if short is None else short

    def random_resized_crop(self, t: Any) -> None:
        size = _square(t)
        self.pixels(t, _op("random_resized_crop", size, scale=t.scale,
                           ratio=t.ratio, interpolation=_interpolation(t)),
                    min(size))

    def resize(self, t: Any) -> None:
        if getattr(t, "max_size", None) is not None:
            raise _refuse(t, f"max_size={t.max_size}")
        size = _pair(t.size)
        self.pixels(t, _op("resize", size, interpolation=_interpolation(t)),
                    min(size))

    def center_crop(self, t: Any) -> None:
        height, width = _square(t)
        if height != width or not height <= self.short:
            raise _refuse(t, f"a crop of {height}x{width} pixels of an image "
                             "of unknown or smaller size; put a Resize before "
                             "it")
        # Half a pixel more, so that no rounding makes it one less.
        ratio = min(1.0, (height + 0.5) / self.short)
        self.pixels(t, _op("center_crop", height, ratio=ratio), height)

    def flip(self, t: Any) -> None:
        # It changes no value, so it may follow the conversion as well.
        name = "flip" if "Horizontal" in type(t).__name__ else "vertical_flip"
        self.ops.append(_op(name, p=t.p))

    def grayscale(self, t: Any) -> None:
        if getattr(t, "num_output_channels", 3) != 3:
            raise _refuse(t, "num_output_channels=1; there are 3 here")
        self.pixels(t, _op("grayscale", p=getattr(t, "p", 1)))

    def invert(self, t: Any) -> None:
        self.pixels(t, _op("invert", p=t.p))

    def solarize(self, t: Any) -> None:
        self.pixels(t, _op("solarize", t.threshold, p=t.p))

    def posterize(self, t: Any) -> None:
        self.pixels(t, _op("posterize", t.bits, p=t.p))

    # --- types ---

    def axes(self, t: Any) -> None:
        self.chw = True

    def to_tensor(self, t: Any) -> None:
        self.chw, self.dtype = True, "float"

    def to_dtype(self, t: Any) -> None:
        dtype, scale = t.dtype, getattr(t, "scale", True)
        if str(dtype) == "torch.uint8" and not self.dtype:
            return
        if str(dtype) not in _DTYPES or not (scale or self.dtype):
            raise _refuse(t, f"dtype={dtype}, scale={scale}")
        self.dtype = _DTYPES[str(dtype)]

    def normalize(self, t: Any) -> None:
        if not self.dtype or self.normal:
            raise _refuse(t, "it follows no conversion to floating point from "
                             "0 to 1")
        self.normal = _op("normalize", t.mean, t.std)

    def text(self) -> str:
        ops = list(self.ops)
        if self.dtype:
            ops += [self.normal or _op("normalize", 0, 1), self.dtype]
        return " | ".join(ops + ["chw"] * self.chw)


_KNOWN: dict[str, Callable[[_Translation, Any], None]] = {
    "RandomResizedCrop": _Translation.random_resized_crop,
    "Resize": _Translation.resize,
    "CenterCrop": _Translation.center_crop,
    "RandomHorizontalFlip": _Translation.flip,
    "RandomVerticalFlip": _Translation.flip,
    "Grayscale": _Translation.grayscale,
    "RandomGrayscale": _Translation.grayscale,
    "RandomInvert": _Translation.invert,
    "RandomSolarize": _Translation.solarize,
    "RandomPosterize": _Translation.posterize,
    "ToImage": _Translation.axes,
    "PILToTensor": _Translation.axes,
    "ToTensor": _Translation.to_tensor,
    "ToDtype": _Translation.to_dtype,
    "ConvertImageDtype": _Translation.to_dtype,
    "Normalize": _Translation.normalize,
    "Identity": lambda translation, t: None,
    "ToPureTensor": lambda translation, t: None,
}


def _flat(transform: Any) -> Iterable[Any]:
    if isinstance(transform, (list, tuple)):
        parts: Iterable[Any] = transform
    elif type(transform).__name__ in ("Compose", "Sequential"):
        parts = getattr(transform, "transforms", transform)
    else:
        return [transform]
    return [leaf for part in parts for leaf in _flat(part)]


def text(transform: Any) -> str:
    """The pipeline string of a transform, a Compose, or a list of them.

    Random numbers are the library's, with the same distributions, and JPEGs are
    decoded by its own transform; a CenterCrop may be one pixel beside
    torchvision's. ValueError: one of them has no operation.
    """
    translation = _Translation()
    for part in _flat(transform):
        module = type(part).__module__
        if isinstance(part, str):
            translation.pixels(part, part, 0)
            continue
        add = _KNOWN.get(type(part).__name__)
        if add is None or not module.startswith(("torchvision.", "torch.")):
            raise _refuse(part, "there is no operation with its exact meaning")
        add(translation, part)
    return translation.text()
