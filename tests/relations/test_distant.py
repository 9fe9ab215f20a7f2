"""Sentences labelled by known tuples, by names and by concepts, and the audit of such labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.relations import Schema
from chaffinch.relations.candidates import candidates
from chaffinch.relations.distant import audit, label, names_of, sample, wilson
from chaffinch.text import Document, Relation, Span
from tests.relations.made import SCHEMA, documents

SYMMETRIC = Schema("binds", ("a", "b"), ("P", "P"), symmetric=True)
ORDERED = Schema("binds", ("a", "b"), ("P", "P"))


def made(text: str, *marked: tuple[str, str], label_: str = "P") -> Document:
    """A document with a mention over each word, with its concept."""
    spans = [Span(text.index(word), text.index(word) + len(word), label_, concept=concept) for word, concept in marked]
    return Document.make(text, id="d", layers={"gold": spans})


def stated(doc: Document) -> list[tuple[int, ...]]:
    return [tuple(own.spans[0].start for own in relation.arguments) for relation in doc.relations]


def test_a_mention_is_known_by_its_words_and_its_concepts() -> None:
    doc = made("The  RENAL\nfailure", ("RENAL\nfailure", "D1|D2"))
    assert names_of(doc, doc.layers["gold"][0]) == {"renal failure", "D1", "D2"}


@pytest.mark.parametrize("known", [("aspirin", "Warfarin"), ("WARFARIN", "aspirin"), ("c1", "C2"), ("Aspirin", "C2")])
def test_a_symmetric_tuple_is_known_in_any_order_and_case(known: tuple[str, str]) -> None:
    doc = made("Aspirin binds warfarin.", ("Aspirin", "C1"), ("warfarin", "C2"))
    (found,) = label([doc], [known], SYMMETRIC)
    assert stated(found) == [(0, 14)]


def test_an_ordered_tuple_is_known_in_its_order_alone() -> None:
    doc = made("Aspirin binds warfarin.", ("Aspirin", ""), ("warfarin", ""))
    assert stated(label([doc], [("warfarin", "ASPIRIN")], ORDERED)[0]) == [(14, 0)]
    assert stated(label([doc], [("aspirin", "heparin")], ORDERED)[0]) == []


def test_white_space_in_names_is_of_no_account() -> None:
    doc = made("Renal\n failure and gout", ("Renal\n failure", ""), ("gout", ""))
    assert stated(label([doc], [(" renal   failure", "gout ")], ORDERED)[0]) == [(0, 19)]


def test_earlier_relations_of_this_name_go_and_others_stay() -> None:
    doc = made("Aspirin binds warfarin.", ("Aspirin", ""), ("warfarin", ""))
    spans = doc.layers["gold"]
    kept = replace(ORDERED, name="other").relation((spans[0], spans[1]))
    doc = replace(doc, relations=(ORDERED.relation((spans[0], spans[1])), kept))
    (found,) = label([doc], [("warfarin", "aspirin")], ORDERED)
    assert found.relations[0] == kept
    assert stated(found)[1:] == [(14, 0)]
    assert found.relations[1].source == "distant"


def test_tuples_that_cannot_be() -> None:
    with pytest.raises(DataError, match="3 members and the schema 2 roles"):
        label([], [("a", "b", "c")], ORDERED)
    with pytest.raises(ConfigError, match="no known tuples"):
        label([], [], ORDERED)


def test_three_members_are_found_together_or_not_at_all() -> None:
    schema = Schema("treats", ("drug", "dose", "disease"), ("P", "P", "P"))
    doc = made("Aspirin 20mg cures gout.", ("Aspirin", ""), ("20mg", ""), ("gout", ""))
    assert stated(label([doc], [("aspirin", "20mg", "gout")], schema)[0]) == [(0, 8, 19)]
    assert stated(label([doc], [("aspirin", "20mg", "rickets")], schema)[0]) == []


def test_a_sample_is_half_labelled_and_drawn_by_its_seed() -> None:
    docs = documents(10)
    drawn = sample(docs, SCHEMA, 8, seed=3)
    assert [own.stated for _, own in drawn] == [True] * 4 + [False] * 4
    assert drawn == sample(docs, SCHEMA, 8, seed=3) != sample(docs, SCHEMA, 8, seed=4)
    assert all(one in candidates(docs[n], SCHEMA) for n, one in drawn)


def test_an_audit_needs_both_kinds() -> None:
    docs = documents(4)
    right = [(one, True) for _, one in sample(docs, SCHEMA, 8) if one.stated]
    with pytest.raises(DataError, match="judged candidates of both kinds"):
        audit(right, docs, SCHEMA)


def test_an_audit_worked_by_hand() -> None:
    docs = documents(4)
    every = [one for doc in docs for one in candidates(doc, SCHEMA)]
    labelled = [one for one in every if one.stated]
    others = [one for one in every if not one.stated]
    judged = [(one, n > 0) for n, one in enumerate(labelled[:4])] + [(one, n == 0) for n, one in enumerate(others[:2])]
    found = audit(judged, docs, SCHEMA)
    assert (found.wrong.value, found.wrong.sample) == (0.25, 4)
    assert (found.missed.value, found.missed.sample) == (0.5, 2)
    assert found.stated == pytest.approx(len(labelled) * 0.75 + len(others) * 0.5)


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (1, 1), (3, 7), (50, 100), (999, 1000)])
def test_the_ends_of_an_interval_solve_its_equation(hits: int, count: int) -> None:
    """Wilson's interval holds the shares p with (hits/count - p)² <= z² p (1 - p) / count."""
    found = wilson(hits, count)
    for end in (found.low, found.high):
        if 0 < end < 1:
            assert (hits / count - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / count)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_relations_without_the_schema_are_no_statements() -> None:
    doc = replace(
        made("Aspirin binds warfarin.", ("Aspirin", ""), ("warfarin", "")), relations=(Relation("binds", ()),)
    )
    assert [one.stated for one in candidates(doc, ORDERED)] == [False, False]
