# SPDX-License-Identifier: Apache-2.0
"""One small network trained through several loaders: `learning.py FOLDER SEEDS`
prints accuracies as JSON. The folder has train.beton, random.beton, whose
labels are a permutation of those, the same JPEG files and labels in train.npz,
and test images in test.npz. Its own program, for torch may be another
Python's."""
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

SIDE, EPOCHS, BATCH = 24, 12, 40
SCALE, RATIO = (0.5, 1), (3 / 4, 4 / 3)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


# --- loaders: generators of epochs of images and labels ---

def ours(folder, name="train"):
    with betonfs.Loader(f"{folder}/{name}.beton", BATCH, seed=1, workers=2,
                        batch="tuple", pipeline="image | random_resized_crop("
                        f'{SIDE}, scale="0.5,1") | flip | normalize(imagenet) '
                        "| float | chw") as loader:
        while True:
            yield loader


class Pictures:
    """Of PIL, for torch's DataLoader."""

    def __init__(self, folder):
        file = np.load(f"{folder}/train.npz")
        ends, data = file["ends"].tolist(), file["data"].tobytes()
        self.jpegs = [data[a:b] for a, b in zip([0] + ends, ends)]
        self.labels = file["labels"].tolist()

    def __len__(self):
        return len(self.jpegs)

    def __getitem__(self, i):
        image = Image.open(io.BytesIO(self.jpegs[i])).convert("RGB")
        x, y, w, h = crop_of(*image.size)
        image = image.resize((SIDE, SIDE), Image.BILINEAR,
                             (x, y, x + w, y + h))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return normalised(image), self.labels[i]


def crop_of(width, height):
    while True:
        area = width * height * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(*map(math.log, RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if w <= width and h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, w, h


def normalised(image):
    pixels = (np.asarray(image) / 255 - MEAN) / STD
    return torch.tensor(pixels.transpose(2, 0, 1), dtype=torch.float32)


def torchs(folder):
    loader = torch.utils.data.DataLoader(
        Pictures(folder), BATCH, shuffle=True, num_workers=2, drop_last=True,
        persistent_workers=True, generator=torch.Generator().manual_seed(1))
    while True:
        yield loader


def ffcvs(folder):
    from ffcv.fields.decoders import (IntDecoder,
                                      RandomResizedCropRGBImageDecoder)
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, Squeeze,
                                 ToTensor, ToTorchImage)
    mean, std = (255 * np.array(v) for v in (MEAN, STD))
    loader = Loader(f"{folder}/train.beton", BATCH, num_workers=2, seed=1,
                    order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                    pipelines={
        "image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE), SCALE, RATIO),
                  RandomHorizontalFlip(), NormalizeImage(mean, std, np.float32),
                  ToTensor(), ToTorchImage()],
        "label": [IntDecoder(), ToTensor(), Squeeze()]})
    while True:
        yield loader


# --- the network ---

def network(classes):
    def layer(channels, out):
        return [nn.Conv2d(channels, out, 3, 2, 1, bias=False),
                nn.BatchNorm2d(out), nn.ReLU()]
    return nn.Sequential(*layer(3, 16), *layer(16, 32), *layer(32, 64),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, classes))


def trained(epochs, steps, classes, seed):
    torch.manual_seed(seed)
    net = network(classes)
    optimizer = torch.optim.Adam(net.parameters(), 4e-3)
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, EPOCHS * steps)
    for batches in itertools.islice(epochs, EPOCHS):
        for images, labels in batches:
            loss = nn.functional.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    return net.eval()


def test_images(folder):
    """The middle of each; no loader has a part in them."""
    file = np.load(f"{folder}/test.npz")
    out = []
    for pixels in file["pixels"]:
        edge = (len(pixels) - SIDE) // 4
        box = (edge, edge, len(pixels) - edge, len(pixels) - edge)
        out.append(normalised(Image.fromarray(pixels).resize(
            (SIDE, SIDE), Image.BILINEAR, box)))
    return torch.stack(out), torch.tensor(file["labels"])


def accuracies(epochs, steps, test, seeds):
    """Of networks that begin with other weights, and go on in the epochs."""
    images, labels = test
    out = []
    for seed in range(seeds):
        net = trained(epochs, steps, int(labels.max()) + 1, seed)
        with torch.no_grad():
            found = torch.cat([net(x).argmax(1) for x in images.split(500)])
        out.append((found == labels).double().mean().item())
    epochs.close()
    return out


def main(folder, seeds):
    torch.set_num_threads(1)
    test = test_images(folder)
    steps = len(betonfs.Dataset(f"{folder}/train.beton")) // BATCH
    loaders = {"ours": ours(folder), "torchs": torchs(folder)}
    if importlib.util.find_spec("ffcv"):
        loaders["ffcvs"] = ffcvs(folder)
    out = {name: accuracies(epochs, steps, test, seeds)
           for name, epochs in loaders.items()}
    out["random"] = accuracies(ours(folder, "random"), steps, test, 1)
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
