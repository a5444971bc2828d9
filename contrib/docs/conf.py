# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration. Sphinx reads the pages that `site` writes."""
import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ["BETON_SOURCE"])

project = "betonfs"
author = "the betonfs authors"
copyright = author
release = re.search(r"^VERSION := (\S+)", (ROOT / "Makefile").read_text(),
                    re.M)[1]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["pictures/*.md"]
source_suffix = {".md": "markdown"}
nitpicky = False
default_role = "code"
smartquotes = False
highlight_language = "none"

myst_heading_anchors = 3
myst_enable_extensions = []

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_param = False

html_theme = "furo"
html_title = f"betonfs {release}"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def links(line):
    """References to manual pages become links."""
    def change(m):
        page = f"man/{m[1]}.{m[2]}"
        if (HERE / f"{page}.md").exists():
            return f":doc:`{m[0]} </{page}>`"
        return m[0]

    return re.sub(r"(?<![\w`/-])([a-z][\w.-]*)\(([1-8])\)(?![\w`])", change,
                  line)


def escaped(line):
    """Without marks of reStructuredText that are none here, outside of code."""
    line = re.sub(r"(?<![^\s(\[])`([^`']+)'", r"``\1``", line)
    parts = re.split(r"(``.*?``|:\w+:`.*?`|`[^`]*`)", line)
    return "".join(p if i % 2 else re.sub(r"[*|]|_(?!\w)", r"\\\g<0>", p)
                   for i, p in enumerate(parts))


def docstring(app, what, name, obj, options, lines):
    """Our docstrings are text: an indented block after a blank line is code,
    except in sections such as Parameters, in the explanation of a word, and in
    the functions of betonfs.ops, whose blocks list parameters. A block after
    `::` is always code."""
    out, code, explains = [], False, False
    other = name.startswith("betonfs.ops.") and what == "function"
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", following):
            other = True
        indented = following.startswith("    ")
        out.append(line if code and (not line or line.startswith("    "))
                   or re.fullmatch(r"-{3,}", line) else links(escaped(line)))
        if line and not line.startswith("    "):
            code, explains = line.endswith("::"), indented
        elif not line and indented and not (code or other or explains):
            code = True
            if not next((p for p in reversed(out) if p), "").endswith("::"):
                out += [".. code-block:: python", ""]
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", docstring, priority=400)
