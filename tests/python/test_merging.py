# SPDX-License-Identifier: Apache-2.0
"""betonfs.merge() joins files, and leaves the old one after an error."""
import errno
import os
import pathlib
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from dumped import BUILD, DEADLINE  # noqa: E402
from package import betonfs  # noqa: E402


def part(path, first, n, **how):
    betonfs.write(path, [
        {"image": np.full((4, 5, 3), first + i, np.uint8), "label": i % 2,
         "text": b"t%d" % (first + i)} for i in range(n)], mode="raw", **how)
    return path


def texts(path):
    dataset = betonfs.Dataset(path)
    return [bytes(dataset[i]["text"]) for i in range(len(dataset))]


@pytest.fixture
def parts(tmp_path):
    return [part(tmp_path / "part-0.beton", 0, 5),
            part(tmp_path / "part-1.beton", 5, 3)]


@pytest.mark.parametrize("how", [list, tuple, iter, "pattern"])
def test_samples_follow_in_the_order_of_the_files(tmp_path, parts, how):
    out = tmp_path / "out.beton"
    sources = str(tmp_path / "part-*.beton") if how == "pattern" else how(parts)
    assert betonfs.merge(sources, out) == 8
    assert texts(out) == [b"t%d" % i for i in range(8)]
    images = [betonfs.Dataset(out)[i]["image"].max() for i in range(8)]
    assert images == list(range(8))


def test_the_result_is_that_of_beton_merge(tmp_path, parts):
    betonfs.merge(parts, tmp_path / "a.beton")
    subprocess.run([BUILD / "beton", "merge", *parts, tmp_path / "b.beton"],
                   check=True, capture_output=True, timeout=DEADLINE)
    part(tmp_path / "c.beton", 0, 5)
    assert (tmp_path / "a.beton").read_bytes() == \
        (tmp_path / "b.beton").read_bytes()


def test_classes_keep_their_names(tmp_path):
    a = part(tmp_path / "a.beton", 0, 2, classes=["cat", "dog"])
    b = part(tmp_path / "b.beton", 2, 2, classes=["dog", "bird"])
    betonfs.merge([a, b], tmp_path / "c.beton")
    merged = betonfs.Dataset(tmp_path / "c.beton")
    assert merged.classes == ["cat", "dog", "bird"]
    assert merged.column("label").tolist() == [0, 1, 1, 2]
    betonfs.merge([a, b], tmp_path / "d.beton", keep_numbers=True)
    kept = betonfs.Dataset(tmp_path / "d.beton")
    assert kept.classes == ["cat", "dog"]
    assert kept.column("label").tolist() == [0, 1, 0, 1]


def test_errors_name_the_arguments_of_python(tmp_path):
    a = part(tmp_path / "a.beton", 0, 2, classes=["cat", "dog"])
    b = part(tmp_path / "b.beton", 2, 2)
    with pytest.raises(ValueError, match="keep_numbers=True") as caught:
        betonfs.merge([a, b], tmp_path / "c.beton")
    assert "--keep" not in str(caught.value) and "b.beton" in str(caught.value)


def test_an_existing_file_is_not_replaced_unasked(tmp_path, parts):
    out = part(tmp_path / "out.beton", 90, 1)
    with pytest.raises(FileExistsError, match=r"merge\(\) replaces it with "
                                              "overwrite=True"):
        betonfs.merge(parts, out)
    assert texts(out) == [b"t90"]
    assert betonfs.merge(parts, out, overwrite=True) == 8


def test_files_are_appended_to_the_first(tmp_path, parts):
    first, more = parts
    assert betonfs.merge([first, more], first, overwrite=True) == 8
    assert texts(first) == [b"t%d" % i for i in range(8)]
    assert texts(more) == [b"t%d" % i for i in range(5, 8)]


@pytest.mark.parametrize("sources, kind, message", [
    ([], ValueError, "sources: the list is empty"),
    (3, TypeError, "sources=3: a list of files"),
    ([3], TypeError, "sources=3: the path of a dataset"),
    (["absent.beton"], FileNotFoundError, "absent.beton"),
    ("none-*.beton", FileNotFoundError, "none-"),
])
def test_wrong_sources(tmp_path, monkeypatch, sources, kind, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message):
        betonfs.merge(sources, "out.beton")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words, message", [
    ({"page_size": 3 << 20}, "power of two"), ({"page_size": -1}, "page_size="),
    ({"overwrite": "yes"}, "overwrite="), ({"append": True}, "overwrite=True"),
    ({"overwrit": True}, "did you mean `overwrite'")])
def test_wrong_arguments(tmp_path, parts, words, message):
    with pytest.raises((TypeError, ValueError), match=message):
        betonfs.merge(parts, tmp_path / "out.beton", **words)
    assert not (tmp_path / "out.beton").exists()


def test_other_fields_are_refused(tmp_path, parts):
    betonfs.write(tmp_path / "other.beton", [{"label": 1}])
    with pytest.raises(ValueError, match="other.beton.*image"):
        betonfs.merge([*parts, tmp_path / "other.beton"], tmp_path / "o.beton")


def test_a_sample_larger_than_a_page(tmp_path):
    big = tmp_path / "big.beton"
    betonfs.write(big, [{"a": bytes(3 << 20)}])
    with pytest.raises(betonfs.BetonError) as caught:
        betonfs.merge([big], tmp_path / "o.beton", page_size=2 << 20)
    assert caught.value.errno == errno.EMSGSIZE
    assert "--" not in str(caught.value)


def test_progress_by_tqdm(tmp_path, parts, monkeypatch):
    import importlib.machinery
    seen = []

    class Tqdm:
        n = 0

        def __init__(self, **options):
            seen.append(options["total"])

        def update(self, more):
            self.n += more
            seen.append(self.n)

        def close(self):
            seen.append("closed")
    module = types.ModuleType("tqdm")
    module.__spec__ = importlib.machinery.ModuleSpec("tqdm", None)
    module.tqdm = Tqdm
    monkeypatch.setitem(sys.modules, "tqdm", module)
    betonfs.merge(parts, tmp_path / "o.beton", progress=True)
    assert seen[0] == 8 and seen[-1] == "closed"


def test_an_exception_of_the_bar_ends_the_merge(tmp_path, parts):
    def report(done, total):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        betonfs._beton.merge(tuple(map(os.fsencode, parts)),
                             tmp_path / "o.beton", 0, False, report)
    assert not (tmp_path / "o.beton").exists()


def test_an_interrupt_ends_the_merge(tmp_path, parts):
    def report(done, total):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        betonfs._beton.merge(tuple(map(os.fsencode, parts)),
                             tmp_path / "o.beton", 0, False, report)
    assert sorted(p.name for p in tmp_path.iterdir()) == \
        ["part-0.beton", "part-1.beton"]


def test_threads_may_merge_at_once(tmp_path, parts):
    results = []

    def run(k):
        results.append(betonfs.merge(parts, tmp_path / f"o{k}.beton"))
    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(DEADLINE)
    assert results == [8] * 4
