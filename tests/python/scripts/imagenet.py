# SPDX-License-Identifier: Apache-2.0
"""A training as that of ImageNet in FFCV's documentation: photographs of many
sizes, cropped as they are decoded, at a resolution that grows."""
import sys

import numpy as np
import torch
from records import Pictures, Records
from torch import nn

from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import (CenterCropRGBImageDecoder,
                                   RandomResizedCropRGBImageDecoder)
from ffcv.loader import Loader, OrderOption
from ffcv.pipeline.operation import Operation
from ffcv.transforms import (NormalizeImage, RandomHorizontalFlip, Squeeze,
                             ToDevice, ToTensor, ToTorchImage)
from ffcv.writer import DatasetWriter

MEAN = np.array([0.485, 0.456, 0.406]) * 255
STD = np.array([0.229, 0.224, 0.225]) * 255
DEVICE = torch.device("cpu")


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        self.decoder = RandomResizedCropRGBImageDecoder((16, 16),
                                                        scale=(0.9, 1))
        self.train = self.loader(
            "jpg", OrderOption.QUASI_RANDOM, [self.decoder,
                                              RandomHorizontalFlip(0.01)])

    def loader(self, name, order, ops, dtype=np.float32, **options):
        pipeline: list[Operation] = [
            *ops, NormalizeImage(MEAN, STD, dtype), ToTensor(),
            ToDevice(DEVICE, non_blocking=True), ToTorchImage()]
        labels: list[Operation] = [IntDecoder(), ToTensor(), Squeeze(),
                                   ToDevice(DEVICE, non_blocking=True)]
        return Loader(f"{self.folder}/{name}.beton", batch_size=32,
                      num_workers=2, order=order, os_cache=True, drop_last=True,
                      pipelines={"image": pipeline, "label": labels},
                      distributed=False, **options)


def main(folder, out):
    pictures = Pictures(256, lambda i: (48 + i % 7, 48 + i % 5))
    for mode in ("raw", "jpg"):
        DatasetWriter(f"{folder}/{mode}.beton", {
            "image": RGBImageField(write_mode=mode, max_resolution=50,
                                   jpeg_quality=90),
            "label": IntField()}, num_workers=2).from_indexed_dataset(
                pictures, chunksize=10)
    trainer, records = Trainer(folder), Records()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(5), nn.Flatten(),
                        nn.Linear(16 * 25, 4)).to(
                            memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch, resolution in enumerate((16, 16, 24, 24, 24)):
        trainer.decoder.output_size = (resolution, resolution)
        losses = []
        for images, labels in trainer.train:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        records.losses.append(float(np.mean(losses)))
        records.look(f"train{epoch}", (images, labels))
    crop = [CenterCropRGBImageDecoder((24, 24), ratio=224 / 256)]
    for mode, dtype, how in (("raw", np.float32, "close"),
                             ("raw", np.float16, "same"),
                             ("jpg", np.float32, "near")):
        loader = trainer.loader(mode, OrderOption.SEQUENTIAL, crop[:], dtype,
                                indices=range(64))
        for i, batch in enumerate(loader):
            records.keep(f"{how}.{mode}{np.dtype(dtype).name}{i}", batch)
    records.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
