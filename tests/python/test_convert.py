# SPDX-License-Identifier: Apache-2.0
"""python -m betonfs.convert, which is mkfs.beton: datasets of Hugging Face and
torchvision. Values are those that the library returns."""
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from dumped import DEADLINE  # noqa: E402
from package import PACKAGE, betonfs  # noqa: E402

Image = pytest.importorskip("PIL.Image")

N = 12
CLASSES = ["cat", "dog"]
# A library may take long to import.
PATIENCE = 4 * DEADLINE


def run(*arguments, cwd=None, path=PACKAGE):
    """As users do, with a directory before those of modules."""
    r = subprocess.run(
        [sys.executable, "-m", "betonfs.convert", *map(str, arguments)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{path}:{PACKAGE}"})
    return r.returncode, r.stdout, r.stderr


@pytest.fixture
def convert():
    """Runs the command. Returns what it prints, or its error of one line."""
    def convert(*arguments, code=0, cwd=None):
        found, out, err = run(*arguments, cwd=cwd)
        assert found == code, out + err
        assert (not err) == (code == 0), err
        if code:
            assert err.startswith("mkfs.beton: ")
            assert err.count("\n") == 1 and out == ""
        return err if code else out
    return convert


def pixels(i, channels=3):
    shape = (20 + i, 30, 3) if channels == 3 else (20 + i, 30)
    return np.random.default_rng(i).integers(0, 255, shape, dtype=np.uint8)


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def picture(i):
    """An image file: JPEGs upright and turned, gray, RGBA."""
    if i % 4 == 0:
        return encoded(Image.fromarray(pixels(i)), "JPEG")
    if i % 4 == 1:
        return encoded(Image.fromarray(pixels(i, 1)), "PNG")
    if i % 4 == 2:
        exif = Image.Exif()
        exif[0x112] = 6
        return encoded(Image.fromarray(pixels(i)), "JPEG", exif=exif)
    return encoded(Image.fromarray(pixels(i)).convert("RGBA"), "PNG")


# --- datasets of Hugging Face ---

@pytest.fixture(scope="module")
def hf():
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    return datasets


@pytest.fixture(scope="module")
def rows(hf):
    value, many = hf.Value, getattr(hf, "List", None) or hf.Sequence
    features = {
        "img": hf.Image(), "label": hf.ClassLabel(names=CLASSES),
        "text": value("string"), "score": value("float32"),
        "flag": value("bool"), "box": many(value("float32"), length=4),
        "tokens": many(value("int64")), "names": many(value("string")),
        "meta": {"a": value("int32"), "b": value("string")},
        "grid": hf.Array2D(shape=(2, 3), dtype="int16"),
        "blob": value("binary"), "views": many(hf.Image()),
        "boxes": many(many(value("float32"), length=4)),
    }

    def row(i):
        return {"img": {"bytes": picture(i), "path": None}, "label": i % 2,
                "text": f"té {i}", "score": i / 3, "flag": i % 2 == 0,
                "box": [i, 1, 2, 3.5], "tokens": list(range(i)),
                "names": ["x"] * (i % 3), "meta": {"a": i, "b": "ü"},
                "grid": [[i, 2, 3], [4, 5, 6]], "blob": bytes([i, 0]),
                "views": [{"bytes": picture(0), "path": None}] * (1 + i % 3),
                "boxes": [[1, 2, 3, k] for k in range(i % 4)]}
    return hf.Dataset.from_list([row(i) for i in range(N)],
                                features=hf.Features(features))


@pytest.fixture
def saved(rows, tmp_path):
    rows.save_to_disk(str(tmp_path / "rows"))
    return tmp_path / "rows"


def same(got, want):
    assert np.array_equal(np.asarray(got), np.asarray(want)), (got, want)


def test_values_are_those_of_the_library(convert, rows, saved, tmp_path):
    out = tmp_path / "x.beton"
    assert f"{out}: {N} samples of 2 classes (0 jpg, {N} raw)" in convert(
        "--mode=raw", "-j2", saved, out)
    dataset = betonfs.Dataset(out)
    assert list(dataset.fields) == rows.column_names
    assert dataset.classes == CLASSES and len(dataset) == N
    for i, want in enumerate(rows):
        got = dataset[i]
        same(got["img"], want["img"].convert("RGB"))
        assert got["label"] == want["label"] and got["score"] == want["score"]
        assert got["flag"] == want["flag"]
        assert bytes(got["text"]).decode() == want["text"]
        assert bytes(got["blob"]) == want["blob"]
        same(got["box"], want["box"])
        same(got["grid"], want["grid"])
        assert got["grid"].dtype == "int16" and got["box"].dtype == "float32"
        assert got["meta"] == want["meta"] and got["names"] == want["names"]
    with betonfs.Loader(out, 1, tensors="numpy", order="sequential", pipeline={
            "tokens": "tokens | array", "boxes": "boxes | array"}) as loader:
        for want, batch in zip(rows, loader):
            assert batch.tokens[0].tolist() == want["tokens"]
            assert batch.boxes[0].tolist() == want["boxes"]


def test_jpegs_are_kept(convert, rows, saved, tmp_path):
    out = tmp_path / "x.beton"
    convert("--fields=image=img", saved, out)
    dataset = betonfs.Dataset(out)
    assert list(dataset.fields) == ["image"]
    for i in range(N):
        kept = dataset.raw(i, "image") == picture(i)
        assert kept == (i % 4 == 0)
        # A JPEG that is turned is stored upright, as the library returns it.
        assert dataset[i]["image"].shape[:2] == rows[i]["img"].size[::-1]


@pytest.mark.parametrize("option", ["--quality=50", "--mode=jpg",
                                    "--max-resolution=16"])
def test_jpegs_are_encoded_if_asked(convert, saved, tmp_path, option):
    out = tmp_path / "x.beton"
    convert("--fields=img", option, saved, out)
    dataset = betonfs.Dataset(out)
    assert dataset.raw(0, "img") != picture(0)
    assert max(dataset[0]["img"].shape) == (16 if "max" in option else 30)


def test_the_file_is_the_same_for_any_jobs(convert, saved, tmp_path):
    for jobs in "1", "3":
        convert("--jobs", jobs, saved, tmp_path / f"{jobs}.beton")
    assert (tmp_path / "1.beton").read_bytes() == \
        (tmp_path / "3.beton").read_bytes()


def test_fields_are_chosen_and_converted(convert, rows, saved, tmp_path):
    out = tmp_path / "x.beton"
    convert("--fields=name:class=text,label:float=label,box:list,"
            "picture:bytes=blob,t:json=text", "--limit=3", saved, out)
    dataset = betonfs.Dataset(out)
    assert len(dataset) == 3
    names = sorted({row["text"] for row in rows}, key=str.encode)
    assert dataset.fields["name"]["classes"] == tuple(names)
    for i in range(3):
        assert names[dataset[i]["name"]] == rows[i]["text"]
        assert dataset[i]["label"] == float(i % 2)
        assert dataset[i]["t"] == rows[i]["text"]
    with betonfs.Loader(out, 1, tensors="numpy", order="sequential",
                        pipeline={"box": "box | array"}) as loader:
        for want, batch in zip(rows, loader):
            assert batch.box[0].tolist() == want["box"]


@pytest.mark.quick
def test_a_plan_is_printed(convert, saved, tmp_path):
    printed = convert("--dry-run", "--limit=5", saved, tmp_path / "x.beton")
    lines = printed.splitlines()
    assert lines[0].endswith(f"5 of {N} samples of a Hugging Face dataset, "
                             f"{saved}, images as keep, pages of 8 MiB")
    assert "  label            int, 2 classes" in lines
    assert "  tokens           bytes" in lines
    assert "  grid             ndarray <i2 2x3" in lines
    assert not (tmp_path / "x.beton").exists()


def test_samples_are_appended(convert, saved, tmp_path):
    out = tmp_path / "x.beton"
    convert("--fields=label", saved, out)
    assert "12 new samples" in convert("--fields=label", "--append", saved, out)
    assert betonfs.Dataset(out).column("label").tolist() == [0, 1] * N
    assert convert("-q", "--fields=label", saved, out) == ""
    assert len(betonfs.Dataset(out)) == N


def test_splits(convert, hf, rows, tmp_path):
    hf.DatasetDict({"train": rows, "test": rows.select(range(2))}) \
        .save_to_disk(str(tmp_path / "d"))
    out = tmp_path / "x.beton"
    assert "--split: train, test" in convert(tmp_path / "d", out, code=1)
    assert "splits train, test" in convert("--split=val", tmp_path / "d", out,
                                           code=1)
    convert("--split=test", tmp_path / "d", out)
    assert len(betonfs.Dataset(out)) == 2


def test_an_error_has_its_sample(convert, hf, tmp_path):
    features = hf.Features({"img": hf.Image(), "n": hf.Value("int64")})
    hf.Dataset.from_list(
        [{"img": {"bytes": b"no" if i == 3 else picture(i), "path": None},
          "n": None if i == 2 else i} for i in range(5)],
        features=features).save_to_disk(str(tmp_path / "rows"))
    out = tmp_path / "x.beton"
    assert re.search("row 3: not a JPEG", convert(
        "--fields=img", "-j2", tmp_path / "rows", out, code=1))
    assert "row 2: column 'n': a null" in convert(
        "--fields=n", tmp_path / "rows", out, code=1)
    assert [p.name for p in tmp_path.iterdir()] == ["rows"]


def test_a_column_of_no_type(convert, hf, tmp_path):
    hf.Dataset.from_dict(
        {"when": [1], "n": [1]}, features=hf.Features(
            {"when": hf.Value("duration[s]"), "n": hf.Value("int8")})
    ).save_to_disk(str(tmp_path / "rows"))
    out = tmp_path / "x.beton"
    assert "field 'when': values of duration[s]: leave the column out" in \
        convert(tmp_path / "rows", out, code=1)
    convert("--fields=n", tmp_path / "rows", out)


@pytest.fixture
def cache(hf, rows, tmp_path, monkeypatch):
    """The cache of a dataset of the Hub, as load_dataset() leaves it."""
    where = tmp_path / "cache"
    rows.select_columns(["img", "label"]).to_parquet(
        str(tmp_path / "x.parquet"))
    hf.load_dataset("parquet", data_files=str(tmp_path / "x.parquet"),
                    cache_dir=str(where))
    made = next(where.glob("parquet/*/*/*/dataset_info.json")).parent
    kept = where / "me___pets" / "default" / made.parts[-2] / "abc"
    kept.mkdir(parents=True)
    info = json.loads((made / "dataset_info.json").read_text())
    info.update(config_name="default", dataset_name="pets",
                builder_name="cache")
    (kept / "dataset_info.json").write_text(json.dumps(info))
    for file in made.glob("*.arrow"):
        file.rename(kept / file.name.replace("parquet", "pets"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(where))


def test_a_dataset_of_the_cache(convert, cache, rows, tmp_path):
    out = tmp_path / "x.beton"
    convert("--mode=raw", "hf://me/pets:train", out)
    dataset = betonfs.Dataset(out)
    assert dataset.classes == CLASSES and len(dataset) == N
    same(dataset[3]["img"], rows[3]["img"].convert("RGB"))
    assert "2 of 2 samples" in convert("-n", "--split=train[:2]",
                                       "hf://me/pets", out)


@pytest.mark.parametrize("source, code, message", [
    ("hf://me/none", 1, "nothing is downloaded, so run "
                        "datasets.load_dataset.'me/none'. once"),
    ("hf://me/pets?config=other", 1, "Available configs.*default"),
    ("hf://me/pets:val", 1, "it has the splits train"),
    ("hf://a/b/c", 1, "expected hf://NAME"), ("hf://", 1, "expected hf://NAME"),
])
def test_a_dataset_that_the_cache_lacks(convert, cache, tmp_path, source, code,
                                        message):
    printed = convert(source, tmp_path / "x.beton", code=code)
    assert re.search(message, printed)


# --- datasets of torchvision ---

@pytest.fixture(scope="module")
def tv():
    return pytest.importorskip("torchvision")


def idx(values):
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(
        f">{values.ndim}i", *values.shape)
    return head + values.tobytes()


@pytest.fixture
def mnist(tv, tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, n in ("train", 9), ("t10k", 4):
        images = np.random.default_rng(n).integers(0, 255, (n, 28, 28),
                                                   dtype=np.uint8)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(idx(images))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(
            idx(np.arange(n, dtype=np.uint8)))
    return tmp_path


@pytest.mark.parametrize("how", [("&train=0",), ("", "--split=test")])
def test_values_are_those_of_torchvision(convert, tv, mnist, tmp_path, how):
    out = tmp_path / "x.beton"
    query, *options = how
    convert("--mode=raw", *options, f"torchvision://MNIST?root={mnist}{query}",
            out)
    want = tv.datasets.MNIST(str(mnist), train=False)
    got = betonfs.Dataset(out)
    assert got.classes == want.classes and len(got) == 4
    for i in range(4):
        same(got[i]["image"], want[i][0].convert("RGB"))
        assert got[i]["label"] == want[i][1]


def test_jpegs_of_torchvision_are_kept(convert, tv, tmp_path):
    files = {}
    for i in range(6):
        path = tmp_path / "eurosat" / "2750" / CLASSES[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        files[str(path)] = encoded(Image.fromarray(pixels(i)), "JPEG")
        path.write_bytes(files[str(path)])
    out = tmp_path / "x.beton"
    convert(f"torchvision://EuroSAT?root={tmp_path}", out)
    dataset = betonfs.Dataset(out)
    assert dataset.classes == CLASSES
    assert [dataset.raw(i, "image") for i in range(6)] == \
        [files[path] for path in sorted(files, key=lambda path: (
            path.split("/")[-2], path))]


def test_arguments_have_the_types_of_the_class(convert, tv, tmp_path):
    out = tmp_path / "x.beton"
    convert("torchvision://FakeData?size=5&image_size=3,8,6&num_classes=4", out)
    dataset = betonfs.Dataset(out)
    assert len(dataset) == 5 and dataset[0]["image"].shape == (8, 6, 3)


def test_a_split_that_torchvision_lacks(convert, mnist, tmp_path):
    assert "it has the splits train and test" in convert(
        "--split=val", f"torchvision://MNIST?root={mnist}",
        tmp_path / "x.beton", code=1)


@pytest.mark.parametrize("source, code, message", [
    ("CIFAR10?root=none", 1, "Dataset not found or corrupted.*nothing "
                             "is downloaded.*CIFAR10.root='none', download=True"),
    ("CIFAR10?root=none&trian=1", 1, "did you mean `train'"),
    ("CIFAR10?root=none&train=maybe", 1, "expected 1 or 0"),
    ("CIFAR10?root=none&download=1", 1, "leave out download="),
    ("FakeData?size=3&split=val", 1, "no argument split=; there are size"),
    ("FakeData?size=x", 1, "expected a whole number"),
    ("CIFAR10", 1, "needs root=, for example torchvision://CIFAR10.root=DIR"),
    ("CIFR10?root=none", 1, "did you mean `CIFAR10'"),
    ("os?root=none", 1, "no dataset 'os'"),
])
def test_wrong_sources_of_torchvision(convert, tv, tmp_path, source, code,
                                      message):
    printed = convert(f"torchvision://{source}", "x.beton", code=code,
                      cwd=tmp_path)
    assert re.search(message, printed)
    assert list(tmp_path.iterdir()) == []


# --- mistakes ---

@pytest.mark.parametrize("arguments, code, message", [
    ([], 2, "SOURCE and DATASET"), (["x"], 2, "missing operand: DATASET"),
    (["--mode=x", "a", "b"], 2, "--mode=x"), (["--jobs=0", "a", "b"], 2, "jobs"),
    (["--foo", "a", "b"], 2, "--foo"),
    (["CIFAR10", "b"], 1, "No such file or directory"),
    (["x.arrow", "b"], 1, "give the directory that save_to_disk"),
    (["cache", "b"], 1, "give hf://NAME"), (["empty", "b"], 1, "no image files"),
    (["file", "b"], 1, "not a source"), (["hf://", "b"], 1, "expected hf://"),
    (["torchvision://ImageFolder?root=photos", "b"], 1, "give photos"),
    (["--split=train", "photos", "b"], 1, "has no splits"),
])
def test_mistakes(convert, tmp_path, arguments, code, message):
    for name in "photos", "empty", "cache":
        (tmp_path / name).mkdir()
    (tmp_path / "photos/1.png").write_bytes(picture(1))
    for name in "file", "x.arrow":
        (tmp_path / name).touch()
    (tmp_path / "cache" / "dataset_info.json").write_text("{}")
    assert message in convert(*arguments, code=code, cwd=tmp_path)


@pytest.mark.parametrize("fields, message", [
    ("image=imgg", "no field 'imgg'.*did you mean `img'"),
    ("image:picture=img", "expected one of image, bytes, mask"),
    ("=img", "1 to 16"), ("a_very_very_long_name=img", "1 to 16"),
    ("img:class", "expected one of"), ("text:array", "expected one of")])
def test_wrong_fields(convert, saved, tmp_path, fields, message):
    printed = convert(f"--fields={fields}", saved, tmp_path / "x.beton", code=1)
    assert re.search(message, printed)


@pytest.mark.parametrize("source, name", [
    ("rows", "datasets"), ("hf://me/pets", "datasets"),
    ("torchvision://CIFAR10?root=x", "torchvision")])
def test_a_missing_library(tmp_path, source, name):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "state.json").write_text("{}")
    # A module that does not import stands in for one that is missing.
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"{name}.py").write_text(
        f"raise ModuleNotFoundError(name={name!r})")
    code, out, err = run(source, "x.beton", cwd=tmp_path,
                         path=tmp_path / "lib")
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.endswith(f"pip install {name}\n")


def test_the_program_is_that_of_the_package():
    own = pathlib.Path(betonfs.__file__).parent / "bin/mkfs.beton"
    assert os.access(own, os.X_OK)
    code, out, err = run("--version")
    assert (code, err) == (0, "") and out.startswith("mkfs.beton ")
