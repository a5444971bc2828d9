# SPDX-License-Identifier: Apache-2.0
"""Runs under an interpreter that has them: operations of torchvision v2,
Albumentations and OpenCV, with one thread each.

    python operations_peers.py IMAGES.npy < JSON list of our operations

Prints {library: {operation: CPU microseconds per image}} as JSON. The figure of
torchvision is the lesser of its tensors' and of Pillow's images'.
"""
import json
import sys
import time

import numpy as np

SECONDS = 0.15      # of CPU time, per figure
BATCH = 32          # as our own side is measured
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def cpu_us(images, run):
    """The mean per image over the images in turns, after a first turn."""
    total = count = 0
    for i, image in enumerate(images):
        run(i, image)
    while total < SECONDS:
        begin = time.process_time()
        for i, image in enumerate(images):
            run(i, image)
        total += time.process_time() - begin
        count += len(images)
    return total / count * 1e6


def cost_us(function, images, load):
    """The time that `function` adds to a loader that reads images and puts
    them in batches. Our own side is measured alike: `load` copies an image out
    of the file, and the results are copied to their samples of a batch. The
    time of a loader without a function, which copies the pixels to their
    sample, is subtracted."""
    batch = []

    def put(i, results):
        if not isinstance(results, (tuple, list)):
            results = results,
        results = [np.asarray(r) for r in results]
        if not batch:
            batch.extend(np.empty((BATCH, *r.shape), r.dtype)
                         for r in results)
        for rows, r in zip(batch, results):
            rows[i % BATCH] = r

    whole = cpu_us(images, lambda i, image: put(i, function(load(image))))
    batch.clear()
    return whole - cpu_us(images, put)


def torchvision_rows():
    import torch
    torch.set_num_threads(1)
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in "nms", "qnms":      # a build whose own operators do not load
        try:
            library.define(name + "(Tensor dets, Tensor scores, "
                           "float iou_threshold) -> Tensor")
        except RuntimeError:
            pass
    from torchvision.transforms import v2
    how = v2.InterpolationMode
    both = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
                       v2.Normalize(MEAN, STD)])
    rows = {
        "flip(1)": v2.RandomHorizontalFlip(1),
        "vertical_flip(1)": v2.RandomVerticalFlip(1),
        "pad(8)": v2.Pad(8),
        "random_crop(200)": v2.RandomCrop(200),
        "random_crop(224, padding=16)": v2.RandomCrop(224, padding=16),
        "random_translate(16)": v2.RandomCrop(224, padding=16),
        "random_erasing(1)": v2.RandomErasing(1),
        "invert": v2.RandomInvert(1),
        "solarize(128)": v2.RandomSolarize(128, 1),
        "posterize(4)": v2.RandomPosterize(4, 1),
        "brightness(0.4)": v2.ColorJitter(0.4),
        "contrast(0.4)": v2.ColorJitter(contrast=0.4),
        "saturation(0.4)": v2.ColorJitter(saturation=0.4),
        "grayscale(1)": v2.Grayscale(3),
        "color_jitter(0.4, 0.4, 0.4, like=torchvision)":
            v2.ColorJitter(0.4, 0.4, 0.4),
        "color_jitter(0.4, 0.4, 0.4, 0.1, like=torchvision)":
            v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        "equalize": v2.RandomEqualize(1),
        "autocontrast": v2.RandomAutocontrast(1),
        "sharpness(2)": v2.RandomAdjustSharpness(2, 1),
        "gaussian_blur(5)": v2.GaussianBlur(5),
        "gaussian_blur(23)": v2.GaussianBlur(23),
        "rotate(30)": v2.RandomRotation(30),
        "rotate(30, interpolation=bilinear)":
            v2.RandomRotation(30, how.BILINEAR),
        'affine(15, translate="0.1,0.1", scale="0.8,1.2", shear=10, '
        "interpolation=bilinear)":
            v2.RandomAffine(15, (0.1, 0.1), (0.8, 1.2), 10, how.BILINEAR),
        "perspective(0.5, interpolation=bilinear)":
            v2.RandomPerspective(0.5, 1),
        "elastic": v2.ElasticTransform(),
        "resize(160, interpolation=bilinear)": v2.Resize(160),
        "resize(160, interpolation=bicubic)": v2.Resize(160, how.BICUBIC),
        "resize(160, interpolation=lanczos)": v2.Resize(160, how.LANCZOS),
        "resize(160, interpolation=nearest)": v2.Resize(160, how.NEAREST),
        "resize(320, interpolation=bilinear)": v2.Resize(320),
        "random_resized_crop(160, interpolation=bilinear)":
            v2.RandomResizedCrop(160),
        "center_crop(160, ratio=0.7143)": v2.CenterCrop(160),
        "five_crop(112)": v2.FiveCrop(112),
        "rand_augment": v2.RandAugment(),
        "trivial_augment": v2.TrivialAugmentWide(),
        "auto_augment": v2.AutoAugment(),
        "aug_mix": v2.AugMix(),
        "normalize(imagenet) | float | chw": both,
    }

    def run(row, images):
        import PIL.Image
        planar = [np.ascontiguousarray(i.transpose(2, 0, 1)) for i in images]
        costs = []
        for kind, load in ((planar, lambda i: torch.from_numpy(i.copy())),
                           (images, PIL.Image.fromarray)):
            try:
                costs.append(cost_us(row, kind, load))
            except (TypeError, ValueError, NotImplementedError):
                pass        # not for images of this kind
        return min(costs)
    return rows, run


def albumentations_rows():
    import albumentations as a
    import cv2
    cv2.setNumThreads(1)
    linear = {"interpolation": cv2.INTER_LINEAR}
    rows = {
        "flip(1)": a.HorizontalFlip(p=1),
        "vertical_flip(1)": a.VerticalFlip(p=1),
        "pad(8)": a.Pad(8, p=1),
        "random_crop(200)": a.RandomCrop(200, 200, p=1),
        "random_crop(224, padding=16)":
            a.Compose([a.Pad(16, p=1), a.RandomCrop(224, 224, p=1)]),
        "cutout(64)": a.CoarseDropout((1, 1), (64, 64), (64, 64), p=1),
        "random_erasing(1)": a.Erasing((0.02, 0.33), (0.3, 3.3), p=1),
        "invert": a.InvertImg(p=1),
        "solarize(128)": a.Solarize((0.5, 0.5), p=1),
        "posterize(4)": a.Posterize(4, p=1),
        "brightness(0.4)": a.ColorJitter((0.6, 1.4), (1, 1), (1, 1), (0, 0),
                                         p=1),
        "contrast(0.4)": a.ColorJitter((1, 1), (0.6, 1.4), (1, 1), (0, 0),
                                       p=1),
        "saturation(0.4)": a.ColorJitter((1, 1), (1, 1), (0.6, 1.4), (0, 0),
                                         p=1),
        "grayscale(1)": a.ToGray(p=1),
        "color_jitter(0.4, 0.4, 0.4, like=torchvision)":
            a.ColorJitter(0.4, 0.4, 0.4, 0, p=1),
        "color_jitter(0.4, 0.4, 0.4, 0.1, like=torchvision)":
            a.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1),
        "equalize": a.Equalize(by_channels=True, p=1),
        "autocontrast": a.AutoContrast(p=1),
        "sharpness(2)": a.Sharpen(p=1),
        "gaussian_blur(5)": a.GaussianBlur((5, 5), (0.1, 2), p=1),
        "gaussian_blur(23)": a.GaussianBlur((23, 23), (0.1, 2), p=1),
        "rotate(30)": a.Rotate(30, cv2.INTER_NEAREST, p=1),
        "rotate(30, interpolation=bilinear)": a.Rotate(30, p=1, **linear),
        'affine(15, translate="0.1,0.1", scale="0.8,1.2", shear=10, '
        "interpolation=bilinear)":
            a.Affine((0.8, 1.2), (-0.1, 0.1), rotate=(-15, 15),
                     shear=(-10, 10), p=1, **linear),
        "perspective(0.5, interpolation=bilinear)":
            a.Perspective(0.1, p=1, **linear),
        "elastic": a.ElasticTransform(50, 5, p=1, **linear),
        "resize(160)": a.Resize(160, 160, cv2.INTER_AREA, p=1),
        "resize(160, interpolation=bilinear)":
            a.Resize(160, 160, p=1, **linear),
        "resize(160, interpolation=bicubic)":
            a.Resize(160, 160, cv2.INTER_CUBIC, p=1),
        "resize(160, interpolation=lanczos)":
            a.Resize(160, 160, cv2.INTER_LANCZOS4, p=1),
        "resize(160, interpolation=nearest)":
            a.Resize(160, 160, cv2.INTER_NEAREST, p=1),
        "resize(320, interpolation=bilinear)":
            a.Resize(320, 320, p=1, **linear),
        "random_resized_crop(160)":
            a.RandomResizedCrop((160, 160), interpolation=cv2.INTER_AREA,
                                p=1),
        "random_resized_crop(160, interpolation=bilinear)":
            a.RandomResizedCrop((160, 160), p=1, **linear),
        "center_crop(160, ratio=0.7143)": a.CenterCrop(160, 160, p=1),
        "normalize(imagenet) | float | chw": a.Normalize(MEAN, STD, p=1),
    }
    return rows, lambda row, images: cost_us(lambda i: row(image=i)["image"],
                                             images, np.copy)


def opencv_rows():
    import cv2
    cv2.setNumThreads(1)
    rng = np.random.default_rng(1)
    table = np.arange(256, dtype=np.uint8)
    solarized = np.where(table < 128, table, 255 - table).astype(np.uint8)
    middle, scale = (111.5, 111.5), np.array(STD) * 255
    quad = np.float32([[0, 0], [223, 0], [223, 223], [0, 223]])

    def factor():
        return rng.uniform(0.6, 1.4)

    def erased(x):
        y = x.copy()
        y[40:104, 60:124] = 0
        return y

    def with_gray(x):
        return cv2.cvtColor(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY),
                            cv2.COLOR_GRAY2RGB)

    def contrast(x):
        mean = cv2.mean(cv2.cvtColor(x, cv2.COLOR_RGB2GRAY))[0]
        f = factor()
        return cv2.LUT(x, np.clip(table * f + mean * (1 - f), 0, 255).astype(
            np.uint8))

    def saturation(x):
        f = factor()
        return cv2.addWeighted(x, f, with_gray(x), 1 - f, 0)

    def jitter(x):
        return saturation(contrast(cv2.convertScaleAbs(x, alpha=factor())))

    def hue(x):
        h, s, v = cv2.split(cv2.cvtColor(x, cv2.COLOR_RGB2HSV))
        h = cv2.LUT(h, ((table.astype(int) + rng.integers(-18, 18)) % 180)
                    .astype(np.uint8))
        return cv2.cvtColor(cv2.merge((h, s, v)), cv2.COLOR_HSV2RGB)

    def equalize(x):
        return cv2.merge([cv2.equalizeHist(c) for c in cv2.split(x)])

    def autocontrast(x):
        return cv2.merge([cv2.normalize(c, None, 0, 255, cv2.NORM_MINMAX)
                          for c in cv2.split(x)])

    def sharpness(x):
        kernel = np.float32([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
        return cv2.addWeighted(x, 2, cv2.filter2D(x, -1, kernel), -1, 0)

    def turned(how):
        def run(x):
            m = cv2.getRotationMatrix2D(middle, rng.uniform(-30, 30), 1)
            return cv2.warpAffine(x, m, (224, 224), flags=how)
        return run

    def perspective(x):
        to = quad + rng.uniform(-50, 50, (4, 2)).astype(np.float32)
        m = cv2.getPerspectiveTransform(quad, to)
        return cv2.warpPerspective(x, m, (224, 224))

    at = np.meshgrid(np.arange(224, dtype=np.float32),
                     np.arange(224, dtype=np.float32))

    def elastic(x):
        moved = [cv2.GaussianBlur(rng.random((224, 224), np.float32) * 2 - 1,
                                  (41, 41), 5) * 50 + a for a in at]
        return cv2.remap(x, *moved, cv2.INTER_LINEAR)

    def normalize(x):
        y = cv2.subtract(x, np.array([*MEAN, 0]) * 255, dtype=cv2.CV_32F)
        return np.ascontiguousarray(
            cv2.divide(y, np.array([*scale, 1])).transpose(2, 0, 1))

    def resized(side, how):
        return lambda x: cv2.resize(x, (side, side), interpolation=how)

    rows = {
        "flip(1)": lambda x: cv2.flip(x, 1),
        "vertical_flip(1)": lambda x: cv2.flip(x, 0),
        "pad(8)": lambda x: cv2.copyMakeBorder(x, 8, 8, 8, 8,
                                               cv2.BORDER_CONSTANT),
        "random_crop(200)": lambda x: x[9:209, 11:211].copy(),
        "cutout(64)": erased,
        "random_erasing(1)": erased,
        "invert": cv2.bitwise_not,
        "solarize(128)": lambda x: cv2.LUT(x, solarized),
        "posterize(4)": lambda x: cv2.LUT(x, table & 0xf0),
        "brightness(0.4)": lambda x: cv2.convertScaleAbs(x, alpha=factor()),
        "contrast(0.4)": contrast,
        "saturation(0.4)": saturation,
        "grayscale(1)": with_gray,
        "color_jitter(0.4, 0.4, 0.4, like=torchvision)": jitter,
        "color_jitter(0.4, 0.4, 0.4, 0.1, like=torchvision)":
            lambda x: hue(jitter(x)),
        "equalize": equalize,
        "autocontrast": autocontrast,
        "sharpness(2)": sharpness,
        "gaussian_blur(5)": lambda x: cv2.GaussianBlur(
            x, (5, 5), rng.uniform(0.1, 2)),
        "gaussian_blur(23)": lambda x: cv2.GaussianBlur(
            x, (23, 23), rng.uniform(0.1, 2)),
        "rotate(30)": turned(cv2.INTER_NEAREST),
        "rotate(30, interpolation=bilinear)": turned(cv2.INTER_LINEAR),
        'affine(15, translate="0.1,0.1", scale="0.8,1.2", shear=10, '
        "interpolation=bilinear)": turned(cv2.INTER_LINEAR),
        "perspective(0.5, interpolation=bilinear)": perspective,
        "elastic": elastic,
        "resize(160)": resized(160, cv2.INTER_AREA),
        "resize(160, interpolation=bilinear)": resized(160, cv2.INTER_LINEAR),
        "resize(160, interpolation=bicubic)": resized(160, cv2.INTER_CUBIC),
        "resize(160, interpolation=lanczos)":
            resized(160, cv2.INTER_LANCZOS4),
        "resize(160, interpolation=nearest)":
            resized(160, cv2.INTER_NEAREST),
        "resize(320, interpolation=bilinear)":
            resized(320, cv2.INTER_LINEAR),
        "random_resized_crop(160)": lambda x: cv2.resize(
            x[20:200, 30:190], (160, 160), interpolation=cv2.INTER_AREA),
        "random_resized_crop(160, interpolation=bilinear)":
            lambda x: cv2.resize(x[20:200, 30:190], (160, 160)),
        "center_crop(160, ratio=0.7143)": lambda x: x[32:192, 32:192].copy(),
        "normalize(imagenet) | float | chw": normalize,
    }
    return rows, lambda row, images: cost_us(row, images, np.copy)


def measure(make_rows, images, operations):
    try:
        rows, run = make_rows()
    except ImportError as e:
        print(f"operations_peers.py: left out: {e}", file=sys.stderr)
        return {}
    return {o: run(rows[o], images) for o in operations if o in rows}


def main():
    images = list(np.load(sys.argv[1], mmap_mode="r"))
    operations = json.load(sys.stdin)
    out = {"torchvision": torchvision_rows, "Albumentations":
           albumentations_rows, "OpenCV": opencv_rows}
    out = {name: measure(rows, images, operations)
           for name, rows in out.items()}
    print(json.dumps({name: costs for name, costs in out.items() if costs}))


main()
