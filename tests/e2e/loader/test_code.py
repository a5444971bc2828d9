# SPDX-License-Identifier: Apache-2.0
"""Compiled code, through `beton dump` and `beton bench`: the choice of the code,
equal results of all of it, and operations in files."""
import json
import os
import pathlib
import re
import stat
import subprocess

import numpy as np
import pytest

import dumped
from dumped import BUILD, beton, digest, dump
from compiled import needs_compiler

pytest.importorskip("PIL.Image")

PAGE = pathlib.Path(__file__).parents[3] / "loader/run/jit/beton-jit.7"

SPEC = "batch=4,seed=3,drop_last=0"
CROP = 'random_resized_crop("33,45") | flip'
STANDARD = f"{CROP} | normalize(imagenet) | half | chw"
COLORS = (f"{CROP} | brightness(0.4) | saturation(0.4) | solarize(99, 0.5)"
           " | normalize(imagenet) | half")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("code") / "p.beton", 24)


@pytest.fixture
def cache(tmp_path):
    """A cache of compiled code of the test's own, empty."""
    return tmp_path / "cache"


def env(cache, **more):
    return {**os.environ, "BETON_CACHE_DIR": str(cache), **more}


def bench(data, pipeline, environment):
    out = beton("bench", data.path, "--spec", SPEC, "--pipeline", pipeline,
                "--epochs", 2, "--json", env=environment).stdout
    return json.loads(out)["jit"]


def rows(data, out, pipeline, environment):
    dump(data.path, out, "--spec", SPEC, "--pipeline", pipeline,
         env=environment)
    return digest(out)


def objects(cache):
    return sorted(cache.rglob("*.so"))


@pytest.mark.quick
@needs_compiler
def test_bench_reports_which_code_runs(data, cache, tmp_path):
    wait, off = env(cache, BETON_JIT="wait"), env(cache, BETON_JIT="off")
    assert bench(data, STANDARD, wait) == "prebuilt"
    assert bench(data, CROP, off) == "none"
    assert not cache.exists() or not objects(cache)
    assert bench(data, COLORS, wait) == "generated"
    assert bench(data, COLORS, off) == "generic"
    assert bench(data, f"{COLORS}; x = image | {STANDARD}", off) == "generic"
    assert len(objects(cache)) == 1


@needs_compiler
def test_profilers_find_names(data, cache, tmp_path):
    """In a file that is still there when the process is not."""
    def left(**more):
        p = subprocess.Popen(
            [BUILD / "beton", "bench", data.path, "--spec", SPEC, "--pipeline",
             COLORS, "--epochs", "2"], stdout=subprocess.DEVNULL,
            env=env(cache, BETON_JIT="wait", **more))
        assert p.wait() == 0
        return list(pathlib.Path("/tmp").glob(f"beton-kernel-{p.pid}-*"))

    assert left() == []
    # From the cache as well.
    [file] = left(BETON_PERF="1")
    code = file.read_bytes()
    file.unlink()
    assert b"beton_image_brightness_saturation_solarize_normalize" in code


@pytest.mark.parametrize("pipeline", [STANDARD, COLORS])
def test_no_compiler_no_difference(data, cache, tmp_path, pipeline):
    none = env(cache, PATH=str(tmp_path), BETON_JIT="wait")
    want = rows(data, tmp_path / "none", pipeline, none)
    assert want == rows(data, tmp_path / "wait", pipeline,
                        env(cache, BETON_JIT="wait"))
    assert want == rows(data, tmp_path / "back", pipeline,
                        env(tmp_path / "another"))
    assert want == rows(data, tmp_path / "warm", pipeline, env(cache))


@needs_compiler
def test_code_is_kept_for_its_user_alone(data, cache, tmp_path):
    wait = env(cache, BETON_JIT="wait")
    rows(data, tmp_path / "a", COLORS, wait)
    [one] = objects(cache)
    assert stat.S_IMODE(one.stat().st_mode) == 0o600
    for folder in (cache, one.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = one.stat()
    rows(data, tmp_path / "b", COLORS, wait)
    assert one.stat().st_ino == before.st_ino, "made again"
    # Code that another user could have changed is not run, but made again.
    one.chmod(0o666)
    rows(data, tmp_path / "c", COLORS, wait)
    assert [o.stat().st_ino for o in objects(cache)] != [before.st_ino]


@needs_compiler
def test_a_home_without_room_is_no_obstacle(data, tmp_path):
    nowhere = env("/proc/nowhere", BETON_JIT="wait")
    assert bench(data, COLORS, nowhere) == "generated"
    home = {k: v for k, v in nowhere.items()
            if k not in ("BETON_CACHE_DIR", "XDG_CACHE_HOME")}
    home["HOME"] = str(tmp_path)
    assert bench(data, COLORS, home) == "generated"
    assert objects(tmp_path / ".cache/betonfs")


@needs_compiler
def test_concurrent_processes_share_compiled_code(data, cache, tmp_path):
    running = [subprocess.Popen(
        [BUILD / "beton", "dump", data.path, "--spec", SPEC, "--pipeline",
         COLORS, "--out", tmp_path / str(i)],
        env=env(cache, BETON_JIT="wait")) for i in range(4)]
    assert [p.wait(60) for p in running] == [0] * 4
    assert len({str(digest(tmp_path / str(i))) for i in range(4)}) == 1
    assert len(objects(cache)) == 1


@needs_compiler
def test_nothing_stays_behind(data, cache, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for mode in ("wait", "background"):
        rows(data, tmp_path / mode, f"{COLORS} | {mode == 'wait' and 'hwc' or 'chw'}",
             env(cache, BETON_JIT=mode, TMPDIR=str(temporary)))
    assert not list(temporary.iterdir())


def test_the_code_can_be_looked_at(data, cache, tmp_path):
    r = beton("dump", data.path, "--spec", SPEC, "--pipeline", COLORS,
              "--out", tmp_path / "o",
              env=env(cache, BETON_JIT="off", BETON_DUMP="1"))
    assert "/* image: generic */" in r.stderr
    assert "saturation(v" in r.stderr and "beton_pointwise(const" in r.stderr


def test_a_wrong_setting_is_reported(data, cache, tmp_path):
    r = beton("dump", data.path, "--out", tmp_path / "o",
              env=env(cache, BETON_JIT="on"), code=1)
    assert "BETON_JIT is `on'" in r.stderr and r.stderr.count("\n") == 1


# --- operations of files ---

def example():
    """The file, and a pipeline that uses it, as the manual has them."""
    text = PAGE.read_text().split(".Sh CUSTOM OPERATIONS\n", 1)[1]
    blocks = re.findall(r"\.Bd -literal[^\n]*\n(.*?)\.Ed\n", text, re.S)
    return blocks[0].strip(), blocks[1]


@needs_compiler
def test_the_example_of_the_manual_works(data, cache, tmp_path):
    pipeline, code = example()
    (tmp_path / "my_op.c").write_text(code)
    how = dict(env=env(cache), cwd=tmp_path)
    options = ["--spec", SPEC, "--pipeline"]
    got = dump(data.path, tmp_path / "own", *options, pipeline, **how)
    plain = dump(data.path, tmp_path / "plain", *options, re.sub(
        r'\| ".*?\) \| half', "", pipeline), **how)
    changed = same = 0
    for a, b in zip(got, plain):
        for x, y in zip(a.outputs["image"].astype(int),
                        b.outputs["image"].astype(int)):
            bright = y > 76         # 255 * 0.3 is 76.5
            sides = np.zeros((2, *y.shape), bool)
            sides[0, :, :, :112] = sides[1, :, :, 112:] = True
            want = [np.where(s & bright, 255 - y, y) for s in sides]
            assert any((x == w).all() for w in want)
            changed += (x == want[0]).all()
            same += (x == want[1]).all()
    assert changed and same, "one half is random"
    # Another seed draws another, this one the same again.
    assert digest(tmp_path / "own") == rows_in(
        tmp_path, data, "again", pipeline, how)


def rows_in(folder, data, out, pipeline, how):
    dump(data.path, folder / out, "--spec", SPEC, "--pipeline", pipeline,
         **how)
    return digest(folder / out)


@needs_compiler
def test_mistakes_in_a_file_are_reported_with_the_line(data, cache, tmp_path):
    (tmp_path / "bad.c").write_text(
        "static void f(float v[3], const struct beton_at *at)\n"
        "{\n\tv[0] = brightness;\n}\n")
    r = beton("dump", data.path, "--out", tmp_path / "o", "--pipeline",
              'resize("8,8") | "bad.c".f', env=env(cache), cwd=tmp_path,
              code=1)
    assert "column 17: f of bad.c: bad.c:3:" in r.stderr
    assert "'brightness' undeclared" in r.stderr
    assert r.stderr.count("\n") == 1 and not (tmp_path / "o").exists()


def test_own_operations_need_a_compiler(data, cache, tmp_path):
    (tmp_path / "op.c").write_text("static void f(float *v, const void *a) {}")
    r = beton("dump", data.path, "--out", tmp_path / "o", "--pipeline",
              'resize("8,8") | "op.c".f', cwd=tmp_path, code=1,
              env=env(cache, PATH=str(tmp_path)))
    assert "there is no C compiler" in r.stderr
