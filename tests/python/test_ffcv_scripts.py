# SPDX-License-Identifier: Apache-2.0
"""Scripts that import ffcv, run by `python -m betonfs.ffcv`, and where the real
FFCV is, by that too: what their batches look like is the same, and so are the
values that chance has no part in. FFCV_PYTHON names a Python that has torch, and
best FFCV and numba as well."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SCRIPTS = pathlib.Path(__file__).parent / "scripts"
DEADLINE = 600    # FFCV compiles for minutes where cores are busy
EXE = shutil.which(os.environ.get("FFCV_PYTHON", sys.executable))


def has(module):
    return EXE and not subprocess.run([EXE, "-c", f"import {module}"],
                                      capture_output=True).returncode


if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not built", allow_module_level=True)
if not has("torch"):
    pytest.skip("no torch (FFCV_PYTHON may name a Python that has it)",
                allow_module_level=True)
REAL = has("ffcv.loader")
NUMBA = has("numba")


def environment(**more):
    # numba finds its libraries by PATH, where Python is no system's.
    path = os.path.dirname(EXE) + os.pathsep + os.environ["PATH"]
    return {**os.environ, "PATH": path, **more}


def run(args, code=0, **how):
    r = subprocess.run([EXE, *map(str, args)], text=True, timeout=DEADLINE,
                       capture_output=True, **how)
    assert r.returncode == code, r.stderr
    return r


class Results:
    def __init__(self, folder, script, how):
        folder.mkdir()
        out = folder / "out.npz"
        run([*how, SCRIPTS / script, folder, out], env=environment(
            PYTHONPATH=str(BUILD / "python") if how else "",
            BETON_CACHE_DIR=str(folder / "code")))
        reported = json.loads((folder / "out.npz.json").read_text())
        self.facts, self.losses = reported["facts"], reported["losses"]
        self.values = np.load(out)


def ours(tmp_path, script):
    return Results(tmp_path / "ours", script, ["-m", "betonfs.ffcv"])


# The permitted difference of a value: the mean, and the largest. FFCV's
# normalized float32 is rounded once, ours three times. FFCV's JPEGs are
# decoded by a faster and less exact transform, and it computes in float64.
LIMITS = {"same": (0, 0), "close": (1e-7, 5e-7), "near": (0.03, 0.3),
          "float": (0.001, 1)}


def compare(mine, tmp_path, script):
    if not REAL:
        pytest.skip("the real FFCV is not there to compare with")
    theirs = Results(tmp_path / "theirs", script, [])
    assert mine.facts == theirs.facts
    assert set(mine.values) == set(theirs.values)
    for name in mine.values:
        a, b = mine.values[name], theirs.values[name]
        mean, most = LIMITS[name.split(".")[0]]
        if not mean:
            assert a.tobytes() == b.tobytes(), name
            continue
        far = np.abs(a.astype(float) - b)
        assert far.mean() <= mean and far.max() <= most, name


@pytest.mark.parametrize("script", ["cifar.py", "imagenet.py"])
def test_a_training_learns(tmp_path, script):
    mine = ours(tmp_path, script)
    assert mine.losses[0] > 0.8
    assert mine.losses[-1] < 0.5 * mine.losses[0], mine.losses
    compare(mine, tmp_path, script)


def test_operations_of_users(tmp_path):
    if not NUMBA:
        pytest.skip("no numba")
    compare(ours(tmp_path, "operations.py"), tmp_path, "operations.py")


# --- the program ---

STARTS = """
import sys, multiprocessing, subprocess
import ffcv.transforms.common
from ffcv import Loader

def child(queue):
    import ffcv.fields.decoders
    queue.put((ffcv.__name__, ffcv.__file__, sys.path[0]))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(ffcv.__name__, sys.argv[1:], sys.path[1])
    print(queue.get()[0])
    process.join()
    print(subprocess.run([sys.executable, "-c", "import ffcv.writer, ffcv;"
                          "print(ffcv.__name__)"], capture_output=True,
                         text=True).stdout.strip())
    from helper import HERE
    print(HERE)
"""


def test_processes_that_a_script_starts_have_it_too(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "script.py").write_text(STARTS)
    (folder / "helper.py").write_text("HERE = 'beside the script'\n")
    r = run(["-m", "betonfs.ffcv", folder / "script.py", "--x", "-m"],
            env=environment(PYTHONPATH=str(BUILD / "python")), cwd=tmp_path)
    assert r.stdout.splitlines() == [
        f"betonfs.ffcv ['--x', '-m'] {folder}", "betonfs.ffcv",
        "betonfs.ffcv", "beside the script"]


def test_a_module_is_run_too(tmp_path):
    (tmp_path / "thing.py").write_text(
        "import sys, ffcv\nprint(ffcv.__name__, sys.argv[1:])\n")
    r = run(["-m", "betonfs.ffcv", "-m", "thing", "1"], cwd=tmp_path,
            env=environment(PYTHONPATH=str(BUILD / "python")))
    assert r.stdout == "betonfs.ffcv ['1']\n"


@pytest.mark.parametrize("args", [[], ["-m"], ["--other"]])
def test_without_a_script_it_reports_what_it_wants(args):
    r = run(["-m", "betonfs.ffcv", *args], code=2,
            env=environment(PYTHONPATH=str(BUILD / "python")))
    assert r.stderr.startswith("usage: ")
