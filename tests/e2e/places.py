# SPDX-License-Identifier: Apache-2.0
"""Data for the code blocks of pages (blocks.py): name -> function(folder)."""
import io
import pathlib

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

CLASSES = "n01440764", "n02102040", "n03445777"


def picture(n):
    """A JPEG of its own size, with the detail of a photograph."""
    width, height = 200 + n % 7 * 20, 160 + n % 5 * 20
    y, x = np.mgrid[:height, :width]
    waves = np.stack([128 + 90 * np.sin(x / (9 + c + n % 11) + n)
                      * np.cos(y / (13 + 2 * c)) for c in range(3)], -1)
    pixels = waves + np.random.default_rng(n).normal(0, 6, waves.shape)
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(
        out, "JPEG", quality=90)
    return out.getvalue()


def tree(folder, count, distinct=60):
    """`count` images of three classes; only some differ, which saves time."""
    made = [picture(n) for n in range(distinct)]
    for n in range(count):
        name = CLASSES[n * len(CLASSES) // count]
        path = folder / name / f"{name}_{n:04}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made[n % distinct])


def imagenet(folder):
    """imagenet/train with 1200 images, imagenet/val with 150."""
    if not (folder / "imagenet").exists():
        tree(folder / "imagenet/train", 1200)
        tree(folder / "imagenet/val", 150)


def train(folder):
    """train.beton with the images of imagenet/train."""
    from package import betonfs
    made = [picture(n) for n in range(60)]
    betonfs.write(folder / "train.beton",
                  [(made[n % 60], n * 3 // 1200) for n in range(1200)],
                  fields={"image": "image", "label": "int"},
                  classes={"label": list(CLASSES)})


def masks(folder):
    """images/CLASS/N.jpg, and masks/CLASS/N.png of the same size."""
    for n in range(24):
        name = ("street", "field")[n % 2]
        jpeg = picture(n)
        size = Image.open(io.BytesIO(jpeg)).size
        classes = np.zeros(size[::-1], np.uint8)
        classes[40:90, 50:120] = 1 + n % 3
        for kind in "images", "masks":
            (folder / kind / name).mkdir(parents=True, exist_ok=True)
        (folder / f"images/{name}/{n}.jpg").write_bytes(jpeg)
        Image.fromarray(classes).save(folder / f"masks/{name}/{n}.png")


def source(folder):
    """The tree of the source, with its build."""
    root = pathlib.Path(__file__).resolve().parents[2]
    for path in root.iterdir():
        if not path.name.startswith((".git", "build")):
            (folder / path.name).symlink_to(path)


PLACES = {f.__name__: f for f in (imagenet, train, masks, source)}
