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
