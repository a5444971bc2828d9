#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with torch alone:

    torchrun --nproc-per-node 2 train_torchrun.py TRAIN.beton VAL.beton

If --directory has a checkpoint, the run resumes from it in the middle of an epoch,
with any number of processes.
"""
import argparse
import os

import betonfs
import torch
import torch.distributed as dist
from betonfs import ops
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

SIZE = 32


def load(path: str, crop: ops.Pipeline, size: int, train: bool,
         device: torch.device, cache: int = 0) -> betonfs.Loader:
    image = crop | ops.normalize("imagenet") | ops.float() | ops.chw()
    return betonfs.Loader(path, size, seed=1, train=train, device=device,
                          cache_size=cache << 20, pipeline={"image": image, "label": "label"})


def accuracy(net: torch.nn.Module, loader: betonfs.Loader,
             device: torch.device) -> float:
    counts = torch.zeros(2, dtype=torch.int64, device=device)
    with torch.no_grad():
        for batch in loader:
            right = net(batch.image).argmax(1) == batch.label
            counts[0] += right.sum()
            counts[1] += len(right)
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", default="torchrun")
    parser.add_argument("--save-every", type=int, default=100,
                        metavar="STEPS")
    parser.add_argument(
        "--cache-size", type=int, default=0, metavar="MIB",
        help="memory of each process for a URL or a large file "
             "(default: half of the available memory)")
    a = parser.parse_args()
    dist.init_process_group()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # After init_process_group(): ranks share each epoch.
    train = load(a.train, ops.random_resized_crop(SIZE) | ops.flip(),
                 a.batch_size, True, device, a.cache_size)
    val = load(a.val, ops.center_crop(SIZE), a.batch_size, False, device)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, a.classes)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    saved = os.path.join(a.directory, "checkpoint.pt")
    if os.path.exists(saved):
        state = torch.load(saved, map_location=device)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        train.load_state_dict(state["loader"])
    wrapped = DistributedDataParallel(net)

    def save() -> None:
        # The state of a loader is the same on all ranks.
        if dist.get_rank() == 0:
            os.makedirs(a.directory, exist_ok=True)
            torch.save({"net": net.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": train.state_dict()}, saved + ".new")
            os.replace(saved + ".new", saved)

    # An epoch is the rest of one where a state was loaded.
    for epoch in range(train.state_dict()["epoch"], a.epochs):
        for step, batch in enumerate(train, train.step + 1):
            loss = functional.cross_entropy(wrapped(batch.image), batch.label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % a.save_every == 0:
                save()
        # Not the wrapped network: ranks may have unequal steps here.
        right = accuracy(net, val, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy "
                  f"{right:.4f}")
        save()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
