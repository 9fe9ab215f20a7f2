"""Analysis of votes: coverage, overlap, conflict and dependence of sources, and their quality with and without gold.

T tokens, S sources, E labels, L = 1 + 2 E tags, D documents, n spans. A kind is -1 (silent), 0 (O) or 1 + a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from chaffinch.checks import did_you_mean
from chaffinch.errors import DataError
from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.multihmm.estimates import SourceEstimate
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.models.votes.multihmm.spans import Bools
from chaffinch.text import Document
from chaffinch.weak.analysis.results import ALL, Analysis, Disagreement, Measure, Row, SourceFacts
from chaffinch.weak.analysis.views import Belief, Truth, Votes, by_document, keys_of, ratio, share
from chaffinch.weak.votes import collect_votes, sources_of


def analyse(
    docs: Iterable[Document], config: MultiHMM | None = None, *, sources: Sequence[str] | None = None,
    gold: str | None = None, most: int = 10,
) -> Analysis:  # fmt: skip
    """Measure how sources vote and agree, estimate how good they and their aggregate are, list the worst disagreements.

    Estimates are those of an HMM of many sources fitted to these votes, without gold. True scores are of documents with
    a layer `gold`, by default "gold". `most` is how many documents with the most disagreement are listed.

    >>> from chaffinch.text import Span
    >>> doc = Document.make("severe copper toxicosis", layers={"source:list": [Span(7, 23, "Disease")]})
    >>> analyse([doc]).sources[0].whole.tokens.votes
    2
    """
    docs = list(docs)
    chosen = choose_sources(docs, sources)
    votes = Votes.of(collect_votes(docs, sources=chosen))
    truth = Truth.of(docs, gold, votes)
    belief = Belief.of(votes.matrix, config)
    facts = tuple(_source(k, votes, belief, truth) for k in range(len(chosen)))
    spoken = by_document(votes.voters > 0, votes.matrix)
    entity, T = (votes.kinds > 0).any(axis=1).sum(), len(votes.matrix)
    return Analysis(
        votes.matrix.names, len(docs), T, share(spoken.sum(), T), share(entity, T),
        share(votes.disputed.sum(), spoken.sum()), votes.share_in_conflict, int((spoken == 0).sum()),
        replace(belief.outlook(votes), checked=truth.check(docs, belief)), facts, belief.sources,
        tuple(map(tuple, belief.dependence.tolist())), _disagreements(docs, votes, spoken, most),
    )  # fmt: skip


def choose_sources(docs: Sequence[Document], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the named sources, each once, or all in the documents; DataError if none or a name is unknown."""
    known = sources_of(docs)
    if not known:
        raise DataError("no document has a layer of a source, source:NAME; apply sources first")
    for name in names or ():
        if name not in known:
            raise DataError(f"no document has votes of a source {name!r}; {did_you_mean(name, known)}")
    return known if names is None else tuple(dict.fromkeys(names))


def _source(k: int, votes: Votes, belief: Belief, truth: Truth) -> SourceFacts:
    """Return the facts of source `k`: measures by label, of all labels and of O votes; weight and confusion."""
    found = votes.matrix
    name, E = found.sources[k], len(found.names)
    mine = votes.source == k
    labels = [e for e in range(E) if (votes.kinds[:, k] == e + 1).any()]
    rows = [
        Row(found.names[e], _tokens(k, [e], votes, belief, truth), _spans(name, mine, [e], votes, belief, truth))
        for e in labels
    ]
    every = list(range(E))
    rows.append(Row(ALL, _tokens(k, every, votes, belief, truth), _spans(name, mine, every, votes, belief, truth)))
    if (votes.kinds[:, k] == 0).any():
        rows.append(Row("O", _outside(k, votes, belief, truth)))
    estimate = belief.estimates.get(name)
    confusion = () if estimate is None else tuple(map(tuple, _confusion(estimate, belief.chances.sum(axis=0)).tolist()))
    speaks = int((by_document(votes.kinds[:, k] >= 0, found) > 0).sum())
    return SourceFacts(name, speaks, None if estimate is None else estimate.weight, tuple(rows), confusion)


def _tokens(k: int, labels: Sequence[int], votes: Votes, belief: Belief, truth: Truth) -> Measure:
    """Return token-level measures of source `k` on `labels`: coverage, overlap, conflict, estimated and true scores."""
    kind, name = votes.kinds[:, k], votes.matrix.sources[k]
    mine = np.isin(kind, [e + 1 for e in labels])
    number = int(mine.sum())
    hits = np.array([belief.chances[kind == e + 1, 1 + 2 * e : 3 + 2 * e].sum() for e in labels])
    there = belief.expected[1][labels].sum()
    gold = np.isin(truth.kinds, [e + 1 for e in labels]) if len(labels) == 1 else truth.kinds > 0
    right = int((mine & (kind == truth.kinds)).sum())
    return Measure(
        number, share(number, len(kind)), ratio((mine & (votes.voters > 1)).sum(), number),
        ratio((mine & votes.disputed).sum(), number), ratio(hits.sum(), number),
        ratio(hits.sum(), there) if name in belief.estimates else None,
        ratio(right, (mine & truth.known).sum()), ratio(right, gold.sum()),
    )  # fmt: skip


def _spans(name: str, of_source: Bools, labels: Sequence[int], votes: Votes, belief: Belief, truth: Truth) -> Measure:
    """Return span-level measures of a source on some labels: coverage, overlap, conflict, estimated and true scores."""
    spans, estimate = votes.spans, belief.estimates.get(name)
    mine = of_source & np.isin(spans.label, labels)
    number = int(mine.sum())
    any_of = np.isin(spans.label, labels)
    keys = keys_of(spans.first, spans.end, spans.label)
    hits = 0.0
    if estimate is not None:
        counts = np.bincount(spans.label[of_source], minlength=len(votes.matrix.names))[labels]
        hits = float((np.nan_to_num(estimate.span_precision[labels]) * counts).sum())
    judged = mine & truth.known[spans.first]
    right = int(np.isin(keys[judged], truth.keys).sum())
    gold = np.isin(truth.label, labels) if len(labels) == 1 else truth.label >= 0
    return Measure(
        number, ratio(number, len(np.unique(keys[any_of]))), ratio((mine & votes.overlap).sum(), number),
        ratio((mine & votes.conflict).sum(), number), ratio(hits, number),
        None if estimate is None else ratio(hits, belief.expected[0][labels].sum()),
        ratio(right, judged.sum()), ratio(right, gold.sum()),
    )  # fmt: skip


def _outside(k: int, votes: Votes, belief: Belief, truth: Truth) -> Measure:
    """Return token-level measures of source `k`'s votes for O: coverage, overlap, conflict, estimates, true ones."""
    mine, outside = votes.kinds[:, k] == 0, belief.chances[:, 0]
    number, hits = int(mine.sum()), float(outside[mine].sum())
    right = int((mine & (truth.kinds == 0)).sum())
    return Measure(
        number, share(number, len(mine)), ratio((mine & (votes.voters > 1)).sum(), number),
        ratio((mine & votes.disputed).sum(), number), ratio(hits, number), ratio(hits, outside.sum()),
        ratio(right, (mine & truth.known).sum()), ratio(right, (truth.kinds == 0).sum()),
    )  # fmt: skip


def _confusion(estimate: SourceEstimate, mass: Floats) -> Floats:
    """Return (1 + E, 2 + E) estimated rates of silence, O and each label of a source, by true label with O first."""
    L = len(estimate.rates)
    kind = (np.arange(L) + 1) // 2
    member = (kind[:, None] == np.arange(kind.max() + 1)).astype(float)  # (L, 1 + E)
    shares = (mass + 1e-9)[:, None] * member
    shares /= shares.sum(axis=0)
    voted = (estimate.rates[:, None] * estimate.confusion) @ member
    return np.concatenate([(shares.T @ (1 - estimate.rates))[:, None], shares.T @ voted], axis=1)


def _disagreements(docs: Sequence[Document], votes: Votes, spoken: Ints, most: int) -> tuple[Disagreement, ...]:
    """Return up to `most` documents with disagreement: most distinct spans in conflict first, then disputed tokens."""
    found, spans = votes.matrix, votes.in_conflict
    where = np.searchsorted(found.documents, spans.first, side="right") - 1
    by_spans = np.bincount(where, minlength=len(docs))
    by_tokens = by_document(votes.disputed, found)
    order = np.lexsort((np.arange(len(docs)), -by_tokens, -by_spans))[:most].tolist()
    return tuple(
        Disagreement(docs[d].id, int(spoken[d]), int(by_tokens[d]), int(by_spans[d]))
        for d in order
        if by_spans[d] or by_tokens[d]
    )
