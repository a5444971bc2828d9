# SPDX-License-Identifier: Apache-2.0
"""The loader's statistics of its stages: the counts equal the work that was
done, and the slow stage is reported as slow."""
import json
import re
import shutil

import pytest

import dumped
import make
from dumped import AUGMENT, beton
from loading import INFO, Loader
from compiled import SLOW

N, SIZE = 40, 4
STEPS = N // SIZE
SPEC = f"order=random,batch={SIZE},seed=0,drop_last=1"
LINE = re.compile(
    r"epoch (\d+): (\d+) samples in [0-9.]+ s, \d+/s; queue \d+ % full; "
    r"the trainer waited [0-9.]+ % of the time for data: "
    r"(?:data is not your bottleneck|the stage (\w+) made it wait longest)")

needs_compiler = pytest.mark.skipif(not shutil.which("cc"),
                                    reason="no C compiler")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("stages") / "p.beton", N)


@pytest.fixture
def slow(tmp_path):
    """A pipeline whose last operation takes long."""
    (tmp_path / "slow.c").write_text(SLOW)
    return f'image | random_resized_crop(12) | "{tmp_path}/slow.c".slow(20000)'


def jpegs(data):
    return [i for i, v in enumerate(data.values)
            if v["image"].mode == make.JPG]


def test_counts_match_the_work(data):
    with Loader(data.path, spec=SPEC, pipeline=AUGMENT, workers=3) as loader:
        size = 0
        for _ in range(STEPS):
            batch = loader.next()
            size += sum(batch.outputs[i].size
                        for i in range(batch.num_outputs))
            loader.release(batch)
        assert loader.next() is None
        s, p = loader.stats(), loader.throughput()
        assert list(s) == ["read", "decode", "transform", "next", "trainer"]
        # Prefetched batches belong to the next epoch.
        assert STEPS <= s["read"].items <= STEPS + 3
        assert s["next"].items == p.batches == s["trainer"].items == STEPS
        assert s["next"].bytes == size and p.samples == N
        assert N <= s["transform"].items <= N + 3 * SIZE
        stored = sum(len(data.stored(i, "image")) for i in jpegs(data))
        assert len(jpegs(data)) <= s["decode"].items < s["transform"].items
        assert s["decode"].bytes >= stored
        assert s["read"].bytes >= stored
        for stage in s.values():
            assert stage.p50_ns <= stage.p90_ns <= stage.p99_ns
            assert (stage.p50_ns > 0) == (stage.items > 0)
        # No wait is lost, and each belongs to a stage.
        assert p.wait_ns == s["next"].input_wait_ns
        assert p.wait_ns == sum(stage.delay_ns for stage in s.values())
        assert p.trainer_ns == s["trainer"].busy_ns > 0
        assert p.queue_capacity == 2
        assert p.queue_empty + p.queue_full <= STEPS
        assert p.waits == p.queue_empty
        assert p.queue_ready <= 2 * (STEPS - p.queue_empty)


def test_sizes_of_another_version(data):
    with Loader(data.path, spec=SPEC, pipeline=AUGMENT) as loader:
        loader.epoch()
        assert loader.throughput(0) == loader.throughput(7) == -22
        old = loader.throughput(3 * 8)
        assert (old.batches, old.samples) == (STEPS, N)
        assert old.queue_capacity == 0
        assert loader.throughput().queue_capacity == 2


def test_stages_that_are_left_out_count_nothing(data):
    for until, last in ((1, "read"), (2, "decode")):
        with Loader(data.path, spec=SPEC, pipeline="center_crop(8)",
                    until=until) as loader:
            loader.epoch()
            s = loader.stats()
            assert s["read"].items >= STEPS
            assert (s["decode"].items > 0) == (last == "decode")


@needs_compiler
def test_the_slow_stage_is_reported(data, slow):
    with Loader(data.path, spec=SPEC, pipeline=slow) as loader:
        loader.epoch()
        s, p = loader.stats(), loader.throughput()
        assert s["transform"].delay_ns > p.wait_ns / 2
        assert s["transform"].p50_ns > s["decode"].p99_ns
        epoch, samples, verdict = LINE.fullmatch(loader.printed[-1][1]).groups()
        assert (epoch, samples, verdict) == ("0", str(N), "transform")


def lines(loader):
    """The epochs that were reported."""
    found = [LINE.fullmatch(text) for level, text in loader.printed
             if level == INFO]
    return [(int(m[1]), int(m[2])) for m in found if m]


def test_whole_epochs_have_a_line(data):
    with Loader(data.path, spec=SPEC, pipeline=AUGMENT, epoch=7) as loader:
        assert loader.epoch() == STEPS
        assert loader.epoch() == STEPS
        assert lines(loader) == [(7, N), (8, N)]
        loader.release(loader.next())
        state = loader.state()
        loader.seek(20)
        loader.release(loader.next())
        assert lines(loader) == [(7, N), (8, N)]
        assert loader.epoch() == STEPS - 1
        assert lines(loader) == [(7, N), (8, N), (20, N)]
        # The rest of an epoch is not one.
        loader.load(state)
        assert loader.epoch() == STEPS - 1
        assert loader.epoch() == STEPS
        assert lines(loader)[3:] == [(10, N)]
    with Loader(data.path, spec=SPEC, pipeline=AUGMENT, rank=1,
                world_size=2) as loader:
        loader.epoch()
        assert lines(loader) == [(0, N // 2)]


def test_bench_reports_the_same(data):
    reported = json.loads(beton("bench", data.path, "--spec", SPEC, "--pipeline",
                            AUGMENT, "--epochs", 2, "--json").stdout)
    s, p = reported["stages"], reported["throughput"]
    assert p["batches"] == s["next"]["items"] and 0 <= p["queue_fill"] <= 1
    assert p["wait_s"] == pytest.approx(sum(t["delay_s"] for t in s.values()))
    assert s["decode"]["p50_us"] > 0
    printed = beton("bench", data.path, "--spec", SPEC, "--pipeline",
                 "image | drop", "--epochs", 2).stdout
    assert re.search(r"^queue +\d+ % full; the consumer waited for \d+ of \d+ "
                     r"batches, ", printed, re.MULTILINE)
