# SPDX-License-Identifier: Apache-2.0
"""Entry points of JPEGs that a loader keeps: their counts in `beton bench`, in
Python and in the daemon's metrics."""
import json

import pytest

import dumped
import make
from conftest import wait_until
from dumped import beton
from loading import Loader
from package import opener
from stats import both, jobs

pytest.importorskip("PIL.Image")

N, SIZE, EPOCHS = 12, 4, 3
SPEC = f"batch={SIZE},seed=2"
CROPS = 'image | random_resized_crop(24, scale="0.1,0.5")'
WHOLE = 'image | resize("24,24")'


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """JPEGs of 80 MCUs, and some that are too small to keep entry points."""
    sides = [(160, 128)] * N + [(40, 40)] * SIZE
    return make.Dataset(
        tmp_path_factory.mktemp("entries") / "e.beton",
        [("image", make.IMAGE)],
        [{"image": make.Image(make.JPG, w, h, dumped.jpeg(i, w, h))}
         for i, (w, h) in enumerate(sides)])


def bench(path, pipeline=CROPS, *options):
    return beton("bench", path, "--spec", SPEC, "--jobs", 1, "--epochs",
                 EPOCHS, "--pipeline", pipeline, *options).stdout


def counts(path, pipeline=CROPS, *options):
    return json.loads(bench(path, pipeline, "--json",
                            *options))["entry_points"]


def is_expected(hits, epochs=EPOCHS):
    """Crops that are prefetched when the last epoch ends may count."""
    return N * (epochs - 1) <= hits <= N * (epochs + 1)


def test_bench_counts_images_and_hits(data):
    c = counts(data.path)
    assert c["samples"] == N and is_expected(c["hits"])
    assert 0 < c["used"] <= c["capacity"]
    assert f"entry points   {N} samples in " in bench(data.path)


def test_whole_images_need_none(data):
    assert counts(data.path, WHOLE)["samples"] == 0
    assert "entry points" not in bench(data.path, WHOLE)


def test_an_index_is_kept(data, tmp_path):
    beton("optimize", data.path, tmp_path / "o.beton")
    c = counts(tmp_path / "o.beton")
    assert c["samples"] == N and is_expected(c["hits"])


def test_a_short_index_is_not_kept(data, tmp_path):
    beton("optimize", "--step=65535", data.path, tmp_path / "o.beton")
    c = counts(tmp_path / "o.beton")
    assert (c["samples"], c["hits"]) == (0, 0)


def test_one_epoch_keeps_none(data):
    with Loader(data.path, spec=SPEC, pipeline=CROPS, epochs=1) as loader:
        loader.epoch()
        assert loader.entry_points() == (0, 0, 0, 0)


def test_python_reports_them(data):
    with opener(data.path, spec=SPEC, pipeline=CROPS, tensors="numpy",
                workers=1) as load:
        with load() as loader:
            for _ in range(EPOCHS):
                for _ in loader:
                    pass
            c = loader.stats()["entry_points"]
    assert set(c) == {"capacity", "used", "samples", "hits"}
    assert 0 < c["used"] <= c["capacity"]
    assert c["samples"] == N and is_expected(c["hits"])


def test_the_daemon_counts_hits_of_ranks(data, mount, monkeypatch):
    mnt = mount(data.path)
    monkeypatch.setenv("BETON_JOB", "entries")
    with Loader(mnt, spec=SPEC, pipeline=CROPS, epochs=EPOCHS,
                workers=1) as loader:
        for _ in range(EPOCHS):
            loader.epoch()
    wait_until(lambda: jobs(mnt)["entries"]["connections"] == 0, "its end")
    rank, = jobs(mnt)["entries"]["ranks"]
    assert rank["entry_hits"] == N * (EPOCHS - 1)
    assert both(mnt)[1]["betonfs_rank_entry_hits_total",
                        (("job", "entries"), ("rank", "0"))] == \
        rank["entry_hits"]
