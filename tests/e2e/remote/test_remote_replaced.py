# SPDX-License-Identifier: Apache-2.0
"""An object that is replaced while a loader or a mount reads it: not one byte of
the new one is delivered."""
import errno
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import dumped
import remote
import servers
from dumped import beton

SPEC = "order=random,batch=8,seed=5,drop_last=0"
SAMPLES = 12


def dataset(path, seed):
    return remote.large(path, samples=SAMPLES, size=250_000, seed=seed)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return dataset(tmp_path_factory.mktemp("old") / "object.beton", 1)


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """Its layout and its values differ."""
    return dataset(tmp_path_factory.mktemp("new") / "object.beton", 2)


def check(old, new, batches):
    """Rows are of the old object, or not valid. -> how many are valid"""
    valid = 0
    for b in batches:
        for row, i in enumerate(b.ids):
            if b.valid[row]:
                valid += 1
                assert b.row("blob", row) == old.values[i]["blob"]
                assert b.outputs["label"][row] == old.values[i]["label"]
    return valid


def read(url, out, env=None):
    """-> batches and messages, or None if it could not be opened."""
    r = beton("dump", url, "--out", out, "--spec", SPEC, "--on-error", "skip",
              "--cache-size", "16MiB", code=None,
              env=remote.environment(env or {}))
    return (dumped.read_dump(out) if out.exists() else []), r


def count_requests(url, server, tmp_path, env=None):
    read(url, tmp_path / "count", env)
    return len(server.requests())


@pytest.fixture
def served(old, tmp_path):
    """A directory whose object a test replaces."""
    folder = tmp_path / "served"
    folder.mkdir()
    shutil.copyfile(old.path, folder / "object.beton")
    return folder


class Swap:
    """Replaces the object before the request of this number."""

    def __init__(self, put, new):
        self.put, self.new, self.at, self.base = put, new, None, 0

    def __call__(self, number):
        if self.at is not None and number - self.base == self.at:
            self.put(self.new.path)


def every_index(server, swap, url, restore, old, new, tmp_path, env=None):
    """Runs a dump for each request, with the object replaced before it.
    -> how many samples were valid for each."""
    total = count_requests(url, server, tmp_path, env)
    valid, lines = [], []
    for at in range(total + 1):
        restore()
        swap.at, swap.base = at, server.gate.count
        out = tmp_path / f"at{at}"
        batches, r = read(url, out, env)
        swap.at = None
        # All of the old one, or all of the new: replaced before the first.
        if at == 0:
            assert check(new, old, batches) == SAMPLES
            continue
        valid.append(check(old, new, batches))
        lines.append(r.stderr)
    return valid, lines


def test_nginx_at_every_request(old, new, served, nginx, tmp_path):
    """It answers 412."""
    swap = Swap(lambda path: servers.replace(served / "object.beton", path),
                new)
    server = nginx(served, gate=swap)
    valid, lines = every_index(
        server, swap, server.url("object.beton"),
        lambda: shutil.copyfile(old.path, served / "object.beton"), old, new,
        tmp_path)
    assert valid[-1] == SAMPLES and min(valid) < SAMPLES
    assert any("replaced" in x or "changed" in x for x in lines), lines


def test_rclone_at_every_request(old, new, rclone, nginx, tmp_path):
    """It ignores If-Match, and answers with the new object. If the object is
    replaced while it answers, it sends the old ETag and bytes of the new
    object, therefore one request follows the other."""
    rclone.put("object.beton", old.path)
    swap = Swap(lambda path: rclone.put("object.beton", path), new)
    front = nginx(upstream=rclone, gate=swap)
    env = {**rclone.environment(), "AWS_ENDPOINT_URL":
           f"http://{front.host}:{front.port}",
           "BETON_STORAGE_OPTIONS": "connections=1"}
    valid, _ = every_index(
        front, swap, rclone.url("object.beton"),
        lambda: rclone.put("object.beton", old.path), old, new, tmp_path, env)
    assert valid[-1] == SAMPLES


@pytest.mark.parametrize("versions", [False, True])
def test_moto_at_every_request(old, new, moto, nginx, versions, tmp_path):
    """It answers 412, or with the old version."""
    moto.make_bucket(versions=versions)
    moto.put("object.beton", old.path)
    swap = Swap(lambda path: moto.put("object.beton", path), new)
    front = nginx(upstream=moto, gate=swap)
    env = {**moto.environment(), "AWS_ENDPOINT_URL":
           f"http://{front.host}:{front.port}"}
    valid, _ = every_index(
        front, swap, moto.url("object.beton"),
        lambda: moto.put("object.beton", old.path), old, new, tmp_path, env)
    assert valid[-1] == SAMPLES
    if versions:
        assert min(valid) == SAMPLES


@pytest.mark.parametrize("etag", ["strong", "weak", "none"])
@pytest.mark.parametrize("if_match", [True, False])
def test_a_stand_in_at_every_request(old, new, faulty, etag, if_match,
                                     tmp_path):
    """Without a strong ETag, size and time of the object are compared."""
    os.utime(new.path, (1_700_000_000, 1_700_000_000))
    server = faulty(pathlib.Path(old.path).parent)
    url = server.url("object.beton")
    read(url, tmp_path / "count")
    total = server.report()["requests"]
    for at in range(1, total + 1):
        server.play(etag=etag, if_match=if_match,
                    replaced={"at": at, "by": str(new.path)})
        batches, _ = read(url, tmp_path / f"at{at}")
        check(old, new, batches)


LINE = re.compile(r'the object was replaced: it was "[^"]+" and is "[^"]+"')


def test_a_dump_logs_the_replacement_once(old, new, faulty, tmp_path):
    server = faulty(pathlib.Path(old.path).parent)
    server.play(replaced={"at": 12, "by": str(new.path)})
    batches, r = read(server.url("object.beton"), tmp_path / "out")
    assert check(old, new, batches) < SAMPLES
    assert len(LINE.findall(r.stderr)) == 1, r.stderr


def test_an_error_names_the_replacement(old, new, faulty, tmp_path):
    server = faulty(pathlib.Path(old.path).parent)
    server.play(replaced={"at": 12, "by": str(new.path)})
    r = beton("dump", server.url("object.beton"), "--out", tmp_path / "out",
              "--spec", SPEC, "--cache-size", "16MiB", code=1)
    assert ("the dataset was replaced after it was opened: "
            "open or mount it again") in r.stderr
    assert len(LINE.findall(r.stderr)) == 1, r.stderr


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Two datasets of images of different sizes."""
    folder = tmp_path_factory.mktemp("photos")
    for seed in (1, 2):
        source = folder / f"{seed}/class"
        source.mkdir(parents=True)
        for i in range(20):
            (source / f"{i}.jpg").write_bytes(
                dumped.jpeg(100 * seed + i, 230 + 3 * i, 300 - i))
        subprocess.run([dumped.BUILD / "mkfs.beton", "-q", source.parent,
                        folder / f"{seed}.beton"], check=True)
    return [folder / f"{seed}.beton" for seed in (1, 2)]


def test_a_dump_reads_one_object(photos, faulty, tmp_path):
    """The second opening has a pipeline for images of different sizes."""
    server = faulty(photos[0].parent)
    url = server.url(photos[0].name)
    server.play(replaced={"opening": 2, "by": str(photos[1])})
    r = beton("dump", url, "--out", tmp_path / "other", "--spec", "batch=4",
              code=1)
    assert "the dataset was replaced while it was opened" in r.stderr


def test_a_mount_answers_estale(old, new, served, nginx, mount):
    server = nginx(served)
    where = mount(server.url("object.beton"), "-o", "cache_size=16M",
                  expects='the object was replaced: it was "[^"]+" and is '
                  '"[^"]+": [^\n]*\n$')
    servers.replace(served / "object.beton", new.path)
    seen = set()
    for i in range(SAMPLES):
        path = where / f"samples/{old.name(i)}/blob.bin"
        try:
            assert path.read_bytes() == old.values[i]["blob"]
        except OSError as e:
            seen.add(e.errno)
    assert seen == {errno.ESTALE}
