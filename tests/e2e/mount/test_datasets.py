# SPDX-License-Identifier: Apache-2.0
"""betonfs(8) with several datasets: a directory for each, one daemon."""
import errno
import json
import os
import pathlib
import re
import stat
import subprocess
import threading

import pytest

import dumped
import make
from conftest import (EXIT_DAMAGED, EXIT_MOUNT, EXIT_NOT_DATASET, as_other,
                      betonfs, failing, mounts, needs_other_users, wait_until)
from zerocopy import Client, hello, report


def tree(top):
    """path -> the result of stat and the bytes, without unlisted files."""
    out = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            s = os.lstat(path)
            content = None
            if stat.S_ISREG(s.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            elif stat.S_ISLNK(s.st_mode):
                content = os.readlink(path)
            out[os.path.relpath(path, top)] = (
                s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns,
                content)
    return out


@pytest.fixture
def train(tmp_path):
    return make.every_type(tmp_path / "train.beton")


@pytest.fixture
def val(tmp_path):
    return make.numbers(tmp_path / "val.set.beton", 20)


@pytest.fixture
def mount_all(mount):
    """mount_all(paths, *args, expects=regex) -> mountpoint"""
    return lambda paths, *args, **how: \
        mount(paths[-1], *args, *map(str, paths[:-1]), **how)


@pytest.fixture
def both(train, val, mount_all):
    return mount_all([train.path, val.path])


# --- the tree ---

def test_the_root_has_a_directory_for_each(both):
    assert sorted(os.listdir(both)) == ["train", "val.set"]
    assert sorted(os.listdir(both / ".betonfs")) == [
        "jobs", "metrics", "options", "stats.json", "version"]
    for name in ("samples", "batches", "dataset.json", ".betonfs2"):
        assert not (both / name).exists()


def test_each_dataset_is_as_mounted_alone(train, val, both, mount):
    for d, name in ((train, "train"), (val, "val.set")):
        alone = mount(d.path)
        assert tree(both / name) == tree(alone)
        for batch in ("batches/default/0", "batches/batch=7,seed=3/5"):
            assert tree(both / name / batch) == tree(alone / batch)


def test_inodes_are_unique_and_survive_a_remount(train, val, mount_all):
    def inodes(where):
        found = {}
        for folder, folders, files in os.walk(where):
            for name in folders + files:
                path = os.path.relpath(os.path.join(folder, name), where)
                # The same inode as under samples/.
                if "/columns/" not in path and "/by/" not in path:
                    found[path] = os.lstat(where / path).st_ino
        return found
    paths = [train.path, val.path, train.path]
    first = inodes(mount_all(paths))
    assert len(first) > 400 and len(set(first.values())) == len(first)
    assert inodes(mount_all(paths)) == first


def test_a_parent_is_the_directory_above(both):
    root = both.stat().st_ino
    assert root == 1
    for name in ("train", "val.set"):
        top = both / name
        fd = os.open(top / "samples", os.O_RDONLY)
        assert os.stat("..", dir_fd=fd).st_ino == top.stat().st_ino
        assert os.stat("../..", dir_fd=fd).st_ino == root
        os.close(fd)


def test_names_are_those_of_the_files(train, tmp_path, mount_all):
    (tmp_path / "deep").mkdir()
    names = ["a b, c\\d:e.beton", "plain", "x.beton.beton", ".beton",
             "..beton", ".betonfs.beton", "~2.beton", "\u00e9.beton"]
    paths = [train.path, tmp_path / "deep" / "train.beton",
             tmp_path / "deep" / "train"]
    for name in names:
        paths.append(tmp_path / "deep" / name)
    for p in paths[1:]:
        os.symlink(train.path, p)
    where = mount_all(paths)
    assert sorted(os.listdir(where)) == sorted([
        "train", "train~2", "train~3", "a b, c\\d:e", "plain", "x.beton",
        ".beton", ".~2", ".betonfs~2", "~2", "\u00e9"])
    for name in os.listdir(where):
        assert (where / name / "samples/000001/label").read_text() == "4\n"


def test_owner_and_mode_are_each_datasets_own(train, val, mount_all):
    os.chmod(train.path, 0o640)
    os.chmod(val.path, 0o600)
    if os.getuid() == 0:
        os.chown(train.path, 1234, 2345)
    where = mount_all([train.path, val.path])

    def shown(path):
        s = (where / path).stat()
        return s.st_uid, s.st_gid, stat.S_IMODE(s.st_mode)
    t = os.stat(train.path)
    assert shown("train") == (t.st_uid, t.st_gid, 0o550)
    assert shown("train/samples/000000/label") == (t.st_uid, t.st_gid, 0o440)
    assert shown("val.set/dataset.json") == (os.getuid(), os.getgid(), 0o400)
    assert shown("") == (os.getuid(), os.getgid(), 0o555)
    # Those who may read each of them.
    assert shown(".betonfs/options") == (os.getuid(), os.getgid(), 0o400)
    assert shown(".betonfs") == (os.getuid(), os.getgid(), 0o500)
    os.chmod(train.path, 0o644)
    os.chmod(val.path, 0o644)
    where = mount_all([train.path, val.path])
    assert shown(".betonfs/options") == (os.getuid(), os.getgid(), 0o444)
    assert shown(".betonfs") == (os.getuid(), os.getgid(), 0o555)
    where = mount_all([train.path, val.path], "-o", "umask=0027,gid=2345")
    assert shown(".betonfs/stats.json")[1:] == (2345, 0o440)
    assert shown(".betonfs/jobs")[1:] == (2345, 0o550)


def test_statfs_is_of_all(train, val, both, mount):
    def files_and_blocks(where):
        v = os.statvfs(where)
        return v.f_files, v.f_blocks
    t, v = files_and_blocks(mount(train.path)), files_and_blocks(
        mount(val.path))
    got = files_and_blocks(both)
    assert got[0] == t[0] + v[0]
    assert t[1] + v[1] - 1 <= got[1] <= t[1] + v[1]


# --- what other users see ---

SECRET_SPEC = "order=random,batch=3,seed=271828,drop_last=1"
PUBLIC_SPEC = "order=random,batch=2,seed=0,drop_last=1"
SECRETS = "secret", "vault", "271828", "hush"


@pytest.fixture
def secret(tmp_path):
    """A dataset that only its owner may read, with a revealing name."""
    (tmp_path / "vault").mkdir()
    d = make.numbers(tmp_path / "vault/secret.beton", 20)
    os.chmod(d.path, 0o600)
    return d


@pytest.fixture
def mixed(train, secret, mount_all):
    """A mount that also has a public dataset, which is read meanwhile."""
    if os.getuid():
        pytest.skip("only root can be two users")
    os.chmod(train.path, 0o644)
    where = mount_all([secret.path, train.path], "-o", "allow_other,xattr")
    for number in (4, 5):
        (where / f"secret/batches/{SECRET_SPEC}/9/00000{number}.batch"
         ).read_bytes()
    client = Client(where, greet=False)
    client.send(hello(job=b"hush"))
    client.recv()
    assert isinstance(client.get(
        f"secret/batches/{SECRET_SPEC}/9/000003.batch"), tuple)
    client.send(report(samples=271828))
    wait_until(lambda: "271828" in (
        where / "secret/.betonfs/metrics").read_text(), "its words")
    # As root, all of it is there, in the caches of the kernel too.
    assert sorted(os.listdir(where)) == ["secret", "train"]
    for name in ("options", "stats.json", "metrics"):
        text = (where / ".betonfs" / name).read_text()
        assert all(x in text for x in SECRETS if name != "options" and
                   x != "vault" or name == "options" and
                   x in ("secret", "vault"))
    assert "hush.json" in os.listdir(where / ".betonfs/jobs")
    yield where
    client.socket.close()


def all_that_is_reported(top="."):
    """Every name and every byte that a user gets by looking everywhere, also
    where no listing leads."""
    reported = []
    for folder, folders, files in os.walk(top):
        if ".betonfs" not in folders and os.path.isdir(folder + "/.betonfs"):
            folders.append(".betonfs")
        for name in folders + files:
            path = os.path.join(folder, name)
            reported.append(os.fsencode(path))
            reported += [x.encode() for x in os.listxattr(path)]
            try:
                if os.path.islink(path):
                    reported.append(os.fsencode(os.readlink(path)))
                elif name in files:
                    with open(path, "rb") as f:
                        reported.append(f.read())
            except PermissionError:
                pass
    v = os.statvfs(top)
    return b"\n".join(reported), v.f_files, v.f_blocks


def test_others_see_no_forbidden_dataset(mixed, train, mount):
    reported, files, blocks = as_other(mixed, all_that_is_reported)
    assert b"train/samples/000000" in reported and b"betonfs_build_info" in reported
    for secret in SECRETS:
        assert secret.encode() not in reported, secret
    v = os.statvfs(mount(train.path))
    assert (files, blocks) == (v.f_files, v.f_blocks)
    assert os.statvfs(mixed).f_files > files
    assert os.statvfs(mixed / "secret").f_files == \
        os.statvfs(mixed).f_files - files


def read_again(folder):
    """A second listing from the beginning, in the same open directory."""
    os.lseek(folder, 0, os.SEEK_SET)
    return sorted(os.listdir(folder))


def test_a_listing_of_another_user_is_not_shown(mixed):
    needs_other_users()

    def listings():
        folder = os.open(".", os.O_RDONLY)
        seen = [os.listdir("."), read_again(folder)]
        for _ in range(20):
            subprocess.run(["ls", "-la", "."], stdout=subprocess.DEVNULL)
            seen += [os.listdir("."), read_again(folder)]
        return seen
    stop = threading.Event()

    def list_as_root():
        while not stop.is_set():
            assert len(os.listdir(mixed)) == 2
    thread = threading.Thread(target=list_as_root)
    thread.start()
    try:
        seen = as_other(mixed, listings)
    finally:
        stop.set()
        thread.join()
    assert all(names == ["train"] for names in seen)
    # Groups count, as they do when files are opened.
    assert as_other(mixed, os.listdir, ".") == ["train"]


def test_groups_see_readable_datasets(train, secret, mount_all):
    if os.getuid():
        pytest.skip("only root can be two users")
    os.chmod(train.path, 0o644)
    os.chown(secret.path, 0, 4321)
    os.chmod(secret.path, 0o640)
    where = mount_all([secret.path, train.path], "-o", "allow_other")
    assert as_other(where, os.listdir, ".") == ["train"]
    assert sorted(as_other(where, os.listdir, ".", groups=[7, 4321])) == [
        "secret", "train"]
    with failing(errno.EACCES):
        as_other(where, os.listdir, ".betonfs", groups=[7, 4321])


def test_forbidden_datasets_do_not_open(mixed):
    def attempts():
        tries = [lambda p=p: open(p) for p in (
            ".betonfs/options", ".betonfs/stats.json", ".betonfs/metrics",
            ".betonfs/jobs/hush.json", "secret/dataset.json",
            "secret/.betonfs/options", "secret/samples/000000/label",
            f"secret/batches/{SECRET_SPEC}/9/000003.batch")]
        tries += [lambda p=p: os.listdir(p) for p in (
            ".betonfs", "secret", "secret/.betonfs", ".betonfs/jobs")]
        errors = []
        for attempt in tries:
            try:
                attempt()
                errors.append(0)
            except OSError as e:
                errors.append(e.errno)
        return errors
    assert set(as_other(mixed, attempts)) == {errno.EACCES}
    client = as_other(mixed, lambda: os.path.exists("train/.betonfs/options"))
    assert client


def test_a_link_keeps_a_name_to_itself(train, secret, tmp_path, mount_all):
    """A mount shows all users the names of its command line, and no others."""
    link = tmp_path / "plain.beton"
    link.symlink_to("vault/secret.beton")
    for paths in ([link], [train.path, link], ["plain.beton"],
                  ["vault/../plain.beton", "./plain.beton"]):
        for i, path in enumerate(paths):
            if not os.path.isabs(path):
                paths[i] = os.path.relpath(tmp_path / path)
        where = mount_all(paths)
        mounts = pathlib.Path("/proc/mounts").read_text(errors="surrogateescape")
        line, = [x for x in mounts.splitlines() if f" {where} " in x]
        assert str(link) in line and "secret" not in line
        top = where if len(paths) == 1 else where / "plain"
        assert f"dataset={secret.path}" in lines(top / ".betonfs/options")
        assert "secret" not in str(os.listdir(where))


def test_others_get_batches_of_readable_datasets(mixed):
    def acquire():
        name = [x for x in lines(pathlib.Path("train/.betonfs/options"))
                if x.startswith("zero_copy=")]
        client = Client(pathlib.Path("train"))
        got = client.get(f"train/batches/{PUBLIC_SPEC}/0/000000.batch")
        refused = client.get(f"secret/batches/{SECRET_SPEC}/9/000003.batch")
        return len(name), len(got[1]), refused
    names, size, refused = as_other(mixed, acquire)
    assert (names, refused) == (1, errno.EACCES)
    assert size == (mixed / f"train/batches/{PUBLIC_SPEC}/0/000000.batch"
                    ).stat().st_size


def lines(path):
    return path.read_text().splitlines()


def test_options_report_which_directory(train, val, both, mount):
    root = lines(both / ".betonfs/options")
    assert f"dataset={train.path}" in root and f"dataset={val.path}" in root
    assert "directory=" in root and f"mountpoint={both}" in root
    one = lines(both / "val.set/.betonfs/options")
    assert "directory=val.set" in one and f"mountpoint={both}" in one
    assert [x for x in one if x.startswith("dataset=")] == \
        [f"dataset={val.path}"]
    assert [x for x in one if x.startswith("pid=")] == \
        [x for x in root if x.startswith("pid=")]
    assert "directory=" in lines(mount(val.path) / ".betonfs/options")


def unquoted(text):
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def test_a_name_adds_no_line_to_the_options(val, tmp_path, mount_all):
    """A file's name may have any byte but a slash."""
    reported = "pid=1\nzerocopy=@nobody\ndirectory=elsewhere"
    odd = tmp_path / f"x\n{reported}\n\\012\ty.beton"
    os.rename(val.path, odd)
    other = make.numbers(tmp_path / "z.beton", 5)
    for paths in ([odd], [other.path, odd]):
        where = mount_all(paths)
        top = where if len(paths) == 1 else where / odd.stem
        pairs = [x.partition("=") for x in lines(top / ".betonfs/options")]
        keys = [key for key, _, _ in pairs]
        assert len(set(keys)) == len(keys) and "" not in keys
        of = {key: value for key, _, value in pairs}
        assert unquoted(of["dataset"]) == str(odd) != of["dataset"]
        assert unquoted(of["directory"]) == os.path.relpath(top, where).strip(
            ".")
        dumped.beton("bench", top, "--spec", "batch=4", "--pipeline",
                     "label | int32", "--until", "read", "--delivery",
                     "zero-copy")


# --- sampling specs ---

def test_a_default_is_resolved_for_each(train, val, mount_all, mount):
    options = "-o", "order=quasi_random,window=4KiB,batch=3"
    where = mount_all([train.path, val.path], *options)
    for d, name in ((train, "train"), (val, "val.set")):
        assert os.readlink(where / name / "batches/default") == \
            os.readlink(mount(d.path, *options) / "batches/default")
    assert os.readlink(where / "train/batches/default") != \
        os.readlink(where / "val.set/batches/default")


def test_a_default_that_is_wrong_for_one_names_it(train, val, fuse, tmp_path):
    r = betonfs("-o", "subset=0-25", train.path, val.path, tmp_path / "m")
    assert r.returncode == 1 and len(r.stderr.splitlines()) == 1
    assert val.path in r.stderr and "subset=0-25" in r.stderr
    assert not (tmp_path / "m").exists()


def test_a_bad_spec_names_the_dataset(train, val, mount_all):
    where = mount_all([train.path, val.path],
                      expects=r"val\.set\.beton: batches/batch=x: spec: ")
    assert not (where / "val.set/batches/batch=x").exists()


# --- the loader ---

@pytest.mark.skipif(not dumped.Image, reason="no PIL")
def test_the_loader_takes_a_directory(val, tmp_path, mount_all):
    photos = dumped.photos(tmp_path / "photos.beton", 20)
    where = mount_all([photos.path, val.path])
    for d, name, pipeline in ((photos, "photos", dumped.AUGMENT),
                              (val, "val.set", "label | int32")):
        options = ("--spec", "batch=6,seed=2,drop_last=0", "--epoch", "1",
                   "--pipeline", pipeline)
        dumped.dump(d.path, tmp_path / f"{name}.file", *options)
        dumped.dump(where / name, tmp_path / f"{name}.mount", *options)
        sums = dumped.digest(tmp_path / f"{name}.file")
        assert len(sums) == 4
        assert dumped.digest(tmp_path / f"{name}.mount") == sums
        info = [json.loads(dumped.beton("info", x, "--json").stdout)
                for x in (d.path, where / name)]
        assert info[0] == info[1]


# --- the command line ---

def test_as_many_as_there_are_numbers_for(val, fuse, tmp_path, mount_all):
    where = mount_all([val.path] * 63)
    names = os.listdir(where)
    assert len(names) == 63 and "val.set~63" in names
    assert (where / "val.set~63/samples/000019/label").read_text() == "19\n"
    assert len({(where / n / "samples").stat().st_ino for n in names}) == 63
    source = mounts()[str(where)][0].split(":")
    assert source[0] == val.path and source[-1] == "..."
    r = betonfs(*[val.path] * 64, tmp_path / "m")
    assert r.returncode == 1 and "64" in r.stderr and "63" in r.stderr


def test_the_bad_one_is_named(train, val, fuse, tmp_path):
    text, cut = tmp_path / "text.beton", tmp_path / "cut.beton"
    text.write_text("no dataset\n" * 100)
    with open(train.path, "rb") as f:
        cut.write_bytes(f.read()[:train.first_page + 100])
    for code, bad in ((EXIT_MOUNT, tmp_path / "absent.beton"),
                      (EXIT_NOT_DATASET, text), (EXIT_DAMAGED, cut)):
        r = betonfs(train.path, bad, val.path, tmp_path / "m")
        assert r.returncode == code, r
        assert str(bad) in r.stderr and len(r.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


def test_a_list_with_colons_is_several(train, val, mount):
    where = mount(f"{train.path}:{val.path}")
    assert sorted(os.listdir(where)) == ["train", "val.set"]
    assert mounts()[str(where)][0] == f"{train.path}:{val.path}"


def test_listed_mounts_can_be_mounted_again(val, tmp_path, mount):
    odd = make.numbers(tmp_path / "a,b:c\\.beton", 3).path
    where = mount(odd)
    assert mounts()[str(where)][0] == odd
    where = mount(val.path, odd)
    source = mounts()[str(where)][0]
    assert source == odd.replace(":", "\\:") + ":" + val.path
    assert sorted(os.listdir(mount(source))) == sorted(os.listdir(where)) == \
        ["a,b:c\\", "val.set"]
