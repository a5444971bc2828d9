# SPDX-License-Identifier: Apache-2.0
"""beton doctor names planted bottlenecks, most of them real. A plant needs an
idle machine: control groups reserve most of the machine for the doctor if
possible. A test repeats the call if other processes still took so much that
the doctor names these instead."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import make
from conftest import is_instrumented, wait_until
from dumped import BUILD, SANITIZER
from plants import control_group, picture, slow_disk

Image = pytest.importorskip("PIL.Image")

HERE = pathlib.Path(__file__).parents[1]
CPUS = sorted(os.sched_getaffinity(0))
AUGMENT = "random_resized_crop(64) | flip | normalize(imagenet) | float | chw"
SECONDS = 8
TRIES = 3


# --- data ---


def images(path, n, w, h, page_size=1 << 20, different=16, **how):
    rng = np.random.default_rng(n)
    made = [picture(rng, w, h, **how) for _ in range(different)]
    make.Dataset(path, [("image", make.IMAGE), ("label", make.INT)],
                 [{"image": made[i % different], "label": i}
                  for i in range(n)], page_size)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doctor")


@pytest.fixture(scope="module")
def photos(folder):
    return images(folder / "photos.beton", 1000, 256, 192)


@pytest.fixture(scope="module")
def arrays(folder):
    """Nothing to be decoded, and much of it."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 255, (512, 1024), np.uint8) for _ in range(8)]
    make.Dataset(folder / "arrays.beton",
                 [("a", make.NDARRAY, "u1", (512, 1024))],
                 [{"a": rows[i % 8]} for i in range(256)], 1 << 20)
    return folder / "arrays.beton"


# --- the doctor ---

def named_files():
    return {f"{where}/{name}" for where in ("/dev/shm", "/tmp")
            for name in os.listdir(where) if "doctor" in name}


def has_variants(process):
    try:
        return any("beton-variant" in os.readlink(f"/proc/{process.pid}/fd/{n}")
                   for n in os.listdir(f"/proc/{process.pid}/fd"))
    except OSError:
        return False


def doctor_of(*args, env=None, prefix=(), seconds=SECONDS):
    before = named_files()
    p = subprocess.Popen(
        [*prefix, BUILD / "beton", "doctor", "--json", "--seconds",
         str(seconds), *map(str, args)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "BUILD": str(BUILD), **(env or {})})
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    assert not SANITIZER.search(err) and not err, err
    assert named_files() <= before
    return json.loads(out)


def options(d):
    return [f["option"] for f in d["fixes"]]


def gain(d, text):
    found = [f["predicted_gain"] for f in d["fixes"] if text in f["option"]]
    assert found, (text, options(d))
    return found[0]


def ask(want, *args, cause=None, prefix=(), **how):
    """The diagnosis, once it is `want`: others may be louder at first."""
    if not os.environ.get("BETON_DOCTOR_PLANTS"):
        pytest.skip("measures this machine: BETON_DOCTOR_PLANTS=1, and quiet")
    wanted = [want] if isinstance(want, str) else want
    for _ in range(TRIES):
        with control_group(shares=200000) as shield:
            d = doctor_of(*args, prefix=[*(shield or ()), *prefix], **how)
        if d["verdict"] in wanted and cause in (None, d["evidence"]["cause"]):
            return d
        print(d["verdict"], d["evidence"]["cause"], d["evidence"]["sentence"])
    if d["verdict"] == "noisy neighbor" and \
            d["evidence"]["cpu"]["others_idle"] > 0.5:
        pytest.skip("the machine is too busy to plant anything")
    raise AssertionError((d["verdict"], d["evidence"]))


def trainer(path, kind, pipeline=AUGMENT, *more):
    return shlex.join(["exec", sys.executable, str(HERE / "trainer.py"),
                       str(path), pipeline, kind, *map(str, more)])


# --- CPU ---

def test_an_own_operation_that_is_expensive(photos, folder):
    (folder / "slow.c").write_text("""
#include <math.h>
static void slow(float v[3], const struct beton_at *at)
{
	float x = v[0] / 255;

	for (int i = 0; i < 20; i++)
		x = sinf(x + at->random[0]);
	v[0] += x * 1e-9f;
}
""")
    pipeline = AUGMENT.replace("normalize", f'"{folder}/slow.c".slow | '
                               "normalize")
    d = ask("cpu transforms", photos, "--pipeline", pipeline)
    assert "slow" in d["evidence"]["sentence"]
    assert gain(d, "replace or remove") > 2


def test_images_that_are_too_large(folder):
    path = images(folder / "huge.beton", 64, 2000, 1500, 1 << 22, 4)
    d = ask("cpu decode", path, "--spec", "batch=16", "--pipeline",
            "resize(128) | normalize(imagenet)", seconds=20)
    assert gain(d, "--max-resolution") > 3
    assert gain(d, "decode(draft)") > 1
    assert gain(d, "cache(decoded") > 1.2


def test_progressive_images(folder):
    path = images(folder / "progressive.beton", 128, 640, 480,
                  progressive=True)
    d = ask("cpu decode", path, "--spec", "batch=16", "--pipeline",
            "resize(128)", seconds=12)
    assert gain(d, "beton optimize") > 1.3


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")
def test_too_few_workers(photos):
    d = ask(["cpu decode", "cpu transforms"], photos, "--jobs", 1,
            "--pipeline", AUGMENT, cause="workers")
    assert gain(d, "--jobs") > 1.3


def test_a_quota(photos):
    with control_group(cfs_quota_us=50000, shares=200000) as prefix:
        if not prefix:
            pytest.skip("no control groups")
        d = doctor_of(photos, "--pipeline", AUGMENT, prefix=prefix)
    assert d["evidence"]["cpu"]["quota"] == 0.5
    assert d["evidence"]["cpu"]["throttled"] > 0.3
    assert d["verdict"].startswith("cpu ")
    assert d["evidence"]["cause"] == "quota"
    assert gain(d, "CPU quota of") > 1.5


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")
def test_an_affinity(photos):
    d = ask(["cpu decode", "cpu transforms"], photos, "--pipeline", AUGMENT,
            prefix=["taskset", "--cpu-list", str(CPUS[0])], cause="affinity")
    assert d["evidence"]["cpu"]["allowed"] == 1
    assert gain(d, "taskset") > 1.3


def test_neighbours_on_every_core(photos):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in CPUS]
    try:
        d = doctor_of(photos, "--pipeline", AUGMENT)
    finally:
        for b in busy:
            b.kill()
            b.wait()
    assert d["verdict"] == "noisy neighbor"
    assert d["evidence"]["cause"] == "processes"
    assert gain(d, "move other work") > 1.3
    # The sweep's options for --jobs concern the other processes.
    assert not [o for o in options(d) if "--jobs" in o]


# --- disks ---


def test_a_disk_of_few_bytes(photos, folder):
    with slow_disk(photos, folder / "few", "rate:rate=20M") as path:
        d = ask("disk", path, "--pipeline", AUGMENT)
    assert d["evidence"]["disk"]["small_bytes_per_s"] < 2e7
    assert gain(d, "--quality") > 1.2


def test_a_disk_that_answers_late(photos, folder):
    with slow_disk(photos, folder / "stalled", "delay:rdelay=60ms") as path:
        d = ask("disk", path, "--pipeline", AUGMENT)
    # The kernel reads a sample after the other, its own cache many at once.
    assert gain(d, "--cache process") > 2


def test_a_cache_that_is_too_small(photos, folder):
    """The page cache is full, or might as well be."""
    with slow_disk(photos, folder / "full", "rate:rate=40M") as path:
        d = ask("disk", path, "--pipeline", AUGMENT, "--cache", "process",
                "--cache-size", "16M")
    assert 0.1 < d["evidence"]["disk"]["misses"] < 0.9
    assert max(f["predicted_gain"] for f in d["fixes"]
               if "--cache" in f["option"]) > 1.1


@pytest.mark.parametrize("delay, want", [("rate:rate=20M", "network"),
                                         ("delay:rdelay=60ms", "API rate")])
def test_a_network(photos, folder, delay, want):
    """A stand-in: what the slow disk's file system is called."""
    root = folder / f"root of {want}"
    with slow_disk(photos, folder / want.replace(" ", "-"), delay) as path:
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mountinfo").write_text(
            "".join(line.replace("- fuse /dev/fuse", "- nfs4 server:/data")
                    for line in open("/proc/self/mountinfo")))
        for name in ("stat", "meminfo"):
            (root / "proc" / name).symlink_to(f"/proc/{name}")
        (root / "proc/self/status").symlink_to("/proc/self/status")
        d = ask(want, path, "--pipeline", AUGMENT,
                env={"BETON_DOCTOR_ROOT": str(root)})
    assert d["evidence"]["disk"]["network"]
    assert gain(d, "to a local disk") > 2


# --- delivery ---

def test_arrays_that_are_only_copied(arrays):
    d = ask("memory bandwidth", arrays, "--spec", "batch=32")
    assert d["stages"]["ladder"]["no_decode"]["samples_per_s"] > 0


def test_a_mount_that_is_read(arrays, mount):
    d = ask("ipc", mount(arrays), "--spec", "batch=32",
            "--delivery", "direct")
    assert d["evidence"]["delivery"] == "direct"
    assert gain(d, "--delivery zero-copy") > 1.1


# --- trainers ---

def test_a_trainer_that_is_slow(photos):
    d = ask("not data", photos, "--pipeline", AUGMENT, "--trainer",
            trainer(photos, "sleeps"))
    assert 20 < d["evidence"]["trainer"]["samples_per_s"] < 100
    assert d["evidence"]["trainer"]["main_busy"] < 0.5
    assert gain(d, "the model") > 1.2
    assert not [o for o in options(d) if "mkfs" in o]


def test_a_trainer_that_copies_in_python(photos):
    d = ask("trainer's Python", photos, "--pipeline", AUGMENT, "--trainer",
            trainer(photos, "copies"))
    assert d["evidence"]["trainer"]["main_busy"] > 0.8
    assert gain(d, "py-spy") > 1


@pytest.mark.skipif(is_instrumented,
                    reason="a trainer without sanitizers cannot load the library")
def test_a_trainer_in_c_by_itself(photos, tmp_path):
    """The program contains nothing of the doctor: constant batches show its
    own limit."""
    program = tmp_path / "trainer"
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no cc")
    root = HERE.parents[1]
    subprocess.run([compiler, "-O2", "-o", program,
                    root / "contrib/examples/trainer.c", f"-I{root}/include",
                    f"-L{BUILD}", "-lbeton", f"-Wl,-rpath,{BUILD}"], check=True)
    d = doctor_of(photos, "--pipeline", AUGMENT, "--trainer",
                  f"exec {program} {photos} 1000000")
    seen = d["evidence"]["trainer"]
    assert seen["constant_samples_per_s"] > 1.1 * seen["samples_per_s"] > 0
    assert d["evidence"]["limits"]["trainer"] == \
        seen["constant_samples_per_s"]


def test_a_trainer_limited_by_data(photos):
    d = ask(["cpu decode", "cpu transforms"], photos, "--pipeline", AUGMENT,
            "--trainer", trainer(photos, "greedy"))
    assert d["evidence"]["trainer"]["loader_cores"] > 0.5


def test_a_trainer_that_runs(photos):
    p = subprocess.Popen(
        [sys.executable, HERE / "trainer.py", photos, AUGMENT, "computes"],
        env={**os.environ, "BUILD": str(BUILD)})
    try:
        d = ask("not data", photos, "--pipeline", AUGMENT, "--pid", p.pid)
        assert d["evidence"]["trainer"]["is_guess"]
        assert p.poll() is None
    finally:
        p.kill()
        p.wait()


def test_ranks_of_which_one_straggles(photos):
    command = " & ".join(trainer(photos, "straggles", AUGMENT, r, 2)
                         .replace("exec ", "", 1) for r in range(2))
    d = ask("not data", photos, "--pipeline", AUGMENT, "--trainer",
            command + "; wait")
    ranks = {r["rank"]: r["batches_per_s"] for r in d["evidence"]["ranks"]}
    assert ranks[0] > 2 * ranks[1]
    assert "rank 1 is slow, but not because of data" in d["evidence"]["scaling"]


def test_ranks_of_a_mount_that_run(photos, mount):
    """The trainers do not prepare for an observer: the daemon has their
    figures."""
    where = mount(photos)
    command = " & ".join(trainer(where, "straggles", AUGMENT, r, 2)
                         .replace("exec ", "", 1) for r in range(2))
    p = subprocess.Popen(["sh", "-c", command + "; wait"],
                         start_new_session=True,
                         env={**os.environ, "BUILD": str(BUILD)})
    try:
        d = ask("not data", where, "--pipeline", AUGMENT, "--pid", p.pid)
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    assert not d["evidence"]["trainer"]["is_guess"]
    ranks = {r["rank"]: r["batches_per_s"] for r in d["evidence"]["ranks"]}
    assert ranks[0] > 2 * ranks[1]
    assert "rank 1 is slow, but not because of data" in d["evidence"]["scaling"]


# --- healthy ones ---

def test_a_trainer_on_a_mount(photos, mount):
    where = mount(photos)
    ask("not data", where, "--pipeline", AUGMENT, "--trainer",
        trainer(where, "computes"))


def test_a_rate_that_is_reached(photos):
    d = ask("not data", photos, "--pipeline", AUGMENT, "--target", 20)
    assert not [o for o in options(d) if "mkfs" in o]


def test_arrays_for_a_slow_trainer(arrays):
    ask("not data", arrays, "--spec", "batch=32", "--trainer", trainer(arrays, "sleeps", ""))


def test_a_slow_disk_for_a_slower_trainer(photos, folder):
    with slow_disk(photos, folder / "enough", "rate:rate=80M") as path:
        ask("not data", path, "--pipeline", AUGMENT, "--target", 20)


# --- GPUs, which are stand-ins ---

@pytest.fixture
def nvml(monkeypatch):
    monkeypatch.setenv("BETON_NVML_LIBRARY", str(BUILD / "standin/nvml.so"))

    def be(*numbers):
        monkeypatch.setenv("STANDIN_NVML", " ".join(map(str, numbers)))
    return be


def test_a_gpu_that_is_busy(photos, nvml):
    nvml(98, 1980, 0, 5, 16, 0)
    d = ask("gpu", photos, "--pipeline", AUGMENT, "--trainer",
            trainer(photos, "sleeps"))
    assert d["evidence"]["trainer"]["gpu_busy"] == 98


def test_a_gpu_that_has_time(photos, nvml):
    nvml(25, 1980, 0, 5, 16, 0)
    d = ask("not data", photos, "--pipeline", AUGMENT, "--trainer",
            trainer(photos, "sleeps"))
    assert gain(d, "2 models on this GPU") == 2


def test_a_link_that_is_slow(photos):
    library = BUILD / "standin/cuda.so"
    if not library.exists():
        pytest.skip(f"no {library}: make unit builds it")
    d = ask("upload", photos, "--pipeline", AUGMENT + " | cuda(0)",
            env={"BETON_CUDA_LIBRARY": str(library),
                 "STANDIN_CUDA_RATE": "20e6"})
    assert gain(d, "half instead of float") > 1.5


def test_a_gpu_that_is_too_hot(photos, nvml):
    nvml(60, 400, 5, 5, 4, 40)
    d = ask("gpu", photos, "--pipeline", AUGMENT, "--trainer",
            trainer(photos, "sleeps"))
    assert d["evidence"]["gpus"][0]["slowed"]
    assert [n for n in d["evidence"]["notes"] if "PCIe lanes" in n]


# --- output, and traces that it leaves ---

def test_text_has_one_verdict(photos):
    r = subprocess.run([BUILD / "beton", "doctor", photos, "--pipeline",
                        AUGMENT, "--seconds", "5"], text=True,
                       capture_output=True, timeout=60)
    assert r.returncode == 0 and not r.stderr
    assert r.stdout.count("VERDICT: ") == 1
    assert "x1." in r.stdout or "x2." in r.stdout


def test_the_page_needs_nothing_else(photos, tmp_path):
    pipeline = "resize(32) | flip(p=0.5)  # <b>&\"x\""
    r = subprocess.run([BUILD / "beton", "doctor", photos, "--pipeline",
                        pipeline, "--seconds", "5", "--html",
                        tmp_path / "report.html"], text=True,
                       capture_output=True, timeout=60)
    assert r.returncode == 0 and not r.stderr, r
    page = (tmp_path / "report.html").read_text()
    assert page.count('<table class="bars"') >= 4
    assert "<script" not in page and "http" not in page and "url(" not in page
    assert "&lt;b&gt;&amp;&quot;x&quot;" in page and "<b>&" not in page
    assert os.listdir(tmp_path) == ["report.html"]


# --- settings ---

def bench(path, *args, settings=None):
    env = {**os.environ, "BETON_SETTINGS": str(settings)} if settings else None
    r = subprocess.run([BUILD / "beton", "bench", path, "--json", "--epochs",
                        "2", *map(str, args)], text=True, capture_output=True,
                       timeout=60, env=env)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout), r.stderr


@pytest.mark.skipif("thread" in BUILD.name, reason="the thread sanitizer makes "
                    "all but decoding slow, so that a cache gains nothing")
def test_apply_writes_only_settings(photos, tmp_path):
    where = tmp_path / "fast.settings"
    for _ in range(TRIES):
        d = doctor_of(photos, "--pipeline", AUGMENT, "--apply", where)
        fates = {s["setting"]: s["fate"] for s in d["applied"]["settings"]}
        kept = [s for s in fates if s.startswith("cache_decoded=")]
        if kept:
            break
    kept, = kept
    assert fates[kept] == "written" and d["applied"]["file"] == str(where)
    assert fates.get("decode=draft", "not allowed") == "not allowed"
    lines = where.read_text().splitlines()
    assert kept in lines and not [s for s in lines if s.startswith("decode")]
    # It replaces what it wrote, and nothing else.
    d = doctor_of(photos, "--pipeline", AUGMENT, "--apply", where, "--allow",
                  "pixels,order", seconds=5)
    assert not [s for s in d["applied"]["settings"]
                if s["fate"] == "not allowed"]
    where.write_text("import torch\n")
    r = subprocess.run([BUILD / "beton", "doctor", photos, "--seconds", "5",
                        "--apply", where], text=True, capture_output=True,
                       timeout=60)
    assert r.returncode == 1 and "not a settings file" in r.stderr
    assert where.read_text() == "import torch\n"


def test_a_loader_uses_settings_for_defaults(photos, tmp_path):
    settings = tmp_path / "fast.settings"
    settings.write_text("workers=3\ncache_decoded=1GiB\n"
                        "order=quasi_random\nwindow=100\n")
    b, err = bench(photos, "--pipeline", AUGMENT, settings=settings)
    assert b["workers"] == 3 and b["image_cache"]["hits"] > 0
    assert "order=quasi_random" in b["spec"] and "window=100" in b["spec"]
    assert str(settings) in err and "using workers=3" in err
    b, err = bench(photos, "--pipeline", AUGMENT, "--jobs", 1, "--spec",
                   "order=random", settings=settings)
    assert b["workers"] == 1 and "order=random" in b["spec"]
    assert "ignoring what the program sets: workers=3, order=quasi_random" in err
    settings.write_text("\nworkers=many\n")
    r = subprocess.run([BUILD / "beton", "bench", photos], text=True,
                       capture_output=True, timeout=60,
                       env={**os.environ, "BETON_SETTINGS": str(settings)})
    assert r.returncode == 1 and f"{settings}:2: workers=many" in r.stderr


def test_a_mount_uses_settings_for_defaults(photos, tmp_path, mount):
    settings = tmp_path / "fast.settings"
    settings.write_text("workers=3\ncache=process\ncache_size=64MiB\n"
                        "order=quasi_random\nwindow=100\n")
    where = mount(photos, "-o", f"settings={settings}")
    taken = (where / ".betonfs/options").read_text().splitlines()
    assert "cache=process" in taken and "cache_size=67108864" in taken
    assert "window=100" in os.readlink(where / "batches/default")
    where = mount(photos, "-o",
                  f"cache=os,order=random,settings={settings}")
    taken = (where / ".betonfs/options").read_text().splitlines()
    assert "cache=os" in taken
    assert not [line for line in taken if line.startswith("cache_size")]
    assert "order=random" in os.readlink(where / "batches/default")


def test_a_trainer_that_fails(photos):
    r = subprocess.run([BUILD / "beton", "doctor", photos, "--pipeline",
                        AUGMENT, "--seconds", "5", "--trainer",
                        "echo no such thing; exit 3"], text=True,
                       capture_output=True, timeout=60)
    assert r.returncode == 1 and "no such thing" in r.stderr


@pytest.mark.parametrize("how, code", [
    (signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGKILL, -9)])
def test_it_can_be_stopped(photos, how, code):
    before = named_files()
    p = subprocess.Popen([BUILD / "beton", "doctor", photos, "--pipeline",
                          AUGMENT, "--trainer", trainer(photos, "sleeps")],
                         env={**os.environ, "BUILD": str(BUILD)},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: has_variants(p) or p.poll() is not None, "the variants")
    assert named_files() <= before
    p.send_signal(how)
    assert p.wait(20) == code
    p.communicate()
    assert named_files() <= before


@pytest.mark.parametrize("args, expects", [
    (["/proc/nonexistent"], "No such file"),
    (["--pid", "2147483646"], "No such process"),
    (["--pipeline", "resize("], "resize("),
])
def test_what_cannot_be(photos, args, expects):
    path = [] if args[0].startswith("/") else [photos]
    r = subprocess.run([BUILD / "beton", "doctor", "--seconds", "5", *path,
                        *args], text=True, capture_output=True, timeout=60)
    assert r.returncode == 1 and expects in r.stderr


@pytest.mark.parametrize("command", ["bench", "doctor"])
def test_fewer_samples_than_a_batch_are_reported_with_the_cure(tmp_path, command):
    path = make.numbers(tmp_path / "few.beton", 20).path
    r = subprocess.run([BUILD / "beton", command, path, "--spec=batch=256"],
                       text=True, capture_output=True, timeout=SECONDS)
    assert r.returncode == 1
    assert "the dataset has 20 samples: set --spec=batch=20" in r.stderr
