# SPDX-License-Identifier: Apache-2.0
"""Definitions of maps of places, from beton-operations(7) and torchvision."""
import math

import numpy as np


def within(d, least, most):
    return least + d() * (most - least)


def about(d, most):
    return (2 * d() - 1) * most


def matrix(angle, scale, shear, move, size):
    """torchvision's map of places, about the middle."""
    r, sx, sy = (math.radians(v) for v in (angle, *shear))
    a = math.cos(r - sy) / math.cos(sy)
    b = -a * math.tan(sx) - math.sin(r)
    c = math.sin(r - sy) / math.cos(sy)
    e = -c * math.tan(sx) + math.cos(r)
    m = [v / scale for v in (e, -b, 0, -c, a, 0)]
    cx, cy = size[0] / 2, size[1] / 2
    m[2] = m[0] * (-cx - move[0]) + m[1] * (-cy - move[1]) + cx
    m[5] = m[3] * (-cx - move[0]) + m[4] * (-cy - move[1]) + cy
    return m


def coefficients(to, size):
    """The coefficients of the map that moves the corners of the image to `to`."""
    right, bottom = size[0] - 1, size[1] - 1
    start = [(0, 0), (right, 0), (right, bottom), (0, bottom)]
    rows = []
    for (x, y), (u, v) in zip(to, start):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    return np.linalg.solve(np.array(rows, float), np.ravel(start))
