"""The tagger: documents in, documents with one more layer out; trained, saved and loaded here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chaffinch import bundle
from chaffinch.bundle import Manifest, State
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels.lattice import Floats
from chaffinch.models import alignment
from chaffinch.models import registry as methods
from chaffinch.models.alignment import Alignment
from chaffinch.models.cascade.fit import Bias, Cascade
from chaffinch.models.core.batching import BATCH_TOKENS, batches, mapper, to_spans
from chaffinch.models.core.explain import Explanation
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.tasks import with_untagged
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.registry import Config, Model, kind_of
from chaffinch.text import Corpus, Document, Soft, Span

if TYPE_CHECKING:  # it needs scipy, which is loaded when it is used
    from chaffinch.models.hmmdp.describe import SubtagPath


UNTAGGED = "tagged or open"  # soft labels of documents that stand beside untagged ones


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step:
    """A model and the name of the layer it adds."""

    layer: str
    model: Model

    @property
    def told(self) -> dict[str, Any]:
        """What a manifest says of it."""
        config = self.model.config
        return {
            "layer": self.layer, "labels": self.model.names, "config": asdict(config), "kind": kind_of(config)
        }  # fmt: skip

    def __call__(self, docs: Sequence[Document]) -> list[Document]:
        """The documents with the layer; one that a document has already stays as it is."""
        lacking = [doc for doc in docs if self.layer not in doc.layers]
        found = iter(self.model.read(lacking) if lacking else ())
        kind = kind_of(self.model.config)
        return [
            doc if self.layer in doc.layers else doc.with_layer(self.layer, to_spans(doc, next(found), kind))
            for doc in docs
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Tagger:
    """A trained model that adds a layer of spans to documents; what it needs besides, it brings along.

    >>> notes = [Document.make(f"Dr. {name} came.", id=name) for name in ("Penn", "Lowe", "Hart")]
    >>> notes = [note.with_layer("gold", [Span(4, 8, "DOCTOR")]) for note in notes]
    >>> tagger = train(notes)
    >>> tagger(Document.make("Dr. Ford came.")).layer("cascade")[0].label
    'DOCTOR'
    """

    model: Model
    manifest: Manifest
    before: tuple[Step, ...] = ()  # models whose layers the last one sees
    layer: str = "cascade"
    aligner: alignment.Model | None = None  # gives one answer to a word across a patient's documents

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it knows."""
        return self.model.names

    @property
    def steps(self) -> tuple[Step, ...]:
        """All its models, the last one included."""
        return (*self.before, Step(self.layer, self.model))

    def __call__(self, doc: Document) -> Document:
        """The document with one more layer, called as the method is unless the model says otherwise."""
        return next(iter(self.annotate([doc])))

    def annotate(
        self,
        documents: Iterable[Document],
        *,
        layer: str | None = None,
        confidence: bool = False,
        bias: Bias = None,
        align: Literal["recall", "balanced"] | None = None,
        workers: int = 1,
    ) -> Corpus:
        """The documents with one more layer, read anew on each walk; `layer` gives it another name.

        With `confidence`, `Span.score` is the calibrated probability that the span is right. `bias` adds to the score
        of a label at each of its tokens: {"O": -1} finds more, {"O": 1} less. With `align`, words that a patient's
        documents repeat get one answer; "recall" never takes a label away. All documents are then held at once. Any
        number of `workers`, which are threads, gives the same documents in the same order.
        """
        self._check_bias(bias)

        def step(docs: Sequence[Document]) -> list[Document]:
            docs = self._prepared(docs)
            found = self._spans(docs, confidence, bias)
            return [doc.with_layer(layer or self.layer, spans) for doc, spans in zip(docs, found, strict=True)]

        def walk() -> Iterator[Document]:
            with mapper(workers) as each:
                for docs in each(step, batches(documents, BATCH_TOKENS)):
                    yield from docs

        if align is None:
            return Corpus(walk)
        name = layer or self.layer
        return Corpus(lambda: iter(self._aligned(list(self.posteriors(walk(), name=name)), name, align)))

    def posteriors(self, documents: Iterable[Document], *, name: str | None = None) -> Corpus:
        """The documents with one more soft layer: at every token the probability of each label, and of "O"."""

        def step(docs: Sequence[Document]) -> list[Document]:
            docs = self._prepared(docs)
            found, labels = self.model.posteriors(docs), ("O", *self.labels)
            return [doc.with_soft(name or self.layer, Soft(labels, own)) for doc, own in zip(docs, found, strict=True)]

        return Corpus(lambda: (doc for docs in map(step, batches(documents, BATCH_TOKENS)) for doc in docs))

    def read(self, docs: Sequence[Document]) -> list[tuple[list[Span], Floats]]:
        """The spans of every document and (T, 1 + L) at every token the probability of "O" and of each label.

        What `annotate` and `posteriors` find, of documents that are looked at once for both.
        """
        docs = self._prepared(docs)
        found, kind = self.model.read_with_posteriors(docs), kind_of(self.model.config)
        return [(to_spans(doc, runs, kind), rows) for doc, (runs, rows) in zip(docs, found, strict=True)]

    def alternatives(self, doc: Document, n: int, *, layer: str | None = None) -> list[Document]:
        """The document with each of the n best readings of its sentences, the best first.

        Reading k takes the k-th best labelling of every sentence that has so many, else its last.
        """
        if n < 1:
            raise ConfigError(f"n must be at least 1, got {n}")
        doc = self._prepared([doc])[0]
        found = self.model.alternatives(doc, n)
        kind = kind_of(self.model.config)
        return [doc.with_layer(layer or self.layer, to_spans(doc, runs, kind)) for runs in found]

    def explain(self, doc: Document, span: Span) -> Explanation | SubtagPath:
        """Why the tagger reads a span as it does; printed, it says so in words. See `Explanation` and `SubtagPath`."""
        doc = self._prepared([doc])[0]
        return methods.explain(self.model, doc, span)

    def substructure(self, doc: Document, layer: str | None = None) -> list[Span]:
        """The parts of a layer's spans, called PER/1, PER/2; of its own layer, found if need be, or the one named."""
        if layer is None and self.layer not in doc.layers:
            doc = self(doc)
        return methods.parts(self.model, doc, doc.layer(layer or self.layer))

    def partial_fit(self, documents: Iterable[Document], config: Config | None = None, **options: Any) -> Tagger:
        """A tagger that has gone on learning from more documents; new labels may appear. Options as for `train`."""
        return train(documents, config or self.model.config, start=self, **options)

    def save(self, path: str | Path) -> Tagger:
        """Write one file, complete or not at all; return the tagger with the file's checksum in its manifest."""
        state = self.model.state()
        for number, step in enumerate(self.before):
            state = state.with_child(f"before{number}", step.model.state())
        if self.aligner is not None:
            state = state.with_child("align", self.aligner.state())
        return replace(self, manifest=bundle.save(path, self.manifest, state.arrays, state.strings))

    def _prepared(self, docs: Sequence[Document]) -> Sequence[Document]:
        for step in self.before:
            docs = step(docs)
        return docs

    def _spans(self, docs: Sequence[Document], confidence: bool, bias: Bias) -> Iterator[list[Span]]:
        kind = kind_of(self.model.config)
        if confidence:
            for doc, (runs, chances) in zip(docs, self.model.read_with_confidence(docs, bias), strict=True):
                yield to_spans(doc, runs, kind, chances)
        else:
            for doc, runs in zip(docs, self.model.read(docs, bias), strict=True):
                yield to_spans(doc, runs, kind)

    def _aligned(self, docs: list[Document], layer: str, mode: Literal["recall", "balanced"]) -> list[Document]:
        model = self.aligner or alignment.Model.default(mode)
        common = methods.common_words(self.model)
        aligned = alignment.align(docs, model, layer=layer, mode=mode, common=common)
        return [replace(doc, soft={name: own for name, own in doc.soft.items() if name != layer}) for doc in aligned]

    def _check_bias(self, bias: Bias) -> None:
        for label in bias or ():
            if label not in {"O", *self.labels}:
                raise ConfigError(f"bias names label {label!r}; this model has O, {', '.join(self.labels)}")


def train(
    documents: Iterable[Document],
    config: Config | None = None,
    *,
    dev: Iterable[Document] = (),
    layer: str | None = None,
    soft: str | None = None,
    untagged: Iterable[Document] = (),
    resources: Resources | None = None,
    before: Tagger | None = None,
    start: Tagger | None = None,
    align: Alignment | None = None,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
    name: str | None = None,
    corpus: str = "",
    notes: str = "",
) -> Tagger:
    """A tagger trained on documents whose `layer` holds the right spans (default: gold, or the only one).

    `soft` names soft labels to learn from instead: rows of zeros say nothing, rows with several ones leave the choice
    to the model, other rows are distributions. `untagged` documents, of which nothing is known, are learnt from as
    well, by methods that model words. `dev` documents decide when to stop. `before` is a tagger whose layers
    serve as features; it becomes part of the new one. `start` is a tagger to go on from. With `align`, how words that a
    patient's documents repeat get one answer is learnt as well, which trains once more for each of its folds.
    An interrupt keeps what was learnt so far. Any number of `workers` gives the same bytes.
    """
    config = config or (start.model.config if start is not None else Cascade())
    steps = before.steps if before is not None else start.before if start is not None else ()
    if isinstance(config, Cascade):
        config = replace(config, layers=config.layers or tuple(step.layer for step in steps))
    elif steps:
        raise ConfigError(f"{kind_of(config)} uses no layers of other taggers; leave out `before`")
    kind = kind_of(config)
    name = name or kind
    docs, held, watcher = list(documents), list(dev), Watcher(progress)
    others = list(untagged)
    if others:
        methods.check_untagged(config, soft)
        docs, soft = with_untagged(docs, others, layer=layer, name=UNTAGGED), UNTAGGED
    for step in steps:
        docs, held = step(docs), step(held)
    with mapper(workers) as each:
        model = methods.fit(
            docs, config, layer=layer, soft=soft, dev=held, resources=resources,
            start=None if start is None else start.model, each=each, watcher=watcher,
        )  # fmt: skip
    config = model.config  # what was left open is decided now
    aligner = None
    if align is not None and not watcher.interrupted:
        options = {"layer": layer, "resources": resources, "workers": workers, "name": name}
        aligner = _aligner(docs, config, align, options, watcher)
    metrics = {**watcher.scores, **({"interrupted": 1.0} if watcher.interrupted else {})}
    earlier = start.manifest if start is not None else Manifest(kind, vocabulary_floor=model.floor)
    floor = min([model.floor, earlier.vocabulary_floor, *(step.model.floor for step in steps)])
    told: dict[str, Any] = {"layer": name, "before": [step.told for step in steps]}
    told |= {} if aligner is None else {"align": asdict(aligner.config)}
    manifest = Manifest(
        kind, {**asdict(config), **told}, model.names, config.seed,
        corpus or earlier.corpus, earlier.documents + len(docs), earlier.patients + len({doc.patient for doc in docs}),
        floor, metrics, notes or earlier.notes,
    )  # fmt: skip
    return Tagger(model, manifest, steps, name, aligner)


def _aligner(
    docs: list[Document], config: Config, align: Alignment, options: Mapping[str, Any], watcher: Watcher
) -> alignment.Model | None:
    """Alignment learnt on what taggers say of documents they did not learn from; none after an interrupt.

    Where no word is repeated there is nothing to learn, and the weights set by hand serve.
    """
    done = iter(range(1, align.folds + 1))

    def fold(part: list[Document]) -> Tagger:
        if watcher.tell is not None:
            watcher.tell(Progress("alignment", next(done), align.folds, 0.0))
        return train(part, config, **options)

    try:
        read = alignment.cross_fitted(docs, fold, folds=align.folds, seed=align.seed)
        return alignment.fit(read, align, layer=options["name"], gold=options["layer"])
    except KeyboardInterrupt:
        watcher.interrupted = True
        return None
    except DataError:
        return alignment.Model.default(align.mode)


def load(path: str | Path) -> Tagger:
    """Return the tagger of a model file, or of a packaged model's name; `chaffinch.load` opens files of any kind."""
    found = bundle.load(path)
    state, config = found.state, found.manifest.config
    try:
        steps = tuple(_step(state, number, told) for number, told in enumerate(config.get("before", ())))
        aligner = alignment.Model.of(state.child("align", config=config["align"])) if "align" in config else None
        return Tagger(methods.model_of(state), found.manifest, steps, config.get("layer", state.kind), aligner)
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None


def _step(state: State, number: int, told: Mapping[str, Any]) -> Step:
    """Return an earlier step of a tagger, as its manifest describes it."""
    kind = told.get("kind", "cascade")  # files of format 1 without it are of cascades
    part = state.child(f"before{number}", kind=kind, config=told["config"], labels=told["labels"])
    return Step(told["layer"], methods.model_of(part))
