# SPDX-License-Identifier: Apache-2.0
"""A reader of batch files, written from beton-batch(5)."""
import struct

import numpy as np

import make
HEADER = np.dtype([
    ("magic", "S8"), ("version", "<u4"), ("header_size", "<u4"),
    ("file_size", "<u8"), ("fingerprint", "V16"), ("samples", "<u8"),
    ("epoch", "<u8"), ("batch", "<u8"), ("batches", "<u8"), ("seed", "<u8"),
    ("batch_size", "<u8"), ("block", "<u8"), ("window", "<u8"),
    ("subset_first", "<u8"), ("subset_end", "<u8"), ("subset_hash", "<u8"),
    ("order", "<u4"), ("drop_last", "<u4"), ("rows", "<u4"),
    ("num_fields", "<u4"), ("fields_off", "<u8"), ("spec_off", "<u8"),
    ("ids_off", "<u8"), ("spec_size", "<u4"), ("crc", "<u4"),
    ("repeats", "<u8")])
FIELD = np.dtype([
    ("name", "S24"), ("stem", "S64"), ("dtype", "S16"), ("type", "<u4"),
    ("column", "<u4"), ("ndim", "<u4"), ("mode", "<u4"),
    ("shape", "<u8", 32), ("stride", "<u8"), ("error_off", "<u8"),
    ("column_off", "<u8"), ("column_size", "<u8")])
VALUE = np.dtype([("offset", "<u8"), ("size", "<u8"), ("mode", "<u4"),
                  ("width", "<u4"), ("height", "<u4"), ("reserved", "<u4")])
FIXED, VARIABLE = 0, 1


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class BatchFile:
    def __init__(self, data):
        self.data = data
        h = self.header = np.frombuffer(data, HEADER, 1)[0]
        assert h["magic"] == b"BETONBAT" and h["version"] == 1
        assert h["header_size"] == HEADER.itemsize
        assert h["file_size"] == len(data)
        end = int(h["spec_off"]) + int(h["spec_size"])
        bare = data[:172] + bytes(4) + data[176:end]
        assert h["crc"] == crc32c(bare)
        self.spec = data[int(h["spec_off"]):end].decode()
        self.num_samples = int(h["rows"])
        self.ids = self.array("<u8", h["ids_off"])
        fields = np.frombuffer(data, FIELD, h["num_fields"], h["fields_off"])
        self.fields = {f["name"].decode(): f for f in fields}
        self.used = [(0, end), (int(h["ids_off"]), 8 * self.num_samples)]
        for f in fields:
            self.note(f)

    def array(self, dtype, off, *shape):
        n = int(np.prod((self.num_samples, *shape)))
        assert int(off) % 64 == 0
        return np.frombuffer(self.data, dtype, n, int(off)).reshape(
            self.num_samples, *shape)

    def note(self, f):
        self.used.append((int(f["error_off"]), 4 * self.num_samples))
        if f["column"] == FIXED:
            self.used.append((int(f["column_off"]),
                              self.num_samples * int(f["stride"])))
        else:
            self.used.append((int(f["column_off"]), 32 * self.num_samples))
            for v in self.array(VALUE, f["column_off"]):
                self.used.append((int(v["offset"]), int(v["size"])))

    def errors(self, name):
        return self.array("<i4", self.fields[name]["error_off"])

    def value(self, name, row):
        """Its bytes; images: (mode, width, height, bytes)."""
        f = self.fields[name]
        if f["column"] == FIXED:
            at = int(f["column_off"]) + row * int(f["stride"])
            data = self.data[at:at + int(f["stride"])]
            mode, height, width = f["mode"], *f["shape"][:2]
        else:
            v = self.array(VALUE, f["column_off"])[row]
            assert v["offset"] % 64 == 0 and v["reserved"] == 0
            data = self.data[int(v["offset"]):][:int(v["size"])]
            mode, width, height = v["mode"], v["width"], v["height"]
        if f["type"] != make.IMAGE:
            return data
        return int(mode), int(width), int(height), data

    def gaps_are_zero(self):
        left = bytearray(self.data)
        for at, n in self.used:
            left[at:at + n] = bytes(n)
        return not any(left)


def check_values(data, b, but=()):
    for row, i in enumerate(b.ids.tolist()):
        for name, kind in data.types.items():
            if (i, name) in but:
                continue
            v, got = data.values[i][name], b.value(name, row)
            assert b.errors(name)[row] == 0
            if kind == make.INT:
                assert got == struct.pack("<q", v)
            elif kind == make.FLOAT:
                assert got == struct.pack("<d", v)
            elif kind == make.IMAGE:
                assert got == (v.mode, v.width, v.height, v.data)
            else:
                assert got == data.stored(i, name)
