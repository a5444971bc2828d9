# SPDX-License-Identifier: Apache-2.0
"""cuda() in pipelines: for any split between CPU and GPU, the bytes are those
without it. The tests use stand-ins that run kernels on the CPU or, with
BETON_CUDA_TEST_REAL=1, the machine's own driver and NVRTC."""
import re

import pytest

import dumped
from conftest import REAL_GPU
from dumped import beton, digest, dump

pytest.importorskip("PIL.Image")

N = 22
SPEC = ("--spec", "batch=4,seed=5,drop_last=0")
pytestmark = pytest.mark.usefixtures("gpu")

# Operations that stay on the CPU, and operations that may follow the cut.
CUTS = [
    ("image | random_resized_crop(12) | flip",
     ["brightness(0.5, 1)", "saturation(0.4, 1)", "normalize(imagenet)",
      "half", "chw"]),
    ('image | random_resized_crop("0=9,1=12")', ["grayscale(0.5)", "float"]),
    ("image | center_crop(9)", ["chw"]),
]
TEXT = ("image | random_resized_crop(12) | flip{} | brightness(0.5, 1) | "
        "normalize(imagenet) | half | chw; label{}; vec")
WITH, WITHOUT = TEXT.format(" | cuda(0)", " | cuda(0)"), TEXT.format("", "")
NO_KERNEL = TEXT.format("", " | cuda(0)")

standin_only = pytest.mark.skipif(REAL_GPU, reason="needs the stand-in")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("gpu") / "g.beton", N)


@pytest.fixture(scope="module")
def wanted(data, tmp_path_factory):
    """text -> digest of the batches that the CPU computes."""
    out = tmp_path_factory.mktemp("wanted")
    known = {}

    def do(text):
        if text not in known:
            where = out / str(len(known))
            dump(data.path, where, *SPEC, "--pipeline", text)
            known[text] = digest(where)
        return known[text]

    return do


@pytest.fixture
def same(data, wanted, tmp_path):
    """same(text, *options, source=...): a dump gives what is wanted."""
    number = 0

    def do(text, *options, source=data.path):
        nonlocal number
        out = tmp_path / f"out{number}"
        number += 1
        r = beton("dump", source, "--out", out, *SPEC, "--pipeline", text,
                  *options)
        assert digest(out) == wanted(re.sub(r" \| cuda\(0\)", "", text))
        return r.stderr

    return do


@pytest.mark.parametrize("before, after", CUTS)
def test_the_cut_may_be_anywhere(same, before, after):
    for cut in range(len(after) + 1):
        ops = [before, *after[:cut], "cuda(0)", *after[cut:]]
        printed = same(" | ".join(ops) + "; label | int32 | cuda(0)")
        assert not printed


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("where", ["file", "zero-copy", "direct"])
def test_every_source(data, mount, same, where, workers):
    if where == "file":
        same(WITH, "--jobs", workers)
    else:
        same(WITH, "--jobs", workers, "--delivery", where,
             source=mount(data.path))


def test_it_continues_where_it_was(data, tmp_path):
    for name, text in (("with", WITH), ("without", WITHOUT)):
        state, out = tmp_path / (name + ".state"), tmp_path / name
        for batches in (":2", ":3", ":"):
            dump(data.path, out, *SPEC, "--pipeline", text, "--batches",
                 batches, "--state", state)
    assert digest(tmp_path / "with") == digest(tmp_path / "without")
    assert len(digest(tmp_path / "with")) == 6


def test_own_operations(same, tmp_path):
    own = tmp_path / "own.c"
    own.write_text("static void bend(float v[3], const struct beton_at *at,"
                   " float f)\n{\n\tv[0] += f * at->x * at->random[1];\n}\n")
    assert not same(f'image | random_resized_crop(12) | cuda(0) | "{own}".bend(3) | '
         'half | chw')


def test_an_own_operation_that_is_not_for_the_gpu(same, tmp_path):
    own = tmp_path / "own.c"
    own.write_text("#ifdef __CUDACC_RTC__\n#error only for CPUs\n#endif\n"
                   "static void bend(float v[3], const struct beton_at *at)\n"
                   "{\n\tv[0] += at->x;\n}\n")
    printed = same(f'image | random_resized_crop(12) | cuda(0) | "{own}".bend | half')
    assert "only for CPUs" in printed
    assert "operations after cuda() run on the CPU" in printed


def test_bad_samples(tmp_path):
    data = dumped.photos(tmp_path / "bad.beton", N)
    with open(data.path, "r+b") as f:
        f.seek(data.place[4, "image"])
        f.write(b"no JPEG")
    for name, text in (("with", WITH), ("without", WITHOUT)):
        dump(data.path, tmp_path / name, *SPEC, "--pipeline", text,
             "--on-error", "skip")
    assert digest(tmp_path / "with") == digest(tmp_path / "without")


@pytest.mark.parametrize("until", ["read", "decode", "transform"])
def test_the_gpu_is_left_out(data, until, monkeypatch):
    """These stages work without a GPU."""
    monkeypatch.setenv("BETON_CUDA_LIBRARY", "/proc/nonexistent/libcuda.so")
    beton("bench", data.path, *SPEC, "--pipeline", WITH, "--until", until,
          "--epochs", 2)


def test_until_the_upload(data):
    beton("bench", data.path, *SPEC, "--pipeline", WITH, "--until", "upload",
          "--epochs", 2)


def test_without_nvrtc(same, monkeypatch):
    monkeypatch.setenv("BETON_NVRTC_LIBRARY", "/proc/nonexistent/libnvrtc.so")
    printed = same(WITH)
    assert "NVRTC" in printed
    assert "operations after cuda() run on the CPU" in printed
    # A pure upload needs no compiler.
    assert "NVRTC" not in same(NO_KERNEL)


def refused(data, tmp_path, pipeline=WITH):
    """The error message, which is one line."""
    printed = beton("dump", data.path, "--out", tmp_path / "out", *SPEC,
                 "--pipeline", pipeline, code=1).stderr
    assert len(printed.strip().splitlines()) == 1, printed
    return printed


def test_without_a_driver(data, tmp_path, monkeypatch):
    monkeypatch.setenv("BETON_CUDA_LIBRARY", "/proc/nonexistent/libcuda.so")
    assert "/proc/nonexistent/libcuda.so" in refused(data, tmp_path)


def test_without_this_gpu(data, tmp_path):
    assert "63" in refused(data, tmp_path, "label | cuda(63)")


def test_two_gpus(data, tmp_path):
    printed = refused(data, tmp_path, "label | cuda(0); vec | cuda(1)")
    assert "`vec' is for GPU 1" in printed


@pytest.mark.parametrize("text", [
    "image | drop | cuda(0)", "blob | cuda(0)", "label | cuda(64)",
    "image | cuda(0) | center_crop(9)", "label | cuda(0) | cuda(0)",
    "label | cuda(-1)", "label | cuda(0, 1)"])
def test_invalid_gpu_pipelines(data, tmp_path, text):
    assert "column" in refused(data, tmp_path, text)
