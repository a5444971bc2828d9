# SPDX-License-Identifier: Apache-2.0
"""A Loader's pipeline, as the text of the library."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._dataset import field_facts
from ._checks import shown
from ._ops import as_text, is_uncalled, meant
from ._options import quoted, word_or_string
from ._words import nearest

Text = str | Sequence[str]
Pipeline = Text | Mapping[str, Text | None]

_EXAMPLE = '"random_resized_crop(224) | flip | float | chw"'

# The first word or string of a statement, and what makes it an operation: an
# argument list, or the function of a file.
_FIRST = re.compile(
    r'[ \t\r]*(?:"((?:\\["\\]|[^"\n])*)"(?![ \t\r]*[.(])'
    r'|([\w.+-]++)(?![ \t\r]*\())', re.ASCII)


# --- values of other kinds ---

def _kind(value: Any) -> str:
    return getattr(value, "__name__", "") or type(value).__name__


def _is_of(value: Any, *packages: str) -> bool:
    module = getattr(value, "__module__", "") or ""
    return any(f"{module}.".startswith(f"{name}.") for name in packages)


def _wrong(value: Any) -> TypeError:
    """For an operation that is no text."""
    kind = _kind(value)
    if _is_of(value, "betonfs.ffcv", "ffcv"):
        return TypeError(f"pipeline: {kind} is an operation of FFCV, which "
                         "betonfs.ffcv.Loader takes; here a pipeline is text: "
                         + _EXAMPLE)
    if is_uncalled(value):
        return TypeError(f"pipeline: betonfs.ops.{kind} is a function: call "
                         f"it, as {kind}()")
    if callable(value):
        return TypeError(f"pipeline: {kind} is a Python function, and a "
                         f"pipeline is text: {_EXAMPLE}; transforms=[f] calls "
                         "f on each batch" + meant(kind))
    return TypeError(f"pipeline: {shown(value)} is no text, such as "
                     + _EXAMPLE)


def _text(value: Any) -> str:
    """Return a text, or several of them one after the other."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"pipeline: {shown(value)} has a NUL character")
        return str(value)
    if not _is_of(type(value), "torchvision"):
        if not isinstance(value, (list, tuple)):
            raise _wrong(value)
        value = list(value)
        if not any(_is_of(type(part), "torchvision") for part in value):
            for part in value:
                if not isinstance(part, str):
                    raise _wrong(part)
    return as_text(value) or ""


# --- a dict ---

class _Fields:
    """The words that a pipeline has for the fields: those of file names, and
    those of the dataset."""

    def __init__(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self.stems = {field["stem"]: field["stem"] for field in facts}
        for field in facts:
            self.stems.setdefault(field["name"], field["stem"])
        self.usable = [field["stem"] for field in facts
                       if not field.get("unusable")]

    def first(self, text: str) -> str | None:
        """The stem of the field that a statement begins with, if it does."""
        word = _first_word(text)
        return None if word is None else self.stems.get(word)


def _first_word(text: str) -> str | None:
    """The first word of a statement, unless it must be an operation."""
    found = _FIRST.match(text)
    if not found:
        return None
    string, word = found.groups()
    return word if string is None else re.sub(r'\\(["\\])', r"\1", string)


def _unknown(name: str, text: str | None, fields: _Fields) -> ValueError:
    """For an output of no field."""
    why = f"pipeline: the dataset has no field {name!r}; there are " \
        + ", ".join(fields.stems)
    hint = nearest(name, fields.stems)
    if text is None:
        return ValueError(why + hint)
    word = _first_word(text)
    own = nearest(word, fields.stems) if word else ""
    if own and not hint:
        return ValueError(f"{why}, and its text begins with {word!r}{own}")
    return ValueError(f"{why}{hint}; to give an output another name, begin "
                      f"its text with a field: {{{name!r}: "
                      f'"{fields.usable[0]} | {text}"}}')


def _statement(name: str, text: str | None, fields: _Fields,
               used: set[str]) -> str:
    own = fields.stems.get(name)
    output = word_or_string(name)
    if text is None:
        if own is None:
            raise _unknown(name, text, fields)
        used.add(own)
        return f"{output} | drop"
    text = text.strip()
    first = fields.first(text)
    if first or own:
        used.add(first or own or "")
    if own and not first:
        return f"{output} | {text}" if text else output
    if not first:
        raise _unknown(name, text, fields)
    return text if own == first else f"{output} = {text}"


def _statements(pipeline: Mapping[str, Any], fields: _Fields) -> list[str]:
    used: set[str] = set()
    for name in pipeline:
        if not isinstance(name, str):
            raise TypeError(f"pipeline: {shown(name)} is no name of an output: "
                            'a dict has texts, as {"label": "label | int32"}')
    texts = {name: None if value is None else _text(value)
             for name, value in pipeline.items()}
    lines = [_statement(name, text, fields, used)
             for name, text in texts.items()]
    if any(text is not None for text in texts.values()):
        lines += [f"{quoted(stem)} | drop" for stem in fields.usable
                  if stem not in used]
    return lines


def pipeline_text(pipeline: Pipeline | None, path: str) -> str | None:
    """Return the pipeline string of a dict, which has one statement per output.

    {"image": "center_crop(224)"} is the field `image`, cropped: a text that does
    not begin with a field is about the field of the output's name. A dict names
    all outputs; one that has nothing but None for some fields drops these.
    Several texts instead of one are joined by " | ".
    """
    if pipeline is None:
        return None
    if not isinstance(pipeline, Mapping):
        return _text(pipeline)
    # A text may end in a comment, which ends with the line.
    return "\n".join(_statements(pipeline, _Fields(field_facts(path))))
