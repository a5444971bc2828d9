#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with the Trainer of transformers:  train_transformers.py TRAIN.beton

The outputs of the pipeline have the names of the model's arguments. The Trainer
gets its batches of get_train_dataloader().
"""
import argparse

import betonfs
import torch
import transformers
from betonfs import ops
from torch.nn import functional


class Net(torch.nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
            torch.nn.Linear(16, classes))

    def forward(self, pixel_values: torch.Tensor,
                labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.net(pixel_values)
        return {"loss": functional.cross_entropy(logits, labels),
                "logits": logits}


class Trainer(transformers.Trainer):
    def get_train_dataloader(self) -> betonfs.Loader:
        image = ("image" | ops.random_resized_crop(32) | ops.flip()
                 | ops.normalize("imagenet") | ops.float() | ops.chw())
        return betonfs.Loader(
            self.train_dataset.path, self.args.train_batch_size,
            seed=self.args.seed, device=self.args.device,
            pipeline=f"pixel_values = {image}; labels = label")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--folder", default="transformers")
    a = parser.parse_args()
    trainer = Trainer(
        model=Net(a.classes), train_dataset=betonfs.Dataset(a.train),
        args=transformers.TrainingArguments(
            output_dir=a.folder, num_train_epochs=a.epochs,
            per_device_train_batch_size=a.batch_size, logging_steps=1,
            save_strategy="no", report_to=[], disable_tqdm=True))
    print(trainer.train().metrics["train_loss"])


if __name__ == "__main__":
    main()
