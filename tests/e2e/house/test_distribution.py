# SPDX-License-Identifier: Apache-2.0
"""Packages, images and wheels agree with the Makefile and with contrib/quickstart:
versions, lists of libraries, and paths that exist."""
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build"))

# pkg-config's name: Debian's headers, Debian's library, the source package of a
# carried library, AlmaLinux's headers.
LIBRARIES = {
    "fuse3": ("libfuse3-dev", "libfuse3-4", None, None),
    "libjpeg": ("libjpeg-dev", "libjpeg62-turbo", "libjpeg-turbo",
                "libjpeg-turbo-devel"),
    "libpng": ("libpng-dev", "libpng16-16t64", "libpng1.6", "libpng-devel"),
    "libwebp": ("libwebp-dev", "libwebp7", None, None),
    "libtiff-4": ("libtiff-dev", "libtiff6", None, None),
    "libheif": ("libheif-dev", "libheif1", None, None),
    "libjxl": ("libjxl-dev", "libjxl0.11", None, None),
    "zlib": ("zlib1g-dev", "zlib1g", None, None),
    "libcurl": ("libcurl4-openssl-dev", "libcurl4t64", None, "libcurl-devel"),
    "jansson": ("libjansson-dev", "libjansson4", "jansson", "jansson-devel"),
    "liblz4": ("liblz4-dev", "liblz4-1", "lz4", "lz4-devel"),
}


def text(path):
    return (ROOT / path).read_text()


MAKEFILE = text("Makefile")
SPEC = text("contrib/rpm/betonfs.spec")
DOCKERFILE = text("contrib/docker/Dockerfile")
WHEELS = text("contrib/wheels/build")
SETUP = text("contrib/python/setup.py")
QUICKSTART = text("contrib/quickstart")
PYPROJECT = tomllib.loads(text("contrib/python/pyproject.toml"))


def packages(of_tests=False):
    """The packages that contrib/quickstart installs."""
    listed = re.search(r"^packages='([^']*)'", QUICKSTART, re.M)[1].split()
    more = re.search(r'--tests\) packages="\$packages ([^"]*)"', QUICKSTART)[1]
    return set(listed) | (set(more.split()) if of_tests else set())


def linked():
    """pkg-config's names of what the Makefile links, and of the library's."""
    programs = {name for found in
                re.findall(r"\(call pkg,--libs,([^)]*)\)", MAKEFILE)
                for name in found.split() if not name.startswith("$")}
    optional = re.search(r"^optional +:= (.*)$", MAKEFILE, re.M)[1]
    programs |= set(re.findall(r"=(\S+)", optional))
    # Loaded at run time; the build needs its headers.
    programs |= set(re.findall(r"^curl_cflags := .*--exists (\w+)", MAKEFILE, re.M))
    library = re.search(r"^base_libs := \$\(call pkg,--libs,([^)]*)\)",
                        MAKEFILE, re.M)[1].split()
    return programs, set(library)


def test_the_table_has_all_libraries():
    programs, library = linked()
    assert programs == set(LIBRARIES)
    assert library == {name for name, row in LIBRARIES.items() if row[2]}
    assert {row[0] for row in LIBRARIES.values()} == {
        p for p in packages()
        if p.startswith(("lib", "zlib")) and p != "libc6-dev"}


def test_the_spec():
    version = re.search(r"^VERSION := (\S+)$", MAKEFILE, re.M)[1]
    soname = re.search(r"^SONAME := (\S+)$", MAKEFILE, re.M)[1]
    assert re.search(r"^Version: +(\S+)$", SPEC, re.M)[1] == version
    assert re.search(r"^\* .* - (\S+)-\d+$", SPEC, re.M)[1] == version
    assert f"{{_libdir}}/{soname}\n" in SPEC
    needs = set(re.findall(r"^BuildRequires: +(\S+)", SPEC, re.M))
    assert {n for n in needs if n.startswith("pkgconfig(")} == {
        f"pkgconfig({name})" for name in LIBRARIES}
    assert {"gcc", "make", "uthash-devel"} <= needs
    made = ["betonfs"] + re.findall(r"^%package -n (\S+)$", SPEC, re.M)
    assert made == ["betonfs", "libbeton", "libbeton-devel", "python3-betonfs"]
    assert re.findall(r"^%files(?: -n (\S+))?$", SPEC, re.M) == ["", *made[1:]]
    for line in re.findall(r"^%(?:doc|license) (.*)$", SPEC, re.M):
        for path in line.split():
            assert (ROOT / path).exists(), path


# The macros of RPM that the spec uses, as on Fedora.
MACROS = {"_bindir": "/usr/bin", "_sbindir": "/usr/sbin",
          "_libdir": "/usr/lib", "_includedir": "/usr/include",
          "_mandir": "/usr/share/man", "_datadir": "/usr/share",
          "_unitdir": "/usr/lib/systemd/system",
          "version": re.search(r"^VERSION := (\S+)$", MAKEFILE, re.M)[1]}


def listed_paths():
    """Patterns of all %files sections, without macros."""
    sections = SPEC[SPEC.index("%files"):SPEC.index("%changelog")]
    for pattern in re.findall(r"^%\{_\w+\}\S+$", sections, re.M):
        yield re.sub(r"%\{(\w+)\}", lambda m: MACROS[m[1]], pattern)


def test_the_spec_lists_installed_files(root):
    """A line of %files matches each installed path, except the archive, which
    %install removes. Each line matches a path."""
    installed = {f"/{p.relative_to(root)}" for p in root.rglob("*")
                 if p.is_symlink() or p.is_file()}
    installed.remove("/usr/lib/libbeton.a")
    assert len(installed) > 100
    patterns = list(listed_paths())
    matched = {p: [x for x in installed
                   if fnmatch.fnmatch(x, p) or x.startswith(p + "/")]
               for p in patterns}
    assert not [p for p in patterns if not matched[p]]
    assert installed == set().union(*matched.values())


def test_the_image():
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", DOCKERFILE, re.M)
    base = {image for image, _ in stages}
    assert len(stages) == 2 and base == {"debian:13-slim"}
    assert '"debian:13"' in text(".github/workflows/check.yml")
    user = re.findall(r"^USER (\S+)$", DOCKERFILE, re.M)
    assert user == ["1000"] and f"--uid {user[0]}" in DOCKERFILE
    last = DOCKERFILE.split("\nFROM ")[-1]
    installed = set(re.search(
        r"--no-install-recommends \\\n(.*?)\n +&&", last,
        re.S)[1].replace("\\", "").split())
    assert installed == {"fuse3", "ca-certificates"} | {row[1] for row in LIBRARIES.values()}
    for path in re.findall(r"\bcontrib/[\w./]+\w", DOCKERFILE):
        assert (ROOT / path).exists(), path
    assert "--device /dev/fuse" in DOCKERFILE
    assert "docker/Dockerfile" in text("contrib/containers.md")


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
def test_the_image_has_required_packages():
    """Each library that a program names is in a package of the table."""
    needed = set()
    for name in "betonfs", "beton", "mkfs.beton", "fsck.beton":
        needed |= set(re.findall(
            r"NEEDED.*\[(\S+?)\.so", subprocess.run(
                ["readelf", "-d", BUILD / name], capture_output=True,
                text=True, check=True).stdout))
    needed -= {"libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64"}
    needed = {n for n in needed if not n.endswith("san")}
    assert needed
    # Their packages are called otherwise.
    others = {"libz": "zlib"}
    for name in (others.get(n, n) for n in needed):
        assert [row for row in LIBRARIES.values()
                if row[1].replace("-", "").startswith(name)], name


def test_the_dev_container():
    of = json.loads(text(".devcontainer/devcontainer.json"))
    assert f'"{of["image"]}"' in text(".github/workflows/check.yml")
    assert of["onCreateCommand"].startswith("sh contrib/quickstart ")
    for option in of["onCreateCommand"].split()[2:]:
        assert f"{option})" in QUICKSTART
    assert "--device /dev/fuse --cap-add SYS_ADMIN" in " ".join(of["runArgs"])
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split()
    words = of["postCreateCommand"].split()
    assert words[0] == "make" and set(words[2:]) <= set(targets)


def test_setup_names_packages_of_the_quickstart():
    named = set(re.findall(r'"((?:lib|uthash)[\w-]*-dev)"', SETUP))
    assert named == {row[0] for row in LIBRARIES.values() if row[2]} | {
        "libc6-dev", "uthash-dev"}
    assert named | {"gcc", "make", "pkg-config"} <= packages()
    assert '"python3-dev"' in SETUP and "python3-dev" in packages(True)


def test_wheels_carry_all_libraries():
    table = re.search(r"^libraries='\n(.*?)^'", WHEELS, re.M | re.S)[1]
    rows = [[cell.strip() for cell in line.split("|")]
            for line in table.splitlines()]
    assert all(len(row) == 4 and row[3] for row in rows)
    carried = {row[2] for row in LIBRARIES.values() if row[2]}
    assert {row[0] for row in rows} == carried
    before = PYPROJECT["tool"]["cibuildwheel"]["linux"]["before-all"].split()
    assert {row[3] for row in LIBRARIES.values() if row[3]} | {
        "uthash-devel"} <= set(before)
    license = re.search(r"^license='([^']*)'", WHEELS, re.M)[1]
    assert license.startswith("Apache-2.0 AND ")
    assert re.search(r"^LICENSE = \"Apache-2.0\"$", SETUP, re.M), \
        "contrib/wheels/build replaces this line"


def test_wheels_name_the_packages_that_build_them():
    page = text("contrib/wheels/README.md")
    listed = re.search(r"apt-get install (.*?)\n\n", page, re.S)[1]
    listed = set(listed.replace("\\", " ").split())
    for tool in "cmake", "debootstrap", "gcc", "make", "nasm", "uthash-dev":
        assert tool in listed, tool


def test_python_versions_are_those_of_the_workflow():
    tested = set(re.findall(r'"(3\.\d+)"', text(".github/workflows/python.yml")))
    named = {c.rsplit(" ", 1)[1] for c in PYPROJECT["project"]["classifiers"]
             if re.search(r":: 3\.\d+$", c)}
    assert named == tested
