#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that a name of a struct leads to one place.

    names.py [DIRECTORY]

ctags, cscope and gdb look a struct up by its name. A struct in a header
carries the noun of its room, so that no two headers define the same one. Few
names are defined in a source file and in another file, too.
"""
import collections
import pathlib
import re
import sys

# Names that two headers define. This list only shrinks.
IN_HEADERS: set[str] = set()
# Names that several files define. This number only shrinks.
TWICE_MAX = 14


def definitions(root):
    """Name of a struct -> files that define it."""
    found = collections.defaultdict(list)
    for directory in "fs", "loader":
        for path in sorted((root / directory).rglob("*.[ch]")):
            for name in set(re.findall(r"^struct (\w+) \{", path.read_text(), re.M)):
                found[name].append(str(path.relative_to(root)))
    return found


def findings(root):
    twice = {name: files for name, files in definitions(root).items() if len(files) > 1}
    headers = {name for name, files in twice.items()
               if sum(f.endswith(".h") for f in files) > 1}
    for name in sorted(headers - IN_HEADERS):
        yield f"struct {name} is defined in several headers: {' '.join(twice[name])}"
    for name in sorted(IN_HEADERS - headers):
        yield f"tests/lint/names.py: remove {name} from IN_HEADERS"
    if len(twice) > TWICE_MAX:
        yield (f"{len(twice)} structs have a name that another file uses, {TWICE_MAX} at most: "
               + " ".join(sorted(twice)))


def main():
    found = list(findings(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
