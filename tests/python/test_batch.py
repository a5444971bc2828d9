# SPDX-License-Identifier: Apache-2.0
"""Batches keep their facts where other libraries copy, convert or place them:
by the code paths of these libraries, and by the libraries that are installed."""
import collections
import copy
import gc
import importlib.util
import pathlib
import pickle
import sys
import weakref

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs, opener  # noqa: E402

DATA = ('synthetic(40, image="uint8[6,8,3]", label="int64<9", vec="float32[3]", '
        'blob="bytes[7]")')
FACTS = "epoch", "number", "num_samples", "dataset"


@pytest.fixture(params=["numpy", "torch"])
def tensors(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


@pytest.fixture
def load(tensors):
    with opener("/nowhere", batch_size=8, seed=5, source=DATA, workers=1,
                tensors=tensors) as open_one:
        yield open_one


@pytest.fixture
def batch(load):
    loader = load()
    loader.set_epoch(3)
    rest = iter(loader)
    next(rest)
    return next(rest)


@pytest.fixture
def as_tuple(load):
    return next(iter(load(batch="tuple")))


def facts(batch):
    return [getattr(batch, name) for name in FACTS] + [
        np.asarray(batch.ids).tolist(), np.asarray(batch.valid).tolist()]


def check(other, batch, kind=None):
    """It has the facts and the outputs of the batch."""
    assert type(other) is (kind or type(batch))
    assert facts(other) == facts(batch)
    assert type(other.ids) is type(batch.ids)
    if isinstance(batch, betonfs.Batch):
        assert list(other) == list(batch)
    assert other is not batch and len(other) == len(batch)
    assert (np.asarray(other.label) == np.asarray(batch.label)).all()


# --- by the code of libraries ---

def rebuilt(data, function):
    """As accelerate's recursively_apply() and transformers' _prepare_input."""
    if isinstance(data, collections.abc.Mapping):
        return type(data)({k: rebuilt(v, function) for k, v in data.items()})
    return function(data)


def in_order(data, function):
    """As Lightning's apply_to_collection()."""
    return type(data)(collections.OrderedDict(
        [(k, function(v)) for k, v in data.items()]))


def cloned(data, function):
    """As torch's default_convert() and pin_memory()."""
    clone = copy.copy(data)
    clone.update({k: function(v) for k, v in data.items()})
    return clone


def scattered(data, function):
    """As torch's DistributedDataParallel."""
    return [type(data)(i) for i in
            zip(*([(k, function(v))] for k, v in data.items()))][0] \
        if len(data) == 1 else type(data)(
            tuple((k, function(v)) for k, v in data.items()))


@pytest.mark.parametrize("how", [rebuilt, in_order, cloned, scattered])
def test_facts_follow_a_batch_that_is_made_again(batch, how):
    other = how(batch, lambda v: v)
    check(other, batch)
    expected = facts(batch)
    del batch
    again = how(other, lambda v: v)
    del other
    gc.collect()
    assert facts(again) == expected


@pytest.mark.parametrize("how", [
    copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b)),
    lambda b: b.to(), betonfs.Batch.copy])
def test_copies_have_the_facts(batch, how):
    other = how(batch)
    check(other, batch)
    if how is copy.deepcopy:
        other.label[:] = -1
        assert (np.asarray(batch.label) >= 0).all()


@pytest.mark.parametrize("how", [
    copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b)),
    lambda b: b.to()])
def test_copies_of_a_tuple_have_the_facts(as_tuple, how):
    check(how(as_tuple), as_tuple)


def test_names_hold_no_batch(load):
    """Only the facts, which are small."""
    record = next(iter(next(iter(load())))).record
    kept = [getattr(record, name) for name in type(record).__slots__]
    assert not any(type(v).__module__ == "betonfs._beton" for v in kept)
    assert record._ids.base is None and record._valid.base is None


def test_an_iteration_keeps_no_variable_of_its_caller(load, monkeypatch):
    """A loader that might be in a DataLoader looks at its callers."""
    loader, mine = load(), {"any", "variable"}
    if "torch.utils.data" not in sys.modules:
        monkeypatch.setitem(sys.modules, "torch.utils.data", sys)
    kept = weakref.ref(mine)
    iter(loader)
    del mine
    gc.collect()
    assert kept() is None


def test_bytes_that_are_made_again_are_rows(batch):
    for other in (type(batch.blob)(list(batch.blob)),
                  copy.deepcopy(batch.blob),
                  pickle.loads(pickle.dumps(batch.blob))):
        assert type(other) is betonfs.Ragged
        assert list(other) == list(batch.blob) and len(other) == 8
        assert other.data.tobytes() == b"".join(batch.blob)
        assert other.offsets.tolist() == [7 * i for i in range(9)]
    assert list(betonfs.Ragged([])) == []


# --- batches without facts ---

def test_a_batch_that_was_cut_has_no_facts(batch):
    for how in (lambda v: v[:2], lambda v: np.concatenate([v, v])):
        other = type(batch)({k: how(np.asarray(v)) for k, v in batch.items()
                             if k != "blob"})
        for fact in FACTS + ("ids", "valid"):
            with pytest.raises(AttributeError, match="cut or joined.*of 8"):
                getattr(other, fact)
        assert not hasattr(other, "ids")


def test_a_batch_of_no_loader_has_no_facts(as_tuple):
    for other in betonfs.Batch(a=1), betonfs.Batch(), \
            type(as_tuple)(list(as_tuple)):
        with pytest.raises(AttributeError, match="batch=\"dict\""):
            other.ids
        assert repr(other)


def test_an_unknown_name_lists_the_outputs(batch, as_tuple):
    for one in batch, as_tuple, copy.copy(batch):
        with pytest.raises(AttributeError, match="no 'imag'; it has image, "
                                                 "label, vec, blob, and ids"):
            one.imag
    with pytest.raises(KeyError, match="no 'imag'; it has image, label"):
        batch["imag"]
    assert batch.get("imag") is None and "imag" not in batch
    assert {"image", "label", "ids", "to"} <= set(dir(batch)) & \
        set(dir(as_tuple))


def test_a_parameter_of_no_output_lists_them(load):
    @betonfs.compiled
    def f(imag):
        pass
    with pytest.raises(AttributeError, match=r"f\(\): parameter 'imag' is no "
                                             "output: .*image, label, vec"):
        next(iter(load(transforms=[f])))


# --- all tensors at once ---

def test_to_converts_tensors():
    torch = pytest.importorskip("torch")
    with opener("/nowhere", batch_size=8, source=DATA, workers=1,
                pipeline="image | chw") as load:
        batch = next(iter(load()))
        other = batch.to("cpu", torch.bfloat16,
                         memory_format=torch.channels_last)
    check(other, batch)
    assert other.vec.dtype == torch.bfloat16
    assert other.label.dtype == torch.int64
    assert other.image.dtype == torch.uint8
    assert other.image.is_contiguous(memory_format=torch.channels_last)
    assert other.blob is batch.blob
    assert batch.to(device="meta").image.device.type == "meta"
    assert batch.to(dtype=torch.float64).vec.dtype == torch.float64


BFLOAT16 = dict(batch_size=8, source=DATA, workers=1,
                pipeline="a = image | normalize(imagenet) | float | chw; "
                "b = image | normalize(imagenet) | bfloat16 | chw")


@pytest.fixture
def no_ml_dtypes(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *args:
                        name != "ml_dtypes" and find(name, *args))


def test_bfloat16_is_a_type_of_torch(no_ml_dtypes):
    torch = pytest.importorskip("torch")
    with opener("/nowhere", **BFLOAT16) as load:
        batch = next(iter(load()))
        assert batch.b.dtype == torch.bfloat16
        assert torch.equal(batch.b, batch.a.to(torch.bfloat16))


def test_numpy_needs_ml_dtypes_for_bfloat16(no_ml_dtypes):
    with opener("/nowhere", tensors="numpy", **BFLOAT16) as load:
        with pytest.raises(TypeError, match="^output 'b': .* ml_dtypes: install"):
            load()
        load(pipeline="image | bfloat16 | float")


def test_dlpack_needs_no_ml_dtypes_for_bfloat16(no_ml_dtypes):
    with opener("/nowhere", tensors="dlpack", **BFLOAT16) as load:
        loader = load()
        assert next(iter(loader)).b.shape == (8, 3, 6, 8)
        assert "b bfloat16[3, 6, 8]" in repr(loader)


@pytest.mark.parametrize("tensors", ["dlpack", "torch", "numpy", "jax"])
def test_a_look_shows_bfloat16(tensors):
    if tensors != "dlpack":
        pytest.importorskip({"numpy": "ml_dtypes"}.get(tensors, tensors))
    with opener("/nowhere", tensors=tensors, **BFLOAT16) as load:
        page = load(batch="tuple").show(4)._repr_html_()
    assert page.count("<img") == 8


def test_bfloat16_is_a_type_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with opener("/nowhere", tensors="numpy", **BFLOAT16) as load:
        batch = next(iter(load()))
        assert batch.b.dtype == ml_dtypes.bfloat16
        assert (batch.b == batch.a.astype(ml_dtypes.bfloat16)).all()


def test_pin_memory_is_of_each_tensor(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda t: t + 1)
    with opener("/nowhere", batch_size=8, source=DATA, workers=1) as load:
        batch = next(iter(load()))
        other = batch.pin_memory()
    assert (other.label == batch.label + 1).all()
    assert facts(other) == facts(batch)


# --- by the libraries ---

@pytest.fixture
def torchs():
    pytest.importorskip("torch")
    with opener("/nowhere", batch_size=8, source=DATA, workers=1,
                tensors="torch") as load:
        yield next(iter(load())), next(iter(load(batch="tuple")))


def test_torch_converts_and_pins(torchs, monkeypatch):
    torch = pytest.importorskip("torch")
    from torch.utils.data import default_convert
    from torch.utils.data._utils.pin_memory import pin_memory
    check(default_convert(torchs[0]), torchs[0])
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda t, *_: t.clone())
    for batch in torchs:
        check(pin_memory(batch), batch)


def test_torch_has_batches_as_trees(torchs):
    pytree = pytest.importorskip("torch.utils._pytree")
    for batch in torchs:
        leaves, shape = pytree.tree_flatten(batch)
        assert len(leaves) == 4
        check(pytree.tree_unflatten(leaves, shape), batch)
        check(pytree.tree_map(lambda v: v, batch), batch)
        assert shape == pytree.tree_flatten(copy.copy(batch))[1]
        text = pytree.treespec_dumps(shape)
        back = pytree.tree_unflatten(leaves, pytree.treespec_loads(text))
        assert type(back) is type(batch) and back.label is batch.label


def test_torch_compiles_functions_of_a_batch(torchs):
    torch = pytest.importorskip("torch")
    batch, _ = torchs

    def double(b):
        return {k: v * 2 for k, v in b.items() if k == "label"}
    got = torch.compile(double, backend="eager", fullgraph=True)(
        betonfs.Batch({k: v for k, v in batch.items() if k != "blob"}))
    assert (got["label"] == batch.label * 2).all()


def test_accelerate_places_it(torchs):
    operations = pytest.importorskip("accelerate.utils.operations")
    batch, as_tuple = torchs
    check(operations.send_to_device(batch, "cpu"), batch)
    check(operations.send_to_device(as_tuple, "cpu"), as_tuple)
    check(operations.recursively_apply(lambda t: t + 0, batch), batch)
    half = operations.slice_tensors(betonfs.Batch(
        {k: v for k, v in batch.items() if k != "blob"}), slice(0, 4))
    with pytest.raises(AttributeError, match="cut or joined"):
        half.ids


def test_lightning_places_it(torchs):
    function = pytest.importorskip("lightning.fabric.utilities.apply_func")
    torch = pytest.importorskip("torch")
    from lightning_utilities.core.apply_func import apply_to_collection
    batch, as_tuple = torchs
    check(function.move_data_to_device(batch, "cpu"), batch)
    check(function.move_data_to_device(as_tuple, "cpu"), as_tuple)
    check(apply_to_collection(batch, torch.Tensor, lambda t: t + 0), batch)


def test_transformers_places_it(torchs):
    trainer = pytest.importorskip("transformers").Trainer
    batch, _ = torchs
    kept = trainer.__new__(trainer)
    kept.args = type("Args", (), {"device": "cpu"})()
    kept.is_deepspeed_enabled = False
    kept.accelerator = type("A", (), {"state": type("S", (), {
        "deepspeed_plugin": None})()})()
    check(trainer._prepare_input(kept, batch), batch)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", "cpu:3"])
def test_a_device_of_torch_may_have_a_number(load, device):
    """accelerate and Lightning number the CPUs of processes."""
    torch = pytest.importorskip("torch")
    for word in device, torch.device(device):
        assert next(iter(load(device=word))).num_samples == 8
    with pytest.raises(ValueError, match="unknown device 'cpu:x'"):
        load(device="cpu:x")


def test_channels_last_needs_no_copy():
    """By the call that the error message names."""
    torch = pytest.importorskip("torch")
    with opener("/nowhere", batch_size=8, source=DATA, workers=1,
                pipeline="image | float") as load:
        image = next(iter(load())).image
        first = next(iter(load(pipeline="image | float | chw"))).image
    last = image.permute(0, 3, 1, 2)
    assert last.data_ptr() == image.data_ptr()
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(last, first)


def test_synthetic_data_has_no_dataset(load):
    """Lightning asks for it: hasattr() raises nothing."""
    assert not hasattr(load(), "dataset")


def test_batches_are_skipped_by_a_state(tmp_path):
    betonfs.write(tmp_path / "d", [{"label": i} for i in range(16)])
    with opener(tmp_path / "d", batch_size=4) as load:
        loader = load()
        assert loader.batch_size == 4 and len(loader.dataset) == 16
        assert not hasattr(loader, "sampler")
        skip = pytest.importorskip("accelerate").skip_first_batches
        with pytest.raises(AttributeError, match=r"load_state_dict\(state\).*"
                           "ignore_data_skip=True"):
            skip(loader, 2)


@pytest.mark.parametrize("kind", ["dict", "tuple"])
def test_a_compiled_step_serves_all_batches(kind):
    """torch.compile() sees one kind of batch: facts do not compile again."""
    torch = pytest.importorskip("torch")
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    def step(batch):
        return batch.image.float().sum() + batch.label.sum()

    compiled = torch.compile(step, backend=backend)
    with opener("/nowhere", batch_size=8, source=DATA, batch=kind) as load:
        for batch in load():
            assert compiled(batch) == step(batch)
    assert len(graphs) == 1
