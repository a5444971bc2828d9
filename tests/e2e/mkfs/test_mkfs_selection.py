# SPDX-License-Identifier: Apache-2.0
"""mkfs.beton: datasets as sources, and the choice and order of samples and
fields."""
import collections
import os
import pathlib
import random
import subprocess
import time

import numpy as np
import pytest

import betonfile
import make

Image = pytest.importorskip("PIL.Image")

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).absolute()
CLASSES = ["ant", "bee", "cat", "dog", "red fox"]


def run(*args):
    return subprocess.run([BUILD / "mkfs.beton", *map(str, args)], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60)


def mkfs(*args):
    r = run(*args)
    assert r.returncode == 0, r.stderr
    return betonfile.Beton(args[-1]).check()


def refused(*args, code=1):
    r = run(*args)
    assert r.returncode == code and r.stderr.count("\n") == 1, r
    return r.stderr


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """45 images, 9 of each class; the images of a class differ in width."""
    root = tmp_path_factory.mktemp("selection") / "photos"
    rng = np.random.default_rng(3)
    for c in CLASSES:
        (root / c).mkdir(parents=True)
        for i in range(9):
            few = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
            Image.fromarray(few).resize((20 + i, 30), Image.BICUBIC).save(
                root / c / f"{i}.jpg", quality=95)
    return root


@pytest.fixture(scope="module")
def kept(photos):
    out = photos.parent / "kept.beton"
    mkfs("--mode=keep", photos, out)
    return out


def labels(beton):
    return [sample[1] for sample in beton.values()]


def widths(beton):
    return [sample[0].width for sample in beton.values()]


def test_a_dataset_copied_is_the_same_file(kept, tmp_path):
    mkfs(kept, tmp_path / "copy.beton")
    assert (tmp_path / "copy.beton").read_bytes() == kept.read_bytes()


@pytest.mark.parametrize("mode", ["jpg", "raw"])
def test_pixels_and_jpegs_stay_as_they_are(photos, tmp_path, mode):
    mkfs("--mode", mode, photos, tmp_path / "a.beton")
    mkfs(tmp_path / "a.beton", tmp_path / "b.beton")
    assert (tmp_path / "a.beton").read_bytes() == \
        (tmp_path / "b.beton").read_bytes()


def test_a_quality_or_a_size_encodes_again(kept, tmp_path):
    low = mkfs("--quality=20", kept, tmp_path / "low.beton")
    small = mkfs("--max-resolution=16", kept, tmp_path / "small.beton")
    old = betonfile.Beton(kept).values()
    for a, b, c in zip(old, low.values(), small.values()):
        assert len(b[0].bytes) < len(a[0].bytes)
        assert b[0].width == a[0].width and c[0].height == 16


def test_class_names_and_fields_stay(kept, tmp_path):
    mkfs(kept, tmp_path / "copy.beton")
    shown = [subprocess.run([BUILD / "beton", "info", "--json", p], text=True,
                            capture_output=True, check=True).stdout
             for p in (kept, tmp_path / "copy.beton")]
    assert "red fox" in shown[0] and shown[0] == shown[1]


def test_every_type_of_field_stays(tmp_path):
    source = make.every_type(tmp_path / "every.beton").path
    fields = "--fields=label,score,blob,meta,vec,tens"
    got = mkfs(fields, source, tmp_path / "copy.beton")
    old = betonfile.Beton(source)
    assert [s[:2] + s[3:] for s in old.values()] == got.values()
    kinds = [f.type for f in old.fields]
    assert [f.type for f in got.fields] == kinds[:2] + kinds[3:]


@pytest.mark.parametrize("where, keeps", [
    ("label in 1,3", lambda c, w: c in (1, 3)),
    ('label in bee,"red fox"', lambda c, w: c in (1, 4)),
    ("label not in ant, bee", lambda c, w: c > 1),
    ("label == 2", lambda c, w: c == 2),
    ("label=dog", lambda c, w: c == 3),
    ("label != cat", lambda c, w: c != 2),
    ("label >= 1 and label<3", lambda c, w: 1 <= c < 3),
    ("label <= 1", lambda c, w: c <= 1),
    ("label>3", lambda c, w: c > 3),
])
@pytest.mark.parametrize("source", ["photos", "kept"])
def test_where(source, where, keeps, request, tmp_path):
    every = betonfile.Beton(request.getfixturevalue("kept")).values()
    got = mkfs("--mode=keep", "--where", where,
               request.getfixturevalue(source), tmp_path / "w.beton")
    assert [(s[0].bytes, s[1]) for s in got.values()] == \
        [(s[0].bytes, s[1]) for s in every if keeps(s[1], s[0].width)]


@pytest.mark.parametrize("where, words", [
    ("lable in 1", "no field 'lable'; did you mean `label'?"),
    ("label in wolf", "'wolf' is no number and no class of field 'label'"),
    ("label", "expected one of ==, !="),
    ("label in", "expected a name or a value"),
    ("label in 1 or label in 2", "expected 'and' or the end at byte 11"),
    ("image == 1", "neither numbers nor texts"),
    ('label in "bee', "expected a closing quote"),
    ("label > 4", "no sample meets it"),
    ("", "expected a name"),
])
def test_a_wrong_condition_is_one_line(kept, tmp_path, where, words):
    assert words in refused("--where", where, kept, tmp_path / "x.beton")
    assert not (tmp_path / "x.beton").exists()


@pytest.mark.parametrize("where, keeps", [
    ('label == "20"', [1]), ("label == 20", [1]), ('label == "3"', [2]),
    ("label == 2", [2]), ('label in "100",20', [0, 1]), ('label > 0', [1, 2])])
def test_classes_that_are_called_by_numbers(tmp_path, where, keeps):
    for name in "100", "20", "3":
        (tmp_path / "src" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "src" / name / "1.png")
    got = mkfs("--where", where, tmp_path / "src", tmp_path / "w.beton")
    assert [s[1] for s in got.values()] == keeps


def test_a_number_and_a_name_that_differ_are_refused(tmp_path):
    for i in range(12):
        (tmp_path / "src" / str(i)).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "src" / str(i) / "1.png")
    out = tmp_path / "w.beton"      # the classes are 0 1 10 11 2 3 ...
    assert "'10' is the name of class 2, and the number of class \"8\"" in \
        refused("--where", "label == 10", tmp_path / "src", out)
    got = mkfs("--where", 'label in "10", 0', tmp_path / "src", out)
    assert [s[1] for s in got.values()] == [0, 2]
    assert 'is no number and no class' in \
        refused("--where", 'label == "12"', tmp_path / "src", out)


def test_subsets(kept, tmp_path):
    every = betonfile.Beton(kept).values()
    (tmp_path / "ids").write_text("7\n3\n44\n")
    some = mkfs("--subset=4-9", kept, tmp_path / "a.beton")
    listed = mkfs("--subset", tmp_path / "ids", kept, tmp_path / "b.beton")
    both = mkfs("--subset=4-13", "--where=label in 1", kept,
                tmp_path / "c.beton")
    assert [s[0].bytes for s in some.values()] == \
        [s[0].bytes for s in every[4:9]]
    assert [s[0].bytes for s in listed.values()] == \
        [every[i][0].bytes for i in (7, 3, 44)]
    assert [s[0].bytes for s in both.values()] == \
        [s[0].bytes for s in every[9:13]]
    for wrong in "4-46", "9-9":
        assert "A < B <= 45" in refused(f"--subset={wrong}", kept,
                                        tmp_path / "d.beton")
    (tmp_path / "ids").write_text("45\n")
    assert "ids" in refused("--subset", tmp_path / "ids", kept,
                            tmp_path / "d.beton")


def test_fields_are_renamed_dropped_and_converted(kept, tmp_path):
    got = mkfs("--fields=class=label, picture:bytes=image, kind:float=label",
               kept, tmp_path / "f.beton")
    old = betonfile.Beton(kept).values()
    assert [f.name for f in got.fields] == ["class", "picture", "kind"]
    for a, b in zip(old, got.values()):
        assert b == (a[1], a[0].bytes, float(a[1]))
    back = mkfs("--mode=keep", "--fields=image:image=picture",
                tmp_path / "f.beton", tmp_path / "g.beton")
    assert [s[0].bytes for s in back.values()] == [s[0].bytes for s in old]


@pytest.mark.parametrize("fields, words", [
    ("imge", "no field 'imge'; did you mean `image'?"),
    ("picture", "no field 'picture'; it has image, label"),
    ("label:json", "'label' cannot become 'json': expected one of int, float"),
    ("a_name_of_seventeen=label", "a name has 1 to 16"),
    ("label,label", "there are two of them"),
])
def test_wrong_fields_are_one_line(kept, tmp_path, fields, words):
    assert words in refused("--fields", fields, kept, tmp_path / "x.beton")


def test_sorted_and_clustered(kept, tmp_path):
    mixed = tmp_path / "mixed.beton"
    mkfs("--shuffle", "--seed=5", kept, mixed)
    assert labels(betonfile.Beton(mixed)) != sorted(labels(betonfile.Beton(kept)))
    by_label = mkfs("--sort=label", mixed, tmp_path / "s.beton")
    assert labels(by_label) == [c for c in range(5) for _ in range(9)]
    # Equal keys keep their order.
    assert widths(by_label)[:9] == [
        s[0].width for s in betonfile.Beton(mixed).values() if s[1] == 0]
    many = tmp_path / "many.beton"
    (tmp_path / "ids").write_text("\n".join(str(i % 45) for i in range(900)))
    mkfs("--subset", tmp_path / "ids", kept, many)
    runs = labels(mkfs("--cluster=label", many, tmp_path / "c.beton"))
    lengths = collections.Counter()
    start = 0
    for i in range(1, 901):
        if i == 900 or runs[i] != runs[start]:
            lengths[i - start] += 1
            start = i
    # 180 samples of a class are five runs of 32 and one of 20; neighbors of
    # one class look like one run.
    assert all(n % 32 in (0, 20) or (n - 20) % 32 == 0 for n in lengths)
    assert 10 < sum(lengths.values()) <= 30
    again = mkfs("--cluster=label", many, tmp_path / "d.beton")
    other = mkfs("--cluster=label", "--seed=1", many, tmp_path / "e.beton")
    assert labels(again) == runs and labels(other) != runs
    assert "neither numbers" in refused("--sort=image", kept,
                                        tmp_path / "x.beton")
    assert "choose one order" in run("--sort=label", "--shuffle", kept,
                                     tmp_path / "x.beton").stderr


def test_shards_are_the_parts_of_one_run(photos, tmp_path):
    options = ["--mode=proportion=0.5", "--shuffle", "--seed=2", "--limit=40"]
    whole = mkfs(*options, photos, tmp_path / "whole.beton").values()
    parts = []
    for i in range(7):
        parts += mkfs(*options, f"--shard={i}/7", photos,
                      tmp_path / f"{i}.beton").values()
    assert parts == whole and len(whole) == 40
    for bad in ("7/7", "0/0", "1", "-1/3", "1/"):
        assert "I/N" in run(f"--shard={bad}", photos, tmp_path / "x").stderr


SHARDS = 8


def shard(options, i, photos, folder):
    """The command that writes a shard to part I."""
    return [BUILD / "mkfs.beton", "-q", *options, f"--shard={i}/{SHARDS}",
            photos, folder / f"{i}.beton"]


def merge(folder, out, code=0):
    r = subprocess.run(
        [BUILD / "beton", "merge", "-q",
         *(folder / f"{i}.beton" for i in range(SHARDS)), out], text=True,
        capture_output=True, timeout=60)
    assert r.returncode == code, r.stderr
    return r


@pytest.mark.parametrize("options", [
    [], ["--mode=raw", "--shuffle"], ["--mode=keep", "--cluster=label", "--limit=40"],
    ["--mode=proportion=0.5", "--index", "--where=label in ant,dog"],
    ["--limit=5"]])
def test_merged_shards_are_the_file_of_one_run(options, photos, tmp_path):
    mkfs(*options, photos, tmp_path / "one.beton")
    for i in reversed(range(SHARDS)):
        subprocess.run(shard(options, i, photos, tmp_path), check=True, timeout=60)
    merge(tmp_path, tmp_path / "merged.beton")
    assert (tmp_path / "merged.beton").read_bytes() == \
        (tmp_path / "one.beton").read_bytes()


def test_a_killed_shard_is_named_and_can_run_again(photos, tmp_path):
    mkfs(photos, tmp_path / "one.beton")
    start = time.monotonic()
    for i in range(SHARDS):
        subprocess.run(shard([], i, photos, tmp_path), check=True, timeout=60)
    took = (time.monotonic() - start) / SHARDS
    part, out = tmp_path / "3.beton", tmp_path / "merged.beton"
    whole = part.read_bytes()
    for _ in range(8):
        part.unlink(missing_ok=True)
        with subprocess.Popen(shard([], 3, photos, tmp_path)) as p:
            time.sleep(random.uniform(0, took))
            p.kill()
        assert not part.exists() or part.read_bytes() == whole
    part.unlink(missing_ok=True)
    assert f"{part}: No such file" in merge(tmp_path, out, 1).stderr
    assert not out.exists()
    subprocess.run(shard([], 3, photos, tmp_path), check=True, timeout=60)
    merge(tmp_path, out)
    assert out.read_bytes() == (tmp_path / "one.beton").read_bytes()


def test_dry_run_writes_nothing(photos, tmp_path):
    r = run("-n", "--mode=raw", "--where=label in bee", photos,
            tmp_path / "x.beton")
    assert r.returncode == 0 and not (tmp_path / "x.beton").exists()
    assert "9 of 45 samples of a directory of images, images as raw" in r.stdout
    assert "label            int, 5 classes" in r.stdout


def test_the_same_bytes_for_any_number_of_jobs(kept, tmp_path):
    made = []
    for jobs in (1, 2, 7):
        out = tmp_path / f"{jobs}.beton"
        mkfs(f"-j{jobs}", "--quality=60", "--cluster=label", kept, out)
        made.append(out.read_bytes())
    assert made[0] == made[1] == made[2]


def test_several_datasets_follow_each_other(kept, tmp_path):
    two = mkfs(kept, kept, tmp_path / "two.beton").values()
    assert two == betonfile.Beton(kept).values() * 2
    mkfs("--fields=label", kept, tmp_path / "other.beton")
    assert f"other.beton: has 1 fields, but {kept} has 2" in \
        refused(kept, tmp_path / "other.beton", tmp_path / "x.beton")
    mkfs("--fields=image,label:float=label", kept, tmp_path / "float.beton")
    assert f"field 'label' is float, but in {kept} it is int" in \
        refused(kept, tmp_path / "float.beton", tmp_path / "x.beton")


def test_sources_of_two_kinds_are_refused(photos, kept, tmp_path):
    said = refused(photos, kept, tmp_path / "x.beton")
    assert f"of two kinds: {photos}: a directory of images, and {kept}: a " \
        "dataset (.beton): make a dataset of each" in said


def test_a_file_that_is_no_dataset_is_not_replaced(photos, tmp_path):
    old = tmp_path / "notes.txt"
    old.write_text("These are my notes.\n")
    assert "notes.txt: cannot write it: a file that is no dataset has" in refused(
        photos, old)
    assert old.read_text() == "These are my notes.\n"
    dry = run("--dry-run", photos, old)
    assert dry.returncode == 0 and old.read_text()[:5] == "These"
    for unfinished in b"", bytes(5000):
        old.write_bytes(unfinished)
        assert len(mkfs(photos, old).values()) == 45


def test_a_damaged_sample_is_named_or_skipped(kept, tmp_path):
    bad = tmp_path / "bad.beton"
    data = bytearray(kept.read_bytes())
    at = betonfile.Beton(kept).values()[7][0]
    where = data.index(at.bytes)
    data[where:where + 2] = b"??"
    bad.write_bytes(data)
    assert "bad.beton: sample 7: " in refused(bad, tmp_path / "x.beton")
    got = mkfs("--on-error=skip", bad, tmp_path / "y.beton")
    assert len(got.values()) == 44


def test_a_mount_is_a_source(kept, tmp_path, mount):
    mkfs(mount(kept), tmp_path / "copy.beton")
    assert (tmp_path / "copy.beton").read_bytes() == kept.read_bytes()
