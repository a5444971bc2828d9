# SPDX-License-Identifier: Apache-2.0
"""Mounts, tools and Python with a URL in place of a file."""
import contextlib
import json
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import make
from conftest import (BUILD, DEADLINE, end_with_parent, is_instrumented, mounts,
                      wait_until)

BETON, BETONFS = BUILD / "beton", BUILD / "betonfs"
SECRET = "hunter2"


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Larger than the bytes that are read when it is opened."""
    folder = tmp_path_factory.mktemp("www")
    rng = np.random.default_rng(3)
    fields = [("label", make.INT), ("blob", make.BYTES)]
    return make.Dataset(folder / "big.beton", fields, [
        {"label": i, "blob": rng.bytes(60000 + i)} for i in range(100)],
        1 << 16)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    return [make.every_type(folder / f"part-{i:02}.beton", seed=i)
            for i in range(3)]


@contextlib.contextmanager
def mounted(where, *args, code=0, **variables):
    """betonfs in the foreground; yields a function of what it has printed."""
    where.mkdir(exist_ok=True)
    log = pathlib.Path(f"{where}.log")
    with open(log, "w") as out:
        p = subprocess.Popen([BETONFS, "-f", *map(str, args), where],
                             stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                             env={**os.environ, **variables},
                             preexec_fn=end_with_parent)

    def is_up():
        assert p.poll() is None, log.read_text()
        return str(where) in mounts() and os.path.exists(where / ".betonfs")
    try:
        wait_until(is_up, "the mount")
        yield log.read_text
    finally:
        p.send_signal(signal.SIGTERM)
        try:
            assert p.wait(DEADLINE) == code, log.read_text()
        finally:
            p.kill()
            subprocess.run(["fusermount3", "-uzq", where])


def options_of(where):
    text = (where / ".betonfs/options").read_text()
    return dict(line.partition("=")[::2] for line in text.splitlines())


def check_samples(where, d):
    for i in range(len(d.values)):
        folder = where / "samples" / d.name(i)
        for name in d.types:
            if d.types[name] not in (make.INT, make.BYTES, make.JSON):
                continue    # has a form of its own in a mount
            assert (folder / d.file(i, name)).read_bytes() \
                == d.content(i, name), (i, name)


def run(*args, **variables):
    return subprocess.run([str(a) for a in args], text=True,
                          capture_output=True, timeout=60,
                          env={**os.environ, **variables})


# --- mounts ---

@pytest.mark.parametrize("tls", [False, True])
def test_a_confined_mount_reads_all(fuse, tmp_path, big, nginx, certificate,
                                    tls):
    server = nginx(pathlib.Path(big.path).parent,
                   tls=certificate if tls else None)
    where = tmp_path / "mnt"
    url = server.url("big.beton").replace("127.0.0.1", "localhost")
    with mounted(where, url, CURL_CA_BUNDLE=str(certificate.ca),
                 SSL_CERT_FILE=str(certificate.ca)) as printed:
        options = options_of(where)
        assert options["dataset"] == url
        assert options["cache"] == "process"
        assert "the kernel caches no URLs" in options["why"]
        # Connections that are gone are made again inside the sandbox.
        server.stop()
        server.start()
        check_samples(where, big)
        assert not re.search("EPERM|Operation not permitted", printed())
    ranges = [r for r in server.requests() if r.status == 206]
    assert sum(r.sent for r in ranges) < 1.05 * os.path.getsize(big.path)


def command_lines():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_text(errors="replace")


@pytest.mark.parametrize("line", ["beton info URL", "fsck.beton URL",
                                  "mkfs.beton FILE URL", "betonfs -f URL DIR"])
def test_the_list_of_processes_shows_no_password(tmp_path, big, line):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = (f"http://user:{SECRET}@127.0.0.1:{server.getsockname()[1]}/x"
               f"?X-Amz-Signature={SECRET}")
        known = {"URL": url, "FILE": big.path, "DIR": str(tmp_path)}
        program, *words = line.split()
        child = subprocess.Popen(
            [os.path.join(BUILD, program),
             *(known.get(word, word) for word in words)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            server.settimeout(30)
            server.accept()[0].close()
            shown = pathlib.Path(f"/proc/{child.pid}/cmdline").read_text()
        finally:
            child.kill()
            child.wait()
    assert "/x" in shown and SECRET not in shown


def test_no_secret_is_shown(fuse, tmp_path, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    where = tmp_path / "mnt"
    url = server.url("big.beton").replace(
        "//", f"//user:{SECRET}@") + f"?X-Amz-Signature={SECRET}"
    with mounted(where, "-v", url) as printed:
        check_samples(where, big)
        assert mounts()[str(where)][0] == server.url("big.beton")
        for path in where.glob(".betonfs/*"):
            if path.is_file():
                assert SECRET not in path.read_text(errors="replace"), path
        assert SECRET not in (where / "dataset.json").read_text()
        assert SECRET not in printed()
        lines = [line for line in command_lines() if str(where) in line]
        assert lines and SECRET not in str(lines), lines
    printed = run(BETON, "info", url)
    assert printed.stdout.startswith(server.url("big.beton") + ": ")
    assert SECRET not in printed.stdout + printed.stderr


@pytest.mark.quick
def test_several_urls(fuse, tmp_path, parts, big, nginx):
    server = nginx(pathlib.Path(parts[0].path).parent)
    other = nginx(pathlib.Path(big.path).parent)
    where = tmp_path / "mnt"
    with mounted(where, server.url("part-").replace("%2D", "-")
                 + "{00..02}.beton", other.url("big.beton"), big.path):
        assert sorted(p.name for p in where.iterdir()) \
            == ["big", "big~2", "part"]
        check_samples(where / "big", big)
        check_samples(where / "big~2", big)
        described = json.loads((where / "part/dataset.json").read_text())
        assert described["samples"] == sum(len(p.values) for p in parts)
        for i in range(90):
            at = where / "part/samples" / f"{i:06}"
            assert (at / "blob.bin").read_bytes() \
                == parts[i // 30].stored(i % 30, "blob")


def test_one_operand_of_fstab_names_several(fuse, tmp_path, parts, nginx):
    server = nginx(pathlib.Path(parts[0].path).parent)
    where = tmp_path / "mnt"
    with mounted(where, server.url("part-00.beton") + ":" + parts[1].path
                 + ":" + server.url("part-02.beton")):
        for i, d in enumerate(parts):
            check_samples(where / f"part-{i:02}", d)


def test_many_urls_in_a_small_cache(mount, tmp_path, nginx):
    """Their tables alone could fill it."""
    for k in range(4):
        make.two_numbers(tmp_path / f"{k}.beton", 150_000)
    server = nginx(tmp_path)
    where = mount("{%s}" % ",".join(server.url(f"{k}.beton") for k in range(4)),
                  "-o", "cache=process,cache_size=16m",
                  expects="tables of URLs take up to .* set cache_size to")
    described = json.loads((where / "dataset.json").read_text())
    assert described["samples"] == 600_000
    assert (where / "samples/450007/other").read_text() == "49\n"


def test_storage_options(fuse, tmp_path, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    where = tmp_path / "mnt"
    header = tmp_path / "header"
    header.write_text(f"X-Token: {SECRET}\n")
    with mounted(where, "-o", f"connections=3,retry=90,header={header}",
                 server.url("big.beton"),
                 BETON_STORAGE_OPTIONS="retry=5,disk_size=1GiB"):
        options = options_of(where)
        assert options["connections"] == "3"
        assert options["retry"] == "90s"
        assert options["disk_size"] == str(1 << 30)
        assert options["header"] == str(header)
        assert SECRET not in str(options)
        check_samples(where, big)


def tier_of(where):
    network, = json.loads((where / ".betonfs/stats.json").read_text())[
        "network"]
    return network["tier"]


def test_the_disk_tier_survives_a_mount(fuse, tmp_path, big, nginx):
    space = os.statvfs(tmp_path)
    if space.f_bavail < 0.06 * space.f_blocks:
        pytest.skip("a tier leaves 5 % of its file system free, and "
                    f"{tmp_path} has no more")
    server = nginx(pathlib.Path(big.path).parent)
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    where = tmp_path / "mnt"
    for i in range(2):
        with mounted(where, "-o", f"disk={disk}", server.url("big.beton")):
            check_samples(where, big)
            wait_until(lambda: tier_of(where)["stored_bytes"]
                       == os.path.getsize(big.path), "a copy of all bytes")
        requests = server.requests()
        server.forget()
    assert sum(r.sent for r in requests) <= 2 << 20, requests


@pytest.mark.parametrize("words, code, message", [
    (["-o", "cache=os", "URL"], 1, "the kernel caches files, and no URLs"),
    (["-o", "connections=0", "URL"], 1, "a whole number from 1 to 256"),
    (["-o", "connectoins=3", "URL"], 1, "did you mean `connections'"),
    (["*.URL"], 32, "a URL has no wildcards"),
    (["none.URL"], 32, "404"),
    (["page.html"], 33, "not a .beton"),
    (["hf://x/y.beton"], 32,
     "hf://x/y.beton: no file, and no URL of a known scheme"),
    ([f"htp://u:{SECRET}@x/y?{SECRET}"], 32,
     "htp://x/y: no file, and no URL of a known scheme"),
    ([f"http://u:{SECRET}@127.0.0.1:1/*?{SECRET}"], 32, "no wildcards"),
])
def test_wrong_mounts(fuse, tmp_path, big, nginx, words, code, message):
    folder = pathlib.Path(big.path).parent
    (folder / "page.html").write_text("<html>" + 5000 * "x")
    server = nginx(folder)
    urls = {"URL": "big.beton", "*.URL": "*.beton", "none.URL": "none.beton",
            "page.html": "page.html"}
    words = [server.url("") + urls[w] if w in urls else w for w in words]
    done = run(BETONFS, *words, tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert SECRET not in done.stderr


def test_statistics(fuse, tmp_path, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    where = tmp_path / "mnt"
    with mounted(where, "-o", f"disk={disk}", server.url("big.beton"),
                 big.path):
        check_samples(where / "big", big)
        check_samples(where / "big~2", big)
        network, = json.loads((where / ".betonfs/stats.json").read_text())[
            "network"]
        metrics = (where / ".betonfs/metrics").read_text()
        drawn = run(BETON, "top", "--once", "--interval", "0.1", where).stdout
        told = json.loads(run(BETON, "top", "--once", "--json", "--interval",
                              "0.1", where).stdout)["network"]
    size = os.path.getsize(big.path)
    assert network["dataset"] == "big"
    assert 0.9 * size < network["payload_bytes"] <= network["wire_bytes"]
    assert network["latency_s"] >= 0
    assert network["requests"] >= network["connections"] > 0
    assert not network["failures"] and not network["retries"]
    assert re.search("^network  big: .* ms, 0 of .* in flight, 0 retries, "
                     "0 throttled, tier .* of ", drawn, re.M), drawn
    assert [(t["dataset"], t["is_out"]) for t in told] == [("big", False)]
    assert told[0]["tier_size_bytes"] == size and not network["is_out"]
    tier = network["tier"]
    assert tier["size_bytes"] == size
    assert tier["missed_bytes"] + tier["hit_bytes"] > 0
    assert re.search(r'betonfs_network_wire_bytes_total\{.*dataset="big".*\} '
                     f'{network["wire_bytes"]}', metrics)


def test_tiers_of_several_urls(fuse, tmp_path, parts, nginx):
    server = nginx(pathlib.Path(parts[0].path).parent)
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    where = tmp_path / "mnt"
    with mounted(where, "-o", f"disk={disk}",
                 server.url("part-").replace("%2D", "-") + "{00..02}.beton"):
        network, = json.loads((where / ".betonfs/stats.json").read_text())[
            "network"]
        assert network["tier"]["size_bytes"] \
            == sum(os.path.getsize(p.path) for p in parts)


# --- tools ---

def test_tools_read_urls(tmp_path, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    url, out = server.url("big.beton"), tmp_path / "out.beton"
    for args in (["info", "--json"], ["dump", "--out", tmp_path / "dumped"],
                 ["bench", "--until", "read", "--epochs", "2", "--json"]):
        assert not run(BETON, *args, url).returncode, args
    done = run(BUILD / "mkfs.beton", url, out)
    assert not done.returncode, done.stderr
    assert not run(BUILD / "fsck.beton", out).returncode
    done = run(BUILD / "fsck.beton", url)
    assert not done.returncode, done.stderr


def test_tools_take_options_of_the_environment(tmp_path, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    done = run(BETON, "info", server.url("big.beton"),
               BETON_STORAGE_OPTIONS="connectoins=3")
    assert done.returncode
    assert done.stderr.count("\n") == 1
    assert "BETON_STORAGE_OPTIONS: connectoins: unknown option; did you mean " \
        "`connections'" in done.stderr


# --- Python ---

@pytest.fixture(scope="module")
def betonfs():
    if is_instrumented:
        pytest.skip("python has no sanitizer")
    sys.path.insert(0, str(BUILD / "python"))
    import betonfs
    return betonfs


def test_a_loader_of_a_url(betonfs, big, nginx):
    server = nginx(pathlib.Path(big.path).parent)
    how = dict(batch_size=16, seed=3, tensors="numpy", drop_last=False)
    url = server.url("big.beton") + f"?sig={SECRET}"
    of_file = [(b.ids.tolist(), b["label"].tolist())
               for b in betonfs.Loader(big.path, **how)]
    loader = betonfs.Loader(url, **how, storage_options={
        "connections": 4, "retry": "10s", "no_sign": True})
    assert SECRET not in repr(loader)
    assert [(b.ids.tolist(), b["label"].tolist()) for b in loader] == of_file
    network = loader.stats()["network"]
    assert network["payload_bytes"] > 0.9 * os.path.getsize(big.path)
    assert network["requests"] > 0 and network["is_out"] is False
    assert betonfs.Loader(big.path, **how).stats()["network"] is None
    again = pickle.loads(pickle.dumps(loader))
    again.set_epoch(0)
    assert len([b for b in again]) == len(of_file)
    d = betonfs.Dataset(url, storage_options="connections=4")
    assert d[7]["label"] == 7 and SECRET not in repr(d)
    assert bytes(pickle.loads(pickle.dumps(d))[8]["blob"]) \
        == big.stored(8, "blob")


@pytest.mark.parametrize("options, kind, message", [
    ({"anon": True}, ValueError, "no_sign"),
    ({"secret": SECRET}, ValueError, "no option contains a secret"),
    ("connections=x", ValueError, "a whole number from 1 to 256"),
    ({"disk": 3.5}, TypeError, "a text, a whole number or a bool"),
    (7, TypeError, "a dict"),
])
def test_wrong_storage_options(betonfs, options, kind, message):
    for make_one in (betonfs.Loader, betonfs.Dataset):
        with pytest.raises(kind, match=message) as e:
            make_one("http://127.0.0.1:1/x", storage_options=options)
        assert SECRET not in str(e.value)


@pytest.mark.parametrize("status, kind", [
    (404, FileNotFoundError), (403, PermissionError), (401, PermissionError)])
def test_errors_of_a_server(betonfs, tmp_path, nginx, status, kind):
    server = nginx(tmp_path, extra=f"return {status};")
    for make_one in (betonfs.Loader, betonfs.Dataset):
        with pytest.raises(kind) as e:
            make_one(server.url("x.beton") + f"?{SECRET}")
        assert isinstance(e.value, betonfs.BetonError)
        assert str(status) in str(e.value)
        assert SECRET not in str(e.value)


def test_pathlib_breaks_urls(betonfs):
    with pytest.raises(ValueError, match="pass the URL as a str"):
        betonfs.Loader(pathlib.Path("https://h/x.beton"))


def test_dataset_in_workers(betonfs, big, nginx):
    """Children of fork() open it again."""
    server = nginx(pathlib.Path(big.path).parent)
    d = betonfs.Dataset(server.url("big.beton"))
    assert bytes(d[99]["blob"]) == big.stored(99, "blob")
    child = os.fork()
    if not child:
        ok = False
        with contextlib.suppress(BaseException):
            ok = bytes(d[50]["blob"]) == big.stored(50, "blob")
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bytes(d[51]["blob"]) == big.stored(51, "blob")


@pytest.fixture
def silent():
    """A server that accepts and never answers."""
    s = socket.create_server(("127.0.0.1", 0))
    taken = []

    def take():
        with contextlib.suppress(OSError):
            while True:
                taken.append(s.accept()[0])
    threading.Thread(target=take, daemon=True).start()
    yield f"http://127.0.0.1:{s.getsockname()[1]}/x.beton"
    s.close()
    for t in taken:
        t.close()


@pytest.mark.parametrize("name", ["Loader", "Dataset"])
def test_ctrl_c_while_a_server_is_silent(betonfs, silent, name):
    code = (f"import betonfs, time, sys\nprint(flush=True)\n"
            f"try:\n betonfs.{name}({silent!r})\n"
            "except KeyboardInterrupt:\n print('interrupted')\n")
    p = subprocess.Popen([sys.executable, "-c", code], text=True,
                         stdout=subprocess.PIPE, preexec_fn=end_with_parent,
                         env={**os.environ, "PYTHONPATH": BUILD / "python"})
    p.stdout.readline()
    time.sleep(0.5)
    begin = time.monotonic()
    p.send_signal(signal.SIGINT)
    try:
        assert p.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < 2
        p.wait(5)
    finally:
        p.kill()


def test_close_while_a_server_is_silent(betonfs, big, nginx):
    stall, stalls = threading.Event(), threading.Event()
    server = nginx(pathlib.Path(big.path).parent,
                   gate=lambda n: stalls.is_set() and stall.wait(20))
    loader = betonfs.Loader(server.url("big.beton"), 4, tensors="numpy",
                            storage_options={"connections": 1})
    stalls.set()
    time.sleep(0.3)
    begin = time.monotonic()
    loader.close()
    took = time.monotonic() - begin
    stall.set()
    assert took < 0.7


@pytest.mark.parametrize("is_mount", [False, True])
def test_the_doctor_reads_urls(fuse, tmp_path, big, nginx, is_mount):
    server = nginx(pathlib.Path(big.path).parent)
    url = server.url("big.beton") + f"?sig={SECRET}"
    where = tmp_path / "mnt"
    small = "cache=process,cache_size=16MiB,connections=2"
    with mounted(where, "-o", small, url) if is_mount \
            else contextlib.nullcontext():
        done = run(BETON, "doctor", "--json", "--seconds", "5",
                   "--cache-size", "16MiB", where if is_mount else url,
                   BETON_STORAGE_OPTIONS="connections=2")
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    told = json.loads(done.stdout)
    network = told["evidence"]["network"]
    assert network["bytes_per_s"] > 1e5, network
    assert network["requests"] > 0 and not network["throttled"]
    assert told["evidence"]["disk"]["network"]
