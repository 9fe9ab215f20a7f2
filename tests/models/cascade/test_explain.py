"""Explanations against every labelling of short sentences, scored through the lattice."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Lattice
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from chaffinch.text.explanation import ORDER
from tests.kernels import oracle
from tests.models.notes import cascade_model, notes

CONFIGS = {
    "IOBES": Cascade(epochs=2),
    "IOB2": Cascade(epochs=2, scheme="IOB2"),
    "pairs": Cascade(epochs=2, scheme="IOB2", edge_features=True),
    "crf": Cascade(epochs=2, objective="crf"),
    "two stages": Cascade(stages=2, scheme="IOB2", documents=False, cutoff=5, dropout=0.0, private=False),
    "published": replace(Cascade.published(), private=False),
}
every_config = pytest.mark.parametrize("name", CONFIGS)
TEXTS = ["Dr. Ann Penn came.", "Mr. Voss saw Dora.", "No aspirin.", "Ann", "Dr. was York Ida"]


@cache
def tagger(name: str) -> Tagger:
    """A tagger of one label, so that labellings can be listed."""
    docs = [replace(doc, layers={"gold": tuple(s for s in doc.layer() if s.label == "NAME")}) for doc in notes(30)]
    return train(docs, CONFIGS[name])


def spans_of(doc: Document) -> list[Span]:
    """Every run of up to three tokens."""
    starts, ends = doc.tokens[:, 0].tolist(), doc.tokens[:, 1].tolist()
    T = len(starts)
    return [Span(starts[a], ends[b], "NAME") for a in range(T) for b in range(a, min(a + 3, T))]


def moves(lattice: Lattice, path: tuple[int, ...]) -> float:
    return oracle.score(Lattice(lattice.start, lattice.trans, np.zeros_like(lattice.emit), lattice.end), path)


@every_config
def test_weights_add_up_to_the_margin_over_the_best_labelling_without_the_span(name: str) -> None:
    model, count = cascade_model(tagger(name).model), 0
    part = model.readings[-1]
    for text in TEXTS:
        doc = Document.make(text)
        assert len(doc.sentences) == 1
        lattice = part.batch(*model.observe([doc]))[0]
        paths = [(s, path, part.labels.runs(np.array(path, np.int32))) for s, path in oracle.listing(lattice).paths]
        for span in spans_of(doc):
            run = (doc.tokens[:, 0].tolist().index(span.start), doc.tokens[:, 1].tolist().index(span.end) + 1)
            mine = next(path for path in paths if any(found[:2] == run for found in path[2]))
            other = next(path for path in paths if not any(found[:2] == run for found in path[2]))
            why = tagger(name).explain(doc, span)
            assert why.margin == pytest.approx(mine[0] - other[0], abs=1e-4)
            (order,) = (one.weight for one in why.features if one.name == ORDER)
            assert order == pytest.approx(moves(lattice, mine[1]) - moves(lattice, other[1]), abs=1e-4)
            assert sum(one.weight for one in why.features) == pytest.approx(why.margin, abs=1e-9)
            tokens = [one for one in why.features if one.name != ORDER and one.start < one.end]
            assert {doc.text[one.start : one.end] for one in tokens} <= set(doc.words())
            near = [piece for piece in other[2] if piece[0] < run[1] and piece[1] > run[0]]
            found = [(one.start, one.end) for one in why.runner_up]
            assert found == [(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1])) for a, b, _ in near]
            count += 1
    assert count > 25


@every_config
def test_a_span_that_is_found_has_a_margin_above_zero_and_others_below(name: str) -> None:
    for text in TEXTS:
        doc = Document.make(text)
        model = cascade_model(tagger(name).model)
        seen, columns = model.observe([doc])
        part = model.readings[-1]
        runs = part.labels.runs(seen.gather(part.decode(seen, columns))[0])
        found = {(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1])) for a, b, _ in runs}
        for span in spans_of(doc):
            why = tagger(name).explain(doc, span)
            assert why.margin is not None
            assert (why.margin > 0) == ((span.start, span.end) in found)


def test_a_span_of_the_second_sentence_is_explained_by_its_own_words() -> None:
    doc = Document.make("No fever. Dr. Ann Penn came.")
    assert len(doc.sentences) == 2
    why = tagger("IOBES").explain(doc, Span(14, 22, "NAME"))
    assert why.margin is not None
    assert why.margin > 0
    quotes = " ".join(one.quote for one in why.features)
    assert "Penn" in quotes
    assert "Dr." in quotes
    assert "fever" not in quotes
    shapes = {(one.start, one.end, one.quote) for one in why.features if one.name == "shape"}
    assert shapes == {(14, 17, "Ann"), (18, 22, "Penn")}
    before = [one for one in why.features if one.name == "word at -1" and one.quote == "Dr."]
    assert [(one.start, one.end) for one in before] == [(10, 13)]
    weights = [abs(one.weight) for one in why.features]
    assert weights == sorted(weights, reverse=True)
    assert str(why).startswith("[14, 22) NAME: margin +")
    assert "Penn" not in str(why) + repr(why) + str(why.to_dict())
    assert "Penn" in why.in_words(with_text=True)
    assert "Penn" in str(why.to_dict(with_text=True))


@pytest.mark.parametrize("span", [(1, 3), (0, 2), (4, 11), (3, 4), (0, 24), (8, 9)])
def test_a_span_off_token_edges_or_over_two_sentences_is_refused(span: tuple[int, int]) -> None:
    doc = Document.make("Dr. Ann Penn. No fever.")
    with pytest.raises(DataError, match="not a run of whole tokens in one sentence") as caught:
        tagger("IOBES").explain(doc, Span(*span, "NAME"))
    assert "Penn" not in str(caught.value)


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(DataError, match="no label 'TOWN'; it has NAME"):
        tagger("IOBES").explain(Document.make("Dr. Ann"), Span(4, 7, "TOWN"))


def test_a_span_in_a_document_without_sentences_is_refused() -> None:
    doc = Document.make("Ann", tokens=[(0, 3)], sentences=[])
    with pytest.raises(DataError):
        tagger("IOBES").explain(doc, Span(0, 3, "NAME"))


def test_a_span_before_the_first_sentence_is_refused() -> None:
    doc = Document.make("Ann Dr. Bo", tokens=[(0, 3), (4, 7), (8, 10)], sentences=[(4, 10)])
    with pytest.raises(DataError):
        tagger("IOBES").explain(doc, Span(0, 3, "NAME"))
