# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a first day: each row has the mistake, words that its message must
have, and words that no user can use. Nothing is silent: what does not do what it
looks like is an error, or one warning that names the cure."""
import io
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from dumped import BUILD, beton
from package import betonfs

N = 60
LABEL = {"label": "label"}
# Internals, and Python's own words for what it met inside.
NEVER = ("/proc/self/fd", "argument 9", "out of range", "has no attribute",
         "object is not", "unexpected keyword", "Traceback", "errno",
         "must be str", "cannot be interpreted", "not supported between",
         "unpack", "argument must be", "could not convert", "invalid literal",
         "unhashable", "unsized", "sequence item", "an integer is required",
         "negative int", "not serializable", "null character", "null byte")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Images of three sizes."""
    path = tmp_path_factory.mktemp("mistakes") / "train.beton"
    betonfs.write(path, [
        {"image": np.full((8 + i % 3, 8, 3), i, np.uint8), "label": i}
        for i in range(N)], mode="raw")
    return path


def epoch(path, **options):
    """One epoch, as a script runs it."""
    with betonfs.Loader(path, **{"batch_size": 20, "tensors": "numpy",
                                 **options}) as loader:
        return list(loader)


class RandomErasing:
    """A stand-in for one of torchvision that is no operation here."""
    __module__ = "torchvision.transforms.v2"

    def __call__(self, image):
        return image


class FiveCrop(RandomErasing):
    __module__ = "torchvision.transforms.v2"


class HorizontalFlip:
    """albumentations."""

    def __call__(self, image):
        return image


class IntDecoder:
    __module__ = "ffcv.fields.decoders"


def forgets(batch):
    batch["label"] += 1


async def waits(batch):
    return batch


@betonfs.compiled
def misspelled(imag):
    imag[:] = 0


class Part:
    """torch.utils.data.Subset."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices


# --- the loader's words ---

WORDS = [
    ("sampler", "order= subset= weights="), ("batch_sampler", "order="),
    ("collate_fn", "transforms="), ("pin_memory", 'device="cuda" batch.pin_memory()'),
    ("channels_last", "chw batch.image.permute(0, 3, 1, 2)"),
    ("memory_format", "chw batch.image.permute(0, 3, 1, 2)"),
    ("dtype", "float half bfloat16 pipeline"),
    ("bfloat16", "bfloat16 pipeline"),
    ("non_blocking", 'device="cuda"'),
    ("persistent_workers", "leave it out"), ("prefetch_factor", "prefetch="),
    ("worker_init_fn", "transforms="), ("timeout", "leave it out"),
    ("distributed", "rank= world_size="),
    ("os_cache", 'cache="os" cache="process"'),
    ("window", "spec= order=quasi_random,window=64MiB"),
    ("transform", "pipeline= transforms="), ("indices", "subset="),
    ("pipelines", "betonfs.ffcv.Loader pipeline="), ("root", "path="),
    ("bucket", 'spec="bucket=256"'), ("max_tokens", "pack lengths="),
    ("batches_ahead", "prefetch="), ("batchsize", "`batch_size'"),
    ("drop_lst", "`drop_last'"), ("orde", "`order'"),
]


@pytest.mark.parametrize("word, must", WORDS)
def test_an_argument_of_others(path, word, must):
    with pytest.raises(TypeError) as e:
        epoch(path, **{word: 1})
    check(e, f"Loader() no argument {word}= {must}")


def check(raised, must, never=()):
    printed = str(raised.value)
    for words in must.split():
        assert words in printed, (words, printed)
    for word in (*NEVER, *never):
        assert word not in printed, (word, printed)


ERRORS = [
    # A batch callback that cannot be called.
    (dict(pipeline=LABEL, transforms=[waits]), TypeError,
     "waits async function"),
    (dict(pipeline=LABEL, transforms=[HorizontalFlip]), TypeError,
     "HorizontalFlip class HorizontalFlip()"),
    # Values of arguments.
    (dict(batch=20), ValueError, "batch_size=20 dict tuple"),
    (dict(workers=-1), ValueError, "workers=-1 from 0 to 4096"),
    (dict(num_workers=-1), ValueError, "workers=-1 from 0 to 4096"),
    (dict(cache_size="64MiB"), TypeError, "cache_size='64MiB' whole number bytes 64 << 20"),
    (dict(prefetch=1.5), TypeError, "prefetch=1.5 whole number"),
    (dict(epoch=-1), ValueError, "epoch=-1 from 0"),
    (dict(shuffle=True, order="random"), TypeError, "shuffle= order="),
    (dict(num_workers=2, workers=2), TypeError, "num_workers= workers="),
    (dict(pad="none"), ValueError, "pad='none' repeat drop"),
    (dict(order="weighted"), ValueError, "weights= list with weights"),
    (dict(rank=2, world_size=2), ValueError, "rank 2 world size 2 from 0 to 1"),
    (dict(spec=3), TypeError, "spec=3 text order="),
    (dict(order="shuffled"), ValueError, "order=shuffled random sequential"),
    # A text is true, and True is 1.
    (dict(train="False"), TypeError, "train='False' True False"),
    (dict(train=None), TypeError, "train=None True False"),
    (dict(shuffle="False"), TypeError, "shuffle='False' True False"),
    (dict(drop_last="False"), TypeError, "drop_last='False' True False"),
    (dict(drop_last=2), TypeError, "drop_last=2 True False"),
    (dict(batch_size=True), TypeError, "batch_size=True whole number"),
    (dict(workers=True), TypeError, "workers=True whole number"),
    (dict(prefetch=True), TypeError, "prefetch=True whole number"),
    (dict(epoch=True), TypeError, "epoch=True whole number"),
    (dict(cache_size=True), TypeError, "cache_size=True whole number"),
    (dict(rank=True, world_size=2), TypeError, "rank=True whole number"),
    (dict(seed=True), TypeError, "seed=True whole number"),
    (dict(pad=0), ValueError, "pad=0 repeat drop"),
    # Values of a wrong type, and out of range.
    (dict(batch_size=0), ValueError, "batch_size=0 from 1"),
    (dict(batch_size="20"), TypeError, "batch_size='20' whole number"),
    (dict(batch_size=(20,)), TypeError, "batch_size=(20,) whole number"),
    (dict(batch_size=20.0), TypeError, "batch_size=20.0 whole number"),
    (dict(batch_size=2**40), ValueError, "batch_size=1099511627776 1048576"),
    (dict(seed=-1), ValueError, "seed=-1 from 0"),
    (dict(seed="abc"), TypeError, "seed='abc' whole number"),
    (dict(seed=1.5), TypeError, "seed=1.5 whole number"),
    (dict(seed=2**64), ValueError, "seed=18446744073709551616 from 0"),
    (dict(order=True), TypeError, "order=True text \"random\""),
    (dict(order=("random",)), TypeError, "order=('random',) text"),
    (dict(order="random,seed=3"), ValueError, "order='random,seed=3' spec="),
    (dict(order=""), ValueError, "order='' \"random\""),
    (dict(order="shuffle"), ValueError, "order=shuffle random"),
    (dict(num_samples=0, weights=[1] * N), ValueError, "num_samples=0 from 1"),
    (dict(num_samples="5", weights=[1] * N), TypeError, "num_samples='5'"),
    (dict(num_samples=20), ValueError, "num_samples weights="),
    (dict(order="random", weights=[1] * N), ValueError, "weights weighted"),
    (dict(workers=5000), ValueError, "workers=5000 4096"),
    (dict(workers=None), TypeError, "workers=None whole number"),
    (dict(workers="auto"), TypeError, "workers='auto' whole number"),
    (dict(prefetch=-1), ValueError, "prefetch=-1 from 0"),
    (dict(cache=True), TypeError, "cache=True text"),
    (dict(cache="ram"), ValueError, "'ram' auto os process"),
    (dict(delivery=0), TypeError, "delivery=0 text"),
    (dict(delivery="socket"), ValueError, "'socket' auto zero-copy direct"),
    (dict(source=3), TypeError, "source=3 text"),
    (dict(source="real"), ValueError, "source `real' constant memory synthetic"),
    (dict(source="synthetic"), ValueError, "synthetic(10000 label="),
    (dict(job=3), TypeError, "job=3 text"),
    (dict(job="x" * 100), ValueError, "job 100 64 ASCII"),
    (dict(job="\u00fc"), ValueError, "job ASCII"),
    (dict(device="gpu"), ValueError, "'gpu' cpu cuda"),
    (dict(device=""), ValueError, "device='' cpu cuda"),
    (dict(device=True), ValueError, "device 'True' cpu cuda"),
    (dict(device="mps"), ValueError, "'mps' cpu cuda"),
    (dict(device=-1), ValueError, "device -1 cuda:0"),
    (dict(rank=0), ValueError, "rank=0 world_size= together"),
    (dict(world_size=2), ValueError, "world_size=2 rank= together"),
    (dict(rank="1", world_size="2"), TypeError, "rank='1' whole number"),
    (dict(rank=0, world_size=0), ValueError, "world_size=0 from 1"),
    (dict(on_error="ignore"), ValueError, "on_error='ignore' raise skip zero"),
    (dict(on_error=None), ValueError, "on_error=None raise skip zero"),
    (dict(tensors="tf"), ValueError, "tensors='tf' numpy torch"),
    (dict(tensors=None), ValueError, "tensors=None auto numpy"),
    (dict(batch="list"), ValueError, "batch='list' dict tuple"),
    (dict(epoch="0"), TypeError, "epoch='0' whole number"),
    (dict(epoch=2**63), ValueError, "epoch=9223372036854775808 from 0"),
    (dict(generator=3), TypeError, "generator=3 torch.Generator seed="),
    (dict(generator=np.random.default_rng()), TypeError, "generator= seed="),
    # Keys of a spec.
    (dict(spec={"seed": 1}), TypeError, "spec={'seed': 1} text"),
    (dict(spec="batch=10"), ValueError, "batch spec= batch_size= one"),
    (dict(spec="order=random", order="random"), ValueError, "order= spec="),
    (dict(spec="foo=3"), ValueError, "'foo' order batch seed"),
    (dict(spec="seed"), ValueError, "key=value 'seed'"),
    (dict(spec="seed=1,seed=2"), ValueError, "seed twice"),
    (dict(spec="shuffle=true"), ValueError, "'shuffle' `order=random'"),
    (dict(spec="batch_size=20", batch_size=None), ValueError,
     "'batch_size' `batch'"),
    (dict(spec="ordre=random"), ValueError, "'ordre' `order'"),
    (dict(spec="drop_last=True"), ValueError, "drop_last=True 0 1"),
    (dict(spec="order=random;seed=1"), ValueError, "order=random;seed=1 ,"),
    (dict(spec="order=quasi_random,window=x"), ValueError, "window=x 64MiB"),
    (dict(spec="order=weighted"), ValueError, "weights="),
    # Epochs without batches.
    (dict(batch_size=512), ValueError,
     "60 samples batch 512 batch_size=60 drop_last=False"),
    (dict(batch_size=None), ValueError, "60 samples 256 drop_last=False"),
    (dict(batch_size=20, subset=range(7)), ValueError,
     "7 samples 20 batch_size=7 drop_last=False"),
    (dict(batch_size=20, subset=[1, 2]), ValueError, "2 samples 20"),
    (dict(rank=3, world_size=8), ValueError, "3 batches 8 ranks drop_last=False"),
    (dict(weights=[1] * N, num_samples=5), ValueError, "5 samples 20"),
    # Subsets.
    (dict(subset=[]), ValueError, "subset empty"),
    (dict(subset=np.zeros(N, bool)), ValueError, "subset empty"),
    (dict(subset=range(5, 5)), ValueError, "subset empty"),
    (dict(subset=[0, 500]), ValueError, "subset[1] 500 60"),
    (dict(subset=np.array([3, 4, 60])), ValueError, "subset[2] 60"),
    (dict(subset=[0.5, 1.7]), ValueError, "subset numbers float64"),
    (dict(subset=[True] * (N - 1)), ValueError, "59 mask 60"),
    (dict(subset=5), TypeError, "subset=5 list range mask Subset"),
    (dict(subset=[[1, 2]]), ValueError, "subset 2 dimensions"),
    (dict(weights=[1.0] * (N + 1)), ValueError, "60"),
    (dict(subset=range(-5, 10)), ValueError, "subset -5 from 0"),
    (dict(subset=[-1] * 20), ValueError, "subset[0] -1 from 0"),
    (dict(subset=[1, 2, -3]), ValueError, "subset[2] -3 from 0"),
    (dict(subset=range(1000)), ValueError, "subset 0-1000 60"),
    (dict(subset="0-1000"), ValueError, "subset 0-1000 60"),
    (dict(subset="train"), ValueError, "subset=train FIRST-END NAME:FILE"),
    (dict(subset="10-0"), ValueError, "subset=10-0 FIRST-END"),
    (dict(subset="0-10,seed=3"), ValueError, "subset='0-10,seed=3' spec="),
    (dict(subset=""), ValueError, "subset= FIRST-END"),
    (dict(subset=True), TypeError, "subset=True list mask"),
    (dict(subset=len), TypeError, "subset=<built-in list filter("),
    (dict(subset=np.array(5)), TypeError, "subset=array(5) list"),
    (dict(subset=["a"]), ValueError, "subset numbers 'a'"),
    (dict(subset=[None] * 20), ValueError, "subset numbers None"),
    (dict(subset=[2**70] * 20), ValueError, "subset[0]=1180591620717411303424 no dataset"),
    (dict(subset=slice(None)), ValueError, "slice end range("),
    (dict(subset=slice(0, -10)), ValueError, "-10 slice end from 0"),
    (dict(subset=slice(0, 2.5)), ValueError, "2.5 slice end"),
    (dict(subset=b"0-20"), TypeError, "subset=b'0-20' str"),
    (dict(subset=[True] + [2] * 30), TypeError, "subset=[True, mask not both"),
    (dict(subset=range(2**70)), ValueError, "subset=range(0, 68719476736"),
    (dict(subset=range(2**70, 0, -3)), ValueError, "subset 68719476736"),
    (dict(subset="a:nofile"), OSError, "nofile No such"),
    (dict(weights="equal"), ValueError, "weights='equal' numbers"),
    (dict(weights={0: 1}), ValueError, "weights={0: 1} numbers"),
    (dict(weights=[10**400] * N), ValueError, "weights=[1000 numbers"),
    (dict(weights=5), ValueError, "weights=5 list"),
    (dict(weights=[]), ValueError, "weights=[] list"),
    (dict(weights=["1"] * N), ValueError, "weights numbers '1'"),
    (dict(weights=[0] * N), ValueError, "weights all 0"),
    (dict(weights=[1] * 9 + [-1]), ValueError, "weights[9] -1"),
    (dict(weights=[1, float("nan")]), ValueError, "weights[1] nan"),
    (dict(weights=np.ones((N, 2))), ValueError, "weights 2 dimensions"),
    (dict(weights=[1] * 10, subset="0-10"), ValueError, "weights range"),
    # Pipelines.
    (dict(pipeline=None), OSError,
     "`image' set size `image | center_crop(224)' `image | drop'"),
    (dict(pipeline="label"), OSError, "`image | drop'"),
    (dict(pipeline={"images": "center_crop(8)"}), ValueError,
     "field 'images' did mean `image' begin \"image | center_crop(8)\""),
    (dict(pipeline={"images": None}), ValueError, "field 'images' `image'"),
    (dict(pipeline={"x": "imag | flip"}), ValueError,
     "field 'x' begins 'imag' `image'"),
    (dict(pipeline=[IntDecoder()]), TypeError,
     "IntDecoder betonfs.ffcv.Loader flip"),
    (dict(pipeline={"label": [IntDecoder()]}), TypeError,
     "IntDecoder betonfs.ffcv.Loader"),
    (dict(pipeline=RandomErasing()), ValueError,
     "RandomErasing pipeline transforms=["),
    (dict(pipeline=[RandomErasing()]), ValueError,
     "RandomErasing pipeline transforms=["),
    (dict(pipeline=len), TypeError, "len text transforms=[f]"),
    (dict(pipeline={"image": 3}), TypeError, "3 text"),
    (dict(pipeline="image | random_hflip"), ValueError, "`flip'"),
    (dict(pipeline="image | RandomCropOrPad(8)"), ValueError,
     "`random_crop(SIZE, pad_if_needed=true)'"),
    (dict(pipeline="image | crop(8)"), ValueError, "`center_crop'"),
    (dict(pipeline="image | to_tensor"), ValueError, "`normalize(0, 1) | float | chw'"),
    (dict(pipeline="image | bf16"), ValueError, "`bfloat16'"),
    (dict(pipeline="image | mosaic(3)"), ValueError, "transforms=[f]"),
    (dict(pipeline="image | xyzzyx"), ValueError,
     "operations are brightness center_crop vertical_flip"),
    (dict(pipeline="xyzzyx"), ValueError, "fields are image, label"),
    (dict(pipeline=b"image"), TypeError, "b'image' text"),
    (dict(pipeline={"image", "label"}), TypeError, "{' text"),
    (dict(pipeline=iter(["image"])), TypeError, "iterator text"),
    (dict(pipeline=np.array(["image"])), TypeError, "array text"),
    (dict(pipeline=True), TypeError, "True text"),
    (dict(pipeline="image\0"), ValueError, "NUL"),
    (dict(pipeline={1: "label"}), TypeError, "1 name output"),
    (dict(pipeline={None: "label"}), TypeError, "None name output"),
    (dict(pipeline={"label": 0}), TypeError, "0 text"),
    (dict(pipeline={"image": {"p": 1}}), TypeError, "{'p': text"),
    (dict(pipeline={"image": ("center_crop", 4)}), TypeError, "4 text"),
    (dict(pipeline={"a b": "label"}), ValueError, "output unquoted identifier"),
    (dict(pipeline={"lable": "int32"}), ValueError, "'lable' `label'"),
    (dict(pipeline=betonfs.ops.flip), TypeError, "flip call flip()"),
    (dict(pipeline={"image": betonfs.ops.flip}), TypeError, "call flip()"),
    (dict(pipeline=HorizontalFlip()), TypeError,
     "HorizontalFlip transforms=[f] `flip'"),
    (dict(pipeline=[HorizontalFlip()]), TypeError, "transforms=[f] `flip'"),
    (dict(pipeline=["image", "label"]), ValueError, "`label' field `;'"),
    (dict(pipeline="image | label"), ValueError, "`label' field `;'"),
    (dict(pipeline="IMAGE | flip"), ValueError, "`image'"),
    (dict(pipeline="image, label"), ValueError, "column `|' `;' `,'"),
    (dict(pipeline="image |"), ValueError, "operation expected ends"),
    (dict(pipeline="| flip"), ValueError, "operation expected `|'"),
    (dict(pipeline="image flip"), ValueError, "`|' `;' `flip'"),
    (dict(pipeline="image | flip("), ValueError, "argument expected ends"),
    (dict(pipeline="'image' | flip"), ValueError, "quotes"),
    (dict(pipeline='"image'), ValueError, "quote closed"),
    (dict(pipeline="image | op.c.f"), ValueError, '"FILE.c".FUNCTION'),
    (dict(pipeline='image | "no.c".f'), ValueError, "no.c No such file"),
    (dict(pipeline="image | flip(prob=0.5)"), ValueError, "`prob' has p, group"),
    (dict(pipeline="image | flip(p=2)"), ValueError, "p flip 0 to 1 `2'"),
    (dict(pipeline="image | flip(1,2,3)"), ValueError, "flip 2 arguments"),
    (dict(pipeline="image | flip(p=0.1, p=0.2)"), ValueError, "p twice"),
    (dict(pipeline="image | center_crop"), ValueError, "center_crop size"),
    (dict(pipeline="image | center_crop(8,8)"), ValueError, 'quoted: "8,8"'),
    (dict(pipeline="image | center_crop((8,8))"), ValueError, "lists quoted"),
    (dict(pipeline="image | center_crop([8,8])"), ValueError, "lists quoted"),
    (dict(pipeline="image | center_crop(8.5)"), ValueError, "whole `8.5'"),
    (dict(pipeline="image | center_crop(0)"), ValueError, "from 1 16384 `0'"),
    (dict(pipeline={"image, label": "center_crop(8)"}), ValueError,
     "'image, label' several fields (\"image\", \"label\")"),
    (dict(pipeline="image | random_resized_crop(8, scale=(0.25,1))"),
     ValueError, 'lists quoted "0.25,1"'),
    (dict(pipeline="image | random_resized_crop(8, scale=0.25)"),
     ValueError, "scale 2 of them `0.25'"),
    (dict(pipeline="image | resize(8, antialias=True)"), ValueError,
     "`antialias' size interpolation"),
    (dict(pipeline="image | resize(8, interpolation=BICUBIC)"), ValueError,
     "area bilinear `BICUBIC' mean `bicubic'"),
    (dict(pipeline="image | resize(8, cv2.INTER_CUBIC)"), ValueError,
     "area bilinear `cv2.INTER_CUBIC' mean `bicubic'"),
    (dict(pipeline='image | resize("0=8,5=9", max_size=9)'), ValueError,
     "max_size must greater side=longer"),
    (dict(pipeline="image | LongestMaxSize(8)"), ValueError,
     "mean `resize(SIZE, side=longer)'"),
    (dict(pipeline="image | center_crop(8) | normalize(cifar10)"), ValueError,
     "0 to 1 imagenet `cifar10'"),
    (dict(pipeline='image | center_crop(8) | normalize("123,116,103", 1)'),
     ValueError, "mean 0 to 1 `123,116,103'"),
    (dict(pipeline='image | center_crop(8) | normalize("0,0", 1)'),
     ValueError, "normalize one number channel"),
    (dict(pipeline="image | chw | center_crop(8)"), ValueError,
     "center_crop before chw"),
    (dict(pipeline="image | center_crop(8) | half | color_jitter"), ValueError,
     "color_jitter 8-bit before"),
    (dict(pipeline="label | flip"), ValueError, "flip images only"),
    (dict(pipeline="label | one_hot"), ValueError, "one_hot classes"),
    (dict(pipeline="label | float | one_hot(60)"), ValueError,
     "one_hot whole numbers"),
    (dict(pipeline="image | center_crop(8) | mixup"), ValueError,
     "mixup `alpha'"),
    (dict(pipeline="image | drop | flip"), ValueError, "follow `drop'"),
    (dict(pipeline="image; image"), ValueError, "`image' already NAME ="),
    (dict(pipeline="x = x | flip"), ValueError, "`x' fields image, label"),
    (dict(pipeline="label | mixup(0.2) | half | one_hot(4)"), ValueError,
     "one_hot single numbers before mixup"),
    # Functions of batches.
    (dict(pipeline=LABEL, transforms=forgets), TypeError,
     "transforms=[forgets]"),
    (dict(pipeline=LABEL, transforms=[3]), TypeError, "3 function batch"),
    (dict(pipeline=LABEL, transforms="flip"), TypeError,
     "transforms='flip' pipeline= function"),
    (dict(pipeline=LABEL, transforms=["flip"]), TypeError,
     "'flip' pipeline= function"),
    (dict(pipeline=LABEL, transforms={"label": len}), TypeError,
     "transforms dict list pipeline="),
    (dict(pipeline=LABEL, transforms=True), TypeError,
     "transforms=True list"),
    (dict(pipeline=LABEL, transforms=[None]), TypeError, "None function"),
    (dict(pipeline=LABEL, transforms=[forgets]), TypeError,
     "forgets() returned None `return batch'".replace("'", "`")),
]


@pytest.mark.parametrize("options, kind, must", ERRORS,
                         ids=[str(k) for k in range(len(ERRORS))])
def test_a_mistake_is_an_error(path, options, kind, must):
    with pytest.raises(kind) as e:
        epoch(path, **options)
    check(e, must)


@pytest.mark.filterwarnings("ignore:.*numba is not installed")
def test_a_parameter_that_is_no_output(path):
    with pytest.raises(AttributeError) as e:
        epoch(path, pipeline=LABEL, transforms=[misspelled])
    check(e, "misspelled() 'imag' label ids valid epoch")


@pytest.mark.parametrize("number", [-1, 2**64])
def test_an_epoch_that_is_none(path, number):
    with betonfs.Loader(path, 20, pipeline=LABEL) as loader:
        with pytest.raises(ValueError) as e:
            loader.set_epoch(number)
        check(e, f"epoch={number} from 0")


# Names in torchvision, FFCV, albumentations, kornia, timm and TensorFlow.
THEIRS = {
    "flip": "randomHorizontalFlip HorizontalFlip hflip flip_left_right "
            "random_flip_left_right",
    "vertical_flip": "RandomVFlip VerticalFlip flip_up_down",
    "center_crop": "CenterCrop CentreCrop central_crop",
    "random_resized_crop": "RandomResizedCrop RandomSizedCrop "
                           "RandomResizedCropAndInterpolation resized_crop",
    "color_jitter": "ColorJitter RandomBrightnessContrast ColorJiggle "
                    "HueSaturationValue",
    "grayscale": "Grayscale RandomGray_scale ToGray rgb_to_grayscale",
    "cutout": "Cutout RandomCutout",
    "random_erasing": "Erasing CoarseDropout",
    "resize": "Resize SmallestMaxSize",
    "normalize": "Normalize NormalizeImage NormaliseImage per_image_standardization",
    "normalize(0, 1)": "Rescaling rescale convert_image_dtype",
    "chw": "ToTorchImage PILToTensor ToTensorV2 permute",
    "normalize(0, 1) | float | chw": "ToTensor to_tensor",
    "cuda": "ToDevice gpu", "decode": "SimpleRGBImageDecoder decode_jpeg",
    "one_hot": "OneHot", "mixup": "MixUp ImageMixup",
    "one_hot(CLASSES) | mixup": "LabelMixup MixupToOneHot",
    "the types are": "Convert ToDtype bool uint16 astype",
    "without an operation": "cpu", "joined by `|'": "Compose Sequential",
    "leave it out": "ToImage Squeeze IntDecoder RGB",
    "batch.NAME.json()": "tojson parse",
    "an option of the loader": "shuffle prefetch",
    "transforms=[f]": "GaussNoise Lambda CLAHE ModuleWrapper Mosaic",
    "resize(SIZE, side=longer)": "LongestMaxSize longest_max_size",
}


@pytest.mark.parametrize("ours, theirs", THEIRS.items(), ids=list(THEIRS))
def test_an_operation_of_others(path, ours, theirs):
    for word in theirs.split():
        with pytest.raises(ValueError) as e:
            epoch(path, pipeline=f"image | {word}(8)")
        assert ours in str(e.value), (word, str(e.value))


def test_a_field_precedes_names_of_other_libraries(tmp_path):
    path = tmp_path / "texts.beton"
    betonfs.write(path, [{"texts": b"a", "image": IMAGE}] * 20)
    with pytest.raises(ValueError) as e:
        epoch(path, pipeline="text; image")
    check(e, "`texts'")


OPS = [
    (lambda ops: ops.RandomHorizontalFlip(), AttributeError, "`flip'"),
    (lambda ops: ops.to_tensor(), AttributeError, "'to_tensor' transforms="),
    (lambda ops: ops.xyzzyx(), AttributeError, "brightness vertical_flip"),
    (lambda ops: ops.flip(prob=1), TypeError, "flip(p= group= 'prob'"),
    (lambda ops: ops.center_crop(), TypeError, "center_crop(size 'size'"),
    (lambda ops: ops.flip() | ops.chw, TypeError, "chw call chw()"),
    (lambda ops: ops.of([ops.flip]), TypeError, "flip call flip()"),
    (lambda ops: ops.of(3), ValueError, "3 list Compose"),
    (lambda ops: ops.of(FiveCrop()), ValueError,
     "FiveCrop betonfs.ops.five_crop transforms="),
]


@pytest.mark.parametrize("use, kind, must", OPS,
                         ids=[str(k) for k in range(len(OPS))])
def test_a_mistake_of_ops(use, kind, must):
    with pytest.raises(kind) as e:
        use(betonfs.ops)
    check(e, must)


# --- loaders in use ---

def changed(state, **values):
    return {**state, **values}


USES = [
    (lambda a, s: a.load_state_dict(None), TypeError, "None state_dict()"),
    (lambda a, s: a.load_state_dict("x"), TypeError, "'x' state_dict()"),
    (lambda a, s: a.load_state_dict({}), ValueError, "state 'version'"),
    (lambda a, s: a.load_state_dict({"model": 1}), ValueError,
     "state 'version' state_dict()"),
    (lambda a, s: a.load_state_dict(changed(s, epoch=-1)), ValueError,
     "epoch -1"),
    (lambda a, s: a.load_state_dict(changed(s, version=99)), ValueError,
     "version 99"),
    (lambda a, s: a.load_state_dict(changed(s, spec="order=random")),
     ValueError, "spec order=random batch=20"),
    (lambda a, s: a.load_state_dict(changed(s, fingerprint="0")), ValueError,
     "another dataset"),
    (lambda a, s: a.set_epoch("1"), TypeError, "epoch='1' whole number"),
    (lambda a, s: a.set_epoch(None), TypeError, "epoch=None whole number"),
    (lambda a, s: a.set_epoch(1.5), TypeError, "epoch=1.5 whole number"),
    (lambda a, s: a.set_epoch(True), TypeError, "epoch=True whole number"),
    (lambda a, s: a.sampler.set_epoch(1), AttributeError,
     "'sampler' loader.set_epoch(epoch)"),
    (lambda a, s: a.num_workers, AttributeError, "stats()"),
    (lambda a, s: a.drop_last, AttributeError, "loader.spec"),
    (lambda a, s: a.collate_fn, AttributeError, "transforms=[f]"),
    (lambda a, s: a.reset(), AttributeError, "set_epoch(0)"),
    (lambda a, s: a.show("x"), TypeError, "n='x' whole number"),
    (lambda a, s: a.show(0), ValueError, "n=0 from 1"),
    (lambda a, s: a.show(1).save(3), TypeError, "path=3 page"),
    (lambda a, s: list(zip(a, a)), RuntimeError, "one iteration"),
    (lambda a, s: next(iter(a))["image"], KeyError, "'image' label"),
    (lambda a, s: next(iter(a)).image, AttributeError, "'image' label ids"),
    (lambda a, s: next(iter(a))[0], KeyError, "0 label"),
    (lambda a, s: [x.shape for x, in a], AttributeError,
     "'label' name 'shape' batch['label'] batch=\"tuple\""),
    (lambda a, s: pickle.dumps((a.close(), a)), RuntimeError, "closed"),
    (lambda a, s: list((a.close(), a)[1]), RuntimeError, "closed"),
    (lambda a, s: len((a.close(), a)[1]), RuntimeError, "closed"),
    (lambda a, s: betonfs.Mix(a), TypeError, "list of loaders"),
    (lambda a, s: betonfs.Mix(None), TypeError, "loaders=None list"),
    (lambda a, s: betonfs.Mix([]), ValueError, "no loaders"),
    (lambda a, s: betonfs.Mix(["a.beton"]), TypeError, "'a.beton' Loader"),
    (lambda a, s: betonfs.Mix([a, None]), TypeError, "None Loader"),
    (lambda a, s: betonfs.Mix([a.dataset]), TypeError, "Dataset Loader"),
    (lambda a, s: betonfs.Mix([betonfs.Mix([a])]), TypeError, "Mix Loader"),
    (lambda a, s: betonfs.Mix([a, a]), ValueError, "twice weights="),
    (lambda a, s: betonfs.Mix([a], weights=[1, 2]), ValueError, "2 weights 1"),
    (lambda a, s: betonfs.Mix([a], weights=[0]), ValueError, "weights 0"),
    (lambda a, s: betonfs.Mix([a], weights="x"), ValueError, "weights='x'"),
    (lambda a, s: betonfs.Mix([a], seed="x"), TypeError, "seed='x' whole"),
    (lambda a, s: betonfs.Mix([a], seed=-1), ValueError, "seed=-1 from 0"),
    (lambda a, s: betonfs.Mix([a], cycle="no"), TypeError, "cycle='no' True"),
    (lambda a, s: betonfs.Mix([a], batch_size=3), TypeError, "Mix() batch_size="),
    (lambda a, s: betonfs.Mix([a]).load_state_dict(s), ValueError,
     "no state of a mix"),
    (lambda a, s: betonfs.Mix([a]).load_state_dict(None), ValueError,
     "None no state of a mix"),
    (lambda a, s: betonfs.Mix([a]).set_epoch(-1), ValueError, "epoch=-1"),
    (lambda a, s: betonfs.compiled(3), TypeError, "compiled(3) function"),
    (lambda a, s: betonfs.compiled(lambda: 0), TypeError, "no parameters"),
    (lambda a, s: betonfs.DataLoader, AttributeError, "betonfs.Loader"),
    (lambda a, s: betonfs.DatasetWriter, AttributeError, "betonfs.write"),
    (lambda a, s: betonfs.Ragged([b"a"])[3], IndexError, "3 of 1"),
]


@pytest.mark.parametrize("use, kind, must", USES,
                         ids=[str(k) for k in range(len(USES))])
def test_a_mistake_with_a_loader(path, use, kind, must):
    with betonfs.Loader(path, 20, pipeline=LABEL, tensors="numpy") as loader:
        with pytest.raises(kind) as e:
            use(loader, loader.state_dict())
        check(e, must)


def test_numbers_of_numpy_are_numbers(path):
    got = epoch(path, pipeline=LABEL, batch_size=np.int64(20),
                seed=np.uint32(0), drop_last=np.bool_(True),
                workers=np.int8(1), train=np.bool_(True), epoch=np.int32(0))
    assert numbers(got) == numbers(epoch(path, pipeline=LABEL))
    with betonfs.Loader(path, 20, pipeline=LABEL) as loader:
        state = changed(loader.state_dict(), epoch=np.int64(1))
        loader.load_state_dict(state)
        assert loader.state_dict()["epoch"] == 1


ENVIRONMENT = [
    (dict(RANK="x", WORLD_SIZE="2"), "RANK='x' whole number rank="),
    (dict(RANK="", WORLD_SIZE=""), "RANK='' whole number"),
    (dict(RANK="0.0", WORLD_SIZE="2"), "RANK='0.0' whole number"),
    (dict(RANK="-1", WORLD_SIZE="2"), "RANK='-1' from 0"),
    (dict(RANK="0", WORLD_SIZE="0"), "WORLD_SIZE='0' from 1"),
    (dict(RANK="2", WORLD_SIZE="2"), "rank 2 world size 2 from 0 to 1"),
    (dict(BETON_JOB="x" * 100), "BETON_JOB 100 64 ASCII"),
    (dict(BETON_SYNTHETIC="fast"), "BETON_SYNTHETIC `fast' constant"),
]


@pytest.mark.parametrize("variables, must", ENVIRONMENT,
                         ids=[str(k) for k in range(len(ENVIRONMENT))])
def test_a_mistake_of_the_environment(path, monkeypatch, variables, must):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError) as e:
        epoch(path, pipeline=LABEL)
    check(e, must)


def test_a_world_size_without_a_rank_is_reported(path, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    printed, = warned(lambda: epoch(path, pipeline=LABEL))
    assert "WORLD_SIZE=2" in printed and "rank=" in printed
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not warned(lambda: epoch(path, pipeline=LABEL))


# --- paths ---

def test_paths_that_are_no_dataset(path, tmp_path):
    folder = path.parent
    for wrong, kind, must in (
            ([path, path], ValueError, "train.beton twice weights"),
            ([], ValueError, "no files"),
            ({path}, TypeError, "path={ list of them"),
            (folder / "trian.beton", FileNotFoundError, "trian.beton No such"),
            (folder / "val-*.beton", FileNotFoundError, "val-*.beton no file"),
            ("hf://bucket/train.beton", FileNotFoundError, "hf no URL scheme https s3"),
            (tmp_path, IsADirectoryError, "directory no dataset on a mount"),
            (7, TypeError, "path=7 file mount"),
            (None, TypeError, "path=None file mount"),
            ("", ValueError, "path='' file mount"),
            (betonfs.Dataset(path), TypeError, "path=<betonfs.Dataset file")):
        with pytest.raises(kind) as e:
            epoch(wrong)
        check(e, must)


@pytest.mark.parametrize("pipeline", ["image | center_crop(8)",
                                      {"image": "center_crop(8)"}])
def test_a_mount_of_several_datasets(path, mount, tmp_path, pipeline):
    other = tmp_path / "val.beton"
    os.link(path, other)
    where = mount(path, other)
    with pytest.raises(betonfs.BetonError) as e:
        epoch(where, pipeline=pipeline)
    check(e, f"open {where}/train or {where}/val", ["Is a directory"])
    assert len(epoch(where / "val", pipeline=pipeline)) == 3


# --- writing ---

ONE = [{"a": 1}]
IMAGE = np.zeros((4, 4, 3), np.uint8)


def a(value, field):
    """One sample of one field."""
    return [{"a": value}], {"fields": {"a": field}}


def jpeg():
    from PIL import Image
    file = io.BytesIO()
    Image.fromarray(IMAGE).resize((64, 64)).save(file, "JPEG")
    return file.getvalue()


WRITES = [
    # Silent, they would be other data.
    (*a(5, "bytes"), ValueError, "sample 0 field a 5 int bytes(...)"),
    (*a([1, 2], "bytes"), ValueError, "sample 0 field a [1, 2] bytes"),
    (*a("abc", "bytes"), ValueError, "sample 0 field a 'abc' encode()"),
    (*a(None, "bytes"), ValueError, "sample 0 field a None bytes"),
    (*a(1.7, "int"), ValueError, "sample 0 field a 1.7 float"),
    (*a(2**63, "int"), ValueError, "field a 9223372036854775808 64 bits"),
    ([{"a": 1}, {"a": 1, "b": 2}], {}, ValueError,
     "sample 1 'b' first sample a fields="),
    (ONE, dict(page_size=1 << 40), ValueError, "page_size=1099511627776"),
    (ONE, dict(page_size=-1), ValueError, "page_size=-1 2147483648"),
    (ONE, dict(overwrite="no"), TypeError, "overwrite='no' True False"),
    ([{"a": IMAGE}], dict(quality=0), ValueError, "quality=0 from 1 to 100"),
    ([{"a": IMAGE}], dict(quality=101), ValueError, "quality=101 100"),
    ([{"a": IMAGE}], dict(quality=0.9), TypeError, "quality=0.9 1 to 100"),
    ([{"a": IMAGE}], dict(max_resolution=-1), ValueError,
     "max_resolution=-1 from 0"),
    ([{"a": IMAGE}], dict(max_resolution=(4, 4)), TypeError,
     "max_resolution=(4, 4)"),
    (ONE, dict(length=1.5), TypeError, "length=1.5 whole number"),
    (ONE, dict(length=-1), ValueError, "length=-1 from 0"),
    (ONE, dict(workers=-1), ValueError, "workers=-1 from 0"),
    (ONE, dict(workers="2"), TypeError, "workers='2' whole number"),
    (ONE, dict(progress="yes"), TypeError, "progress='yes' True False"),
    ([{"a": 1}], dict(classes={"a": "xy"}), ValueError, "classes list 'xy'"),
    (*a(2**60 + 1, "float"), ValueError,
     "sample 0 field a 1152921504606846977 \"int\""),
    (*a([1e300], ("float32", (1,))), ValueError, "1e+300 float32"),
    (*a(jpeg()[:-2], "image"), ValueError, "sample 0 field a JPEG cut off"),
    (*a(jpeg()[:-40], "image"), ValueError, "JPEG cut off"),
    # Values.
    (*a("x", "float"), ValueError, "sample 0 field a 'x' number"),
    (*a(None, "float"), ValueError, "sample 0 field a None number"),
    (*a(1j, "float"), ValueError, "sample 0 field a 1j number"),
    (*a(10**400, "float"), ValueError, "sample 0 field a number"),
    (*a({1, 2}, "json"), ValueError, "sample 0 field a set JSON"),
    (*a(np.zeros(3), "json"), ValueError, "sample 0 field a ndarray tolist()"),
    (*a("x.jpg", "image"), ValueError, "field a 'x.jpg' bytes Image.open"),
    (*a(None, "image"), ValueError, "field a None image"),
    (*a(3, "image"), ValueError, "field a 3 image"),
    (*a(b"x", "image"), ValueError, "field a bytes JPEG PIL"),
    (*a(IMAGE[..., 0], "image"), ValueError, "field a (4, 4) (height, width"),
    (*a(IMAGE.transpose(2, 0, 1), "image"), ValueError,
     "field a (3, 4, 4) (height, transpose(1, 2, 0)"),
    (*a(IMAGE.astype(float), "image"), ValueError, "field a float64 uint8"),
    (*a(IMAGE[:0], "image"), ValueError, "field a (0, 4, 3) 1 to 65535"),
    (*a(np.zeros((1, 70000, 3), np.uint8), "image"), ValueError,
     "field a 70000 65535"),
    (*a(np.zeros(4), ("float32", (3,))), ValueError, "field a (4,) (3,)"),
    (*a("x", ("float32", (3,))), ValueError, "field a 'x' float32"),
    (*a([[1], [2, 3]], ("float32", (3,))), ValueError, "field a float32 (3,)"),
    (*a([300, 2, 3], ("uint8", (3,))), ValueError, "field a 300 uint8"),
    # Fields.
    (*a(1, "integer"), ValueError, "field 'a' 'integer' int"),
    (*a(1, int), ValueError, "field 'a' <class 'int'> \"int\""),
    (*a(1, None), ValueError, "field 'a' None \"int\""),
    (*a(1, np.float32), ValueError, "field 'a' float32 (dtype, shape)"),
    (*a(1, "float32"), ValueError, "field 'a' 'float32' (dtype, shape)"),
    (*a(1, ("float32",)), ValueError, "field 'a' (dtype, shape)"),
    (*a(1, ("float32", "x")), ValueError, "field 'a' 'x' shape"),
    (*a(1, ("float32", (3, -1))), ValueError, "field 'a' (3, -1) from 1"),
    (*a(1, ("float32", (3.5,))), ValueError, "field 'a' (3.5,) shape"),
    (*a(1, ("floaty", (3,))), ValueError, "field 'a' 'floaty' dtype"),
    (ONE, dict(fields={"a" * 17: "int"}), ValueError, "a 17 16 ASCII"),
    (ONE, dict(fields={1: "int"}), TypeError, "fields 1 text"),
    (ONE, dict(fields=["a"]), TypeError, "fields=['a'] dict"),
    (ONE, dict(fields="int"), TypeError, "fields='int' dict"),
    ([{1: 1}], {}, TypeError, "1 text"),
    ([{"a": object()}], {}, ValueError, "field 'a' object image number"),
    ([{"a": None}], {}, ValueError, "field 'a' None image number"),
    ([{"a": np.zeros(())}], {}, ValueError,
     "field 'a' () \"float\""),
    # Samples.
    ([1], dict(fields={"a": "int"}), ValueError, "sample 0 1 dict tuple"),
    (["x"], dict(fields={"a": "int"}), ValueError, "sample 0 'x' dict tuple"),
    ([{"a": 1}, None], {}, ValueError, "sample 1 None dict tuple"),
    ([{"a": 1}, {}], {}, ValueError, "sample 1 'a' nothing"),
    ([(1, 2)], {}, ValueError, "(1, 2) dict fields="),
    ([(1, 2)], dict(fields={"a": "int"}), ValueError, "sample 0 2 values 1"),
    ({"a": [1, 2]}, {}, TypeError, "dict list samples"),
    (None, {}, TypeError, "samples=None"),
    (3, {}, TypeError, "samples=3"),
    ("train/", {}, TypeError, "samples='train/'"),
    (iter(ONE), {}, ValueError, "length="),
    (iter(ONE * 3), dict(length=2), ValueError, "more 2 length="),
    ([], {}, ValueError, "fields="),
    (ONE, dict(mode="png"), ValueError, "mode='png' jpg raw"),
    (ONE, dict(classes="cat"), ValueError, "classes list"),
    (ONE, dict(classes=3), TypeError, "classes=3 list"),
    (ONE, dict(page_size=3 << 20), ValueError, "3145728 power of two"),
    (ONE, dict(page_size="8MiB"), TypeError, "page_size='8MiB' whole number"),
    ([{"a": bytes(3 << 20)}], dict(page_size=2 << 20), OSError,
     "sample 0 3145728 2097152 page_size=4194304"),
    (ONE, dict(num_workers=2), TypeError, "write() num_workers= `workers'"),
    (ONE, dict(write_mode="raw"), TypeError, "write() write_mode= mode="),
    (ONE, dict(overwite=True), TypeError, "write() overwite= `overwrite'"),
]


@pytest.mark.parametrize("samples, options, kind, must", WRITES,
                         ids=[str(k) for k in range(len(WRITES))])
def test_a_mistake_of_writing(tmp_path, samples, options, kind, must):
    new = tmp_path / "new.beton"
    with pytest.raises(kind) as e:
        betonfs.write(new, samples, **options)
    check(e, must)
    assert not new.exists()


def test_paths_that_cannot_be_written(path, tmp_path):
    for wrong, kind, must in (
            (path, FileExistsError, "exists overwrite=True"),
            (tmp_path, FileExistsError, "exists"),
            (tmp_path / "no" / "x.beton", FileNotFoundError, "no/x.beton"),
            (None, TypeError, "path=None"), ("", ValueError, "path=''"),
            (7, TypeError, "path=7"), (ONE, TypeError, "path=[{'a': 1}]")):
        with pytest.raises(kind) as e:
            betonfs.write(wrong, ONE)
        check(e, must)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        betonfs.write(path, ONE, overwrite="no")
    assert path.read_bytes() == before


# --- single samples ---

MASK = np.ones(N - 1, bool)
SINGLE = [
    (lambda d: d[N], IndexError, "sample 60 of 60"),
    (lambda d: d["label"], TypeError, "'label' column('label')"),
    (lambda d: d[1.0], TypeError, "1.0 number slice"),
    (lambda d: d[None], TypeError, "None number slice"),
    (lambda d: d[True], TypeError, "True number slice"),
    (lambda d: d[[1, 2]], TypeError, "[1, 2] get_batch()"),
    (lambda d: d[1, 2], TypeError, "(1, 2) get_batch()"),
    (lambda d: d.get(3, "lable"), KeyError, "'lable' image, label"),
    (lambda d: d.get("label", 3), TypeError, "3 name field"),
    (lambda d: d.raw(3, "label"), ValueError, "label number get()"),
    (lambda d: d.raw(3, ["label"]), TypeError, "['label'] one field"),
    (lambda d: d.get_batch(3), TypeError, "3 list"),
    (lambda d: d.get_batch([N]), IndexError, "sample 60 of 60"),
    (lambda d: d.get_batch([1], "label"), TypeError, "'label' list"),
    (lambda d: d.get_batch("0-10"), TypeError, "'0-10' list"),
    (lambda d: d.get_batch([1.5]), TypeError, "1.5 number"),
    (lambda d: d.column("image"), ValueError, "image rgb_image get("),
    (lambda d: d.column("lable"), KeyError, "'lable' image, label"),
    (lambda d: d.column(["label"]), TypeError, "['label'] one field"),
    (lambda d: d.subset(3), TypeError, "3 list"),
    (lambda d: d.subset(len), TypeError, "filter("),
    (lambda d: d.subset(MASK), ValueError, "59 60"),
    (lambda d: d.filter("lable", len), KeyError, "'lable' image, label"),
    (lambda d: d.filter("label", 3), TypeError, "3 function mask"),
    (lambda d: d.filter("label", [1, 2]), TypeError, "function mask int64"),
    (lambda d: d.filter("label", MASK), ValueError, "59 60"),
    (lambda d: d.filter(len, "label"), TypeError, "field function"),
    (lambda d: d.targets, AttributeError, "column(\"label\")"),
    (lambda d: d.labels, AttributeError, "column(\"label\")"),
    (lambda d: d.imgs, AttributeError, "'imgs' fields"),
]


@pytest.mark.parametrize("use, kind, must", SINGLE,
                         ids=[str(k) for k in range(len(SINGLE))])
def test_a_mistake_of_a_dataset(path, use, kind, must):
    with pytest.raises(kind) as e:
        use(betonfs.Dataset(path))
    check(e, must)


def test_a_mistake_of_a_part(path):
    with betonfs.Loader(path, 5, pipeline=LABEL, subset=range(9)) as loader:
        assert loader.dataset[-1]["label"] == 8
        assert [x["label"] for x in loader.dataset[7:]] == [7, 8]
        for i, kind, must in ((9, IndexError, "sample 9 of 9"),
                              (1.5, TypeError, "1.5 number slice"),
                              ("label", TypeError, "'label' number slice"),
                              ([1], TypeError, "[1] get_batch()")):
            with pytest.raises(kind) as e:
                loader.dataset[i]
            check(e, must)


def test_a_dataset_that_is_none(path, tmp_path):
    for given, kind, must in (
            (dict(path=7), TypeError, "path=7"),
            (dict(path=None), TypeError, "path=None"),
            (dict(path=""), ValueError, "path=''"),
            (dict(path=[]), ValueError, "no files"),
            (dict(path=[path, 7]), TypeError, "path=7"),
            (dict(path=tmp_path), FileNotFoundError, "directory"),
            (dict(path="hf://b/x.beton"), FileNotFoundError, "no URL scheme https s3"),
            (dict(path=str(tmp_path / "*.x")), FileNotFoundError, "no file"),
            (dict(path=path, transform=3), TypeError, "transform=3 function"),
            (dict(path=path, transform=[len]), TypeError, "Compose"),
            (dict(path=path, target_transform="x"), TypeError,
             "target_transform='x' function")):
        with pytest.raises(kind) as e:
            betonfs.Dataset(**given)
        check(e, must)


# --- what is a warning ---

def warned(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in seen]


@pytest.mark.parametrize("given, key, order", [
    ("order=random,window=64MiB", "window=64MiB", "quasi_random"),
    ("block=3", "block=3", "quasi_random"),
    ("order=sequential,num_samples=9", "num_samples=9", "weighted")])
def test_a_key_that_the_order_ignores(path, given, key, order):
    printed, = warned(lambda: epoch(path, spec=given, pipeline=LABEL))
    assert key in printed and f"order={order}" in printed
    used = "order=quasi_random,window=64MiB,block=4"
    assert not warned(lambda: epoch(path, spec=used, pipeline=LABEL))


class Normalize(RandomErasing):
    """One that draws nothing, and takes the first tensor for an image."""
    __module__ = "torchvision.transforms.v2"


HALVES = {"image": "image | center_crop(8) | mixup(0.2)",
          "label": "label | one_hot(60) | mixup(0.2)"}

# Options, words of their one warning, and the same without what is wrong.
WARNINGS = [
    (dict(train=False, pipeline="random_resized_crop(8) | flip"),
     "random_resized_crop, flip validation center_crop",
     dict(pipeline="random_resized_crop(8) | flip")),
    (dict(train=False, pipeline="center_crop(8) | random_apply(invert)"),
     "random_apply train=False",
     dict(train=False, pipeline="center_crop(8) | invert")),
    (dict(train=False, pipeline="center_crop(8) | RandomHorizontalFlip"),
     "flip train=False", dict(pipeline="center_crop(8) | flip")),
    (dict(pipeline={**HALVES, "label": "label"}),
     'label "label | one_hot(1000) | mixup(0.2)"', dict(pipeline=HALVES)),
    (dict(pipeline={**HALVES, "label":
                    "label | one_hot(60) | mixup(0.2, group=1)"}),
     "groups 0, 1 group=", dict(pipeline={
         name: text.replace("0.2", "0.2, group=1")
         for name, text in HALVES.items()})),
    (dict(pipeline={**HALVES, "image": "image | center_crop(8) | cutmix(1)"}),
     "cutmix mixup same", dict(pipeline={
         name: text.replace("mixup(0.2)", "random_choice(mixup(0.2), cutmix)")
         for name, text in HALVES.items()})),
    (dict(pipeline="center_crop(8) | normalize(0, 1) | normalize(imagenet)"),
     "normalize before once",
     dict(pipeline="center_crop(8) | normalize(imagenet) | float")),
    (dict(pipeline="center_crop(8) | normalize(0, 1) | brightness(0.4)"),
     "brightness after before normalize",
     dict(pipeline="center_crop(8) | brightness(0.4) | normalize(0, 1)")),
    (dict(pipeline="center_crop(8)", transforms=[RandomErasing()]),
     "RandomErasing once pipeline= Dataset(path, transform=...)",
     dict(pipeline="center_crop(8)", transforms=[HorizontalFlip()])),
    (dict(pipeline={"label": "label", "image": "center_crop(8)"},
          transforms=[Normalize()]), "Normalize first tensor 'label'",
     dict(pipeline={"image": "center_crop(8)", "label": "label"},
          transforms=[Normalize()])),
]


@pytest.mark.parametrize("wrong, must, right", WARNINGS,
                         ids=[str(k) for k in range(len(WARNINGS))])
def test_a_mistake_that_is_reported_once(path, wrong, must, right):
    printed, = warned(lambda: epoch(path, **wrong))
    for words in must.split():
        assert words in printed, (words, printed)
    assert not warned(lambda: epoch(path, **right))


@pytest.mark.parametrize("wrong, must, right", [
    ("excerpt(3)", "at=center", "excerpt(3, at=center)"),
    ("excerpt(3)", "at=center", "excerpt(3, start)"),
    ('float | gain("0.5,2")', "a gain of one number", "float | gain(2)"),
])
def test_validation_of_sounds_draws_nothing(tmp_path, wrong, must, right):
    path = tmp_path / "sounds.beton"
    betonfs.write(path, [{"sound": np.zeros(9, "<i2")} for _ in range(N)],
                  fields={"sound": ("int16", (None,))})
    printed, = warned(lambda: epoch(path, train=False, pipeline={"sound": wrong}))
    assert must in printed
    assert not warned(
        lambda: epoch(path, train=False, pipeline={"sound": right}))


def test_lengths_of_no_list(path):
    for lengths, kind, must in (
            ("labl", ValueError, "lengths='labl' label did you mean"),
            ("label", ValueError,
             "lengths='label' Dataset(path).column('label')")):
        with pytest.raises(kind) as e:
            epoch(path, pipeline=LABEL, lengths=lengths)
        check(e, must)


def test_a_state_of_another_pipeline(path):
    def opened(text):
        return betonfs.Loader(path, 20, pipeline=text, tensors="numpy")
    with opened("image | center_crop(8)") as a, opened(LABEL) as b:
        next(iter(a))
        state = a.state_dict()
        printed, = warned(lambda: b.load_state_dict(state))
        assert "center_crop(8)" in printed and "label" in printed
        assert [x.number for x in b] == [1, 2]
        assert not warned(lambda: pickle.loads(pickle.dumps(a)).close())
        # A state of an earlier version has no pipeline.
        del state["pipeline"]
        assert not warned(lambda: b.load_state_dict(state))


# --- words that are taken ---

def numbers(batches):
    return [b.ids.tolist() for b in batches]


def test_words_of_torch_mean_ours(path):
    plain = numbers(epoch(path, pipeline=LABEL))
    assert numbers(epoch(path, pipeline=LABEL, shuffle=True,
                         num_workers=1)) == plain
    assert numbers(epoch(path, pipeline=LABEL, shuffle=False)) == [
        list(range(k, k + 20)) for k in (0, 20, 40)]
    with betonfs.Loader(path, 20, pipeline=LABEL, num_workers=3) as loader:
        assert loader.stats()["workers"] == 3


@pytest.mark.parametrize("kind", [
    lambda mask: mask, list, lambda m: Part(None, np.flatnonzero(m).tolist()),
    lambda m: Part(Part(None, range(10, 40)),
                   (np.flatnonzero(m) - 10).tolist())])
def test_masks_and_subsets_are_subsets(path, kind):
    mask = np.arange(N) % 7 == 3
    mask[:10] = mask[40:] = False
    got = epoch(path, subset=kind(mask), pipeline=LABEL, drop_last=False)
    assert sorted(sum(numbers(got), [])) == np.flatnonzero(mask).tolist()


def test_texts_are_joined(path):
    for pipeline in (["image", "center_crop(4)", "float"],
                     {"image": ["center_crop(4)", "float"]},
                     {"image": ("image", "center_crop(4)", "float")}):
        batch = epoch(path, pipeline=pipeline)[0]
        assert batch["image"].shape == (20, 4, 4, 3)
        assert batch["image"].dtype == np.float32
        assert ("label" in batch) == (not isinstance(pipeline, dict))


def test_a_dict_names_all_outputs(path):
    for pipeline, names in (
            (LABEL, ["label"]), ({"y": "label | float"}, ["y"]),
            ({"label": "image | center_crop(4)"}, ["label"]),
            ({"image": None}, ["label"]), ({"label": ""}, ["label"]),
            ({"images": "image | center_crop(4)", "label": None},
             ["images"])):
        assert list(epoch(path, pipeline=pipeline)[0]) == names


def test_it_has_the_attributes_of_a_dataloader(path):
    with betonfs.Loader(path, 20, pipeline=LABEL) as loader:
        assert loader.batch_size == 20 and len(loader.dataset) == N
        assert loader.dataset[3]["label"] == 3
    for subset in range(5, 45), np.arange(5, 45), np.arange(N) // 40 == 0:
        with betonfs.Loader(path, 20, pipeline=LABEL, subset=subset) as part:
            assert len(part.dataset) == 40
            assert part.dataset[3]["label"] == list(
                np.arange(N)[subset] if np.asarray(subset).dtype == bool
                else subset)[3]
            assert [x["label"] for x in part.dataset[1:3]] == \
                [part.dataset[i]["label"] for i in (1, 2)]


# --- torch ---

@pytest.fixture
def data():
    """torch.utils.data"""
    return pytest.importorskip("torch.utils.data")


def test_a_generator_has_a_seed(path, data):
    import torch
    generator = torch.Generator().manual_seed(42)
    with betonfs.Loader(path, 20, pipeline=LABEL,
                        generator=generator) as loader:
        assert "seed=42" in loader.spec
        copy = pickle.loads(pickle.dumps(loader))
        assert copy.spec == loader.spec
        copy.close()
    with pytest.raises(TypeError, match="generator="):
        epoch(path, seed=1, generator=generator)


def test_a_split_of_torch_is_a_subset(path, data):
    import torch
    parts = data.random_split(betonfs.Dataset(path), [40, 20],
                              torch.Generator().manual_seed(3))
    got = [sorted(sum(numbers(epoch(path, subset=p, pipeline=LABEL)), []))
           for p in parts]
    assert [len(x) for x in got] == [40, 20]
    assert sorted(sum(got, [])) == list(range(N))
    mask = torch.arange(N) < 20
    assert len(epoch(path, subset=mask, pipeline=LABEL)) == 1


def test_a_dataloader_takes_it_as_an_iterable(path, data):
    with betonfs.Loader(path, 20, pipeline=LABEL, tensors="torch") as loader:
        assert isinstance(loader, data.IterableDataset)
        wrapped = data.DataLoader(loader, batch_size=None)
        assert len(wrapped) == 3
        got = [b["label"].tolist() for b in wrapped]
        assert sorted(sum(got, [])) == list(range(N))
        # Each epoch is the next one.
        assert [b["label"].tolist() for b in wrapped] != got


def test_a_dataloader_does_not_stack_batches(path, data):
    with betonfs.Loader(path, 20, pipeline=LABEL, tensors="torch") as loader:
        for options in {}, {"batch_size": 4}:
            with pytest.raises(ValueError, match="batch_size=None"):
                next(iter(data.DataLoader(loader, **options)))
        assert next(iter(loader))["label"].shape == (20,)


def test_a_worker_of_a_dataloader_is_reported(path, data):
    with betonfs.Loader(path, 20, pipeline=LABEL, tensors="torch") as loader:
        wrapped = data.DataLoader(loader, batch_size=None, num_workers=2,
                                  multiprocessing_context="fork")
        with pytest.raises(RuntimeError, match="num_workers=0"):
            list(wrapped)


def test_workers_of_a_dataloader_share_an_epoch(path, data, capfd):
    """Where each opens the loader."""
    class Opens(data.IterableDataset):
        def __iter__(self):
            opened = []
            print(warned(lambda: opened.append(betonfs.Loader(
                path, 10, pipeline=LABEL, tensors="torch", shuffle=False))),
                file=sys.stderr, flush=True)
            with opened[0] as loader:
                yield from (b["label"].clone() for b in loader)
    for workers in 0, 1, 2:
        got = list(data.DataLoader(Opens(), batch_size=None,
                                   num_workers=workers))
        # The batches have the order of the epoch.
        assert sum((b.tolist() for b in got), []) == list(range(N))
        printed = capfd.readouterr().err
        assert printed.count("takes its share") == (workers > 1)
        assert "num_workers=0" in printed or workers < 2


# --- programs ---

def test_a_program_reports_the_same(path):
    for text, must in (("image | HorizontalFlip", "`flip'"),
                       ("image | xyzzyx", "the operations are")):
        r = beton("bench", path, "--pipeline", text, code=1)
        assert must in r.stderr and not re.search(r"/proc/", r.stderr)


PROGRAMS = [
    ("beton inof", "beton --help `info'"), ("beton check", "`beton info'"),
    ("beton mount", "`betonfs'"), ("beton hlep", "`help' beton --help"),
    ("beton help inof", "`inof' `info' beton --help"),
    ("beton", "missing COMMAND beton --help"),
    ("beton --foo", "--foo beton --help"),
    ("beton bench --batch-size 20 FILE", "--batch-size `--spec=batch=N'"),
    ("beton bench --jbos 2 FILE", "--jbos `--jobs' 'beton bench --help'"),
    ("beton bench --num-workers=2 FILE", "--num-workers `--jobs'"),
    ("beton dump --s 2 FILE", "ambiguous --spec --subset --state"),
    ("beton bench -qx FILE", "-x 'beton bench --help'"),
    ("beton bench -qjx FILE", "--jobs=x"),
    ("beton bench --jobs x FILE", "--jobs=x whole number 1 4096"),
    ("beton bench --spec order=shuffle FILE", "order=shuffle random"),
    ("beton bench --spec shuffle=1 FILE", "'shuffle' `order=random'"),
    ("beton bench --spec batch=100 FILE", "60 samples --spec=batch=60"),
    ("beton doctor --spec batch=100 FILE", "60 samples --spec=batch=60"),
    ("beton bench --spec subset=0-99 FILE", "subset=0-99 60 samples"),
    ("beton bench --spec batch=20,subset=0-7 FILE", "no batches drop_last=0"),
    ("beton doctor --spec batch=20,subset=0-7 FILE", "no batches drop_last=0"),
    ("beton bench --source real FILE", "`real' constant memory synthetic"),
    ("beton bench FILE FILE", "unexpected operand 'beton bench --help'"),
    ("beton bench NOFILE", "NOFILE No such file"),
    ("beton bench TEXT", "TEXT not a .beton file"),
    ("beton bench DIR", "DIR directory .beton mount"),
    ("beton doctor DIR", "DIR directory .beton mount"),
    ("beton info DIR", "DIR directory mount"),
    ("beton show FIFO", "FIFO not a regular file"),
    ("beton show TEXT", "TEXT not a batch file"),
    ("beton show", "show missing BATCHFILE 'beton show --help'"),
    ("beton dump TEXT out", "dump: unexpected operand 'out' --help"),
    # Nothing but a dataset replaces a dataset.
    ("beton info --html FILE FILE", "FILE a dataset"),
    ("beton bench --spec batch=20 --pipeline center_crop(8) --trace FILE FILE",
     "FILE a dataset"),
    ("beton dump --spec batch=20 --state TEXT --out x FILE", "TEXT"),
    ("beton dump -o x FILE", "missing --out=DIR"), ("beton dump FILE", "missing --out=DIR"),
    ("beton dump --out x --rank 4 --world 2 FILE", "--rank=4 --world-size=2"),
    ("beton info --html x --json FILE", "--html --json exclude"),
    ("beton top DIR", "DIR not a mount of betonfs"),
    ("mkfs.beton", "missing SOURCE DATASET --help"),
    ("mkfs.beton DIR", "missing DATASET"),
    ("mkfs.beton DIR new.beton", "DIR no .jpg .png"),
    ("mkfs.beton NODIR new.beton", "NODIR No such file"),
    ("mkfs.beton TEXT new.beton", "TEXT source directory beton-sources(7)"),
    ("mkfs.beton --write_mode=raw DIR new.beton", "--write_mode `--mode'"),
    ("mkfs.beton --num_workers=3 DIR new.beton", "`--jobs'"),
    ("mkfs.beton --max_resolution=3 DIR new.beton", "`--max-resolution'"),
    ("mkfs.beton --mode=png DIR new.beton", "--mode=png jpg|raw"),
    ("mkfs.beton --quality=101 DIR new.beton", "--quality=101 1 100"),
    ("mkfs.beton --page-size=3M DIR new.beton", "3145728 power of two"),
    ("mkfs.beton --jobs=0 DIR new.beton", "--jobs=0 1 to 1024"),
    ("betonfs", "missing DATASET MOUNTPOINT usage: 'betonfs --help'"),
    ("betonfs FILE", "missing MOUNTPOINT usage: 'betonfs --help'"),
    ("betonfs -o batch_size=20 FILE DIR", "batch_size=20 `batch'"),
    ("betonfs -o workers=2 FILE DIR", "workers=2 `jobs' --help"),
    ("betonfs -o readahead=2 FILE DIR", "readahead=2 `prefetch'"),
    ("betonfs -o nonempty FILE DIR", "nonempty unknown option --help"),
    ("betonfs -o batch FILE DIR", "batch batch=N"),
    ("betonfs -o batch=0 FILE DIR", "batch=0 1 to 1048576"),
    ("betonfs -o order=shuffle FILE DIR", "order=shuffle random"),
    ("betonfs -o drop_last=yes FILE DIR", "drop_last=yes 0 or 1"),
    ("betonfs -o seed=x FILE DIR", "seed=x 2^64"),
    ("betonfs -o subset=0-99 FILE DIR", "subset=0-99 60 samples"),
    ("betonfs -o subset=a:NOFILE FILE DIR", "NOFILE No such file"),
    ("betonfs -o subset=a:TEXT FILE DIR", "TEXT:1 sample number"),
    ("betonfs -o cache=ram FILE DIR", "cache=ram auto os process"),
    ("betonfs -o cache_size=64 FILE DIR", "cache_size=64 16MiB 512MiB"),
    ("betonfs -o cold_size=x FILE DIR", "cold_size=x 512MiB"),
    ("betonfs -o prefetch=99 FILE DIR", "prefetch=99 0 to 8"),
    ("betonfs -o prefetch=99 FILE DIR", "prefetch=99 0 to 8"),
    ("betonfs -o jobs=0 FILE DIR", "jobs=0 1 to 1024"),
    ("betonfs -o window=x FILE DIR", "window=x 64MiB"),
    ("betonfs -o block=0 FILE DIR", "block=0 from 1"),
    ("betonfs -o uid=root FILE DIR", "uid=root whole number"),
    ("betonfs -o gid=-1 FILE DIR", "gid=-1 whole number"),
    ("betonfs -o umask=888 FILE DIR", "umask=888 octal 0777"),
    ("betonfs -o xattr=1 FILE DIR", "xattr=1 without a value"),
    ("betonfs -o names=1 FILE DIR", "names=1 without a value"),
    ("betonfs -o log=NODIR/x FILE DIR", "log= No such file"),
    ("betonfs -o settings=NOFILE FILE DIR", "NOFILE No such file"),
    ("betonfs -o settings=TEXT FILE DIR", "TEXT:1 key=value"),
    ("betonfs -x FILE DIR", "-x: unknown betonfs --help"),
    ("betonfs -o", "-o: value betonfs --help"),
    ("betonfs --loud FILE DIR", "--loud betonfs --help"),
    ("betonfs NOFILE DIR", "NOFILE No such file"),
    ("betonfs hf://b/x.beton DIR", "hf://b/x.beton no URL scheme https s3"),
    ("betonfs DIR FILE", "DIR directory .beton mkfs.beton"),
    ("betonfs FILE TEXT", "mountpoint TEXT Not a directory"),
    ("betonfs TEXT DIR", "TEXT not a .beton file"),
    ("betonfs FIFO DIR", "FIFO not a regular file"),
]


@pytest.mark.parametrize("line, must", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_a_mistake_on_a_command_line(path, tmp_path, line, must):
    (tmp_path / "DIR").mkdir()
    (tmp_path / "TEXT").write_text("hello\n")
    os.mkfifo(tmp_path / "FIFO")
    words = [re.sub("^FILE$", str(path), word) for word in line.split()]
    try:
        r = subprocess.run([os.path.join(BUILD, words[0]), *words[1:]],
                           cwd=tmp_path, capture_output=True, text=True,
                           timeout=60)
    finally:
        subprocess.run(["fusermount3", "-uq", tmp_path / "DIR"])
    assert r.returncode not in (0, 124) and r.returncode < 128
    assert (tmp_path / "TEXT").read_text() == "hello\n"
    for word in re.sub(r"\bFILE\b", str(path), must).split():
        assert word in r.stderr, (word, r.stderr)
    assert len(r.stderr) < 2000
    for word in NEVER:
        assert word not in r.stderr, (word, r.stderr)


@pytest.mark.parametrize("on_error", ["skip", "zero"])
def test_samples_that_a_dump_left_out_are_reported(tmp_path, on_error):
    path = tmp_path / "a.beton"
    betonfs.write(path, [{"image": np.zeros((8 + i % 2, 8, 3), np.uint8)}
                         for i in range(20)], mode="raw")
    for pipeline, n in ("image", 10), ("image | center_crop(8)", 0):
        r = beton("dump", path, "--spec", "order=sequential,batch=10",
                  "--on-error", on_error, "--pipeline", pipeline,
                  "--out", tmp_path / "out")
        assert f"{n} samples could not be read" in r.stderr or not n
        assert ("valid.npy" in r.stderr) == (n > 0 and on_error == "skip")
        assert n or not r.stderr
