# SPDX-License-Identifier: Apache-2.0
"""Datasets that are written to URLs: the objects are those that local files
would be, and nothing is left of a run that fails."""
import base64
import http.client
import http.server
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import numpy as np
import pytest

import betonfile
from conftest import is_instrumented

Image = pytest.importorskip("PIL.Image")

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).absolute()
PART = 8 << 20


def run(name, *args, env=None, **how):
    return subprocess.run(
        [BUILD / name, *map(str, args)], text=True, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=120,
        env={**os.environ, **(env.environment() if env else {})}, **how)


def mkfs(*args, env=None, **how):
    return run("mkfs.beton", *args, env=env, **how)


def write(*args, env=None, **how):
    r = mkfs(*args, env=env, **how)
    assert r.returncode == 0, r.stderr
    return r


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """18 MiB of pixels in two classes: more than the parts that wait."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for c in ("cat", "dog"):
        (root / c).mkdir()
        for i in range(16):
            few = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(few).resize((448, 448), 0).save(
                root / c / f"{i:02}.png", compress_level=1)
    return root


@pytest.fixture(scope="module")
def local(photos, tmp_path_factory):
    """The file that mkfs.beton makes of them."""
    path = tmp_path_factory.mktemp("local") / "local.beton"
    write("--mode=raw", photos, path)
    betonfile.Beton(path).check()
    return path


# --- the server's side -------------------------------------------------------

class Between:
    """Passes requests on to an S3 server. fault(number, method, query, key) decides:
    None, "drop" (no answer), "lose" (the answer, after the server has it), or
    (status, body)."""

    def __init__(self, server):
        self.server, self.fault = server, lambda *request: None
        self.lock, self.seen = threading.Lock(), []
        self.keep, self.kept = False, []
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def any(self):
                between.take(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = any

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def environment(self):
        return {**self.server.environment(),
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def take(self, handler):
        size = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(size)
        if len(body) < size:        # the client has ended
            return
        query = urllib.parse.urlsplit(handler.path).query
        with self.lock:
            number = len(self.seen)
            self.seen.append((handler.command, query))
        key = re.search("Credential=([^/]*)/",
                        handler.headers.get("Authorization", ""))
        fault = self.fault(number, handler.command, query, key and key[1])
        if fault == "drop":
            return self.drop(handler)
        if isinstance(fault, tuple):
            return self.answer(handler, fault[0], [], fault[1].encode())
        if self.keep:
            self.kept.append((handler.command, query, dict(handler.headers),
                              body))
        c = http.client.HTTPConnection(self.server.host, self.server.port)
        # A client of a proxy sends the whole URL.
        path = re.sub("^http://[^/]*", "", handler.path)
        c.request(handler.command, path, body, dict(handler.headers))
        got = c.getresponse()
        text = got.read()
        if fault == "lose":
            return self.drop(handler)
        self.answer(handler, got.status, got.getheaders(), text,
                    got.getheader("Content-Length"))

    def drop(self, handler):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, handler, status, headers, text, length=None):
        handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding",
                                    "connection"):
                handler.send_header(name, value)
        is_head = handler.command == "HEAD"
        handler.send_header("Content-Length",
                            length if is_head and length else len(text))
        handler.end_headers()
        if not is_head:
            handler.wfile.write(text)

    def forget(self, fault=None):
        self.seen.clear()
        self.fault = fault or (lambda *request: None)


@pytest.fixture
def between(moto):
    b = Between(moto)
    yield b
    b.http.shutdown()
    b.http.server_close()


def get(moto, path):
    c = http.client.HTTPConnection(moto.host, moto.port)
    c.request("GET", f"/{moto.bucket}{path}",
              headers={"Authorization": moto.any_signature})
    answer = c.getresponse()
    text = answer.read()
    return text if answer.status == 200 else None


def unfinished(moto):
    return re.findall(rb"<UploadId>", get(moto, "?uploads"))


# --- objects are those of local files ----------------------------------------

def test_object_is_the_local_file(rclone, photos, local):
    r = write("--mode=raw", photos, rclone.url("new/a.beton"), env=rclone)
    assert (rclone.root / "bucket/new/a.beton").read_bytes() == \
        local.read_bytes()
    assert re.search(r"uploaded \d+ bytes in \d+ parts, ETag \"", r.stderr)
    assert "32 samples of 2 classes" in r.stdout
    assert "//bucket/new/a.beton" in r.stdout


@pytest.mark.quick
def test_small_object_is_one_request(between, moto, photos, tmp_path):
    options = "--mode=raw", "--limit=3", "--page-size=2M"
    write(*options, photos, tmp_path / "x.beton")
    write(*options, photos, moto.url("x.beton"), env=between)
    assert [m for m, _ in between.seen] == ["GET", "PUT"]
    assert get(moto, "/x.beton") == (tmp_path / "x.beton").read_bytes()


@pytest.mark.parametrize("options", [
    ["--page-size=2M"], ["--page-size=64M"],
    ["--page-size=2M", "--fields=label", "--where=label == 1"]],
    ids=" ".join)
def test_options_change_nothing(moto, photos, tmp_path, options):
    write("--mode=raw", *options, photos, tmp_path / "x.beton")
    write("--mode=raw", *options, photos, moto.url("x.beton"), env=moto)
    assert get(moto, "/x.beton") == (tmp_path / "x.beton").read_bytes()


def test_left_out_samples_leave_no_gap(moto, tmp_path):
    """Metadata of 70,000 announced samples take another page than those of the
    few that can be read."""
    root = tmp_path / "photos"
    root.mkdir()
    good = root / "good.jpg"
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(good)
    for i in range(90000):
        os.link(good, root / f"{i:05}.jpg") if i % 9000 == 0 else \
            os.symlink("empty.bin", root / f"{i:05}.jpg")
    (root / "empty.bin").write_bytes(b"\xff\xd8\xff")
    options = "--mode=keep", "--on-error=skip", "--page-size=2M"
    write(*options, root, tmp_path / "x.beton")
    write(*options, root, moto.url("x.beton"), env=moto)
    assert get(moto, "/x.beton") == (tmp_path / "x.beton").read_bytes()


def crc32c(data):
    """Bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_s3_checks_each_part(between, moto, photos, local):
    """AWS compares a CRC-32C of each part. The proxy is moto instead of AWS."""
    class Aws:
        def environment(self):
            return {**between.environment(),
                    "http_proxy": f"http://127.0.0.1:{between.port}",
                    "AWS_ENDPOINT_URL": "http://s3.us-east-1.amazonaws.com"}

    between.keep = True
    write("--mode=raw", photos, moto.url("a.beton"), env=Aws())
    kept = between.kept
    begin = [h for m, q, h, b in kept if m == "POST" and q.startswith("uploads")]
    assert begin[0]["x-amz-checksum-algorithm"] == "CRC32C"
    parts = {int(re.search(r"partNumber=(\d+)", q)[1]):
             (h["x-amz-checksum-crc32c"], b)
             for m, q, h, b in kept if m == "PUT"}
    assert sorted(parts) == list(range(1, len(parts) + 1))
    smallest = min(parts.values(), key=lambda part: len(part[1]))
    sum_, body = smallest
    assert sum_ == base64.b64encode(crc32c(body).to_bytes(4, "big")).decode()
    end = [b for m, q, h, b in kept if m == "POST" and "uploadId" in q][0]
    for sum_, _ in parts.values():
        assert f"<ChecksumCRC32C>{sum_}</ChecksumCRC32C>".encode() in end
    assert get(moto, "/a.beton") == local.read_bytes()


def test_appending_replaces_the_object_that_was_read(between, moto, photos,
                                                     tmp_path):
    for kind, env in ("", None), (moto.url(""), between):
        for i in (0, 1):
            write("--mode=raw", f"--shard={i}/2", *["--append"] * i, photos,
                  f"{kind}a.beton", env=env, cwd=tmp_path)
    assert get(moto, "/a.beton") == (tmp_path / "a.beton").read_bytes()

    def fault(number, method, query, key):
        if method == "POST" and query.startswith("uploadId"):
            moto.call("PUT", f"/{moto.bucket}/a.beton", b"\2\0 another one")

    between.forget(fault)
    r = mkfs("--mode=raw", "--append", photos, moto.url("a.beton"), env=between)
    # The last one looks for checksums.
    assert between.seen[-2][0] == "POST" or r.returncode == 1
    if r.returncode:        # not every moto compares If-Match
        assert "another program wrote it meanwhile" in r.stderr
        assert get(moto, "/a.beton") == b"\2\0 another one"


# --- what has the name -------------------------------------------------------

def test_only_a_dataset_is_replaced(rclone, photos, local):
    at = rclone.root / "bucket/a.beton"
    at.write_bytes(b"PK\3\4 an archive")
    r = mkfs("--mode=raw", photos, rclone.url("a.beton"), env=rclone)
    assert r.returncode == 1
    assert "no dataset has this name" in r.stderr
    assert at.read_bytes() == b"PK\3\4 an archive"
    at.write_bytes(b"")
    write("--mode=raw", photos, rclone.url("a.beton"), env=rclone)
    write("--mode=raw", photos, rclone.url("a.beton"), env=rclone)
    assert at.read_bytes() == local.read_bytes()


def test_missing_bucket_is_an_error(moto, photos):
    r = mkfs("--mode=raw", photos, "s3://another/a.beton", env=moto)
    assert r.returncode == 1 and "NoSuchBucket" in r.stderr


def test_wrong_key_is_an_error(rclone, photos):
    class Wrong:
        def environment(self):
            return {**rclone.environment(), "AWS_SECRET_ACCESS_KEY": "no"}

    r = mkfs("--mode=raw", photos, rclone.url("a.beton"), env=Wrong())
    assert r.returncode == 1 and "403" in r.stderr


# --- failures ----------------------------------------------------------------

def count(between, photos, moto):
    between.forget()
    write("--mode=raw", photos, moto.url("a.beton"), env=between)
    n = len(between.seen)
    between.forget()
    return n


def forbidden(n):
    return lambda i, method, query, key: \
        (403, "<Error><Code>AccessDenied</Code><Message>No</Message></Error>"
         ) if i == n and method != "DELETE" else None


def test_failure_of_any_request_leaves_nothing(between, moto, photos):
    """The first request finds out whether there is an object. A user who may
    write may be not allowed to know."""
    n = count(between, photos, moto)
    moto.call("DELETE", f"/{moto.bucket}/a.beton")
    assert n >= 6
    for i in range(n):
        between.forget(forbidden(i))
        r = mkfs("--mode=raw", photos, moto.url("a.beton"), env=between)
        assert r.returncode == (i != 0), r.stderr
        if i:
            assert "AccessDenied: No" in r.stderr
        assert (get(moto, "/a.beton") is None) == (i != 0)
        assert not unfinished(moto)
        if not i:
            moto.call("DELETE", f"/{moto.bucket}/a.beton")


REFUSED = "<?xml version='1.0'?>\n\n<Error><Code>InternalError</Code></Error>"


@pytest.mark.parametrize("faults", [["drop", (200, REFUSED)],
                                    ["lose", (503, ""), (500, "oops")]],
                         ids=str)
def test_any_request_is_repeated(between, moto, photos, local, faults):
    n = count(between, photos, moto)
    moto.call("DELETE", f"/{moto.bucket}/a.beton")
    lost = 0
    for i in range(n):
        fault = faults[i % len(faults)]
        if i == n - 1:
            fault = faults[0]       # the request that completes the upload
        between.forget(lambda k, *request: fault if k == i else None)
        r = mkfs("--mode=raw", photos, moto.url("a.beton"), env=between)
        assert r.returncode == 0, (i, r.stderr, between.seen)
        assert get(moto, "/a.beton") == local.read_bytes()
        # Without that answer, the client cannot abort the upload.
        lost += fault == "lose" and between.seen[i][1].startswith("uploads")
        assert len(unfinished(moto)) <= lost
        moto.call("DELETE", f"/{moto.bucket}/a.beton")


def test_server_that_drops_one_request_in_ten(between, moto, photos, local):
    rng = np.random.default_rng(7)
    for _ in range(2):
        between.forget(lambda *request: "drop" if rng.random() < .1 else None)
        write("--mode=raw", "--page-size=2M", photos, moto.url("a.beton"),
              env=between)
        between.forget()
    write("--mode=raw", "--page-size=2M", photos, moto.url("b.beton"), env=moto)
    assert get(moto, "/a.beton") == get(moto, "/b.beton")
    assert not unfinished(moto)


def test_object_of_another_program_stays(between, moto, photos):
    def fault(number, method, query, key):
        if method == "POST" and query.startswith("uploadId"):
            moto.call("PUT", f"/{moto.bucket}/a.beton", b"\2\0 another one")

    between.forget(fault)
    r = mkfs("--mode=raw", photos, moto.url("a.beton"), env=between)
    if r.returncode == 0:
        pytest.skip("this moto does not know If-None-Match")
    assert "another program wrote it meanwhile" in r.stderr
    assert get(moto, "/a.beton") == b"\2\0 another one"
    assert not unfinished(moto)


def start(*args, env):
    return subprocess.Popen(
        [BUILD / "mkfs.beton", *map(str, args)], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, **env.environment()})


@pytest.mark.parametrize("s, at", [
    (signal.SIGINT, "GET "), (signal.SIGTERM, "POST uploads"),
    (signal.SIGINT, "PUT part"), (signal.SIGTERM, "POST uploadId")])
def test_signal_aborts_the_upload(between, moto, photos, s, at):
    reached, goes_on = threading.Event(), threading.Event()

    def fault(number, method, query, key):
        if f"{method} {query}".startswith(at):
            reached.set()
            goes_on.wait(20)
            return "drop"

    between.forget(fault)
    p = start("--mode=raw", photos, moto.url("a.beton"), env=between)
    assert reached.wait(30)
    begin = time.monotonic()
    p.send_signal(s)
    out, err = p.communicate(timeout=30)
    assert p.returncode == -s, err
    assert time.monotonic() - begin < 5
    goes_on.set()
    assert get(moto, "/a.beton") is None
    assert not unfinished(moto)


def test_unanswered_retries_end(between, moto, photos):
    """503 for a while; the program does not end before that."""
    end = time.monotonic() + 3
    between.forget(lambda *request:
                   (503, "") if time.monotonic() < end else None)
    r = write("--mode=raw", photos, moto.url("a.beton"), env=between)
    assert "trying again for up to" in r.stderr


def test_credentials_expire_in_the_middle(between, moto, photos, local,
                                          tmp_path):
    count = tmp_path / "count"
    process = tmp_path / "process"
    process.write_text(f"""#!/bin/sh
echo x >> {count}
echo '{{"Version": 1, "AccessKeyId": "KEY'$(wc -l < {count})'", \
"SecretAccessKey": "secret", "SessionToken": "token", \
"Expiration": "2099-01-01T00:00:00Z"}}'
""")
    process.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = {process}\n")

    class Session:
        def environment(self):
            env = {**between.environment(), "AWS_CONFIG_FILE": str(config)}
            return {**env, "AWS_ACCESS_KEY_ID": "",
                    "AWS_SECRET_ACCESS_KEY": ""}

    between.forget(lambda number, method, query, key: (
        400, "<Error><Code>ExpiredToken</Code></Error>")
        if key == "KEY1" and number >= 3 else None)
    write("--mode=raw", photos, moto.url("a.beton"), env=Session())
    assert get(moto, "/a.beton") == local.read_bytes()
    assert len(count.read_text().split()) == 2


# --- checksums ---------------------------------------------------------------

@pytest.mark.parametrize("page", ["2M", "8M"])
def test_checksums_follow_the_dataset(between, moto, photos, tmp_path, page):
    options = "--mode=raw", "--sums", f"--page-size={page}"
    write(*options, photos, tmp_path / "a.beton")
    write(*options, photos, moto.url("a.beton"), env=between)
    assert get(moto, "/a.beton.sums") == \
        (tmp_path / "a.beton.sums").read_bytes()
    # The dataset is not read again, but for its fingerprint.
    assert sum(m == "GET" for m, _ in between.seen) < 12


def test_stale_checksums_are_reported_once(moto, photos):
    options = "--mode=raw", "--limit=2", "--page-size=2M"
    url = moto.url("stale.beton")
    for more, stale in ((), 0), (["--sums"], 0), (["--sums"], 0), ((), 1):
        r = write(*options, *more, photos, url, env=moto)
        assert r.stderr.count("stale.beton.sums: contains the checksums of "
                              "the replaced object") == stale, r.stderr


# --- other servers -----------------------------------------------------------

@pytest.fixture
def webdav(nginx, tmp_path):
    root = tmp_path / "dav"
    root.mkdir()
    return nginx(root, extra="dav_methods PUT DELETE; create_full_put_path on;"
                 "client_max_body_size 0;"), root


def test_webdav_server_takes_one_request(webdav, photos, local):
    server, root = webdav
    r = write("--mode=raw", photos, server.url("new/a.beton"))
    assert (root / "new/a.beton").read_bytes() == local.read_bytes()
    assert [q.method for q in server.requests()] == ["GET", "PUT"]
    write("--mode=raw", photos, server.url("new/a.beton"))
    (root / "x").write_bytes(b"another file")
    r = mkfs("--mode=raw", photos, server.url("x"))
    assert r.returncode == 1 and "no dataset has this name" in r.stderr


def test_server_that_refuses_is_an_error(nginx, photos, tmp_path):
    server = nginx(tmp_path)
    r = mkfs("--mode=raw", "--limit=1", "--page-size=2M", photos,
             server.url("a.beton") + "?secret=7")
    assert r.returncode == 1 and "limits the size" in r.stderr
    assert "secret" not in r.stderr


# --- other programs ----------------------------------------------------------

def test_merge_and_split_and_optimize(moto, photos, local, tmp_path):
    for i in (0, 1):
        write("--mode=raw", f"--shard={i}/2", photos, tmp_path / f"{i}.beton")
    r = run("beton", "merge", tmp_path / "0.beton", tmp_path / "1.beton",
            moto.url("m.beton"), env=moto)
    assert r.returncode == 0, r.stderr
    assert get(moto, "/m.beton") == local.read_bytes()
    assert f"{local.stat().st_size} bytes" in r.stdout
    r = run("beton", "split", "--by=label", local, moto.url("parts"), env=moto)
    assert r.returncode == 0, r.stderr
    run("beton", "split", "--by=label", local, tmp_path / "parts")
    for c in ("cat", "dog"):
        assert get(moto, f"/parts/{c}.beton") == \
            (tmp_path / f"parts/{c}.beton").read_bytes()
    write("--mode=jpg", photos, tmp_path / "jpg.beton")
    for out in moto.url("fast.beton"), tmp_path / "fast.beton":
        r = run("beton", "optimize", tmp_path / "jpg.beton", out, env=moto)
        assert r.returncode == 0, r.stderr
    assert get(moto, "/fast.beton") == (tmp_path / "fast.beton").read_bytes()


def test_python_writes_urls(rclone, tmp_path):
    package = BUILD / "python"
    if not (package / "betonfs/_writer.py").exists():
        pytest.skip("no Python package in the build: make python")
    program = """
import sys
import betonfs
samples = [{"label": i, "text": {"i": i}} for i in range(100)]
for path in sys.argv[1:]:
    betonfs.write(path, samples)
    try:
        betonfs.write(path, samples)
    except FileExistsError as e:
        print(e)
    betonfs.write(path, samples, overwrite=True)
    betonfs.write(path, samples, append=True)
betonfs.merge(sys.argv[1:2], sys.argv[1] + ".2")
"""
    r = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a", rclone.url("a")],
        text=True, capture_output=True, timeout=60,
        env={**os.environ, **rclone.environment(), "PYTHONPATH": package})
    assert r.returncode == 0, r.stderr
    assert r.stdout.count("overwrite=True") == 2
    assert (rclone.root / "bucket/a").read_bytes() == \
        (tmp_path / "a").read_bytes()


@pytest.mark.skipif(is_instrumented,
                    reason="sanitizers take memory of their own")
def test_memory_is_bounded(rclone, tmp_path):
    """200 MB in an address space that has no room for them."""
    raw = tmp_path / "x.npy"
    np.save(raw, np.zeros((200, 1 << 20), np.uint8))

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (160 << 20, 160 << 20))

    write("-j1", raw, rclone.url("x.beton"), env=rclone, preexec_fn=limit)
    assert (rclone.root / "bucket/x.beton").stat().st_size > 200 << 20
