# SPDX-License-Identifier: Apache-2.0
"""Names of classes in Python: written with a dataset, and read from it."""
import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

NAMES = ["tench", "Déjà vu", "日本"]


class Folder:
    """As torchvision's ImageFolder."""
    classes = NAMES

    def __init__(self, **more):
        self.__dict__.update(more)

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"image": np.full((4, 4, 3), i, np.uint8), "label": i % 3}


class Part:
    """As torch's Subset."""
    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.dataset[i]


def written(path, samples, **how):
    betonfs.write(path, samples, overwrite=True, **how)
    return betonfs.Dataset(path)


def test_those_of_a_dataset_are_kept(tmp_path):
    path = tmp_path / "x.beton"
    dataset = written(path, Folder())
    assert dataset.classes == NAMES
    assert dataset.class_to_idx == {name: i for i, name in enumerate(NAMES)}
    assert dataset.fields["label"]["classes"] == tuple(NAMES)
    assert dataset.fields["image"]["classes"] is None
    with betonfs.Loader(path, 2, tensors="numpy") as loader:
        assert loader.classes == NAMES
    assert written(path, Part(Part(Folder()))).classes == NAMES


def test_without_names_there_are_none(tmp_path):
    path = tmp_path / "x.beton"
    assert written(path, list(Folder()[i] for i in range(3))).classes == []
    # A function that makes other labels leaves the names without meaning.
    assert written(path, Folder(target_transform=abs)).classes == []
    assert written(path, Folder(classes=[])).classes == []
    assert written(path, Folder(classes=[1, 2])).classes == []
    assert written(path, Folder(), classes=[]).classes == []


def test_they_can_be_given(tmp_path):
    path = tmp_path / "x.beton"
    two = [{"label": 1, "kind": 0}]
    assert written(path, Folder(), classes="a b c".split()).classes == \
        ["a", "b", "c"]
    dataset = written(path, two, classes={"kind": ["k"], "label": ["l", "m"]})
    assert dataset.classes == ["l", "m"]
    assert dataset.fields["kind"]["classes"] == ("k",)
    assert written(path, two, classes={"kind": ["k"]}).classes == ["k"]


def test_names_may_come_one_by_one(tmp_path):
    for names in iter(NAMES), (n for n in NAMES), np.array(NAMES):
        assert written(tmp_path / "x.beton", Folder(), classes=names
                       ).classes == NAMES


@pytest.mark.parametrize("classes", [
    {"label": {"b": 1, "a": 0}}, {"b", "a"}, {"label": {"a"}}, {"label": 3}])
def test_names_have_an_order(tmp_path, classes):
    """A dict of labels by name would lose them."""
    with pytest.raises(TypeError, match="in the order of their labels"):
        betonfs.write(tmp_path / "x.beton", Folder(), classes=classes)


@pytest.mark.parametrize("classes, words", [
    ("cat", "a list of names"), ([1], "1 is no name"),
    (["a\0b"], "no name of a class"), ({"image": ["a"]}, "'image' is no"),
    ({"lable": ["a"]}, "there are label")])
def test_mistakes_are_reported(tmp_path, classes, words):
    with pytest.raises(ValueError, match=words):
        betonfs.write(tmp_path / "x.beton", Folder(), classes=classes)
    assert not (tmp_path / "x.beton").exists()


def test_two_fields_need_a_dict(tmp_path):
    with pytest.raises(ValueError, match="a dict of names by field"):
        betonfs.write(tmp_path / "x.beton", [{"a": 1, "b": 2}], classes=["x"])


def test_too_many_are_reported(tmp_path):
    with pytest.raises(ValueError, match="1 MiB"):
        betonfs.write(tmp_path / "x.beton", Folder(), classes=["x" * 2 ** 20])


def test_files_with_other_names_are_no_one_dataset(tmp_path):
    paths = [tmp_path / f"{i}.beton" for i in range(2)]
    for path, names in zip(paths, (NAMES, NAMES[::-1])):
        betonfs.write(path, Folder(), classes=names)
    with pytest.raises(ValueError, match="its field 'label' has class 0 '日本', but in .* it is "
                       "'tench'"):
        betonfs.Dataset(paths)


def test_a_mount_has_them(tmp_path):
    (tmp_path / "dataset.json").write_text(
        '{"fields": [{"name": "kind", "stem": "kind", "classes": ["k"]},'
        ' {"name": "label", "stem": "label", "classes": ["l"]}]}')
    from betonfs._dataset import class_names, field_facts
    assert class_names(field_facts(tmp_path)) == ["l"]


class Columns:
    """datasets.Dataset of Hugging Face: names are those of a column."""

    def __init__(self, **features):
        self.features = features

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"image": np.zeros((4, 4, 3), np.uint8), "label": i}


class ClassLabel:
    names = NAMES


def test_names_of_a_column(tmp_path):
    path = tmp_path / "x.beton"
    assert written(path, Columns(image=None, label=ClassLabel())
                   ).classes == NAMES
    assert written(path, Columns(image=None, label=None)).classes == []


def test_a_label_without_a_name(tmp_path):
    path = tmp_path / "x.beton"
    few = [{"label": i} for i in range(3)]
    with pytest.raises(ValueError, match="sample 2 .* names of 2 classes"):
        betonfs.write(path, few, classes=["a", "b"])
    assert not path.exists()
    assert betonfs.write(path, [{"label": -1}], classes=["a"]) == 1
