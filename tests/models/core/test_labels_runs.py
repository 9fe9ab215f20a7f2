"""The scheme "runs", one tag per label: round trips, what merges, and edges that no run crosses."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.features import observe as window
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels, Piece
from chaffinch.models.core.runs import runs_by_document
from chaffinch.models.core.tasks import Task
from chaffinch.models.latent.span_probabilities import runs_inside
from chaffinch.text import Document, Soft, Span
from tests.models.core.test_labels import readings, round_trip

NAMES = ("DNA", "RNA")
PLAIN = Labels(NAMES, "runs")
SUBS = Labels(NAMES, "runs", subs=(3, 1, 2))


def merged(pieces: list[Piece]) -> list[Piece]:
    """Pieces of one label side by side made one."""
    out: list[Piece] = []
    for first, end, label in pieces:
        if out and out[-1][1] == first and out[-1][2] == label:
            out[-1] = (out[-1][0], end, label)
        else:
            out.append((first, end, label))
    return out


def test_a_label_is_one_tag() -> None:
    assert PLAIN.tags == ("O", "I-DNA", "I-RNA")
    assert PLAIN.tag_of.tolist() == [0, 1, 2]
    assert SUBS.tag_of.tolist() == [0, 0, 0, 1, 2, 2]


@given(readings(), st.booleans())
def test_runs_become_states_and_runs_again(reading: tuple[list[Piece], list[int]], subs: bool) -> None:
    """As all schemes do, but for runs of one label side by side."""
    pieces, lengths = reading
    round_trip(SUBS if subs else PLAIN, merged(pieces), lengths)


@given(readings())
def test_spans_of_one_label_side_by_side_merge(reading: tuple[list[Piece], list[int]]) -> None:
    pieces, lengths = reading
    tags = PLAIN.encode(pieces, sum(lengths)).astype(np.int32)
    assert PLAIN.runs(tags) == [(first, end, NAMES[label]) for first, end, label in merged(pieces)]


@pytest.mark.parametrize("T", [1, 2, 3, 4])
def test_runs_are_those_of_a_plain_search(T: int) -> None:
    for states in itertools.product(range(3), repeat=T):
        wanted = [
            (match.start(), match.end(), NAMES[int(match[0][0]) - 1])
            for match in re.finditer(r"1+|2+", "".join(map(str, states)))
        ]
        assert PLAIN.runs(np.array(states, np.int32)) == wanted
    assert PLAIN.runs(np.zeros(0, np.int32)) == []


def test_every_tag_may_follow_every_tag_begin_and_end() -> None:
    for labels in (PLAIN, SUBS):
        K = labels.states.K
        assert labels.follows.all()
        assert labels.follows.shape == (5, 3)
        moves = labels.states.moves.reshape(K + 2, -1)
        assert (moves[:, :K] == 0).all()
        assert (moves[:, K:] == -np.inf).all()


def test_any_state_of_a_tag_means_the_tag() -> None:
    for path in itertools.product((0, 1, 2), (4, 5), (4, 5), (3,), (0, 1, 2)):
        assert SUBS.runs(np.array(path, np.int32)) == [(1, 3, "RNA"), (3, 4, "DNA")]


# Edges

letters = st.lists(st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=4), min_size=1, max_size=4)


def documents(tags: list[list[list[int]]]) -> list[Document]:
    """Documents of sentences of one-letter words, one for each tag."""
    docs = []
    for document in tags:
        count = sum(map(len, document))
        edges = np.cumsum([0, *map(len, document)])
        tokens = [(2 * n, 2 * n + 1) for n in range(count)]
        sentences = [(2 * a, 2 * b) for a, b in itertools.pairwise(edges.tolist())]
        docs.append(Document.make("a " * count, tokens=tokens, sentences=sentences))
    return docs


def runs_of_sentences(sentences: list[list[int]]) -> list[tuple[int, int, str]]:
    found, begin = [], 0
    for sentence in sentences:
        found += [(begin + a, begin + b, name) for a, b, name in PLAIN.runs(np.array(sentence, np.int32))]
        begin += len(sentence)
    return found


@given(letters)
def test_no_run_crosses_the_edge_of_a_sentence_or_of_a_document(tags: list[list[list[int]]]) -> None:
    seen = window.observe(documents(tags))
    flat = np.array([tag for sentences in tags for sentence in sentences for tag in sentence], np.int64)
    placed = np.zeros(len(seen.types), np.int32)
    placed[seen.places] = flat
    assert runs_by_document(seen, PLAIN, placed) == [runs_of_sentences(sentences) for sentences in tags]
    bounds = np.cumsum([0, *(len(sentence) for sentences in tags for sentence in sentences)])
    wanted, shift = [], 0
    for sentences in tags:
        wanted += [(shift + a, shift + b) for a, b, _ in runs_of_sentences(sentences)]
        shift += sum(map(len, sentences))
    starts, ends = runs_inside(PLAIN, flat, bounds)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == wanted


def test_a_span_over_the_end_of_a_sentence_is_read_as_two() -> None:
    doc = documents([[[1, 1], [1, 0]]])[0].with_layer("gold", [Span(0, 5, "DNA")])
    task = Task.of([doc], layer=None, soft=None)
    labels = Labels(task.names, "runs")
    target = task.target(labels)
    assert target.gold[task.seen.places].tolist() == [1, 1, 1, 0]
    assert runs_by_document(task.seen, labels, target.gold) == [[(0, 2, "DNA"), (2, 3, "DNA")]]


# Soft labels


def allowed(tags: tuple[str, ...], rows: list[list[float]]) -> Evidence:
    text = "a " * len(rows)
    tokens = [(2 * n, 2 * n + 1) for n in range(len(rows))]
    doc = Document.make(text, tokens=tokens).with_soft("votes", Soft(tags, np.array(rows, float)))
    task = Task.of([doc], layer=None, soft="votes")
    return Evidence.of(task, Labels(task.names, "runs"))


@pytest.mark.parametrize("tags", [("O", "B-X", "I-X"), ("O", "S-X", "E-X")])
def test_any_letter_of_a_soft_tag_is_the_one_tag_of_its_label(tags: tuple[str, ...]) -> None:
    found = allowed(tags, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]])
    assert found.allowed.tolist() == [[True, False], [False, True], [False, True], [True, True], [True, True]]
    assert found.logs is None


def test_soft_tags_of_one_label_add_up() -> None:
    found = allowed(("O", "B-X", "I-X"), [[0.25, 0.5, 0.25], [1, 0, 0]])
    assert found.logs is not None
    np.testing.assert_allclose(np.exp(found.logs[0]), [0.25, 0.75], rtol=1e-6)


def test_bare_soft_labels_are_their_tags_whatever_stands_before() -> None:
    found = allowed(("O", "X"), [[0, 1], [0, 1], [1, 0], [0, 1], [0, 0], [1, 1], [0.25, 0.75]])
    both = [True, True]
    assert found.allowed.tolist() == [[False, True], [False, True], [True, False], [False, True], both, both, both]
    assert found.logs is not None
    np.testing.assert_allclose(np.exp(found.logs[6]), [0.25, 0.75], rtol=1e-6)
