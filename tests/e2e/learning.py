# SPDX-License-Identifier: Apache-2.0
"""Train one small network through several loaders, and print accuracies.

    learning.py TASK DIR SEEDS

The output is JSON. DIR has train.beton, random.beton with a permutation of its
labels, and test.beton, which is not learned. If the task has folds, a label
also selects the network that does not learn an image of train.beton, and that
is tested on it. This is a program of its own, because torch may belong to
another Python.
"""
import dataclasses
import importlib.util
import io
import itertools
import json
import math
import random
import sys

import numpy as np
import torch
from PIL import Image
from torch import nn

import betonfs
from betonfile import Beton

BATCH = 40
WRONG = 3       # networks that learn labels of other images
RATIO = 3 / 4, 4 / 3
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclasses.dataclass
class Task:
    side: int
    scale: tuple    # of random_resized_crop
    epochs: int
    channels: tuple
    classes: int
    folds: bool     # labels are class + classes * fold


TASKS = {"shapes": Task(24, (0.5, 1), 12, (16, 32, 64), 10, False),
         "photos": Task(48, (0.35, 1), 30, (16, 32, 64, 64), 2, True)}


# --- loaders: generators of epochs of images and labels ---

def ours(task, folder, name="train"):
    with betonfs.Loader(f"{folder}/{name}.beton", BATCH, seed=1, workers=2,
                        batch="tuple", pipeline="image | random_resized_crop("
                        f'{task.side}, scale="{task.scale[0]},{task.scale[1]}")'
                        " | flip | normalize(imagenet) | float | chw"
                        ) as loader:
        while True:
            yield loader


def photos(path):
    """JPEG files and labels. None of the loaders has a part in it."""
    file = Beton(path)
    return [image.bytes for image in file.images()], file.labels()


def opened(jpeg):
    return Image.open(io.BytesIO(jpeg)).convert("RGB")


class Pictures:
    """Images by PIL, for torch's DataLoader."""

    def __init__(self, task, path):
        self.task = task
        self.jpegs, self.labels = photos(path)

    def __len__(self):
        return len(self.jpegs)

    def __getitem__(self, i):
        image = opened(self.jpegs[i])
        x, y, w, h = crop_of(*image.size, self.task.scale)
        image = image.resize((self.task.side, self.task.side), Image.BILINEAR,
                             (x, y, x + w, y + h))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return normalized(image), self.labels[i]


def crop_of(width, height, scale):
    for _ in range(100):
        area = width * height * random.uniform(*scale)
        ratio = math.exp(random.uniform(*map(math.log, RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if w <= width and h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, w, h
    return 0, 0, width, height


def normalized(image):
    pixels = (np.asarray(image) / 255 - MEAN) / STD
    return torch.tensor(pixels.transpose(2, 0, 1), dtype=torch.float32)


def torchs(task, folder):
    loader = torch.utils.data.DataLoader(
        Pictures(task, f"{folder}/train.beton"), BATCH, shuffle=True,
        num_workers=2, drop_last=True, persistent_workers=True,
        generator=torch.Generator().manual_seed(1))
    while True:
        yield loader


def ffcvs(task, folder):
    from ffcv.fields.decoders import (IntDecoder,
                                      RandomResizedCropRGBImageDecoder)
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, Squeeze,
                                 ToTensor, ToTorchImage)
    mean, std = (255 * np.array(v) for v in (MEAN, STD))
    crop = RandomResizedCropRGBImageDecoder((task.side, task.side), task.scale,
                                            RATIO)
    loader = Loader(f"{folder}/train.beton", BATCH, num_workers=2, seed=1,
                    order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                    pipelines={
        "image": [crop, RandomHorizontalFlip(),
                  NormalizeImage(mean, std, np.float32), ToTensor(),
                  ToTorchImage()],
        "label": [IntDecoder(), ToTensor(), Squeeze()]})
    while True:
        yield loader


# --- the network ---

def network(task):
    def layer(channels, out):
        return [nn.Conv2d(channels, out, 3, 2, 1, bias=False),
                nn.BatchNorm2d(out), nn.ReLU()]
    layers = itertools.chain.from_iterable(
        itertools.starmap(layer, itertools.pairwise((3, *task.channels))))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(task.channels[-1], task.classes))


def trained(task, epochs, loss_of, steps, fold):
    """Begins with new weights, and continues to train them in all epochs."""
    torch.manual_seed(fold)
    net = network(task)
    optimizer = torch.optim.Adam(net.parameters(), 4e-3)
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0,
                                             task.epochs * steps)
    for batches in itertools.islice(epochs, task.epochs):
        for images, labels in batches:
            if task.folds:
                learnt = labels // task.classes != fold
                images, labels = images[learnt], labels[learnt]
            loss = loss_of(net(images), labels % task.classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    return net.eval()


def middle(task, jpeg):
    image = opened(jpeg)
    side = 0.875 * min(image.size)
    x, y = ((n - side) / 2 for n in image.size)
    return normalized(image.resize((task.side, task.side), Image.BILINEAR,
                                   (x, y, x + side, y + side)))


def test_images(task, folder):
    jpegs, labels = photos(f"{folder}/test.beton")
    return torch.stack([middle(task, j) for j in jpegs]), torch.tensor(labels)


def accuracy(task, net, test, fold):
    """The mean of the classes', so that a guess has 1 / classes."""
    images, labels = test
    if task.folds:
        held = labels // task.classes == fold
        images, labels = images[held], labels[held] % task.classes
    with torch.no_grad():
        found = torch.cat([net(x).argmax(1) for x in images.split(500)])
    return np.mean([(found[labels == c] == c).double().mean().item()
                    for c in range(task.classes)])


def main(task, folder, seeds):
    torch.set_num_threads(1)
    task, test = TASKS[task], test_images(TASKS[task], folder)
    labels = torch.tensor(photos(f"{folder}/train.beton")[1])
    counts = torch.bincount(labels % task.classes)
    loss_of = nn.CrossEntropyLoss(len(labels) / task.classes / counts)
    loaders = {"ours": ours(task, folder), "torchs": torchs(task, folder),
               "random": ours(task, folder, "random")}
    if importlib.util.find_spec("ffcv"):
        loaders["ffcvs"] = ffcvs(task, folder)
    out = {}
    for name, epochs in loaders.items():
        out[name] = [accuracy(task, trained(task, epochs, loss_of,
                                            len(labels) // BATCH, seed),
                              test, seed)
                     for seed in range(WRONG if name == "random" else seeds)]
        epochs.close()
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
