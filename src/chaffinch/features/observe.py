"""Documents to observations: word types with their features, and columns of context features per token.

N tokens of all documents with one pad before, between and after sentences, M of them not pads; S sentences, V types,
Q features of all types, P code points.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, TypeVar, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.text.document import Document, count_layers

Keys = NDArray[np.uint64]
Places = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint32]
R = TypeVar("R")

_SHARED: ContextVar[dict[Hashable, tuple[object, Any]] | None] = ContextVar("shared", default=None)

CHARACTERS = 0x3000  # code points below have a kind and lower case in tables: Latin, Greek, Cyrillic and more
# Kinds of features of a word, then of columns; the number is part of the key.
WORD, FOLDED, CLASS, BRIEF, LENGTH, PATTERN, PREFIX, SUFFIX, GRAM = range(1, 10)
BIGRAM, TRIGRAM, HEAD, HEADER = range(10, 14)
FIRST_READING, WORD_ELSEWHERE, PAIR_ELSEWHERE, PAIR_BEFORE_ELSEWHERE, FIRST_READING_AND_ELSEWHERE = range(16, 21)
NAMED = 21  # features of a word that have names: see `word_types`
LEXICON_HERE = 14  # a lexicon looked at for the word itself only
UNKNOWN = 15  # features of unknown words: that the word is unknown, and its named features together
SYMBOLS = 22  # to 29: kinds of symbols of a generative model
SEGMENT = 30
ALWAYS = 31  # one feature that every token has
MARKS = 32  # and above: clusters, lexicon, layers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Observed:
    """Documents as numbers, before any vocabulary is known."""

    codes: Codes  # (P,) characters of all documents, a line feed between them
    tokens: Places  # (N, 2) begin and end among the codes; pads are empty
    begins: Places  # (S,) the first token of each sentence
    ends: Places  # (S,) the pad after its last token
    owners: Places  # (N,) the document of each token, from 0
    places: Places  # (M,) the positions of the tokens among the N
    sources: NDArray[np.int64]  # (M,) their numbers among the tokens of all documents
    sizes: NDArray[np.int64]  # (D,) tokens of each document
    words: Keys  # (N,)
    types: Places  # (N,) the pad is type 0
    lists: Places  # (V+1,) type v has features lists[v] to lists[v+1]
    keys: Keys  # (Q,)
    kinds: Bytes  # (Q,)
    folded: Keys  # (V,) the key of the word in lower case, digits as 0; 0 for the pad
    plain: NDArray[np.bool_]  # (V,) has a letter or a digit

    def spread(self, values: Sequence[NDArray[np.int64]] | Sequence[NDArray[np.int32]]) -> Places:
        """Return one number per token (N,), from one array per document; 0 at pads."""
        out = np.zeros(len(self.types), np.int32)
        if len(self.places):
            out[self.places] = np.concatenate(values)[self.sources]
        return out

    def gather(self, values: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Return one array per document, from one number per token (N,); tokens in no sentence get 0."""
        out = np.zeros(int(self.sizes.sum()), values.dtype)
        out[self.sources] = values[self.places]
        return np.split(out, np.cumsum(self.sizes)[:-1]) if len(self.sizes) else []


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column:
    """One context feature per token: a kind, and a key or 0 for each token."""

    kind: int
    keys: Keys  # (N,)


@contextmanager
def observe_once() -> Iterator[None]:
    """Compute what models see of the same documents once inside the block, however many models read them.

    >>> docs = [Document.make("An end.")]
    >>> with observe_once():
    ...     observe(docs) is observe(docs)
    True
    """
    before = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(before)


def share(key: Hashable, source: object, make: Callable[[], R]) -> R:
    """Return what `make` returns; inside `observe_once`, what it returned for that key before.

    The key may hold ids of `source` and of what is in it, which is kept so that these stay its own.
    """
    known = _SHARED.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = (source, make())
    return cast(R, known[key][1])


def observe(docs: Sequence[Document]) -> Observed:
    """Return the documents' tokens, by sentence with a pad between, and the features of every distinct word.

    >>> seen = observe([Document.make("An IL-2 gene. An end.")])
    >>> len(seen.begins), len(seen.types), len(seen.lists) - 1
    (2, 10, 6)
    """
    return share(("observed", *map(id, docs)), list(docs), lambda: _observe(docs))


def _observe(docs: Sequence[Document]) -> Observed:
    """Return what `observe` does, computed."""
    from chaffinch.features._compiled import _keys, _words

    texts = "\n".join(doc.text for doc in docs)
    codes = np.frombuffer(texts.encode("utf-32-le"), np.uint32)
    shifts = np.cumsum([0, *(len(doc.text) + 1 for doc in docs)])
    sizes = np.array([len(doc.tokens) for doc in docs], np.int64)
    counts = np.cumsum([0, *sizes])
    all_tokens = np.concatenate([doc.tokens + shift for doc, shift in zip(docs, shifts, strict=False)] + [_NO_TOKENS])
    cuts = [doc.sentence_tokens() + count for doc, count in zip(docs, counts, strict=False)]
    bounds = np.concatenate([*cuts, _NO_TOKENS])
    owner = np.repeat(np.arange(len(docs)), [len(cut) for cut in cuts])
    full = bounds[:, 1] > bounds[:, 0]
    bounds, owner = bounds[full], owner[full]
    lengths = bounds[:, 1] - bounds[:, 0]
    ends = np.cumsum(lengths + 1)
    begins, N = ends - lengths, int(lengths.sum()) + len(lengths) + 1
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = (np.repeat(begins, lengths) + within).astype(np.int32)
    sources = np.repeat(bounds[:, 0], lengths) + within
    tokens, owners = np.zeros((N, 2), np.int32), np.zeros(N, np.int32)
    tokens[places] = all_tokens[sources]
    owners[1:] = np.repeat(owner, lengths + 1)
    words = np.empty(N, np.uint64)
    _keys.word_keys(codes, tokens, words)
    V, types = number(words)
    firsts = np.zeros(V, np.int64)
    firsts[types[::-1]] = np.arange(N)[::-1]
    table, small = _characters()
    keys, kinds = np.empty(V * _words.MOST, np.uint64), np.empty(V * _words.MOST, np.uint8)
    lists, plain = np.zeros(V + 1, np.int32), np.zeros(V, np.bool_)
    Q = _words.word_features(codes, tokens[firsts], table, small, keys, kinds, lists, plain)
    folded = np.zeros(V, np.uint64)
    folded[1:] = keys[lists[1:-1] + 1]
    return Observed(
        codes, tokens, begins.astype(np.int32), ends.astype(np.int32), owners, places, sources, sizes,
        words, types, lists, keys[:Q].copy(), kinds[:Q].copy(), folded, plain,
    )  # fmt: skip


_NO_TOKENS = np.zeros((0, 2), np.int64)


def number(keys: Keys) -> tuple[int, Places]:
    """Number the keys in order of first appearance; return how many differ, and the number of each."""
    from chaffinch.features._compiled import _keys

    size, out = _table_size(len(keys) // 16), np.empty(len(keys), np.int32)
    while True:  # a small table is tried first, as usually few keys differ
        known = _keys.intern(keys, np.zeros(size, np.uint64), np.empty(size, np.int32), out)
        if known >= 0:
            return known, out
        size *= 4


def ngrams(seen: Observed) -> list[Column]:
    """Return two columns: the bigram and the trigram that begin at each token."""
    from chaffinch.features._compiled import _context

    two, three = (np.zeros(len(seen.types), np.uint64) for _ in range(2))
    _context.ngrams(seen.words, two, three)
    return [Column(BIGRAM, two), Column(TRIGRAM, three)]


def always(seen: Observed) -> Column:
    """Return a column with one feature that every token but the pads has, so that tags themselves get weights."""
    return Column(ALWAYS, (seen.types > 0).astype(np.uint64))


def contexts(seen: Observed, stops: Keys) -> list[Column]:
    """Return columns of bigrams, trigrams, heads of runs if there are stops, headers of lines if there are any.

    A run ends before a folded word of `stops` (sorted) and before a token without letter or digit; its head is its last
    word. Without stops there are no runs.
    """
    return list(share(("contexts", id(seen), stops.tobytes()), seen, lambda: _contexts(seen, stops)))


def _contexts(seen: Observed, stops: Keys) -> list[Column]:
    """Return what `contexts` does, computed."""
    from chaffinch.features._compiled import _context

    N = len(seen.types)
    heads, headers = (np.zeros(N, np.uint64) for _ in range(2))
    columns = ngrams(seen)
    if len(stops):
        edge = np.isin(seen.folded, stops) | ~seen.plain
        _context.heads(seen.folded[seen.types], edge[seen.types], heads)
        columns.append(Column(HEAD, heads))
    _context.headers(seen.codes, seen.tokens, headers)
    if headers.any():
        columns.append(Column(HEADER, headers))
    return columns


def stop_words(
    seen: Observed,
    inside: NDArray[np.bool_],
    *,
    patients: NDArray[np.int64],
    floor: int = 1,
    least: int = 10,
    share: float = 0.97,
) -> Keys:
    """Return sorted keys of folded words seen `least` times, by `floor` patients, at least `share` of it outside spans.

    `inside` (N,) marks the tokens in a span; `patients` (D,) numbers the patient of each document, and `floor` of them
    must have used a word.
    """
    V, kinds = number(seen.folded)
    word = kinds[seen.types]
    total = np.bincount(word, minlength=V)
    outside = np.bincount(word, weights=~inside, minlength=V)
    keys = np.zeros(V, np.uint64)
    keys[kinds] = seen.folded
    users = np.unique(word.astype(np.int64) * (patients.max() + 1) + patients[seen.owners]) // (patients.max() + 1)
    enough = np.bincount(users, minlength=V) >= floor
    chosen = enough & (total >= least) & (outside >= share * total) & (keys != 0)
    return np.sort(keys[chosen])


def elsewhere(seen: Observed, states: Places, K: int) -> list[Column]:
    """Return columns of each token's state in a first reading, and those of its word and word pairs elsewhere in it.

    `states` (N,) are those of the first reading, below K; 0 is outside.
    """
    from chaffinch.features._compiled import _context

    owner = seen.owners.astype(np.uint64) + np.uint64(1)
    word = _combine(seen.folded[seen.types], owner)
    after, before = np.zeros_like(word), np.zeros_like(word)
    after[:-1] = _combine(word[:-1], seen.folded[seen.types[1:]])
    before[1:] = _combine(seen.folded[seen.types[:-1]] >> np.uint64(1), word[1:])
    first = states.astype(np.uint64) + np.uint64(1)
    first[seen.types == 0] = 0
    columns = [Column(FIRST_READING, first)]
    for kind, keys in ((WORD_ELSEWHERE, word), (PAIR_ELSEWHERE, after), (PAIR_BEFORE_ELSEWHERE, before)):
        G, groups = number(keys)
        others = np.zeros((len(groups), 2), np.int32)
        _context.elsewhere(np.where(keys == 0, -1, groups).astype(np.int32), states, np.zeros((G, K), np.int32), others)
        code = (others[:, 0] * 3 + others[:, 1]).astype(np.uint64)
        columns.append(Column(kind, code))
        if kind == WORD_ELSEWHERE:
            both = np.where(code > 0, code * np.uint64(1 << 20) + first, 0)
            columns.append(Column(FIRST_READING_AND_ELSEWHERE, both))
    return columns


def marks(seen: Observed, kind: int, values: Sequence[NDArray[np.int64]]) -> Column:
    """Return a column of numbers as keys, from one array per document; 0 is no feature."""
    return Column(kind, seen.spread(values).astype(np.uint64))


def layer_marks(doc: Document, layer: str) -> NDArray[np.int64]:
    """Return (T,) numbers for the label of a layer's span and its first token, 0 outside; DataError without it."""
    if layer not in doc.layers:
        found = count_layers(doc.layers)
        raise DataError(f"there is no layer {layer!r}, which serves as a feature (found: {found}); add it first")
    spans, out = doc.layers[layer], np.zeros(len(doc.tokens), np.int64)
    first, end = doc.token_ranges(spans).T
    labels = [span.label for span in spans]
    code = {label: layer_mark(label) for label in set(labels)}
    values = np.array([code[label] for label in labels], np.int64)
    if (end > first).all() and (first[1:] >= end[:-1]).all():  # the usual case: no span overlaps another, all in order
        out[_ranges(first, end)] = np.repeat(values, end - first)
        out[first] |= 1
        return out
    for a, b, value in zip(first.tolist(), end.tolist(), values.tolist(), strict=True):
        out[a:b] = value
        out[a : a + 1] |= 1
    return out


def layer_marks_of(docs: Sequence[Document], layer: str) -> list[NDArray[np.int64]]:
    """Return the `layer_marks` of each document, worked out for all of them together; DataError without the layer."""
    if any(layer not in doc.layers for doc in docs):
        return [layer_marks(doc, layer) for doc in docs]
    bounds, shifts, starts, ends = share(("edges", *map(id, docs)), list(docs), lambda: _edges(docs))
    rows = [
        (span.start + shift, span.end + shift, span.label)
        for doc, shift in zip(docs, shifts, strict=True)
        for span in doc.layers[layer]
    ]
    first = np.searchsorted(ends, [start for start, _, _ in rows], side="right")
    end = np.maximum(first, np.searchsorted(starts, [end for _, end, _ in rows], side="left"))
    code = {label: layer_mark(label) for label in {label for _, _, label in rows}}
    values = np.array([code[label] for _, _, label in rows], np.int64)
    out = np.zeros(bounds[-1], np.int64)
    out[_ranges(first, end)] = np.repeat(values, end - first)
    out[first[end > first]] |= 1
    unusual = end <= first
    unusual[1:] |= first[1:] < end[:-1]
    owners = np.repeat(np.arange(len(docs)), [len(doc.layers[layer]) for doc in docs])
    for number in np.unique(owners[unusual]).tolist():  # spans that overlap or touch no token count in their order
        out[bounds[number] : bounds[number + 1]] = layer_marks(docs[number], layer)
    return [out[a:b] for a, b in pairwise(bounds)]


def _edges(docs: Sequence[Document]) -> tuple[list[int], list[int], NDArray[np.int64], NDArray[np.int64]]:
    """Return first tokens of documents, where texts begin, and starts and ends (N,) of tokens, texts end to end."""
    bounds = list(accumulate((len(doc.tokens) for doc in docs), initial=0))
    shifts = list(accumulate((len(doc.text) + 1 for doc in docs), initial=0))[:-1]
    edges = np.concatenate([_NO_TOKENS, *(doc.tokens for doc in docs)])
    edges += np.repeat(np.array(shifts, np.int64), np.diff(bounds))[:, None]
    return bounds, shifts, np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])


def layer_mark(label: str) -> int:
    """Return the number of a label in a column of a layer; the first token of a span has one more."""
    return 2 + 2 * crc32(label.encode())


def _ranges(first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers from first[n] to end[n], half-open, one range after another."""
    sizes = end - first
    shifts: NDArray[np.int64] = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    return shifts + np.arange(len(shifts))


def _combine(one: Keys, other: Keys) -> Keys:
    """Return the key of each pair of keys, 0 where either is 0."""
    from chaffinch.features._compiled import _context

    out = np.zeros(len(one), np.uint64)
    _context.combine(one, other, out)
    return out


def _table_size(entries: int) -> int:
    """Return the size of a hash table for this number of entries: a power of two, at most half full."""
    return 1 << max(10, (2 * entries).bit_length())


@cache
def _characters() -> tuple[Bytes, Codes]:
    """Return the kind and the lower case of every code below `CHARACTERS`; the last entry is for all above."""
    from chaffinch.features._compiled import _words

    kinds, small = np.full(CHARACTERS, _words.OTHER, np.uint8), np.arange(CHARACTERS, dtype=np.uint32)
    for code in range(CHARACTERS):
        char = chr(code)
        if char.isupper():
            kinds[code] = _words.UPPER
        elif char.islower():
            kinds[code] = _words.LOWER
        elif char.isdigit():
            kinds[code] = _words.DIGIT
        elif char.isalpha():
            kinds[code] = _words.LETTER
        if len(char.lower()) == 1:
            small[code] = ord(char.lower())
    kinds[ord("-")] = _words.DASH
    kinds[-1] = _words.LETTER
    return kinds, small
