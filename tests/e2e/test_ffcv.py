# SPDX-License-Identifier: Apache-2.0
"""The real FFCV reads what mkfs.beton writes. FFCV_PYTHON names a Python that
has it; without one these tests are skipped."""
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))

# Arguments: file, cache, order, and the .npz for an array per field.
READ = """
import sys
import numpy as np
from ffcv.loader import Loader, OrderOption
from ffcv.reader import Reader

path, cache, order, out = sys.argv[1:]
loader = Loader(path, batch_size=7, num_workers=1, os_cache=cache == "os",
                order=getattr(OrderOption, order), drop_last=False, seed=1)
batches = [[x.numpy().copy() for x in batch] for batch in loader]
names = list(Reader(path).field_names)
np.savez(out, **{n: np.concatenate([b[i] for b in batches])
                 for i, n in enumerate(names)})
"""


@pytest.fixture(scope="module")
def python():
    """A Python that can import ffcv. Its numba needs its folder in PATH."""
    exe = os.environ.get("FFCV_PYTHON", sys.executable)
    if not shutil.which(exe):
        pytest.skip("FFCV_PYTHON=%s is not there" % exe)
    r = subprocess.run([exe, "-c", "import ffcv.loader"], capture_output=True)
    if r.returncode:
        pytest.skip("%s cannot import ffcv (set FFCV_PYTHON)" % exe)
    return exe


def photo(i):
    rng = np.random.default_rng(i)
    few = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(few).resize((48, 32), Image.BICUBIC)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """40 PNG files of one size in four classes; the pixels of each."""
    folder = tmp_path_factory.mktemp("ffcv") / "src"
    want = []
    for i in range(40):
        path = folder / ("class%d" % (i // 10)) / ("%02d.png" % i)
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(i).save(path)
        want.append(np.asarray(photo(i)))
    return folder, np.stack(want)


# FFCV compiles its loader anew every time: ten seconds each.
@pytest.mark.parametrize("mode, cache, order", [
    ("raw", "os", "SEQUENTIAL"), ("jpg", "process", "QUASI_RANDOM"),
    ("proportion=0.5", "process", "SEQUENTIAL"), ("keep", "os", "SEQUENTIAL")])
def test_ffcv_reads_the_same(python, source, tmp_path, mode, cache, order):
    folder, want = source
    path, out = tmp_path / "x.beton", tmp_path / "out.npz"
    subprocess.run([os.path.join(BUILD, "mkfs.beton"), "--mode", mode,
                    "--quality=100", folder, path], check=True)
    subprocess.run([python, "-c", READ, path, cache, order, out], check=True,
                   timeout=300)
    got = np.load(out)
    assert got["image"].shape == want.shape
    # Which sample a row is, by its pixels: JPEG is near, others are far.
    far = np.abs(got["image"][:, None].astype(int) - want[None]) \
        .mean(axis=(2, 3, 4))
    ids = far.argmin(axis=1)
    assert far.min(axis=1).max() <= (0 if mode == "raw" else 3)
    assert sorted(ids.tolist()) == list(range(40))
    if order == "SEQUENTIAL":
        assert ids.tolist() == list(range(40))
    assert got["label"][:, 0].tolist() == (ids // 10).tolist()


@pytest.mark.parametrize("how", ["optimize", "index"])
def test_ffcv_sees_no_difference(python, source, tmp_path, how):
    """Of shared Huffman tables, and of an index."""
    mkfs = [os.path.join(BUILD, "mkfs.beton"), source[0]]
    plain, fast = tmp_path / "plain.beton", tmp_path / "fast.beton"
    subprocess.run(mkfs + [plain], check=True)
    if how == "optimize":
        subprocess.run([os.path.join(BUILD, "beton"), how, plain, fast],
                       check=True)
    else:
        subprocess.run(mkfs + ["--index", fast], check=True)
    assert b"beton\0\1" in fast.read_bytes()
    got = {}
    for path in (plain, fast):
        out = tmp_path / "out.npz"
        subprocess.run([python, "-c", READ, path, "process", "SEQUENTIAL",
                        out], check=True, timeout=300)
        got[path] = dict(np.load(out))
    assert got[plain]["image"].shape == source[1].shape
    for name in got[plain]:
        assert np.array_equal(got[plain][name], got[fast][name])
