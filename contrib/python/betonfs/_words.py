# SPDX-License-Identifier: Apache-2.0
"""The words of other loaders, and what they are called here."""
from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str:
    """Return "; did you mean `WORD'?", or "" if nothing is near."""
    found = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean `{found[0]}'?" if found else ""
