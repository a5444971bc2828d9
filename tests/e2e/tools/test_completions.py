# SPDX-License-Identifier: Apache-2.0
"""The completions of bash, zsh and fish, requested by the Tab key."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from conftest import BUILD

TREE = BUILD / "completions"
DEADLINE = 30
READY = "READY>"


def needs(shell):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")


@pytest.fixture
def folder(tmp_path):
    for name in ("train.beton", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "images").mkdir()
    return tmp_path


def environment():
    return dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", TERM="dumb",
                PS1=READY, HOME="/nonexistent", COLUMNS="200")


class Terminal:
    """An interactive shell at a pseudo terminal."""

    def __init__(self, argv, cwd, start):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, environment())
        self.pid = pid
        self.send("stty cols 200 rows 200\n")
        for line in start:
            self.send(line + "\n")
        self.send("echo beg''un\n")
        self.wait_for(r"begun\r?\n")

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            return os.read(self.fd, 65536).decode(errors="replace")
        return ""

    def wait_for(self, pattern):
        text, end = "", time.monotonic() + DEADLINE
        while not re.search(pattern, text):
            assert time.monotonic() < end, (pattern, text)
            text += self.read(0.1)
        return text

    def complete(self, line):
        """The output after Tab, once it has ended."""
        while self.read(0.2):
            pass
        self.send(line + "\t\t")
        text, quiet, end = "", 0, time.monotonic() + DEADLINE
        while (quiet < 3 or not text.strip()) and time.monotonic() < end:
            more = self.read(0.2)
            text += more
            quiet = 0 if more else quiet + 1
        self.send("\x15")
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07|\x08", "", text)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def bash(folder):
    needs("bash")
    t = Terminal(["bash", "--norc", "--noprofile", "-i"], folder,
                 [f"source {TREE}/bash-completion/completions/{p}"
                  for p in ("beton", "betonfs", "mkfs.beton", "fsck.beton")] +
                 ["bind 'set bell-style none'",
                  "bind 'set show-all-if-ambiguous on'",
                  "bind 'set completion-query-items 0'",
                  "bind 'set page-completions off'"])
    yield t.complete
    t.close()


@pytest.fixture
def zsh(folder):
    needs("zsh")
    t = Terminal(["zsh", "-f", "-i"], folder,
                 [f"fpath=({TREE}/zsh/site-functions $fpath)",
                  "unsetopt beep prompt_sp; LISTMAX=1000",
                  "autoload -Uz compinit; compinit -u -D"])
    yield t.complete
    t.close()


@pytest.fixture
def fish(folder):
    needs("fish")

    def complete(line):
        """`complete -C` gives what Tab offers, one per line."""
        source = "; ".join(f"source {TREE}/fish/vendor_completions.d/{p}.fish"
                           for p in ("beton", "betonfs", "mkfs.beton", "fsck.beton"))
        r = subprocess.run(["fish", "--no-config", "-c",
                            f"{source}; complete -C \"{line}\""], cwd=folder,
                           env=dict(environment(), HOME=str(folder)),
                           capture_output=True, text=True, timeout=DEADLINE)
        assert r.returncode == 0 and r.stderr == "", r.stderr
        return r.stdout
    return complete


# A line, what is offered, and what is not.
OFFERS = [
    ("beton d", "dump doctor", "bench info"),
    ("beton help ", "dump top", "train.beton"),
    ("beton dump --w", "--world-size", "--workers"),
    ("beton dump --delivery=", "auto zero-copy direct", "handover"),
    ("beton bench --until ", "read decode transform upload", "train.beton"),
    ("beton info ", "train.beton", "notes.txt"),
    ("beton info --html=", "notes.txt", "--json"),
    ("beton doctor --", "--jobs --trainer --quiet --version", "--out"),
    ("mkfs.beton --mode=", "jpg raw smart proportion= keep", "notes.txt"),
    ("mkfs.beton --masks=", "images", "notes"),
    ("mkfs.beton --on-error ", "stop skip", "notes.txt"),
    ("betonfs -o ", "allow_other prefetch settings", "ahead"),
    ("betonfs -o ro,cache=", "auto os process", "prefetch"),
    ("betonfs -o batch=4,or", "order", "allow_other"),
    ("betonfs --", "--quiet --verbose --version", "--jobs"),
    ("betonfs ", "train.beton", "notes.txt"),
]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_come_from_the_tables(request, shell):
    complete = request.getfixturevalue(shell)
    for line, offered, hidden in OFFERS:
        text = complete(line)
        # The line itself is echoed by a terminal.
        text = text.replace(line, "", 1)
        last = re.split("[ =,]", line)[-1]
        for word in offered.split():
            rest = word[len(last):] if word.startswith(last) else word
            assert word in text or rest in text, (shell, line, word, text)
        for word in hidden.split():
            # fish sorts files that do not fit to the end.
            if shell == "fish" and word == "notes.txt":
                continue
            assert word not in text, (shell, line, word, text)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_keys_have_descriptions(request, shell):
    text = request.getfixturevalue(shell)("betonfs -o allow_")
    assert "Let other users read the mount" in text


def test_a_completed_option_can_be_used(bash, folder):
    """The program accepts the completed line."""
    text = bash("beton --comm")
    assert "ands" in text


def listing(*command):
    return subprocess.run([BUILD / command[0], *command[1:]], check=True,
                          capture_output=True, text=True).stdout


@pytest.mark.parametrize("program", ["beton", "betonfs", "mkfs.beton", "fsck.beton"])
def test_every_option_is_in_every_file(program):
    names = set()
    if program == "beton":
        for command in listing("beton", "--commands").split():
            names |= set(listing("beton", command, "--options").split())
    else:
        names = set(listing(program, "--options").split())
    assert len(names) > 5
    for path in (TREE / f"bash-completion/completions/{program}",
                 TREE / f"zsh/site-functions/_{program}",
                 TREE / f"fish/vendor_completions.d/{program}.fish"):
        text = path.read_text()
        missing = [n for n in names if not re.search(
            rf"(?<![a-z-]){re.escape(n)}(?![a-z-])",
            text.replace("--", " "))]
        assert not missing, (path, missing)
