# SPDX-License-Identifier: Apache-2.0
"""Write sources of columns by their own libraries, and print their values as
these libraries return them, in the form of rows.py.

    columns.py CASE DIRECTORY

writes a file or files below DIRECTORY, and prints their paths in a line that
begins with '#', then the values. test_columns.py runs it in an interpreter that
has the libraries. If a library is missing, it exits with 77 and names it."""
import importlib
import io
import json
import pathlib
import struct
import sys

CASES = {}
SAMPLES = 240


def case(*libraries):
    def add(function):
        CASES[function.__name__] = libraries, function
        return function
    return add


def hex_of(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value.hex()
    return value.tobytes().hex()


def ragged(*numbers):
    """An array of int64 as a field of bytes has it, beton(5)."""
    return struct.pack(f"<8s4sIQ{len(numbers)}q", b"BETONARR", b"<i8", 1,
                       len(numbers), *numbers).hex()


def real(value):
    return struct.pack(">d", float(value)).hex()


def show(kind, fields, samples):
    """fields: lines; samples: lists of strings."""
    print(kind, len(samples))
    for line in fields:
        print(line)
    for row in samples:
        print("".join(v + " " for v in row))


def png(i, size=3):
    from PIL import Image
    out = io.BytesIO()
    Image.new("RGB", (size + i % 3, size), (i % 256, 7, 9)).save(out, "png")
    return out.getvalue()


def jpeg(i):
    from PIL import Image
    out = io.BytesIO()
    Image.new("RGB", (8 + i % 5, 8), (i % 256, 70, 9)).save(out, "jpeg")
    return out.getvalue()


# --- Parquet -----------------------------------------------------------------

def parquet_table(n=SAMPLES):
    import numpy
    import pyarrow as pa
    rng = numpy.random.default_rng(5)
    ints = rng.integers(-2**31, 2**31, n)
    wide = rng.integers(-2**62, 2**62, n)
    floats = rng.standard_normal(n)
    lists = rng.standard_normal((n, 5)).astype("f4")
    grids = rng.integers(0, 255, (n, 2, 3))
    words = [f"word {i % 17} \u00e9" for i in range(n)]
    table = {
        "flag": pa.array([bool(i % 3) for i in range(n)]),
        "i8": pa.array((ints % 100 - 50).astype("i1")),
        "u16": pa.array((ints % 65536).astype("u2")),
        "i32": pa.array(ints.astype("i4")),
        "u32": pa.array((ints % 2**32).astype("u4")),
        "i64": pa.array(wide),
        "rising": pa.array(numpy.arange(n) * 1000003 - 5),
        "few": pa.array((ints % 3).astype("i8")),
        "f32": pa.array(floats.astype("f4")),
        "f64": pa.array(floats),
        "word": pa.array(words),
        "blob": pa.array([bytes(range(i % 40)) for i in range(n)]),
        "fixed": pa.array([struct.pack("<iq", i, i) for i in range(n)],
                          pa.binary(12)),
        "day": pa.array(numpy.arange(n).astype("i4"), pa.date32()),
        "list": pa.array(list(lists), pa.list_(pa.float32())),
        "same": pa.FixedSizeListArray.from_arrays(
            pa.array((ints % 7).astype("i2").repeat(4)), 4),
        "grid": pa.array([g.tolist() for g in grids],
                         pa.list_(pa.list_(pa.uint8()))),
        "image": pa.array([{"bytes": png(i), "path": None} for i in range(n)],
                          pa.struct([("bytes", pa.binary()),
                                     ("path", pa.string())])),
        "pair": pa.array([{"a": i, "b": i / 4} for i in range(n)]),
    }
    return pa.table(table)


PARQUET_FIELDS = """\
flag int
i8 int
u16 int
i32 int
u32 int
i64 int
rising int
few int
f32 float
f64 float
word text
blob bytes
fixed bytes
day int
list array <f4 5
same array <i2 4
grid array |u1 2 3
image image
pair.a int
pair.b float""".split("\n")


def show_parquet(paths, fields=PARQUET_FIELDS):
    import datetime
    import numpy
    import pyarrow as pa
    import pyarrow.parquet as pq
    table = pa.concat_tables(pq.read_table(p) for p in paths)
    rows = table.to_pylist()
    first = datetime.date(1970, 1, 1)
    out = []
    for row in rows:
        line = []
        for field in fields:
            name, kind, *rest = field.split(" ")
            top, _, below = name.partition(".")
            v = row[top][below] if below else row[top]
            if name == "day":
                v = (v - first).days
            if isinstance(v, dict):
                v = v["bytes"]
            if kind == "array":
                v = hex_of(numpy.array(v, rest[0]))
            else:
                v = (str(int(v)) if kind == "int" else
                     real(v) if kind == "float" else hex_of(v))
            line.append(v)
        out.append(line)
    show("parquet", fields, out)


def write_parquet(directory, n=SAMPLES, parts=1, drop=(), **options):
    import pyarrow.parquet as pq
    table = parquet_table(n).drop(list(drop))
    paths = []
    for i in range(parts):
        path = directory / f"part-{i}.parquet"
        begin, end = n * i // parts, n * (i + 1) // parts
        pq.write_table(table.slice(begin, end - begin), path, **options)
        paths.append(path)
    print("#", *paths)
    show_parquet(paths, [f for f in PARQUET_FIELDS
                         if f.split(" ")[0].split(".")[0] not in drop])


SMALL = dict(row_group_size=70, data_page_size=512, write_batch_size=16)


@case("pyarrow", "numpy", "PIL")
def parquet_snappy(directory):
    write_parquet(directory, compression="snappy", **SMALL)


@case("pyarrow", "numpy", "PIL")
def parquet_v2_zstd(directory):
    write_parquet(directory, compression="zstd", data_page_version="2.0",
                  parts=3, **SMALL)


@case("pyarrow", "numpy", "PIL")
def parquet_plain(directory):
    write_parquet(directory, compression="none", use_dictionary=False, **SMALL)


@case("pyarrow", "numpy", "PIL")
def parquet_gzip(directory):
    write_parquet(directory, compression="gzip", row_group_size=100)


@case("pyarrow", "numpy", "PIL")
def parquet_lz4(directory):
    write_parquet(directory, compression="lz4", **SMALL)


@case("pyarrow", "numpy", "PIL")
def parquet_encodings(directory):
    for version in "1.0", "2.0":
        below = directory / version
        below.mkdir()
    split, delta = "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED"
    lengths = "DELTA_LENGTH_BYTE_ARRAY"
    write_parquet(directory, use_dictionary=False, data_page_version="2.0",
                  column_encoding={
                      "flag": "RLE", "i32": delta, "i64": delta,
                      "u32": delta, "rising": delta, "few": delta,
                      "f32": split, "f64": split, "u16": split,
                      "word": lengths, "blob": lengths,
                      "list.list.element": split, "i8": delta}, **SMALL)


@case("pyarrow", "numpy", "PIL")
def parquet_small(directory):
    """Small enough for tests/columns."""
    write_parquet(directory, n=20, row_group_size=8, data_page_size=64,
                  write_batch_size=4, compression="snappy",
                  drop=["i8", "u16", "u32", "f64", "fixed", "day", "same",
                        "pair"])


@case("pyarrow", "numpy", "PIL")
def parquet_huggingface(directory):
    """Labels with names, as `datasets` writes them."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    features = {"image": {"_type": "Image"},
                "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    table = pa.table({
        "image": pa.array([{"bytes": jpeg(i), "path": f"{i}.jpg"}
                           for i in range(SAMPLES)]),
        "label": pa.array([i % 2 for i in range(SAMPLES)]),
    }).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})})
    path = directory / "train.parquet"
    pq.write_table(table, path, row_group_size=100)
    print("#", path)
    show("parquet", ["image image", "label int cat dog"],
         [[hex_of(jpeg(i)), str(i % 2)] for i in range(SAMPLES)])


@case("pyarrow")
def parquet_refused(directory):
    """Columns that no field can hold, and rows with nulls."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from decimal import Decimal
    path = directory / "t.parquet"
    pq.write_table(pa.table({
        "id": pa.array([1, None, 3]),
        "names": pa.array([["a"], ["b"], []]),
        "ragged": pa.array([[1], [1, 2], [3]]),
        "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
        "price": pa.array([Decimal("1.5")] * 3),
        "deep": pa.array([{"a": {"b": 1}}] * 3),
    }), path)
    print("#", path)
    remedy = "leave the column out with --fields"
    show("parquet", [
        "id int",
        "names json",
        "ragged bytes",
        f"map bytes refused: maps: {remedy}",
        f"price bytes refused: decimal numbers: {remedy}",
        f"deep.a bytes refused: nested values: {remedy}",
    ], [["1", hex_of('["a"]'), ragged(1)],
        [f"error {path}, row 1: column 'id': a null"],
        ["3", hex_of("[]"), ragged(3)]])


# --- MDS ---------------------------------------------------------------------

def mds_columns():
    import numpy
    from PIL import Image

    def image(i, mode):
        return Image.frombytes(mode, (3 + i % 2, 2), bytes(
            (i + j) % 256 for j in range((3 + i % 2) * 2 * len(mode))))

    def array(i, dtype, *shape):
        n = int(numpy.prod(shape))
        return (numpy.arange(n) + i).astype(dtype).reshape(shape)

    return {
        "array": ("ndarray", "array <f4 2 3", lambda i: array(i, "f4", 2, 3)),
        "blob": ("bytes", "bytes", lambda i: bytes(range(i % 50))),
        "dtyped": ("ndarray:int16", "array <i2 300",
                   lambda i: array(i, "i2", 300)),
        "f16": ("float16", "float", lambda i: i / 8 - 3),
        "f32": ("float32", "float", lambda i: i / 3),
        "f64": ("float64", "float", lambda i: i / 7),
        "gray": ("pil", "image", lambda i: image(i, "L")),
        "i16": ("int16", "int", lambda i: i - 100),
        "i8": ("int8", "int", lambda i: i % 200 - 100),
        "int": ("int", "int", lambda i: (i - 5) << 40),
        "json": ("json", "json", lambda i: {"a": [i, "x"]}),
        "photo": ("bytes", "image", jpeg),
        "pil": ("pil", "image", lambda i: image(i, "RGB")),
        "png": ("png", "image", lambda i: Image.open(io.BytesIO(png(i)))),
        "shaped": ("ndarray:uint8:2,2", "array |u1 2 2",
                   lambda i: array(i, "u1", 2, 2)),
        "sint": ("str_int", "int", lambda i: -i),
        "sreal": ("str_float", "float", lambda i: i / 11),
        "u64": ("uint64", "int", lambda i: i << 50),
        "word": ("str", "text", lambda i: f"w\u00f6rd {i}"),
        "zpkl": ("pkl", "bytes refused: pickled Python objects: leave the "
                 "column out with --fields", lambda i: {i}),
    }


def shown(kind, value):
    """A value of a library that writes shards, as rows.py prints it."""
    from PIL import Image
    if kind == "int":
        return str(int(value))
    if kind == "float":
        return real(value)
    if isinstance(value, Image.Image):
        width, height = value.size
        return (f"{width}x{height}x{len(value.getbands())}:" +
                value.tobytes().hex())
    if kind == "json":
        return json.dumps(value).encode().hex()
    return hex_of(value)


def write_mds(directory, n=SAMPLES, parts=1, drop=(), compression=None,
              limit=20000):
    import numpy
    from streaming import MDSWriter
    from streaming.base.format.mds.reader import MDSReader
    every = {k: v for k, v in mds_columns().items() if k not in drop}
    paths, rows = [], []
    for part in range(parts):
        path = directory / f"part-{part}"
        with MDSWriter(out=str(path), compression=compression,
                       size_limit=limit,
                       columns={k: v[0] for k, v in every.items()}) as w:
            for i in range(n * part // parts, n * (part + 1) // parts):
                w.write({k: numpy.dtype(v[0]).type(v[2](i))
                         if v[0][:3] in ("flo", "uin") else v[2](i)
                         for k, v in every.items()})
        paths.append(path)
        index = json.loads((path / "index.json").read_text())
        for shard in index["shards"]:
            reader = MDSReader.from_json(str(path), None, shard)
            copy = None
            if compression:
                copy = path / shard["raw_data"]["basename"]
                import zstd
                copy.write_bytes(zstd.decompress(
                    (path / shard["zip_data"]["basename"]).read_bytes()))
            for i in range(shard["samples"]):
                sample = reader[i]
                if "png" in every:
                    # The file's bytes; the library returns decoded images.
                    sample["png"] = reader.get_sample_data(i)
                    sample["png"] = column_of(sample["png"], shard, "png")
                rows.append([shown(v[1].split(" ")[0], sample[k])
                             for k, v in every.items()
                             if "refused" not in v[1]])
            if copy:
                copy.unlink()
    print("#", *paths)
    show("mds", [f"{k} {v[1]}" for k, v in every.items()], rows)


def column_of(data, shard, name):
    """The bytes of a column in a sample."""
    sizes, at = list(shard["column_sizes"]), 0
    for i, size in enumerate(sizes):
        if size is None:
            sizes[i], = struct.unpack_from("<I", data, at)
            at += 4
    i = shard["column_names"].index(name)
    at += sum(sizes[:i])
    return data[at:at + sizes[i]]


@case("streaming", "numpy", "PIL")
def mds(directory):
    write_mds(directory)


@case("streaming", "numpy", "PIL", "zstd")
def mds_zstd(directory):
    write_mds(directory, parts=2, compression="zstd:3")


@case("streaming", "numpy", "PIL")
def mds_small(directory):
    """Small enough for tests/columns."""
    write_mds(directory, n=12, limit=2500, drop=[
        "dtyped", "f64", "i8", "sint", "sreal", "png", "f16", "gray"])


# --- LitData -----------------------------------------------------------------

def litdata_sample(i):
    import numpy
    import torch
    from PIL import Image
    return {
        "image": Image.frombytes("RGB", (3 + i % 2, 2), bytes(
            (i + j) % 256 for j in range((3 + i % 2) * 6))),
        "label": i - 7,
        "real": i / 7,
        "word": f"w\u00f6rd {i}",
        "blob": bytes(range(i % 50)),
        "photo": jpeg(i),
        "flag": i % 3 == 0,
        "flat": numpy.arange(5).astype("f4") + i,
        "grid": (numpy.arange(6).reshape(2, 3) + i).astype("u2"),
        "tensor": torch.arange(4).reshape(2, 2) + i,
        "vector": torch.arange(3, dtype=torch.float32) / (i + 1),
        "below": {"a": i, "b": str(i)},
    }


LITDATA_FIELDS = """\
image image
label int
real float
word text
blob bytes
photo image
flag int
flat array <f4 5
grid array <u2 2 3
tensor array <i8 2 2
vector array <f4 3
below.a int
below.b text""".split("\n")


def write_litdata(directory, n=SAMPLES, chunk=50, **options):
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter
    path = directory / "data"
    writer = BinaryWriter(str(path), chunk_size=chunk, **options)
    for i in range(n):
        writer[i] = litdata_sample(i)
    writer.done()
    writer.merge()
    # Reading leaves decompressed chunks, so it reads a copy.
    import shutil
    copy = directory / "copy"
    shutil.copytree(path, copy)
    dataset = StreamingDataset(str(copy))
    rows = []
    for i in range(n):
        sample = dataset[i]
        row = []
        for field in LITDATA_FIELDS:
            name, kind, *_ = field.split(" ")
            top, _, below = name.partition(".")
            v = sample[top][below] if below else sample[top]
            row.append(shown(kind, v.numpy() if hasattr(v, "numpy") else v))
        rows.append(row)
    print("#", path)
    show("litdata", LITDATA_FIELDS, rows)


@case("litdata", "numpy", "PIL")
def litdata_plain(directory):
    write_litdata(directory)


@case("litdata", "numpy", "PIL", "zstd")
def litdata_chunks(directory):
    write_litdata(directory, compression="zstd", compression_level="chunk")


@case("litdata", "numpy", "PIL", "zstd")
def litdata_batches(directory):
    write_litdata(directory, compression="zstd", compression_level="batch",
                  compression_batch_size=16)


@case("litdata", "numpy", "PIL", "zstd")
def litdata_samples(directory):
    write_litdata(directory, compression="zstd", compression_level="sample")


@case("litdata", "numpy", "PIL")
def litdata_small(directory):
    """Small enough for tests/columns."""
    write_litdata(directory, n=8, chunk=3)


# --- LMDB --------------------------------------------------------------------

def show_lmdb(paths, fields, rows):
    print("#", *paths)
    show("lmdb", fields, rows)


def fill_lmdb(path, pairs, **options):
    """Returns the entries in order, as the library has them."""
    import lmdb
    env = lmdb.open(str(path), map_size=1 << 28, **options)
    for begin in range(0, len(pairs), 37):
        with env.begin(write=True) as txn:
            for key, value in pairs[begin:begin + 37]:
                txn.put(key, value)
    with env.begin() as txn:
        out = list(txn.cursor())
    env.close()
    return out


@case("lmdb", "PIL")
def lmdb_images(directory):
    """Keys in another order than they were written, values of 100 bytes to
    20 KB, and entries that are no samples."""
    paths, rows = [], []
    for part in range(2):
        path = directory / f"part-{part}"
        pairs = [(f"{i * 7919 % 1000:04}.jpg".encode(),
                  jpeg(i) + bytes(i * 80)) for i in range(SAMPLES // 2)]
        pairs += [(b"__len__", b"120"), (b"__keys__", b"x" * 9000)]
        entries = fill_lmdb(path, pairs)
        rows += [[hex_of(v), hex_of(k)] for k, v in entries
                 if not k.startswith(b"__")]
        paths.append(path)
    show_lmdb(paths, ["image image", "key text"], rows)


@case("lmdb", "PIL")
def lmdb_pairs(directory):
    pairs = [(b"num-samples", str(SAMPLES).encode())]
    rows = []
    for i in range(SAMPLES):
        pairs.append((b"image-%09d" % (i + 1), png(i)))
        pairs.append((b"label-%09d" % (i + 1), f"text {i}".encode()))
        rows.append([hex_of(png(i)), hex_of(f"text {i}")])
    path = directory / "data.lmdb"
    fill_lmdb(path, pairs, subdir=False)
    show_lmdb([path], ["image image", "label text"], rows)


@case("lmdb")
def lmdb_values(directory):
    """Keys that are no text, and values of all sizes around a page."""
    path = directory / "db"
    pairs = [(struct.pack(">I", i * 3), bytes([i % 251]) * (i * 37))
             for i in range(SAMPLES)]
    entries = fill_lmdb(path, pairs)
    show_lmdb([path], ["value bytes", "key bytes"],
              [[hex_of(v), hex_of(k)] for k, v in entries])


@case("lmdb", "PIL")
def lmdb_small(directory):
    """Small enough for tests/columns."""
    path = directory / "db"
    pairs = [(f"{i:02}.png".encode(), png(i)) for i in range(20)]
    entries = fill_lmdb(path, pairs)
    (path / "lock.mdb").unlink()
    show_lmdb([path], ["image image", "key text"],
              [[hex_of(v), hex_of(k)] for k, v in entries])


# --- HDF5 --------------------------------------------------------------------

HDF5_FIELDS = """\
big array <i2 2 2
blob bytes
flag int
flags array |b1 3
coded text
floats array <f4 4
half float
images image
label int
photo image
real float
word text""".split("\n")


def hdf5_datasets(n, first=0):
    import numpy
    i = numpy.arange(first, first + n)
    return {
        "images": ((i[:, None] * 7 + numpy.arange(60)) % 256
                   ).astype("u1").reshape(n, 4, 5, 3),
        "label": (i - 9).astype("i4"),
        "real": i / 7,
        "half": (i / 8).astype("f2"),
        "flag": i % 3 == 0,
        "flags": (i[:, None] + numpy.arange(3)) % 2 == 0,
        "deep/floats": (i[:, None] * numpy.arange(4) / 3).astype("f4"),
        "big": (i[:, None] + numpy.arange(4)).astype(">i2").reshape(n, 2, 2),
        "deep/coded": numpy.array([b"c%d" % k for k in i], "S8"),
    }


def write_hdf5(directory, n=SAMPLES, parts=1, drop=(), **options):
    import h5py
    import numpy
    paths, rows = [], []
    fields = [f for f in HDF5_FIELDS if f.split(" ")[0] not in drop]
    for part in range(parts):
        path = directory / f"part-{part}.h5"
        with h5py.File(path, "w") as f:
            for name, values in hdf5_datasets(n, part * n).items():
                if name.split("/")[-1] not in drop:
                    f.create_dataset(name, data=values, **options)
            lists = h5py.vlen_dtype(numpy.uint8)
            if "word" not in drop:
                f.create_dataset("word", data=[f"w\u00f6rd {i}" for i in
                                               range(n)],
                                 dtype=h5py.string_dtype())
            for name, made in ("blob", lambda i: bytes(range(i % 50))), (
                    "photo", jpeg):
                if name in drop:
                    continue
                d = f.create_dataset(name, (n,), dtype=lists)
                for i in range(n):
                    d[i] = numpy.frombuffer(made(i + part * n), "u1")
        with h5py.File(path) as f:
            for i in range(n):
                row = []
                for field in fields:
                    name, kind, *rest = field.split(" ")
                    v = f[name if name in f else f"deep/{name}"][i]
                    if name == "images":
                        v = "5x4x3:" + v.tobytes().hex()
                    elif rest:
                        v = v.astype(rest[0]).tobytes().hex()
                    else:
                        v = shown(kind, v)
                    row.append(v)
                rows.append(row)
        paths.append(path)
    print("#", *paths)
    order = sorted(range(len(fields)), key=lambda k: (
        "deep" if fields[k].split(" ")[0] in ("coded", "floats")
        else fields[k].split(" ")[0], fields[k]))
    show("hdf5", [fields[k] for k in order],
         [[row[k] for k in order] for row in rows])


@case("h5py", "numpy", "PIL")
def hdf5_plain(directory):
    write_hdf5(directory)


@case("h5py", "numpy", "PIL")
def hdf5_gzip(directory):
    write_hdf5(directory, parts=3, chunks=True, compression="gzip",
               shuffle=True)


@case("h5py", "numpy", "PIL")
def hdf5_small(directory):
    """Small enough for tests/columns."""
    write_hdf5(directory, n=8, drop=["photo", "blob", "word", "big", "flags"])


@case("h5py", "numpy")
def hdf5_refused(directory):
    import h5py
    import numpy
    path = directory / "t.h5"
    with h5py.File(path, "w") as f:
        f["a"] = numpy.arange(3)
        f["b"] = numpy.arange(4)
        f["c"] = numpy.zeros(3, [("x", "i4"), ("y", "f4")])
        f["soft"] = h5py.SoftLink("/a")
        f["elsewhere"] = h5py.ExternalLink("/etc/passwd", "x")
        f["one"] = 5
        f["x/same"], f["y/same"] = numpy.arange(3), numpy.arange(3)
    print("#", path)
    remedy = "leave the dataset out with --fields"
    show("hdf5", [
        "a int",
        f"b int refused: 4 rows instead of 3: {remedy}",
        "c bytes refused: values of a type that a dataset cannot hold: "
        + remedy,
        "one bytes refused: no rows, or more than 8 dimensions in a row: "
        + remedy,
        "x.same int", "y.same int"], [[str(i)] * 3 for i in range(3)])


def main():
    name, directory = sys.argv[1:]
    libraries, function = CASES[name]
    for library in libraries:
        try:
            importlib.import_module(library)
        except ImportError:
            print(library)
            sys.exit(77)
    function(pathlib.Path(directory))


if __name__ == "__main__":
    main()
