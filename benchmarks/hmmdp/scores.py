"""The scores of the HMM-DP benchmark: tokens by category, strict spans by type, leaked tokens, with intervals.

A token has a label if a span covers one of its characters; B and I do not count. A gold token without any predicted
span leaks, punctuation inside identifiers included. N tokens of all documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import chaffinch as cf
from benchmarks.hmmdp.data import as_categories, category
from benchmarks.hmmdp.worker import FOUND
from chaffinch import HMMDP, Document, Span
from chaffinch.evaluate.results import Score
from chaffinch.models.hmmdp.model import cut_sentences
from chaffinch.text import Soft

Table: TypeAlias = Mapping[str, str]  # the category of every type
Inside: TypeAlias = NDArray[np.bool_]  # (N,) tokens of some span

DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Scores:
    """What one system did on some documents."""

    categories: Score  # tokens
    strict: Score  # spans with types
    binary: Score  # tokens, in any span or in none
    by_category: Mapping[str, Score]  # tokens
    by_type: Mapping[str, Score]  # tokens
    types: Score  # tokens

    @property
    def leaked(self) -> int:
        """Identifier tokens that were not found."""
        return self.binary.fn


@dataclass(frozen=True, slots=True)
class Change:
    """A difference with its 95 % interval."""

    value: float
    low: float
    high: float


def score(gold: Sequence[Document], found: Sequence[Document], table: Table) -> Scores:
    """The scores of the layer "found" against "gold"."""
    fine = cf.evaluate(gold, found, scheme=("strict", "token", "binary"), layer="gold", predicted_layer=FOUND)
    coarse = cf.evaluate(
        as_categories(gold, "gold", table), as_categories(found, FOUND, table),
        scheme="token", layer="gold", predicted_layer=FOUND,
    )  # fmt: skip
    return Scores(
        coarse.micro,
        fine["strict"].micro,
        fine["binary"].micro,
        coarse.labels,
        fine["token"].labels,
        fine["token"].micro,
    )


def read_without_begins(docs: Sequence[Document], config: HMMDP) -> list[Document]:
    """The documents with a layer "found": the gold as tags of one per label read it, neighbours joined.

    Whatever tags without B and I can say at best, in the sentences of the settings.

    >>> doc = Document.make("Ann Lee", layers={"gold": [Span(0, 3, "NAME"), Span(4, 7, "NAME")]})
    >>> [(span.start, span.end) for span in read_without_begins([doc], HMMDP.published())[0].layer(FOUND)]
    [(0, 7)]
    """
    out = []
    for doc, cut in zip(docs, cut_sentences(docs, config), strict=True):
        labels = [""] * len(doc.tokens)
        spans = doc.layer("gold")
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            labels[first:end] = [span.label] * (end - first)
        begins = set(np.searchsorted(doc.tokens[:, 0], cut.sentences[:, 0]).tolist())
        found: list[Span] = []
        for token, ((start, end), label) in enumerate(zip(doc.tokens.tolist(), labels, strict=True)):
            if label and found and token not in begins and token and labels[token - 1] == label:
                found[-1] = Span(found[-1].start, end, label)
            elif label:
                found.append(Span(start, end, label))
        out.append(doc.with_layer(FOUND, found))
    return out


def change(
    gold: Sequence[Document], first: Sequence[Document], second: Sequence[Document], table: Table | None = None
) -> Change:
    """Strict F1 of the second less that of the first; with a table, token F1 by category."""
    scheme = "strict" if table is None else "token"
    if table is not None:
        gold = as_categories(gold, "gold", table)
        first, second = as_categories(first, FOUND, table), as_categories(second, FOUND, table)
    found = cf.compare(gold, second, first, scheme=scheme, layer="gold", predicted_layers=(FOUND, FOUND)).difference
    low, high = found.interval or (found.value, found.value)
    return Change(found.value, low, high)


def covered(doc: Document, spans: Sequence[Span]) -> Inside:
    """(T,) whether a span covers a character of each token.

    >>> covered(Document.make("Ann Lee came"), [Span(2, 5, "NAME")]).tolist()
    [True, True, False]
    """
    edges = np.zeros(len(doc.tokens) + 1, np.int64)
    np.add.at(edges, np.searchsorted(doc.tokens[:, 1], [span.start for span in spans], side="right"), 1)
    np.add.at(edges, np.searchsorted(doc.tokens[:, 0], [span.end for span in spans], side="left"), -1)
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def united(doc: Document, first: Sequence[Span], second: Sequence[Span], soft: Soft, theta: float) -> list[Span]:
    """The first spans, what the second add outside of them, and every other token with P(O) below theta.

    Tokens that are added have their likeliest label but O; neighbours of one label are one span.
    """
    inside = covered(doc, first)
    label = np.full(len(doc.tokens), "", dtype=object)
    outside = [name for name in soft.labels if name != "O"]
    columns = [soft.labels.index(name) for name in outside]
    doubtful = soft.values[:, soft.labels.index("O")] < theta
    label[doubtful] = np.array(outside, dtype=object)[soft.values[doubtful][:, columns].argmax(axis=1)]
    for span in second:
        label[covered(doc, [span])] = span.label
    label[inside] = ""
    starts = np.flatnonzero((label != "") & (label != np.concatenate([[""], label[:-1]])))
    ends = np.flatnonzero((label != "") & (label != np.concatenate([label[1:], [""]])))
    edges = zip(doc.tokens[starts, 0].tolist(), doc.tokens[ends, 1].tolist(), label[starts], strict=True)
    return sorted([*first, *(Span(a, b, name) for a, b, name in edges)])


def leaks(doc: Document, layer: str, wanted: str = "", table: Table | None = None) -> tuple[int, int]:
    """How many tokens of gold spans, of one category or of all, are in no found span, and how many there are."""
    spans = [span for span in doc.layer("gold") if not wanted or category(span.label, table or {}) == wanted]
    gold = covered(doc, spans)
    return int((gold & ~covered(doc, doc.layer(layer))).sum()), int(gold.sum())


def removed(before: Sequence[int], after: Sequence[int], seed: int = 0) -> Change:
    """The share of leaks that went away, over patients; the interval comes from drawing patients anew.

    >>> removed([2, 2], [1, 1])
    Change(value=0.5, low=0.5, high=0.5)
    """
    counts = np.stack([before, after], axis=1).astype(np.float64)
    chosen = np.random.default_rng(seed).integers(len(counts), size=(DRAWS, len(counts)))
    drawn = counts[chosen].sum(axis=1)
    shares = (drawn[:, 0] - drawn[:, 1])[drawn[:, 0] > 0] / drawn[:, 0][drawn[:, 0] > 0]
    total = counts.sum(axis=0)
    if total[0] == 0:
        return Change(0.0, 0.0, 0.0)
    low, high = np.quantile(shares, [0.025, 0.975]).tolist()
    return Change(float((total[0] - total[1]) / total[0]), low, high)
