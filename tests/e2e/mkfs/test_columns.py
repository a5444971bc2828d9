# SPDX-License-Identifier: Apache-2.0
"""Sources that Python libraries read: the values that betonfs.convert returns are
those of each source's own library, and mkfs.beton stores them."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import betonfile
import columns
import parts
from conftest import BUILD
from libraries import ENVIRONMENT, PYTHON, need

ROWS = pathlib.Path(__file__).parents[1] / "rows.py"
MKFS = BUILD / "mkfs.beton"
GOLDEN = pathlib.Path(__file__).parents[2] / "columns"
# A directory or file of tests/columns -> the library that reads it.
LIBRARIES = {"parquet": "pyarrow", "hdf5": "h5py", "lmdb": "lmdb",
             "mds": "streaming", "litdata": "litdata"}


def strip(text):
    return [line.rstrip() for line in text.splitlines()]


def write(name, directory):
    """Returns the sources, and the lines of their values."""
    need()
    run = subprocess.run([PYTHON, pathlib.Path(columns.__file__), name,
                          directory], stdout=subprocess.PIPE, text=True)
    if run.returncode == 77:
        pytest.skip(f"{PYTHON} has no {run.stdout.strip()} "
                    "(SOURCES_PYTHON may name one that has it)")
    assert run.returncode == 0
    lines = [line for line in strip(run.stdout) if line]
    start = next(i for i, line in enumerate(lines) if line[0] == "#")
    return lines[start].split(" ")[1:], lines[start + 1:]


def read(sources, step=1):
    run = subprocess.run([PYTHON, ROWS, str(step), *map(str, sources)],
                         capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return strip(run.stdout)


@pytest.mark.parametrize("name", columns.CASES)
def test_values_are_those_of_the_library(name, tmp_path):
    sources, expected = write(name, tmp_path)
    assert read(sources) == expected
    # One row of five: the others are passed over.
    heads = expected[:-int(expected[0].split(" ")[1])]
    assert read(sources, 5) == heads + expected[len(heads):][::5]


@pytest.mark.parametrize("name", LIBRARIES)
def test_golden_files_have_golden_values(name):
    need(LIBRARIES[name])
    expected = strip((GOLDEN / f"{name}.txt").read_text())
    assert read([GOLDEN / name])[1:] == expected[1:]


def stored(path):
    """All samples of a dataset, as bytes and numbers."""
    b = betonfile.Beton(path)
    return [[v if isinstance(v, (int, float, bytes)) else v.bytes
             for v in (b.value(i, k) for k in range(len(b.fields)))]
            for i in range(b.samples)]


@pytest.mark.parametrize("name", LIBRARIES)
def test_any_order_and_jobs_store_the_same(name, tmp_path):
    need(LIBRARIES[name])
    options = ["--fields=photo,int,word"] if name == "mds" else []
    out = tmp_path / "x.beton"

    def mkfs(*more):
        subprocess.run([MKFS, "-q", "--mode=raw", *options, *more,
                        GOLDEN / name, out], check=True)
        return stored(out)
    whole = mkfs("-j1")
    assert mkfs("-j4") == whole
    assert sorted(mkfs("--shuffle", "-j3"), key=str) == sorted(whole, key=str)
    assert mkfs("--subset=2-7") == whole[2:7]
    (tmp_path / "ids").write_text("5\n0\n5\n3\n")
    assert mkfs(f"--subset={tmp_path / 'ids'}") == [
        whole[i] for i in (5, 0, 5, 3)]


def copy_golden(name, tmp_path):
    """Returns the source, and its largest file with samples."""
    to = tmp_path / name
    if (GOLDEN / name).is_dir():
        shutil.copytree(GOLDEN / name, to)
        files = [f for f in to.iterdir() if f.suffix != ".json"]
    else:
        shutil.copy(GOLDEN / name, to)
        files = [to]
    return to, max(files, key=lambda f: f.stat().st_size)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_cut_file_is_one_line(name, tmp_path):
    need(LIBRARIES[name])
    source, file = copy_golden(name, tmp_path)
    os.truncate(file, file.stat().st_size * 2 // 3)
    options = ["--fields=photo,int,word"] if name == "mds" else []
    run = subprocess.run([MKFS, *options, source, tmp_path / "x.beton"],
                         capture_output=True, text=True, timeout=120)
    lines = strip(run.stderr)
    assert run.returncode == 1 and len(lines) == 1, run
    assert str(source) in lines[0]
    assert not (tmp_path / "x.beton").exists()


def test_a_column_that_no_field_can_hold(tmp_path):
    need("streaming")
    out = tmp_path / "d.beton"
    run = subprocess.run([MKFS, GOLDEN / "mds", out], capture_output=True,
                         text=True)
    assert run.returncode and not out.exists()
    assert strip(run.stderr) == [
        "mkfs.beton: field 'zpkl': pickled Python objects: leave the column "
        "out with --fields"]
    subprocess.run([MKFS, "--fields=photo,int,word", GOLDEN / "mds", out],
                   check=True, capture_output=True)
    assert out.stat().st_size


def test_litdata_keeps_its_chunks(tmp_path):
    """Its library removes compressed chunks once it has read them."""
    sources, _ = write("litdata_chunks", tmp_path)
    before = {p.name: p.read_bytes() for p in pathlib.Path(sources[0]).iterdir()}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    subprocess.run([MKFS, "-q", *sources, tmp_path / "x.beton"], check=True,
                   env={**os.environ, "TMPDIR": str(temporary)})
    after = {p.name: p.read_bytes() for p in pathlib.Path(sources[0]).iterdir()}
    assert before == after and not list(temporary.iterdir())


# --- several files ---

FILES = """
import sys, json, pathlib
import numpy as np
kind, *names = sys.argv[1:]
if kind == "parquet":
    import pyarrow as pa, pyarrow.parquet as pq
for i, text in enumerate(names):
    values, classes, unit = json.loads(text)
    if kind == "parquet":
        features = {"label": {"names": classes, "_type": "ClassLabel"}}
        table = pa.table({"label": pa.array(values),
                          "at": pa.array(values, pa.timestamp(unit))})
        if classes:
            table = table.replace_schema_metadata({"huggingface": json.dumps(
                {"info": {"features": features}})})
        pq.write_table(table, f"{i}.parquet")
    else:
        import h5py
        kind_of = h5py.enum_dtype(dict(zip(classes, range(len(classes)))), "u1") \\
            if classes else "u1"
        with h5py.File(f"{i}.hdf5", "w") as file:
            file.create_dataset("label", data=np.array(values, "u1"),
                                dtype=kind_of)
            file.create_dataset("at", data=np.zeros((len(values), 2), unit))
"""


def several(tmp_path, kind, *files):
    """Packs the labels of files; returns them with their names, or the error."""
    need("pyarrow" if kind == "parquet" else "h5py")
    import json
    subprocess.run([PYTHON, "-c", FILES, kind, *map(json.dumps, files)],
                   cwd=tmp_path, check=True)
    made = [tmp_path / f"{i}.{kind}" for i in range(len(files))]
    out = tmp_path / "x.beton"
    run = subprocess.run([MKFS, "--fields=label", "--shuffle", *made, out],
                         capture_output=True, text=True)
    if run.returncode:
        return run.stderr
    assert not run.stderr
    ordered = tmp_path / "o.beton"
    subprocess.run([MKFS, "-q", "--fields=label", *made, ordered], check=True)
    labels = [v[0] for v in betonfile.Beton(ordered).values()]
    assert sorted(labels) == sorted(v[0] for v in
                                    betonfile.Beton(out).values())
    return labels, parts.classes(ordered)


UNITS = {"parquet": ("ns", "us", r"timestamp\[us\]", r"timestamp\[ns\]"),
         "hdf5": ("f4", "f8", r"array <f8 \(2,\)",
                  r"array <f4 \(2,\)")}


@pytest.mark.parametrize("kind", UNITS)
def test_classes_of_several_files_are_united(tmp_path, kind):
    unit = UNITS[kind][0]
    one = [[0, 1], ["cat", "dog"], unit]
    assert several(tmp_path, kind, one, one) == ([0, 1, 0, 1], ["cat", "dog"])
    assert several(tmp_path, kind, one, [[0, 1, 1], ["dog", "cat"], unit],
                   [[1, 0], ["dog", "emu"], unit]) == (
        [0, 1, 1, 0, 0, 2, 1], ["cat", "dog", "emu"])
    found = several(tmp_path, kind, one, [[0], [], unit])
    assert re.search(f"1.{kind}: column 'label' has no class names, but in "
                     f".*/0.{kind} it has some: convert the files apart", found)
    found = several(tmp_path, kind, one, [[1], ["emu"], unit])
    assert re.search(f"1.{kind}, row 0: column 'label': 1 has no class name, but "
                     "among all files it would be 'dog'", found)


@pytest.mark.parametrize("kind", UNITS)
def test_files_whose_values_mean_something_else_are_refused(tmp_path, kind):
    unit, other, its, ours = UNITS[kind]
    found = several(tmp_path, kind, [[0], ["cat"], unit], [[0], ["cat"], other])
    assert re.search(f"1.{kind}: column 'at' is {its}, but in .*/0.{kind} it is "
                     f"{ours}: convert the files apart", found)
