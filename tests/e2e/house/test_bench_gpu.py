# SPDX-License-Identifier: Apache-2.0
"""contrib/bench/gpu with stand-ins for the libraries of a GPU: it runs, reports
omitted parts, and its archive runs elsewhere. The tests check no figure."""
import json
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

from conftest import BUILD

GPU = pathlib.Path(__file__).parents[3] / "contrib/bench/gpu"
SMALL = ("--rounds=1", "--batch=4", "--side=32", "--samples=16", "--workers=2",
         "--gigabytes=0.001", "--kernels=2", "--kernel-ms=1", "--ms=20",
         "--batches=12")
NAMES = {"copies of uint8 / plain", "copies of float32 / plain",
         "kernels that calculate", "kernels that move memory",
         "JPEG, pointwise on the GPU", "JPEG, pointwise on the CPU", "JPEG, no GPU",
         "2 threads, least / most", "4 processes, least / most",
         "wrong batches"}


@pytest.fixture
def standins(monkeypatch):
    for name, file in (("CUDA", "cuda"), ("NVRTC", "nvrtc")):
        monkeypatch.setenv(f"BETON_{name}_LIBRARY",
                           str(BUILD / f"standin/{file}.so"))


def run(*command, code=0, **more):
    r = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=300, **more)
    assert r.returncode == code, r
    return r


def gpu(*options, **more):
    return run(sys.executable, GPU, "--bin", BUILD, *SMALL, *options, **more)


def test_every_line_is_there(standins, tmp_path):
    out = tmp_path / "found.json"
    text = gpu("--out", out).stdout
    found = json.loads(out.read_text())
    lines = {x["name"]: x for x in found["lines"]}
    assert found["standin"] and "mean nothing" in text
    assert not found["skipped"] and NAMES <= set(lines)
    for x in lines.values():
        assert x["least"] <= x["median"] <= x["most"], x
        assert x["name"] in text and x["unit"]
    assert {n for n, x in lines.items() if x["bar"]} == {
        "copies of uint8 / plain", "copies of float32 / plain",
        "kernels that calculate", "wrong batches"}
    assert (tmp_path / "found.txt").read_text() == text


def test_stand_ins_hold_no_bar_but_that_pixels_are_right(standins):
    found = json.loads(gpu("--json", "--only=rate", "--only=pixels").stdout)
    assert {x["name"]: x["holds"] for x in found["lines"] if x["bar"]} == {
        "copies of uint8 / plain": None, "copies of float32 / plain": None,
        "wrong batches": True}


def test_wrong_pixels_are_found(standins, tmp_path):
    """The program is asked to compare two different things."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "bench_gpu"
    program.write_text(f"""#!{sys.executable}
import os, sys
a = [x.replace("| chw", "| hwc") if i == 4 else x
     for i, x in enumerate(sys.argv)]
os.execv("{BUILD}/bench_gpu", a)
""")
    program.chmod(0o755)
    (folder / "mkfs.beton").symlink_to(BUILD / "mkfs.beton")
    found = json.loads(gpu("--json", "--only=pixels", "--bin", folder,
                           code=1).stdout)
    line, = found["lines"]
    assert line["median"] > 0 and line["holds"] is False


def test_without_a_compiler_it_reports_omitted_parts(standins, monkeypatch,
                                                     tmp_path):
    monkeypatch.setenv("BETON_NVRTC_LIBRARY", str(tmp_path / "none"))
    found = json.loads(gpu("--json", "--only=overlap", "--only=rate").stdout)
    assert found["skipped"] == {"overlap": "there is no NVRTC"}
    assert {x["part"] for x in found["lines"]} == {"rate"}


def test_a_pointwise_stage_on_the_cpu_is_not_reported_as_the_gpus(
        standins, monkeypatch, tmp_path):
    monkeypatch.setenv("BETON_NVRTC_LIBRARY", str(tmp_path / "none"))
    out = tmp_path / "found.json"
    r = gpu("--only=decode", "--out", out)
    assert "THE CPU RAN THE POINTWISE STAGE" in r.stdout
    assert json.loads(out.read_text())["fell_back"]


def test_without_a_gpu_it_reports_it(monkeypatch, tmp_path):
    monkeypatch.setenv("BETON_CUDA_LIBRARY", str(tmp_path / "none"))
    r = gpu(code=1)
    assert "no GPU" in r.stderr.splitlines()[-1] and not r.stdout


def test_the_program_may_be_prefixed(standins):
    r = gpu("--only=rate", "--sanitizer", "env -u BETON_CUDA_LIBRARY", code=1)
    assert "no GPU" in r.stderr


@pytest.mark.skipif("-" in BUILD.name, reason="of an ordinary build")
def test_the_archive_runs_elsewhere(standins, tmp_path):
    packed = tmp_path / "packed.tar.gz"
    gpu("--pack", packed)
    assert packed.stat().st_size < 60e6
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    environment = {k: v for k, v in os.environ.items()
                   if k.startswith("BETON_")}
    run(tmp_path / "beton-gpu-bench/run", *SMALL, "--only=decode",
        "--only=pixels", cwd=there, env={**environment, "PATH": "/usr/bin:/bin"})
    found = json.loads((there / "result.json").read_text())
    assert {"test_cuda", "test_upload"} <= set(found["tests"])
    assert all(t["status"] == 0 for t in found["tests"].values())
    assert (there / "result.txt").exists()
