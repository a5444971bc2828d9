# SPDX-License-Identifier: Apache-2.0
"""Print what betonfs.convert reads of sources, in the form of columns.py.

    rows.py STEP SOURCE...

reads each STEPth row, three times in blocks of different numbers of rows. test_columns.py
runs it in an interpreter that has the libraries, with the package in its path."""
import struct
import sys

from betonfs.convert import _block
from betonfs.convert._kinds import opened
from betonfs.convert._source import Options


def values_of(column):
    """The values of a column of a block, as texts."""
    if isinstance(column, _block.Ints):
        return [str(int(v)) for v in column.values]
    if isinstance(column, _block.Reals):
        return [struct.pack(">d", v).hex() for v in column.values]
    files = column.files if isinstance(column, _block.Pixels) else column
    data = b"".join(bytes(b) for b in files.buffers)
    ends = [int(end) for end in files.offsets]
    texts = [data[a:b].hex() for a, b in zip(ends, ends[1:])]
    if isinstance(column, _block.Pixels):
        texts = ["x".join(str(int(n)) for n in size) + ":" + text
                 if size[2] else text
                 for size, text in zip(column.sizes, texts)]
    return texts


def line_of(column):
    parts = [column.name, column.type]
    if column.type == "array":
        parts += [column.dtype, *map(str, column.shape)]
    parts += column.classes
    if column.refused:
        parts.append("refused: " + column.refused)
    return " ".join(parts)


def place_of(source, number):
    """As mkfs.beton's messages have it."""
    path, first = [part for part in source.parts if part[1] <= number][-1]
    return f"{path}, {source.unit} {number - first}"


def read(source, columns, block, step):
    for first in range(0, len(source), block):
        rows = [i for i in range(first, min(first + block, len(source)))
                if i % step == 0]
        if not rows:
            continue
        found, errors = source.read(columns, rows)
        texts = [values_of(column) for column in found]
        for i, number in enumerate(rows):
            if i in errors:
                yield f"error {place_of(source, number)}: {errors[i]}"
            else:
                yield "".join(column[i] + " " for column in texts)


def main():
    step = int(sys.argv[1])
    source = opened(sys.argv[2:], Options(pictures=".jpg"))
    good = [column for column in source.columns if not column.refused]
    print(type(source).__name__.lower(), len(source))
    for column in source.columns:
        print(line_of(column))
    lines = [list(read(source, good, block, step)) for block in (64, 7, 1000)]
    assert lines[0] == lines[1] == lines[2]
    print("\n".join(lines[0]))
    source.close()


if __name__ == "__main__":
    main()
