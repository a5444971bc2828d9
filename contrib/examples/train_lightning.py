#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train with Lightning:  train_lightning.py TRAIN.beton VAL.beton

Lightning saves the position of the loader in its checkpoints by itself, so a run
resumes in the middle of an epoch, with any number of devices:
--save-every 100, then --resume lightning/last.ckpt --devices 2
"""
import argparse

import betonfs
import lightning
import torch
from betonfs import ops
from torch.nn import functional

SIZE = 32


class Data(lightning.LightningDataModule):
    def __init__(self, train: str, val: str, batch_size: int) -> None:
        super().__init__()
        self.paths, self.batch_size = (train, val), batch_size

    def train_dataloader(self) -> betonfs.Loader:
        # Ranks share each epoch: the loader asks torch.distributed.
        image = (ops.random_resized_crop(SIZE) | ops.flip()
                 | ops.normalize("imagenet") | ops.float() | ops.chw())
        return betonfs.Loader(self.paths[0], self.batch_size, seed=1,
                              pipeline={"image": image, "label": "label"})

    def val_dataloader(self) -> betonfs.Loader:
        image = (ops.center_crop(SIZE) | ops.normalize("imagenet")
                 | ops.float() | ops.chw())
        return betonfs.Loader(self.paths[1], self.batch_size, train=False,
                              pipeline={"image": image, "label": "label"})


class Net(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
            torch.nn.Linear(16, classes))

    def on_train_start(self) -> None:
        # A checkpoint counts steps of its own number of devices. If there were
        # more of them, the epoch would end early; with fewer it would not
        # validate.
        done = self.trainer.fit_loop.epoch_loop.batch_progress.current
        done.increment_by(self.trainer.train_dataloader.step - done.ready)

    def training_step(self, batch: betonfs.Batch, _: int) -> torch.Tensor:
        loss = functional.cross_entropy(self.net(batch.image), batch.label)
        self.log("loss", loss, batch_size=batch.num_samples)
        return loss

    def validation_step(self, batch: betonfs.Batch, _: int) -> None:
        right = self.net(batch.image).argmax(1) == batch.label
        self.log("accuracy", right.float().mean(), batch_size=batch.num_samples,
                 sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("val")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--directory", default="lightning")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--save-every", type=int, metavar="STEPS")
    parser.add_argument("--resume")
    a = parser.parse_args()
    checkpoint = lightning.pytorch.callbacks.ModelCheckpoint(
        a.directory, "last", every_n_train_steps=a.save_every,
        enable_version_counter=False)
    trainer = lightning.Trainer(max_epochs=a.epochs, devices=a.devices,
                                logger=False, callbacks=[checkpoint],
                                enable_progress_bar=False)
    trainer.fit(Net(a.classes), Data(a.train, a.val, a.batch_size),
                ckpt_path=a.resume)
    print({k: round(float(v), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
