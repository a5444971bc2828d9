# SPDX-License-Identifier: Apache-2.0
"""betonfs on a Ray cluster: ``pip install "betonfs[ray]"``.

    import ray, betonfs.ray
    ray.init(address="auto")
    loader = betonfs.ray.Loader("s3://bucket/train.beton", 256, makers=8,
        pipeline="random_resized_crop(224) | flip | normalize(imagenet)"
                 " | float | chw")
    for batch in loader:
        train(batch["image"], batch["label"])

:class:`Loader` trains on batches that other machines decode, in the same order
and with the same bits as :class:`betonfs.Loader`.
"""
from __future__ import annotations

try:
    import ray as _ray
except ImportError as _error:
    raise ImportError('betonfs.ray needs Ray: pip install "betonfs[ray]"') \
        from _error

from ._loader import Loader

__all__ = ["Loader"]
