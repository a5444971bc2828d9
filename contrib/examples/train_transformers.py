#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with the Trainer of transformers:

    train_transformers.py TRAIN.beton VAL.beton

The outputs of the pipeline have the names of the model's arguments. The Trainer
gets its batches of get_train_dataloader(). Checkpoints have the position of the
loader; if --directory has one, the run resumes from it, with any number of processes.
"""
import argparse
import os

import betonfs
import torch
import transformers
from betonfs import ops
from torch.nn import functional
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import get_last_checkpoint

SIZE = 32


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


class Position(transformers.TrainerCallback, ExportableState):
    """Has the Trainer save the position of the loader in its own state."""

    def __init__(self, loader: betonfs.Loader) -> None:
        self.loader = loader

    def state(self) -> dict[str, object]:
        return {"args": {}, "attributes": self.loader.state_dict()}


class Trainer(transformers.Trainer):
    def load(self, path: str, crop: ops.Pipeline,
             train: bool) -> betonfs.Loader:
        image = ("image" | crop | ops.normalize("imagenet") | ops.float()
                 | ops.chw())
        return betonfs.Loader(
            path, self.args.train_batch_size, seed=self.args.seed, train=train,
            device=self.args.device,
            pipeline={"pixel_values": image, "labels": "label"})

    def get_train_dataloader(self) -> betonfs.Loader:
        loader = self.load(self.train_dataset.path,
                           ops.random_resized_crop(SIZE) | ops.flip(), True)
        checkpoint = get_last_checkpoint(self.args.output_dir)
        if checkpoint:
            self.place(loader, os.path.join(checkpoint, "trainer_state.json"))
        self.add_callback(Position(loader))
        return loader

    def place(self, loader: betonfs.Loader, path: str) -> None:
        state = transformers.TrainerState.load_from_json(path)
        loader.load_state_dict(
            state.stateful_callbacks["Position"]["attributes"])
        # The Trainer computes the epoch from steps, and a checkpoint counts
        # steps of its own number of processes.
        each = self.args.gradient_accumulation_steps
        state.global_step = loader.step // each + \
            loader.state_dict()["epoch"] * -(-len(loader) // each)
        with self.args.main_process_first(local=False):
            if self.is_world_process_zero():
                state.save_to_json(path)

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        # Ranks may have unequal steps here, and the Trainer's own evaluation
        # waits for all ranks in each step.
        counts = torch.zeros(2, device=self.args.device)
        loader = self.load(self.eval_dataset.path, ops.center_crop(SIZE),
                           False)
        with torch.no_grad(), loader:
            for batch in loader:
                found = self.model(**batch)["logits"].argmax(1)
                right = found == batch.labels
                counts[0] += right.sum()
                counts[1] += len(right)
        right, samples = self.accelerator.reduce(counts)
        metrics = {"eval_accuracy": float(right / samples)}
        self.log(metrics)
        return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", default="transformers")
    parser.add_argument("--save-every", type=int, default=100,
                        metavar="STEPS")
    a = parser.parse_args()
    os.makedirs(a.directory, exist_ok=True)
    trainer = Trainer(
        model=Net(a.classes), train_dataset=betonfs.Dataset(a.train),
        eval_dataset=betonfs.Dataset(a.val),
        args=transformers.TrainingArguments(
            # The loader resumes by itself, so that nothing is skipped.
            ignore_data_skip=True,
            output_dir=a.directory, num_train_epochs=a.epochs, seed=1,
            per_device_train_batch_size=a.batch_size, logging_steps=1,
            eval_strategy="epoch", save_steps=a.save_every, report_to=[],
            disable_tqdm=True))
    result = trainer.train(
        resume_from_checkpoint=get_last_checkpoint(a.directory))
    print(result.metrics["train_loss"])


if __name__ == "__main__":
    main()
