"""Students: taggers that learn from labels nobody checked, and read documents they did not learn from.

The first student is a linear chain on words, their surroundings and clusters of words. Where there is an encoder, the
second is a small network on its embeddings. The last one, stacked on them, is a linear chain that also sees what they
make of every token, and of the same word elsewhere in the document; it learns from what they say of documents they did
not learn from. Of a pair of students the second is the last; a fine-tuned encoder, say, which sees the text alone.

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
EDGES = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])  # of chances, where they become features


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """What a student says of one document: spans, and at each token the chance of O and of each label."""

    spans: tuple[Span, ...]
    chances: Floats  # (T, 1 + L)


Reader: TypeAlias = Callable[[Sequence[Document]], list[Answer]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How students are taught: their settings, the encoder, if any, and whether one is stacked on the others."""

    student: Student | None = None
    embedder: Embedder | None = None
    stacked: bool = True
    folds: int = 5
    seed: int = 0

    def last(self, others: int) -> Config | None:
        """The settings of the last student, which may see what so many others say; None if the first is all."""
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
    """Trained students; together they read any document, with nothing but its text."""

    names: tuple[str, ...]
    first: Tagger
    last: Tagger | None = None  # stacked on the others, or the second of a pair
    network: Network | None = None
    embedder: Embedder | None = None

    @property
    def taggers(self) -> tuple[Tagger, ...]:
        """The first, and the last if there is one."""
        return (self.first,) if self.last is None else (self.first, self.last)

    def __call__(self, docs: Sequence[Document]) -> list[Answer]:
        """The spans of the last student, and the mean of all chances."""
        found = [read(self.first, docs, self.names)]
        if self.network is not None and self.embedder is not None:
            found.append([_by_network(self.network, self.embedder(doc)) for doc in docs])
        if self.last is None:
            return _joined(found[0], found)
        again = read(self.last, with_columns(docs, found), self.names)
        return _joined(again, [*found, again])


def configs_of(student: Student | None) -> tuple[Config, ...]:
    """The settings of one student or two, ours by default; ConfigError for more."""
    found = student if isinstance(student, tuple) else (LINEAR if student is None else student,)
    if not 1 <= len(found) <= 2:
        raise ConfigError(f"students are one or a pair, got {len(found)}")
    return found


def _reads_layers(config: Config) -> bool:
    """Return whether layers of others, and clusters of words beside them, serve a student as features."""
    return method_of(config).learns("layers", config)


def learn(
    docs: Sequence[Document], layer: str, plan: Plan, steps: Checkpoints | None = None
) -> tuple[Students, list[Answer]]:  # fmt: skip
    """Students of the labels of a layer, and what they say of these documents, by cross-fitting."""
    config, *_ = configs_of(plan.student)
    lessons = _Lessons.of(docs, layer, plan, steps or Checkpoints())
    names, network = lessons.names, None
    found = [lessons.crossed(docs, config, "student")]
    if plan.embedder is not None:
        answers, network = lessons.by_network(docs, plan.embedder)
        found.append(answers)
    first = lessons.fit(docs, config, Step("student"))
    last = plan.last(len(found))
    if last is None:
        return Students(names, first, None, network, plan.embedder), _joined(found[0], found)
    seen = with_columns(docs, found)
    again = lessons.crossed(seen, last, "last student")
    students = Students(names, first, lessons.fit(seen, last, Step("last student")), network, plan.embedder)
    return students, _joined(again, [*found, again])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lessons:
    """What all students of a run share; every one of them is a step, which is told and kept."""

    layer: str
    names: tuple[str, ...]
    plan: Plan
    resources: Resources | None  # of those that can use them
    steps: Checkpoints

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str, plan: Plan, steps: Checkpoints) -> _Lessons:
        names = tuple(sorted({span.label for doc in docs for span in doc.layer(layer)}))
        useful = any(map(_reads_layers, filter(None, (*configs_of(plan.student), plan.last(1)))))
        return cls(layer, names, plan, Resources(clusters.learn(docs)) if useful else None, steps)

    def fit(self, docs: Sequence[Document], config: Config, step: Step) -> Tagger:
        """A student of all these documents."""
        resources = self.resources if _reads_layers(config) else None
        return kept(self.steps, step, lambda: train(docs, config, layer=self.layer, resources=resources))

    def crossed(self, docs: Sequence[Document], config: Config, name: str) -> list[Answer]:
        """What students with those settings say of documents that they did not learn from."""

        def teach(part: list[Document], number: int, total: int) -> Reader:
            step = Step(f"{name} fold", number, total)
            if not any(doc.layer(self.layer) for doc in part):  # of little text a fold may show no span
                self.steps.told(step)
                return lambda held: [_nothing(doc, len(self.names)) for doc in held]
            tagger = self.fit(part, config, step)
            return lambda held: read(tagger, held, self.names)

        return cross_fitted(docs, teach, folds=self.plan.folds, seed=self.plan.seed, labels=len(self.names))

    def by_network(self, docs: Sequence[Document], embedder: Embedder) -> tuple[list[Answer], Network]:
        """What networks say of documents that they did not learn from, and the network of all of them."""
        rows = {id(doc): embedder(doc).astype(np.float16) for doc in docs}
        self.steps.told(Step("embeddings"))

        def teach(part: Sequence[Document], step: Step) -> Network:
            tags = [_tags(doc, self.layer, self.names) for doc in part]
            own = [rows[id(doc)] for doc in part]
            return self.steps.kept(
                step, lambda: students_network.learn(own, tags, len(self.names), seed=self.plan.seed),
                lambda path: Network.of(bundle.load(path).arrays), self._save_network,
            )  # fmt: skip

        def asked(part: list[Document], number: int, total: int) -> Reader:
            network = teach(part, Step("network fold", number, total))
            return lambda held: [_by_network(network, rows[id(doc)]) for doc in held]

        plan, labels = self.plan, len(self.names)
        return (
            cross_fitted(docs, asked, folds=plan.folds, seed=plan.seed, labels=labels), teach(docs, Step("network"))
        )  # fmt: skip

    def _save_network(self, network: Network, path: Path) -> None:
        bundle.save(path, Manifest("network", {}, self.names), network.arrays())


def kept(steps: Checkpoints, step: Step, make: Callable[[], Tagger]) -> Tagger:
    """The tagger that an earlier run made in this step, or the one made now."""
    return steps.kept(step, lambda: whole(make()), load, lambda own, path: own.save(path))


def whole(tagger: Tagger) -> Tagger:
    """The tagger; KeyboardInterrupt if an interrupt ended its training early, for half a student teaches nothing."""
    if "interrupted" in tagger.manifest.metrics:
        raise KeyboardInterrupt
    return tagger


def cross_fitted(
    docs: Sequence[Document], fit: Callable[[list[Document], int, int], Reader], *, folds: int, seed: int, labels: int
) -> list[Answer]:
    """What students say of documents, each asked about patients that it did not learn from; in the given order.

    `fit` is also told which fold it is, from 1, and of how many. A single patient has no others: then nothing is said
    of the documents.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, doc in enumerate(docs):
        places[doc.patient].append(place)
    fold_of = np.random.default_rng(seed).permutation(len(places)) % min(folds, max(1, len(places)))
    out: dict[int, Answer] = {}
    total = int(fold_of.max()) + 1 if len(places) > 1 else 0
    for fold in range(total):
        held = [place for own, number in zip(places.values(), fold_of, strict=True) if number == fold for place in own]
        apart = set(held)
        reader = fit([doc for place, doc in enumerate(docs) if place not in apart], fold + 1, total)
        out |= dict(zip(held, reader([docs[place] for place in held]), strict=True))
    return [out[place] if place in out else _nothing(doc, labels) for place, doc in enumerate(docs)]


def read(tagger: Tagger, docs: Sequence[Document], names: Sequence[str]) -> list[Answer]:
    """What a tagger says of documents, its chances in the order of those labels."""
    layer = "student"
    found = list(tagger.posteriors(tagger.annotate(docs, layer=layer), name=layer))
    return [Answer(doc.layer(layer), _ordered(doc.soft[layer], names)) for doc in found]


def columns(number: int) -> tuple[str, str]:
    """The names of the layers that show a stacked student what another one says."""
    return f"student{number}:own", f"student{number}:elsewhere"


def with_columns(docs: Sequence[Document], found: Sequence[Sequence[Answer]]) -> list[Document]:
    """The documents with two layers for every student that serve as features of one stacked on them.

    One span per token: the likeliest label with its chance in steps, and the mean chance that the same word, elsewhere
    in the document, is in a span. Tokens that are almost certainly outside have none.
    """
    out = list(docs)
    for number, answers in enumerate(found):
        names = columns(number)
        for place, answer in enumerate(answers):
            own, others = _columns(out[place], answer.chances)
            out[place] = out[place].with_layer(names[0], own).with_layer(names[1], others)
    return out


def _columns(doc: Document, chances: Floats) -> tuple[list[Span], list[Span]]:
    inside = 1.0 - chances[:, 0]
    label = chances[:, 1:].argmax(axis=1)
    numbers: dict[str, int] = {}
    number = np.array([numbers.setdefault(word.lower(), len(numbers)) for word in doc.words()], np.int64)
    count = np.bincount(number)[number] - 1
    elsewhere = (np.bincount(number, inside)[number] - inside) / np.maximum(count, 1)
    own, others = np.searchsorted(EDGES, inside), np.where(count > 0, np.searchsorted(EDGES, elsewhere), 0)
    place = doc.tokens.tolist()
    return (
        [Span(place[t][0], place[t][1], f"{label[t]}:{own[t]}") for t in np.flatnonzero(own)],
        [Span(place[t][0], place[t][1], f"{others[t]}") for t in np.flatnonzero(others)],
    )


def _joined(last: Sequence[Answer], found: Sequence[Sequence[Answer]]) -> list[Answer]:
    """The spans of the last student, and the mean chances of all."""
    return [
        Answer(own.spans, np.mean([answer.chances for answer in all_of_it], axis=0))
        for own, *all_of_it in zip(last, *found, strict=True)
    ]


def _by_network(network: Network, rows: NDArray[np.floating]) -> Answer:
    return Answer((), network(rows.astype(np.float16).astype(np.float32)))  # kept so while learning


def _tags(doc: Document, layer: str, names: Sequence[str]) -> NDArray[np.int64]:
    """(T,) the tags of a layer's spans: O, then first tokens and others of each label."""
    out = np.zeros(len(doc.tokens), np.int64)
    spans = doc.layer(layer)
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        out[first:end] = 2 + 2 * names.index(span.label)
        out[first : min(first + 1, end)] -= 1
    return out


def _ordered(soft: Soft, names: Sequence[str]) -> Floats:
    out = np.zeros((len(soft.values), 1 + len(names)))
    for column, name in enumerate(("O", *names)):
        if name in soft.labels:
            out[:, column] = soft.values[:, soft.labels.index(name)]
    return out


def _nothing(doc: Document, labels: int) -> Answer:
    chances = np.zeros((len(doc.tokens), 1 + labels))
    chances[:, 0] = 1.0
    return Answer((), chances)
