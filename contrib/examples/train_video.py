#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classify the direction of a moving disc, from windows of short videos:

    train_video.py --directory videos --epochs 4

The script writes its videos: lists of frames of differing lengths, each frame a
JPEG. A window of 8 frames, every second one, begins at a random frame; one crop
is drawn for all of its frames.
"""
import argparse
import pathlib

import betonfs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

SIDE, SIZE, SAMPLES, FRAMES = 40, 32, 192, 8
PIPELINE = {
    "video": f"video | decode(rgb) | window({FRAMES}, stride=2) | "
             f'random_resized_crop({SIZE}, scale="0.6,1") | '
             "normalize(0.5, 0.25) | chw",
    "label": "label"}


def video(i: int) -> list[NDArray[np.uint8]]:
    """A disc that moves left, right, up or down."""
    rng = np.random.default_rng(i)
    step = np.array([(0, -1), (0, 1), (-1, 0), (1, 0)][i % 4])
    y, x = np.mgrid[:SIDE, :SIDE]
    count = int(rng.integers(16, 24))
    center = np.array((SIDE / 2, SIDE / 2)) - step * count / 2
    colors = rng.integers((150, 150, 150), 256), rng.integers((100,) * 3)
    frames = []
    for k in range(count):
        cy, cx = center + step * k
        disc = ((y - cy) ** 2 + (x - cx) ** 2 < 36)[..., None]
        pixels = np.where(disc, colors[0], colors[1])
        frames.append(pixels.astype(np.uint8))
    return frames


def write(path: pathlib.Path) -> None:
    if not path.exists():
        betonfs.write(path, [{"video": video(i), "label": i % 4}
                             for i in range(SAMPLES)],
                      fields={"video": "frames", "label": "int"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path,
                        default="videos")
    parser.add_argument("--epochs", type=int, default=4)
    a = parser.parse_args()
    a.directory.mkdir(exist_ok=True)
    write(a.directory / "train.beton")
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv3d(3, 8, (1, 5, 5), (1, 4, 4)), nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * FRAMES * 49, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    with betonfs.Loader(a.directory / "train.beton", 16, pipeline=PIPELINE,
                        seed=1) as loader:
        for epoch in range(a.epochs):
            total = 0.0
            for batch in loader:
                frames = batch["video"]         # (16, FRAMES, 3, SIZE, SIZE)
                loss = functional.cross_entropy(
                    net(frames.transpose(1, 2)), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
