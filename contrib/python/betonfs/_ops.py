# SPDX-License-Identifier: Apache-2.0
"""Functions that make pipeline strings, one per operation of the library.

stubs() is the text of ops.pyi, from which editors complete them.
"""
from __future__ import annotations

import enum
import functools
import inspect
import json
import keyword
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _beton
from ._options import identifier_or_string
from ._words import nearest


def is_uncalled(value: Any) -> bool:
    """Whether it is a function of betonfs.ops, and not what it returns."""
    return callable(value) and getattr(value, "__module__", "") == "betonfs.ops"


def check_called(value: Any) -> None:
    if is_uncalled(value):
        raise TypeError(f"betonfs.ops.{value.__name__} is a function: call it, "
                        f"as {value.__name__}()")


class Pipeline(str):
    """A pipeline string, to which ``|`` appends operations.

        from betonfs import ops
        train = ops.random_resized_crop(224, scale=(0.25, 1)) | ops.flip()
        train                   # random_resized_crop(224, scale="0.25,1") | flip
        "image" | train         # the same for the field `image`
    """

    __slots__ = ()

    def __or__(self, other: str) -> Pipeline:
        if not isinstance(other, str):
            check_called(other)
            return NotImplemented
        return Pipeline(f"{self} | {other}")

    def __ror__(self, other: str) -> Pipeline:
        if not isinstance(other, str):
            return NotImplemented
        return Pipeline(f"{other} | {self}")


# --- arguments ---

def _spelled(value: Any) -> str:
    """A value as a pipeline string has it, without quotes."""
    if hasattr(value, "tolist"):    # numbers and arrays of NumPy and torch
        value = value.tolist()
    if isinstance(value, Mapping):
        return ",".join(f"{epoch}={_spelled(v)}"
                        for epoch, v in value.items())
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return ",".join(map(_spelled, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _python_name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


# --- operations ---

@functools.cache
def rows() -> dict[str, dict[str, Any]]:
    """The operations of the library by name, as beton_operations() has them."""
    return {op["name"]: op for op in json.loads(_beton.operations())}


# British spellings, which the library accepts in pipeline strings too.
_AMERICAN = {"colour": "color", "centre": "center", "grey": "gray",
             "ise": "ize"}


def _american(name: str) -> str:
    for british, american in _AMERICAN.items():
        name = name.replace(british, american)
    return name


def _plain(name: str) -> str:
    return _american(name.lower().replace("_", ""))


@functools.cache
def _plain_names() -> dict[str, str]:
    """The names of operations by what they are called here and elsewhere."""
    own = {_plain(name): name for name in rows()}
    return {**{_plain(synonym): name for name, op in rows().items()
               for synonym in op["synonyms"]}, **own}


# The first word of a stage of a pipeline, and its arguments.
_STAGE = re.compile(r"(?:^|[|=(,;\n])[ \t\r]*([A-Za-z]\w*)[ \t\r]*"
                    r"(?:\(([^()]*)\))?", re.ASCII)


def called(text: str) -> list[tuple[str, str]]:
    """The operations of a pipeline, in its order, with their arguments."""
    found = ((_plain_names().get(_plain(m[1])), m[2] or "")
             for m in _STAGE.finditer(text))
    return [(name, arguments) for name, arguments in found if name]


def _draws_nothing(name: str, arguments: str) -> bool:
    """Whether its arguments leave no choice."""
    if name == "gain":
        return '"' not in arguments
    return name in ("excerpt", "window") and \
        re.search(r"\b(center|start|end)\b", arguments) is not None


def random_operations(text: str) -> list[str]:
    """The names of those that draw random numbers for a sample."""
    names = []
    for name, arguments in called(text):
        params = {p["name"]: p for p in rows()[name]["params"]}
        always = params.get("p", {}).get("default") == "1" \
            and "p=" not in arguments
        fixed = _draws_nothing(name, arguments)
        if "group" in params and not always and not fixed \
                and name not in names:
            names.append(name)
    return names


def own_name(name: str) -> str | None:
    """The operation of a name that torchvision, FFCV or others have."""
    return _plain_names().get(_plain(name))


def meant(name: str) -> str:
    """Return "; did you mean `OPERATION'?" for a name that torchvision, FFCV or
    others have, or that is near; or ""."""
    own = own_name(name)
    if own:
        return f"; did you mean `{own}'?"
    return nearest(name.lower(), rows())


def _is_several(param: Mapping[str, Any]) -> bool:
    """Whether it takes any number of lists of operations."""
    return bool(param["kind"] == "operations" and param["max_count"] > 1)


def _signature(op: Mapping[str, Any]) -> inspect.Signature:
    several = any(map(_is_several, op["params"]))
    plain = (inspect.Parameter.KEYWORD_ONLY if several
             else inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([
        inspect.Parameter(
            _python_name(p["name"]), inspect.Parameter.VAR_POSITIONAL
            if _is_several(p) else plain,
            default=inspect.Parameter.empty if p["default"] is None
            else p["default"] or None)
        for p in op["params"]], return_annotation="Pipeline")


# A function that makes a pipeline string of a list of operations.
AsText = Callable[[Any], str | None]


def _operations(name: str, value: Any, as_text: AsText) -> str:
    """A list of operations as a pipeline string."""
    text = as_text(value)
    if not text:
        raise TypeError(f"{name}: {value!r} is no operation, as "
                        "betonfs.ops.invert()")
    return text


def _argument(op: str, param: Mapping[str, Any], value: Any,
              as_text: AsText) -> str:
    """An argument as a pipeline string has it."""
    if _is_several(param):
        return ", ".join(_operations(op, one, as_text) for one in value)
    if isinstance(value, enum.Enum):    # torchvision's and Pillow's words
        value = _WORDS.get(value.name.lower(), value.name.lower())
    text = _operations(op, value, as_text) if param["kind"] == "operations" \
        else identifier_or_string(_spelled(value))
    return text if param["default"] is None else f"{param['name']}={text}"


# Words of InterpolationMode that have another one here.
_WORDS = {"nearest_exact": "nearest"}
_VALUES = {"name": "text", "choice": "", "bytes": "bytes, as \"64GiB\"",
           "operations": "operations"}


def _example(op: Mapping[str, Any]) -> str:
    needed = {"integers": "16", "reals": "0.5", "choice": "", "name": '"x.npy"',
              "bytes": '"64GiB"', "operations": "betonfs.ops.invert()"}
    given = [repr(p["choices"][0]) if p["choices"] else
             ", ".join([needed[p["kind"]]] * (1 + _is_several(p)))
             for p in op["params"] if p["default"] is None]
    return f"betonfs.ops.{op['name']}({', '.join(given)})"


def _about(param: Mapping[str, Any]) -> str:
    """A line of help."""
    least, most = param["min_count"], param["max_count"]
    count = f"{most}" if least == most else f"{least} to {most}"
    values = [_VALUES.get(param["kind"], "a number" if most == 1
                          else f"{count} numbers")]
    values += param["choices"]
    initial = f" (default: {param['default']})" if param["default"] else ""
    return (f"    {_python_name(param['name'])}: "
            f"{', '.join(v for v in values if v)}\n"
            f"        {param['help']}{initial}\n")


def doc(op: Mapping[str, Any]) -> str:
    """The help of an operation, with an example."""
    about = "".join(map(_about, op["params"]))
    return (f"{op['help']}. See beton-operations(7).\n\n" + about
            + ("\n" if about else "") + f"    {_example(op)}\n")


@functools.cache
def function(name: str, as_text: AsText) -> Callable[..., Pipeline]:
    """The function of an operation, whose arguments that are operations become
    texts by `as_text`; AttributeError: there is none."""
    name = name if name in rows() else _american(name)
    op = rows().get(name)
    if op is None:
        raise AttributeError(
            f"there is no operation {name!r}; there are " + ", ".join(rows())
            + (meant(name) or "; Loader(transforms=[f]) calls any function on "
               "each batch"))
    names = {_python_name(p["name"]): p for p in op["params"]}
    signature = _signature(op)

    def make(*args: Any, **kwargs: Any) -> Pipeline:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as e:
            why = str(e).replace("got an unexpected keyword argument",
                                 "there is no parameter")
            raise TypeError(f"{name}{signature}: {why}") from None
        words = []
        for key, value in given.items():
            if value is not None or names[key]["kind"] == "operations":
                words.append(_argument(name, names[key], value, as_text))
        return Pipeline(f"{name}({', '.join(words)})" if words else name)
    make.__name__ = make.__qualname__ = name
    make.__module__ = "betonfs.ops"
    make.__doc__ = doc(op)
    setattr(make, "__signature__", signature)
    return make


# --- ops.pyi ---

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# The text of betonfs._ops.stubs().
import builtins
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from ._ops import Pipeline as Pipeline

_Whole = builtins.int | Mapping[builtins.int, builtins.int] | str
_Wholes = (builtins.int | Sequence[builtins.int]
           | Mapping[builtins.int, builtins.int | Sequence[builtins.int]] | str)
_Real = builtins.float | Mapping[builtins.int, builtins.float] | str
_Reals = (builtins.float | Sequence[builtins.float]
          | Mapping[builtins.int, builtins.float | Sequence[builtins.float]]
          | str)
_Name = str | os.PathLike[str] | builtins.float | Sequence[builtins.int]
_Size = builtins.int | str
_Operations = str | Sequence[str]

def of(pipeline: Any) -> Pipeline: ...
'''


def _type(param: Mapping[str, Any]) -> str:
    if param["kind"] == "choice":
        words = f"Literal[{', '.join(map(json.dumps, param['choices']))}]"
        return words + (" | Enum" if param["name"] == "interpolation" else "")
    other = {"name": "_Name", "bytes": "_Size", "operations": "_Operations"}
    if param["kind"] in other:
        return other[param["kind"]]
    kind = {"integers": "_Whole", "reals": "_Real"}[param["kind"]]
    return kind if param["max_count"] == 1 else kind + "s"


def _stub(op: Mapping[str, Any]) -> str:
    lines = []
    for p in op["params"]:
        initial = "" if p["default"] is None else " = ..."
        none = " | None" if p["default"] == "" else ""
        star = "*" * _is_several(p)
        lines.append(f"    {star}{_python_name(p['name'])}: {_type(p)}{none}"
                     f"{initial},\n")
    head = f"def {op['name']}("
    text = f'    """{op["help"]}."""\n'
    if not lines:
        return f"{head}) -> Pipeline:\n{text}"
    return f"{head}\n{''.join(lines)}) -> Pipeline:\n{text}"


def stubs() -> str:
    """The text of ops.pyi."""
    return _HEAD + "".join("\n" + _stub(op) for op in rows().values())

