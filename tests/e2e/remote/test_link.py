# SPDX-License-Identifier: Apache-2.0
"""build/standin/link, and the servers of servers.py, without a dataset: what the
other tests of URLs measure with."""
import http.client
import subprocess
import time

import pytest

import servers
from conftest import BUILD

SIZE = 4_000_000


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "object").write_bytes(bytes(range(250)) * (SIZE // 250))
    return folder


@pytest.fixture
def far(root, tmp_path, nginx):
    """nginx at the other end of a link, not yet started."""
    servers.need("curl")
    return servers.Nginx(tmp_path / "far", root, host=servers.LINK_ADDRESS,
                         port=8080)


def fetch(url):
    return ["curl", "-sS", "--max-time", "60", "-o", "/dev/null", "-w",
            "%{time_connect} %{time_total} %{size_download}", url]


def test_a_round_trip_takes_as_long_as_asked(far, link):
    done, _ = link(["--rtt", "80ms"], far, fetch(far.url("object")))
    connect, _, size = map(float, done.stdout.split())
    assert size == SIZE, done.stderr
    assert 0.08 <= connect < 0.11


def test_bytes_arrive_at_the_rate(far, link):
    done, counts = link(["--rtt", "2ms", "--rate", "40mbit"], far,
                        fetch(far.url("object")))
    _, seconds, size = map(float, done.stdout.split())
    assert size == SIZE, done.stderr
    assert 0.8 * SIZE / 5e6 < seconds < 1.5 * SIZE / 5e6
    down = counts["clients"][0]["down"]
    assert SIZE < down["bytes"] < 1.05 * SIZE
    assert sum(down["bytes_per_100ms"]) == down["bytes"]
    assert max(down["bytes_per_100ms"]) < 1.1 * 5e5


def test_packets_are_lost_and_sent_again(far, link):
    done, counts = link(["--rtt", "2ms", "--loss", "2%", "--seed", "3"], far,
                        fetch(far.url("object")))
    assert float(done.stdout.split()[2]) == SIZE, done.stderr
    assert counts["clients"][0]["down"]["lost"] > 0


def test_a_link_is_down_for_some_time(far, link):
    done, counts = link(["--rtt", "2ms", "--rate", "20mbit", "--seed", "2",
                         "--outage", "0.2/0.3"], far, fetch(far.url("object")))
    assert float(done.stdout.split()[2]) == SIZE, done.stderr
    assert counts["clients"][0]["down"]["down"] > 0


def test_each_client_has_a_link_of_its_own(far, link):
    done, counts = link(["--clients", "3", "--rtt", "2ms"], far,
                        fetch(far.url("object")))
    assert done.returncode == 0, done.stderr
    assert [SIZE < c["down"]["bytes"] < 1.2 * SIZE
            for c in counts["clients"]] == [True] * 3


def test_the_exit_status_is_the_commands(link):
    run = [BUILD / "standin/link", "--"]
    assert subprocess.run([*run, "sh", "-c", "exit 7"]).returncode == 7
    assert subprocess.run([*run, "/no/such/program"],
                          capture_output=True).returncode == 125


@pytest.mark.parametrize("option", [
    "--rtt=5", "--rate=3", "--loss=x", "--outage=1", "--clients=0", "--mtu=9"])
def test_an_option_that_is_not_valid_is_refused(option):
    path = BUILD / "standin/link"
    if not path.exists():
        pytest.skip(f"no {path}: make unit builds it")
    done = subprocess.run([path, option, "--", "true"], capture_output=True)
    assert done.returncode == 125 and done.stderr


def request(server, name="object", **headers):
    c = http.client.HTTPConnection(server.host, server.port, timeout=10)
    try:
        c.request("GET", f"/{name}", headers={
            k.replace("_", "-"): v for k, v in headers.items()})
        answer = c.getresponse()
        return answer, answer.read()
    finally:
        c.close()


def test_nginx_has_ranges_and_refuses_another_etag(root, nginx):
    server = nginx(root)
    answer, body = request(server, Range="bytes=10-19")
    assert (answer.status, body) == (206, bytes(range(10, 20)))
    assert answer.headers["Content-Range"] == f"bytes 10-19/{SIZE}"
    answer, _ = request(server, If_Match='"other"', Range="bytes=0-0")
    assert answer.status == 412
    seen = server.requests()
    assert [(r.status, r.range) for r in seen] == [
        (206, "bytes=10-19"), (412, "bytes=0-0")]


def test_a_gate_runs_before_each_request(root, nginx):
    seen = []
    server = nginx(root, gate=seen.append)
    for _ in range(3):
        assert request(server, Range="bytes=0-9")[0].status == 206
    assert seen == [0, 1, 2] and len(server.requests()) == 3


def test_haproxy_refuses_while_it_is_in_maintenance(root, nginx, haproxy):
    server = haproxy(nginx(root))
    assert request(server)[0].status == 200
    server.set_maintenance(True)
    assert request(server)[0].status == 503
    server.set_maintenance(False)
    end = time.monotonic() + 10
    while request(server)[0].status != 200:
        assert time.monotonic() < end


def test_rclone_checks_signatures(root, rclone):
    rclone.put("object", root / "object")
    assert request(rclone, "bucket/object")[0].status in (400, 403)


def test_moto_keeps_versions(root, moto):
    moto.make_bucket(versions=True)
    first = moto.put("object", root / "object")
    (root / "object").write_bytes(b"other")
    assert moto.put("object", root / "object") != first
    signed = {"Authorization": moto.any_signature}
    assert request(moto, "bucket/object", **signed)[1] == b"other"
    old = request(moto, f"bucket/object?versionId={first}", **signed)[1]
    assert len(old) == SIZE


def test_a_faulty_server_plays_its_script(root, faulty):
    server = faulty(root, faults=[
        {"kind": "status", "status": 429, "retry_after": 1, "at": [0]},
        {"kind": "reset", "at": [1]}, {"kind": "truncated", "at": [2]},
        {"kind": "wrong_range", "at": [3]}, {"kind": "whole", "at": [4]},
        {"kind": "chunked", "at": [5]}, {"kind": "gzip", "at": [6]},
        {"kind": "redirect", "at": [7]}, {"kind": "flipped", "at": [8]}])
    some = {"Range": "bytes=1000-1999"}
    good = (root / "object").read_bytes()[1000:2000]
    answer, _ = request(server, **some)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    with pytest.raises(OSError):
        request(server, **some)
    with pytest.raises(http.client.IncompleteRead):
        request(server, **some)
    answer, body = request(server, **some)
    assert answer.headers["Content-Range"] == f"bytes 1001-2000/{SIZE}"
    assert len(body) == 1000
    assert len(request(server, **some)[1]) == SIZE
    answer, body = request(server, **some)
    assert "Content-Length" not in answer.headers and body == good
    assert request(server, **some)[0].headers["Content-Encoding"] == "gzip"
    assert request(server, **some)[0].status == 302
    assert request(server, **some)[1] != good
    answer, body = request(server, **some)
    assert (answer.status, body) == (206, good)
    assert request(server, If_Match='"other"')[0].status == 412
    report = server.report()
    assert report["requests"] == 11 and len(report["faults"]) == 9


def test_a_faulty_server_replaces_an_object(root, tmp_path, faulty):
    (tmp_path / "other").write_bytes(b"other")
    server = faulty(root, if_match=False,
                    replaced={"at": 2, "by": str(tmp_path / "other")})
    first, again = (request(server, Range="bytes=0-1")[0] for _ in range(2))
    assert first.headers["ETag"] == again.headers["ETag"]
    answer, body = request(server, If_Match=first.headers["ETag"])
    assert (answer.status, body) == (200, b"other")
    server.play(etag="weak")
    assert request(server)[0].headers["ETag"].startswith("W/")
    assert server.report()["requests"] == 1
