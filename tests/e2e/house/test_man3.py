# SPDX-License-Identifier: Apache-2.0
"""The manual pages of the C API, which contrib/man3 writes from the headers, and
the C programs of headers and pages: they compile, run on a dataset, and report
a missing file with one line and an exit status."""
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import dumped
from conftest import DEADLINE
from installed import CC, SANITIZER

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = sorted((ROOT / "include/beton").glob("*.h"))
DECLARED = re.compile(
    r"(?P<comment>/\*(?:(?!\*/).)*\*/)?\n(?P<prototype>BETON_API [^;{]*?"
    r"\b(?P<name>beton_\w+)\([^;]*;)", re.S)

Image = pytest.importorskip("PIL.Image")


def declared():
    return [(m["name"], m["comment"] or "", m["prototype"])
            for h in HEADERS for m in DECLARED.finditer(h.read_text())]


def parameters(prototype):
    """Names of the parameters."""
    inside = re.sub(r"\s+", " ", prototype[prototype.index("(") + 1:])
    return [re.sub(r"\W", "", part.split()[-1])
            for part in inside.rsplit(")", 1)[0].split(",")
            if part.strip() != "void"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    out = tmp_path_factory.mktemp("man3")
    subprocess.run([sys.executable, ROOT / "contrib/man3", out, *HEADERS],
                   check=True, timeout=DEADLINE)
    return {p.stem: p.read_text() for p in out.iterdir()}


@pytest.mark.parametrize("name, comment, prototype", declared(),
                         ids=[d[0] for d in declared()])
def test_every_function_is_described(pages, name, comment, prototype):
    """All parameters but the handle, and the return value."""
    assert comment.strip("/* \n").split(".")[0], "no summary"
    handle = {"loader", "ds", "w"}
    for parameter in parameters(prototype):
        assert parameter in handle or re.search(
            rf"\b{parameter}\b", comment), f"{parameter} is not described"
    if re.match(r"BETON_API int", prototype):
        assert "\n * Returns" in comment, "no return values"
    text = pages[name]
    assert f".Nm {name}\n.Nd " in text
    assert ".Sh DESCRIPTION\n" in text and ".Sh SEE ALSO\n" in text
    assert ".In beton/" in text and name in text.split(".Bd -literal")[1]


def test_no_page_is_left_over(pages):
    names = {d[0] for d in declared()}
    assert {p for p in pages if p not in names} == \
        {"beton_" + h.stem for h in HEADERS if h.stem != "beton"} | {"libbeton"}


def test_the_pages_are_well_formed(pages, tmp_path):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    for name, text in pages.items():
        (tmp_path / f"{name}.3").write_text(text)
    r = subprocess.run(["mandoc", "-Tlint", "-W", "warning",
                        *sorted(tmp_path.iterdir())], capture_output=True,
                       text=True, timeout=DEADLINE)
    assert r.stdout + r.stderr == ""


# --- programs ---

def of_header(path):
    """Lines of comments that begin with a tab."""
    lines = re.findall(r"^ \*(\t.*)?$", path.read_text().split("#ifndef")[0],
                       re.M)
    code = "\n".join(line.removeprefix("\t") for line in lines)
    return [code] if "int main(" in code else []


def of_page(path):
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", path.read_text(),
                        re.M | re.S)
    return [b.replace("\\e", "\\").replace("\\&", "") for b in blocks
            if "int main(" in b]


def of_markdown(path):
    blocks = re.findall(r"^```c\n(.*?)^```", path.read_text(), re.M | re.S)
    return [b for b in blocks if "int main(" in b]


def programs():
    found = []
    for pattern, read in (("include/beton/*.h", of_header),
                          ("*.md", of_markdown), ("contrib/**/*.md", of_markdown),
                          *((f"{top}/**/*.[1578]", of_page)
                            for top in ("fs", "loader"))):
        for path in sorted(ROOT.glob(pattern)):
            found += [pytest.param(code, id=f"{path.name}{i or ''}")
                      for i, code in enumerate(read(path))]
    return found


def compiled(code, tmp_path):
    source = tmp_path / "program.c"
    source.write_text(code)
    subprocess.run(
        [CC, "-Wall", "-Wextra", "-Werror", *SANITIZER, "-D_GNU_SOURCE",
         f"-I{ROOT}/include", source, "-o", tmp_path / "program",
         f"-L{BUILD}", "-lbeton", f"-Wl,-rpath,{BUILD}"], check=True,
        timeout=DEADLINE)
    return tmp_path / "program"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Arguments of the programs: a file that each of them reads or writes."""
    where = tmp_path_factory.mktemp("programs")
    data = dumped.photos(where / "p.beton", 33)
    jpeg = io.BytesIO()
    Image.new("RGB", (40, 30)).save(jpeg, "JPEG")
    (where / "p.jpg").write_bytes(jpeg.getvalue())
    return {"beton/loader.h": data.path, "beton/dataset.h": data.path,
            "beton/batch.h": data.path, "beton/image.h": where / "p.jpg",
            "beton/writer.h": where / "new.beton"}


def test_there_are_programs():
    assert len(programs()) >= 5


@pytest.mark.parametrize("code", programs())
def test_a_program_runs_also_without_its_file(code, files, tmp_path):
    program = compiled(code, tmp_path)
    header = re.search(r"<(beton/(?!beton)\w+\.h)>", code)
    missing = tmp_path / "none" / "x"
    if header:
        r = subprocess.run([program, files[header[1]]], capture_output=True,
                           text=True, timeout=DEADLINE)
        assert (r.returncode, r.stderr) == (0, ""), r.stderr
    r = subprocess.run([program, missing, missing, missing],
                       capture_output=True, text=True, timeout=DEADLINE) \
        if not header else \
        subprocess.run([program, missing], capture_output=True, text=True,
                       timeout=DEADLINE, cwd=tmp_path)
    assert r.returncode in (1, 2, 32), (r.returncode, r.stderr)
    assert r.stderr.count("\n") == 1 and os.fspath(tmp_path) in r.stderr
    r = subprocess.run([program], capture_output=True, text=True,
                       timeout=DEADLINE)
    assert r.returncode in (1, 2, 32) and r.stderr
