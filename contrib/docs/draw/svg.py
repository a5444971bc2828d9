# SPDX-License-Identifier: Apache-2.0
"""SVG for the pictures of the documentation.

A drawing is a card with a background of its own, so it is readable on a light and
on a dark page. It has a dark form for viewers that prefer dark colors.
"""
import argparse
import html
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
PICTURES = ROOT / "contrib/docs/pictures"

SANS = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', " \
       "monospace"

# Class: property, color on a light page, color on a dark one.
COLORS = {
    "page": ("fill", "#ffffff", "#0d1117"),
    "edge": ("stroke", "#d1d9e0", "#3d444d"),
    "panel": ("fill", "#f6f8fa", "#151b23"),
    "ink": ("fill", "#1f2328", "#f0f6fc"),
    "quiet": ("fill", "#59636e", "#9198a1"),
    "ours": ("fill", "#0969da", "#4493f8"),
    "theirs": ("fill", "#aab4bf", "#59636e"),
    "line": ("stroke", "#d1d9e0", "#3d444d"),
}


def number(value):
    """A coordinate: two digits after the point, and no zeros at its end."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def attributes(values):
    return "".join(
        f' {k.rstrip("_").replace("_", "-")}='
        f'"{html.escape(number(v) if isinstance(v, float) else str(v))}"'
        for k, v in values.items() if v is not None)


def element(name, content=None, **values):
    head = f"<{name}{attributes(values)}"
    return f"{head}/>" if content is None else f"{head}>{content}</{name}>"


def style(colors, rules):
    """The style sheet: `rules`, and for each color its light and dark form."""
    light, dark = ("\n".join(f".{name} {{ {row[0]}: {row[which]} }}"
                             for name, row in colors.items())
                   for which in (1, 2))
    return f"<style>\n{rules}\n{light}\n" \
           f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n</style>"


class Drawing:
    """Shapes on a card of a size in pixels.

    `title` describes the picture for readers that cannot see it. `colors` adds to
    COLORS or replaces a row, and `rules` adds to the style sheet.
    """

    def __init__(self, width, height, title, colors=(), rules=""):
        self.width, self.height, self.title = width, height, title
        self.colors = COLORS | dict(colors)
        self.rules = f"text {{ font-family: {SANS} }}\n" \
            f".mono {{ font-family: {MONO}; white-space: pre }}\n{rules}".strip()
        self.pieces = []

    def add(self, name, content=None, **values):
        self.pieces.append(element(name, content, **values))

    def box(self, x, y, width, height, class_, title=None, **more):
        """A rectangle; `title` appears under the pointer."""
        content = title and element("title", html.escape(title))
        self.add("rect", content, x=float(x), y=float(y), width=float(width),
                 height=float(height), class_=class_, **more)

    def line(self, x1, y1, x2, y2, class_="line", **more):
        self.add("line", x1=float(x1), y1=float(y1), x2=float(x2),
                 y2=float(y2), class_=class_, **more)

    def text(self, x, y, words, class_="ink", size=14, anchor=None, **more):
        """Words at a base line. anchor: start (default), middle or end."""
        self.add("text", html.escape(words, quote=False), x=float(x),
                 y=float(y), class_=class_, font_size=size, text_anchor=anchor,
                 **more)

    def __str__(self):
        edge = element("rect", x=0.5, y=0.5, width=self.width - 1,
                       height=self.height - 1, rx=6, class_="page edge")
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img">',
            element("title", html.escape(self.title)),
            style(self.colors, self.rules), edge, *self.pieces, "</svg>", ""])


def output_of(name, description):
    """Parse the command line of a script: the file to write, a path."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--out", type=pathlib.Path, default=PICTURES / name,
                   metavar="FILE", help=f"file to write (default: {name} in "
                   "contrib/docs/pictures)")
    return p.parse_args().out
