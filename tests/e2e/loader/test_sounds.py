# SPDX-License-Identifier: Apache-2.0
"""Sounds and numbers of JSON as lists, through `beton dump`: excerpts, gain, other
rates, against definitions that are written here from the manual."""
import json
import math

import numpy as np
import pytest

import make
from arrays import pack, rows
from dumped import beton, digest, dump

N = 24
SPEC = ("--spec", "batch=5,seed=3,drop_last=0", "--epoch", 2)
TREE = [[1, 2.5], [-3e2, 4], [0.125, 1e-3]]


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(2)
    return {"wave": [rng.normal(0, .3, i * 37 % 400).astype("<f4")
                     for i in range(N)],
            "stereo": [rng.integers(-9000, 9000, (50 + i, 2)).astype("<i2")
                       for i in range(N)],
            "tree": [(TREE * i)[:i] for i in range(N)],
            "whole": [list(range(-i, i)) for i in range(N)]}


@pytest.fixture(scope="module")
def data(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("sounds") / "s.beton"
    texts = {"tree": make.JSON, "whole": make.JSON}
    fields = [(name, texts.get(name, make.BYTES)) for name in values]
    return make.Dataset(path, fields, [
        {name: json.dumps(v[i]).encode() if name in texts else pack(v[i])
         for name, v in values.items()} for i in range(N)])


def batches(data, tmp_path, text, *options):
    out = tmp_path / str(len(list(tmp_path.iterdir())))
    return dump(data.path, out, *SPEC, *options, "--pipeline", text)


def each(data, tmp_path, text, name):
    """(id, rows) of all samples."""
    return [(i, r) for b in batches(data, tmp_path, text)
            for i, r in zip(b.ids, rows(b, name))]


# --- excerpts ---

@pytest.mark.parametrize("at,first", [
    ("start", lambda left: 0), ("center", lambda left: left // 2),
    ("end", lambda left: left)])
def test_an_excerpt_has_the_defined_position(data, values, tmp_path, at, first):
    for i, got in each(data, tmp_path, f"wave | excerpt(100, {at})", "wave"):
        whole = values["wave"][i]
        begin = first(max(0, len(whole) - 100))
        assert (got == whole[begin:begin + 100]).all()
        assert len(got) == min(100, len(whole))


def test_random_excerpts_differ_and_share_a_group(data, values, tmp_path):
    text = ("a = wave | excerpt(20, group=g); b = wave | excerpt(20, group=g); "
            "wave | excerpt(20); stereo | excerpt(1)")
    alike, places = 0, set()
    for b in batches(data, tmp_path, text):
        for i, a, other, own in zip(b.ids, rows(b, "a"), rows(b, "b"),
                                    rows(b, "wave")):
            assert (a == other).all()
            alike += len(a) == 20 and (a == own).all()
            whole = values["wave"][i]
            places |= {p for p in range(len(whole) - 19)
                       if (whole[p:p + 20] == a).all()}
    assert alike <= 2 and len(places) > N // 2


# --- gain ---

def test_gain_multiplies(data, values, tmp_path):
    for i, got in each(data, tmp_path, "stereo | gain(3)", "stereo"):
        want = np.clip(values["stereo"][i].astype(int) * 3, -32768, 32767)
        assert got.dtype == np.int16 and (got == want).all()
    for i, got in each(data, tmp_path,
                       "stereo | float | gain(0.000030517578125)", "stereo"):
        assert (got == values["stereo"][i] / np.float32(32768)).all()


def test_gain_is_drawn_in_decibels(data, values, tmp_path):
    seen = []
    for i, got in each(data, tmp_path, 'wave | gain("-6,6", db)', "wave"):
        whole = values["wave"][i]
        if not len(whole):
            continue
        at = np.abs(whole).argmax()
        factor = float(got[at]) / float(whole[at])
        np.testing.assert_allclose(got, whole * factor, rtol=1e-5, atol=1e-7)
        seen.append(20 * math.log10(factor))
    assert -6 <= min(seen) < -2 and 2 < max(seen) <= 6


# --- rates ---

def resampled(wave, source, target, width=6, rolloff=0.99):
    """torchaudio's: a strided convolution with a kernel for each phase."""
    divisor = math.gcd(source, target)
    source, target = source // divisor, target // divisor
    base = min(source, target) * rolloff
    reach = math.ceil(width * source / base)
    k = np.arange(-reach, reach + source)[None] / source
    t = (-np.arange(target)[:, None] / target + k) * base
    t = t.clip(-width, width)
    kernel = (np.sinc(t) * np.cos(t * np.pi / width / 2) ** 2
              * base / source).astype(np.float32)
    length = len(wave)
    x = np.pad(wave.astype(np.float64), (reach, reach + source))
    blocks = np.lib.stride_tricks.sliding_window_view(
        x, 2 * reach + source)[::source]
    out = (blocks @ kernel.T.astype(np.float64)).reshape(-1)
    return out[:-(-target * length // source)]


@pytest.mark.parametrize("rates", [
    (44100, 16000), (16000, 44100), (8000, 48000), (48000, 8000),
    (3, 2), (1, 1), (1, 256), (22050, 44100)])
def test_a_rate_changes_as_by_torchaudio(data, values, tmp_path, rates):
    source, target = rates
    for i, got in each(data, tmp_path, f"wave | resample({source}, {target})",
                       "wave"):
        want = resampled(values["wave"][i], source, target)
        assert got.shape == want.shape and got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-7)


def test_a_rate_of_two_channels_and_whole_numbers(data, values, tmp_path):
    text = "stereo | resample(3, 7, width=16, rolloff=0.9)"
    for i, got in each(data, tmp_path, text, "stereo"):
        whole = values["stereo"][i]
        want = np.stack([resampled(c, 3, 7, 16, .9) for c in whole.T], 1)
        assert got.dtype == np.int16 and got.shape == want.shape
        assert np.abs(got - want).max() <= 0.51


# --- JSON ---

def test_numbers_of_json_are_a_list(data, values, tmp_path):
    text = ("tree | json(float64, row=2); i = whole | json(int16); "
            "n = whole | json | length")
    for b in batches(data, tmp_path, text):
        for k, (i, tree, whole) in enumerate(zip(b.ids, rows(b, "tree"),
                                               rows(b, "i"))):
            assert tree.dtype == np.float64 and tree.shape == (i, 2)
            assert tree.tolist() == values["tree"][i]
            assert whole.dtype == np.int16 and \
                whole.tolist() == values["whole"][i]
            assert b.row("n", k) == 2 * i


def one(tmp_path, text, operation):
    path = make.Dataset(tmp_path / "one.beton", [("v", make.BYTES)],
                        [{"v": text}]).path
    return path, f"v | {operation}", ("--spec", "batch=1")


@pytest.mark.parametrize("text,operation,want", [
    (b" [ 1 ,\t-0,\r\n2e3 ] ", "json", [1, 0, 2000]),
    (b"[]", "json", []), (b"[]\0\0", "json", []),
    (b"[9223372036854775807,-9223372036854775808]", "json(int64)",
     [2**63 - 1, -2**63]),
    (b"[[[1],[2]],[[3],[4]]]", 'json(int32, row="2,1")',
     [[[1], [2]], [[3], [4]]]),
    (b"[0.1]", "json(float32)", [float(np.float32(0.1))]),
    (b"[-3.4e38]", "json", [float(np.float32(-3.4e38))]),
    (b"[65519]", "json(float16)", [65504]),
])
def test_json_is_read(tmp_path, text, operation, want):
    path, pipeline, spec = one(tmp_path, text, operation)
    b, = dump(path, tmp_path / "x", *spec, "--pipeline", pipeline)
    assert rows(b, "v")[0].tolist() == want


@pytest.mark.parametrize("text,operation,why", [
    (b"", "json", "no array"), (b"{}", "json", "no array"),
    (b"[1", "json", "no end"), (b"[1,]", "json", "array of numbers"),
    (b"[1] 2", "json", "follows"), (b"[01]", "json", "array of numbers"),
    (b"[+1]", "json", "array of numbers"), (b"[.5]", "json", "of numbers"),
    (b"[1.]", "json", "not one of JSON"), (b"[1e]", "json", "not one"),
    (b"[NaN]", "json", "array of numbers"), (b"[0x1]", "json", "no end"),
    (b"[null]", "json", "array of numbers"), (b'["1"]', "json", "of numbers"),
    (b"[" + b"1" * 500 + b"]", "json", "400 digits"),
    (b"[1e999]", "json", "does not fit"), (b"[1.5]", "json(int32)", "fraction"),
    (b"[-1e39]", "json", "does not fit"),
    (b"[65520]", "json(float16)", "does not fit"),
    (b"[300]", "json(uint8)", "does not fit"),
    (b"[9223372036854775808]", "json(int64)", "64 bits"),
    (b"[[1]]", "json", "array of numbers"), (b"[1]", "json(row=2)", "shape"),
    (b"[[1]]", "json(row=2)", "too few"),
    (b"[[1,2,3]]", "json(row=2)", "too many"),
    (b"[[1,2],[3", "json(row=2)", "too few"),
    (b"[[1", "json(row=1000)", "too few"),
    (b"[" * 99, "json", "array of numbers"),
])
def test_json_that_is_no_list_is_an_error_of_its_row(tmp_path, text, operation,
                                                     why):
    path, pipeline, spec = one(tmp_path, text, operation)
    r = beton("dump", path, "--out", tmp_path / "x", *spec, "--pipeline",
              pipeline, code=1)
    assert "sample 0 field v: json: " in r.stderr and why in r.stderr


# --- all ---

ALL = ('wave | excerpt(90) | gain("-3,3", db) | resample(3, 4) | pad_to(120); '
       "stereo | resample(2, 1) | truncate(9); tree | json(row=2)")


def test_workers_and_mounts_change_nothing(data, tmp_path, mount):
    m = mount(data.path)
    out = []
    for where, workers in (data.path, 1), (data.path, 2), (data.path, 8), \
            (m, 2):
        out.append(tmp_path / str(len(out)))
        dump(where, out[-1], *SPEC, "--jobs", workers, "--pipeline", ALL)
    first, *others = map(digest, out)
    assert len(first) == 5
    assert all(d == first for d in others)


@pytest.mark.parametrize("text,why", [
    ("wave | resample(767999, 768000)", "no ratio of small numbers"),
    ("wave | resample(1, 257)", "256 times"), ("wave | resample(0, 1)", "1"),
    ("wave | gain(nan)", "`nan'"), ("wave | gain(300, db)", "-200 to 200"),
    ("wave | excerpt(0)", "from 1"), ("tree | gain(2)", "sample 0 has none"),
    ("wave | array | json", "as the first operation"),
    ('tree | json(row="16384,16384")', "1048576"),
    ('wave | gain("2,1")', "is greater than MOST"),
])
def test_impossible_sounds_are_refused(data, tmp_path, text, why):
    r = beton("dump", data.path, "--out", tmp_path / "x", "--pipeline", text,
              code=1)
    assert why in r.stderr
