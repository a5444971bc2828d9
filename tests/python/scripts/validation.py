# SPDX-License-Identifier: Apache-2.0
"""Train a small network, and print its accuracy as each rank of each world
size computes it, by metrics that do not use batch.valid.

    validation.py FILE BATCH RANKS...
"""
import importlib.util
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile

import betonfs
import torch
import torch.distributed as dist

HERE = pathlib.Path(__file__).resolve()
PIPELINE = {"image": "image | float | chw", "label": "label"}


def example(name):
    spec = importlib.util.spec_from_file_location(
        name, HERE.parents[3] / "contrib/examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained(path, batch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = betonfs.Loader(path, batch, pipeline=PIPELINE, rank=0, world_size=1)
    for _ in range(20):
        for b in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(b.image), b.label).backward()
            optimizer.step()
    loader.close()
    return net


def torchmetric(net, loader):
    from torchmetrics.classification import MulticlassAccuracy
    metric = MulticlassAccuracy(3, average="micro")
    with torch.no_grad():
        for b in loader:
            metric.update(net(b.image), b.label)
    return float(metric.compute())


def work(path, batch, net, rank, world, store, to):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=world)
    loader = betonfs.Loader(path, batch, train=False, pipeline=PIPELINE)
    records = {"batches": len(loader), "example": example(
        "train_torchrun").accuracy(net, loader, torch.device("cpu"))}
    if importlib.util.find_spec("torchmetrics"):
        records["torchmetrics"] = torchmetric(net, loader)
    to.put(records)
    loader.close()
    dist.destroy_process_group()


def main(path, batch, *worlds):
    torch.set_num_threads(1)
    net = trained(path, int(batch))
    # Forked, so that each has imported torch already.
    context = multiprocessing.get_context("fork")
    for world in map(int, worlds):
        queue = context.SimpleQueue()
        with tempfile.TemporaryDirectory() as folder:
            ranks = [context.Process(target=work, args=(
                path, int(batch), net, rank, world,
                os.path.join(folder, "store"), queue))
                for rank in range(world)]
            for process in ranks:
                process.start()
            for process in ranks:
                process.join()
            if any(process.exitcode for process in ranks):
                sys.exit(f"world {world} failed")
            print(json.dumps([queue.get() for _ in ranks]))


if __name__ == "__main__":
    main(*sys.argv[1:])
