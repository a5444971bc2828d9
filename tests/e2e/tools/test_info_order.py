# SPDX-License-Identifier: Apache-2.0
"""How `beton info` describes the order of the labels on disk."""
import json
import random

import pytest

import make
from dumped import beton

N, CLASSES = 6000, 20


def shuffled(values):
    values = list(values)
    random.Random(3).shuffle(values)
    return values


ORDERS = {
    "sorted": [i * CLASSES // N for i in range(N)],
    "shuffled": shuffled(i % CLASSES for i in range(N)),
    "runs": [k for run in shuffled(i % CLASSES for i in range(N // 30))
             for k in 30 * [run]],
    "uniform": N * [4],
}


def dataset(path, labels):
    return make.Dataset(path, [("label", make.INT)],
                        [{"label": k} for k in labels]).path


def on_disk(path):
    """--json alone is dataset.json."""
    assert "on_disk" not in json.loads(beton("info", "--json", path).stdout)
    return json.loads(beton("info", "--json", "--spec", "order=random",
                            path).stdout).get("on_disk")


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_on_disk_is_named(order, tmp_path):
    path = dataset(tmp_path / "x.beton", ORDERS[order])
    out = on_disk(path)
    assert out["order"] == order and out["field"] == "label"
    assert out["inspected"] == N and out["batch"] == 256
    if order == "uniform":
        assert out["random"] == 1
    else:
        assert out["shuffled_run"] == pytest.approx(CLASSES / (CLASSES - 1), 0.01)
        assert out["random"] > CLASSES - 1
    if order == "runs":
        assert out["run"] == pytest.approx(30, 0.1)
    line = beton("info", path).stdout.splitlines()[-1]
    assert line.startswith("on disk: ")
    assert {"sorted": "sorted by label", "shuffled": "label is shuffled",
            "runs": "samples with one label",
            "uniform": "all samples have one label"}[order] in line


def test_there_is_no_line_without_labels(tmp_path, mount):
    one = make.Dataset(tmp_path / "f.beton", [("score", make.FLOAT)],
                       [{"score": i / 2} for i in range(9)])
    empty = dataset(tmp_path / "e.beton", [5])
    for path in one.path, empty:
        assert "on disk" not in beton("info", path).stdout
        assert on_disk(path) is None
    mnt = mount(dataset(tmp_path / "m.beton", ORDERS["sorted"]))
    assert "on disk" not in beton("info", mnt).stdout


def test_large_files_are_inspected_in_parts(tmp_path):
    path = make.two_numbers(tmp_path / "big.beton", 3000000).path
    out = on_disk(path)
    assert out["inspected"] == 65536 and out["order"] == "sorted"
