"""Observations against a plain account of what each feature is: equal keys exactly where the properties are equal."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.features import observe as window
from chaffinch.features.observe import Column, Keys, Observed
from chaffinch.text import Document, Span
from tests.text.strategies import TEXTS

LETTERS = st.sampled_from("aabbABeéÉñß12 9-.,:/東😀ΣςǅⅧ²İ".replace(" ", ""))
WORDS = st.one_of(
    st.text(LETTERS, min_size=1, max_size=7),
    st.text(LETTERS, min_size=17, max_size=22),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=5),
)
PATTERNS = (
    "^Aa", "AA", "aA", "0", "^0$", "^00$", "^0+$", "", "[Aax]0", "0[Aax]", "-", "^-", "-$", "^[-.]+$", "^A+$", "^a+$",
    "^A$",
)  # fmt: skip
NO_STOPS = np.zeros(0, np.uint64)


def given_document(words: list[str], cuts: list[int] | None = None, id: str = "") -> Document:  # noqa: A002
    """Those tokens, blanks between; a new sentence at each cut."""
    text, ends = " ".join(words), np.cumsum([len(word) + 1 for word in words]) - 1
    starts = [int(end) - len(word) for end, word in zip(ends, words, strict=True)]
    edges = [0, *(starts[cut] for cut in cuts or ()), len(text)]
    tokens = list(zip(starts, ends.tolist(), strict=True))
    return Document.make(text, id=id, tokens=tokens, sentences=list(pairwise(edges)))


def kind_of(sign: str) -> str:
    if ord(sign) >= 0x3000:
        return "x"
    if sign == "-":
        return "-"
    return (
        "A" if sign.isupper() else "a" if sign.islower() else "0" if sign.isdigit() else "x" if sign.isalpha() else "."
    )


def small(sign: str) -> str:
    return sign.lower() if ord(sign) < 0x3000 and len(sign.lower()) == 1 else sign


def folded(word: str) -> str:
    return "".join("0" if kind_of(sign) == "0" else small(sign) for sign in word)


def properties(word: str) -> list[tuple[int, object]]:
    """All that a word shows by itself: the kind and what must be equal for the keys to be equal."""
    found: list[tuple[int, object]] = [(1, word)]
    if not word:
        return found
    kinds = "".join(map(kind_of, word))
    shape = kinds.replace("-", ".")
    found += [(2, folded(word)), (3, shape), (4, re.sub(r"(.)\1+", r"\1", shape)), (5, min(len(word), 20))]
    numeric = all(k == "0" or sign in ",." for k, sign in zip(kinds, word, strict=True))
    for bit, pattern in enumerate(PATTERNS):
        shown = numeric and "0" in kinds and bool(set(word) & set(",.")) if bit == 7 else re.search(pattern, kinds)
        if shown:
            found.append((6, bit))
    found += [(7, word[:size]) for size in range(1, 1 + min(5, len(word)))]
    found += [(8, word[-size:]) for size in range(1, 1 + min(5, len(word)))]
    start = word[:16]
    found += [(9, "".join(map(small, start[i : i + 4]))) for i in range(len(start) - 3)]
    return found


def words_at(docs: list[Document], seen: Observed) -> list[str]:
    """The word at every place, "" at pads."""
    texts = "\n".join(doc.text for doc in docs)
    return [texts[a:b] for a, b in seen.tokens.tolist()]


def one_to_one(pairs: list[tuple[object, int]]) -> None:
    """Equal properties have equal keys, and equal keys equal properties; no key is 0."""
    keys: dict[object, int] = {}
    meanings: dict[int, object] = {}
    for meaning, key in pairs:
        assert key != 0, meaning
        assert keys.setdefault(meaning, key) == key, meaning
        assert meanings.setdefault(key, meaning) == meaning


def shown(seen: Observed, n: int) -> list[tuple[int, int]]:
    """Kind and key of every feature of the token at a place."""
    listed = slice(seen.lists[seen.types[n]], seen.lists[seen.types[n] + 1])
    return list(zip(seen.kinds[listed].tolist(), seen.keys[listed].tolist(), strict=True))


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_every_feature_of_a_word_has_a_key_of_its_own(words: list[str]) -> None:
    docs = [given_document(words)]
    seen = window.observe(docs)
    assert [words_at(docs, seen)[n] for n in seen.places] == words
    pairs: list[tuple[object, int]] = []
    for n, word in enumerate(words_at(docs, seen)):
        wanted, found = properties(word), shown(seen, n)
        assert [kind for kind, _ in sorted(wanted, key=lambda p: p[0])] == sorted(kind for kind, _ in found)
        for kind in range(1, 10):  # inside a kind in the same order, whatever the order of kinds
            meanings = [(kind, what) for k, what in wanted if k == kind]
            pairs += zip(meanings, [key for k, key in found if k == kind], strict=True)
    one_to_one(pairs)
    for v in range(1, len(seen.lists) - 1):
        n = seen.types.tolist().index(v)
        assert seen.folded[v] == shown(seen, n)[1][1]
        assert seen.plain[v] == any(kind_of(sign) in "Aa0x" for sign in words_at(docs, seen)[n])


def column(columns: list[Column], kind: int, size: int) -> Keys:
    """The keys of a column, zeros if it is not there."""
    return next((column.keys for column in columns if column.kind == kind), np.zeros(size, np.uint64))


SPLIT = st.lists(st.sampled_from(["a", "A", "b", ".", "of"]), min_size=1, max_size=8).flatmap(
    lambda words: st.tuples(st.just(words), st.sets(st.integers(1, max(1, len(words) - 1))).map(sorted))
)


@given(st.lists(SPLIT, max_size=3))
def test_ngrams_end_with_their_sentence(parts: list[tuple[list[str], list[int]]]) -> None:
    docs = [given_document(words, [cut for cut in cuts if cut < len(words)]) for words, cuts in parts]
    seen = window.observe(docs)
    columns, words = window.contexts(seen, NO_STOPS), words_at(docs, seen)
    two, three = (column(columns, kind, len(words)).tolist() for kind in (window.BIGRAM, window.TRIGRAM))
    one_to_one([(tuple(words[n : n + 2]), two[n]) for n in range(len(words) - 1)])
    inner = [n for n in range(len(words) - 2) if words[n + 1]]
    one_to_one([(tuple(words[n : n + 3]), three[n]) for n in inner])
    assert not any(three[n] for n in range(len(words)) if n not in inner)
    assert two[-1] == 0


@given(st.lists(SPLIT, min_size=1, max_size=3), st.sets(st.sampled_from(["a", "b", "of"])))
def test_a_head_is_the_last_word_of_a_run(parts: list[tuple[list[str], list[int]]], stops: set[str]) -> None:
    docs = [given_document(words, [cut for cut in cuts if cut < len(words)]) for words, cuts in parts]
    seen = window.observe(docs)
    words = words_at(docs, seen)
    key = {folded(word): int(seen.folded[v]) for word, v in zip(words, seen.types, strict=True)}
    chosen = np.sort(np.array([key.get(stop, 12345) for stop in stops], np.uint64))
    found = column(window.contexts(seen, chosen), window.HEAD, len(words)).tolist()
    edges = [word == "" or word == "." or folded(word) in stops for word in words]
    for n in range(len(words)):
        end = next(m for m in range(n, len(words)) if edges[m])
        assert found[n] == (key[folded(words[end - 1])] if stops and end > n else 0)


def header_of(text: str, start: int) -> str | None:
    """What stands before the first colon of a token's line, among 40 characters, if the token comes after it."""
    line = text.rfind("\n", 0, start) + 1
    end = text.find("\n", line)
    place = text[line : end if end >= 0 else None][:40].find(":")
    if place < 0 or start <= line + place:
        return None
    return "".join(sign for sign in text[line : line + place] if sign > " ") or None


LINES = st.lists(st.sampled_from(["Name", "DOB ", ": ", "\n", "x", " ", "a" * 38, "\r\n", "12:30 "]), max_size=12)


@given(st.lists(LINES.map("".join), max_size=3))
def test_a_header_speaks_for_the_rest_of_its_line(texts: list[str]) -> None:
    docs = [Document.make(text, id=str(number)) for number, text in enumerate(texts)]
    seen = window.observe(docs)
    found = column(window.contexts(seen, NO_STOPS), window.HEADER, len(seen.types))
    headers = [header_of(doc.text, start) for doc in docs for start, _ in doc.tokens.tolist()]
    keys = found[seen.places].tolist()
    wanted = [headers[source] for source in seen.sources.tolist()]
    one_to_one([(header, key) for header, key in zip(wanted, keys, strict=True) if header])
    assert not any(key for header, key in zip(wanted, keys, strict=True) if header is None)


def account(docs: list[Document], owner: int) -> list[object]:
    """All keys of a document's tokens, pads beside them included."""
    seen = window.observe(docs)
    columns = window.contexts(seen, NO_STOPS)
    places = [n for n in seen.places.tolist() if seen.owners[n] == owner]
    near = [(n - 1, n, n + 1) for n in places]
    table = {kind: column(columns, kind, len(seen.types)) for kind in (10, 11, 12, 13)}
    return [
        [(shown(seen, m), [int(keys[m]) for kind, keys in table.items() if m <= n]) for m in three]
        for n, three in zip(places, near, strict=True)
    ]


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=60)
def test_what_is_seen_of_a_document_does_not_depend_on_its_neighbours(before: str, text: str, after: str) -> None:
    docs = [Document.make(part, id=str(number)) for number, part in enumerate((before, text, after))]
    assert account(docs, 1) == account(docs[1:2], 0)


def test_nothing_before_a_colon_is_no_header() -> None:
    docs = [Document.make("Before."), Document.make(": here")]
    assert account(docs, 1) == account(docs[1:], 0)


def test_documents_without_text_or_sentences_show_nothing() -> None:
    bare = Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[])
    for docs in ([], [Document.make("")], [bare], [Document.make(""), bare, Document.make(" \n")]):
        seen = window.observe(docs)
        assert (len(seen.types), len(seen.begins), len(seen.places)) == (1, 0, 0)
        assert [len(array) for array in seen.gather(np.zeros(1, np.int32))] == [len(doc.tokens) for doc in docs]
        assert len(window.contexts(seen, NO_STOPS)) >= 2


@given(st.lists(st.lists(WORDS, max_size=5), max_size=4), st.integers(0, 1000))
def test_spread_and_gather_undo_each_other(texts: list[list[str]], seed: int) -> None:
    docs = []
    for number, words in enumerate(texts):  # tokens before and after the only sentence stand in none
        doc = given_document(words or ["a"])
        cuts = sorted(np.random.default_rng([seed, number]).integers(0, len(doc.text) + 1, 2).tolist())
        docs.append(Document.make(doc.text, tokens=doc.tokens, sentences=[(cuts[0], cuts[1])]))
    seen, rng = window.observe(docs), np.random.default_rng(seed)
    values = [rng.integers(1, 9, len(doc.tokens)) for doc in docs]
    spread = seen.spread(values)
    assert not spread[seen.types == 0].any()
    inside = np.zeros(sum(len(doc.tokens) for doc in docs), np.bool_)
    inside[seen.sources] = True
    joined = np.concatenate([np.zeros(0, np.int64), *values]) * inside
    assert np.concatenate([np.zeros(0, np.int32), *seen.gather(spread)]).tolist() == joined.tolist()


def code_of(others: list[int]) -> int:
    """What a word's other places say: nothing, all outside, or the usual state and how many are inside at all."""
    inside = [state for state in others if state]
    if not inside:
        return 3 if others else 0
    counts = Counter(inside)
    usual = min(state for state in counts if counts[state] == max(counts.values()))
    share = 2 if len(inside) == len(others) else 1 if 2 * len(inside) >= len(others) else 0
    return 3 * (2 + usual) + share


@given(st.lists(SPLIT, min_size=1, max_size=3), st.integers(0, 1000))
def test_elsewhere_counts_the_other_places_of_a_word_in_its_document(
    parts: list[tuple[list[str], list[int]]], seed: int
) -> None:
    docs = [given_document(words, [cut for cut in cuts if cut < len(words)]) for words, cuts in parts]
    seen, K = window.observe(docs), 4
    states = np.where(seen.types > 0, np.random.default_rng(seed).integers(0, K, len(seen.types)), 0).astype(np.int32)
    columns, words = window.elsewhere(seen, states, K), [folded(word) for word in words_at(docs, seen)]
    owners, places = seen.owners.tolist(), range(len(words))
    for kind, size, shift in (
        (window.WORD_ELSEWHERE, 1, 0),
        (window.PAIR_ELSEWHERE, 2, 0),
        (window.PAIR_BEFORE_ELSEWHERE, 2, -1),
    ):
        found = column(columns, kind, len(words)).tolist()
        groups = [tuple(words[n + shift : n + shift + size]) if n + shift >= 0 else () for n in places]
        groups = [group if len(group) == size and all(group) else () for group in groups]
        for n in places:
            same = [m for m in places if m != n and groups[m] == groups[n] and owners[m] == owners[n]]
            assert found[n] == (code_of([int(states[m]) for m in same]) if groups[n] else 0)
    first = column(columns, window.FIRST_READING, len(words))
    assert first.tolist() == [int(states[n]) + 1 if words[n] else 0 for n in places]
    both = column(columns, window.FIRST_READING_AND_ELSEWHERE, len(words)).tolist()
    code = column(columns, window.WORD_ELSEWHERE, len(words)).tolist()
    one_to_one([((code[n], int(first[n])), both[n]) for n in places if code[n]])
    assert not any(both[n] for n in places if not code[n])


def test_stop_words_are_frequent_and_stand_outside() -> None:
    words = ["The"] * 6 + ["the"] * 4 + ["gene"] * 100 + ["IL"] * 100 + ["rare"] * 9
    seen = window.observe([given_document(words), *(given_document(["x"]) for _ in range(12))])
    inside = np.zeros(len(seen.types), np.bool_)
    inside[len(words) + 1 :] = seen.types[len(words) + 1 :] > 0  # every x, but no pad
    inside[[1 + words.index("gene") + k for k in range(3)]] = True  # 97 of 100 outside
    inside[[1 + words.index("IL") + k for k in range(4)]] = True
    key = {word: int(seen.folded[seen.types[1 + words.index(word)]]) for word in words}
    patients = np.minimum(np.arange(13), 1)
    assert window.stop_words(seen, inside, patients=patients).tolist() == sorted([key["the"], key["gene"]])
    assert window.stop_words(seen, inside, patients=patients, floor=2).tolist() == []
    assert key["The"] == key["the"]
    assert set(window.stop_words(seen, inside, patients=patients, least=9, share=0.9).tolist()) == set(
        key.values()
    )  # no x, no pad


def test_layer_marks_tell_labels_apart_and_where_they_begin() -> None:
    doc = Document.make(
        "Dr. Ann Penn saw Bo.", layers={"pos": [Span(4, 12, "N"), Span(13, 15, "V"), Span(17, 18, "N")]}
    )
    marks = window.layer_marks(doc, "pos").tolist()
    outside, begin, inner, verb, again, stop = marks
    assert outside == stop == 0
    assert begin == again
    assert len({0, begin, inner, verb}) == 4
    assert {begin % 2, verb % 2, inner % 2} == {1, 0}
    with pytest.raises(DataError, match=r"no layer 'chunks'.*found: 1 layer"):
        window.layer_marks(doc, "chunks")


def test_layer_marks_of_spans_across_one_another_and_between_tokens() -> None:
    """Token by token: the last span that covers it has it, and begins at its first token or at the next one."""
    text = "a bb ccc dd e"
    spans = [Span(0, 8, "A"), Span(2, 4, "B"), Span(3, 11, "A"), Span(4, 5, "C"), Span(9, 13, "B")]
    doc = Document.make(text, layers={"pos": spans})
    wanted = [0] * len(doc.tokens)
    for span in doc.layers["pos"]:
        covered = [t for t, (start, end) in enumerate(doc.tokens) if start < span.end and span.start < end]
        for t in covered:
            wanted[t] = 2 + 2 * crc32(span.label.encode())
        wanted[covered[0] if covered else sum(end <= span.start for _, end in doc.tokens)] |= 1
    assert window.layer_marks(doc, "pos").tolist() == wanted
    assert window.layer_marks(Document.make("", layers={"pos": []}), "pos").tolist() == []


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6), st.sampled_from("AB")), max_size=5), max_size=5)
)
def test_marks_of_a_layer_are_those_of_each_document(places: list[list[tuple[int, int, str]]]) -> None:
    text = "Ann  saw a Bo . "
    docs = [
        Document.make(
            text[: 16 - number], layers={"l": [Span(a, min(a + n, 13), label) for a, n, label in own if a < 12]}
        )
        for number, own in enumerate(places[:3])
    ] + [Document.make("", layers={"l": []})]
    alone = [window.layer_marks(doc, "l") for doc in docs]
    for one, other in zip(window.layer_marks_of(docs, "l"), alone, strict=True):
        assert one.tolist() == other.tolist()
    with pytest.raises(DataError):
        window.layer_marks_of([*docs, Document.make("Ann")], "l")
