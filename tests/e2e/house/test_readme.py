# SPDX-License-Identifier: Apache-2.0
"""README.md: its console session and its Python block run and print the shown
results, and its links lead to existing files."""
import re

import pytest

import blocks
import package  # noqa: F401  skips where there is no package

README = blocks.ROOT / "README.md"


def test_its_session_and_its_python_run(tmp_path):
    ran, reasons = blocks.run_page(README, tmp_path, ["imagenet"])
    if reasons:
        pytest.skip("; ".join(reasons))
    assert ran == 2


def test_its_session_has_the_programs_of_a_first_hour():
    code = "\n".join(b.code for b in blocks.blocks(README))
    for word in ("mkfs.beton", "betonfs train.beton mnt", "ls mnt", "cat mnt/",
                 "beton bench", "fusermount3 -u mnt", "betonfs.Loader("):
        assert word in code, word


def test_its_links_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", README.read_text())
    local = [t for t in targets if "://" not in t]
    assert len(local) > 10
    for target in local:
        if not target.startswith("contrib/docs/pictures/"):
            assert (blocks.ROOT / target).exists(), target
