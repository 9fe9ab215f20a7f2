"""Students: taggers that learn from labels nobody checked, and read documents they did not learn from.

The first student is a linear chain on words, their surroundings and clusters of words. Where there is an encoder, the
second is a small network on its embeddings. The last one, stacked on them, is a linear chain that also sees what they
make of every token, and of the same word elsewhere in the document; it learns from what they say of documents they did
not learn from.

T tokens, L labels, D dimensions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.features import clusters
from chaffinch.kernels.lattice import Floats
from chaffinch.models.cascade import Cascade
from chaffinch.models.methods import Config
from chaffinch.models.resources import Resources
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Soft, Span
from chaffinch.weak import students_network
from chaffinch.weak.students_network import Network

Embedder: TypeAlias = Callable[[Document], NDArray[np.float32]]  # (T, D) of a document
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
    """How students are taught: the linear one's settings, the encoder, if any, and whether one is stacked on them."""

    student: Config | None = None
    embedder: Embedder | None = None
    stacked: bool = True
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Students:
    """Trained students; together they read any document, with nothing but its text."""

    names: tuple[str, ...]
    first: Tagger
    last: Tagger | None = None  # stacked on the others
    network: Network | None = None
    embedder: Embedder | None = None

    def __call__(self, docs: Sequence[Document]) -> list[Answer]:
        """The spans of the last student, and the mean of all chances."""
        found = [read(self.first, docs, self.names)]
        if self.network is not None and self.embedder is not None:
            found.append([_by_network(self.network, self.embedder(doc)) for doc in docs])
        if self.last is None:
            return _joined(found[0], found)
        again = read(self.last, with_columns(docs, found), self.names)
        return _joined(again, [*found, again])


def learn(docs: Sequence[Document], layer: str, plan: Plan) -> tuple[Students, list[Answer]]:
    """Students of the labels of a layer, and what they say of these documents, by cross-fitting."""
    names = tuple(sorted({span.label for doc in docs for span in doc.layer(layer)}))
    config = plan.student or LINEAR
    resources = Resources(clusters.learn(docs)) if isinstance(config, Cascade) else None

    def fit(part: Sequence[Document], config: Config = config) -> Tagger:
        return whole(train(part, config, layer=layer, resources=resources))

    def reader(part: Sequence[Document], config: Config = config) -> Reader:
        if not any(doc.layer(layer) for doc in part):  # of little text a fold may show no span
            return lambda held: [_nothing(doc, len(names)) for doc in held]
        tagger = fit(part, config)
        return lambda held: read(tagger, held, names)

    def crossed(some: Sequence[Document], teach: Callable[[list[Document]], Reader]) -> list[Answer]:
        return cross_fitted(some, teach, folds=plan.folds, seed=plan.seed, labels=len(names))

    found, network = [crossed(docs, reader)], None
    if plan.embedder is not None:
        rows = {id(doc): plan.embedder(doc).astype(np.float16) for doc in docs}

        def teach(part: Sequence[Document]) -> Network:
            tags = [_tags(doc, layer, names) for doc in part]
            return students_network.learn([rows[id(doc)] for doc in part], tags, len(names), seed=plan.seed)

        def asked(part: Sequence[Document]) -> Reader:
            own = teach(part)
            return lambda held: [_by_network(own, rows[id(doc)]) for doc in held]

        found.append(crossed(docs, asked))
        network = teach(docs)
    first = fit(docs)
    if not plan.stacked:
        return Students(names, first, None, network, plan.embedder), _joined(found[0], found)
    kinds = tuple(name for number in range(len(found)) for name in columns(number))
    layered = replace(config if isinstance(config, Cascade) else LINEAR, layers=kinds)
    seen = with_columns(docs, found)
    again = crossed(seen, lambda part: reader(part, layered))
    students = Students(names, first, fit(seen, layered), network, plan.embedder)
    return students, _joined(again, [*found, again])


def whole(tagger: Tagger) -> Tagger:
    """The tagger; KeyboardInterrupt if an interrupt ended its training early, for half a student teaches nothing."""
    if "interrupted" in tagger.manifest.metrics:
        raise KeyboardInterrupt
    return tagger


def cross_fitted(
    docs: Sequence[Document], fit: Callable[[list[Document]], Reader], *, folds: int, seed: int, labels: int
) -> list[Answer]:
    """What students say of documents, each asked about patients that it did not learn from; in the given order.

    A single patient has no others: then nothing is said of the documents.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, doc in enumerate(docs):
        places[doc.patient].append(place)
    fold_of = np.random.default_rng(seed).permutation(len(places)) % min(folds, max(1, len(places)))
    out: dict[int, Answer] = {}
    for fold in range(int(fold_of.max()) + 1) if len(places) > 1 else ():
        held = [place for own, number in zip(places.values(), fold_of, strict=True) if number == fold for place in own]
        apart = set(held)
        reader = fit([doc for place, doc in enumerate(docs) if place not in apart])
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
    for span in doc.layer(layer):
        first = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
        end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
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
