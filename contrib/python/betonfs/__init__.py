# SPDX-License-Identifier: Apache-2.0
"""betonfs: batches of ready tensors from FFCV's .beton datasets.

    import betonfs
    loader = betonfs.Loader("train.beton", batch_size=256, pipeline=
        "random_resized_crop(224) | flip | normalize(imagenet) | float | chw")
    for batch in loader:
        train(batch["image"], batch["label"])
"""
from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _beton, ops
from ._batch import Batch, TupleBatch
from ._compiled import compiled
from ._dataset import Dataset
from ._errors import BetonError
from ._loader import Loader
from ._merge import merge
from ._mix import Mix
from ._ragged import RaggedArray
from ._show import Shown
from ._tensors import Ragged
from ._writer import write

__version__ = _beton.version
__all__ = ["Batch", "BetonError", "Dataset", "Loader", "Mix", "Ragged",
           "RaggedArray", "Shown", "TupleBatch", "__version__", "compiled",
           "merge", "ops", "write"]

# Names in other packages -> the names here, for hints.
_OTHERS = {
    "DataLoader": "Loader", "TraversalOrder": "Loader", "load": "Loader",
    "open": "Dataset", "ImageFolder": "Dataset", "read": "Dataset",
    "DatasetWriter": "write", "Writer": "write", "save": "write",
    "concat": "merge", "concatenate": "merge", "ConcatDataset": "merge",
    "append": "write",
    "Compose": "ops", "transforms": "ops", "Pipeline": "ops",
}

if not _TYPE_CHECKING:      # type checkers must not see this function
    def __getattr__(name: str) -> _Any:
        if name in ("ffcv", "ray"):
            return _importlib.import_module(f"betonfs.{name}")
        hint = f"; did you mean betonfs.{_OTHERS[name]}?" \
            if name in _OTHERS else ""
        raise AttributeError(f"betonfs has no {name!r}{hint}")
