# SPDX-License-Identifier: Apache-2.0
"""Pictures of HTML pages, by a browser without a window. Needs Pillow."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60


def find():
    """The path of a browser. Without one, print how to install it, and exit
    with 0: the picture stays as it is."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        print(f"{pathlib.Path(sys.argv[0]).name}: no browser, so the picture "
              "stays as it is; to draw it again, install chromium, for example "
              "by apt-get install chromium", file=sys.stderr)
        sys.exit(0)
    return found


def draw(page, out, width, height, colors):
    """Write the top of an HTML file as a PNG with so many colors."""
    with tempfile.TemporaryDirectory() as work:
        shot = pathlib.Path(work, "page.png")
        subprocess.run(
            [find(), "--headless", "--no-sandbox", "--disable-gpu",
             "--hide-scrollbars", f"--user-data-dir={work}/profile",
             f"--window-size={width},{height}", f"--screenshot={shot}",
             page.as_uri()], check=True, timeout=SECONDS,
            stderr=subprocess.DEVNULL)
        image = Image.open(shot).convert("RGB")
        image.quantize(colors, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True)
