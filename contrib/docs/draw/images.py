# SPDX-License-Identifier: Apache-2.0
"""Generated images of six classes, as a dataset. A seed gives the same images."""
import numpy as np

import built

CLASSES = ("checks", "disc", "ring", "square", "stripes", "waves")


def figure(label, x, y, size, turn):
    """Where the figure of a class is: true or false for each pixel."""
    across = x * np.cos(turn) + y * np.sin(turn)
    along = y * np.cos(turn) - x * np.sin(turn)
    radius = np.hypot(x, y)
    return {
        "checks": (np.floor(5 * across) + np.floor(5 * along)) % 2 == 0,
        "disc": radius < size,
        "ring": abs(radius - size) < size / 4,
        "square": np.maximum(abs(across), abs(along)) < size,
        "stripes": np.floor(9 * across) % 2 == 0,
        "waves": np.sin(14 * across + 3 * np.sin(5 * along)) > 0,
    }[CLASSES[label]]


def image(label, rng, width, height):
    """Pixels: a figure before a background, both shaded, with some noise."""
    y, x = np.mgrid[:height, :width] / max(width, height) - 0.5
    at = rng.uniform(-0.12, 0.12, 2)
    inside = figure(label, x - at[0], y - at[1], rng.uniform(0.18, 0.32),
                    rng.uniform(0, np.pi))
    back, front = rng.permutation(
        [(48, 84, 150), (226, 120, 50), (70, 150, 110), (200, 70, 90),
         (240, 200, 90), (90, 70, 140)])[:2]
    shade = 1 + (x + y)[..., None] * rng.uniform(-0.5, 0.5)
    pixels = np.where(inside[..., None], front, back) * shade
    return np.clip(pixels + rng.normal(0, 3, pixels.shape), 0,
                   255).astype(np.uint8)


def write(path, samples, width=500, height=375, seed=1, distinct=4):
    """Write a dataset of JPEGs, sorted by class, with an int field `label`.
    Widths and heights vary by a third around these. A class has so many distinct
    images, which repeat."""
    rng = np.random.default_rng(seed)

    def vary(size):
        return round(size * rng.uniform(0.67, 1.33))

    made = [[image(label, rng, vary(width), vary(height))
             for _ in range(distinct)] for label in range(len(CLASSES))]

    def sample(i):
        label = i * len(CLASSES) // samples
        return {"image": made[label][i % distinct], "label": label}

    built.package().write(path, map(sample, range(samples)), length=samples,
                          fields={"image": "image", "label": "int"},
                          classes=CLASSES)


def scene(width, height):
    """Pixels of a landscape: what is left and right, near and far differs."""
    y, x = np.mgrid[:height, :width]
    y, x = y / height, x / width

    def paint(where, color):
        pixels[where] = color

    pixels = (np.array([70, 130, 200]) + y[..., None] * np.array(
        [170, 90, 30])).clip(0, 255)
    paint(np.hypot((x - 0.22) * width / height, y - 0.25) < 0.14,
          (250, 210, 70))
    paint(y > 0.62 + 0.1 * np.sin(7 * x), (90, 150, 80))
    paint(y > 0.8 + 0.06 * np.sin(9 * x + 2), (50, 105, 60))
    paint((abs(x - 0.7) < 0.14) & (abs(y - 0.66) < 0.16), (225, 220, 205))
    paint((y < 0.5) & (y > 0.28 + 1.2 * abs(x - 0.7)), (180, 60, 50))
    paint((abs(x - 0.64) < 0.03) & (abs(y - 0.62) < 0.05), (60, 80, 120))
    paint((abs(x - 0.76) < 0.03) & (abs(y - 0.72) < 0.1), (110, 70, 50))
    return pixels.astype(np.uint8)
