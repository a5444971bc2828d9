#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with Ray Train:  train_ray.py TRAIN.beton VAL.beton --workers 4

Each worker opens the same file and takes its share. If --directory has a checkpoint,
the run resumes from it in the middle of an epoch, with any number of workers.
"""
import argparse
import os
import tempfile
from typing import Any

import betonfs
import ray.train
import ray.train.torch
import torch
import torch.distributed as dist
from betonfs import ops
from torch.nn import functional

SIZE = 32


# Ray pickles functions, and cannot pickle one that names both torch and ops,
# which it takes for torch.ops.
def load(path: str, size: int, train: bool) -> betonfs.Loader:
    crop = ops.random_resized_crop(SIZE) | ops.flip() if train \
        else ops.center_crop(SIZE)
    image = crop | ops.normalize("imagenet") | ops.float() | ops.chw()
    # Ray Train has started torch.distributed: ranks share each epoch.
    return betonfs.Loader(path, size, seed=1, train=train,
                          device=ray.train.torch.get_device(),
                          pipeline={"image": image, "label": "label"})


def accuracy(net: torch.nn.Module, loader: betonfs.Loader) -> float:
    counts = torch.zeros(2, device=ray.train.torch.get_device())
    with torch.no_grad():
        for batch in loader:
            right = net(batch.image).argmax(1) == batch.label
            counts[0] += right.sum()
            counts[1] += len(right)
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def work(a: dict[str, Any]) -> None:
    train = load(a["train"], a["batch_size"], True)
    val = load(a["val"], a["batch_size"], False)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, a["classes"])).to(ray.train.torch.get_device())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    saved = ray.train.get_checkpoint()
    if saved:
        with saved.as_directory() as directory:
            state = torch.load(os.path.join(directory, "state.pt"))
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        train.load_state_dict(state["loader"])
    wrapped = ray.train.torch.prepare_model(net)

    def report(**metrics: float) -> None:
        """All workers report; the first one adds a checkpoint."""
        if ray.train.get_context().get_world_rank():
            ray.train.report(metrics)
            return
        with tempfile.TemporaryDirectory() as directory:
            torch.save({"net": net.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": train.state_dict()},
                       os.path.join(directory, "state.pt"))
            ray.train.report(metrics, checkpoint=ray.train.Checkpoint(directory))

    # An epoch is the rest of one where a state was loaded.
    for epoch in range(train.state_dict()["epoch"], a["epochs"]):
        for step, batch in enumerate(train, train.step + 1):
            loss = functional.cross_entropy(wrapped(batch.image), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % a["save_every"] == 0:
                report(epoch=epoch, loss=loss.item())
        # Not the wrapped network: workers may have unequal steps here.
        report(epoch=epoch, loss=loss.item(), accuracy=accuracy(net, val))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", type=os.path.abspath)
    parser.add_argument("val", type=os.path.abspath)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", type=os.path.abspath,
                        default="ray")
    parser.add_argument("--save-every", type=int, default=100,
                        metavar="STEPS")
    parser.add_argument("--workers", type=int, default=1)
    a = parser.parse_args()
    trainer = ray.train.torch.TorchTrainer(
        work, train_loop_config=vars(a),
        scaling_config=ray.train.ScalingConfig(
            num_workers=a.workers, use_gpu=torch.cuda.is_available()),
        run_config=ray.train.RunConfig(name="betonfs", storage_path=a.directory))
    print(trainer.fit().metrics)


if __name__ == "__main__":
    main()
