"""Taggers that contain others, whose layers they see; the shallow parser is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.kernels.linear import States, Target
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.linear import LONGEST, _in_pieces
from chaffinch.models.phrasehmm import chunker
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Span
from tests.kernels.linear_oracle import build
from tests.models.notes import cascade_model

NOUNS, VERBS = "gene protein cell factor receptor".split(), "binds blocks needs".split()


def sentences(count: int, seed: int = 0) -> list[Document]:
    """The N V the N, with parts of speech and phrases; the nouns of one document differ from those of the next."""
    rng, out = np.random.default_rng(seed), []
    for number in range(count):
        words = ["The", rng.choice(NOUNS) + str(number % 7), rng.choice(VERBS), "the", rng.choice(NOUNS), "."]
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        edges = [(int(start), int(start) + len(word)) for start, word in zip(starts, words, strict=False)]
        pos = [Span(a, b, tag) for (a, b), tag in zip(edges, ["DT", "NN", "VBZ", "DT", "NN", "."], strict=True)]
        phrases = [Span(edges[0][0], edges[1][1], "NP"), Span(*edges[2], "VP"), Span(edges[3][0], edges[4][1], "NP")]
        text = " ".join(words)
        made = Document.make(text, id=f"{seed}-{number}", tokens=edges, layers={"pos": pos, "chunks": phrases})
        out.append(made)
    return out


@pytest.fixture(scope="module")
def parser() -> Tagger:
    return chunker.fit(sentences(60), notes="invented")


def test_the_shallow_parser_adds_both_layers_to_bare_text(parser: Tagger) -> None:
    for doc in sentences(20, seed=1):
        found = parser(replace(doc, layers={}))
        assert found.layers["pos"] == doc.layers["pos"]
        assert found.layers["chunks"] == doc.layers["chunks"]


def test_a_layer_that_is_there_already_stays(parser: Tagger) -> None:
    doc = sentences(1, seed=2)[0]
    strange = tuple(replace(span, label="NN") for span in doc.layers["pos"])
    assert parser(replace(doc, layers={"pos": strange})).layers["pos"] == strange


def test_a_saved_parser_reads_as_before(parser: Tagger, tmp_path: Path) -> None:
    parser.save(tmp_path / "parser.cfm")
    again = load(tmp_path / "parser.cfm")
    docs = [replace(doc, layers={}) for doc in sentences(10, seed=3)]
    assert list(again.annotate(docs)) == list(parser.annotate(docs))
    assert again.layer == "chunks"
    assert [step.layer for step in again.steps] == ["pos", "chunks"]
    assert again.manifest.notes == "invented"


def test_a_tagger_brings_the_parser_it_learnt_with(parser: Tagger, tmp_path: Path) -> None:
    docs = [
        replace(doc, layers={"gold": (Span(doc.tokens[1, 0], doc.tokens[1, 1], "AGENT"),)}) for doc in sentences(30)
    ]
    train(docs, Cascade(epochs=3), layer="gold", before=parser).save(tmp_path / "agent.cfm")
    tagger = load(tmp_path / "agent.cfm")
    assert cascade_model(tagger.model).config.layers == ("pos", "chunks")
    found = tagger(Document.make("The enzyme9 cleaves the cell ."))
    assert set(found.layers) == {"pos", "chunks", "cascade"}
    assert [found.text[span.start : span.end] for span in found.layer("cascade")] == ["enzyme9"]


def test_a_layer_that_serves_as_a_feature_must_be_there() -> None:
    docs = [replace(doc, layers={"gold": doc.layers["chunks"]}) for doc in sentences(5)]
    with pytest.raises(DataError, match="no layer 'pos'"):
        train(docs, Cascade(layers=("pos",)), layer="gold")


def test_long_sentences_are_learnt_in_pieces_cut_between_spans() -> None:
    T = 5 * LONGEST
    types = np.ones(T + 6, np.int32)
    begins, ends = np.array([1, T + 2], np.int32), np.array([T + 1, T + 5], np.int32)
    types[[0, *ends]] = 0
    small = build(np.random.default_rng(0), 3, [2]).seen
    seen = small._replace(types=types, begins=begins, ends=ends, columns=np.full((T + 6, 1), -1, np.int32))
    moves = np.ones((5, 3), np.bool_)
    moves[3, 2] = moves[4, 1] = False  # state 2 may not begin, state 1 may not end
    states = States.of(np.arange(3), moves)
    gold = np.random.default_rng(1).integers(0, 3, len(types)).astype(np.int32)
    empty = Target(gold, np.zeros_like(gold), np.zeros((0, states.W), np.float32), np.zeros(0, np.bool_))
    pieces = _in_pieces(seen, empty, states)
    assert pieces.longest <= LONGEST
    assert pieces.places.tolist() == seen.places.tolist()
    inner = [int(begin) for begin in pieces.begins if begin not in begins]
    assert len(inner) >= 4
    assert all(gold[n] != 2 and gold[n - 1] != 1 for n in inner)
