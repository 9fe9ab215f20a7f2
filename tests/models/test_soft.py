"""Learning from soft labels: one-hot rows are spans, zeros leave a token open, several ones leave the choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.linear import Target
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task, runs_of
from chaffinch.models.tagger import train
from chaffinch.text import Document, Soft, Span
from tests.models.notes import hit_rate, notes

NAMES = ("DOSE", "DRUG", "NAME", "TOWN")
BARE = ("O", *NAMES)
IOB2 = ("O", *(f"{letter}-{name}" for name in NAMES for letter in "BI"))
PA, CRF = Cascade(epochs=3), Cascade(objective="crf", epochs=3)
both = pytest.mark.parametrize("config", [PA, CRF, Cascade(scheme="IOB2", epochs=3)], ids=["pa", "crf", "IOB2"])


def softened(doc: Document, tags: Sequence[str] = IOB2) -> Document:
    """Return the documents with their gold spans as one-hot rows of IOB2 tags or bare labels, in soft layer "votes"."""
    values = np.zeros((len(doc.tokens), len(tags)))
    words = ["O"] * len(doc.tokens)
    for first, end, name in runs_of(doc, "gold"):
        words[first:end] = [name if tags is BARE else f"{'I' if n else 'B'}-{name}" for n in range(end - first)]
    values[range(len(words)), [tags.index(word) for word in words]] = 1.0
    return doc.with_soft("votes", Soft(tuple(tags), values))


def changed(doc: Document, rows: np.ndarray[tuple[int], np.dtype[np.bool_]], value: float) -> Document:
    soft = doc.soft["votes"]
    values = soft.values.copy()
    values[rows] = value
    return doc.with_soft("votes", Soft(soft.labels, values))


def spans(docs: Sequence[Document]) -> list[tuple[Span, ...]]:
    return [doc.layer("cascade") for doc in docs]


def short(docs: Sequence[Document]) -> list[Document]:
    """Return the documents without spans of two tokens or more."""
    return [doc for doc in docs if all(end - first == 1 for first, end, _ in runs_of(doc, "gold"))]


TRAIN, TEST = notes(40), notes(30, 1)


@both
def test_one_hot_rows_teach_the_same_as_spans(config: Cascade) -> None:
    hard, soft = train(TRAIN, config), train([softened(doc) for doc in TRAIN], config, soft="votes")
    found = list(soft.annotate(TEST))
    assert spans(found) == spans(list(hard.annotate(TEST)))
    assert hit_rate(found) > 0.9


@both
def test_bare_labels_are_accepted(config: Cascade) -> None:
    docs = short(TRAIN + notes(60, 2))
    tagger = train([softened(doc, BARE) for doc in docs], config, soft="votes")
    assert tagger.labels == NAMES
    assert hit_rate(list(tagger.annotate(short(TEST)))) > 0.9


@pytest.mark.parametrize("config", [PA, Cascade(scheme="IOB2", epochs=3)], ids=["IOBES", "IOB2"])
def test_bare_labels_side_by_side_are_one_span(config: Cascade) -> None:
    tagger = train([softened(doc, BARE) for doc in TRAIN], config, soft="votes")
    assert hit_rate(list(tagger.annotate(TEST))) > 0.95


@both
def test_rows_of_zeros_say_nothing(config: Cascade) -> None:
    rng = np.random.default_rng(0)
    docs = [softened(doc) for doc in TRAIN]
    docs = [changed(doc, rng.random(len(doc.tokens)) < 0.3, 0.0) for doc in docs]
    assert hit_rate(list(train(docs, config, soft="votes").annotate(TEST))) > 0.85


def test_a_document_of_zeros_alone_changes_nothing_but_counts() -> None:
    labels = Labels(("NAME",))
    doc = softened(Document.make("Ann came.", layers={"gold": [Span(0, 3, "NAME")]}), ("O", "B-NAME", "I-NAME"))
    target = target_of([changed(doc, np.ones(3, np.bool_), 0.0)], labels)
    assert target.free[target.which[1:4]].all()
    assert (target.weights[target.which[1:4], : labels.states.K] == 1).all()


def target_of(docs: Sequence[Document], labels: Labels) -> Target:
    return Task.of(docs, layer=None, soft="votes").target(labels)


def test_rows_become_the_states_they_may_be_written_as() -> None:
    values = np.array([[0.25, 0.5, 0.25], [1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float64)
    doc = Document.make("a b c d").with_soft("votes", Soft(("O", "B-X", "I-X"), values))
    target = target_of([doc], Labels(("X",)))  # O, B, I, E, S
    rows = target.weights[target.which[1:5], :5]
    wanted = [[0.25, 0.5, 0.25, 0.25, 0.5], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 1]]
    assert rows.tolist() == wanted
    assert target.free[target.which[1:5]].tolist() == [False, True, True, False]
    assert target.gold[1:5].tolist() == [-1] * 4
    bare = Document.make("a b").with_soft("votes", Soft(("X", "O"), np.array([[0.75, 0.25], [0, 1]])))
    target = target_of([bare], Labels(("X",), "IOB2"))  # O, B, I
    assert target.weights[target.which[1:3], :3].tolist() == [[0.25, 0.75, 0], [1, 0, 0]]


@both
def test_several_ones_leave_the_choice_to_the_model(config: Cascade) -> None:
    rng, docs = np.random.default_rng(0), []
    for doc in map(softened, TRAIN):
        soft = doc.soft["votes"]
        values = soft.values.copy()
        values[rng.random(len(values)) < 0.4, 0] = 1.0  # perhaps outside, perhaps what gold says
        docs.append(doc.with_soft("votes", Soft(soft.labels, values)))
    assert any((doc.soft["votes"].values.sum(axis=1) > 1).any() for doc in docs)
    assert hit_rate(list(train(docs, config, soft="votes").annotate(TEST))) > 0.8


def test_uncertain_rows_teach_what_is_likelier() -> None:
    docs = []
    for doc in map(softened, TRAIN):
        soft = doc.soft["votes"]
        docs.append(doc.with_soft("votes", Soft(soft.labels, 0.7 * soft.values + 0.3 / len(soft.labels))))
    for config in (PA, CRF):
        assert hit_rate(list(train(docs, config, soft="votes").annotate(TEST))) > 0.9


def test_a_missing_soft_layer_is_named() -> None:
    with pytest.raises(DataError, match=r"no soft layer 'vote' \(found: votes\)"):
        train([softened(doc) for doc in TRAIN], PA, soft="vote")
    with pytest.raises(DataError, match=r"no soft layer 'votes' \(found: none\)"):
        train([softened(TRAIN[0]), TRAIN[1]], PA, soft="votes")


def test_soft_labels_without_any_label_teach_nothing() -> None:
    doc = Document.make("a b").with_soft("votes", Soft(("O",), np.ones((2, 1))))
    with pytest.raises(DataError, match="soft layer 'votes' holds no span"):
        train([doc], PA, soft="votes")


def test_two_stages_refuse_soft_labels() -> None:
    with pytest.raises(ConfigError, match="stages=1"):
        train([softened(doc) for doc in TRAIN], Cascade.published(), soft="votes")
