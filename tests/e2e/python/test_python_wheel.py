# SPDX-License-Identifier: Apache-2.0
"""The source distribution, and the wheel out of it and out of the tree: an
unprivileged user builds them as the README describes, and they load batches
without the source, the build and libbeton."""
import email
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import urllib.parse
import zipfile

import pytest

import make
from dumped import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEADLINE = 900
NOBODY = 65534
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package needs Python 3.11 or later, with its headers",
                allow_module_level=True)
for _module in "pip", "setuptools", "wheel", "venv", "ensurepip":
    if not importlib.util.find_spec(_module):
        pytest.skip(f"{_module} is not installed", allow_module_level=True)

# The parts of the stable ABI of 3.11 that the extension uses. Before you add a
# name, look it up in "C API Stability" of Python's documentation.
STABLE = """
PyBool_FromLong PyBool_Type PyBuffer_Release PyBytes_AsString
PyBytes_AsStringAndSize
PyBytes_FromStringAndSize PyCapsule_GetPointer PyCapsule_IsValid PyCapsule_New
PyDict_New PyDict_SetItemString PyErr_CheckSignals PyErr_Clear PyErr_Format
PyErr_NoMemory PyErr_Occurred PyErr_SetObject PyErr_SetString
PyEval_RestoreThread PyEval_SaveThread PyExc_BufferError PyExc_RuntimeError
PyExc_TypeError PyExc_ValueError PyFloat_AsDouble PyFloat_FromDouble
PyImport_ImportModule PyIndex_Check PyList_Append PyList_New PyLong_AsLongLong
PyLong_AsUnsignedLongLong PyLong_AsVoidPtr PyLong_FromLongLong
PyLong_FromUnsignedLong PyLong_FromUnsignedLongLong PyLong_FromVoidPtr
PyModuleDef_Init PyModule_AddStringConstant PyModule_AddType PyModule_GetState
PyNumber_Index PyObject_AsFileDescriptor PyObject_CallObject
PyObject_GetBuffer PyTuple_GetItem PyTuple_New
PyTuple_SetItem
PyTuple_Size PyTuple_Type PyType_FromModuleAndSpec PyType_GenericAlloc
PyType_GetFlags PyType_GetModuleState PyType_GetSlot PyUnicode_AsUTF8AndSize
PyUnicode_DecodeUTF8
PyUnicode_FSConverter PyUnicode_FromString _PyArg_ParseTupleAndKeywords_SizeT
_PyArg_ParseTuple_SizeT _PyObject_CallFunction_SizeT _PyObject_CallMethod_SizeT
_Py_BuildValue_SizeT
_Py_Dealloc _Py_FalseStruct _Py_NoneStruct _Py_TrueStruct
""".split()

PROGRAM = """
import json, sys
import betonfs
with betonfs.Loader(sys.argv[1], 4, order="sequential", tensors="numpy",
                    workers=1) as loader:
    batch = next(iter(loader))
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if ".so" in line}
    print(json.dumps([batch["label"].tolist(), betonfs.__version__,
                      sorted(files)]))
"""


@pytest.fixture(scope="module")
def place():
    """A directory that another user may use, and run(), as that user if
    possible, without variables of make or of a build."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="beton-wheel."))
    who = {}
    if not os.geteuid():
        os.chown(top, NOBODY, NOBODY)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    env = {k: os.environ[k] for k in ("PATH", "LANG", "CCACHE_DIR")
           if k in os.environ and not (who and k == "CCACHE_DIR")}
    env |= {"HOME": str(top), "TMPDIR": str(top),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(*command, fails=False, variables={}, **how):
        r = subprocess.run(list(map(str, command)), env=env | variables,
                           capture_output=True, text=True, timeout=DEADLINE,
                           **{"cwd": top, **who, **how})
        assert bool(r.returncode) == fails, \
            (command, r.stdout[-3000:], r.stderr[-3000:])
        return r.stderr if fails else r.stdout
    if who:
        try:
            run(sys.executable, "-c", "")
        except PermissionError:     # a Python in a user's home
            os.chown(top, 0, 0)
            who.clear()
    yield top, run
    shutil.rmtree(top)


# Files that a tree may contain, and a distribution must not.
STRAY = ("fs/id_rsa", "fs/base/util/notes.txt", "fs/base/util/log.c.orig", "fs/a.o",
         "loader/core.1234", "loader/run/ring/ring.c.rej", "loader/#ring.c#",
         "loader/.ring.c.swp", "include/beton/.token", "include/beton/beton.h~")

SDIST = "from setuptools import build_meta as b; b.build_sdist('..')"


def pip_wheel(place, source, into, **how):
    top, run = place
    said = run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation",
               "--no-deps", "--no-index", "-w", top / into, source, **how)
    return said if how.get("fails") else next((top / into).iterdir())


@pytest.fixture(scope="module")
def sdist(place):
    """The source distribution, and the copy of the tree that it was made of."""
    top, run = place
    source = top / "source"
    source.mkdir()
    for name in "fs", "include", "loader", "contrib/python":
        shutil.copytree(ROOT / name, source / name,
                        ignore=shutil.ignore_patterns("build", "*.egg-info"))
    shutil.copy2(ROOT / "Makefile", source)
    for name in STRAY:
        (source / name).write_text("private")
        (source / name).chmod(0o666)
    (source / "fs/passwd.c").symlink_to("/etc/passwd")
    (source / "fs/base/util").chmod(0o777)
    if os.stat(top).st_uid != os.geteuid():
        for folder, _, files in os.walk(source):
            for path in folder, *(os.path.join(folder, f) for f in files):
                os.chown(path, NOBODY, NOBODY)
    run(sys.executable, "-c", SDIST, cwd=source / "contrib/python")
    made, = (source / "contrib").glob("*.tar.gz")
    return pathlib.Path(shutil.move(made, top)), source


@pytest.fixture(scope="module")
def distributions(place, sdist):
    """The source distribution, a wheel of the tree and one of the source
    distribution. The wheels share objects, which a missing source or header would
    not let link or compile."""
    top, _ = place
    sdist, source = sdist
    build = {"BETON_BUILD": str(top / "objects")}
    of_tree = pip_wheel(place, source / "contrib/python", "wheels",
                        variables=build)
    shutil.rmtree(source)
    return sdist, of_tree, \
        pip_wheel(place, sdist, "of-sdist", variables=build)


@pytest.fixture(scope="module")
def wheel(distributions):
    return distributions[1]


def names(path):
    with zipfile.ZipFile(path) as z:
        return sorted(z.namelist())


def metadata(path):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as z:
            name, = (n for n in z.namelist() if n.endswith("/METADATA"))
            return email.message_from_bytes(z.read(name))
    with tarfile.open(path) as t:
        top = t.getnames()[0].split("/")[0]
        return email.message_from_bytes(t.extractfile(f"{top}/PKG-INFO").read())


def test_an_sdist_has_its_sources_and_nothing_else(sdist):
    sdist = sdist[0]
    with tarfile.open(sdist) as t:
        inside = [m for m in t.getmembers() if not m.isdir()]
    assert all(m.isfile() for m in inside)
    top = sdist.name.removesuffix(".tar.gz")
    paths = {m.name.removeprefix(top + "/") for m in inside}
    assert {"Makefile", "LICENSE", "README.md", "pyproject.toml", "setup.py",
            "src/module.c", "src/handle.h", "betonfs/ops.pyi",
            "betonfs/ffcv/_shim/ffcv/__init__.py"} <= paths
    tree = {str(p.relative_to(ROOT)) for name in ("fs", "include", "loader")
            for p in (ROOT / name).rglob("*.[ch]")}
    assert len(tree) > 500 and tree <= paths
    assert {p.split("/")[0] for p in paths if "/" in p} == {
        "fs", "include", "loader", "src", "betonfs", "betonfs.egg-info"}
    suffixes = {"c", "h", "1", "5", "7", "8", "html", "css", "map", "abi"}
    assert {p.rpartition(".")[2] for p in paths
            if p.startswith(("fs/", "include/", "loader/", "src/"))} <= suffixes
    assert not paths & {*STRAY, "fs/passwd.c"}


def test_an_sdist_depends_on_no_umask_and_no_user(sdist):
    with tarfile.open(sdist[0]) as t:
        assert {(m.isdir(), m.mode, m.uname, m.gname) for m in t} == {
            (True, 0o755, "root", "root"), (False, 0o644, "root", "root")}


def test_make_sdist_reports_a_failure(tmp_path):
    shutil.copy2(ROOT / "Makefile", tmp_path)
    (tmp_path / "contrib/python").mkdir(parents=True)
    r = subprocess.run(["make", "-C", tmp_path, "sdist", "PYTHON=/bin/false"],
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and "SDIST" not in r.stdout


def test_a_wheel_of_an_sdist_is_that_of_the_tree(distributions):
    _, of_tree, of_sdist = distributions
    assert of_tree.name == of_sdist.name
    assert names(of_tree) == names(of_sdist)
    assert any(n.endswith("LICENSE") for n in names(of_tree))


def test_metadata(distributions):
    readme = (ROOT / "contrib/python/README.md").read_text()
    for path in distributions:
        of = metadata(path)
        assert (of["Name"], of["Requires-Python"]) == ("betonfs", ">=3.11")
        assert f"betonfs-{of['Version']}" in path.name
        assert of["Description-Content-Type"] == "text/markdown"
        assert of.get_payload().strip() == readme.strip()
        assert (of["License-Expression"] or of["License"]) == "Apache-2.0"
        assert of["License-File"] == "LICENSE"
        # Old setuptools omit it in source distributions.
        if path.suffix == ".whl":
            needs = of.get_all("Requires-Dist")
            assert [n for n in needs if "extra ==" not in n] == ["numpy"]
            assert of.get_all("Provides-Extra") == ["ray", "ray-data"]
        classifiers = of.get_all("Classifier")
        assert "Operating System :: POSIX :: Linux" in classifiers
        # PEP 639: an expression excludes these.
        assert not [c for c in classifiers if c.startswith("License ::")]
        hosts = {urllib.parse.urlsplit(url.split(", ")[-1]).hostname
                 for url in of.get_all("Project-URL")}
        assert hosts == {"ffcv.io"}


def test_classifiers_exist(distributions):
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(metadata(distributions[1]).get_all("Classifier")) <= known


@pytest.mark.parametrize("variable,packages", [
    ("PKG_CONFIG", {"pkg-config", "libjpeg-dev", "libpng-dev",
                    "libjansson-dev", "liblz4-dev"}),
    ("CC", {"gcc", "libc6-dev", "uthash-dev"})])
def test_a_build_names_the_packages_it_misses(place, distributions, variable,
                                              packages):
    said = pip_wheel(place, distributions[0], "none", fails=True,
                     variables={variable: "/nonexistent"})
    line, = (x for x in said.splitlines() if "apt-get install" in x)
    assert set(line.split("install ")[1].split()) == packages


@pytest.mark.skipif(FREE_THREADED, reason="has no stable ABI")
def test_one_wheel_is_for_all_later_pythons(wheel, tmp_path):
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        assert {"betonfs/_beton.abi3.so", "betonfs/libbeton.so.0",
                "betonfs/py.typed", "betonfs/_beton.pyi",
                "betonfs/ffcv/_shim/ffcv/__init__.py"} <= set(z.namelist())
        z.extract("betonfs/_beton.abi3.so", tmp_path)
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", tmp_path / "betonfs/_beton.abi3.so"],
        capture_output=True, text=True, check=True).stdout.split()
    used = {s for s in symbols if s.startswith(("Py", "_Py"))}
    assert len(used) > 30 and used <= set(STABLE)


@pytest.mark.skipif(not FREE_THREADED, reason="has the stable ABI")
def test_a_free_threaded_wheel_is_for_one_python(wheel):
    this = "cp%d%d" % sys.version_info[:2]
    assert f"-{this}-{this}t-" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        extensions = [name for name in z.namelist() if "/_beton." in name
                      and name.endswith(".so")]
    assert extensions == ["betonfs/_beton"
                          + sysconfig.get_config_var("EXT_SUFFIX")]


def test_a_wheel_needs_nothing_else(place, wheel, tmp_path):
    top, run = place
    run(sys.executable, "-m", "venv", "--system-site-packages", top / "venv")
    python = top / "venv/bin/python"
    # If Python is a venv itself, its packages are not among the system's.
    where, = (top / "venv").glob("lib/python*/site-packages")
    (where / "numpy.pth").write_text(str(pathlib.Path(
        importlib.util.find_spec("numpy").origin).parents[1]))
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    data = make.numbers(tmp_path / "n.beton", 9)
    path = shutil.copy(data.path, top / "n.beton")
    os.chmod(path, 0o644)
    values, version, files = json.loads(run(python, "-c", PROGRAM, path))
    assert values == [0, 1, 2, 3]
    assert f"betonfs-{version}-" in wheel.name
    for name in "_beton", "libbeton", "libjpeg", "libjansson", "liblz4":
        of, = {pathlib.Path(f) for f in files if f"/{name}." in f}
        assert of.is_relative_to(top / "venv")
