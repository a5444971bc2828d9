# SPDX-License-Identifier: Apache-2.0
"""beton merge: one file of several, as if one writer had written it."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

import dumped
import make
import parts
from conftest import is_instrumented


@pytest.fixture
def two(tmp_path):
    """Two files with every type of field."""
    return [make.every_type(tmp_path / f"{i}.beton", 20 + i, seed=i)
            for i in range(2)]


def merge(*args, **how):
    return dumped.beton("merge", *args, **how)


def refused(*args, match):
    """The arguments are refused with one line, and nothing is written."""
    r = merge(*args, code=1)
    assert len(r.stderr.splitlines()) == 1 and re.search(match, r.stderr)
    assert not os.path.exists(args[-1])


# --- values ------------------------------------------------------------------

@pytest.mark.quick
def test_samples_follow_each_other(two, tmp_path):
    out = tmp_path / "out.beton"
    r = merge(*(d.path for d in two), out)
    assert re.fullmatch(rf"{out}: 2 files, 41 samples, {out.stat().st_size} "
                        r"bytes, \d+\.\d s\n", r.stdout)
    assert parts.samples(out) == parts.samples(two[0].path) + \
        parts.samples(two[1].path)
    assert sorted(os.listdir(tmp_path)) == ["0.beton", "1.beton", "out.beton"]


def test_a_file_that_is_no_dataset_is_not_replaced(two, tmp_path):
    old = tmp_path / "notes.txt"
    old.write_text("notes")
    r = merge(*(d.path for d in two), old, code=1)
    assert "notes.txt: cannot write it: a file that is no dataset has" in r.stderr
    assert old.read_text() == "notes"


@pytest.mark.skipif(not dumped.Image, reason="needs Pillow")
def test_a_loader_reads_the_same(tmp_path):
    one = dumped.photos(tmp_path / "one.beton", 9)
    merge(one.path, tmp_path / "out.beton")
    for name in "one", "out":
        dumped.dump(tmp_path / f"{name}.beton", tmp_path / name)
    assert dumped.digest(tmp_path / "one") == dumped.digest(tmp_path / "out")


def test_order_of_merging_does_not_matter(two, tmp_path):
    """(a b) a == a (b a), byte for byte."""
    a, b = (d.path for d in two)
    for args in (a, b, "ab"), ("ab", a, "left"), (b, a, "ba"), \
            (a, "ba", "right"), (a, b, a, "once"):
        merge(*args, cwd=tmp_path)
    once = (tmp_path / "once").read_bytes()
    assert (tmp_path / "left").read_bytes() == once
    assert (tmp_path / "right").read_bytes() == once


def test_a_pattern_names_files(two, tmp_path):
    merge("[01].beton", "out", cwd=tmp_path)
    merge("0.beton", "1.beton", "other", cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "other").read_bytes()


def test_empty_values_and_files(tmp_path):
    fields = [("b", make.BYTES), ("j", make.JSON)]
    rows = [{"b": b"", "j": b"{}"}, {"b": b"x", "j": b"[]"},
            {"b": b"", "j": b"1"}]
    a = make.Dataset(tmp_path / "a.beton", fields, rows)
    none = make.Dataset(tmp_path / "none.beton", fields, [])
    merge(a.path, none.path, a.path, tmp_path / "out.beton")
    got = [(s["b"], s["j"].rstrip(b"\0"))
           for s in parts.samples(tmp_path / "out.beton")]
    assert got == [(r["b"], r["j"]) for r in rows] * 2


def test_pages(two, tmp_path):
    """The largest of the files', or the one of the option."""
    out = tmp_path / "out.beton"
    large = make.Dataset(tmp_path / "large.beton", two[0].fields,
                         two[0].values, 8 << 20)
    for options, want in ([], 2 << 20), (["--page-size=4M"], 4 << 20):
        merge(*options, *(d.path for d in two), out)
        assert struct.unpack("<I", out.read_bytes()[4:8]) == (want,)
    merge(two[0].path, large.path, out)
    assert struct.unpack("<I", out.read_bytes()[4:8]) == (8 << 20,)
    out.unlink()
    refused("--page-size=3M", two[0].path, out, match="power of two")


def test_a_sample_too_large_for_the_page(tmp_path):
    blob = make.one_blob(tmp_path / "a.beton", 3 << 20)
    refused("--page-size=2M", blob.path, tmp_path / "out",
            match="a.beton: sample 0 does not fit into a page")


def test_json(two, tmp_path):
    out = tmp_path / "out.beton"
    got = json.loads(merge("--json", *(d.path for d in two), out).stdout)
    assert got.pop("seconds") >= 0
    assert got == {"files": 2, "samples": 41, "bytes": out.stat().st_size}
    assert merge("-q", *(d.path for d in two), out).stdout == ""


# --- fields ------------------------------------------------------------------

def test_fields_in_another_order(tmp_path):
    fields = [("label", make.INT), ("blob", make.BYTES)]
    rows = [{"label": 1, "blob": b"one"}, {"label": 2, "blob": b"two"}]
    a = make.Dataset(tmp_path / "a.beton", fields, rows)
    b = make.Dataset(tmp_path / "b.beton", fields[::-1], rows)
    merge(a.path, b.path, tmp_path / "out.beton")
    merge(a.path, a.path, tmp_path / "want.beton")
    assert (tmp_path / "out.beton").read_bytes() == \
        (tmp_path / "want.beton").read_bytes()


@pytest.mark.parametrize("fields, match", [
    ([("label", make.INT)], "b.beton: has no field 'v', but .*a.beton has one"),
    ([("label", make.INT), ("v", make.NDARRAY, "<f4", (2,)),
      ("more", make.INT)],
     "b.beton: has a field 'more', but .*a.beton has none"),
    ([("label", make.FLOAT), ("v", make.NDARRAY, "<f4", (2,))],
     "b.beton: field 'label' is float, but in .*a.beton it is int"),
    ([("label", make.INT), ("v", make.NDARRAY, "<f4", (2, 1))],
     r"'v' is ndarray <f4 \(2, 1\), but in .* it is ndarray <f4 \(2\)"),
    ([("label", make.INT), ("v", make.NDARRAY, "<f8", (2,))],
     r"'v' is ndarray <f8 \(2\)"),
    ([("label", make.INT), ("v", make.TENSOR, "<f4", (2,))],
     r"'v' is torch_tensor"),
    ([("label", make.INT), ("v", make.NDARRAY, "<f4", (2,)),
      ("v", make.NDARRAY, "<f4", (2,))], "two fields have the same name"),
])
def test_other_fields_are_refused(tmp_path, fields, match):
    a = make.Dataset(tmp_path / "a.beton",
                     [("label", make.INT), ("v", make.NDARRAY, "<f4", (2,))],
                     [{"label": 1, "v": np.zeros(2, "<f4")}])
    b = make.Dataset(tmp_path / "b.beton", fields, [])
    refused(a.path, b.path, tmp_path / "out", match=match)


def test_custom_fields_are_refused(tmp_path):
    a = make.Dataset(tmp_path / "a.beton", [("c", make.CUSTOM)],
                     [{"c": b"12345678"}])
    r = merge(a.path, tmp_path / "out", code=1)
    assert "field 'c' cannot be copied: " in r.stderr


def test_a_damaged_sample_ends_the_merge(two, tmp_path):
    two[1].patch(two[1].where(4, "blob"), struct.pack("<Q", 1 << 40))
    refused(two[0].path, two[1].path, tmp_path / "out",
            match="1.beton: sample 4 field blob: ")


# --- classes -----------------------------------------------------------------

def test_classes_are_united_by_name(tmp_path):
    a = parts.labels(tmp_path / "a.beton", [0, 1, 1, -1], ["cat", "dog"])
    b = parts.labels(tmp_path / "b.beton", [0, 1, 2, -1],
                     ["fox", "cat", "elk"])
    c = parts.labels(tmp_path / "c.beton", [0, 1], ["cat", "dog"])
    out = tmp_path / "out.beton"
    merge(a.path, b.path, c.path, out)
    assert parts.classes(out) == ["cat", "dog", "fox", "elk"]
    assert [s["label"] for s in parts.samples(out)] == \
        [0, 1, 1, -1, 2, 0, 3, -1, 0, 1]


def test_names_that_need_a_page(tmp_path):
    names = [[f"class {i} of a file" for i in range(n, n + 100)]
             for n in (0, 50)]
    for i, n in enumerate(names):
        data = parts.labels(tmp_path / f"{i}.beton", [0, 99])
        text = b"".join(name.encode() + b"\0" for name in n)
        at = 24 + 17
        # Beyond the records, as the format allows, in a page of its own.
        raw = bytearray((tmp_path / f"{i}.beton").read_bytes())
        table = -(-len(raw) // 4096) * 4096
        raw += bytes(table - len(raw)) + text + bytes(4096 - len(text))
        raw[at:at + 32] = b"betoncls" + struct.pack("<QQQ", table, len(text),
                                                    len(n))
        raw[16:24] = struct.pack("<Q", table + 4096)
        (tmp_path / f"{i}.beton").write_bytes(raw)
        assert data.path
    out = tmp_path / "out.beton"
    merge(tmp_path / "0.beton", tmp_path / "1.beton", out)
    assert parts.classes(out) == [f"class {i} of a file" for i in range(150)]
    assert [s["label"] for s in parts.samples(out)] == [0, 99, 50, 149]


def test_a_number_without_a_name(tmp_path):
    """It stays, but must not get the name of another file's class."""
    a = parts.labels(tmp_path / "a.beton", [0, 7], ["cat"])
    b = parts.labels(tmp_path / "b.beton", [0], ["dog"])
    c = parts.labels(tmp_path / "c.beton", [1], ["cat"])
    out = tmp_path / "out.beton"
    merge(a.path, b.path, out)
    assert [s["label"] for s in parts.samples(out)] == [0, 7, 1]
    out.unlink()
    refused(a.path, c.path, b.path, out,
            match="c.beton: sample 0 field 'label': 1 has no class name, but "
                  "in the new file it would be 'dog'")


def test_files_with_and_without_names(tmp_path):
    a = parts.labels(tmp_path / "a.beton", [0, 1], ["cat", "dog"])
    b = parts.labels(tmp_path / "b.beton", [1, 5])
    c = parts.labels(tmp_path / "c.beton", [0], ["fox"])
    out = tmp_path / "out.beton"
    refused(a.path, b.path, out, match="b.beton: field 'label' has no class "
                                       "names, but in .*a.beton .*--keep-num")
    refused(b.path, a.path, out, match="a.beton: field 'label' has class")
    merge("--keep-numbers", b.path, a.path, c.path, out)
    assert parts.classes(out) == ["cat", "dog"]
    assert [s["label"] for s in parts.samples(out)] == [1, 5, 0, 1, 0]
    merge(b.path, b.path, out)
    assert parts.classes(out) is None
    assert [s["label"] for s in parts.samples(out)] == [1, 5, 1, 5]


def test_two_classes_of_one_name_stay_two(tmp_path):
    names = ["crane", "crane", "maillot"]
    a = parts.labels(tmp_path / "a.beton", [0, 1, 2], names)
    b = parts.labels(tmp_path / "b.beton", [0], [*reversed(names)])
    out = tmp_path / "out.beton"
    merge(a.path, a.path, out)
    assert [s["label"] for s in parts.samples(out)] == [0, 1, 2, 0, 1, 2]
    out.unlink()
    refused(a.path, b.path, out, match="b.beton: field 'label' has several "
                                       "classes 'crane'")


# --- the output --------------------------------------------------------------

def test_append(two, tmp_path):
    """The output is the first file: its rights stay."""
    old = tmp_path / "0.beton"
    merge(old, tmp_path / "1.beton", tmp_path / "want.beton")
    old.chmod(0o640)
    merge(old, tmp_path / "1.beton", old)
    assert old.read_bytes() == (tmp_path / "want.beton").read_bytes()
    assert old.stat().st_mode & 0o777 == 0o640


def test_a_missing_new_file_replaces_nothing(two, tmp_path):
    a, b = (d.path for d in two)
    old = pathlib.Path(b).read_bytes()
    r = merge(a, b, code=2)
    assert r.stderr == f"beton: {b} exists, and a single file replaces no " \
        "other one: the last operand is the new file\n"
    assert pathlib.Path(b).read_bytes() == old
    # A pattern stands for several files, so a script may run again.
    for _ in range(2):
        merge(tmp_path / "[01].beton", tmp_path / "out.beton")


def test_the_output_of_an_earlier_run_is_no_source(two, tmp_path):
    out = tmp_path / "all.beton"
    merge("[01].beton", out, cwd=tmp_path)
    before = out.read_bytes()
    r = merge(two[0].path, two[1].path, out, out, code=1)
    assert "is the output and a source: to append to it, name it first" \
        in r.stderr
    assert out.read_bytes() == before


def test_a_failure_leaves_the_old_file(two, tmp_path):
    out = tmp_path / "out.beton"
    out.write_bytes(b"\2\0old")
    two[1].patch(two[1].where(20, "blob"), struct.pack("<Q", 1 << 40))
    merge(two[0].path, two[1].path, out, code=1)
    assert out.read_bytes() == b"\2\0old"
    assert sorted(os.listdir(tmp_path)) == ["0.beton", "1.beton", "out.beton"]


def test_usage(tmp_path):
    assert "missing" in merge(tmp_path / "a", code=2).stderr
    assert "a: No such file" in merge("a", "b", code=1, cwd=tmp_path).stderr
    assert "page-size" in merge("--page-size=1M", "a", "b", code=2).stderr


# --- memory ------------------------------------------------------------------

PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak(*args):
    """The largest resident memory of a merge, in KiB. A small process starts it,
    because the figure includes that of its parent."""
    r = subprocess.run([sys.executable, "-c", PEAK, dumped.BUILD / "beton",
                        "merge", "-q", *args], stdout=subprocess.PIPE,
                       check=True)
    return int(r.stdout)


@pytest.mark.skipif(is_instrumented, reason="sanitizers take memory")
def test_memory_does_not_grow(tmp_path):
    """40 MB of records; 19 MB of records with 29 MB of entries."""
    make.two_numbers(tmp_path / "n.beton", 2_500_000)
    assert peak(tmp_path / "n.beton", tmp_path / "out.beton") < 32 << 10
    n = 400_000
    d = make.Dataset(tmp_path / "b.beton", [("b", make.BYTES)], [{"b": b"x"}],
                     2 << 20)
    records = np.zeros(n, d.record)
    records["f0"]["f1"] = 1
    first = -(-(d.meta + records.nbytes) // d.page_size) * d.page_size
    records["f0"]["f0"] = first + np.arange(n)
    table = np.stack([np.arange(n), first + np.arange(n), np.ones(n, int)], 1)
    with open(d.path, "wb") as f:
        f.write(struct.pack("<HHIQQ", 2, 1, d.page_size, n,
                            first + d.page_size))
        f.write(d.descriptor("b", make.BYTES) + records.tobytes())
        f.write(bytes(first - f.tell()) + bytes(range(250)) * (n // 250))
        f.write(bytes(first + d.page_size - f.tell()) +
                table.astype("<u8").tobytes())
    assert peak(d.path, d.path, d.path, tmp_path / "out.beton") < 32 << 10
