"""Students: taggers trained on labels nobody checked, which read documents they were not trained on.

The first student is a linear chain on words, their contexts and word clusters. With an embedder, the second is a small
network on its embeddings. The last one, stacked on them, is a linear chain that also sees their probabilities for every
token, and for the same word elsewhere in the document; it is trained on their predictions by cross-fitting. Of a pair
of students the second is the last: for example a fine-tuned encoder, which sees the text alone.

T tokens, L labels, D dimensions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError
from chaffinch.features import clusters
from chaffinch.kernels.lattice import Floats
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.resources import Resources
from chaffinch.models.registry import Config, method_of
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Soft, Span
from chaffinch.weak.embedded import Embedder
from chaffinch.weak.training import network as students_network
from chaffinch.weak.training.checkpoints import Checkpoints, Step
from chaffinch.weak.training.network import Network

Student: TypeAlias = Config | tuple[Config, Config]  # one, or a pair whose second one's spans count
LINEAR = Cascade(objective="crf", documents=False, calibrate=False)
EDGES = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])  # bins of probabilities as features; none below the first


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """Predictions of a student for one document: spans, and at each token the probability of O and of each label."""

    spans: tuple[Span, ...]
    chances: Floats  # (T, 1 + L)


Reader: TypeAlias = Callable[[Sequence[Document]], list[Answer]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Training plan of students: their settings, the embedder, if any, and whether one is stacked on the others."""

    student: Student | None = None
    embedder: Embedder | None = None
    stacked: bool = True
    folds: int = 5
    seed: int = 0

    def last(self, others: int) -> Config | None:
        """Return the second student's settings, None if there is none; if stacked, `others` students are features."""
        first, *rest = configs_of(self.student)
        if not rest and not self.stacked:
            return None
        config = rest[0] if rest else first if _reads_layers(first) else LINEAR
        if not self.stacked or not _reads_layers(config):
            return config
        names = tuple(name for number in range(others) for name in columns(number))
        return replace(config, layers=(*getattr(config, "layers", ()), *names))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Students:
    """Trained students; together they read any document from its text alone."""

    names: tuple[str, ...]
    first: Tagger
    last: Tagger | None = None  # stacked on the others, or the second of a pair
    network: Network | None = None
    embedder: Embedder | None = None

    @property
    def taggers(self) -> tuple[Tagger, ...]:
        """Return the first tagger, and the second if there is one."""
        return (self.first,) if self.last is None else (self.first, self.last)

    def __call__(self, docs: Sequence[Document]) -> list[Answer]:
        """Return each document's spans by the last student, and the mean probabilities of all students."""
        found = [read(self.first, docs, self.names)]
        if self.network is not None and self.embedder is not None:
            found.append([_by_network(self.network, self.embedder(doc)) for doc in docs])
        if self.last is None:
            return _average(found[0], found)
        again = read(self.last, with_columns(docs, found), self.names)
        return _average(again, [*found, again])


def configs_of(student: Student | None) -> tuple[Config, ...]:
    """Return the settings of one or two students, `LINEAR` by default; raise ConfigError for more."""
    found = student if isinstance(student, tuple) else (LINEAR if student is None else student,)
    if not 1 <= len(found) <= 2:
        raise ConfigError(f"give one student or a pair, got {len(found)}")
    return found


def _reads_layers(config: Config) -> bool:
    """Tell whether a student can use layers, and word clusters, as features."""
    return method_of(config).learns("layers", config)


def learn(
    docs: Sequence[Document], layer: str, plan: Plan, steps: Checkpoints | None = None
) -> tuple[Students, list[Answer]]:  # fmt: skip
    """Train students on the labels of a layer; return them with their cross-fitted predictions for these documents."""
    config, *_ = configs_of(plan.student)
    lessons = _Lessons.of(docs, layer, plan, steps or Checkpoints())
    names, network = lessons.names, None
    found = [lessons.cross_fit(docs, config, "student")]
    if plan.embedder is not None:
        answers, network = lessons.by_network(docs, plan.embedder)
        found.append(answers)
    first = lessons.fit(docs, config, Step("student"))
    last = plan.last(len(found))
    if last is None:
        return Students(names, first, None, network, plan.embedder), _average(found[0], found)
    seen = with_columns(docs, found)
    again = lessons.cross_fit(seen, last, "last student")
    students = Students(names, first, lessons.fit(seen, last, Step("last student")), network, plan.embedder)
    return students, _average(again, [*found, again])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lessons:
    """Data that all students of a run share; the training of each student is a step, reported and saved."""

    layer: str
    names: tuple[str, ...]
    plan: Plan
    resources: Resources | None  # for students that can use them
    steps: Checkpoints

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str, plan: Plan, steps: Checkpoints) -> _Lessons:
        """Collect the labels of a layer, and learn word clusters if a student can use them."""
        names = tuple(sorted({span.label for doc in docs for span in doc.layer(layer)}))
        useful = any(map(_reads_layers, filter(None, (*configs_of(plan.student), plan.last(1)))))
        return cls(layer, names, plan, Resources(clusters.learn(docs)) if useful else None, steps)

    def fit(self, docs: Sequence[Document], config: Config, step: Step) -> Tagger:
        """Train a student on all these documents, or load it from the step's checkpoint."""
        resources = self.resources if _reads_layers(config) else None
        return load_or_train(self.steps, step, lambda: train(docs, config, layer=self.layer, resources=resources))

    def cross_fit(self, docs: Sequence[Document], config: Config, name: str) -> list[Answer]:
        """Return an answer per document, by students with these settings that were trained on other patients."""

        def teach(part: list[Document], number: int, total: int) -> Reader:
            """Train a student on a fold's training part; return its reader, which finds nothing if that has no span."""
            step = Step(f"{name} fold", number, total)
            if not any(doc.layer(self.layer) for doc in part):  # with little text a fold may have no span
                self.steps.report(step)
                return lambda test: [_nothing(doc, len(self.names)) for doc in test]
            tagger = self.fit(part, config, step)
            return lambda test: read(tagger, test, self.names)

        return cross_fit(docs, teach, folds=self.plan.folds, seed=self.plan.seed, labels=len(self.names))

    def by_network(self, docs: Sequence[Document], embedder: Embedder) -> tuple[list[Answer], Network]:
        """Return cross-fitted predictions of networks on embeddings, and the network trained on all documents."""
        rows = {id(doc): embedder(doc).astype(np.float16) for doc in docs}
        self.steps.report(Step("embeddings"))

        def teach(part: Sequence[Document], step: Step) -> Network:
            """Load the network of a step, or train it on these documents and save it."""
            tags = [_tags(doc, self.layer, self.names) for doc in part]
            part_rows = [rows[id(doc)] for doc in part]
            return self.steps.load_or_make(
                step, lambda: students_network.learn(part_rows, tags, len(self.names), seed=self.plan.seed),
                lambda path: Network.of(bundle.load(path).arrays), self._save_network,
            )  # fmt: skip

        def fit_fold(part: list[Document], number: int, total: int) -> Reader:
            """Train a network on a fold's training part; return a function that answers for documents."""
            network = teach(part, Step("network fold", number, total))
            return lambda test: [_by_network(network, rows[id(doc)]) for doc in test]

        plan, labels = self.plan, len(self.names)
        return (
            cross_fit(docs, fit_fold, folds=plan.folds, seed=plan.seed, labels=labels), teach(docs, Step("network"))
        )  # fmt: skip

    def _save_network(self, network: Network, path: Path) -> None:
        """Write a network's weights to a checkpoint file."""
        bundle.save(path, Manifest("network", {}, self.names), network.arrays())


def load_or_train(steps: Checkpoints, step: Step, make: Callable[[], Tagger]) -> Tagger:
    """Load the step's tagger from its checkpoint, or train and save it; KeyboardInterrupt if cut short."""
    return steps.load_or_make(step, lambda: require_complete(make()), load, lambda tagger, path: tagger.save(path))


def require_complete(tagger: Tagger) -> Tagger:
    """Return the tagger; raise KeyboardInterrupt if an interrupt ended its training early."""
    if "interrupted" in tagger.manifest.metrics:
        raise KeyboardInterrupt
    return tagger


def cross_fit(
    docs: Sequence[Document], fit: Callable[[list[Document], int, int], Reader], *, folds: int, seed: int, labels: int
) -> list[Answer]:
    """Return an answer per document, in order, by `fit` on the folds of other patients; empty for a lone patient.

    `fit` gets the training documents, the number of the fold, from 1, and the number of folds. With a single patient
    nothing is predicted: every token is O.
    """
    indices: dict[str, list[int]] = defaultdict(list)
    for index, doc in enumerate(docs):
        indices[doc.patient].append(index)
    fold_of = np.random.default_rng(seed).permutation(len(indices)) % min(folds, max(1, len(indices)))
    out: dict[int, Answer] = {}
    total = int(fold_of.max()) + 1 if len(indices) > 1 else 0
    for fold in range(total):
        pairs = zip(indices.values(), fold_of, strict=True)
        held = [index for patient_indices, number in pairs if number == fold for index in patient_indices]
        held_out = set(held)
        reader = fit([doc for index, doc in enumerate(docs) if index not in held_out], fold + 1, total)
        out |= dict(zip(held, reader([docs[index] for index in held]), strict=True))
    return [out[index] if index in out else _nothing(doc, labels) for index, doc in enumerate(docs)]


def read(tagger: Tagger, docs: Sequence[Document], names: Sequence[str]) -> list[Answer]:
    """Return the predictions of a tagger for documents, with probabilities in the order of `names`."""
    layer = "student"
    found = list(tagger.posteriors(tagger.annotate(docs, layer=layer), name=layer))
    return [Answer(doc.layer(layer), _reorder(doc.soft[layer], names)) for doc in found]


def columns(number: int) -> tuple[str, str]:
    """Return the names of two layers, at the token and elsewhere, that show student `number` to a stacked one."""
    return f"student{number}:own", f"student{number}:elsewhere"


def with_columns(docs: Sequence[Document], found: Sequence[Sequence[Answer]]) -> list[Document]:
    """Return the documents with two layers for each student's answers, as features of the stacked student.

    One span per token: the most probable label with its binned probability, and the binned mean probability that the
    same word, elsewhere in the document, is in a span. Tokens below the first bin have none.
    """
    out = list(docs)
    for number, answers in enumerate(found):
        names = columns(number)
        for place, answer in enumerate(answers):
            here, elsewhere = _columns(out[place], answer.chances)
            out[place] = out[place].with_layer(names[0], here).with_layer(names[1], elsewhere)
    return out


def _columns(doc: Document, chances: Floats) -> tuple[list[Span], list[Span]]:
    """Return spans of two layers: each token's label and binned chance; its word's binned mean elsewhere."""
    inside = 1.0 - chances[:, 0]
    label = chances[:, 1:].argmax(axis=1)
    numbers: dict[str, int] = {}
    number = np.array([numbers.setdefault(word.lower(), len(numbers)) for word in doc.words()], np.int64)
    count = np.bincount(number)[number] - 1
    elsewhere = (np.bincount(number, inside)[number] - inside) / np.maximum(count, 1)
    here, others = np.searchsorted(EDGES, inside), np.where(count > 0, np.searchsorted(EDGES, elsewhere), 0)
    offsets = doc.tokens.tolist()
    return (
        [Span(offsets[t][0], offsets[t][1], f"{label[t]}:{here[t]}") for t in np.flatnonzero(here)],
        [Span(offsets[t][0], offsets[t][1], f"{others[t]}") for t in np.flatnonzero(others)],
    )


def _average(last: Sequence[Answer], found: Sequence[Sequence[Answer]]) -> list[Answer]:
    """Return the spans of `last` with the mean probabilities of all students in `found`, by document."""
    return [
        Answer(answer.spans, np.mean([other.chances for other in answers], axis=0))
        for answer, *answers in zip(last, *found, strict=True)
    ]


def _by_network(network: Network, rows: NDArray[np.floating]) -> Answer:
    """Return the predictions of a network for the embeddings of a document; it has no spans."""
    return Answer((), network(rows.astype(np.float16).astype(np.float32)))  # rounded as in training


def _tags(doc: Document, layer: str, names: Sequence[str]) -> NDArray[np.int64]:
    """Return (T,) tag numbers of a layer: 0 outside, 1 + 2e at the first and 2 + 2e at other tokens of label e."""
    out = np.zeros(len(doc.tokens), np.int64)
    spans = doc.layer(layer)
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        out[first:end] = 2 + 2 * names.index(span.label)
        out[first : min(first + 1, end)] -= 1
    return out


def _reorder(soft: Soft, names: Sequence[str]) -> Floats:
    """Return (T, 1 + L) probabilities in the order of O and the names; 0 for labels that are missing."""
    out = np.zeros((len(soft.values), 1 + len(names)))
    for column, name in enumerate(("O", *names)):
        if name in soft.labels:
            out[:, column] = soft.values[:, soft.labels.index(name)]
    return out


def _nothing(doc: Document, labels: int) -> Answer:
    """Return an answer without spans: O with probability 1 at every token."""
    chances = np.zeros((len(doc.tokens), 1 + labels))
    chances[:, 0] = 1.0
    return Answer((), chances)
