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
highlight_language = "none"

myst_heading_anchors = 3
myst_enable_extensions = []

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = True
napoleon_google_docstring = False

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
    parts = re.split(r"(``.*?``|:\w+:`.*?`|`[^`]*`)", line)
    return "".join(p if i % 2 else re.sub(r"[*|]|_(?!\w)", r"\\\g<0>", p)
                   for i, p in enumerate(parts))


def docstring(app, what, name, obj, options, lines):
    """Our docstrings are text: an indented block is code, except in sections
    such as Parameters and in the functions of betonfs.ops, whose blocks list
    parameters."""
    out, code, sections = [], False, False
    is_op = name.startswith("betonfs.ops.") and what == "function"
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        sections = sections or bool(re.fullmatch(r"-{3,}", following))
        if line and not line.startswith("    "):
            code = False
        elif line and not (code or sections or is_op) and out \
                and not out[-1].endswith("::") and not out[-1]:
            previous = next((p for p in reversed(out) if p), "")
            code = True
            if not previous.endswith("::"):
                out += [".. code-block:: python", ""]
        is_text = not code and not re.fullmatch(r"-{3,}", line)
        out.append(links(escaped(line)) if is_text else line)
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", docstring, priority=400)
