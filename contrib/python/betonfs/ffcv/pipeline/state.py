# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class State:
    """Describes the values between two operations: NumPy arrays for compiled
    code (`jit_mode`) or tensors, their device, and the shape of one sample."""

    jit_mode: bool
    device: Any
    shape: Any
    dtype: Any
