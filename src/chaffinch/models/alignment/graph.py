"""Repeated words as graphs: tokens of one word, their similarities, and conversion of token labels to spans.

N tokens of a patient's documents, T of one of them, M nodes, V words as written, L labels, of which number 0 is "O",
A kinds of likeness (properties that two occurrences may share), K lexical observations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.kernels import Floats, Ints
from chaffinch.text import Document, Span
from chaffinch.text.span import find_overlap

Keys = NDArray[np.uint64]
Flags = NDArray[np.bool_]

ALIKE = ("any", "document", "left word", "right word", "case")  # what two occurrences may share
AROUND = (-2, -1, 0, 1, 2)  # offsets of the words and shapes that are lexical features, as published
SECOND = 0.1  # the two likeliest labels of a token are candidates above this chance; lower allows more corrections
# An ordinary word occurs at least this often, and more than this share of its occurrences is O with more than this
# chance. It must be found twice before it is linked. Raising a limit makes fewer words ordinary, which adds recall and
# false alarms.
ORDINARY, ORDINARY_SHARE, ORDINARY_CHANCE = 10, 0.9, 0.95
SOURCE = "alignment"
_LONG = re.compile(r"(.)\1\1+", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RepeatedWords:
    """All tokens of one patient's documents, in document order; word V represents positions beyond a line."""

    owners: Ints  # (N,) the document of each token
    written: Ints  # (N,) its word, from 0
    lines: Ints  # (N, 2) the first token of its line (or sentence), and one past the last
    tags: Ints  # (N,) the tagger's label
    chances: Floats  # (N, L) the tagger's probability of each label
    words: tuple[str, ...]  # (V,)
    folded: Ints  # (V + 1,) the number of each word without its case
    folds: tuple[str, ...]  # those words
    plain: Flags  # (V + 1,) has a letter or a digit
    case: Ints  # (V + 1,) how it is capitalised

    def beside(self, tokens: Ints, step: int) -> Ints:
        """Return the tokens `step` positions further in the same line or sentence; -1 where there is none."""
        neighbours = tokens + step
        inside = (neighbours >= self.lines[tokens, 0]) & (neighbours < self.lines[tokens, 1])
        return np.where(inside, neighbours, -1)

    def word_at(self, tokens: Ints) -> Ints:
        """Return the numbers of tokens' words, as written; V (no word) for a token -1."""
        return np.where(tokens < 0, len(self.folded) - 1, self.written[tokens])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graphs:
    """The occurrences of every linked word of one patient, those of one word next to each other."""

    nodes: Ints  # (M,) token numbers
    graph: Ints  # (M,) from 0, rising
    sizes: Ints  # (M,) occurrences in the node's graph
    candidates: Flags  # (M, L) the labels its graph may take
    alike: Ints  # (A, M) nodes of one graph with the same number have that likeness in common

    def shares(self, labels: Ints, known: Flags, rows: Ints | None = None) -> Floats:
        """Return (A, R, L) the share of a node's other occurrences that are `known` (M,), alike and have each label.

        R are the nodes `rows`, by default all.
        """
        L = self.candidates.shape[1]
        asked = np.arange(len(labels)) if rows is None else rows
        out = np.zeros((len(ALIKE), len(asked), L))
        where = np.flatnonzero(known)
        mine = np.flatnonzero(known[asked])
        for counted, alike in zip(out, self.alike, strict=True):
            size = (int(alike.max(initial=0)) + 1) * L
            counts = np.bincount(alike[where] * L + labels[where], minlength=size).reshape(-1, L)
            counted[:] = counts[alike[asked]]
            counted[mine, labels[asked[mine]]] -= 1
        out /= (self.sizes[asked] - 1)[:, None]
        return out


def label_names(documents: Sequence[Document], layer: str) -> tuple[str, ...]:
    """Return "O", then the sorted labels of the layer's spans and soft labels; DataError if a document lacks either."""
    names: set[str] = set()
    for number, doc in enumerate(documents, start=1):
        where = f"document {number} of {len(documents)}"
        if layer not in doc.layers:
            raise DataError(f"{where} has no layer {layer!r}; add it with Tagger.annotate first")
        if layer not in doc.soft:
            raise DataError(f"{where} has no soft labels {layer!r}; add them with Tagger.posteriors first")
        labels = doc.soft[layer].labels
        if "O" not in labels:
            raise DataError(f"{where}: the soft labels {layer!r} have no column O (outside of all spans); add it")
        if len(labels) > 1 and all(name[1:2] == "-" for name in labels if name != "O"):
            raise DataError(f"{where}: the soft labels {layer!r} are tags such as B- and I-; add them up by label")
        if not np.isfinite(doc.soft[layer].values).all():
            raise DataError(
                f"{where}: the soft labels {layer!r} contain a value that is not a finite number; compute them again"
            )
        names.update(doc.soft[layer].labels, (span.label for span in doc.layers[layer]))
    return ("O", *sorted(names - {"O"}))


def observe(docs: Sequence[Document], layer: str, names: Sequence[str]) -> RepeatedWords:
    """Return all words of a patient's documents with the layer's labels and chances; DataError for overlapping spans.

    Labels are numbered by their places in `names`.
    """
    index = {name: number for number, name in enumerate(names)}
    table: dict[str, int] = {}
    folds: dict[str, int] = {}
    written = [table.setdefault(word, len(table)) for doc in docs for word in doc.words()]
    folded = [folds.setdefault(word.casefold(), len(folds)) for word in table]
    sizes = np.array([len(doc.tokens) for doc in docs], np.int64)
    chances = np.zeros((int(sizes.sum()), len(names)))
    for doc, end in zip(docs, np.cumsum(sizes).tolist(), strict=True):
        soft = doc.soft[layer]
        chances[end - len(doc.tokens) : end, [index[name] for name in soft.labels]] = soft.values
    none = np.zeros(0, np.int64)
    lines = [_lines(doc) + shift for doc, shift in zip(docs, np.cumsum(sizes) - sizes, strict=True)]
    return RepeatedWords(
        np.repeat(np.arange(len(docs)), sizes),
        np.array(written, np.int64),
        np.concatenate([none.reshape(0, 2), *lines]),
        np.concatenate([none, *(token_labels(doc, doc.layers[layer], index) for doc in docs)]),
        chances,
        *describe_words(tuple(table), folded, tuple(folds)),
    )


def observe_found(
    docs: Sequence[Document], patients: Sequence[int], layer: str, names: Sequence[str]
) -> tuple[RepeatedWords, Ints]:
    """Return those words of documents that spans of their patient hold, as `observe` does, and their tokens (N,).

    The documents of one patient follow one another, and the same word of two patients is two words. Each occurrence
    stands as if in a line of its own, so this is for models that weigh the word alone.
    """
    index = {name: number for number, name in enumerate(names)}
    held: dict[int, set[str]] = {}
    tags = [token_labels(doc, doc.layers[layer], index) for doc in docs]
    spelt = [doc.words() for doc in docs]
    for patient, words, numbers in zip(patients, spelt, tags, strict=True):
        held.setdefault(patient, set()).update([words[t].casefold() for t in np.flatnonzero(numbers).tolist()])
    table: dict[tuple[int, str], int] = {}
    folds: dict[tuple[int, str], int] = {}
    written, chosen, chances = [], [], [np.zeros((0, len(names)))]
    for doc, patient, words in zip(docs, patients, spelt, strict=True):
        found = held[patient]
        tokens = [t for t, fold in enumerate(map(str.casefold, words)) if fold in found]
        written += [table.setdefault((patient, words[t]), len(table)) for t in tokens]
        rows, soft = np.zeros((len(tokens), len(names))), doc.soft[layer]
        rows[:, [index[name] for name in soft.labels]] = soft.values[tokens]
        chosen.append(np.array(tokens, np.int64))
        chances.append(rows)
    folded = [folds.setdefault((patient, word.casefold()), len(folds)) for patient, word in table]
    none = np.zeros(0, np.int64)
    found_words = RepeatedWords(
        np.repeat(np.arange(len(docs)), [len(tokens) for tokens in chosen]),
        np.array(written, np.int64),
        np.arange(len(written))[:, None] + np.array([0, 1]),
        np.concatenate([none, *(numbers[tokens] for numbers, tokens in zip(tags, chosen, strict=True))]),
        np.concatenate(chances),
        *describe_words(tuple(word for _, word in table), folded, tuple(fold for _, fold in folds)),
    )
    return found_words, np.concatenate([none, *chosen])


def describe_words(
    words: tuple[str, ...], folded: Sequence[int], folds: tuple[str, ...]
) -> tuple[tuple[str, ...], Ints, tuple[str, ...], Flags, Ints]:
    """Return the last five fields of `RepeatedWords`; `folded` are the places of the words in `folds`."""
    plain = np.array([*(any(map(str.isalnum, word)) for word in words), False], np.bool_)
    return words, np.array([*folded, -1], np.int64), folds, plain, np.array([*map(_case, words), -1], np.int64)


def link_words(words: RepeatedWords, common: frozenset[str]) -> Graphs:
    """Return the graphs, one per word, of a patient's repeated words found at least once, or twice if ordinary.

    A `common` word, or one that is O nearly everywhere, is ordinary.
    """
    L, H = words.chances.shape[1], len(words.folds)
    kind = np.where(words.plain[words.written], words.folded[words.written], H)

    def count(chosen: Flags) -> Ints:
        """Return (H,) how many of the chosen occurrences (N,) each word has."""
        return np.bincount(kind[chosen], minlength=H + 1)[:H]

    total, found = count(np.ones(len(kind), np.bool_)), count(words.tags > 0)
    ordinary = (total >= ORDINARY) & (count(words.chances[:, 0] > ORDINARY_CHANCE) > ORDINARY_SHARE * total)
    if common:
        ordinary |= np.array([fold in common for fold in words.folds], np.bool_)
    chosen = np.append((total >= 2) & (found >= np.where(ordinary, 2, 1)), False)
    nodes = np.flatnonzero(chosen[kind])
    nodes = nodes[np.argsort(kind[nodes], kind="stable")]
    graph = np.unique(kind[nodes], return_inverse=True)[1].reshape(-1)
    labels = np.zeros((int(graph.max(initial=-1)) + 1, L), np.bool_)
    labels[:, 0] = True
    labels[graph, words.tags[nodes]] = True
    ranked = np.argsort(words.chances[nodes], axis=1, kind="stable")
    for best in ranked.T[-2:]:
        likely = words.chances[nodes, best] > SECOND
        labels[graph[likely], best[likely]] = True
    left, right = (words.folded[words.word_at(words.beside(nodes, step))] for step in (-1, 1))
    likenesses = (np.zeros_like(nodes), words.owners[nodes], left, right, words.case[words.written[nodes]])
    alike = np.stack([_number_pairs(graph, likeness) for likeness in likenesses])
    return Graphs(nodes, graph, np.bincount(graph)[graph], labels[graph], alike)


def lexical_keys(words: RepeatedWords, nodes: Ints) -> tuple[Keys, Ints]:
    """Return (M, K) keys of each node's neighbours and place, and (M, K) the token that a key shows, else -1.

    Words and shapes at -2 to 2, the position in the line and the line's first word.
    """
    spellings = np.array([*map(_spelling, words.words), (0, 0)], np.uint64)
    keys, tokens = [], []
    for kind, step in enumerate(AROUND):
        neighbours = words.beside(nodes, step)
        for part in (0, 1):
            keys.append(np.uint64(2 * kind + part) << np.uint64(40) | spellings[words.word_at(neighbours), part])
            tokens.append(neighbours if part == 0 else np.full_like(neighbours, -1))
    first = words.lines[nodes, 0]
    place, last = np.minimum(nodes - first, 3), nodes == words.lines[nodes, 1] - 1
    keys.append(np.uint64(20) << np.uint64(40) | (2 * place + last).astype(np.uint64))
    keys.append(np.uint64(21) << np.uint64(40) | spellings[words.written[first], 0])
    return np.stack(keys, axis=1), np.stack([*tokens, np.full_like(nodes, -1), first], axis=1)


def token_labels(doc: Document, spans: Sequence[Span], index: Mapping[str, int]) -> Ints:
    """Return (T,) the number in `index` of the label over each token, 0 outside; DataError if spans overlap."""
    clash = find_overlap(spans)
    if clash is not None:
        a, b = clash
        raise DataError(
            f"spans [{a.start}, {a.end}) {a.label} and [{b.start}, {b.end}) {b.label} overlap, so that a token has two "
            "labels; resolve overlaps first (chaffinch.resolve)"
        )
    out = np.zeros(len(doc.tokens), np.int64)
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        out[first:end] = index[span.label]
    return out


def to_spans(doc: Document, spans: Sequence[Span], changes: Mapping[int, tuple[str, float]]) -> list[Span]:
    """Return the spans after tokens are relabelled: `changes` maps a token number to its new label and score.

    Spans without a changed token stay as they are. A changed token is merged with a neighbour of its label if only
    blanks separate them.
    """
    edges, words = doc.tokens.tolist(), doc.words()
    new, parts = dict(changes), []  # spans, and whether each is new
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        if not any(t in changes for t in range(first, end)):
            parts.append((span, False))
            continue
        labels = _follow(words[first:end], [changes.get(t, (span.label,))[0] for t in range(first, end)])
        cuts = [0, *(t for t in range(1, len(labels)) if labels[t] != labels[t - 1]), len(labels)]
        for a, b in pairwise(cuts):
            start = span.start if a == 0 else edges[first + a][0]
            stop = span.end if b == len(labels) else edges[first + b - 1][1]
            scores = [new.pop(t)[1] for t in range(first + a, first + b) if t in new]
            if labels[a] == span.label:
                parts.append((replace(span, start=start, end=stop, concept=""), False))
            elif labels[a] != "O":
                parts.append((Span(start, stop, labels[a], min(scores, default=1.0), SOURCE), True))
    parts += [
        (Span(edges[t][0], edges[t][1], label, score, SOURCE), True)
        for t, (label, score) in new.items()
        if label != "O"
    ]
    return _merge_adjacent(doc, sorted(parts, key=lambda part: part[0]))


def _merge_adjacent(doc: Document, parts: Sequence[tuple[Span, bool]]) -> list[Span]:
    """Return (span, new) parts as spans; neighbours of one label with only blanks between merge, if either is new."""
    out: list[tuple[Span, bool]] = []
    for span, new in parts:
        if out:
            last, last_new = out[-1]
            between = doc.text[last.end : span.start]
            blank = not between.strip() and "\n" not in between and "\r" not in between
            if (new or last_new) and last.label == span.label and blank:
                score = min(last.score, span.score)
                out[-1] = (Span(last.start, span.end, span.label, score, SOURCE), True)
                continue
        out.append((span, new))
    return [span for span, _ in out]


def _follow(words: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Return the labels of words, punctuation with that of the word before it, else of the first word."""
    plain = [any(map(str.isalnum, word)) for word in words]
    out, last = list(labels), next((t for t, is_word in enumerate(plain) if is_word), -1)
    for t, is_word in enumerate(plain):
        last = t if is_word else last
        out[t] = labels[last] if last >= 0 else labels[t]
    return out


def _lines(doc: Document) -> Ints:
    """Return (T, 2) the first token and the end of each token's sentence; a token in none is a sentence alone."""
    bounds, tokens = doc.sentence_tokens(), np.arange(len(doc.tokens))
    alone = np.stack([tokens, tokens + 1], axis=1)
    if not len(bounds):
        return alone
    sentences = bounds[np.maximum(np.searchsorted(bounds[:, 0], tokens, side="right") - 1, 0)]
    inside = (tokens >= sentences[:, 0]) & (tokens < sentences[:, 1])
    return np.where(inside[:, None], sentences, alone)


def _spelling(word: str) -> tuple[int, int]:
    """Return (key of the case-folded word, key of its shape), both below 2**32."""
    signs = "".join(["X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word])
    return crc32(word.casefold().encode()), crc32(_LONG.sub(r"\1\1", signs).encode())


def _case(word: str) -> int:
    """Return 3 for a word in lower case, 2 in title case, 1 in upper case, else 0."""
    return 3 if word.islower() else 2 if word.istitle() else 1 if word.isupper() else 0


def _number_pairs(graph: Ints, values: Ints) -> Ints:
    """Return (M,) numbers from 0, the same for two places exactly where both `graph` and `values` agree."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    numbers = np.unique(graph * (high - low + 1) + values - low, return_inverse=True)[1]
    return np.asarray(numbers.reshape(-1))
