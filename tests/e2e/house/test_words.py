# SPDX-License-Identifier: Apache-2.0
"""The language checks of make lint find planted faults of each rule, in every
kind of file, and accept text that only looks like one."""
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]
CODESPELL = pytest.mark.skipif(not shutil.which("codespell"),
                               reason="codespell is not installed")


def lint(path, text):
    """The findings in a file of this text: line and words."""
    path.write_text(text)
    run = subprocess.run([sys.executable, TOP / "tests/lint/words.py", path],
                         text=True, capture_output=True)
    assert run.returncode == bool(run.stdout) and not run.stderr
    found = []
    for line in run.stdout.splitlines():
        name, at, rest = line.split(":", 2)
        assert name == str(path)
        found.append((int(at), rest.split("'")[1]))
    return found


@pytest.mark.parametrize("text, found", [
    # 1: the first words of a sentence
    ("What makes room is the cache.", "What makes room is the cache."),
    ("It ends. Who waits is woken.", "Who waits is woken."),
    ("It ends. Of these, one stays.", "Of these, one stays."),
    ("It ends. With a mount it works.", "With a mount it works."),
    ("Whoever reads it waits.", "Whoever reads it waits."),
    ("It ends. And it starts again.", "And it starts again."),
    ("The same for a mount.", "The same for a mount."),
    ("As the next one.", "As the next one."),
    ("In the order of the file.", "In the order of the file."),
    # 2: programs and files do not speak
    ("The file tells the size.", "tells"),
    ("The daemon says why.", "says"),
    ("The cache knows the order.", "knows"),
    # 3: an agent has a name
    ("It waits if nobody reads.", "nobody"),
    ("It serves somebody else.", "somebody"),
    ("It serves someone else.", "someone"),
    # 4: terms
    ("After the handover it ends.", "handover"),
    ("The daemon lends memory.", "lends"),
    ("The count of failed_rows grows.", "failed_rows"),
    ("Give a SPEC to the mount.", "a SPEC"),
    ("These batches are made ahead.", "made ahead"),
    ("Pixels are shipped to it.", "shipped"),
    ("The world has two ranks.", "world"),
    ("Threads assemble a batch.", "assemble"),
    ("It has queue_places of memory.", "queue_places"),
    ("It depends on who does it.", "who does it"),
    ("Set the hook of a loader.", "hook"),
    ("It sends a beacon each second.", "beacon"),
    ("It decodes an ordinary JPEG.", "ordinary JPEG"),
    ("It adds shares of pixels.", "shares of pixels"),
    ("It parses the text of a pipeline.", "text of a pipeline"),
    ("It compiles the tail of a chain.", "tail"),
    ("It runs your own operations.", "own operations"),
    ("It uses the kept images.", "kept images"),
    ("Seeds are a promise.", "promise"),
    ("It goes on from a state.", "goes on"),
    ("The batches are not real.", "not real"),
    ("All batches are late.", "batches are late"),
    ("It uses what there is.", "what there is"),
    ("It writes a folder.", "folder"),
    ("It has two processors.", "processors"),
    ("It begins anew.", "anew"),
    # 5: American spelling
    ("It changes the colour.", "colour"),
])
def test_a_planted_fault_is_found(tmp_path, text, found):
    def first(path, text):
        return [words for _, words in lint(tmp_path / path, text)]
    assert found in first("a.md", f"# Title\n\n{text}\n")
    assert found in first("a.c", f"/* {text} */\nint a;\n")
    assert found in first("a.py", f'"""{text}"""\n')
    assert found in first("a.sh", f"#!/bin/sh\n# {text}\n")
    assert found in first("a.7", f".Sh NAME\n{text}\n")


def test_a_finding_has_its_line(tmp_path):
    assert lint(tmp_path / "a.c", "int a;\n\n/*\n * A size.\n * A folder.\n */\n"
                'const char *b = "It says why";\n') == [
        (5, "folder"), (7, "says")]
    assert lint(tmp_path / "a.py", "a = 1\n# A size,\n# a folder.\n") == [
        (3, "folder")]
    page = ".Sh NAME\nA size.\n.Bl -tag\n.It Cm a\nA size.\n.Pp\n" \
        "A folder.\n.El\n.Sh SEE ALSO\nWho decides.\n"
    assert lint(tmp_path / "a.7", page) == [
        (7, "folder"), (10, "Who decides.")]


@pytest.mark.parametrize("name, text", [
    ("a.c", 'const char *a = "{\\"stem\\": \\"x y\\"}";\n'),
    ("a.c", 'const char *a = "fake(20, a=\\"int64<5\\") works";\n'),
    ("a.c", "/* Behind `tail` there is one more. */\n"),
    ("a.c", 'const char *a = "folder";\n'),
    ("a.py", 'a = "the mask is {folder}/mask.npy"\n'),
    ("a.py", 'a = """\nimport os\nfor folder in os.listdir():\n'
             '    print(folder)\n"""\n'),
    ("a.md", "The rank and the world\nsize differ.\n"),
    ("a.md", "Who decides?\n\n    what tells\n\n`folder` is a variable.\n"),
    ("a.sh", "folder=$1\n"),
])
def test_code_is_no_prose(tmp_path, name, text):
    assert lint(tmp_path / name, text) == []


def test_a_program_in_a_string_has_comments(tmp_path):
    assert lint(tmp_path / "a.py",
                'a = """\nimport os\n# It tells a size.\n"""\n') == [
        (3, "tells")]


@CODESPELL
@pytest.mark.parametrize("text, found", [
    ("It changes the colour.", "colour ==> color"),
    ("It normalises pixels.", "normalises ==> normalizes"),
    ("It adresses memory.", "adresses ==> addresses"),
    ("It labels a nnumber.", None), ("It is gray.", None),
])
def test_spelling(tmp_path, text, found):
    path = tmp_path / "a.md"
    path.write_text(f"# Title\n\n{text}\n")
    run = subprocess.run(["sh", "tests/lint/spelling.sh", path], cwd=TOP,
                         text=True, capture_output=True)
    assert (run.returncode != 0) == bool(found), run
    assert run.stdout == (f"{path}:3: {found}\n" if found else "")


def test_spelling_is_skipped_with_a_reason(tmp_path):
    run = subprocess.run(["/bin/sh", "tests/lint/spelling.sh"], cwd=TOP,
                         text=True, capture_output=True, env={"PATH": ""})
    assert run.returncode == 0
    assert run.stdout == "spelling: skipped, because codespell is not installed\n"
