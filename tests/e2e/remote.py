# SPDX-License-Identifier: Apache-2.0
"""Datasets behind URLs: the places they are served from, and comparisons with the
local file."""
import json
import os
import pathlib
import subprocess
import tarfile
import typing

import numpy as np

import dumped
import make
from dumped import beton

PLACES = ("nginx", "tls", "rclone", "moto", "stand-in")
SPECS = ("order=sequential,batch=8,drop_last=0",
         "order=random,batch=8,seed=3,drop_last=0",
         "order=quasi_random,batch=8,seed=3")


class Place(typing.NamedTuple):
    url: str
    env: dict
    server: object


def place(kind, path, request):
    """The dataset at `path` behind a server of this kind."""
    path = pathlib.Path(path)
    get = request.getfixturevalue
    if kind == "nginx":
        server = get("nginx")(path.parent)
    elif kind == "tls":
        certificate = get("certificate")
        server = get("nginx")(path.parent, tls=certificate)
        return Place(server.url(path.name),
                     {"CURL_CA_BUNDLE": str(certificate.ca)}, server)
    elif kind == "stand-in":
        server = get("faulty")(path.parent)
    else:
        server = get(kind)
        server.put(path.name, path)
        return Place(server.url(path.name), server.environment(), server)
    return Place(server.url(path.name), {}, server)


def environment(env):
    return {**os.environ, **env}


def dump(source, out, *options, env=None, **how):
    beton("dump", source, "--out", out, *options, env=environment(env or {}),
          **how)
    return dumped.digest(out)


def content(path):
    """The bytes of a file; the members of a tar file, whose times are the
    object's."""
    if path.suffix != ".tar":
        return path.read_bytes()
    with tarfile.open(path) as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar]


def tree(top):
    """relative path -> bytes of each file, or None of a directory."""
    out = {}
    for folder, names, files in os.walk(top):
        if ".betonfs" in names:
            names.remove(".betonfs")
        for name in files:
            path = pathlib.Path(folder, name)
            out[str(path.relative_to(top))] = content(path)
        for name in names:
            out[str(pathlib.Path(folder, name).relative_to(top))] = None
    return out


def large(path, samples=120, size=60_000, seed=4):
    """Several megabytes, so that one epoch needs many requests."""
    rng = np.random.default_rng(seed)
    fields = [("blob", make.BYTES), ("label", make.INT)]
    return make.Dataset(path, fields, [
        {"blob": rng.bytes(int(rng.integers(size // 2, size))),
         "label": int(rng.integers(100))} for i in range(samples)], 1 << 18)


def payload(data):
    return sum(len(row["blob"]) for row in data.values)


def info(source, env=None):
    return json.loads(beton("info", "--json", source,
                            env=environment(env or {})).stdout)


def bench(source, env=None, *options):
    """The figures of one `beton bench --until read`."""
    printed = subprocess.run(
        [dumped.BUILD / "beton", "bench", source, "--until", "read", "--json",
         "--epochs", "2", *options], env=environment(env or {}), text=True,
        capture_output=True, check=True, timeout=dumped.DEADLINE)
    return json.loads(printed.stdout)
