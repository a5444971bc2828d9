# SPDX-License-Identifier: Apache-2.0
""".betonfs/stats.json, metrics and jobs/: reports equal the work that was
done."""
import json
import mmap
import os
import pathlib
import re
import select
import signal
import subprocess

import numpy as np
import pytest

import dumped
import elsewhere
import make
from conftest import DEADLINE, wait_until
from dumped import AUGMENT, beton, dump
from loading import Loader
from zerocopy import SPEC, Client, path_of, report
from stats import (PLAIN, both, jobs, keys_of, metrics, named, parse, rank_of,
                   stats)

N = 40
MAX = 256   # jobs that are remembered
STAGES = ["source", "cache", "collation", "delivery"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("stats") / "p.beton", N)


def moved(before, after):
    """way -> (batches, bytes)"""
    return {way: (after["delivery"][way]["batches"] - b["batches"],
                  after["delivery"][way]["bytes"] - b["bytes"])
            for way, b in before["delivery"].items()}


def read_direct(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    size = os.fstat(fd).st_size
    with mmap.mmap(-1, size + mmap.PAGESIZE) as buf:
        got = os.preadv(fd, [buf], 0)
    os.close(fd)
    return got


# --- the texts ---


def frozen(text):
    """The same at another time, and without the memory of files that are open
    meanwhile, of which one is the reader's, and the reader's own requests."""
    assert text.count(b"uptime_s") in (1, 4)
    text = re.sub(rb'((used|files|pinned)(_bytes[^ ]*|":) )[0-9]+',
                  rb"\g<1>0", text)
    text = re.sub(rb'((answered|passed_on)(_total[^ ]*|":) )[0-9]+', rb"\g<1>0",
                  text)
    return re.sub(rb'(uptime_s[^ ]* )[0-9]+', rb"\g<1>0", text)


def test_the_texts_can_be_read_by_all(data, mount):
    mnt = mount(data.path)
    for name in ("stats.json", "metrics"):
        path = mnt / ".betonfs" / name
        assert path.stat().st_size == 0
        whole = frozen(path.read_bytes())
        for program in (["cat", path], ["dd", f"if={path}", "bs=7"],
                        ["tail", "-c", "99999", path]):
            out = subprocess.check_output(program, stderr=subprocess.DEVNULL)
            assert frozen(out) == whole
        copy = mnt.parent / "copy"
        subprocess.run(["cp", path, copy], check=True)
        assert frozen(copy.read_bytes()) == whole
        with open(path, "rb") as f:
            assert frozen(b"".join(f.readlines())) == whole
    top = stats(mnt)
    assert list(top) == ["version", "uptime_s", "cache", "slots", "budget",
                         "verify", "io_uring", "stages", "delivery", "streams",
                         "network", "jobs"]
    assert top["version"] == 1 and top["cache"]["mode"] == "os"
    assert top["cache"]["amplification"] == 0
    assert not (mnt / ".betonfs/stats").exists()


def test_one_opening_sees_one_text(data, mount):
    mnt = mount(data.path)
    with open(mnt / ".betonfs/stats.json", "rb", buffering=0) as f:
        first = f.read(50)
        for p in sorted((mnt / "batches/batch=4/0").iterdir()):
            p.read_bytes()
        rest = f.read()
        assert json.loads(first + rest)["delivery"]["page_cache"] == {
            "batches": 0, "stalled": 0, "bytes": 0}
        f.seek(0)
        assert f.read() == first + rest
        f.seek(30)
        assert f.read(9) == (first + rest)[30:39]
    assert stats(mnt)["delivery"]["page_cache"]["batches"] == 10


def test_metrics_are_openmetrics(data, mount):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    mnt = mount(data.path, "-o", "cache=process,cache_size=64MiB")
    dump(mnt, mnt.parent / "out", "--spec", SPEC, *PLAIN)
    families = {f.name: f for f in parser.text_string_to_metric_families(
        (mnt / ".betonfs/metrics").read_text())}
    assert families["betonfs_cache_hits"].type == "counter"
    assert families["betonfs_cache_read_bytes"].unit == "bytes"
    assert families["betonfs_read_amplification_ratio"].type == "gauge"
    times = families["betonfs_stage_duration_seconds"]
    assert (times.type, times.unit) == ("histogram", "seconds")
    assert {s.labels["stage"] for s in times.samples} == set(STAGES)
    ways = {s.labels["way"]: s.value
            for s in families["betonfs_delivered_bytes"].samples}
    assert set(ways) == {"page_cache", "direct", "zero_copy"}
    for f in families.values():
        for s in f.samples:
            assert s.labels["mountpoint"] == str(mnt)


@pytest.mark.quick
def test_metrics_are_text_of_prometheus_too(data, mount):
    parser = pytest.importorskip("prometheus_client.parser")
    mnt = mount(data.path)
    (mnt / path_of(0)).read_bytes()
    text = (mnt / ".betonfs/metrics").read_text()
    found = {s.name: s for f in parser.text_string_to_metric_families(text)
             for s in f.samples}
    assert found["betonfs_build_info"].value == 1
    assert set(found) == {name for name, _ in parse(text)}


PAGE = pathlib.Path(__file__).parents[3] / "fs/base/metrics/beton-metrics.7"


def documented_keys():
    """The keys that beton-metrics(7) describes: tags and subsections."""
    text = PAGE.read_text()
    tags = re.findall(r"^\.It Va (.*?)(?: Bq .*)?$", text, re.M)
    return set(re.findall(r"\w+", " ".join(tags))) | \
        set(re.findall(r"^\.Ss (\w+):", text, re.M))


def test_the_manual_describes_these_keys_and_metrics_alone(data, mount,
                                                           nginx):
    mnt = mount(data.path, "-o", "cache=process,cache_size=64MiB")
    dump(mnt, mnt.parent / "out", "--spec", SPEC, *PLAIN)
    assert stats(mnt)["jobs"][0]["ranks"] and not stats(mnt)["network"]
    server = nginx(pathlib.Path(data.path).parent)
    remote = mount(server.url(pathlib.Path(data.path).name))
    assert documented_keys() == keys_of(stats(mnt)) | keys_of(stats(remote))
    names = {re.sub("_(bucket|count|sum)$", "", name)
             for name, _ in metrics(mnt) |
             metrics(remote)}
    text = PAGE.read_text()
    assert names == {n for n in re.findall(r"\bbetonfs_\w+", text)}
    # The entries have each metric once.
    entries = re.findall(r"Bq Li (betonfs_\w+)$", text, re.M)
    assert sorted(entries) == sorted(names - {"betonfs_build_info"})


def test_both_texts_report_the_same(data, mount):
    mnt = mount(data.path, "-o", "cache=process,cache_size=64MiB")
    dump(mnt, mnt.parent / "out", "--spec", SPEC, *PLAIN)
    reported, m = both(mnt)
    for way, d in reported["delivery"].items():
        assert m["betonfs_delivered_batches_total",
                 (("way", way),)] == d["batches"]
        assert m["betonfs_delivered_bytes_total",
                 (("way", way),)] == d["bytes"]
    for stage, s in reported["stages"].items():
        for name, key in (("items_total", "items"), ("bytes_total", "bytes"),
                          ("busy_seconds_total", "busy_s"),
                          ("input_wait_seconds_total", "input_wait_s"),
                          ("room_wait_seconds_total", "room_wait_s")):
            assert m["betonfs_stage_" + name, (("stage", stage),)] == \
                pytest.approx(s[key], abs=1e-9)
    for name, key in (("cache_hits_total", "hits"),
                      ("prefetch_stalled_total", "stalled"),
                      ("cache_misses_total", "misses"),
                      ("cache_read_bytes_total", "read_bytes"),
                      ("cache_delivered_bytes_total", "delivered_bytes"),
                      ("prefetch_wasted_bytes_total", "wasted_bytes")):
        assert m["betonfs_" + name, ()] == reported["cache"][key]
    assert m["betonfs_read_amplification_ratio", ()] == pytest.approx(
        reported["cache"]["amplification"], abs=1e-5)
    for job in reported["jobs"]:
        assert m["betonfs_job_bytes_total",
                 (("job", job["name"]),)] == job["bytes"]
    assert m["betonfs_stream_batches_total",
             (("dataset", ""), ("spec", SPEC))] == N // 4
    assert m["betonfs_build_info",
             (("version", "0.1.0"), ("cache", "process"))] == 1


def test_odd_names_are_escaped(data, mount, tmp_path):
    names = [b'a"b\\c\nd', b"\xff\xfe,x", "\u00e9".encode()]
    for name in names:
        os.symlink(data.path, os.path.join(os.fsencode(tmp_path), name))
    mnt = mount(data.path, *(os.path.join(os.fsencode(tmp_path), n)
                             for n in names))
    for name in names:
        with open(os.path.join(os.fsencode(mnt), name,
                               b"batches/batch=4/0/000000.batch"), "rb") as f:
            f.read()
    want = {'a"b\\c\nd', "%FF%FE%2Cx", "\u00e9"}
    assert {s["dataset"] for s in stats(mnt)["streams"]} == want
    text = (mnt / ".betonfs/metrics").read_text()
    parse(text)
    assert 'dataset="a\\"b\\\\c\\nd"' in text
    try:
        from prometheus_client.openmetrics import parser
    except ImportError:
        return
    assert {s.labels["dataset"]
            for f in parser.text_string_to_metric_families(text)
            if f.name == "betonfs_stream_batches" for s in f.samples} == want


# --- the counters ---

@pytest.mark.quick
def test_every_way_is_counted_exactly(data, mount):
    mnt = mount(data.path)
    sizes = [(mnt / path_of(i)).stat().st_size for i in range(N // 4)]
    whole = N // 4, sum(sizes)
    a = stats(mnt)
    assert moved(a, a) == dict.fromkeys(a["delivery"], (0, 0))
    for i, size in enumerate(sizes):
        assert len((mnt / path_of(i)).read_bytes()) == size
    b = stats(mnt)
    assert moved(a, b) == {"page_cache": whole, "direct": (0, 0),
                           "zero_copy": (0, 0)}
    for i, size in enumerate(sizes):
        assert read_direct(mnt / path_of(i)) == size
    c = stats(mnt)
    assert moved(b, c) == {"page_cache": (0, 0), "direct": whole,
                           "zero_copy": (0, 0)}
    client = Client(mnt)
    for i, size in enumerate(sizes):
        slot, seen = client.get(path_of(i))
        assert len(seen) == size
        client.put(slot)
    assert client.get(path_of(99)) > 0
    d = stats(mnt)
    assert moved(c, d) == {"page_cache": (0, 0), "direct": (0, 0),
                           "zero_copy": whole}
    # Files that are no batches are not counted.
    (mnt / "samples/000000/label").read_bytes()
    (mnt / "columns/label.npy").read_bytes()
    assert moved(d, stats(mnt)) == moved(a, a)


@pytest.mark.parametrize("way", ["direct", "zero-copy"])
def test_a_loaders_way_is_counted(data, mount, tmp_path, way):
    mnt = mount(data.path)
    before = stats(mnt)
    dump(mnt, tmp_path / "out", "--spec", SPEC, *PLAIN, "--delivery", way)
    after = moved(before, stats(mnt))
    # One more has one sample: for the shapes.
    assert after["page_cache"] == (0, 0)
    assert after[way.replace("-", "_")][0] == N // 4 + 1
    assert after["direct"][0] == (N // 4 + 1 if way == "direct" else 0)


def payload(data):
    """Bytes of all values that are not in the metadata."""
    return sum(len(data.stored(i, name)) for i in range(len(data.values))
               for name, kind, *_ in data.fields
               if kind not in (make.INT, make.FLOAT))


def variable(data):
    return sum(kind not in (make.INT, make.FLOAT)
               for _, kind, *_ in data.fields)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """64 MiB, which a cache of half of that cannot hold."""
    rng = np.random.default_rng(3)
    some = rng.bytes(96 * 96 * 3)
    return make.Dataset(
        tmp_path_factory.mktemp("stats") / "l.beton",
        [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, 96, 96, some), "label": i}
         for i in range(2400)], 1 << 20)


def test_a_cache_accounts_for_every_byte(large, mount):
    mnt = mount(large.path, "-o", "cache=process,cache_size=32MiB,prefetch=0")
    epoch = mnt / "batches/order=quasi_random,batch=24,block=37,window=300/0"
    for p in sorted(epoch.iterdir()):
        p.read_bytes()
    c = stats(mnt)["cache"]
    assert c["mode"] == "process" and 0 < c["used"] <= c["limit"] <= 32 << 20
    assert c["delivered_bytes"] == payload(large)
    assert c["hits"] + c["stalled"] + c["misses"] == len(large.values)
    assert c["bypassed"] == 0
    # Each byte once, but for the ends of runs, which share pages.
    assert 0.95 * payload(large) <= c["read_bytes"] <= 1.25 * payload(large)
    assert c["amplification"] == pytest.approx(
        c["read_bytes"] / c["delivered_bytes"])
    assert c["evicted_bytes"] > 0 and c["reads"] > 0


def test_cache_stages_are_reported(large, mount):
    mnt = mount(large.path, "-o", "cache=process,cache_size=32MiB,prefetch=0")
    epoch = mnt / "batches/order=random,batch=24/0"
    for p in sorted(epoch.iterdir()):
        p.read_bytes()
    reported, m = both(mnt)
    stages, cache = reported["stages"], reported["cache"]
    assert list(stages) == STAGES
    # It alone reads past the kernel, and everything.
    assert stages["source"]["items"] == cache["reads"]
    assert stages["source"]["bytes"] >= cache["read_bytes"]
    assert stages["source"]["busy_s"] > 0
    assert stages["cache"]["items"] == len(large.values)
    assert stages["cache"]["bytes"] == cache["delivered_bytes"]
    waits = m["betonfs_stage_duration_seconds_count", (("stage", "cache"),)]
    assert 0 < waits <= cache["stalled"] + cache["misses"]
    assert stages["cache"]["input_wait_s"] == pytest.approx(
        stages["collation"]["input_wait_s"], rel=0.01)
    assert stages["collation"]["items"] == reported["slots"]["collated"] == 100
    assert stages["collation"]["busy_s"] > 0
    assert stages["delivery"]["items"] == 100
    assert stages["delivery"]["bytes"] == \
        reported["delivery"]["page_cache"]["bytes"]
    for s in stages.values():
        assert 0 < s["p50_s"] <= s["p90_s"] <= s["p99_s"]


def test_stages_without_a_cache(data, mount):
    mnt = mount(data.path, "-o", "prefetch=0")
    client = Client(mnt)
    for i in range(N // 4):
        slot, _ = client.get(path_of(i))
        client.put(slot)
    read_direct(mnt / path_of(0))
    reported, m = both(mnt)
    stages = reported["stages"]
    assert stages["cache"]["items"] == stages["cache"]["input_wait_s"] == 0
    assert stages["collation"]["items"] == reported["slots"]["collated"]
    assert stages["delivery"]["items"] == N // 4 + 1
    assert m["betonfs_stage_duration_seconds_count",
             (("stage", "delivery"),)] == N // 4 + 1


def test_streams_share_cache_statistics(large, mount):
    mnt = mount(large.path, "-o", "cache=process,cache_size=32MiB")
    sizes, batches = {}, 0
    for size, seed, share in ((24, 1, 1), (48, 2, 2)):
        spec = f"order=random,batch={size},seed={seed}"
        paths = sorted((mnt / "batches" / spec / "0").iterdir())
        paths = paths[:len(paths) // share]
        for p in paths:
            p.read_bytes()
        sizes[len(paths)] = size
    reported, _ = both(mnt)
    assert {s["opened"] for s in reported["streams"]} == set(sizes)
    for s in reported["streams"]:
        size = sizes[s["opened"]]
        n = s["hits"] + s["stalled"] + s["misses"]
        # More than were opened: others are ahead, or were in vain.
        assert n % size == 0 and n // size >= s["opened"]
        batches += n // size
        assert 0 < s["misses"] and s["bypassed"] <= s["stalled"] + s["misses"]
        assert s["reads"] > 0 and s["read_bytes"] > 0
        assert s["delivered_bytes"] == n * 96 * 96 * 3
        assert s["amplification"] == pytest.approx(
            s["read_bytes"] / s["delivered_bytes"])
    for key in ("hits", "stalled", "misses", "delivered_bytes"):
        assert sum(s[key] for s in reported["streams"]) == reported["cache"][key]
    assert batches == reported["slots"]["collated"]
    labels = {dict(k)["spec"] for name, k in metrics(mnt)
              if name == "betonfs_stream_read_bytes_total"}
    assert len(labels) == 2


def test_a_batch_that_is_there_is_not_late(data, mount):
    mnt = mount(data.path, "-o", "prefetch=0")
    client = named(mnt, b"train")
    for late in (1, 1, 2):
        slot, _ = client.get(path_of(late))
        client.put(slot)
        assert jobs(mnt)["train"]["stalled"] == late
    assert jobs(mnt)["train"]["batches"] == 3
    assert read_direct(mnt / path_of(2)) > 0
    assert read_direct(mnt / path_of(5)) > 0
    assert stats(mnt)["delivery"]["direct"]["stalled"] == 1
    assert stats(mnt)["delivery"]["zero_copy"]["stalled"] == 2
    m = metrics(mnt)
    assert m["betonfs_job_stalled_total", (("job", "train"),)] == 2
    assert m["betonfs_delivered_stalled_total", (("way", "direct"),)] == 1


# --- streams ---

def test_streams_report_where_they_are(data, mount):
    mnt = mount(data.path)
    assert stats(mnt)["streams"] == []
    for i in range(1, 10, 2):
        (mnt / path_of(i, 3)).read_bytes()
    [s] = stats(mnt)["streams"]
    assert 0 <= s.pop("idle_s") < 60
    where = {k: s.pop(k) for k in ("dataset", "spec", "epoch", "number",
                                   "stride", "opened")}
    assert where == {"dataset": "", "spec": SPEC, "epoch": 3, "number": 9,
                     "stride": 2, "opened": 5}
    # Without a cache of its own the daemon does not know what is read.
    assert s == dict.fromkeys(
        ("hits", "stalled", "misses", "bypassed", "reads", "read_bytes",
         "delivered_bytes", "wasted_bytes", "amplification"), 0)
    (mnt / "batches/batch=5/0/000000.batch").read_bytes()
    assert len(stats(mnt)["streams"]) == 2


def test_two_readers_of_a_spec_are_one_metric(data, mount):
    mnt = mount(data.path)
    for epoch in (0, 50):
        for i in range(4):
            (mnt / path_of(i, epoch)).read_bytes()
    assert len(stats(mnt)["streams"]) == 2
    assert metrics(mnt)["betonfs_stream_batches_total",
                        (("dataset", ""), ("spec", SPEC))] == 8


def test_a_dataset_reports_itself_and_the_root_of_all(data, mount, tmp_path):
    other = make.numbers(tmp_path / "val.beton", 20)
    mnt = mount(other.path, data.path)
    (mnt / "p/batches/batch=4/0/000003.batch").read_bytes()
    (mnt / "val/batches/batch=5/1/000002.batch").read_bytes()
    p, val = ("p", 0, 3), ("val", 1, 2)
    for top, want in ((mnt, {p, val}), (mnt / "p", {p}), (mnt / "val", {val})):
        reported = stats(top)
        assert {(s["dataset"], s["epoch"], s["number"])
                for s in reported["streams"]} == want
        assert reported["delivery"]["page_cache"]["batches"] == len(want)
        assert reported["stages"]["delivery"]["items"] == len(want)
        assert [j["batches"] for j in reported["jobs"]] == [len(want)]
        assert len(os.listdir(top / ".betonfs/jobs")) == 1
        names = {name for name, _ in metrics(top)}
        assert {dict(labels)["dataset"] for name, labels in metrics(top)
                if name == "betonfs_stream_batches_total"} == \
            {name for name, _, _ in want}
        # Common counters are reported for all users together.
        for key in ("slots", "betonfs_cache_hits_total"):
            assert (key in reported or key in names) == (top == mnt)
        assert ("collation" in reported["stages"]) == (top == mnt)
        assert reported["cache"]["mode"] == elsewhere.CACHE


def without_idle(job):
    """The same a second later."""
    return dict(job, idle_s=0, ranks=[dict(r, idle_s=0) for r in job["ranks"]])


def test_a_job_of_two_datasets_is_one(data, mount, tmp_path):
    other = make.numbers(tmp_path / "val.beton", 20)
    mnt = mount(other.path, data.path)
    a, b, idle = (named(mnt, b"both", rank=2, world_size=4) for _ in range(3))
    a.send(report(samples=1))
    for client, folder, samples in ((a, "p", 10), (b, "val", 20)):
        assert isinstance(client.get(f"{folder}/{path_of(0)}"), tuple)
        client.send(report(samples=samples, epoch=samples))
        wait_until(lambda: [r["samples"] for r in jobs(mnt / folder)[
            "both"]["ranks"]] == [samples - (folder == "p")], "its words")
    for folder, batches, connections, samples in (
            ("p", 1, 1, 9), ("val", 1, 1, 20), (".", 2, 3, 30)):
        job = jobs(mnt / folder)["both"]
        assert (job["batches"], job["connections"]) == (batches, connections)
        assert [(r["rank"], r["samples"]) for r in job["ranks"]] == \
            [(2, samples)]
        assert without_idle(json.loads(
            (mnt / folder / ".betonfs/jobs/both.json").read_text())) == \
            without_idle(job)
        m = metrics(mnt / folder)
        assert m["betonfs_rank_samples_total",
                 (("job", "both"), ("rank", "2"))] == samples
    # A loader that continues with another dataset leaves the first.
    assert isinstance(a.get(f"val/{path_of(1)}"), tuple)
    assert jobs(mnt / "p")["both"]["connections"] == 0
    assert jobs(mnt / "val")["both"]["connections"] == 2
    assert idle.socket


# --- jobs ---


def test_plain_readers_are_known_by_session(data, mount):
    mnt = mount(data.path)
    script = 'cat "$0" >/dev/null; echo $$'
    want = {}
    for i in range(3):
        session = subprocess.check_output(
            ["setsid", "-w", "sh", "-c", script, mnt / path_of(i)], text=True)
        want[f"session-{int(session)}"] = (mnt / path_of(i)).stat().st_size
    (mnt / path_of(5)).read_bytes()
    reported = jobs(mnt)
    # Setsid's process may have ended before it was looked at: not its cat.
    assert {k: reported[k]["bytes"] for k in want} == want
    assert reported[f"session-{os.getsid(0)}"]["batches"] == 1


def test_loaders_are_known_by_name(data, mount, tmp_path, monkeypatch):
    mnt = mount(data.path)
    for name, epochs in (("train", 2), ("train", 3), ("eval 1/2", 2)):
        monkeypatch.setenv("BETON_JOB", name)
        beton("bench", mnt, "--spec", SPEC, "--until", "read", "--epochs",
              epochs)
    reported = jobs(mnt)
    # Each loader requests one batch for the shapes, and prefetches up to two
    # more than it needs.
    assert 2 <= reported["train"]["batches"] - 5 * N // 4 <= 2 * 3
    assert 1 <= reported["eval 1/2"]["batches"] - 2 * N // 4 <= 3
    assert set(reported) == {"train", "eval 1/2"}
    wait_until(lambda: jobs(mnt)["train"]["connections"] == 0, "its end")
    monkeypatch.setenv("BETON_JOB", "")
    dump(mnt, tmp_path / "out", "--spec", SPEC, *PLAIN)
    assert jobs(mnt)[f"session-{os.getsid(0)}"]["batches"] == N // 4 + 1


@pytest.mark.parametrize("name", ["x" * 65, "a\nb", "\u00e9"])
def test_a_bad_name_of_a_job_is_reported(data, monkeypatch, name):
    monkeypatch.setenv("BETON_JOB", name)
    printed = beton("bench", data.path, code=1).stderr
    assert "BETON_JOB" in printed or "job" in printed


def test_ranks_share_a_job(data, mount):
    mnt = mount(data.path)
    ranks = [named(mnt, b"both") for _ in range(3)]
    for i, client in enumerate(ranks):
        assert isinstance(client.get(path_of(i)), tuple)
    assert jobs(mnt)["both"]["connections"] == 3
    assert jobs(mnt)["both"]["batches"] == 3
    ranks[0].socket.close()
    wait_until(lambda: jobs(mnt)["both"]["connections"] == 2, "the end of one")


def test_ranks_report_their_figures(data, mount):
    """The data of a live view: ranks, their speed, and their waits."""
    mnt = mount(data.path)
    a, b = (named(mnt, b"train", rank=rank, world_size=8) for rank in (0, 5))
    assert jobs(mnt)["train"]["ranks"] == []
    a.send(report(epoch=3, number=10, open_s=2 * 10**9, samples=600, batches=3,
                waits=2, wait_s=10**9, trainer_s=3 * 10**9, queue_ready=2,
                queue_capacity=8, decode_busy_s=5 * 10**9, decode_delay_s=10**9))
    b.send(report(samples=7))
    wait_until(lambda: len(jobs(mnt)["train"]["ranks"]) == 2, "their words")
    r = rank_of(mnt, "train", 0)
    assert (r["world_size"], r["loaders"], r["epoch"], r["number"]) == (8, 1, 3, 10)
    assert (r["samples_per_s"], r["wait_share"], r["queue_fill"]) == \
        (300, 0.25, 0.25)
    assert (r["wait_s"], r["trainer_s"], r["waits"]) == (1, 3, 2)
    assert r["stages"]["decode"] == {"busy_s": 5, "delay_s": 1}
    assert r["stages"]["read"] == {"busy_s": 0, "delay_s": 0}
    # Rates are those of the last time, sums of all.
    a.send(report(epoch=3, number=18, open_s=3 * 10**9, samples=1600, batches=4,
                waits=2, wait_s=10**9, trainer_s=4 * 10**9, queue_ready=10,
                queue_capacity=16, decode_busy_s=6 * 10**9,
                decode_delay_s=10**9))
    wait_until(lambda: rank_of(mnt, "train", 0)["number"] == 18, "the next")
    r = rank_of(mnt, "train", 0)
    assert (r["samples_per_s"], r["wait_share"], r["queue_fill"]) == \
        (1000, 0, 1)
    assert r["samples"] == 1600 and r["open_s"] == 3
    # Another loader of the rank adds to it, and what it did stays.
    val = named(mnt, b"train", rank=0, world_size=8)
    val.send(report(samples=50, epoch=1))
    wait_until(lambda: rank_of(mnt, "train", 0)["loaders"] == 2, "the other")
    val.socket.close()
    wait_until(lambda: rank_of(mnt, "train", 0)["loaders"] == 1, "its end")
    m = metrics(mnt)
    for rank, samples in (("0", 1650), ("5", 7)):
        assert m["betonfs_rank_samples_total",
                 (("job", "train"), ("rank", rank))] == samples
    assert m["betonfs_rank_decode_seconds_total",
             (("job", "train"), ("rank", "0"))] == 6
    one = json.loads((mnt / ".betonfs/jobs/train.json").read_text())
    assert [r["samples"] for r in one["ranks"]] == [1650, 7]


def test_the_last_report_counts(data, daemon):
    """Also of a loader that closes while the daemon, which is slow, has sent it
    a batch: the kernel then reports a broken connection before the report."""
    d = daemon(data.path)
    client = named(d.where, b"mine")
    client.ask(path_of(0))
    assert select.select([client.socket], [], [], DEADLINE)[0]
    d.process.send_signal(signal.SIGSTOP)
    try:
        client.send(report(samples=77))
        client.socket.close()
    finally:
        d.process.send_signal(signal.SIGCONT)
    wait_until(lambda: jobs(d.where)["mine"]["connections"] == 0, "its end")
    assert rank_of(d.where, "mine", 0)["samples"] == 77


def test_loaders_report_their_totals(data, mount, monkeypatch):
    """Loaders that end within a second report, too, and all their figures are
    true."""
    mnt = mount(data.path)
    monkeypatch.setenv("BETON_JOB", "mine")
    for rank in (0, 1):
        with Loader(mnt, spec=SPEC, pipeline=AUGMENT, rank=rank,
                    world_size=2) as loader:
            for _ in range(2):
                loader.epoch()
            loader.release(loader.next())
            throughput = loader.throughput()
    wait_until(lambda: jobs(mnt)["mine"]["connections"] == 0, "their end")
    for rank in (0, 1):
        r = rank_of(mnt, "mine", rank)
        # Each epoch has ten batches; the rank has every other one.
        assert (r["epoch"], r["number"], r["batches"]) == (2, rank, 11)
        assert (r["samples"], r["failed_samples"], r["loaders"]) == (44, 0, 0)
        assert r["queue_capacity"] == 22 >= r["queue_ready"]
        assert r["open_s"] >= r["wait_s"] + r["trainer_s"]
        assert r["stages"]["decode"]["busy_s"] > 0
        assert r["read_bytes"] > 0
    assert r["wait_s"] == pytest.approx(1e-9 * throughput.wait_ns)
    assert r["waits"] == throughput.waits
    assert r["wait_s"] == pytest.approx(
        sum(s["delay_s"] for s in r["stages"].values()))
    # A loader that reads files has no daemon to report to.
    with Loader(mnt, spec=SPEC, pipeline=AUGMENT, job="files",
                delivery="direct") as loader:
        loader.epoch()
    assert "files" not in jobs(mnt)


def test_ranks_are_bounded(data, mount):
    mnt = mount(data.path)
    for rank in range(1100):
        client = named(mnt, b"many", rank=rank, world_size=2000)
        client.send(report(samples=1))
        client.socket.close()
    wait_until(lambda: jobs(mnt)["many"]["connections"] == 0, "their end")
    ranks = jobs(mnt)["many"]["ranks"]
    assert len(ranks) == 1024 and ranks[-1]["rank"] == 1099
    metrics(mnt)


HOSTILE = [b"../../etc/passwd", b".", b"..", b"a/b", b"%", b"%2F", b" ", b"~",
           b'"', b"\\", b"x" * 64, b"-", b".json", b"a.json", b"{}'\"\\n"]


def test_files_of_jobs(data, mount):
    mnt = mount(data.path)
    folder = mnt / ".betonfs/jobs"
    assert os.listdir(folder) == []
    assert not (folder / "train.json").exists()
    names = [b"train", *HOSTILE]
    clients = []
    for i, name in enumerate(names):
        clients.append(named(mnt, name))
        # Neither a listing nor a name that was absent is remembered.
        assert len(os.listdir(folder)) == i + 1
        assert (folder / "train.json").exists()
    seen = {}
    for file in os.listdir(folder):
        assert re.fullmatch(r"[A-Za-z0-9_%.-]+\.json", file)
        reported = json.loads((folder / file).read_bytes())
        seen[reported["name"].encode()] = file
        assert dict(reported, idle_s=0) == dict(jobs(mnt)[reported["name"]], idle_s=0)
    assert set(seen) == set(names)
    assert seen[b"a/b"] == "a%2Fb.json"
    assert json.loads((folder / "train.json").read_text())["connections"] == 1
    metrics(mnt)


def test_jobs_are_bounded(data, mount):
    mnt = mount(data.path)
    folder = mnt / ".betonfs/jobs"
    before = stats(mnt)
    keeper = named(mnt, b"keeper")
    first = named(mnt, b"job-0")
    slot, _ = first.get(path_of(0))
    first.put(slot)
    old = open(folder / "job-0.json")
    first.socket.close()
    wait_until(lambda: jobs(mnt)["job-0"]["connections"] == 0, "its end")
    for i in range(1, 300):
        client = named(mnt, b"job-%d" % i)
        client.socket.close()
        wait_until(lambda: jobs(mnt)[f"job-{i}"]["connections"] == 0, "its end")
    reported = jobs(mnt)
    assert len(reported) == MAX == len(os.listdir(folder))
    assert "keeper" in reported and "job-299" in reported and "job-0" not in reported
    assert not (folder / "job-0.json").exists()
    assert json.loads(old.read())["name"] == "job-0"
    old.close()
    # Deliveries stay counted after the job is forgotten.
    assert moved(before, stats(mnt))["zero_copy"][0] == 1
    assert isinstance(keeper.get(path_of(1)), tuple)
    assert jobs(mnt)["keeper"]["batches"] == 1
    metrics(mnt)
