# SPDX-License-Identifier: Apache-2.0
"""Operations of users: compiled ones, some of which want samples' numbers or
memory that two pipelines share, torch modules, and a decoder."""
import sys
from dataclasses import replace

import numpy as np
import torch
from records import Pictures, Records

from ffcv.fields import (BytesField, FloatField, IntField, JSONField,
                         NDArrayField, RGBImageField, TorchTensorField)
from ffcv.fields.decoders import (BytesDecoder, CenterCropRGBImageDecoder,
                                  FloatDecoder, IntDecoder, NDArrayDecoder,
                                  SimpleRGBImageDecoder)
from ffcv.loader import Loader
from ffcv.pipeline.allocation_query import AllocationQuery
from ffcv.pipeline.compiler import Compiler
from ffcv.pipeline.operation import Operation
from ffcv.transforms import (Convert, ModuleWrapper, Poison, ReplaceLabel,
                             Squeeze, ToTensor, ToTorchImage, View)
from ffcv.writer import DatasetWriter


class Invert(Operation):
    """Those of odd numbers."""

    def generate_code(self):
        my_range = Compiler.get_iterator()

        def invert(images, dst, indices):
            for i in my_range(images.shape[0]):
                if indices[i] % 2 == 1:
                    dst[i] = 255 - images[i]
                else:
                    dst[i] = images[i]
            return dst

        invert.is_parallel = True
        invert.with_indices = True
        return invert

    def declare_state_and_memory(self, previous_state):
        return (replace(previous_state, jit_mode=True),
                AllocationQuery(previous_state.shape, previous_state.dtype))


class Scale(Operation):
    """Scales tensors in place, by a factor that all instances share."""

    def generate_code(self):
        def scale(x, _, shared):
            x *= int(shared[0, 0])
            return x
        return scale

    def declare_shared_memory(self, previous_state):
        return AllocationQuery((1,), np.dtype("int64"))

    def generate_code_for_shared_state(self):
        def init(shared):
            shared[:] = 3
        return init

    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=False), None


class Widths(SimpleRGBImageDecoder):
    """Reads the records and the bytes itself: a sum, and the width."""

    def generate_code(self):
        read = self.memory_read

        def decode(indices, destination, metadata, storage_state):
            for i in range(len(indices)):
                field = metadata[indices[i]]
                data = read(field["data_ptr"], storage_state)
                destination[i, 0] = field["width"]
                destination[i, 1] = data.sum()
            return destination[:len(indices)]
        return decode

    def declare_state_and_memory(self, previous_state):
        dtype = np.dtype("int64")
        return (replace(previous_state, jit_mode=True, shape=(2,),
                        dtype=dtype), AllocationQuery((2,), dtype))


class Rich(Pictures):
    """Samples with a value for every kind of field."""

    def __getitem__(self, i):
        rng = np.random.default_rng(1000 + i)
        return (*super().__getitem__(i), i / 3,
                rng.integers(0, 256, 1 + i % 7, dtype=np.uint8), {"i": int(i)},
                rng.random((2, 3)), torch.full((5,), i, dtype=torch.int32))


def main(folder, out):
    path = f"{folder}/every.beton"
    DatasetWriter(path, {
        "image": RGBImageField(), "label": IntField(), "score": FloatField(),
        "blob": BytesField(), "meta": JSONField(),
        "vec": NDArrayField(np.dtype("float64"), (2, 3)),
        "tens": TorchTensorField(torch.int32, (5,)),
    }, page_size=1 << 21, num_workers=1).from_indexed_dataset(
        Rich(24, lambda i: (20, 20)))
    records = Records()
    others = dict.fromkeys(("score", "blob", "meta", "vec", "tens"))

    def look(name, pipelines, batches=1, **options):
        loader = Loader(path, 8, num_workers=2, pipelines=pipelines, **options)
        for i, batch in zip(range(batches), loader):
            records.keep(f"{name}{i}", batch)

    look("same.default", {"blob": None, "meta": None}, 3)
    loader = Loader(path, 8, num_workers=2, pipelines={
        **others, "image": None, "label": None, "meta": [
            BytesDecoder(), ToTensor()]})
    meta, = next(iter(loader))
    # FFCV does not define the bytes behind a value.
    records.look("json", (meta,))
    assert JSONField.unpack(meta) == [{"i": i} for i in range(8)]
    look("same.arrays", {**others, "image": [SimpleRGBImageDecoder()],
                         "label": [IntDecoder()], "score": [FloatDecoder()],
                         "vec": [NDArrayDecoder()]})
    look("same.indices", {**others}, 2, indices=[7, 3, 20, 1, 11, 2],
         drop_last=False)
    look("same.own", {
        **others, "image": [SimpleRGBImageDecoder(), Invert(), ToTensor(),
                            ToTorchImage(channels_last=False),
                            Convert(torch.int32), ModuleWrapper(
                                torch.nn.ReflectionPad2d(2))],
        "label": [IntDecoder(), ToTensor(), Squeeze(), Convert(torch.float32)],
    }, 3)
    scale = Scale()
    look("same.shared", {
        **others, "image": [CenterCropRGBImageDecoder((8, 8), 0.5), ToTensor(),
                            Convert(torch.int64), scale],
        "label": [IntDecoder(), ToTensor(), scale]}, 2)
    mask = np.random.default_rng(0).integers(0, 256, (20, 20, 3))
    alpha = np.linspace(0, 1, 400).reshape(20, 20)
    look("float.poison", {
        **others, "image": [SimpleRGBImageDecoder(), Poison(
            mask, alpha, [3, 1, 9], clamp=(10, 240)), ToTensor()],
        "label": [IntDecoder(), ReplaceLabel([2, 10], 77), ToTensor()]}, 2)
    look("same.view", {**others, "label": None, "image": None, "tens": [
        NDArrayDecoder(), ToTensor(), View(torch.uint8)]})
    look("same.decoder", {**others, "image": [Widths(), ToTensor()]}, 3)
    records.save(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
