"""The tagger: documents in, documents with one more layer out; trained, saved and loaded here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models import cascade
from chaffinch.models.cascade import Bias, Cascade
from chaffinch.models.explanation import Explanation, explain
from chaffinch.models.parts import Progress, Watcher
from chaffinch.models.resources import Resources
from chaffinch.text import Corpus, Document, Soft, Span

KIND = "cascade"
BATCH_TOKENS = 60_000  # documents are read together up to this many tokens
AHEAD = 2  # batches a worker may be ahead of the reader


@dataclass(frozen=True, slots=True, eq=False)
class Tagger:
    """A trained model that adds a layer of spans to documents.

    >>> notes = [Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    >>> notes = [note.with_layer("gold", [Span(4, 8, "DOCTOR")]) for note in notes]
    >>> tagger = train(notes)
    >>> tagger(Document.make("Dr. Ford came.")).layer("cascade")[0].label
    'DOCTOR'
    """

    model: cascade.Model
    manifest: Manifest

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it knows."""
        return self.model.names

    def __call__(self, doc: Document) -> Document:
        """The document with one more layer, "cascade"."""
        return next(iter(self.annotate([doc])))

    def annotate(
        self,
        documents: Iterable[Document],
        *,
        layer: str = KIND,
        confidence: bool = False,
        bias: Bias = None,
        workers: int = 1,
    ) -> Corpus:
        """The documents with one more layer, read anew on each walk.

        With `confidence`, `Span.score` is the calibrated probability that the span is right. `bias` adds to the score
        of a label at each of its tokens: {"O": -1} finds more, {"O": 1} less. Any number of `workers`, which are
        threads, gives the same documents in the same order.
        """
        self._check_bias(bias)

        def step(docs: Sequence[Document]) -> list[Document]:
            found = self._spans(docs, confidence, bias)
            return [doc.with_layer(layer, spans) for doc, spans in zip(docs, found, strict=True)]

        def walk() -> Iterator[Document]:
            with _pool(workers) as each:
                for docs in each(step, _batches(documents)):
                    yield from docs

        return Corpus(walk)

    def posteriors(self, documents: Iterable[Document], *, name: str = KIND) -> Corpus:
        """The documents with one more soft layer: at every token the probability of each label, and of "O"."""

        def step(docs: Sequence[Document]) -> list[Document]:
            found = self.model.posteriors(docs)
            labels = ("O", *self.labels)
            return [doc.with_soft(name, Soft(labels, own)) for doc, own in zip(docs, found, strict=True)]

        return Corpus(lambda: (doc for docs in map(step, _batches(documents)) for doc in docs))

    def alternatives(self, doc: Document, n: int, *, layer: str = KIND) -> list[Document]:
        """The document with each of the n best readings of its sentences, the best first.

        Reading k takes the k-th best labelling of every sentence that has so many, else its last.
        """
        if n < 1:
            raise ConfigError(f"n must be at least 1, got {n}")
        return [doc.with_layer(layer, _to_spans(doc, runs)) for runs in self.model.alternatives(doc, n)]

    def explain(self, doc: Document, span: Span) -> Explanation:
        """Why the tagger reads a span as it does: features for and against, and the runner-up. See `Explanation`."""
        return explain(self.model, doc, span)

    def partial_fit(self, documents: Iterable[Document], config: Cascade | None = None, **options: Any) -> Tagger:
        """A tagger that has gone on learning from more documents; new labels may appear. Options as for `train`."""
        return train(documents, config or self.model.config, start=self, **options)

    def save(self, path: str | Path) -> Tagger:
        """Writes one file, complete or not at all; returns the tagger with the file's checksum in its manifest."""
        arrays, strings = self.model.arrays()
        return replace(self, manifest=bundle.save(path, self.manifest, arrays, strings))

    def _spans(self, docs: Sequence[Document], confidence: bool, bias: Bias) -> Iterator[list[Span]]:
        if confidence:
            for doc, (runs, chances) in zip(docs, self.model.read_with_confidence(docs, bias), strict=True):
                yield _to_spans(doc, runs, chances)
        else:
            for doc, runs in zip(docs, self.model.read(docs, bias), strict=True):
                yield _to_spans(doc, runs)

    def _check_bias(self, bias: Bias) -> None:
        for label in bias or ():
            if label not in {"O", *self.labels}:
                raise ConfigError(f"bias names label {label!r}; this model has O, {', '.join(self.labels)}")


def train(
    documents: Iterable[Document],
    config: Cascade | None = None,
    *,
    dev: Iterable[Document] = (),
    layer: str | None = None,
    soft: str | None = None,
    resources: Resources | None = None,
    start: Tagger | None = None,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
    corpus: str = "",
    notes: str = "",
) -> Tagger:
    """A tagger trained on documents whose `layer` holds the right spans (default: gold, or the only one).

    `soft` names soft labels to learn from instead: rows of zeros say nothing, rows with several ones leave the choice
    to the model, other rows are distributions. `dev` documents decide when to stop. `start` is a tagger to go on from.
    An interrupt keeps what was learnt so far. Any number of `workers` gives the same bytes.
    """
    config = config or (start.model.config if start is not None else Cascade())
    docs, watcher = list(documents), Watcher(progress)
    with _pool(workers) as each:
        model = cascade.fit(
            docs, config, layer=layer, soft=soft, dev=list(dev), resources=resources,
            start=None if start is None else start.model, each=each, watcher=watcher,
        )  # fmt: skip
    told = {"interrupted": 1.0} if watcher.interrupted else {}
    before = start.manifest if start is not None else Manifest(KIND)
    manifest = Manifest(
        KIND, asdict(config), model.names, config.seed, corpus or before.corpus,
        before.documents + len(docs), before.patients + len({doc.patient for doc in docs}),
        min(model.floor, before.vocabulary_floor or model.floor), {**watcher.scores, **told}, notes or before.notes,
    )  # fmt: skip
    return Tagger(model, manifest)


def load(path: str | Path) -> Tagger:
    """The tagger of a model file, or of a packaged model's name."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {found.manifest.kind!r}, not a tagger ({KIND})", path=bundle.find(path))
    try:
        return Tagger(cascade.Model.of(found), found.manifest)
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None


def _to_spans(doc: Document, runs: Sequence[cascade.Run], chances: Iterable[float] | None = None) -> list[Span]:
    starts, ends = doc.tokens[:, 0], doc.tokens[:, 1]
    scores = [1.0] * len(runs) if chances is None else list(chances)
    return [
        Span(int(starts[first]), int(ends[end - 1]), label, float(score), KIND)
        for (first, end, label), score in zip(runs, scores, strict=True)
    ]


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in lists of about `BATCH_TOKENS` tokens."""
    held: list[Document] = []
    size = 0
    for doc in documents:
        held.append(doc)
        size += len(doc.tokens)
        if size >= BATCH_TOKENS:
            yield held
            held, size = [], 0
    if held:
        yield held


@contextmanager
def _pool(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A map: plain, or over threads, in the order of the items and a few of them ahead."""
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if workers == 1:
        yield map
        return
    with ThreadPoolExecutor(workers) as pool:

        def each(step: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            source = iter(items)
            waiting = [pool.submit(step, item) for item in islice(source, workers * AHEAD)]
            while waiting:
                done = waiting.pop(0).result()
                waiting += [pool.submit(step, item) for item in islice(source, 1)]
                yield done

        yield each
