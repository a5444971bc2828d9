# SPDX-License-Identifier: Apache-2.0
"""mkfs.beton --append and --sums."""
import os
import pathlib
import random
import resource
import subprocess
import time

import numpy as np
import pytest

import betonfile
import make
import parts

Image = pytest.importorskip("PIL.Image")

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).absolute()
# Moments at which a run is ended; more find rarer faults.
MOMENTS = int(os.environ.get("BETON_MOMENTS", 16))


def run(*args, **how):
    return subprocess.run([BUILD / "mkfs.beton", *map(str, args)], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60, **how)


def mkfs(*args):
    r = run(*args)
    assert r.returncode == 0, r.stderr
    return betonfile.Beton(args[-1]).check()


def images(root, classes, n=4, seed=0):
    rng = np.random.default_rng(seed)
    for c in classes:
        (root / c).mkdir(parents=True)
        for i in range(n):
            few = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
            Image.fromarray(few).resize((64, 48), Image.BICUBIC).save(
                root / c / f"{i}.jpg", quality=90)
    return root


def names(path):
    import json
    text = subprocess.run([BUILD / "beton", "info", "--json", path], text=True,
                          capture_output=True, check=True).stdout
    return [f.get("classes") for f in json.loads(text)["fields"]]


@pytest.mark.quick
def test_appended_samples_follow_and_classes_are_united(tmp_path):
    first = images(tmp_path / "a", ["bee", "dog"])
    second = images(tmp_path / "b", ["ant", "dog"], seed=1)
    out = tmp_path / "x.beton"
    old = mkfs("--mode=keep", first, out).values()
    new = mkfs("--mode=keep", second, tmp_path / "b.beton").values()
    got = mkfs("--mode=keep", "--append", second, out).values()
    assert got[:8] == old
    assert [v[0] for v in got[8:]] == [v[0] for v in new]
    assert names(out)[1] == ["bee", "dog", "ant"]
    # ant is 0 among the new classes, and dog 1.
    assert [v[1] for v in got[8:]] == [2] * 4 + [1] * 4


def test_a_number_without_a_name_gets_none(tmp_path):
    """7 has no name among the new samples, and must not become 'bear'."""
    old = parts.labels(tmp_path / "x.beton", [0], list("abcdefg") + ["bear"])
    new = parts.labels(tmp_path / "n.beton", [1, -1, 9], ["b", "c"])
    odd = parts.labels(tmp_path / "o.beton", [7], ["b", "c"])
    out = tmp_path / "x.beton"
    r = run("--append", odd.path, out)
    assert r.returncode == 1 and "7 has no class name" in r.stderr and \
        "'bear'" in r.stderr
    got = mkfs("--append", new.path, old.path)
    assert [v[0] for v in got.values()] == [0, 2, -1, 9]


@pytest.mark.parametrize("old, new, words", [
    (["a"], None, "has class names, but that of the new samples has none"),
    (None, ["a"], "has no class names, but that of the new samples has some")])
def test_names_on_one_side_only_are_reported(tmp_path, old, new, words):
    path = parts.labels(tmp_path / "x.beton", [0, 3], old).path
    r = run("--append", parts.labels(tmp_path / "n.beton", [0], new).path, path)
    assert r.returncode == 0 and words in r.stderr
    assert parts.classes(tmp_path / "x.beton") == old


def test_several_datasets_are_united_by_name(tmp_path):
    """The labels of later sources get the numbers of all names."""
    out = tmp_path / "x.beton"
    made = [parts.labels(tmp_path / f"{i}.beton", numbers, known).path
            for i, (numbers, known) in enumerate([
                ([0, 1, -1], ["cat", "dog"]), ([0, 1, 5], ["dog", "cat"]),
                ([0], ["emu"]), ([2, 0], ["cat", "dog", "emu"])])]
    got = mkfs(*made, out)
    assert [v[0] for v in got.values()] == [0, 1, -1, 1, 0, 5, 2, 2, 0]
    assert parts.classes(out) == ["cat", "dog", "emu"]
    # Labels that are no class of their file must not become one.
    odd = parts.labels(tmp_path / "odd.beton", [2], ["cat"]).path
    r = run(*made, odd, out)
    assert r.returncode == 1 and \
        "odd.beton: sample 0: field label: 2 has no class name" in r.stderr
    none = parts.labels(tmp_path / "none.beton", [0]).path
    r = run(made[0], none, out)
    assert r.returncode == 1 and "none.beton: field 'label' has no class " \
        f"names, but in {made[0]} it has some" in r.stderr


def test_appending_is_merging(tmp_path):
    whole = images(tmp_path / "a", ["bee", "dog"], n=20)
    out = tmp_path / "x.beton"
    mkfs("--mode=keep", whole, tmp_path / "whole.beton")
    mkfs("--mode=keep", "--subset=0-13", whole, out)
    mkfs("--mode=keep", "--subset=13-40", "--append", whole, out)
    assert out.read_bytes() == (tmp_path / "whole.beton").read_bytes()


def test_fields_match_by_name_and_type(tmp_path):
    photos = images(tmp_path / "a", ["bee"])
    out = tmp_path / "x.beton"
    mkfs("--fields=kind=label,image", photos, out)
    r = run("--append", photos, out)
    assert r.returncode == 1 and "field 'kind': the new samples lack it" in r.stderr
    r = run("--append", "--fields=image,kind:float=label", photos, out)
    assert r.returncode == 1 and "field 'kind': is int, but in the new samples " \
        "it is float" in r.stderr
    r = run("--append", "--fields=image,kind=label,also=label", photos, out)
    assert r.returncode == 1 and "the dataset lacks it" in r.stderr
    mkfs("--append", "--fields=image,kind=label", photos, out)
    assert len(betonfile.Beton(out).values()) == 8


def test_small_pages_grow(tmp_path):
    """As with beton merge: a dataset of other writers may have small pages."""
    old = make.numbers(tmp_path / "x.beton", 5)
    (tmp_path / "n.csv").write_text("n\n7\n8\n")
    mkfs("--append", "--fields=label=n", tmp_path / "n.csv", old.path)
    got = betonfile.Beton(old.path).values()
    assert [v[0] for v in got] == [0, 1, 2, 3, 4, 7, 8]


def test_appending_to_what_is_no_dataset_fails(tmp_path):
    photos = images(tmp_path / "a", ["bee"])
    r = run("--append", photos, tmp_path / "absent.beton")
    assert r.returncode == 1 and "absent.beton" in r.stderr
    (tmp_path / "text").write_text("hello")
    assert run("--append", photos, tmp_path / "text").returncode == 1
    assert (tmp_path / "text").read_text() == "hello"


@pytest.fixture
def grown(tmp_path):
    """A dataset of ints and bytes, and what it is with 64 samples more."""
    old = tmp_path / "dir" / "x.beton"
    old.parent.mkdir()
    source = make.every_type(tmp_path / "every.beton", samples=120).path
    fields = "--fields=label,blob,meta"
    mkfs(fields, source, old)
    before = old.read_bytes()
    command = ["--append", fields, "--subset=0-64", source, old]
    start = time.monotonic()
    mkfs(*command)
    took = time.monotonic() - start
    after = old.read_bytes()
    old.write_bytes(before)
    return old, command, before, after, took


def test_a_kill_leaves_the_old_file_whole(grown):
    old, command, before, after, took = grown
    rng = random.Random(1)
    for _ in range(MOMENTS):
        process = subprocess.Popen([BUILD / "mkfs.beton", *map(str, command)],
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.2 * took))
        process.kill()
        process.wait()
        now = old.read_bytes()
        assert now in (before, after)
        assert os.listdir(old.parent) == ["x.beton"]
        old.write_bytes(before)
    mkfs(*command)
    assert old.read_bytes() == after


def test_no_space_leaves_the_old_file_whole(grown):
    old, command, before, after, _ = grown
    rng = random.Random(2)

    def limited(size):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    for _ in range(MOMENTS):
        size = rng.randrange(4096, len(after) - 1)
        r = run(*command, preexec_fn=limited(size))
        assert r.returncode == 1 and "x.beton" in r.stderr, r
        assert old.read_bytes() == before
        assert os.listdir(old.parent) == ["x.beton"]
    mkfs(*command)
    assert old.read_bytes() == after


def test_sums_lie_beside_the_dataset(tmp_path):
    photos = images(tmp_path / "a", ["bee"])
    out = tmp_path / "x.beton"
    mkfs("--sums", photos, out)
    sums = tmp_path / "x.beton.sums"
    assert sums.stat().st_size > 40
    r = run("--quality=50", photos, out)
    assert r.returncode == 0 and "checksums of the replaced file" in r.stderr
    assert "fsck.beton --update-sums" in r.stderr and not sums.exists()
    mkfs("--sums", photos, out)
    old = sums.read_bytes()
    r = run("--quality=50", "--sums", photos, out)
    assert r.returncode == 0 and not r.stderr and sums.read_bytes() != old
