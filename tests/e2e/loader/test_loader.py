# SPDX-License-Identifier: Apache-2.0
"""The loader, through `beton dump` and `beton bench`: exact tensors, resuming,
bad samples, and mounts and files that disappear or change."""
import io
import json
import os
import random
import re
import signal
import struct
import subprocess
import time

import numpy as np
import pytest

import dumped
import make
from dumped import AUGMENT, BUILD, DEADLINE, SANITIZER, beton, digest, dump

Image = pytest.importorskip("PIL.Image")

N, SIZE = 40, 4
SPEC = f"batch={SIZE},seed=11,drop_last=0"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("loader") / "p.beton", N)


@pytest.fixture
def own(tmp_path):
    """One that the test may damage."""
    return dumped.photos(tmp_path / "own.beton", N)


# --- tensors ---

def check_tensors(data, batches):
    for b in batches:
        assert b.valid == [True] * len(b.ids)
        for row, i in enumerate(b.ids):
            v = data.values[i]
            assert b.row("label", row) == v["label"]
            assert b.row("score", row) == v["score"]
            assert b.row("blob", row) == v["blob"]
            assert b.row("meta", row) == v["meta"]
            assert (b.row("vec", row) == v["vec"]).all()
            assert (b.row("tens", row) == v["tens"]).all()
        assert b.outputs["label"].dtype == np.int64
        assert b.outputs["score"].dtype == np.float64
        assert b.outputs["vec"].dtype == np.float32
        assert b.outputs["vec"].shape == (len(b.ids), 2, 3)
        assert b.outputs["tens"].dtype == np.int16


@pytest.mark.quick
def test_fields_come_exactly(data, mount, tmp_path):
    options = ["--spec", SPEC, "--pipeline", AUGMENT]
    for out, source in (("a", data.path), ("b", mount(data.path))):
        batches = dump(source, tmp_path / out, *options)
        assert len(batches) == N // SIZE
        assert sorted(sum((b.ids for b in batches), [])) == list(range(N))
        check_tensors(data, batches)
        for b in batches:
            assert b.outputs["image"].shape == (SIZE, 3, 12, 12)
            assert b.outputs["image"].dtype == np.float32
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_statements_cast_name_and_drop(data, tmp_path):
    b = dump(data.path, tmp_path / "x", "--spec", SPEC, "--batches", "0:1",
             "--pipeline", "y = label | int32; small = image | "
             "center_crop(8); blob | drop")[0]
    assert set(b.outputs) == {"y", "small", "score", "meta", "vec", "tens"}
    assert b.outputs["y"].dtype == np.int32
    assert b.outputs["small"].shape == (SIZE, 8, 8, 3)
    assert b.outputs["small"].dtype == np.uint8


def test_raw_pixels_come_exactly(tmp_path):
    rng = np.random.default_rng(1)
    d = make.Dataset(tmp_path / "raw.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 7, 5, rng.bytes(105))}
        for _ in range(6)])
    for b in dump(d.path, tmp_path / "x", "--spec", "batch=3"):
        want = np.stack([np.frombuffer(d.stored(i, "image"), np.uint8)
                         .reshape(5, 7, 3) for i in b.ids])
        assert (b.outputs["image"] == want).all()


def test_jpeg_pixels_are_those_of_libjpeg(data, tmp_path):
    """Its accurate transform, which is what PIL uses too."""
    for i in (0, 1, 2, 4, 5):
        v = data.values[i]["image"]
        one = make.Dataset(tmp_path / f"{i}.beton", [("image", make.IMAGE)],
                           [{"image": v}], 1 << 16)
        b, = dump(one.path, tmp_path / str(i), "--spec", "batch=1")
        with Image.open(io.BytesIO(v.data)) as im:
            assert (b.outputs["image"][0] == np.asarray(im)).all()


def test_workers_do_not_matter(data, tmp_path):
    sums = []
    for workers in (1, 2, 8):
        out = tmp_path / str(workers)
        dump(data.path, out, "--spec", SPEC, "--pipeline", AUGMENT,
             "--jobs", workers)
        sums.append(digest(out))
    assert sums[0] == sums[1] == sums[2]


def test_a_sample_looks_the_same_in_any_batch(data, tmp_path):
    """Draws belong to seed, epoch and sample, not to places."""
    def pixels(out, spec):
        return {i: b.outputs["image"][row].tobytes()
                for b in dump(data.path, tmp_path / out, "--pipeline",
                              AUGMENT, "--spec", spec)
                for row, i in enumerate(b.ids)}
    one = pixels("a", "batch=4,seed=2")
    other = pixels("b", "order=sequential,batch=10,seed=2")
    assert one == other and len(one) == N
    assert pixels("c", "batch=4,seed=3") != one


def test_epochs_look_different(data, tmp_path):
    sums = []
    for epoch in range(2):
        out = tmp_path / str(epoch)
        dump(data.path, out, "--pipeline", AUGMENT, "--epoch", epoch,
             "--spec", "order=sequential,batch=40")
        sums.append(digest(out))
    assert sums[0] != sums[1]


# --- resuming ---

def whole_epoch(data, out, epoch):
    dump(data.path, out, "--spec", SPEC, "--epoch", epoch, "--pipeline",
         AUGMENT)
    return digest(out)


@pytest.mark.quick
@pytest.mark.parametrize("trial", range(20))
def test_resume_anywhere_with_other_workers_and_ranks(data, tmp_path, trial):
    """Some batches with one world size, the rest with another: together one
    epoch."""
    rng = random.Random(trial)
    first, second = rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
    n = N // SIZE
    steps = rng.randrange(1, n // first)
    epoch, state = rng.randrange(5), tmp_path / "state"
    got = {}
    for rank in range(first):
        own = tmp_path / f"state{rank}"
        out = tmp_path / f"a{rank}"
        dump(data.path, out, "--spec", SPEC, "--epoch", epoch, "--pipeline",
             AUGMENT, "--rank", rank, "--world-size", first, "--jobs",
             rng.randint(1, 4), "--batches", f":{steps * first}",
             "--state", own)
        got.update(digest(out))
        if rank:    # every rank leaves the same state
            assert json.loads(own.read_text()) == \
                json.loads(state.read_text())
        else:
            state.write_text(own.read_text())
    assert json.loads(state.read_text())["batches"] == steps * first
    for rank in range(second):
        own = tmp_path / f"again{rank}"
        own.write_text(state.read_text())
        out = tmp_path / f"b{rank}"
        dump(data.path, out, "--pipeline", AUGMENT, "--rank", rank,
             "--world-size", second, "--jobs", rng.randint(1, 4), "--state",
             own)
        got.update({k: v for k, v in digest(out).items() if k < n})
    assert got == whole_epoch(data, tmp_path / "whole", epoch)


def test_a_state_fits_file_and_mount(data, mount, tmp_path):
    mnt, state, got = mount(data.path), tmp_path / "state", {}
    for k, source in enumerate((data.path, mnt, data.path)):
        out = tmp_path / str(k)
        options = ["--state", state, "--pipeline", AUGMENT]
        if k < 2:
            options += ["--batches", f"{k * 3}:{k * 3 + 3}"]
        if k == 0:
            options += ["--spec", SPEC]
        dump(source, out, *options)
        got.update(digest(out))
    assert got == whole_epoch(data, tmp_path / "whole", 0)


def test_the_next_epoch_follows_the_last_batch(data, tmp_path):
    state, options = tmp_path / "state", ["--pipeline", "image | drop"]
    dump(data.path, tmp_path / "0", "--spec", SPEC, "--state", state,
         *options)
    dump(data.path, tmp_path / "1", "--state", state, *options)
    dump(data.path, tmp_path / "want", "--spec", SPEC, "--epoch", 1, *options)
    assert digest(tmp_path / "1") == digest(tmp_path / "want")
    assert json.loads(state.read_text())["batches"] in (0, N // SIZE)


@pytest.fixture
def state(data, tmp_path):
    path = tmp_path / "good.state"
    dump(data.path, tmp_path / "made", "--spec", SPEC, "--batches", ":3",
         "--state", path, "--pipeline", "image | drop")
    return path


def refused(path, tmp_path, *options):
    """The refusal is one line, and the state does not change."""
    state = options[options.index("--state") + 1]
    before = state.read_text()
    r = beton("dump", path, "--out", tmp_path / "no", "--pipeline",
              "image | drop", *options, code=1)
    assert r.stderr.count("\n") == 1, r.stderr
    assert state.read_text() == before
    return r.stderr


def test_a_state_belongs_to_its_spec(data, state, tmp_path):
    assert str(state) in refused(data.path, tmp_path, "--state", state,
                                 "--spec", "batch=5")
    dump(data.path, tmp_path / "same", "--state", state, "--pipeline",
         "image | drop", "--spec", "drop_last=0,seed=11,batch=4")


def test_a_state_belongs_to_its_dataset(state, tmp_path):
    other = dumped.photos(tmp_path / "other.beton", N + 1)
    refused(other.path, tmp_path, "--state", state)


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", '{"version": 1}', "\xff\xfe", "x" * 10000])
def test_nonsense_is_no_state(data, tmp_path, text):
    bad = tmp_path / "bad.state"
    bad.write_text(text)
    assert str(bad) in refused(data.path, tmp_path, "--state", bad)


@pytest.mark.parametrize("key,value", [
    ("version", 2), ("epoch", -1), ("batches", "3"), ("spec", "batch=0"),
    ("fingerprint", "0" * 32), ("fingerprint", ""), ("spec", None)])
def test_a_forged_state_is_refused(data, state, tmp_path, key, value):
    d = json.loads(state.read_text())
    d[key] = value
    state.write_text(json.dumps(d))
    refused(data.path, tmp_path, "--state", state)


# --- bad samples ---

@pytest.fixture(params=["pointer", "jpeg", "raw"])
def hurt(own, request):
    """One sample whose image is unreadable: .bad is its number. A daemon that
    only delivers bytes logs a line that matches .expects."""
    own.bad = 19 if request.param == "raw" else 17
    own.expects = f"sample {own.bad} field image"
    if request.param == "jpeg":
        own.patch(own.place[own.bad, "image"], bytes(200))
        own.expects = None
    else:
        own.patch(own.where(own.bad, "image") + 5, struct.pack("<Q", 7))
    return own


def test_raise_stops_and_names_the_sample(hurt, tmp_path):
    r = beton("dump", hurt.path, "--out", tmp_path / "x", "--spec", SPEC,
              "--pipeline", AUGMENT, code=1)
    line, = r.stderr.splitlines()
    assert "image" in line and str(hurt.bad) in line
    assert hurt.path in line


@pytest.mark.parametrize("how", ["skip", "zero"])
def test_skip_and_zero_keep_the_place(hurt, mount, tmp_path, how):
    good = dump(dumped.photos(tmp_path / "good.beton", N).path,
                tmp_path / "g", "--spec", SPEC, "--pipeline", AUGMENT)
    bad = dump(hurt.path, tmp_path / "b", "--spec", SPEC, "--pipeline",
               AUGMENT, "--on-error", how)
    for g, b in zip(good, bad, strict=True):
        assert g.ids == b.ids
        for row, i in enumerate(b.ids):
            assert b.valid[row] == (i != hurt.bad or how == "zero")
            for name in g.outputs:
                got = np.asarray(b.row(name, row))
                if name == "image" and i == hurt.bad:
                    assert not got.any()
                elif i != hurt.bad or how == "zero":
                    assert (got == np.asarray(g.row(name, row))).all()


def test_a_mount_reports_the_same_about_bad_samples(hurt, mount, tmp_path):
    options = ["--spec", SPEC, "--pipeline", AUGMENT, "--on-error", "skip"]
    dump(hurt.path, tmp_path / "f", *options)
    dump(mount(hurt.path, expects=hurt.expects), tmp_path / "m", *options)
    assert digest(tmp_path / "f") == digest(tmp_path / "m")


# --- when the ground gives way ---

def ends_soon(process, seconds=5):
    """The process ends soon, with an error and not by a signal. -> its
    messages"""
    _, printed = process.communicate(timeout=seconds)
    assert process.returncode == 1, (process.returncode, printed)
    assert printed and not SANITIZER.search(printed)
    return printed


def start(*args):
    return subprocess.Popen([BUILD / "beton", *map(str, args)], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def first_sign_of(process, out):
    end = time.monotonic() + DEADLINE
    while not (out.exists() and any(out.iterdir())):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "nothing was dumped"
        time.sleep(0.002)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Thousands of batches: time enough to interfere."""
    rng = np.random.default_rng(0)
    return make.Dataset(
        tmp_path_factory.mktemp("large") / "l.beton",
        [("image", make.IMAGE), ("label", make.INT)],
        [{"image": make.Image(make.RAW, 40, 30, rng.bytes(3600)),
          "label": i} for i in range(3000)], 1 << 16)


def test_a_killed_daemon_ends_a_dump_with_an_error(large, daemon, tmp_path):
    d = daemon(large.path)
    p = start("dump", d.where, "--spec", "batch=1", "--out", tmp_path / "o")
    first_sign_of(p, tmp_path / "o")
    d.process.kill()
    ends_soon(p)


@pytest.mark.parametrize("until", ["read", "all"])
def test_a_killed_daemon_ends_a_bench_with_an_error(large, daemon, until):
    d = daemon(large.path)
    p = start("bench", d.where, "--spec", "batch=8", "--epochs", 1000000,
              "--until", until)
    # It has read something as soon as it has used the daemon for a while.
    def cpu():
        with open(f"/proc/{d.process.pid}/stat") as f:
            return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    end, used = time.monotonic() + DEADLINE, cpu()
    while cpu() < used + 5:
        assert p.poll() is None and time.monotonic() < end
        time.sleep(0.005)
    d.process.kill()
    ends_soon(p)


def test_a_deleted_dataset_stays_readable_while_open(own, mount, tmp_path):
    mnt = mount(own.path)
    options = ["--spec", SPEC, "--pipeline", AUGMENT]
    dump(own.path, tmp_path / "before", *options)
    os.unlink(own.path)
    dump(mnt, tmp_path / "after", *options)
    assert digest(tmp_path / "before") == digest(tmp_path / "after")
    r = beton("dump", own.path, "--out", tmp_path / "x", code=1)
    assert "No such file" in r.stderr


def test_a_truncated_file_gives_errors_and_true_rows(own, tmp_path):
    cut = own.place[25, "image"]
    os.truncate(own.path, cut)
    r = beton("dump", own.path, "--out", tmp_path / "no", code=1)
    assert "cut off" in r.stderr


def test_a_file_cut_under_a_mount_gives_errors_and_true_rows(own, mount,
                                                             tmp_path):
    options = ["--spec", SPEC, "--pipeline", AUGMENT, "--on-error", "skip"]
    good = dump(own.path, tmp_path / "good", *options)
    mnt = mount(own.path, expects="read of")
    assert os.listdir(mnt / "columns/image")    # the table is read now
    for p in (mnt / "columns/image").iterdir():
        p.stat()
    os.truncate(own.path, own.place[25, "image"])
    bad = dump(mnt, tmp_path / "bad", *options)
    lost = 0
    for g, b in zip(good, bad, strict=True):
        assert g.ids == b.ids
        for row, i in enumerate(b.ids):
            lost += not b.valid[row]
            assert b.valid[row] or i >= 25
            if b.valid[row]:
                for name in g.outputs:
                    assert (np.asarray(g.row(name, row)) ==
                            np.asarray(b.row(name, row))).all()
    assert lost == N - 25


def test_a_directory_or_a_device_is_no_dataset(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, "/dev/null", tmp_path / "pipe",
                 tmp_path / "nothing"):
        r = beton("dump", path, "--out", tmp_path / "x", code=1)
        assert str(path) in r.stderr and r.stderr.count("\n") == 1


def test_an_interrupted_dump_ends_by_its_signal(large, tmp_path):
    p = start("dump", large.path, "--spec", "batch=1", "--out",
              tmp_path / "o")
    first_sign_of(p, tmp_path / "o")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=10)
    assert p.returncode in (-signal.SIGINT, 128 + signal.SIGINT, 1)


def test_an_out_that_is_no_directory_is_reported(data, tmp_path):
    for out in ("/dev/full", tmp_path / "missing" / "x"):
        r = beton("dump", data.path, "--out", out, "--spec", SPEC,
                  "--pipeline", AUGMENT, code=1)
        assert str(out) in r.stderr and r.stderr.count("\n") == 1


# --- measuring ---

KEYS = {"images_per_s", "cpu_us_per_image", "first_batch_s", "peak_rss_mb",
        "bytes_per_s", "delivery", "decoder", "jit"}


@pytest.mark.parametrize("until", ["read", "decode", "transform", "all"])
def test_bench_measures_every_stage(data, mount, until):
    for source in (data.path, mount(data.path)):
        d = json.loads(beton("bench", source, "--spec", SPEC, "--pipeline",
                             AUGMENT, "--epochs", 3, "--until", until,
                             "--json").stdout)
        assert KEYS <= set(d) and len(d["images_per_s"]) == 2
        assert all(r > 0 for r in d["images_per_s"])
        assert d["bytes_per_s"] > 0 and d["peak_rss_mb"] > 0


@pytest.mark.parametrize("pipeline", [AUGMENT, "image | drop"])
def test_short_runs_have_figures_too(data, mount, pipeline):
    for source in (data.path, mount(data.path)):
        line = ("bench", source, "--spec", SPEC, "--pipeline", pipeline,
                "--epochs", 2)
        d = json.loads(beton(*line, "--json").stdout)
        assert d["cpu_us_per_image"] > 0
        figure = re.search(r"^CPU us/image +([0-9.]+)",
                           beton(*line).stdout, re.M)
        assert figure and float(figure[1]) > 0


def test_a_constant_source_needs_no_reading(data):
    d = json.loads(beton("bench", data.path, "--spec", SPEC, "--pipeline",
                         AUGMENT, "--epochs", 5, "--source", "constant",
                         "--json").stdout)
    assert d["source"] == "constant" and len(d["images_per_s"]) == 4
    r = beton("bench", data.path, "--source", "elsewhere", code=1)
    assert "elsewhere" in r.stderr
