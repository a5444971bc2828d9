# SPDX-License-Identifier: Apache-2.0
"""Definitions of operations, from beton-operations(7): an image of W x H pixels and
its draws -> an image."""
import math

import numpy as np

from draws import Noise

W, H = 13, 9
F = np.float32


def truncated(v):
    return np.clip(v, 0, 255).astype(np.uint8)


def gray(x):
    x = x.astype(F)
    return F(0.2989) * x[..., 0] + F(0.587) * x[..., 1] + F(0.114) * x[..., 2]


def factor(d, magnitude, p):
    low = max(0, 1 - magnitude)
    if d() >= p:
        return F(1)
    return F(low + (1 + magnitude - low) * d())


def vertical_flip(x, d):
    return x[::-1] if d() < 0.5 else x


def cutout(x, d):
    x, on = x.copy(), d() < 0.8
    y, x0 = d.below(H - 4 + 1), d.below(W - 7 + 1)
    if on:
        x[y:y + 4, x0:x0 + 7] = 9, 99, 199
    return x


def random_translate(x, d):
    big = np.full((H + 6, W + 6, 3), (50, 60, 70), np.uint8)
    big[3:3 + H, 3:3 + W] = x
    y, x0 = d.below(7), d.below(7)
    return big[y:y + H, x0:x0 + W]


def contrast(x, d):
    f = factor(d, 0.7, 0.8)
    if f == 1:
        return x
    mean = F(gray(x).astype(np.uint8).mean(dtype=np.float64))
    return truncated(f * x.astype(F) + (F(1) - f) * mean)


def color_jitter(x, d):
    on, v = d() < 0.8, x.astype(F)
    f = [F(max(0, 1 - m) + (1 + m - max(0, 1 - m)) * d())
         for m in (0.4, 0.3, 2)]
    t = 0.1 * (2 * d() - 1)
    if not on:
        return x
    v = np.clip(f[0] * v, 0, 255)
    mean = F(sum(gray(v).ravel().tolist()) / (H * W))
    v = np.clip(f[1] * v + (F(1) - f[1]) * mean, 0, 255)
    v = np.clip(f[2] * v + ((F(1) - f[2]) * gray(v))[..., None], 0, 255)
    c, s = np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)
    e, s = (1 - c) / 3, np.sqrt(1 / 3) * s
    m = F(c + e), F(e - s), F(e + s)
    return truncated(np.stack([
        m[-k] * v[..., 0] + m[(1 - k) % 3] * v[..., 1]
        + m[(2 - k) % 3] * v[..., 2] for k in range(3)], -1))


def erased(d, scale, ratio):
    """Row, column, height and width of what is erased, or None."""
    for _ in range(10):
        area = H * W * (scale[0] + d() * (scale[1] - scale[0]))
        low, high = map(math.log, ratio)
        r = math.exp(low + (high - low) * d())
        h, w = round(math.sqrt(area * r)), round(math.sqrt(area / r))
        if h < H and w < W:
            return d.below(H - h + 1), d.below(W - w + 1), h, w
    return None


def random_erasing(x, d):
    x, part = x.copy(), erased(d, (0.1, 0.9), (0.5, 3)) if d() < 0.8 else None
    if part:
        y, left, h, w = part
        x[y:y + h, left:left + w] = 9, 99, 199
    return x


def noise_erasing(x, d):
    x, part = x.copy(), erased(d, (0.02, 0.33), (0.3, 3.3)) if d() < 1 else None
    if part:
        y, left, h, w = part
        noise, n = Noise(int(d() * 2**53)), -(-3 * w // 8)
        for row in x[y:y + h, left:left + w]:
            row[:] = np.array([noise() for _ in range(n)], "<u8").view(
                np.uint8)[:3 * w].reshape(w, 3)
    return x
