# SPDX-License-Identifier: Apache-2.0
"""Every operation there is, in one pipeline, through `beton dump`: the same bytes
for any number of threads, from the file and from a mount, on several ranks, and
after a stop in the middle."""
import io
import re

import numpy as np
import pytest

import make
from arrays import pack
from dumped import beton, digest, dump, jpeg

Image = pytest.importorskip("PIL.Image")

N = 23
SPEC = ("--spec", "batch=4,seed=5,drop_last=0", "--epoch", 3)
SIDE = 24

# A pipeline for each operation. The name of the output is that of the
# operation.
STATEMENTS = {
    "affine": "image | resize(SIZE) | affine(20, translate=\"0.1,0.1\", "
              "scale=\"0.8,1.2\", shear=9, interpolation=bilinear)",
    "array": "wave | array", "aug_mix": "image | resize(SIZE) | aug_mix",
    "auto_augment": "image | resize(SIZE) | auto_augment",
    "autocontrast": "image | resize(SIZE) | autocontrast",
    "bfloat16": "image | resize(SIZE) | bfloat16",
    "brightness": "image | resize(SIZE) | brightness(0.4)",
    "center_crop": "image | center_crop(20)",
    "chw": "image | resize(SIZE) | chw",
    "color_jitter": "image | resize(SIZE) | color_jitter(0.4, 0.4, 0.4, 0.1, "
                    "like=torchvision)",
    "contrast": "image | resize(SIZE) | contrast(0.4)",
    "cutmix": "image | resize(SIZE) | cutmix | chw",
    "cutout": "image | resize(SIZE) | cutout(6)",
    "decode": "image | decode(exact) | resize(SIZE)",
    "double": "vec | double", "elastic": "image | resize(SIZE) | elastic",
    "equalize": "image | resize(SIZE) | equalize",
    "excerpt": "wave | excerpt(9)", "five_crop": "image | resize(SIZE) | "
                                                 "five_crop(10)",
    "flip": "image | resize(SIZE) | flip", "float": "label | float",
    "follow": "boxes | follow(o_random_resized_crop)",
    "gain": "wave | gain(\"-6,6\", db)",
    "gaussian_blur": "image | resize(SIZE) | gaussian_blur(5)",
    "grayscale": "image | resize(SIZE) | grayscale(0.5)",
    "half": "image | resize(SIZE) | half", "hwc": "image | resize(SIZE) | chw | hwc",
    "int32": "label | int32", "int64": "vec | int64",
    "invert": "image | resize(SIZE) | invert(0.5)",
    "json": "text | json(float32, row=2)",
    "keep_rows": "classes | keep_rows(o_follow)",
    "length": "wave | length", "mask": "classmap | mask | resize(SIZE) | flip",
    "mixup": "image | resize(SIZE) | mixup(0.4)",
    "multi_crop": "image | multi_crop(12, views=3)",
    "normalize": "image | resize(SIZE) | normalize(imagenet) | float | chw",
    "pack": "wave | pack(20)", "one_hot": "label | one_hot(9)", "pad": "image | resize(SIZE) | pad(3)",
    "pad_to": "wave | pad_to(batch)",
    "params": "params(o_random_resized_crop)",
    "perspective": "image | resize(SIZE) | perspective(0.5, "
                   "interpolation=bilinear)",
    "poison": "image | resize(SIZE) | poison(\"{folder}/mask.npy\", 0.3, "
              "\"1,5,7\")",
    "posterize": "image | resize(SIZE) | posterize(3, p=0.5)",
    "rand_augment": "image | resize(SIZE) | rand_augment",
    "random_apply": "image | resize(SIZE) | random_apply(invert | flip, p=0.5)",
    "random_choice": "image | resize(SIZE) | random_choice(flip, invert)",
    "random_crop": "image | resize(SIZE) | random_crop(24, padding=4)",
    "random_erasing": "image | resize(SIZE) | random_erasing(0.7)",
    "random_order": "image | resize(SIZE) | random_order(solarize(100), "
                    "brightness(0.4))",
    "random_resized_crop": "image | random_resized_crop(20)",
    "random_translate": "image | resize(SIZE) | random_translate(4)",
    "replace_label": "label | replace_label(\"2,3\", 8)",
    "resample": "wave | resample(3, 2)", "resize": "image | resize(\"31,31\")",
    "rotate": "image | resize(SIZE) | rotate(40)",
    "saturation": "image | resize(SIZE) | saturation(0.4)",
    "sharpness": "image | resize(SIZE) | sharpness(\"0,3\")",
    "solarize": "image | resize(SIZE) | solarize(99, p=0.5)",
    "ten_crop": "image | resize(SIZE) | ten_crop(9)",
    "tokenize": "words | tokenize(\"{folder}/vocab.txt\")",
    "trivial_augment": "image | resize(SIZE) | trivial_augment",
    "truncate": "wave | truncate(5)", "uint8": "label | uint8",
    "vertical_flip": "image | resize(SIZE) | vertical_flip",
    "window": "clip | window(3, 2) | random_resized_crop(9)",
}
# These have no output, need a GPU, or have a test of their own.
ELSEWHERE = {"cache", "cuda", "drop"}
# Lists, which stay in CPU memory.
LISTS = {"array", "excerpt", "follow", "gain", "json", "keep_rows", "pack",
         "pad_to", "resample", "tokenize", "truncate"}
# Images whose colors the GPU may still change.
ON = {n for n, t in STATEMENTS.items() if t.startswith(("image", "clip"))
      } - {"half", "bfloat16"}


def png(a):
    out = io.BytesIO()
    Image.fromarray(a).save(out, "png")
    return out.getvalue()


def sample(i):
    rng = np.random.default_rng(i)
    width, height = 30 + i % 5 * 7, 28 + i % 3 * 9
    n = i % 4
    places = rng.uniform(0, 14, (n, 2))
    return {
        "image": make.Image(make.JPG, width, height, jpeg(i, width, height)),
        "label": i % 9, "vec": rng.normal(0, 9, 5).astype("<f4"),
        "wave": pack(rng.normal(0, 9, i * 3 % 20).astype("<f4")),
        "boxes": pack(np.hstack([places, places + rng.uniform(1, 14, (n, 2))])
                      .astype("<f4")),
        "classes": pack(rng.integers(0, 9, n)),
        "text": b"[%s]" % b", ".join([b"[1.5, %d]" % i] * n),
        "words": b"a ab, %d b!" % i,
        "classmap": png(rng.integers(0, 9, (height, width), np.uint8)),
        "clip": rng.integers(0, 256, (8, 14, 18, 3), np.uint8)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("every")
    np.save(path / "mask.npy", np.full((SIDE, SIDE, 3), 77, np.uint8))
    (path / "vocab.txt").write_text("[UNK]\na\nb\n##b\n,\n!\n")
    return path


@pytest.fixture(scope="module")
def data(folder):
    fields = [("image", make.IMAGE), ("label", make.INT),
              ("vec", make.NDARRAY, "<f4", (5,)), ("wave", make.BYTES),
              ("boxes", make.BYTES), ("classes", make.BYTES),
              ("text", make.JSON), ("words", make.BYTES),
              ("classmap", make.BYTES),
              ("clip", make.NDARRAY, "|u1", (8, 14, 18, 3))]
    return make.Dataset(folder / "d.beton", fields,
                        [sample(i) for i in range(N)], 1 << 16)


def filled(text, folder):
    return text.replace("{folder}", str(folder)).replace(
        "SIZE", f'"{SIDE},{SIDE}"')


@pytest.fixture(scope="module")
def pipeline(folder):
    return "; ".join(f"o_{name} = {filled(text, folder)}"
                     for name, text in STATEMENTS.items())


@pytest.fixture(scope="module")
def first(data, pipeline, folder):
    dump(data.path, folder / "first", *SPEC, "--jobs", 1, "--pipeline",
         pipeline)
    return digest(folder / "first")


def test_all_operations_are_here(data):
    printed = beton("bench", data.path, "--pipeline", "image | xyzzy",
                 code=1).stderr
    names = re.search(r"the operations are ([\w, ]+), in ", printed)[1]
    assert set(names.split(", ")) == set(STATEMENTS) | ELSEWHERE


@pytest.mark.parametrize("workers", [2, 8])
def test_threads_change_nothing(data, pipeline, first, tmp_path, workers):
    dump(data.path, tmp_path / "x", *SPEC, "--jobs", workers, "--pipeline",
         pipeline)
    assert len(first) == 6 and digest(tmp_path / "x") == first


def test_a_mount_changes_nothing(data, pipeline, first, tmp_path, mount):
    dump(mount(data.path), tmp_path / "x", *SPEC, "--pipeline", pipeline)
    assert digest(tmp_path / "x") == first


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_batches(data, pipeline, folder, first, tmp_path,
                                 world):
    seen = {}
    for rank in range(world):
        out = tmp_path / str(rank)
        dump(data.path, out, *SPEC, "--rank", rank, "--world-size", world,
             "--pipeline", pipeline)
        seen.update(digest(out, "valid.npy"))
    assert seen == digest(folder / "first", "valid.npy") and first


def test_a_stop_changes_nothing(data, pipeline, first, tmp_path):
    state = ("--state", tmp_path / "s", "--pipeline", pipeline)
    spec = "batch=4,seed=5,drop_last=0"
    dump(data.path, tmp_path / "a", "--spec", spec, "--epoch", 3, "--batches",
         "0:2", "--jobs", 3, *state)
    dump(data.path, tmp_path / "b", "--spec", spec, "--jobs", 1, *state)
    assert digest(tmp_path / "a") | digest(tmp_path / "b") == first


def test_a_gpu_changes_nothing(data, folder, tmp_path, gpu):
    for cut in " | cuda(0)", "":
        after = {n: cut * (n not in LISTS) + " | brightness(0.5) | half"
                 * (n in ON) for n in STATEMENTS}
        dump(data.path, tmp_path / f"x{len(cut)}", *SPEC, "--pipeline",
             "; ".join(f"o_{n} = {filled(t, folder)}{after[n]}"
                       for n, t in STATEMENTS.items()))
    assert digest(tmp_path / "x0") == digest(tmp_path / "x10")
    assert len(digest(tmp_path / "x0")) == 6
