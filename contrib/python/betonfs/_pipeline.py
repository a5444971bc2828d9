# SPDX-License-Identifier: Apache-2.0
"""Convert the pipeline of a Loader to a pipeline string of the library."""
from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from . import _torchvision
from ._dataset import field_facts
from ._checks import shown
from ._ops import (called, check_called, is_uncalled, meant,
                   random_operations)
from ._ops import Pipeline as Operations
from ._options import quoted, identifier_or_string
from ._words import nearest

Text = str | Sequence[str]


class Outputs(Protocol):
    """A dict of texts by output. Checkers of types take a dict for a Mapping of
    its own type of keys alone."""

    def keys(self) -> Iterable[str | tuple[str, ...]]: ...
    def __getitem__(self, name: Any, /) -> Text | None: ...


Pipeline = Text | Outputs

_EXAMPLE = '"random_resized_crop(224) | flip | float | chw"'

# The first identifier or string of a statement. An argument list, or the
# function of a file, after it marks an operation.
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
    """Return the message for an operation that is not a string."""
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


def as_text(pipeline: Any) -> str | None:
    """A pipeline string of a string, a list of operations, or a Compose of
    torchvision's. ValueError: it has no pipeline string."""
    if pipeline is None or isinstance(pipeline, str):
        return pipeline
    if isinstance(pipeline, Sequence):
        for part in pipeline:
            check_called(part)
        if all(isinstance(part, str) for part in pipeline):
            return Operations(" | ".join(pipeline))
        pipeline = list(pipeline)
    elif type(pipeline).__module__ == "builtins" and not callable(pipeline):
        raise ValueError(f"{pipeline!r} is no pipeline: a text, a list of "
                         "operations, or a Compose of torchvision")
    check_called(pipeline)
    return Operations(_torchvision.text(pipeline))


def _text(value: Any) -> str:
    """Return a string. Join a list of strings."""
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


# --- what looks right and is not ---

_GROUP = re.compile(r"group\s*=\s*(\d+)")
_MIXTURES = ("mixup", "cutmix")


def _groups_of_mixtures(text: str) -> list[str]:
    found = [(name, _GROUP.search(arguments))
             for name, arguments in called(text)]
    return [group[1] if group else "0"
            for name, group in found if name in _MIXTURES]


# Operations on colors that expect white at 255.
_COLORS = ("brightness", "contrast", "grayscale", "invert", "normalize",
           "saturation", "solarize")


def _colors_after_normalize(text: str) -> str | None:
    """Return the first operation on colors after normalize in a statement."""
    for statement in re.split(r"[;\n]", text):
        names = [name for name, _ in called(statement)]
        after = names[names.index("normalize") + 1:] \
            if "normalize" in names else []
        for name in after:
            if name in _COLORS:
                return name
    return None


def _mixtures_that_differ(text: str) -> list[str]:
    """Return the names of mixtures, if the statements use different ones."""
    found = {tuple(name for name, _ in called(statement) if name in _MIXTURES)
             for statement in re.split(r"[;\n]", text)} - {()}
    return sorted({name for names in found for name in names}) \
        if len(found) > 1 else []


_FIXED = {"excerpt": "at=center", "window": "at=center",
          "gain": "a gain of one number"}


def _instead(names: Sequence[str]) -> str:
    """Operations for validation, and the random ones that they replace."""
    return ", ".join(dict.fromkeys(
        _FIXED.get(name, "resize and center_crop") for name in names))


def tell_mistakes(text: str | None, train: bool,
                  outputs: Sequence[Mapping[str, Any]]) -> None:
    """Warn about validation with random numbers, about images that are mixed
    without their labels, and about operations on colors after normalize."""
    names = [] if train else random_operations(text or "")
    if names:
        warnings.warn(
            f"train=False, and the pipeline draws random numbers for "
            f"{', '.join(names)}: figures depend on the draws; validation has "
            f"{_instead(names)} in their place", UserWarning, stacklevel=4)
    groups = _groups_of_mixtures(text or "")
    labels = [o["name"] for o in outputs if len(o["shape"]) < 2]
    if len(groups) == 1 and labels and len(outputs) > 1:
        warnings.warn(
            "the pipeline mixes rows of one output alone, and "
            f"{', '.join(labels)} stay as they are: mix labels too, as in "
            '"label | one_hot(1000) | mixup(0.2)"', UserWarning, stacklevel=4)
    both = _mixtures_that_differ(text or "")
    if both:
        warnings.warn(
            f"the pipeline mixes one output with {both[0]} and another with "
            f"{both[-1]}: labels do not fit the images; mix all in the same "
            "way, as in random_choice(mixup(0.2), cutmix(1)) for both",
            UserWarning, stacklevel=4)
    late = _colors_after_normalize(text or "")
    if late:
        warnings.warn(
            f"the pipeline has {late} after normalize: 255 is white for "
            f"{late}, and values are about 0 there; put it before normalize, "
            "which comes once", UserWarning, stacklevel=4)
    if len(set(groups)) > 1:
        warnings.warn(
            f"the pipeline mixes with groups {', '.join(groups)}: each group "
            "draws shares of its own, so that labels do not fit the images; "
            "give all the same group=", UserWarning, stacklevel=4)


# --- a dict ---

class _Fields:
    """Return the names of the fields in pipeline strings: their file-name
    forms, and their names in the dataset."""

    def __init__(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self.stems = {field["stem"]: field["stem"] for field in facts}
        for field in facts:
            self.stems.setdefault(field["name"], field["stem"])
        self.usable = [field["stem"] for field in facts
                       if not field.get("unusable")]

    def first(self, text: str) -> str | None:
        """Return the file-name form of the field at the start of a statement,
        or None."""
        word = _first_word(text)
        return None if word is None else self.stems.get(word)


def _first_word(text: str) -> str | None:
    """Return the first identifier of a statement, unless it must be an
    operation."""
    found = _FIRST.match(text)
    if not found:
        return None
    string, word = found.groups()
    return word if string is None else re.sub(r'\\(["\\])', r"\1", string)


def _unknown(name: str, text: str | None, fields: _Fields) -> ValueError:
    """Return the message for an output without a field."""
    why = f"pipeline: the dataset has no field {name!r}; there are " \
        + ", ".join(fields.stems)
    parts = [part.strip(" ()") for part in name.split(",")]
    if len(parts) > 1 and all(part in fields.stems for part in parts):
        several = ", ".join(f'"{part}"' for part in parts)
        return ValueError(f"{why}; the key of several fields is a tuple: "
                          f"{{({several}): ...}}")
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
    output = identifier_or_string(name)
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


def _member(text: str, fields: _Fields, used: set[str]) -> str:
    """A field of a statement of several fields, with separate operations."""
    stem = fields.first(text)
    if stem is None:
        raise _unknown(text, None, fields)
    used.add(stem)
    name = text.strip()
    return identifier_or_string(name) if name in fields.stems else name


def _statement_of(names: tuple[str, ...], text: str | None, fields: _Fields,
                  used: set[str]) -> str:
    """Return the statement of several fields, which share random numbers."""
    if text is None:
        return "\n".join(_statement(name, None, fields, used)
                         for name in names)
    members = ", ".join(_member(name, fields, used) for name in names)
    text = text.strip()
    return f"({members}) | {text}" if text else f"({members})"


def _is_name(name: Any) -> bool:
    return isinstance(name, str) or (
        isinstance(name, tuple) and bool(name)
        and all(isinstance(one, str) for one in name))


def _statements(pipeline: Mapping[Any, Any], fields: _Fields) -> list[str]:
    used: set[str] = set()
    for name in pipeline:
        if not _is_name(name):
            raise TypeError(f"pipeline: {shown(name)} is no name of an output: "
                            'a dict has texts, as {"label": "label | int32"}')
    texts = {name: None if value is None else _text(value)
             for name, value in pipeline.items()}
    lines = [_statement(name, text, fields, used) if isinstance(name, str)
             else _statement_of(name, text, fields, used)
             for name, text in texts.items()]
    if any(text is not None for text in texts.values()):
        lines += [f"{quoted(stem)} | drop" for stem in fields.usable
                  if stem not in used]
    return lines


def pipeline_text(pipeline: Pipeline | None, path: str,
                  storage: str | None = None) -> str | None:
    """Return the pipeline string of a dict, which has one statement per output.

    {"image": "center_crop(224)"} is the field `image`, cropped: a text that does
    not begin with a field is about the field of the output's name. A dict names
    all outputs; one that has nothing but None for some fields drops these.
    {("image", "mask"): "random_resized_crop(224) | flip"} applies a text to
    several fields, with the same random numbers.
    Several texts instead of one are joined by " | ".
    """
    if pipeline is None:
        return None
    if not isinstance(pipeline, Mapping):
        return _text(cast(Text, pipeline))
    # End a comment at the end of a string with a newline.
    return "\n".join(_statements(pipeline, _Fields(field_facts(path, storage))))
