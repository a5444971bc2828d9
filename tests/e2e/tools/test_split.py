# SPDX-License-Identifier: Apache-2.0
"""beton split: every sample in exactly one file, unchanged."""
import json
import os

import pytest

import dumped
import make
import parts


@pytest.fixture
def data(tmp_path):
    return make.every_type(tmp_path / "all.beton", 30)


def split(*args, **how):
    return dumped.beton("split", *args, **how)


def merge(*args, **how):
    return dumped.beton("merge", "-q", *args, **how)


def labels(path):
    return [s["label"] for s in parts.samples(path)]


def files(folder):
    return sorted(os.listdir(folder))


# --- shards ------------------------------------------------------------------

@pytest.mark.parametrize("n", [1, 3, 12, 30])
def test_shards_merged_are_the_original(data, tmp_path, n):
    one = tmp_path / "one.beton"
    merge(data.path, one)
    r = split("--shards", n, one, "part-{}.beton", cwd=tmp_path)
    sizes = [int(line.split()[1]) for line in r.stdout.splitlines()]
    assert len(sizes) == n and sum(sizes) == 30
    assert max(sizes) - min(sizes) <= 1
    assert "part-00.beton" in files(tmp_path) or n <= 10
    merge("part-*.beton", "merged.beton", cwd=tmp_path)
    assert (tmp_path / "merged.beton").read_bytes() == one.read_bytes()


def test_a_pattern_can_be_split(data, tmp_path):
    """Several files are one dataset."""
    merge(data.path, data.path, tmp_path / "twice")
    r = split("--shards", 4, "{all.beton,twice}", "out//", cwd=tmp_path)
    assert r.stdout.startswith("out/0.beton: 22 samples\n")
    merge("out/*.beton", "again", cwd=tmp_path)
    merge("all.beton", "twice", "want", cwd=tmp_path)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "want").read_bytes()


def test_more_shards_than_samples(data, tmp_path):
    r = split("--shards", 31, data.path, tmp_path / "out", code=1)
    assert "has 30 samples, too few for 31 files" in r.stderr
    assert files(tmp_path) == ["all.beton"]


# --- by value ----------------------------------------------------------------

def test_a_file_per_class(tmp_path):
    numbers = [2, 0, 7, 2, -1, 0, 1]
    data = parts.labels(tmp_path / "all.beton", numbers,
                        ["cat", "../..", "a b", "unused"])
    split("--by=label", data.path, tmp_path / "out")
    assert files(tmp_path / "out") == ["%2E.%2F.%2E.beton", "-1.beton",
                                       "7.beton", "a%20b.beton", "cat.beton"]
    assert labels(tmp_path / "out/cat.beton") == [0, 0]
    assert labels(tmp_path / "out/a%20b.beton") == [2, 2]
    assert parts.classes(tmp_path / "out/7.beton") == ["cat", "../..", "a b",
                                                       "unused"]
    merge("out/*.beton", "back.beton", cwd=tmp_path)
    assert sorted(labels(tmp_path / "back.beton")) == sorted(numbers)


def test_odd_names_of_classes(tmp_path):
    """Equal names, and a name too long for a file."""
    data = parts.labels(tmp_path / "all.beton", [0, 1, 2], ["x", "x"])
    split("--by=label", data.path, tmp_path / "a")
    assert files(tmp_path / "a") == ["2.beton", "x.beton", "x~1.beton"]
    data = parts.labels(tmp_path / "long.beton", [0], ["é" * 300])
    split("--by=label", data.path, tmp_path / "b")
    long, = files(tmp_path / "b")
    assert len(long) < 255 and long.endswith("~0.beton")
    assert len(long.split("~")[0]) % 3 == 0     # no escape is cut


def test_values_are_unchanged(data, tmp_path):
    split("--by=label", data.path, tmp_path / "out")
    want = {s["label"]: s for s in parts.samples(data.path)}
    for name in files(tmp_path / "out"):
        sample, = parts.samples(tmp_path / "out" / name)
        assert sample == want[int(name[:-6])]
    assert len(files(tmp_path / "out")) == len(want)


def test_fields_without_integers(data, tmp_path):
    for field, more in ("labell", "; did you mean `label'?"), ("blob", ""):
        r = split(f"--by={field}", data.path, tmp_path / "out", code=1)
        assert r.stderr.endswith(f"has no field '{field}' of integers{more}\n")
    assert files(tmp_path) == ["all.beton"]


# --- shares ------------------------------------------------------------------

def drawn(data, out, *options, fraction="0.8,0.1,0.1"):
    split(f"--fraction={fraction}", *options, data.path, out)
    return [labels(out / name) for name in files(out)]


def test_every_sample_is_in_one_part(tmp_path):
    data = make.numbers(tmp_path / "n.beton", 1000)
    got = drawn(data, tmp_path / "out")
    assert [len(p) for p in got] == [800, 100, 100]
    assert sorted(sum(got, [])) == list(range(1000))
    assert all(p == sorted(p) for p in got)
    assert abs(sum(got[1]) / 100 - 500) < 150     # from everywhere


def test_seeds(tmp_path):
    data = make.numbers(tmp_path / "n.beton", 100)
    one = drawn(data, tmp_path / "1", "--seed=1")
    assert one == drawn(data, tmp_path / "again", "--seed=1")
    assert one != drawn(data, tmp_path / "2", "--seed=2")
    # Guaranteed stable across versions.
    assert drawn(data, tmp_path / "0")[1] == \
        [6, 7, 43, 50, 52, 57, 87, 88, 97, 99]


def test_stratified(tmp_path):
    """Every class is divided by the shares, and so are all samples."""
    sizes = {0: 500, 1: 100, 2: 15, 3: 5}
    numbers = [k for k, n in sizes.items() for _ in range(n)]
    data = parts.labels(tmp_path / "n.beton", numbers)
    train, val = drawn(data, tmp_path / "out", "--stratify=label",
                       fraction="0.8,0.2")
    assert len(train) == round(.8 * len(numbers))
    for k, n in sizes.items():
        assert abs(train.count(k) - .8 * n) <= 1
        assert train.count(k) + val.count(k) == n


def test_names(data, tmp_path):
    split("--fraction=0.9,0.1", "--names=train,val", data.path,
          tmp_path / "{}.beton")
    assert files(tmp_path) == ["all.beton", "train.beton", "val.beton"]


def test_a_part_without_samples(data, tmp_path):
    r = split("--fraction=0.99,0.01", data.path, tmp_path / "out", code=1)
    assert "part 1 would have none" in r.stderr
    assert files(tmp_path) == ["all.beton"]


# --- outputs -----------------------------------------------------------------

def test_no_part_may_replace_the_dataset(data, tmp_path):
    before = (tmp_path / "all.beton").read_bytes()
    r = split("--shards=2", "--names=new,all", data.path,
              tmp_path / "{}.beton", code=1)
    assert "all.beton: is a file of the dataset to split" in r.stderr
    assert files(tmp_path) == ["all.beton"]
    assert (tmp_path / "all.beton").read_bytes() == before


def test_json(data, tmp_path):
    got = json.loads(split("--shards=2", "--json", data.path,
                           tmp_path / "out").stdout)
    assert got == [{"path": f"{tmp_path}/out/{i}.beton", "name": str(i),
                    "samples": 15} for i in range(2)]
    assert not split("-q", "--shards=2", data.path, tmp_path / "o").stdout


@pytest.mark.parametrize("options, match", [
    ([], "give one of --by, --fraction and --shards"),
    (["--shards=2", "--by=label"], "give one of"),
    (["--shards=0"], "--shards=0"),
    (["--shards=2", "--stratify=label"], "--stratify needs --fraction"),
    (["--by=label", "--names=a"], "--names: with --by"),
    (["--fraction=0.9,0.2"], "shares whose sum is 1, such as 0.9,0.1"),
    (["--fraction=1"], "two or more shares"),
    (["--fraction=0.5,0.5x"], "expected positive numbers"),
    (["--fraction=0.5,0.5,"], "expected positive numbers"),
    (["--fraction=1.5,-0.5"], "expected positive numbers"),
    (["--fraction=nan,nan"], "expected"),
    (["--fraction=" + ",".join(["0.01"] * 100)], "at most 64 shares"),
])
def test_usage(data, tmp_path, options, match):
    r = split(*options, data.path, tmp_path / "out", code=2)
    assert match in r.stderr and len(r.stderr.splitlines()) == 1
    assert files(tmp_path) == ["all.beton"]


@pytest.mark.parametrize("names, match", [
    ("a", "1 names, expected 2"), ("a,b,c", "3 names, expected 2"),
    ("a,a", "`a' is given twice"), ("a,", "`' cannot be"),
    ("a,b/c", "`b/c' cannot be a part of a file name"),
])
def test_bad_names(data, tmp_path, names, match):
    r = split("--shards=2", f"--names={names}", data.path, tmp_path / "out",
              code=1)
    assert match in r.stderr
    assert files(tmp_path) == ["all.beton"]


def test_a_directory_that_cannot_be_made(data, tmp_path):
    r = split("--shards=2", data.path, tmp_path / "no/such", code=1)
    assert "no/such: cannot make the directory: No such file" in r.stderr
    r = split("--shards=2", data.path, data.path, code=1)
    assert "not a directory: expected a directory, or a pattern" in r.stderr
