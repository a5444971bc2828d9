#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classify sequences of tokens: are more of them even, or odd?

    train_tokens.py --directory tokens --epochs 6

The script writes its sequences, of 4 to 120 tokens. lengths="tokens" makes
batches of sequences of similar length, and pad_to(batch) pads each batch to its
longest. The last line contains the share of padding in all batches, and the share in
batches of a random order.
"""
import argparse
import pathlib

import betonfs
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SAMPLES, WORDS, BATCH, PAD = 512, 50, 16, 0
PIPELINE = {"tokens": f"tokens | int64 | pad_to(batch, {PAD}, multiple=8)",
            "label": "label"}


def write(path: pathlib.Path) -> None:
    if path.exists():
        return
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(SAMPLES):
        tokens = rng.integers(1, WORDS, int(4 * 30 ** rng.uniform()))
        tokens = tokens.astype(np.int32)
        label = int((tokens % 2).mean() > 0.5)
        rows.append({"tokens": tokens, "label": label})
    betonfs.write(path, rows, fields={"tokens": ("int32", (None,)),
                                      "label": "int"})


class Net(nn.Module):
    """The mean of what is learned of each token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 16, padding_idx=PAD)
        self.out = nn.Linear(16, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        count = (tokens != PAD).sum(1, keepdim=True)
        logits: Tensor = self.out(self.words(tokens).sum(1) / count)
        return logits


def padding(path: pathlib.Path, lengths: str | None) -> float:
    """The share of padding in the batches of an epoch."""
    with betonfs.Loader(path, BATCH, lengths=lengths, seed=1,
                        pipeline=PIPELINE) as loader:
        batches = [batch["tokens"] == PAD for batch in loader]
    return float(torch.cat([b.flatten() for b in batches]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path,
                        default="tokens")
    parser.add_argument("--epochs", type=int, default=6)
    a = parser.parse_args()
    a.directory.mkdir(exist_ok=True)
    path = a.directory / "train.beton"
    write(path)
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 3e-2)
    with betonfs.Loader(path, BATCH, lengths="tokens", seed=1,
                        pipeline=PIPELINE) as loader:
        for epoch in range(a.epochs):
            total = 0.0
            for batch in loader:
                loss = functional.cross_entropy(net(batch["tokens"]),
                                                batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / len(loader):.3f}", flush=True)
    print(f"padding {padding(path, 'tokens'):.3f}, in random order "
          f"{padding(path, None):.3f}")


if __name__ == "__main__":
    main()
