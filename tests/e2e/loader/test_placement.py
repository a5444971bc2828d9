# SPDX-License-Identifier: Apache-2.0
"""cuda(N, auto): wherever the pointwise stage runs, and whenever that changes,
the bytes are those of cuda(N), and of the pipeline without it. The tests use
stand-ins for the driver and the compiler, which run kernels on the CPU."""
import json

import pytest

import dumped
from dumped import beton, digest

pytest.importorskip("PIL.Image")

N = 22
SPEC = ("--spec", "batch=4,seed=5,drop_last=0")
TEXT = ('image | random_resized_crop("0=16,1=12") | flip%s | '
        'brightness(0.5, 1) | normalize(imagenet) | float | chw; label%s')
NOWHERE, HERE, AUTO = (TEXT % (w, w) for w in
                       ("", " | cuda(0)", " | cuda(0, auto)"))
# The first stays on the device, wherever the second is finished.
MIXED = ("image | center_crop(12) | cuda(0) | normalize(imagenet) | float; "
         "again = image | center_crop(8)%s | saturation(0.5, 1) | half")


pytestmark = pytest.mark.usefixtures("standins")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("placement") / "p.beton", N).path


def made(data, out, *options):
    """A digest of each batch of a dump."""
    beton("dump", data, "--out", out, *options)
    return digest(out)


def bench(data, text):
    r = beton("bench", data, "--json", "--epochs", "2", *SPEC, "--pipeline",
              text)
    return json.loads(r.stdout)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("placement", ["auto", "gpu", "cpu", "turns"])
def test_the_placement_makes_no_difference(data, tmp_path, monkeypatch, placement,
                                       epoch):
    how = (*SPEC, "--epoch", epoch)
    want = made(data, tmp_path / "n", *how, "--pipeline", NOWHERE)
    assert want == made(data, tmp_path / "h", *how, "--pipeline", HERE)
    monkeypatch.setenv("BETON_PLACEMENT", placement)
    assert want == made(data, tmp_path / "a", *how, "--pipeline", AUTO)


@pytest.mark.parametrize("placement", ["gpu", "cpu", "turns"])
def test_here_stays_here_beside_auto(data, tmp_path, monkeypatch, placement):
    monkeypatch.setenv("BETON_PLACEMENT", placement)
    texts = MIXED % "", MIXED % " | cuda(0, auto)"
    a, b = (made(data, tmp_path / str(i), *SPEC, "--pipeline", text)
            for i, text in enumerate(texts))
    assert a == b


def test_both_sides_use_one_cache(data, tmp_path, monkeypatch):
    text = "image | cache(decoded, 4MiB) | center_crop(12) | %sfloat | chw"
    monkeypatch.setenv("BETON_PLACEMENT", "turns")
    here, both = (bench(data, text % f"cuda({word}) | ")["image_cache"]
                  for word in ("0", "0, auto"))
    assert both["samples"] == here["samples"] > 0
    assert both["size"] == here["size"] and both["used"] == here["used"]
    a, b = (made(data, tmp_path / str(i), *SPEC, "--pipeline", text % cuda)
            for i, cuda in enumerate(("", "cuda(0, auto) | ")))
    assert a == b


def test_bench_reports_the_side(data, monkeypatch):
    assert bench(data, NOWHERE)["placement"] == "none"
    finished = bench(data, "image | center_crop(8) | cuda(0)")
    assert finished["placement"] == "cpu"
    for placement in ("gpu", "cpu"):
        monkeypatch.setenv("BETON_PLACEMENT", placement)
        assert bench(data, AUTO)["placement"] == placement
        assert bench(data, HERE)["placement"] == "gpu"


@pytest.mark.parametrize("word", ["tpu", "device", "processor"])
def test_another_word_is_refused(data, monkeypatch, word):
    monkeypatch.setenv("BETON_PLACEMENT", word)
    r = beton("bench", data, "--epochs", "2", code=1)
    assert f"BETON_PLACEMENT is `{word}'" in r.stderr
    assert r.stderr.count("\n") == 1


def test_another_argument_is_refused(data):
    for given, line in (("point=auto", "cuda has no parameter `point'"),
                        ("placement=here", "not `here'")):
        r = beton("bench", data, "--epochs", "2", "--pipeline",
                  HERE.replace("cuda(0)", f"cuda(0, {given})"), code=1)
        assert line in r.stderr


@pytest.mark.parametrize("text", [HERE, AUTO])
def test_without_a_compiler_a_warning_reports_it(data, tmp_path, monkeypatch,
                                              text):
    want = made(data, tmp_path / "n", *SPEC, "--pipeline", NOWHERE)
    monkeypatch.setenv("BETON_NVRTC_LIBRARY", "/proc/nonexistent")
    printed = "beton: operations after cuda() run on the CPU\n"
    out = tmp_path / "h"
    r = beton("dump", data, "--out", out, *SPEC, "--pipeline", text)
    assert printed in r.stderr and "BETON_NVRTC_LIBRARY" in r.stderr
    assert want == digest(out)
    r = beton("bench", data, "--epochs", "2", *SPEC, "--pipeline", text)
    assert printed in r.stderr and "on the cpu" in r.stdout
