#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learn from two views of each image, without labels, as SimCLR does:

    train_contrastive.py --directory views --epochs 6

The script writes its images. One decoding makes both views: each has a crop, a
flip and colors of its own.
"""
import argparse
import pathlib

import betonfs
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SIDE, SIZE, SAMPLES = 48, 32, 256
PIPELINE = (f'image | multi_crop({SIZE}, views=2, scale="0.3,1") | flip | '
            "color_jitter(0.4, 0.4, 0.4, like=torchvision) | "
            "normalize(0.5, 0.25) | float | chw")


def write(path: pathlib.Path) -> None:
    """Images of waves, each with its own colors and direction."""
    if path.exists():
        return
    rng = np.random.default_rng(0)
    at = np.linspace(0, 2 * np.pi, SIDE)
    images = []
    for _ in range(SAMPLES):
        across, down = rng.uniform(1, 8, 2)
        wave = np.sin(across * at[None, :, None] + down * at[:, None, None])
        colors = rng.uniform(60, 195, 3) + rng.uniform(-60, 60, 3) * wave
        images.append({"image": colors.clip(0, 255).astype(np.uint8)})
    betonfs.write(path, images)


def loss_of(z: Tensor) -> Tensor:
    """The cross entropy of finding an image's other view among all of the
    batch. z: (views of all images, features), view by view."""
    z = functional.normalize(z)
    likeness = (z @ z.T / 0.2).fill_diagonal_(-torch.inf)
    others = torch.arange(len(z)).roll(len(z) // 2)
    return functional.cross_entropy(likeness, others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path,
                        default="views")
    parser.add_argument("--epochs", type=int, default=6)
    a = parser.parse_args()
    a.directory.mkdir(exist_ok=True)
    write(a.directory / "train.beton")
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 32))
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    with betonfs.Loader(a.directory / "train.beton", 32, pipeline=PIPELINE,
                        seed=1) as loader:
        for epoch in range(a.epochs):
            total = 0.0
            for batch in loader:
                views = batch["image"]          # (32, 2, 3, SIZE, SIZE)
                loss = loss_of(net(views.transpose(0, 1).flatten(0, 1)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
