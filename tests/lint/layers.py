#!/usr/bin/env python3
"""Check the includes of every source file.

    layers.py [DIRECTORY]

LAYERS lists the directories of C files from the ground up. A file may include
headers of its own directory and of directories on lines above its own. Some
directories are closed to the loader (NEVER). From another directory a file may
include only the headers in that directory's face (FACE). Within a directory,
no chain of includes leads back to its beginning. Some system headers belong to
one directory (ONLY). A room, which is a source file and its header, has at most
ROOM_LINES lines. A new file needs no entry here; a new directory needs a line.
"""
import fnmatch
import pathlib
import re
import sys

LAYERS = """
    include/beton
    fs/base/util
    fs/base/files
    fs/base/memory
    fs/base/metrics fs/base/order
    fs/base/settings
    fs/source/net
    fs/source/url
    fs/source/keys
    fs/source/pacing
    fs/source/upload
    fs/source/tier
    fs/source/local
    fs/source/object
    fs/data/dataset
    fs/data/writer
    fs/data/cache
    fs/data/wire
    fs/data/engine
    fs/mount/namespace
    fs/mount/zerocopy
    fs/mount/fuse
    fs/mount/daemon
    loader/util
    loader/image/jpeg
    loader/image/codec loader/image/resize loader/image/pixels loader/image/jpeg/isa
    loader/image/resize/isa loader/image/pixels/isa
    loader/pipeline/policy loader/pipeline/list loader/pipeline/text
    loader/pipeline/op
    loader/pipeline/grid
    loader/pipeline/ops
    loader/pipeline/graph
    loader/run/jit loader/run/feed
    loader/run/jit/isa loader/run/jit/prebuild
    loader/run/transform
    loader/run/gpu
    loader/run/loop
    loader/run/ring
    loader/run/link
    loader
    loader/tools/ui loader/tools/machine
    loader/tools/python
    loader/tools/picture loader/tools/formats
    loader/tools/input
    loader/tools/input/library
    loader/tools/combine
    loader/tools/top loader/tools/doctor loader/tools/mkfs loader/tools/fsck
    loader/tools/beton
"""
# A directory and all below it -> directories that they never include, nor what
# is below these, whatever the line.
NEVER = {"loader": ["fs/mount"]}
# Headers for other directories; "*" is every header. NAME>DIRECTORY is for
# that directory and all below it alone.
FACE = {
    "include/beton": "*",
    "fs/base/util": "*",
    "fs/base/files": "*",
    "fs/base/memory": "*",
    "fs/base/metrics": "counters histogram jobs openmetrics rank_figures rings_count"
                       " trace",
    "fs/base/order": "draws order spec spec_text subset",
    "fs/base/settings": "settings",
    "fs/source/net": "*",
    "fs/source/url": "*",
    "fs/source/keys": "credentials net_outside outside refusal",
    "fs/source/pacing": "*",
    "fs/source/upload": "multipart store",
    "fs/source/tier": "*",
    "fs/source/local": "file join net_stats options source *>fs/source/object",
    "fs/source/object": "disk open tables",
    "fs/data/dataset": "alloc_table>loader/tools/fsck class_names class_union"
                       " custom_field>loader/tools/fsck dataset field"
                       " field_names>loader/tools/fsck form format group joined sums"
                       " value verify vfile",
    "fs/data/writer": "*",
    "fs/data/cache": "arena cache choice",
    "fs/data/engine": "batch_place engine pool",
    "fs/data/wire": "zerocopy_message",
    "fs/mount/namespace": "ns",
    "fs/mount/zerocopy": "zerocopy peer",
    "fs/mount/fuse": "fuse_ops transport",
    "fs/mount/daemon": "",
    "loader/util": "*",
    "loader/image/jpeg": "baseline entry_index entry_store huffman_best upsample"
                         " *>loader/image/jpeg",
    "loader/image/jpeg/isa": "",
    "loader/image/codec": "codec exif index marker png recode structure",
    "loader/image/resize": "planar resample *>loader/image/resize"
                           " axis>loader/pipeline/grid",
    "loader/image/resize/isa": "",
    "loader/image/pixels": "blur byte_map edge enhance field hue place warp"
                           " *>loader/image/pixels",
    "loader/image/pixels/isa": "",
    "loader/pipeline/policy": "policy",
    "loader/pipeline/list": "*",
    "loader/pipeline/text": "diagnostic parse schedule token",
    "loader/pipeline/op": "chain dtype mix op operands sample_ids user_op"
                          " beta>loader/pipeline/ops",
    "loader/pipeline/graph": "args edit family graph op_table synonym",
    "loader/pipeline/grid": "*",
    "loader/pipeline/ops": "",
    "loader/run/jit": "code_cache emit_device jit pointwise pointwise_rows *>loader/run/jit"
                      " compiler>loader/tools/ui isa>loader/tools/ui",
    "loader/run/jit/isa": "",
    "loader/run/jit/prebuild": "",
    "loader/run/feed": "batch_view synthetic_text feed feed_table",
    "loader/run/transform": "phases pipeline",
    "loader/run/gpu": "cuda device_batch",
    "loader/run/loop": "telemetry callback replay state step *>loader/run/ring",
    "loader/run/ring": "ring makers>loader/run/link",
    "loader/run/link": "link wire",
    "loader": "",
    "loader/tools/ui": "*",
    "loader/tools/machine": "*",
    "loader/tools/top": "draw fetch json terminal",
    "loader/tools/doctor": "estimate look report trials watch",
    "loader/tools/python": "*",
    "loader/tools/picture": "picture",
    "loader/tools/formats": "*",
    "loader/tools/input": "directory input kinds",
    "loader/tools/input/library": "",
    "loader/tools/combine": "split outputs partition",
    "loader/tools/mkfs": "",
    "loader/tools/fsck": "",
    "loader/tools/beton": "",
}
# System headers, and the directories or files that may include them.
ONLY = {
    "curl/curl.h": ["fs/source/net/*"],
    "fuse_lowlevel.h": ["fs/mount/fuse/*", "fs/mount/daemon/*"],
    "fuse_opt.h": ["fs/mount/daemon/*"],
    "dlfcn.h": ["loader/run/jit/jit.c", "fs/base/util/library.c"],
    "link.h": ["fs/base/util/library.c"],
    "jpeglib.h": ["loader/image/codec/*"],
    "lz4.h": ["fs/data/cache/cold.c", "loader/tools/ui/features.c"],
    "png.h": ["loader/image/codec/png.c", "loader/tools/picture/*"],
    "webp/decode.h": ["loader/tools/picture/webp.c"],
    "tiffio.h": ["loader/tools/picture/tiff.c"],
    "libheif/heif.h": ["loader/tools/picture/heif.c"],
    "jxl/decode.h": ["loader/tools/picture/jxl.c"],
}
# Files that make writes: the list of operations, and a file as a string.
GENERATED = {"ops.inc"}
STRINGS = (".css.inc", ".html.inc")
# Owners with a helper that needs the owner's struct: the only circles.
PAIRS = [
    {"fs/data/engine/batch", "fs/data/engine/batch_place"},
    {"loader/image/jpeg/idct", "loader/image/jpeg/idct_parts"},
]
ROOMS_MAX = 16
# A table with a file for each row.
ROOMS_ANY = {"loader/pipeline/ops", "loader/tools/beton", "loader/tools/input"}
ROOM_LINES = 700
# Rooms that are larger still, and their limits. This list only shrinks: a room
# that fits now is a finding, too.
ROOMS_LARGE = {
    "fs/data/dataset/sums": 740,
    "fs/data/dataset/verify": 790,
    "fs/data/engine/pool": 730,
    "fs/data/engine/slot": 730,
    "fs/mount/fuse/uring": 790,
    "fs/source/keys/credentials": 730,
    "fs/source/local/file": 790,
    "loader/pipeline/op/op": 1010,
    "loader/run/feed/zerocopy_client": 860,
    "loader/run/ring/ring": 760,
    "loader/run/transform/frame": 750,
    "loader/run/transform/pipeline": 710,
    "loader/run/transform/worker": 720,
    "loader/tools/doctor/fix": 800,
    "loader/tools/doctor/trials": 720,
}
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */"

RANK = {f: i for i, line in enumerate(LAYERS.split("\n")) for f in line.split()}


def directory_of(room):
    return room.rpartition("/")[0]


def is_below(place, above):
    return place == above or place.startswith(above + "/")


def in_face(room, reader):
    """Whether a file in the directory `reader` may include the header of
    `room`."""
    name = room.rpartition("/")[2]
    for entry in FACE[directory_of(room)].split():
        what, _, whose = entry.partition(">")
        if what in ("*", name) and (not whose or is_below(reader, whose)):
            return True
    return False


def refusal(me, to):
    """Why the room `me` may not include the header of the room `to`, or None."""
    here, there = directory_of(me), directory_of(to)
    if there not in RANK:
        return "is in no directory of LAYERS"
    if here == there:
        return None
    if RANK[there] >= RANK[here]:
        return f"points back up, from {here} to {there}"
    for above, never in NEVER.items():
        if is_below(here, above) and any(is_below(there, n) for n in never):
            return f"is closed to {above}/"
    if not in_face(to, here):
        return f"is no face of {there}"
    return None


def find_circle(edges, start):
    """A list of rooms from `start` back to it, or None."""
    stack, seen = [[start]], {start}
    while stack:
        way = stack.pop()
        for room in sorted(edges.get(way[-1], ())):
            if room == start:
                return way + [start]
            if room not in seen:
                seen.add(room)
                stack.append(way + [room])
    return None


class Tree:
    def __init__(self, root):
        self.root = root
        self.found = []
        self.edges = {}     # room -> rooms of its directory that it includes
        self.rooms = {}     # directory -> rooms
        self.lines = {}     # room -> lines

    def read(self, path):
        name = str(path.relative_to(self.root))
        me = name[:-2]
        if directory_of(me) not in RANK:
            self.found.append(f"{name}: {directory_of(me)} is no directory of LAYERS")
            return
        self.rooms.setdefault(directory_of(me), set()).add(me)
        text = path.read_text()
        self.lines[me] = self.lines.get(me, 0) + text.count("\n")
        if not text.startswith(SPDX):
            self.found.append(f"{name}:1: the first line is not the license's identifier")
        if name.endswith(".h") and re.search(r"\bprivate\s+(\* )?to\b", text, re.I):
            self.found.append(f"{name}: FACE closes a header, and no comment repeats it")
        for n, line in enumerate(text.split("\n"), 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
            if m:
                why = self.check(name, me, *m.groups())
                if why:
                    self.found.append(f"{name}:{n}: {m.group(2)} {why}")

    def check(self, name, me, kind, header):
        if header in GENERATED:
            return None
        if header.endswith(STRINGS):
            return None if directory_of(header) == directory_of(me) else "is another directory's"
        if kind == "<":
            owners = ONLY.get(header, ["*"])
            return (None if any(fnmatch.fnmatch(name, o) for o in owners)
                    else f"is reserved for {' '.join(owners)}")
        to = re.sub(r"\.[ch]$", "", header)
        if to.startswith("beton/"):
            to = "include/" + to
        if directory_of(to) == directory_of(me) and to != me:
            self.edges.setdefault(me, set()).add(to)
        return refusal(me, to)

    def finish(self):
        reported = set()
        for room in sorted(self.edges):
            way = find_circle(self.edges, room)
            if way and not reported & set(way) and set(way) not in PAIRS:
                reported |= set(way)
                self.found.append("a circle: " + " -> ".join(way))
        for place, rooms in sorted(self.rooms.items()):
            if len(rooms) > ROOMS_MAX and place not in ROOMS_ANY:
                self.found.append(f"{place}: {len(rooms)} rooms, {ROOMS_MAX} at most")
        for room, lines in sorted(self.lines.items()):
            most = ROOMS_LARGE.get(room, ROOM_LINES)
            if lines > most and not room.startswith("include/"):
                self.found.append(f"{room}: {lines} lines, {most} at most: split it")
        for room in ROOMS_LARGE:
            if self.lines.get(room, 0) <= ROOM_LINES:
                self.found.append(f"tests/lint/layers.py: remove {room} from ROOMS_LARGE")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    tree = Tree(root)
    for d in "fs", "loader", "include":
        for path in sorted((root / d).rglob("*.[ch]")):
            tree.read(path)
    tree.finish()
    print("\n".join(tree.found), end="\n" if tree.found else "")
    return 1 if tree.found else 0


if __name__ == "__main__":
    sys.exit(main())
