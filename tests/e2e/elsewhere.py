# SPDX-License-Identifier: Apache-2.0
"""Run tests with their datasets behind a server. If BETON_TEST_REMOTE is nginx or
rclone, the programs of the build and the Python package get the URL of each
dataset that a test names by its path:

    BETON_TEST_REMOTE=nginx pytest tests/e2e/test_batches.py

A test that changes a dataset, or expects its path in a message, does not apply.
"""
import atexit
import functools
import os
import pathlib
import shutil
import stat
import tempfile

import pytest

import servers

KIND = os.environ.get("BETON_TEST_REMOTE")
# Tests that change, deny or damage the file below a reader, or read it through
# the kernel's page cache.
LOCAL = ("test_a_deleted_dataset_stays", "test_a_file_cut_under_a_mount",
         "test_an_error_is_not_remembered", "test_unreadable_shards",
         "test_metadata_that_cannot_be_read", "test_other_users_need",
         "test_a_subset_is_of", "test_a_name_with_a_star", "-os]")
# Commands of beton that read a dataset, and write none.
READERS = "info|show|dump|bench|doctor"

# Replaces each argument that is the path of a dataset.
WRAPPER = """#!/bin/bash
{when}
args=()
for a in "$@"; do
  p=$(realpath -e -- "$a" 2>/dev/null)
  if [[ $p == *.beton && -f $p ]]; then a={prefix}$p; fi
  args+=("$a")
done
{env} exec -a "$0" {program} "${{args[@]}}"
"""


@functools.cache
def server():
    """It serves all files of this machine, to this machine."""
    folder = tempfile.mkdtemp(prefix="beton-elsewhere-")
    atexit.register(shutil.rmtree, folder, True)
    kinds = {"nginx": servers.Nginx, "rclone": servers.Rclone}
    out = kinds[KIND](folder, "/")
    atexit.register(out.stop)
    return out.start()


def prefix():
    """Before an absolute path."""
    if KIND == "nginx":
        return f"http://{server().host}:{server().port}"
    return "s3:/"


def environment():
    return server().environment() if KIND == "rclone" else {}


def url(path):
    """The URL of a dataset, or the path of another file."""
    text = os.fspath(path)
    real = os.path.realpath(text)
    if real.endswith(".beton") and os.path.isfile(real):
        return prefix() + real
    return text


def skip_local(items):
    """Tests that do not apply to a dataset behind a server."""
    for item in items:
        if KIND and any(name in item.name for name in LOCAL):
            item.add_marker(pytest.mark.skip("needs a local file"))


def build(folder):
    """A copy of the build that reads datasets by their URLs, or the build
    itself."""
    if not KIND:
        return folder
    os.environ.update(environment())
    copy = pathlib.Path(tempfile.mkdtemp(prefix="beton-build-"))
    atexit.register(shutil.rmtree, copy, True)
    for path in folder.iterdir():
        if path.name not in ("beton", "betonfs"):
            (copy / path.name).symlink_to(path)
    for name, when in ("betonfs", ""), ("beton", (
            f'case "$1" in {READERS}) ;; *) exec {folder}/beton "$@" ;; esac')):
        wrapper = copy / name
        wrapper.write_text(WRAPPER.format(
            when=when, prefix=prefix(), program=folder / name, env=""))
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP
                      | stat.S_IXOTH)
    os.environ["BUILD"] = str(copy)
    return copy


def patch(package):
    """The classes of the Python package that read a dataset."""
    if not KIND:
        return
    for kind in package.Loader, package.Dataset:
        def init(self, path, *args, wrapped=kind.__init__, **how):
            is_path = isinstance(path, (str, os.PathLike))
            wrapped(self, url(path) if is_path else path, *args, **how)
        kind.__init__ = init
