#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with accelerate:

    accelerate launch train_accelerate.py TRAIN.beton VAL.beton

accelerator.prepare() returns a Loader as it is, because the loader does both of
its tasks: device= places batches, and ranks share each epoch. Checkpoints have
the position of a registered loader. If --directory has a checkpoint, the run resumes
from it, with any number of processes.
"""
import argparse
import os

import accelerate
import betonfs
import torch
from betonfs import ops
from torch.nn import functional

SIZE = 32


def accuracy(accelerator: accelerate.Accelerator, net: torch.nn.Module,
             loader: betonfs.Loader) -> float:
    counts = torch.zeros(2, device=accelerator.device)
    # Ranks may have unequal steps, which a wrapped network waits for.
    net = accelerator.unwrap_model(net)
    with torch.no_grad():
        for batch in loader:
            right = net(batch.image).argmax(1) == batch.label
            counts[0] += right.sum()
            counts[1] += len(right)
    right, samples = accelerator.reduce(counts)
    return float(right / samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", default="accelerate")
    parser.add_argument("--save-every", type=int, default=100,
                        metavar="STEPS")
    a = parser.parse_args()
    accelerator = accelerate.Accelerator()
    image = (ops.random_resized_crop(SIZE) | ops.flip()
             | ops.normalize("imagenet") | ops.float() | ops.chw())
    # After the Accelerator, which starts torch.distributed.
    loader = betonfs.Loader(a.train, a.batch_size, seed=1,
                            pipeline={"image": image, "label": "label"},
                            device=accelerator.device)
    image = (ops.center_crop(SIZE) | ops.normalize("imagenet") | ops.float()
             | ops.chw())
    val = betonfs.Loader(a.val, a.batch_size, train=False,
                         pipeline={"image": image, "label": "label"},
                         device=accelerator.device)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, a.classes))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    net, optimizer = accelerator.prepare(net, optimizer)
    accelerator.register_for_checkpointing(loader)
    if os.path.isdir(a.directory):
        accelerator.load_state(a.directory)
    # An epoch is the rest of one where a state was loaded.
    for epoch in range(loader.state_dict()["epoch"], a.epochs):
        for step, batch in enumerate(loader, loader.step + 1):
            loss = functional.cross_entropy(net(batch.image), batch.label)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            if step % a.save_every == 0:
                accelerator.save_state(a.directory)
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy "
                          f"{accuracy(accelerator, net, val):.4f}")
        accelerator.save_state(a.directory)


if __name__ == "__main__":
    main()
