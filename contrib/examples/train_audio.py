#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classify tones, from random excerpts of sounds of differing lengths:

    train_audio.py --directory sounds --epochs 5

The script writes its sounds: 16-bit samples, 16,000 a second. A batch has a
quarter of a second of each, at 8,000 samples a second, between -1 and 1, with a
random gain in decibels; what is shorter is padded with silence.
"""
import argparse
import pathlib

import betonfs
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

RATE, SAMPLES, CLASSES = 16000, 192, 4
PIPELINE = (f"sound | excerpt({RATE // 4}) | float | gain({1 / 32768}) | "
            'gain("-6,6", db) | resample(16000, 8000) | '
            f"pad_to({RATE // 8})")


def sound(i: int) -> NDArray[np.int16]:
    """A tone with noise, of 0.15 to 0.6 seconds."""
    rng = np.random.default_rng(i)
    at = np.arange(int(rng.integers(RATE * 3 // 20, RATE * 3 // 5))) / RATE
    pitch = 300 * 2 ** (i % CLASSES + rng.uniform(-0.3, 0.3))
    wave = 0.2 * np.sin(2 * np.pi * (pitch * at + rng.uniform()))
    noise = rng.normal(0, 0.05, len(at))
    return ((wave + noise) * 32767).astype(np.int16)


def write(path: pathlib.Path) -> None:
    if not path.exists():
        betonfs.write(path, [{"sound": sound(i), "label": i % CLASSES}
                             for i in range(SAMPLES)],
                      fields={"sound": ("int16", (None,)), "label": "int"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path,
                        default="sounds")
    parser.add_argument("--epochs", type=int, default=5)
    a = parser.parse_args()
    a.directory.mkdir(exist_ok=True)
    write(a.directory / "train.beton")
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv1d(1, 16, 32, 4), nn.ReLU(), nn.Conv1d(16, 32, 16, 4),
        nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
        nn.Linear(32, CLASSES))
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    with betonfs.Loader(a.directory / "train.beton", 16, pipeline=PIPELINE,
                        seed=1) as loader:
        for epoch in range(a.epochs):
            total = 0.0
            for batch in loader:
                waves = batch["sound"]          # (16, RATE / 8)
                loss = functional.cross_entropy(net(waves[:, None]),
                                                batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
