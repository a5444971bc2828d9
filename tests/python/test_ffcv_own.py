# SPDX-License-Identifier: Apache-2.0
"""Decoders, fields, iterators and loaders of users' own, as public projects
have them, on this package."""
import os
import pathlib
import subprocess
import sys
import time
from dataclasses import replace
from queue import Queue
from threading import Event, Thread

import numpy as np
import pytest

torch = pytest.importorskip("torch")
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not built", allow_module_level=True)
sys.path.insert(0, str(BUILD / "python"))

from betonfs.ffcv import libffcv  # noqa: E402
from betonfs.ffcv import transforms as T  # noqa: E402
from betonfs.ffcv.epoch_iterator import EpochIterator  # noqa: E402
from betonfs.ffcv.fields import (  # noqa: E402
    IMAGE_MODES, BasicDecoder, BytesField, IntDecoder, IntField,
    NDArrayDecoder, NDArrayField, RGBImageField,
    RandomResizedCropRGBImageDecoder, SimpleRGBImageDecoder, encode_jpeg,
    get_center_crop, get_random_crop)
from betonfs.ffcv.fields.base import ARG_TYPE, Field  # noqa: E402
from betonfs.ffcv.loader import (  # noqa: E402
    ORDER_MAP, Loader, OrderOption)
from betonfs.ffcv.memory_managers import OSCacheManager  # noqa: E402
from betonfs.ffcv.pipeline import Compiler, PipelineSpec  # noqa: E402
from betonfs.ffcv.pipeline.graph import Graph  # noqa: E402
from betonfs.ffcv.pipeline.operation import (  # noqa: E402
    AllocationQuery, Operation)
from betonfs.ffcv.pipeline.state import State  # noqa: E402
from betonfs.ffcv.reader import Reader  # noqa: E402
from betonfs.ffcv.traversal_order import (  # noqa: E402
    Random, TraversalOrder)
from betonfs.ffcv.writer import DatasetWriter  # noqa: E402

N, B = 12, 4


def image(i, height=24, width=32):
    rng = np.random.default_rng(i)
    small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return small.repeat(8, 0).repeat(8, 1)


class Samples:
    def __init__(self, sizes=((24, 32),)):
        self.sizes = sizes

    def __len__(self):
        return N

    def __getitem__(self, i):
        return image(i, *self.sizes[i % len(self.sizes)]), i


@pytest.fixture(scope="module", autouse=True)
def plain(tmp_path_factory):
    """Compiling is another test's; here the code runs as Python."""
    os.environ["BETON_CACHE_DIR"] = str(tmp_path_factory.mktemp("code"))
    Compiler.set_enabled(False)
    yield
    Compiler.set_enabled(True)


def write(path, mode, sizes=((24, 32),)):
    DatasetWriter(path, {"image": RGBImageField(write_mode=mode,
                                                jpeg_quality=95),
                         "label": IntField()},
                  num_workers=1).from_indexed_dataset(Samples(sizes))
    return path


@pytest.fixture(scope="module", params=["jpg", "raw"])
def path(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("own") / "x.beton", request.param)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return write(tmp_path_factory.mktemp("own") / "y.beton", "jpg",
                 ((24, 32), (48, 40)))


LABEL = [IntDecoder(), T.ToTensor(), T.Squeeze()]


# --- decoders ---

class MultiView(SimpleRGBImageDecoder):
    """Several random crops of every image."""

    def __init__(self, size, views):
        super().__init__()
        self.size, self.views = size, views

    def declare_state_and_memory(self, previous_state):
        shape = self.views, self.size, self.size, 3
        most = int(self.metadata["width"].max()) * int(
            self.metadata["height"].max()) * 3
        return (replace(previous_state, jit_mode=True, shape=shape,
                        dtype=np.dtype("u1")),
                (AllocationQuery(shape, np.dtype("u1")),
                 AllocationQuery((most,), np.dtype("u1"))))

    def generate_code(self):
        read, views = self.memory_read, self.views
        decode = Compiler.compile(libffcv.imdecode)
        resize = Compiler.compile(libffcv.resize_crop)
        crop = Compiler.compile(get_random_crop)
        scale, ratio = np.array((0.3, 1.0)), np.array((0.75, 4 / 3))
        jpg = IMAGE_MODES["jpg"]

        def code(batch_indices, my_storage, metadata, storage_state):
            out, whole = my_storage
            for k in range(len(batch_indices)):
                field = metadata[batch_indices[k]]
                data = read(field["data_ptr"], storage_state)
                h, w = np.uint32(field["height"]), np.uint32(field["width"])
                if field["mode"] == jpg:
                    buffer = whole[k]
                    decode(data, buffer, h, w, h, w, 0, 0, 1, 1, False, False)
                    pixels = buffer[:3 * h * w].reshape(h, w, 3)
                else:
                    pixels = data.reshape(h, w, 3)
                for v in range(views):
                    y, x, rows, columns = crop(h, w, scale, ratio)
                    resize(pixels, y, y + rows, x, x + columns, out[k, v])
            return out[:len(batch_indices)]
        return code


def batches(loader):
    with_loader = [tuple(torch.as_tensor(v).clone() for v in b)
                   for b in loader]
    loader.close()
    return with_loader


def test_a_decoder_of_several_views(path):
    def run(seed):
        return batches(Loader(path, B, 2, seed=seed, pipelines={
            "image": [MultiView(16, 3), T.ToTensor()], "label": LABEL}))
    first = run(1)
    assert [tuple(b[0].shape) for b in first] == [(B, 3, 16, 16, 3)] * 3
    assert first[0][0][0, 0].float().std() > 10
    assert not (first[0][0][:, 0] == first[0][0][:, 1]).all()
    assert all((a[0] == b[0]).all() for a, b in zip(first, run(1)))
    assert not all((a[0] == b[0]).all() for a, b in zip(first, run(2)))


def test_decoders_compiled_by_numba_do_the_same(path):
    pytest.importorskip("numba")
    def run():
        return batches(Loader(path, B, 2, seed=1, pipelines={
            "image": [MultiView(16, 2), T.ToTensor()], "label": None, "same":
            PipelineSpec("image", Same(), [T.ToTensor()])}))
    plain = run()
    Compiler.set_enabled(True)
    try:
        compiled = run()
    finally:
        Compiler.set_enabled(False)
    for (a, b), (c, d) in zip(plain, compiled):
        assert (b == d).all() and a.shape == c.shape
        assert c[:, 0].float().std() > 10


class Corner(RandomResizedCropRGBImageDecoder):
    @property
    def get_crop_generator(self):
        return lambda height, width, scale, ratio: (0, 0, 8, 8)


class Same(SimpleRGBImageDecoder):
    def generate_code(self):
        return super().generate_code()


def test_indices_may_be_a_mask(path):
    mask = np.arange(N) % 3 == 1
    got = batches(Loader(path, 2, indices=mask, pipelines={
        "image": None, "label": LABEL}))
    assert sorted(int(i) for b in got for i in b[0]) == \
        np.flatnonzero(mask).tolist()


def test_a_decoder_may_have_its_own_crop(mixed):
    plain = batches(Loader(mixed, B, pipelines={
        "image": [Corner((8, 8)), T.ToTensor()], "label": LABEL}))
    got = torch.cat([b[0] for b in plain]).numpy()
    for i in range(N):
        want = image(i, *((24, 32), (48, 40))[i % 2])[:8, :8]
        assert np.abs(got[i].astype(int) - want).mean() < 12


@pytest.mark.parametrize("corner,row,column", [
    ("top_left", 0, 0), ("top_right", 0, 20), ("bottom_left", 12, 0),
    ("bottom_right", 12, 20)])
def test_crops_of_corners(tmp_path, corner, row, column):
    path = write(tmp_path / "raw.beton", "raw")
    for images, labels in batches(Loader(path, B, pipelines={
            "image": [T.CornerCrop((12, 12), 0.5, corner), T.ToTensor()],
            "label": LABEL})):
        for pixels, i in zip(images, labels):
            want = image(int(i))[row:row + 12, column:column + 12]
            assert (pixels.numpy() == want).all()


def test_a_corner_that_is_none():
    with pytest.raises(ValueError, match="middle.*bottom_right"):
        T.CornerCrop((8, 8), 0.5, "middle")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mode", ["jpg", "raw"])
def test_images_padded_to_the_largest(tmp_path, mode, compiled):
    if compiled:
        pytest.importorskip("numba")
    sizes = (24, 32), (48, 40), (8, 56)
    path = write(tmp_path / "y.beton", mode, sizes)
    Compiler.set_enabled(compiled)
    try:
        got = batches(Loader(path, B, pipelines={
            "image": [T.PadRGBImageDecoder(), T.ToTensor()],
            "label": LABEL}))
    finally:
        Compiler.set_enabled(False)
    for images, labels in got:
        for pixels, i in zip(images.numpy().astype(int), labels):
            height, width = sizes[int(i) % 3]
            want = np.zeros((48, 56, 3), int)
            want[:height, :width] = image(int(i), height, width)
            assert np.abs(pixels - want).mean() < 12 * (mode == "jpg") + 1e-9
            assert not pixels[height:].any() and not pixels[:, width:].any()


def test_inherited_decoders_agree_with_the_library(path):
    a, b = (batches(Loader(path, B, pipelines={
        "image": [d, T.ToTensor()], "label": LABEL}))
        for d in (SimpleRGBImageDecoder(), Same()))
    for (x, i), (y, k) in zip(a, b):
        assert (x == y).all() and (i == k).all()


def test_an_own_decoder_reports_that_sizes_differ(mixed):
    with pytest.raises(TypeError, match="from 32 to 40.*Same.*one size"):
        batches(Loader(mixed, B, pipelines={"image": [Same()]}))


class Mask(NDArrayDecoder):
    """Class numbers of pixels, the nearest of each kept, at half the size."""

    def declare_state_and_memory(self, previous_state):
        height, width = self.field.shape
        shape = height // 2, width // 2
        return (replace(previous_state, jit_mode=True, shape=shape,
                        dtype=np.dtype("u1")),
                AllocationQuery(shape, np.dtype("u1")))

    def generate_code(self):
        read, shape = self.memory_read, self.field.shape

        def code(indices, destination, metadata, storage_state):
            for k in range(len(indices)):
                data = read(metadata[indices[k]], storage_state)
                destination[k] = data.reshape(shape)[::2, ::2]
            return destination
        return code


def test_a_decoder_of_masks(tmp_path):
    masks = np.random.default_rng(3).integers(0, 5, (N, 8, 6), dtype=np.uint8)
    DatasetWriter(tmp_path / "m", {"mask": NDArrayField(np.dtype("u1"), (8, 6)),
                                   "label": IntField()},
                  num_workers=1).from_indexed_dataset(
                      [(masks[i], i) for i in range(N)])
    got = batches(Loader(tmp_path / "m", B, pipelines={
        "mask": [Mask(), T.ToTensor()], "label": LABEL}))
    assert (torch.cat([b[0] for b in got]).numpy() == masks[:, ::2, ::2]).all()


# --- on a mount ---

@pytest.fixture
def mount(tmp_path):
    """A function that mounts a file."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no /dev/fuse")
    if not (BUILD / "betonfs").exists():
        pytest.skip("the daemon is not built")
    where, daemons = tmp_path / "mount", []

    def start(path):
        where.mkdir()
        daemons.append(subprocess.Popen([BUILD / "betonfs", "-f", path,
                                         where]))
        deadline = time.monotonic() + 60
        while not (where / "dataset.json").exists():
            assert daemons[0].poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        return where
    yield start
    for daemon in daemons:
        subprocess.run(["fusermount3", "-u", "-z", where], check=True)
        daemon.wait(60)


def test_decoders_of_users_read_a_mounted_file(mixed, mount):
    def run(of):
        return batches(Loader(of, B, seed=1, pipelines={
            "image": [MultiView(8, 2), T.ToTensor()], "label": LABEL}))
    for (a, i), (b, k) in zip(run(mixed), run(mount(mixed)), strict=True):
        assert (a == b).all() and (i == k).all()


def test_fields_of_users_are_read_on_a_mount(tmp_path, mount):
    DatasetWriter(tmp_path / "b", {"boxes": BoxesField(5, "f4"),
                                   "label": IntField()},
                  num_workers=1).from_indexed_dataset(
                      [(boxes(i), i) for i in range(N)])
    got = batches(Loader(mount(tmp_path / "b"), B, custom_fields={
        "boxes": BoxesField}, pipelines={"label": LABEL}))
    for b in got:
        for box, i in zip(b[0].numpy(), b[1].tolist()):
            assert (box[:i % 4] == boxes(i)).all() and not box[i % 4:].any()


def test_a_mounted_file_that_cannot_be_read_is_reported(tmp_path, mount):
    path = write(tmp_path / "x.beton", "jpg")
    where = mount(path)
    path.rename(tmp_path / "y.beton")
    with pytest.raises(ValueError, match="Same reads .* give the Loader"):
        Loader(where, B, pipelines={"image": [Same()]})


# --- fields ---

class BoxesDecoder(Operation):
    def declare_state_and_memory(self, previous_state):
        shape = int(self.metadata["len"].max()), self.field.columns
        return (replace(previous_state, jit_mode=True, shape=shape,
                        dtype=self.field.dtype),
                AllocationQuery(shape, self.field.dtype))

    def generate_code(self):
        read = self.memory_read
        copy = Compiler.compile(libffcv.memcpy)

        def code(indices, destination, metadata, storage_state):
            for k in range(len(indices)):
                destination[k] = 0
                copy(read(metadata[indices[k]]["ptr"], storage_state),
                     destination[k])
            return destination
        return code


class BoxesField(Field):
    """Rows of numbers, as many as a sample has."""

    def __init__(self, columns, dtype):
        self.columns, self.dtype = columns, np.dtype(dtype)

    metadata_type = np.dtype([("ptr", "<u8"), ("len", "<u8")])

    @staticmethod
    def from_binary(binary):
        raw = np.asarray(binary).view("u1").reshape(-1)
        return BoxesField(int(raw[0]), raw[1:4].tobytes().decode())

    def to_binary(self):
        out = np.zeros(1, ARG_TYPE)
        text = bytes([self.columns]) + self.dtype.str.encode()
        out.view("u1")[:len(text)] = np.frombuffer(text, "u1")
        return out[0]

    def encode(self, destination, field, malloc):
        data = np.ascontiguousarray(field, self.dtype).reshape(-1).view("u1")
        ptr, buffer = malloc(data.size)
        buffer[:] = data
        destination["ptr"] = ptr
        destination["len"] = len(field)

    def get_decoder_class(self):
        return BoxesDecoder


class SizeDecoder(BasicDecoder):
    dtype = np.dtype("<i4")


class SizeField(Field):
    metadata_type = np.dtype("<i4")

    @staticmethod
    def from_binary(binary):
        return SizeField()

    def to_binary(self):
        return np.zeros(1, ARG_TYPE)[0]

    def encode(self, destination, field, malloc):
        destination[0] = field

    def get_decoder_class(self):
        return SizeDecoder


def boxes(i):
    return np.arange(5 * (i % 4), dtype="f4").reshape(-1, 5) + i


@pytest.fixture(scope="module")
def boxed(tmp_path_factory):
    path = tmp_path_factory.mktemp("boxes") / "b.beton"
    samples = [(image(i), boxes(i), 100 * i, i, bytes([i] * i))
               for i in range(N)]
    DatasetWriter(path, {
        "image": RGBImageField(write_mode="jpg"), "boxes": BoxesField(5, "f4"),
        "size": SizeField(), "label": IntField(), "blob": BytesField()},
        num_workers=1).from_indexed_dataset(samples)
    return path


OWN = {"boxes": BoxesField, "size": SizeField}


@pytest.mark.parametrize("custom", [
    OWN, {"boxes": BoxesField(5, "f4"), "size": SizeField()}])
def test_fields_of_users_are_written_and_read(boxed, custom):
    got = batches(Loader(boxed, B, custom_fields=custom, pipelines={
        "image": [SimpleRGBImageDecoder(), T.ToTensor()],
        "boxes": [BoxesDecoder(), T.ToTensor()],
        "size": [SizeDecoder(), T.ToTensor(), T.View(-1)]}))
    columns = [torch.cat(c).numpy() for c in zip(*got)]
    pictures, box, size, label, blob = columns
    for i in range(N):
        want = np.zeros((3, 5), "f4")
        want[:i % 4] = boxes(i)
        assert (box[i] == want).all()
        assert np.abs(pictures[i].astype(int) - image(i)).mean() < 15
        assert blob[i].tolist() == [i] * i + [0] * (N - 1 - i)
    assert size.tolist() == [100 * i for i in range(N)]
    assert label[:, 0].tolist() == list(range(N))


@pytest.mark.parametrize("order", list(OrderOption))
def test_fields_of_users_come_in_every_order(boxed, order):
    loader = Loader(boxed, B, order=order, seed=2, custom_fields=OWN,
                    pipelines={"boxes": None, "image": None, "blob": None})
    want = loader.next_traversal_order().tolist()
    got = batches(loader)
    assert [i for b in got for i in b[1][:, 0].tolist()] == want
    assert [i // 100 for b in got for i in b[0][:, 0].tolist()] == want


class ShortDecoder(BasicDecoder):
    dtype = np.dtype("<u2")


class ShortField(SizeField):
    metadata_type = np.dtype("<u2")

    @staticmethod
    def from_binary(binary):
        return ShortField()

    def get_decoder_class(self):
        return ShortDecoder


def test_a_layout_that_only_the_reader_has_is_no_warning(tmp_path, caplog):
    own = {"size": SizeField, "short": ShortField}
    DatasetWriter(tmp_path / "l", {
        "image": RGBImageField(), "size": SizeField(), "short": ShortField(),
        "label": IntField()}, num_workers=1).from_indexed_dataset(
            [(image(0), 70000 + i, i, i) for i in range(N)])
    loader = Loader(tmp_path / "l", B, custom_fields=own)
    assert loader.reader.fields[0]["unusable"]
    columns = [torch.cat(c)[:, 0].tolist() for c in zip(*(
        b[1:] for b in batches(loader)))]
    assert columns == [[70000 + i for i in range(N)], *[list(range(N))] * 2]
    assert not caplog.messages


class Halved(RGBImageField):
    """Makes images smaller in its own way; sets all of a record itself."""

    def __init__(self, mode):
        self.mode = mode

    def encode(self, destination, pixels, malloc):
        pixels = np.ascontiguousarray(pixels[::2, ::2])
        destination["mode"] = IMAGE_MODES[self.mode]
        destination["height"], destination["width"] = pixels.shape[:2]
        data = encode_jpeg(pixels, 95) if self.mode == "jpg" else \
            pixels.reshape(-1)
        destination["data_ptr"], storage = malloc(data.nbytes)
        storage[:] = data


@pytest.mark.parametrize("mode", list(IMAGE_MODES))
@pytest.mark.parametrize("more", [{}, {"size": SizeField()}])
def test_an_image_field_may_store_images_itself(tmp_path, mode, more):
    DatasetWriter(tmp_path / "h", {"image": Halved(mode), "label": IntField(),
                                   **more}, num_workers=2).from_indexed_dataset(
        [(image(i), i, i)[:2 + len(more)] for i in range(N)])
    got = batches(Loader(tmp_path / "h", N, custom_fields={
        "image": Halved, **{name: SizeField for name in more}}, pipelines={
            "image": [SimpleRGBImageDecoder(), T.ToTensor()]}))
    for i, pixels in enumerate(got[0][0].numpy()):
        want = image(i)[::2, ::2]
        assert np.abs(pixels.astype(int) - want).mean() <= (
            20 if mode == "jpg" else 0)


def test_an_unknown_field_is_refused(boxed):
    with pytest.raises(ValueError, match="'boxes'.*custom_fields"):
        Loader(boxed, B)
    with pytest.raises(ValueError, match="'boxes'.*custom_fields"):
        Reader(boxed)


def test_a_sample_of_users_fields_fits_a_page(tmp_path):
    big = np.zeros((2**21 // 20, 5), "f4")
    samples = [(big[:len(big) - 60000 * (i % 2)],) for i in range(4)]
    DatasetWriter(tmp_path / "p", {"boxes": BoxesField(5, "f4")}, 2**21,
                  1).from_indexed_dataset(samples)
    table = Reader(tmp_path / "p", {"boxes": BoxesField}).alloc_table
    first, last = table["ptr"], table["ptr"] + table["size"] - np.uint64(1)
    assert (first // 2**21 == last // 2**21).all()
    with pytest.raises(ValueError, match="sample 0.*page"):
        DatasetWriter(tmp_path / "q", {"boxes": BoxesField(5, "f4")}, 2**21,
                      1).from_indexed_dataset([(np.zeros((2**20, 5)),)])
    assert not (tmp_path / "q").exists()


# --- names of classes ---

class Folder(Samples):
    """As torchvision's ImageFolder."""

    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def __getitem__(self, i):
        return image(i), i % 2, i


NAMES = ["cat", "Löwe"]
FOLDER = {"image": RGBImageField(), "label": IntField()}


def names_in(path, fields, dataset, custom={}):
    DatasetWriter(path, fields, num_workers=1).from_indexed_dataset(dataset)
    reader = Reader(path, custom)
    loader = Loader(path, N, custom_fields=custom, pipelines={"image": None})
    (labels, *_), = batches(loader)
    assert labels[:, 0].tolist() == [i % 2 for i in range(N)]
    return {f["name"]: list(f["classes"]) for f in reader.fields
            if f["classes"]}


class Pairs(Folder):
    def __getitem__(self, i):
        return super().__getitem__(i)[:2]


def test_names_of_classes_are_kept(tmp_path):
    for names in NAMES, [f"class {i}" * 40 for i in range(1000)]:
        dataset = torch.utils.data.Subset(Pairs(names), range(N))
        assert names_in(tmp_path / "f", FOLDER, dataset) == {"label": names}
        own = {**FOLDER, "size": SizeField()}
        assert names_in(tmp_path / "g", own, Folder(names), {
            "size": SizeField}) == {"label": names}


@pytest.mark.parametrize("names", [
    None, [], [1, 2], ["a", ""], ["a\n"], ["a\0"], ["x" * 2 ** 20]])
def test_names_that_cannot_be_kept_are_no_error(tmp_path, names):
    assert names_in(tmp_path / "f", FOLDER, Pairs(names)) == {}


def test_names_of_classes_need_one_field_of_labels(tmp_path):
    two = {**FOLDER, "index": IntField()}
    assert names_in(tmp_path / "f", two, Folder(NAMES)) == {}


# --- loaders ---

class Batched(EpochIterator):
    """Batches of any sizes, with their numbers, and a queue of its own."""

    def __init__(self, loader, batches):
        Thread.__init__(self, daemon=True)
        self.loader, self.batches = loader, batches
        self.metadata = loader.reader.metadata
        self.current_batch_slot = 0
        self.iter_ixes = iter(batches)
        self.closed = False
        self.output_queue = Queue(loader.batches_ahead)
        self.terminate_event = Event()
        self.memory_context = loader.memory_manager.schedule_epoch(batches)
        self.memory_context.__enter__()
        self.storage_state = self.memory_context.state
        self.cuda_streams = [None] * (loader.batches_ahead + 2)
        self.memory_allocations = loader.graph.allocate_memory(
            max(map(len, batches)), loader.batches_ahead + 2)
        self.taken = 0
        self.start()

    def __next__(self):
        result = self.output_queue.get()
        if result is None:
            self.close()
            raise StopIteration
        _, batch = result
        self.taken += 1
        return self.batches[self.taken - 1], batch


class BatchSampled(Loader):
    """A sampler chooses the samples of each batch."""

    def __init__(self, *args, batch_sampler, **named):
        self.batch_sampler = []
        super().__init__(*args, **named)
        self._args["batch_sampler"] = batch_sampler
        self.batch_sampler = batch_sampler

    def next_traversal_order(self):
        return list(self.batch_sampler)

    def __iter__(self):
        order = self.next_traversal_order()
        self.next_epoch += 1
        if self.code is None or self.recompile:
            self.generate_code()
        return Batched(self, order)

    def __len__(self):
        return len(self.batch_sampler)


CROPS = {"image": [RandomResizedCropRGBImageDecoder((8, 8)),
                   T.RandomHorizontalFlip(), T.ToTensor(), T.ToTorchImage(),
                   T.Convert(torch.float32)], "label": LABEL}


def test_a_loader_with_a_batch_sampler(mixed):
    sampled = [[3, 3, 1], [0, 11], [5]]
    loader = BatchSampled(mixed, B, seed=1, pipelines=CROPS,
                          batch_sampler=sampled)
    assert len(loader) == 3
    for _ in range(2):
        got = [(ids, images, labels) for ids, (images, labels) in loader]
        assert [ids for ids, _, _ in got] == sampled
        assert [labels.tolist() for _, _, labels in got] == sampled
        assert [tuple(x.shape) for _, x, _ in got] == [
            (3, 3, 8, 8), (2, 3, 8, 8), (1, 3, 8, 8)]
    only = loader.filter("label", lambda label: label < 3)
    assert only.indices.tolist() == [0, 1, 2]


class Multi(Loader):
    """Sets everything itself, and has outputs of one field by many names."""

    def __init__(self, fname, batch_size, pipelines, order, seed=1):
        self._args = {}
        self.fname, self.batch_size, self.seed = fname, batch_size, seed
        self.batches_ahead, self.num_workers = 3, 2
        self.drop_last, self.distributed = True, False
        self.recompile, self.code, self.next_epoch = False, None, 0
        self.reader = Reader(fname, {})
        self.indices = np.arange(self.reader.num_samples, dtype="uint64")
        self.memory_manager = OSCacheManager(self.reader)
        self.traversal_order = ORDER_MAP[order](self)
        read = self.memory_manager.compile_reader()
        self.pipelines, self.pipeline_specs = {}, dict(pipelines)
        numbers = {n: k for k, n in enumerate(self.reader.handlers)}
        self.field_name_to_f_ix = {name: numbers[spec.source]
                                   for name, spec in pipelines.items()}
        self.field_name_to_f_ix.update(numbers)
        self.graph = Graph(self.pipeline_specs, self.reader.handlers,
                           self.field_name_to_f_ix, self.reader.metadata, read)
        self.generate_code()
        self.first_traversal_order = self.next_traversal_order()


def views():
    return {"a": PipelineSpec("image", RandomResizedCropRGBImageDecoder(
                (8, 8)), [T.ToTensor()]),
            "label": PipelineSpec("label", IntDecoder(),
                                  [T.ToTensor(), T.View(-1)]),
            "b": PipelineSpec("image", Corner((8, 8)), [T.ToTensor()])}


@pytest.mark.parametrize("order", list(OrderOption))
def test_a_loader_that_sets_all_its_parts(mixed, order):
    loader = Multi(mixed, 5, views(), order)
    assert len(loader) == 2
    epochs = [[tuple(v.clone() for v in b) for b in loader] for _ in range(2)]
    for epoch in epochs:
        assert [tuple(v.shape) for v in epoch[0]] == [
            (5, 8, 8, 3), (5,), (5, 8, 8, 3)]
        labels = torch.cat([b[1] for b in epoch]).tolist()
        assert len(set(labels)) == 10
        for a, ids, b in epoch:
            for i, corner in zip(ids.tolist(), b.numpy()):
                want = image(i, *((24, 32), (48, 40))[i % 2])[:8, :8]
                assert np.abs(corner.astype(int) - want).mean() < 12
    same = [[v[1].tolist() for v in epoch] for epoch in epochs]
    assert (same[0] == same[1]) == (order == OrderOption.SEQUENTIAL)


class Odd(Loader):
    """The same numbers again and again."""

    def next_traversal_order(self):
        return np.array([7, 7, 2, 2, 7, 9])


def test_an_order_with_numbers_twice(mixed):
    loader = Odd(mixed, 4, pipelines=CROPS, drop_last=False)
    assert len(loader) == 2
    assert [b[1].tolist() for b in loader] == [[7, 7, 2, 2], [7, 9]]


class Sampled(Loader):
    """Takes an order of its own once the rest is made."""

    def __init__(self, sampled, *args, **named):
        super().__init__(*args, **named)
        self.traversal_order = Given(self, sampled)
        self.generate_code()
        self.first_traversal_order = self.next_traversal_order()


class Given(TraversalOrder):
    def __init__(self, loader, sampled):
        super().__init__(loader)
        self.sampled = sampled

    def sample_order(self, epoch):
        return np.array(self.sampled[epoch % 2])


def test_an_order_is_exchanged_for_one_of_a_users(mixed):
    epochs = [[5, 5, 1, 0, 11, 5, 2], [1, 1, 1, 2, 2, 2, 3]]
    for drop_last, n in (True, 1), (False, 2):
        loader = Sampled(epochs, mixed, B, pipelines=CROPS,
                         drop_last=drop_last)
        for want in epochs:
            assert len(loader) == n
            got = [i for b in loader for i in b[1].tolist()]
            assert got == want[:n * B]
        loader.close()


def test_parts_of_a_loader_are_exchanged(path):
    """As fastxtend and others do between epochs."""
    def ids():
        batches = [b[0].tolist() for b in loader]
        assert len(batches) == len(loader)
        return batches
    loader = Loader(path, 5, order=OrderOption.SEQUENTIAL, pipelines={
        "image": None, "label": LABEL})
    assert [len(b) for b in ids()] == [5, 5]
    loader.drop_last = False
    assert len(loader) == 3
    assert [len(b) for b in ids()] == [5, 5, 2]
    loader.batch_size = 6
    assert len(loader) == 2
    assert ids() == [list(range(6)), list(range(6, 12))]
    loader.traversal_order = Random(loader)
    assert sum(ids(), []) != list(range(N))
    loader.indices = np.arange(3, 8)
    assert sorted(sum(ids(), [])) == list(range(3, 8))
    loader.close()


class Wrong(Operation):
    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=False), None

    def generate_code(self):
        def wrong(value, _):
            raise RuntimeError("of the user's")
        return wrong


def test_an_error_of_an_operation_is_raised(mixed):
    pipelines = {**CROPS, "label": [IntDecoder(), T.ToTensor(), Wrong()]}
    for loader in (Odd(mixed, 4, pipelines=pipelines),
                   BatchSampled(mixed, 4, pipelines=pipelines,
                                batch_sampler=[[1, 2]])):
        with pytest.raises(RuntimeError, match="of the user's"):
            list(loader)


def test_an_epoch_that_is_left_ends_its_thread(mixed):
    epoch = iter(Odd(mixed, 1, pipelines=CROPS, batches_ahead=1))
    next(epoch)
    epoch.close()
    epoch.join(30)
    assert not epoch.is_alive()


EXIT = """
import sys
import torch
from betonfs.ffcv.fields.decoders import IntDecoder
from betonfs.ffcv.loader import Loader
from betonfs.ffcv.transforms import ToTensor

class Own(Loader):
    def next_traversal_order(self):
        return super().next_traversal_order()

class Slow(torch.nn.Module):
    def forward(self, x):
        for _ in range(200):
            torch.rand(20000).sort()
        return x

loader = Own(sys.argv[1], 1, num_workers=1, batches_ahead=9, pipelines={
    "image": None, "label": [IntDecoder(), ToTensor(), Slow()]})
print(int(next(iter(loader))[0]))
"""


def test_a_program_may_end_within_an_epoch(mixed):
    """A thread that is in torch's code when Python ends is the end of it by
    SIGABRT."""
    done = subprocess.run(
        [sys.executable, "-c", EXIT, mixed], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, timeout=120)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_orders_are_those_of_the_loader(path):
    for order in OrderOption:
        loader = Loader(path, B, order=order, seed=3, pipelines={
            "image": None, "label": LABEL})
        for epoch in range(2):
            want = ORDER_MAP[order](loader).sample_order(epoch).tolist()
            assert loader.next_traversal_order().tolist() == want
            assert [i for b in loader for i in b[0].tolist()] == want
        loader.close()


def test_an_order_of_a_users_may_be_a_subclass(path):
    class Backwards(Random):
        def sample_order(self, epoch):
            return super().sample_order(epoch)[::-1]
    plain, turned = (Loader(path, B, order=order, seed=3, pipelines={
        "image": None, "label": LABEL}) for order in (Random, Backwards))
    first, second = ([i for b in x for i in b[0].tolist()]
                     for x in (plain, turned))
    assert first == second[::-1] != sorted(first)


# --- forks ---

def test_ffcv_ssl_has_outputs_of_one_field(mixed):
    loader = Loader(path=mixed, batch_size=B, order=OrderOption.RANDOM, seed=1,
                    custom_field_mapper={"image2": "image"}, pipelines={
        "image": [T.RandomResizedCrop((8, 8), ratio=(0.5, 1)), T.ToTensor()],
        "image2": [T.CenterCrop((6, 6), 1), T.RandomGrayscale(seed=0),
                   T.ToTensor()], "label": LABEL})
    image1, label, image2 = next(iter(loader))
    assert image1.shape == (B, 8, 8, 3) and image2.shape == (B, 6, 6, 3)
    assert loader._args["fname"] == mixed and loader.path == str(mixed)
    loader.close()
    again = Loader(mixed, B, OrderOption.RANDOM, 2, pipelines={
        "image": None, "label": LABEL})
    assert isinstance(again.traversal_order, Random)
    assert again.num_workers == 2


class Gain(Operation):
    """Runs as Python, by NumPy: nothing before it makes tensors."""

    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=False), AllocationQuery(
            previous_state.shape, previous_state.dtype)

    def generate_code(self):
        def code(images, out):
            for k in range(images.shape[0]):
                np.minimum(images[k].astype("u2") * 2, 255, out=out[k],
                           casting="unsafe")
            return out
        return code


def test_python_before_to_tensor_gets_arrays(path):
    begin = [SimpleRGBImageDecoder()]
    plain, more = (batches(Loader(path, B, pipelines={
        "image": ops, "label": LABEL})) for ops in (
            [*begin, T.ToTensor()], [*begin, Gain(), T.ToTensor()]))
    for (a, _), (b, _) in zip(plain, more):
        assert (b == (a.int() * 2).clamp(max=255)).all()


class Negative(T.RandomHorizontalFlip):
    """Other code, in the memory that FFCV's operation asks for."""

    def generate_code(self):
        numbers = Compiler.get_iterator()

        def code(images, out):
            for k in numbers(images.shape[0]):
                out[k] = 255 - images[k]
            return out
        code.is_parallel = True
        return code


class Small(T.RandomResizedCrop):
    def generate_code(self):
        def code(images, out):
            out[:] = images[:, :8, :8]
            return out
        return code


def test_a_subclass_of_an_operation_has_its_memory(path):
    plain, other, small = (batches(Loader(path, B, pipelines={
        "image": [SimpleRGBImageDecoder(), *ops, T.ToTensor()],
        "label": LABEL})) for ops in (
            [], [Negative()], [Small((0.5, 1), (1, 1), 8)]))
    for (a, _), (b, _), (c, _) in zip(plain, other, small):
        assert (b == 255 - a).all() and (c == a[:, :8, :8]).all()


@pytest.mark.parametrize("op, same", [
    (T.RandomHorizontalFlip(1.0), lambda x: x[:, :, ::-1]),
    (T.Cutout(24, (9, 9, 9)), None), (T.RandomBrightness(0.3), None),
    (T.ReplaceLabel([2], 5), lambda x: np.r_[x[:2], [x[2] * 0 + 5], x[3:]])])
def test_code_of_an_operation_is_called_by_hand(op, same):
    """As FFCV's, with the memory, and with indices where it has them."""
    images = np.stack([image(i) for i in range(B)])
    code = op.generate_code()
    state = State(True, torch.device("cpu"), images.shape[1:], images.dtype)
    _, query = op.declare_state_and_memory(state)
    assert query is None
    more = [np.arange(B)] if getattr(code, "with_indices", False) else []
    for given in [], more:
        out = code(images.copy(), None, *given)
        assert out.shape == images.shape
        assert same is None or (out == same(images)).all()


class Counted(Operation):
    """Takes the batch's number too, after the samples' where it has them."""

    def __init__(self, with_indices):
        super().__init__()
        self.with_indices = with_indices

    def declare_state_and_memory(self, previous_state):
        return replace(previous_state, jit_mode=True), AllocationQuery(
            previous_state.shape, previous_state.dtype)

    def generate_code(self):
        if self.with_indices:
            def code(values, out, indices, counter):
                out[:] = 0 * values + indices.reshape(-1, 1) + 100 * counter
                return out
            code.with_indices = True
        else:
            def code(values, out, counter):
                out[:] = values + 100 * counter
                return out
        code.with_counter = True
        return code


class CountedSame(Same):
    def generate_code(self):
        plain = super().generate_code()

        def code(indices, out, metadata, storage, counter):
            out = plain(indices, out, metadata, storage)
            out[:] = counter
            return out
        code.with_counter = True
        return code


@pytest.mark.parametrize("with_indices", [False, True])
def test_ffcv_ssl_counts_batches(path, with_indices):
    loader = Loader(path, B, pipelines={
        "image": [CountedSame()],
        "label": [IntDecoder(), Counted(with_indices), T.ToTensor(),
                  T.View(-1)]})
    for _ in range(2):
        for number, (images, labels) in enumerate(loader):
            assert (images == number).all()
            assert labels.tolist() == [number * (100 + B) + i
                                       for i in range(B)]
    loader.close()


@pytest.mark.parametrize("op, want", [
    (T.RandomColorJitter(0.8, 0.4, 0.3, 0.2, 0.1, seed=5), (0.8, 0.4, 0.1)),
    (T.RandomColorJitter(0.4, 0.3, 0.2, 0.1, p=0.8), (0.8, 0.4, 0.1)),
    (T.RandomColorJitter(jitter_prob=0.8, brightness=0.4, hue=0.1),
     (0.8, 0.4, 0.1)),
    (T.RandomColorJitter(p=0.8), (0.8, 0.8, 0.2))])
def test_arguments_of_forks(op, want):
    assert (op.jitter_prob, op.magnitudes[0], op.hue) == want


def test_arguments_of_forks_of_others():
    a, b = T.RandomSolarization(0.3, 100), T.RandomSolarization(100, p=0.3)
    assert (a.threshold, a.solarization_prob) == (b.threshold,
                                                  b.solarization_prob)
    assert T.RandomGrayscale(p=0.7).gray_prob == 0.7
    for wrong in (lambda: T.RandomColorJitter(p=1, jitter_prob=1),
                  lambda: T.RandomColorJitter(bright=1),
                  lambda: T.RandomSolarization(1, 2, 3, 4)):
        with pytest.raises(TypeError, match="^Random(ColorJitter|Solar)"):
            wrong()


def test_view_takes_shapes(path):
    got = batches(Loader(path, B, pipelines={
        "image": [SimpleRGBImageDecoder(), T.ToTensor(), T.View((B, -1))],
        "label": [IntDecoder(), T.ToTensor(), T.View(-1)]}))
    assert got[0][0].shape == (B, 24 * 32 * 3)
    assert [b[1].tolist() for b in got] == [
        list(range(k, k + B)) for k in range(0, N, B)]
    assert get_center_crop(8, 8, None, 1) == (0, 0, 8, 8)
