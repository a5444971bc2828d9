# SPDX-License-Identifier: Apache-2.0
"""Several files as one dataset: a mount of them shows what a mount of one file
with the same samples shows, and loaders get the same batches."""
import errno
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import make
from conftest import (BUILD, DEADLINE, EXIT_MOUNT, EXIT_NOT_DATASET,
                      failing)
from loading import Loader
from parts import labels

CUTS = [0, 7, 7, 8, 30]     # one file is empty
SPEC = "order=random,batch=4,seed=3,drop_last=0"


def parts_of(whole, folder, cuts, pages=(4096, 8192, 4096, 16384)):
    folder.mkdir()
    return [make.Dataset(folder / f"part-{k}.beton", whole.fields,
                         whole.values[a:b], pages[k % len(pages)])
            for k, (a, b) in enumerate(zip(cuts, cuts[1:]))]


@pytest.fixture
def whole(tmp_path):
    return make.every_type(tmp_path / "whole.beton")


@pytest.fixture
def parts(tmp_path, whole):
    made = parts_of(whole, tmp_path / "parts", CUTS)
    # Shards contain the time of the dataset, in seconds.
    written = os.stat(whole.path).st_mtime
    for part in made:
        os.utime(part.path, (written, written))
    return made


@pytest.fixture
def pattern(tmp_path, parts):
    return tmp_path / "parts" / "part-*.beton"


def files_of(where):
    """name -> bytes of all files below, except for those that describe the
    file."""
    found = {}
    for folder, _, names in os.walk(where):
        for name in names:
            path = pathlib.Path(folder, name)
            at = str(path.relative_to(where))
            if not at.startswith(".betonfs") and at != "dataset.json":
                found[at] = path.read_bytes()
    return found


def beton(*args, code=0):
    r = subprocess.run([BUILD / "beton", *args], text=True,
                       capture_output=True, timeout=DEADLINE)
    assert r.returncode == code, r.stderr
    return r


def rows(path, **options):
    """The batches of an epoch, from a loader."""
    out = []
    with Loader(path, spec=SPEC, workers=1, **options) as loader:
        while (batch := loader.next()):
            out.append((batch.ids[:batch.num_samples],
                        [batch.outputs[k].bytes()
                         for k in range(batch.num_outputs)]))
            loader.release(batch)
    return out


@pytest.mark.parametrize("args", [[], ["-o", "cache=process,cache_size=16m"]],
                         ids=["os", "process"])
def test_all_files_of_a_mount_are_those_of_one_dataset(mount, whole, pattern,
                                                       args):
    one, several = mount(whole.path, *args), mount(pattern, *args)
    expected, got = files_of(one), files_of(several)
    assert len(expected) > 200 and sorted(got) == sorted(expected)
    # The last bytes of shards and of batches name the dataset.
    differ = [at for at in expected if got[at] != expected[at]]
    assert not [at for at in differ if not at.startswith("batch")], differ
    reported = json.loads((several / "dataset.json").read_text())
    assert reported["samples"] == 30 and reported["files"] == [
        {"name": f"part-{k}.beton", "samples": b - a}
        for k, (a, b) in enumerate(zip(CUTS, CUTS[1:]))]
    alone = json.loads((one / "dataset.json").read_text())
    assert reported["fields"] == alone["fields"] and "files" not in alone


@pytest.mark.parametrize("how", ["file", "mount"])
def test_loaders_get_the_batches_of_one_dataset(mount, whole, pattern, how):
    of = mount if how == "mount" else str
    text = "label; score; image | drop; blob; meta; vec; tens"
    expected = rows(of(whole.path), pipeline=text)
    assert rows(of(pattern), pipeline=text) == expected
    assert sorted(i for ids, _ in expected for i in ids) == list(range(30))


@pytest.mark.parametrize("cache", ["os", "process"])
def test_reads_cross_from_file_to_file(tmp_path, cache):
    """Values of a megabyte, in order: what is read ahead is of several files."""
    rng = np.random.default_rng(5)
    whole = make.Dataset(
        tmp_path / "whole.beton", [("blob", make.BYTES)],
        [{"blob": rng.bytes(int(n))} for n in rng.integers(1, 1 << 20, 24)],
        1 << 20)
    parts_of(whole, tmp_path / "parts", [0, 3, 4, 20, 24], [1 << 20, 1 << 21])
    options = {"cache": cache}
    if cache == "process":
        options["cache_size"] = 16 << 20
    assert rows(tmp_path / "parts/*.beton", **options) \
        == rows(whole.path, **options)


def test_patterns_name_files_in_order(tmp_path, whole, parts):
    def labels(text):
        with Loader(text, spec="order=sequential,batch=64,drop_last=0",
                    pipeline="label; image | drop; score | drop; blob | drop; "
                    "meta | drop; vec | drop; tens | drop") as loader:
            return loader.next().outputs[0].array().tolist()

    folder = tmp_path / "parts"
    all_ = [v["label"] for v in whole.values]
    assert labels(folder / "*.beton") == all_
    assert labels(folder / "part-[03].beton") == all_[:7] + all_[8:]
    assert labels(folder / "part-{3,0}.beton") == all_[8:] + all_[:7]
    odd = folder / "a {b},[c].beton"
    shutil.copy(parts[0].path, odd)
    assert labels(odd) == all_[:7]      # there is such a file
    escaped = str(odd).replace("{", r"\{").replace("}", r"\}") \
        .replace(",", r"\,").replace("[", r"\[")
    assert labels("{%s,%s}" % (escaped, parts[2].path)) == all_[:8]


def test_extended_attributes_name_the_file(mount, parts, pattern):
    where = mount(pattern, "-o", "xattr")
    for i, part, own in (3, parts[0], 3), (7, parts[2], 0), (29, parts[3], 21):
        path, = where.glob(f"samples/**/{i:06}/blob.bin")

        def attribute(name):
            return os.getxattr(path, f"user.beton.{name}").decode()

        assert attribute("file") == os.path.basename(part.path)
        assert int(attribute("offset")) == part.place[own, "blob"]


def test_damage_names_the_file_and_its_sample(tmp_path, parts, pattern, mount):
    parts[3].patch(parts[3].where(2, "image") + 5, b"\xff" * 8)
    where = mount(pattern, expects=r"parts/part-3.beton: sample 2 field image")
    path, = where.glob("samples/**/000010/")
    with failing(errno.EIO):
        (path / "image.jpg").read_bytes()


@pytest.mark.parametrize("fields,words", [
    ([("label", make.FLOAT)], "label is float, but in .*/a.beton it is int"),
    ([("count", make.INT)], "its field count is label in the first file"),
    ([("label", make.INT), ("other", make.INT)], "has 2 fields.*has 1"),
])
def test_files_need_the_same_fields(tmp_path, fields, words):
    make.numbers(tmp_path / "a.beton", 3)
    make.Dataset(tmp_path / "b.beton", fields, [{n: 1 for n, _ in fields}])
    r = beton("info", tmp_path / "[ab].beton", code=1)
    assert r.stderr.count("\n") == 1
    assert re.search(words, r.stderr), r.stderr


def test_arrays_need_the_same_shape(tmp_path):
    for name, shape in ("a", (2, 3)), ("b", (3, 2)):
        make.Dataset(tmp_path / f"{name}.beton",
                     [("vec", make.NDARRAY, "<f4", shape)],
                     [{"vec": np.zeros(shape, "<f4")}])
    assert re.search(
        r"b.beton: its field vec is ndarray <f4 \(3, 2\), but in .*/a.beton it is "
        r"ndarray <f4 \(2, 3\)",
        beton("info", tmp_path / "*.beton", code=1).stderr)


@pytest.mark.parametrize("names,words", [
    (["cat"], ""), (["cat", "dog", "emu"], ""),
    (["dog", "cat"], "its field 'label' has class 0 'dog', but in .*/a.beton "
                     "it is 'cat': .*; beton merge unites"),
    (None, "b.beton: field 'label' has no class names, but in .*/a.beton it "
           "has some: all files get these names")])
def test_one_list_of_names_begins_with_the_other(tmp_path, names, words):
    labels(tmp_path / "a.beton", [0], ["cat", "dog"])
    labels(tmp_path / "b.beton", [0], names)
    r = beton("info", "--json", tmp_path / "[ab].beton",
              code=int("unites" in words))
    assert re.search(words, r.stderr) and (words or not r.stderr), r.stderr
    if not r.returncode:
        longest = max(["cat", "dog"], names or [], key=len)
        assert json.loads(r.stdout)["fields"][0]["classes"] == longest


def test_a_file_is_given_once(tmp_path):
    make.numbers(tmp_path / "a.beton", 3)
    os.link(tmp_path / "a.beton", tmp_path / "b.beton")
    assert "given twice, also as " in \
        beton("info", tmp_path / "*.beton", code=1).stderr


@pytest.mark.parametrize("text,code,words", [
    ("none-*.beton", EXIT_MOUNT, "no file matches"),
    ("{a,none}.beton", EXIT_MOUNT, "No such file or directory"),
    ("[ac].beton", EXIT_NOT_DATASET, "c.beton: not a .beton file"),
])
def test_a_mount_reports_errors(fuse, tmp_path, text, code, words):
    make.numbers(tmp_path / "a.beton", 3)
    (tmp_path / "c.beton").write_bytes(bytes(5000))
    (tmp_path / "mnt").mkdir()
    r = subprocess.run([BUILD / "betonfs", text, "mnt"], cwd=tmp_path,
                       text=True, capture_output=True, timeout=DEADLINE)
    assert (r.returncode, words in r.stderr) == (code, True), r
    assert r.stderr.count("\n") == 1


def test_patterns_mount_beside_other_datasets(tmp_path, fuse, parts, whole):
    where = tmp_path / "both"
    where.mkdir()
    r = subprocess.run([BUILD / "betonfs", "parts/part-*.beton", "whole.beton",
                        "both"], cwd=tmp_path, timeout=DEADLINE)
    assert r.returncode == 0
    try:
        assert sorted(os.listdir(where)) == ["part", "whole"]
        reported = (where / "part/.betonfs/options").read_text()
        line, = [t for t in reported.splitlines() if t.startswith("dataset=")]
        assert line == "dataset={%s}" % ",".join(
            str(tmp_path / "parts" / f"part-{k}.beton") for k in range(4))
    finally:
        subprocess.run(["fusermount3", "-u", where], check=True)


def test_a_list_of_many_files_is_mounted(tmp_path, mount):
    """/proc/mounts has its beginning."""
    names = [tmp_path / f"{'n' * 100}{k}.beton" for k in range(60)]
    for name in names:
        make.numbers(name, 2)
    where = mount("{%s}" % ",".join(map(str, names)))
    assert json.loads((where / "dataset.json").read_text())["samples"] == 120
    source, = [line.split()[0] for line in open("/proc/mounts")
               if line.split()[1] == str(where)]
    assert source.startswith("{%s," % names[0]) and source.endswith("...")
    with Loader(where, spec=SPEC) as loader:
        assert loader.next().num_samples == 4


def test_more_files_than_may_be_open(tmp_path):
    for k in range(40):
        make.numbers(tmp_path / f"{k}.beton", 1)
    r = subprocess.run(["sh", "-c", 'ulimit -n 30 && "$0" info "$1"',
                        BUILD / "beton", tmp_path / "*.beton"], text=True,
                       capture_output=True, timeout=DEADLINE)
    assert (r.returncode, r.stderr.count("\n")) == (1, 1), r
    assert re.search(r"\.beton: .* limit of 30 .*ulimit -n", r.stderr), r.stderr


def test_optimize_makes_one_file_of_many(tmp_path, whole, pattern, mount):
    beton("optimize", pattern, tmp_path / "merged.beton")
    assert rows(tmp_path / "merged.beton",
                pipeline="label; image | drop; score; blob; meta; vec; tens") \
        == rows(whole.path,
                pipeline="label; image | drop; score; blob; meta; vec; tens")
    assert json.loads(beton("info", "--json", pattern).stdout)["samples"] == 30


def test_users_that_may_read_all_files_may_read_the_mount(tmp_path, mount):
    for name, mode in ("a", 0o644), ("b", 0o640):
        make.numbers(tmp_path / f"{name}.beton", 2)
        (tmp_path / f"{name}.beton").chmod(mode)
    assert os.stat(mount(tmp_path / "[ab].beton") / "samples"
                   ).st_mode & 0o777 == 0o550
