#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that no circle of files is larger than two, by the symbols of objects.

    circles.py [BUILD [SOURCES]]

A file depends on each file that defines a symbol which its object refers to.
The circles are the strongly connected components of that graph. Includes do
not show them: a table of rows and the helpers of these rows in one file are a
circle of that file with each row. Cut it by a file for the table.
"""
import pathlib
import re
import subprocess
import sys

SIZE = 2


def objects(build, sources):
    """Objects whose source file is there: path of the object -> the file. A
    build directory may have objects of files that were moved."""
    found = {}
    for path in sorted(build.rglob("*.o")):
        name = re.sub(r"^kernels/\w+/", "", str(path.relative_to(build)))[:-2]
        if name.startswith(("fs/", "loader/", "contrib/python/")) and \
                (sources / f"{name}.c").exists():
            found[str(path)] = name
    return found


def graph(found):
    """File -> files that it refers to."""
    text = subprocess.run(["nm", "-A", "-P", *found], text=True, check=True,
                          capture_output=True).stdout
    defined, wanted = {}, {name: set() for name in found.values()}
    for line in text.splitlines():
        path, _, rest = line.partition(": ")
        symbol, kind = rest.split()[:2]
        if kind == "U":
            wanted[found[path]].add(symbol)
        elif kind in "TDBRVWC":
            defined.setdefault(symbol, found[path])
    return {name: {defined[s] for s in symbols if s in defined} - {name}
            for name, symbols in wanted.items()}


def circles(edges):
    """The strongly connected components, by Tarjan's algorithm."""
    number, low, stack, out = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for to in sorted(edges[node]):
            if to not in number:
                visit(to)
            if to in stack:
                low[node] = min(low[node], low[to])
        if low[node] == number[node]:
            at = stack.index(node)
            out.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return out


def main():
    build, sources = (pathlib.Path(p) for p in (sys.argv[1:] + ["build", "."][len(sys.argv) - 1:]))
    sys.setrecursionlimit(10000)
    large = [c for c in circles(graph(objects(build, sources))) if len(c) > SIZE]
    for circle in large:
        print(f"a circle of {len(circle)} files by symbols: {' '.join(circle)}")
    return bool(large)


if __name__ == "__main__":
    sys.exit(main())
