# SPDX-License-Identifier: Apache-2.0
"""One rank of test_nodes.py: takes the rest of an epoch, and writes what it got.

node_rank.py SOURCE OUT ORDER STATE SAVE

torchrun starts it, and torch.distributed has its rank. Otherwise RANK and WORLD_SIZE
have it, and torch is not needed. STATE is a file to resume from, or empty. The state
after SAVE steps becomes part of the output."""
import hashlib
import json
import os
import sys

BATCH = 8
# A loader requests batches of the next epoch before its program ends. A small
# cache limits their bytes.
CACHE = 8 << 20


def options(order):
    """The arguments of every loader of this dataset, also that of the test."""
    return {"batch_size": BATCH, "order": order, "seed": 5, "drop_last": False,
            "tensors": "numpy", "workers": 1, "cache_size": CACHE, "pipeline": {
                "image": "random_resized_crop(32) | flip | normalize(imagenet)"
                         " | float | chw", "label": "label"}}


def seen(batch):
    """Numbers, samples and a checksum of all tensors of a batch."""
    h = hashlib.sha256()
    for name in sorted(batch):
        a = batch[name]
        h.update(f"{name} {a.dtype} {a.shape} ".encode() + a.tobytes())
    return {"epoch": batch.epoch, "number": batch.number,
            "ids": batch.ids.tolist(), "valid": batch.valid.tolist(),
            "sum": int.from_bytes(h.digest()[:6], "little")}


def has_torchrun():
    return "TORCHELASTIC_RUN_ID" in os.environ


def place():
    """The arguments of a loader for its rank. torchrun needs none, because the
    loader asks torch.distributed."""
    if has_torchrun():
        import torch.distributed as dist
        dist.init_process_group("gloo")
        return {}
    return {"rank": int(os.environ["RANK"]),
            "world_size": int(os.environ["WORLD_SIZE"])}


def sum_of_all(own):
    """The sum of a number over all ranks; None without torchrun."""
    if not has_torchrun():
        return None
    import torch
    import torch.distributed as dist
    total = torch.tensor([own])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return int(total)


def main(source, out, order, state, save):
    import betonfs
    saved, got = None, []
    with betonfs.Loader(source, **options(order), **place()) as loader:
        if state:
            with open(state) as f:
                loader.load_state_dict(json.load(f))
        for batch in loader:
            got.append(seen(batch))
            if len(got) == int(save):
                saved = loader.state_dict()
        rank, world = loader.rank, loader.world_size
    total = sum_of_all(sum(b["sum"] for b in got))
    with open(f"{out}/{rank}.json", "w") as f:
        json.dump({"rank": rank, "world": world, "batches": got,
                   "state": saved, "total": total}, f)


if __name__ == "__main__":
    main(*sys.argv[1:])
