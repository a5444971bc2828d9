# SPDX-License-Identifier: Apache-2.0
"""A reader of .beton files for tests, in NumPy. It asserts the properties that
FFCV's reader relies on, and shares no code with the C sources."""
import ast
import struct
import types

import numpy as np

FLOAT, INT, IMAGE, BYTES, NDARRAY, JSON, TENSOR = range(7)
JPG, RAW = 0, 1

POINTER = np.dtype([("ptr", "<u8"), ("size", "<u8")])
IMAGE_RECORD = np.dtype([("mode", "<u1"), ("width", "<u2"),
                         ("height", "<u2"), ("ptr", "<u8")])
RECORDS = {FLOAT: "<f8", INT: "<i8", IMAGE: IMAGE_RECORD, BYTES: POINTER,
           NDARRAY: "<u8", JSON: POINTER, TENSOR: "<u8"}


class Beton:
    def __init__(self, path):
        self.data = np.fromfile(path, np.uint8)
        raw = self.data[:24].tobytes()
        version, count, self.page_size, self.samples, self.table_at = \
            struct.unpack("<HHIQQ", raw)
        assert version == 2
        assert self.table_at, "unfinished"
        self.first_byte = 24 + 1041 * count
        self.fields = [self.field(i) for i in range(count)]
        # Names may repeat or be odd, NumPy's must not.
        self.record = np.dtype([(str(i), RECORDS[f.type])
                                for i, f in enumerate(self.fields)],
                               align=True)
        meta = 24 + 1041 * count
        self.meta_end = meta + self.samples * self.record.itemsize
        self.records = self.data[meta:self.meta_end].view(self.record)
        self.table = self.data[self.table_at:].view("<u8").reshape(-1, 3)
        self.sizes = dict(zip(self.table[:, 1].tolist(),
                              self.table[:, 2].tolist()))

    def field(self, i):
        d = self.data[24 + 1041 * i:24 + 1041 * (i + 1)].tobytes()
        f = types.SimpleNamespace(type=d[0], dtype=None, shape=None,
                                  name=d[1:17].rstrip(b"\0").decode("ascii"))
        if f.type in (NDARRAY, TENSOR):
            shape = struct.unpack("<32Q", d[17:273])
            size, = struct.unpack("<Q", d[273:281])
            f.shape = tuple(n for n in shape if n)
            f.dtype = np.dtype(ast.literal_eval(d[281:281 + size].decode())[0][1])
        elif f.type == INT and d[17:25] == b"betoncls":
            self.names(*struct.unpack("<QQQ", d[25:49]))
        else:
            assert not any(d[17:])
        return f

    def names(self, start, size, count):
        """Names of classes lie where no value does, and are checked."""
        text = self.data[start:start + size]
        assert (text == 0).sum() == count and not text[-1]
        if start >= self.first_byte:
            text[:] = 0     # as in a file of FFCV's

    def column(self, name):
        i, = [i for i, f in enumerate(self.fields) if f.name == name]
        return self.records[str(i)]

    def labels(self):
        return self.column("label").tolist()

    def images(self):
        """mode, width, height and stored bytes of every sample."""
        out = []
        for r in self.column("image"):
            mode, width, height, ptr = r.tolist()
            size = self.sizes[ptr]
            out.append(types.SimpleNamespace(
                mode=mode, width=width, height=height, ptr=ptr,
                bytes=self.data[ptr:ptr + size].tobytes()))
        return out

    def value(self, i, field):
        v = self.records[str(field)][i].tolist()
        kind = self.fields[field].type
        if kind in (INT, FLOAT):
            return v
        if kind == IMAGE:
            mode, width, height, ptr = v
            return types.SimpleNamespace(mode=mode, width=width, height=height,
                                         bytes=self.bytes(ptr, self.sizes[ptr]))
        if kind in (BYTES, JSON):
            return self.bytes(*v)
        return self.bytes(v, self.sizes[v])

    def bytes(self, ptr, size):
        return self.data[ptr:ptr + size].tobytes()

    def values(self):
        """The values of every sample, in tuples."""
        return [tuple(self.value(i, k) for k in range(len(self.fields)))
                for i in range(self.samples)]

    def check(self):
        """The rules that hold in every file of FFCV's writer."""
        size, page = len(self.data), self.page_size
        assert page & (page - 1) == 0 and 2 << 20 <= page <= 2 << 30
        assert (size - self.table_at) % 24 == 0
        if not len(self.table):
            assert self.table_at == self.meta_end == size
            return self
        first = -(-self.meta_end // page) * page
        sample, start, length = (self.table[:, k].astype(np.int64)
                                 for k in range(3))
        end = start + length
        assert self.table_at % page == 0
        assert not self.data[self.meta_end:first].any()
        assert (np.diff(sample) >= 0).all() and sample[-1] < self.samples
        assert (np.diff(start) > 0).all(), "sorted, no offset twice"
        assert (start[1:] >= end[:-1]).all(), "no overlap"
        assert start[0] == first and end[-1] <= self.table_at
        assert (start // page == (np.maximum(end, start + 1) - 1) // page).all()
        same_sample = sample[1:] == sample[:-1]
        pages = start // page
        assert (pages[1:] == pages[:-1])[same_sample].all()
        assert np.unique(pages).tolist() == \
            list(range(first // page, self.table_at // page))
        # A page begins with an allocation and ends in zeros.
        for p in np.unique(pages):
            of_page = pages == p
            assert start[of_page][0] == p * page
            assert not self.data[end[of_page][-1]:(p + 1) * page].any()
        return self
