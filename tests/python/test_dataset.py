# SPDX-License-Identifier: Apache-2.0
"""betonfs.Dataset as torch's and torchvision's datasets are used: transforms,
subsets and masks, and several files as one."""
import contextlib
import errno
import os
import pathlib
import pickle
import shutil
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

N = 6


def samples(first=0):
    rng = np.random.default_rng(first)
    return [{"image": rng.integers(0, 256, (5 + i, 7, 3), np.uint8),
             "label": first + i} for i in range(N)]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("datasets")
    for i, name in enumerate(("a", "b", "c")):
        betonfs.write(folder / f"{name}.beton", samples(10 * i), mode="raw")
    return [folder / f"{name}.beton" for name in ("a", "b", "c")]


def same(one, other):
    return (list(one) == list(other) and one["label"] == other["label"]
            and np.array_equal(one["image"], other["image"]))


# --- transforms ---

def invert(image):
    return 255 - np.asarray(image)


def negative(label):
    return -label


def both(image, label):
    return np.asarray(image).shape, label + 100


def test_transform_gets_an_image_as_torchvisions(paths):
    image = pytest.importorskip("PIL.Image")
    seen = []
    dataset = betonfs.Dataset(paths[0], transform=lambda x: seen.append(x)
                              or "made", target_transform=negative)
    assert dataset[3] == {"image": "made", "label": -3}
    assert isinstance(seen[0], image.Image) and seen[0].mode == "RGB"
    assert (np.asarray(seen[0]) == samples()[3]["image"]).all()


def test_transforms_apply_to_iteration(paths):
    pytest.importorskip("PIL.Image")
    dataset = betonfs.Dataset(paths[0], transform=invert)
    plain = betonfs.Dataset(paths[0])
    expected = [255 - s["image"] for s in plain]
    for got in ([dataset[i] for i in range(N)], list(dataset), dataset[:],
                list(pickle.loads(pickle.dumps(dataset)))):
        assert all(map(np.array_equal, (s["image"] for s in got), expected))
        assert [s["label"] for s in got] == list(range(N))
    # Stored values do not change.
    assert (dataset.get(2, "image") == plain.get(2, "image")).all()
    assert len(betonfs.Dataset(paths[0], target_transform=negative)
               .filter("label", lambda v: v > 0)) == N - 1


def test_transforms_get_image_and_target(paths):
    pytest.importorskip("PIL.Image")
    dataset = betonfs.Dataset(paths[0], transforms=both)
    assert dataset[2] == {"image": (7, 7, 3), "label": 102}


def test_transforms_exclude_each_other(paths):
    with pytest.raises(ValueError, match="transforms= or transform="):
        betonfs.Dataset(paths[0], transform=invert, transforms=both)


def test_which_fields_are_image_and_target(tmp_path):
    pytest.importorskip("PIL.Image")
    pixels = np.zeros((4, 4, 3), np.uint8)
    betonfs.write(tmp_path / "two.beton",
                  [{"left": pixels, "right": pixels, "label": 1, "id": 5}])
    with pytest.raises(ValueError, match="left, right.*\"image\""):
        betonfs.Dataset(tmp_path / "two.beton", transform=invert)
    named = betonfs.Dataset(tmp_path / "two.beton",
                            target_transform=negative)[0]
    assert (named["label"], named["id"]) == (-1, 5)
    betonfs.write(tmp_path / "none.beton", [{"a": 1, "b": 2}])
    with pytest.raises(ValueError, match="a, b.*\"label\""):
        betonfs.Dataset(tmp_path / "none.beton", target_transform=negative)
    with pytest.raises(ValueError, match="no image"):
        betonfs.Dataset(tmp_path / "none.beton", transform=invert)


def test_a_torch_loader_of_it(paths):
    data = pytest.importorskip("torch.utils.data")
    pytest.importorskip("PIL.Image")
    dataset = betonfs.Dataset(paths[0], transform=shape)
    batch = next(iter(data.DataLoader(dataset, batch_size=4, num_workers=2)))
    assert batch["image"].tolist() == [5, 6, 7, 8]


def shape(image):
    return image.height


# --- subsets ---

def test_a_mask_is_the_samples_where_it_is_true(paths):
    dataset = betonfs.Dataset(paths[0])
    mask = dataset.column("label") % 2 == 0
    for kind in (mask, mask.tolist()):
        assert dataset.subset(kind).tolist() == [0, 2, 4]
        assert dataset.filter("label", kind).tolist() == [0, 2, 4]
        assert dataset.get_batch(kind)["label"].tolist() == [0, 2, 4]
    for wrong in mask[:3], mask.tolist() + [True]:
        for call in (dataset.subset, dataset.get_batch,
                     lambda m: dataset.filter("label", m)):
            with pytest.raises(ValueError, match="mask of . for 6 samples"):
                call(wrong)


def test_numbers_are_no_condition(paths):
    with pytest.raises(TypeError, match="a bool mask, not list of int64"):
        betonfs.Dataset(paths[0]).filter("label", [1, 2])


def test_a_mask_of_torch(paths):
    torch = pytest.importorskip("torch")
    dataset = betonfs.Dataset(paths[0])
    assert dataset.subset(torch.arange(N) > 3).tolist() == [4, 5]
    assert dataset.subset(torch.tensor([1, -1])).tolist() == [1, 5]


def test_numbers_are_a_subset(paths):
    dataset = betonfs.Dataset(paths[0])
    for given, numbers in (([3, 1, 1], [3, 1, 1]), (range(1, 4), [1, 2, 3]),
                           (slice(-2, None), [4, 5]), ([], []),
                           (iter([2, -1]), [2, 5]),
                           (np.array([0], np.uint8), [0])):
        found = dataset.subset(given)
        assert found.dtype == np.int64 and found.tolist() == numbers
    with pytest.raises(IndexError, match="sample 6 of 6"):
        dataset.subset([6])
    with pytest.raises(TypeError):
        dataset.subset([1.5])


def test_a_subset_of_torch(paths):
    data = pytest.importorskip("torch.utils.data")
    dataset = betonfs.Dataset(paths[0])
    outer = data.Subset(dataset, [5, 3, 1])
    assert dataset.subset(outer).tolist() == [5, 3, 1]
    assert dataset.subset(data.Subset(outer, [2, 0])).tolist() == [1, 5]
    part, rest = data.random_split(dataset, [4, 2])
    assert sorted([*dataset.subset(part), *dataset.subset(rest)]) == [*range(N)]
    with pytest.raises(ValueError, match="b.beton"):
        dataset.subset(data.Subset(betonfs.Dataset(paths[1]), [0]))


class Part:
    """As torch's Subset."""
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices


def of_subset(path, subset, **options):
    """Labels of a Loader's subset."""
    with betonfs.Loader(path, batch_size=2, order="sequential", subset=subset,
                        pipeline={"label": "label"}, tensors="numpy",
                        **options) as loader:
        return [n for batch in loader for n in batch["label"].tolist()]


def test_a_subset_is_of_the_loaders_dataset(tmp_path, paths):
    one = betonfs.Dataset(paths[1])
    copy = shutil.copy(paths[1], tmp_path / "copy.beton")
    for path in paths[1], copy:     # the same samples
        assert of_subset(path, Part(Part(one, [5, 4, 3]), [2, 1])) == [13, 14]
        assert betonfs.Dataset(path).subset(Part(one, [3])).tolist() == [3]
    # The sources that the file was made of.
    assert of_subset(paths[1], Part(samples(10), [1, 0])) == [11, 10]
    for of, words in ((betonfs.Dataset(paths[0]), "a.beton"),
                      (Part(betonfs.Dataset(paths[2]), [0]), "c.beton"),
                      (list(range(N + 1)), f"of {N + 1} samples.* {N}"),
                      (betonfs.Dataset(paths), "another dataset")):
        for take in (lambda part: of_subset(paths[1], part), one.subset):
            with pytest.raises(ValueError, match=f"a Subset of .*{words}"):
                take(Part(of, [0, 0]))
    synthetic = f'synthetic({N}, image="uint8[4,4,3]", label="int64<5")'
    assert len(of_subset(paths[1], Part(one, [0, 1]), source=synthetic)) == 2


# --- several files ---

@pytest.mark.parametrize("kind", ["list", "tuple", "glob"])
def test_several_files_are_one_dataset(paths, kind):
    given = {"list": paths, "tuple": tuple(map(str, paths)),
             "glob": paths[0].parent / "*.beton"}[kind]
    dataset = betonfs.Dataset(given)
    expected = samples() + samples(10) + samples(20)
    assert len(dataset) == 3 * N
    assert all(map(same, dataset, expected))
    assert same(dataset[-1], expected[-1]) and same(dataset[N], expected[N])
    assert dataset.column("label").tolist() == [s["label"] for s in expected]
    assert dataset.filter("label", lambda v: v > 22).tolist() == [15, 16, 17]
    assert dataset.raw(7, "image") == expected[7]["image"].tobytes()
    assert dataset.get_batch([17, 0])["label"].tolist() == [25, 0]
    copy = pickle.loads(pickle.dumps(dataset))
    assert len(copy) == 3 * N and same(copy[8], expected[8])
    assert "18 samples" in repr(dataset) and ".beton" in repr(dataset)
    with pytest.raises(IndexError, match="sample 18 of 18"):
        dataset[18]


def test_files_of_other_fields_are_refused(tmp_path, paths):
    betonfs.write(tmp_path / "x.beton", [{"label": 1}])
    for open_it in betonfs.Dataset, betonfs.Loader:
        with pytest.raises(ValueError, match="x.beton: it has 1 fields, the "
                                             "first file has 2"):
            open_it([paths[0], tmp_path / "x.beton"])


def test_no_files_are_no_dataset(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\*.beton"):
        betonfs.Dataset(tmp_path / "*.beton")
    with pytest.raises(ValueError, match="no files"):
        betonfs.Dataset([])


def test_a_name_with_a_star_is_a_file_where_it_is_one(tmp_path):
    path = tmp_path / "a[1]*.beton"
    betonfs.write(path, [{"label": 4}])
    assert betonfs.Dataset(path)[0] == {"label": 4}
    assert betonfs.Dataset(path).path == str(path)


def test_names_of_a_list_are_no_patterns(tmp_path):
    names = ["a[1]*.beton", "{a,b}.beton", "c,d.beton", "e\\f.beton"]
    for i, name in enumerate(names):
        betonfs.write(tmp_path / name, [{"label": i}])
    for given in names, names[::-1]:
        dataset = betonfs.Dataset([tmp_path / name for name in given])
        assert dataset.column("label").tolist() == [*map(names.index, given)]
    several = betonfs.Dataset([tmp_path / "[ce]*.beton", tmp_path / names[0]])
    assert several.column("label").tolist() == [2, 3, 0]
    with pytest.raises(FileNotFoundError, match="none, at all.beton"):
        betonfs.Dataset([tmp_path / names[0], tmp_path / "none, at all.beton"])


@pytest.mark.parametrize("kind", ["list", "glob"])
def test_loaders_have_lists_and_patterns(paths, tmp_path, kind):
    given = paths if kind == "list" else paths[0].parent / "*.beton"
    whole = tmp_path / "whole.beton"
    betonfs.write(whole, samples() + samples(10) + samples(20), mode="raw")

    def epoch(path):
        with betonfs.Loader(path, batch_size=4, seed=3, tensors="numpy",
                            workers=1, pipeline={
                                "image": "random_resized_crop(4)",
                                "label": "label"}) as loader:
            assert len(loader) == 4
            return [(b.ids.tolist(), b.label.tolist(), b.image.tobytes())
                    for b in loader]

    assert epoch(given) == epoch(whole)


def test_children_of_fork_read_several_files(paths):
    data = pytest.importorskip("torch.utils.data")
    dataset = betonfs.Dataset(paths)
    loader = data.DataLoader(dataset, batch_size=None, num_workers=2)
    assert [s["label"] for s in loader] == dataset.column("label").tolist()


# --- files that change ---

def change(folder, how):
    if how == "added":
        betonfs.write(folder / "0.beton", samples(50), mode="raw")
    else:
        betonfs.write(folder / "a.beton", samples(50), mode="raw",
                      overwrite=True)


def errno_in_child(work):
    """The errno that it raises twice in a child of fork(), or 0."""
    child = os.fork()
    if not child:
        try:
            with contextlib.suppress(OSError):
                work()
            work()
            os._exit(0)
        except OSError as e:
            os._exit(e.errno)
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("how", ["added", "replaced"])
def test_no_other_dataset_is_opened_again(tmp_path, paths, how):
    for path in paths[:2]:
        shutil.copy(path, tmp_path)
    dataset = betonfs.Dataset(tmp_path / "*.beton")
    loader = betonfs.Loader(tmp_path / "*.beton", batch_size=4,
                            pipeline={"label": "label"})
    kept = pickle.dumps(dataset)
    change(tmp_path, how)
    assert dataset[0]["label"] == 0
    assert errno_in_child(lambda: dataset.get(0, "label")) == errno.ESTALE
    for again in lambda: pickle.loads(kept), lambda: loader.dataset:
        with pytest.raises(betonfs.BetonError, match="another dataset than"):
            again()
    loader.close()


# --- paths of any bytes ---

@pytest.mark.parametrize("open_", [
    betonfs.Dataset, betonfs.Loader,
    lambda path: betonfs.write(path, samples())])
@pytest.mark.parametrize("name", [
    b"\xff.beton", b"\xff/*.beton", b"\xc3\xa9/" * 600 + b"a",
    b"a/" + b"\xc3\xa9" * 1200], ids=["name", "pattern", "long", "cut"])
def test_errors_name_paths_of_any_bytes(tmp_path, open_, name):
    """Also where a message is cut inside a character."""
    path = os.fsencode(tmp_path) + b"/none/" + name
    with pytest.raises(betonfs.BetonError) as e:
        open_(path)
    assert e.value.errno in (errno.ENOENT, errno.ENAMETOOLONG)
    assert r"\xff" in e.value.strerror or "\xe9" in e.value.strerror


@pytest.mark.parametrize("mask", [
    np.arange(12) % 2, [0, 1] * 6, np.ones(12, np.uint8)])
def test_a_mask_of_numbers_is_refused(tmp_path, mask):
    betonfs.write(tmp_path / "d", [{"label": i} for i in range(12)])
    with pytest.raises(ValueError, match=r"mask.astype\(bool\)"):
        betonfs.Loader(tmp_path / "d", 4, subset=mask)


def test_errors_pass_from_a_worker(tmp_path):
    """torch pickles the class of an error."""
    with pytest.raises(FileNotFoundError) as e:
        betonfs.Dataset(tmp_path / "none")
    kind = pickle.loads(pickle.dumps(type(e.value)))
    assert kind is type(e.value) and issubclass(kind, betonfs.BetonError)


@pytest.mark.parametrize("name,value", [
    ("seed", 3), ("order", "sequential"), ("subset", None), ("epoch", 2),
    ("transforms", []), ("pipeline", "label")])
def test_a_loader_keeps_its_arguments(tmp_path, name, value):
    betonfs.write(tmp_path / "d", [{"label": i} for i in range(12)])
    with betonfs.Loader(tmp_path / "d", 4) as loader:
        with pytest.raises(AttributeError, match="open another|set_epoch"):
            setattr(loader, name, value)
        assert len(list(loader)) == 3


def test_a_sampler_is_no_subset(tmp_path):
    data = pytest.importorskip("torch.utils.data")
    betonfs.write(tmp_path / "d", [{"label": i} for i in range(12)])
    for sampler in (data.RandomSampler(range(12)),
                    data.DistributedSampler(range(12), 2, 0),
                    data.WeightedRandomSampler([1.0] * 12, 12)):
        with pytest.raises(TypeError, match="draws again in every epoch"):
            betonfs.Loader(tmp_path / "d", 4, subset=sampler)
    part = data.SubsetRandomSampler([3, 5, 7, 9])
    with betonfs.Loader(tmp_path / "d", 4, subset=part) as loader:
        assert sorted(next(iter(loader)).label.tolist()) == [3, 5, 7, 9]
