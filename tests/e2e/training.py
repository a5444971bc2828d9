# SPDX-License-Identifier: Apache-2.0
"""Trainers of torch for tests: train, and print the observed values as JSON.

    training.py KIND PATH DIR

This is a program of its own, because torch may belong to another Python.
"""
import hashlib
import json
import sys
import time

import torch
import torch.multiprocessing as mp
from torch import distributed, nn
from torch.nn.functional import cross_entropy, mse_loss

import betonfs

EPOCHS = 3
IMAGES = {"batch_size": 4, "seed": 5, "drop_last": False, "workers": 1,
          "pipeline": "image | random_translate(1) | flip | normalize(0.5, 0.5)"
                      " | float | chw"}


# --- several processes, one sequence of batches ---

class Rank:
    """One process of a job of images."""

    def __init__(self, path, checkpoint=None):
        torch.manual_seed(1)
        self.loader = betonfs.Loader(path, **IMAGES)
        self.net = nn.parallel.DistributedDataParallel(
            nn.Sequential(nn.Flatten(), nn.Linear(192, 3)))
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.02)
        self.saw = []
        if checkpoint:
            saved = torch.load(checkpoint)
            self.net.load_state_dict(saved["net"])
            self.loader.load_state_dict(saved["loader"])

    def save(self, checkpoint):
        torch.save({"net": self.net.state_dict(),
                    "loader": self.loader.state_dict()}, checkpoint)

    def step(self, batch):
        losses = cross_entropy(self.net(batch.image), batch.label,
                               reduction="none")
        loss = losses[batch.valid].sum() / max(1, int(batch.valid.sum()))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.saw.append({
            "epoch": batch.epoch, "number": batch.number,
            "ids": batch.ids.tolist(), "valid": batch.valid.tolist(),
            "pixels": hashlib.sha256(batch.image.numpy()).hexdigest(),
            "loss": losses[batch.valid].tolist()})

    def weights(self):
        return [p.tolist() for p in self.net.parameters()]


def whole(rank):
    for _ in range(EPOCHS):
        for batch in rank.loader:
            rank.step(batch)


def three_steps(rank):
    for _, batch in zip(range(3), rank.loader):
        rank.step(batch)


def the_rest(rank):
    for batch in rank.loader:
        rank.step(batch)
    for batch in rank.loader:
        rank.step(batch)


def run_rank(number, world, job, path, folder, load, save):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/{job.__name__}.store",
        rank=number, world_size=world)
    rank = Rank(path, load)
    assert (rank.loader.rank, rank.loader.world_size) == (number, world)
    job(rank)
    if save and number == 0:
        rank.save(save)
    with open(f"{folder}/{job.__name__}.{number}.json", "w") as f:
        json.dump({"saw": rank.saw, "steps": len(rank.loader),
                   "weights": rank.weights()}, f)
    distributed.barrier()
    distributed.destroy_process_group()


def run_job(world, job, path, folder, load=None, save=None):
    mp.start_processes(run_rank, (world, job, path, folder, load, save), world,
                       start_method="fork")
    out = []
    for number in range(world):
        with open(f"{folder}/{job.__name__}.{number}.json") as f:
            out.append(json.load(f))
    return out


def distributed_images(path, folder):
    checkpoint = folder + "/checkpoint.pt"
    # DDP and optimizers import it; here once, and not in each process.
    import torch._dynamo  # noqa: F401
    return {"whole": run_job(2, whole, path, folder),
            "before": run_job(2, three_steps, path, folder, save=checkpoint),
            "after": run_job(3, the_rest, path, folder, load=checkpoint)}


# --- without its data ---

def timed_images(path, folder):
    """Contains no code for synthetic datasets. Its own work is measured on a
    batch that it already has."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 512), nn.Linear(512, 3))
    optimizer = torch.optim.SGD(net.parameters(), 0.02)
    pixels, epochs = [], []

    def step(image, label):
        optimizer.zero_grad()
        cross_entropy(net(image), label).backward()
        optimizer.step()

    with betonfs.Loader(path, **{**IMAGES, "pipeline": f"image | "
                        f'"{folder}/slow.c".slow(30000) | float | chw'}) as l:
        for _ in range(EPOCHS):
            begin = time.perf_counter()
            for batch in l:
                step(batch.image, batch.label)
                pixels.append(hashlib.sha256(batch.image.numpy()).hexdigest())
            epochs.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        for _ in range(len(l)):
            step(batch.image, batch.label)
        return {"pixels": pixels, "epochs": epochs, "steps": len(l),
                "own": time.perf_counter() - begin,
                "transformed": l.stats()["stages"]["transform"]["items"]}


# --- beside torch's own DataLoader ---

class Batches:
    """A batch_sampler of torch that yields the batches it was given."""

    def __init__(self):
        self.ids = []

    def __iter__(self):
        return iter(self.ids)

    def __len__(self):
        return len(self.ids)


def sparse_of(batch):
    return {k: batch[k] for k in ("index", "weight", "target")}


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(32, 1, mode="sum")

    def loss(self, batch):
        out = self.bag(batch["index"], per_sample_weights=batch["weight"])
        return mse_loss(out[:, 0], batch["target"].float())


def text_of(batch):
    return {"bytes": batch.text.data.int(), "offsets": batch.text.offsets[:-1],
            "label": batch.label}


def collate_text(samples):
    texts = [torch.tensor(list(s["text"]), dtype=torch.int32) for s in samples]
    sizes = torch.tensor([0] + [len(t) for t in texts[:-1]])
    return {"bytes": torch.cat(texts), "offsets": sizes.cumsum(0),
            "label": torch.tensor([s["label"] for s in samples])}


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(256, 3)

    def loss(self, batch):
        return cross_entropy(self.bag(batch["bytes"], batch["offsets"].int()),
                             batch["label"])


def train(model, epochs):
    """The mean loss of each epoch, and a hash of all values."""
    torch.manual_seed(2)
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    means, values = [], hashlib.sha256()
    for batches in epochs:
        losses = []
        for batch in batches:
            for k, v in sorted(batch.items()):
                values.update(f"{k} {v.dtype} {tuple(v.shape)} ".encode())
                values.update(v.numpy().tobytes())
            loss = net.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(sum(losses) / len(losses))
    return {"loss": means, "values": values.hexdigest()}


def beside(path, model, of, collate):
    torch.set_num_threads(1)
    order = []

    def ours():
        with betonfs.Loader(path, batch_size=8, seed=3, workers=1) as loader:
            for _ in range(EPOCHS):
                order.append([])

                def batches(ids=order[-1]):
                    for batch in loader:
                        ids.append(batch.ids.tolist())
                        yield of(batch)
                yield batches()

    def torchs():
        sampler = Batches()
        loader = torch.utils.data.DataLoader(
            betonfs.Dataset(path), batch_sampler=sampler, num_workers=2,
            collate_fn=collate, persistent_workers=True)
        for sampler.ids in order:
            yield loader
    return {"ours": train(model, ours()), "torchs": train(model, torchs()),
            "order": order}


def all_beside(path, _):
    return {
        "sparse": beside(path + "/sparse.beton", Sparse, sparse_of, None),
        "text": beside(path + "/text.beton", Text, text_of, collate_text)}


KINDS = {"images": distributed_images, "beside": all_beside,
         "timed": timed_images}

if __name__ == "__main__":
    print(json.dumps(KINDS[sys.argv[1]](*sys.argv[2:4])))
