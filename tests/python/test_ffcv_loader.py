# SPDX-License-Identifier: Apache-2.0
"""betonfs.ffcv in this process, which needs torch: what each operation becomes,
that Python does the same as the library, and what is better than FFCV on
purpose."""
import multiprocessing
import os
import pathlib
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not built", allow_module_level=True)
sys.path.insert(0, str(BUILD / "python"))
sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

import make  # noqa: E402
from betonfs.ffcv import fields as F  # noqa: E402
from betonfs.ffcv import transforms as T  # noqa: E402
from betonfs.ffcv._chain import IMAGE, SCALAR, Chain, Files  # noqa: E402
from betonfs.ffcv.fields.decoders import (  # noqa: E402
    BytesDecoder, CenterCropRGBImageDecoder, IntDecoder,
    RandomResizedCropRGBImageDecoder, SimpleRGBImageDecoder)
from betonfs.ffcv.loader import Loader, OrderOption  # noqa: E402
from betonfs.ffcv.pipeline import Compiler, PipelineSpec  # noqa: E402
from betonfs.ffcv.pipeline.allocation_query import AllocationQuery  # noqa: E402
from betonfs.ffcv.pipeline.operation import Operation  # noqa: E402
from betonfs.ffcv.traversal_order import TraversalOrder  # noqa: E402
from betonfs.ffcv.writer import (  # noqa: E402
    DatasetWriter, worker_job_indexed_dataset, worker_job_webdataset)

N, B, H, W = 24, 4, 12, 16
MEAN, STD = np.array([120.1, 110, 100]), np.array([60, 61, 62.5])


def sample(i):
    rng = np.random.default_rng(i)
    return (rng.integers(0, 256, (H, W, 3), dtype=np.uint8), i,
            np.full(1 + 7 * i % 5, 1 + i, np.uint8))


class Samples:
    def __len__(self):
        return N

    def __getitem__(self, i):
        return sample(i)


@pytest.fixture(scope="module", autouse=True)
def code(tmp_path_factory):
    os.environ["BETON_CACHE_DIR"] = str(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    p = tmp_path_factory.mktemp("ffcv") / "x.beton"
    DatasetWriter(p, {"image": F.RGBImageField(), "label": F.IntField(),
                      "blob": F.BytesField()},
                  num_workers=2).from_indexed_dataset(Samples())
    return p


@pytest.fixture
def load(path):
    opened = []

    def open_one(image=None, label=None, **options):
        pipelines = {"image": image, "label": label, "blob": None,
                     **options.pop("more", {})}
        opened.append(Loader(path, options.pop("batch_size", B),
                             num_workers=options.pop("num_workers", 2),
                             pipelines=pipelines, **options))
        return opened[-1]
    yield open_one
    for loader in opened:
        loader.close()


def column(loader, k=0):
    return np.concatenate([np.asarray(b[k]) for b in loader])


# --- what becomes of operations ---

IDS = '"/proc/self/fd/N"'
TEXTS = [
    (T.RandomHorizontalFlip(), "flip(0.5)"),
    (T.RandomVerticalFlip(1), "vertical_flip(1)"),
    (T.Cutout(8, (1, 2, 3)), 'cutout(8, fill="1,2,3", p=1)'),
    (T.RandomCutout(0.25, 8), 'cutout(8, fill="0,0,0", p=0.25)'),
    (T.ColorJitter(0.5, hue=0.1), "color_jitter(0, 0, 0, 0.1, p=0.5)"),
    (T.Solarization(0.5, 99), "solarize(99, p=0.5)"),
    (T.Cutout(8, (1.5, 2, 3)), None),
    (T.RandomTranslate(2), 'random_translate(2, fill="0,0,0")'),
    (T.RandomResizedCrop((0.1, 1), (0.5, 2), 20),
     'random_resized_crop(20, scale="0.1,1", ratio="0.5,2")'),
    (T.RandomBrightness(0.4), "brightness(0.4, p=0.5)"),
    (T.RandomContrast(0.4, 1), "contrast(0.4, p=1)"),
    (T.RandomSaturation(0.25), "saturation(0.25, p=0.5)"),
    (T.RandomGrayscale(), "grayscale(0.2)"),
    (T.RandomSolarization(), "solarize(128, p=0.5)"),
    (T.RandomColorJitter(), "color_jitter(0.8, 0.4, 0.4, 0.2, p=0.5)"),
    (T.Poison(np.zeros((H, W, 3)), np.zeros((H, W)), [1]),
     f'poison({IDS}, {IDS}, {IDS}, clamp="0,255")'),
    (T.NormalizeImage(np.full(3, 51), np.full(3, 102), np.float32),
     'normalize("0.2,0.2,0.2", "0.4,0.4,0.4")'),
    (T.NormalizeImage(np.full(3, 51), np.full(3, 102), np.float16),
     'normalize("0.2,0.2,0.2", "0.4,0.4,0.4") | half'),
    (T.NormalizeImage(MEAN, STD, np.float64), None),
    (T.NormalizeImage(MEAN + 200, STD, np.float32), None),
    (T.ToTensor(), ""),
    (T.ToDevice("cpu"), ""),
    (T.ToTorchImage(), ""),
    (T.ToTorchImage(channels_last=False), "chw"),
    (T.Convert(torch.float16), "half"),
    (T.Convert(torch.bfloat16), "bfloat16"),
    (T.Convert(np.float32), "float"),
    (T.Convert(torch.int16), None),
    (T.View(torch.int8), None),
    (T.ModuleWrapper(torch.nn.Identity()), None),
    (T.ImageMixup(0.5, True), "mixup(0.5, batch)"),
    (RandomResizedCropRGBImageDecoder((8, 9)), 'random_resized_crop("8,9", '
     'scale="0.08,1", ratio="0.75,1.3333333333333333")'),
    (CenterCropRGBImageDecoder((8, 8), 0.5), 'center_crop("8,8", ratio=0.5)'),
]


@pytest.mark.parametrize("op, want", TEXTS)
def test_an_operation_of_images_has_a_text(op, want):
    with Files() as files:
        text = op.native(Chain(IMAGE, "uint8", files))
    if text:
        head, *rest = text.split("/proc/self/fd/")
        text = head + "".join("/proc/self/fd/N" + r.lstrip("0123456789")
                              for r in rest)
    assert text == want


def test_an_operation_has_no_text_where_it_cannot_stand():
    with Files() as files:
        chain = Chain(IMAGE, "uint8", files)
        assert T.Convert(torch.float32).native(chain) == "float"
        for op in (T.RandomBrightness(1), T.Cutout(2), T.ImageMixup(1, True),
                   T.NormalizeImage(MEAN, STD, np.float32)):
            assert op.native(chain) is None
        assert T.RandomHorizontalFlip().native(chain) == "flip(0.5)"
        T.ToTorchImage(channels_last=False).native(chain)
        assert T.RandomHorizontalFlip().native(chain) is None


def test_operations_of_labels_have_a_text():
    with Files() as files:
        chain = Chain(SCALAR, "int64", files)
        assert T.Convert(torch.int32).native(chain) is None
        assert T.ReplaceLabel([], 7).native(chain) == ""
        assert T.ReplaceLabel([3], 7).native(chain).startswith("replace_label(")
        assert T.Squeeze(0).native(chain) is None
        assert T.Squeeze().native(chain) == "" and chain.squeezed
        assert T.Convert(torch.float32).native(chain) == "float"
        assert T.Convert(torch.int64).native(chain) is None


def test_operations_after_to_device_run_on_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    ops = [T.RandomHorizontalFlip(), T.ToTensor(), T.ToDevice("cuda:1"),
           T.ToTorchImage(), T.NormalizeImage(MEAN, STD, np.float16)]
    with Files() as files:
        chain = Chain(IMAGE, "uint8", files)
        for op in ops:
            chain.ops.append(op.native(chain))
        assert chain.text().startswith(" | flip(0.5) | cuda(1) | normalize(")
        assert not chain.halves and chain.device == 1
        # Operations that move pixels run before it, or in Python.
        assert T.RandomHorizontalFlip().native(chain) is None
        assert T.ToDevice("cpu").native(chain) is None
        without = Chain(IMAGE, "uint8", files, gpu=False)
        assert T.ToDevice("cuda:1").native(without) is None


class Nothing(Operation):
    """Operations after it run in Python."""

    def generate_code(self):
        return lambda value, _: value

    def declare_state_and_memory(self, previous_state):
        return (types.SimpleNamespace(jit_mode=False), None)


CERTAIN = [
    T.RandomHorizontalFlip(1), T.RandomHorizontalFlip(0),
    T.RandomVerticalFlip(1), T.Cutout(W, (9, 8, 7)), T.RandomTranslate(0),
    T.RandomSolarization(1, 100), T.RandomGrayscale(1),
    T.RandomBrightness(0, 1), T.RandomContrast(0, 1), T.RandomSaturation(0, 1),
    T.RandomColorJitter(1, 0, 0, 0, 0),
    T.RandomResizedCrop((1, 1), (W / H, W / H), 8),
    T.RandomResizedCrop((1, 1), (W / H, W / H), 40),
    T.Poison(np.arange(H * W * 3).reshape(H, W, 3) % 256,
             np.linspace(0, 1, H * W).reshape(H, W), [1, 2, 9, 11], (9, 200)),
    T.NormalizeImage(MEAN, STD, np.float16),
    T.Convert(torch.float16), T.Convert(torch.float64),
    T.Convert(torch.bfloat16),
    T.ToTorchImage(), T.ToTorchImage(channels_last=False),
]


@pytest.mark.parametrize("op", CERTAIN, ids=lambda op: type(op).__name__)
def test_python_and_library_agree(load, op):
    if isinstance(op, T.Cutout):
        op = T.Cutout(H, (9, 8, 7))
    begin, end = [SimpleRGBImageDecoder()], [T.ToTensor()]
    fast = load([*begin, op, *end])
    slow = load([*begin, T.ToTensor(), Nothing(), op])
    assert fast._outputs[0].native == 3 and slow._outputs[0].native == 2
    for (a,), (b,) in zip(fast, slow, strict=True):
        if isinstance(op, T.Cutout):    # where it is, is of chance
            a, b = ((x == torch.tensor([9, 8, 7])).all(-1).sum((1, 2))
                    for x in (a, b))
        if isinstance(op, T.NormalizeImage):
            a = a.view(torch.float16)
        assert a.dtype == b.dtype and a.stride() == b.stride()
        # A resize in Python rounds a half now and then another way.
        most = int(isinstance(op, T.RandomResizedCrop))
        assert (a.double() - b.double()).abs().max() <= most


class Twice(Operation):
    """An operation of a user, on tensors."""

    def generate_code(self):
        return lambda value, _: value + value

    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=False), None


class Plain(Twice):
    """An operation of a user, on arrays."""

    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=True), None


@pytest.mark.parametrize("where", ["library", "python"])
@pytest.mark.parametrize("tensor", [True, False])
def test_convert_makes_bfloat16(load, where, tensor):
    between = [Nothing()] if where == "python" else []
    first = [*between, T.ToTensor()] if tensor else between
    convert = T.Convert(torch.bfloat16)
    norm = T.NormalizeImage(MEAN, STD, np.float32)
    image, label = [SimpleRGBImageDecoder()], [IntDecoder()]
    loader = load([*image, *between, norm, *first, T.ToTorchImage(), convert],
                  [*label, *first, convert, T.Squeeze()])
    assert ("bfloat16" in loader.pipeline) == (where == "library")
    plain = load([*image, *between, norm, T.ToTensor(), T.ToTorchImage()],
                 [*label, T.ToTensor(), T.Squeeze()])
    for got, want in zip(loader, plain, strict=True):
        for a, b in zip(got, want, strict=True):
            assert a.dtype == torch.bfloat16 and a.stride() == b.stride()
            assert torch.equal(a, b.to(torch.bfloat16))


def test_operations_of_users_follow_bfloat16(load):
    ops = [SimpleRGBImageDecoder(), T.ToTensor(), T.Convert(torch.bfloat16)]
    for (a,), (b,) in zip(load(ops), load([*ops, Twice()]), strict=True):
        assert b.dtype == torch.bfloat16 and torch.equal(a + a, b)


@pytest.mark.parametrize("op", [T.RandomBrightness(1, 1), Plain()])
def test_operations_on_arrays_refuse_bfloat16(load, op):
    loader = load([SimpleRGBImageDecoder(), T.ToTensor(),
                   T.Convert(torch.bfloat16), op])
    with pytest.raises(TypeError, match="put Convert.* after"):
        next(iter(loader))


def test_convert_takes_bfloat16_of_ml_dtypes(load):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    loader = load([SimpleRGBImageDecoder(), T.ToTensor(),
                   T.Convert(ml_dtypes.bfloat16)])
    assert "| bfloat16" in loader.pipeline
    assert next(iter(loader))[0].dtype == torch.bfloat16
    assert T.Convert(ml_dtypes.bfloat16).apply(
        torch.ones(2), None).dtype == torch.bfloat16


def test_normalize_refuses_bfloat16():
    with pytest.raises(TypeError, match=r"Convert\(torch.bfloat16\)"):
        T.NormalizeImage(MEAN, STD, torch.bfloat16)


@pytest.mark.parametrize("op", [
    T.RandomTranslate(3), T.RandomHorizontalFlip(), T.RandomBrightness(0.5),
    T.RandomContrast(0.5), T.RandomSaturation(0.5), T.RandomColorJitter(1),
    T.RandomResizedCrop((0.1, 0.5), (0.8, 1.2), 6), T.Cutout(3),
    T.GaussianBlur(0.5), T.RandomErasing(), T.Rotate(1, 1.0)],
    ids=lambda op: type(op).__name__)
@pytest.mark.parametrize("where", ["library", "python"])
def test_chance_is_of_seed_epoch_and_sample(load, op, where):
    between = [T.ToTensor(), Nothing()] if where == "python" else []

    def images(seed=1, **options):
        loader = load([SimpleRGBImageDecoder(), *between, op, T.ToTensor()],
                      seed=seed, **options)
        return [column(loader).tobytes() for _ in range(2)]
    first = images()
    assert first[0] != first[1]
    assert images(batch_size=6, num_workers=1) == first
    assert images(seed=2)[0] not in first
    loader = load([SimpleRGBImageDecoder(), *between, op, T.ToTensor()],
                  seed=1)
    loader.next_epoch = 1
    assert column(loader).tobytes() == first[1]


class Record:
    """Draws that are these numbers, one after the other."""

    def __init__(self, *numbers):
        self.ids, self.numbers = np.arange(1), list(numbers)

    def uniform(self, low=0, high=1):
        return np.array([low + (high - low) * self.numbers.pop(0)])

    def index(self, count):
        return (self.uniform() * count).astype(int)


def test_an_image_is_turned():
    square = sample(3)[0][None, :, :H]

    def turned(angle, image=square):
        return T.Rotate(1, 2 * angle).images(image.copy(), Record(0, 0.75))[0]
    assert (turned(np.pi / 2) == np.rot90(square[0])).all()
    assert (turned(np.pi) == square[0, ::-1, ::-1]).all()
    assert (turned(0.01) == square[0]).all()
    wide = turned(np.pi / 2, sample(3)[0][None])
    assert not wide[:, :2].any() and wide[:, 2:-2].any()
    assert (T.Rotate(0).images(square.copy(), Record(0.5, 0.9)) == square).all()


def test_a_part_of_an_image_is_erased():
    image = np.full((1, 20, 30, 3), 9, np.uint8)
    op = T.RandomErasing(1, (0.25, 0.25), (1, 1), mean=(1, 2, 3))
    # The part is 12 by 12, at a half of the places that are left.
    rest = [0.5] * 4 * 9
    out = op.images(image.copy(), Record(0, 0, 0, 0.5, 0.5, *rest))[0]
    assert (out[4:16, 9:21] == (1, 2, 3)).all()
    assert (out != 9).all(-1).sum() == 144
    # One that fits nowhere is left out.
    tall = T.RandomErasing(1, (0.9, 0.9), (0.01, 0.01))
    assert (tall.images(image.copy(), Record(0, *[0.5] * 40)) == 9).all()


def test_an_image_is_blurred():
    op = T.GaussianBlur(1, 3, (1.0, 1.9))
    dot = np.zeros((1, 5, 6, 3), np.uint8)
    dot[0, 2, 2] = 200
    out = op.images(dot.copy(), Record(0, 0))[0]     # of deviation 1
    side = np.exp([-0.5, 0, -0.5]) / np.exp([-0.5, 0, -0.5]).sum()
    assert (out[1:4, 1:4, 0] == np.rint(200 * np.outer(side, side))).all()
    assert (out.astype(bool).sum((0, 1)) == 9).all()
    flat = np.full((1, 4, 4, 3), 77, np.uint8)
    assert (op.images(flat.copy(), Record(0, 0.99)) == 77).all()
    with pytest.raises(ValueError, match="kernel_size=4"):
        T.GaussianBlur(0.5, 4)


def test_two_operations_draw_for_themselves(load):
    op = T.RandomHorizontalFlip()
    loader = load([SimpleRGBImageDecoder(), T.ToTensor(), Nothing(), op, op],
                  seed=1)
    plain = np.stack([sample(i)[0] for i in range(N)])
    kept = (column(loader) == plain).all((1, 2, 3)).sum()
    assert 4 <= kept <= 20


# --- any order of operations ---

def test_native_operations_may_come_after_tensors(load):
    want = load([SimpleRGBImageDecoder(),
                 T.NormalizeImage(MEAN, STD, np.float16), T.ToTensor(),
                 T.ToTorchImage()])
    for ops in ([T.ToTensor(), T.NormalizeImage(MEAN, STD, np.float16),
                 T.ToTorchImage()],
                [T.ToTensor(), T.ToDevice(torch.device("cpu")),
                 T.ToTorchImage(), T.NormalizeImage(MEAN, STD, np.float16)],
                [T.ToTensor(), torch.nn.Identity(), T.ToTorchImage(),
                 T.NormalizeImage(MEAN, STD, np.float16)]):
        got = load([SimpleRGBImageDecoder(), *ops])
        for (a,), (b,) in zip(want, got, strict=True):
            assert a.dtype == b.dtype == torch.float16
            assert a.stride() == b.stride() and torch.equal(a, b)


def test_colors_before_a_resize_are_made_first(load):
    loader = load([SimpleRGBImageDecoder(), T.RandomGrayscale(1),
                   T.RandomResizedCrop((1, 1), (W / H, W / H), 6),
                   T.ToTensor()])
    assert loader._outputs[0].native == 2
    image = column(loader)[0]
    assert (image == image[..., :1]).all() and image.shape == (6, 6, 3)


def test_refused_operations_run_in_python(load):
    with pytest.warns(RuntimeWarning, match="in Python"):
        loader = load([SimpleRGBImageDecoder(), T.Cutout(0), T.ToTensor()])
    assert (column(loader)[3] == sample(3)[0]).all()


def test_without_numba_users_operations_are_python(load, monkeypatch):
    class Add(Operation):
        def generate_code(self):
            def add(x, dst, ids):
                dst[:] = x[:, 0] + ids
                return dst
            add.with_indices = True
            return add

        def declare_state_and_memory(self, state):
            return state, AllocationQuery((), state.dtype)
    monkeypatch.setattr(Compiler, "_numba", classmethod(lambda cls: None))
    loader = load(label=[IntDecoder(), Add(), T.ToTensor()])
    with pytest.warns(RuntimeWarning, match="numba"):
        assert column(loader).tolist() == [2 * i for i in range(N)]


@pytest.mark.parametrize("recompile, want", [(False, 1), (True, 3)])
def test_code_is_asked_for_once(load, recompile, want):
    asked = []

    class Counted(Nothing):
        def generate_code(self):
            asked.append(1)
            return super().generate_code()
    loader = load(label=[IntDecoder(), Counted()], recompile=recompile)
    for _ in range(3):
        list(loader)
    assert len(asked) == want


# --- what the library's threads do ---

class Own(Operation):
    """Changes images, by a function that declares its output."""

    def __init__(self, code, memory=True):
        super().__init__()
        self.code, self.memory = code, memory

    def generate_code(self):
        return self.code

    def declare_state_and_memory(self, state):
        query = AllocationQuery(state.shape, np.dtype("u1"))
        return replace(state, jit_mode=True), query if self.memory else None


class Inverted(Own):
    def generate_code(self):
        my_range = Compiler.get_iterator()

        def inverted(images, dst, indices):
            for i in my_range(len(images)):
                dst[i] = images[i] ^ np.uint8(indices[i])
            return dst

        inverted.with_indices = inverted.is_parallel = True
        return inverted


def mirrored(images, dst):
    return images[:, ::-1]


def turned(images, dst):
    return images.transpose(0, 2, 1, 3)


def noisy(images, dst):
    for i in range(len(images)):
        images[i, 0, 0, 0] = np.random.randint(0, 256)
    return images


def other_type(images, dst):
    return images.astype(np.float32)


OWN = [
    # Operations after the decoder, and how many the threads do.
    ([Inverted(None)], 1),
    ([Own(mirrored, False), Own(noisy, False), T.ToTensor()], 2),
    ([T.ToTensor(), T.ToTorchImage(channels_last=False), Own(noisy)], 1),
    ([T.ToTensor(), T.ToTorchImage(), Own(mirrored), T.ToTensor()], 1),
    ([Own(other_type), Own(noisy)], 0),
    ([T.ToTensor(), lambda x: x.numpy(), Own(noisy)], 0),
    ([Own(noisy), T.Cutout(2), T.ToTensor()], 1),
]


@pytest.mark.parametrize("ops, count", OWN)
def test_threads_run_users_operations(load, monkeypatch, ops, count):
    pytest.importorskip("numba")
    how = {"image": [SimpleRGBImageDecoder(), *ops], "seed": 3,
           "drop_last": False}
    loader = load(**how)
    images = [column(loader, 0) for _ in range(2)]
    assert len(loader._core._pool.places) == count
    # Without them, and without numba's.
    again = load(**how, recompile=True, num_workers=1)
    for want in images:
        assert np.array_equal(column(again, 0), want)
        assert not again._core._pool.places
    monkeypatch.setattr(Compiler, "_numba", classmethod(lambda cls: None))
    with pytest.warns(RuntimeWarning, match="numba is not installed"):
        plain = load(**how)
        for want in images:
            assert np.array_equal(column(plain, 0), want)


def test_similar_operations_are_distinguished(load):
    """Same place, same shape, other strides."""
    pytest.importorskip("numba")
    crop = CenterCropRGBImageDecoder((8, 8), 0.9)
    loader = load([crop, Own(turned, False)])
    want = column(load([crop])).transpose(0, 2, 1, 3)
    assert np.array_equal(column(loader), want)
    assert len(loader._core._pool.places) == 1


def test_the_start_of_another_pipeline_is_unchanged(load):
    pytest.importorskip("numba")
    first, second = SimpleRGBImageDecoder(), Inverted(None)
    more = {"view": PipelineSpec(second, transforms=[Own(noisy)])}
    loader = load([first, second, Own(mirrored)], [IntDecoder()], more=more)
    for image, _, view in loader:
        assert np.array_equal(view[:, 1:], np.asarray(image)[:, ::-1][:, 1:])
    assert len(loader._core._pool.places) == 1
    more = {"view": PipelineSpec(first, transforms=[Own(noisy)])}
    loader = load([first, second], [IntDecoder()], more=more)
    for image, label, view in loader:
        want = np.asarray(image) ^ label[:, :, None, None].astype("u1")
        assert np.array_equal(view[:, 1:], want[:, 1:])
    assert not loader._core._pool.places


def test_wrong_operations_are_reported_by_name(load):
    pytest.importorskip("numba")

    class Short(Own):
        pass

    loader = load([SimpleRGBImageDecoder(),
                   Short(lambda images, dst: images[:, 1:])])
    with pytest.raises(OSError, match=r"Short\(\) raised an exception"):
        next(iter(loader))


def test_functions_are_operations(load):
    loader = load(label=[IntDecoder(), T.ToTensor(), lambda x: x + 1])
    assert column(loader)[:, 0].tolist() == list(range(1, N + 1))
    with pytest.raises(ValueError, match="no operation"):
        load(label=[IntDecoder(), 3])


# --- outputs ---

def test_two_views_of_an_image(load):
    crop = RandomResizedCropRGBImageDecoder((6, 6), (0.2, 0.4))
    loader = load(label=[IntDecoder(), T.ToTensor(), T.Squeeze()], more={
        "one": PipelineSpec("image", crop, [T.ToTensor()]),
        "two": PipelineSpec("image", crop, [T.ToTensor()])})
    for labels, one, two in loader:
        assert labels.shape == (B,) and one.shape == two.shape == (B, 6, 6, 3)
        assert not torch.equal(one, two)


@pytest.mark.parametrize("rest", [[], [T.RandomHorizontalFlip(1)],
                                  [torch.nn.Identity()]])
def test_a_pipeline_begins_with_anothers_operation(load, rest):
    flip = T.RandomHorizontalFlip(0.5)
    loader = load([SimpleRGBImageDecoder(), flip, *rest, T.ToTensor()], more={
        "inverse": PipelineSpec(flip, None, [T.ToTensor(),
                                             lambda x: 255 - x])})
    for a, b in loader:
        if rest and isinstance(rest[0], T.RandomHorizontalFlip):
            a = a.flip(2)
        assert torch.equal(255 - a, b)
        assert all(value is None for output in loader._outputs
                   for value in output.kept.values())
    with pytest.raises(ValueError, match="of 0 other pipelines"):
        load(more={"x": PipelineSpec(T.ToTensor())})


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("where", ["library", "python", "one in python"])
def test_images_and_labels_are_mixed_alike(load, same, where):
    first = [Nothing()] if where == "python" else []
    second = [Nothing()] if where != "library" else []
    flat = [CenterCropRGBImageDecoder((1, 1), 1), T.ToTensor(),
            T.Convert(torch.uint8)]
    pure = column(load(flat)).astype(float)
    loader = load([CenterCropRGBImageDecoder((1, 1), 1),
                   *first, T.ImageMixup(0.6, same), T.ToTensor()],
                  [IntDecoder(), *second, T.LabelMixup(0.6, same),
                   T.ToTensor(), T.MixupToOneHot(N)], seed=3)
    assert ("mixup" in loader.pipeline) == (where == "library")
    shares = []
    for images, classes in loader:
        assert classes.shape == (B, N) and classes.dtype == torch.float32
        assert torch.allclose(classes.sum(1), torch.ones(B))
        want = (classes.double().numpy()[:, :, None, None, None]
                * pure[None]).sum(1)
        assert np.abs(images.numpy() - want).max() <= 1
        shares.append(classes.max(1).values.tolist())
    assert all((len(set(np.round(s, 5))) == 1) == same for s in shares)
    assert len({s[0] for s in shares}) > 1


@pytest.mark.parametrize("where", ["library", "python"])
def test_labels_that_are_mixed_report_both_and_a_share(load, where):
    between = [Nothing()] if where == "python" else []
    loader = load(label=[IntDecoder(), *between, T.LabelMixup(1, False),
                         T.ToTensor()], seed=1)
    for k, (mixed,) in enumerate(loader):
        ids = np.arange(B * k, B * (k + 1))
        assert mixed.dtype == torch.float32 and mixed.shape == (B, 3)
        assert mixed[:, 0].tolist() == ids.tolist()
        assert mixed[:, 1].tolist() == np.roll(ids, 1).tolist()
        assert ((mixed[:, 2] >= 0) & (mixed[:, 2] <= 1)).all()
        assert len(set(mixed[:, 2].tolist())) == B


def test_bytes_end_with_zeros(load):
    want = [sample(i)[2] for i in range(N)]
    longest = max(map(len, want))
    loader = load(more={"blob": [BytesDecoder(), T.ToTensor()]},
                  order=OrderOption.RANDOM, seed=1, batch_size=1)
    for blob, in loader:
        assert blob.shape == (1, longest)
        value = want[int(blob[0, 0]) - 1]
        assert blob[0].tolist() == [*value, *[0] * (longest - len(value))]


def test_squeeze_leaves_the_batch(load):
    loader = load(label=[IntDecoder(), T.ToTensor(), T.Squeeze()],
                  batch_size=1)
    assert next(iter(loader))[0].shape == (1,)
    loader = load(label=[IntDecoder(), T.ToTensor(), torch.nn.Identity(),
                         T.Squeeze()], batch_size=1)
    assert next(iter(loader))[0].shape == (1,)


@pytest.mark.parametrize("dims", [([1],), ((1,),), (-1,), (1, 2)])
def test_squeeze_takes_axes_as_torch_does(load, dims):
    label = [IntDecoder(), T.ToTensor(), T.Squeeze(*dims)]
    if dims == (1, 2):
        label.insert(2, T.View((-1, 1, 1)))
    assert next(iter(load(label=label)))[0].shape == (B,)


# --- the loader ---

def test_batches_that_are_kept_stay(load):
    loader = load([SimpleRGBImageDecoder(), T.ToTensor()],
                  [IntDecoder(), T.ToTensor()])
    kept = list(loader)
    assert len(kept) == len(loader) == N // B
    assert [x for b in kept for x in b[1][:, 0].tolist()] == list(range(N))
    for images, labels in kept:
        for image, i in zip(images, labels[:, 0].tolist()):
            assert (image.numpy() == sample(i)[0]).all()


def test_a_list_of_operations_serves_two_loaders(load):
    ops = [CenterCropRGBImageDecoder((5, 5), 1), T.ToTensor()]
    for _ in range(2):
        assert next(iter(load(ops)))[0].shape == (B, 5, 5, 3)
    assert len(ops) == 2


def test_a_break_is_followed_by_the_next_epoch(load):
    label = [IntDecoder(), T.ToTensor()]
    loader = load(label=label, order=OrderOption.RANDOM, seed=4)
    epochs = [column(load(label=label, order=OrderOption.RANDOM, seed=4,
                          )).tolist()]
    for _ in loader:
        break
    second = column(loader).tolist()
    other = load(label=label, order=OrderOption.RANDOM, seed=4)
    epochs += [column(other).tolist() for _ in range(2)][1:]
    assert second == epochs[1] != epochs[0] and loader.next_epoch == 2


@pytest.mark.parametrize("begun", [0, 1, 3, N // B])
def test_two_iterations_at_a_time(load, begun):
    """As in a loop that tests on the loader that it trains with."""
    label = [IntDecoder(), T.ToTensor(), T.Squeeze()]
    alone = load(label=label, order=OrderOption.RANDOM, seed=4)
    epochs = [column(alone).tolist() for _ in range(3)]
    assert epochs[0] != epochs[1]
    loader = load(label=label, order=OrderOption.RANDOM, seed=4)
    outer = iter(loader)
    got = [next(outer)[0] for _ in range(begun)]
    inner = iter(loader)
    second = [next(inner)[0]]
    got += [y for y, in outer]
    second += [y for y, in inner]
    assert torch.cat(got).tolist() == epochs[0]
    assert torch.cat(second).tolist() == epochs[1]
    assert column(loader).tolist() == epochs[2]
    assert next(outer, None) is None and next(inner, None) is None


def test_a_size_changes_between_epochs(load):
    decoder = RandomResizedCropRGBImageDecoder((6, 6))
    loader = load([decoder, T.ToTensor()], seed=1)
    core = loader._core
    list(loader)
    list(loader)
    assert loader._core is core
    decoder.output_size = (9, 7)
    assert [b[0].shape[1:3] for b in loader] == [(9, 7)] * (N // B)


def test_filter_takes_samples_of_the_indices(load):
    indices = [20, 3, 11, 8, 15, 2]
    loader = load(label=[IntDecoder(), T.ToTensor()], indices=indices,
                  drop_last=False)
    assert loader.indices.tolist() == indices
    odd = loader.filter("label", lambda v: v % 2 == 1)
    assert odd.indices.tolist() == [3, 11, 15]
    assert column(odd)[:, 0].tolist() == [3, 11, 15]


@pytest.mark.parametrize("order", list(OrderOption))
def test_ranks_share_an_epoch(load, monkeypatch, order):
    monkeypatch.setenv("WORLD_SIZE", "2")
    seen = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        loader = load(label=[IntDecoder(), T.ToTensor()], distributed=True,
                      order=order)
        assert loader.seed == 0 and len(loader) == 3
        seen.append(column(loader)[:, 0].tolist())
    assert sorted(seen[0] + seen[1]) == list(range(N))
    # Without `distributed`, the environment has no effect.
    assert len(load(label=[IntDecoder(), T.ToTensor()])) == 6


def test_an_epoch_without_batches_is_reported(load):
    with pytest.warns(RuntimeWarning, match="24 samples are less than one"):
        loader = load(label=[IntDecoder(), T.ToTensor()], batch_size=N + 1)
    assert len(loader) == len(list(loader)) == 0


def test_an_order_of_users(load):
    class Backwards(TraversalOrder):
        def sample_order(self, epoch):
            return np.roll(self.indices[::-1], epoch)
    loader = load(label=[IntDecoder(), T.ToTensor()], order=Backwards)
    for epoch in range(2):
        want = np.roll(np.arange(N)[::-1], epoch).tolist()
        assert loader.next_traversal_order().tolist() == want
        assert column(loader)[:, 0].tolist() == want


def test_the_next_order_can_be_asked(load):
    loader = load(label=[IntDecoder(), T.ToTensor()], seed=3,
                  order=OrderOption.RANDOM)
    want = loader.next_traversal_order().tolist()
    assert column(loader)[:, 0].tolist() == want != list(range(N))


@pytest.mark.parametrize("pipelines, message", [
    ({"image": [IntDecoder()]}, "does not decode|no operation"),
    ({"nothing": [IntDecoder()]}, "nothing"),
    ({"label": "text"}, "no list"),
    ({"two": PipelineSpec("none")}, "none")])
def test_wrong_pipelines_are_refused(path, pipelines, message):
    with pytest.raises(ValueError, match=message):
        Loader(path, B, pipelines=pipelines)


def test_a_wrong_order_is_refused(path):
    with pytest.raises(ValueError, match="no order"):
        Loader(path, B, order="random")


class OwnField(F.Field):
    """A number that is written down as its square."""

    metadata_type = np.dtype("<u8")

    @staticmethod
    def from_binary(binary):
        assert len(binary) == 1024
        return OwnField()

    def get_decoder_class(self):
        return OwnDecoder


class OwnDecoder(Operation):
    def generate_code(self):
        def decode(indices, destination, metadata, storage):
            for i in range(len(indices)):
                destination[i] = np.sqrt(metadata[indices[i]])
            return destination
        return decode

    def declare_state_and_memory(self, state):
        return (types.SimpleNamespace(jit_mode=True),
                AllocationQuery((1,), np.dtype("int64")))


def test_images_as_they_are_have_one_size(tmp_path):
    rng = np.random.default_rng(0)
    pictures = [(rng.integers(0, 256, (9 + i // 8, 12, 3), np.uint8),)
                for i in range(12)]
    DatasetWriter(tmp_path / "x", {"image": F.RGBImageField()}, num_workers=1
                  ).from_indexed_dataset(pictures)
    loader = Loader(tmp_path / "x", B)
    with pytest.raises(TypeError, match="'image' are from 9 to 10 .* height"):
        iter(loader)
    alike = Loader(tmp_path / "x", B, indices=range(8))
    assert [image.shape for image, in alike] == [(B, 9, 12, 3)] * 2
    crop = [SimpleRGBImageDecoder(), T.RandomResizedCrop((.5, 1), (1, 1), 8)]
    cropped = Loader(tmp_path / "x", B, pipelines={"image": crop})
    assert len(list(cropped)) == 3


def test_fields_of_users_are_read_by_their_decoders(tmp_path, monkeypatch):
    monkeypatch.setattr(Compiler, "is_enabled", False)
    data = make.Dataset(tmp_path / "x", [("label", make.INT),
                                         ("own", make.CUSTOM)],
                        [{"label": i, "own": (i * i).to_bytes(8, "little")}
                         for i in range(12)])
    with pytest.raises(ValueError, match="'own'.*custom_fields"):
        Loader(data.path, B)
    loader = Loader(data.path, B, custom_fields={"own": OwnField})
    for labels, own in loader:
        assert labels.dtype == own.dtype == torch.int64
        assert torch.equal(labels, own)


# --- the writer ---

def read(path, field):
    others = {"image": None, "label": None}
    del others[field]
    loader = Loader(path, 100, drop_last=False, pipelines=others)
    return next(iter(loader))[0]


def write(path, samples, fields=None, **options):
    fields = fields or {"image": F.RGBImageField(), "label": F.IntField()}
    writer = DatasetWriter(path, fields, num_workers=2)
    writer.from_indexed_dataset(samples, **options)


def test_indices_are_written_in_their_order(tmp_path):
    samples = [sample(i)[:2] for i in range(9)]
    write(tmp_path / "x", samples, indices=[7, 0, 3])
    assert read(tmp_path / "x", "label")[:, 0].tolist() == [7, 0, 3]
    np.random.seed(1)
    write(tmp_path / "y", samples, shuffle_indices=True)
    labels = read(tmp_path / "y", "label")[:, 0].tolist()
    assert sorted(labels) == list(range(9)) != labels


class Seeded:
    """Draws from the global generator, as samples of many datasets do."""

    def __len__(self):
        return 200

    def __getitem__(self, i):
        np.random.seed(i)
        parts = [np.random.randint(0, 256, 50, np.uint8) for _ in range(20)]
        return np.concatenate(parts), os.getpid()


def test_samples_of_a_global_generator_are_their_own(tmp_path):
    write(tmp_path / "x", Seeded(), {"image": F.NDArrayField(
        np.dtype("uint8"), (1000,)), "label": F.IntField()})
    got = read(tmp_path / "x", "image").numpy()
    # Threads would rarely be caught; whose they are is certain.
    assert os.getpid() not in read(tmp_path / "x", "label")
    for i, row in enumerate(got):
        assert np.array_equal(row, Seeded()[i][0])


class Noisy:
    """Takes numbers from torch's generator, whose state belongs to the caller
    alone."""

    def __len__(self):
        return 50

    def __getitem__(self, i):
        return torch.rand(40).numpy(), i


def test_samples_are_the_same_for_any_number_of_processes(tmp_path):
    fields = {"image": F.NDArrayField(np.dtype("float32"), (40,)),
              "label": F.IntField()}
    files, after = [], []
    for workers in 1, 2, 3:
        for seed in 0, 0, 1:
            torch.manual_seed(seed)
            DatasetWriter(tmp_path / "x", fields, num_workers=workers
                          ).from_indexed_dataset(Noisy())
            files.append((tmp_path / "x").read_bytes())
        after.append(torch.rand(9).tolist())
    assert files[0] == files[1] != files[2]
    assert files == files[:3] * 3
    assert after == [after[0]] * 3
    rows = read(tmp_path / "x", "image").numpy()
    assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("broken, message", [
    ((np.zeros((4, 4), np.uint8), 1), "sample 2 field image.*uint8"),
    ((np.zeros((4, 4, 3), np.uint8), "x"), "sample 2 field label"),
    ((1,), "sample 2: 1 values for 2 fields")])
def test_unwritable_fields_are_reported(tmp_path, broken, message):
    good = sample(0)[:2]
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "x", [good, good, broken, good])
    assert not (tmp_path / "x").exists()


class Words(F.NDArrayField):
    """Eight letters, with stars after those that are there."""

    def __init__(self):
        super().__init__(np.dtype("uint8"), (8,))

    def encode(self, destination, field, malloc):
        letters = np.frombuffer(field.ljust(8, "*").encode(), np.uint8)
        super().encode(destination, letters, malloc)


class Reversed(F.BytesField):
    def encode(self, destination, field, malloc):
        place, region = malloc(len(field))
        region[:] = np.frombuffer(field[::-1], np.uint8)
        destination["ptr"], destination["size"] = place, len(field)


@pytest.mark.parametrize("given", [{}, {"image": Words}])
def test_subclasses_of_fields_are_written_by_their_encode(tmp_path, given):
    write(tmp_path / "x", [("ab", b"xyz"), ("cde", b"12")],
          {"image": Words(), "label": Reversed()})
    loader = Loader(tmp_path / "x", 2, custom_fields=given)
    (words, reverse), = loader
    assert words.numpy().tobytes() == b"ab******cde*****"
    assert reverse.numpy().tobytes() == b"zyx21\0"


@pytest.mark.parametrize("names, message", [
    (["color"], "sets 'color', which is for"), ([], "sets nothing: "),
    (["mode"], "sets 'mode' but not 'data_ptr', 'width', 'height'"),
    (["data_ptr", "mode"], "sets 'data_ptr', 'mode' but not 'width'")])
def test_an_encode_that_sets_something_else_is_refused(tmp_path, names,
                                                       message):
    class Other(F.RGBImageField):
        def encode(self, destination, field, malloc):
            for name in names:
                destination[name] = malloc(9)[0] if name == "data_ptr" else 1
    with pytest.raises(ValueError,
                       match=f"sample 0 field image: encode.. {message}"):
        write(tmp_path / "x", [(0, 0)],
              {"image": Other(), "label": F.IntField()})


class Refusal(Exception):
    """That cannot be made again from its arguments."""

    def __init__(self, i, why):
        super().__init__(f"{i}: {why}")


@pytest.mark.parametrize("error, wanted, message", [
    (KeyError("gone"), KeyError, "gone"),
    (Refusal(60, "no"), Refusal, "60: no")])
def test_errors_of_a_dataset_are_raised(tmp_path, error, wanted, message):
    class Broken(Seeded):
        def __getitem__(self, i):
            if i == 60:
                raise error
            return super().__getitem__(i)
    with pytest.raises(wanted, match=message):
        write(tmp_path / "x", Broken(), {"image": F.NDArrayField(
            np.dtype("uint8"), (1000,)), "label": F.IntField()})
    assert not (tmp_path / "x").exists()
    assert not multiprocessing.active_children()


def test_a_process_that_ends_is_reported(tmp_path):
    class Gone(Seeded):
        def __getitem__(self, i):
            return os._exit(1) if i == 60 else super().__getitem__(i)
    with pytest.raises(RuntimeError, match="ended"):
        write(tmp_path / "x", Gone(), {"image": F.NDArrayField(
            np.dtype("uint8"), (1000,)), "label": F.IntField()})


def test_a_sample_of_more_than_a_page_is_reported(tmp_path):
    writer = DatasetWriter(tmp_path / "x", {"b": F.BytesField()},
                           page_size=1 << 21, num_workers=1)
    with pytest.raises(OSError, match="sample 1"):
        writer.from_indexed_dataset([(b"1",), (bytes(1 << 22),)])


def test_write_modes_are_ffcvs(tmp_path):
    pictures = [(sample(i)[0][:4 + i % 8], i) for i in range(60)]

    def modes(**options):
        write(tmp_path / "x", pictures, {"image": F.RGBImageField(**options),
                                         "label": F.IntField()})
        from betonfs.ffcv.reader import Reader
        return Reader(tmp_path / "x").column("image")["mode"].tolist()
    assert modes() == [1] * 60
    assert modes(write_mode="jpg") == [0] * 60
    assert modes(write_mode="smart") == [1] * 60
    assert modes(write_mode="smart", smart_threshold=6 * W * 3) == [
        int(4 + i % 8 <= 6) for i in range(60)]
    some = modes(write_mode="proportion", compress_probability=0.3)
    assert 5 < 60 - sum(some) < 35
    with pytest.raises(ValueError, match="write_mode"):
        F.RGBImageField(write_mode="png")


def test_shards_of_webdataset(tmp_path, monkeypatch):
    shards = {"a": [sample(i)[:2] for i in range(3)],
              "b": [sample(i)[:2] for i in range(3, 5)]}
    monkeypatch.setitem(sys.modules, "webdataset", types.SimpleNamespace(
        WebDataset=lambda shard: iter(shards[shard])))
    writer = DatasetWriter(tmp_path / "x", {
        "image": F.RGBImageField(), "label": F.IntField()}, num_workers=2)
    writer.from_webdataset(list(shards), lambda d: (
        (image, 10 * label) for image, label in d))
    assert read(tmp_path / "x", "label")[:, 0].tolist() == [0, 10, 20, 30, 40]


def test_shards_whose_places_are_known(tmp_path, monkeypatch):
    """FFCV's users who know how many samples shards have call this."""
    shards = {"a": [sample(i)[:2] for i in range(3)],
              "b": [sample(i)[:2] for i in range(3, 5)]}
    opened = []

    def dataset(shard):
        opened.append(shard)
        return iter(shards[shard])
    monkeypatch.setitem(sys.modules, "webdataset",
                        types.SimpleNamespace(WebDataset=dataset))
    writer = DatasetWriter(tmp_path / "x", {
        "image": F.RGBImageField(), "label": F.IntField()}, num_workers=2)
    writer._write_common(5, zip(["b", "a"], [3, 0]), worker_job_webdataset,
                         (lambda d: ((a, 10 * y) for a, y in d),))
    assert read(tmp_path / "x", "label")[:, 0].tolist() == [0, 10, 20, 30, 40]
    assert sorted(opened) == ["a", "b"]


@pytest.mark.parametrize("job, todo", [
    (worker_job_indexed_dataset, [[(1, 7), (0, 3)], [(2, 5)]]),
    (lambda *_: None, [])])
def test_samples_whose_places_are_known(tmp_path, job, todo):
    writer = DatasetWriter(tmp_path / "x", {"label": F.IntField()})
    if not todo:
        with pytest.raises(ValueError, match="from_indexed_dataset"):
            writer._write_common(3, todo, job, ())
        return
    writer._write_common(3, todo, job, ([(10 * i,) for i in range(9)],))
    assert read(tmp_path / "x", "label")[:, 0].tolist() == [30, 70, 50]


@pytest.mark.parametrize("fields, size", [
    ({"x": F.IntField()}, 3 << 20), ({"x": F.IntField()}, 1 << 20),
    ({"x": object()}, 1 << 23)])
def test_wrong_writers_are_refused(tmp_path, fields, size):
    with pytest.raises(ValueError):
        DatasetWriter(tmp_path / "x", fields, page_size=size)
