# SPDX-License-Identifier: Apache-2.0
"""Boxes, points and labels that follow an image, and where its pixels come
from, through `beton dump`: against NumPy code written from
beton-lists(7), and against torchvision."""
import json
import os
import subprocess

import numpy as np
import pytest

import make
from arrays import pack, rows
from draws import Draws
from dumped import beton, digest, dump, jpeg

N = 40
SEED, EPOCH = 11, 2
SPEC = ("--spec", f"batch=7,seed={SEED},drop_last=0", "--epoch", EPOCH)


def size(i):
    return 31 + i % 7 * 13, 25 + i % 5 * 17    # width, height


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(3)
    boxes, points = [], []
    for i in range(N):
        w, h = size(i)
        x, y = (np.sort(rng.uniform(0, s, (i % 6, 2)), 1) for s in (w, h))
        boxes.append(np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1)
                     .astype("<f4"))
        points.append(rng.uniform(0, (w, h, 2), (5, 3)).astype("<f8"))
    return {"boxes": boxes, "points": points,
            "labels": [np.arange(len(b)) + 100 * i
                       for i, b in enumerate(boxes)]}


@pytest.fixture(scope="module")
def data(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("boxes") / "b.beton"
    return make.Dataset(
        path, [("image", make.IMAGE), *((n, make.BYTES) for n in values)],
        [{"image": make.Image(make.JPG, *size(i), jpeg(i, *size(i))),
          **{n: pack(v[i]) for n, v in values.items()}} for i in range(N)])


CROP = 'image = random_resized_crop("48,64", "0.1,0.9") | flip | vertical_flip'
P = "p = params(image); "


def matrices(batch):
    p = batch.outputs["p"]
    return p[:, :6].reshape(-1, 2, 3), p[:, 6:10].astype(int), p[:, 10]


def test_params_are_the_geometry_of_the_image(data, tmp_path):
    """The matrix maps the middle of the output to its pixel."""
    seen = set()
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline",
                  P + CROP):
        m, sizes, mirrored = matrices(b)
        for row, i in enumerate(b.ids):
            w, h = size(i)
            assert sizes[row].tolist() == [h, w, 48, 64]
            flips = [Draws(SEED, EPOCH, i, op)() < 0.5
                     for op in ("flip:0", "vertical_flip:0")]
            assert mirrored[row] == (flips[0] != flips[1])
            a = m[row]
            assert a[0, 1] == a[1, 0] == 0
            assert (a[0, 0] < 0) == flips[0] and (a[1, 1] < 0) == flips[1]
            # The crop is whole pixels, within the image.
            back = np.linalg.inv(np.vstack([a, [0, 0, 1]]))
            corners = (back @ np.array([[0, 64], [0, 48], [1, 1]]))[:2]
            assert np.allclose(corners, np.rint(corners), atol=1e-6)
            assert (corners >= -1e-6).all()
            assert (corners <= np.array([[w], [h]]) + 1e-6).all()
            seen.add(tuple(flips))
    assert len(seen) == 4


def test_params_move_pixels(tmp_path):
    """The image's values are their own coordinates."""
    y, x = np.mgrid[:200, :240]
    picture = np.stack([x, y, 0 * x], 2).astype(np.uint8)
    d = make.Dataset(tmp_path / "d.beton", [("image", make.IMAGE)], [
        {"image": make.Image(make.RAW, 240, 200, picture.tobytes())}] * 12, 1 << 20)
    text = 'image = random_resized_crop("100,120", "0.2,1", bilinear) | ' \
        'flip | random_translate(9) | vertical_flip | pad("3,5,7,2") | ' \
        'flip; p = params(image) | float'
    for b in dump(d.path, tmp_path / "x", "--spec", "batch=12", "--pipeline",
                  text.replace("bilinear", "interpolation=bilinear")):
        m, sizes, _ = matrices(b)
        for row in range(12):
            out = b.row("image", row)
            assert sizes[row].tolist() == [200, 240, *out.shape[:2]]
            back = np.linalg.inv(np.vstack([m[row], [0, 0, 1]]))
            at = np.array([[40.5, 60.5, 80.5], [40.5, 50.5, 60.5], [1] * 3])
            want = (back @ at)[:2] - 0.5
            got = out[(40, 50, 60), (40, 60, 80)][:, :2].T
            assert np.abs(want - got).max() <= 1, (want, got)


def moved(m, boxes):
    ends = boxes[:, [[0, 2], [1, 3]]] * m[[0, 1], [0, 1]][:, None] \
        + m[:, 2][:, None]
    ends.sort(-1)
    return ends[:, [0, 1, 0, 1], [0, 0, 1, 1]]


def cut(boxes, w, h):
    return np.clip(boxes, 0, [w, h, w, h])


def areas(boxes):
    return np.prod(boxes[:, 2:] - boxes[:, :2], 1)


@pytest.mark.parametrize("visible, least", [(0, 0), (0, 1), (0.4, 5)])
def test_boxes_follow_the_image(data, values, tmp_path, visible, least):
    text = (f"{P}{CROP}; boxes | follow(image, min_visible={visible}, "
            f"min_size={least}); labels | keep_rows(boxes); "
            "n = labels | keep_rows(boxes) | length")
    dropped = 0
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        m, _, _ = matrices(b)
        for row, (i, boxes, labels) in enumerate(zip(
                b.ids, rows(b, "boxes"), rows(b, "labels"))):
            whole = moved(m[row], values["boxes"][i].astype(float))
            want = cut(whole, 64, 48)
            keep = ((want[:, 2:] - want[:, :2]) >= least).all(1) \
                & (areas(want) >= visible * areas(whole))
            assert np.abs(boxes - want[keep]).max(initial=0) < 1e-4
            assert (labels == values["labels"][i][keep]).all()
            assert b.row("n", row) == keep.sum()
            dropped += (~keep).sum()
    assert (dropped > 5) == (least > 0)


def test_formats_and_shares_are_the_same_boxes(data, values, tmp_path):
    def other(form, b, w, h):
        b = b.astype("<f8")
        if form == "xywh":
            b = np.hstack([b[:, :2], b[:, 2:] - b[:, :2]])
        if form == "cxcywh":
            b = np.hstack([(b[:, :2] + b[:, 2:]) / 2, b[:, 2:] - b[:, :2]])
        return b

    forms = ["xyxy", "xywh", "cxcywh"]
    samples = []
    for i in range(N):
        v = {"image": data.values[i]["image"]}
        for f in forms:
            v[f] = pack(np.hstack([other(f, values["boxes"][i], *size(i)),
                                   np.full((len(values["boxes"][i]), 1), i)]))
        v["shares"] = pack(values["boxes"][i].astype("<f8")
                           / np.array([*size(i)] * 2))
        samples.append(v)
    d = make.Dataset(tmp_path / "f.beton", [("image", make.IMAGE)] + [
        (n, make.BYTES) for n in (*forms, "shares")], samples)
    text = f"{CROP}; " + "; ".join(
        f"{f} | follow(image, {f}, min_visible=0.3)" for f in forms) \
        + "; shares | follow(image, coordinates=shares, min_visible=0.3)"
    for b in dump(d.path, tmp_path / "x", *SPEC, "--pipeline", text):
        for i, first, *rest, shares in zip(b.ids, *(
                rows(b, n) for n in (*forms, "shares"))):
            for f, got in zip(forms[1:], rest):
                assert np.allclose(got[:, :4], other(f, first[:, :4], 64, 48))
            assert (first[:, 4] == i).all()
            assert np.allclose(shares * [64, 48, 64, 48], first[:, :4])


def test_points_follow_the_image(data, values, tmp_path):
    text = f"{P}{CROP}; points | follow(image, xy); " \
        "seen = points | follow(image, format=xy, min_visible=1) | pad_to(5)"
    for b in dump(data.path, tmp_path / "x", *SPEC, "--pipeline", text):
        m, _, _ = matrices(b)
        for row, i in enumerate(b.ids):
            p = values["points"][i]
            want = np.hstack([p[:, :2] @ m[row, :, :2].T + m[row, :, 2],
                              p[:, 2:]])
            assert np.allclose(rows(b, "points")[row], want)
            inside = ((want[:, :2] >= 0) & (want[:, :2] < [64, 48])).all(1)
            seen = b.row("seen", row)
            assert np.allclose(seen[:inside.sum()], want[inside])
            assert not seen[inside.sum():].any()


def test_clipped_boxes_stay_clipped(tmp_path):
    """A margin after a crop has no part of a box."""
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES)], [
        {"image": make.Image(make.RAW, 40, 40, bytes(4800)),
         "boxes": pack(np.array([[0, 0, 20, 40], [0, 0, 3, 3]], "<f4"))}],
        1 << 16)
    b, = dump(d.path, tmp_path / "x", "--spec", "batch=1", "--pipeline",
              "image = center_crop(20, 0.5) | pad(10); "
              "boxes | follow(image, min_size=0)")
    assert rows(b, "boxes")[0].tolist() == [[10, 10, 20, 30], [10, 10, 10, 10]]
    b, = dump(d.path, tmp_path / "y", "--spec", "batch=1", "--pipeline",
              "image = center_crop(20, 0.5) | pad(10); boxes | follow(image)")
    assert rows(b, "boxes")[0].tolist() == [[10, 10, 20, 30]]


def test_boxes_that_are_no_numbers_are_dropped(tmp_path):
    bad = np.array([[np.nan, 0, 9, 9], [0, 0, np.inf, 9], [1, 1, 5, 5],
                    [9, 9, 2, 2]], "<f4")
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES)], [
        {"image": make.Image(make.RAW, 40, 40, bytes(4800)),
         "boxes": pack(bad)}], 1 << 16)
    b, = dump(d.path, tmp_path / "x", "--spec", "batch=1", "--pipeline",
              "boxes | follow(image)")
    assert rows(b, "boxes")[0].tolist() == [[1, 1, 5, 5]]


TEXT = f"{P}{CROP}; boxes | follow(image, min_visible=0.2); " \
    "labels | keep_rows(boxes) | pad_to(batch, -1); " \
    "d = boxes | follow(image) | pad_to(6, value=-1) | half"


def test_workers_and_mounts_change_nothing(data, tmp_path, mount):
    m = mount(data.path)
    out = []
    for where, workers in (data.path, 1), (data.path, 2), (data.path, 8), \
            (m, 2):
        out.append(tmp_path / str(len(out)))
        dump(where, out[-1], *SPEC, "--jobs", workers, "--pipeline", TEXT)
    first, *others = map(digest, out)
    assert len(first) == 6
    assert all(d == first for d in others)


@pytest.mark.parametrize("text, why", [
    ("boxes | follow(imag)", "no output `imag'; did you mean `image'?"),
    ("boxes | follow(labels)", "output `labels' is not an image"),
    ("boxes | follow", "needs `of': name of the output of the image"),
    ("boxes | follow(image) | follow(image)", "precedes it"),
    ("boxes | follow(p); p = params(image)", "output `p' is not an image"),
    ("labels | follow(image)", "four numbers or more"),
    ("image | mixup(0.2); boxes | follow(image)", "mixes two images"),
    ("labels | keep_rows(points)", "output `points' follows no image"),
    ("labels | keep_rows(labels)", "follows no image"),
    ("image | drop; boxes | follow(image)", "no output `image'"),
    ("p = image | flip | params(image)", "must be the first"),
    ("p = boxes | params(image)", "must be the first"),
])
def test_invalid_follow_arguments_are_refused(data, tmp_path, text, why):
    r = beton("dump", data.path, "--out", tmp_path / "x", "--pipeline", text,
              code=1)
    assert why in r.stderr


def test_other_numbers_of_labels_are_an_error(tmp_path):
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES), ("labels", make.BYTES)], [
        {"image": make.Image(make.RAW, 40, 40, bytes(4800)),
         "boxes": pack(np.ones((2, 4), "<f4")), "labels": pack(np.arange(3))}],
        1 << 16)
    r = beton("dump", d.path, "--out", tmp_path / "x", "--pipeline",
              "boxes | follow(image); labels | keep_rows(boxes)", "--spec",
              "batch=1", code=1)
    assert "different numbers of rows" in r.stderr


def test_an_image_that_cannot_be_read_moves_no_boxes(data, tmp_path):
    """Its boxes are an error of their own row, too."""
    copy = tmp_path / "c.beton"
    raw = bytearray(open(data.path, "rb").read())
    at = data.where(3, "image")
    raw[at + 1:at + 8] = bytes(7)       # width and height
    copy.write_bytes(raw)
    b, = dump(copy, tmp_path / "x", "--pipeline",
              'image = resize("8,8"); boxes | follow(image, min_size=0); '
              "q = boxes | follow(image) | pad_to(3)", "--spec",
              "order=sequential,batch=8,subset=0-8", "--on-error", "skip",
              code=None)
    assert b.valid == [i != 3 for i in range(8)]
    assert [len(v) > 0 for v in rows(b, "boxes")] == \
        [i % 6 > 0 and i != 3 for i in range(8)]
    assert not b.row("q", 3).any()


# --- torchvision ---

SCRIPT = r"""
import json, sys
import numpy as np, torch
lib = torch.library.Library("torchvision", "DEF")
for n in ("nms", "qnms"):
    try:
        lib.define(n + "(Tensor dets, Tensor scores, float iou) -> Tensor")
    except RuntimeError:
        pass
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2 import SanitizeBoundingBoxes
clean = SanitizeBoundingBoxes(min_size=1, min_area=1, labels_getter=lambda s: s["l"])
out = []
for c in json.load(open(sys.argv[1])):
    w, h = c["size"]
    b = tv_tensors.BoundingBoxes(torch.tensor(c["boxes"], dtype=torch.float32)
                                 .reshape(-1, 4), format=c["format"],
                                 canvas_size=(h, w))
    x, y, cw, ch = c["crop"]
    b = F.resized_crop(b, y, x, ch, cw, c["to"])
    if c["flip"]: b = F.horizontal_flip(b)
    if c["vertical"]: b = F.vertical_flip(b)
    if c["pad"]: b = F.pad(b, c["pad"])
    b = F.clamp_bounding_boxes(b)
    got = clean({"b": b, "l": torch.arange(len(b))})
    out.append([got["b"].tolist(), got["l"].tolist()])
json.dump(out, open(sys.argv[2], "w"))
"""


PYTHON = os.environ.get("TORCHVISION_PYTHON")


def torchvision(cases, tmp_path):
    (tmp_path / "in.json").write_text(json.dumps(cases))
    r = subprocess.run([PYTHON, "-c", SCRIPT, tmp_path / "in.json",
                        tmp_path / "out.json"], capture_output=True, text=True,
                       timeout=300)
    assert r.returncode == 0, r.stderr
    return json.loads((tmp_path / "out.json").read_text())


@pytest.mark.skipif(not PYTHON, reason="TORCHVISION_PYTHON names no interpreter"
                    " with torchvision")
@pytest.mark.parametrize("form", ["xyxy", "xywh", "cxcywh"])
def test_a_thousand_crops_are_torchvisions(tmp_path, form):
    rng = np.random.default_rng(7)
    samples, sizes = [], []
    for i in range(1000):
        w, h = (int(v) for v in rng.integers(9, 400, 2))
        n = rng.integers(0, 9)
        ends = np.sort(rng.uniform(-0.1, 1.1, (2, n, 2)), 2) \
            * [[[w]], [[h]]]
        b = np.stack([ends[0, :, 0], ends[1, :, 0], ends[0, :, 1],
                      ends[1, :, 1]], 1).clip(0, [w, h, w, h])
        if form != "xyxy":
            b[:, 2:] -= b[:, :2]
        if form == "cxcywh":
            b[:, :2] += b[:, 2:] / 2
        sizes.append((w, h))
        samples.append({"image": make.Image(make.JPG, w, h, b"x"),
                        "boxes": pack(b.astype("<f4")),
                        "labels": pack(np.arange(n))})
    d = make.Dataset(tmp_path / "d.beton", [
        ("image", make.IMAGE), ("boxes", make.BYTES), ("labels", make.BYTES)],
        samples, 1 << 16)
    text = ('image = random_resized_crop("48,64") | flip | vertical_flip | '
            'pad("1,2,3,4"); small = image | random_resized_crop("48,64", '
            'group=0); c = params(small); small_flip = params(image); '
            f"boxes | follow(image, {form}); labels | keep_rows(boxes)")
    found = dump(d.path, tmp_path / "x", "--spec", "batch=100,seed=5",
                 "--pipeline", text, "--on-error", "skip", code=None)
    cases, mine = [], []
    for b in found:
        crop = b.outputs["c"]
        for row, i in enumerate(b.ids):
            sx, _, tx, _, sy, ty = crop[row, :6]
            cw, ch = (round(v) for v in (64 / sx, 48 / sy))
            x, y = round(-tx / sx), round(-ty / sy)
            raw = np.frombuffer(samples[i]["boxes"][32:], "<f4")
            flips = [Draws(5, 0, i, op)() < 0.5
                     for op in ("flip:0", "vertical_flip:0")]
            cases.append({"size": sizes[i], "crop": [x, y, cw, ch],
                          "to": [48, 64], "flip": bool(flips[0]),
                          "vertical": bool(flips[1]), "pad": [1, 2, 3, 4],
                          "format": form.upper(),
                          "boxes": raw.astype(float).tolist()})
            mine.append((rows(b, "boxes")[row], rows(b, "labels")[row]))
    most = 0.0
    for (boxes, labels), (want, kept) in zip(mine, torchvision(cases, tmp_path)):
        assert labels.tolist() == kept
        most = max([most, *np.abs(boxes - np.reshape(want, (-1, 4))).ravel()])
    assert len(mine) == 1000 and most < 2e-5, most
