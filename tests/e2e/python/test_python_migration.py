# SPDX-License-Identifier: Apache-2.0
"""MIGRATION.md: its code blocks for betonfs run, and those for other loaders are
valid Python."""
import io
import json
import os
import pathlib
import re
import subprocess
import tarfile

import numpy as np
import pytest

import dumped
from dumped import BUILD, DEADLINE
from package import betonfs

pytest.importorskip("PIL.Image")

N = 70
PAGE = pathlib.Path(__file__).resolve().parents[3] / \
    "contrib/python/MIGRATION.md"


def chapters():
    """Title -> [(kind, code)]"""
    text = PAGE.read_text()
    out = {}
    for chapter in re.split(r"^## ", text, flags=re.M)[1:]:
        blocks = re.findall(r"^```(.+?)\n(.*?)^```$", chapter, re.M | re.S)
        assert chapter.count("```") == 2 * len(blocks)
        out[chapter.partition("\n")[0]] = blocks
    return out


CHAPTERS = chapters()


@pytest.fixture(scope="module")
def jpegs():
    return [dumped.jpeg(i, 40 + i % 7, 30 + i % 5) for i in range(N)]


@pytest.fixture
def place(tmp_path, jpegs, monkeypatch):
    """A dataset in all the forms that there are."""
    for i, jpeg in enumerate(jpegs):
        folder = tmp_path / "train" / f"class{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:03}.jpg").write_bytes(jpeg)
    for shard in range(2):
        with tarfile.open(tmp_path / f"train-{shard:04}.tar", "w") as tar:
            for i in range(shard, N, 2):
                for kind, data in (("jpg", jpegs[i]), ("cls", b"%d" % (i % 2))):
                    info = tarfile.TarInfo(f"{i:06}.{kind}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    betonfs.write(tmp_path / "train.beton",
                  [(jpeg, i % 2) for i, jpeg in enumerate(jpegs)],
                  fields={"image": "image", "label": "int"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(kind, code):
    """The arguments of each call of train()."""
    steps = []
    if kind.startswith("sh "):
        os.unlink("train.beton")
        subprocess.run(["sh", "-ec", code], check=True, timeout=DEADLINE,
                       env={**os.environ,
                            "PATH": f"{BUILD}:{os.environ['PATH']}"})
    else:
        def train(images, labels):
            steps.append((np.array(images), np.array(labels)))
        exec(compile(code, str(PAGE), "exec"), {"train": train})
    return steps


def test_blocks_of_other_loaders_are_python():
    assert list(CHAPTERS) == ["FFCV", "DataLoader and ImageFolder of torch",
                              "WebDataset", "Hugging Face datasets", "DALI"]
    for blocks in CHAPTERS.values():
        assert blocks[0][0] == "python" and len(blocks) > 1
        assert all(kind.endswith(" betonfs") for kind, _ in blocks[1:])
        compile(blocks[0][1], str(PAGE), "exec")


@pytest.mark.parametrize("title", CHAPTERS)
def test_blocks_of_betonfs_run(title, place, jpegs, monkeypatch):
    if "Hugging Face" in title:
        monkeypatch.setenv("HF_HOME", str(place / "cache"))
        pytest.importorskip("datasets")
    steps = [run(*block) for block in CHAPTERS[title][1:]]
    batches = [s for s in sum(steps, []) if s[0].shape == (64, 3, 224, 224)]
    assert len(batches) == (2 if "torch" in title else 1)
    for images, labels in batches:
        assert images.dtype == ("f2" if title == "DALI" else "f4")
        assert -3 < images.min() < 0 < images.max() < 3
        assert labels.shape == (64,) and set(labels.tolist()) == {0, 1}
    if "torch" in title:
        state = json.loads((place / "state.json").read_text())
        assert state["batches"] >= 1
        image, label = steps[2][0]
        assert image.ndim == 3 and image.shape[2] == 3 and label in (0, 1)
        assert [i.shape for i, _ in steps[2][1:]] == \
            4 * [(8, 3, 64, 64)] + [(3, 3, 64, 64)]
        assert not any(labels.any() for _, labels in steps[2][1:])
        raw = betonfs.Dataset(place / "train.beton")
        assert sorted(raw.raw(i, "image") for i in range(N)) == sorted(jpegs)
    if "Hugging Face" in title:
        written = betonfs.Dataset(place / "rows.beton")
        assert sorted(written.raw(i, "image") for i in range(N)) == \
            sorted(jpegs)
    if title == "WebDataset":
        written = betonfs.Dataset(place / "shards.beton")
        order = [*range(0, N, 2), *range(1, N, 2)]
        assert [written.raw(i, "image") for i in range(N)] == \
            [jpegs[i] for i in order]
        assert written.column("label").tolist() == [i % 2 for i in order]
