# SPDX-License-Identifier: Apache-2.0
"""mkfs.beton: arrays, archives, tables, records and lists of paths as sources.
Each value is compared with that of the library, or of the format's rules."""
import csv
import gzip
import io
import json
import os
import pathlib
import struct
import subprocess
import tarfile
import zlib

import numpy as np
import pytest

import betonfile
from betonfile import BYTES, FLOAT, IMAGE, INT, JSON, NDARRAY
from libraries import need

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).absolute()
N = 12
PIXELS = np.random.default_rng(5).integers(0, 256, (N, 7, 5, 3), np.uint8)


def run(*args, stdin=b""):
    return subprocess.run([BUILD / "mkfs.beton", *map(str, args)],
                          input=stdin, capture_output=True, timeout=60)


def mkfs(*args, stdin=b""):
    """The dataset as name -> values; for one and for three threads."""
    out = pathlib.Path(args[-1])
    made = []
    for jobs in 3, 1:
        r = run("-j", jobs, "--mode=raw", *args, stdin=stdin)
        assert r.returncode == 0, r.stderr
        made.append(out.read_bytes())
    assert made[0] == made[1]
    return columns(betonfile.Beton(out).check())


def columns(b):
    return {f.name: [decode(f, b.value(i, k)) for i in range(b.samples)]
            for k, f in enumerate(b.fields)}


def decode(field, v):
    if field.type == NDARRAY:
        return np.frombuffer(v, field.dtype).reshape(field.shape)
    if field.type == JSON:
        assert v.endswith(b"\0")
        return json.loads(v[:-1])
    if field.type == IMAGE:
        return np.frombuffer(v.bytes, np.uint8).reshape(v.height, v.width, 3)
    return v


def types(path):
    return {f.name: f.type for f in betonfile.Beton(path).fields}


def refused(*args, stdin=b""):
    r = run(*args, stdin=stdin)
    lines = r.stderr.decode().splitlines()
    assert r.returncode == 1 and len(lines) == 1, r
    assert not pathlib.Path(args[-1]).exists()
    return lines[0]


def png(pixels):
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data
                + struct.pack(">I", zlib.crc32(name + data)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.beton"


@pytest.fixture
def pictures(tmp_path):
    (tmp_path / "im").mkdir()
    for i in range(N):
        (tmp_path / "im" / f"{i}.png").write_bytes(png(PIXELS[i]))
    return tmp_path / "im"


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x, y)


# --- NumPy ------------------------------------------------------------------

DTYPES = ["|b1", "|i1", "|u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8",
          "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_numbers_of_every_type(tmp_path, out, dtype, version):
    a = np.array([0, 1, -1, 100, 3.25, -2.5, 6e-8]).astype(dtype)
    with open(tmp_path / "x.npy", "wb") as f:
        np.lib.format.write_array(f, a, version)
    got = mkfs(tmp_path / "x.npy", out)["x"]
    assert got == a.tolist()
    assert types(out)["x"] == (FLOAT if "f" in dtype else INT)


@pytest.mark.parametrize("dtype", [">i2", "<f4", ">f8", "<c8", ">c16", "|u1"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(9, 4), (9, 2, 3), (1, 2, 3, 4), (5000, 3)])
def test_rows_of_arrays(tmp_path, out, dtype, order, shape):
    a = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    np.save(tmp_path / "x.npy", np.array(a, order=order))
    got = mkfs(tmp_path / "x.npy", out)["x"]
    same(got, a)
    assert got[0].dtype == np.dtype(dtype).newbyteorder("<")


def test_rows_in_fortran_order_that_need_several_pieces(tmp_path, out):
    """A piece has 16 MiB."""
    a = np.arange(4100 * 1100, dtype="<i4").reshape(4100, 1100)
    np.save(tmp_path / "x.npy", np.asfortranarray(a))
    r = run(tmp_path / "x.npy", "--subset", "4080-4100", out)
    assert r.returncode == 0, r.stderr
    same(columns(betonfile.Beton(out))["x"], a[4080:])


def test_text_arrays(tmp_path, out):
    words = ["", "a", "é€😀", "trailing  "]
    np.save(tmp_path / "u.npy", np.array(words, ">U10"))
    np.save(tmp_path / "s.npy", np.array([w.encode() for w in words], "S16"))
    got = mkfs(tmp_path / "u.npy", tmp_path / "s.npy",
               "--fields=u:bytes,s:bytes", out)
    assert got["u"] == got["s"] == [w.encode() for w in words]


@pytest.mark.parametrize("channels", [(), (1,), (3,), (4,)])
def test_pixels_are_images_by_name(tmp_path, out, channels):
    a = np.random.default_rng(1).integers(0, 256, (4, 6, 5, *channels),
                                          dtype=np.uint8)
    for name in "images", "other":
        np.save(tmp_path / f"{name}.npy", a)
    got = mkfs(tmp_path / "images.npy", tmp_path / "other.npy", out)
    rgb = a.reshape(4, 6, 5, -1)
    rgb = rgb.repeat(3, 3) if rgb.shape[3] == 1 else rgb[..., :3]
    same(got["images"], rgb)
    same(got["other"], a)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_follow_each_other(tmp_path, out, save):
    need()
    save(tmp_path / "0.npz", image=PIXELS[:5], y=np.arange(5))
    save(tmp_path / "1.npz", y=np.arange(5, N), image=PIXELS[5:])
    got = mkfs(tmp_path / "0.npz", tmp_path / "1.npz", out)
    assert got["y"] == list(range(N))
    same(got["image"], PIXELS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_in_its_order_makes_no_copy(tmp_path, out, monkeypatch, save):
    need()
    monkeypatch.setenv("TMPDIR", "/nowhere")
    save(tmp_path / "0.npz", y=np.arange(5))
    assert mkfs(tmp_path / "0.npz", out)["y"] == [0, 1, 2, 3, 4]
    out.unlink()
    assert "TMPDIR" in refused("--shuffle", tmp_path / "0.npz", out)


@pytest.mark.parametrize("array, why", [
    (np.array([{}, 1], object), "Python objects"),
    (np.zeros(3, [("a", "i4"), ("b", "f4")]), "structures"),
    (np.float32(1), "scalar"),
    (np.zeros((0, 3)), "no rows"),
    (np.zeros((3, 0)), "no elements"),
    (np.array([["a"], ["b"]]), "text with 2 dimensions"),
])
def test_arrays_that_are_no_fields(tmp_path, out, array, why):
    np.save(tmp_path / "x.npy", array)
    assert why in refused(tmp_path / "x.npy", out)


def test_damaged_arrays(tmp_path, out):
    a, path = np.arange(90).reshape(30, 3), tmp_path / "x.npy"
    np.save(path, a)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert "30 rows of 24 bytes, but the file has 719" in refused(path, out)
    path.write_bytes(whole[:50])
    assert "ends inside the array's header" in refused(path, out)
    path.write_bytes(b"\x93NUMPY\x04\0" + whole[8:])
    assert "no header of NumPy's format" in refused(path, out)
    np.save(path, np.arange(3))
    np.save(tmp_path / "y.npy", np.arange(4))
    assert "4 rows, but the arrays before it have 3" in \
        refused(path, tmp_path / "y.npy", out)


def test_damaged_npz(tmp_path, out):
    need()
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(1000))
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[:-9])
    assert "not a zip file" in refused(path, out)
    whole[200] ^= 1
    path.write_bytes(whole)
    message = refused(path, out)
    assert str(path) in message and (
        "decompressing" in message or "CRC" in message)


# --- WebDataset -------------------------------------------------------------

def add(t, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    t.addfile(info, io.BytesIO(data))


def npy(a):
    f = io.BytesIO()
    np.save(f, a)
    return f.getvalue()


def shard(path, samples, form=tarfile.PAX_FORMAT):
    """samples: (key, {extension: bytes})."""
    with tarfile.open(path, "w", format=form) as t:
        for key, files in samples:
            for extension, data in files.items():
                add(t, f"{key}.{extension}", data)


@pytest.mark.quick
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT,
                                  tarfile.PAX_FORMAT])
def test_shards(tmp_path, out, form):
    deep = "d" * 90 + "/" + "e" * (60 if form == tarfile.USTAR_FORMAT else 300)
    paths = [tmp_path / "0.tar", tmp_path / "1.tar"]
    for k, path in enumerate(paths):
        shard(path, [(f"{deep}/k{i:03}", {
            ["png", "PNG"][i % 2]: png(PIXELS[i]), "cls": b"%d\n" % (i - 3),
            "txt": f"é {i}".encode(), "json": json.dumps({"i": i}).encode(),
            "npy": npy(np.full((2, 3), i, "<f4")),
            "ragged.npy": npy(np.arange(i)), "a.bin": bytes(range(i)),
        }) for i in range(k * 6, k * 6 + 6)], form)
    got = mkfs(*paths, "--fields=image,cls,txt:bytes,json,npy,ragged=ragged.npy,"
               "a=a.bin", out)
    same(got["image"], PIXELS)
    assert got["cls"] == [i - 3 for i in range(N)]
    assert got["txt"] == [f"é {i}".encode() for i in range(N)]
    assert got["json"] == [{"i": i} for i in range(N)]
    same(got["npy"], [np.full((2, 3), i, "<f4") for i in range(N)])
    assert got["ragged"] == [npy(np.arange(i)) for i in range(N)]
    assert got["a"] == [bytes(range(i)) for i in range(N)]


def test_two_images_of_a_sample_are_two_fields(tmp_path, out):
    shard(tmp_path / "0.tar", [(str(i), {"png": png(PIXELS[i]),
                                         "mask.png": png(PIXELS[-i])})
                               for i in range(3)])
    got = mkfs(tmp_path / "0.tar", out)
    same(got["image"], PIXELS[:3])
    same(got["mask"], [PIXELS[-i] for i in range(3)])
    shard(tmp_path / "0.tar", [(str(i), {"png": png(PIXELS[i]),
                                         "webp": png(PIXELS[-i])})
                               for i in range(3)])
    got = mkfs(tmp_path / "0.tar", out)
    same(got["png"], PIXELS[:3])
    same(got["webp"], [PIXELS[-i] for i in range(3)])


def test_other_files_of_an_archive_are_ignored(tmp_path, out):
    with tarfile.open(tmp_path / "0.tar", "w") as t:
        add(t, "__meta__/x.txt", b"")
        add(t, "README", b"")
        add(t, ".hidden.txt", b"")
        info = tarfile.TarInfo("a.id")
        info.type, info.linkname = tarfile.SYMTYPE, "b"
        t.addfile(info)
        add(t, "dir.d/1.id", b"7")
    assert mkfs(tmp_path / "0.tar", out) == {"id": [7]}


@pytest.mark.parametrize("second, why", [
    ({"cls": b"2"}, "sample '1' has no file '.txt'"),
    ({"cls": b"2", "txt": b"", "xyz": b""}, "has a file '.xyz'"),
    ({"cls": b"x", "txt": b""}, ".cls: 'x' is no integer"),
    ({"cls": b"9" * 30, "txt": b""}, "is no integer"),
    ({"cls": b"2", "txt": b"\xff"}, ".txt: not UTF-8"),
])
def test_shards_with_bad_samples(tmp_path, out, second, why):
    shard(tmp_path / "0.tar", [("0", {"cls": b"1", "txt": b""}), ("1", second)])
    message = refused(tmp_path / "0.tar", "--fields=cls,txt:bytes", out)
    assert why in message and "0.tar" in message


def test_damaged_archives(tmp_path, out):
    path = tmp_path / "0.tar"
    shard(path, [(str(i), {"cls": b"1" * 9}) for i in range(9)])
    whole = path.read_bytes()
    path.write_bytes(whole[:1500])
    assert "ends" in refused(path, out)
    path.write_bytes(whole[:1030])
    assert "inside the header at byte 1024" in refused(path, out)
    path.write_bytes(whole[:1024] + b"x" + whole[1025:])
    assert "damaged header at byte 1024" in refused(path, out)
    for name, compress in ("0.tar.gz", gzip.compress), ("1.tar", gzip.compress):
        (tmp_path / name).write_bytes(compress(whole))
        assert "compressed" in refused(tmp_path / name, out)


def test_shards_of_webdataset(tmp_path, out):
    wds = pytest.importorskip("webdataset")
    pytest.importorskip("PIL")
    path = str(tmp_path / "0.tar")
    with wds.TarWriter(path) as t:
        for i in range(N):
            t.write({"__key__": f"{i:04}", "png": PIXELS[i], "cls": i - 3,
                     "txt": f"é {i}", "json": [i], "npy": np.arange(3.0) * i})
    got = mkfs(path, "--fields=image,cls,txt:bytes,json,npy", out)
    want = list(wds.WebDataset(path, shardshuffle=False).decode("rgb8"))
    same(got["image"], [w["png"] for w in want])
    same(got["npy"], [w["npy"] for w in want])
    assert got["cls"] == [w["cls"] for w in want]
    assert got["txt"] == [w["txt"].encode() for w in want]
    assert got["json"] == [w["json"] for w in want]


# --- tables -----------------------------------------------------------------

@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tables(tmp_path, pictures, out, separator, end):
    rows = [[f"im/{i}.png" if i % 2 else str(pictures / f"{i}.png"), i - 3,
             i / 7, ["true", "False"][i % 2], f'say "é", \t{i}\nor', f"{i:03}"]
            for i in range(N)]
    path = tmp_path / ("t.csv" if separator == "," else "t.tsv")
    with open(path, "w", newline="", encoding="utf-8-sig") as f:
        w = csv.writer(f, delimiter=separator, lineterminator=end)
        w.writerow(["path", "label", "score", "flag", "text", "code"])
        w.writerows(rows[:5])
        f.write(end)
        w.writerows(rows[5:])
    got = mkfs(path, "--fields=path,label,score,flag,text:bytes,code:bytes",
               out)
    same(got["path"], PIXELS)
    assert got["label"] == [i - 3 for i in range(N)]
    assert got["score"] == [i / 7 for i in range(N)]
    assert got["flag"] == [1 - i % 2 for i in range(N)]
    assert got["text"] == [r[4].encode() for r in rows]
    assert got["code"] == [r[5].encode() for r in rows]


def test_a_header_with_types(tmp_path, pictures, out):
    (tmp_path / "blob").write_bytes(b"\0\xff")
    (tmp_path / "t.csv").write_text(
        "a:float,b:text,c:bytes,d:json,e:class,f:image,g:x\n"
        '1,2,blob,"{""k"": [1]}",ant,im/0.png,im/0.png\n'
        "2,,blob,3,bee,im/1.png,4\n3,x,blob,null,ant,im/2.png,5\n")
    got = mkfs(tmp_path / "t.csv", "--fields=a,b:bytes,c,d,e,f,g:bytes=g:x",
               out)
    assert got["a"] == [1.0, 2.0, 3.0] and got["b"] == [b"2", b"", b"x"]
    assert got["c"] == [b"\0\xff"] * 3 and got["d"] == [{"k": [1]}, 3, None]
    assert got["e"] == [0, 1, 0]
    same(got["f"], PIXELS[:3])
    assert types(out)["a"] == FLOAT and types(out)["c"] == BYTES
    assert b"ant\0bee\0" in out.read_bytes()


@pytest.mark.parametrize("values, kind", [
    (["1", "-2", "+3"], INT), (["1", "true"], INT), (["1", "2.5"], FLOAT),
    (["1e3", "nan", "-inf"], FLOAT), ([" 1", "2 "], INT),
    (["007", "8"], BYTES), (["9" * 19, "1"], BYTES), (["1", "x"], BYTES),
    (["1_000"], BYTES), (["0x10"], BYTES), (["true", "2.5"], BYTES),
])
def test_types_of_columns(tmp_path, out, values, kind):
    (tmp_path / "t.csv").write_text("\n".join(["x", *values]))
    fields = ["--fields=x:bytes"] if kind == BYTES else []
    got = mkfs(tmp_path / "t.csv", *fields, out)["x"]
    assert types(out)["x"] == kind
    want = [v.encode() if kind == BYTES else
            int(v == "true" or v != "false" and float(v)) if kind == INT else
            float(v) for v in values]
    np.testing.assert_equal(got, want)


@pytest.mark.quick
def test_lines_of_json(tmp_path, pictures, out):
    rows = [{"path": f"im/{i}.png", "label": i - 3, "z": i / 7, "f": i > 3,
             "box": [i, 1, 2.5], "ids": [i, -1], "ragged": [1] * i,
             "meta": {"é": [i]}, "mixed": [i, "é"][i % 2], "text": f"é\n{i}"}
            for i in range(N)]
    with open(tmp_path / "t.jsonl", "w") as f:
        for i, row in enumerate(rows):
            keys = list(row)[:: 1 if i % 2 else -1]
            f.write(json.dumps({k: row[k] for k in keys}) + "\n")
            f.write("\r\n" if i == 3 else "")
    got = mkfs(tmp_path / "t.jsonl", "--fields=path,label,z,f,box,ids,ragged,"
               "meta,mixed,text:bytes", out)
    same(got["path"], PIXELS)
    for name in "label", "z", "f", "ragged", "meta", "mixed":
        assert got[name] == [r[name] for r in rows]
    same(got["box"], [np.array(r["box"], "<f4") for r in rows])
    same(got["ids"], [np.array(r["ids"], "<i8") for r in rows])
    assert got["text"] == [r["text"].encode() for r in rows]


def test_tables_follow_each_other(tmp_path, out):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\n3.5,4")
    got = mkfs(tmp_path / "a.csv", tmp_path / "b.csv", out)
    assert got == {"x": [1.0, 3.5], "y": [2, 4]}
    (tmp_path / "b.csv").write_text("y,x\n3.5,4\n")
    out.unlink()
    assert "column 'y', but 'x'" in refused(tmp_path / "a.csv",
                                            tmp_path / "b.csv", out)


@pytest.mark.parametrize("text, why", [
    ("", "t.csv:1: no header line"),
    ("x\n", "no rows"),
    ("x,x\n1,2\n", "t.csv:1: two columns have the name 'x'"),
    (",x\n0,1\n", "t.csv:1: column 1 has no name"),
    ("x,y\n1,2\n\n3\n", "t.csv:4: 1 cells, but the header has 2"),
    ("x,y\n1,2\n3,\n", "t.csv:3: column 'y': '': no value"),
    ('x\n"a\nb\n', "t.csv:2: a quote without an end"),
    ('x\n"a"b\n', "t.csv:2: characters behind the quote"),
    ("x:int\n1\n\n2.5\n", "t.csv:4: column 'x': '2.5': no integer"),
    ("x:json\n{\n", "t.csv:2: column 'x': '{': no JSON"),
    ("x\na\0b\n", "t.csv:2: column 'x'"),
])
def test_bad_tables(tmp_path, out, text, why):
    (tmp_path / "t.csv").write_text(text)
    assert why in refused(tmp_path / "t.csv", out)


@pytest.mark.parametrize("text, why", [
    ('{"x": 1}\n{"y": 1}\n', "t.jsonl:2: the key 'y', which the first"),
    ('{"x": 1, "y": 2}\n{"x": 1}\n', "t.jsonl:2: the key 'y' is missing"),
    ('{"x": 1}\n\n{"x": null}\n', "t.jsonl:3: column 'x': '': no value"),
    ('{"x": 1}\n[1]\n', "t.jsonl:2: no JSON object"),
    ('{"x": 1}\n{"x": 1\n', "t.jsonl:2: column"),
    ('{"x": 1, "x": 2}\n', "t.jsonl:1: column"),
    ("{}\n", "t.jsonl:1: no JSON object with keys"),
])
def test_bad_lines_of_json(tmp_path, out, text, why):
    (tmp_path / "t.jsonl").write_text(text)
    assert why in refused(tmp_path / "t.jsonl", out)


def test_a_missing_file_is_named_with_its_line(tmp_path, pictures, out):
    (tmp_path / "t.csv").write_text('a,p\n"x\ny",im/0.png\n1,im/no.png\n'
                                    "1,im/1.png\n")
    message = refused(tmp_path / "t.csv", out)
    assert "t.csv:4" in message and "im/no.png: No such file" in message
    r = run("--on-error=skip", "--mode=raw", tmp_path / "t.csv", out)
    assert r.returncode == 0
    same(columns(betonfile.Beton(out))["p"], PIXELS[:2])


@pytest.mark.parametrize("kind", ["image", "bytes"])
def test_a_path_leads_to_a_regular_file(tmp_path, out, kind):
    os.mkfifo(tmp_path / "fifo.jpg")
    (tmp_path / "t.csv").write_text(f"p:{kind}\nfifo.jpg\n")
    assert "fifo.jpg: not a regular file" in refused(tmp_path / "t.csv", out)
    assert "not a regular file" in refused(
        "-", out, stdin=b"/dev/zero\n")


def test_the_lines_of_many_missing_files(tmp_path, out):
    """Each message has the line of its row, and to find it takes no pass over
    the table: 60 s would not be enough for that."""
    tables, expected = [], []
    for name, rows in ("a", 700), ("b", 60000):
        text, line = "note,path:image\n", 2
        for i in range(rows):
            if i % 5 == 0:
                text += "\n"
                line += 1
            text += f'"two\nlines",{"folder" * 6}{i}.jpg\n'
            expected.append(f"{name}.csv:{line}: ")
            line += 2
        tables.append(tmp_path / f"{name}.csv")
        tables[-1].write_text(text)
    r = run("--on-error=skip", *tables, out)
    got = r.stderr.decode().splitlines()[:-1]
    assert r.returncode == 1 and len(got) == len(expected)
    for message, where in zip(got, expected):
        assert where in message, message


def test_a_line_that_is_too_long(tmp_path, out):
    with open(tmp_path / "t.jsonl", "w") as f:
        f.write('{"x": 1}\n{"x": "' + "y" * (17 << 20) + '"}\n')
    assert "t.jsonl:2: a line of more than 16 MiB" in \
        refused(tmp_path / "t.jsonl", out)


def test_tables_of_pandas(tmp_path, out):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(9), "b": np.linspace(0, 1, 9),
                          "c": [f'"{i}",\n' for i in range(9)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True,
                  double_precision=15)
    for name in "t.csv", "t.jsonl":
        got = mkfs(tmp_path / name, "--fields=a,b,c:bytes", out)
        assert got["a"] == frame.a.tolist()
        np.testing.assert_allclose(got["b"], frame.b, 1e-14)
        assert got["c"] == [c.encode() for c in frame.c]


# --- standard input ---------------------------------------------------------

@pytest.mark.parametrize("end", [b"\n", b"\0"])
def test_paths_on_standard_input(pictures, out, end):
    paths = end.join(b"%s/%d.png" % (bytes(pictures), i) for i in range(N))
    for text in paths, paths + end + end:
        got = mkfs("-", out, stdin=text)
        assert list(got) == ["image"]
        same(got["image"], PIXELS)


def test_bad_lists(pictures, out):
    assert "no paths" in refused("-", out)
    assert "/no.png: No such file" in refused("-", out, stdin=b"/no.png\n")
    assert "2 times" in refused("-", "-", out, stdin=b"x")


# --- TFRecord ---------------------------------------------------------------

CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ 0x82f63b78 * (byte & 1)
    CRC_TABLE.append(byte)


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def sized(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values, packed=True):
    """Values of one type; floats by float32."""
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return sized(1, b"".join(sized(1, v) for v in values))
    if isinstance(values[0], float):
        data = [struct.pack("<f", v) for v in values]
        return sized(2, sized(1, b"".join(data)) if packed else
                     b"".join(b"\x0d" + d for d in data))
    data = [varint(v) for v in values]
    return sized(3, sized(1, b"".join(data)) if packed else
                 b"".join(b"\x08" + d for d in data))


def example(features, packed=True):
    return sized(1, b"".join(
        sized(1, sized(1, k.encode()) + sized(2, feature(v, packed)))
        for k, v in features.items()))


def record(data):
    size = struct.pack("<Q", len(data))
    return (size + struct.pack("<I", masked_crc(size)) + data
            + struct.pack("<I", masked_crc(data)))


def features_of(i):
    return {"image/encoded": [png(PIXELS[i])], "image/class/label": [i - 3],
            "image/class/text": [f"é {i}".encode()], "score": [i / 8],
            "box": [float(i), 0.5, -1.0], "ids": [i, -1, 1 << 40],
            "ragged": list(range(i)), "bag/reals": [0.5] * (i % 3),
            "words": [b"a"] * i, "raw": [b"\xff\0" * i]}


FEATURES = ("--fields=image,label,text:bytes,score,box,ids,ragged,reals,words,"
            "raw")


def array_of(value):
    """Out of bytes with the header of an array."""
    magic, dtype, ndim, n = struct.unpack("<8s4sIQ", value[:24])
    assert magic == b"BETONARR" and ndim == 1
    a = np.frombuffer(value[24:], dtype.rstrip(b"\0").decode())
    assert len(a) == n
    return a.tolist()


def check_features(got):
    rows = [features_of(i) for i in range(N)]
    same(got["image"], PIXELS)
    assert got["label"] == [i - 3 for i in range(N)]
    assert got["text"] == [r["image/class/text"][0] for r in rows]
    assert got["score"] == [r["score"][0] for r in rows]
    same(got["box"], [np.array(r["box"], "<f4") for r in rows])
    same(got["ids"], [np.array(r["ids"], "<i8") for r in rows])
    assert [array_of(v) for v in got["ragged"]] == [r["ragged"] for r in rows]
    assert [array_of(v) for v in got["reals"]] == [r["bag/reals"] for r in rows]
    assert got["words"] == [["a"] * i for i in range(N)]
    assert got["raw"] == [r["raw"][0] for r in rows]


@pytest.mark.parametrize("packed", [True, False])
def test_examples(tmp_path, out, packed):
    need("tfrecord")
    paths = [tmp_path / f"train-{k:05}-of-00002" for k in range(2)]
    for k, path in enumerate(paths):
        path.write_bytes(b"".join(
            record(example(dict(list(features_of(i).items())[::1 - 2 * (i % 2)]),
                           packed))
            for i in range(6 * k, 6 * k + 6)))
    check_features(mkfs(*paths, FEATURES, out))


def test_examples_of_tensorflow(tmp_path, out):
    need("tfrecord")
    tf = pytest.importorskip("tensorflow")
    kinds = {bytes: ("bytes_list", tf.train.BytesList),
             float: ("float_list", tf.train.FloatList),
             int: ("int64_list", tf.train.Int64List)}

    def feature_of(values):
        if not values:
            return tf.train.Feature()
        name, kind = kinds[type(values[0])]
        return tf.train.Feature(**{name: kind(value=values)})

    path = tmp_path / "x.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as w:
        for i in range(N):
            w.write(tf.train.Example(features=tf.train.Features(feature={
                k: feature_of(v) for k, v in features_of(i).items()
            })).SerializeToString())
    check_features(mkfs(path, FEATURES, out))


@pytest.mark.parametrize("second, why", [
    (example({"b": [1]}), "lacks the feature 'a'"),
    (example({"a": [1], "b": [1]}), "a feature that the first record lacks"),
    (example({}), "lacks the feature 'a'"),
    (example({"a": [1.0]}), "another type than before"),
    (sized(1, sized(1, sized(1, b"a") + sized(2, b"\x1f"))), "no tf.train"),
    (sized(2, b""), "SequenceExample"),
    (b"\x0a\x7f", "no tf.train.Example"),
])
def test_bad_examples(tmp_path, out, second, why):
    need("tfrecord")
    path = tmp_path / "x.tfrecord"
    path.write_bytes(record(example({"a": [1]})) + record(second))
    message = refused(path, out)
    assert why in message and "record 1" in message


def test_damaged_records(tmp_path, out):
    need("tfrecord")
    path = tmp_path / "x.tfrecord"
    whole = b"".join(record(example({"a": [7], "b": [b"x" * 30]}))
                     for _ in range(3))
    size = len(whole) // 3
    for at, why in (0, "no TFRecord file"), (size + 3, "CRC of its length"):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        assert why in refused(path, out)
    for end in size + 5, 2 * size - 1:
        path.write_bytes(whole[:end])
        assert "ends" in refused(path, out)
    for at in range(size + 12, 2 * size, size // 4):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        assert "record 1: the CRC of its data" in refused(
            path, "--fields=a", out), at
        assert run("--on-error=skip", path, "--fields=a", out).returncode == 0
        assert columns(betonfile.Beton(out)) == {"a": [7, 7]}
        out.unlink()


def test_compressed_records(tmp_path, out):
    need("tfrecord")
    whole = record(example({"a": [7]}))
    for name, data in [("x.tfrecord", gzip.compress(whole)),
                       ("x.tfrecord.gz", gzip.compress(whole)),
                       ("y.tfrecord", zlib.compress(whole))]:
        (tmp_path / name).write_bytes(data)
        assert "compressed" in refused(tmp_path / name, out)


# --- shards that are too large -----------------------------------------------

@pytest.mark.parametrize("declared", [0, 1 << 33, 1 << 62])
def test_a_shard_that_would_fill_the_disk(tmp_path, out, declared):
    """A frame of 8 GiB, for any size in the index."""
    folder = tmp_path / "mds"
    folder.mkdir()
    (folder / "index.json").write_text(json.dumps({"shards": [{
        "column_encodings": ["int"], "column_names": ["x"],
        "column_sizes": [8], "compression": "zstd", "format": "mds",
        "raw_data": {"basename": "s.mds", "bytes": declared},
        "samples": 1, "zip_data": {"basename": "s.mds.zstd"}}],
        "version": 2}))
    (folder / "s.mds.zstd").write_bytes(
        b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", 1 << 33) + bytes(64))
    need("streaming")
    assert "s.mds, sample 0" in refused(folder, out)
