# SPDX-License-Identifier: Apache-2.0
"""betonfs.ray: training and datasets on the machines of a Ray cluster.

    import betonfs.ray
    loader = betonfs.ray.Loader("s3://bucket/train.beton", 256, makers=8,
        pipeline="random_resized_crop(224) | flip | normalize(imagenet)"
                 " | float | chw")
    dataset = betonfs.ray.read("train.beton", 256, train=False)
    betonfs.ray.write("imagenet/train", "train.beton", shards=64)

:class:`Loader` trains on batches that other machines decode, in the same order
and with the same bits as :class:`betonfs.Loader`. Ray is imported when you use
one of these.
"""
from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from ._loader import Loader
    from ._read import read
    from ._write import write

__all__ = ["Loader", "read", "write"]

# Names -> the modules that have them.
_MODULES = {"Loader": "_loader", "read": "_read", "write": "_write"}

if not _TYPE_CHECKING:      # type checkers must not see this function
    def __getattr__(name: str) -> _Any:
        if name not in _MODULES:
            raise AttributeError(f"betonfs.ray has no {name!r}")
        if name == "Loader":    # a class, so its module imports Ray
            from ._needed import needed
            needed("ray", name)
        module = _importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
