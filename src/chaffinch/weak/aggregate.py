"""Many sources to one layer: an aggregator learns from votes, and what it learnt labels documents.

An aggregator is a rule or a model. All have one shape: settings, `fit(documents, settings) -> fitted`, and
`fitted(documents, layer) -> documents`. `AGGREGATORS` has one row for each; what a row says of its aggregator nobody
else says. A fitted model is one file, so that votes on other documents are joined in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import msgspec
import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Manifest, State
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.models.core.training import Watcher
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.models.votes.multihmm.spans import Spans
from chaffinch.text import Document, Span
from chaffinch.weak import embedded
from chaffinch.weak.embedded import Embedder, FittedCHMM
from chaffinch.weak.vote_rules import RULES, VoteRule
from chaffinch.weak.votes import collect_votes, sources_of, with_labels

LAYER = "aggregate"

Settings: TypeAlias = MultiHMM | CHMM | VoteRule


class LabelVotes(Protocol):
    """Any function that adds a layer of the given name, and soft labels if it has any, to documents with votes."""

    def __call__(self, docs: Sequence[Document], layer: str, /) -> list[Document]: ...


@runtime_checkable
class FittedAggregator(LabelVotes, Protocol):
    """An aggregator after learning, which a file can hold."""

    @property
    def config(self) -> Settings: ...  # what was chosen
    @property
    def names(self) -> tuple[str, ...]: ...  # the labels it knows; none if it takes any
    @property
    def sources(self) -> tuple[str, ...]: ...  # whose votes it joins
    def state(self) -> State: ...  # what it learnt


@dataclass(frozen=True, slots=True, eq=False)
class FittedRule:
    """A rule and the sources whose votes it joins."""

    config: VoteRule
    sources: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with a layer of what the rule makes of their votes."""
        votes = collect_votes(docs, sources=self.sources)
        spans = self.config.spans(votes)
        if self.config.overlaps:
            return _with_spans(docs, votes, spans, layer)
        return with_labels(docs, votes, spans.tags(len(votes)), self.config.chances(votes), layer=layer)

    def state(self) -> State:
        """Return nothing: a rule has learnt nothing."""
        return State()


@dataclass(frozen=True, slots=True, eq=False)
class FittedMultiHMM:
    """A learnt HMM of many sources."""

    model: multihmm.Model

    @property
    def config(self) -> MultiHMM:
        """Return what was chosen."""
        return self.model.config

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels it knows."""
        return self.model.names

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources it knows something of."""
        return self.model.sources

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with a layer, and soft labels, of what the model makes of their votes."""
        votes = collect_votes(docs, sources=self.sources, labels=self.names).with_rules(self.model.rules)
        result = self.model.posterior(votes)
        return with_labels(docs, votes, result.tags, result.chances, layer=layer)

    def state(self) -> State:
        """Return what it learnt."""
        return self.model.state()


@dataclass(frozen=True, slots=True, eq=False)
class VoteLesson:
    """What an aggregator learns from: documents, their votes, an encoder if it needs one, and who watches."""

    docs: Sequence[Document]
    votes: VoteMatrix
    embedder: Embedder | None = None
    watcher: Watcher | None = None


@dataclass(frozen=True, slots=True)
class Aggregator:
    """A way to join votes: the name of its files and of the command's --method, its settings, how it learns."""

    name: str
    config: type[Settings]
    fit: Callable[[VoteLesson, Any], FittedAggregator]  # with settings of `config`
    load: Callable[[State, tuple[str, ...], Embedder | None], FittedAggregator]
    learns: bool = True  # a rule learns nothing, and has no file
    slow: bool = False  # long runs keep what it learnt
    embeds: bool = False  # it reads words by an embedder, which is in no file

    def settings(self, *, seed: int = 0) -> Settings:
        """Return its usual settings, with that seed if it draws anything."""
        usual: Any = self.config()
        made: Settings = replace(usual, seed=seed) if hasattr(usual, "seed") else usual
        return made


def _of_rule(rule: type[VoteRule]) -> Aggregator:
    def load(state: State, sources: tuple[str, ...], _embedder: Embedder | None) -> FittedRule:
        return FittedRule(msgspec.convert(state.config, type=rule), sources)

    return Aggregator(
        rule.name, rule, lambda lesson, config: FittedRule(config, lesson.votes.sources), load, learns=False
    )


AGGREGATORS = (
    Aggregator(
        "multihmm",
        MultiHMM,
        lambda lesson, config: FittedMultiHMM(multihmm.fit(lesson.votes, config, watcher=lesson.watcher)),
        lambda state, _sources, _embedder: FittedMultiHMM(multihmm.Model.of(state)),
    ),
    *map(_of_rule, RULES),
    Aggregator(
        "chmm",
        CHMM,
        lambda lesson, config: embedded.fit(
            lesson.votes, lesson.docs, config, watcher=lesson.watcher, embedder=lesson.embedder
        ),
        lambda state, _sources, embedder: FittedCHMM.of(state, embedder),
        slow=True,
        embeds=True,
    ),
)
BY_NAME: Mapping[str, Aggregator] = {one.name: one for one in AGGREGATORS}
LEARNING = tuple(one.name for one in AGGREGATORS if one.learns)  # those that have files


def are_settings(value: object) -> TypeGuard[Settings]:
    """Whether a value is the settings of an aggregator."""
    return any(type(value) is one.config for one in AGGREGATORS)


def aggregator_of(config: Settings) -> Aggregator:
    """Return the aggregator with those settings; ConfigError if there is none."""
    for one in AGGREGATORS:
        if type(config) is one.config:
            return one
    raise ConfigError(f"aggregate takes MultiHMM, CHMM or a rule, got {type(config).__name__}")


def aggregate(
    docs: Iterable[Document], config: Settings | None = None, *,
    fit_on: Iterable[Document] | None = None, layer: str = LAYER, sources: Sequence[str] | None = None,
    watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> list[Document]:  # fmt: skip
    """Return the documents with one more layer: what their sources, all or some, come to; by default by `MultiHMM()`.

    A model learns from the votes on these documents, or on those of `fit_on`, and leaves soft labels too; of the rules
    the vote on tokens does. No gold is looked at. `CHMM()` sees words through an `embedder`, the packaged one unless
    another is given.

    >>> from chaffinch.weak.vote_rules import LongestSpan
    >>> spans = {"source:a": [Span(7, 13, "Disease")], "source:b": [Span(7, 23, "Disease")]}
    >>> doc = Document.make("severe copper toxicosis", layers=spans)
    >>> [(span.start, span.end) for span in aggregate([doc], LongestSpan())[0].layers["aggregate"]]
    [(7, 23)]
    """
    docs = list(docs)
    return fit(docs, config, fit_on=fit_on, sources=sources, watcher=watcher, embedder=embedder)(docs, layer)


def fit(
    docs: Sequence[Document], config: Settings | None = None, *, fit_on: Iterable[Document] | None = None,
    sources: Sequence[str] | None = None, watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> FittedAggregator:  # fmt: skip
    """Return what `aggregate` learns; called with documents and a layer's name it labels them."""
    config = MultiHMM() if config is None else config
    aggregator = aggregator_of(config)
    other = None if fit_on is None else list(fit_on)
    lesson = VoteLesson(docs if other is None else other, _votes_to_learn(docs, other, sources), embedder, watcher)
    return aggregator.fit(lesson, config)


def describe(fitted: FittedAggregator) -> dict[str, Any]:
    """Return what the manifest of a larger model says of an aggregator in it; `restore` turns it back."""
    return {"kind": type(fitted.config).__name__, "config": asdict(fitted.config), "sources": fitted.sources}


def restore(state: State, described: Mapping[str, Any], *, embedder: Embedder | None = None) -> FittedAggregator:
    """Return the aggregator of a part of a model file; the embedder is for a conditional HMM."""
    try:
        kinds = {one.config.__name__: one for one in AGGREGATORS}
        part = replace(state, kind=described["kind"], config=described["config"])
        return kinds[part.kind].load(part, tuple(described["sources"]), embedder)
    except (KeyError, TypeError, msgspec.ValidationError):
        raise ModelError("its aggregator cannot be read; it was made by another version, train it anew") from None


def save(
    fitted: FittedAggregator, path: str | Path, *, docs: Sequence[Document] = (), corpus: str = ""
) -> Manifest:  # fmt: skip
    """Write one file, complete or not at all. It holds names of sources and numbers, no words of documents.

    Of a conditional HMM the embedder is not in it. ConfigError for a rule, which has learnt nothing.
    """
    kind = aggregator_of(fitted.config)
    if not kind.learns:
        raise ConfigError(f"a model file holds what {' or '.join(LEARNING)} learnt, and {kind.name} learns nothing")
    manifest = Manifest(
        kind.name, asdict(fitted.config), fitted.names, getattr(fitted.config, "seed", 0), corpus, len(docs),
        len({doc.patient for doc in docs}),
    )  # fmt: skip
    state = fitted.state()
    return bundle.save(path, manifest, state.arrays, state.strings)


def load(path: str | Path, *, embedder: Embedder | None = None) -> FittedAggregator:
    """Return the aggregator of a file that `save` wrote.

    A conditional HMM gets the packaged embedder; if it was fitted with another, that one must be given.
    """
    found = bundle.load(path)
    kind, place = found.manifest.kind, bundle.find(path)
    if kind not in LEARNING:
        raise ModelError(
            f"is a tagger of kind {kind!r}, no aggregator of votes ({', '.join(LEARNING)}); read it with "
            "chaffinch.load, or use it with chaffinch tag",
            path=place,
        )
    try:
        return BY_NAME[kind].load(found.state, (), embedder)
    except ModelError as error:
        raise ModelError(error.message, path=error.path or place) from None


def _votes_to_learn(
    docs: Sequence[Document], fit_on: Sequence[Document] | None, sources: Sequence[str] | None
) -> VoteMatrix:  # fmt: skip
    """Return the votes to learn from, on all labels that documents of either kind use."""
    if fit_on is None:
        return collect_votes(docs, sources=sources)
    if not fit_on:
        raise DataError("fit_on has no documents; leave it out to learn from the documents themselves")
    sources = sources_of(fit_on) if sources is None else sources
    labels = collect_votes([*fit_on, *docs], sources=sources).names
    return collect_votes(fit_on, labels=labels, sources=sources)


def _with_spans(docs: Sequence[Document], votes: VoteMatrix, spans: Spans, layer: str) -> list[Document]:
    """Return the documents with a layer of spans that may overlap."""
    cuts = np.searchsorted(spans.first, votes.documents)
    out = []
    for place, doc in enumerate(docs):
        inside, shift = spans[np.arange(cuts[place], cuts[place + 1])], int(votes.documents[place])
        rows = zip((inside.first - shift).tolist(), (inside.end - shift).tolist(), inside.label.tolist(), strict=True)
        out.append(doc.with_layer(layer, [
            Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), votes.names[label], source=layer)
            for a, b, label in rows
        ]))  # fmt: skip
    return out
