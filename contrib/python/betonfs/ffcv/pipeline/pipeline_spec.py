# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .operation import Operation


class PipelineSpec:
    """One output: of a field by its name, or of what an operation of another
    pipeline gives."""

    def __init__(self, source: str | Operation,
                 decoder: Operation | None = None,
                 transforms: Sequence[Any] | None = None) -> None:
        if decoder is not None and not isinstance(source, str):
            raise ValueError("a pipeline whose source is an operation has no "
                             "decoder")
        self.source = source
        self.decoder = decoder
        self.transforms = list(transforms or ())
        self.default_pipeline = (decoder is None and not self.transforms
                                 and isinstance(source, str))

    def __repr__(self) -> str:
        return repr((self.source, self.decoder, self.transforms))
