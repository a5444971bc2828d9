# SPDX-License-Identifier: Apache-2.0
"""If a program cannot write its standard output, it reports that once and ends
with 1, so that no script continues with an empty file."""
import os
import subprocess

import pytest

import dumped
from dumped import BUILD, DEADLINE

pytest.importorskip("PIL.Image")

BENCH = ("bench", "FILE", "--spec", "batch=4", "--pipeline", "center_crop(8)",
         "--epochs=2")
COMMANDS = [
    ("--help",), ("--version",), ("--commands",), ("info", "--help"),
    ("info", "--options"), ("info", "FILE"), ("info", "--json", "FILE"),
    ("info", "--spec=batch=4", "FILE"),
    ("info", "--spec=batch=4", "--json", "FILE"),
    ("info", "FILE", "--html", "-"), ("show", "BATCH"),
    ("show", "--json", "BATCH"), BENCH, (*BENCH, "--json"),
    ("optimize", "FILE", "OUT"), ("top", "--once", "--interval=0.1", "MOUNT"),
    ("top", "--once", "--json", "--interval=0.1", "MOUNT"),
    ("top", "--json", "--interval=0.1", "MOUNT")]
MKFS = [("--help",), ("--version",), ("--options",), ("PHOTOS", "OUT")]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    data = dumped.photos(folder / "o.beton", 12)
    (folder / "photos").mkdir()
    for i in range(3):
        (folder / f"photos/{i}.jpg").write_bytes(dumped.jpeg(i, 20, 20))
    return data, folder / "photos"


@pytest.fixture
def line(photos, request, tmp_path):
    def arguments(command):
        if "--html" in command:
            import package      # noqa: F401, skips without it
        words = {"FILE": photos[0].path, "OUT": str(tmp_path / "out.beton"),
                 "PHOTOS": str(photos[1])}
        if {"MOUNT", "BATCH"} & set(command):
            where = request.getfixturevalue("mount")(photos[0].path)
            words["MOUNT"] = str(where)
            words["BATCH"] = str(where / "batches/batch=4/0/000000.batch")
        return [words.get(a, a) for a in command]
    return arguments


def run(program, arguments, out):
    """With `out` as its standard output; None: closed."""
    closed = [] if out else ["sh", "-c", 'exec "$@" >&-', "sh"]
    with open(out or os.devnull, "w") as stdout:
        return subprocess.run(
            [*closed, BUILD / program, *arguments], stdin=subprocess.DEVNULL,
            stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=DEADLINE,
            env={**os.environ, "BETON_CACHE_DIR": "/proc/nonexistent"})


@pytest.mark.parametrize("out, why", [
    ("/dev/full", "No space left"), (None, "Bad file descriptor")])
@pytest.mark.parametrize("program, command", [
    *(("beton", c) for c in COMMANDS), *(("mkfs.beton", c) for c in MKFS)],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else x)
def test_write_errors_are_reported(line, program, command, out, why):
    r = run(program, line(command), out)
    reported = [text for text in r.stderr.splitlines()
            if text.startswith(f"{program}: ")]
    assert r.returncode == 1, r.stderr
    assert len(reported) == 1 and "standard output" in reported[0], r.stderr
    assert why in reported[0] or "cannot be written" in reported[0]


def test_a_closed_standard_output_is_no_file_of_ours(line):
    """The lowest free descriptor is that of what is opened next."""
    want, got = (line(("PHOTOS", "OUT")) for _ in range(2))
    got[-1] += "2"
    assert run("mkfs.beton", want, os.devnull).returncode == 0
    run("mkfs.beton", got, None)
    assert open(got[-1], "rb").read() == open(want[-1], "rb").read()


def test_nothing_to_write_is_written_anywhere(line, tmp_path):
    arguments = line(("dump", "FILE", "--spec=batch=4", "--out",
                      str(tmp_path / "d"), "--pipeline", "center_crop(8)"))
    for out in "/dev/full", None:
        r = run("beton", arguments, out)
        assert r.returncode == 0 and not r.stderr


def test_a_reader_that_leaves_ends_the_program_silently(line):
    command = subprocess.list2cmdline(
        [str(BUILD / "beton"), *line(("info", "--json", "FILE"))])
    r = subprocess.run(["bash", "-c", f"(sleep 0.2; {command}; echo $? >&2) |"
                        " true"], capture_output=True, text=True,
                       timeout=DEADLINE)
    assert r.stderr == "141\n"      # SIGPIPE
