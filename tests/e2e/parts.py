# SPDX-License-Identifier: Apache-2.0
"""Values and class names of .beton files, for the tests of merge and split."""
import struct

import betonfile
import make


def name_classes(data, field, names):
    """Gives the values of an integer field names, as the writer stores them."""
    k = [f[0] for f in data.fields].index(field)
    at = 24 + 1041 * k + 17
    text = b"".join(n.encode() + b"\0" for n in names)
    data.patch(at, b"betoncls" + struct.pack("<QQQ", at + 32, len(text),
                                             len(names)) + text)
    return data


def labels(path, numbers, names=None, field="label"):
    """A file of one integer field."""
    data = make.Dataset(path, [(field, make.INT)],
                        [{field: n} for n in numbers])
    return name_classes(data, field, names) if names else data


def classes(path, field="label"):
    """The names that a file stores in the descriptor of a field, or behind its
    values."""
    data = path.read_bytes()
    count, = struct.unpack("<H", data[2:4])
    for k in range(count):
        d = data[24 + 1041 * k:24 + 1041 * (k + 1)]
        if d[1:17].rstrip(b"\0").decode() == field and d[17:25] == b"betoncls":
            at, size, _ = struct.unpack("<QQQ", d[25:49])
            return data[at:at + size].decode().split("\0")[:-1]
    return None


def value(b, f, k, i):
    """A value in a form that does not depend on its place."""
    v = b.records[str(k)][i]
    if f.type in (betonfile.INT, betonfile.FLOAT):
        return v.item()
    if f.type == betonfile.IMAGE:
        mode, width, height, at = v.tolist()
        size = b.sizes[at] if mode == betonfile.JPG else width * height * 3
        return mode, width, height, b.data[at:at + size].tobytes()
    if f.type in (betonfile.BYTES, betonfile.JSON):
        at, size = v.tolist()
        return b.data[at:at + size].tobytes()
    size = f.dtype.itemsize
    for n in f.shape:
        size *= n
    return b.data[int(v):int(v) + size].tobytes()


def samples(path):
    """A dict per sample."""
    b = betonfile.Beton(path)
    return [{f.name: value(b, f, k, i) for k, f in enumerate(b.fields)}
            for i in range(b.samples)]
