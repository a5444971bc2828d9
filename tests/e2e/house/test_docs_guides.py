# SPDX-License-Identifier: Apache-2.0
"""Every code block of the pages of contrib/docs runs, and prints what the page
shows."""
import re
import textwrap

import pytest

import blocks
import package  # noqa: F401  skips where there is no package

DOCS = blocks.ROOT / "contrib/docs"
PAGES = sorted([*DOCS.glob("guides/*.md"), DOCS / "quickstart.md",
                *DOCS.glob("design/*.md"), DOCS / "install.md",
                DOCS / "index.md", DOCS / "faq.md", DOCS / "python-api.md"])
# Data of blocks that only show the shape of a program.
GIVEN = {"index.md": ["train"], "faq.md": ["train"],
         "python-api.md": ["train"], "orders.md": ["train"],
         "formats.md": ["train"]}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_every_block_runs(path, tmp_path):
    ran, reasons = blocks.run_page(path, tmp_path, GIVEN.get(path.name, ()))
    for reason in reasons:
        print("left out:", reason)
    if reasons and not ran:
        pytest.skip("; ".join(reasons))


def test_every_kind_of_block_is_one_that_runs():
    """A block without a language is text; any other language is a mistake."""
    for path in PAGES:
        kinds = re.findall(r"^```(\S+)", path.read_text(), re.M)
        assert set(kinds) <= {*blocks.KINDS, "{toctree}", "{eval-rst}"}, path


def test_the_guides_have_blocks():
    for path in DOCS.glob("guides/*.md"):
        assert len(blocks.blocks(path)) >= 1, path


# --- the runner itself -------------------------------------------------------


@pytest.mark.parametrize("expected, found, same", [
    ("0", "0", True), ("0", "1", False), ("abc", "abd", False),
    ("a ... z", "a b c z", True), ("a ... z", "a b c", False),
    ("...\nb", "x\ny\nb", True), ("...\nb", "x\ny", False),
    ("a\n...", "a", True), ("a", "a\nb", False), ("", "b", False),
    ("3 samples, 100 bytes, 1.0 s (99/s)", "3 samples, 7 bytes, 2.5 s (1/s)",
     True),
    ("3 samples, 100 bytes", "4 samples, 100 bytes", False),
    ("images/s       2582 (926 to 3878, 3 epochs)",
     "images/s      82 (6 to 38, 3 epochs)", True),
    ("images/s  2582", "images  2582", False)])
def test_output_is_compared(expected, found, same):
    assert blocks.matches(expected.splitlines(), found) == same


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.parametrize("kind, wrong", [
    ("console", "$ echo 1\n2"), ("console", "$ false"), ("sh", "false\ntrue"),
    ("python", "assert False"), ("c", "int main(void) { return x; }")])
def test_a_wrong_block_fails(tmp_path, kind, wrong):
    path = page(tmp_path, f"# A\n\n```{kind}\n{wrong}\n```\n")
    with pytest.raises(AssertionError, match="page.md:3"):
        blocks.run_page(path, tmp_path)


def test_blocks_share_a_directory(tmp_path):
    path = page(tmp_path, """\
        <!-- file: a.py -->
        ```python
        print("one")
        ```
        ```sh
        echo two >b
        ```
        ```console
        $ python3 a.py
        one
        $ cat b \\
        > b
        two
        two
        ```
        """)
    assert blocks.run_page(path, tmp_path) == (3, [])


def test_a_block_is_left_out_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setitem(blocks.NEEDS, "root", (lambda: False, "no root"))
    path = page(tmp_path, "<!-- needs: root -->\n```sh\nfalse\n```\n")
    assert blocks.run_page(path, tmp_path) == (0, ["page.md:2: no root"])
