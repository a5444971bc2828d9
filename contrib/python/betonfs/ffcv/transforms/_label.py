# SPDX-License-Identifier: Apache-2.0
"""Labels, and mixing samples with others of their batch."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._chain import ARRAY, SCALAR, Chain
from .._draws import Draws
from ._base import BuiltIn, ImageOperation


class ReplaceLabel(BuiltIn):
    """Another label for some samples."""

    def __init__(self, indices: Sequence[int], new_label: int) -> None:
        super().__init__()
        self.indices = np.sort(indices)
        self.new_label = new_label

    def native(self, chain: Chain) -> str | None:
        if chain.kind != SCALAR or chain.device >= 0:
            return None
        if not len(self.indices):
            return ""
        return (f"replace_label({chain.files.ids(self.indices)}, "
                f"{int(self.new_label)})")

    def apply(self, value: Any, draws: Draws) -> Any:
        chosen = np.isin(draws.ids, self.indices)
        if isinstance(value, torch.Tensor):
            value = value.clone()
            value[torch.from_numpy(chosen).to(value.device)] = self.new_label
            return value
        value = np.array(value)
        value[chosen] = self.new_label
        return value


def _shares(op: Any, draws: Draws) -> NDArray[np.float64]:
    """Each sample's own part of its mixture; the same for images and labels."""
    random = draws.batch()
    n = len(draws.ids)
    if op.same_lambda:
        return np.full(n, random.beta(op.alpha, op.alpha))
    return random.beta(op.alpha, op.alpha, n)


class ImageMixup(ImageOperation):
    """Blends every image with the one before it in its batch."""

    def __init__(self, alpha: float, same_lambda: bool) -> None:
        super().__init__()
        self.alpha = alpha
        self.same_lambda = same_lambda

    def native(self, chain: Chain) -> str | None:
        if not chain.may_whole():
            return None
        text = chain.mix(self.alpha, self.same_lambda)
        chain.coloured &= text is None
        return text

    def images(self, images: NDArray[np.uint8],
               draws: Draws) -> NDArray[np.uint8]:
        out = np.empty_like(images)
        for i, share in enumerate(_shares(self, draws)):
            s = np.float32(share)
            out[i] = s * images[i] + (1 - s) * images[i - 1]
        return out


class LabelMixup(BuiltIn):
    """(label, label of the one before, own part), float32; with the arguments
    of its ImageMixup."""

    def __init__(self, alpha: float, same_lambda: bool) -> None:
        super().__init__()
        self.alpha = alpha
        self.same_lambda = same_lambda

    def native(self, chain: Chain) -> str | None:
        if chain.kind != SCALAR or chain.dtype != "int64" or chain.device >= 0:
            return None
        text = chain.mix(self.alpha, self.same_lambda)
        if text is not None:
            chain.kind, chain.dtype = ARRAY, "float32"
        return text

    def apply(self, value: Any, draws: Draws) -> Any:
        tensor = isinstance(value, torch.Tensor)
        labels = np.asarray(value.cpu().numpy() if tensor else value)
        labels = labels.reshape(len(labels))
        out = np.stack([labels, np.roll(labels, 1), _shares(self, draws)],
                       axis=1).astype(np.float32)
        return torch.from_numpy(out).to(value.device) if tensor else out


class MixupToOneHot(BuiltIn):
    """Convert the result of LabelMixup to one weight for every class."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes

    def native(self, chain: Chain) -> str | None:
        after = chain.ops[chain.mixed + 1:]
        if chain.mixed < 0 or any(not op.startswith("cuda")
                                  for op in after if op):
            return None
        # The library mixes classes, where FFCV classifies what is mixed.
        chain.ops[chain.mixed] = (f"one_hot({self.num_classes}) | "
                                  + chain.ops[chain.mixed])
        return ""

    def apply(self, value: Any, draws: Draws) -> Any:
        mixed = torch.as_tensor(value)
        out = torch.zeros((len(mixed), self.num_classes), dtype=mixed.dtype,
                          device=mixed.device)
        share = mixed[:, 2:3]
        # Both are of one class, now and then.
        out.scatter_add_(1, mixed[:, 0:1].long(), share)
        return out.scatter_add_(1, mixed[:, 1:2].long(), 1 - share)
