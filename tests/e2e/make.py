# SPDX-License-Identifier: Apache-2.0
"""Make small .beton files of every field type, with the offset of every part, so
that tests can damage one. The module shares no code with the C sources."""
import struct

import numpy as np

FLOAT, INT, IMAGE, BYTES, NDARRAY, JSON, TENSOR, CUSTOM = 0, 1, 2, 3, 4, 5, 6, 255
JPG, RAW = 0, 1

POINTER = np.dtype("<u8,<u8")     # packed, as the next: not aligned
PICTURE = np.dtype("<u1,<u2,<u2,<u8")
RECORDS = {FLOAT: "<f8", INT: "<i8", BYTES: POINTER, JSON: POINTER,
           NDARRAY: "<u8", TENSOR: "<u8", CUSTOM: "V8", IMAGE: PICTURE}
EXTENSIONS = {FLOAT: "", INT: "", BYTES: ".bin", JSON: ".json",
              NDARRAY: ".npy", TENSOR: ".npy"}


class Image:
    def __init__(self, mode, width, height, data):
        self.mode, self.data = mode, bytes(data)
        self.width, self.height = width, height


class Dataset:
    """path; values[i][name]; file(i, name) and its bytes; where(i, name) is the
    offset of the metadata in the file, place[i, name] that of the bytes."""

    def __init__(self, path, fields, values, page_size=4096):
        self.path, self.fields, self.values = str(path), fields, values
        self.page_size = page_size
        self.types = {name: kind for name, kind, *_ in fields}
        self.record = np.dtype([(f"f{k}", RECORDS[f[1]])
                                for k, f in enumerate(fields)], align=True)
        self.meta = 24 + 1041 * len(fields)
        self.meta_end = self.meta + len(values) * self.record.itemsize
        self.first_page = -(-self.meta_end // page_size) * page_size
        self.place, self.table = {}, []
        self.write()

    # --- what a mount shows ---

    def name(self, i):
        return str(i).zfill(6)

    def extension(self, i, name):
        if self.types[name] == IMAGE:
            return ".ppm" if self.values[i][name].mode == RAW else ".jpg"
        return EXTENSIONS[self.types[name]]

    def file(self, i, name):
        return f"{name}{self.extension(i, name)}"

    def stored(self, i, name):
        v = self.values[i][name]
        if self.types[name] == IMAGE:
            return v.data
        return v.tobytes() if isinstance(v, np.ndarray) else bytes(v)

    def content(self, i, name):
        """The bytes of its file. Arrays: of their data alone."""
        v, kind = self.values[i][name], self.types[name]
        if kind == INT:
            return b"%d\n" % v
        if kind == FLOAT:
            return (repr(v) + "\n").encode()
        if kind == IMAGE and v.mode == RAW:
            return b"P6\n%d %d\n255\n" % (v.width, v.height) + v.data
        return self.stored(i, name)

    def where(self, i, name):
        k = [f[0] for f in self.fields].index(name)
        return (self.meta + i * self.record.itemsize
                + self.record.fields[f"f{k}"][1])

    # --- writing ---

    def descriptor(self, name, kind, dtype=None, shape=()):
        args = b""
        if dtype:
            text = b'[["", "%s"]]' % np.dtype(dtype).str.encode()
            args = struct.pack("<32QQ", *shape, *[0] * (32 - len(shape)),
                               len(text)) + text
        return (bytes([kind]) + name.encode().ljust(16, b"\0")
                + args.ljust(1024, b"\0"))

    def allocate(self, data, i, name, stored):
        """In one page with the rest of the sample, as FFCV does."""
        at = self.first_page + len(data)
        self.place[i, name] = at
        self.table.append((i, at, len(stored)))
        data += stored
        return at

    def metadata(self, data, i, name, kind):
        v = self.values[i][name]
        if kind in (FLOAT, INT):
            return v
        if kind == CUSTOM:
            return np.void(v)
        if kind == JSON:
            at = self.allocate(data, i, name, v + b"\0")
            return at, len(v) + 1
        at = self.allocate(data, i, name, self.stored(i, name))
        if kind == IMAGE:
            return v.mode, v.width, v.height, at
        return (at, len(v)) if kind == BYTES else at

    def write(self):
        records, data = np.zeros(len(self.values), self.record), bytearray()
        for i, row in enumerate(self.values):
            need = sum(len(self.stored(i, n)) + 1 for n, k, *_ in self.fields
                       if k not in (FLOAT, INT, CUSTOM))
            assert need <= self.page_size
            if len(data) % self.page_size + need > self.page_size:
                data += bytes(-len(data) % self.page_size)
            for k, (name, kind, *_) in enumerate(self.fields):
                records[f"f{k}"][i] = self.metadata(data, i, name, kind)
        data += bytes(-len(data) % self.page_size)
        table_at = self.first_page + len(data) if data else self.meta_end
        with open(self.path, "wb") as f:
            f.write(struct.pack("<HHIQQ", 2, len(self.fields), self.page_size,
                                len(self.values), table_at))
            f.write(b"".join(self.descriptor(*d) for d in self.fields))
            f.write(records.tobytes())
            if data:
                f.write(bytes(self.first_page - self.meta_end) + data)
            for entry in self.table:
                f.write(struct.pack("<3Q", *entry))

    def patch(self, at, data):
        with open(self.path, "r+b") as f:
            f.seek(at)
            f.write(data)


def every_type(path, samples=30, seed=1):
    """Every type and both image modes; values of many sizes."""
    rng = np.random.default_rng(seed)
    fields = [("label", INT), ("score", FLOAT), ("image", IMAGE),
              ("blob", BYTES), ("meta", JSON), ("vec", NDARRAY, "<f4", (2, 3)),
              ("tens", TENSOR, "<i2", (5,))]

    def image(i):
        if i % 2:
            return Image(RAW, 4 + i % 7, 3, rng.bytes(9 * (4 + i % 7)))
        return Image(JPG, 8, 8, b"\xff\xd8\xff" + rng.bytes(100 + 13 * i))

    return Dataset(path, fields, [
        {"label": 7 * i - 3, "score": i / 3, "image": image(i),
         "blob": rng.bytes(11 * i), "meta": b'{"id": %d}' % i,
         "vec": rng.normal(0, 1, (2, 3)).astype("<f4"),
         "tens": rng.integers(0, 99, 5).astype("<i2")}
        for i in range(samples)])


def one_blob(path, size):
    """One value of so many bytes: for reading a file in pieces."""
    page = 1 << max(12, (size + 1).bit_length())
    blob = np.random.default_rng(2).bytes(size)
    return Dataset(path, [("blob", BYTES)], [{"blob": blob}], page)


def numbers(path, n):
    return Dataset(path, [("label", INT)], [{"label": i} for i in range(n)])


def two_numbers(path, n):
    """As numbers(), with a second field, and millions of samples in a second."""
    d = Dataset(path, [("label", INT), ("other", INT)],
                [{"label": 0, "other": 0}])
    records = np.zeros(n, d.record)
    records["f0"] = np.arange(n)
    records["f1"] = np.arange(n) * 7 % 1000
    with open(path, "r+b") as f:
        f.seek(d.meta)
        f.write(records.tobytes())
    d.patch(struct.calcsize("<HHI"), struct.pack("<QQ", n, d.meta + records.nbytes))
    return d
# The endings of the fields of make.every_type().
ENDINGS = {"label": ".cls", "score": ".txt", "blob": ".bin", "meta": ".json",
           "vec": ".vec.npy", "tens": ".tens.npy"}


def member(data, i, name):
    return data.name(i) + ENDINGS.get(name, data.extension(i, name))
