#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with Composer:

    composer -n 2 train_composer.py TRAIN.beton VAL.beton

If --directory has a checkpoint, the run resumes from it in the middle of an epoch,
with any number of processes.
"""
import argparse
import os
from collections.abc import Iterator
from typing import Any

import betonfs
import composer
import torch
import torchmetrics
from betonfs import ops
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

SIZE = 32


class Stream(IterableDataset[Any]):
    """A Loader as Composer saves and loads the position of a dataset."""

    def __init__(self, loader: betonfs.Loader) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self, samples: int, from_beginning: bool) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(state)


def load(path: str, crop: ops.Pipeline, size: int,
         **options: Any) -> DataLoader[Any]:
    image = crop | ops.normalize("imagenet") | ops.float() | ops.chw()
    return DataLoader(Stream(betonfs.Loader(
        path, size, seed=1, pipeline={"image": image, "label": "label"},
        **options)), batch_size=None)


class Net(composer.ComposerModel):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
            torch.nn.Linear(16, classes))
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(
            classes, average="micro")

    def forward(self, batch: betonfs.Batch) -> torch.Tensor:
        logits: torch.Tensor = self.net(batch["image"])
        return logits

    def loss(self, outputs: torch.Tensor,
             batch: betonfs.Batch) -> torch.Tensor:
        return functional.cross_entropy(outputs, batch["label"])

    def get_metrics(self, is_train: bool) -> dict[str, torchmetrics.Metric]:
        return {} if is_train else {"accuracy": self.accuracy}

    def update_metric(self, batch: betonfs.Batch, outputs: torch.Tensor,
                      metric: torchmetrics.Metric) -> None:
        # Ranks have equal steps by padding, which does not count. Composer
        # makes a plain dict of a batch, and a Batch of it has the facts.
        valid = betonfs.Batch(batch).valid.to(outputs.device)
        if valid.any():
            metric.update(outputs[valid], batch["label"][valid])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", default="composer")
    parser.add_argument("--save-every", type=int, default=100,
                        metavar="STEPS")
    a = parser.parse_args()
    composer.utils.dist.initialize_dist(composer.utils.get_device(None))
    net = Net(a.classes)
    saved = os.path.join(a.directory, "latest-rank0.pt")
    trainer = composer.Trainer(
        model=net, optimizers=torch.optim.Adam(net.parameters(), lr=1e-3),
        max_duration=f"{a.epochs}ep",
        device_train_microbatch_size=a.batch_size,
        train_dataloader=load(
            a.train, ops.random_resized_crop(SIZE) | ops.flip(), a.batch_size),
        # Composer ends an evaluation with the first rank that has no batch.
        eval_dataloader=composer.Evaluator(
            label="val", device_eval_microbatch_size=a.batch_size,
            dataloader=load(a.val, ops.center_crop(SIZE), a.batch_size,
                            train=False, pad="repeat")),
        save_folder=a.directory, save_interval=f"{a.save_every}ba",
        save_overwrite=True, progress_bar=False, spin_dataloaders=False,
        load_path=saved if os.path.exists(saved) else None)
    trainer.fit()
    print(trainer.state.eval_metric_values)


if __name__ == "__main__":
    main()
