# SPDX-License-Identifier: Apache-2.0
"""betonfs.ops: a function per operation of the library, and torchvision's
transforms as pipeline strings."""
import enum
import inspect
import pathlib
import pickle
import sys
import types

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs, opener  # noqa: E402
from betonfs import _ops, ops  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = 'synthetic(16, image="uint8[40,60,3]", label="int64<9")'


# --- strings ---

@pytest.mark.quick
def test_the_example():
    text = ops.random_resized_crop(224, scale=(0.25, 1)) | ops.flip()
    assert text == 'random_resized_crop(224, scale="0.25,1") | flip'
    assert type(text) is ops.Pipeline and isinstance(text, str)


@pytest.mark.parametrize("made, text", [
    (lambda: ops.float(), "float"),
    (lambda: ops.flip(p=0.25), "flip(p=0.25)"),
    (lambda: ops.flip(0.25), "flip(p=0.25)"),
    (lambda: ops.center_crop((160, 192)), 'center_crop("160,192")'),
    (lambda: ops.center_crop(np.int64(8), ratio=np.float32(0.5)),
     "center_crop(8, ratio=0.5)"),
    (lambda: ops.normalize("imagenet"), "normalize(imagenet)"),
    (lambda: ops.normalize([0.5] * 3, (0.1, 0.2, 0.3)),
     'normalize("0.5,0.5,0.5", std="0.1,0.2,0.3")'),
    (lambda: ops.normalize(np.full(3, 0.5), 1),
     'normalize("0.5,0.5,0.5", std=1)'),
    (lambda: ops.mixup(0.2, lambda_="sample"), "mixup(0.2, lambda=sample)"),
    (lambda: ops.random_resized_crop({0: 160, 10: (192, 200)}),
     'random_resized_crop("0=160,10=192,200")'),
    (lambda: ops.poison(pathlib.Path("a b.npy"), 0.5, [3, 17]),
     'poison("a b.npy", 0.5, "3,17")'),
    (lambda: ops.cache("decoded", 1 << 30), "cache(decoded, 1073741824)"),
    (lambda: ops.flip(group=None), "flip"),
    (lambda: "image" | ops.flip() | "chw", "image | flip | chw"),
    (lambda: ops.of([ops.flip(), "chw"]), "flip | chw"),
    (lambda: ops.random_apply(ops.color_jitter(0.4) | ops.flip(), p=0.5),
     "random_apply(color_jitter(brightness=0.4) | flip, p=0.5)"),
    (lambda: ops.random_apply([ops.invert(), "flip"]),
     "random_apply(invert | flip)"),
    (lambda: ops.random_choice(ops.invert(), [ops.flip(), ops.posterize(4)],
                               weights=(1, 2)),
     'random_choice(invert, flip | posterize(4), weights="1,2")'),
    (lambda: ops.random_order(ops.invert(), ops.random_apply("flip")),
     "random_order(invert, random_apply(flip))"),
])
def test_a_string(made, text):
    assert str(made()) == text and type(made()) is ops.Pipeline
    assert pickle.loads(pickle.dumps(made())) == text


@pytest.mark.parametrize("call, words", [
    (lambda: ops.flip(q=1), ["flip(p=", "'q'"]),
    (lambda: ops.center_crop(), ["center_crop(size", "'size'"]),
    (lambda: ops.random_apply(None), ["random_apply", "no operation"]),
    (lambda: ops.random_apply(ops.invert), ["invert", "call it"]),
    (lambda: ops.float(1), ["float()", "too many"])])
def test_a_wrong_argument_shows_the_parameters(call, words):
    with pytest.raises(TypeError) as printed:
        call()
    assert all(word in str(printed.value) for word in words)


def test_an_unknown_operation_lists_them():
    with pytest.raises(AttributeError, match="'hflip'; there are .*flip"):
        ops.hflip
    with pytest.raises(TypeError):
        ops.flip() | 3


def test_british_spelling_is_accepted():
    assert ops.normalise("imagenet") == "normalize(imagenet)"
    assert ops.colour_jitter(0.4) == "color_jitter(brightness=0.4)"
    assert _ops.random_operations("centre_crop(8) | colour_jitter(0.4, p=0.5)"
                                  ) == ["color_jitter"]
    with pytest.raises(AttributeError, match="did you mean `center_crop'"):
        ops.CentreCrop


# --- the library's table ---

def operations():
    return sorted(p.stem for p in (ROOT / "loader/pipeline/ops").glob("*.c"))


def test_every_operation_is_there():
    assert sorted(_ops.rows()) == operations()
    assert set(operations()) <= set(dir(ops))


@pytest.mark.parametrize("name", operations())
def test_an_operation_has_help_with_an_example(name):
    function = getattr(ops, name)
    assert f"betonfs.ops.{name}(" in function.__doc__
    assert list(inspect.signature(function).parameters) == [
        p["name"] + "_" * (p["name"] == "lambda")
        for p in _ops.rows()[name]["params"]]
    example = function.__doc__.strip().split("\n")[-1]
    assert str(eval(example)).startswith(name)


def test_the_stubs_are_of_this_library():
    stubs = ROOT / "contrib/python/betonfs/ops.pyi"
    write = "from betonfs import _ops; print(_ops.stubs(), end=\"\")"
    assert _ops.stubs() == stubs.read_text(), \
        f"write it again: python -c '{write}' >{stubs}"


# --- a loader takes them ---

@pytest.mark.parametrize("pipeline", [
    lambda: "image" | ops.center_crop(8) | ops.flip(p=0) | ops.float(),
    lambda: {"image": ops.center_crop(8) | ops.flip(p=0) | ops.float()},
    lambda: {"image": [ops.center_crop(8), ops.flip(p=0), ops.float()]},
    lambda: ["image", ops.center_crop(8), ops.flip(p=0), ops.float()]])
def test_a_loader_takes_them(tmp_path, pipeline):
    path = photos(tmp_path)
    with opener(path, batch_size=8, order="sequential",
                tensors="numpy") as load:
        expected = next(iter(load(
            pipeline="image | center_crop(8) | flip(p=0) | float"))).image
        assert (next(iter(load(pipeline=pipeline()))).image == expected).all()


def photos(tmp_path, n=8, size=(40, 60)):
    path = tmp_path / "p.beton"
    rng = np.random.default_rng(1)
    betonfs.write(path, [{"image": rng.integers(0, 256, (*size, 3), np.uint8),
                          "label": i} for i in range(n)], mode="raw")
    return path


# --- torchvision ---

def stand_in(name, **facts):
    """An object as torchvision's transforms are: a class, and attributes."""
    module = types.SimpleNamespace(v2="torchvision.transforms.v2._x").v2
    return type(name, (), {"__module__": module, **facts})()


def mode(value):
    return types.SimpleNamespace(value=value)


def crop(size=(224, 224), **facts):
    return stand_in("RandomResizedCrop", size=size,
                    **{"scale": (0.08, 1.0), "ratio": (0.75, 4 / 3),
                       "interpolation": mode("bilinear"), "antialias": True,
                       **facts})


def resize(size, **facts):
    return stand_in("Resize", size=size, **{
        "interpolation": mode("bilinear"), "max_size": None,
        "antialias": True, **facts})


FLIP = stand_in("RandomHorizontalFlip", p=0.5)
TENSOR = stand_in("ToTensor")
IMAGE = stand_in("ToImage")
FLOAT = stand_in("ToDtype", dtype="torch.float32", scale=True)
HALF = stand_in("ToDtype", dtype="torch.float16", scale=True)
NORMAL = stand_in("Normalize", mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.1])


def compose(*parts):
    return stand_in("Compose", transforms=list(parts))


@pytest.mark.parametrize("transform, text", [
    ([crop(), FLIP, TENSOR, NORMAL],
     'random_resized_crop("224,224", scale="0.08,1.0", '
     'ratio="0.75,1.3333333333333333", interpolation=bilinear) | '
     'flip(p=0.5) | normalize("0.5,0.4,0.3", std="0.2,0.2,0.1") | float | '
     'chw'),
    ([resize([256]), stand_in("CenterCrop", size=(224, 224)), IMAGE, FLOAT],
     "resize(256, interpolation=bilinear) | center_crop(224, "
     "ratio=0.876953125) | normalize(0, std=1) | float | chw"),
    ([IMAGE, HALF, FLIP], "flip(p=0.5) | normalize(0, std=1) | half | chw"),
    ([resize((32, 64)), IMAGE],
     'resize("32,64", interpolation=bilinear) | chw'),
    ([resize([32], max_size=40), resize(None, max_size=50),
      resize([9], interpolation=mode("nearest")),
      crop(5, interpolation=mode("lanczos"), antialias=False)],
     "resize(32, interpolation=bilinear, max_size=40) | "
     "resize(50, interpolation=bilinear, side=longer) | "
     "resize(9, interpolation=nearest) | "
     'random_resized_crop("5,5", scale="0.08,1.0", '
     'ratio="0.75,1.3333333333333333", interpolation=lanczos)'),
    ([IMAGE, resize([9], interpolation=mode("nearest-exact")),
      resize([8], interpolation=mode("bicubic"))],
     "resize(9, interpolation=nearest) | resize(8, interpolation=bicubic) | "
     "chw"),
    ([stand_in("RandomGrayscale", p=0.1),
      stand_in("RandomSolarize", threshold=128, p=0.2),
      stand_in("RandomPosterize", bits=4, p=0.5),
      stand_in("RandomInvert", p=1), stand_in("Identity")],
     "grayscale(p=0.1) | solarize(threshold=128, p=0.2) | "
     "posterize(4, p=0.5) | invert(p=1)"),
    ([stand_in("RandomApply", transforms=[
        stand_in("RandomInvert", p=1), stand_in("RandomOrder", transforms=[
            stand_in("RandomPosterize", bits=4, p=0.5), FLIP])], p=0.3),
      stand_in("RandomChoice", transforms=[
          stand_in("Compose", transforms=[FLIP, stand_in("Identity")]),
          stand_in("RandomInvert", p=1)], p=[0.25, 0.75]), IMAGE],
     "random_apply(invert(p=1) | random_order(posterize(4, p=0.5), "
     'flip(p=0.5)), p=0.3) | random_choice(flip(p=0.5), invert(p=1), '
     'weights="0.25,0.75") | chw'),
    ([stand_in("RandAugment", num_ops=2, magnitude=9, num_magnitude_bins=31,
               interpolation=types.SimpleNamespace(value="nearest"),
               fill=None),
      stand_in("TrivialAugmentWide", num_magnitude_bins=10,
               interpolation="bilinear", fill=[1, 2, 3]),
      stand_in("AutoAugment", policy=types.SimpleNamespace(value="svhn"),
               interpolation="nearest", fill=7)],
     "rand_augment(num_ops=2, magnitude=9, bins=31, interpolation=nearest, "
     'fill=0) | trivial_augment(bins=10, interpolation=bilinear, '
     'fill="1,2,3") | auto_augment(policy=svhn, interpolation=nearest, '
     "fill=7)"),
    ([stand_in("ColorJitter", brightness=(0.6, 1.4), contrast=None,
               saturation=(0, 2.0), hue=(-0.1, 0.1)),
      stand_in("AugMix", severity=3, mixture_width=2, chain_depth=-1,
               alpha=1.0, all_ops=False, interpolation="bilinear",
               fill=None)],
     'color_jitter(brightness="0.6,1.4", contrast="1,1", saturation="0,2.0", '
     'hue="-0.1,0.1", like=torchvision) | aug_mix(severity=3, width=2, '
     "depth=-1, alpha=1.0, all_ops=false, interpolation=bilinear, fill=0)"),
    ])
def test_transforms_of_torchvision_as_text(transform, text):
    for one in compose(*transform), transform, compose(compose(*transform)):
        assert ops.of(one) == text


@pytest.mark.parametrize("parts, why", [
    ([stand_in("JPEG")], "JPEG .*transforms="),
    ([stand_in("RandAugment", interpolation="bicubic", fill=None, num_ops=2,
               magnitude=9, num_magnitude_bins=31)], "interpolation=bicubic"),
    ([crop(interpolation=mode("hamming"))],
     "interpolation=hamming.* bicubic"),
    ([IMAGE, crop(interpolation=mode("nearest"))],
     "interpolation=nearest of tensors"),
    ([crop(antialias=False)], "antialias=False"),
    ([resize(32, max_size=40), stand_in("CenterCrop", size=(32, 32))],
     "CenterCrop"),
    ([stand_in("RandomApply", transforms=[resize(None, max_size=9)], p=0.5)],
     "RandomApply .*changes the size"),
    ([stand_in("CenterCrop", size=(32, 32))], "put a Resize before"),
    ([resize([16]), stand_in("CenterCrop", size=(32, 32))], "CenterCrop"),
    ([TENSOR, crop()], "RandomResizedCrop .*before that"),
    ([NORMAL, TENSOR], "Normalize .*follows no conversion"),
    ([stand_in("ToDtype", dtype="torch.float32", scale=False)],
     "scale=False"),
    ([stand_in("Grayscale", num_output_channels=1)],
     "num_output_channels=1"),
    ([stand_in("RandomApply", transforms=[TENSOR], p=0.5)], "RandomApply .*"
     "changes the size or the type"),
    ([stand_in("RandomApply", transforms=[stand_in("RandomAdjustSharpnes")],
               p=0.5)], "RandomAdjustSharpnes .*transforms="),
    ([lambda x: x], "function .*transforms=")])
def test_a_transform_of_another_meaning_is_refused(parts, why):
    with pytest.raises(ValueError, match=why):
        ops.of(compose(*parts))


def test_words_of_other_libraries_are_words_here():
    class InterpolationMode(enum.Enum):
        BICUBIC = "bicubic"
        NEAREST_EXACT = "nearest-exact"

    class Resampling(enum.IntEnum):
        LANCZOS = 1

    assert ops.resize(8, InterpolationMode.BICUBIC, max_size=9) == \
        "resize(8, interpolation=bicubic, max_size=9)"
    assert ops.center_crop(
        8, interpolation=InterpolationMode.NEAREST_EXACT) == \
        "center_crop(8, interpolation=nearest)"
    assert ops.random_resized_crop(8, interpolation=Resampling.LANCZOS) == \
        "random_resized_crop(8, interpolation=lanczos)"


def test_a_crop_after_a_resize_has_all_its_pixels(tmp_path):
    """The crop's square has exactly the size of the result, so that it is
    not resized again."""
    path = photos(tmp_path, size=(300, 400))
    for short, side in (200, 200), (232, 224), (97, 61):
        text = ops.of([resize([short]), stand_in("CenterCrop",
                                                 size=(side, side))])
        with opener(path, batch_size=8, tensors="numpy",
                    order="sequential") as load:
            whole = next(iter(load(pipeline=text.partition(" | ")[0]))).image
            part = next(iter(load(pipeline=text))).image
        y, x = ((n - side) // 2 for n in whole.shape[1:3])
        assert (part == whole[:, y:y + side, x:x + side]).all()


def test_torchvision_itself():
    v2 = pytest.importorskip("torchvision.transforms.v2")
    torch = pytest.importorskip("torch")
    assert ops.of(v2.Compose([
        v2.RandomResizedCrop(224, scale=(0.25, 1)), v2.RandomHorizontalFlip(),
        v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.2] * 3)])) == (
        'random_resized_crop("224,224", scale="0.25,1", '
        'ratio="0.75,1.3333333333333333", interpolation=bilinear) | '
        'flip(p=0.5) | normalize("0.5,0.5,0.5", std="0.2,0.2,0.2") | float | '
        'chw')
