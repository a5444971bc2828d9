# SPDX-License-Identifier: Apache-2.0
"""Names that FFCV's modules have, and this package's have not."""
from __future__ import annotations

import importlib
import os
import sys

# FFCV's modules, and where they are here; most have all of a package of its.
_SAME = {
    "fields": ("basics", "bytes", "json", "ndarray", "rgb_image"),
    "loader": ("loader",),
    "memory_managers": ("base", "common", "os_cache", "process_cache",
                        "process_cache.context", "process_cache.manager"),
    "transforms": ("color_jitter", "colorjitter", "common", "cutout",
                   "erasing", "flip", "gaussian_blur", "grayscale", "mixup",
                   "module", "normalize", "ops", "poisoning",
                   "randaugment", "random_resized_crop", "replace_label", "resized_crop",
                   "rotate", "solarization", "translate"),
    "traversal_order": ("base", "quasi_random", "random", "sequential"),
}
_MOVED = {"loader.epoch_iterator": "epoch_iterator",
          "transforms.utils.fast_crop": "transforms.fast_crop"}
_MODULES = ("libffcv", "loader", "memory_managers", "writer", "reader",
            "traversal_order", "fields", "fields.base", "fields.decoders",
            "transforms", "transforms.utils", "pipeline",
            "pipeline.allocation_query", "pipeline.compiler",
            "pipeline.graph", "pipeline.operation", "pipeline.pipeline",
            "pipeline.pipeline_spec", "pipeline.state", "types", "utils")

SHIM = os.path.join(os.path.dirname(__file__), "_shim")


def _names() -> dict[str, str]:
    """FFCV's name, below its package -> ours."""
    names = {name: name for name in _MODULES}
    for ours, theirs in _SAME.items():
        names.update({f"{ours}.{name}": ours for name in theirs})
    return {**names, **_MOVED}


def _bind(package: str) -> None:
    """`package.fields.rgb_image` is an attribute too."""
    for name in _names():
        above, _, last = f"{package}.{name}".rpartition(".")
        parent = sys.modules[above]
        if not hasattr(parent, last):
            setattr(parent, last, sys.modules[f"{package}.{name}"])


def add(package: str) -> None:
    """For `from PACKAGE.transforms.common import Squeeze`."""
    for theirs, ours in _names().items():
        module = importlib.import_module(f"{__package__}.{ours}")
        sys.modules.setdefault(f"{package}.{theirs}", module)
    _bind(package)


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
