"""Curves and calibration against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.evaluate import Pair
from chaffinch.evaluate.ranking import ScoredSpans, calibration, collect_scores, curve
from chaffinch.text import Document, Span

metrics = pytest.importorskip("sklearn.metrics")
calibrations = pytest.importorskip("sklearn.calibration")

SCORED = st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=30)


def from_tenths(scored: list[tuple[int, bool]]) -> ScoredSpans:
    right = np.array([int(hit) for _, hit in scored])
    return ScoredSpans(np.array([tenths / 10 for tenths, _ in scored]), right, int(right.sum()))


@given(SCORED)
def test_average_precision_agrees_with_scikit_learn(scored: list[tuple[int, bool]]) -> None:
    found = from_tenths(scored)
    if found.gold:
        theirs = metrics.average_precision_score(found.right, found.scores)
        assert curve(found).average_precision == pytest.approx(theirs, abs=1e-12)


def test_spans_that_nobody_predicted_lower_the_curve() -> None:
    found = curve(ScoredSpans(np.array([0.9, 0.8, 0.8]), np.array([1, 0, 1]), 4))
    # At 0.9: P 1/1, R 1/4. At 0.8 (a tie): P 2/3, R 2/4. Average precision 1 * 1/4 + 2/3 * 1/4.
    np.testing.assert_allclose(found.precision, [1, 2 / 3])
    np.testing.assert_allclose(found.recall, [0.25, 0.5])
    assert found.average_precision == pytest.approx(5 / 12)


@given(SCORED)
def test_brier_and_bins_agree_with_scikit_learn(scored: list[tuple[int, bool]]) -> None:
    # Off the bins' edges: scikit-learn closes bins on the right, we close them on the left.
    found = from_tenths([(min(tenths, 9), hit) for tenths, hit in scored])
    found = ScoredSpans(found.scores + 0.05, found.right, found.gold)
    ours = calibration(found)
    assert ours.brier == pytest.approx(metrics.brier_score_loss(found.right, found.scores), abs=1e-12)
    accuracy, confidence = calibrations.calibration_curve(found.right, found.scores, n_bins=10)
    np.testing.assert_allclose(ours.accuracy, accuracy, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.confidence, confidence, rtol=0, atol=1e-12)


def test_calibration_error_by_hand() -> None:
    found = ScoredSpans(np.array([0.95, 0.95, 0.55, 1.0]), np.array([1, 0, 1, 1]), 3)
    # Last bin: 3 spans, mean score 2.9 / 3, right 2 / 3, gap 0.3. Sixth bin: 1 span, gap 0.45.
    assert calibration(found).error == pytest.approx(0.75 * 0.3 + 0.25 * 0.45)


def test_scores_that_are_no_probabilities_are_refused() -> None:
    for score in (1.5, -0.1, float("nan")):
        with pytest.raises(DataError, match="1 of 1 scores"):
            calibration(ScoredSpans(np.array([score]), np.array([1]), 1))


def test_ranked_knows_what_is_right_and_whether_scores_vary() -> None:
    one = Pair(Document.make("Ann Lee"), (Span(0, 3, "N"),), (Span(0, 3, "N", 0.9), Span(4, 7, "N", 0.4)))
    found = collect_scores([one])
    assert (found.scores.tolist(), found.right.tolist(), found.gold, found.varies) == ([0.9, 0.4], [1, 0], 1, True)
    assert not collect_scores([Pair(one.document, one.gold, one.gold)]).varies
    assert not collect_scores([]).varies
    assert curve(collect_scores([])).average_precision == 0.0
