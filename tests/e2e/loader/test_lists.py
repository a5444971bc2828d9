# SPDX-License-Identifier: Apache-2.0
"""Lists, through `beton dump`: arrays with as many rows as a sample has."""
import numpy as np
import pytest

import make
from arrays import pack, rows
from dumped import beton, digest, dump

N = 40
SPEC = ("--spec", "batch=7,seed=3,drop_last=0", "--epoch", 2)


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(1)
    return {
        "tokens": [rng.integers(-9, 999, i * 7 % 23).astype("<i4")
                   for i in range(N)],
        "boxes": [rng.normal(0, 9, (i % 5, 4)).astype("<f4")
                  for i in range(N)],
        "wave": [rng.integers(-9, 9, 3 + i, np.int16) for i in range(N)]}


@pytest.fixture(scope="module")
def data(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("lists") / "l.beton"
    return make.Dataset(path, [(name, make.BYTES) for name in values], [
        {name: pack(v[i]) for name, v in values.items()} for i in range(N)])


def batches(data, tmp_path, text, *options):
    return dump(data.path, tmp_path / "x", *SPEC, *options, "--pipeline", text)


@pytest.mark.parametrize("name", ["tokens", "boxes", "wave"])
def test_an_array_has_its_type_and_rows(data, values, tmp_path, name):
    seen = 0
    for b in batches(data, tmp_path, f"{name} | array"):
        for i, got in zip(b.ids, rows(b, name)):
            want = values[name][i]
            assert got.dtype == want.dtype and got.shape == want.shape
            assert (got == want).all()
            seen += 1
    assert seen == N


def test_without_an_operation_it_is_bytes(data, values, tmp_path):
    for b in batches(data, tmp_path, ""):
        for row, i in enumerate(b.ids):
            assert b.row("tokens", row) == pack(values["tokens"][i])


@pytest.mark.quick
def test_a_list_is_cut_and_counted(data, values, tmp_path):
    for b in batches(data, tmp_path, "tokens | truncate(5); "
                     "n = tokens | length; m = tokens | truncate(5) | length"):
        for row, i in enumerate(b.ids):
            want = values["tokens"][i]
            assert (rows(b, "tokens")[row] == want[:5]).all()
            assert b.row("n", row) == len(want)
            assert b.row("m", row) == min(5, len(want))
        assert b.outputs["n"].dtype == np.int64


def padded(v, n, value, left=False):
    out = np.full((n, *v.shape[1:]), value, v.dtype)
    k = min(n, len(v))
    out[n - k if left else 0:][:k] = v[:k]
    return out


def test_a_list_is_padded_to_a_length(data, values, tmp_path):
    for b in batches(data, tmp_path, "tokens | pad_to(9, value=-1); "
                     "l = tokens | pad_to(9, side=left); "
                     "boxes | pad_to(3, 0.5) | double"):
        assert b.outputs["tokens"].shape == (len(b.ids), 9)
        assert b.outputs["boxes"].dtype == np.float64
        for row, i in enumerate(b.ids):
            t = values["tokens"][i]
            assert (b.row("tokens", row) == padded(t, 9, -1)).all()
            assert (b.row("l", row) == padded(t, 9, 0, True)).all()
            assert (b.row("boxes", row)
                    == padded(values["boxes"][i], 3, 0.5)).all()


@pytest.mark.parametrize("multiple", [1, 8])
def test_a_list_is_padded_to_the_batchs_longest(data, values, tmp_path,
                                                 multiple):
    lengths = set()
    for b in batches(data, tmp_path, f"tokens | int64 | pad_to(batch, 7, "
                     f"left, {multiple}); boxes | pad_to(batch)"):
        got = b.outputs["tokens"]
        longest = max(len(values["tokens"][i]) for i in b.ids)
        assert got.shape[1] == -(-longest // multiple) * multiple
        assert got.dtype == np.int64
        lengths.add(got.shape[1])
        most = max(len(values["boxes"][i]) for i in b.ids)
        assert b.outputs["boxes"].shape == (len(b.ids), most, 4)
        for row, i in enumerate(b.ids):
            assert (got[row] == padded(values["tokens"][i].astype("<i8"),
                                       got.shape[1], 7, True)).all()
            assert (b.row("boxes", row)
                    == padded(values["boxes"][i], most, 0)).all()
    assert len(lengths) > 1


def fit(lengths, most):
    """The lengths after pack: the longest samples are cut, a row at a time."""
    lengths = list(lengths)
    while sum(lengths) > most:
        longest = max(lengths)
        last = max(i for i, n in enumerate(lengths) if n == longest)
        lengths[last] -= 1
    return lengths


@pytest.mark.parametrize("most", [1, 5, 40, 41, 64, 10000])
def test_a_batch_has_a_budget(data, values, tmp_path, most):
    cut = 0
    for b in batches(data, tmp_path, f"tokens | truncate(9) | pack({most}); "
                     "n = tokens | truncate(9) | length"):
        n = [int(b.row("n", row)) for row in range(len(b.ids))]
        kept = fit(n, most)
        assert [len(r) for r in rows(b, "tokens")] == kept
        assert sum(kept) == min(most, sum(n))
        for i, got in zip(b.ids, rows(b, "tokens")):
            assert (got == values["tokens"][i][:len(got)]).all()
        cut += kept != n
    assert bool(cut) == (most < 64)


def test_types_are_converted(data, values, tmp_path):
    for b in batches(data, tmp_path, "boxes | half; wave | float | "
                     "truncate(4); tokens | truncate(4) | uint8"):
        for i, a, w, t in zip(b.ids, rows(b, "boxes"), rows(b, "wave"),
                              rows(b, "tokens")):
            assert a.dtype == np.float16 and w.dtype == np.float32
            assert (a == values["boxes"][i].astype(np.float16)).all()
            assert (w == values["wave"][i][:4]).all()
            assert (t == np.clip(values["tokens"][i][:4], 0, 255)).all()


def test_numbers_change_with_the_epoch(data, tmp_path):
    text = 'tokens | pad_to("0=4,1=6")'
    for epoch, n in (0, 4), (1, 6):
        for b in dump(data.path, tmp_path / str(epoch), "--epoch", epoch,
                      "--spec", "batch=8", "--pipeline", text):
            assert b.outputs["tokens"].shape == (8, n)


ALL = ("tokens | array; p = tokens | pad_to(batch, -1); f = boxes | double | "
       "pad_to(4); boxes | truncate(2); wave | length; w = wave | pack(30)")


def test_workers_and_mounts_change_nothing(data, tmp_path, mount):
    m = mount(data.path)
    out = []
    for where, workers in (data.path, 1), (data.path, 2), (data.path, 8), \
            (m, 2):
        out.append(tmp_path / str(len(out)))
        dump(where, out[-1], *SPEC, "--jobs", workers, "--pipeline", ALL)
    first, *others = map(digest, out)
    assert len(first) == 6
    assert all(d == first for d in others)


@pytest.mark.parametrize("text,why", [
    ("tokens | one_hot(3)", "single numbers"),
    ("tokens | pad_to(0)", "from 1"),
    ("tokens | pack", "needs `rows'"), ("tokens | pack(0)", "from 1"),
    ("tokens | pack(9) | truncate(2)", "before pad_to(batch) and pack"),
    ("tokens | pad_to(4, multiple=2)", "multiple needs the length batch"),
    ("tokens | pad_to(batch) | int64", "before pad_to(batch)"),
    ("tokens | array | cuda(0)", "pad_to(LENGTH)"),
    ("tokens | chw", "images only"),
    ("plain | array", "sample 0 has none"),
    ("plain | int64", "bytes and JSON"),
    ("label | array", "differing lengths only"),
    ("box | array", 'shape that begins with None, as ("float32", (None, 4))'),
    ("tokens | chw", "boxes and points move with an image by follow"),
    ("tokens | random_crop(3)", "sounds and tokens take excerpt"),
    ("tokens | pad_to(4) | chw", "chw works on images only"),
    ("grids | pad_to(4) | chw", "chw works on images only"),
    ("grids | pad_to(4) | center_crop(2)", "center_crop works on images only"),
    ("(image, grids) | flip", "boxes and points move with an image by follow"),
    ("plain | resize(3)", "begin a bytes field with decode(rgb), or with mask"),
    ("plain | int64", "begin with mask, decode(rgb), json or tokenize"),
])
def test_other_than_lists_are_refused(tmp_path, text, why):
    d = make.Dataset(tmp_path / "d.beton", [
        ("tokens", make.BYTES), ("plain", make.BYTES), ("label", make.INT),
        ("grids", make.BYTES), ("box", make.NDARRAY, "<f4", (4,)),
        ("image", make.IMAGE)], [
        {"tokens": pack(np.arange(3)), "plain": b"abc", "label": 1,
         "grids": pack(np.ones((3, 2, 2), "<f4")), "box": np.ones(4, "<f4"),
         "image": make.Image(make.RAW, 4, 4, bytes(48))}])
    r = beton("dump", d.path, "--out", tmp_path / "x", "--pipeline", text,
              code=1)
    assert why in r.stderr


GOOD = pack(np.arange(6, dtype="<i4"))
BAD = [b"", GOOD[:-1], GOOD + b"\0", b"X" + GOOD[1:],
       pack(np.arange(6, dtype="<i8")), pack(np.zeros((2, 3), "<i4")),
       GOOD[:16] + (1 << 62).to_bytes(8, "little") + GOOD[24:],
       GOOD[:12] + (1 << 31).to_bytes(4, "little") + GOOD[16:]]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_damaged_array_is_an_error_of_its_row(tmp_path, bad):
    d = make.Dataset(tmp_path / "d.beton", [("tokens", make.BYTES)], [
        {"tokens": v} for v in (GOOD, bad, GOOD)])
    text = "tokens | array; p = tokens | pad_to(8, 1); q = tokens | pad_to(batch)"
    r = beton("dump", d.path, "--out", tmp_path / "x", "--pipeline", text,
              "--spec", "order=sequential,batch=3", code=1)
    assert "sample 1 field tokens: " in r.stderr
    assert "sample 0 has an array of <i4 (?)" in r.stderr
    b, = dump(d.path, tmp_path / "y", "--pipeline", text, "--on-error", "skip",
              "--spec", "order=sequential,batch=3", code=None)
    assert b.valid == [True, False, True]
    assert [len(v) for v in rows(b, "tokens")] == [6, 0, 6]
    assert not b.row("p", 1).any() and not b.row("q", 1).any()
