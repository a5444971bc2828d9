# SPDX-License-Identifier: Apache-2.0
"""python -m betonfs.convert SOURCE OUT.beton: makes a dataset of one that a
Python library reads and that is on this machine. It never downloads anything.

    python -m betonfs.convert --help
"""
