# SPDX-License-Identifier: Apache-2.0
"""The Debian packages and the ABI of the library: the files of contrib/debian fit
the Makefile, the headers and the built library. `.ci/run packages` installs and
purges the packages, which needs root."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import dumped
from installed import CC, SANITIZER

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[3]
DEBIAN = ROOT / "contrib/debian"
MAKEFILE = (ROOT / "Makefile").read_text()
VERSION = re.search(r"^VERSION := (\S+)$", MAKEFILE, re.M)[1]
SONAME = re.search(r"^SONAME := (\S+)$", MAKEFILE, re.M)[1]


def stanzas(path):
    """The fields of each stanza; lines of a field are joined by blanks."""
    for text in re.split(r"\n\n+", path.read_text().strip()):
        fields = re.findall(r"^(\S+?):[ \t]*(.*(?:\n[ \t].*)*)", text, re.M)
        yield {k: " ".join(v.split()) for k, v in fields}


def packages():
    return {s["Package"]: s for s in stanzas(DEBIAN / "control")
            if "Package" in s}


def test_control_fits_the_makefile():
    source = next(stanzas(DEBIAN / "control"))
    assert source["Source"] == "betonfs"
    assert "debhelper-compat (= 13)" in source["Build-Depends"]
    line = (DEBIAN / "changelog").read_text().split("\n")[0]
    assert re.match(rf"betonfs \({re.escape(VERSION)}\) ", line)
    number = SONAME.rpartition(".")[2]
    assert set(packages()) == {"betonfs", f"libbeton{number}", "libbeton-dev",
                               "python3-betonfs"}
    symbols = (DEBIAN / f"libbeton{number}.symbols").read_text()
    assert symbols.startswith(f"{SONAME} libbeton{number} #MINVER#\n")
    assert f"BETON_{number} {{" in (ROOT / "loader/libbeton.map").read_text()


def test_python_is_left_out_where_it_is_too_old():
    source = next(stanzas(DEBIAN / "control"))
    needs = re.search(r'requires-python = "(>=\S+)"', (
        ROOT / "contrib/python/pyproject.toml").read_text())[1]
    assert source["X-Python3-Version"].replace(" ", "") == needs
    assert packages()["python3-betonfs"]["Build-Profiles"] == "<!nopython>"
    for need in source["Build-Depends"].split(","):
        if re.search(r"dh-python|libpython3", need):
            assert need.endswith("<!nopython>"), need


def test_the_page_has_all_packages_of_a_build():
    """contrib/docs/install.md installs what control needs, by the quickstart and
    by apt-get. dh-python brings the interpreter."""
    page = (ROOT / "contrib/docs/install.md").read_text()
    page = page[page.index("## Debian packages"):page.index("## Python package")]
    steps = re.findall(r"^    (.+)$", page, re.M)
    assert steps[0] == "sh contrib/quickstart --packages-only"
    assert steps[2:] == ["make deb", "sudo apt-get install ./build/deb/*.deb"]
    given = set(steps[1].removeprefix("sudo apt-get install ").split())
    quickstart = (ROOT / "contrib/quickstart").read_text()
    given |= set(re.search(r"^packages='([^']*)'", quickstart, re.M)[1].split())
    source = next(stanzas(DEBIAN / "control"))
    needs = {need.split()[0] for need in source["Build-Depends"].split(",")}
    assert needs - given == {"debhelper-compat", "python3:any"}
    assert {"debhelper", "dh-python"} <= given


def test_the_page_removes_all_packages():
    """All but python3-betonfs, which some releases do not have: apt removes it
    with the library."""
    page = (ROOT / "contrib/docs/install.md").read_text()
    purged = set(re.search(r"^    sudo apt-get purge (.*)$", page, re.M)[1].split())
    assert purged == set(packages()) - {"python3-betonfs"}


def lists():
    """package -> patterns of its .install file"""
    return {p.stem: p.read_text().split() for p in DEBIAN.glob("*.install")}


def owners(path):
    """Packages that a path below DESTDIR goes into."""
    # Debian's library directory has one level more.
    path = re.sub(r"^usr/lib/(libbeton|pkgconfig)", r"usr/lib/ARCH/\1", path)
    steps = path.split("/")
    parts = ["/".join(steps[:i + 1]) for i in range(len(steps))]
    return [package for package, patterns in lists().items()
            if any(fnmatch.fnmatchcase(part, pattern)
                   for pattern in patterns for part in parts
                   if part.count("/") == pattern.count("/"))]


def test_every_installed_file_is_in_one_package(root):
    files = [str(p.relative_to(root)) for p in root.rglob("*")
             if p.is_symlink() or p.is_file()]
    files = [f for f in files if f.startswith("usr/")]
    assert len(files) > 60
    got = {f: owners(f) for f in files}
    assert {f: o for f, o in got.items() if len(o) != 1} == {}
    assert {o for [o] in got.values()} == set(lists())
    assert got["usr/bin/beton"] == ["betonfs"]
    assert got["usr/lib/libbeton.so"] == ["libbeton-dev"]
    assert got[f"usr/lib/{SONAME}"] == ["libbeton0"]


def test_symbols_are_those_of_the_library():
    names = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions",
         BUILD / "libbeton.so"], check=True, capture_output=True,
        text=True).stdout
    exported = set(re.findall(r" [TA] (beton_\w+@@BETON_\d+|BETON_\d+)$",
                              names, re.M))
    listed = re.findall(r"^ (\S+)@(BETON_\d+) \d",
                        (DEBIAN / "libbeton0.symbols").read_text(), re.M)
    assert len(listed) == len(set(listed)) > 30
    assert {n if n == v else f"{n}@@{v}" for n, v in listed} == exported


def test_fields_of_copyright():
    first, files, *rest = stanzas(DEBIAN / "copyright")
    assert first["Format"].endswith("/copyright-format/1.0/")
    assert files["Files"] == "*" and files["License"] == "Apache-2.0"
    assert [s["License"].split()[0] for s in rest] == ["Apache-2.0"]


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    for tool in ("dpkg-buildpackage", "dh", "dh_python3"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if SANITIZER or not os.environ.get("BETON_TEST_DEB"):
        pytest.skip("BETON_TEST_DEB is not set: building takes minutes")
    out = tmp_path_factory.mktemp("deb") / "with a blank"
    r = subprocess.run(["sh", DEBIAN / "build", out], capture_output=True,
                       text=True, timeout=1500)
    assert r.returncode == 0, r.stdout[-3000:] + r.stderr[-3000:]
    return out


def contents(deb):
    lines = subprocess.run(["dpkg-deb", "-c", deb], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    return {line.split()[5].removeprefix("./") for line in lines if line}


def test_make_deb(debs):
    got = {p.name.split("_")[0]: p for p in debs.glob("*.deb")
           if "-dbgsym" not in p.name}
    assert set(packages()) - {"python3-betonfs"} <= set(got)
    assert "usr/sbin/mount.beton" in contents(got["betonfs"])
    assert [f for f in contents(got["libbeton0"])
            if f.endswith(f"/libbeton.so.{VERSION}")]
    pages = [f for f in contents(got["libbeton-dev"]) if "/man3/beton_" in f]
    assert len(pages) > 40
    if "python3-betonfs" in got:
        files = contents(got["python3-betonfs"])
        assert not [f for f in files if f.endswith(SONAME)]
        assert [f for f in files if "_beton" in f and f.endswith(".so")]
        depends = subprocess.run(
            ["dpkg-deb", "-f", got["python3-betonfs"], "Depends"], check=True,
            capture_output=True, text=True).stdout
        assert "libbeton0" in depends
    if shutil.which("lintian"):
        r = subprocess.run(["lintian", "--fail-on", "error,warning",
                            *debs.glob("*.changes")],
                           capture_output=True, text=True, timeout=600)
        assert r.returncode == 0, r.stdout


# --- make uninstall ---

def tree(top):
    return {str(p.relative_to(top)): p.is_symlink() and os.readlink(p)
            for p in top.rglob("*")}


def install(action, dest, prefix="/usr"):
    quiet = {k: v for k, v in os.environ.items()
             if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BUILD", "SAN")}
    listing = subprocess.run(
        ["make", "-s", "-n", "-C", ROOT, f"BUILD={BUILD}", f"PREFIX={prefix}",
         f"CC={CC}", "WERROR=", "uninstall"], env=quiet, check=True,
        capture_output=True, text=True).stdout
    line, = re.findall(r"^printf '%s\\n' (.*) \| sh contrib/install",
                       listing, re.M)
    subprocess.run(["sh", "contrib/install", action, dest.parent / "dirs",
                    dest], input=line.replace(" ", "\n") + "\n", cwd=ROOT,
                   text=True, check=True, timeout=120)


@pytest.fixture
def dest(tmp_path):
    return tmp_path / "dest"


def test_uninstall_removes_installed_files(dest):
    install("put", dest)
    assert (dest / "usr/share/man/man3/beton_loader_open.3").exists()
    assert len(tree(dest)) > 80
    install("remove", dest)
    assert not dest.exists() and not (dest.parent / "dirs").exists()


def test_uninstall_leaves_everything_else(dest):
    """Foreign files, and directories that were there, also empty ones."""
    for path in ("usr/bin/other", "usr/lib/pkgconfig/other.pc",
                 "usr/share/man/man3/other.3"):
        (dest / path).parent.mkdir(parents=True, exist_ok=True)
        (dest / path).write_text("foreign")
    (dest / "usr/sbin").mkdir()
    (dest / "usr/share/man/man8").mkdir()
    before = tree(dest)
    install("put", dest)
    install("put", dest)        # again: these directories are not new now
    (dest / "usr/include/beton/mine.h").write_text("a file of the user")
    install("remove", dest)
    after = tree(dest)
    assert {k: after.pop(k) for k in ("usr/include", "usr/include/beton",
                                      "usr/include/beton/mine.h")}
    assert after == before


def test_install_where_sbin_is_a_link_to_bin(dest):
    (dest / "usr/bin").mkdir(parents=True)
    (dest / "usr/sbin").symlink_to("bin")
    before = tree(dest)
    install("put", dest)
    assert not (dest / "usr/bin/mkfs.beton").is_symlink()
    assert os.readlink(dest / "usr/bin/mount.beton") == "betonfs"
    install("remove", dest)
    assert tree(dest) == before


def contrib_install(action, dest, *listing, cwd=ROOT):
    return subprocess.run(
        ["sh", ROOT / "contrib/install", action, cwd / "dirs", dest], cwd=cwd,
        input="".join(line + "\n" for line in listing), text=True,
        capture_output=True, timeout=60)


@pytest.mark.parametrize("link", ["usr", "usr/bin"])
@pytest.mark.parametrize("action", ["put", "remove"])
def test_no_link_leads_out_of_destdir(tmp_path, link, action):
    dest, outside = tmp_path / "dest", tmp_path / "outside"
    (outside / "bin").mkdir(parents=True)
    (dest / link).parent.mkdir(parents=True)
    (dest / link).symlink_to(outside)
    for place in outside, outside / "bin":
        (place / "file").write_text("foreign")
    (tmp_path / "source").write_text("ours")
    before = tree(tmp_path)
    r = contrib_install(action, dest, "644:source:/usr/bin/file",
                        "644:source:/usr/bin/new/file", cwd=tmp_path)
    assert r.returncode == 1 and r.stderr == \
        f"install: {dest / 'usr/bin'} leads out of DESTDIR {dest}\n"
    assert tree(tmp_path) == before
    assert (outside / "bin/file").read_text() == "foreign"


def test_install_replaces_a_link_instead_of_following_it(tmp_path):
    dest, outside = tmp_path / "dest", tmp_path / "outside"
    outside.mkdir()
    (dest / "usr/bin").mkdir(parents=True)
    for name in "file", "link":
        (dest / "usr/bin" / name).symlink_to(outside)
    (tmp_path / "source").write_text("ours")
    r = contrib_install("put", dest, "644:source:/usr/bin/file",
                        "link:/usr/bin/file:/usr/bin/link", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    assert not list(outside.iterdir())
    assert tree(dest / "usr/bin") == {"file": False, "link": "file"}


def test_a_relative_destdir_is_removed_again(tmp_path):
    (tmp_path / "source").write_text("ours")
    for action in "put", "remove":
        r = contrib_install(action, "a dest", "644:source:/usr/file",
                            cwd=tmp_path)
        assert r.returncode == 0 and not r.stderr, r.stderr
        assert (tmp_path / "a dest/usr/file").exists() == (action == "put")
    assert tree(tmp_path) == {"source": False}


@pytest.mark.parametrize("variable", [
    "PREFIX=/a b", "PREFIX=relative", "PREFIX=/a;b", "PREFIX=/a:b",
    "PREFIX=/a$$(b)", "PREFIX=~/a", "bindir=/a b", "mandir=man",
    "DESTDIR=it's"])
@pytest.mark.parametrize("target", ["install", "uninstall"])
def test_paths_that_lists_cannot_contain_are_refused(variable, target):
    """`make uninstall PREFIX='/home/me/my dir'` removed /home/me/my."""
    r = subprocess.run(["make", "-n", "-C", ROOT, f"BUILD={BUILD}", variable,
                        target], capture_output=True, text=True, timeout=60)
    name = variable.partition("=")[0]
    assert r.returncode == 2 and f"*** {name}=" in r.stderr, r.stderr
    assert "contrib/install" not in r.stdout


# --- the ABI ---

BASELINE = (ROOT / "include/libbeton.abi").read_text()


def abi(*arguments, **env):
    return subprocess.run(
        ["sh", ROOT / "tests/lint/abi.sh", BUILD / "libbeton.so", *arguments],
        capture_output=True, text=True, timeout=120,
        env=dict(os.environ, **{"CC": CC, "SAN": "", **env}))


def needs_abidiff():
    r = abi()
    assert r.returncode == 0, r.stdout + r.stderr
    if SANITIZER or "skipped" in r.stdout:
        pytest.skip(r.stdout.strip() or "sanitizers change types")


def planted(tmp_path, old, new):
    """The result for a baseline that differs in one place."""
    text, n = re.subn(old, new, BASELINE, flags=re.S)
    assert n == 1
    path = tmp_path / "planted.abi"
    path.write_text(text)
    return abi(path)


SYMBOL = "<elf-symbol name='%s' version='BETON_0' is-default-version='yes' " \
    "type='func-type' binding='global-binding' " \
    "visibility='default-visibility' is-defined='yes'/>"


@pytest.mark.parametrize("old,new,says", [
    ("soname='libbeton.so.0'", "soname='libbeton.so.9'", "SONAME changed"),
    (re.escape(SYMBOL % "beton_operations"),
     SYMBOL % "beton_gone" + SYMBOL % "beton_operations", "1 Removed"),
    (r"(BETON_ON_ERROR_SKIP' value=)'1'", r"\1'7'", "BETON_ON_ERROR_SKIP"),
    # A struct without a member `size` had one member less.
    (r"('beton_image_cache_stats' size-in-bits=)'256'(.*?)\n      <data-member"
     r"[^>]*='192'>.*?</data-member>", r"\1'192'\2", "hits"),
    # A member moved within options.
    (r"(layout-offset-in-bits=)'64'(>\s*<var-decl name='spec')", r"\1'96'\2",
     "spec")])
def test_lint_finds_an_incompatible_change(tmp_path, old, new, says):
    needs_abidiff()
    r = planted(tmp_path, old, new)
    assert r.returncode == 1 and says in r.stdout, r.stdout
    assert "raise the number" in r.stdout


def test_lint_accepts_a_new_function(tmp_path):
    needs_abidiff()
    r = planted(tmp_path, re.escape(SYMBOL % "beton_version"), "")
    assert (r.returncode, r.stdout) == (0, "")


def test_lint_skips_incomparable_libraries(tmp_path):
    needs_abidiff()
    assert "sanitizers" in abi(SAN="thread").stdout
    (tmp_path / "empty").mkdir()
    for tool in ("sh", "dirname"):
        (tmp_path / "empty" / tool).symlink_to(shutil.which(tool))
    assert "no abidw" in abi(PATH=str(tmp_path / "empty")).stdout
    other = planted(tmp_path, "elf-amd-x86_64|elf-arm-aarch64", "elf-mips")
    assert other.returncode == 0 and "elf-mips" in other.stdout


def test_every_struct_has_a_rule():
    """beton.h lists all structs by what may change in them."""
    text = (ROOT / "include/beton/beton.h").read_text()
    comment = text[:text.index("*/", text.index("/*\n"))]
    listed = re.findall(r"\bstruct (beton_\w+)", comment)
    defined = [name for h in (ROOT / "include/beton").glob("*.h")
               for name in re.findall(r"^struct (beton_\w+) \{", h.read_text(),
                                      re.M)]
    assert sorted(listed) == sorted(defined)
