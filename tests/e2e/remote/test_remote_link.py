# SPDX-License-Identifier: Apache-2.0
"""Datasets behind a slow link: round trips, bytes on the wire, losses and outages.
contrib/bench/remote measures rates; these tests only exclude gross faults."""
import json
import pathlib

import pytest

import dumped
import remote
import servers

BETON = dumped.BUILD / "beton"
SPEC = "order=quasi_random,batch=8,drop_last=0"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return remote.large(tmp_path_factory.mktemp("link") / "large.beton",
                        samples=160, size=100_000)


@pytest.fixture
def far(data, nginx, tmp_path):
    """nginx at the other end of a link, not yet started."""
    return servers.Nginx(tmp_path / "far", pathlib.Path(data.path).parent,
                         host=servers.LINK_ADDRESS, port=8080)


def test_info_takes_few_round_trips(far, link):
    done, counts = link(["--rtt", "200ms"], far,
                        [BETON, "info", "--json", far.url("large.beton")])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 160
    assert counts["seconds"] / 0.2 < 5, counts["seconds"]


def test_loss_changes_no_byte(data, far, link, tmp_path):
    done, counts = link(["--rtt", "10ms", "--loss", "1%"], far, [
        BETON, "dump", far.url("large.beton"), "--out", tmp_path / "out",
        "--spec", SPEC])
    assert done.returncode == 0, done.stderr
    assert counts["clients"][0]["down"]["lost"] > 0
    assert dumped.digest(tmp_path / "out") == \
        remote.dump(data.path, tmp_path / "near", "--spec", SPEC)


def test_outages_change_no_byte(data, far, link, tmp_path):
    done, counts = link(
        ["--rtt", "10ms", "--rate", "30mbit", "--outage", "0.5-1/1", "--seed",
         "4"], far, [BETON, "dump", far.url("large.beton"), "--out",
                     tmp_path / "out", "--spec", SPEC], timeout=100)
    assert done.returncode == 0, done.stderr
    assert counts["clients"][0]["down"]["down"] > 0
    assert dumped.digest(tmp_path / "out") == \
        remote.dump(data.path, tmp_path / "near", "--spec", SPEC)


def test_nodes_do_not_read_each_others_samples(data, far, link, tmp_path):
    """Four nodes, a rank each: the server sends the dataset about once."""
    command = (f"exec {BETON} dump {far.url('large.beton')} --out "
               f"{tmp_path}/out$LINK_CLIENT --rank $LINK_CLIENT --world-size 4 "
               f"--spec {SPEC}")
    done, counts = link(["--rtt", "2ms", "--clients", "4"], far,
                        ["sh", "-c", command])
    assert done.returncode == 0, done.stderr
    sent = sum(c["down"]["bytes"] for c in counts["clients"])
    assert sent <= 1.1 * remote.payload(data) + 4 * (64 << 10), \
        sent / remote.payload(data)
    seen = [i for k in range(4) for b in dumped.read_dump(tmp_path / f"out{k}")
            for i in b.ids]
    assert sorted(set(seen)) == list(range(160))


def test_deep_enough_for_a_long_way(data, far, link, tmp_path):
    """16 MB over a link of 400 Mbit/s with 100 ms: at least a third of it."""
    done, counts = link(["--rtt", "100ms"], far, [
        BETON, "dump", far.url("large.beton"), "--out", tmp_path / "out",
        "--spec", SPEC])
    assert done.returncode == 0, done.stderr
    assert counts["seconds"] < 3 * 12e6 / 50e6 + 2


@pytest.mark.parametrize("options, cause", [
    (["--rtt", "200ms", "--rate", "1gbit"], "latency"),
    (["--rtt", "10ms", "--rate", "30mbit"], "bandwidth")])
def test_the_doctor_names_the_limit_of_a_link(link, tmp_path, options, cause):
    path = remote.large(tmp_path / "large.beton", samples=700, size=50_000).path
    server = servers.Nginx(tmp_path / "far", tmp_path,
                           host=servers.LINK_ADDRESS, port=8080)
    done, _ = link(options, server, [
        BETON, "doctor", "--json", "--seconds", "5", "--cache-size", "16MiB",
        server.url(pathlib.Path(path).name)])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["evidence"]["cause"]) == ("network", cause), \
        told["evidence"]["network"]
    assert any("disk=DIR" in f["option"] for f in told["fixes"])
