# SPDX-License-Identifier: Apache-2.0
"""tokenize(), through `beton dump`, against WordPiece as it is written here, and
where Hugging Face's tokenizers are installed against theirs."""
import importlib.util
import re

import numpy as np
import pytest

import make
from arrays import rows
from dumped import beton, digest, dump

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "quick", "##est", "un",
          "##aff", "##able", "##a", "a", "b", "##b", "##c", "fox", ",", ".",
          "!", "'", "-", "##s", "s", "don", "t", "café", "caf", "##é", "世", "界",
          "«", "»", "1", "##2", "##3", "#", "\"", "naïve", "“", "”", "...", "x"]
TEXTS = ["", "The quickest, unaffable fox!", "don't", "a-b ab abc abbbc", "世界a",
         "café cafés «the»", "  \t the\r\nquick\x0b\x07 fox ", "unaffablez the",
         "x" * 100, "a" * 101, "1 12 123 1234", "##a # a", "naïve “the”...",
         "THE FOX", "the\u00a0fox\u3000a\u200bb", "\ufeffthe fox\ufffd",
         "the [CLS] fox", "quick" * 30]
CJK = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
MARKS = r"""[!-/:-@\[-`{-~«»“”‘’—–…¡¿§¶·]"""


def words(text, lower=True):
    if lower:
        text = re.sub("[A-Z]+", lambda m: m[0].lower(), text)
    text = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\ufeff\ufffd]", "", text)
    return re.sub(f"({CJK}|{MARKS})", r" \1 ", text).split()


def cut(word, table):
    out, at = [], 0
    if len(word) > 100:
        return [table["[UNK]"]]
    while at < len(word):
        for end in range(len(word), at, -1):
            token = ("##" if at else "") + word[at:end]
            if token in table:
                break
        else:
            return [table["[UNK]"]]
        out.append(table[token])
        at = end
    return out


def tokens(text, table, lower=True):
    return [t for w in words(text, lower) for t in cut(w, table)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "vocab.txt"
    path.write_text("".join(f"{t}\n" for t in TOKENS))
    return path


def written(path, texts):
    return make.Dataset(path, [("text", make.BYTES)], [
        {"text": t if isinstance(t, bytes) else t.encode()} for t in texts])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return written(tmp_path_factory.mktemp("texts") / "t.beton", TEXTS)


SPEC = ("--spec", "batch=5,seed=3,drop_last=0")


def each(data, tmp_path, text):
    return {i: r.tolist() for b in dump(data.path, tmp_path / "x", *SPEC,
                                        "--pipeline", text)
            for i, r in zip(b.ids, rows(b, "text"))}


TABLE = {t: i for i, t in enumerate(TOKENS)}


@pytest.mark.parametrize("lower", [True, False])
def test_tokens_are_those_of_wordpiece(data, vocabulary, tmp_path, lower):
    got = each(data, tmp_path, f'text | tokenize("{vocabulary}", '
               f"{str(lower).lower()})")
    assert got == {i: tokens(t, TABLE, lower) for i, t in enumerate(TEXTS)}
    assert got[1] == ([4, 5, 6, 16, 7, 8, 9, 15, 18] if lower else
                      [1, 5, 6, 16, 7, 8, 9, 15, 18])


def test_tokens_are_those_of_hugging_face(data, vocabulary, tmp_path):
    if not importlib.util.find_spec("tokenizers"):
        pytest.skip("tokenizers is not installed")
    from tokenizers import BertWordPieceTokenizer
    own = BertWordPieceTokenizer(TABLE, strip_accents=False)
    got = each(data, tmp_path, f'text | tokenize("{vocabulary}", begin="[CLS]",'
               ' end="[SEP]")')
    for i, text in enumerate(TEXTS):
        if "[CLS]" not in text:     # theirs takes such words for tokens
            assert got[i] == own.encode(text).ids, text


def test_a_text_has_a_begin_and_an_end(data, vocabulary, tmp_path):
    got = each(data, tmp_path, f'text | tokenize("{vocabulary}", '
               'unknown="[PAD]", begin="[CLS]", end="[SEP]")')
    assert got[0] == [2, 3] and got[9] == [2, 0, 3]


def test_bytes_that_are_no_text_are_left_out(vocabulary, tmp_path):
    bad = [b"the\xff fox", b"\xe4\xb8a", b"\xed\xa0\x80a", b"\xc0\xafa", b"a\0\0",
           b"\xf4\x90\x80\x80a", b"\x80\xbfa"]
    d = written(tmp_path / "d.beton", bad)
    got = each(d, tmp_path, f'text | tokenize("{vocabulary}")')
    assert got == {0: [4, 15], **{i: [11] for i in range(1, len(bad))}}


def test_random_texts(tmp_path):
    rng = np.random.default_rng(0)
    parts = sorted({"".join(rng.choice(list("abc"), rng.integers(1, 4)))
                    for _ in range(40)})
    listed = ["[UNK]", *parts[::2], *("##" + p for p in parts[1::2]), "##a", "c"]
    path = tmp_path / "v.txt"
    path.write_text("\r\n".join(listed))
    table = {t: i for i, t in enumerate(listed)}    # the last of equal ones
    texts = ["".join(rng.choice(list("abcABC ,界"), rng.integers(0, 200)))
             for _ in range(200)]
    got = each(written(tmp_path / "d.beton", texts), tmp_path,
               f'text | tokenize("{path}")')
    assert got == {i: tokens(t, table) for i, t in enumerate(texts)}
    assert sum(map(len, got.values())) > 5000


def test_workers_and_mounts_change_nothing(data, vocabulary, tmp_path, mount):
    m = mount(data.path)
    text = f'text | tokenize("{vocabulary}") | truncate(9) | pad_to(batch)'
    out = []
    for where, workers in (data.path, 1), (data.path, 8), (m, 2):
        out.append(tmp_path / str(len(out)))
        dump(where, out[-1], *SPEC, "--jobs", workers, "--pipeline", text)
    first, *others = map(digest, out)
    assert all(d == first for d in others)


@pytest.mark.parametrize("content,arguments,why", [
    (None, "", "No such file"), (b"", "", "no token `[UNK]'"),
    (b"a\nb\n", "", "no token `[UNK]'"), (b"[UNK]\0\n", "", "not a text"),
    (b"[UNK]\n", ', begin="[CLS]"', "no token `[CLS]'"),
    ("folder", "", "not a regular file"),
    (b"[UNK]\n" + (1 << 22) * b"\n", "", "4194305 lines, 4194304 at most"),
], ids=range(7))
def test_a_vocabulary_that_cannot_be_is_refused(data, tmp_path, content,
                                                arguments, why):
    path = tmp_path / "v.txt"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    r = beton("dump", data.path, "--out", tmp_path / "x", "--pipeline",
              f'text | tokenize("{path}"{arguments})', code=1)
    assert why in r.stderr
    assert len(r.stderr.splitlines()) == 1
