# SPDX-License-Identifier: Apache-2.0
"""The documentation site builds without a warning, none of its links is dead, its
messages are those of the programs, and its questions have answers."""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

import dumped

BUILD = dumped.BUILD
ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = ROOT / "contrib/docs"
SITE = DOCS / "site"
MANUALS = [p for folder in ("fs", "loader")
           for p in (ROOT / folder).rglob("*.[1578]")]


BOXES = "div", "section", "article", "table", "aside", "pre", "dl"


class Page(html.parser.HTMLParser):
    """Links, anchors and the text of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.text, self.hidden = [], set(), [], 0
        self.open, self.crossed = [], []
        self.feed(path.read_text())
        self.text = " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found.get("id"), found.get("name")}
        self.links += [found[a] for a in ("href", "src") if found.get(a)]
        self.hidden += tag in ("script", "style")
        if tag in BOXES:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")
        if tag in BOXES and (not self.open or self.open.pop() != tag):
            self.crossed.append((tag, self.getpos()))

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)


def build(out, **env):
    return subprocess.run([sys.executable, SITE, "--out", out, BUILD],
                          capture_output=True, text=True, timeout=600,
                          env={**os.environ, **env})


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    import package  # noqa: F401  skips where there is no package
    out = tmp_path_factory.mktemp("site")
    r = build(out)
    if "not found; install the packages" in r.stderr:
        pytest.skip(r.stderr.strip())
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")
    return out / "html"


@pytest.fixture(scope="module")
def pages(site):
    return {p.relative_to(site): Page(p) for p in site.rglob("*.html")}


def test_every_page_is_there(pages):
    there = {str(p.with_suffix("")) for p in pages}
    for path in DOCS.rglob("*.md"):
        name = str(path.relative_to(DOCS).with_suffix(""))
        assert name in there or name.startswith("pictures/"), name
    for path in [*MANUALS, *(BUILD / "man/man3").glob("*.3")]:
        assert f"man/{path.name}" in there, path
    for name in ("python", "migration", "cluster", "containers", "examples",
                 "hacking"):
        assert name in there


def test_no_link_is_dead(pages, site):
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            target = urllib.parse.urlsplit(link)
            if target.scheme or link.startswith("//"):
                assert target.scheme in ("https", "http", "mailto", "data")
                continue
            name = urllib.parse.unquote(target.path)
            to = pathlib.Path(os.path.normpath(path.parent / name)) \
                if name else path
            assert (site / to).exists(), (path, link)
            anchor = urllib.parse.unquote(target.fragment)
            if to in pages and anchor and to.name != "genindex.html":
                assert anchor in pages[to].ids, (path, link)
            checked += 1
    assert checked > 2000


def test_boxes_are_closed(pages):
    """Otherwise the parts of a page stand beside each other."""
    for path, page in pages.items():
        assert not page.crossed and not page.open, path


def test_references_to_manual_pages_are_links(pages):
    """On a page of contrib/docs, each mention of one of our pages."""
    ours = {f"{p.stem}({p.suffix[1:]})" for p in MANUALS}
    linked = 0
    for path in (DOCS / "faq.md", DOCS / "guides/memory.md",
                 DOCS / "reference.md", DOCS / "questions.md"):
        page = pages[path.relative_to(DOCS).with_suffix(".html")]
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.S)
        for name in set(re.findall(r"[\w.-]+\([1-8]\)", text)) & ours:
            file = name.replace("(", ".").replace(")", ".html")
            assert any(link.endswith(f"man/{file}") for link in page.links), \
                (path, name)
            linked += 1
    assert linked > 30


@pytest.mark.parametrize("path", MANUALS, ids=lambda p: p.name)
def test_a_manual_page_is_complete(pages, path):
    """Every heading, and the first words of every paragraph of plain text."""
    page = pages[pathlib.Path(f"man/{path.name}.html")]
    text = path.read_text()
    for name in re.findall(r"^\.S[hs] ([\w -]+)$", text, re.M):
        assert name.lower() in page.text.lower(), name
    words = [line.split()[:4] for line in
             re.findall(r"^\.Pp\n([A-Z][\w ,]+)$", text, re.M)]
    for four in words:
        assert " ".join(four) in page.text, four


def test_the_site_loads_nothing_from_the_network(pages, site):
    """Styles, scripts and pictures are files of the site."""
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r'<(?:script|img)[^>]*src="(?:https?:)?//', text)
        assert not re.search(r'<link[^>]*rel="stylesheet"[^>]*'
                             r'href="(?:https?:)?//', text), path


def test_the_theme_is_complete(site):
    """Dark colors follow the system, and the scripts are no modules, which a
    browser does not load from a file."""
    style = (site / "_static/styles/furo.css").read_text()
    assert "prefers-color-scheme" in style and "@import" not in style
    assert style.count("{") == style.count("}")
    for script in (site / "_static/scripts").glob("furo*.js"):
        assert not re.search(r"^import ", script.read_text(), re.M), script


def test_only_files_of_the_repository_become_pages(pages):
    """A path such as /etc/fstab is a file of the machine."""
    assert "/etc/fstab" in pages[pathlib.Path("install.html")].text
    for path in pages:
        if path.parts[0] == "source":
            assert not path.name.startswith("-"), path


def test_the_python_page_has_no_raw_markup(pages):
    text = pages[pathlib.Path("python-api.html")].text
    for mark in "``", "\\|", "\\*", "`", ":func:", "Type:", "TYPE:":
        assert mark not in text, text[text.index(mark) - 60:][:90]


def test_the_search_finds_words_of_manual_pages(site):
    index = (site / "searchindex.js").read_text()
    for word in ("amplif", "fusermount3", "rand_aug"):
        assert word in index, word


def test_the_python_page_has_every_name(pages):
    from package import betonfs
    page = pages[pathlib.Path("python-api.html")]
    for name in betonfs.__all__:
        if name not in ("__version__", "ops"):
            assert f"betonfs.{name}" in page.ids, name
    for row in (ROOT / "loader/pipeline/ops").glob("*.c"):
        assert re.search(rf"\b{row.stem}\b", page.text), row


def test_the_reference_leads_to_every_manual_page():
    text = (DOCS / "reference.md").read_text() + \
        (DOCS / "glossary.md").read_text()
    for path in MANUALS:
        assert f"{path.stem}({path.suffix[1:]})" in text, path


def test_a_dead_link_ends_the_build(tmp_path):
    """Before Sphinx begins, so that this needs only mandoc."""
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(
        "build*", ".git", "__pycache__", "*.c", "*.h", "corpus"))
    page = tree / "contrib/docs/faq.md"
    page.write_text(page.read_text() + "\nSee [this](missing.md).\n")
    r = subprocess.run([sys.executable, tree / "contrib/docs/site", "--out",
                        tmp_path / "out", BUILD], capture_output=True,
                       text=True, timeout=600)
    if "not found; install the packages" in r.stderr:
        pytest.skip(r.stderr.strip())
    assert r.returncode == 1
    assert r.stderr == "contrib/docs/site: no file contrib/docs/missing.md\n"


def test_without_sphinx_it_names_the_packages(tmp_path):
    """An interpreter without the packages, and no other one."""
    text = SITE.read_text().replace("/usr/bin/python3", "/nonexistent")
    copy = tmp_path / "a/b/c/site"
    copy.parent.mkdir(parents=True)
    copy.write_text(text)
    r = subprocess.run([sys.executable, "-S", "-E", copy, BUILD],
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 1
    assert "python3-sphinx python3-myst-parser furo" in r.stderr
    quickstart = (ROOT / "contrib/quickstart").read_text()
    for name in re.search(r"packages (python3-sphinx[^,]*),", r.stderr)[1].split():
        assert name in quickstart, name


# --- messages ----------------------------------------------------------------


def sources():
    """The texts of the programs, adjacent strings joined."""
    files = [p for folder in ("fs", "loader", "contrib/python")
             for kind in ("*.c", "*.h", "*.py")
             for p in (ROOT / folder).rglob(kind)]
    text = "\n".join(p.read_text() for p in files if "build" not in p.parts)
    return re.sub(r'"\s*\n\s*f?"', "", text)


SOURCES = sources()
MESSAGES = re.findall(r"^### `(.*)`$", (DOCS / "faq.md").read_text(), re.M)


def in_sources(message):
    """Its constant parts, with conversions such as %s between them."""
    gap = r"(?:[^\"\n%]{0,4}(?:%[^\"\n ]{1,6}|\{[^\"\n}]*\})[^\"\n%]{0,4})+"
    parts = [re.escape(p) for p in re.split(r" ?\.\.\. ?", message) if p]
    return bool(re.search(f"(?:{gap}|[^\"\n]*)".join(parts), SOURCES))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_programs(message):
    assert len(message.replace("...", "")) > 10
    assert in_sources(message)


def test_messages_are_looked_for():
    assert len(MESSAGES) > 20
    assert not in_sources("the mount is gone: ...; waiting up to ... years")
    assert not in_sources("no such message exists in betonfs")


def test_every_message_has_its_remedy():
    parts = re.split(r"^### .*\n", (DOCS / "faq.md").read_text(), flags=re.M)
    for part in parts[1:]:
        assert len(re.split(r"^## ", part, flags=re.M)[0].split()) > 12, part


# --- the pages as texts ------------------------------------------------------


def test_questions_have_answers():
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$",
                      (DOCS / "questions.md").read_text(), re.M)
    assert len(rows) >= 20
    for question, answer in rows:
        assert "](" in answer or re.search(r"\([1-8]\)", answer), question


@pytest.mark.parametrize("path", sorted(
    p for p in DOCS.rglob("*.md") if p.parent.name != "pictures"),
    ids=lambda p: p.stem)
def test_a_page_begins_for_a_newcomer(path):
    """A title, then a paragraph of two sentences or more that has the word that
    this project is about."""
    text = path.read_text()
    assert re.match(r"# \S", text)
    first = text.split("\n\n")[1]
    assert re.search(r"\b(betonfs|mkfs\.beton|beton)\b", first), first
    assert len(re.findall(r"\.(?:\s|$)", first)) >= 2 or \
        path.name == "index.md", first
    assert re.search(r"\b[Tt]his\s+(?:page|guide|site)\b", first), first
    guide = path.parent.name == "guides"
    lines = text.splitlines()
    assert not guide or any(line.startswith(("    ", "```"))
                            for line in lines[:12]), path
