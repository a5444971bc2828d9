# SPDX-License-Identifier: Apache-2.0
"""Synthetic batches, for measurements without the loader: numbers and lengths
are the usual ones, values are those of the first batch, and nothing else is
read."""
import json
import math

import numpy as np
import pytest

import dumped
from dumped import beton, digest, dump

pytest.importorskip("PIL.Image")

N, BATCH = 40, 6
SPEC = ("--spec", f"batch={BATCH},seed=3,drop_last=0")
# Every field has an output.
ALL = ("--pipeline", "image | random_resized_crop(10) | flip")
TEXT = ("image | random_resized_crop(12) | flip{} | normalize(imagenet) | half"
        " | chw; label{}")
SYNTHETIC = ('synthetic(40, image="uint8[20,30,3]", label="int64<7", blob="bytes[4]", '
        'vec="float32[2,3]")')


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("synthetic datasets") / "f.beton", N)


@pytest.fixture(params=["file", "zero-copy", "direct"])
def where(request):
    return request.param


@pytest.fixture
def source(data, where, request):
    """A file or a mount, and the options to read it that way."""
    if where == "file":
        return [data.path]
    return [request.getfixturevalue("mount")(data.path), "--delivery", where]


def bench(source, *options):
    r = beton("bench", *source, "--json", "--epochs", 3, *SPEC, "--pipeline",
              TEXT.format("", ""), *options)
    return json.loads(r.stdout), r.stderr


def check(got, real, kept):
    """All but the values are the batch's own; these are of the first ones."""
    whole = {b.number: b for b in real if len(b.ids) == BATCH}
    first = [whole[n] for n in sorted(whole)[:kept]]
    assert [b.number for b in got] == [b.number for b in real]
    for i, (a, b) in enumerate(zip(got, real)):
        assert (a.ids, a.valid) == (b.ids, b.valid)
        assert a.outputs.keys() == b.outputs.keys()
        of, rows = first[i % kept], len(a.ids)
        for name in a.outputs:
            assert a.outputs[name].dtype == b.outputs[name].dtype
            for row in range(rows):
                assert np.array_equal(a.row(name, row), of.row(name, row))


@pytest.mark.parametrize("word, kept", [("constant", 1), ("memory", 3)])
def test_batches_are_given_again(data, source, tmp_path, monkeypatch, word,
                                 kept):
    real = dump(data.path, tmp_path / "real", *SPEC, *ALL)
    monkeypatch.setenv("BETON_SYNTHETIC", word)
    r = beton("dump", *source, "--out", tmp_path / "got", *SPEC, *ALL)
    assert r.stderr == (f"beton: BETON_SYNTHETIC is `{word}': batches are "
                        "synthetic, for measuring only\n")
    check(dumped.read_dump(tmp_path / "got"), real, kept)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_ranks_are_as_ever(data, tmp_path, monkeypatch, rank):
    how = (*SPEC, *ALL, "--rank", rank, "--world-size", 3)
    real = dump(data.path, tmp_path / "real", *how)
    monkeypatch.setenv("BETON_SYNTHETIC", "constant")
    check(dump(data.path, tmp_path / "got", *how), real, 1)


def test_bench_reports_it(source, monkeypatch):
    batches = math.ceil(N / BATCH)
    d, printed = bench(source, "--source", "constant")
    assert d["source"] == "constant" and not printed
    assert d["stages"]["read"]["items"] == 1
    assert d["stages"]["transform"]["items"] == BATCH
    assert d["stages"]["decode"]["items"] <= BATCH
    d, _ = bench(source, "--source", "memory")
    assert d["source"] == "memory" and d["stages"]["read"]["items"] == 3
    # The environment is for who cannot change the options.
    monkeypatch.setenv("BETON_SYNTHETIC", SYNTHETIC)
    d, printed = bench(source, "--source", "constant")
    assert d["source"] == "synthetic" and printed.count("\n") == 1
    assert d["stages"]["read"]["items"] >= 3 * batches


def test_the_doctor_ignores_synthetic_data(data, monkeypatch):
    monkeypatch.setenv("BETON_SYNTHETIC", SYNTHETIC)
    r = beton("doctor", data.path, "--json", "--seconds", 5, *SPEC,
              "--pipeline", TEXT.format("", ""))
    assert json.loads(r.stdout)["evidence"]["source"] == "file"
    assert not r.stderr


def test_without_a_dataset(tmp_path):
    how = (*SPEC, "--pipeline", TEXT.format("", ""))
    d = json.loads(beton("bench", tmp_path / "none", "--json", *how,
                         "--source", SYNTHETIC).stdout)
    assert d["source"] == "synthetic"
    r = beton("bench", tmp_path / "none", "--source", "synthetic(40)", code=1)
    assert r.stderr.startswith("beton: source: column 1: samples and fields")
    assert r.stderr.count("\n") == 1


def test_a_dataset_made_up_is_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("BETON_SYNTHETIC", SYNTHETIC)
    got = dump(tmp_path / "none", tmp_path / "a", *SPEC, "--pipeline",
               TEXT.format("", ""))
    assert sorted(i for b in got for i in b.ids) == list(range(N))
    assert {b.outputs["image"].shape[1:] for b in got} == {(3, 12, 12)}
    assert {x for b in got for x in b.outputs["label"]} <= set(range(7))
    dump(tmp_path / "none", tmp_path / "b", *SPEC, "--pipeline",
         TEXT.format("", ""), "--jobs", 1)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_a_mount_alone_has_a_subset(data, mount, tmp_path, monkeypatch):
    """Then the ids are those of the batch that is given again."""
    few = tmp_path / "few.txt"
    few.write_text("".join(f"{i}\n" for i in range(1, N, 2)))
    mnt = mount(data.path, "-o", f"subset=few:{few}")
    how = ("--spec", "batch=6,subset=few", *ALL)
    real = dump(mnt, tmp_path / "real", *how)
    monkeypatch.setenv("BETON_SYNTHETIC", "constant")
    got = dump(mnt, tmp_path / "got", *how)
    assert [b.number for b in got] == [b.number for b in real]
    assert all(b.ids == real[0].ids for b in got)
    got = dump(mnt, tmp_path / "known", *how, "--subset", f"few:{few}")
    assert [b.ids for b in got] == [b.ids for b in real]


# --- states ---

def test_no_real_run_continues_from_a_synthetic_one(data, tmp_path, monkeypatch):
    state = tmp_path / "state"
    how = (*SPEC, *ALL, "--state", state)
    real = dump(data.path, tmp_path / "real", *SPEC, *ALL)
    dump(data.path, tmp_path / "x", *how, "--batches", ":2")
    monkeypatch.setenv("BETON_SYNTHETIC", "constant")
    # A run that resumes from a checkpoint is measured as it is.
    got = dump(data.path, tmp_path / "synthetic", *how, "--batches", ":4")
    assert [b.number for b in got] == [2, 3]
    assert [b.ids for b in got] == [b.ids for b in real[2:4]]
    assert json.loads(state.read_text())["source"] == "constant"
    got = dump(data.path, tmp_path / "again", *how)
    assert [b.number for b in got] == [4, 5, 6]
    monkeypatch.delenv("BETON_SYNTHETIC")
    r = beton("dump", data.path, "--out", tmp_path / "no", *how, code=1)
    assert "saved with synthetic data (source constant)" in r.stderr


# --- what goes wrong ---

@pytest.mark.parametrize("on_error", ["raise", "skip", "zero"])
def test_bad_samples(tmp_path, on_error):
    """Only the first batch is bad: it is not kept where it is an error."""
    data = dumped.photos(tmp_path / "bad.beton", N)
    with open(data.path, "r+b") as f:
        f.seek(data.place[1, "image"])
        f.write(b"no JPEG")
    how = ("--spec", "order=sequential,batch=6,drop_last=0", *ALL,
           "--on-error", on_error)
    real = beton("dump", data.path, "--out", tmp_path / "real", *how,
                 code=None)
    got = beton("dump", data.path, "--out", tmp_path / "got", *how, code=None,
                env=dict(dumped.os.environ, BETON_SYNTHETIC="constant"))
    assert got.returncode == real.returncode == (on_error == "raise")
    if on_error == "raise":
        return
    got = dumped.read_dump(tmp_path / "got")
    assert {tuple(b.valid[:3]) for b in got} == {(True, on_error == "zero",
                                                  True)}
    assert not any(b.outputs["label"][0] + 7 for b in got)


def test_bad_words(data, monkeypatch):
    monkeypatch.setenv("BETON_SYNTHETIC", "fast")
    r = beton("bench", data.path, code=1)
    assert r.stderr == ("beton: BETON_SYNTHETIC: column 1: no source is called "
                        "`fast'; there are constant, memory, synthetic(...), in "
                        "`fast'\n")


# --- GPUs ---

@pytest.mark.parametrize("word, kept", [("constant", 1), ("memory", 3)])
@pytest.mark.parametrize("how", ["", ", auto"])
def test_gpus_have_them_too(data, standins, tmp_path, monkeypatch, word, kept,
                            how):
    cuda = f" | cuda(0{how})"
    monkeypatch.setenv("BETON_PLACEMENT", "turns")
    real = dump(data.path, tmp_path / "real", *SPEC, "--pipeline",
                TEXT.format("", ""))
    monkeypatch.setenv("BETON_SYNTHETIC", word)
    got = dump(data.path, tmp_path / "got", *SPEC, "--pipeline",
               TEXT.format(cuda, cuda))
    check(got, real, kept)


def test_a_constant_is_uploaded_once(data, standins):
    how = ("--json", "--epochs", 4, *SPEC, "--pipeline",
           TEXT.format(" | cuda(0)", " | cuda(0)"))
    steps = 4 * math.ceil(N / BATCH)
    for word, least, most in (("constant", 1, 1), ("memory", steps, None)):
        d = json.loads(beton("bench", data.path, *how, "--source",
                             word).stdout)
        shipped = d["stages"]["upload"]["items"]
        assert shipped >= least and (most is None or shipped <= most)
