# SPDX-License-Identifier: Apache-2.0
"""help() of every public name has an example, and examples are Python."""
import inspect
import pathlib
import re
import sys
import textwrap

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

NAMES = [name for name in betonfs.__all__ if name != "__version__"]


def examples(doc):
    """Indented blocks of a docstring that are code."""
    blocks = re.findall(r"(?:^ {4,}\S.*(?:\n|$)(?:^ {4,}.*(?:\n|$))*)",
                        doc or "", re.M)
    found = []
    for block in map(textwrap.dedent, blocks):
        try:
            compile(block, "doc", "exec")
        except SyntaxError:
            continue
        if re.search(r"[\w)\]]\(|\[|for ", block):
            found.append(block)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name):
    doc = inspect.getdoc(getattr(betonfs, name))
    assert doc and examples(doc), f"help(betonfs.{name}) has no example"


@pytest.mark.parametrize("name", dir(betonfs.ops))
def test_an_operation_has_an_example(name):
    doc = getattr(betonfs.ops, name).__doc__ or ""
    # Python 3.13 takes the indentation away, of the example too.
    again = doc.replace("\n", "\n    ")
    found = [line for line in examples(doc) or examples(again)
             if "ops." in line]
    assert found, f"help(betonfs.ops.{name}) has no example"
    for code in found:
        if "torchvision" not in doc:
            exec(code, {"betonfs": betonfs, "ops": betonfs.ops})


def methods():
    for name in NAMES:
        kind = getattr(betonfs, name)
        if inspect.isclass(kind):
            for own, value in vars(kind).items():
                if not own.startswith("_") and (
                        callable(value) or isinstance(value, property)):
                    yield f"{name}.{own}"


@pytest.mark.parametrize("name", methods())
def test_a_method_has_help(name):
    kind, _, method = name.partition(".")
    assert inspect.getdoc(getattr(getattr(betonfs, kind), method)), name


def test_examples_are_found():
    assert examples("Text.\n\n    f(x)\n") == ["f(x)\n"]
    assert not examples("Text.\n\n    plain words here\n")
    assert not examples("Text alone.")
