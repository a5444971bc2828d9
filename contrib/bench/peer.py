#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure one loader in a process of its own.

    peer.py NAME DIR

`peers`, which makes DIR, calls it, as do `run --peer` and `stages --peer`. All
loaders do the same work: the same JPEG files, a random crop by torchvision's
rules resized to 224, a flip, ImageNet's normalization, float32, shuffled.

A loader here is a generator of epochs, each an iterable of batches of images
and labels. None of them should be slower than necessary: workers get one
thread each, and memory has the layout that suits the loader. If a loader can
leave out an image that it cannot decode, it does, and the batch has no label of
it.
"""
import argparse
import collections
import contextlib
import importlib.metadata
import itertools
import json
import math
import os
import pathlib
import random
import sys
import time
import traceback
from typing import Callable, NamedTuple

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
                          on_error="skip") as loader:
        while True:
            yield ((b["image"], b["label"][b.valid]) for b in loader)


def ffcv(o):
    if o.workers > (os.cpu_count() or 1):   # Numba refuses it otherwise
        os.environ["NUMBA_NUM_THREADS"] = str(o.workers)
    import numpy as np
    import torch
    from ffcv.fields.decoders import (IntDecoder,
                                      RandomResizedCropRGBImageDecoder)
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, Squeeze,
                                 ToTensor, ToTorchImage)
    torch.set_num_threads(1)
    # The two settings of its documentation: for data in memory, and for data
    # on a disk. Channels last, as it does by itself: the other layout takes
    # twice as long.
    order = OrderOption.QUASI_RANDOM if o.cold else OrderOption.RANDOM
    loader = Loader(o.file, o.batch, num_workers=o.workers,
                    os_cache=not o.cold, order=order, drop_last=False, seed=1,
                    pipelines={
        "image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE)),
                  RandomHorizontalFlip(),
                  NormalizeImage(np.array(of_255(MEAN)), np.array(of_255(STD)),
                                 np.float32), ToTensor(), ToTorchImage()],
        "label": [IntDecoder(), ToTensor(), Squeeze()]})
    while True:
        yield loader


def unless_damaged(load, i):
    """The sample, or None. Libraries raise several kinds of errors."""
    try:
        return load(i)
    except Exception:
        return None


class Samples:
    def __init__(self, n, load):
        self.n, self.load = n, load

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return unless_damaged(self.load, i)


def collate(samples):
    from torch.utils.data import default_collate
    return default_collate([s for s in samples if s is not None])


def data_loader(o, n, load):
    import torch
    torch.set_num_threads(1)        # workers have one without this
    load(0)                         # raises if a library does not work
    processes = {"persistent_workers": True,
                 "multiprocessing_context": "fork"} if o.workers else {}
    loader = torch.utils.data.DataLoader(
        Samples(n, load), o.batch, shuffle=True, num_workers=o.workers,
        collate_fn=collate, **processes)
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


def with_transforms(o, decode):
    """Files that decode(path) decodes, and torchvision's transforms."""
    transform, _kept = transforms()

    def load(i):
        return transform(decode(o.jpegs[i])), o.labels[i]
    yield from data_loader(o, len(o.jpegs), load)


def pil(o):
    from PIL import Image

    def decode(path):
        with Image.open(path) as image:
            return image.convert("RGB")
    yield from with_transforms(o, decode)


def torchvision(o):
    transforms()                    # an import that may need help
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    def decode(path):
        return decode_jpeg(read_file(str(path)), mode=ImageReadMode.RGB)
    yield from with_transforms(o, decode)


def torchcodec(o):
    from torchcodec.decoders import decode_jpeg
    yield from with_transforms(o, decode_jpeg)


def dataset(o):
    transform, _kept = transforms()
    samples = package().Dataset(o.file)

    def load(i):
        sample = samples[i]
        return transform(sample["image"]), sample["label"]
    yield from data_loader(o, len(samples), load)


def simplejpeg(o):
    import torch
    sample = fast()

    def load(i):
        out = torch.empty(3, SIDE, SIDE)
        sample(o.jpegs[i], out.numpy())
        return out, o.labels[i]
    yield from data_loader(o, len(o.jpegs), load)


def albumentations(o):
    import albumentations as A
    import cv2
    import simplejpeg
    cv2.setNumThreads(0)
    transform = A.Compose([
        A.RandomResizedCrop((SIDE, SIDE), SCALE, RATIO), A.HorizontalFlip(),
        A.Normalize(MEAN, STD), A.ToTensorV2()])

    def load(i):
        image = simplejpeg.decode_jpeg(o.jpegs[i].read_bytes(), "RGB",
                                       fastdct=True)
        return transform(image=image)["image"], o.labels[i]
    yield from data_loader(o, len(o.jpegs), load)


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
            yield images.as_tensor(), np.asarray(labels.as_tensor()).ravel()
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

        def load(k):
            sample(o.jpegs[some[k]], out[row + k])
            return o.labels[some[k]]
        labels = (unless_damaged(load, k) for k in range(PIECE))
        return out, [label for label in labels if label is not None]

    pipeline = (PipelineBuilder().add_source(pieces())
                .pipe(piece, concurrency=o.workers, output_order="input")
                .aggregate(o.batch // PIECE).add_sink(2)
                .build(num_threads=o.workers))
    with pipeline.auto_stop():
        batches = ((parts[0][0], sum((labels for _, labels in parts), []))
                   for parts in pipeline)
        while True:
            yield itertools.islice(batches, o.steps)


class Row(NamedTuple):
    title: str
    epochs: Callable
    option: str             # of `peers`, with the interpreter
    modules: tuple          # whose versions matter
    is_able_in_main: bool   # can decode without a thread or process of its own


def in_torch(title, epochs, *modules):
    return Row("DataLoader, " + title, epochs, "torch", ("torch", *modules),
               True)


LOADERS = {row.epochs.__name__: row for row in (
    Row("betonfs.Loader", betonfs, "torch", ("betonfs",), False),
    Row("FFCV", ffcv, "ffcv", ("ffcv",), False),
    Row("DALI, on the CPU", dali, "dali", ("nvidia.dali",), False),
    Row("SPDL, simplejpeg, OpenCV", spdl, "spdl",
        ("spdl", "simplejpeg", "cv2"), False),
    in_torch("simplejpeg, OpenCV", simplejpeg, "simplejpeg", "cv2"),
    in_torch("simplejpeg, AlbumentationsX", albumentations, "simplejpeg",
             "albumentations"),
    in_torch("torchvision", torchvision, "torchvision"),
    in_torch("torchcodec, torchvision", torchcodec, "torchcodec",
             "torchvision"),
    in_torch("PIL, torchvision", pil, "PIL", "torchvision"),
    in_torch("betonfs.Dataset, torchvision", dataset, "betonfs",
             "torchvision"))}


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


def sum_of(file, *names):
    """The sum of these numbers in /proc/PID/FILE of the family."""
    out = 0
    for pid in family():
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/{file}").open():
                name, _, value = line.partition(":")
                if name in names:
                    out += int(value.split()[0])
    return out


def memory():
    """Bytes of the family without those of files. A page that processes share
    counts once."""
    return 1024 * sum_of("smaps_rollup", "Pss_Anon", "Pss_Shmem")


def drop(paths):
    """Drop these files from the page cache. Their pages must be clean."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def look(images):
    """Figures that reveal whether the work was the same."""
    import numpy as np
    a = np.asarray(images)
    return {"shape": a.shape, "dtype": str(a.dtype),
            "mean": float(a.mean()), "std": float(a.std())}


def version_of(module):
    if module == "betonfs":
        return package().__version__
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:     # of another name
        return sys.modules[module].__version__


def spent():
    return used_s(), sum_of("io", "read_bytes")


def run(o, epochs):
    """-> per epoch: images, seconds, CPU seconds, bytes from the disk; and the
    most memory after a batch of the last epoch that does not count, and the
    figures of the first batch"""
    out, most, first = [], 0, None
    for number, epoch in zip(range(o.epochs), epochs):
        if o.cold and number >= o.warm:
            drop([o.file, *o.jpegs])
        n, before, start = 0, spent(), time.perf_counter()
        for images, labels in epoch:
            n += len(labels)
            first = first or look(images)
            if number == o.warm - 1:
                most = max(most, memory())
        took = time.perf_counter() - start
        out.append((n, took, *(b - a for a, b in zip(before, spent()))))
    return out[o.warm:], most, first


def measure(o):
    row = LOADERS[o.loader]
    epochs = row.epochs(o)
    counted, most, first = run(o, epochs)
    epochs.close()
    images, _, used, read = map(sum, zip(*counted))
    size = sum(path.stat().st_size for path in o.jpegs)
    return {"images_per_s": [n / took for n, took, _, _ in counted],
            "cpu_us_per_image": used / images * 1e6, "memory": most,
            "images": images, "wanted": len(counted) * len(o.jpegs),
            "disk": read / len(counted) / size, "first": first,
            "versions": {m: version_of(m) for m in row.modules}}


def count(o):
    """How many images of each label an epoch has."""
    found, stopped = collections.Counter(), None
    epochs = LOADERS[o.loader].epochs(o)
    try:
        for _, labels in next(epochs):
            found.update(map(int, labels))
    except ImportError:
        raise
    except Exception as e:
        stopped = f"stops: {reason(e)}"
    return {"count": found, "stopped": stopped}


def reason(error):
    """Its type and the begin of its message, in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("loader", choices=LOADERS)
    p.add_argument("folder", type=pathlib.Path, metavar="DIR")
    p.add_argument("--batch", type=int, default=256, metavar="N",
                   help="set N samples per batch (default: %(default)s)")
    p.add_argument("--workers", type=int, default=2, metavar="N",
                   help="use N threads or processes; with 0, a DataLoader "
                   "decodes in the main process (default: %(default)s)")
    p.add_argument("--epochs", type=int, default=4, metavar="N",
                   help="run N epochs (default: %(default)s)")
    p.add_argument("--warm", type=int, default=2, metavar="N",
                   help="do not count the first N epochs (default: "
                   "%(default)s)")
    p.add_argument("--cold", action="store_true",
                   help="drop the files from the page cache before each epoch "
                   "that counts")
    p.add_argument("--count", action="store_true",
                   help="print how many images of each label an epoch has")
    o = p.parse_args()
    o.file = o.folder / "data.beton"
    o.jpegs = sorted((o.folder / "jpegs").iterdir())
    o.labels = [int(path.stem.partition("-")[2]) for path in o.jpegs]
    o.steps = -(-len(o.jpegs) // o.batch)
    return o


def main():
    o = parse_arguments()
    try:
        found = (count if o.count else measure)(o)
    except ImportError as e:
        found = {"not_here": str(e)}
    except Exception as e:
        traceback.print_exc()
        found = {"failed": reason(e)}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    sys.exit(main())
