# SPDX-License-Identifier: Apache-2.0
"""Runs under the interpreter that TORCHVISION_PYTHON names: masks, boxes and
points of torchvision's v2.

    python moved_by_torchvision.py CASES.json MASKS.npz OUT.json OUT.npz

CASES.json has for each case the size of an image, the steps [name, arguments],
boxes and points. MASKS.npz may have the mask of each case, by its number.
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

from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms.v2 import functional  # noqa: E402


def run(value, steps):
    for name, args in steps:
        value = getattr(functional, name)(value, **args)
    return value


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    masks = np.load(sys.argv[2])
    moved, out = [], {}
    for i, case in enumerate(cases):
        canvas = case["size"][1], case["size"][0]
        boxes = tv_tensors.BoundingBoxes(
            torch.tensor(case["boxes"], dtype=torch.float64).reshape(-1, 4),
            format="XYXY", canvas_size=canvas)
        boxes = functional.clamp_bounding_boxes(boxes)
        points = tv_tensors.KeyPoints(
            torch.tensor(case["points"], dtype=torch.float64).reshape(-1, 2),
            canvas_size=canvas)
        moved.append([functional.clamp_bounding_boxes(
            run(boxes, case["steps"])).tolist(),
            run(points, case["steps"]).tolist()])
        if str(i) in masks:
            mask = tv_tensors.Mask(torch.from_numpy(masks[str(i)].copy()))
            out[str(i)] = run(mask, case["steps"]).numpy()
    with open(sys.argv[3], "w") as f:
        json.dump(moved, f)
    np.savez(sys.argv[4], **out)


main()
