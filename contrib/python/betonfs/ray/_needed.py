# SPDX-License-Identifier: Apache-2.0
"""Ray, which is imported only when it is used."""
from __future__ import annotations

import importlib
from typing import Any

# Modules -> the extra of this package that installs them.
_EXTRAS = {"ray": "ray", "ray.data": "ray-data"}


def needed(module: str, call: str) -> Any:
    """Import a module of Ray. If it is not installed, the ImportError of the
    function or class `call` contains the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ImportError(
            f"betonfs.ray.{call} needs {module}, which does not import "
            f"({e}): pip install \"betonfs[{_EXTRAS[module]}]\"",
            name=e.name) from e
