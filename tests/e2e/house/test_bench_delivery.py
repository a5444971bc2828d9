# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/delivery: the names, titles and bars that it prints, which the
README explains. The figures depend on the machine."""
import pathlib
import re
import subprocess
import sys
import types
from importlib.machinery import SourceFileLoader

import pytest

import make
from dumped import BUILD

BENCH = pathlib.Path(__file__).parents[3] / "contrib/bench"


@pytest.fixture
def delivery(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    module = types.ModuleType("delivery")
    SourceFileLoader("delivery", str(BENCH / "delivery")).exec_module(module)
    return module


@pytest.fixture
def dataset(delivery, tmp_path):
    """Raw images of two sizes, which are not measured here."""
    path = tmp_path / "x.beton"
    make.Dataset(path, [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 8 + i % 2, 4, bytes((8 + i % 2) * 12))}
        for i in range(16)], 1 << 12)
    arguments = types.SimpleNamespace(batch=8, gigabytes=1e-6, bin=BUILD)
    return delivery.Set(arguments, path, None)


def spread(value):
    return {"median": value, "least": value, "most": value}


def test_only_names_with_the_text_are_measured(delivery, dataset):
    ways = dataset.ways()
    assert set(delivery.BARS) < set(ways)
    assert list(delivery.chosen(ways, "file, cache=os")) == \
        [delivery.BASE, "file, cache=os"]
    assert list(delivery.chosen(ways, None)) == list(ways)
    with pytest.raises(SystemExit, match="zerocopy.*mount, zero-copy"):
        delivery.chosen(ways, "zerocopy")


def test_the_readme_explains_every_name(dataset):
    text = (BENCH / "README.md").read_text()
    section = text.split("\n## Delivery\n")[1].split("\n## ")[0]
    names = set(re.findall(r"^\| `([^`]*)` \|", section, re.M))
    assert names == set(dataset.ways())


def test_what_is_printed_is_what_is_compared(delivery, capsys):
    row = {"cpu_s_per_gb": spread(0.1), "ratio": spread(2.004), "bar": 2.0}
    delivery.print_table({"x.beton": {"batch_bytes": 1e6, "ways": {
        "file, cache=os": row,
        "file, cache=process": {**row, "ratio": spread(2.006)},
        delivery.BASE: {**row, "bar": None}}}})
    title, met, missed, base = capsys.readouterr().out.splitlines()[-4:]
    assert re.split("  +", title.strip()) == [
        "way", "s per GB", "min to max", "ratio", "min to max", "bar"]
    assert re.split("  +", met.strip())[-3:] == [
        "2.00", "2.00 to 2.00", "2.00 met"]
    assert re.split("  +", missed.strip())[-3:] == [
        "2.01", "2.01 to 2.01", "2.00 MISSED"]
    assert len(re.split("  +", base.strip())) == 5


def test_images_of_several_sizes_need_no_advice(dataset, tmp_path, capfd,
                                                delivery, monkeypatch):
    """The program chooses their pipeline itself."""
    class Mounted:
        path = dataset.file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.syspath_prepend(BENCH.parents[1] / "tests/e2e")
    monkeypatch.setattr(dataset, "mounted", lambda cache: Mounted())
    delivery.check_loaders(dataset, tmp_path)
    assert capfd.readouterr().err == ""
    assert not dataset.is_uniform


def test_a_file_that_is_no_dataset():
    done = subprocess.run([sys.executable, BENCH / "delivery", "--bin", BUILD,
                           "/etc/passwd"], text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith("delivery: /etc/passwd: not a .beton file")
    assert len(done.stderr.splitlines()) == 1
