# SPDX-License-Identifier: Apache-2.0
"""Operations in files, which need a C compiler."""
import shutil

import pytest
# Burns time for each pixel.
SLOW = """
static void slow(float v[3], const struct beton_at *at, float rounds)
{
	volatile float x = at->random[0];

	for (int i = 0; i < (int)rounds; i++)
		x = x * 0.5f + 1;
	v[0] = x;
}
"""
COMPILER = any(shutil.which(c) for c in ("cc", "gcc", "clang"))
needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler")
