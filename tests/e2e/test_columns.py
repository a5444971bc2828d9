# SPDX-License-Identifier: Apache-2.0
"""Sources of columns: the values that build/test_input_columns reads are those that
each source's own library returns. SOURCES_PYTHON names an interpreter that has
pyarrow, h5py, lmdb, mosaicml-streaming and litdata."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import columns
from conftest import BUILD

PYTHON = os.environ.get("SOURCES_PYTHON", sys.executable)
PROGRAM = BUILD / "test_input_columns"


def strip(text):
    return [line.rstrip() for line in text.splitlines()]


def write(name, directory):
    """Returns the sources, and the lines of their values."""
    run = subprocess.run([PYTHON, pathlib.Path(columns.__file__), name,
                          directory], stdout=subprocess.PIPE, text=True)
    if run.returncode == 77:
        pytest.skip(f"{PYTHON} has no {run.stdout.strip()} "
                    "(SOURCES_PYTHON may name one that has it)")
    assert run.returncode == 0
    lines = [line for line in strip(run.stdout) if line]
    start = next(i for i, line in enumerate(lines) if line[0] == "#")
    return lines[start].split(" ")[1:], lines[start + 1:]


def read(sources, step=1, threads=1):
    run = subprocess.run([PROGRAM, str(step), str(threads), *sources],
                         capture_output=True, text=True)
    if "this build lacks" in run.stderr:
        pytest.skip(run.stderr)
    assert run.returncode == 0, run.stderr
    return strip(run.stdout)


@pytest.mark.parametrize("name", columns.CASES)
def test_values_are_those_of_the_library(name, tmp_path):
    if not PROGRAM.exists():
        pytest.skip(f"no {PROGRAM}: make unit builds it")
    sources, expected = write(name, tmp_path)
    for step, threads in (1, 1), (77, 1), (5, 4):
        got = read(sources, step, threads)
        for g, e in zip(got, expected):
            assert g == e, f"step {step}, {threads} threads"
        assert len(got) == len(expected)


GOLDEN = pathlib.Path(__file__).parent.parent / "columns"


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


@pytest.mark.parametrize("name", "parquet hdf5 lmdb mds litdata".split())
def test_a_cut_file_is_one_line(name, tmp_path):
    """When it is opened, or for each sample that is missing."""
    if not PROGRAM.exists():
        pytest.skip(f"no {PROGRAM}: make unit builds it")
    source, file = copy_golden(name, tmp_path)
    os.truncate(file, file.stat().st_size * 2 // 3)
    run = subprocess.run([PROGRAM, "1", "1", source], capture_output=True,
                         text=True)
    if "this build lacks" in run.stderr:
        pytest.skip(run.stderr)
    if run.returncode:
        assert run.returncode == 1 and len(strip(run.stderr)) == 1
        assert str(source) in run.stderr
    else:
        errors = [x for x in strip(run.stdout) if x.startswith("error ")]
        assert errors and all(str(file) in e for e in errors)


def test_mkfs_refuses_a_column_that_no_field_can_hold(tmp_path):
    mkfs = BUILD / "mkfs.beton"
    out = tmp_path / "d.beton"
    run = subprocess.run([mkfs, GOLDEN / "mds", out], capture_output=True,
                         text=True)
    assert run.returncode and not out.exists()
    assert strip(run.stderr) == [
        "mkfs.beton: field 'zpkl': pickled Python objects: leave the column "
        "out with --fields"]
    subprocess.run([mkfs, "--fields=photo,int,word", GOLDEN / "mds", out],
                   check=True, capture_output=True)
    assert out.stat().st_size
