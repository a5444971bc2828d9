# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .operation import Operation


def is_decoder(op: Any) -> bool:
    """Whether an operation is a decoder of this package, or of a subclass."""
    from ..decoders import Decoder
    return isinstance(op, Decoder)


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

    def accept_decoder(self, Decoder: type[Operation],
                       output_name: str = "") -> None:
        """Set the decoder: the first transform if that is a decoder, otherwise
        an instance of this class. An empty pipeline makes tensors."""
        ops = self.transforms
        if self.decoder is None and ops and (
                is_decoder(ops[0]) or isinstance(ops[0], Decoder)):
            self.decoder = ops.pop(0)
        if self.decoder is None:
            self.decoder = Decoder()
        if not ops and self.default_pipeline:
            from ..transforms import ToTensor
            ops.append(ToTensor())

    def __repr__(self) -> str:
        return repr((self.source, self.decoder, self.transforms))
