# SPDX-License-Identifier: Apache-2.0
"""The statistics of a mount: stats.json, its jobs, and metrics."""
import json
import re

from conftest import wait_until
from zerocopy import Client, hello

PLAIN = ["--pipeline", "image | drop"]


def stats(mnt):
    return json.loads((mnt / ".betonfs/stats.json").read_text())


def timeless(reported):
    """The same without what changes by itself."""
    reported = dict(reported, streams=[dict(s, idle_s=0) for s in reported["streams"]],
                jobs=[dict(j, idle_s=0) for j in reported["jobs"]])
    del reported["uptime_s"]
    reported.pop("io_uring", None)      # these requests count, too
    return reported


def both(mnt):
    """stats.json and metrics of one state: batches may still be prefetched."""
    found = []

    def same():
        found[:] = stats(mnt), metrics(mnt), stats(mnt)
        return timeless(found[0]) == timeless(found[2])
    wait_until(same, "the end of work")
    return found[:2]


def jobs(mnt):
    """name -> its entry in stats.json"""
    return {j["name"]: j for j in stats(mnt)["jobs"]}


def sample(line):
    """An OpenMetrics sample without a timestamp -> name, labels, value."""
    m = re.fullmatch(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)'
                     r'\})? ([0-9.]+)', line)
    assert m, line
    labels = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', m[2] or "")
    assert len(dict(labels)) == len(labels), line
    return m[1], tuple(labels), float(m[3])


SUFFIXES = {"counter": ["_total"], "gauge": [""],
            "histogram": ["_bucket", "_count", "_sum"]}


def check_histograms(found):
    """Buckets hold what is in the smaller ones too, and the last is all."""
    buckets = {}
    for (name, labels), value in found.items():
        if name.endswith("_bucket"):
            *rest, (key, bound) = labels
            assert key == "le"
            buckets.setdefault((name[:-7], tuple(rest)), []).append(
                (float(bound), value))
    for (family, labels), rows in buckets.items():
        assert rows == sorted(rows) and rows[-1][0] == float("inf")
        assert [n for _, n in rows] == sorted(n for _, n in rows)
        assert rows[-1][1] == found[family + "_count", labels]
        assert (found[family + "_sum", labels] > 0) == (rows[-1][1] > 0)


def parse(text):
    """(name, labels without the mountpoint) -> value. Checks the grammar."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    found, heads, family = {}, {}, None
    for line in lines[:-2]:
        if line.startswith("#"):
            _, what, name, rest = line.split(" ", 3)
            assert rest and (what, name) not in heads
            heads[what, name] = rest
            # Nothing of a family after another has begun.
            assert what == "TYPE" or name == family
            assert what != "UNIT" or name.endswith("_" + rest)
            family = name
            continue
        name, labels, value = sample(line)
        kind = heads["TYPE", family]
        assert name[len(family):] in SUFFIXES[kind] and \
            name.startswith(family)
        assert labels[0][0] == "mountpoint"
        assert (name, labels[1:]) not in found
        found[name, labels[1:]] = value
    check_histograms(found)
    for what, name in heads:
        assert ("HELP", name) in heads
        # Names of samples and of families are all different.
        assert not re.search("_(total|count|sum|bucket|created)$", name)
    return found


def metrics(mnt):
    return parse((mnt / ".betonfs/metrics").read_text())


def keys_of(value):
    """In all that is in it."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set()


def named(mnt, name, **more):
    """A connection of a job of this name."""
    client = Client(mnt, greet=False)
    client.send(hello(job=name, **more))
    client.recv()
    return client


def rank_of(mnt, job, rank):
    return next((r for r in jobs(mnt)[job]["ranks"] if r["rank"] == rank), {})
