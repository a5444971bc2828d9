# SPDX-License-Identifier: Apache-2.0
"""Show batches as HTML in one file: small pictures, with the other values of
each sample below them."""
from __future__ import annotations

import base64
import html
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _beton
from ._checks import path as checked_path, whole
from ._ragged import RaggedArray
from ._tensors import Ragged, dtype_name, to_float32, to_numpy

ROWS = 16
# Limits of a picture's longer side in pixels, and of a text's length.
_SIDE, _LETTERS = 256, 60
_VALUES = 6     # values of an array to print

_FIGURE = "margin:0;width:132px;font:11px monospace;overflow-wrap:anywhere"
_IMG = "width:128px;image-rendering:pixelated"
_GRID = "display:flex;flex-wrap:wrap;gap:8px"


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of an array (height, width, 1 or 3)."""
    height, width, channels = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(
            ">I", zlib.crc32(kind + data))
    # Each line begins with its filter: 0 is none.
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0,
                       0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(lines.tobytes()))
            + chunk(b"IEND", b""))


# --- rows of any framework ---

def _array(value: Any) -> NDArray[Any]:
    """Return NumPy's array of any framework's; bfloat16 becomes float32."""
    if isinstance(value, _beton.Tensor):
        return np.asarray(to_float32(value)
                          if dtype_name(value.dtype) == "bfloat16"
                          else to_numpy(value))
    for move in ("detach", "cpu", "get"):   # torch's, and cupy's
        if hasattr(value, move):
            value = getattr(value, move)()
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        value = value.float()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


# Types of outputs whose samples are not rows of one array.
_SEQUENCES = (Ragged, RaggedArray, list)


def _named(batch: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(batch, Mapping):
        return batch.items()
    if not isinstance(batch, (tuple, list)):
        batch = (batch,)
    names = getattr(batch, "_names", map(str, range(len(batch))))
    return zip(names, batch)


def _rows(batch: Any, n: int) -> list[dict[str, Any]]:
    """Return at most n samples, each as a dict."""
    columns: dict[str, Any] = {}
    if hasattr(batch, "ids"):
        columns["sample"] = _array(batch.ids)
        columns["valid"] = _array(batch.valid)
    for name, value in _named(batch):
        columns[name] = value if isinstance(value, _SEQUENCES) \
            else _array(value)
    columns = {k: v for k, v in columns.items()
               if isinstance(v, _SEQUENCES) or v.ndim}
    n = min([n, *map(len, columns.values())]) if columns else 0
    return [{k: v[i] for k, v in columns.items()} for i in range(n)]


# --- pictures ---

def _hwc(value: Any) -> NDArray[Any] | None:
    """Return (height, width, channels) if the array can be a picture."""
    if not isinstance(value, np.ndarray) or value.ndim != 3 \
            or value.dtype.kind not in "uif" or not value.size:
        return None
    if value.shape[2] not in (1, 3):
        value = value.transpose(1, 2, 0)
    if value.shape[2] not in (1, 3):
        return None
    step = -(-max(value.shape[:2]) // _SIDE)
    thinned: NDArray[Any] = value[::step, ::step]
    return thinned


def _scaled(pictures: list[NDArray[Any]]) -> tuple[list[NDArray[np.uint8]],
                                                   str]:
    """Convert pictures to uint8, all by the same scale. Also return a note
    about the scale."""
    if all(p.dtype == np.uint8 for p in pictures):
        return pictures, ""
    floats = [p.astype(np.float64) for p in pictures]
    finite = [p[np.isfinite(p)] for p in floats]
    low = min((float(f.min()) for f in finite if f.size), default=0.0)
    high = max((float(f.max()) for f in finite if f.size), default=0.0)
    # Use halves, because the difference of two numbers can overflow.
    span = high / 2 - low / 2 or 1.0
    out = [np.rint(np.nan_to_num((p / 2 - low / 2) / span, nan=0.0)
                   .clip(0, 1) * 255).astype(np.uint8) for p in floats]
    return out, f", scaled: {low:.4g} is black and {high:.4g} white"


def _img(name: str, pixels: NDArray[np.uint8]) -> str:
    data = base64.b64encode(png(pixels)).decode()
    return f'<img style="{_IMG}" alt="{html.escape(name)}" ' \
           f'src="data:image/png;base64,{data}">'


# --- the page ---

def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    elif isinstance(value, np.ndarray) and value.ndim:
        if value.size > _VALUES:
            return f"{value.dtype}{list(value.shape)}"
        value = value.tolist()
    elif isinstance(value, (float, np.floating)):
        value = f"{value:.6g}"
    text = str(value)
    return text if len(text) <= _LETTERS else text[:_LETTERS] + "..."


def _caption(row: Mapping[str, Any], but: Iterable[str]) -> str:
    lines = [] if row.get("valid", True) else ["not valid"]
    lines += [f"{name}: {_text(value)}" for name, value in row.items()
              if name != "valid" and name not in but]
    return "<br>".join(map(html.escape, lines))


class Shown:
    """A grid of samples. A notebook displays it, `save()` writes a complete
    HTML file, and `html` is its source.

        loader.show(16).save("look.html")
        betonfs.Shown([next(iter(loader))])
    """

    def __init__(self, batches: Iterable[Any], n: int = ROWS) -> None:
        n = whole("n", n, 1, 1 << 20)
        rows: list[dict[str, Any]] = []
        for batch in batches:
            rows += _rows(batch, n - len(rows))
            if len(rows) >= n:
                break
        self._rows = len(rows)
        self.html = self._grid(rows)

    @staticmethod
    def _grid(rows: list[dict[str, Any]]) -> str:
        names = list(rows[0]) if rows else []
        images: dict[str, list[NDArray[np.uint8]]] = {}
        about = [f"{len(rows)} samples"]
        for name in names:
            found = [p for p in (_hwc(row[name]) for row in rows)
                     if p is not None]
            if found and len(found) == len(rows):
                images[name], how = _scaled(found)
                first = rows[0][name]
                about.append(f"{name}: {first.dtype}{list(first.shape)}{how}")
        figures = "".join(
            f'<figure style="{_FIGURE}">'
            + "".join(_img(name, p[i]) for name, p in images.items())
            + f"<figcaption>{_caption(row, images)}</figcaption></figure>"
            for i, row in enumerate(rows))
        return (f"<p>{html.escape('; '.join(about))}</p>"
                f'<div style="{_GRID}">{figures}</div>')

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the grid as a page of HTML."""
        with open(checked_path("path", path, "the page to write"), "w", encoding="utf-8") as f:
            f.write('<!DOCTYPE html><html><head><meta charset="utf-8">'
                    f"<title>betonfs</title></head><body>{self.html}</body>"
                    "</html>\n")

    def __repr__(self) -> str:
        return f"<betonfs.Shown: {self._rows} samples; save(path) writes HTML>"
