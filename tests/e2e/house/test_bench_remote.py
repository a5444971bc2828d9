# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/remote: that it measures, and what its archive contains. The
figures depend on the machine."""
import json
import pathlib
import subprocess
import sys
import tarfile

import pytest

import servers
from dumped import BUILD

REMOTE = pathlib.Path(__file__).parents[3] / "contrib/bench/remote"


def run(*args):
    return subprocess.run([sys.executable, REMOTE, "--bin", BUILD, *args],
                          text=True, capture_output=True, timeout=120)


def test_it_measures_a_tool_and_betonfs(link, tmp_path):
    servers.need("nginx")
    servers.need("curl")
    servers.need("openssl")
    done = run("--work", tmp_path / "work", "--samples", "300", "--rtt", "2ms",
               "--loss", "0", "--rounds", "1", "--order", "sequential",
               "--only", "betonfs, http", "--only", "GET by", "--json")
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [r["tool"] for r in runs] == ["betonfs, http", "betonfs, https",
                                         "one GET by curl"]
    for r in runs:
        assert not r["failed"], r
        assert 0 <= r["share"]["median"] < 1.2
        assert 0 < r["wire"]["median"] < 2


def test_the_archive_has_its_programs(tmp_path):
    if not (BUILD / "standin/link").exists():
        pytest.skip("no standin/link: make unit builds it")
    done = run("--pack", tmp_path / "a.tar.gz")
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        names = {n.partition("/")[2] for n in tar.getnames()}
    assert {"run", "bin/beton", "bin/standin/link", "bench/remote",
            "bench/remote_peer.py", "bench/common.py"} <= names
