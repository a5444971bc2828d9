# SPDX-License-Identifier: Apache-2.0
from . import fast_crop

__all__ = ["fast_crop"]
