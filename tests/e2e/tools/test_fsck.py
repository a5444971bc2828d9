# SPDX-License-Identifier: Apache-2.0
"""fsck.beton: named damages and the check that finds each, repaired copies,
checksums, exit codes, and no alarm for sound files."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

import betonfile
import dumped
import make
import sums
from conftest import BUILD, DEADLINE
from dumped import SANITIZER, dump

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
import fsck_damage  # noqa: E402
from damage import JPEG, le, write  # noqa: E402

pytest.importorskip("PIL.Image")

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARED = pathlib.Path(os.environ.get("BETON_SHARED", ROOT.parent / "shared"))
PAGE = ROOT / "loader/tools/fsck/fsck.beton.8"
SOUND, REPAIRED, DAMAGED, FAILED, USAGE, CANCELED = 0, 1, 4, 8, 16, 32
N = 24
MOMENTS = int(os.environ.get("BETON_MOMENTS", 24))


def fsck(*args, code=SOUND, **how):
    r = subprocess.run([BUILD / "fsck.beton", *map(str, args)], text=True,
                       capture_output=True, stdin=subprocess.DEVNULL,
                       timeout=DEADLINE, errors="replace", **how)
    assert code is None or r.returncode == code, (args, r)
    assert not SANITIZER.search(r.stderr), r.stderr
    return r


def report(*args, code=SOUND):
    r = fsck("--json", *args, code=code)
    assert r.stderr == "", r.stderr
    o = json.loads(r.stdout)
    assert o["status"] == r.returncode
    return o


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return dumped.photos(tmp_path_factory.mktemp("good") / "good.beton", N)


def damaged(good, edit, path):
    data = bytearray(open(good.path, "rb").read())
    edit(good, data)
    path.write_bytes(data)
    return path


def rows():
    """Name, kind and cure of each check."""
    return [tuple(line.split())
            for line in fsck("--checks").stdout.splitlines()]


KINDS = {name: kind for name, kind, _ in rows()} \
    if (BUILD / "fsck.beton").exists() else {}


# --- the checks ---

def test_the_manual_has_every_check():
    in_page = re.findall(r"^\.It Cm (\S+) Ta (\w+) Ta (\w+) Ta ",
                         PAGE.read_text(), re.M)
    assert in_page == rows()


def test_every_damage_has_a_name_and_a_check():
    names = [name for name, *_ in fsck_damage.ALL]
    assert len(names) == len(set(names)) >= 100
    assert {c.lstrip("!") for *_, c in fsck_damage.ALL} - {""} <= set(KINDS)
    # Those without a damage need large files, or have tests of their own.
    assert set(KINDS) - {c.lstrip("!") for *_, c in fsck_damage.ALL} == {
        "table-size", "table-order", "sample-pages", "unused-bytes",
        "jpeg-index", "too-large", "read", "sums-file", "sums-block",
        "sums-head", "sums-value"}


@pytest.mark.parametrize("name, edit, check", fsck_damage.ALL,
                         ids=[n.replace(" ", "-")
                              for n, *_ in fsck_damage.ALL])
def test_a_damage_is_found(good, tmp_path, name, edit, check):
    path = damaged(good, edit, tmp_path / "hurt.beton")
    deep = check.startswith("!")
    check = check.lstrip("!")
    o = report(path, code=None)
    if deep:
        assert o["sound"]
        o = report("--deep", path, code=None)
    if not check:
        assert o["checks"] == {}
        return
    assert check in o["checks"], o["checks"]
    assert o["checks"][check] >= 1
    error = KINDS[check] in ("error", "sample")
    assert not o["sound"] if error else o["status"] == SOUND
    assert not error or o["status"] == DAMAGED
    # Another number of threads, and little memory, change nothing.
    options = ["--deep"] if deep else []
    again = report(*options, "--jobs=3", path, code=None)
    for key in "checks", "findings", "bad_samples":
        assert again[key] == o[key]
    again = report(*options, "--memory=8M", path, code=None)
    assert again["checks"].keys() == o["checks"].keys()
    assert again["bad_samples"] == o["bad_samples"]


@pytest.mark.parametrize("name, edit", fsck_damage.UNFINDABLE,
                         ids=[n.replace(" ", "-")
                              for n, _ in fsck_damage.UNFINDABLE])
def test_what_no_check_finds(good, tmp_path, name, edit):
    assert report("--deep", damaged(good, edit, tmp_path / "h.beton"))["sound"]


def small_pages(path):
    return make.Dataset(path, [("blob", make.BYTES), ("vec", make.BYTES)],
                        [{"blob": b"b" * 100, "vec": b"v" * 50}] * 9, 512)


def test_a_sample_in_two_pages(tmp_path):
    """FFCV and betonfs put all values of a sample into one page. Its value here
    changes places with the equal one of the last sample."""
    d = small_pages(tmp_path / "two.beton")
    first, last = d.place[0, "vec"], d.place[8, "vec"]
    d.patch(d.where(0, "vec"), le(8, last))
    d.patch(d.where(8, "vec"), le(8, first))
    at = make.struct.unpack("<Q", open(d.path, "rb").read(24)[16:])[0]
    for i, to in (0, last), (8, first):
        row = [e[:2] for e in d.table].index((i, d.place[i, "vec"]))
        d.patch(at + 24 * row + 8, le(8, to))
    o = report(d.path, code=DAMAGED)
    assert o["checks"] == {"sample-pages": 2} and o["bad_samples"] == []
    fsck("-a", tmp_path / "out.beton", d.path, code=REPAIRED)
    o = report(tmp_path / "out.beton")
    assert o["checks"] == {} and o["samples"] == 9


def test_bytes_between_values(tmp_path):
    """FFCV has no such bytes; those behind the last value of a page are its."""
    d = small_pages(tmp_path / "gap.beton")
    at = make.struct.unpack("<Q", open(d.path, "rb").read(24)[16:])[0]
    row = [e[:2] for e in d.table].index((1, d.place[1, "blob"]))
    d.patch(at + 24 * row + 16, le(8, 90))
    d.patch(d.where(1, "blob") + 8, le(8, 90))
    assert report(d.path)["checks"] == {"unused-bytes": 1}


def test_an_image_that_does_not_fit_into_memory(tmp_path):
    rng = np.random.default_rng(1)
    d = make.Dataset(tmp_path / "l.beton", [("meta", make.JSON)],
                     [{"meta": b'"%s"' % bytes(rng.integers(65, 90, 6 << 20,
                                                            np.uint8))}],
                     1 << 23)
    assert report("--deep", "--memory=8M", d.path)["checks"] == \
        {"too-large": 1}
    assert report("--deep", d.path)["checks"] == {}


def test_a_large_table_that_readers_refuse(tmp_path):
    """Its order makes look-ups slow."""
    n = 1_500_000
    path = tmp_path / "t.beton"
    record = np.dtype("<u8,<u8")
    meta = 24 + 1041
    first = -(-(meta + n * 16) // (1 << 21)) * (1 << 21)
    records = np.zeros(n, record)
    records["f0"] = first + np.arange(n)
    records["f1"] = 1
    end = -(-(first + n) // (1 << 21)) * (1 << 21)
    table = np.stack([np.arange(n), first + np.arange(n), np.ones(n)], 1) \
        .astype("<u8")
    order = np.arange(n)

    def write_it(order):
        with open(path, "wb") as f:
            f.write(make.struct.pack("<HHIQQ", 2, 1, 1 << 21, n, end))
            f.write(bytes([make.BYTES]) + b"blob".ljust(1040, b"\0"))
            f.write(records.tobytes())
            f.truncate(end)
            f.seek(end)
            f.write(table[order].tobytes())
    write_it(order)
    assert report("--memory=8M", path)["checks"] == {}
    # As many runs as a writer of 16 processes makes.
    write_it(order.reshape(-1, 16).T.reshape(-1))
    assert report("--memory=8M", path)["checks"] == {}
    write_it(order.reshape(-1, 2000).T.reshape(-1))
    assert report("--memory=8M", path, code=DAMAGED)["checks"] == \
        {"table-order": 1}
    with open(path, "ab") as f:
        f.write(table.tobytes())
    o = report("--memory=8M", path, code=DAMAGED)
    assert {"table-size", "entry-overlap"} <= o["checks"].keys()


def test_several_faults_are_all_found(good, tmp_path):
    def edit(d, b):
        write(b, 2, le(2, 0))
        write(b, 4, le(4, 3))
        write(b, 8, le(8, 1 << 40))
        write(b, 16, le(8, 1 << 50))
    o = report(damaged(good, edit, tmp_path / "h.beton"), code=DAMAGED)
    assert set(o["checks"]) == {"fields", "page-size", "samples", "cut-off"}


def test_only_the_damaged_sample_is_bad(good, tmp_path):
    for name, edit, check in fsck_damage.ALL:
        if not check.startswith("jpeg-") or check == "jpeg-odd":
            continue
        o = report(damaged(good, edit, tmp_path / "h.beton"), code=DAMAGED)
        assert o["bad_samples"] == [JPEG] or name == "a raw image called JPEG"
        assert o["findings"][0]["field"] == "image"


# --- sound files ---

@pytest.mark.quick
def test_sound_files_have_no_findings(good, tmp_path):
    made = [good, make.every_type(tmp_path / "every.beton", 9),
            make.numbers(tmp_path / "numbers.beton", 50),
            make.one_blob(tmp_path / "blob.beton", 5000)]
    for d in made:
        if "every" in d.path:   # its JPEGs are random bytes
            continue
        for extent in ("--tables",), (), ("--deep",):
            assert report(*extent, d.path)["checks"] == {}


@pytest.mark.parametrize("mode", ["jpg", "raw", "smart", "proportion=0.5",
                                  "keep"])
def test_what_mkfs_writes_has_no_findings(tmp_path, mode):
    for c in "cat", "dog":
        (tmp_path / "in" / c).mkdir(parents=True)
        for i in range(5):
            (tmp_path / "in" / c / f"{i}.jpg").write_bytes(
                dumped.jpeg(i, 40 + i, 30))
    for options in (), ("--index",):
        subprocess.run([BUILD / "mkfs.beton", "-q", "--mode", mode, *options,
                        tmp_path / "in", tmp_path / "out.beton"], check=True)
        o = report("--deep", tmp_path / "out.beton")
        assert o["checks"] == {} and o["samples"] == 10


# --- the index of a JPEG, beton(5) ---

INDEX_HEAD = struct.Struct("<8sHII")     # name to components, step, size, hash
INDEX_ENTRY = 7


def index_of(j):
    """The offset of the index's content, and of its end."""
    at = j.index(b"\xff\xe9")
    return at + 4, at + 2 + int.from_bytes(j[at + 2:at + 4], "big")


def set_hash(j):
    """Computes the hash of the index again, so that it fits its entries."""
    at, end = index_of(j)
    name, step, size, _ = INDEX_HEAD.unpack_from(j, at)
    start = fsck_damage.scan_of(j)
    data = bytes(j[start:start + size]) + bytes(8)
    words = [int.from_bytes(name, "little"), step + (size << 16)]
    byte = 0
    for e in range(at + INDEX_HEAD.size, end, INDEX_ENTRY):
        entry = int.from_bytes(j[e:e + INDEX_ENTRY], "little")
        byte += entry & 0xffff
        words += entry, int.from_bytes(data[byte:byte + 8], "little")
    h = 0
    for w in words:
        h = (h ^ w) * 0x9e3779b97f4a7c15 & (1 << 64) - 1
        h ^= h >> 32
    INDEX_HEAD.pack_into(j, at, name, step, size, h & 0xffffffff)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A dataset of one JPEG, three rows of seven MCUs."""
    work = tmp_path_factory.mktemp("indexed")
    (work / "in").mkdir()
    (work / "in" / "a.jpg").write_bytes(dumped.jpeg(1, 112, 48))
    subprocess.run([BUILD / "mkfs.beton", "-q", "--mode=keep", "--index",
                    work / "in", work / "indexed.beton"], check=True)
    return work / "indexed.beton"


def with_index(indexed, change, path):
    """A copy, after `change` of the JPEG and of the offset of its index."""
    data = bytearray(indexed.read_bytes())
    image, = betonfile.Beton(indexed).images()
    j = bytearray(image.bytes)
    change(j, index_of(j)[0])
    assert len(j) == len(image.bytes)
    data[image.ptr:image.ptr + len(j)] = j
    path.write_bytes(data)
    return path


def test_an_index_has_entries_within_rows(indexed):
    image, = betonfile.Beton(indexed).images()
    j = bytearray(image.bytes)
    at, end = index_of(j)
    assert INDEX_HEAD.unpack_from(j, at)[1] == 4
    assert end - at == INDEX_HEAD.size + (3 * 2 - 1) * INDEX_ENTRY
    set_hash(j)
    assert j == image.bytes and report("--deep", indexed)["checks"] == {}


@pytest.mark.parametrize("entry", range(5))
@pytest.mark.parametrize("byte, bits", [(0, 1), (2, 1), (3, 8)],
                         ids=["byte", "bit", "predictor"])
def test_a_wrong_entry_is_found(indexed, tmp_path, entry, byte, bits):
    def change(j, at):
        j[at + INDEX_HEAD.size + entry * INDEX_ENTRY + byte] ^= bits
        set_hash(j)
    path = with_index(indexed, change, tmp_path / "h.beton")
    o = report("--deep", path, code=DAMAGED)
    assert o["checks"] == {"jpeg-index": 1} and o["bad_samples"] == [0]


@pytest.mark.parametrize("change", [
    lambda j, at: write(j, at + 8, b"\5\0"),     # another step
    lambda j, at: write(j, at + 8, b"\0\0"),
    lambda j, at: write(j, at + 8, b"\xff\xff"),
    lambda j, at: write(j, at + 14, b"\0\0\0\0")],   # another hash
    ids=["step", "zero", "large-step", "hash"])
def test_an_index_of_another_scan_is_odd(indexed, tmp_path, change):
    path = with_index(indexed, change, tmp_path / "h.beton")
    assert report("--deep", path)["checks"] == {"jpeg-odd": 1}


def test_golden_files_have_no_errors():
    found = sorted((SHARED / "data/golden").glob("*.beton"))
    if not found:
        pytest.skip("no golden files of FFCV")
    for path in found:
        o = report("--deep", path, code=None)
        wanted = {"unfinished"} if path.name in (
            "quirk_unfinished.beton", "quirk_zero_leftover.beton") else set()
        assert set(o["checks"]) - {"page-rest", "custom"} == wanted, path


# --- output ---

def test_a_flood_of_errors_is_short(good, tmp_path):
    path = damaged(good, lambda d, b: write(b, d.meta, bytes(
        d.meta_end - d.meta)), tmp_path / "h.beton")
    lines = fsck(path, "--limit=3", code=DAMAGED).stdout.splitlines()
    assert sum(": image-sides: " in line for line in lines) == 4
    assert any(line.endswith(f": image-sides: {N - 3} more") for line in lines)
    assert "damaged: " in lines[-1] and f"{N} damaged samples" in lines[-1]


def test_list_bad_prints_numbers_only(good, tmp_path):
    assert fsck("--list-bad", good.path).stdout == ""
    path = damaged(good, lambda d, b: [
        write(b, d.where(i, "image"), b"\7") for i in (3, 20)],
        tmp_path / "h.beton")
    assert fsck("--list-bad", path, code=DAMAGED).stdout == "3\n20\n"


@pytest.mark.quick
def test_exit_codes_are_sums(good, tmp_path):
    bad = damaged(good, lambda d, b: b.extend(b"x"), tmp_path / "h.beton")
    none = tmp_path / "none.beton"
    assert fsck(good.path, bad, none, code=DAMAGED | FAILED).stderr
    assert fsck(good.path, none, code=FAILED).stderr
    fsck(code=USAGE)
    fsck("--deep", "--tables", good.path, code=USAGE)
    fsck("--nosuch", good.path, code=USAGE)
    fsck("--repair=x", good.path, good.path, code=USAGE)
    fsck(tmp_path, code=FAILED)
    assert fsck("--help").stdout.startswith("usage: fsck.beton ")
    assert fsck("--version").stdout.startswith("fsck.beton ")


def test_quiet_prints_nothing_of_sound_files(good):
    r = fsck("-q", good.path)
    assert r.stdout == r.stderr == ""


def test_output_that_cannot_be_written_is_a_failure(good):
    with open("/dev/full", "w") as full:
        r = subprocess.run([BUILD / "fsck.beton", good.path], stdout=full,
                           stderr=subprocess.PIPE, text=True)
    assert r.returncode == FAILED and r.stderr.count("\n") == 1


# --- repair ---

def values(path, out):
    """sample of the file -> bytes of its values, by label."""
    rows = {}
    for b in dump(path, out, "--spec", "batch=5,drop_last=0"):
        for i in range(len(b.ids)):
            row = {n: np.asarray(b.row(n, i)).tobytes() for n in b.outputs}
            rows[row["label"]] = row
    return rows


@pytest.mark.parametrize("name, edit, check", [
    row for row in fsck_damage.ALL
    if not row[2].startswith("!") and KINDS.get(row[2]) in ("error", "sample")],
    ids=lambda v: v.replace(" ", "-") if isinstance(v, str) else "")
def test_a_repaired_copy_is_sound(good, tmp_path, name, edit, check):
    path = damaged(good, edit, tmp_path / "hurt.beton")
    before = path.read_bytes()
    r = fsck("--repair", tmp_path / "out.beton", path, code=None)
    assert path.read_bytes() == before
    if r.returncode == DAMAGED:
        assert not (tmp_path / "out.beton").exists()
        assert r.stderr.count("\n") == 1
        return
    assert r.returncode == REPAIRED
    old = report(path, code=DAMAGED)
    o = report("--deep", tmp_path / "out.beton")
    assert o["checks"] == {}
    assert o["samples"] == old["samples"] - len(old["bad_samples"]) > 0


def test_a_repaired_copy_has_the_other_samples(good, tmp_path):
    path = damaged(good, lambda d, b: [
        write(b, d.where(i, "image"), b"\7") for i in (3, 20)],
        tmp_path / "h.beton")
    out = tmp_path / "out.beton"
    r = fsck("-a", out, path, code=REPAIRED)
    assert f"{out}: written: {N - 2} samples, 2 left out: 3, 20\n" in r.stdout
    want = values(good.path, tmp_path / "a")
    for i in 3, 20:
        del want[np.int64(3 * i - 7).tobytes()]
    assert values(out, tmp_path / "b") == want


def test_a_repair_does_not_replace_its_source(good, tmp_path):
    path = damaged(good, lambda d, b: b.extend(b"x"), tmp_path / "h.beton")
    before = path.read_bytes()
    link = tmp_path / "link.beton"
    link.symlink_to(path)
    for out in path, link:
        r = fsck("-a", out, path, code=DAMAGED)
        assert r.stderr.count("\n") == 1 and path.read_bytes() == before


def test_a_sound_file_needs_no_copy(good, tmp_path):
    fsck("--repair", tmp_path / "out.beton", good.path)
    assert not (tmp_path / "out.beton").exists()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A damaged dataset whose repair takes a moment."""
    path = tmp_path_factory.mktemp("large") / "large.beton"
    rng = np.random.default_rng(3)
    d = make.Dataset(path, [("blob", make.BYTES), ("label", make.INT)],
                     [{"blob": rng.bytes(20000 + i), "label": i}
                      for i in range(1500)], 1 << 21)
    d.patch(d.where(7, "blob") + 8, le(8, 3))
    return d


def test_killed_while_it_repairs(large, tmp_path):
    """The source stays as it is, and there is a whole copy or none."""
    out = tmp_path / "out" / "copy.beton"
    out.parent.mkdir()
    before = pathlib.Path(large.path).read_bytes()
    start = time.monotonic()
    fsck("-q", "-a", out, large.path, code=REPAIRED)
    took, whole = time.monotonic() - start, out.read_bytes()
    out.unlink()
    rng = random.Random(5)
    for i in range(MOMENTS):
        p = subprocess.Popen([BUILD / "fsck.beton", "-q", "-a", out,
                              large.path], stdout=subprocess.DEVNULL)
        time.sleep(rng.random() * took)
        p.send_signal((signal.SIGKILL, signal.SIGTERM)[i % 2])
        # SIGTERM still has its default before the program has begun.
        assert p.wait() in (-signal.SIGKILL, -signal.SIGTERM, REPAIRED,
                            CANCELED, DAMAGED | CANCELED)
        left = list(out.parent.iterdir())
        assert left in ([], [out])
        if left:
            assert out.read_bytes() == whole
            out.unlink()
    assert pathlib.Path(large.path).read_bytes() == before
    fsck("-q", "-a", out, large.path, code=REPAIRED)
    assert out.read_bytes() == whole


def test_a_full_disk_leaves_nothing(large, tmp_path):
    """A limit of the file's size stands for a full disk."""
    import resource
    out = tmp_path / "out" / "copy.beton"
    out.parent.mkdir()
    rng = random.Random(6)
    for _ in range(max(MOMENTS // 4, 3)):
        limit = rng.randrange(0, 30 << 20)
        r = fsck("-q", "-a", out, large.path, code=None,
                 preexec_fn=lambda: resource.setrlimit(
                     resource.RLIMIT_FSIZE, (limit, limit)))
        assert r.returncode == DAMAGED | FAILED, r
        assert list(out.parent.iterdir()) == []
        assert r.stderr.count("\n") == 1


# --- checksums ---

@pytest.fixture
def summed(tmp_path):
    """A small dataset with checksums: samples are few, blocks too."""
    d = make.Dataset(tmp_path / "s.beton",
                     [("label", make.INT), ("blob", make.BYTES)],
                     [{"label": i, "blob": bytes([i]) * 9} for i in range(3)],
                     512)
    r = fsck("--sums", d.path)
    assert r.stdout.endswith("s.beton.sums: written\n")
    return d


def test_every_flipped_bit_is_found(summed):
    """Each bit of a small file: one of the checks and the checksums."""
    whole = pathlib.Path(summed.path).read_bytes()
    path = pathlib.Path(summed.path)
    rng = random.Random(1)
    bits = range(8 * len(whole))
    if not os.environ.get("BETON_EVERY_BIT"):
        bits = rng.sample(bits, 150)
    for bit in bits:
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        o = report(path, code=DAMAGED)
        assert "sums-block" in o["checks"], bit
        why, = (f["why"] for f in o["findings"] if f["check"] == "sums-block")
        assert f"bit {bit % 8} of byte {bit // 8}" in why
    path.write_bytes(whole)
    report(path)


def test_a_bad_block_has_its_samples_and_fields(tmp_path):
    rng = np.random.default_rng(4)
    d = make.Dataset(tmp_path / "b.beton",
                     [("blob", make.BYTES), ("vec", make.NDARRAY, "<f4", (2,))],
                     [{"blob": rng.bytes(300000),
                       "vec": np.zeros(2, "<f4")} for i in range(20)], 1 << 21)
    fsck("--sums", d.path)
    where = d.place[9, "blob"] + 1000
    d.patch(where, b"\0\1\2\3")
    start = where // sums.BLOCK * sums.BLOCK
    want = {(i, n) for (i, n), at in d.place.items()
            if at < start + sums.BLOCK and at + len(d.stored(i, n)) > start}
    o = report(d.path, code=DAMAGED)
    assert {(f["sample"], f["field"]) for f in o["findings"]
            if f["check"] == "sums-value"} == want
    assert o["bad_samples"] == sorted({i for i, _ in want})
    # A copy has none of them.
    out = tmp_path / "out.beton"
    fsck("-a", out, d.path, code=REPAIRED)
    assert report("--deep", out)["samples"] == 20 - len(o["bad_samples"])


def test_a_file_that_is_no_dataset(good, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and they are long enough.\n")
    r = fsck(text, code=DAMAGED)
    assert "notes.txt: version: not a .beton file: version " in r.stdout
    assert re.search(r"1 errors, 0 damaged samples; \d+ MiB read", r.stdout)
    bad = damaged(good, lambda d, b: b.extend(b"x"), tmp_path / "x.beton")
    r = fsck("-a", text, bad, code=DAMAGED | FAILED)
    assert "a file that is no dataset has this name" in r.stderr
    assert text.read_text().startswith("These are notes")


def test_checksums_of_another_file(summed, tmp_path):
    other = make.numbers(tmp_path / "o.beton", 400000)
    shutil.copy(summed.path + ".sums", other.path + ".sums")
    assert set(report(other.path, code=DAMAGED)["checks"]) == {"sums-file"}
    fsck("--sums", other.path, code=DAMAGED)
    assert "written" in fsck("--update-sums", other.path).stdout
    assert report(other.path)["checks"] == {}
    data = pathlib.Path(other.path).read_bytes()
    pathlib.Path(other.path).write_bytes(
        data[:24 + 1041] + bytes(b ^ 1 for b in data[24 + 1041:]))


def test_a_damaged_side_file(summed):
    with open(summed.path + ".sums", "r+b") as f:
        f.seek(20)
        f.write(b"\xff")
    assert set(report(summed.path, code=DAMAGED)["checks"]) == {"sums-file"}


def test_a_damaged_file_gets_no_checksums(good, tmp_path):
    path = damaged(good, lambda d, b: b.extend(b"x"), tmp_path / "h.beton")
    fsck("--sums", path, code=DAMAGED)
    assert not os.path.exists(f"{path}.sums")
