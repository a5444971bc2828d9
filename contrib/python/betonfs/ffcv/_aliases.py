# SPDX-License-Identifier: Apache-2.0
"""Names that FFCV's modules have, and this package's have not."""
from __future__ import annotations

import importlib
import os
import sys

# Where FFCV has a class of each file, here one module has them all.
_SAME = {
    "fields": ("basics", "bytes", "json", "ndarray", "rgb_image"),
    "loader": ("loader", "epoch_iterator"),
    "transforms": ("color_jitter", "common", "cutout", "flip", "mixup",
                   "module", "normalize", "ops", "poisoning",
                   "random_resized_crop", "replace_label", "translate"),
    "traversal_order": ("base",),
}
_MODULES = ("loader", "writer", "reader", "traversal_order", "fields",
            "fields.base", "fields.decoders", "transforms", "pipeline",
            "pipeline.allocation_query", "pipeline.compiler",
            "pipeline.operation", "pipeline.pipeline_spec", "pipeline.state")

SHIM = os.path.join(os.path.dirname(__file__), "_shim")


def _names() -> dict[str, str]:
    """FFCV's name, below its package -> ours."""
    names = {name: name for name in _MODULES}
    for ours, theirs in _SAME.items():
        names.update({f"{ours}.{name}": ours for name in theirs})
    return names


def add(package: str) -> None:
    """For `from PACKAGE.transforms.common import Squeeze`."""
    for theirs, ours in _names().items():
        module = importlib.import_module(f"{__package__}.{ours}")
        sys.modules.setdefault(f"{package}.{theirs}", module)


def install() -> None:
    """`import ffcv` is this package, here and in processes started from now
    on."""
    sys.modules["ffcv"] = importlib.import_module(str(__package__))
    for theirs, ours in _names().items():
        sys.modules[f"ffcv.{theirs}"] = importlib.import_module(
            f"{__package__}.{ours}")
    if SHIM not in sys.path:
        sys.path.insert(0, SHIM)
    path = os.environ.get("PYTHONPATH")
    if SHIM not in (path or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = SHIM + (os.pathsep + path if path else "")
