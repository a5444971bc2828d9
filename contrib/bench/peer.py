#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure one loader in a process of its own.

    peer.py NAME DIR

`peers`, which makes DIR, calls it, as do `run --peer` and `stages --peer`. All
loaders do the same work: the same JPEG files, a random crop by torchvision's
rules resized to 224, a flip, ImageNet's normalization, float32, shuffled.

A loader here is a generator of epochs, each an iterable of batches of images
and labels. None of them should be slower than necessary: workers get one
thread each, and memory has the layout that suits the loader.
"""
import argparse
import contextlib
import itertools
import json
import math
import os
import pathlib
import random
import sys
import time

from common import cpu_s, package

SIDE = 224
PIPELINE = f"random_resized_crop({SIDE}) | flip | normalize(imagenet) | " \
    "float | chw"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALE, RATIO = (0.08, 1), (3 / 4, 4 / 3)


def of_255(values):
    return [255 * v for v in values]


# --- a sample by fast libraries, for loaders that run Python functions ---

def crop_of(width, height):
    """The box of RandomResizedCrop: x, y, width, height."""
    for _ in range(10):
        area = width * height * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(*map(math.log, RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, w, h
    w, h = min(width, round(height * RATIO[1])), \
        min(height, round(width / RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def fast():
    """-> f(path, out): a sample by simplejpeg and OpenCV, with FFCV's own fast
    transform and resizing; tables do what else is done to pixels."""
    import cv2
    import numpy as np
    import simplejpeg
    cv2.setNumThreads(0)
    tables = [((np.arange(256) / 255 - m) / s).astype(np.float32)[None]
              for m, s in zip(MEAN, STD)]

    def sample(path, out):
        image = simplejpeg.decode_jpeg(path.read_bytes(), "RGB", fastdct=True)
        x, y, w, h = crop_of(image.shape[1], image.shape[0])
        image = cv2.resize(image[y:y + h, x:x + w], (SIDE, SIDE),
                           interpolation=cv2.INTER_AREA)
        if random.random() < 0.5:
            image = cv2.flip(image, 1)
        for plane, table, to in zip(cv2.split(image), tables, out):
            cv2.LUT(plane, table, to)
    return sample


# --- the loaders ---

def betonfs(o):
    with package().Loader(o.file, o.batch, seed=1, pipeline=PIPELINE,
                          workers=o.workers, drop_last=False,
                          batch="tuple") as loader:
        while True:
            yield loader


def ffcv(o):
    import numpy as np
    import torch
    from ffcv.fields.decoders import (IntDecoder,
                                      RandomResizedCropRGBImageDecoder)
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, Squeeze,
                                 ToTensor, ToTorchImage)
    torch.set_num_threads(1)
    # Channels last, as it does by itself: the other layout takes twice as long.
    loader = Loader(o.file, o.batch, num_workers=o.workers, os_cache=True,
                    order=OrderOption.RANDOM, drop_last=False, seed=1,
                    pipelines={
        "image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE)),
                  RandomHorizontalFlip(),
                  NormalizeImage(np.array(of_255(MEAN)), np.array(of_255(STD)),
                                 np.float32), ToTensor(), ToTorchImage()],
        "label": [IntDecoder(), ToTensor(), Squeeze()]})
    while True:
        yield loader


class Samples:
    def __init__(self, n, load):
        self.n, self.load = n, load

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.load(i)


def data_loader(o, n, load):
    import torch
    torch.set_num_threads(1)        # workers have one without this
    loader = torch.utils.data.DataLoader(
        Samples(n, load), o.batch, shuffle=True, num_workers=o.workers,
        persistent_workers=True)
    while True:
        yield loader


def transforms():
    """torchvision's, and what is to be kept as long as they are used."""
    import torch
    declared = None
    try:
        from torchvision.transforms import v2
    except RuntimeError:
        # Its compiled operators belong to a torch with CUDA. Transforms need
        # none, but the import declares two of them.
        declared = torch.library.Library("torchvision", "DEF")
        for name in "nms", "qnms":
            declared.define(name + "(Tensor dets, Tensor scores, "
                            "float iou_threshold) -> Tensor")
        from torchvision.transforms import v2
    # Tensors need less than half of the work of PIL's images.
    return v2.Compose([
        v2.ToImage(), v2.RandomResizedCrop(SIDE, antialias=True),
        v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD)]), declared


def torch(o):
    from PIL import Image
    transform, _kept = transforms()

    def load(i):
        with Image.open(o.jpegs[i]) as image:
            return transform(image.convert("RGB")), o.labels[i]
    yield from data_loader(o, len(o.jpegs), load)


def torch_fast(o):
    import torch
    sample = fast()

    def load(i):
        out = torch.empty(3, SIDE, SIDE)
        sample(o.jpegs[i], out.numpy())
        return out, o.labels[i]
    yield from data_loader(o, len(o.jpegs), load)


def torch_dataset(o):
    transform, _kept = transforms()
    dataset = package().Dataset(o.file)

    def load(i):
        sample = dataset[i]
        return transform(sample["image"]), sample["label"]
    yield from data_loader(o, len(dataset), load)


def dali(o):
    import numpy as np
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=o.batch, num_threads=o.workers, device_id=None,
                  seed=1, prefetch_queue_depth=2)
    def training():
        jpegs, labels = fn.readers.file(
            files=list(map(str, o.jpegs)), labels=o.labels,
            random_shuffle=True, initial_fill=len(o.jpegs))
        images = fn.decoders.image_random_crop(
            jpegs, random_area=SCALE, random_aspect_ratio=RATIO)
        images = fn.resize(images, size=(SIDE, SIDE))
        return fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), dtype=types.FLOAT,
            output_layout="CHW", mean=of_255(MEAN), std=of_255(STD)), labels

    pipeline = training()
    pipeline.build()

    def epoch():
        for _ in range(o.steps):
            images, labels = pipeline.run()
            yield images.as_tensor(), np.asarray(labels.as_tensor())
    while True:
        yield epoch()


PIECE = 16      # samples that a thread does at a time; its queues cost too


def spdl(o):
    import numpy as np
    from spdl.pipeline import PipelineBuilder
    sample, ids = fast(), list(range(len(o.jpegs)))

    def pieces():
        for at in itertools.count(0, PIECE):
            if at % o.batch == 0:
                out = np.empty((o.batch, 3, SIDE, SIDE), np.float32)
            if at % len(ids) < PIECE:
                random.shuffle(ids)
            yield out, at % o.batch, [ids[(at + k) % len(ids)]
                                      for k in range(PIECE)]

    def piece(given):
        out, row, some = given
        for k, i in enumerate(some):
            sample(o.jpegs[i], out[row + k])
        return out, [o.labels[i] for i in some]

    pipeline = (PipelineBuilder().add_source(pieces())
                .pipe(piece, concurrency=o.workers, output_order="input")
                .aggregate(o.batch // PIECE).add_sink(2)
                .build(num_threads=o.workers))
    with pipeline.auto_stop():
        batches = ((parts[0][0], sum((labels for _, labels in parts), []))
                   for parts in pipeline)
        while True:
            yield itertools.islice(batches, o.steps)


LOADERS = {f.__name__: f for f in (betonfs, torch_dataset, ffcv, torch,
                                   torch_fast, dali, spdl)}


# --- measuring ---

def family():
    """This process, and all that it started."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = stat.read_text().rsplit(")", 1)[1].split()[1]
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    out = [os.getpid()]
    for pid in out:
        out += children.get(pid, [])
    return out


def used_s():
    """CPU time of them all; of this process it is known to the nanosecond."""
    return time.process_time() + sum(map(cpu_s, family()[1:]))


def look(images):
    """Figures that reveal whether the work was the same."""
    import numpy as np
    a = np.asarray(images)
    return {"shape": a.shape, "dtype": str(a.dtype),
            "mean": float(a.mean()), "std": float(a.std())}


def measure(o):
    rates, images, first = [], 0, None
    epochs = LOADERS[o.loader](o)
    for number, epoch in zip(range(o.epochs), epochs):
        if number == o.warm:
            used = used_s()
        start, n = time.perf_counter(), 0
        for batch, labels in epoch:
            n += len(labels)
            first = first or look(batch)
        if number >= o.warm:
            rates.append(n / (time.perf_counter() - start))
            images += n
    used = used_s() - used
    epochs.close()
    return {"images_per_s": rates, "cpu_us_per_image": used / images * 1e6,
            "first": first}


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("loader", choices=LOADERS)
    p.add_argument("folder", type=pathlib.Path, metavar="DIR")
    p.add_argument("--batch", type=int, default=256, metavar="N",
                   help="set N samples per batch (default: %(default)s)")
    p.add_argument("--workers", type=int, default=2, metavar="N",
                   help="use N threads per loader (default: %(default)s)")
    p.add_argument("--epochs", type=int, default=4, metavar="N",
                   help="run N epochs (default: %(default)s)")
    p.add_argument("--warm", type=int, default=2, metavar="N",
                   help="do not count the first N epochs (default: "
                   "%(default)s)")
    o = p.parse_args()
    o.file = o.folder / "data.beton"
    o.jpegs = sorted((o.folder / "jpegs").iterdir())
    o.labels = [int(path.stem.partition("-")[2]) for path in o.jpegs]
    o.steps = -(-len(o.jpegs) // o.batch)
    return o


def main():
    o = parse_arguments()
    try:
        print(json.dumps(measure(o)))
    except ImportError as e:
        print(json.dumps({"not_here": str(e)}))


if __name__ == "__main__":
    sys.exit(main())
