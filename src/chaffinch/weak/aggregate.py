"""Aggregation of many sources into one layer: an aggregator is fitted to votes, and then labels documents.

An aggregator is a rule or a model. All have one shape: settings, `fit(documents, settings) -> fitted`, and
`fitted(documents, layer) -> documents`. `AGGREGATORS` has one row for each, the only description of that aggregator. A
fitted model is one file, so that votes on other documents are aggregated in the same way.
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
from chaffinch.checks import did_you_mean
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
from chaffinch.weak.votes import SOURCE, collect_votes, sources_of, with_labels

LAYER = "aggregate"

Settings: TypeAlias = MultiHMM | CHMM | VoteRule


class LabelVotes(Protocol):
    """Any function that adds a layer of the given name, and soft labels if it has any, to documents with votes."""

    def __call__(self, docs: Sequence[Document], layer: str, /) -> list[Document]:
        """Return the documents with `layer` added: spans aggregated from their votes."""


@runtime_checkable
class FittedAggregator(LabelVotes, Protocol):
    """A fitted aggregator, which can be saved to a file."""

    @property
    def config(self) -> Settings:
        """Return the settings it was fitted with."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels it knows; () if it takes any label."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources whose votes it aggregates."""

    def state(self) -> State:
        """Return its learnt parameters, for a model file."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedRule:
    """A rule and the sources whose votes it aggregates."""

    config: VoteRule
    sources: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with `layer` added: the rule's spans, and soft labels if the rule gives chances."""
        votes = collect_votes(docs, sources=self.sources)
        spans = self.config.spans(votes)
        if self.config.overlaps:
            return _with_spans(docs, votes, spans, layer)
        return with_labels(docs, votes, spans.tags(len(votes)), self.config.chances(votes), layer=layer)

    def state(self) -> State:
        """Return an empty state: a rule learns nothing."""
        return State()


@dataclass(frozen=True, slots=True, eq=False)
class FittedMultiHMM:
    """A fitted HMM of many sources."""

    model: multihmm.Model

    @property
    def config(self) -> MultiHMM:
        """Return the settings of the model."""
        return self.model.config

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels of the model."""
        return self.model.names

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources that the model was fitted to."""
        return self.model.sources

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with `layer` added: aggregated spans, and soft labels of all tokens."""
        votes = collect_votes(docs, sources=self.sources, labels=self.names).with_rules(self.model.rules)
        result = self.model.posterior(votes)
        return with_labels(docs, votes, result.tags, result.chances, layer=layer)

    def state(self) -> State:
        """Return the learnt parameters as named arrays, for a model file."""
        return self.model.state()


@dataclass(frozen=True, slots=True, eq=False)
class VoteLesson:
    """Training data of an aggregator: documents, their votes, an embedder, a watcher, and dev documents with gold."""

    docs: Sequence[Document]
    votes: VoteMatrix
    embedder: Embedder | None = None
    watcher: Watcher | None = None
    dev: Sequence[Document] = ()


@dataclass(frozen=True, slots=True)
class Aggregator:
    """A registered aggregator: the name of its files and of --method, its settings, how it is fitted and loaded."""

    name: str
    config: type[Settings]
    fit: Callable[[VoteLesson, Any], FittedAggregator]  # with settings of `config`
    load: Callable[[State, tuple[str, ...], Embedder | None], FittedAggregator]
    learns: bool = True  # a rule learns nothing, and has no file
    slow: bool = False  # long runs save it as a checkpoint
    embeds: bool = False  # it needs an embedder, which is in no file
    stops: bool = False  # dev documents with gold choose its epoch

    def settings(self, *, seed: int = 0) -> Settings:
        """Return the aggregator's default settings, with this seed if they have a field `seed`."""
        default: Any = self.config()
        settings: Settings = replace(default, seed=seed) if hasattr(default, "seed") else default
        return settings


def _of_rule(rule: type[VoteRule]) -> Aggregator:
    """Return the registry entry of an aggregation rule: its name, settings class, and how it is fitted and loaded."""

    def load(state: State, sources: tuple[str, ...], _embedder: Embedder | None) -> FittedRule:
        """Rebuild the rule from the settings in a model file."""
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
            lesson.votes, lesson.docs, config, watcher=lesson.watcher, embedder=lesson.embedder, dev=lesson.dev
        ),
        lambda state, _sources, embedder: FittedCHMM.of(state, embedder),
        slow=True,
        embeds=True,
        stops=True,
    ),
)
BY_NAME: Mapping[str, Aggregator] = {aggregator.name: aggregator for aggregator in AGGREGATORS}
LEARNING = tuple(aggregator.name for aggregator in AGGREGATORS if aggregator.learns)  # those that have files


def are_settings(value: object) -> TypeGuard[Settings]:
    """Tell whether a value is the settings of a registered aggregator."""
    return any(type(value) is aggregator.config for aggregator in AGGREGATORS)


def aggregator_of(config: Settings) -> Aggregator:
    """Return the registry entry for the settings of an aggregator; raise ConfigError if there is none."""
    for aggregator in AGGREGATORS:
        if type(config) is aggregator.config:
            return aggregator
    raise ConfigError(f"aggregate takes MultiHMM, CHMM or a rule, got {type(config).__name__}")


def aggregate(
    docs: Iterable[Document], config: Settings | None = None, *,
    fit_on: Iterable[Document] | None = None, layer: str = LAYER, sources: Sequence[str] | None = None,
    watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> list[Document]:  # fmt: skip
    """Fit `config` (default `MultiHMM()`) to the sources' votes; return the documents with aggregated spans as a layer.

    A model is fitted to the votes on these documents, or on those of `fit_on`, and adds soft labels too; of the rules
    only the vote on tokens does. Gold is not used. `CHMM()` reads words through an `embedder`, by default the packaged
    one.

    >>> from chaffinch.weak.vote_rules import LongestSpan
    >>> spans = {"source:a": [Span(7, 13, "Disease")], "source:b": [Span(7, 23, "Disease")]}
    >>> doc = Document.make("severe copper toxicosis", layers=spans)
    >>> [(span.start, span.end) for span in aggregate([doc], LongestSpan())[0].layers["aggregate"]]
    [(7, 23)]
    """
    docs = list(docs)
    fitted = fit(docs, config, fit_on=fit_on, sources=sources, watcher=watcher, embedder=embedder)
    if sources is None:
        check_votes(fitted, docs)
    return fitted(docs, layer)


def fit(
    docs: Sequence[Document], config: Settings | None = None, *, fit_on: Iterable[Document] | None = None,
    sources: Sequence[str] | None = None, watcher: Watcher | None = None, embedder: Embedder | None = None,
    dev: Sequence[Document] = (),
) -> FittedAggregator:  # fmt: skip
    """Fit an aggregator (default `MultiHMM()`) to the votes of `fit_on`, else of `docs`; ConfigError or DataError.

    `dev` documents, with votes and a layer `gold`, choose the epoch of an aggregator that learns by epochs (CHMM);
    ConfigError for another one, and DataError if they have no span in `gold`.
    """
    config = MultiHMM() if config is None else config
    aggregator = aggregator_of(config)
    if dev and not aggregator.stops:
        able = " and ".join(one.name for one in AGGREGATORS if one.stops)
        raise ConfigError(f"dev documents choose the epoch of {able}; {aggregator.name} has none, leave out dev")
    if dev and not any(doc.layers.get(embedded.GOLD) for doc in dev):
        raise DataError("no dev document has a span in a layer gold, so they can judge nothing; choose other ones")
    other = None if fit_on is None else list(fit_on)
    votes = _votes_to_learn(docs, other, sources)
    return aggregator.fit(VoteLesson(docs if other is None else other, votes, embedder, watcher, dev), config)


def check_votes(fitted: FittedAggregator, docs: Sequence[Document]) -> None:
    """Raise DataError if documents have votes of sources, or for labels, that the fitted aggregator does not know.

    It would pass over such votes without a word.
    """
    known = fitted.sources
    voting = [name for name in sources_of(docs) if any(doc.layers.get(SOURCE + name) for doc in docs)]
    unknown = [name for name in voting if name not in known]
    if unknown:
        raise DataError(
            f"there are votes of the source {unknown[0]!r}, which the aggregator did not learn "
            f"({did_you_mean(unknown[0], known)}); apply the sources that it learnt, or learn from these votes"
        )
    layers = [SOURCE + name for name in known]
    labels = {span.label for doc in docs for layer in layers for span in doc.layers.get(layer, ())} - {"O"}
    strange = labels - set(fitted.names) if fitted.names else ()
    if strange:
        raise DataError(
            f"{len(strange)} of {len(labels)} labels of the votes are none that the aggregator learnt "
            f"({len(fitted.names)}); apply sources with its labels, or learn from these votes"
        )


def describe(fitted: FittedAggregator) -> dict[str, Any]:
    """Return an aggregator's manifest entry: class of its settings, settings and sources; `restore` reads it."""
    return {"kind": type(fitted.config).__name__, "config": asdict(fitted.config), "sources": fitted.sources}


def restore(state: State, described: Mapping[str, Any], *, embedder: Embedder | None = None) -> FittedAggregator:
    """Rebuild an aggregator from arrays and manifest entry; `embedder` is for a CHMM; ModelError if unreadable."""
    try:
        kinds = {aggregator.config.__name__: aggregator for aggregator in AGGREGATORS}
        part = replace(state, kind=described["kind"], config=described["config"])
        return kinds[part.kind].load(part, tuple(described["sources"]), embedder)
    except (KeyError, TypeError, msgspec.ValidationError):
        raise ModelError("its aggregator cannot be read; it was made by another version, train it again") from None


def save(
    fitted: FittedAggregator, path: str | Path, *, docs: Sequence[Document] = (), corpus: str = ""
) -> Manifest:  # fmt: skip
    """Write an aggregator's numbers and source names to a file, atomically; ConfigError for a rule, which has none.

    The embedder of a conditional HMM is not part of it. Raise ConfigError for a rule, which learns nothing.
    """
    kind = aggregator_of(fitted.config)
    if not kind.learns:
        raise ConfigError(f"only {' and '.join(LEARNING)} can be saved: {kind.name} is a rule and learns nothing")
    manifest = Manifest(
        kind.name, asdict(fitted.config), fitted.names, getattr(fitted.config, "seed", 0), corpus, len(docs),
        len({doc.patient for doc in docs}),
    )  # fmt: skip
    state = fitted.state()
    return bundle.save(path, manifest, state.arrays, state.strings)


def load(path: str | Path, *, embedder: Embedder | None = None) -> FittedAggregator:
    """Read an aggregator that `save` wrote; `embedder` is for a CHMM; ModelError if the file holds another model.

    A conditional HMM gets the packaged embedder; if it was fitted with another one, that must be given.
    """
    found = bundle.load(path)
    kind, file = found.manifest.kind, bundle.find(path)
    if kind not in LEARNING:
        raise ModelError(
            f"is a model of kind {kind!r}, not an aggregator of votes ({', '.join(LEARNING)}); read it with "
            "chaffinch.load, or use it with chaffinch tag",
            path=file,
        )
    with bundle.building(file):
        return BY_NAME[kind].load(found.state, (), embedder)


def _votes_to_learn(
    docs: Sequence[Document], fit_on: Sequence[Document] | None, sources: Sequence[str] | None
) -> VoteMatrix:  # fmt: skip
    """Return the votes of `fit_on` with the labels of `docs` too, or for None of `docs`; DataError if it is empty."""
    if fit_on is None:
        return collect_votes(docs, sources=sources)
    if not fit_on:
        raise DataError("fit_on has no documents; leave it out to learn from the documents themselves")
    sources = sources_of(fit_on) if sources is None else sources
    labels = collect_votes([*fit_on, *docs], sources=sources).names
    return collect_votes(fit_on, labels=labels, sources=sources)


def _with_spans(docs: Sequence[Document], votes: VoteMatrix, spans: Spans, layer: str) -> list[Document]:
    """Return the documents with `layer` added: token ranges of the vote matrix as spans; overlaps are kept."""
    cuts = np.searchsorted(spans.first, votes.documents)
    out = []
    for number, doc in enumerate(docs):
        inside, shift = spans[np.arange(cuts[number], cuts[number + 1])], int(votes.documents[number])
        rows = zip((inside.first - shift).tolist(), (inside.end - shift).tolist(), inside.label.tolist(), strict=True)
        out.append(doc.with_layer(layer, [
            Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), votes.names[label], source=layer)
            for a, b, label in rows
        ]))  # fmt: skip
    return out
