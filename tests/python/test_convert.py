# SPDX-License-Identifier: Apache-2.0
"""python -m betonfs.convert: values are those that the library returns."""
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

from dumped import BUILD, DEADLINE  # noqa: E402
from package import PACKAGE, betonfs  # noqa: E402

from betonfs.convert.__main__ import main  # noqa: E402

Image = pytest.importorskip("PIL.Image")

N = 12
CLASSES = ["cat", "dog"]
# A library may take long to import.
PATIENCE = 4 * DEADLINE


def run(*arguments, cwd=None):
    """In a process of its own, as users do."""
    r = subprocess.run(
        [sys.executable, "-m", "betonfs.convert", *map(str, arguments)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    return r.returncode, r.stdout, r.stderr


@pytest.fixture
def convert(capfd):
    """Runs the command in this process, because its libraries take long to
    import. Returns what it prints, or its error of one line."""
    def convert(*arguments, code=0):
        capfd.readouterr()
        try:
            found = main(list(map(str, arguments)))
        except SystemExit as e:         # --help
            found = e.code
        out, err = capfd.readouterr()
        assert found == code, out + err
        assert (not err) == (code == 0), err
        if code:
            assert err.startswith("betonfs.convert: ")
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
    assert f"{out}: {N} samples of 2 classes, " in convert(
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
    convert("--columns=name:class=text,label:float=label,ids:array=box,"
            "picture:bytes=blob,t:json=text", "--limit=3", saved, out)
    dataset = betonfs.Dataset(out)
    assert len(dataset) == 3
    names = sorted({row["text"] for row in rows}, key=str.encode)
    assert dataset.fields["name"]["classes"] == tuple(names)
    for i in range(3):
        assert names[dataset[i]["name"]] == rows[i]["text"]
        assert dataset[i]["label"] == float(i % 2)
        assert dataset[i]["t"] == rows[i]["text"]
        same(dataset[i]["ids"], rows[i]["box"])


def test_a_plan_is_printed(convert, saved, tmp_path):
    printed = convert("--dry-run", "--limit=5", saved, tmp_path / "x.beton")
    lines = printed.splitlines()
    assert lines[0].endswith(f"5 of {N} samples of a Hugging Face dataset, "
                             f"{saved}, images as keep, pages of 8 MiB")
    assert "  label            int, 2 classes" in lines
    assert "  tokens           ndarray int64 N" in lines
    assert "  boxes            ndarray float32 Nx4" in lines
    assert not (tmp_path / "x.beton").exists()


def test_samples_are_appended(convert, saved, tmp_path):
    out = tmp_path / "x.beton"
    convert("--fields=label", saved, out)
    assert "12 samples added" in convert("--fields=label", "--append", saved,
                                         out)
    assert betonfs.Dataset(out).column("label").tolist() == [0, 1] * N
    assert "--append adds" in convert("--fields=label", saved, out, code=1)
    assert convert("-q", "--overwrite", "--fields=label", saved, out) == ""
    assert len(betonfs.Dataset(out)) == N


def test_splits(convert, hf, rows, tmp_path):
    hf.DatasetDict({"train": rows, "test": rows.select(range(2))}) \
        .save_to_disk(str(tmp_path / "d"))
    out = tmp_path / "x.beton"
    assert "--split: train, test" in convert(tmp_path / "d", out, code=2)
    assert "splits train, test" in convert("--split=val", tmp_path / "d", out,
                                           code=2)
    convert("--split=test", tmp_path / "d", out)
    assert len(betonfs.Dataset(out)) == 2


def test_an_error_has_its_sample(convert, hf, tmp_path):
    features = hf.Features({"img": hf.Image(), "n": hf.Value("int64")})
    hf.Dataset.from_list(
        [{"img": {"bytes": b"no" if i == 3 else picture(i), "path": None},
          "n": None if i == 2 else i} for i in range(5)],
        features=features).save_to_disk(str(tmp_path / "rows"))
    out = tmp_path / "x.beton"
    assert re.search("sample 3: .*identify", convert(
        "--fields=img", "-j2", tmp_path / "rows", out, code=1))
    assert "sample 2 field n: None is not an integer" in convert(
        "--fields=n", tmp_path / "rows", out, code=1)
    assert [p.name for p in tmp_path.iterdir()] == ["rows"]


def test_a_column_of_no_type(convert, hf, tmp_path):
    hf.Dataset.from_dict(
        {"when": [1], "n": [1]}, features=hf.Features(
            {"when": hf.Value("timestamp[s]"), "n": hf.Value("int8")})
    ).save_to_disk(str(tmp_path / "rows"))
    out = tmp_path / "x.beton"
    assert "column 'when': no field can store timestamp[s]" in convert(
        tmp_path / "rows", out, code=2)
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
    monkeypatch.setattr(hf.config, "HF_DATASETS_CACHE", str(where))


def test_a_dataset_of_the_cache(convert, cache, rows, tmp_path):
    out = tmp_path / "x.beton"
    convert("--mode=raw", "hf://me/pets:train", out)
    dataset = betonfs.Dataset(out)
    assert dataset.classes == CLASSES and len(dataset) == N
    same(dataset[3]["img"], rows[3]["img"].convert("RGB"))
    assert "2 of 2 samples" in convert("-n", "--split=train[:2]",
                                       "hf://me/pets", out)


@pytest.mark.parametrize("source, code, message", [
    ("hf://me/none", 1, "convert downloads nothing, so run "
                        "datasets.load_dataset.'me/none'. once"),
    ("hf://me/pets?config=other", 1, "Available configs.*default"),
    ("hf://me/pets:val", 2, "it has the splits train"),
    ("hf://a/b/c", 2, "expected hf://NAME"), ("hf://", 2, "expected hf://NAME"),
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
        tmp_path / "x.beton", code=2)


@pytest.mark.parametrize("source, code, message", [
    ("CIFAR10?root=none", 1, "Dataset not found or corrupted.*downloads "
                             "nothing.*CIFAR10.root='none', download=True"),
    ("CIFAR10?root=none&trian=1", 2, "did you mean `train'"),
    ("CIFAR10?root=none&train=maybe", 2, "expected 1 or 0"),
    ("CIFAR10?root=none&download=1", 2, "leave out download="),
    ("FakeData?size=3&split=val", 2, "no argument split=; there are size"),
    ("FakeData?size=x", 2, "expected a whole number"),
    ("CIFAR10", 2, "needs root=, for example torchvision://CIFAR10.root=DIR"),
    ("CIFR10?root=none", 2, "did you mean `CIFAR10'"),
    ("os?root=none", 2, "no dataset 'os'"),
])
def test_wrong_sources_of_torchvision(convert, tv, tmp_path, monkeypatch,
                                      source, code, message):
    monkeypatch.chdir(tmp_path)
    printed = convert(f"torchvision://{source}", "x.beton", code=code)
    assert re.search(message, printed)
    assert list(tmp_path.iterdir()) == []


# --- mistakes, which need no library ---

@pytest.mark.parametrize("arguments, message", [
    ([], "required: SOURCE, OUT.beton"), (["x"], "required: OUT.beton"),
    (["--mode=x", "a", "b"], "invalid choice: 'x'"),
    (["--jobs=0", "a", "b"], "expected a number from 1 to 4096"),
    (["--quality=101", "a", "b"], "expected a number from 1 to 100"),
    (["--page-size=x", "a", "b"], "expected a size"),
    (["--foo", "a", "b"], "unrecognized arguments: --foo"),
    (["CIFAR10", "b"], "No such file or directory; datasets of libraries are"),
    (["s3://x", "b"], "hf://NAME or torchvision://CLASS"),
    (["x.tar", "b"], "mkfs.beton reads a WebDataset archive: mkfs.beton x.tar b"),
    (["x.parquet", "b"], "mkfs.beton x.parquet b"),
    (["x.arrow", "b"], "save_to_disk"),
    (["photos", "b"], "mkfs.beton photos b"),
    (["cache", "b"], "give hf://NAME"),
    (["file", "b"], "try mkfs.beton"),
    (["torchvision://ImageFolder?root=photos", "b"], "mkfs.beton photos b"),
])
def test_mistakes(convert, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "dataset_info.json").write_text("{}")
    assert message in convert(*arguments, code=2)


@pytest.mark.parametrize("fields, message", [
    ("image=imgg", "no column 'imgg'.*did you mean `img'"),
    ("image:picture=img", "no type 'picture'"), ("=img", "NAME"),
    ("img,img", "named twice"), ("a_very_very_long_name=img", "1 to 16"),
    ("img:class", "no text"), ("img,", "NAME"), ("text:array", "no array")])
def test_wrong_fields(convert, saved, tmp_path, fields, message):
    printed = convert(f"--fields={fields}", saved, tmp_path / "x.beton", code=2)
    assert re.search(message, printed)


@pytest.mark.parametrize("source, name", [
    ("rows", "datasets"), ("hf://me/pets", "datasets"),
    ("torchvision://CIFAR10?root=x", "torchvision")])
def test_a_missing_library(tmp_path, source, name):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "state.json").write_text("{}")
    # A module that does not import stands in for one that is missing.
    (tmp_path / f"{name}.py").write_text(
        f"raise ModuleNotFoundError(name={name!r})")
    code, out, err = run(source, "x.beton", cwd=tmp_path)
    assert (code, out) == (1, "") and err.count("\n") == 1
    assert err.endswith(f"pip install {name}\n")


def test_a_process_of_its_own(saved, tmp_path):
    out = tmp_path / "x.beton"
    code, printed, err = run("--fields=image=img,label", saved, out)
    assert (code, err) == (0, "") and f"{out}: {N} samples of" in printed
    code, printed, err = run("--fields=image=img,label", saved, out)
    assert (code, printed) == (1, "") and "--overwrite" in err


def test_help_has_every_option_and_an_example(convert):
    printed = convert("--help")
    for option in ("--mode", "--quality", "--max-resolution", "--fields",
                   "--split", "--limit", "--page-size", "--jobs", "--append",
                   "--overwrite", "--dry-run", "--quiet"):
        assert f"{option}" in printed
    assert "Examples:\n  python -m betonfs.convert" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_help_names_commands_that_there_are():
    r = subprocess.run([BUILD / "mkfs.beton", "--help"], capture_output=True,
                       text=True, timeout=DEADLINE)
    assert r.returncode == 0 and "--fields" in r.stdout
