# SPDX-License-Identifier: Apache-2.0
"""Run mkfs.beton, and images for it."""
import io
import os
import subprocess

import numpy as np
import pytest

import betonfile

Image = pytest.importorskip("PIL.Image")
from PIL import ImageOps  # noqa: E402
BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
MKFS = os.path.join(BUILD, "mkfs.beton")


def run(*args, env=None, timeout=60):
    return subprocess.run([MKFS, *map(os.fspath, map_text(args))],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env=env, timeout=timeout)


def map_text(args):
    return [a if isinstance(a, (bytes, os.PathLike)) else str(a) for a in args]


def make(source, *options):
    """Runs mkfs.beton, which must succeed and leave one sound file."""
    out = os.path.join(os.path.dirname(os.fspath(source)), "out.beton")
    r = run(*options, source, out)
    assert r.returncode == 0, r.stderr
    return betonfile.Beton(out).check()


def refused(r, *words, code=1):
    assert r.returncode == code, r
    text = r.stderr.decode("utf-8", "surrogateescape")
    for word in words:
        assert word in text
    return text


def picture(seed, width=60, height=40):
    """Smooth, so that JPEG keeps it, and different for every seed."""
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(few).resize((width, height), Image.BICUBIC)


def truth(path):
    with Image.open(path) as im:
        return np.asarray(ImageOps.exif_transpose(im).convert("RGB"))


def pixels(image):
    if image.mode == betonfile.JPG:
        return np.asarray(Image.open(io.BytesIO(image.bytes)).convert("RGB"))
    return np.frombuffer(image.bytes, np.uint8) \
        .reshape(image.height, image.width, 3)


def save(path, im, **how):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    im.save(path, **how)
