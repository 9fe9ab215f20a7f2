"""Scores made of keys of pieces are those of rows, in which every name is spelt out."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch.relations import Extraction, train
from chaffinch.relations.entities.frames_of import read_candidates
from chaffinch.relations.features import vectors
from chaffinch.relations.features._compiled._pieces import LITERALS, SIGNS, PieceNumbers
from chaffinch.relations.features.frames import Frame, Part
from chaffinch.relations.features.vectors import VIEWS, FeatureColumns
from tests.relations.made import SCHEMA, documents

STEMS = (*"the of in a not no nor , , ( ) / - & | e w + < > : <ent> <ent> <num> bind local é 𝛼 and or 1 12 -3".split(),)
TAGS = ("NN", "VBZ", "VB", "IN", "TO", "CC", "NNP", "X", "(")
TYPES = ("NP", "VP", "PP", "I", ":", "(", "SBAR")


def drawn(rng: np.random.Generator, arguments: int, sense: str) -> Frame:
    """A frame drawn at random; arguments may share a unit."""
    size = int(rng.integers(1, 40))
    places = rng.integers(size, size=arguments)
    stems = [STEMS[n] for n in rng.integers(len(STEMS), size=size)]
    for k, place in enumerate(places):
        stems[place] = f"<{k + 1}>"
    cuts = sorted({0, size, *rng.integers(size, size=size // 2).tolist()})
    kinds = rng.integers(len(TYPES), size=len(cuts))
    parts = [Part(TYPES[n], a, b) for n, a, b in zip(kinds, cuts, cuts[1:], strict=False)]
    facts = (("same name", "overlap"), ("overlap",), ())[int(rng.integers(3))]
    return Frame(
        stems, [TAGS[n] for n in rng.integers(len(TAGS), size=size)], parts, tuple(places.tolist()),
        tuple(sorted(places.tolist())), sense, int(rng.integers(2, 20)),
        tuple(rng.integers(6, size=arguments).tolist()), facts,
    )  # fmt: skip


def by_rows(frames: list[Frame], columns: FeatureColumns, values: list[float], bias: float) -> list[float]:
    """The log-odds by the names of all features."""
    return [bias + sum(value * values[n] for n, value in vectors.row(frame, columns)) for frame in frames]


@pytest.mark.parametrize("view", [("words",), ("statistics",), ("paths",), tuple(VIEWS)])
@pytest.mark.parametrize(("arguments", "sense"), [(2, "0>1"), (2, ""), (3, "2>0>1"), (11, "")])
def test_scores_are_those_of_rows(view: tuple[str, ...], arguments: int, sense: str) -> None:
    rng = np.random.default_rng(0)
    frames = [drawn(rng, arguments, sense) for _ in range(60)]
    for known in (frames, frames[::2]):
        columns = vectors.learn([(frame, "") for frame in known], view, floor=1)
        values = rng.normal(size=len(columns))
        found = vectors.Scorer(columns, values, 0.25)(frames, PieceNumbers())
        np.testing.assert_allclose(found, by_rows(frames, columns, values.tolist(), 0.25), rtol=0, atol=1e-9)


@pytest.mark.parametrize("representation", ["phrase", "pos", "token"])
def test_scores_of_documents_are_those_of_rows(representation: str) -> None:
    config = Extraction(views=tuple(VIEWS), representation=representation)  # type: ignore[arg-type]  # one of the known
    extractor = train(documents(6), SCHEMA, config)
    found = read_candidates(documents(9), SCHEMA, None, extractor.representation)
    frames = [frame for own in found for frame in own.frames]
    values, bias = extractor.weights
    scores = extractor.scorer(frames, PieceNumbers())
    np.testing.assert_allclose(scores, by_rows(frames, extractor.columns, values.tolist(), bias), rtol=0, atol=1e-9)
    assert extractor.scorer([], PieceNumbers()).tolist() == []


def test_pieces_may_be_the_texts_of_literals_and_grow() -> None:
    number = PieceNumbers()
    own = [number[text] for text in (*LITERALS, *SIGNS)]
    assert min(own) >= len(LITERALS) + len(SIGNS)
    many = [number[f"word {n}"] for n in range(10_000)]
    assert len(set(many)) == 10_000
    assert number["word 7"] == many[7]
    pieces = number.pieces
    assert pieces.key[number["before "]] == pieces.key[LITERALS.index("before ")]
    assert len(set(pieces.key[many].tolist())) == 10_000
