# SPDX-License-Identifier: Apache-2.0
"""Records of a script's batches, for a comparison."""
import json

import numpy as np
import torch


class Records:
    """facts: of any values, what they look like; values: arrays; losses."""

    def __init__(self):
        self.facts, self.values, self.losses = {}, {}, []

    def look(self, name, batch):
        self.facts[name] = [
            (list(x.shape), str(x.dtype),
             list(x.stride() if torch.is_tensor(x) else x.strides))
            for x in batch]

    def keep(self, name, batch):
        self.look(name, batch)
        for i, x in enumerate(batch):
            self.values[f"{name}.{i}"] = np.array(x)

    def save(self, out):
        np.savez(out, **self.values)
        with open(str(out) + ".json", "w") as f:
            json.dump({"facts": self.facts, "losses": self.losses}, f)


class Pictures:
    """Images of distinct classes: a bright disc, whose position and color
    depend on the class, and noise. `size(i)` is (height, width)."""

    def __init__(self, n, size, classes=4):
        self.n, self.size, self.classes = n, size, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        rng = np.random.default_rng(i)
        label, (h, w) = i % self.classes, self.size(i)
        y, x = np.ogrid[:h, :w]
        angle = 2 * np.pi * label / self.classes
        cy, cx = h * (.5 + .25 * np.sin(angle)), w * (.5 + .25 * np.cos(angle))
        disc = (y - cy) ** 2 + (x - cx) ** 2 < (min(h, w) / 5) ** 2
        image = rng.integers(0, 96, (h, w, 3), dtype=np.uint8)
        image[disc, label % 3] += 150
        return image, label
