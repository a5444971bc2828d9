# SPDX-License-Identifier: Apache-2.0
"""Functions that the scripts of this directory share."""
import html
import os
import pathlib
import random
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
IMAGE, INT = 2, 1
JPG, RAW = 0, 1
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000")
RECORD = struct.Struct("<BHHQ3xq")     # image: mode, width, height, place


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def say(message):
    print(f"{pathlib.Path(sys.argv[0]).name}: {message}", file=sys.stderr)


def fail_as(command, status):
    fail(f"exit status {status} of {shlex.join(map(str, command))}")


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdin=more.pop(
        "stdin", subprocess.DEVNULL), **more)
    if done.returncode:
        fail_as(command, done.returncode)
    return done


def output_of(*command, **more):
    return run(*command, stdout=subprocess.PIPE, text=True, **more).stdout


def program(directory, name):
    """The path of a program: in `directory`, or in build or else the PATH."""
    found = shutil.which(name, path=str(directory or ROOT / "build")) or \
        (None if directory else shutil.which(name))
    if not found:
        fail(f"no {name} in {directory or ROOT / 'build'}: run make, or give "
             "--bin")
    return found


def check_dataset(directory, file, pipeline):
    """End with the message of beton unless `pipeline` can load a sample of
    `file`."""
    with tempfile.TemporaryDirectory(prefix="beton-bench-") as work:
        done = subprocess.run(
            [program(directory, "beton"), "dump", "-q", "--batches=0:1",
             "--spec=order=sequential,batch=1", f"--pipeline={pipeline}",
             f"--out={work}/dump", "--", file], text=True,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        fail(done.stderr.strip().removeprefix("beton: ") or
             f"{file}: exit status {done.returncode} of beton dump")


def compiled(name, work):
    """The program of NAME.c beside this file."""
    run("cc", "-O3", "-march=native", "-pthread", "-o", work / name,
        HERE / f"{name}.c")
    return work / name


def package():
    """The Python package, as it was built."""
    sys.path.insert(0, str(ROOT / "build/python"))
    try:
        import betonfs
    except ImportError as e:
        fail(f"{e}: run make python")
    return betonfs


def spread(values):
    return {"median": statistics.median(values), "least": min(values),
            "most": max(values)}


def is_able_to_drop():
    return os.access("/proc/sys/vm/drop_caches", os.W_OK)


def drop_caches(what="3"):
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(what)


def cpu_s(pid):
    """User and system time of a process, its ended threads too."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Mount:
    """A dataset, mounted at a temporary place as long as this is entered."""

    def __init__(self, folder, file, options=(), prefix=()):
        self.command = [*prefix, program(folder, "betonfs"), file]
        if options:
            self.command += ["-o", ",".join(options)]
        self.pid = None

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="beton-bench-"))
        try:
            self.start()
        except BaseException:
            self.path.rmdir()
            raise
        self.pid = int(self.options()["pid"])
        return self

    def start(self):
        done = subprocess.run([*self.command, self.path], text=True,
                              stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
        if done.returncode:     # otherwise stderr only has its settings
            fail(f"{self.command}: {done.stderr}")

    def options(self):
        text = (self.path / ".betonfs/options").read_text()
        return dict(line.partition("=")[::2] for line in text.splitlines())

    def __exit__(self, *_):
        subprocess.run(["fusermount3", "-u", self.path], check=False)
        while os.path.exists(f"/proc/{self.pid}"):
            pass
        self.path.rmdir()


# --- datasets of images and labels ---

def write_head(f, samples, table, page, fields=((IMAGE, b"image"),
                                                (INT, b"label"))):
    f.write(struct.pack("<HHIQQ", 2, len(fields), page, samples, table))
    for kind, name in fields:
        f.write(bytes([kind]) + name.ljust(16, b"\0") + bytes(1024))


def jpeg_like(rng, size):
    return JPEG + rng.randbytes(size - len(JPEG))


def write_dataset(path, sizes, seed=1, page=2 << 20, side=None,
                  content=jpeg_like, shape=(8, 8)):
    """Images that are made by content(rng, size): raw ones of side x side, or
    what calls itself JPEG, of a width and a height."""
    rng = random.Random(seed)
    record = (RAW, side, side) if side else (JPG, *shape)
    first = -(-(24 + 2 * 1041 + len(sizes) * RECORD.size) // page) * page
    places, at = [], first
    for size in sizes:
        at += -at % page if at % page + size > page else 0
        places.append(at)
        at += size
    table = -(-at // page) * page
    with open(path, "wb") as f:
        write_head(f, len(sizes), table, page)
        for i, place in enumerate(places):
            f.write(RECORD.pack(*record, place, i % 1000))
        for place, size in zip(places, sizes):
            f.seek(place)
            f.write(content(rng, size))
        f.seek(table)
        for i, (place, size) in enumerate(zip(places, sizes)):
            f.write(struct.pack("<3Q", i, place, size))


def extents(path):
    """{sample: [(offset, size)...]} by the allocation table."""
    with open(path, "rb") as f:
        table = struct.unpack("<HHIQQ", f.read(24))[4]
        f.seek(table)
        out = {}
        for sample, place, size in struct.iter_unpack("<3Q", f.read()):
            out.setdefault(sample, []).append((place, size))
    return out


# --- plots of bars, in SVG; pixels ---

WIDTH, LABELS, BAR, GAP, TOP = 860, 260, 22, 12, 40


def text(x, y, words, anchor="start"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">'
            f'{html.escape(words)}</text>')


def box(x, y, width, color, title, height=BAR):
    return (f'<rect x="{x:.1f}" y="{y:g}" width="{max(width, 0):.1f}" '
            f'height="{height}" fill="{color}"><title>{html.escape(title)}'
            '</title></rect>')


def drawing(height, pieces):
    """A file of so many pixels of bars below a head."""
    height += TOP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *pieces, "</svg>", ""])
