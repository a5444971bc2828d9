# SPDX-License-Identifier: Apache-2.0
"""Datasets behind http, https and S3: every byte as of the local file."""
import hashlib
import pathlib

import pytest

import dumped
import remote
import servers
from dumped import AUGMENT, beton


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Every type of field."""
    return dumped.photos(tmp_path_factory.mktemp("photos") / "photos.beton")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return remote.large(tmp_path_factory.mktemp("large") / "large.beton")


def folder(dataset):
    return pathlib.Path(dataset.path).parent


@pytest.fixture(params=remote.PLACES)
def kind(request):
    return request.param


@pytest.fixture
def place(kind, data, request):
    return remote.place(kind, data.path, request)


def test_info_is_of_the_same_dataset(data, place):
    local, far = remote.info(data.path), remote.info(place.url, place.env)
    assert far == local


@pytest.mark.quick
@pytest.mark.parametrize("spec", remote.SPECS)
def test_batches_are_the_same(data, place, spec, tmp_path):
    options = ["--spec", spec, "--pipeline", AUGMENT]
    assert remote.dump(place.url, tmp_path / "far", *options,
                       env=place.env) == \
        remote.dump(data.path, tmp_path / "near", *options)


def test_large_values_are_the_same(kind, large, request, tmp_path):
    far = remote.place(kind, large.path, request)
    options = ["--spec", remote.SPECS[2], "--cache-size", "16MiB"]
    assert remote.dump(far.url, tmp_path / "far", *options, env=far.env) == \
        remote.dump(large.path, tmp_path / "near", *options)


@pytest.mark.parametrize("rank", range(3))
def test_each_rank_gets_the_same(large, nginx, rank, tmp_path):
    server = nginx(folder(large))
    options = ["--spec", remote.SPECS[2], "--rank", rank, "--world-size", 3]
    assert remote.dump(server.url("large.beton"), tmp_path / "far",
                       *options) == \
        remote.dump(large.path, tmp_path / "near", *options)


@pytest.mark.parametrize("first", ["near", "far"])
def test_a_checkpoint_resumes_elsewhere(data, place, first, tmp_path):
    """Saved with the local file, and resumed behind the URL, or the other way
    round."""
    sources = {"near": (data.path, {}), "far": (place.url, place.env)}
    state, second = tmp_path / "state", {"near": "far", "far": "near"}[first]
    common = ["--spec", remote.SPECS[1], "--pipeline", AUGMENT]
    whole = remote.dump(data.path, tmp_path / "whole", *common)
    done = {}
    for turn, where in enumerate((first, second)):
        source, env = sources[where]
        options = [*common, "--state", state, "--batches",
                   f"{2 * turn}:{2 * turn + 2}"]
        done.update(remote.dump(source, tmp_path / str(turn), *options,
                                env=env))
    assert done == {k: whole[k] for k in done} and len(done) == 4


def test_a_mount_is_the_same_tree(data, place, mount, monkeypatch):
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    near, far = mount(data.path), mount(place.url)
    assert remote.tree(far) == remote.tree(near)


def test_batch_files_of_a_mount_are_the_same(large, kind, request, mount,
                                             monkeypatch):
    place = remote.place(kind, large.path, request)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    near, far = mount(large.path), mount(place.url)
    for spec in remote.SPECS:
        for path in sorted((near / "batches" / spec / "0").iterdir()):
            other = far / path.relative_to(near)
            assert hashlib.sha256(other.read_bytes()).digest() == \
                hashlib.sha256(path.read_bytes()).digest()


def test_a_dump_of_a_mount_is_the_same(large, nginx, mount, tmp_path):
    server = nginx(folder(large))
    where = mount(server.url("large.beton"))
    for how in "zero-copy", "direct":
        options = ["--spec", remote.SPECS[2]]
        assert remote.dump(where, tmp_path / how, *options, "--delivery",
                           how) == \
            remote.dump(large.path, tmp_path / f"near-{how}", *options)


def test_an_epoch_reads_each_byte_once(large, nginx, tmp_path):
    server = nginx(folder(large))
    remote.dump(server.url("large.beton"), tmp_path / "far", "--spec",
                "order=quasi_random,batch=8,drop_last=0")
    sent = sum(r.sent for r in server.requests())
    assert sent <= 1.01 * remote.payload(large) + (1 << 20)


def test_four_jobs_of_a_mount_share_what_is_read(large, nginx, mount,
                                                 tmp_path):
    server = nginx(folder(large))
    where = mount(server.url("large.beton"))
    for job in range(4):
        remote.dump(where, tmp_path / str(job), "--spec",
                    "order=quasi_random,batch=8,drop_last=0")
    sent = sum(r.sent for r in server.requests())
    assert sent <= 1.01 * remote.payload(large) + (1 << 20)


def test_every_request_is_for_one_version(large, nginx, tmp_path):
    """If-Match on all requests, except for the first one of each opening."""
    server = nginx(folder(large))
    remote.dump(server.url("large.beton"), tmp_path / "far")
    tags = {r.if_match for r in server.requests()
            if not r.range.startswith("bytes=0-")}
    assert len(tags) == 1 and tags.pop().startswith('"')


def test_opening_takes_few_requests(large, nginx):
    server = nginx(folder(large))
    remote.info(server.url("large.beton"))
    assert len(server.requests()) <= 12


def test_a_server_with_a_password(data, nginx, tmp_path):
    """HOME/.netrc has it."""
    server = nginx(folder(data), password=True)
    url = server.url("photos.beton")
    r = beton("info", url, code=1)
    assert "401" in r.stderr or "Permission denied" in r.stderr
    (tmp_path / ".netrc").write_text(
        f"machine {server.host}\nlogin {servers.USER}\n"
        f'password "{servers.PASSWORD}"\n')
    assert remote.info(url, {"HOME": str(tmp_path)}) == remote.info(data.path)


def test_a_redirect_gets_no_password(data, nginx, tmp_path):
    """Neither the first answer nor a later request to the target."""
    server = nginx(folder(data), password=True)
    url = server.url("photos.beton")
    front = nginx(folder(data), extra=f"return 302 {url};")
    (tmp_path / ".netrc").write_text(
        f'default login {servers.USER} password "{servers.PASSWORD}"\n')
    env = remote.environment({"HOME": str(tmp_path)})
    beton("info", url, env=env)
    r = beton("info", front.url("photos.beton"), code=1, env=env)
    assert "401" in r.stderr and servers.PASSWORD not in r.stderr


def test_a_certificate_of_an_unknown_ca_is_refused(data, nginx, certificate):
    server = nginx(folder(data), tls=certificate)
    r = beton("info", server.url("photos.beton"), code=1)
    assert "certificate" in r.stderr and server.url("photos.beton") in r.stderr


@pytest.mark.parametrize("key", [
    "plain.beton", "with space.beton", "a=b&c+d.beton", "per%41cent.beton",
    "äöü.beton", "tilde~'()!.beton", "dots/../../x.beton"])
def test_odd_keys(data, rclone, key):
    if "/../" in key:
        pytest.skip("a directory of this machine cannot have such a name")
    rclone.put(key, data.path)
    assert remote.info(rclone.url(key), rclone.environment()) == \
        remote.info(data.path)


@pytest.mark.quick
def test_a_missing_object_is_named(nginx, tmp_path):
    server = nginx(tmp_path)
    r = beton("info", server.url("none.beton"), code=1)
    assert server.url("none.beton") in r.stderr
    assert len(r.stderr.splitlines()) == 1, r.stderr


def test_wrong_keys_are_refused_in_one_line(data, rclone):
    rclone.put("photos.beton", data.path)
    env = {**rclone.environment(), "AWS_SECRET_ACCESS_KEY": "x" * 40}
    r = beton("info", rclone.url("photos.beton"), code=1,
              env=remote.environment(env))
    assert len(r.stderr.splitlines()) == 1, r.stderr
    assert "x" * 40 not in r.stderr
