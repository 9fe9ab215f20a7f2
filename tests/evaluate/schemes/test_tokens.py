"""Token scores and leakage, on cases worked by hand and against slower counting."""

from __future__ import annotations

import pytest
from hypothesis import given

from chaffinch.evaluate import Pair, evaluate, leakage
from chaffinch.evaluate.schemes.tokens import (
    binomial_interval,
    count_binary,
    count_tokens,
    poisson_interval,
    token_labels,
)
from chaffinch.text import Document, Span
from tests.evaluate.strategies import at, note, pairs

TEXT = "Ann Lee, 61, came."
#       tokens: Ann | Lee | , | 61 | , | came | .


def example_pair() -> Pair:
    gold = (at(TEXT, "Ann Lee,", "NAME"), at(TEXT, "61", "AGE"))
    found = (at(TEXT, "Ann", "NAME"), at(TEXT, "61, came", "NAME"))
    return Pair(Document.make(TEXT), gold, found)


def test_token_scores_by_hand() -> None:
    counts = count_tokens([example_pair()])
    # NAME: Ann right; 61, "," and came false; Lee and the first "," missed. AGE: 61 missed.
    assert dict(zip(counts.labels, counts.values[0].tolist(), strict=True)) == {"AGE": [0, 0, 1], "NAME": [1, 3, 2]}


def test_binary_scores_by_hand() -> None:
    # Ann and 61 are found under whatever label; "," and came are false; Lee and the first "," are missed.
    assert count_binary([example_pair()]).values.tolist() == [[[2, 2, 2]]]


def test_leakage_by_hand() -> None:
    found = leakage([example_pair(), Pair(Document.make("Ann"), (Span(0, 3, "NAME"),), (Span(0, 3, "DATE"),))])
    assert (found.documents, found.leaking, found.tokens, found.leaked) == (2, 1, 4, 1)  # a comma leaks nothing
    assert found.labels == {"AGE": (0, 1), "NAME": (1, 3)}
    assert (found.share, found.rate, found.recall) == (0.5, 500.0, 0.75)
    assert (found.characters, found.leaked_characters) == (7 + 2 + 3, 4)  # "Lee," without the blank before it
    assert found.share_interval == pytest.approx(binomial_interval(1, 2))
    assert found.rate_interval == pytest.approx([500 * x for x in poisson_interval(1)])


def test_leakage_comes_with_the_binary_scheme() -> None:
    report = evaluate([note(TEXT, [at(TEXT, "Lee", "NAME")])], [note(TEXT, [])], scheme="binary")
    assert report.leakage is not None
    assert report.as_dict()["leakage"]["leaked"] == 1
    assert "leaking documents: 1 of 1" in str(report)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # From tables of exact binomial limits: with 0 of n the upper one is 1 - 0.025 ** (1 / n).
    [(0, 10, 0.0, 1 - 0.025 ** (1 / 10)), (10, 10, 0.025 ** (1 / 10), 1.0), (1, 10, 0.0025, 0.4450)],
)
def test_clopper_pearson(successes: int, trials: int, low: float, high: float) -> None:
    assert binomial_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("events", "low", "high"), [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904)])
def test_garwood(events: int, low: float, high: float) -> None:
    assert poisson_interval(events) == pytest.approx((low, high), abs=5e-5)


@given(pairs())
def test_tokens_of_spans_agree_with_trying_each_token(one: Pair) -> None:
    expected = {
        (span.label, t)
        for span in one.gold
        for t, (start, end) in enumerate(one.document.tokens.tolist())
        if start < span.end and span.start < end
    }
    assert token_labels(one.document, one.gold) == expected


@given(pairs())
def test_no_prediction_leaks_all_and_gold_leaks_nothing(one: Pair) -> None:
    assert leakage([Pair(one.document, one.gold, one.gold)]).leaked_characters == 0
    everything = leakage([Pair(one.document, one.gold, ())])
    assert (everything.leaked, everything.leaked_characters) == (everything.tokens, everything.characters)
    assert 0 <= leakage([one]).leaked <= everything.leaked
