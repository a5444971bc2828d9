# SPDX-License-Identifier: Apache-2.0
"""Batches as arrays of jax: they use the loader's memory as long as any of them
lives, if jax supports that."""
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import dumped  # noqa: E402
import make  # noqa: E402
from dumped import AUGMENT  # noqa: E402
from package import PACKAGE, opener  # noqa: E402

pytest.importorskip("PIL.Image")

N, SIZE = 40, 4
SPEC = f"batch={SIZE},seed=11,drop_last=0"
ALIKE = ["|u1", "|i1", "|b1", "<i2", "<u2", "<i4", "<u4", "<f2", "<f4", "<c8"]
WIDE = {"<i8": "int32", "<u8": "uint32", "<f8": "float32", "<c16": "complex64"}
UNKNOWN = [">f4", "|S5", "<M8[s]"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("jax") / "p.beton", N)


@pytest.fixture
def load(data):
    with opener(data.path, spec=SPEC, pipeline=AUGMENT, tensors="jax",
                workers=2) as open_one:
        yield open_one


@pytest.fixture(params=[False, True])
def x64(request):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", before)


def test_every_dtype_is_delivered(tmp_path, load, x64):
    kinds = [*ALIKE, *WIDE, *UNKNOWN]
    rng = np.random.default_rng(3)
    rows = [{f"f{k}": rng.integers(0, 2, 3).astype("<i4").astype(d)
             for k, d in enumerate(kinds)} for _ in range(4)]
    fields = [(f"f{k}", make.NDARRAY, d, (3,)) for k, d in enumerate(kinds)]
    d = make.Dataset(tmp_path / "kinds.beton", fields, rows, 1 << 16)
    batch = next(iter(load(d.path, pipeline=None, spec="batch=4")))
    for raw, kind in zip(batch._raw.outputs, kinds):
        a = batch[raw.name]
        want = np.stack([rows[i][raw.name] for i in np.asarray(batch.ids)])
        assert (np.asarray(a) == want).all() and a.shape == (4, 3)
        if kind in UNKNOWN:
            assert isinstance(a, np.ndarray)
            continue
        assert isinstance(a, jax.Array)
        assert a.dtype == (np.dtype(kind) if x64 else
                           WIDE.get(kind, np.dtype(kind)))
        shared = x64 or kind not in WIDE
        assert (a.unsafe_buffer_pointer() == raw.pointer) == shared


def test_facts_and_rows_are_arrays_too(load, x64):
    plain = next(iter(load(tensors="numpy")))
    batch = next(iter(load()))
    for name in "ids", "valid", "label":
        a = getattr(batch, name)
        assert isinstance(a, jax.Array)
        assert a.tolist() == getattr(plain, name).tolist()
    assert batch.valid.unsafe_buffer_pointer() == batch._raw.valid.pointer
    assert list(batch.blob) == list(plain.blob)
    assert batch.blob.data.tolist() == plain.blob.data.tolist()
    assert batch.blob.offsets.tolist() == plain.blob.offsets.tolist()
    assert batch.meta.json() == plain.meta.json()


def test_kept_arrays_stay_valid(load):
    want = [b.image.copy() for b in load(tensors="numpy")]
    loader = load()
    kept = [b.image for b in loader]
    for _ in range(3):
        for b in loader:
            pass
    assert len({k.unsafe_buffer_pointer() for k in kept}) == len(want)
    assert all((np.asarray(k) == w).all() for k, w in zip(kept, want))
    loader.close()
    del loader, b
    gc.collect()
    assert all((np.asarray(k) == w).all() for k, w in zip(kept, want))


def test_memory_is_used_again(load):
    loader = load(prefetch=2)
    pointers = {b.image.unsafe_buffer_pointer()
                for _ in range(20) for b in loader}
    assert len(pointers) <= 5


def test_later_computations_have_the_values(load):
    """jax calculates when it likes, and the batch is let go at once."""
    total = jax.jit(lambda x: (x > 0).sum())
    loader, got = load(), []
    for _ in range(3):
        for b in loader:
            got.append(total(b.image))
            del b
    plain = load(tensors="numpy")
    want = [int((b.image > 0).sum()) for _ in range(3) for b in plain]
    assert [int(x) for x in got] == want


def test_arrays_are_not_written_to(load):
    batch = next(iter(load()))
    want = np.asarray(batch.image).copy()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(batch.image)[0] = 0
    # JAX may overwrite a donated array, because its memory is the loader's.
    other = jax.jit(lambda x: x + 1, donate_argnums=0)(batch.image)
    assert (np.asarray(other) == want + 1).all()


def test_transforms_get_them(load):
    def double(batch):
        return {k: 2 * v for k, v in batch.items() if k == "image"}
    for mine, plain in zip(load(transforms=[double]), load(tensors="numpy"),
                           strict=True):
        assert isinstance(mine["image"], jax.Array)
        assert (np.asarray(mine["image"]) == 2 * plain.image).all()


def test_arrays_are_where_jax_likes_them(load):
    """An array that is committed to a device decides where a jitted step runs."""
    batch = next(iter(load()))
    for a in batch.image, batch.label, batch.ids:
        assert not a.committed


SEPARATE = """
import sys; sys.path.insert(0, sys.argv[1])
import jax, betonfs
gpu = jax.devices()[1]                  # stands for a GPU
jax.config.update("jax_default_device", gpu)
batch = next(iter(betonfs.Loader(sys.argv[2], 4, pipeline={"label": "label"}, tensors="jax")))
w = jax.device_put(jax.numpy.float32(2), gpu)
total = jax.jit(lambda w, x: (w * x).sum())(w, batch.label)
assert total.devices() == {gpu}, total.devices()
jax.config.update("jax_default_device", None)
x = next(iter(betonfs.Loader(sys.argv[2], 4, pipeline={"label": "label"}, tensors="jax"))).label
assert jax.pmap(lambda x: 2 * x)(x.reshape(2, 2)).shape == (2, 2)
"""


def test_steps_run_on_the_default_device(data):
    done = subprocess.run(
        [sys.executable, "-c", SEPARATE, PACKAGE, data.path], text=True,
        capture_output=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu",
             "XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    assert done.returncode == 0, done.stderr
