# SPDX-License-Identifier: Apache-2.0
"""The random numbers of operations in Python, written from the definitions in
beton-transforms(7) and beton-orders(7) and not from the C sources."""
import math

from orders import M, WEYL, key, mix


def key_of_text(text):
    k = mix(WEYL)
    for byte in text.encode():
        k = mix((k ^ byte) + WEYL & M)
    return k


class Noise:
    """Numbers of 64 bits of a key."""

    def __init__(self, key):
        self.key = key
        self.position = 0

    def __call__(self):
        self.position += 1
        return mix(self.key + WEYL * self.position & M)


class Draws:
    """The stream of an operation for a sample. OP:GROUP names it."""

    def __init__(self, seed, epoch, sample, op):
        self.key = key([seed, epoch, sample, 0, key_of_text(op)])
        self.position = 0

    def __call__(self):
        """Uniform in [0, 1)."""
        self.position += 1
        return (mix(self.key + WEYL * self.position & M) >> 11) / (1 << 53)

    def below(self, n):
        return int(self() * n)


def beta(alpha, d):
    while True:
        u, v = d(), d()
        if alpha <= 1:
            x, y = math.log(1 - u) / alpha, math.log(1 - v) / alpha
            if math.exp(x) + math.exp(y) <= 1:
                return 1 / (1 + math.exp(y - x))
        else:
            w = 2 * v - 1
            s = u * u + w * w
            if 0 < s <= 1:
                return .5 + u * w / s * math.sqrt(1 - s ** (2 / (2 * alpha
                                                                - 1)))
