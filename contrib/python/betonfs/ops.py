# SPDX-License-Identifier: Apache-2.0
"""The operations of pipelines, beton-operations(7), as functions.

    from betonfs import ops
    betonfs.Loader("train.beton", pipeline=
        ops.random_resized_crop(224, scale=(0.25, 1)) | ops.flip()
        | ops.normalize("imagenet") | ops.float() | ops.chw())

Each returns a pipeline string, a :class:`Pipeline`, to which ``|`` appends others.
Numbers that belong together are tuples. A dict has numbers that change with the
epoch: ``ops.random_resized_crop({0: 160, 10: 192})``. A parameter whose name is a
keyword of Python has an underscore: ``ops.mixup(0.2, lambda_="sample")``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _ops
from ._ops import Pipeline
from ._pipeline import as_text


def of(pipeline: Any) -> Pipeline:
    """Return the pipeline string of a list of operations, or of a Compose of
    torchvision.transforms, whose transforms have the same meaning here.

        ops.of([ops.center_crop(224), ops.float()])
        ops.of(v2.Compose([v2.RandomResizedCrop(224), v2.ToTensor()]))

    Raises ValueError for a transform that has no operation here.
    """
    return Pipeline(as_text(pipeline))


# Not the operations: some have the names of Python's types.
__all__ = ["Pipeline", "of"]


def __getattr__(name: str) -> Callable[..., Pipeline]:
    return _ops.function(name, as_text)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ops.rows()])
