"""Relations between concepts of whole documents, by hand; and arguments that a phrase HMM puts together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.fit import Sentence
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.relations import Extraction, Schema, train_documents, train_joint
from chaffinch.relations.candidates import Mention
from chaffinch.relations.concepts import concepts_of, relation_concepts
from chaffinch.relations.joint.extractor import PairingRule, assemble_tuples
from chaffinch.relations.joint.segments import Line, Piece, lines
from chaffinch.text import Argument, Document, Relation, Span
from tests.relations.made import SCHEMA, document, documents, with_concepts

PAIR = Schema("binds", ("a", "b"), ("P", "P"), symmetric=True)


def of_concepts(one: str, other: str, label: str = "localises") -> Document:
    arguments = (Argument("Protein", (), one), Argument("Location", (), other))
    return Document.make("x", relations=[Relation(label, arguments)])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("P1", "L1", {("P1", "L1")}),
        ("P1|P2", "L1", {("P1", "L1"), ("P2", "L1")}),
        ("P1", "-1", set()),
        ("P1,P2", "L1;L2", {(a, b) for a in ("P1", "P2") for b in ("L1", "L2")}),
    ],
)
def test_stated_concepts_of_arguments(one: str, other: str, expected: set[tuple[str, str]]) -> None:
    assert relation_concepts(of_concepts(one, other), SCHEMA) == expected
    assert relation_concepts(of_concepts(one, other, "else"), SCHEMA) == set()


def test_stated_concepts_of_mentions_and_of_symmetric_relations() -> None:
    spans = (Span(0, 1, "P", concept="Z"), Span(2, 3, "P", concept="A|B"))
    doc = Document.make("a b", relations=[Relation("binds", (Argument("a", spans[:1]), Argument("b", spans[1:])))])
    assert relation_concepts(doc, PAIR) == {("A", "Z"), ("B", "Z")}
    assert relation_concepts(doc, replace(PAIR, symmetric=False)) == {("Z", "A"), ("Z", "B")}


def test_a_finding_has_all_mentions_of_its_concepts_and_of_its_types_alone() -> None:
    extractor = train_documents([with_concepts(doc) for doc in documents(15)], SCHEMA, Extraction(folds=2))
    doc = with_concepts(next(doc for doc in (document(n, seed=5) for n in range(9)) if doc.relations))
    named = doc.relations[0].arguments[0].concept
    odd = Span(0, 3, "Location", concept=named)  # a place that shares the concept of a protein
    doc = replace(doc, layers={"gold": tuple(sorted((*doc.layers["gold"], odd)))})
    found = [one for one in extractor.extract(doc) if one.relation.arguments[0].concept == named]
    assert found
    for one in found:
        for argument, kind in zip(one.relation.arguments, SCHEMA.types, strict=True):
            assert {span.label for span in argument.spans} == {kind}
            assert all(argument.concept in concepts_of(span) for span in argument.spans)


def test_documents_without_concepts_teach_nothing() -> None:
    with pytest.raises(DataError, match="check the concepts of mentions and relations"):
        train_documents(documents(6), SCHEMA, Extraction(folds=2))
    with pytest.raises(ConfigError, match="the mode joint is not supported"):
        train_documents(documents(2), SCHEMA, Extraction(mode="joint"))


def reading(labels: tuple[int, ...], *, lead: float = 1.0) -> PhraseReading:
    chances = np.array([[mask >> role & 1 for role in (0, 1)] for mask in labels], float)
    nothing: Any = None  # fields that putting together does not look at
    return PhraseReading(lead, 0.0, labels, True, 0.0, nothing, nothing, chances, nothing)


def line_of(doc: Document, cuts: list[tuple[int, int]]) -> Line:
    """A sentence cut into pieces of tokens; every token with a span is a mention."""
    spans = doc.layers["gold"]
    mentions = [
        Mention(span, *run) for span, run in zip(spans, map(tuple, doc.token_ranges(spans).tolist()), strict=True)
    ]
    pieces = [Piece("NP", a, b, ["w"], tuple(own for own in mentions if a <= own.first < b)) for a, b in cuts]
    return Line(pieces, Sentence(["NP"] * len(cuts), [["w"]] * len(cuts), [0] * len(cuts), None), set())


def starts(found: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(span.start for span in own.spans) for own in found]


def test_nearest_keeps_every_mention_of_a_segment() -> None:
    doc = Document.make("A1 B2 in C3 D4", layers={"gold": [Span(n, n + 2, "P") for n in (0, 3)] + [Span(9, 11, "Q")]})
    schema = Schema("r", ("p", "q"), ("P", "Q"))
    line = line_of(doc, [(0, 2), (2, 3), (3, 4), (4, 5)])
    for pairing in ("nearest", "cross", "order", "posterior"):
        config = Extraction(mode="joint", pairing=pairing)
        assert starts(assemble_tuples(doc, line, reading((1, 0, 2, 0)), schema, config)) == [(0, 9), (3, 9)]


def test_nearest_pairs_by_segments() -> None:
    spans = [Span(0, 2, "P"), Span(3, 5, "Q"), Span(6, 8, "Q"), Span(9, 11, "P")]
    doc = Document.make("A1 B2 C3 D4", layers={"gold": spans})
    line = line_of(doc, [(0, 1), (1, 2), (2, 3), (3, 4)])
    config = Extraction(mode="joint", pairing="nearest")
    found = assemble_tuples(doc, line, reading((1, 2, 2, 1)), Schema("r", ("p", "q"), ("P", "Q")), config)
    assert starts(found) == [(0, 3), (9, 6)]


def test_a_rule_asks_for_a_lead_and_for_every_role() -> None:
    rule = PairingRule(0.5, 0.5)
    assert rule.apply(reading((1, 2)), 2).extracted
    assert not rule.apply(reading((1, 2), lead=0.4), 2).extracted
    assert not rule.apply(reading((1, 1)), 2).extracted
    assert not rule.apply(reading((1, 2), lead=-np.inf), 2).extracted
    assert rule.apply(reading((3, 0)), 2).labels == (3, 0)


def test_lines_mask_mentions_and_label_the_arguments_of_stated_tuples() -> None:
    doc = document(1)
    config = Extraction(mode="joint", hmm=PhraseHMM(representation="token"))
    found = list(lines(doc, SCHEMA, config))
    assert len(found) == len(doc.sentences)
    assert sum(len(line.stated) for line in found) == len(doc.relations)
    for line in found:
        words = [word for piece in line.pieces for word in piece.words]
        assert {"<Protein>", "<Location>"} <= set(words)
        assert not any(word.startswith("abc") for word in words)
        assert (line.input.labels.count(1), line.input.labels.count(2)) == (len(line.stated), len(line.stated))
    bare = list(lines(doc, SCHEMA, replace(config, mask=False)))
    assert not any("<Protein>" in piece.words for line in bare for piece in line.pieces)


@pytest.mark.parametrize("pairing", ["cross", "nearest", "posterior", "order"])
def test_joint_training_finds_the_toy_grammar_by_every_pairing(pairing: str) -> None:
    hmm = PhraseHMM(representation="token")
    config = Extraction(mode="joint", hmm=hmm, folds=2, pairing=pairing)  # type: ignore[arg-type]  # one of the known
    extractor = train_joint(documents(8), SCHEMA, config)
    held = [document(n, seed=9) for n in range(4)]
    truth = {(doc.id, own.arguments) for doc in held for own in doc.relations}
    found = {(doc.id, own.arguments) for doc in held for own in extractor.extract(doc)}
    assert len(truth & found) >= 0.8 * len(truth)
    assert all(own.label == "localises" for doc in extractor.annotate(held) for own in doc.relations)


def test_joint_training_needs_two_patients() -> None:
    docs = [replace(doc, group="one") for doc in documents(4)]
    with pytest.raises(DataError, match="belong to one patient"):
        train_joint(docs, SCHEMA, Extraction(mode="joint", hmm=PhraseHMM(representation="token")))
