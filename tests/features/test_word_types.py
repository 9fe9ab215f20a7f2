"""Types of words with the published sets of features and with ours: tables worked by hand, and a plain account."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch import languages
from chaffinch.features import observe as window
from chaffinch.features import word_types as types
from chaffinch.features.observe import FOLDED, GRAM, NAMED, PREFIX, SUFFIX, UNKNOWN, WORD, Observed
from chaffinch.features.signatures import pack
from chaffinch.features.word_types import WORD_SETS, WordSet, capitalisation, muc, shape, signature_parts, with_features
from chaffinch.text import Document
from tests.features.test_observe import given_document

EN = pack("en")
every_set = pytest.mark.parametrize("features", WORD_SETS)
# Word: its MUC features, its capitalisation, its shape.
TABLE: dict[str, tuple[Sequence[str], Sequence[str], Sequence[str]]] = {
    "9": (["OneDigitNum"], [], []),
    "90": (["TwoDigitNum"], [], []),
    "1990": (["FourDigitNum"], [], []),
    "1990s": (["YearDecade"], [], ["xx"]),
    "03-90": (["ContainsDigitAndDash"], [], []),
    "3/4": (["ContainsDigitAndOneSlash"], [], []),
    "10,000": (["ContainsDigitAndComma"], [], []),
    "10.00": (["ContainsDigitAndPeriod"], [], []),
    "IBM": (["AllCaps"], ["AllCaps", "InitialCap"], ["XX"]),
    "J.": (["CapPeriod"], ["AllCaps", "InitialCap"], ["XX"]),
    "St.": (["CapOtherPeriod"], ["InitialCap"], ["Xx"]),
    "N.Y.": (["CapPeriods"], ["AllCaps", "InitialCap"], ["XX"]),
    "Ratcliffe": (["InitialCap"], ["InitialCap"], ["Xx"]),
    # and others
    "199": ([], [], []),
    "19900": ([], [], []),
    "I": (["AllCaps"], ["AllCaps", "InitialCap"], ["XX"]),
    "3/4/05": ([], [], []),
    "x/y": ([], [], ["xx"]),
    "1-2,3": (["ContainsDigitAndDash"], [], []),  # one of numbers at the most
    "B-12": (["ContainsDigitAndDash", "InitialCap"], ["AllCaps", "InitialCap"], ["XX"]),
    "left": ([], [], ["xx"]),
    "iPod": ([], [], ["xx"]),
    "well-known": ([], [], ["xx"]),
    ".": ([], [], []),
    "-": ([], [], []),
    "U.S.A.": (["CapPeriods"], ["AllCaps", "InitialCap"], ["XX"]),
    "U.S": (["InitialCap"], ["AllCaps", "InitialCap"], ["XX"]),
    "😀": ([], [], []),
    "東京": ([], [], ["xx"]),
}


@pytest.mark.parametrize("word", TABLE)
def test_published_sets_by_hand(word: str) -> None:
    names, capitals, form = TABLE[word]
    assert list(muc(word)) == list(names)
    assert list(capitalisation(word)) == list(capitals)
    assert list(shape(word)) == list(form)


def test_the_table_shows_all_thirteen() -> None:
    found = {name for names, _, _ in TABLE.values() for name in names}
    assert len(found) == 13
    assert len(muc("9")) == 1


def plain_muc(word: str) -> list[str]:
    """The same without patterns: the first of the numbers that fits, the first of the capitals that fits."""
    capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    digits, n = [sign.isdigit() for sign in word], len(word)
    numbers = [
        ("OneDigitNum", n == 1 and all(digits)),
        ("TwoDigitNum", n == 2 and all(digits)),
        ("FourDigitNum", n == 4 and all(digits)),
        ("YearDecade", n == 5 and all(digits[:4]) and word[4] == "s"),
        ("ContainsDigitAndDash", any(digits) and "-" in word),
        ("ContainsDigitAndOneSlash", any(digits) and word.count("/") == 1),
        ("ContainsDigitAndComma", any(digits) and "," in word),
        ("ContainsDigitAndPeriod", any(digits) and "." in word),
    ]
    first = word[0] in capitals
    dotted = n % 2 == 0 and all(a in capitals and b == "." for a, b in zip(word[::2], word[1::2], strict=True))
    letters = [
        ("CapPeriod", n == 2 and dotted),
        ("CapPeriods", n >= 4 and dotted),
        ("AllCaps", all(sign in capitals for sign in word)),
        ("CapOtherPeriod", first and n >= 3 and word[-1] == "."),
        ("InitialCap", first),
    ]
    return [next((name for name, fits in group if fits), "") for group in (numbers, letters)]


@given(st.text(st.sampled_from("aAZ09.,/-sé\n"), min_size=1, max_size=7))
def test_the_thirteen_are_what_their_names_say(word: str) -> None:
    assert list(muc(word)) == [name for name in plain_muc(word) if name]


def test_signatures_come_apart_into_their_fields() -> None:
    assert signature_parts("12/03/1998", EN) == ("‹DATE", "00/00/0000", "fields=3", "year=4", "month=1")
    smith = signature_parts("Smith", EN)
    assert {"‹ALPHA", "Cap", "last=hi", "len=5-8"} <= set(smith)
    assert not any(name.endswith("=0") for name in smith)
    assert not any("mith" in name for name in smith)


# Types of documents

WORDS = [*TABLE, "Ann", "ann", "12/03/1998", "Penn", "a" * 30]
NAMES: dict[WordSet, Callable[[str], Sequence[str]]] = {
    "basic": lambda _: (),
    "capitalisation": capitalisation,
    "shape": shape,
    "muc": muc,
    "spelling": muc,
    "rich": lambda word: (*muc(word), *signature_parts(word, EN)),
}


def rows_of(seen: Observed) -> list[list[tuple[int, int]]]:
    """The kinds and keys of each type."""
    pairs = list(zip(seen.kinds.tolist(), seen.keys.tolist(), strict=True))
    return [pairs[first:end] for first, end in pairwise(seen.lists.tolist())]


@every_set
def test_types_keep_their_order_and_what_the_set_keeps_of_them(features: WordSet) -> None:
    docs = [given_document(WORDS[::-1], [3]), given_document([*WORDS, *WORDS[:5]])]
    seen = window.observe(docs)
    found = with_features(seen, features, EN)
    assert np.array_equal(found.types, seen.types)
    assert found.lists.dtype == seen.lists.dtype
    assert (found.lists[0], found.lists[-1]) == (0, len(found.keys))
    assert len(found.lists) == len(seen.lists) == 1 + len(WORDS) + 1
    named: dict[int, str] = {}
    for word, old, new in zip(["", *WORDS[::-1]], rows_of(seen), rows_of(found), strict=True):
        kept = [
            (kind, key) for kind, key in old if (kind != GRAM if features in ("spelling", "rich") else kind == WORD)
        ]
        names = NAMES[features](word) if word else ()
        assert new[: len(kept)] == kept
        unknown = ["unknown", f"unknown {' '.join(names)}"] if word else []
        assert [kind for kind, _ in new[len(kept) :]] == [NAMED] * len(names) + [UNKNOWN] * len(unknown)
        for (_, key), name in zip(new[len(kept) :], [*names, *unknown], strict=True):
            assert named.setdefault(key, name) == name  # one key, one name
    assert len(set(named.values())) == len(named)  # one name, one key
    assert (len(named) > 2) == (features != "basic")


def test_the_rich_set_has_affixes_and_names_and_no_grams() -> None:
    found = with_features(window.observe([given_document(["Ratcliffe"])]), "rich", EN)
    kinds = [kind for kind, _ in rows_of(found)[1]]
    assert {WORD, FOLDED, PREFIX, SUFFIX, NAMED} <= set(kinds)
    assert GRAM not in kinds
    assert kinds.count(WORD) == kinds.count(FOLDED) == 1
    assert types.IDENTITY == (WORD, FOLDED)


def test_the_words_of_types_are_read_back_from_the_text() -> None:
    docs = [given_document(["a", "😀", "b"]), given_document(["東京", "a", "𝔄x", "b"]), Document.make("")]
    assert types.words_of(window.observe(docs)) == ["", "a", "😀", "b", "東京", "𝔄x"]


@given(st.lists(st.text(st.sampled_from("aB9.-😀é東"), min_size=1, max_size=5), min_size=1, max_size=12))
def test_any_words_are_read_back_in_the_order_they_first_appear(words: list[str]) -> None:
    seen = window.observe([given_document(words)])
    assert types.words_of(seen) == ["", *dict.fromkeys(words)]
    assert len(with_features(seen, "rich", EN).lists) == len(seen.lists)


@every_set
def test_documents_without_words_have_the_pad_alone(features: WordSet) -> None:
    for docs in ([], [Document.make("")], [Document.make(" \n "), Document.make("")]):
        found = with_features(window.observe(docs), features, EN)
        assert found.lists.tolist() == [0, len(found.keys)]
        assert types.words_of(found) == [""]
        assert not (found.kinds == NAMED).any()


@every_set
@pytest.mark.parametrize("sign", ["a", "A", "9", "-", "😀", "9/", "A.", "1,"])
def test_a_very_long_word_is_read_quickly(features: WordSet, sign: str) -> None:
    word = (sign * 10_000)[:10_000]
    seen = window.observe([given_document(["x", word])])
    begin = time.process_time()
    found = with_features(seen, features, EN)
    assert time.process_time() - begin < 1.0
    assert len(rows_of(found)) == 3
    assert list(muc(word)) == [name for name in plain_muc(word) if name]


def test_the_language_decides_what_lists_say() -> None:
    words = ["enero", "García", "march"]
    rows = [
        rows_of(with_features(window.observe([given_document(words)]), "rich", pack(language)))
        for language in ("en", "es")
    ]
    assert rows[0][1] != rows[1][1]
    published = [
        rows_of(with_features(window.observe([given_document(words)]), "muc", pack(language)))
        for language in ("en", "es")
    ]
    assert published[0] == published[1]


# Packs that travel with a model


def copied(folder: Path) -> Path:
    """Return a copy of the English pack in a folder, with one more first name."""
    folder.mkdir()
    for name, text in languages.read_files(Path(languages.__file__).parent / "en").items():
        more = "zyxgov\thi\n" if name == "lexicon-first.txt" else ""
        (folder / name).write_bytes((more + text).encode())
    return folder


def test_a_pack_that_does_not_come_with_us_is_taken_along(tmp_path: Path) -> None:
    assert languages.files_to_bundle("en") == {}
    assert languages.from_bundle("en", {}) is pack("en")
    folder = copied(tmp_path / "mine")
    strings = languages.files_to_bundle(str(folder))
    assert sorted(strings) == ["pack.names", "pack.texts"]
    wanted = languages.pack(str(folder))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    found = languages.from_bundle(str(folder), strings)
    assert found.name == wanted.name == "mine"
    assert found.lexica["first"]["zyxgov"] == "hi"
    for name in ("months", "decades", "ages", "suffixes", "lexica", "common", "phones", "decimal", "extension"):
        assert getattr(found, name) == getattr(wanted, name)
    assert signature_parts("Zyxgov", found) != signature_parts("Zyxgov", EN)
