"""The tagger: adds a layer of spans to documents; training, saving and loading of taggers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from chaffinch import bundle
from chaffinch.bundle import Manifest, State
from chaffinch.checks import check_name
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Floats
from chaffinch.models import registry
from chaffinch.models.alignment import fit as alignment_fit
from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.batching import BATCH_TOKENS, batches, mapper, to_spans
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.methods import Config, FitContext, Model, TrainingSet
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.registry import METHODS, method_of
from chaffinch.text import Corpus, Document, Soft, Span
from chaffinch.text.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step:
    """A model and the name of the layer it adds."""

    layer: str
    model: Model

    @property
    def manifest_entry(self) -> dict[str, Any]:
        """Return what a manifest stores of the step: layer, labels, settings and the method's name."""
        config = self.model.config
        return {
            "layer": self.layer, "labels": self.model.names, "config": asdict(config), "kind": method_of(config).name
        }  # fmt: skip

    def __call__(self, docs: Sequence[Document]) -> list[Document]:
        """Return the documents with the layer added; a document that already has it is unchanged."""
        unread = [doc for doc in docs if self.layer not in doc.layers]
        found = iter(self.model.read(unread) if unread else ())
        kind = method_of(self.model.config).name
        return [
            doc if self.layer in doc.layers else doc.with_layer(self.layer, to_spans(doc, next(found), kind))
            for doc in docs
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Tagger:
    """A trained model that adds a layer of spans to documents, with everything it needs to do so.

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
        """Return the labels of spans that the model knows, without O."""
        return self.model.names

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return all models as steps, the last one included."""
        return (*self.before, Step(self.layer, self.model))

    @property
    def calibrated(self) -> bool:
        """Tell whether confidences are calibrated on text that the model did not learn from."""
        return getattr(self.model, "calibration", Calibration()) != Calibration()

    def __call__(self, doc: Document | str) -> Document:
        """Return a copy with the models' layers, old ones of their names replaced; ConfigError: no document or text."""
        return next(iter(self.annotate([as_document(doc)])))

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
        """Return a lazy corpus of the documents with earlier models' layers and this tagger's spans as `layer`.

        With `confidence`, `Span.score` is the probability that the span is right, calibrated if `calibrated`. `bias`
        adds to the score of a label at each of its tokens: {"O": -1} finds more, {"O": 1} less. With `align`, the
        occurrences of a word in a patient's documents are labelled together; "recall" never removes a label. All
        documents are then in memory at once. The result does not depend on the number of `workers` (threads).
        """
        self._check_bias(bias)
        check_documents(documents)

        def add_spans(docs: Sequence[Document]) -> list[Document]:
            """Return a batch of documents with the layer of spans, and those of the models in `before`, added."""
            docs = self._add_earlier_layers(docs)
            found = self._spans(docs, confidence, bias)
            return [doc.with_layer(layer or self.layer, spans) for doc, spans in zip(docs, found, strict=True)]

        def walk() -> Iterator[Document]:
            """Yield the documents with spans, batch by batch, in threads."""
            with mapper(workers) as each:
                for docs in each(add_spans, batches(documents, BATCH_TOKENS)):
                    yield from docs

        if align is None:
            return Corpus(walk)
        name = layer or self.layer
        return Corpus(lambda: iter(self._align(list(self.posteriors(walk(), name=name)), name, align)))

    def posteriors(self, documents: Iterable[Document], *, name: str | None = None) -> Corpus:
        """Return a lazy corpus of the documents with earlier models' layers and this tagger's soft labels `name`."""

        def add_posteriors(docs: Sequence[Document]) -> list[Document]:
            """Return a batch of documents with the soft layer, and the layers of the models in `before`, added."""
            docs = self._add_earlier_layers(docs)
            found, labels = self.model.posteriors(docs), ("O", *self.labels)
            return [
                doc.with_soft(name or self.layer, Soft(labels, rows)) for doc, rows in zip(docs, found, strict=True)
            ]

        return Corpus(lambda: (doc for docs in map(add_posteriors, batches(documents, BATCH_TOKENS)) for doc in docs))

    def read(self, docs: Sequence[Document]) -> list[tuple[list[Span], Floats]]:
        """Return the spans of every document and (T, 1 + L) each token's probability of "O" and of each label.

        The same as `annotate` and `posteriors`, in one pass over the documents.
        """
        docs = self._add_earlier_layers(docs)
        found, kind = self.model.read_with_posteriors(docs), method_of(self.model.config).name
        return [(to_spans(doc, runs, kind), rows) for doc, (runs, rows) in zip(docs, found, strict=True)]

    def read_runs(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return what `read` does, with runs of tokens (first, end, label) in place of spans."""
        return self.model.read_with_posteriors(self._add_earlier_layers(docs))

    def alternatives(self, doc: Document, n: int, *, layer: str | None = None) -> list[Document]:
        """Return up to n copies of the document, one for each reading, the best first; ConfigError if n < 1.

        Reading k takes the k-th best labelling of every sentence that has k of them, else its last.
        """
        if n < 1:
            raise ConfigError(f"n must be at least 1, got {n}")
        doc = self._add_earlier_layers([doc])[0]
        found = self.model.alternatives(doc, n)
        kind = method_of(self.model.config).name
        return [doc.with_layer(layer or self.layer, to_spans(doc, runs, kind)) for runs in found]

    def explain(self, doc: Document, span: Span) -> Explanation:
        """Return why the tagger reads a span as it does; DataError for a label it does not have, or a cut token."""
        doc = self._add_earlier_layers([doc])[0]
        return registry.explain(self.model, doc, span)

    def substructure(self, doc: Document, layer: str | None = None) -> list[Span]:
        """Return the parts of a layer's spans, labelled PER/1, PER/2; ConfigError if the method has none.

        Without `layer`, the parts are of the tagger's own layer, which is added if the document lacks it.
        """
        if layer is None and self.layer not in doc.layers:
            doc = self(doc)
        return registry.parts(self.model, doc, doc.layer(layer or self.layer))

    def partial_fit(
        self, documents: Iterable[Document], config: Config | None = None, **options: Unpack[TrainOptions]
    ) -> Tagger:
        """Return a tagger trained further on these documents, new labels allowed; options and errors as of `train`."""
        options["start"] = self
        return train(documents, config or self.model.config, **options)

    def save(self, path: str | Path) -> Tagger:
        """Write a model file, complete or not at all; return the tagger with its checksum; ConfigError, ModelError."""
        state = self.model.state()
        for number, step in enumerate(self.before):
            state = state.with_child(f"before{number}", step.model.state())
        if self.aligner is not None:
            state = state.with_child("align", self.aligner.state())
        return replace(self, manifest=bundle.save(path, self.manifest, state.arrays, state.strings))

    def _add_earlier_layers(self, docs: Sequence[Document]) -> Sequence[Document]:
        """Return the documents with the layers of the models in `before`, each where it is absent."""
        for step in self.before:
            docs = step(docs)
        return docs

    def _spans(self, docs: Sequence[Document], confidence: bool, bias: Bias) -> Iterator[list[Span]]:
        """Yield the spans of each document; with `confidence`, their scores are calibrated probabilities."""
        kind = method_of(self.model.config).name
        if confidence:
            for doc, (runs, chances) in zip(docs, self.model.read_with_confidence(docs, bias), strict=True):
                yield to_spans(doc, runs, kind, chances)
        else:
            for doc, runs in zip(docs, self.model.read(docs, bias), strict=True):
                yield to_spans(doc, runs, kind)

    def _align(self, docs: list[Document], layer: str, mode: Literal["recall", "balanced"]) -> list[Document]:
        """Return documents with the layer aligned within patients, and without the soft labels of that name."""
        model = self.aligner or alignment.Model.default(mode)
        common = method_of(self.model.config).common_words(self.model)
        aligned = alignment.align(docs, model, layer=layer, mode=mode, common=common)
        return [replace(doc, soft={name: soft for name, soft in doc.soft.items() if name != layer}) for doc in aligned]

    def _check_bias(self, bias: Bias) -> None:
        """Raise ConfigError if the bias names a label, other than O, that the model does not have."""
        for label in bias or ():
            if label not in {"O", *self.labels}:
                raise ConfigError(f"bias names label {label!r}; this model has O, {', '.join(self.labels)}")


def as_document(doc: Document | str) -> Document:
    """Return the document, or a document of the text; ConfigError for anything else."""
    if isinstance(doc, str):
        return Document.make(doc)
    if not isinstance(doc, Document):
        raise ConfigError(f"a tagger takes a Document or a text, got {type(doc).__name__}")
    return doc


def check_documents(documents: object) -> None:
    """Raise ConfigError if one document or text is given where documents are expected."""
    if isinstance(documents, str | Document):
        raise ConfigError(f"documents must be a list of documents or a corpus, got one {type(documents).__name__}")


class TrainOptions(TypedDict, total=False):
    """The optional arguments of `train`."""

    dev: Iterable[Document]
    layer: str | None
    soft: str | None
    untagged: Iterable[Document]
    resources: Resources | None
    before: Tagger | None
    start: Tagger | None
    align: Alignment | None
    workers: int
    progress: Callable[[Progress], None] | None
    name: str | None
    corpus: str
    notes: str


def train(documents: Iterable[Document], config: Config | str | None = None, **options: Unpack[TrainOptions]) -> Tagger:
    """Return a tagger trained on the right spans of `layer` (default: gold, or the only one); DataError, ConfigError.

    `config` is the settings of a method, or the name of a method for its default settings: "cascade". `soft` names soft
    labels to learn from instead: rows of zeros leave a token open, rows with several ones leave the choice to the
    model, other rows are distributions. `untagged` documents have no labels; methods that model words learn from them
    as well. `dev` documents decide when to stop. `resources` are word clusters and lists of phrases. `before` is a
    tagger whose layers serve as features; it becomes part of the new one. `start` is a tagger to continue from. With
    `align`, the alignment of words that a patient's documents repeat is learnt as well, which trains once more for each
    of its folds. An interrupt keeps what was learnt so far. The model's bytes do not depend on the number of `workers`,
    and `progress` is called as learning proceeds. `name` is that of the layer, by default the method's; `corpus` and
    `notes` are stored in the manifest.
    """
    unknown = sorted(options.keys() - TrainOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"train() got an unexpected keyword argument {unknown[0]!r}")
    check_documents(documents)
    start, before = options.get("start"), options.get("before")
    if config is not None:
        config = registry.settings_of(config)
    config = config or (start.model.config if start is not None else Cascade())
    steps = before.steps if before is not None else start.before if start is not None else ()
    if steps:
        method_of(config).check("layers", config, list(METHODS.values()))
        if not getattr(config, "layers", ()):
            config = replace(config, layers=tuple(step.layer for step in steps))
    data = TrainingSet(
        list(documents), options.get("layer"), options.get("soft"), list(options.get("untagged", ())),
        list(options.get("dev", ())),
    )  # fmt: skip
    return _Training(data, config, steps, options).run()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Training:
    """One run of `train`: its data, settings, earlier steps and options."""

    data: TrainingSet
    config: Config
    steps: tuple[Step, ...]  # whose layers serve as features
    options: TrainOptions

    @property
    def name(self) -> str:
        """Return the name of the layer to add: the option, else the method's."""
        return self.options.get("name") or method_of(self.config).name

    def run(self) -> Tagger:
        """Train the model and, if asked, an aligner on earlier steps' layers; return the tagger with its manifest."""
        start, data, watcher = self.options.get("start"), self.data, Watcher(self.options.get("progress"))
        for step in self.steps:
            data = replace(data, documents=step(data.documents), dev=step(data.dev))
        with mapper(self.options.get("workers", 1)) as each:
            earlier = None if start is None else start.model
            context = FitContext(self.options.get("resources"), earlier, each, watcher)
            model = registry.fit(data, self.config, context)
        aligner = self.aligner(data, model.config, watcher)
        return Tagger(model, self.manifest(model, aligner, watcher), self.steps, self.name, aligner)

    def manifest(self, model: Model, aligner: alignment.Model | None, watcher: Watcher) -> Manifest:
        """Return the tagger's manifest; counts add to those of the tagger it continued from."""
        kind, start = method_of(self.config).name, self.options.get("start")
        config = model.config  # what was left open is decided now
        docs = [*self.data.documents, *self.data.untagged]
        earlier = start.manifest if start is not None else Manifest(kind, vocabulary_floor=model.floor)
        floor = min([model.floor, earlier.vocabulary_floor, *(step.model.floor for step in self.steps)])
        extra: dict[str, Any] = {"layer": self.name, "before": [step.manifest_entry for step in self.steps]}
        extra |= {} if aligner is None else {"align": asdict(aligner.config)}
        metrics = {**watcher.scores, **({"interrupted": 1.0} if watcher.interrupted else {})}
        return Manifest(
            kind, {**asdict(config), **extra}, model.names, config.seed, self.options.get("corpus") or earlier.corpus,
            earlier.documents + len(docs), earlier.patients + len({doc.patient for doc in docs}), floor, metrics,
            self.options.get("notes") or earlier.notes,
        )  # fmt: skip

    def aligner(self, data: TrainingSet, config: Config, watcher: Watcher) -> alignment.Model | None:
        """Return an alignment learnt on cross-fitted documents; None if not asked for, or interrupted; ConfigError.

        Where no word is repeated there is nothing to learn, and the default weights are returned.
        """
        align = self.options.get("align")
        if align is None or watcher.interrupted:
            return None
        done = iter(range(1, align.folds + 1))
        options: TrainOptions = {
            "layer": data.layer, "resources": self.options.get("resources"), "name": self.name,
            "workers": self.options.get("workers", 1),
        }  # fmt: skip

        def fold(part: list[Document]) -> Tagger:
            """Return a tagger trained on the documents of one part, and report progress."""
            if watcher.tell is not None:
                watcher.tell(Progress("alignment", next(done), align.folds, 0.0))
            return train(part, config, **options)

        try:
            read = alignment_fit.cross_fit(data.documents, fold, folds=align.folds, seed=align.seed)
            return alignment_fit.fit(read, align, layer=self.name, gold=data.layer)
        except KeyboardInterrupt:
            watcher.interrupted = True
            return None
        except DataError:
            return alignment.Model.default(align.mode)


def load(path: str | Path) -> Tagger:
    """Return the tagger of a model file or packaged model; ModelError for other kinds, which `chaffinch.load` opens."""
    file = bundle.load(path)
    state, config = file.state, file.manifest.config
    with bundle.building(path):
        steps = tuple(_step(state, number, entry) for number, entry in enumerate(config.get("before", ())))
        aligner = alignment.Model.of(state.child("align", config=config["align"])) if "align" in config else None
        layer = config.get("layer", state.kind)
        check_name(layer, "layer")
        return Tagger(registry.model_of(state), file.manifest, steps, layer, aligner)


def _step(state: State, number: int, entry: Mapping[str, Any]) -> Step:
    """Return an earlier step of a tagger, as its manifest describes it; ModelError for an unknown kind."""
    kind = entry.get("kind", "cascade")  # files of format 1 without it are of cascades
    part = state.child(f"before{number}", kind=kind, config=entry["config"], labels=entry["labels"])
    return Step(entry["layer"], registry.model_of(part))
