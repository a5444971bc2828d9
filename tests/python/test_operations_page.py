# SPDX-License-Identifier: Apache-2.0
"""The page of pictures that contrib/operations makes, and, where
TORCHVISION_PYTHON names an interpreter, how far torchvision's results are."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("PIL")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
if not list(BUILD.glob("python/betonfs/_beton*.so")):
    pytest.skip("the package is not built", allow_module_level=True)
sys.path.insert(0, str(BUILD / "python"))

from betonfs import _ops  # noqa: E402

TORCHVISION = os.environ.get("TORCHVISION_PYTHON")
# Units of 255; the limit of other operations is 0.
AT_MOST = {"grayscale": 1, "resize": 1, "gaussian_blur": 1}


def page(path, *options):
    subprocess.run(
        [sys.executable, ROOT / "contrib/operations", "--out", path,
         "--package", BUILD / "python", *options], check=True)
    return path.read_text()


def sections(text):
    return {name: body for name, body in re.findall(
        r'<section id="(\w+)">(.*?)</section>', text, re.S)}


def test_each_operation_on_images_is_shown_at_three_strengths(tmp_path):
    found = sections(page(tmp_path / "x.html"))
    assert len(found) >= 16 and set(found) <= set(_ops.rows())
    for name, body in found.items():
        pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', body)
        assert len(pictures) == 3, name
        assert len(set(pictures)) >= 2, name


@pytest.mark.skipif(not TORCHVISION, reason="TORCHVISION_PYTHON names none")
def test_torchvision_makes_the_same(tmp_path):
    found = sections(page(tmp_path / "x.html", "--torchvision", TORCHVISION))
    compared = 0
    for name, body in found.items():
        for most in re.findall(r"<figcaption>difference[^<]*at most (\d+)",
                               body):
            assert int(most) <= AT_MOST.get(name, 0), name
            compared += 1
    assert compared >= 20
