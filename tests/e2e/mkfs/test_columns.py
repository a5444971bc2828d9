# SPDX-License-Identifier: Apache-2.0
"""Sources that Python libraries read: the values that betonfs.convert returns are
those of each source's own library, and mkfs.beton stores them."""
import os
import pathlib
import shutil
import subprocess

import pytest

import betonfile
import columns
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
