# SPDX-License-Identifier: Apache-2.0
"""Every name that public code imports from ffcv, its forks included, is there
and does its job: looked up by `from ffcv.MODULE import NAME`, as that code
does."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not built", allow_module_level=True)
sys.path.insert(0, str(BUILD / "python"))

FIELDS = "BytesField Field FloatField IntField JSONField NDArrayField " \
         "RGBImageField TorchTensorField"
DECODERS = "BytesDecoder CenterCropRGBImageDecoder FloatDecoder IntDecoder " \
           "NDArrayDecoder RandomResizedCropRGBImageDecoder " \
           "SimpleRGBImageDecoder"
COLORS = "RandomBrightness RandomContrast RandomSaturation RandomColorJitter"
FORK = "LabelColorJitter LabelGaussianBlur LabelGrayscale " \
       "LabelRandomResizedCrop LabelSolarization LabelTranslate CenterCrop " \
       "CornerCrop GaussianBlur PadRGBImageDecoder RandomErasing Rotate " \
       "RandAugment RandomGrayscale RandomSolarization"
ORDERS = "DEFAULT_OS_CACHE DEFAULT_PROCESS_CACHE ORDER_MAP ORDER_TYPE " \
         "OrderOption"
MANAGERS = "MemoryContext MemoryManager OSCacheManager ProcessCacheManager"
NAMES = {
    "": "DatasetWriter Loader fields loader transforms writer libffcv",
    "fields": FIELDS + " basics bytes decoders json ndarray rgb_image",
    "fields.base": "ARG_TYPE Field",
    "fields.basics": "BasicDecoder FloatDecoder FloatField IntDecoder "
                     "IntField",
    "fields.bytes": "BytesDecoder BytesField",
    "fields.decoders": DECODERS,
    "fields.json": "JSONField",
    "fields.ndarray": "NDArrayDecoder NDArrayField TorchTensorField",
    "fields.rgb_image": "IMAGE_MODES CenterCropRGBImageDecoder RGBImageField "
                        "RandomResizedCropRGBImageDecoder encode_jpeg "
                        "ResizedCropRGBImageDecoder SimpleRGBImageDecoder "
                        "get_center_crop get_random_crop resizer",
    "libffcv": "ctypes_imdecode ctypes_memcopy ctypes_pad ctypes_resize "
               "imdecode memcpy pad read resize_crop",
    "loader": "Loader OrderOption",
    "loader.epoch_iterator": "EpochIterator QUASIRANDOM_ERROR_MSG "
                             "select_buffer IS_CUDA",
    "loader.loader": "Loader " + ORDERS,
    "memory_managers": MANAGERS,
    "memory_managers.base": "MemoryContext MemoryManager",
    "memory_managers.common": "BATCHES_TYPE",
    "memory_managers.os_cache": "OSCacheContext OSCacheManager",
    "memory_managers.process_cache": "ProcessCacheContext ProcessCacheManager",
    "memory_managers.process_cache.context": "ProcessCacheContext",
    "memory_managers.process_cache.manager": "ProcessCacheManager",
    "pipeline": "Compiler Pipeline PipelineSpec graph operation",
    "pipeline.allocation_query": "Allocation AllocationQuery allocate_query",
    "pipeline.compiler": "Compiler",
    "pipeline.graph": "Graph",
    "pipeline.operation": "AllocationQuery Operation",
    "pipeline.pipeline": "Pipeline",
    "pipeline.pipeline_spec": "PipelineSpec",
    "pipeline.state": "State",
    "reader": "Reader",
    "transforms": "Convert Cutout ImageMixup LabelMixup MixupToOneHot "
                  "ModuleWrapper NormalizeImage Poison RandomHorizontalFlip "
                  "RandomResizedCrop RandomTranslate ReplaceLabel Squeeze "
                  "ToDevice ToTensor ToTorchImage View " + COLORS + " " + FORK,
    "transforms.color_jitter": COLORS,
    "transforms.colorjitter": "RandomColorJitter LabelColorJitter",
    "transforms.common": "Squeeze",
    "transforms.cutout": "Cutout",
    "transforms.erasing": "RandomErasing",
    "transforms.flip": "RandomHorizontalFlip LabelRandomHorizontalFlip",
    "transforms.gaussian_blur": "GaussianBlur LabelGaussianBlur",
    "transforms.grayscale": "RandomGrayscale LabelGrayscale",
    "transforms.mixup": "ImageMixup LabelMixup MixupToOneHot",
    "transforms.module": "ModuleWrapper",
    "transforms.normalize": "NormalizeImage",
    "transforms.ops": "Convert ToDevice ToTensor ToTorchImage View",
    "transforms.poisoning": "Poison",
    "transforms.randaugment": "RandAugment",
    "transforms.random_resized_crop": "RandomResizedCrop",
    "transforms.replace_label": "ReplaceLabel",
    "transforms.resized_crop": "RandomResizedCrop CenterCrop",
    "transforms.rotate": "Rotate",
    "transforms.solarization": "RandomSolarization LabelSolarization",
    "transforms.translate": "RandomTranslate LabelTranslate",
    "transforms.utils": "fast_crop",
    "transforms.utils.fast_crop": "get_center_crop get_random_crop "
                                  "resize_crop",
    "traversal_order": "QuasiRandom Random Sequential",
    "traversal_order.base": "TraversalOrder",
    "traversal_order.quasi_random": "QuasiRandom",
    "traversal_order.random": "Random",
    "traversal_order.sequential": "Sequential",
    "types": "ALLOC_TABLE_TYPE CURRENT_VERSION FieldDescType HeaderType "
             "TYPE_ID_HANDLER get_handlers get_metadata_type",
    "utils": "align_to_page chunks decode_null_terminated_string "
             "is_power_of_2 s_print",
    "writer": "DatasetWriter",
}
STATEMENTS = [f"from ffcv{'.' * bool(module)}{module} import {name}"
              for module, names in NAMES.items() for name in names.split()]

LOOK = """
import json, sys
failed = {}
for statement in json.load(sys.stdin):
    try:
        exec(statement, {})
    except Exception as e:
        failed[statement] = repr(e)
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    script = tmp_path_factory.mktemp("look") / "look.py"
    script.write_text(LOOK)
    attributes = [f"import ffcv.{m}; ffcv.{m}.{n}"
                  for m, names in NAMES.items() if m
                  for n in names.split()[:1]]
    r = subprocess.run([sys.executable, "-m", "betonfs.ffcv", script],
                       input=json.dumps(STATEMENTS + attributes), text=True,
                       capture_output=True, timeout=300,
                       env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert not r.returncode, r.stderr
    return json.loads(r.stdout)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_it_is_there(failed, statement):
    assert statement not in failed, failed[statement]


def test_so_it_is_by_its_whole_name(failed):
    assert not [s for s in failed if s.startswith("import ")], failed


def test_no_import_starts_cuda_or_numba():
    r = subprocess.run(
        [sys.executable, "-c", "import sys, torch, betonfs.ffcv.libffcv, "
         "betonfs.ffcv.memory_managers\nprint('numba' in sys.modules, "
         "torch.cuda.is_initialized())"], text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=300)
    assert r.stdout.split() == ["False", "False"], r.stderr


# --- what they do ---

@pytest.fixture
def pixels():
    rng = np.random.default_rng(5)
    small = rng.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return np.ascontiguousarray(small.repeat(8, 0).repeat(8, 1))


def test_memcpy_copies_bytes():
    from betonfs.ffcv.libffcv import memcpy
    for dtype in (np.uint8, np.int32, np.float64):
        a = np.arange(12, dtype=dtype).reshape(3, 4)
        b = np.zeros_like(a)
        memcpy(a, b)
        assert (a == b).all()
        with pytest.raises(ValueError, match="larger"):
            memcpy(a, b[1:])


def test_imdecode_decodes_parts_flips_and_shrinks(pixels):
    from betonfs.ffcv.fields.rgb_image import encode_jpeg
    from betonfs.ffcv.libffcv import imdecode
    jpeg = encode_jpeg(pixels, 95)
    whole = np.zeros_like(pixels)
    imdecode(jpeg, whole, 32, 40, 32, 40)
    assert np.abs(whole.astype(int) - pixels).mean() < 8
    flipped = np.zeros_like(pixels)
    imdecode(jpeg, flipped, 32, 40, 32, 40, 0, 0, 1, 1, False, True)
    assert (flipped == whole[:, ::-1]).all()
    part = np.zeros((16, 8, 3), np.uint8)
    imdecode(jpeg, part, 32, 40, 16, 8, 24, 16, 1, 1, True, False)
    assert (part == whole[16:, 24:32]).all()
    half = np.zeros((16, 20, 3), np.uint8)
    imdecode(jpeg, half, 32, 40, 32, 40, 0, 0, 1, 2, False, False)
    mean = whole.reshape(16, 2, 20, 2, 3).astype(float).mean((1, 3))
    assert np.abs(half - mean).max() <= 1


@pytest.mark.parametrize("jpeg, height", [(b"no JPEG", 32), (None, 31)])
def test_imdecode_reports_that_it_cannot(pixels, jpeg, height):
    from betonfs.ffcv.fields.rgb_image import encode_jpeg
    from betonfs.ffcv.libffcv import imdecode
    data = encode_jpeg(pixels, 95) if jpeg is None \
        else np.frombuffer(jpeg, np.uint8)
    with pytest.raises(ValueError, match="not a JPEG of the size"):
        imdecode(data, np.zeros_like(pixels), height, 40, height, 40)
    with pytest.raises(ValueError, match="too small"):
        imdecode(data, np.zeros(9, np.uint8), height, 40, height, 40)


@pytest.mark.parametrize("name", ["resize_crop", "pad"])
@pytest.mark.parametrize("wrong", [
    lambda a: a[:, :, 0], lambda a: a[:, :, 0].copy(), lambda a: a[::2],
    lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[:, :, ::-1],
    lambda a: a.astype(np.float32), lambda a: a.transpose(1, 0, 2)],
    ids="plane gray rows upside columns bgr float transposed".split())
def test_images_in_another_form_are_refused(pixels, name, wrong):
    """Pixels would be read, or written, that are not of the array."""
    import betonfs.ffcv.libffcv
    call = getattr(betonfs.ffcv.libffcv, name)
    for source, to in ((wrong(pixels), pixels.copy()),
                       (pixels, wrong(pixels.copy()))):
        with pytest.raises(ValueError, match="uint8 arrays"):
            call(source, 0, 8, 0, 8, to)


def test_resize_crop_and_pad(pixels):
    from betonfs.ffcv.libffcv import pad, resize_crop
    small = np.zeros((4, 5, 3), np.uint8)
    resize_crop(pixels, 0, 32, 0, 40, small)
    assert (small == pixels[::8, ::8]).all()
    with pytest.raises(ValueError, match="not inside"):
        resize_crop(pixels, 0, 33, 0, 40, small)
    wide = np.full((20, 30, 3), 9, np.uint8)
    pad(pixels, 8, 24, 8, 32, wide)
    assert (wide[:16, :24] == pixels[8:24, 8:32]).all()
    assert not wide[16:].any() and not wide[:, 24:].any()
    with pytest.raises(ValueError, match="not inside"):
        pad(pixels, 0, 32, 0, 40, wide)


def test_crops_are_inside_and_of_the_area():
    from betonfs.ffcv.fields.rgb_image import get_center_crop, get_random_crop
    from betonfs.ffcv.transforms.utils import fast_crop
    assert get_center_crop(100, 60, None, 0.5) == (35, 15, 30, 30)
    assert tuple(fast_crop.get_center_crop(100, 60, 0.5)) == (35, 15, 30, 30)
    np.random.seed(1)
    for crop in (get_random_crop, fast_crop.get_random_crop):
        for _ in range(50):
            y, x, h, w = crop(300, 200, np.array((0.2, 0.5)),
                              np.array((0.75, 4 / 3)))
            assert y >= 0 and x >= 0 and y + h <= 300 and x + w <= 200
            assert 0.19 * 60000 < h * w < 0.51 * 60000
    assert get_random_crop(10, 1000, (1, 1), (0.75, 4 / 3)) == (0, 493, 10, 13)


def test_the_same_compiled_by_numba(pixels):
    numba = pytest.importorskip("numba")
    from betonfs.ffcv.fields.rgb_image import encode_jpeg, get_random_crop
    from betonfs.ffcv.libffcv import imdecode, memcpy, resize_crop
    from betonfs.ffcv.pipeline.compiler import Compiler
    from betonfs.ffcv.transforms.utils.fast_crop import get_center_crop
    decode, resize, copy, crop = (
        Compiler.compile(f) for f in (imdecode, resize_crop, memcpy,
                                      get_random_crop))

    @numba.njit
    def run(jpeg, whole, small, again):
        decode(jpeg, whole, 32, 40, 32, 40, 0, 0, 1, 1, False, False)
        resize(whole, 0, 32, 0, 40, small)
        copy(small, again)
        y, x, h, w = crop(32, 40, np.array((0.5, 1)), np.array((0.75, 1.25)))
        return y + h <= 32 and x + w <= 40, get_center_crop(32, 40, 1)

    jpeg = encode_jpeg(pixels, 95)
    whole, small = np.zeros_like(pixels), np.zeros((4, 5, 3), np.uint8)
    again = np.zeros_like(small)
    assert run(jpeg, whole, small, again) == (True, (0, 4, 32, 32))
    plain = np.zeros_like(whole)
    imdecode(jpeg, plain, 32, 40, 32, 40)
    assert (plain == whole).all() and (again == small).all()
    with pytest.raises(ValueError, match="not a JPEG"):
        run(jpeg[:20], whole, small, again)


def test_a_missing_name_is_reported():
    from betonfs.ffcv import transforms as T
    for make in (lambda: T.RandAugment(2, 9), lambda: T.LabelColorJitter(0.5),
                 lambda: T.LabelGaussianBlur(0.5, 5)):
        with pytest.raises(NotImplementedError, match="torchvision"):
            make()


def test_types_and_utils(tmp_path):
    from betonfs.ffcv import types, utils
    from betonfs.ffcv.fields import IntField, RGBImageField
    assert types.HeaderType.itemsize == 24
    assert types.FieldDescType.itemsize == 1041
    assert types.ALLOC_TABLE_TYPE.itemsize == 24
    assert types.TYPE_ID_HANDLER[2] is RGBImageField
    assert types.TYPE_ID_HANDLER[255] is None
    assert types.get_metadata_type([IntField(), IntField()]).itemsize == 16
    assert list(utils.chunks([1, 2, 3], 2)) == [[1, 2], [3]]
    assert utils.is_power_of_2(8) and not utils.is_power_of_2(12)
    assert utils.align_to_page(9, 8) == 16 == utils.align_to_page(16, 8)
    name = np.frombuffer(b"abc\0\0", np.uint8)
    assert utils.decode_null_terminated_string(name) == "abc"
