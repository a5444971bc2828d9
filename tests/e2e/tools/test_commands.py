# SPDX-License-Identifier: Apache-2.0
"""Command lines by the habits of GNU: help, versions, abbreviations, earlier
names, quiet and verbose, exit codes; and commands that choose for the user."""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import pytest

import dumped
from conftest import BUILD, DEADLINE, unmount, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "lint"))
import words as language  # noqa: E402

np = pytest.importorskip("numpy")
pytest.importorskip("PIL.Image")

COMMANDS = ("info", "show", "dump", "bench", "optimize", "doctor", "top",
            "help")
PROGRAMS = [("betonfs",), ("mkfs.beton",), ("beton",),
            *(("beton", c) for c in COMMANDS)]
USAGE = 2
FAILED_MOUNT, NOT_A_DATASET, DAMAGED = 32, 33, 34


def run(*command, code=0, **options):
    r = subprocess.run([BUILD / command[0], *map(str, command[1:])],
                       stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=3 * DEADLINE, **options)
    assert r.returncode == code, (command, r)
    return r


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """60 images of one size."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "images").mkdir()
    for i in range(60):
        (folder / f"images/{i}.jpg").write_bytes(dumped.jpeg(i, 40, 30))
    run("mkfs.beton", "-q", folder / "images", folder / "p.beton")
    return folder / "p.beton"



def test_names_of_files_control_no_terminal(photos, tmp_path):
    """Archives of strangers contain such names. U+009B starts a sequence as ESC [
    does; other letters stay."""
    made, copy = (tmp_path / f"{c}\x1b]0;x\a\n\u009b1m\u00e9.beton" for c in "mc")
    out = [run("mkfs.beton", photos.parent / "images", made),
           run("beton", "optimize", made, copy), run("beton", "info", copy),
           run("beton", "info", str(copy) + "x", code=1),
           run("beton", "info", "--spec=\u009b1m", copy, code=1),
           run("beton", copy, code=USAGE), run("betonfs", f"--{copy}", code=1),
           run("betonfs", copy, copy, code=FAILED_MOUNT)]
    for r in out:
        text = r.stdout + r.stderr
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), r
        assert "??1m" in text, r
    assert out[0].stdout.startswith(f"{tmp_path}/m?]0;x????1m\u00e9.beton: ")

@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Images of different sizes, with classes."""
    folder = tmp_path_factory.mktemp("mixed")
    for i in range(40):
        path = folder / f"images/{'ab'[i % 2]}/{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dumped.jpeg(i, 230 + 3 * i, 300 - i))
    run("mkfs.beton", "-q", folder / "images", folder / "mixed.beton")
    return folder / "mixed.beton"


# --- help and versions ---

@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
def test_help_fits_a_terminal_and_has_examples(program):
    text = run(*program, "--help").stdout
    assert text == run(*program, "-h").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("usage: " + " ".join(program))
    assert "\nExamples:\n" in text
    assert not [m.group() for term, _ in language.TERMS
                for m in term.finditer(language.prose(text))]


@pytest.mark.parametrize("program", PROGRAMS[1:2] + PROGRAMS[3:],
                         ids=" ".join)
def test_help_lines_are_imperatives_with_their_defaults(program):
    text = run(*program, "--help").stdout.partition("Options:\n")[2]
    text = text.partition("\nExamples:")[0]
    entries = re.split(r"\n(?=  -)", text.rstrip())
    assert len(entries) >= 4
    for entry in entries:
        words = re.sub(r"\s+", " ", entry).split(" ")
        help_line = " ".join(words)
        line = re.search(r"(?:^| )([A-Z][a-z]+ .*|[A-Z][a-z]+)$",
                         re.sub(r"^ (-\w, )?--\S+ ", "", help_line))
        assert line, entry
        assert not re.search(r"\(default [^:]|default\)", entry), entry


# The image formats that a build of mkfs.beton may lack.
FORMATS = {("mkfs.beton",): ["webp", "tiff", "avif", "heic", "jpeg xl"]}


@pytest.mark.quick
@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
def test_version_and_features(program):
    text = run(*program, "--version").stdout
    assert text == run(*program, "-V").stdout
    first, *features = text.splitlines()
    assert first == f"{program[0]} 0.1.0"
    names = [f.strip().partition(": ")[0] for f in features]
    assert all(f.partition(": ")[2] for f in features)
    if program == ("betonfs",):
        assert names == ["libfuse", "sandbox"]
    else:
        assert names == ["instruction set", "compiler for pipelines", "cuda",
                         "libjpeg-turbo", "lz4", *FORMATS.get(program, [])]


def feature(name, **environment):
    text = run("beton", "--version",
               env={**os.environ, **environment}).stdout
    return re.search(rf"^  {name}: (.*)$", text, re.MULTILINE)[1]


def test_features_are_those_of_this_machine(tmp_path):
    compiler = tmp_path / "my-cc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    name = "compiler for pipelines"
    assert feature(name, BETON_CC=str(compiler)) == str(compiler)
    assert feature(name, BETON_CC=str(tmp_path / "none")) == "not found"
    assert feature("cuda", BETON_CUDA_LIBRARY="/none.so") == "no driver found"
    with open("/proc/cpuinfo", encoding="ascii") as f:
        flags = f.read().split()
    assert ("avx2" in feature("instruction set")) == (
        "avx2" in flags and "f16c" in flags)


def test_help_of_a_command():
    for name in COMMANDS:
        assert run("beton", "help", name).stdout == \
            run("beton", name, "--help").stdout
    assert run("beton", "help").stdout == run("beton", "--help").stdout
    r = run("beton", "help", "inof", code=USAGE)
    assert "`info'" in r.stderr


def test_help_shows_the_manual_page_on_a_terminal(tmp_path):
    if not shutil.which("man"):
        pytest.skip("no man")
    (tmp_path / "man1").mkdir()
    (tmp_path / "man1/beton-info.1").write_text(
        ".Dd January 1, 2026\n.Dt BETON-INFO 1\n.Os\n.Sh NAME\n"
        ".Nm beton-info\n.Nd a page that a test wrote\n")

    def shown(command):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
                [BUILD / "beton", "help", command], stdin=subprocess.DEVNULL,
                stdout=theirs, stderr=theirs,
                env={**os.environ, "MANPATH": str(tmp_path), "PAGER": "cat",
                     "MANPAGER": "cat", "TERM": "dumb"}) as p:
            os.close(theirs)
            text = b""
            while True:
                try:
                    more = os.read(ours, 65536)
                except OSError:
                    more = b""
                if not more:
                    break
                text += more
            os.close(ours)
            assert p.wait(DEADLINE) == 0
        return re.sub(r".\x08|\x1b\[[0-9;]*m", "", text.decode())

    assert "a page that a test wrote" in shown("info")
    # This one has no page there.
    assert shown("bench").startswith("usage: beton bench")


# --- names and letters ---

def test_abbreviations_mean_the_same(photos, tmp_path):
    common = ("--spec", "batch=4", "--batches=0:2", "--pipeline",
              "center_crop(8)")
    forms = {
        "now": ("--world-size=2", "--rank=1", "--jobs=2",
                "--delivery=zero-copy"),
        "short": ("--world-s", "2", "--ra", "1", "-qj2", "--deliv=zero-copy"),
        "separate": ("--world", "2", "--rank", "1", "-j", "2"),
        "workers": ("--world-size=2", "--rank=1", "--workers=2"),
    }
    for name, form in forms.items():
        run("beton", "dump", photos, "--out", tmp_path / name, *common, *form)
    want = sorted(p.relative_to(tmp_path / "now")
                  for p in (tmp_path / "now").rglob("*.npy"))
    assert want
    for name in forms:
        got = sorted(p.relative_to(tmp_path / name)
                     for p in (tmp_path / name).rglob("*.npy"))
        assert got == want
        for path in want:
            assert (tmp_path / name / path).read_bytes() == \
                (tmp_path / "now" / path).read_bytes()


@pytest.mark.parametrize("given, expected", [
    (("--num-workers=2",), "unknown option --num-workers; did you mean `--jobs'?"),
    (("--threads", "2"), "unknown option --threads; did you mean `--jobs'?"),
    (("--delivery=handover",), "--delivery=handover: expected one of auto, "
                               "zero-copy, direct"),
])
def test_words_of_others_are_refused_with_ours(photos, tmp_path, given,
                                               expected):
    r = run("beton", "dump", photos, "--out", tmp_path / "d", *given, code=2)
    assert expected in r.stderr


def test_every_command_has_the_same_name_for_threads():
    for program in (("mkfs.beton",), ("fsck.beton",), *(("beton", c) for c in
                                       ("dump", "bench", "doctor",
                                        "optimize"))):
        options = run(*program, "--options").stdout.split()
        text = run(*program, "--help").stdout
        assert "jobs" in options and "-j, --jobs=N" in text
        assert not {"workers", "threads", "world"} & set(options)
        assert "--workers" not in text and "--threads" not in text
    keys = run("betonfs", "--options").stdout.split()
    assert {"jobs", "prefetch"} <= set(keys)
    assert not {"ahead", "threads"} & set(keys)


# --- quiet and verbose ---

def test_quiet_prints_errors_only(photos, tmp_path):
    small = ("bench", photos, "--epochs=2")
    assert "--spec=batch=60" in run("beton", *small).stderr
    for letter in ("-q", "--quiet", "-vq"):
        assert run("beton", *small, letter).stderr == ""
    assert run("beton", "bench", "-q", tmp_path / "none", code=1).stderr
    r = run("beton", "optimize", "-q", photos, tmp_path / "o.beton")
    assert r.stdout == r.stderr == "" and (tmp_path / "o.beton").exists()


def test_mkfs_is_quiet_or_verbose(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(3):
        (tmp_path / f"in/{i}.jpg").write_bytes(dumped.jpeg(i, 20, 20))
    (tmp_path / "in/bad.jpg").write_bytes(b"no image")

    def make(*options):
        return run("mkfs.beton", "--on-error=skip", *options, tmp_path / "in",
                   tmp_path / "out.beton")
    r = make()
    assert "3 samples" in r.stdout and "bad.jpg" in r.stderr
    assert "samples found" not in r.stderr
    r = make("-q")
    assert r.stdout == r.stderr == ""
    r = make("-qv", "-j", "3")
    assert "4 samples found" in r.stderr and "3 threads" in r.stderr


def test_verbose_reports_how_a_dump_loads(photos, tmp_path):
    args = ("dump", photos, "--spec=batch=4", "--batches=0:1", "--out",
            tmp_path / "d", "-j3")
    assert run("beton", *args).stderr == ""
    assert "in-process, 3 threads" in run("beton", *args, "-v").stderr


def test_a_mount_is_quiet_or_verbose(photos, tmp_path, fuse):
    key = "window=5"  # has no effect, and a warning reports that
    for options, silent in ((["-o", key], False), (["-q", "-o", key], True),
                            (["-v"], False), (["-s"], True)):
        where = tmp_path / "".join(options)
        r = run("betonfs", *options, photos, where)
        # Another process may look at new mounts for a moment.
        wait_until(lambda w=where: unmount(w) or not os.path.ismount(w),
                   "the mount to go")
        assert (r.stderr == "") == silent, (options, r.stderr)
        assert ("mounted on" in r.stderr) == ("-v" in options)


# --- exit codes ---

@pytest.mark.parametrize("name", ["betonfs", "mount.beton"])
def test_a_failed_mount_exits_as_mount_does(photos, tmp_path, fuse, name):
    program = tmp_path / name
    program.symlink_to(BUILD / "betonfs")
    where, text = tmp_path / "mnt", tmp_path / "text"
    text.write_text("no dataset\n" * 1000)
    cut = tmp_path / "cut.beton"
    with open(photos, "rb") as f:
        cut.write_bytes(f.read(4096))
    where.mkdir()
    for code, *args in ((FAILED_MOUNT, tmp_path / "none", where),
                        (NOT_A_DATASET, text, where),
                        (FAILED_MOUNT, tmp_path, where),
                        (DAMAGED, cut, where),
                        (FAILED_MOUNT, photos, text),
                        (FAILED_MOUNT, photos, text / "below"),
                        (1, photos), (1, "-o", "nosuch", photos, where),
                        (1, "--nosuch", photos, where)):
        r = subprocess.run([program, *map(str, args)], capture_output=True,
                           text=True, timeout=DEADLINE)
        assert (r.returncode, len(r.stderr.splitlines())) == (code, 1), \
            (args, r)


@pytest.mark.quick
def test_wrong_usage_is_2_and_points_to_help(photos):
    for command in (("beton",), ("beton", "nosuch"), ("beton", "-x"),
                    ("beton", "dump"), ("beton", "dump", photos),
                    ("beton", "dump", photos, "--out"),
                    ("beton", "info", photos, photos),
                    ("mkfs.beton",), ("mkfs.beton", "-j0", "a", "b")):
        r = run(*command, code=USAGE)
        known = len(command) > 1 and command[1] in COMMANDS
        tool = " ".join(map(str, command[:1 + known]))
        assert r.stdout == "" and len(r.stderr.splitlines()) == 1
        assert r.stderr.endswith(f" See '{tool} --help'.\n"), r.stderr


# --- defaults that work ---

def test_bench_chooses_a_batch_that_exists(photos, mount):
    where = mount(photos)
    for path in (photos, where):
        r = run("beton", "bench", path, "--json", "--epochs=2")
        assert json.loads(r.stdout)["spec"].startswith("order=random,batch=60")
        assert r.stderr.splitlines() == [
            "beton: there are too few samples for a batch: using "
            "--spec=batch=60"]
    r = run("beton", "bench", photos, "--json", "--epochs=2", "--spec",
            "order=sequential,subset=0-9")
    assert "drop_last=0" in json.loads(r.stdout)["spec"]
    # A batch that the user chose stays.
    run("beton", "bench", photos, "--spec=batch=61", code=1)
    run("beton", "bench", photos, "--spec=subset=0-9,drop_last=1", code=1)


def test_bench_crops_images_of_different_sizes(mixed, mount):
    for path in (mixed, mount(mixed)):
        r = run("beton", "bench", path, "--spec=batch=8", "--json",
                "--epochs=2")
        figures = json.loads(r.stdout)
        assert len(figures["images_per_s"]) == 1
        assert figures["stages"]["transform"]["items"] >= 80
        assert r.stderr.splitlines() == [
            "beton: the images have different sizes: using "
            "--pipeline='image | center_crop(224)'"]
    # A pipeline that the user chose stays.
    r = run("beton", "bench", mixed, "--spec=batch=8", "--pipeline=flip",
            code=1)
    assert "center_crop(224)'" in r.stderr and "using" not in r.stderr


def test_doctor_takes_a_small_and_mixed_dataset(mixed):
    r = run("beton", "doctor", mixed, "--seconds=5", "--json")
    assert "--spec=batch=40" in r.stderr
    assert "--pipeline='image | center_crop(224)'" in r.stderr
    assert json.loads(r.stdout)


def test_dump_takes_a_small_and_mixed_dataset(mixed, tmp_path):
    r = run("beton", "dump", mixed, "--out", tmp_path / "d")
    assert "--spec=batch=40" in r.stderr and "center_crop(224)" in r.stderr
    r = run("beton", "dump", mixed, "--out", tmp_path / "e", "--spec", "seed=0")
    assert r.stderr == "" and not list((tmp_path / "e").iterdir())
    batches = list((tmp_path / "d").iterdir())
    assert len(batches) == 1
    assert np.load(batches[0] / "image.npy").shape == (40, 224, 224, 3)
    assert sorted(np.load(batches[0] / "ids.npy")) == list(range(40))


@pytest.mark.parametrize("command", [
    ("beton", "info"), ("beton", "bench"), ("fsck.beton",),
    ("mkfs.beton", "-q", "FILE")])
def test_every_program_has_options_of_urls(photos, command):
    """They are wrong, so that no server is needed."""
    command = [photos if word == "FILE" else word for word in command]
    for option in (["-o", "connectoins=3"], ["-oconnectoins=3"],
                   ["--storage-options=connectoins=3"]):
        r = subprocess.run([BUILD / command[0], *command[1:], *option,
                            "http://127.0.0.1:9/x.beton"], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=DEADLINE)
        assert r.returncode
        assert "-o: connectoins: unknown option; did you mean `connections'?" \
            in r.stderr, r.stderr
