# SPDX-License-Identifier: Apache-2.0
"""The operations of policies and their magnitudes, in NumPy, written from
beton-operations(7)."""
import math

import numpy as np

F = np.float32


# --- operations on an image, by magnitude ---

def blend(base, x, factor):
    base, factor = np.asarray(base, F), F(factor)
    v = base + factor * (x.astype(F) - base)
    return np.clip(v, 0, 255).astype(np.uint8)


def gray(x):
    r, g, b = (x[..., c].astype(np.uint32) for c in range(3))
    return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16


def brightness(x, m, how):
    return blend(0, x, 1 + m)


def color(x, m, how):
    return blend(gray(x)[..., None], x, 1 + m)


def contrast(x, m, how):
    total, n = int(gray(x).sum()), x.shape[0] * x.shape[1]
    return blend((2 * total + n) // (2 * n), x, 1 + m)


def sharpness(x, m, how):
    if min(x.shape[:2]) < 3 or m == 0:
        return x
    wide, smooth = x.astype(int), x.copy()
    total = 4 * wide[1:-1, 1:-1]
    for dy in range(3):
        for dx in range(3):
            total = total + wide[dy:dy + x.shape[0] - 2,
                                 dx:dx + x.shape[1] - 2]
    smooth[1:-1, 1:-1] = (total + 6) // 13
    return blend(smooth, x, 1 + m)


def posterize(x, m, how):
    return x & (0xff00 >> int(m) & 0xff)


def solarize(x, m, how):
    return np.where(x >= 255 * m, 255 - x, x)


def invert(x, m, how):
    return 255 - x


def by_channel(table):
    def run(x, m, how):
        return np.stack([table(x[..., c])[x[..., c]] for c in range(3)], -1)
    return run


@by_channel
def autocontrast(v):
    low, high = int(v.min()), int(v.max())
    if low == high:
        return np.arange(256, dtype=np.uint8)
    scale = 255.0 / (high - low)
    return np.clip(np.arange(256) * scale + -low * scale, 0,
                   255).astype(np.uint8)


@by_channel
def equalize(v):
    counts = np.bincount(v.ravel(), minlength=256)
    step = (v.size - int(counts[v.max()])) // 255
    if not step:
        return np.arange(256, dtype=np.uint8)
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.minimum((step // 2 + before) // step, 255).astype(np.uint8)


def affine(x, m, how):
    """The pixel of (x, y) is that at the place m, in steps of 2^-16."""
    def fixed(v):
        return math.floor(v * 65536 + 0.5)
    mode, fill = how
    assert mode == "nearest"
    h, w = x.shape[:2]
    at_x = (fixed(m[2] + m[0] * .5 + m[1] * .5) + fixed(m[0]) * np.arange(w)
            + fixed(m[1]) * np.arange(h)[:, None]) >> 16
    at_y = (fixed(m[5] + m[3] * .5 + m[4] * .5) + fixed(m[3]) * np.arange(w)
            + fixed(m[4]) * np.arange(h)[:, None]) >> 16
    inside = (at_x >= 0) & (at_x < w) & (at_y >= 0) & (at_y < h)
    out = x[np.clip(at_y, 0, h - 1), np.clip(at_x, 0, w - 1)]
    return np.where(inside[..., None], out, np.uint8(fill))


def shear_x(x, m, how):
    return affine(x, (1, m, 0, 0, 1, 0), how)


def shear_y(x, m, how):
    return affine(x, (1, 0, 0, m, 1, 0), how)


def translate_x(x, m, how):
    return affine(x, (1, 0, -int(m), 0, 1, 0), how)


def translate_y(x, m, how):
    return affine(x, (1, 0, 0, 0, 1, -int(m)), how)


def rotate(x, m, how):
    c, s = math.cos(math.radians(m)), math.sin(math.radians(m))
    cx, cy = x.shape[1] / 2, x.shape[0] / 2
    return affine(x, (c, -s, -c * cx + s * cy + cx,
                      s, c, -s * cx - c * cy + cy), how)


def identity(x, m, how):
    return x


# --- magnitudes: first, last, signed; as torchvision's tables ---

def spaced(first, last, i, n):
    first, last = F(first), F(last)
    step = F(F(last - first) / F(n - 1))
    if i < n // 2:
        return float(F(float(first) + float(step) * i))
    return float(F(float(last) - float(step) * (n - 1 - i)))


def line(last, first=0.0, signed=True):
    return lambda i, n, h, w: spaced(first, last, i, n), signed


def of_width(share):
    return lambda i, n, h, w: spaced(0, share * w, i, n), True


def of_height(share):
    return lambda i, n, h, w: spaced(0, share * h, i, n), True


def bits(most, fewer):
    return (lambda i, n, h, w: round(float(
        F(most) - F(i) / F((n - 1) / fewer)))), False


NONE = lambda i, n, h, w: 0.0, False  # noqa: E731


def space(shear, move_x, move_y, turn, blend, levels, invert=False):
    parts = {
        "ShearX": line(shear), "ShearY": line(shear), "TranslateX": move_x,
        "TranslateY": move_y, "Rotate": line(turn),
        **{k: line(blend) for k in ("Brightness", "Color", "Contrast",
                                    "Sharpness")},
        "Posterize": levels, "Solarize": line(0.0, 1.0, False),
        "AutoContrast": NONE, "Equalize": NONE}
    return {**parts, "Invert": NONE} if invert else parts


SIDE = 150.0 / 331.0
LIKE_AUTO = (0.3, of_width(SIDE), of_height(SIDE), 30, 0.9, bits(8, 4))
AUTO = space(*LIKE_AUTO, invert=True)
RAND = {"Identity": NONE, **space(*LIKE_AUTO)}
TRIVIAL = {"Identity": NONE, **space(0.99, line(32), line(32), 135, 0.99,
                                     bits(8, 6))}
AUG_MIX = space(0.3, of_width(1 / 3), of_height(1 / 3), 30, 0.9, bits(4, 4))
LAST = ("Brightness", "Color", "Contrast", "Sharpness")
AUG_MIX = {k: AUG_MIX[k] for k in [k for k in AUG_MIX if k not in LAST]
           + list(LAST)}

OPS = {"Identity": identity, "ShearX": shear_x, "ShearY": shear_y,
       "TranslateX": translate_x, "TranslateY": translate_y,
       "Rotate": rotate, "Brightness": brightness, "Color": color,
       "Contrast": contrast, "Sharpness": sharpness, "Posterize": posterize,
       "Solarize": solarize, "AutoContrast": autocontrast,
       "Equalize": equalize, "Invert": invert}


def magnitude(table, name, i, n, u, size):
    """The magnitude i of n of an operation, with the sign of u."""
    of, signed = table[name]
    value = of(i, n, *size)
    return -value if signed and u <= 0.5 else value


def run(x, steps, how=("nearest", (0, 0, 0))):
    for name, m in steps:
        x = OPS[name](x, m, how)
    return x


# --- color_jitter(like=torchvision) ---

def hue(x, t, how=None):
    """By way of Pillow's HSV of 8 bits."""
    r, g, b = (x[..., c].astype(int) for c in range(3))
    most, least = np.maximum(r, np.maximum(g, b)), np.minimum(
        r, np.minimum(g, b))
    one = np.maximum(most - least, 1).astype(F)
    rc, gc, bc = ((most - v).astype(F) / one for v in (r, g, b))
    h = np.where(r == most, (bc - gc).astype(float), np.where(
        g == most, 2.0 + rc.astype(float) - bc, 4.0 + gc.astype(float) - rc))
    h = np.fmod(h.astype(F).astype(float) / 6.0 + 1.0, 1.0).astype(F)
    h = np.where(most == least, 0, (h.astype(float) * 255.0).astype(int))
    s = (most - least).astype(F) / np.maximum(most, 1).astype(F)
    s = (s.astype(float) * 255.0).astype(int)
    h = (h + math.trunc(255 * t)) % 256
    i = h * 6 // 255
    f = (h * 6.0 / 255.0 - i).astype(F)
    s = (s / 255.0).astype(F)
    p = np.floor(most * (1.0 - s.astype(float)) + 0.5)
    q = np.floor(most * (1.0 - (s * f).astype(float)) + 0.5)
    t = np.floor(most * (1.0 - s * (1.0 - f.astype(float))) + 0.5)
    v, i = most, i % 6
    return np.stack([np.choose(i, c) for c in (
        (v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q))],
        -1).astype(np.uint8)


def by_factor(define):
    return lambda x, f, how=None: define(x, f - 1, how)


OPS.update({"brightness": by_factor(brightness), "hue": hue,
            "contrast": by_factor(contrast), "saturation": by_factor(color)})
