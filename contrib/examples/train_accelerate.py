#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with accelerate:  accelerate launch train_accelerate.py TRAIN.beton

accelerator.prepare() returns a Loader as it is, because the loader does both of
its tasks: device= places batches, and ranks share each epoch.
"""
import argparse
import json
import os

import accelerate
import betonfs
import torch
from betonfs import ops
from torch.nn import functional


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--folder", default="accelerate")
    a = parser.parse_args()
    accelerator = accelerate.Accelerator()
    image = (ops.random_resized_crop(32) | ops.flip()
             | ops.normalize("imagenet") | ops.float() | ops.chw())
    # After the Accelerator, which starts torch.distributed.
    loader = betonfs.Loader(a.train, a.batch_size, seed=1,
                            pipeline={"image": image, "label": "label"},
                            device=accelerator.device)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, a.classes))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    net, optimizer = accelerator.prepare(net, optimizer)
    place = os.path.join(a.folder, "loader.json")
    if os.path.exists(place):
        accelerator.load_state(a.folder)
        with open(place) as f:
            loader.load_state_dict(json.load(f))
    # An epoch is the rest of one where a state was loaded.
    for epoch in range(loader.state_dict()["epoch"], a.epochs):
        for batch in loader:
            loss = functional.cross_entropy(net(batch.image), batch.label)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        accelerator.print(f"epoch {epoch}: loss {float(loss):.4f}")
        accelerator.save_state(a.folder)
        if accelerator.is_main_process:
            with open(place, "w") as f:
                json.dump(loader.state_dict(), f)


if __name__ == "__main__":
    main()
