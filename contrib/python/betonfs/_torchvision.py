# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision as a pipeline string. torchvision is not imported:
its classes are known by their names."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _ops

_DTYPES = {"torch.float32": "float", "torch.float16": "half",
           "torch.bfloat16": "bfloat16",
           "torch.float64": "double"}


def _op(name: str, *args: Any, **kwargs: Any) -> str:
    return _ops.function(name, str)(*args, **kwargs)


def _refuse(transform: Any, why: str) -> ValueError:
    return ValueError(f"{type(transform).__name__} has no pipeline string: "
                      f"{why}; give it as transforms=[...], which calls it on "
                      "batches")


def _near(name: str) -> str:
    """A hint for a transform that is not translated."""
    own = _ops.own_name(name)
    return f"; see help(betonfs.ops.{own}) for a similar one" if own else ""


def _pair(size: Any) -> tuple[int, ...]:
    """A size as torchvision takes it: (side,) or (height, width)."""
    given = tuple(size) if isinstance(size, Sequence) else (size,)
    return tuple(map(int, given))


def _square(t: Any) -> tuple[int, int]:
    size = _pair(t.size)
    return (size[0], size[-1])


# torchvision's names for interpolations of resizing, and ours. For images of
# Pillow, its two names for the nearest pixel are the same.
_HOW = {"nearest": "nearest", "nearest-exact": "nearest",
        "bilinear": "bilinear", "bicubic": "bicubic", "lanczos": "lanczos"}


class _Translation:
    """The transforms so far. Those that follow the decoded pixels are collected:
    floating-point type, mean and std, and the order of axes."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.short = 0      # the shorter side; -1: resized, to no known one
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

    def interpolation(self, t: Any) -> str:
        how = str(getattr(t.interpolation, "value", t.interpolation))
        if how not in _HOW:
            raise _refuse(t, f"interpolation={how}; the same are here "
                             + ", ".join(_HOW))
        if how == "nearest" and self.chw:
            raise _refuse(t, "interpolation=nearest of tensors takes other "
                             "pixels; NEAREST_EXACT takes those of here")
        if how.startswith("bi") and getattr(t, "antialias", True) is False:
            raise _refuse(t, "antialias=False")
        return _HOW[how]

    def random_resized_crop(self, t: Any) -> None:
        size = _square(t)
        self.pixels(t, _op("random_resized_crop", size, scale=t.scale,
                           ratio=t.ratio, interpolation=self.interpolation(t)),
                    min(size))

    def resize(self, t: Any) -> None:
        most, how = getattr(t, "max_size", None), self.interpolation(t)
        if t.size is None:
            self.pixels(t, _op("resize", most, interpolation=how,
                               side="longer"), -1)
            return
        size = _pair(t.size)
        self.pixels(t, _op("resize", size, interpolation=how, max_size=most),
                    min(size) if most is None else -1)

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

    # --- operations of others ---

    def nested(self, t: Any, part: Any) -> str:
        """The operations of a part, which leave the type and the size."""
        inner = _Translation()
        for leaf in _flat(part):
            inner.add(leaf)
        if inner.dtype or inner.chw or inner.short or not inner.ops:
            raise _refuse(t, f"{type(part).__name__} changes the size or the "
                             "type, or is nothing")
        return " | ".join(inner.ops)

    def random_apply(self, t: Any) -> None:
        parts = self.nested(t, list(t.transforms))
        self.pixels(t, _op("random_apply", parts, p=t.p))

    def random_choice(self, t: Any) -> None:
        weights = getattr(t, "probabilities", None) or getattr(t, "p", None)
        self.pixels(t, _op("random_choice", *(
            self.nested(t, part) for part in t.transforms), weights=weights))

    def how(self, t: Any) -> dict[str, Any]:
        """The interpolation of a policy, and what fills beside the image."""
        how = str(getattr(t.interpolation, "value", t.interpolation))
        if how not in ("nearest", "bilinear") or isinstance(t.fill, dict):
            raise _refuse(t, f"interpolation={how}, fill={t.fill}")
        return {"interpolation": how,
                "fill": 0 if t.fill is None else t.fill}

    def rand_augment(self, t: Any) -> None:
        self.pixels(t, _op("rand_augment", t.num_ops, t.magnitude,
                           t.num_magnitude_bins, **self.how(t)))

    def trivial_augment(self, t: Any) -> None:
        self.pixels(t, _op("trivial_augment", t.num_magnitude_bins,
                           **self.how(t)))

    def auto_augment(self, t: Any) -> None:
        policy = str(getattr(t.policy, "value", t.policy))
        self.pixels(t, _op("auto_augment", policy, **self.how(t)))

    def aug_mix(self, t: Any) -> None:
        self.pixels(t, _op(
            "aug_mix", t.severity, t.mixture_width, t.chain_depth, t.alpha,
            str(bool(t.all_ops)).lower(), **self.how(t)))

    def color_jitter(self, t: Any) -> None:
        factors = [(1, 1) if v is None else v for v in
                   (t.brightness, t.contrast, t.saturation)]
        self.pixels(t, _op("color_jitter", *factors, t.hue or (0, 0),
                           like="torchvision"))

    def random_order(self, t: Any) -> None:
        self.pixels(t, _op("random_order", *(
            self.nested(t, part) for part in t.transforms)))

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

    def add(self, part: Any) -> None:
        """Append a transform, or a text."""
        if isinstance(part, str):
            self.pixels(part, part, 0)
            return
        add = _KNOWN.get(type(part).__name__)
        module = type(part).__module__
        if add is None or not module.startswith(("torchvision.", "torch.")):
            raise _refuse(part, "ops.of() has no operation with its exact meaning"
                          + _near(type(part).__name__))
        add(self, part)

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
    "RandomApply": _Translation.random_apply,
    "RandomChoice": _Translation.random_choice,
    "RandomOrder": _Translation.random_order,
    "RandAugment": _Translation.rand_augment,
    "TrivialAugmentWide": _Translation.trivial_augment,
    "AugMix": _Translation.aug_mix,
    "ColorJitter": _Translation.color_jitter,
    "AutoAugment": _Translation.auto_augment,
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


# Those that draw random numbers, beside those with Random in their name.
_RANDOM = ("AugMix", "AutoAugment", "ColorJitter", "ElasticTransform",
           "GaussianBlur", "GaussianNoise", "RandAugment", "ScaleJitter",
           "TrivialAugmentWide", "JPEG")

def _is_random(leaf: Any) -> bool:
    name = type(leaf).__name__
    return "Random" in name or name in _RANDOM


def tell_torchvision(functions: Iterable[Any],
                     outputs: Sequence[Mapping[str, Any]]) -> None:
    """Warn of functions of batches that torchvision made for one image."""
    leaves = [leaf for leaf in _flat(list(functions))
              if type(leaf).__module__.startswith("torchvision.")]
    of_one = [type(leaf).__name__ for leaf in leaves if _is_random(leaf)]
    if of_one:
        warnings.warn(
            f"transforms=: torchvision's {of_one[0]} draws once for a whole "
            "batch; pipeline= takes torchvision's transforms and draws for "
            "each sample, and so does Dataset(path, transform=...)",
            UserWarning, stacklevel=4)
    elif leaves and outputs and len(outputs[0]["shape"]) < 3:
        warnings.warn(
            f"transforms=: torchvision's {type(leaves[0]).__name__} takes the "
            "first tensor of a batch for the image, and that is "
            f"{outputs[0]['name']!r}: name the image first in pipeline=",
            UserWarning, stacklevel=4)


def text(transform: Any) -> str:
    """The pipeline string of a transform, a Compose, or a list of them.

    Random numbers are the library's, with the same distributions, and JPEGs are
    decoded by its own transform; a CenterCrop may be one pixel beside
    torchvision's. ValueError: one of them has no operation.
    """
    translation = _Translation()
    for part in _flat(transform):
        translation.add(part)
    return translation.text()
