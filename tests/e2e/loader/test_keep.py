# SPDX-License-Identifier: Apache-2.0
"""cache() in a pipeline: it changes no bit of any tensor, and later epochs hit
the decoded-image cache."""
import json

import pytest

import dumped
import make
from dumped import beton, digest, dump
from loading import Loader

pytest.importorskip("PIL.Image")

N, SIZE = 60, 5
SPEC = f"batch={SIZE},seed=3,drop_last=0"
TAIL = "random_resized_crop(12) | flip | normalize(imagenet) | chw"
PLACES = [f"image | %s {TAIL}", f"image | decode(exact) | %s {TAIL}",
          f"image | resize(19) | %s {TAIL}"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """JPEG files, and raw images, every fourth."""
    return dumped.photos(tmp_path_factory.mktemp("keep") / "p.beton", N)


@pytest.mark.parametrize("place", PLACES)
def test_an_epoch_is_the_same_with_room_for_all_some_and_none(
        data, mount, tmp_path, place):
    options = ["--spec", SPEC, "--epoch", 2]
    dump(data.path, tmp_path / "want", *options, "--pipeline", place % "")
    want = digest(tmp_path / "want")
    mnt = mount(data.path)
    for size in ("64MiB", "80KiB"):
        for workers in (1, 2, 4):
            out = tmp_path / f"{size}.{workers}"
            dump(mnt if workers == 2 else data.path, out, *options,
                 "--jobs", workers, "--pipeline",
                 place % f"cache(decoded, {size}) |")
            assert digest(out) == want


def epochs_of(path, pipeline, epochs, workers, **options):
    """(epoch, number) -> (ids, pixels), and what was kept in the end."""
    out = {}
    with Loader(path, spec=SPEC, pipeline=pipeline, workers=workers,
                epochs=epochs, **options) as loader:
        for _ in range(epochs):
            while b := loader.next():
                image = b.outputs[0]
                assert image.name == b"image"
                out[b.epoch, b.number] = b.ids[:b.num_samples], image.bytes()
                loader.release(b)
        return out, loader.kept()


def raw_are_kept(place):
    return "resize(19)" in place


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_epochs_of_one_loader_are_the_same_and_hit_the_cache(
        data, place, workers):
    epochs = 3
    want, kept = epochs_of(data.path, place % "", epochs, workers)
    assert len(want) == epochs * N // SIZE and not kept.size
    got, kept = epochs_of(data.path, place % "cache(decoded, 64MiB) |",
                          epochs, workers)
    assert got == want
    assert kept.samples == (N if raw_are_kept(place) else N - N // 4)
    # Batches of two epochs may be in the making at once.
    most = kept.samples * (epochs - 1)
    assert most - 2 * SIZE <= kept.hits <= most
    got, some = epochs_of(data.path, place % "cache(decoded, 80KiB) |",
                          epochs, workers)
    assert got == want
    assert 0 < some.samples < kept.samples
    assert some.used <= some.size == 80 << 10


def bench(source, *options, code=0):
    return beton("bench", source, "--spec", SPEC, *options, code=code)


@pytest.mark.parametrize("place", PLACES)
def test_bench_reports_cached_images_and_hits(data, place):
    epochs, samples = 4, N if raw_are_kept(place) else N - N // 4
    options = ["--epochs", epochs, "--jobs", 1, "--pipeline",
               place % "cache(decoded, 64MiB) |"]
    for until in ("decode", "all"):
        d = json.loads(bench(data.path, *options, "--until", until,
                             "--json").stdout)
        # One worker takes rows in order: each sample is made once. Two batches
        # are prefetched when the last epoch ends.
        assert d["image_cache"]["samples"] == samples
        assert 0 <= d["image_cache"]["hits"] - samples * (epochs - 1) <= 2 * SIZE
        assert d["image_cache"]["size"] == 64 << 20
        assert 0 < d["image_cache"]["used"] < 2 << 20
        assert d["jit"] == "prebuilt"
    printed = bench(data.path, *options).stdout
    assert f"image cache    {samples} samples in" in printed


def test_without_a_cache_nothing_is_reported_of_one(data):
    options = ["--epochs", 2, "--pipeline", f"image | {TAIL}"]
    assert json.loads(bench(data.path, *options, "--json").stdout)["image_cache"] \
        is None
    assert "image_cache" not in bench(data.path, *options).stdout


def test_more_than_the_memory_there_is_is_refused(data):
    r = bench(data.path, "--pipeline", "cache(decoded, 60T) | resize(8)",
              code=1)
    assert r.stderr.count("\n") == 1
    assert "cache() of 62914560 MiB" in r.stderr
    r = bench(data.path, "--pipeline", "flip | cache(decoded, 1GiB)", code=1)
    assert "column 8: cache must stand before" in r.stderr


def test_a_bad_sample_is_the_same_in_every_epoch(tmp_path):
    """Cut off below what some crops need: those are there, others are not."""
    d = make.Dataset(tmp_path / "cut.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.JPG, 64, 64,
                             dumped.jpeg(i, 64, 64)[:-(1 + 25 * i)])}
        for i in range(N)], 1 << 16)
    found = []
    for cache in ("", "cache(decoded, 64MiB) |"):
        got, kept = epochs_of(d.path, PLACES[0] % cache, 4, 2,
                              on_error=2)
        found.append(got)
    assert found[0] == found[1]
    zeros = sum(not any(pixels) for _, pixels in found[0].values())
    assert kept.samples < N and kept.hits
    assert zeros < len(found[0])


def test_cached_images_serve_all_sizes_of_a_ramp(data):
    ramp = 'image | cache(decoded, 64MiB) | random_resized_crop("0=9,2=12")'
    got, kept = epochs_of(data.path, ramp, 3, 2)
    want, _ = epochs_of(data.path, ramp.replace("cache(decoded, 64MiB) |", ""),
                        3, 2)
    assert got == want and len({len(pixels) for _, pixels in got.values()}) == 2
    assert kept.size == 64 << 20 and kept.samples == N - N // 4
    assert kept.hits >= 2 * kept.samples - 2 * SIZE


def test_cached_operations_cannot_change_with_the_epoch(data):
    r = bench(data.path, "--pipeline",
              'resize("0=20,3=24") | cache(decoded, 1MiB) | resize(8)', code=1)
    assert "cannot change, as in epoch 3" in r.stderr
