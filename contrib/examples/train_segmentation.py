#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small U-Net on shapes and their masks:

    train_segmentation.py --directory shapes --seeds 3

The script writes the shapes itself. --loader torchvision trains the same network
on the same file with the transforms of torchvision v2 instead, for comparison.
Each seed prints the mean intersection over union of the classes.
"""
import argparse
import io
import pathlib
from collections.abc import Iterator
from typing import Any

import betonfs
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

CLASSES, SIDE, SIZE = 4, 64, 48
COLORS = np.array([[60, 60, 60], [190, 80, 80], [80, 190, 80], [80, 80, 190]])
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)


def shapes(i: int) -> dict[str, NDArray[np.uint8]]:
    """An image of a rectangle, a disc and a diamond, and its classes."""
    rng = np.random.default_rng(i)
    y, x = np.mgrid[:SIDE, :SIDE]
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for kind in rng.permutation(3):
        cy, cx = rng.integers(10, SIDE - 10, 2)
        dy, dx = abs(y - cy), abs(x - cx)
        inside = [np.maximum(dy, dx) < 9, dy ** 2 + dx ** 2 < 100,
                  dy + dx < 12][kind]
        mask[inside] = kind + 1
    colors = COLORS + rng.integers(-40, 41, (CLASSES, 3))
    image = colors[mask] + rng.normal(0, 12, (SIDE, SIDE, 3))
    return {"image": image.clip(0, 255).astype(np.uint8), "mask": mask}


def write(path: pathlib.Path, first: int, count: int) -> None:
    if not path.exists():
        betonfs.write(path, [shapes(first + i) for i in range(count)],
                      mode="raw", fields={"image": "image", "mask": "mask"})


Batches = Iterator[tuple[Tensor, Tensor]]


def batches(path: pathlib.Path, seed: int, epoch: int, size: int) -> Batches:
    """Images and masks with the same crop and flip, from betonfs."""
    loader = betonfs.Loader(path, size, seed=seed, pipeline={
        ("image", "mask | mask | int64"):
            f'random_resized_crop({SIZE}, scale="0.3,1") | flip | '
            "normalize(0.5, 0.25) | chw"})
    with loader:
        loader.set_epoch(epoch)
        for batch in loader:
            yield batch["image"], batch["mask"]


def import_torchvision() -> Any:
    """torchvision, also where its compiled operators are missing."""
    try:
        from torchvision.transforms import v2
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in "nms", "qnms":
            library.define(f"{name}(Tensor dets, Tensor scores, "
                           "float iou_threshold) -> Tensor")
        from torchvision.transforms import v2
    return v2


def torchvision_batches(path: pathlib.Path, seed: int, epoch: int,
                        size: int) -> Batches:
    v2 = import_torchvision()
    from torchvision import tv_tensors
    transform = v2.Compose([
        v2.RandomResizedCrop(SIZE, scale=(0.3, 1)), v2.RandomHorizontalFlip(),
        v2.ToDtype({tv_tensors.Image: torch.float32, "others": None},
                   scale=True), v2.Normalize(MEAN, STD)])
    torch.manual_seed(1000 * seed + epoch)
    data = betonfs.Dataset(path)
    rows = []
    for i in torch.randperm(len(data)).tolist():
        mask = np.array(Image.open(io.BytesIO(data[i]["mask"])))
        image = torch.as_tensor(np.array(data[i]["image"]))
        rows.append(transform(tv_tensors.Image(image.permute(2, 0, 1)),
                              tv_tensors.Mask(torch.as_tensor(mask))))
    for k in range(0, len(rows) - size + 1, size):
        part = rows[k:k + size]
        yield (torch.stack([row[0] for row in part]),
               torch.stack([row[1] for row in part]).long())


def block(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1),
                         nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    """Two levels of 12 and 24 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.top, self.low = block(3, 12), block(12, 24)
        self.up, self.out = block(36, 12), nn.Conv2d(12, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = self.top(x)
        low = self.low(functional.max_pool2d(top, 4))
        low = functional.interpolate(low, scale_factor=4, mode="bilinear")
        logits: Tensor = self.out(self.up(torch.cat((top, low), 1)))
        return logits


def mean_iou(net: nn.Module, path: pathlib.Path) -> float:
    """Over the classes of all validation images, whole."""
    both, either = torch.zeros(CLASSES), torch.zeros(CLASSES)
    net.eval()
    with torch.no_grad(), betonfs.Loader(
            path, 16, train=False, pipeline={
                ("image", "mask"): f'resize("{SIDE},{SIDE}") | '
                                   "normalize(0.5, 0.25) | chw"}) as loader:
        for batch in loader:
            found, true = net(batch["image"]).argmax(1), batch["mask"]
            for c in range(CLASSES):
                both[c] += ((found == c) & (true == c)).sum()
                either[c] += ((found == c) | (true == c)).sum()
    return float((both / either).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path,
                        default="shapes")
    parser.add_argument("--loader", choices=("betonfs", "torchvision"),
                        default="betonfs")
    parser.add_argument("--samples", type=int, default=160)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    a = parser.parse_args()
    a.directory.mkdir(exist_ok=True)
    train, val = a.directory / "train.beton", a.directory / "val.beton"
    write(train, 0, a.samples)
    write(val, 1 << 20, 64)
    source = batches if a.loader == "betonfs" else torchvision_batches
    for seed in range(a.seeds):
        torch.manual_seed(seed)
        net = UNet()
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        for epoch in range(a.epochs):
            net.train()
            for image, mask in source(train, seed, epoch, 16):
                loss = functional.cross_entropy(net(image), mask)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"seed {seed}: IoU {mean_iou(net, val):.3f}", flush=True)


if __name__ == "__main__":
    main()
