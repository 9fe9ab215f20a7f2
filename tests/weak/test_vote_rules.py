"""Rules on votes, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.weak.vote_rules import LongestSpan, SpanVote, TokenVote, Union, VoteRule
from tests.models.votes.votes import by_hand

VOTES = {
    "dictionary": [(1, 2, "A"), (4, 5, "B"), (7, 8, "A")],
    "twin": [(1, 2, "A"), (4, 5, "A"), (7, 8, "O")],
    "phrases": [(0, 3, "A"), (4, 6, "B")],
}


def spans(rule: VoteRule, votes: VoteMatrix) -> list[tuple[int, int, str]]:
    found = rule.spans(votes)
    return [(a, b, votes.names[n]) for a, b, n in zip(found.first.tolist(), found.end.tolist(), found.label.tolist(), strict=True)]  # fmt: skip # noqa: E501


def test_union_keeps_every_span_once() -> None:
    want = [(0, 3, "A"), (1, 2, "A"), (4, 5, "A"), (4, 5, "B"), (4, 6, "B"), (7, 8, "A")]
    assert spans(Union(), by_hand(9, VOTES)) == want


def test_span_vote_goes_by_votes_then_length() -> None:
    assert spans(SpanVote(), by_hand(9, VOTES)) == [(1, 2, "A"), (4, 6, "B"), (7, 8, "A")]


def test_longest_span_goes_by_length_then_votes() -> None:
    assert spans(LongestSpan(), by_hand(9, VOTES)) == [(0, 3, "A"), (4, 6, "B"), (7, 8, "A")]
    more = {"x": [(4, 5, "B")], "y": [(4, 5, "A")], "z": [(4, 5, "B")]}
    assert spans(LongestSpan(), by_hand(9, more)) == [(4, 5, "B")]


def test_equal_spans_go_to_the_first_place_then_the_first_label() -> None:
    for rule in (SpanVote(), LongestSpan()):
        assert spans(rule, by_hand(9, {"x": [(3, 5, "B")], "y": [(2, 4, "B")]})) == [(2, 4, "B")]
        assert spans(rule, by_hand(9, {"x": [(3, 5, "B")], "y": [(3, 5, "A")]})) == [(3, 5, "A")]


def test_token_vote_is_outside_only_where_none_votes_for_an_entity() -> None:
    # token 1: two say B, one says I; token 4: two say B of B, one B of A; token 7: one against one "not an entity"
    assert spans(TokenVote(), by_hand(9, VOTES)) == [(0, 1, "A"), (1, 3, "A"), (4, 6, "B"), (7, 8, "A")]


def test_ties_of_token_vote() -> None:
    votes = by_hand(4, {"x": [(0, 2, "A")], "y": [(1, 2, "A")]})
    assert spans(TokenVote(), votes) == [(0, 2, "A")]
    assert spans(TokenVote(ties="begin"), votes) == [(0, 1, "A"), (1, 2, "A")]
    with pytest.raises(ConfigError, match="ties must be one of"):
        TokenVote(ties="random")  # type: ignore[arg-type]


def test_a_tag_inside_that_goes_on_with_nothing_begins_a_span() -> None:
    votes = by_hand(5, {"x": [(0, 3, "A")], "y": [(0, 1, "B")], "z": [(0, 1, "B")]})
    assert spans(TokenVote(), votes) == [(0, 1, "B"), (1, 3, "A")]


def test_no_span_crosses_a_sentence() -> None:
    votes = by_hand(4, {"x": [(0, 4, "A")]}, bounds=(2,))
    for rule in (Union(), TokenVote(), SpanVote(), LongestSpan()):
        assert spans(rule, votes) == [(0, 2, "A"), (2, 4, "A")]


def test_without_votes_there_are_no_spans() -> None:
    for votes in (by_hand(4, {}), by_hand(0, {}), by_hand(4, {"x": []}), by_hand(4, {}, names=())):
        for rule in (Union(), TokenVote(), SpanVote(), LongestSpan()):
            assert spans(rule, votes) == []
        assert TokenVote().chances(votes).tolist() == [[1.0] + [0.0] * 2 * len(votes.names)] * len(votes)


def test_shares_of_votes() -> None:
    found = TokenVote().chances(by_hand(9, VOTES))
    np.testing.assert_allclose(found[1], [0, 2 / 3, 1 / 3, 0, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[4], [0, 1 / 3, 0, 2 / 3, 0], rtol=0, atol=1e-12)
    assert found[7].tolist() == [0, 1, 0, 0, 0]
    assert found[8].tolist() == [1, 0, 0, 0, 0]
