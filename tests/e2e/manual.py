# SPDX-License-Identifier: Apache-2.0
"""Read options, keys and sections of the manual pages of commands."""
import pathlib
import re

PAGES = pathlib.Path(__file__).parents[2] / "loader/tools"


def documented_keys(command):
    """The keys of --json that beton-COMMAND(1) describes: all that its section
    JSON marks by Cm."""
    page, = PAGES.glob(f"*/beton-{command}.1")
    section = page.read_text().split("\n.Sh JSON\n")[1].split("\n.Sh ")[0]
    marked = re.findall(r"^\.(?:It |Pq )?Cm (.*)$", section, re.M)
    return set(re.findall(r"\w+", " ".join(marked)))
