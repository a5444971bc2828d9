# SPDX-License-Identifier: Apache-2.0
"""betonfs.ray.read and write, on a Ray of this machine. RAY_PYTHON names a
Python that has Ray Data, if this one has not; without one, tests skip."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import dumped
import make
import parts
from dumped import BUILD
from package import PACKAGE, betonfs

HERE = pathlib.Path(__file__).resolve().parents[1]
DEADLINE = 200
MKFS = str(BUILD / "mkfs.beton")
N = 30


@pytest.fixture(scope="module")
def ray():
    """ray(name, *arguments, **named) -> what this function of ray_data.py
    returns."""
    exe = os.environ.get("RAY_PYTHON", sys.executable)
    if not shutil.which(exe):
        pytest.skip(f"RAY_PYTHON={exe} is not there")
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
           "RAY_USAGE_STATS_ENABLED": "0"}
    r = subprocess.run(
        [exe, "-c", "import importlib.util as u, betonfs; raise SystemExit("
         "not (u.find_spec('ray') and u.find_spec('pyarrow')))"],
        env=env, capture_output=True, timeout=DEADLINE)
    if r.returncode:
        pytest.skip(f"{exe} has no Ray Data (set RAY_PYTHON)")

    def run(name, *arguments, **named):
        # The paths of sockets are short.
        with tempfile.TemporaryDirectory(prefix="ray.", dir="/tmp",
                                         ignore_cleanup_errors=True) as own:
            p = subprocess.run(
                [exe, HERE / "ray_data.py", own], env=env, capture_output=True,
                text=True, timeout=DEADLINE,
                input=json.dumps([name, arguments, named], default=str))
        assert p.returncode == 0, p.stderr
        return json.loads(p.stdout.splitlines()[-1])
    return run


def test_without_ray_the_error_has_the_command():
    code = ("import sys; sys.modules['ray'] = None\n"
            "import betonfs.ray\nfrom betonfs.ray import read, write\n"
            "for call in read, write:\n"
            "    try: call('x.beton', 'y.beton' if call is write else 4)\n"
            "    except ImportError as e: print(e)\n"
            "print(hasattr(betonfs.ray, 'open'), betonfs.ray.__all__)\n")
    r = subprocess.run([sys.executable, "-c", code], text=True,
                       capture_output=True, timeout=DEADLINE,
                       env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    assert r.returncode == 0, r.stderr
    reading, writing, names = r.stdout.splitlines()
    assert reading.startswith("betonfs.ray.read needs ray.data") and \
        reading.endswith('pip install "betonfs[ray-data]"')
    assert writing.startswith("betonfs.ray.write needs ray,") and \
        writing.endswith('pip install "betonfs[ray]"')
    assert names.startswith("False") and "'read'" in names


# --- reading ---

def test_rows_are_those_of_a_loader(ray, tmp_path):
    path = tmp_path / "d.beton"
    rng = np.random.default_rng(3)
    betonfs.write(path, [
        {"image": rng.integers(0, 255, (6 + i % 4, 7, 3), np.uint8), "label": i,
         "score": i / 3, "blob": b"x" * (i % 6), "meta": {"i": i},
         "vec": np.arange(6, dtype=">i2").reshape(2, 3) + i,
         "boxes": np.full((i % 3, 4), i, "float32")} for i in range(N)],
        {"image": "image", "label": "int", "score": "float", "blob": "bytes",
         "meta": "json", "vec": (">i2", (2, 3)),
         "boxes": ("float32", (None, 4))})
    pipeline = {"image": "random_resized_crop(8) | flip | float | chw",
                "label": "label", "same": "label", "blob": "blob",
                "meta": "meta", "vec": "vec", "boxes": "boxes | array"}
    cases = [
        (0, {"batch_size": 4, "pipeline": pipeline}, None),
        (3, {"batch_size": 7, "seed": 5, "drop_last": False,
             "pipeline": pipeline}, {"num_cpus": 2, "max_retries": 1}),
        (1, {"batch_size": 4, "subset": "3-20", "train": False, "workers": 1,
             "pipeline": {"vec": "vec", "score": "score"}}, None),
        (0, {"batch_size": 64, "train": False,
             "pipeline": {"label": "label"}}, None)]
    for (epoch, arguments, _), (want, got, blocks) in zip(
            cases, ray("read", path, cases)):
        assert got == want and len(got) > 16, arguments
        assert {row["epoch"] for row in got} == {epoch}
        assert blocks > 1


def test_the_number_of_rows_is_known_without_reading(ray, tmp_path):
    path = make.numbers(tmp_path / "n.beton", 30).path
    wanted = {28: {"batch_size": 7}, 30: {"batch_size": 7, "train": False}}
    for rows, got in zip(wanted, ray("count", path, list(wanted.values()))):
        assert got == {"rows": rows, "tasks": [1, 3, len(range(0, rows, 7))],
                       "known": [rows] * 3, "limited": [5, 5]}


@pytest.mark.skipif(not dumped.Image, reason="needs Pillow")
def test_errors_of_reading(ray, tmp_path):
    good = dumped.photos(tmp_path / "good.beton", N + 1)
    bad = dumped.photos(tmp_path / "bad.beton", N)
    bad.patch(bad.place[17, "image"] + 2, bytes(60))
    found = ray("read_errors", good.path, bad.path)
    for name, kind, text in [
            ("tensors", "TypeError", "no argument tensors=: the columns"),
            ("rank", "TypeError", "no argument rank=: the tasks of all"),
            ("name", "ValueError", "an output has the name 'id'"),
            ("order", "ValueError", "up"),
            ("epoch", "ValueError", "epoch=-1"),
            ("remote", "TypeError", "ray_remote_args=4"),
            ("missing", "BetonError", "good.beton.no"),
            ("damaged", "RayTaskError", "sample 17"),
            ("replaced", "RayTaskError", "another dataset")]:
        got, said = found[name]
        assert got.startswith(kind) and text in said, (name, said[-400:])
    assert found["skipped"] == [17]


# --- writing files ---

@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """30 images of 3 classes."""
    image = pytest.importorskip("PIL.Image")
    root = tmp_path_factory.mktemp("source") / "photos"
    rng = np.random.default_rng(3)
    for i in range(N):
        (root / "abc"[i % 3]).mkdir(parents=True, exist_ok=True)
        image.fromarray(rng.integers(0, 256, (9 + i, 12, 3), np.uint8)).save(
            root / "abc"[i % 3] / f"{i}.png")
    return root


def one(source, out, *options):
    """The bytes of the file that one process writes."""
    subprocess.run([MKFS, "-q", *options, source, out], check=True,
                   timeout=DEADLINE)
    return out.read_bytes()


# A program that runs mkfs.beton. Once, the one of shard 1 is killed, and that
# of shard 2 kills the process of its task.
FRAGILE = """#!/bin/sh
for option; do
    case $option in --shard=*) shard=${{option#*=}} ;; esac
done
case $shard in
1/*) mkdir {0}/one 2>/dev/null && kill -9 $$ ;;
2/*) mkdir {0}/two 2>/dev/null && kill -9 $PPID && sleep 60 ;;
esac
exec {1} "$@"
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_shards_of_killed_tasks_are_written_again(ray, photos, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    out = tmp_path / "out" / "ray.beton"
    out.parent.mkdir()
    options = ["--mode=raw", "--shuffle", "--seed=2"]
    assert ray("write", photos, out, 4, options=options, program=program(
        tmp_path / "fragile", FRAGILE.format(marks, MKFS))) == N
    assert sorted(os.listdir(marks)) == ["one", "two"]
    assert out.read_bytes() == one(photos, tmp_path / "one.beton", *options)
    assert os.listdir(out.parent) == ["ray.beton"]


def test_errors_of_writing_files(ray, photos, tmp_path):
    out = tmp_path / "out" / "ray.beton"
    out.parent.mkdir()
    old = one(photos, out)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/0.jpg").write_bytes(b"no image")
    again = {"program": MKFS, "overwrite": True}
    lazy = program(tmp_path / "lazy", f"""#!/bin/sh
case " $* " in *" --shard=2/3 "*) exit 0 ;; esac
exec {MKFS} "$@"
""")
    wrong = [
        ({"program": MKFS}, "BetonError", "overwrite=True"),
        ({**again, "options": ["--quality=700"]}, "RuntimeError", "quality"),
        ({**again, "shards": 3, "program": lazy}, "BetonError",
         "part-00002.beton: No such file"),
        ({**again, "program": "no.such.program"}, "FileNotFoundError",
         "no.such.program is not on the node"),
        ({**again, "options": ["--sums"]}, "ValueError", "fsck.beton --sums"),
        ({**again, "options": "--index"}, "TypeError", "a list of options"),
        ({**again, "shards": 0}, "ValueError", "shards=0"),
        ({**again, "mode": "raw"}, "TypeError", "mode= is for a ray.data"),
        ({**again, "directory": tmp_path / "no"}, "FileNotFoundError", "no")]
    found = ray("write_errors", photos, out, [a for a, *_ in wrong])
    for (arguments, kind, text), (got, said) in zip(wrong, found):
        assert got == kind and text in said, (arguments, got, said)
    (got, said), = ray("write_errors", tmp_path / "bad", out, [again])
    assert got == "RuntimeError" and "0.jpg" in said
    assert out.read_bytes() == old and os.listdir(out.parent) == ["ray.beton"]


# --- writing rows ---

@pytest.mark.parametrize("blocks, shards", [(5, None), (3, 4)])
def test_rows_are_written_in_order(ray, tmp_path, blocks, shards):
    done, restored = ray("write_rows", tmp_path, 41, blocks, shards, 20)
    assert done == 41 and restored and (tmp_path / "died").exists()
    assert parts.samples(tmp_path / "ray.beton") == \
        parts.samples(tmp_path / "one.beton")
    assert sorted(os.listdir(tmp_path)) == ["died", "one.beton", "ray.beton"]


def test_errors_of_writing_rows(ray, tmp_path):
    found = ray("write_rows_errors", tmp_path)
    for name, kind, text in [
            ("empty", "ValueError", "has no row"),
            ("bad", "RayTaskError", "0.5 is not an integer"),
            ("options", "TypeError", "options= are of mkfs.beton"),
            ("append", "TypeError", "append="),
            ("list", "ValueError", "the list is empty"),
            ("kind", "TypeError", "a path, a list of paths")]:
        got, said = found[name]
        assert got.startswith(kind) and text in said, (name, got, said)
    assert not os.listdir(tmp_path)
