# SPDX-License-Identifier: Apache-2.0
"""The files of `make install`, used outside of the source tree."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import dumped
from conftest import DEADLINE
from installed import run
from installed import CC, SANITIZER

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[3]

pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def env(root):
    return dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(root),
                PKG_CONFIG_PATH=str(root / "usr/lib/pkgconfig"),
                LD_LIBRARY_PATH=str(root / "usr/lib"))


def pkg_config(env, *what):
    return shlex.split(run("pkg-config", *what, "beton", env=env).stdout)


@pytest.fixture(scope="module")
def dataset(root, tmp_path_factory):
    """Made by the installed mkfs.beton from two directories of pictures."""
    folder = tmp_path_factory.mktemp("photos")
    for i in range(20):
        path = folder / f"class{i % 2}" / f"{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(dumped.jpeg(i, 90, 60))
    out = folder.parent / f"{folder.name}.beton"
    run(root / "usr/sbin/mkfs.beton", folder, out)
    return out


def test_everything_has_its_place(root):
    for path in ("bin/betonfs", "bin/beton", "bin/mkfs.beton", "bin/fsck.beton",
                 "lib/libbeton.a", "lib/libbeton.so", "lib/libbeton.so.0",
                 "lib/pkgconfig/beton.pc", "include/beton/beton.h",
                 "include/beton/loader.h", "include/beton/batch.h"):
        assert (root / "usr" / path).exists(), path
    assert os.access(root / "usr/bin/betonfs", os.X_OK)
    assert os.readlink(root / "usr/sbin/mount.beton") == "../bin/betonfs"
    for name in "mkfs.beton", "fsck.beton":
        assert os.readlink(root / "usr/sbin" / name) == f"../bin/{name}"
    for path in ("bash-completion/completions/beton",
                 "bash-completion/completions/mkfs.beton",
                 "zsh/site-functions/_betonfs",
                 "fish/vendor_completions.d/beton.fish"):
        assert (root / "usr/share" / path).stat().st_size > 100
    pages = [p.name for p in (root / "usr/share/man").rglob("*.?")]
    sources = [p.name for d in ("fs", "loader") for p in
               (ROOT / d).rglob("*.[1578]")]
    generated = {p for p in pages if p.endswith(".3")}
    assert {"libbeton.3", "beton_loader_open.3"} <= generated
    assert sorted(set(pages) - generated) == sorted(sources)
    unit = (root / "usr/lib/systemd/system/betonfs@.service").read_text()
    assert "ExecStart=/usr/bin/betonfs " in unit


def test_nothing_else_is_installed(root):
    tops = {p.name for p in root.iterdir()} | \
        {p.name for p in (root / "usr").iterdir()}
    assert tops == {"usr", "bin", "sbin", "lib", "include", "share"}


@pytest.mark.parametrize("compiler,options", [
    ("cc", ["-xc", "-std=c99"]), ("cc", ["-xc", "-std=gnu11"]),
    ("c++", ["-xc++", "-std=c++11"]), ("c++", ["-xc++", "-std=c++17"])])
def test_public_headers_compile_alone(root, env, compiler, options):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    for header in (root / "usr/include/beton").iterdir():
        run(compiler, *options, "-Wall", "-Wextra", "-Werror", "-pedantic",
            "-fsyntax-only", *pkg_config(env, "--cflags"), "-include",
            f"beton/{header.name}", "/dev/null")


@pytest.fixture(scope="module")
def trainer(env, tmp_path_factory):
    out = tmp_path_factory.mktemp("trainer") / "trainer"
    run(CC, "-Wall", "-Wextra", "-Werror", *SANITIZER, "-o", out,
        ROOT / "contrib/examples/trainer.c",
        *pkg_config(env, "--cflags", "--libs"))
    return out


def test_the_example_trains_on_a_file(trainer, env, dataset):
    lines = run(trainer, dataset, 2, env=env).stdout.splitlines()
    assert [re.match(r"epoch (\d): -?[\d.e+]+$", x)[1] for x in lines] == \
        ["0", "1"]
    assert run(trainer, dataset, 2, env=env).stdout.splitlines() == lines


def test_the_example_trains_on_a_mount(trainer, env, dataset, mount):
    assert run(trainer, mount(dataset), 2, env=env).stdout == \
        run(trainer, dataset, 2, env=env).stdout


# The options of the example.
EXAMPLE = ["--spec", "order=random,batch=64,drop_last=0", "--pipeline",
           "random_resized_crop(224) | flip | normalize(imagenet) | float | "
           "chw"]


def sums(out):
    """epoch -> what the example printed."""
    return [float(x) for x in re.findall(r"^epoch \d: (\S+)$", out, re.M)]


def test_the_example_is_run_again_without_its_data(trainer, env, mount,
                                                   tmp_path):
    """Unmodified: all epochs and steps, and one batch for all of them. The
    statistics of the mount count this batch and the one with the shapes."""
    data = dumped.photos(tmp_path / "p.beton", 150).path
    first, = dumped.dump(data, tmp_path / "first", *EXAMPLE, "--batches", ":1")
    pixels = first.outputs["image"].astype(float)
    mnt = mount(data)
    env = dict(env, BETON_SYNTHETIC="constant", BETON_JOB="again")
    for source in (data, mnt):
        r = run(trainer, source, 3, env=env)
        assert sums(r.stdout) == pytest.approx(
            3 * [2 * pixels.sum() + pixels[:150 - 128].sum()], rel=1e-4)
        assert r.stderr.startswith("beton: BETON_SYNTHETIC is `constant'")
        assert r.stderr.count("\n") == 1
    jobs = json.loads((mnt / ".betonfs/stats.json").read_text())["jobs"]
    assert [j["batches"] for j in jobs if j["name"] == "again"] == [2]


def test_the_example_is_run_without_any_data(trainer, env):
    env = dict(env, BETON_SYNTHETIC='synthetic(150, label="int64<10", '
                                    'image="uint8[300,400,3]")')
    r = run(trainer, "/nowhere/train.beton", 2, env=env)
    assert len(sums(r.stdout)) == 2 and "BETON_SYNTHETIC" in r.stderr


def test_the_example_reports_errors(trainer, env, tmp_path):
    assert "usage" in run(trainer, env=env, code=1).stderr
    r = run(trainer, tmp_path / "none", env=env, code=1)
    assert "No such file" in r.stderr


def test_the_library_links_statically(root, env, dataset, tmp_path):
    out = tmp_path / "static"
    flags = [f for f in pkg_config(env, "--cflags", "--libs", "--static")
             if f != "-lbeton"]
    run(CC, *SANITIZER, "-o", out, ROOT / "contrib/examples/trainer.c",
        root / "usr/lib/libbeton.a", *flags)
    assert "epoch 0" in run(out, dataset).stdout


# --- the examples of the help pages ---

def examples(tool, *command):
    """The lines below "Examples:", with continuation lines joined."""
    text = run(tool, *command, "--help").stdout
    _, _, tail = text.partition("\nExamples:\n")
    return [x.strip() for x in tail.replace("\\\n", " ").splitlines()
            if x.strip()]


@pytest.mark.parametrize("command", ["info", "show", "dump", "bench"])
def test_examples_of_help_work(root, dataset, mount, tmp_path, command):
    """The examples work as they stand, with a train.beton and a mnt in the
    current directory."""
    shown = examples(root / "usr/bin/beton", command)
    assert shown
    os.symlink(dataset, tmp_path / "train.beton")
    os.symlink(dataset, tmp_path / "imagenet.beton")
    os.symlink(mount(dataset, "-o", "batch=4"), tmp_path / "mnt")
    for line in shown:
        line = line.replace("/tmp/", f"{tmp_path}/")
        r = subprocess.run(
            ["sh", "-ec", line], cwd=tmp_path, capture_output=True, text=True,
            timeout=DEADLINE, env=dict(
                os.environ, PATH=f"{root}/usr/bin:{os.environ['PATH']}",
                LD_LIBRARY_PATH=str(root / "usr/lib")))
        assert r.returncode == 0, (line, r.stderr)
