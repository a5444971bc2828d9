# SPDX-License-Identifier: Apache-2.0
"""Lightning: an epoch, a resumed epoch and a loader made again have the batches
of an uninterrupted run."""
import itertools
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

lightning = pytest.importorskip("lightning")
torch = pytest.importorskip("torch")

N, SIZE = 103, 10


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("lightning") / "n.beton"
    betonfs.write(path, [{"x": float(i)} for i in range(N)], {"x": "float"})
    return path


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.seen = torch.nn.Linear(1, 1), []

    def training_step(self, batch, _):
        self.seen.append((batch.epoch, *batch.ids.tolist()))
        return self.net(batch.x.float()[:, None]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Data(lightning.LightningDataModule):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def train_dataloader(self):
        return betonfs.Loader(self.path, SIZE, seed=1, pipeline="x")


def run(path, folder, epochs, resume=None, every=None, **trainer):
    keep = lightning.pytorch.callbacks.ModelCheckpoint(
        folder, "{step}", every_n_train_steps=every, save_top_k=-1,
        enable_version_counter=False)
    net = Net()
    lightning.Trainer(
        max_epochs=epochs, logger=False, callbacks=[keep], accelerator="cpu",
        enable_progress_bar=False, enable_model_summary=False, **trainer,
    ).fit(net, Data(path), ckpt_path=resume)
    return net.seen


@pytest.fixture
def whole(path, tmp_path):
    """The batches of three epochs."""
    seen = run(path, tmp_path / "whole", 3)
    assert [k for k, _ in itertools.groupby(b[0] for b in seen)] == [0, 1, 2]
    assert len({b[1:] for b in seen}) == len(seen)
    return seen


def test_the_default_checkpoint_resumes_at_the_next_epoch(path, tmp_path, whole):
    seen = run(path, tmp_path, 1)
    for epochs in 2, 3:
        last = max(tmp_path.glob("*.ckpt"), key=lambda p: p.stat().st_mtime_ns)
        seen += run(path, tmp_path, epochs, last)
    assert seen == whole


@pytest.mark.parametrize("every", [3, 7])
def test_a_checkpoint_within_an_epoch_resumes_there(path, tmp_path, whole, every):
    run(path, tmp_path, 2, every=every)
    for saved in tmp_path.glob("*.ckpt"):
        step = int(saved.stem.partition("=")[2])
        seen = run(path, tmp_path / "resumed", 3, saved)
        assert seen == whole[step:]


def test_loaders_that_are_made_again_go_on(path, tmp_path, whole):
    assert run(path, tmp_path, 3,
               reload_dataloaders_every_n_epochs=1) == whole
