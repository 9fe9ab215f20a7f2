"""Schemas, candidates and frames, against cases worked by hand."""

from __future__ import annotations

import pytest

from chaffinch import Document, Relation, Span
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.phrasehmm.segments import add_parses, parse
from chaffinch.relations import Schema
from chaffinch.relations.candidates import candidates, scenes
from chaffinch.relations.features import statistics as stats
from chaffinch.relations.features import words
from chaffinch.relations.features.frames import Frame, Part, frames
from chaffinch.relations.joint.pairing import tuples
from chaffinch.text import Argument

PAIR = Schema("binds", ("a", "b"), ("P", "P"), symmetric=True)


def made(text: str, marked: str, relations: tuple[Relation, ...] = ()) -> Document:
    """A document with a span P over each word named."""
    spans = [Span(text.index(word), text.index(word) + len(word), "P") for word in marked.split()]
    return Document.make(text, id="d", layers={"gold": spans}, relations=relations)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": ("a",)}, "two roles"),
        ({"roles": ("a", "a")}, "all different"),
        ({"types": ("P",)}, "one type for each role"),
        ({"symmetric": True, "types": ("P", "Q")}, "one type of entity"),
        ({"name": ""}, "needs a name"),
        ({"name": 3}, "name must be text, got int"),
        ({"roles": "ab"}, "roles must be a list of texts, got str"),
        ({"roles": ("a", "")}, "roles must be a list of texts, none of them empty"),
        ({"types": "PQ"}, "types must be a list of texts, got str"),
        ({"symmetric": "yes"}, "symmetric must be true or false, got 'yes'"),
    ],
)
def test_a_schema_that_cannot_be(changes: dict[str, object], message: str) -> None:
    given = {"name": "binds", "roles": ("a", "b"), **changes}
    with pytest.raises(ConfigError, match=message):
        Schema(**given)  # type: ignore[arg-type]  # what is wrong is the point


def test_symmetric_pairs_are_looked_for_once_and_never_with_themselves() -> None:
    doc = made("A1 binds B2 and C3.", "A1 B2 C3")
    assert [tuple(s.start for s in one.spans) for one in candidates(doc, PAIR)] == [(0, 9), (0, 16), (9, 16)]
    ordered = Schema("binds", ("a", "b"), ("P", "P"))
    assert len(candidates(doc, ordered)) == 6


def test_a_stated_pair_counts_in_either_order_if_symmetric() -> None:
    spans = (Span(9, 11, "P"), Span(0, 2, "P"))
    stated = Relation("binds", (Argument("x", spans[:1]), Argument("y", spans[1:])))
    doc = made("A1 binds B2.", "A1 B2", (stated,))
    assert [one.stated for one in candidates(doc, PAIR)] == [True]
    assert [one.stated for one in candidates(doc, Schema("binds", ("a", "b"), ("P", "P")))] == [False, True]


def test_pairs_do_not_cross_sentences_and_one_entity_gives_none() -> None:
    assert candidates(made("A1 is here. B2 is there.", "A1 B2"), PAIR) == []
    assert candidates(made("A1 is here.", "A1"), PAIR) == []


def test_too_many_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaffinch.relations.candidates.LIMIT", 3)
    with pytest.raises(DataError, match="candidates in one sentence"):
        candidates(made("A1 B2 C3", "A1 B2 C3"), PAIR)


def test_roles_are_told_by_the_labels_of_mentions() -> None:
    schema = Schema("localises", ("protein", "place"), ("P", "L"))
    place, protein = Argument("Arg1", (Span(0, 1, "L"),)), Argument("Arg2", (Span(2, 3, "P"),))
    assert schema.arguments(Relation("localises", (place, protein))) == (protein, place)
    assert schema.arguments(Relation("other", (place, protein))) is None
    assert schema.arguments(Relation("localises", (place, place))) is None


def test_overlapping_arguments_have_units_of_their_own() -> None:
    text = "The A1 receptor is blue."
    doc = Document.make(text, layers={"gold": [Span(4, 6, "P"), Span(4, 15, "P")]})
    (doc,) = add_parses([doc])
    (scene,) = scenes(doc, PAIR, layer="gold")
    (frame,) = frames(doc, scene, parse(doc, scene.first, scene.end), PAIR)
    assert frame.stems == ["the", "<1>", "<2>", "is", "blue", "."]
    assert "overlap" in frame.facts


def frame_of(stems: str, places: tuple[int, ...]) -> Frame:
    """A frame of words; each is a segment of type W."""
    own = stems.split()
    parts = [Part("W", n, n + 1) for n in range(len(own))]
    return Frame(own, ["X"] * len(own), parts, places, tuple(sorted(places)), "", 2, (0, 0), ())


def test_words_of_a_case_worked_by_hand() -> None:
    found = sorted(words.features(frame_of("thus <1> bind <2> well", (1, 3))))
    assert found == [
        "after well", "before thus", "between bind", "distance 2", "mentions 2", "pair <1> bind", "pair bind <2>",
    ]  # fmt: skip


def test_statistics_of_a_case_worked_by_hand() -> None:
    found = [name.strip() for name in stats.features(frame_of("thus <1> <2> well", (1, 2)))]
    assert found == [
        "BEGIN > W before", "W before: thus", "W before > W 1", "W 1: <1>", "W 1 > W 2", "W 2: <2>", "W 2 > W after",
        "W after: well", "W after > END",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "pairing", "expected"),
    [
        ([[1, 4], [7]], "order", [(1, 7), (4, 7)]),
        ([[1], [2, 5, 9]], "order", [(1, 2), (1, 5), (1, 9)]),
        ([[1, 6], [3, 8]], "order", [(1, 3), (6, 8)]),
        ([[], [3, 8]], "order", []),
        ([[1, 6], [3, 8]], "cross", [(1, 3), (1, 8), (6, 3), (6, 8)]),
        ([[1, 9], [3, 8]], "nearest", [(1, 3), (9, 8)]),
        ([[1], [3, 8], [4]], "order", [(1, 3, 4), (1, 8, 4)]),
    ],
)
def test_assembly(found: list[list[int]], pairing: str, expected: list[tuple[int, ...]]) -> None:
    assert tuples(found, pairing) == expected  # type: ignore[arg-type]  # the names are literals


def test_assembly_by_score() -> None:
    best: dict[tuple[int, ...], float] = {(1, 8): 1.0, (6, 3): 1.0}
    assert tuples([[1, 6], [3, 8]], "posterior", lambda chosen: best.get(chosen, 0.0)) == [(1, 8), (6, 3)]
    with pytest.raises(ConfigError, match="needs a score"):
        tuples([[1], [2]], "posterior")
