"""Many sources to one layer: by a rule, or by a model that is learnt from their votes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.training import Watcher
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.models.votes.multihmm.spans import Spans
from chaffinch.text import Document, Span
from chaffinch.weak import embedded as conditional
from chaffinch.weak.embedded import Conditional
from chaffinch.weak.training.students import Embedder
from chaffinch.weak.vote_rules import RULES, Rule, TokenVote, Union, shares, spans_by
from chaffinch.weak.votes import collect_votes, sources_of, with_labels

LAYER = "aggregate"

Learnt: TypeAlias = multihmm.Model | Conditional  # what an aggregator has learnt from votes


def aggregate(
    docs: Iterable[Document], config: MultiHMM | CHMM | Rule | None = None, *,
    fit_on: Iterable[Document] | None = None, layer: str = LAYER, sources: Sequence[str] | None = None,
    watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> list[Document]:  # fmt: skip
    """The documents with one more layer: what their sources, all or some, come to; by default by `MultiHMM()`.

    A model learns from the votes on these documents, or on those of `fit_on`, and leaves soft labels too; of the rules
    the vote on tokens does. No gold is looked at. `CHMM()` sees words through an `embedder`, the packaged one unless
    another is given.

    >>> from chaffinch.weak.vote_rules import LongestSpan
    >>> spans = {"source:a": [Span(7, 13, "Disease")], "source:b": [Span(7, 23, "Disease")]}
    >>> doc = Document.make("severe copper toxicosis", layers=spans)
    >>> [(span.start, span.end) for span in aggregate([doc], LongestSpan())[0].layers["aggregate"]]
    [(7, 23)]
    """
    config, docs = MultiHMM() if config is None else config, list(docs)
    if isinstance(config, RULES):
        return _by_rule(docs, config, layer, sources)
    if not isinstance(config, MultiHMM | CHMM):
        raise ConfigError(f"aggregate takes MultiHMM, CHMM or a rule, got {type(config).__name__}")
    model = fit(docs, config, fit_on=fit_on, sources=sources, watcher=watcher, embedder=embedder)
    return apply(docs, model, layer=layer)


def fit(
    docs: Sequence[Document], config: MultiHMM | CHMM | None = None, *, fit_on: Iterable[Document] | None = None,
    sources: Sequence[str] | None = None, watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> Learnt:  # fmt: skip
    """The model that `aggregate` learns, for `apply`."""
    other = None if fit_on is None else list(fit_on)
    votes = joint(docs, other, sources)
    if isinstance(config, CHMM):
        return conditional.fit(votes, docs if other is None else other, config, watcher=watcher, embedder=embedder)
    return multihmm.fit(votes, config, watcher=watcher)


def apply(docs: Sequence[Document], model: Learnt, *, layer: str = LAYER) -> list[Document]:
    """The documents with a layer and soft labels of what a fitted model makes of their sources."""
    found = with_rules(collect_votes(docs, sources=model.sources, labels=model.names), model.rules)
    result = model.posterior(found, docs) if isinstance(model, Conditional) else model.posterior(found)
    return with_labels(docs, found, result.tags, result.chances, layer=layer)


def joint(
    docs: Sequence[Document], fit_on: Iterable[Document] | None, sources: Sequence[str] | None
) -> VoteMatrix:  # fmt: skip
    """The votes to learn from, on all labels that documents of either kind use."""
    if fit_on is None:
        return collect_votes(docs, sources=sources)
    other = list(fit_on)
    if not other:
        raise DataError("fit_on has no documents; leave it out to learn from the documents themselves")
    sources = sources_of(other) if sources is None else sources
    return collect_votes(other, labels=collect_votes([*other, *docs], sources=sources).names, sources=sources)


def with_rules(found: VoteMatrix, rules: tuple[str, ...]) -> VoteMatrix:
    """The votes with the words of those linking rules; one that no document has says nothing."""
    links = np.zeros((len(found), len(rules)), np.int8)
    for column, name in enumerate(rules):
        if name in found.rules:
            links[:, column] = found.links[:, found.rules.index(name)]
    return VoteMatrix(
        found.sources, found.names, found.codes, found.bounds, found.documents, found.soft, rules, links
    )  # fmt: skip


def _by_rule(docs: list[Document], rule: Rule, layer: str, sources: Sequence[str] | None) -> list[Document]:
    found = collect_votes(docs, sources=sources)
    spans = spans_by(rule, found)
    if isinstance(rule, Union):
        return _with_spans(docs, found, spans, layer)
    chances = shares(found) if isinstance(rule, TokenVote) else None
    return with_labels(docs, found, spans.tags(len(found)), chances, layer=layer)


def _with_spans(docs: list[Document], found: VoteMatrix, spans: Spans, layer: str) -> list[Document]:
    """The documents with a layer of spans that may overlap."""
    cuts = np.searchsorted(spans.first, found.documents)
    out = []
    for place, doc in enumerate(docs):
        own, shift = spans[np.arange(cuts[place], cuts[place + 1])], int(found.documents[place])
        rows = zip((own.first - shift).tolist(), (own.end - shift).tolist(), own.label.tolist(), strict=True)
        out.append(doc.with_layer(layer, [
            Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), found.names[label], source=layer)
            for a, b, label in rows
        ]))  # fmt: skip
    return out
