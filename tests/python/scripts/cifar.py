# SPDX-License-Identifier: Apache-2.0
"""A training as that of CIFAR-10 in FFCV's documentation: images of one size,
augmented as they are, and what is left done by torch."""
import sys

import numpy as np
import torch
from records import Pictures, Records
from torch import nn

from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import (Convert, Cutout, RandomHorizontalFlip,
                             RandomTranslate, ToDevice, ToTensor, ToTorchImage)
from ffcv.transforms.common import Squeeze
from ffcv.writer import DatasetWriter

MEAN = [125.307, 122.961, 113.8575]
STD = [51.5865, 50.847, 51.255]


class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(1, 3, 1, 1)
        self.std = torch.tensor(std).view(1, 3, 1, 1)

    def forward(self, x):
        return (x - self.mean) / self.std


def loaders(folder):
    device = torch.device("cpu")
    out = {}
    for name in ("train", "test"):
        label = [IntDecoder(), ToTensor(), ToDevice(device), Squeeze()]
        image = [SimpleRGBImageDecoder()]
        if name == "train":
            fill = tuple(map(int, MEAN))
            image += [RandomHorizontalFlip(0.01),
                      RandomTranslate(padding=2, fill=fill), Cutout(4, fill)]
        image += [ToTensor(), ToDevice(device, non_blocking=True),
                  ToTorchImage(), Convert(torch.float32),
                  Normalize(MEAN, STD)]
        order = OrderOption.RANDOM if name == "train" \
            else OrderOption.SEQUENTIAL
        out[name] = Loader(f"{folder}/{name}.beton", batch_size=32,
                           num_workers=2, order=order, seed=1,
                           drop_last=name == "train",
                           pipelines={"image": image, "label": label})
    return out


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(),
                         nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(16 * 49, 4)).to(
                             memory_format=torch.channels_last)


def main(folder, out):
    for name, n in (("train", 256), ("test", 40)):
        writer = DatasetWriter(f"{folder}/{name}.beton", {
            "image": RGBImageField(), "label": IntField()}, num_workers=2)
        writer.from_indexed_dataset(Pictures(n, lambda i: (32, 32)))
    both, records, net = loaders(folder), Records(), model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        losses = []
        for images, labels in both["train"]:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        records.losses.append(float(np.mean(losses)))
    records.look("train", (images, labels))
    records.facts["lengths"] = [len(both["train"]), len(both["test"])]
    for i, batch in enumerate(both["test"]):
        records.keep(f"same.test{i}", batch)
    records.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
