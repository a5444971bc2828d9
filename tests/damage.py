# SPDX-License-Identifier: Apache-2.0
"""Named damages: edits of a good dataset, and what must come of them.

An edit is a function of the dataset (tests/e2e/make.py), which has the offset
of every value, and of its bytes. The expected outcome is one of

REFUSED              nothing opens it, and one line contains the reason
HARMLESS             everything reads as if nothing had happened
hurts(*values)       these values are errors, all others are true
undecodable(sample)  its bytes are there, but they are no image
ANYTHING             refused or not, but no crash and no hang
"""
import random
import struct
from collections import namedtuple

Damage = namedtuple("Damage", "name edit outcome")
Outcome = namedtuple("Outcome", "kind values", defaults=(frozenset(),))

REFUSED, HARMLESS, ANYTHING = map(Outcome, ("refused", "harmless", "anything"))

# Samples of tests/e2e/dumped.py: 5 has a JPEG image, 7 a raw one.
JPEG, RAW = 5, 7


def hurts(*values):
    return Outcome("hurts", frozenset(values))


def undecodable(sample):
    return Outcome("undecodable", frozenset([(sample, "image")]))


# --- edits ---

def le(size, *numbers):
    return b"".join((n & 256 ** size - 1).to_bytes(size, "little")
                    for n in numbers)


def write(bytes_, where, data):
    bytes_[where:where + len(data)] = data


def at(where, data):
    """Other bytes at a place of the file."""
    return lambda d, b: write(b, where, data)


def descriptor(field, where, data):
    return at(24 + 1041 * field + where, data)


def meta(sample, field, where, data):
    """In the metadata of a value."""
    return lambda d, b: write(b, d.where(sample, field) + where, data)


def pointer(sample, field, to):
    """`to`: a number, or a function of the dataset."""
    skip = 5 if field == "image" else 0

    def edit(d, b):
        n = to(d) if callable(to) else to
        write(b, d.where(sample, field) + skip, le(8, n))
    return edit


def entry(sample, field, where, number):
    """In the table's entry of a value: 8 its offset, 16 its size."""
    def edit(d, b):
        k = [e[:2] for e in d.table].index((sample, d.place[sample, field]))
        write(b, table(d) + 24 * k + where, le(8, number))
    return edit


def payload(sample, field, where, data):
    return lambda d, b: write(b, d.place[sample, field] + where, data)


def cut(where):
    """`where`: a number, or a function of the dataset."""
    def edit(d, b):
        del b[where(d) if callable(where) else where:]
    return edit


def append(data):
    return lambda d, b: b.extend(data)


def table(d):
    return struct.unpack("<Q", open(d.path, "rb").read(24)[16:])[0]


def entries(change):
    """Another order or other content of the table's entries."""
    def edit(d, b):
        start = table(d)
        rows = [bytes(b[k:k + 24]) for k in range(start, len(b), 24)]
        b[start:] = b"".join(change(rows))
    return edit


def shuffled(rows):
    return random.Random(1).sample(rows, len(rows))


def shape(field, *dims):
    return descriptor(field, 17, le(8, *dims))


def dtype(field, text, size=None):
    return descriptor(field, 17 + 256, le(8, len(text) if size is None
                                          else size) + text)


def header(**of):
    where = {"version": (0, 2), "fields": (2, 2), "page": (4, 4),
             "samples": (8, 8), "table": (16, 8)}
    (name, number), = of.items()
    offset, size = where[name]

    def edit(d, b):
        n = number(d) if callable(number) else number
        write(b, offset, le(size, n))
    return edit


def all_images(d, mode):
    return hurts(*((i, "image") for i in range(len(d.values))
                   if d.values[i]["image"].mode == mode))


def sof(width, height):
    """The size in the JPEG header of sample JPEG."""
    def edit(d, b):
        start = b.index(b"\xff\xc0", d.place[JPEG, "image"])
        write(b, start + 5, struct.pack(">HH", height, width))
    return edit


# Fields of the dataset by number.
IMAGE, LABEL, SCORE, BLOB, META, VEC, TENS = range(7)

MAX = 2 ** 64 - 1

# Where no one value is hurt but a whole kind: worked out per dataset.
ALL_JPEG = "all jpeg"

DAMAGES = [Damage(*row) for row in (
    # The file as a whole.
    ("nothing at all", cut(0), REFUSED),
    ("one byte", cut(1), REFUSED),
    ("a byte less than a header", cut(23), REFUSED),
    ("a header alone", cut(24), REFUSED),
    ("ends inside the descriptors", cut(24 + 1041 * 3), REFUSED),
    ("ends inside the metadata", cut(lambda d: d.meta + 100), REFUSED),
    ("ends inside the pages", cut(lambda d: d.first_page + 100), REFUSED),
    ("ends a byte before the table", cut(lambda d: table(d) - 1), REFUSED),
    ("ends where the table begins", cut(table), ALL_JPEG),
    ("ends inside the table", cut(lambda d: table(d) + 24 * 30), ANYTHING),
    ("ends inside an entry", cut(lambda d: table(d) + 24 * 30 + 7), ANYTHING),
    ("23 bytes too many", append(b"\xff" * 23), HARMLESS),
    ("a second table behind the first", append(bytes(2400)), HARMLESS),
    ("zeros all over", lambda d, b: write(b, 0, bytes(len(b))), REFUSED),
    ("ones all over", lambda d, b: write(b, 0, b"\xff" * len(b)), REFUSED),
    ("another kind of file", at(0, b"PK\3\4"), REFUSED),

    # The header.
    ("version 0", header(version=0), REFUSED),
    ("version 3", header(version=3), REFUSED),
    ("version in the other byte order", header(version=512), REFUSED),
    ("no fields", header(fields=0), REFUSED),
    ("as many fields as fit", header(fields=65535), REFUSED),
    ("a field less", header(fields=6), ANYTHING),
    ("a field more", header(fields=8), ANYTHING),
    ("pages of no bytes", header(page=0), REFUSED),
    ("pages of one byte", header(page=1), REFUSED),
    ("pages of three blocks", header(page=3 << 12), REFUSED),
    ("pages of 2 GiB", header(page=1 << 31), REFUSED),
    ("pages of all ones", header(page=2 ** 32 - 1), REFUSED),
    ("pages half as large", header(page=1 << 15), ANYTHING),
    ("pages twice as large", header(page=1 << 17), ANYTHING),
    ("no samples", header(samples=0), ANYTHING),
    ("half the samples", header(samples=12), ANYTHING),
    ("a sample more", header(samples=25), ANYTHING),
    ("more samples than the file holds", header(samples=10 ** 6), REFUSED),
    ("more samples than there are", header(samples=2 ** 36 + 1), REFUSED),
    ("samples that wrap around", header(samples=2 ** 61), REFUSED),
    ("samples of all ones", header(samples=MAX), REFUSED),
    ("an unfinished file", header(table=0), REFUSED),
    ("the table past the end", header(table=1 << 40), REFUSED),
    ("the table at the sign bit", header(table=1 << 63), REFUSED),
    ("the table at all ones", header(table=MAX), REFUSED),
    ("the table inside the descriptors", header(table=500), REFUSED),
    ("the table inside the metadata", header(table=lambda d: d.meta + 24),
     REFUSED),
    ("the table inside a page", header(table=lambda d: d.first_page + 24),
     REFUSED),
    ("the table a byte late", header(table=lambda d: table(d) + 1), REFUSED),

    # The descriptors.
    ("an unknown type", descriptor(LABEL, 0, b"\x07"), REFUSED),
    ("the last unknown type", descriptor(LABEL, 0, b"\xfe"), REFUSED),
    ("a number turned custom", descriptor(LABEL, 0, b"\xff"), ANYTHING),
    ("an image turned number", descriptor(IMAGE, 0, b"\x01"), ANYTHING),
    ("bytes turned array", descriptor(BLOB, 0, b"\x04"), REFUSED),
    ("bytes turned image", descriptor(BLOB, 0, b"\x02"), ANYTHING),
    ("a name that is not ASCII", descriptor(LABEL, 1, b"\xc3\xa4"), REFUSED),
    ("a name of all ones", descriptor(LABEL, 1, b"\xff" * 16), REFUSED),
    ("a name of slashes and lines", descriptor(LABEL, 1, b"../\n\x1b/"),
     ANYTHING),
    ("no name", descriptor(LABEL, 1, bytes(16)), ANYTHING),
    ("two fields of one name", descriptor(SCORE, 1, b"label"), ANYTHING),
    ("arrays larger than pages", shape(VEC, 1 << 20, 1), REFUSED),
    ("arrays whose size wraps", shape(VEC, 1 << 63, 1 << 63), REFUSED),
    ("arrays of 32 dimensions", shape(TENS, *[1] * 32), ANYTHING),
    ("arrays of no bytes", shape(TENS, 0, 5), ANYTHING),
    ("no dtype", dtype(VEC, b"", 0), REFUSED),
    ("a dtype of unknown kind", dtype(VEC, b'[["", "<q4"]]'), REFUSED),
    ("a dtype of objects", dtype(VEC, b'[["", "|O"]]'), REFUSED),
    ("a structured dtype", dtype(VEC, b'[["a", "<f4"], ["b", "<f4"]]'),
     REFUSED),
    ("a dtype that is no JSON", dtype(VEC, b"<f4"), REFUSED),
    ("a dtype longer than its place", dtype(VEC, b"[[", 761), REFUSED),
    ("a dtype of endless length", dtype(VEC, b"[[", MAX), REFUSED),

    # The metadata.
    ("an image mode of 2", meta(JPEG, "image", 0, b"\x02"),
     hurts((JPEG, "image"))),
    ("an image mode of 255", meta(RAW, "image", 0, b"\xff"),
     hurts((RAW, "image"))),
    ("a raw image called JPEG", meta(RAW, "image", 0, b"\x00"), ANYTHING),
    ("a JPEG image called raw", meta(JPEG, "image", 0, b"\x01"), ANYTHING),
    ("an image without width", meta(JPEG, "image", 1, le(2, 0)),
     hurts((JPEG, "image"))),
    ("an image without height", meta(RAW, "image", 3, le(2, 0)),
     hurts((RAW, "image"))),
    ("a raw image of 12 GB", meta(RAW, "image", 1, b"\xff" * 4),
     hurts((RAW, "image"))),
    ("a JPEG image of other width", meta(JPEG, "image", 1, le(2, 9)),
     undecodable(JPEG)),
    ("an image in the header", pointer(JPEG, "image", 0),
     hurts((JPEG, "image"))),
    ("a raw image in the metadata", pointer(RAW, "image", lambda d: d.meta),
     hurts((RAW, "image"))),
    ("an image at all ones", pointer(JPEG, "image", MAX),
     hurts((JPEG, "image"))),
    ("a raw image whose end wraps", pointer(RAW, "image", MAX - 100),
     hurts((RAW, "image"))),
    ("a raw image in the table", pointer(RAW, "image", table),
     hurts((RAW, "image"))),
    ("a raw image a byte before the table",
     pointer(RAW, "image", lambda d: table(d) - 1), hurts((RAW, "image"))),
    ("a raw image across two pages",
     pointer(RAW, "image", lambda d: d.first_page + d.page_size - 5),
     hurts((RAW, "image"))),
    ("an image a byte off",
     pointer(JPEG, "image", lambda d: d.place[JPEG, "image"] + 1),
     hurts((JPEG, "image"))),
    ("an image at another's place",
     pointer(JPEG, "image", lambda d: d.place[9, "image"]), ANYTHING),
    ("bytes in the header", pointer(3, "blob", 4), hurts((3, "blob"))),
    ("bytes of endless size", meta(3, "blob", 8, le(8, MAX)),
     hurts((3, "blob"))),
    ("bytes of 8 EiB", meta(3, "blob", 8, le(8, 1 << 63)),
     hurts((3, "blob"))),
    ("bytes larger than a page", meta(3, "blob", 8, le(8, (1 << 16) + 1)),
     hurts((3, "blob"))),
    ("JSON in the header", pointer(3, "meta", 4), hurts((3, "meta"))),
    ("JSON of endless size", meta(3, "meta", 8, le(8, MAX)),
     hurts((3, "meta"))),
    ("JSON without its NUL", meta(3, "meta", 8, le(8, 0)), ANYTHING),
    ("an array in the header", pointer(3, "vec", 4), hurts((3, "vec"))),
    ("a tensor whose end wraps", pointer(3, "tens", MAX - 3),
     hurts((3, "tens"))),
    ("a sample of all ones",
     lambda d, b: write(b, d.meta + 6 * d.record.itemsize,
                        b"\xff" * d.record.itemsize), ANYTHING),
    ("no metadata at all",
     lambda d, b: write(b, d.meta, bytes(d.meta_end - d.meta)), ANYTHING),

    # The allocation table.
    ("a table of zeros", entries(lambda rows: [bytes(24)] * len(rows)),
     ALL_JPEG),
    ("a table of ones", entries(lambda rows: [b"\xff" * 24] * len(rows)),
     ALL_JPEG),
    ("a table back to front", entries(lambda rows: rows[::-1]), HARMLESS),
    ("a shuffled table", entries(shuffled), HARMLESS),
    ("every entry twice", entries(lambda rows: rows + rows), HARMLESS),
    ("entries of wrong samples",
     entries(lambda rows: [b"\xff" * 8 + r[8:] for r in rows]), HARMLESS),
    ("an image of no bytes", entry(JPEG, "image", 16, 0),
     hurts((JPEG, "image"))),
    ("an image of endless size", entry(JPEG, "image", 16, MAX),
     hurts((JPEG, "image"))),
    ("an image larger than a page", entry(JPEG, "image", 16, 1 << 20),
     hurts((JPEG, "image"))),
    ("an image that no entry contains", entry(JPEG, "image", 8, 77),
     hurts((JPEG, "image"))),
    ("an image cut short", entry(JPEG, "image", 16, 30), undecodable(JPEG)),

    # The pages.
    ("an image of zeros", payload(JPEG, "image", 0, bytes(300)),
     undecodable(JPEG)),
    ("an image that is text", payload(JPEG, "image", 0, b"no image, sorry"),
     undecodable(JPEG)),
    ("a JPEG of no pixels", sof(0, 0), undecodable(JPEG)),
    ("a JPEG of 65535 by 65535", sof(65535, 65535), undecodable(JPEG)),
    ("a JPEG of other size", sof(8, 8), undecodable(JPEG)),
    ("a JPEG whose scan is noise",
     payload(JPEG, "image", 700, random.Random(2).randbytes(60)), ANYTHING),
)]
