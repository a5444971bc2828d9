# SPDX-License-Identifier: Apache-2.0
"""Run `beton`, and read the files that `beton dump` and `beton show` write."""
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess

import numpy as np

import make

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
DEADLINE = 60
SANITIZER = re.compile(r"Sanitizer|runtime error:")

try:
    from PIL import Image
except ImportError:
    Image = None


def beton(*args, code=0, deadline=DEADLINE, **how):
    """Runs it. `code`: what it must end with, or None for 0 or 1."""
    r = subprocess.run([BUILD / "beton", *map(str, args)], text=True,
                       capture_output=True, stdin=subprocess.DEVNULL,
                       timeout=deadline, errors="replace", **how)
    wanted = (0, 1) if code is None else (code,)
    assert r.returncode in wanted, (args, r.returncode, r.stderr)
    assert not SANITIZER.search(r.stderr), r.stderr
    if r.returncode:
        assert r.stderr.startswith(("beton: ", "usage: ")), r.stderr
    return r


class Batch:
    """One directory of a dump."""

    def __init__(self, folder):
        load = {p.name[:-4]: np.load(p) for p in folder.glob("*.npy")}
        self.number = int(folder.name)
        self.ids = load.pop("ids").tolist()
        self.valid = load.pop("valid", np.ones(len(self.ids), bool)).tolist()
        self.offsets = {k[:-8]: load.pop(k) for k in list(load)
                        if k.endswith(".offsets")}
        self.outputs = load

    def row(self, name, i):
        """A row of an output; of bytes and JSON the bytes."""
        a = self.outputs[name]
        if name not in self.offsets:
            return a[i]
        start, end = self.offsets[name][i:i + 2]
        return a[start:end].tobytes()


def read_dump(out):
    """The batches of a dump, by number."""
    return [Batch(p) for p in sorted(pathlib.Path(out).iterdir())]


def dump(source, out, *options, **how):
    beton("dump", source, "--out", out, *options, **how)
    return read_dump(out)


def ids(source, out, *options):
    """number -> ids"""
    return {b.number: b.ids for b in dump(source, out, *options)}


def digest(out, *but):
    """number -> hash of all files of its directory."""
    sums = {}
    for folder in sorted(pathlib.Path(out).iterdir()):
        h = hashlib.sha256()
        for p in sorted(folder.iterdir()):
            if p.name not in but:
                h.update(p.name.encode() + b"\0" + p.read_bytes())
        sums[int(folder.name)] = h.hexdigest()
    return sums


def show(path):
    return json.loads(beton("show", "--json", path).stdout)


def jpeg(seed, width, height):
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(few).resize((width, height), Image.BICUBIC) \
        .save(out, "jpeg", quality=90)
    return out.getvalue()


def photos(path, samples=40, page_size=1 << 16):
    """Every type of field, with JPEG files that are some, of many sizes."""
    rng = np.random.default_rng(samples)
    fields = [("image", make.IMAGE), ("label", make.INT),
              ("score", make.FLOAT), ("blob", make.BYTES),
              ("meta", make.JSON), ("vec", make.NDARRAY, "<f4", (2, 3)),
              ("tens", make.TENSOR, "<i2", (5,))]

    def image(i):
        w, h = 20 + i % 5 * 9, 16 + i % 3 * 16
        if i % 4 == 3:
            return make.Image(make.RAW, w, h, rng.bytes(w * h * 3))
        return make.Image(make.JPG, w, h, jpeg(i, w, h))

    return make.Dataset(path, fields, [
        {"image": image(i), "label": 3 * i - 7, "score": i / 7,
         "blob": rng.bytes(i % 6 * 5), "meta": b'{"id": %d}' % i,
         "vec": rng.normal(0, 1, (2, 3)).astype("<f4"),
         "tens": rng.integers(0, 99, 5).astype("<i2")}
        for i in range(samples)], page_size)


AUGMENT = "image | random_resized_crop(12) | flip | float | chw"
