#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the language of pages, comments, docstrings and messages.

words.py [PATH...]

Without PATH it checks every file that git tracks. Each finding is a line with
file, line number, rule and text. The exit status is 1 if there is a finding.
contrib/HACKING.md has the rules and the terms.
"""
from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that list the words themselves, licenses, and data.
SKIPPED = re.compile(
    r"LICENSE|tests/lint/words\.py|tests/e2e/house/test_words\.py|.*/corpus/.*|.*\.(json|svg|png|beton|pem|"
    r"css|abi|inc|txt)")

Piece = tuple[int, str]     # first line, text
# Behind a comment, code or a macro that the text does not contain.
CODE = "\N{OBJECT REPLACEMENT CHARACTER}"

# The end of a paragraph in a page, within its line, so that each line of the
# page is one line of the text.
BREAK = "\f"


def word(pattern: str) -> re.Pattern[str]:
    """A pattern of whole words that are no part of a path, an option, an
    assignment, a call or a quotation."""
    return re.compile(rf"(?<![\w./$=<>`-])(?:{pattern})(?![\w/=<>(`-])", re.I)


# `code`, keys of JSON, placeholders of templates, and calls.
NOT_PROSE = re.compile(r"`[^`\n]*`|\"[\w ]+\":|\{\w*\}|\w+\([^()\n]*\)")


def prose(text: str) -> str:
    return NOT_PROSE.sub(CODE, text)


SENTENCE = re.compile(
    r"(?:\A|(?<=[.!?;:]\s)|(?<=\n\n)|(?<=\f\n))[ \n]*"
    r"((?:What|Whatever|Who|Whoever|Of|With|And(?! \d)|Likewise|As the|"
    r"In the order of|The same (?:as|for|of|with))\b[^.!?;:]*[.!?;:]?)")

# A pattern of words, and the words to write instead.
TERMS = [
    (word(r"tells?|told|telling"), "print, log, report, contain"),
    (word(r"says?|said|saying"), "print, report, contain, state"),
    (word(r"knows|knew"), "has, stores, records"),
    (word(r"somebody|nobody|whoever|anybody|everybody"), "name the agent"),
    (word(r"hand-?over|hand(?:s|ed|ing)? over"), "zero-copy delivery"),
    (word(r"lend|lends|lent|lending|lender|borrow(?:s|ed|er|ing)?"),
     "acquire, hold and release a buffer"),
    (word(r"giv(?:e|es|en|ing) back|gave back"), "release"),
    (word(r"failed[_ ]rows"), "failed samples"),
    (word(r"(?:made|assembled) ahead|comes? for|came for"),
     "prefetched, requests"),
    (word(r"ship|ships|shipped|shipping"), "uploaded, copied to the device"),
    (word(r"draws="), "num_samples="),
    (word(r"worlds?(?!\s+size)"), "world size"),
    (word(r"assembl(?:e|es|ed|ing|y|ies)"), "collate"),
    (word(r"hook(?:s|ed)?"), "batch callback"),
    (word(r"pace|paces|beacons?"), "throughput statistics, telemetry"),
    (word(r"ordinary JPEGs?"), "baseline sequential JPEG"),
    (word(r"(?:text|texts) of (?:a|the) pipelines?|pipeline(?:'s)? texts?"),
     "pipeline string"),
    (word(r"tails?"), "pointwise stage"),
    (word(r"own operations?"), "custom (user-defined) operations"),
    (word(r"stash(?:es|ed)?"), "cache"),
    (word(r"promises?|promised"), "guarantee"),
    (word(r"go(?:es|ing)? on|went on|gone on"), "continue, resume"),
    (word(r"fakes?|faked|made[ -]up|not real"), "synthetic"),
    (word(r"what there is"), "available memory"),
    (word(r"folders?"), "directory"),
    (word(r"processors?"), "CPU"),
    (word(r"stems?"), "file-name form of the field"),
    (word(r"for ever|forever|anew|once more"), "indefinitely, again"),
    (word(r"rows of batches|batch(?:'s|es') rows"), "samples"),
    (word(r"(?-i:(?:[Aa]n?|[Tt]he|[Tt]his|[Tt]hat|[Ee]ach|[Ee]very|[Oo]ne|"
          r"[Tt]wo|same) SPECs?|SPECs)"), "sampling spec"),
    (word(r"(?:batches|made|drawn|decoded|collated|fetched|loaded|begun) ahead"
          r"(?! of)"), "prefetched"),
    (word(r"(?:is|are) drawn (?:again|twice)"), "sampled with replacement"),
    (word(r"queue[_ ]places?|places? (?:of|in) (?:the|a|its) queue"),
     "queue capacity, slot"),
    (word(r"point=device|who does (?:it|what|this|that|the)"),
     "placement, execution device"),
    (word(r"(?:is|are|was) done to (?:a |the )?batch(?:es)?"),
     "batch callback"),
    (word(r"shares of (?:the |its )?pixels"), "filter weights"),
    (word(r"words? of (?:a|the) pipelines?"), "identifier"),
    (word(r"keeping images|(?<!that is )kept (?:images?|pixels)|"
          r"(?:images?|pixels) (?:are |is )?kept"),
     "cached, decoded-image cache"),
    (word(r"(?:batch(?:es)?|reads?|workers?|daemon|peer) (?:is|are|was|were) "
          r"late|late (?:batch(?:es)?|reads?)"), "stalled"),
    (word(r"someone|anyone|no one(?! \w)"), "name the agent"),
    (word(r"\w*colour\w*|grey\w*|centre[sd]?|(?:de)?normalis(?:e[ds]?|ing|ation)|neighbour\w*|"
          r"behaviour\w*|(?:initial|optim|recogn|organ|serial)is(?:e|es|ed|ing)|"
          r"favour\w*|honour\w*"), "American spelling"),
]


def c_pieces(text: str) -> Iterator[Piece]:
    """Comments, and strings of two words at least; adjacent strings are one."""
    token = re.compile(
        r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
    strings: list[str] = []
    first, end = 0, 0

    def joined() -> Iterator[Piece]:
        value = "".join(strings)
        if re.search(r"[A-Za-z]{2,}.* .*[A-Za-z]{2,}", value):
            yield first, prose(value)
        strings.clear()

    for m in token.finditer(text):
        t = m.group()
        line = text.count("\n", 0, m.start()) + 1
        if t[0] == '"':
            if strings and text[end:m.start()].strip(" \t\n\\"):
                yield from joined()
            first = first if strings else line
            strings.append(t[1:-1].replace("\\n", " \n ").replace('\\"', '"'))
            end = m.end()
        elif t[0] == "/":
            body = re.sub(r"^[ \t]*\*+ ?", "", t.strip("/*"), flags=re.M)
            yield line, prose(body)
    yield from joined()


def is_program(text: str) -> bool:
    """Whether a string is Python source of several lines."""
    try:
        return "\n" in text.strip() and bool(ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def python_pieces(text: str) -> Iterator[Piece]:
    """Comments, docstrings, and other strings of several words. A program in a
    string is read as a program."""
    run: list[str] = []
    first = last = -1
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        tree = ast.parse(text)
    except (SyntaxError, tokenize.TokenError):
        return
    for t in tokens:
        if t.type != tokenize.COMMENT:
            continue
        if run and t.start[0] != last + 1:
            yield first, prose("\n".join(run))
            run = []
        first = first if run else t.start[0]
        last = t.start[0]
        run.append(t.string.lstrip("#! "))
    if run:
        yield first, prose("\n".join(run))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or \
                not isinstance(node.value, str):
            continue
        if is_program(node.value):
            for line, piece in python_pieces(node.value):
                yield node.lineno + line - 1, piece
        elif re.search(r"[A-Za-z]{2,}.* .*[A-Za-z]{2,}", node.value):
            yield node.lineno, prose(node.value)


def shell_pieces(text: str) -> Iterator[Piece]:
    for i, line in enumerate(text.split("\n"), 1):
        m = re.match(r"\s*#+\s?(.*)", line)
        if m and not line.startswith("#!"):
            yield i, prose(m.group(1))


def markdown_pieces(text: str) -> Iterator[Piece]:
    def blank(m: re.Match[str]) -> str:
        return "\n" * m.group().count("\n")

    text = re.sub(r"^(```|~~~).*?^\1\s*$", blank, text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)
    text = re.sub(r"`[^`]*`", CODE, text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    yield 1, text


# Requests whose arguments are text for readers.
MDOC_TEXT = re.compile(
    r"\.(?:Nd|Sh|Ss|Pq|Dq|Sq|Em|Sy|It Sy|D1|Po|Pc|Xo|No)\b ?(.*)")


def mdoc_pieces(text: str) -> Iterator[Piece]:
    out, literal = [], False
    for line in text.split("\n"):
        if re.match(r"\.\s*Bd -(literal|unfilled)|\.\s*(EX|nf|TS)\b", line):
            literal = True
        elif re.match(r"\.\s*(Ed|EE|fi|TE)\b", line):
            literal = False
            line = ""
        m = MDOC_TEXT.match(line)
        if literal or line.startswith((".\\\"", ".Dl")):
            out.append("")
        elif m:
            out.append(m.group(1) + (BREAK if line[1] == "S" else ""))
        elif re.match(r"\.(Pp|Sh|Ss|It|El|Bl)\b", line):
            out.append(BREAK)
        elif line.startswith("."):
            end = re.search(r" ([.,;:?)]+)$", line)
            out.append(CODE + (end.group(1) if end else ""))
        else:
            out.append(re.sub(r"\\f.|\\&", "", line))
    yield 1, "\n".join(out)


def pieces(path: Path) -> Iterator[Piece]:
    try:
        text = path.read_text()
    except (UnicodeDecodeError, IsADirectoryError):
        return
    if path.suffix in (".c", ".h", ".cu"):
        yield from c_pieces(text)
    elif path.suffix in (".py", ".pyi") or \
            re.match(r"#!.*python", text):
        yield from python_pieces(text)
    elif path.suffix == ".md":
        yield from markdown_pieces(text)
    elif re.fullmatch(r"\.[1-8]", path.suffix):
        yield from mdoc_pieces(text)
    else:
        yield from shell_pieces(text)


def findings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, the word to avoid, and advice."""
    for line, text in pieces(path):
        for m in SENTENCE.finditer(text):
            start = m.group(1)
            if start.endswith("?") or re.match(rf"With\s+[-`'{CODE}]", start):
                continue
            at = line + text.count("\n", 0, m.start(1))
            yield at, " ".join(start.split())[:50], "begin with the subject"
        for pattern, advice in TERMS:
            for m in pattern.finditer(text):
                yield line + text.count("\n", 0, m.start()), m.group(), advice


def tracked() -> list[str]:
    try:
        done = subprocess.run(["git", "-C", ROOT, "ls-files"],
                              text=True, capture_output=True)
    except FileNotFoundError:
        print("words: skipped, because git is not installed")
        return []
    if done.returncode:
        print("words: skipped, because this is no git checkout")
    return done.stdout.split("\n")


def main(names: list[str]) -> int:
    bad = 0
    for name in names or tracked():
        path = ROOT / name
        if not name or SKIPPED.fullmatch(name) or not path.is_file():
            continue
        for line, found, advice in sorted(findings(path)):
            print(f"{name}:{line}: {found!r}: {advice}")
            bad += 1
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
