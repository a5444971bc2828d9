# SPDX-License-Identifier: Apache-2.0
"""Tensors in a GPU's memory as Python has them. By a stand-in for the driver,
whose memory is this machine's, in a process of its own: it ends the program
where something is not ordered."""
import json
import os
import re
import subprocess
import sys

import pytest

import dumped
from dumped import DEADLINE
from package import PACKAGE, betonfs

pytest.importorskip("PIL.Image")

N = 12

# Copies all that is on the GPU, after it was waited for on a stream of its own.
PROGRAM = """
import ctypes, hashlib, json, os, sys
import betonfs

path, options = sys.argv[1], json.loads(sys.argv[2])
cuda = ctypes.CDLL(os.environ["BETON_CUDA_LIBRARY"])
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxPushCurrent_v2(context)
cuda.cuStreamCreate(ctypes.byref(stream), 1)
loader = betonfs.Loader(path, 4, seed=5, tensors="dlpack", workers=2, **options)


def copied(t):
    if t.__dlpack_device__()[0] == 1:
        return memoryview(t).tobytes()
    capsule = t.__dlpack__(stream=stream.value)
    cuda.cuStreamSynchronize(stream)
    for view in memoryview, bytes:
        try:
            view(t)
            raise SystemExit("a buffer of a GPU's memory")
        except BufferError:
            pass
    size = 1
    for n in t.shape:
        size *= n
    return ctypes.string_at(t.pointer, size * int(t.dtype[2:]))


out = []
for batch in loader:
    out.append({name: [t.__dlpack_device__(), t.shape, t.dtype,
                       hashlib.sha256(copied(t)).hexdigest()]
                for name, t in batch.items() if not hasattr(t, "json")})
del batch
loader.close()
del loader
cuda.cuStreamDestroy_v2(stream)
cuda.cuDevicePrimaryCtxRelease_v2(0)
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("gpu") / "g.beton", N)


@pytest.fixture
def env(standins):
    return {**os.environ, "PYTHONPATH": str(PACKAGE)}


def run(path, env, **options):
    r = subprocess.run([sys.executable, "-c", PROGRAM, path,
                        json.dumps(options)], env=env, capture_output=True,
                       text=True, timeout=DEADLINE)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


CPU, GPU = [1, 0], [2, 0]
TEXT = "image | random_resized_crop(12) | flip{} | normalize(imagenet) | float"


@pytest.mark.parametrize("text, device", [
    (TEXT.format(" | cuda(0)"), None), (TEXT.format(""), "cuda:0"),
    (TEXT.format(" | cuda(0)"), "cuda"), ({"image": "center_crop(8)"}, 0),
    (TEXT.format(""), "cpu")])
def test_tensors_are_where_they_are_asked_for(data, env, text, device):
    got = run(data.path, env, pipeline=text, device=device)
    plain = run(data.path, env, pipeline=text if isinstance(text, dict)
                else TEXT.format(""))
    assert len(got) == N // 4
    for mine, want in zip(got, plain, strict=True):
        on_gpu = {name for name, t in mine.items() if t[0] == GPU}
        assert on_gpu == (set() if device == "cpu" else {"image"}
                          if device is None else set(mine))
        assert {k: v[1:] for k, v in mine.items()} == \
            {k: v[1:] for k, v in want.items()}


# Outputs of pipelines whose text has marks, quotes, comments and odd names.
@pytest.mark.parametrize("text", [
    "center_crop(8)",
    "a = resize(\"8,8\") # ; no | cuda(3)\nb = image | center_crop(8) | half",
    "my-lab = label | int32; y.z = vec | float; resize(\"4,4\") | chw",
    'x = "vec" | float; label | drop; meta; image | center_crop(8)',
    'a = image | \n flip(p=\n"0=1", group="|;#\\"") |\ncenter_crop(4)\n\nvec',
    "image | center_crop(8) | cuda(0) | half; label | drop # | cuda(1)",
    "k-1 = center_crop(8) | cuda(0); image | drop; k.2 = tens | cuda",
    {"image": "center_crop(8)", "a.b-c": "vec", "label": None},
    {"vec": '"vec" | float', "tens": "half | cuda(0)", "image": None}])
def test_a_device_changes_no_output(data, env, text):
    def bare(t):
        return t if t is None else re.sub(r"\| cuda(\(0\))?(?!\()", "", t)
    cpu = {k: bare(v) for k, v in text.items()} \
        if isinstance(text, dict) else bare(text)
    got = run(data.path, env, pipeline=text, device="cuda")
    plain = run(data.path, env, pipeline=cpu)
    assert len(got) == len(plain) == N // 4
    for mine, want in zip(got, plain, strict=True):
        assert list(mine) == list(want)
        assert all(t[0] == CPU for t in want.values())
        assert all(t[0] == GPU for t in mine.values())
        assert [t[1:] for t in mine.values()] == \
            [t[1:] for t in want.values()]


def test_outputs_are_for_one_device(data):
    for device, text in ("cuda:1", "vec | cuda(0)"), (0, "label | cuda(1)"):
        with pytest.raises(ValueError, match="a loader serves one"):
            betonfs.Loader(data.path, device=device, pipeline=text)


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", -1, True, "0", "cuda0",
                                    "cuda:64", "cuda:01", "cuda:1 ", 2**70])
def test_invalid_devices_are_refused(data, device):
    with pytest.raises(ValueError, match="there are cpu, cuda"):
        betonfs.Loader(data.path, device=device)


def test_without_a_gpu_it_is_reported(data, monkeypatch):
    monkeypatch.setenv("BETON_CUDA_LIBRARY", "/proc/nonexistent/libcuda.so")
    for options in {"device": "cuda"}, {"pipeline": "vec | cuda(0)"}:
        with pytest.raises(betonfs.BetonError, match="no CUDA driver"):
            betonfs.Loader(data.path, workers=1, **options)
