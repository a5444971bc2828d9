# SPDX-License-Identifier: Apache-2.0
"""Geometry, colors and noise of images."""
from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._chain import Chain, number, numbers
from .._draws import Draws
from ._base import ImageOperation

Images = NDArray[np.uint8]
Pair = Sequence[float]


class RandomHorizontalFlip(ImageOperation):
    """Exchanges left and right with a probability."""

    def __init__(self, flip_prob: float = 0.5,
                 seed: int | None = None) -> None:
        super().__init__()
        self.flip_prob = flip_prob
        self.seed = seed

    def native(self, chain: Chain) -> str | None:
        if not chain.may_move():
            return None
        return f"flip({number(self.flip_prob)})"

    def images(self, images: Images, draws: Draws) -> Images:
        chosen = draws.uniform() < self.flip_prob
        images[chosen] = images[chosen, :, ::-1]
        return images


class RandomVerticalFlip(ImageOperation):
    """Exchanges top and bottom with a probability."""

    def __init__(self, flip_prob: float = 0.5) -> None:
        super().__init__()
        self.flip_prob = flip_prob

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole():
            return None
        chain.coloured = False
        return f"vertical_flip({number(self.flip_prob)})"

    def images(self, images: Images, draws: Draws) -> Images:
        chosen = draws.uniform() < self.flip_prob
        images[chosen] = images[chosen, ::-1]
        return images


class Cutout(ImageOperation):
    """A square of one color, anywhere in every image."""

    def __init__(self, crop_size: int,
                 fill: Sequence[int] = (0, 0, 0)) -> None:
        super().__init__()
        self.crop_size = crop_size
        self.fill = np.array(fill)
        self.prob = 1.0

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole() or not _is_colour(self.fill):
            return None
        chain.coloured = False
        return (f"cutout({self.crop_size}, fill={_colour(self.fill)}, "
                f"p={number(self.prob)})")

    def images(self, images: Images, draws: Draws) -> Images:
        _, height, width, _ = images.shape
        size = self.crop_size
        rows = draws.index(height - size + 1)
        columns = draws.index(width - size + 1)
        chosen = draws.uniform() < self.prob
        for i, y, x in zip(np.arange(len(images)), rows, columns):
            if chosen[i]:
                images[i, y:y + size, x:x + size] = self.fill
        return images


class RandomCutout(Cutout):
    """A Cutout of some images."""

    def __init__(self, prob: float, crop_size: int,
                 fill: Sequence[int] = (0, 0, 0)) -> None:
        super().__init__(crop_size, fill)
        self.prob = prob


class RandomTranslate(ImageOperation):
    """Moves images by up to `padding` pixels in both directions."""

    def __init__(self, padding: int, fill: Sequence[int] = (0, 0, 0),
                 seed: int | None = None) -> None:
        super().__init__()
        self.padding = padding
        self.seed = seed
        self.fill = np.array(fill)

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole() or not _is_colour(self.fill):
            return None
        chain.coloured = False
        return (f"random_translate({self.padding}, "
                f"fill={_colour(self.fill)})")

    def images(self, images: Images, draws: Draws) -> Images:
        _, h, w, _ = images.shape
        pad = self.padding
        rows, columns = (draws.index(2 * pad + 1) for _ in range(2))
        wide = np.empty((h + 2 * pad, w + 2 * pad, 3), np.uint8)
        for image, y, x in zip(images, rows, columns):
            wide[:] = self.fill
            wide[pad:pad + h, pad:pad + w] = image
            image[:] = wide[y:y + h, x:x + w]
        return images


class RandomResizedCrop(ImageOperation):
    """A random crop, resized; of images that were decoded as they are. The
    decoder of this name is faster.

    FFCV-SSL has a decoder of this name and no size: with its arguments
    (output_size, scale, ratio) this is RandomResizedCropRGBImageDecoder."""

    def __new__(cls, *args: Any, **named: Any) -> Any:
        if cls is RandomResizedCrop and _is_decoder(args, named):
            from ..decoders import RandomResizedCropRGBImageDecoder
            for seed in "seed", "second_seed":
                named.pop(seed, None)
            return RandomResizedCropRGBImageDecoder(*args, **named)
        return super().__new__(cls)

    def __init__(self, scale: Pair, ratio: Pair, size: int) -> None:
        super().__init__()
        self.scale = scale
        self.ratio = ratio
        self.size = size

    def native(self, chain: Chain) -> str | None:
        if not chain.may_resize():
            return None
        return (f"random_resized_crop({self.size}, "
                f"scale={numbers(self.scale)}, ratio={numbers(self.ratio)})")

    def images(self, images: Images, draws: Draws) -> Images:
        n, height, width, _ = images.shape
        crops = _crops(height, width, self.scale, self.ratio, draws)
        out = np.empty((n, self.size, self.size, 3), np.uint8)
        for image, into, (y, x, h, w) in zip(images, out, crops):
            _resize(image[y:y + h, x:x + w], into)
        return out


class _Colour(ImageOperation):
    """A factor of its own for some images."""

    text: str

    def __init__(self, magnitude: float, p: float = 0.5) -> None:
        super().__init__()
        self.magnitude = magnitude
        self.p = p

    def native(self, chain: Chain) -> str | None:
        if not chain.may_colour():
            return None
        chain.coloured = True
        return f"{self.text}({number(self.magnitude)}, p={number(self.p)})"

    def other(self, image: Images) -> Any:
        """The image that each image is blended with."""
        raise NotImplementedError

    def images(self, images: Images, draws: Draws) -> Images:
        chosen = draws.uniform() < self.p
        factors = draws.uniform(max(0, 1 - self.magnitude),
                                1 + self.magnitude)
        for i in np.flatnonzero(chosen):
            f = factors[i]
            blend = f * images[i] + (1 - f) * self.other(images[i])
            images[i] = blend.clip(0, 255)
        return images


class RandomBrightness(_Colour):
    """Blends with black, by 1 - magnitude to 1 + magnitude."""

    text = "brightness"

    def other(self, image: Images) -> Any:
        return 0


class RandomContrast(_Colour):
    """Blends with the mean gray."""

    text = "contrast"

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole():
            return None
        text = super().native(chain)
        chain.coloured = False
        return text

    def other(self, image: Images) -> Any:
        return _grey(image).mean()


class RandomSaturation(_Colour):
    """Blends with the grays."""

    text = "saturation"

    def other(self, image: Images) -> Any:
        return _grey(image)[..., None]


class RandomGrayscale(ImageOperation):
    """Makes some images gray."""

    def __init__(self, gray_prob: float = 0.2, seed: int | None = None,
                 *, p: float | None = None) -> None:
        super().__init__()
        self.gray_prob = gray_prob if p is None else p
        self.seed = seed

    def native(self, chain: Chain) -> str | None:
        if not chain.may_colour():
            return None
        chain.coloured = True
        return f"grayscale({number(self.gray_prob)})"

    def images(self, images: Images, draws: Draws) -> Images:
        for i in np.flatnonzero(draws.uniform() < self.gray_prob):
            images[i] = _grey(images[i])[..., None]
        return images


class RandomColorJitter(ImageOperation):
    """Brightness, contrast, saturation and hue, one after the other, of some
    images; each by 1 - its magnitude to 1 + it, hue by turns.

    Arguments are FFCV-SSL's, (jitter_prob, brightness, contrast, saturation,
    hue, seed), or with `p=`, as other forks have it, (brightness, contrast,
    saturation, hue, seed). The seed is the loader's."""

    usual = 0.5, 0.8, 0.4, 0.4, 0.2

    def __init__(self, *values: Any, p: float | None = None,
                 **named: Any) -> None:
        super().__init__()
        names = ["jitter_prob", *_MAGNITUDES, "seed"]
        if p is not None:
            names.remove("jitter_prob")
        given = _named(type(self).__name__, names, values, named)
        if p is not None:
            given["jitter_prob"] = p
        prob, *magnitudes, hue = (
            given.get(name, usual) for name, usual in zip(
                ["jitter_prob", *_MAGNITUDES], self.usual))
        if any(isinstance(m, Sequence) for m in (*magnitudes, hue)):
            raise ValueError("magnitudes are numbers here, not ranges")
        self.jitter_prob = prob
        self.magnitudes = tuple(magnitudes)
        self.hue = hue

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole():
            return None
        chain.coloured = False
        words = [number(m) for m in (*self.magnitudes, self.hue)]
        return f"color_jitter({', '.join(words)}, p={number(self.jitter_prob)})"

    def images(self, images: Images, draws: Draws) -> Images:
        chosen = draws.uniform() < self.jitter_prob
        factors = [draws.uniform(max(0, 1 - m), 1 + m)
                   for m in self.magnitudes]
        turns = draws.uniform(-self.hue, self.hue)
        greys = np.array([0.2989, 0.587, 0.114])
        for i in np.flatnonzero(chosen):
            v = (images[i] * factors[0][i]).clip(0, 255)
            for k in (1, 2):
                f, gray = factors[k][i], (v @ greys)[..., None]
                other = gray.mean() if k == 1 else gray
                v = (f * v + (1 - f) * other).clip(0, 255)
            images[i] = (v @ _turn(turns[i]).T).clip(0, 255)
        return images


class ColorJitter(RandomColorJitter):
    """The same, of which nothing is asked for yet."""

    usual = 0.5, 0, 0, 0, 0


class RandomSolarization(ImageOperation):
    """Inverts what is not below a threshold, in some images.

    Arguments are FFCV-SSL's, (solarization_prob, threshold, seed), or with
    `p=`, as other forks have it, (threshold, seed)."""

    def __init__(self, *values: Any, p: float | None = None,
                 **named: Any) -> None:
        super().__init__()
        names = ["solarization_prob", "threshold", "seed"]
        if p is not None:
            names.remove("solarization_prob")
        given = _named(type(self).__name__, names, values, named)
        self.solarization_prob = given.get("solarization_prob", 0.5) \
            if p is None else p
        self.threshold = given.get("threshold", 128)

    def native(self, chain: Chain) -> str | None:
        if not chain.may_colour():
            return None
        chain.coloured = True
        return (f"solarize({number(self.threshold)}, "
                f"p={number(self.solarization_prob)})")

    def images(self, images: Images, draws: Draws) -> Images:
        for i in np.flatnonzero(draws.uniform() < self.solarization_prob):
            images[i] = np.where(images[i] >= self.threshold,
                                 255 - images[i], images[i])
        return images


Solarization = RandomSolarization


class GaussianBlur(ImageOperation):
    """Blurs some images, each with one of ten deviations from `sigma`; pixels
    outside are those inside, mirrored. FFCV-SSL's."""

    def __init__(self, blur_prob: float, kernel_size: int = 5,
                 sigma: Pair = (0.1, 2.0), seed: int | None = None) -> None:
        super().__init__()
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size={kernel_size}: it is odd")
        self.blur_prob = blur_prob
        self.seed = seed
        self.kernel_size = kernel_size
        self.sigmas = np.linspace(sigma[0], sigma[1], 10)

    def images(self, images: Images, draws: Draws) -> Images:
        half = self.kernel_size // 2
        places = np.arange(-half, half + 1)
        chosen = draws.uniform() < self.blur_prob
        sigmas = self.sigmas[draws.index(len(self.sigmas))]
        for i in np.flatnonzero(chosen):
            kernel = np.exp(-0.5 * (places / sigmas[i]) ** 2)
            image = np.pad(images[i], ((half, half), (half, half), (0, 0)),
                           "symmetric").astype(float)
            for axis in 0, 1:
                rows = np.lib.stride_tricks.sliding_window_view(
                    image, self.kernel_size, axis)
                image = rows @ (kernel / kernel.sum())
            images[i] = np.rint(image)
        return images


class RandomErasing(ImageOperation):
    """Fills a part of some images with the color `mean`. FFCV-SSL's."""

    def __init__(self, erase_prob: float = 0.5, scale: Pair = (0.08, 0.4),
                 ratio: Pair = (0.3, 3), mean: Sequence[int] = (128, 128, 128),
                 seed: int | None = None) -> None:
        super().__init__()
        self.erase_prob = erase_prob
        self.seed = seed
        self.scale = scale
        self.ratio = ratio
        self.mean = np.array(mean)

    def images(self, images: Images, draws: Draws) -> Images:
        _, height, width, _ = images.shape
        chosen = draws.uniform() < self.erase_prob
        parts = _parts(height, width, self.scale, self.ratio, draws)
        for i in np.flatnonzero(chosen):
            if i in parts:
                y, x, h, w = parts[int(i)]
                images[i, y:y + h, x:x + w] = self.mean
        return images


class Rotate(ImageOperation):
    """Turns some images about their middle, by up to `angle` in radians; what
    comes from outside is black. FFCV-SSL's."""

    def __init__(self, rotate_prob: float = 0.5, angle: float = 0.2,
                 seed: int | None = None) -> None:
        super().__init__()
        self.rotate_prob = rotate_prob
        self.angle = angle
        self.seed = seed

    def images(self, images: Images, draws: Draws) -> Images:
        _, height, width, _ = images.shape
        chosen = draws.uniform() < self.rotate_prob
        angles = draws.uniform(-self.angle, self.angle)
        y, x = np.mgrid[:height, :width]
        y, x = y - (height - 1) / 2, x - (width - 1) / 2
        for i in np.flatnonzero(chosen):
            s, c = math.sin(angles[i]), math.cos(angles[i])
            rows = np.rint(c * y + s * x + (height - 1) / 2).astype(int)
            columns = np.rint(c * x - s * y + (width - 1) / 2).astype(int)
            inside = ((rows >= 0) & (rows < height)
                      & (columns >= 0) & (columns < width))
            images[i] = np.where(
                inside[..., None],
                images[i][rows * inside, columns * inside], 0)
        return images


class Poison(ImageOperation):
    """Blends the images of some samples with a mask."""

    def __init__(self, mask: Any, alpha: Any, indices: Sequence[int],
                 clamp: Sequence[float] = (0, 255)) -> None:
        super().__init__()
        self.mask = np.asarray(mask)
        self.alpha = np.asarray(alpha)
        self.indices = np.sort(indices)
        self.clamp = clamp

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole() or self.mask.ndim != 3:
            return None
        chain.coloured = False
        files = chain.files
        alpha = files.array(self.alpha.astype(float)) if self.alpha.ndim \
            else number(self.alpha)
        return (f"poison({files.array(self.mask.astype(float))}, {alpha}, "
                f"{files.ids(self.indices)}, clamp={numbers(self.clamp)})")

    def images(self, images: Images, draws: Draws) -> Images:
        alpha = self.alpha[..., None] if self.alpha.ndim else self.alpha
        mask = self.mask * alpha
        keep = np.float32(1 - alpha) if not self.alpha.ndim \
            else (1 - alpha).astype(np.float32)
        for i in np.flatnonzero(np.isin(draws.ids, self.indices)):
            mixed = images[i] * keep + mask.astype(np.float32)
            images[i] = mixed.clip(*self.clamp)
        return images


# --- what they need ---

def _is_decoder(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether the arguments are of FFCV-SSL's RandomResizedCrop."""
    if "size" in named or len(args) > 2 and isinstance(args[2], int):
        return False
    return "output_size" in named or bool(args)


_MAGNITUDES = "brightness", "contrast", "saturation", "hue"


def _named(name: str, names: Sequence[str], values: Sequence[Any],
           named: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names, as a signature of these names binds them."""
    parameters = [inspect.Parameter(
        n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    try:
        return inspect.Signature(parameters).bind_partial(
            *values, **named).arguments
    except TypeError as e:
        raise TypeError(f"{name}: {e}") from None


def _is_colour(fill: NDArray[Any]) -> bool:
    return (fill.size in (1, 3) and bool(((fill >= 0) & (fill <= 255)).all())
            and bool((fill == np.floor(fill)).all()))


def _colour(fill: NDArray[Any]) -> str:
    return numbers(fill.reshape(-1).tolist())


def _grey(image: Images) -> Images:
    r, g, b = image[..., 0], image[..., 1], image[..., 2]
    gray: Images = (0.2989 * r + 0.587 * g + 0.114 * b).astype(np.uint8)
    return gray


def _turn(turns: float) -> NDArray[np.float64]:
    """The matrix that rotates colors about the axis of grays."""
    s, c = math.sin(2 * math.pi * turns), math.cos(2 * math.pi * turns)
    d, e = (1 - c) / 3, math.sqrt(1 / 3) * s
    return np.array([[c + d, d - e, d + e], [d + e, c + d, d - e],
                     [d - e, d + e, c + d]])


def _crops(height: int, width: int, scale: Pair, ratio: Pair,
           draws: Draws) -> list[tuple[int, int, int, int]]:
    """Row, column, height and width, by the rule of beton-operations(7)."""
    shape = width / height
    h = round(width / ratio[0]) if shape < ratio[0] else height
    w = round(height * ratio[1]) if shape > ratio[1] else width
    largest = (height - h) // 2, (width - w) // 2, h, w
    parts = _parts(height, width, scale, ratio, draws)
    return [parts.get(i, largest) for i in range(len(draws.ids))]


def _parts(height: int, width: int, scale: Pair, ratio: Pair,
           draws: Draws) -> dict[int, tuple[int, int, int, int]]:
    """Those of the images for which one of ten draws fits."""
    logs = math.log(ratio[0]), math.log(ratio[1])
    out: dict[int, tuple[int, int, int, int]] = {}
    open_rows = set(range(len(draws.ids)))
    for _ in range(10):
        areas = height * width * draws.uniform(*scale)
        ratios = np.exp(draws.uniform(*logs))
        widths = np.rint(np.sqrt(areas * ratios)).astype(int)
        heights = np.rint(np.sqrt(areas / ratios)).astype(int)
        down, right = draws.uniform(), draws.uniform()
        for i in sorted(open_rows):
            h, w = int(heights[i]), int(widths[i])
            if 0 < w <= width and 0 < h <= height:
                out[i] = (int(down[i] * (height - h + 1)),
                          int(right[i] * (width - w + 1)), h, w)
                open_rows.remove(i)
    return out


def _weights(source: int, size: int, shrink: bool) -> NDArray[np.float64]:
    """The weights of source pixels for each pixel of one side, as in OpenCV's
    INTER_AREA."""
    scale = source / size
    out = np.zeros((size, source))
    if shrink:
        edges = np.arange(size + 1) * scale
        for k in range(source):
            part = np.minimum(edges[1:], k + 1) - np.maximum(edges[:-1], k)
            out[:, k] = part.clip(0) / scale
        return out
    for d in range(size):
        s = int(d * scale)
        f = (d + 1) - (s + 1) / scale
        f = 0.0 if f <= 0 or s + 1 >= source else f - math.floor(f)
        out[d, s] += 1 - f
        if f:
            out[d, s + 1] += f
    return out


def _resize(image: Images, into: Images) -> None:
    (h, w), (th, tw) = image.shape[:2], into.shape[:2]
    shrink = th <= h and tw <= w
    rows, columns = _weights(h, th, shrink), _weights(w, tw, shrink)
    out = np.einsum("ij,jkc->ikc", rows, image.astype(float))
    out = np.einsum("ij,kjc->kic", columns, out)
    into[:] = np.rint(out).clip(0, 255)
