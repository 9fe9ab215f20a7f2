"""The tagger that weak supervision ends in: sources, aggregator, own sources and students, in one file.

T tokens, L labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Bundle, Manifest, State
from chaffinch.errors import ConfigError, DataError, MissingExtraError, ModelError
from chaffinch.models import registry as methods
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.models.registry import method_of
from chaffinch.models.tagger import Tagger
from chaffinch.text import Corpus, Document, Span
from chaffinch.weak.aggregate import AGGREGATORS, LEARNING, FittedAggregator, LabelVotes, describe, restore
from chaffinch.weak.apply import apply
from chaffinch.weak.embedded import NEAR, Embedder, packaged, probed
from chaffinch.weak.propagate import TextSources
from chaffinch.weak.sources import of_data, to_data
from chaffinch.weak.sources.base import Source
from chaffinch.weak.training.network import Network
from chaffinch.weak.training.soft_labels import as_tags
from chaffinch.weak.training.students import Answer, Students
from chaffinch.weak.votes import SOURCE

KIND = "weak"
STUDENT = "student"  # the name of the student's spans, and of the student as one more source
THRESHOLD = 0.65
_PROBE = "probe"  # of the network: what tells its embedder from another


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeakTagger:
    """Labels documents with their sources and a student, or with a student alone; called as a tagger is.

    With `how="adds"` the labels of sources stay as they are, and the student adds spans that touch none of them, where
    each token's chance is at least the threshold. With `how="votes"` the student is one more source of the aggregator.
    """

    aggregator: LabelVotes
    students: Students
    text: TextSources = TextSources()  # noqa: RUF009  (frozen)
    threshold: float = THRESHOLD
    how: Literal["adds", "votes"] = "adds"
    sources: tuple[Source, ...] = ()
    names: tuple[str, ...] = ()  # of the sources it needs
    layer: str = "weak"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it knows."""
        return self.students.names

    def __call__(self, doc: Document) -> Document:
        """The document with one more layer."""
        return next(iter(self.annotate([doc])))

    def annotate(self, documents: Iterable[Document], *, layer: str | None = None, text_alone: bool = False) -> Corpus:
        """The documents with one more layer. With `text_alone` no source is asked, and no vote looked at."""

        def walk() -> Iterator[Document]:
            for docs in batches(documents, BATCH_TOKENS):
                spans = self._alone(docs) if text_alone else self._with_sources(docs)
                yield from (doc.with_layer(layer or self.layer, own) for doc, own in zip(docs, spans, strict=True))

        return Corpus(walk)

    def voted(self, docs: Sequence[Document]) -> list[Document]:
        """The documents with the layers of all sources; those that lack one are shown to the sources."""
        lacking = [not all(SOURCE + name in doc.layers for name in self.names) for doc in docs]
        missing = sorted(set(self.names) - {own.name for own in self.sources})
        if any(lacking) and missing:
            raise DataError(
                f"documents have no layer {SOURCE + missing[0]!r} and the tagger does not bring that source; apply it "
                "first, supply it, or use the text alone"
            )
        found = iter(apply(self.sources, [doc for doc, own in zip(docs, lacking, strict=True) if own]).documents)
        return [next(found) if own else doc for doc, own in zip(docs, lacking, strict=True)]

    def fixed(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        """The spans that sources and own sources agree on, for documents with votes."""
        return [self.text(doc, doc.layer(KIND)) for doc in self.aggregator(docs, KIND)]

    def _with_sources(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        voted, answers = self.voted(docs), self.students(docs)
        if self.how == "adds":
            own = zip(docs, self.fixed(voted), answers, strict=True)
            return [with_added(doc, fixed, answer, self.labels, self.threshold) for doc, fixed, answer in own]
        return [doc.layer(KIND) for doc in self.aggregator(with_student(voted, answers, self.labels), KIND)]

    def _alone(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        return [
            self.text(doc, _named(answer.spans)) for doc, answer in zip(docs, self.students(docs), strict=True)
        ]  # fmt: skip

    def save(self, path: str | Path) -> Manifest:
        """Writes one file, complete or not at all; sources that are Python code are named in it, not held.

        Sources whose votes came with the documents, and of which the tagger has none, must come with others too.
        """
        if not isinstance(self.aggregator, FittedAggregator):
            raise ConfigError("the aggregator is a function, which no file can hold; use MultiHMM, CHMM or a rule")
        plain, supplied = [], []
        for own in self.sources:
            try:
                plain.append(to_data(own))
            except ConfigError:
                supplied.append(own.name)
        steps = self.students.taggers
        told = {
            "sources": plain, "supplied": supplied, "needs": self.names, "aggregator": describe(self.aggregator),
            "threshold": self.threshold, "how": self.how, "layer": self.layer,
            "students": [_told(step) for step in steps],
        }  # fmt: skip
        state = State().with_child("settle", self.aggregator.state())
        state = state.with_child("text", State(strings=self.text.strings()))
        for number, step in enumerate(steps):
            state = state.with_child(f"student{number}", step.model.state())
        if self.students.network is not None and self.students.embedder is not None:
            weights = self.students.network.arrays() | {_PROBE: probed(self.students.embedder)}
            state = state.with_child("network", State(weights))
        first = steps[0].manifest
        floor = min(step.manifest.vocabulary_floor for step in steps)
        manifest = Manifest(
            KIND, told, self.labels, first.seed, first.corpus, first.documents, first.patients, floor,
            first.metrics, first.notes,
        )  # fmt: skip
        return bundle.save(path, manifest, state.arrays, state.strings)


def load(path: str | Path, *, sources: Sequence[Source] = (), embedder: Embedder | None = None) -> WeakTagger:
    """The tagger of a file. Sources that the file could not hold must be given.

    If it learnt with an embedder, that is the packaged one, unless another is given; ModelError if it is not the one.
    """
    found = bundle.load(path)
    kind = found.manifest.kind
    if kind != KIND:
        remedy = "use it with chaffinch weak aggregate --fit" if kind in LEARNING else "read it with chaffinch.load"
        raise ModelError(f"is a model of kind {kind!r}, not {KIND!r}; {remedy}", path=bundle.find(path))
    try:
        return _tagger(found, {own.name: own for own in sources}, _embedder(found, embedder))
    except (KeyError, TypeError, ValueError):
        raise ModelError("its settings cannot be read; train it anew", path=bundle.find(path)) from None
    except ModelError as error:
        raise ModelError(error.message, path=error.path or bundle.find(path)) from None


def _tagger(found: Bundle, given: Mapping[str, Source], embedder: Embedder | None) -> WeakTagger:
    told = found.manifest.config
    missing = [name for name in told["supplied"] if name not in given]
    if missing:
        raise ModelError(
            f"needs the source {missing[0]!r}, which is no plain data and not in the file; give it as `sources` to "
            "chaffinch.weak.load, or as tag --sources"
        )
    held = {own.name: own for own in map(of_data, told["sources"])}
    first, *rest = [_student(found, number, own) for number, own in enumerate(told["students"])]
    state = found.state
    aggregator = restore(state.child("settle"), told["aggregator"], embedder=embedder)
    network = state.child("network").arrays
    taught = Students(
        found.manifest.labels, first, rest[0] if rest else None,
        Network.of(network) if network else None, embedder if network else None,
    )  # fmt: skip
    return WeakTagger(
        aggregator, taught, TextSources.of(state.child("text").strings), float(told["threshold"]), told["how"],
        (*held.values(), *(given[name] for name in told["supplied"])), tuple(told["needs"]), told["layer"],
    )  # fmt: skip


def _embedder(found: Bundle, given: Embedder | None) -> Embedder | None:
    """The embedder that a tagger learnt with, if it did; the aggregator looks at its own itself."""
    network = found.state.child("network").arrays
    embedding = [one.config.__name__ for one in AGGREGATORS if one.embeds]
    if given is None and (network or found.manifest.config["aggregator"]["kind"] in embedding):
        try:
            given = packaged()
        except MissingExtraError as error:
            raise ModelError(
                f"needs the embedder that it was trained with, and {error.package} is not installed; "
                f"run: pip install 'chaffinch[{error.extra}]', or give it as `embedder`"
            ) from None
    if network and given is not None and _PROBE in network:
        own = probed(given)
        if own.shape != network[_PROBE].shape or not np.allclose(own, network[_PROBE], rtol=NEAR, atol=NEAR):
            raise ModelError("was trained with another embedder; give that one as `embedder`")
    return given


def with_added(
    doc: Document, fixed: Sequence[Span], answer: Answer, names: Sequence[str], threshold: float
) -> tuple[Span, ...]:
    """The fixed spans, and the student's that touch none of them, where every token's chance reaches the threshold."""
    taken = np.zeros(len(doc.text) + 1, np.bool_)
    for span in fixed:
        taken[span.start : span.end] = True
    out = list(fixed)
    for span, (first, end) in zip(answer.spans, doc.token_ranges(answer.spans).tolist(), strict=True):
        chance = float(answer.chances[first:end, 1 + names.index(span.label)].min(initial=1.0))
        if chance >= threshold and not taken[span.start : span.end].any():
            out.append(replace(span, score=chance, source=STUDENT))
    return tuple(sorted(out))


def with_student(docs: Sequence[Document], answers: Sequence[Answer], names: Sequence[str]) -> list[Document]:
    """The documents with the student as one more, soft source."""
    layer = SOURCE + STUDENT
    return [
        doc.with_layer(layer, own.spans).with_soft(layer, as_tags(doc, own.spans, own.chances, names))
        for doc, own in zip(docs, answers, strict=True)
    ]


def _named(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(replace(span, source=STUDENT) for span in spans)


def _told(student: Tagger) -> dict[str, Any]:
    config = student.model.config
    return {"config": asdict(config), "kind": method_of(config).name, "labels": student.labels}


def _student(found: Bundle, number: int, told: Mapping[str, Any]) -> Tagger:
    """Return a student of a model file, as its manifest describes it."""
    labels = told.get("labels", found.manifest.labels)
    part = found.state.child(f"student{number}", kind=told["kind"], config=told["config"], labels=labels)
    return Tagger(methods.model_of(part), found.manifest.for_part(part), (), part.kind)
