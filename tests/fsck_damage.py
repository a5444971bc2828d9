# SPDX-License-Identifier: Apache-2.0
"""Named damages, and the check of fsck.beton that finds each of them.

CHECKS has the damages of tests/damage.py by their names, and MORE has further
damages of the same dataset. The check "" stands for no finding. A check with
"!" in front is found by --deep only.
"""
import struct

import damage
from damage import (BLOB, DAMAGES, IMAGE, JPEG, LABEL, META, RAW, SCORE, VEC, at, descriptor, entries, entry, le, meta, payload,
                    pointer, shape, table, write)

CHECKS = {
    "nothing at all": "version",
    "one byte": "version",
    "a byte less than a header": "version",
    "a header alone": "cut-off",
    "ends inside the descriptors": "cut-off",
    "ends inside the metadata": "cut-off",
    "ends inside the pages": "cut-off",
    "ends a byte before the table": "cut-off",
    "ends where the table begins": "table-count",
    "ends inside the table": "table-count",
    "ends inside an entry": "table-rest",
    "23 bytes too many": "table-rest",
    "a second table behind the first": "table-count",
    "zeros all over": "version",
    "ones all over": "version",
    "another kind of file": "version",
    "version 0": "version",
    "version 3": "version",
    "version in the other byte order": "version",
    "no fields": "fields",
    "as many fields as fit": "fields",
    "a field less": "table-count",
    "a field more": "unused-arguments",
    "pages of no bytes": "page-size",
    "pages of one byte": "page-size",
    "pages of three blocks": "page-size",
    "pages of 2 GiB": "pages",
    "pages of all ones": "page-size",
    "pages half as large": "entry-place",
    "pages twice as large": "entry-place",
    "no samples": "entry-sample",
    "half the samples": "entry-sample",
    "a sample more": "table-count",
    "more samples than the file holds": "metadata-size",
    "more samples than there are": "samples",
    "samples that wrap around": "samples",
    "samples of all ones": "samples",
    "an unfinished file": "unfinished",
    "the table past the end": "cut-off",
    "the table at the sign bit": "cut-off",
    "the table at all ones": "cut-off",
    "the table inside the descriptors": "table-offset",
    "the table inside the metadata": "metadata-size",
    "the table inside a page": "pages",
    "the table a byte late": "pages",
    "an unknown type": "field-type",
    "the last unknown type": "field-type",
    "a number turned custom": "custom",
    "an image turned number": "table-count",
    "bytes turned array": "field-arguments",
    "bytes turned image": "image-sides",
    "a name that is not ASCII": "field-name",
    "a name of all ones": "field-name",
    "a name of slashes and lines": "",
    "no name": "",
    "two fields of one name": "name-twice",
    "arrays larger than pages": "array-size",
    "arrays whose size wraps": "field-arguments",
    "arrays of 32 dimensions": "value-size",
    "arrays of no bytes": "entry-unused",
    "no dtype": "field-arguments",
    "a dtype of unknown kind": "field-arguments",
    "a dtype of objects": "field-arguments",
    "a structured dtype": "field-arguments",
    "a dtype that is no JSON": "field-arguments",
    "a dtype longer than its place": "field-arguments",
    "a dtype of endless length": "field-arguments",
    "an image mode of 2": "image-mode",
    "an image mode of 255": "image-mode",
    "a raw image called JPEG": "jpeg-start",
    "a JPEG image called raw": "value-size",
    "an image without width": "image-sides",
    "an image without height": "image-sides",
    "a raw image of 12 GB": "value-place",
    "a JPEG image of other width": "jpeg-sides",
    "an image in the header": "value-place",
    "a raw image in the metadata": "value-place",
    "an image at all ones": "value-place",
    "a raw image whose end wraps": "value-place",
    "a raw image in the table": "value-place",
    "a raw image a byte before the table": "value-place",
    "a raw image across two pages": "value-place",
    "an image a byte off": "value-entry",
    "an image at another's place": "value-sample",
    "bytes in the header": "value-place",
    "bytes of endless size": "value-size",
    "bytes of 8 EiB": "value-place",
    "bytes larger than a page": "value-place",
    "JSON in the header": "value-place",
    "JSON of endless size": "value-size",
    "JSON without its NUL": "json-end",
    "an array in the header": "value-place",
    "a tensor whose end wraps": "value-place",
    "a sample of all ones": "image-mode",
    "no metadata at all": "image-sides",
    "a table of zeros": "value-entry",
    "a table of ones": "entry-place",
    "a table back to front": "",
    "a shuffled table": "",
    "every entry twice": "entry-overlap",
    "entries of wrong samples": "entry-sample",
    "an image of no bytes": "value-entry",
    "an image of endless size": "entry-place",
    "an image larger than a page": "entry-place",
    "an image that no entry contains": "entry-place",
    "an image cut short": "jpeg-header",
    "an image of zeros": "jpeg-start",
    "an image that is text": "jpeg-start",
    "a JPEG of no pixels": "jpeg-sides",
    "a JPEG of 65535 by 65535": "jpeg-sides",
    "a JPEG of other size": "jpeg-sides",
    "a JPEG whose scan is noise": "jpeg-scan",
}


# --- more edits ---

def names(mark=b"betoncls", offset=None, size=None, text=b"cat\0dog\0",
          number=2):
    """Class names in the arguments of the labels."""
    own = 24 + 1041 * LABEL + 17 + 32
    head = mark + le(8, own if offset is None else offset,
                     len(text) if size is None else size, number)
    return descriptor(LABEL, 17, head + text)


def row_of(d, sample, field):
    return [e[:2] for e in d.table].index((sample, d.place[sample, field]))


def size_of(d, sample, field):
    return d.table[row_of(d, sample, field)][2]


def grows(sample, field, by):
    """The entry of a value gets another size."""
    return lambda d, b: entry(sample, field, 16,
                              size_of(d, sample, field) + by)(d, b)


def moves(sample, field, by):
    return lambda d, b: entry(sample, field, 8,
                              d.place[sample, field] + by)(d, b)


def swap(first, second):
    """Two values of a field exchange their offsets."""
    def edit(d, b):
        for i, other in (first, second), (second, first):
            pointer(i, "tens", d.place[other, "tens"])(d, b)
    return edit


def jpeg(change):
    """Another content of the image of sample JPEG."""
    def edit(d, b):
        start, size = d.place[JPEG, "image"], size_of(d, JPEG, "image")
        old = bytearray(b[start:start + size])
        change(old)
        assert len(old) == size
        b[start:start + size] = old
    return edit


def segment(marker, where, data):
    """In the first segment of that marker; 2 is its length, 4 its content."""
    return jpeg(lambda j: write(j, j.index(bytes([0xff, marker])) + where,
                                data))


def scan_of(j):
    at_ = j.index(b"\xff\xda")
    return at_ + 2 + struct.unpack(">H", j[at_ + 2:at_ + 4])[0]


def scan(where, data):
    return jpeg(lambda j: write(j, scan_of(j) + where, data))


def no_end(j):
    j[-2:] = bytes(2)


def half_a_scan(j):
    """The second half is the end marker, and bytes behind it."""
    start = scan_of(j)
    middle = start + (len(j) - start) // 2
    j[middle:] = b"\xff\xd9" + bytes(len(j) - middle - 2)


def no_second_half(j):
    start = scan_of(j)
    middle = start + (len(j) - start) // 2
    j[middle:] = bytes(len(j) - middle)


def renamed_frame(j):
    """The frame is a comment."""
    j[j.index(b"\xff\xc0") + 1] = 0xfe


def last_byte(sample, field, data):
    return lambda d, b: write(
        b, d.place[sample, field] + size_of(d, sample, field) - 1, data)


def behind_pages(d):
    """The first byte behind the last value of the first page."""
    ends = [at_ + size for _, at_, size in d.table
            if at_ < d.first_page + d.page_size]
    return max(ends)


def array_mark(d, b):
    write(b, d.place[5, "blob"], b"BETONARR")


MORE = [
    ("a letter behind the end of a name", descriptor(SCORE, 10, b"x"),
     "name-padding"),
    ("an argument of an image", descriptor(IMAGE, 17, b"\1"),
     "unused-arguments"),
    ("an argument of a float", descriptor(SCORE, 1040, b"\1"),
     "unused-arguments"),
    ("an argument of JSON", descriptor(META, 500, b"\x80"),
     "unused-arguments"),
    ("an argument of bytes", descriptor(BLOB, 17, bytes(99) + b"z"),
     "unused-arguments"),
    ("bytes behind a dtype", descriptor(VEC, 1000, b"x"), "argument-padding"),
    ("class names that are sound", names(), ""),
    ("class names with a damaged mark", names(mark=b"betoncLs"),
     "unused-arguments"),
    ("class names in the header", names(offset=3), "class-names"),
    ("class names behind the file", names(offset=1 << 40), "class-names"),
    ("class names of 2 MiB", names(size=2 << 20), "class-names"),
    ("a class name too many", names(number=3), "class-names"),
    ("a class name too few", names(number=1), "class-names"),
    ("a class without a name", names(text=b"cat\0\0\0", number=3),
     "class-names"),
    ("a class name that is not UTF-8", names(text=b"c\xfft\0dog\0"),
     "class-names"),
    ("a class name with a control character", names(text=b"c\x1bt\0dog\0"),
     "class-names"),
    ("class names without their last NUL", names(text=b"cat\0dog"),
     "class-names"),
    ("class names over a value",
     lambda d, b: (names(offset=d.place[4, "vec"], size=8)(d, b),
                   write(b, d.place[4, "vec"], b"cat\0dog\0")),
     "entry-overlap"),
    ("bytes behind class names",
     lambda d, b: (names()(d, b),
                   descriptor(LABEL, 17 + 32 + 500, b"x")(d, b)),
     "argument-padding"),
    ("another number of dimensions", shape(VEC, 2, 3, 2), "value-size"),
    ("another dtype of the same size", damage.dtype(VEC, b'[["", "<i4"]]'),
     ""),
    ("a wider dtype", damage.dtype(VEC, b'[["", "<f8"]]'), "value-size"),
    ("a gap of a record", lambda d, b: write(b, d.where(3, "image") + 13,
                                             b"\1"), "record-padding"),
    ("the last byte before the first page",
     lambda d, b: write(b, d.first_page - 1, b"\1"), "head-padding"),
    ("a byte behind the last value of a page",
     lambda d, b: write(b, behind_pages(d), b"\1"), "page-rest"),
    ("an entry of the sample behind the last", entry(3, "vec", 0, 24),
     "entry-sample"),
    ("an entry of another sample", entry(3, "vec", 0, 9), "value-sample"),
    ("an entry of a byte more", grows(3, "meta", 1), "entry-overlap"),
    ("an entry of a byte less", grows(3, "vec", -1), "value-size"),
    ("an image whose entry has a byte more", grows(JPEG, "image", 1),
     "entry-overlap"),
    ("an entry over all of its page",
     lambda d, b: (entry(0, "image", 16, d.page_size)(d, b)),
     "entry-overlap"),
    ("an entry a byte early", moves(3, "vec", -1), "entry-overlap"),
    ("an entry a byte late", moves(3, "meta", 1), "value-entry"),
    ("an entry before the first page",
     entry(3, "vec", 8, 5000), "entry-place"),
    ("an entry across two pages",
     lambda d, b: entry(3, "vec", 8, d.first_page + d.page_size - 3)(d, b),
     "entry-place"),
    ("an entry in the unused bytes",
     lambda d, b: entry(3, "vec", 8, table(d) - 24)(d, b), "value-entry"),
    ("an entry less", entries(lambda rows: rows[:7] + rows[8:]),
     "value-entry"),
    ("an entry twice", entries(lambda rows: rows[:8] + rows[7:]),
     "entry-overlap"),
    ("an entry of no value",
     lambda d, b: b.extend(le(8, 3, table(d) - 8, 8)), "entry-unused"),
    ("an empty entry more", lambda d, b: b.extend(le(8, 3, table(d) - 8, 0)),
     "table-count"),
    ("two tensors exchanged", swap(3, 9), "value-sample"),
    ("a tensor at the array", lambda d, b:
     pointer(3, "tens", d.place[3, "vec"])(d, b), "value-twice"),
    ("an array a byte off", lambda d, b:
     pointer(3, "vec", d.place[3, "vec"] + 1)(d, b), "value-entry"),
    ("bytes of a byte less", meta(3, "blob", 8, le(8, 14)), "value-size"),
    ("bytes of no bytes", meta(3, "blob", 8, le(8, 0)), "entry-unused"),
    ("bytes of a whole page", meta(3, "blob", 8, le(8, 1 << 16)),
     "value-place"),
    ("an image of other height", meta(JPEG, "image", 3, le(2, 49)),
     "jpeg-sides"),
    ("a raw image of other height", meta(RAW, "image", 3, le(2, 31)),
     "value-size"),
    ("JSON whose NUL is a space", last_byte(3, "meta", b" "), "json-end"),
    ("JSON with a NUL inside", payload(3, "meta", 2, b"\0"), "json-end"),
    ("JSON without its brace", payload(3, "meta", 0, b" "), "!json-text"),
    ("JSON with a raw control character", payload(3, "meta", 2, b"\1"),
     "!json-text"),
    ("JSON with bytes that are not UTF-8", payload(3, "meta", 2, b"\xff"),
     "!json-text"),
    ("bytes that begin like an array", array_mark, "bytes-array"),
    ("a JPEG without its start", payload(JPEG, "image", 0, b"\0"),
     "jpeg-start"),
    ("a JPEG with another second byte", payload(JPEG, "image", 1, b"\xd9"),
     "jpeg-start"),
    ("a JPEG with two start markers", payload(JPEG, "image", 3, b"\xd8"),
     "jpeg-header"),
    ("a JPEG that ends at once", payload(JPEG, "image", 3, b"\xd9"),
     "jpeg-header"),
    ("a segment of endless length", segment(0xe0, 2, b"\xff\xff"),
     "jpeg-header"),
    ("a segment of length 1", segment(0xdb, 2, b"\0\1"), "jpeg-header"),
    ("a quantization table of number 9", segment(0xdb, 4, b"\x09"),
     "jpeg-header"),
    ("a Huffman table of 17 * 255 symbols", segment(0xc4, 5, b"\xff" * 16),
     "jpeg-header"),
    ("a Huffman table of class 5", segment(0xc4, 4, b"\x50"), "jpeg-header"),
    ("a frame of 9 components", segment(0xc0, 9, b"\x09"), "jpeg-header"),
    ("a JPEG without a frame", jpeg(renamed_frame), "jpeg-header"),
    ("a scan of 4 components", segment(0xda, 4, b"\x04"), "jpeg-header"),
    ("a scan of unknown components", segment(0xda, 5, b"\x63"),
     "jpeg-header"),
    ("a reserved marker in a scan", scan(20, b"\xff\x02"), "jpeg-scan"),
    ("a frame in a scan", scan(20, b"\xff\xc0"), "jpeg-scan"),
    ("a restart marker in a scan", scan(20, b"\xff\xd3"), "jpeg-scan"),
    ("a JPEG without its end marker", jpeg(no_end), "jpeg-odd"),
    ("a JPEG without its second half", jpeg(no_second_half), "jpeg-end"),
    ("a scan that ends too early", jpeg(half_a_scan), "!jpeg-decode"),
    ("a zero in a Huffman table", segment(0xc4, 6, b"\0"), "jpeg-header"),
]

ALL = [(d.name, d.edit, CHECKS[d.name]) for d in DAMAGES] + MORE

# No check finds these without checksums: they leave a sound file with other
# values.
UNFINDABLE = [
    ("another label", meta(3, "label", 0, b"\x77")),
    ("another score", meta(3, "score", 2, b"\x77")),
    ("another pixel", payload(RAW, "image", 99, b"\x77")),
    ("another byte of bytes", payload(3, "blob", 3, b"\x77")),
    ("another number in an array", payload(3, "vec", 3, b"\x77")),
    ("another name of a field", descriptor(SCORE, 1, b"S")),
    ("another digit in JSON", payload(3, "meta", 7, b"9")),
    ("another quantization", segment(0xdb, 9, b"\x77")),
    ("another header", at(0, b"\2")),
]
