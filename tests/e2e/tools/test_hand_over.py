# SPDX-License-Identifier: Apache-2.0
"""Programs run modules of Python: by which interpreter, with which arguments, and
with one line about what is missing. Most tests run a package of their own, so
they also run without the package of the build."""
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

import make
from conftest import wait_until
from dumped import BUILD, DEADLINE, beton

VERSION = re.search(r"\d+\.\d+\.\d+", subprocess.run(
    [BUILD / "beton", "--version"], capture_output=True, text=True).stdout)[0]
MISSING = ("beton: --html needs the Python package of betonfs: run pip install "
           "./contrib/python, or set BETON_PYTHON to an interpreter that has "
           "it\n")
SHOW = """
import json, os, sys
print(json.dumps([list(map(ascii, sys.argv[1:])), os.getcwd(), __name__]))
"""


@pytest.fixture
def data(tmp_path):
    return make.numbers(tmp_path / "x.beton", 4)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """package(module, init): a package with this text as its module for pages,
    for the interpreter of the tests."""
    def do(module=SHOW, init=f"__version__ = {VERSION!r}"):
        folder = tmp_path / "package"
        (folder / "betonfs").mkdir(parents=True)
        (folder / "betonfs/__init__.py").write_text(init)
        (folder / "betonfs/_gallery.py").write_text(module)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("BETON_PYTHON", sys.executable)
    return do


@pytest.fixture
def interpreter(tmp_path, monkeypatch):
    """interpreter(text): a shell script in place of Python."""
    def do(text):
        path = tmp_path / "interpreter"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        monkeypatch.setenv("BETON_PYTHON", str(path))
    return do


def refusal(data, tmp_path):
    """The one line about a page that was not written."""
    out = tmp_path / "page.html"
    r = beton("info", data.path, "--html", out, code=1)
    assert not r.stdout and r.stderr.count("\n") == 1, r
    assert not out.exists()
    shown = beton("info", data.path, "--html=-", code=1)
    assert shown.stderr == r.stderr and not shown.stdout
    return r.stderr


# --- what is missing ---

def test_no_python(data, tmp_path, monkeypatch):
    """One in the working directory is none."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/python3").symlink_to("/bin/true")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", f":.:{tmp_path}:")
    for unset in "", None:
        monkeypatch.setenv("BETON_PYTHON", unset) if unset is not None else \
            monkeypatch.delenv("BETON_PYTHON")
        assert refusal(data, tmp_path) == \
            "beton: --html needs Python 3.11 or later, and PATH has no " \
            "python3: install it, or set BETON_PYTHON to an interpreter that " \
            "has the package of betonfs\n"


@pytest.mark.parametrize("name, why", [
    ("none", "No such file or directory"), ("", "Permission denied")])
def test_no_interpreter(data, tmp_path, monkeypatch, name, why):
    path = f"{tmp_path}/{name}"
    monkeypatch.setenv("BETON_PYTHON", path)
    assert refusal(data, tmp_path) == \
        f"beton: --html needs Python: {path}: {why}\n"


def test_an_old_python(data, tmp_path, interpreter, monkeypatch):
    """It imports no module from the working directory, either."""
    interpreter(f"shift; exec {shlex.quote(sys.executable)} -c '"
                "import sys; sys.version_info = 3, 10, 4; "
                'sys.version = "3.10.4 (main)"; sys.path.insert(0, ""); '
                "exec(sys.argv.pop(1))' \"$@\"")
    for name in "runpy", "signal", "betonfs":
        (tmp_path / f"{name}.py").write_text("print('imported')")
    monkeypatch.chdir(tmp_path)
    assert re.fullmatch(
        "beton: --html needs Python 3.11 or later, and /.* is 3.10.4: set "
        "BETON_PYTHON to a newer one\n", refusal(data, tmp_path))


def test_no_package(data, tmp_path, interpreter, monkeypatch):
    # Without the packages of this machine.
    interpreter(f'exec {shlex.quote(sys.executable)} -S "$@"')
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert refusal(data, tmp_path) == MISSING
    # A directory of this name is not it.
    (tmp_path / "some/betonfs").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "some"))
    assert refusal(data, tmp_path) == MISSING


def test_a_package_of_another_version(data, tmp_path, package):
    package(init="__version__ = '9.8.7'")
    assert re.fullmatch(
        f"beton: --html needs version {VERSION} of the Python package of "
        "betonfs, and /.* has 9.8.7: install both from one source, or set "
        "BETON_PYTHON\n", refusal(data, tmp_path))


@pytest.mark.parametrize("where", ["module", "init"])
def test_a_library_is_missing(data, tmp_path, package, where):
    package(**{where: "import betonless.parts"})
    assert re.fullmatch(
        "beton: --html needs the Python library betonless: run /.* -m pip "
        "install betonless\n", refusal(data, tmp_path))


def test_a_package_that_cannot_be_imported(data, tmp_path, package):
    package(init="raise ImportError('libx.so.1: cannot open\\nit')")
    assert re.fullmatch(
        "beton: --html needs the Python package of betonfs, and /.* cannot "
        "import it: libx.so.1: cannot open it\n", refusal(data, tmp_path))


# --- what runs ---

def test_arguments(data, tmp_path, package):
    """A path of any bytes; and storage options, if there are some."""
    package()
    path = os.fsencode(tmp_path) + b"/\xff \n'\x1b$x"
    os.link(data.path, path)
    name = os.fsdecode(path)
    r = subprocess.run([BUILD / "beton", "info", path, "--html=-"], text=True,
                       capture_output=True, cwd=tmp_path)
    args, where, run_as = json.loads(r.stdout)
    assert args[:4] == [ascii(name), "''", "'100'", "'1'"]
    assert where == str(tmp_path) and run_as == "__main__"
    shown = beton("info", "-q", "-oretry=5s", "-o", "region=x", "--html=-",
                  "--thumbnails=7", data.path).stdout
    assert json.loads(shown)[0][:4] == [
        ascii(data.path), "'retry=5s,region=x'", "'7'", "'0'"]


def test_other_users_do_not_see_the_arguments(data, tmp_path, interpreter):
    os.rename(data.path, tmp_path / "secret")
    interpreter("tr '\\0' '\\n' < /proc/$$/cmdline\n")
    shown = beton("info", tmp_path / "secret", "--html=-").stdout
    assert "runpy" in shown and "secret" not in shown


@pytest.mark.parametrize("path", ["", ":{}", "{}:", ":{}::", "{}"])
def test_nothing_is_imported_from_the_working_directory(
        data, tmp_path, package, monkeypatch, path):
    package("import json, betonfs.inner, sys; print(sys.path)")
    folder = os.environ["PYTHONPATH"]
    (tmp_path / "package/betonfs/inner.py").touch()
    trap = tmp_path / "trap"
    (trap / "betonfs").mkdir(parents=True)
    for name in ("betonfs/__init__", "runpy", "signal", "json", "usercustomize",
                 "sitecustomize"):
        (trap / f"{name}.py").write_text("open('sprung', 'w')")
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", path.format(folder))
    r = beton("info", data.path, "--html=-", code=0 if path else None)
    assert not (trap / "sprung").exists() and str(trap) not in r.stdout


@pytest.mark.parametrize("script, line", [
    ("echo partial; kill -9 $$",
     "beton: --html: signal 9 ended {}: Killed\n"),
    ("echo partial; exit 3", "")])
def test_a_page_that_ends_early_is_none(data, tmp_path, interpreter, script,
                                        line):
    interpreter(script)
    out = tmp_path / "page.html"
    out.write_text("before")
    r = subprocess.run([BUILD / "beton", "info", data.path, "--html", out],
                       capture_output=True, text=True, timeout=DEADLINE)
    assert r.returncode == 1 and out.read_text() == "before"
    assert r.stderr == line.format(tmp_path / "interpreter")


@pytest.mark.parametrize("out", ["-", "page.html"])
def test_an_interrupt_ends_it(data, tmp_path, package, out):
    package("import time; open('runs', 'w')\nwhile True: time.sleep(0.05)")
    child = subprocess.Popen(
        [BUILD / "beton", "info", data.path, "--html", out], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_until((tmp_path / "runs").exists, "the module")
    os.killpg(child.pid, signal.SIGINT)
    printed = child.communicate(timeout=DEADLINE)
    assert child.returncode == -signal.SIGINT and printed == (b"", b"")
    assert not (tmp_path / "page.html").exists()


def test_a_reader_that_ends_is_no_failure_to_report(data, package):
    package("print('x' * 1000000)")
    child = subprocess.Popen([BUILD / "beton", "info", data.path, "--html=-"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(DEADLINE) == -signal.SIGPIPE
