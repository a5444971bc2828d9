# SPDX-License-Identifier: Apache-2.0
"""Arrays of differing lengths: written, read, and in batches."""
import copy
import pathlib
import pickle
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from arrays import pack  # noqa: E402
from package import betonfs  # noqa: E402

FIELDS = {"boxes": ("float32", (None, 4)), "tokens": ("int32", (None,)),
          "wave": ("int16", [None, 2]), "label": "int"}
N = 20


def sample(i):
    rng = np.random.default_rng(i)
    return {"boxes": rng.normal(0, 9, (i % 4, 4)).astype("<f4"),
            "tokens": rng.integers(0, 99, 3 + i % 5),
            "wave": rng.integers(-9, 9, (i, 2), np.int16), "label": i}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("ragged") / "r.beton"
    assert betonfs.write(path, [sample(i) for i in range(N)], FIELDS) == N
    return path


def load(path, pipeline, tensors="numpy", **options):
    return betonfs.Loader(path, 6, pipeline=pipeline, order="sequential",
                          tensors=tensors, drop_last=False, **options)


@pytest.mark.quick
def test_the_file_matches_the_manual(path):
    raw = betonfs.Dataset(path).raw(5, "boxes")
    assert raw == pack(sample(5)["boxes"])
    assert betonfs.Dataset(path).fields["boxes"]["type"] == "bytes"


def test_a_dataset_has_the_arrays(path):
    dataset = betonfs.Dataset(path)
    for i in range(N):
        for name, want in sample(i).items():
            got = dataset[i][name]
            assert np.array_equal(got, want)
            if name != "label":
                assert got.dtype == np.dtype(FIELDS[name][0])
    assert [len(v) for v in dataset.get_batch([3, 1], ["boxes"])["boxes"]] == \
        [3, 1]


def test_bytes_that_are_no_array_stay_bytes(tmp_path):
    values = [b"", b"BETONARR", pack(np.arange(3))[:-1],
              pack(np.arange(3)) + b"x"]
    path = tmp_path / "b.beton"
    betonfs.write(path, [(v,) for v in values], {"b": "bytes"})
    assert [s["b"] for s in betonfs.Dataset(path)] == values


TEXT = {"boxes": "array", "tokens": "int64", "wave": "array"}


def check(batch, name):
    ragged = batch[name]
    assert type(ragged) is betonfs.RaggedArray and len(ragged) == batch.num_samples
    for i, rows in zip(np.asarray(batch.ids).tolist(), ragged):
        assert np.array_equal(np.asarray(rows), sample(i)[name])
    return ragged


def test_a_batch_has_rows_of_each_sample(path):
    seen = 0
    for batch in load(path, TEXT):
        for name in TEXT:
            ragged = check(batch, name)
            assert ragged.offsets[0] == 0
            assert ragged.offsets[-1] == len(ragged.values)
            assert (ragged.lengths == [len(r) for r in ragged]).all()
        assert batch.tokens.dtype == np.int64
        assert batch.boxes.values.dtype == np.float32
        assert batch.boxes[:2][1].shape == batch.boxes[1].shape
        seen += batch.num_samples
    assert seen == N
    with pytest.raises(IndexError, match="sample 9 of"):
        batch.boxes[9]


def test_a_batch_has_tensors_of_torch(path):
    torch = pytest.importorskip("torch")
    for batch in load(path, TEXT, "torch"):
        boxes = check(batch, "boxes")
        assert isinstance(boxes.values, torch.Tensor)
        assert isinstance(boxes.offsets, torch.Tensor)
        assert boxes[1].data_ptr() >= boxes.values.data_ptr()
        half = batch.to(torch.float16)
        assert half.boxes.dtype == torch.float16
        assert half.tokens.dtype == torch.int64
        assert half.boxes.lengths.tolist() == boxes.lengths.tolist()
        assert boxes.to("cpu") is boxes
        nested = batch.tokens.nested()
        assert [len(t) for t in nested.unbind()] == \
            batch.tokens.lengths.tolist()


@pytest.mark.parametrize("how", [
    copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v)),
    lambda v: betonfs.RaggedArray(list(v))])
@pytest.mark.parametrize("tensors", ["numpy", "torch"])
def test_copies_have_the_same_rows(path, how, tensors):
    pytest.importorskip(tensors)
    batch = next(iter(load(path, TEXT, tensors)))
    other = how(batch.boxes)
    assert type(other) is betonfs.RaggedArray
    assert all(np.array_equal(a, b) for a, b in zip(other, batch.boxes))
    assert np.array_equal(other.offsets, batch.boxes.offsets)
    assert "6 samples" in repr(other)


def test_outputs_report_the_differing_axis(path):
    loader = load(path, {"boxes": "array", "tokens": "pad_to(batch)",
                         "wave": "pad_to(5)"})
    shapes = {o["name"]: (o["shape"], o["ragged"]) for o in loader.outputs}
    assert shapes["boxes"] == ((None, 4), True)
    assert shapes["tokens"] == ((None,), False)
    assert shapes["wave"] == ((5, 2), False)
    assert "boxes <f4[None, 4]" in repr(loader)
    lengths = {b.tokens.shape[1] for b in loader}
    assert lengths == {7}
    assert "boxes" in str(loader.show(2)._repr_html_())


def test_a_tuple_has_them_too(path):
    boxes, *_ = next(iter(load(path, TEXT, batch="tuple")))
    assert type(boxes) is betonfs.RaggedArray


def test_an_empty_list_has_no_rows(tmp_path):
    path = tmp_path / "e.beton"
    betonfs.write(path, [([],), ([[1, 2, 3, 4]],)], {"b": ("float32", (None, 4))})
    assert [s["b"].shape for s in betonfs.Dataset(path)] == [(0, 4), (1, 4)]


@pytest.mark.parametrize("field, value, why", [
    (("float32", (None, 4)), [[1, 2, 3]], r"\(1, 3\), not \(None, 4\)"),
    (("float32", (None, 4)), 3.5, r"\(\), not"),
    (("int32", (None,)), [1.5], "1.5"), (("int32", (None,)), [1 << 40], "int32"),
    (("int32", (None,)), [[1], [2, 3]], "no array"),
    (("U3", (None,)), ["abc"], "not of"), ((">f4", (None,)), [1], "not of"),
    (("int32", (3, None)), [1], "no shape"), (("int32", (None, 0)), [1], "no shape"),
    (("int32", (None,) * 2), [1], "no shape"),
    (("int32", (None, *[1] * 8)), [1], "8 at most")])
def test_other_arrays_are_refused(tmp_path, field, value, why):
    with pytest.raises(ValueError, match=why):
        betonfs.write(tmp_path / "w.beton", [(value,)], {"a": field})


def test_workers_write_the_same_file(path, tmp_path):
    betonfs.write(tmp_path / "w.beton", [sample(i) for i in range(N)], FIELDS,
                  workers=2)
    assert (tmp_path / "w.beton").read_bytes() == path.read_bytes()


# --- batches of similar lengths ---

MANY = 600


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    path = tmp_path_factory.mktemp("ragged") / "s.beton"
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 400, MANY)
    betonfs.write(path, [{"tokens": np.full(n, i), "label": i}
                         for i, n in enumerate(lengths)],
                  {"tokens": ("int32", (None,)), "label": "int"})
    return path, lengths


def test_sizes_are_those_of_the_file(sentences):
    path, lengths = sentences
    dataset = betonfs.Dataset(path)
    assert (dataset.sizes("tokens") == 24 + 4 * lengths).all()
    with pytest.raises(ValueError, match="column.'label'. has all"):
        dataset.sizes("label")
    with pytest.raises(KeyError, match="no field 'x'"):
        dataset.sizes("x")


def bucketed(path, lengths="tokens", **options):
    return betonfs.Loader(path, 8, pipeline={"tokens": "pad_to(batch, -1)"},
                          lengths=lengths, seed=3,
                          **{"tensors": "numpy", **options})


def test_batches_have_similar_lengths(sentences):
    path, lengths = sentences
    loader = bucketed(path)
    assert "order=bucketed" in loader.spec and "bucket=64" in loader.spec
    epochs = []
    for _ in range(2):
        ids, cells, widths = [], 0, []
        for batch in loader:
            own = batch.ids
            assert batch.tokens.shape == (8, lengths[own].max())
            for row, i in zip(batch.tokens, own):
                assert (row[:lengths[i]] == i).all()
                assert (row[lengths[i]:] == -1).all()
            widths.append(batch.tokens.shape[1])
            cells += batch.tokens.size
            ids += own.tolist()
        assert sorted(ids) == list(range(MANY))
        # In random batches half the cells would be padding.
        assert cells < 1.15 * lengths.sum()
        assert widths != sorted(widths)
        epochs.append(ids)
    assert epochs[0] != epochs[1]


def test_lengths_are_numbers_too(sentences):
    path, lengths = sentences
    given = bucketed(path, lengths)
    assert given.spec == bucketed(path).spec == \
        bucketed(path, lengths.tolist()).spec
    assert given.spec != bucketed(path, -lengths).spec


@pytest.mark.parametrize("subset", [range(100, 300), "100-300",
                                    slice(100, 300), list(range(100, 300))])
def test_a_subset_is_in_order_of_length_as_well(sentences, subset):
    path, lengths = sentences
    ids = [i for b in bucketed(path, subset=subset) for i in b.ids.tolist()]
    assert sorted(ids) == list(range(100, 300))
    assert bucketed(path, subset=subset).spec == \
        bucketed(path, subset=range(100, 300)).spec


def test_ranks_and_states_have_the_same_batches(sentences):
    path, _ = sentences
    whole = {b.number: b.ids.tolist() for b in bucketed(path)}
    parts = {}
    for rank in range(3):
        for b in bucketed(path, rank=rank, world_size=3, workers=rank + 1):
            parts[b.number] = b.ids.tolist()
    assert parts == whole
    loader = bucketed(path)
    seen = [b.ids.tolist() for _, b in zip(range(20), loader)]
    again = bucketed(path)
    again.load_state_dict(loader.state_dict())
    seen += [b.ids.tolist() for b in again]
    assert seen == list(whole.values())


@pytest.mark.parametrize("options, why", [
    ({"lengths": "x"}, "no field 'x'"), ({"lengths": [1, 2]}, "2 lengths"),
    ({"lengths": [[1]]}, "a number for each"), ({"lengths": ["a"]}, "a number"),
    ({"lengths": [float("nan")]}, "a number"),
    ({"order": "random"}, "choose unless"), ({"subset": "few:x"}, "named one")])
def test_lengths_that_are_none_are_refused(sentences, options, why):
    with pytest.raises((ValueError, KeyError), match=why):
        bucketed(sentences[0], **options)


# --- detection ---

def test_boxes_and_labels_follow_the_image(tmp_path):
    path = tmp_path / "d.beton"
    box = [10, 10, 30, 30]
    betonfs.write(path, [{
        "image": np.full((40, 48, 3), i, np.uint8), "boxes": [box] * (i % 3),
        "labels": list(range(i % 3))} for i in range(12)], {
            "image": "image", "boxes": ("float32", (None, 4)),
            "labels": ("int64", (None,))}, mode="raw")
    ops = betonfs.ops
    batch = next(iter(betonfs.Loader(path, 12, tensors="numpy", pipeline={
        "image": ops.random_resized_crop(32) | ops.flip(),
        "boxes": ops.follow("image", min_visible=0.3),
        "labels": ops.keep_rows("boxes"), "p": "image | params(image)"})))
    for boxes, labels, p in zip(batch.boxes, batch.labels, batch.p):
        a, _, c, _, e, f, *sizes, mirrored = p[:11]
        assert sizes == [40, 48, 32, 32] and mirrored == (a < 0)
        want = np.array([*sorted(a * x + c for x in (10, 30)),
                         *(e * y + f for y in (10, 30))])[[0, 2, 1, 3]]
        assert np.allclose(boxes, want.clip(0, 32), atol=1e-4)
        assert labels.tolist() == list(range(len(boxes)))
