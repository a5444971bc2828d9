# SPDX-License-Identifier: Apache-2.0
"""Runs under the interpreter that TORCHVISION_PYTHON names: operations of
torchvision's policies on images of Pillow.

    python beside_torchvision.py IN.npz STEPS.json OUT.npy

STEPS.json has a list of [name, magnitude] for each image, and what fills.
"""
import json
import sys

import numpy as np
import torch

# A build of torchvision whose own operators do not load still imports.
LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for name in "nms", "qnms":
    try:
        LIBRARY.define(name + "(Tensor dets, Tensor scores, "
                       "float iou_threshold) -> Tensor")
    except RuntimeError:
        pass

import PIL.Image  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional  # noqa: E402


def jitter(image, name, value):
    return getattr(functional, "adjust_" + name)(image, value)


def main():
    images = np.load(sys.argv[1])["images"]
    with open(sys.argv[2]) as f:
        printed = json.load(f)
    policy = v2.RandAugment(interpolation=v2.InterpolationMode(printed["how"]),
                            fill=printed["fill"])
    out = []
    for pixels, steps in zip(images, printed["steps"], strict=True):
        image = PIL.Image.fromarray(pixels)
        for name, value in steps:
            image = jitter(image, name, value) if name.islower() else \
                policy._apply_image_or_video_transform(
                    image, name, value, policy.interpolation, policy._fill)
        out.append(np.asarray(image))
    np.save(sys.argv[3], np.stack(out))


main()
