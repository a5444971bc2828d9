# SPDX-License-Identifier: Apache-2.0
"""Images with masks: written, read with the same crops, resumed."""
import io
import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

Image = pytest.importorskip("PIL.Image")

N = 20
COLORS = np.array([[9, 9, 9], [200, 30, 40], [20, 210, 60], [90, 60, 220]],
                  np.uint8)


def shapes(i, size=None):
    """Classes: a rectangle and a disc on a ground."""
    rng = np.random.default_rng(i)
    h, w = size or rng.integers(40, 70, 2)
    y, x = np.mgrid[:h, :w]
    mask = np.zeros((h, w), np.uint8)
    top, left = rng.integers(4, 14, 2)
    mask[top:top + 20, left:left + 16] = 1 + i % 3
    cy, cx = rng.integers(20, 36, 2)
    mask[(y - cy) ** 2 + (x - cx) ** 2 < 90] = 1 + (i + 1) % 3
    return mask


@pytest.fixture(scope="module", params=["mask", "array"])
def path(request, tmp_path_factory):
    """Masks in PNGs of many sizes, or arrays of one."""
    path = tmp_path_factory.mktemp("masks") / "shapes.beton"
    size = None if request.param == "mask" else (48, 56)
    kind = "mask" if request.param == "mask" else ("uint8", size)
    betonfs.write(path, [
        {"image": COLORS[shapes(i, size)], "mask": shapes(i, size), "label": i}
        for i in range(N)], mode="raw",
        fields={"image": "image", "mask": kind, "label": "int"})
    return path


def agree(batch):
    """How many pixels within a class; all of them must agree."""
    count = 0
    for image, mask in zip(np.asarray(batch["image"]),
                           np.asarray(batch["mask"])):
        around = np.lib.stride_tricks.sliding_window_view(
            np.pad(mask, 2, constant_values=255), (5, 5))
        within = (around == mask[..., None, None]).all((2, 3))
        assert (image[within] == COLORS[mask[within]]).all()
        count += within.sum()
    return count


CHAIN = "random_resized_crop(32) | flip | vertical_flip"


@pytest.mark.parametrize("pipeline", [
    f"(image, mask) | {CHAIN}", {("image", "mask"): CHAIN},
    {("image", "mask | mask"): CHAIN, "label": ""}])
def test_image_and_mask_agree_pixel_by_pixel(path, pipeline):
    with betonfs.Loader(path, pipeline=pipeline, batch_size=5, tensors="numpy") as l:
        seen = 0
        for batch in l:
            assert batch["mask"].shape == (5, 32, 32)
            assert batch["mask"].dtype == np.uint8
            assert ("label" in batch) == ("label" in str(pipeline)
                                          or isinstance(pipeline, str))
            seen += agree(batch)
    assert seen > N * 32 * 32 // 3


def test_wide_classes_and_colors_of_images_alone(path):
    with betonfs.Loader(path, pipeline={("image", "mask | mask | int64"):
                               CHAIN + " | color_jitter(0.4, 0.4) | "
                               "normalize(imagenet) | half | chw"},
                        batch_size=5, tensors="numpy") as l:
        batch = next(iter(l))
        assert batch["mask"].dtype == np.int64
        assert batch["mask"].shape == (5, 32, 32)
        assert batch["image"].dtype == np.float16
        assert batch["image"].shape == (5, 3, 32, 32)
        assert set(np.unique(batch["mask"])) <= {0, 1, 2, 3}


def everything(path, workers, state=None, stop=None):
    out = []
    with betonfs.Loader(path, pipeline=f"(image, mask) | {CHAIN} | chw", batch_size=5,
                        tensors="numpy", workers=workers, seed=3) as l:
        if state:
            l.load_state_dict(state)
        for batch in l:
            out.append((batch.ids.tolist(), np.array(batch["image"]),
                        np.array(batch["mask"])))
            if len(out) == stop:
                return out, l.state_dict()
    return out


def same(a, b):
    return len(a) == len(b) and all(
        x[0] == y[0] and (x[1] == y[1]).all() and (x[2] == y[2]).all()
        for x, y in zip(a, b))


def test_workers_and_resuming_change_nothing(path):
    want = everything(path, 1)
    assert same(want, everything(path, 2)) and same(want, everything(path, 8))
    head, state = everything(path, 2, stop=2)
    assert same(want, head + everything(path, 1, state))


def test_valid_masks(tmp_path):
    palette = Image.fromarray(shapes(1), "P")
    palette.putpalette(COLORS.tobytes() + bytes(756))
    out = io.BytesIO()
    palette.save(out, "png")
    values = [shapes(1), shapes(1)[..., None], shapes(1).astype(np.int64),
              Image.fromarray(shapes(1)), palette, out.getvalue(),
              shapes(1).astype(np.uint16)]
    betonfs.write(tmp_path / "m.beton", [{"m": v} for v in values],
                  fields={"m": "mask"})
    h, w = shapes(1).shape
    with betonfs.Loader(tmp_path / "m.beton", pipeline=f'm | mask | resize("{h},{w}")',
                        batch_size=7, tensors="numpy") as l:
        for got in next(iter(l))["m"]:
            assert (got == shapes(1)).all()


@pytest.mark.parametrize("value,expects", [
    (np.zeros((3, 3, 3), np.uint8), "a mask has"),
    (np.zeros((3, 3)), "whole numbers"), (np.full((2, 2), -1), "0 to 65535"),
    (b"nothing", "no PNG"), (np.zeros((0, 3), np.uint8), "side"),
    (Image.new("CMYK", (3, 3)), "CMYK")])
def test_invalid_masks(tmp_path, value, expects):
    with pytest.raises(ValueError, match=f"sample 0 field m: .*{expects}"):
        betonfs.write(tmp_path / "m.beton", [{"m": value}],
                      fields={"m": "mask"})
    assert not (tmp_path / "m.beton").exists()


def test_arrays_of_other_sizes_name_masks(tmp_path):
    with pytest.raises(ValueError, match='a "mask" field'):
        betonfs.write(tmp_path / "m.beton",
                      [{"m": shapes(1)}, {"m": shapes(2)}])


@pytest.mark.parametrize("dtype,top", [(np.uint8, 256), (np.uint16, 65536)])
@pytest.mark.parametrize("channels", [0, 3])
def test_images_of_16_bits(tmp_path, dtype, top, channels):
    shape = (13, 17) + (3,) * bool(channels)
    values = [np.random.default_rng(i).integers(0, top, shape).astype(dtype)
              for i in range(4)]
    betonfs.write(tmp_path / "d.beton", [{"scan": v} for v in values],
                  fields={"scan": "png"})
    word = ("rgb" if channels else "gray") + ("16" if top > 256 else "")
    with betonfs.Loader(tmp_path / "d.beton", pipeline=
                        f'a = scan | decode({word}) | resize("13,17") | chw; '
                        f'b = scan | decode({word}) | center_crop(13, 1) | '
                        "normalize(0, 1)", order="sequential", batch_size=4,
                        tensors="numpy") as l:
        batch = next(iter(l))
        for got, scaled, want in zip(batch["a"], batch["b"], values):
            want = want if channels else want[..., None]
            assert got.dtype == dtype
            assert (got == want.transpose(2, 0, 1)).all()
            assert (scaled == want[:, 2:15].astype(np.float32)
                    * np.float32(1 / (top - 1))).all()


def clip(i, n):
    """Frames that differ from each other in their number."""
    return [np.full((12, 16, 3), 7 * i + k, np.uint8) for k in range(n)]


@pytest.fixture(scope="module", params=["list", "array"])
def clips(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("clips") / "c.beton"
    is_list = request.param == "list"
    betonfs.write(path, [
        {"clip": clip(i, 10 + i % 3) if is_list else np.stack(clip(i, 10)),
         "label": i} for i in range(N)], mode="raw",
        fields={"clip": "frames" if is_list else ("uint8", (10, 12, 16, 3)),
                "label": "int"})
    return path, "clip | decode(rgb)" if is_list else "clip", is_list


def windows(clips, chain, **how):
    path, field, is_list = clips
    out = {}
    with betonfs.Loader(path, pipeline=f"{field} | {chain}", batch_size=5,
                        tensors="numpy", **how) as l:
        for batch in l:
            for i, one in zip(batch["label"], batch["clip"]):
                out[int(i)] = np.array(one)
    return out


def test_a_window_of_frames(clips):
    starts = set()
    for i, got in windows(clips, "window(4, 2) | random_resized_crop(8) | "
                          "flip | color_jitter(0, 0, 0, 0, 0) | chw").items():
        assert got.shape == (4, 3, 8, 8)
        first = got[0, 0, 0, 0] - 7 * i
        frames = 10 + i % 3 if clips[2] else 10
        assert 0 <= first <= frames - 7
        want = np.arange(first, first + 8, 2) + 7 * i
        assert (got == want[:, None, None, None]).all()
        starts.add(first)
    assert len(starts) > 2


@pytest.mark.parametrize("at,first", [("center", 1), ("start", 0)])
def test_a_window_at_a_place(clips, at, first):
    for i, got in windows(clips, f"window(4, 2, {at}) | resize(\"8,10\") | "
                          "normalize(0.5, 0.5) | chw").items():
        frames = 10 + i % 3 if clips[2] else 10
        start = (frames - 7) // 2 if at == "center" else 0
        want = np.arange(start, start + 8, 2) + 7 * i
        want = (want.astype(np.float32) - np.float32(127.5)) \
            * np.float32(1 / 127.5)
        assert got.dtype == np.float32 and got.shape == (4, 3, 8, 10)
        assert (got == want[:, None, None, None]).all()


def test_all_frames_have_one_crop(tmp_path):
    frame = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
    betonfs.write(tmp_path / "c.beton", [{"clip": [frame] * 5}] * 4,
                  fields={"clip": "frames"}, mode="jpg")
    with betonfs.Loader(tmp_path / "c.beton", pipeline="clip | decode(rgb) | "
                        "window(7) | random_resized_crop(16) | flip | "
                        "color_jitter(0.5, 0.5, 0.5, 0.2) | cutout(4)",
                        batch_size=4, tensors="numpy") as l:
        got = next(iter(l))["clip"]
    assert got.shape == (4, 7, 16, 16, 3)
    assert (got == got[:, :1]).all()
    assert (got[0] != got[1]).any()


@pytest.mark.parametrize("pipeline,expects", [
    ("clip | window(11)", "longer"), ("clip | flip | chw | window(2)", "chw"),
    ("label | window(2)", "four axes"), ("clip | window(4, 4)", "longer")])
def test_windows_that_do_not_fit(clips, pipeline, expects):
    if clips[2]:
        pipeline, expects = "clip | window(2)", "four axes"
    with pytest.raises(ValueError, match=expects):
        betonfs.Loader(clips[0], pipeline=pipeline, batch_size=5)


@pytest.mark.parametrize("key,expects", [
    (("image", "masc"), "masc"), ((), "is no name"), (("image", 3), "no name")])
def test_wrong_keys(path, key, expects):
    with pytest.raises((ValueError, TypeError), match=expects):
        betonfs.Loader(path, pipeline={key: "center_crop(8)"}, batch_size=5)
