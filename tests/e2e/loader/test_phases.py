# SPDX-License-Identifier: Apache-2.0
"""Numbers of a pipeline that change with the epoch: each epoch equals that of
a loader with these numbers, on a file and on a mount, for every reader."""
import json

import numpy as np
import pytest

import dumped
from dumped import beton, digest, dump
from loading import Loader

pytest.importorskip("PIL.Image")

N = 22
SPEC = "batch=4,seed=5,drop_last=0"
STEPS = 6
SIZES = {0: (16, 16), 1: (16, 16), 2: (24, 20), 3: (24, 20), 4: (8, 8)}


def text(size, magnitude):
    return (f'image | random_resized_crop({size}) | flip | '
            f'brightness({magnitude}, 1) | normalize(imagenet) | float | chw; '
            'label | int32')


SCHEDULE = text('"0=16,2=24,20,4=8"', '"0=0,1=0.4"')


def plain(epoch):
    return text('"%d,%d"' % SIZES[epoch], 0.4 if epoch else 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("phases") / "p.beton", N)


@pytest.fixture(scope="module")
def wanted(data, tmp_path_factory):
    """epoch -> batches, by loaders with the numbers of the epoch."""
    out = tmp_path_factory.mktemp("wanted")
    return {e: dump(data.path, out / str(e), "--spec", SPEC, "--epoch", e,
                    "--pipeline", plain(e)) for e in SIZES}


def check(got, want, epoch):
    """A batch of the loader is that of a dump."""
    assert got.epoch == epoch and got.ids[:got.num_samples] == want.ids
    names = [got.outputs[i].name.decode() for i in range(got.num_outputs)]
    assert names[:2] == ["image", "label"]
    for i, name in enumerate(names):
        if name in want.offsets:
            assert got.outputs[i].bytes() == want.outputs[name].tobytes()
        else:
            array = got.outputs[i].array()
            assert array.dtype == want.outputs[name].dtype
            assert array.shape == want.outputs[name].shape
            assert array.tobytes() == want.outputs[name].tobytes()


@pytest.mark.parametrize("epoch", SIZES)
def test_an_epoch_is_that_of_its_numbers(data, mount, wanted, tmp_path, epoch):
    for b in wanted[epoch]:
        assert b.outputs["image"].shape[1:] == (3, *SIZES[epoch])
    dump(data.path, tmp_path / "plain", "--spec", SPEC, "--epoch", epoch,
         "--pipeline", plain(epoch))
    want = digest(tmp_path / "plain")
    for out, source in (("file", data.path), ("mnt", mount(data.path))):
        dump(source, tmp_path / out, "--spec", SPEC, "--epoch", epoch,
             "--pipeline", SCHEDULE)
        assert digest(tmp_path / out) == want


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("where", ["file", "zero-copy", "direct"])
def test_borders_are_crossed(data, mount, wanted, where, workers):
    how = {}
    source = data.path
    if where != "file":
        source, how = mount(data.path), {"delivery": where}
    # More batches are prefetched than an epoch has.
    with Loader(source, spec=SPEC, pipeline=SCHEDULE, workers=workers,
                prefetch=STEPS + 3, **how) as loader:
        for epoch in SIZES:
            for want in wanted[epoch]:
                got = loader.next()
                check(got, want, epoch)
                loader.release(got)
            assert loader.next() is None


@pytest.mark.parametrize("on_mount", [False, True])
def test_a_state_continues_in_its_epoch(data, mount, wanted, on_mount):
    source = mount(data.path) if on_mount else data.path
    states = {}
    with Loader(source, spec=SPEC, pipeline=SCHEDULE) as loader:
        for epoch in SIZES:
            for i in range(STEPS):
                loader.release(loader.next())
                states[epoch, i + 1] = loader.state()
            assert loader.next() is None
    for (epoch, i), state in states.items():
        if i < STEPS:
            with Loader(source, spec=SPEC, pipeline=SCHEDULE) as loader:
                loader.load(state)
                check(loader.next(), wanted[epoch][i], epoch)
        elif epoch + 1 in SIZES:
            with Loader(source, spec=SPEC, pipeline=SCHEDULE) as loader:
                loader.load(state)
                check(loader.next(), wanted[epoch + 1][0], epoch + 1)


def test_dump_continues_in_its_epoch(data, tmp_path):
    options = ["--spec", SPEC, "--state", tmp_path / "s"]
    dump(data.path, tmp_path / "x", *options, "--epoch", 3, "--batches", ":2",
         "--pipeline", SCHEDULE)
    dump(data.path, tmp_path / "x", *options, "--pipeline", SCHEDULE)
    dump(data.path, tmp_path / "want", "--spec", SPEC, "--epoch", 3,
         "--pipeline", plain(3))
    assert digest(tmp_path / "x") == digest(tmp_path / "want")


@pytest.mark.parametrize("options", [
    [], ["--until", "decode"], ["--until", "read"], ["--source", "constant"]])
def test_bench_runs_through_phases(data, mount, options):
    for source in (data.path, mount(data.path)):
        r = beton("bench", source, "--spec", SPEC, "--epochs", 5, "--json",
                  "--pipeline", SCHEDULE, *options)
        assert len(json.loads(r.stdout)["images_per_s"]) == 4


@pytest.mark.parametrize("pipeline, expects", [
    ('resize("4=160")', "column 9: size of resize: the first epoch is 0"),
    ('resize("0=8,5=9,5=10")', "column 17: size of resize: epoch 5 does not "
                               "come after 5"),
    ('resize("0=8,9=0")', "column 15: size of resize takes whole numbers"),
    ('resize(0=8)', "column 8: numbers that change with the epoch are quoted"),
    # Found out at once, although epoch 7 is far away.
    ('random_resized_crop(8, scale="0=0.5,1,7=1,0.5")',
     "the least scale"),
    ('resize("' + ",".join(f"{i}={i + 8}" for i in range(65)) + '")',
     "they can change 63 times"),
])
def test_mistakes_are_reported(data, tmp_path, pipeline, expects):
    r = beton("dump", data.path, "--out", tmp_path / "x", "--pipeline",
              pipeline, code=1)
    assert expects in r.stderr


def test_an_own_operation_gets_the_number_of_the_epoch(data, tmp_path):
    (tmp_path / "own.c").write_text(
        "static void set(float v[3], const struct beton_at *at, float a)\n"
        "{ v[0] = a; v[1] = at->width; v[2] = at->height; }\n")
    for epoch, want in ((0, [0.5, 9, 7]), (1, [0.5, 5, 5]), (8, [3, 5, 5])):
        b, = dump(data.path, tmp_path / str(epoch), "--batches", ":1",
                  "--spec", SPEC, "--epoch", epoch, "--pipeline",
                  'image | center_crop("0=7,9,1=5") | float | '
                  f'"{tmp_path}/own.c".set("0=0.5,2=3")')
        assert (b.outputs["image"] == np.array(want)).all()
