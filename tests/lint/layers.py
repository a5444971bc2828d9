#!/usr/bin/env python3
"""Check who includes whom.

A module may include the headers of its own line or of a line above it, within
its half: fs/ never knows loader/, but for the programs' own files (MAINS).
System headers named in ONLY may be included by the listed files alone.
"""
import fnmatch
import pathlib
import re
import sys

LAYERS = """
    include/beton/*
    fs/util/bytes fs/util/cleanup fs/util/clock fs/util/thread fs/util/crc fs/metrics/histogram fs/metrics/rank_figures
    fs/util/cgroup
    fs/metrics/counters fs/metrics/metric
    fs/metrics/openmetrics
    fs/util/log fs/util/size fs/util/name fs/util/rng fs/engine/settings fs/cache/arena fs/cache/heap fs/util/memory fs/util/memo fs/namespace/tar fs/metrics/jobs
    fs/metrics/trace
    fs/dataset/source fs/util/npy fs/cache/cold fs/order/subset fs/dataset/source_file fs/engine/handover_message
    fs/dataset/field
    fs/dataset/format
    fs/dataset/alloc_table fs/dataset/custom_field fs/dataset/field_names
    fs/dataset/dataset
    fs/dataset/vfile
    fs/dataset/value_file fs/dataset/group
    fs/namespace/shard_layout
    fs/order/spec
    fs/order/order
    fs/order/spec_text
    fs/order/draws
    fs/engine/batch fs/engine/batch_place fs/engine/pool
    fs/cache/chunk
    fs/cache/fill
    fs/cache/cache
    fs/engine/reader
    fs/engine/plan fs/engine/slot fs/cache/choice
    fs/engine/engine
    fs/util/outfile fs/dataset/schema
    fs/dataset/writer loader/tools/ui/option loader/tools/ui/progress loader/tools/ui/html loader/tools/gallery/census loader/tools/gallery/bins loader/tools/beton/shuffle_quality loader/tools/machine/usage
    loader/util/library
    loader/gpu/cuda
    loader/gpu/nvrtc
    loader/run/beacon loader/util/scratch loader/util/vec16 loader/util/value loader/util/image loader/util/exact_math loader/util/buffer loader/graph/read_file loader/graph/diagnostic loader/graph/suggest loader/util/stages loader/run/hook loader/run/pace loader/run/offload loader/graph/schedule loader/pipeline/value_store
    loader/gpu/upload
    loader/codec/exif loader/resize/axis loader/graph/crop loader/graph/dtype loader/graph/token loader/run/cursor
    loader/jpeg/entry_index loader/jpeg/huffman loader/jpeg/idct loader/jpeg/idct_parts loader/jpeg/idct_reduced
    loader/jpeg/scan loader/jpeg/huffman_best
    loader/jpeg/baseline_header
    loader/jpeg/baseline
    loader/pipeline/kept_image loader/graph/sample_ids loader/graph/beta
    loader/codec/codec loader/codec/encode loader/codec/error loader/codec/header loader/codec/index loader/codec/marker loader/codec/recode loader/codec/source loader/codec/target loader/resize/rows loader/resize/rows_avx2
    loader/jpeg/upsample loader/jpeg/upsample_avx2 loader/jpeg/upsample_class loader/jpeg/upsample_plain
    loader/pipeline/scanlines
    loader/resize/resample loader/feed/batch_view loader/run/state
    loader/resize/filter
    loader/resize/planar loader/resize/planar_avx2 loader/resize/planar_class loader/resize/planar_plain
    loader/graph/parse loader/graph/op loader/jit/kernel loader/jit/code
    loader/ops/brightness loader/ops/cache loader/ops/center_crop loader/ops/chw loader/ops/color_jitter loader/ops/contrast loader/ops/cuda loader/ops/cutout loader/ops/decode loader/ops/double loader/ops/drop loader/ops/flip loader/ops/float loader/ops/grayscale loader/ops/half loader/ops/hwc loader/ops/int32 loader/ops/int64 loader/ops/invert loader/ops/mixup loader/ops/normalize loader/ops/one_hot loader/ops/poison loader/ops/posterize loader/ops/random_resized_crop loader/ops/random_translate loader/ops/replace_label loader/ops/resize loader/ops/saturation loader/ops/solarize loader/ops/uint8 loader/ops/vertical_flip loader/graph/user_op
    loader/jit/emit_type loader/jit/code_cache loader/jit/compiler
    loader/graph/graph loader/pipeline/frame
    loader/graph/operands loader/jit/emit_value
    loader/jit/emit loader/jit/emit_device
    loader/jit/isa
    loader/jit/tail
    loader/jit/jit loader/pipeline/output_plan
    loader/pipeline/worker
    loader/pipeline/pipeline
    loader/gpu/device loader/gpu/device_batch
    loader/pipeline/phases loader/graph/edit
    loader/jit/isa/gather loader/jit/prebuild/prebuild
    loader/feed/handover_client loader/feed/fake_text
    loader/feed/feed loader/feed/fake loader/feed/file loader/feed/mount
    loader/run/step
    loader/run/replay
    loader/defaults
    loader/run/ring
    loader/loader loader/dataset loader/writer
    fs/mount/options fs/mount/log_output fs/mount/mountpoint fs/mount/inval fs/mount/dataset_names fs/namespace/stats
    fs/namespace/ns
    fs/namespace/object
    fs/namespace/streams fs/namespace/text_file fs/namespace/samples
    fs/namespace/batches fs/namespace/by fs/namespace/columns fs/namespace/shards fs/namespace/stats_files fs/namespace/xattr
    fs/namespace/fixed
    fs/namespace/tree
    fs/mount/handover_peer fs/mount/handover_connection
    fs/mount/fuse_ops fs/mount/handover
    fs/mount/betonfs
    loader/tools/mkfs/picture loader/tools/mkfs/picture_format loader/tools/mkfs/picture_png loader/tools/mkfs/picture_webp loader/tools/mkfs/mkfs loader/tools/mkfs/encode loader/tools/mkfs/options loader/tools/mkfs/pool loader/tools/mkfs/scan
    loader/tools/gallery/survey loader/tools/gallery/thumbnail loader/tools/gallery/chart
    loader/tools/gallery/field
    loader/tools/gallery/page
    loader/tools/gallery/gallery
    loader/tools/machine/cpu loader/tools/machine/disk loader/tools/machine/gpu loader/tools/machine/memory
    loader/tools/doctor/run loader/tools/doctor/model
    loader/tools/doctor/evidence
    loader/tools/doctor/fix loader/tools/doctor/verdict
    loader/tools/doctor/apply loader/tools/doctor/variant loader/tools/doctor/watch
    loader/tools/doctor/trials
    loader/tools/doctor/report loader/tools/doctor/json loader/tools/doctor/html
    loader/tools/top/reading loader/tools/top/terminal
    loader/tools/top/view loader/tools/top/fetch
    loader/tools/top/draw loader/tools/top/json
    loader/tools/beton/beton loader/tools/beton/bench loader/tools/beton/command loader/tools/beton/doctor loader/tools/beton/dump loader/tools/beton/info loader/tools/beton/jpegs loader/tools/beton/optimize loader/tools/beton/delivery loader/tools/beton/show loader/tools/beton/top
"""
# Programs stand above both halves.
MAINS = ["fs/mkfs*", "fs/picture*", "fs/gallery*", "fs/machine_gpu", "fs/doctor", "fs/doctor_*",
         "fs/beton", "fs/beton_*"]
ONLY = {
    "fuse_lowlevel.h": ["fs/mount/fuse_ops.c", "fs/mount/inval.c", "fs/mount/betonfs.c"],
    "fuse_opt.h": ["fs/mount/betonfs.c"],
    "dlfcn.h": ["loader/jit/jit.c", "loader/util/library.c"],
    "link.h": ["loader/util/library.c"],
    "jpeglib.h": ["loader/codec/*.c"],
    "lz4.h": ["fs/cache/cold.c"],
    "png.h": ["loader/tools/mkfs/*.c"],
    "webp/decode.h": ["loader/tools/mkfs/*.c"],
    "Python.h": ["loader/python.c"],
}
GENERATED = {"ops.inc"}

RANKS = [(m, i) for i, line in enumerate(LAYERS.split("\n"))
         for m in line.split()]


def rank(module):
    exact = [i for m, i in RANKS if m == module]
    return exact or [i for m, i in RANKS if fnmatch.fnmatch(module, m)]


def module(path):
    return re.sub(r"\.[ch]$", "", path)


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, p) for p in patterns)


def complaints(path):
    me = module(path)
    if not rank(me):
        yield f"{path}: not in the list of tests/lint/layers.py"
        return
    text = pathlib.Path(path).read_text()
    if not text.startswith("/* SPDX-License-Identifier: Apache-2.0 */"):
        yield f"{path}:1: the first line is not the licence's identifier"
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        if not m or m.group(2) in GENERATED:
            continue
        kind, name = m.groups()
        if kind == "<":
            if not matches(path, ONLY.get(name, ["*"])):
                yield f"{path}:{n}: <{name}> is reserved"
            continue
        to = module(name if not name.startswith("beton/")
                    else f"include/{name}")
        if not rank(to) or rank(to)[0] > rank(me)[0]:
            yield f"{path}:{n}: may not include {name}"
        if (to.startswith("loader/") and me.startswith("fs/")
                and not matches(me, MAINS)):
            yield f"{path}:{n}: fs/ may not know loader/"


def main():
    files = sorted(str(p) for d in ("fs", "loader", "include")
                   for p in pathlib.Path(d).rglob("*.[ch]"))
    found = [c for f in files for c in complaints(f)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
