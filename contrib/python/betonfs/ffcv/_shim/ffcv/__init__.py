# SPDX-License-Identifier: Apache-2.0
"""In the path of what `python -m betonfs.ffcv` runs, so that processes that it
starts have the same `ffcv`."""
from betonfs.ffcv._aliases import install

install()
