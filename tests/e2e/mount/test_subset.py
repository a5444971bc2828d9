# SPDX-License-Identifier: Apache-2.0
"""Named subsets, lists of sample ids from a file, for files and for mounts."""
import errno
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

import make
import orders
from conftest import betonfs
from dumped import BUILD, DEADLINE, beton, digest, dump, ids, photos, show

N = 90
PICKED = random.Random(3).sample(range(N), 31)
ORDERS = [
    "order=sequential,batch=7,drop_last=0",
    "order=random,batch=4,seed=9",
    "order=quasi_random,batch=5,block=3,window=8,drop_last=0",
    "batch=1000",
    "batch=1000,drop_last=0",
    "batch=1",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subset")
    return make.every_type(folder / "d.beton", N).path


def write(path, picked):
    path.write_text("".join(f"{i}\n" for i in picked))
    return path


@pytest.fixture
def few(tmp_path):
    return write(tmp_path / "few.txt", PICKED)


def hashed(picked):
    """The canonical name, from the manual alone."""
    return "few~%016x" % orders.key(picked)


def model(spec, picked, epoch=0):
    s = orders.resolve(f"{spec},subset=few", N, data_bytes=1,
                       lists={"few": picked})
    size, n = int(s["batch"]), s["n"]
    all_ids = [orders.sample(s, epoch, i) for i in range(n)]
    end = n // size * size if int(s["drop_last"]) else n
    return [all_ids[i:min(i + size, n)] for i in range(0, end, size)]


def named(spec):
    return f"{spec},subset=few"


# --- what a name means ---

@pytest.mark.parametrize("spec", ORDERS)
def test_batches_are_those_of_the_manual(data, few, tmp_path, spec):
    for epoch in 0, 5:
        got = ids(data, tmp_path / str(epoch), "--spec", named(spec),
                  "--subset", f"few:{few}", "--epoch", epoch, "--pipeline",
                  "image | drop")
        assert got == dict(enumerate(model(spec, PICKED, epoch)))


def test_the_canonical_text_has_a_hash_of_the_ids(data, tmp_path):
    def canonical(text):
        (tmp_path / "l").write_text(text)
        out = beton("info", data, "--json", "--spec", "subset=few",
                    "--subset", f"few:{tmp_path}/l").stdout
        return json.loads(out)["spec"].split("subset=")[1]
    assert canonical("3\n1\n4\n15\n9\n") == "few~84e3d8f1253de9ed"
    assert canonical("# pi\n03\n1 # one\r\n\n4\n15\n9") == hashed(
        [3, 1, 4, 15, 9])
    assert canonical("1\n3\n4\n15\n9\n") == hashed([1, 3, 4, 15, 9])


@pytest.mark.parametrize("spec", ORDERS[:3])
def test_a_mount_and_a_file_give_the_same(data, few, mount, tmp_path, spec):
    where = mount(data, "-o", f"subset=few:{few}")
    sources = {"file": (data, few), "mount": (where, None),
               "both": (where, few)}
    options = ["--spec", named(spec), "--pipeline", "image | drop"]
    for name, (source, given) in sources.items():
        more = ["--subset", f"few:{given}"] if given else []
        dump(source, tmp_path / name, *options, *more)
    sums = [digest(tmp_path / name) for name in sources]
    assert sums[0] and sums[0] == sums[1] == sums[2]
    files = sorted((where / "batches" / named(spec) / "0").iterdir())
    assert [show(f)["ids"] for f in files] == model(spec, PICKED)


def test_a_mount_serves_batches_too_large_for_the_subset(data, few, mount,
                                                        tmp_path):
    where = mount(data, "-o", f"subset=few:{few}")
    for last, want in (1, {}), (0, {0: PICKED}):
        assert ids(where, tmp_path / str(last), "--spec",
                   f"order=sequential,subset=few,drop_last={last}",
                   "--pipeline", "image | drop") == want


def test_paths_name_what_the_file_had(data, few, mount):
    where = mount(data, "-o", f"subset=few:{few},batch=7", "-o",
                  "subset=few")
    batches = where / "batches"
    text = ("order=random,batch=7,seed=0,drop_last=1,subset="
            + hashed(PICKED))
    assert os.readlink(batches / "default") == text
    assert os.readlink(batches / "batch=7,subset=few") == text
    assert (batches / text).is_dir() and not (batches / text).is_symlink()
    assert len(os.listdir(batches / text / "0")) == len(PICKED) // 7
    head = (batches / text / "0/000000.batch").read_bytes()
    assert head[104:128] == b"".join(
        v.to_bytes(8, "little") for v in (0, len(PICKED),
                                          orders.key(PICKED)))
    reported = (where / ".betonfs/options").read_text().splitlines()
    assert "subset=few" in reported and f"subset=few:{few}" in reported


def test_a_definition_does_not_change_the_default(data, few, mount):
    where = mount(data, "-o", f"subset=few:{few}")
    assert os.readlink(where / "batches/default") == \
        "order=random,batch=256,seed=0,drop_last=1"


def test_a_mount_has_many_subsets(data, tmp_path, mount):
    lists = {f"s{k}": random.Random(k).sample(range(N), 9 + k)
             for k in range(5)}
    args = [a for name, picked in lists.items() for a in
            ("-o", f"subset={name}:{write(tmp_path / name, picked)}")]
    where = mount(data, *args)
    for name, picked in lists.items():
        got = ids(where, tmp_path / ("d" + name), "--spec",
                  f"order=sequential,subset={name},batch=100,drop_last=0",
                  "--pipeline", "image | drop")
        assert got == {0: picked}


def test_names_of_samples_are_a_list(data, mount, tmp_path):
    where = mount(data)
    (tmp_path / "l").write_text(
        "\n".join(sorted(os.listdir(where / "samples"), reverse=True)))
    got = ids(data, tmp_path / "x", "--subset", f"few:{tmp_path}/l",
              "--spec", "order=sequential,subset=few,batch=90",
              "--pipeline", "image | drop")
    assert got == {0: list(range(N))[::-1]}


def test_quality_is_measured_on_the_subset(data, few):
    out = beton("info", data, "--json", "--spec",
                "order=sequential,subset=few,batch=5", "--subset",
                f"few:{few}").stdout
    reported = json.loads(out)
    assert reported["batches"] == 6 and reported["quality"]["mean"] == 5


def test_bench_takes_a_subset(data, few):
    out = beton("bench", data, "--json", "--spec", "subset=few,batch=5",
                "--subset", f"few:{few}", "--epochs", 2, "--until",
                "read").stdout
    assert json.loads(out)["spec"].endswith(hashed(PICKED))


# --- a file that changes ---

@pytest.mark.parametrize("on_mount", [False, True])
def test_a_job_continues_with_its_subset(data, few, mount, tmp_path, on_mount):
    spec = named("batch=3,seed=4,drop_last=0")
    own = ["--subset", f"few:{few}"]
    source = mount(data, "-o", f"subset=few:{few}") if on_mount else data
    state, options = tmp_path / "state", ["--pipeline", "image | drop"]
    given = [] if on_mount else own
    dump(data, tmp_path / "whole", "--spec", spec, *own, *options)
    dump(source, tmp_path / "parts", "--spec", spec, *given, *options,
         "--batches", ":4", "--state", state)
    assert json.loads(state.read_text())["spec"].endswith(
        "subset=" + hashed(PICKED))
    dump(source, tmp_path / "parts", *given, *options, "--state", state)
    assert digest(tmp_path / "whole") == digest(tmp_path / "parts")


def test_a_job_does_not_continue_with_another_list(data, few, tmp_path):
    args = [data, "--subset", f"few:{few}", "--state", tmp_path / "state",
            "--pipeline", "image | drop"]
    dump(*args[:1], tmp_path / "x", *args[1:], "--spec", "subset=few,batch=3",
         "--batches", ":4")
    write(few, PICKED[::-1])
    for spec in [], ["--spec", "subset=few,batch=3"]:
        r = beton("dump", *args, *spec, "--out", tmp_path / "y", code=1)
        assert hashed(PICKED) in r.stderr
        assert hashed(PICKED[::-1]) in r.stderr
    assert not (tmp_path / "y").exists()
    r = beton("dump", data, "--state", tmp_path / "state", "--out",
              tmp_path / "y", code=1)
    assert "a name that was given" in r.stderr


def test_old_paths_do_not_mean_new_files(data, few, mount):
    where = mount(data, "-o", f"subset=few:{few}", expects="file has changed")
    old = f"batch=3,subset={hashed(PICKED)}"
    assert (where / "batches" / old / "0/000000.batch").exists()
    other = f"batch=3,subset={hashed(PICKED[1:])}"
    with pytest.raises(OSError) as e:
        os.stat(where / "batches" / other)
    assert e.value.errno == errno.ENOENT


def test_a_mount_reads_its_lists_once(data, few, mount, tmp_path):
    where = mount(data, "-o", f"subset=few:{few}",
                  expects="subset=few~.*has changed")
    few.unlink()
    spec = "order=sequential,subset=few,batch=31"
    options = ["--spec", spec, "--pipeline", "image | drop"]
    assert ids(where, tmp_path / "x", *options) == {0: PICKED}
    write(few, PICKED[:5])
    r = beton("dump", where, "--out", tmp_path / "y", *options, "--subset",
              f"few:{few}", code=1)
    assert "the mount has no subset " + hashed(PICKED[:5]) in r.stderr


def test_a_mount_without_the_subset_reports_it(data, few, mount, tmp_path):
    where = mount(data, expects="subset=few: expected")
    for more in [], ["--subset", f"few:{few}"]:
        r = beton("dump", where, "--out", tmp_path / "x", "--spec",
                  "subset=few", *more, code=1)
        assert "the mount has no subset few" in r.stderr
        assert "with -o subset=few:FILE, or open" in r.stderr
        assert r.stderr.count("\n") == 1


# --- samples that come more than once ---

REPEATED = [3, 7, 7, 80, 3, 7]
WEIGHED = [(i, w) for i, w in zip(PICKED, [0, 5, 1, 1, 2, 9, 0] * 5)]
WEIGHTED = ["order=weighted,batch=7,drop_last=0",
            "order=weighted,batch=4,seed=9,num_samples=200",
            "order=weighted,batch=8,num_samples=3"]
CROP = "random_resized_crop(16)"


@pytest.mark.parametrize("spec", ORDERS[:3])
def test_a_list_may_name_a_sample_more_than_once(data, tmp_path, spec):
    few = write(tmp_path / "few", REPEATED)
    got = ids(data, tmp_path / "d", "--spec", named(spec), "--subset",
              f"few:{few}", "--pipeline", "image | drop")
    assert got == dict(enumerate(model(spec, REPEATED)))


def weigh(path):
    path.write_text("".join(f"{i} {w}\n" for i, w in WEIGHED))
    return path


@pytest.mark.parametrize("spec", WEIGHTED)
def test_draws_are_those_of_the_manual(data, tmp_path, spec):
    few = weigh(tmp_path / "few")
    for epoch in 0, 5:
        got = ids(data, tmp_path / str(epoch), "--spec", named(spec),
                  "--subset", f"few:{few}", "--epoch", epoch, "--pipeline",
                  "image | drop")
        assert got == dict(enumerate(model(spec, WEIGHED, epoch)))


def test_the_hash_is_of_ids_and_weights(data, tmp_path):
    few = weigh(tmp_path / "few")
    out = beton("info", data, "--json", "--subset", f"few:{few}", "--spec",
                "order=weighted,subset=few").stdout
    numbers, weights = zip(*WEIGHED)
    sums = list(itertools.accumulate(weights))
    want = orders.key([orders.key(numbers), orders.key(sums)])
    assert json.loads(out)["spec"] == (
        "order=weighted,batch=256,seed=0,drop_last=1,"
        "num_samples=%d,subset=few~%016x" % (len(WEIGHED), want))


def test_draws_need_weights(data, few):
    for spec in "order=weighted", "order=weighted,subset=few":
        r = beton("info", data, "--spec", spec, "--subset", f"few:{few}",
                  code=1)
        assert "a list with weights" in r.stderr


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    return photos(tmp_path_factory.mktemp("shots") / "p.beton", N).path


def pictures(batches):
    return [image.tobytes() for b in batches for image in b.outputs["image"]]


@pytest.mark.parametrize("spec", ["order=sequential,batch=2", WEIGHTED[1]])
def test_samples_that_come_again_are_augmented_again(shots, mount, tmp_path,
                                                    spec):
    weighted = "weighted" in spec
    few = weigh(tmp_path / "few") if weighted else write(tmp_path / "few",
                                                         REPEATED)
    where = mount(shots, "-o", f"subset=few:{few}")
    args = ["--spec", named(spec), "--pipeline", CROP]
    sources = {"file": (shots, "--subset", f"few:{few}"), "mount": (where,),
               "one": (shots, "--subset", f"few:{few}", "--jobs", 1)}
    dumps = [dump(source[0], tmp_path / name, *source[1:], *args)
             for name, source in sources.items()]
    seen = [i for b in dumps[0] for i in b.ids]
    assert len(set(seen)) < len(seen)
    images = pictures(dumps[0])
    assert images == pictures(dumps[1]) == pictures(dumps[2])
    assert len(set(images)) > len(set(seen))


def test_draws_are_resumed_exactly_by_another_world_size(shots, tmp_path):
    few = weigh(tmp_path / "few")
    args = ["--spec", named(WEIGHTED[1]), "--subset", f"few:{few}",
            "--pipeline", CROP]
    whole = dump(shots, tmp_path / "whole", *args)
    dump(shots, tmp_path / "a", *args, "--batches", "0:12", "--state",
         tmp_path / "state")
    rest = [b for rank in range(2) for b in
            dump(shots, tmp_path / str(rank), *args, "--rank", rank, "--world-size",
                 2, "--state", shutil.copy(tmp_path / "state",
                                           tmp_path / f"state{rank}"))]
    rest.sort(key=lambda b: b.number)
    assert [b.number for b in rest] == list(range(12, 50))
    assert [b.ids for b in rest] == [b.ids for b in whole[12:]]
    assert pictures(rest) == pictures(whole[12:])


# --- what is no list ---

BAD = {
    "empty": (b"", "no sample"),
    "comments": (b"# 1\n\n", "no sample"),
    "large": (b"1\n%d\n" % N, ":2: "),
    "huge": (b"1\n\n" + b"9" * 5000, ":3: "),
    "negative": (b"-1\n", ":1: "),
    "few weights": (b"1 1\n2 1\n#\n1\n", ":4: "),
    "more weights": (b"1\n2 1\n", ":2: "),
    "no weight": (b"1 0\n2 0\n", "all weights"),
    "great weights": (b"1 18446744073709551615\n2 1\n", ":2: "),
    "words": (b"1\ntwo\n", ":2: "),
    "three": (b"1 2 3\n", ":1: "),
    "nul": (b"1\n\0\n", "0x00"),
    "npy": (b"\x93NUMPY\1\0", "0x93"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_lists_are_refused_with_the_line(data, fuse, tmp_path, name):
    content, word = BAD[name]
    path, where = tmp_path / "list", tmp_path / "mnt"
    path.write_bytes(content)
    r = betonfs("-o", f"subset=few:{path}", data, where)
    assert r.returncode == 1 and word in r.stderr and str(path) in r.stderr
    assert not where.exists()
    r = beton("dump", data, "--out", tmp_path / "x", "--subset",
              f"few:{path}", code=1)
    assert word in r.stderr and r.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_other_than_files_are_refused_without_blocking(data, fuse, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path, word in (("none", "No such file"), ("fifo", "regular"),
                       (".", "directory")):
        option = f"few:{tmp_path / path}"
        r = betonfs("-o", f"subset={option}", data, tmp_path / "mnt")
        assert r.returncode == 1 and word in r.stderr
        for command in "dump", "info", "bench":
            more = ["--out", tmp_path / "x"] if command == "dump" else []
            r = beton(command, data, "--subset", option, *more, code=1)
            assert word in r.stderr


def test_a_line_of_100_mb_costs_no_memory(data, tmp_path):
    path = tmp_path / "list"
    with open(path, "wb") as f:
        f.write(b"4\n#")
        for _ in range(100):
            f.write(b"x" * 1000000)
        f.write(b"\n0")
        for _ in range(10):
            f.write(b"0" * 1000000)
        f.write(b"7")
    code = ("import resource, subprocess, sys; "
            "subprocess.run(sys.argv[1:], check=True); print(resource."
            "getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    r = subprocess.run(
        ["python3", "-c", code, BUILD / "beton", "info", data, "--spec",
         "subset=few,batch=2", "--subset", f"few:{path}"],
        capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert "subset=few~%016x" % orders.key([4, 7]) in r.stdout
    if "-" not in pathlib.Path(BUILD).name:   # sanitizers have their own
        assert int(r.stdout.split()[-1]) < 64 << 10


@pytest.mark.parametrize("text", [
    "few", ":file", "few:", "1-2:file", "12:file", "a b:file", "a/b:file",
    "n" * 33 + ":file", "few~0123456789abcdef:file"])
def test_a_wrong_name_is_refused(data, fuse, tmp_path, text):
    (tmp_path / "file").write_text("1\n")
    r = beton("info", data, "--subset", text, code=1, )
    assert "expected NAME:FILE" in r.stderr
    r = betonfs("-o", f"subset={text}", data, tmp_path / "mnt", cwd=tmp_path)
    assert r.returncode == 1
    assert re.search("expected NAME:FILE|given with its file", r.stderr)


def test_a_name_is_given_once(data, fuse, few, tmp_path):
    r = betonfs("-o", f"subset=few:{few},subset=few:{few}", data,
                tmp_path / "mnt")
    assert r.returncode == 1 and "twice" in r.stderr
