# SPDX-License-Identifier: Apache-2.0
"""Make and read side files of checksums, as beton(5) describes them. The module
shares no code with the C sources."""
import json
import struct

from dumped import beton

BLOCK = 64 << 10


def make_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = make_table()
# Two bytes at a time: twice as fast.
PAIRS = [TABLE[TABLE[n & 255] & 255 ^ n >> 8] ^ TABLE[n & 255] >> 8
         for n in range(1 << 16)]


def crc32c(data):
    crc = 0xffffffff
    for pair in memoryview(data)[:len(data) & ~1].cast("H"):
        crc = crc >> 16 ^ PAIRS[crc & 0xffff ^ pair]
    if len(data) & 1:
        crc = crc >> 8 ^ TABLE[crc & 255 ^ data[-1]]
    return crc ^ 0xffffffff


def fingerprint(path):
    return bytes.fromhex(json.loads(beton("info", "--json", path).stdout)
                         ["fingerprint"])


def make_sums(path):
    """The contents of the side file."""
    with open(path, "rb") as f:
        data = f.read()
    head = struct.pack("<8sIIQ16s", b"betonsum", 1, BLOCK, len(data),
                       fingerprint(path))
    crcs = [crc32c(data[at:at + BLOCK]) for at in range(0, len(data), BLOCK)]
    head += struct.pack(f"<{len(crcs)}I", *crcs)
    return head + struct.pack("<I", crc32c(head))


def side(path):
    return f"{path}.sums"


def write(path):
    with open(side(path), "wb") as f:
        f.write(make_sums(path))
