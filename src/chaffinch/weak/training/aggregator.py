"""The aggregator's side of alternate training: fitted to votes, applied to documents, kept in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import Bundle
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels.lattice import Floats
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.training import Watcher
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document, Soft, Span
from chaffinch.weak.aggregate import Learnt, aggregate, apply, fit
from chaffinch.weak.embedded import Conditional
from chaffinch.weak.training.students import Embedder
from chaffinch.weak.vote_rules import RULES, Rule
from chaffinch.weak.votes import SOURCE, sources_of

Settle: TypeAlias = Callable[[Sequence[Document], str], list[Document]]  # adds the layer of that name, with soft labels
Fit: TypeAlias = Callable[[Sequence[Document]], Settle]  # learns from votes; another aggregator is given as this
Aggregator: TypeAlias = MultiHMM | CHMM | Rule | Fit

_RULES: dict[str, Any] = {rule.__name__: rule for rule in RULES}


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """An aggregator of ours after learning: a model of votes, or a rule."""

    how: Learnt | Rule
    sources: tuple[str, ...]  # whose votes it joins

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """The documents with one more layer, and its soft labels: what their sources come to."""
        docs = list(docs)
        if isinstance(self.how, Learnt):
            return apply(docs, self.how, layer=layer)
        names = {SOURCE + name for name in self.sources}
        bare = [replace(doc, layers={own: spans for own, spans in doc.layers.items() if own in names}) for doc in docs]
        found = aggregate(bare, self.how, layer=layer)
        return [
            _with_soft(doc.with_layer(layer, own.layer(layer)), own, layer)
            for doc, own in zip(docs, found, strict=True)
        ]

    def told(self) -> dict[str, Any]:
        """What a manifest says of it."""
        config = self.how.config if isinstance(self.how, Learnt) else self.how
        return {"kind": type(config).__name__, "config": asdict(config), "sources": self.sources}

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
        """What it learnt."""
        return self.how.arrays() if isinstance(self.how, Learnt) else ({}, {})

    @classmethod
    def of(cls, found: Bundle, told: Mapping[str, Any], *, embedder: Embedder | None = None) -> Settled:
        """The aggregator of a model file, whose arrays are its own; the embedder is for a conditional HMM."""
        try:
            sources = tuple(told["sources"])
            own = replace(found, manifest=replace(found.manifest, config=told["config"]))
            if told["kind"] == MultiHMM.__name__:
                return cls(multihmm.Model.of(own), sources)
            if told["kind"] == CHMM.__name__:
                return cls(Conditional.of(own, embedder), sources)
            rule: Rule = msgspec.convert(told["config"], type=_RULES[told["kind"]])
            return cls(rule, sources)
        except (KeyError, TypeError, msgspec.ValidationError):
            raise ModelError("its aggregator cannot be read; it was made by another version, train it anew") from None


def fit_votes(
    docs: Sequence[Document], aggregator: Aggregator | None, *, embedder: Embedder | None = None
) -> Settle:  # fmt: skip
    """An aggregator that has learnt from the votes on documents; by default an HMM of many sources.

    A conditional HMM reads words by the embedder, the packaged one unless another is given.
    """
    sources = sources_of(docs)
    if not sources:
        raise DataError("no document has a layer of a source, source:NAME; apply sources first")
    if aggregator is None or isinstance(aggregator, MultiHMM | CHMM):
        watcher = Watcher()
        model = fit(docs, aggregator, watcher=watcher, embedder=embedder)
        if watcher.interrupted:
            raise KeyboardInterrupt
        return Settled(model, sources)
    if isinstance(aggregator, RULES):
        return Settled(aggregator, sources)
    if not callable(aggregator):
        raise ConfigError(f"an aggregator is MultiHMM, CHMM, a rule or a function, got {type(aggregator).__name__}")
    return aggregator(docs)


def as_tags(doc: Document, spans: Sequence[Span], chances: Floats, names: Sequence[str]) -> Soft:
    """Distributions over tags from chances (T, 1 + L) of O and labels: a span begins where it was read to begin.

    Elsewhere a token begins a span as far as the one before it is of another label.
    """
    out = np.zeros((len(chances), 1 + 2 * len(names)))
    out[:, 0] = chances[:, 0]
    begins = {(first, span.label) for span, first in zip(spans, doc.token_ranges(spans)[:, 0].tolist(), strict=True)}
    for number, name in enumerate(names):
        own = chances[:, 1 + number]
        share = 1.0 - np.append(0.0, own[:-1])
        share[[t for t, label in begins if label == name]] = 1.0
        out[:, 1 + 2 * number], out[:, 2 + 2 * number] = own * share, own * (1.0 - share)
    return Soft(Labels(tuple(names), "IOB2").tags, out)


def hardened(doc: Document, layer: str, names: Sequence[str]) -> Soft:
    """One tag per token, as a soft layer: that of the spans of a layer."""
    labels = Labels(tuple(names), "IOB2")
    out = np.zeros((len(doc.tokens), len(labels.tags)))
    out[:, 0] = 1.0
    spans = doc.layer(layer)
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        if first < end:
            number = names.index(span.label)
            out[first:end] = np.eye(len(labels.tags))[2 + 2 * number]
            out[first] = np.eye(len(labels.tags))[1 + 2 * number]
    return Soft(labels.tags, out)


def _with_soft(doc: Document, own: Document, layer: str) -> Document:
    return doc.with_soft(layer, own.soft[layer]) if layer in own.soft else doc
