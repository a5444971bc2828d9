# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/operations: each operation that it names exists, it runs without
peers, and it measures a chain."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from dumped import BUILD, DEADLINE

pytest.importorskip("numpy")
if re.search(b"__[at]san_init", (BUILD / "libbeton.so").read_bytes()):
    pytest.skip("sanitizers distort figures", allow_module_level=True)

BENCH = pathlib.Path(__file__).parents[3] / "contrib/bench"
PEERS = os.environ.get("TORCHVISION_PYTHON")


def bench(*options):
    done = subprocess.run(
        [sys.executable, BENCH / "operations", "--rounds=1", "--epochs=2",
         f"--bin={BUILD}", *options], text=True, capture_output=True,
        timeout=10 * DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done


def test_all_operations_run():
    done = bench("--json")
    own = json.loads(done.stdout)["betonfs"]
    assert {"flip(1)", "rotate(30)", "rand_augment"} <= set(own)
    # More than the copy of the pixels that is taken off.
    assert own["aug_mix"] > own["rotate(30)"] > 0


def test_missing_libraries_are_reported():
    done = bench("--only=flip")
    assert re.search(r"^\| `flip\(1\)` \| +-?\d+ ", done.stdout, re.M)
    if "| torchvision |" not in done.stdout:
        assert "left out: No module named 'torch" in done.stderr


@pytest.mark.skipif(not PEERS, reason="TORCHVISION_PYTHON names no python")
def test_peers_run_beside():
    costs = json.loads(bench("--json", "--only=vertical_flip",
                             f"--python={PEERS}").stdout)
    assert costs.pop("betonfs")
    assert costs and all(c["vertical_flip(1)"] > 0 for c in costs.values())


def test_a_chain_is_measured():
    costs = json.loads(bench("--chain", "--json").stdout)
    assert len(costs) == 12 and min(costs.values()) > 0
