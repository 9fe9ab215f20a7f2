"""Ranking, reports and scores of extractors, against figures counted by hand."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Gap, Rates, RelationReport, Summary, TupleScores, gap
from chaffinch.relations.evaluate.scoring import score
from chaffinch.text import Document
from tests.relations.made import SCHEMA

CASES = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.8, 0.9]), st.booleans()), min_size=1, max_size=12)


def split(cases: list[tuple[float, bool]]) -> tuple[Any, Any]:
    return np.array([score for score, _ in cases]), np.array([right for _, right in cases])


def by_pairs(scores: Any, right: Any) -> float:
    """The area under the ROC curve: every right candidate against every wrong one."""
    pairs = list(product(scores[right], scores[~right]))
    return sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs) if pairs else 0.5


def at(threshold: float, scores: Any, right: Any, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1 of the candidates from a threshold on."""
    taken = scores >= threshold
    hits, found = int((taken & right).sum()), int(taken.sum())
    return (
        hits / found if found else 0.0,
        hits / gold if gold else 0.0,
        2 * hits / (found + gold) if found + gold else 0.0,
    )


@given(CASES, st.integers(0, 3))
def test_quality_and_thresholds_agree_with_trying_every_threshold(cases: list[tuple[float, bool]], missed: int) -> None:
    scores, right = split(cases)
    gold = int(right.sum()) + missed
    levels = sorted(set(scores.tolist()), reverse=True)
    assert ranking.auc(scores, right) == pytest.approx(by_pairs(scores, right))
    tried = [at(level, scores, right, gold) for level in levels]
    best = max(f1 for *_, f1 in tried)
    chosen = ranking.best_threshold(scores, right, gold)
    assert at(chosen, scores, right, gold)[2] == pytest.approx(best) or best == 0
    own = [at(level, scores, right, int(right.sum())) for level in levels]
    quality = ranking.quality(scores, right, recall=0.5)
    assert quality.f1 == pytest.approx(max(f1 for *_, f1 in own))
    reached = [precision for precision, recall, _ in own if recall >= 0.5]
    assert quality.precision_at == pytest.approx(reached[0] if reached else 0.0)
    for wanted in (0.25, 0.5, 1.0):
        fitting = [level for level, (precision, *_) in zip(levels, own, strict=True) if precision >= wanted]
        if fitting:
            assert ranking.threshold_for(scores, right, wanted) == min(fitting)
        else:
            with pytest.raises(ConfigError, match="no threshold gives precision"):
                ranking.threshold_for(scores, right, wanted)


def test_a_precision_that_cannot_be() -> None:
    for wrong in (0.0, -1.0, 1.5):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            ranking.threshold_for(np.array([0.5]), np.array([True]), wrong)


def test_rates_by_hand() -> None:
    own = Rates(3, 4, 6)
    assert (own.precision, own.recall, own.f1) == (0.75, 0.5, 0.6)
    assert Rates(0, 0, 0).facts() == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_the_gap_of_a_scoring_with_itself_is_none() -> None:
    scores, right = np.array([0.9, 0.1, 0.5, 0.4]), np.array([True, False, True, False])
    assert gap(scores, scores, right, ["a", "b", "c", "d"]) == Gap(0.0, 0.0, 0.0)
    alone = gap(scores, -scores, right, ["a"] * 4)
    assert (alone.value, alone.low, alone.high) == (1.0, 1.0, 1.0)


def test_the_gap_is_the_difference_of_areas_and_lies_in_its_interval() -> None:
    rng = np.random.default_rng(1)
    right = rng.random(60) < 0.5
    own, other = right + rng.normal(size=60), 0.5 * right + rng.normal(size=60)
    found = gap(own, other, right, [str(n // 3) for n in range(60)], seed=2)
    assert found.value == pytest.approx(by_pairs(own, right) - by_pairs(other, right))
    assert found.low < found.value < found.high
    assert found == gap(own, other, right, [str(n // 3) for n in range(60)], seed=2)


def test_reports_say_when_something_simpler_is_better() -> None:
    quality = ranking.Quality(0.8, 0.7, 0.9, 0.75)
    report = RelationReport(2, 10, 4, 1, 1.0, quality, quality, Gap(-0.1, -0.2, 0.0), floor=2)
    assert report.loses
    assert "The bag of words ranks better" in str(report)
    assert "2 documents or more" in str(report)
    assert report.facts()["own"]["auc"] == 0.8
    lost = Summary(2, 1, Rates(1, 4, 4), Rates(4, 8, 4), 1, "phrase")
    assert lost.loses
    assert "To call every tuple of entities related is better" in str(lost)
    assert "words of single documents" in str(lost)
    assert lost.facts()["every"] == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}
    bare = Summary(2, 1, Rates(1, 4, 4), None, 1, "phrase", report)
    assert not bare.loses
    assert bare.facts()["every"] is None
    assert bare.facts()["sentences"]["loses"]


@dataclass(frozen=True)
class Fixed:
    """An extractor whose judgement of each document is known."""

    answers: tuple[TupleScores, ...]
    threshold: float = 0.5
    schema: Any = SCHEMA

    def score_tuples(self, _docs: Any) -> Any:
        return iter(self.answers)


def answer(scores: list[float], right: list[bool], stated: int) -> TupleScores:
    return TupleScores(np.array(scores), np.array(right, bool), stated)


def test_scores_of_documents_counted_by_hand() -> None:
    answers = (answer([0.9, 0.6, 0.2], [True, False, True], 3), answer([], [], 1), answer([0.7], [True], 1))
    docs = [Document.make("x", id=str(n)) for n in range(3)]
    found = score(Fixed(answers), docs, draws=50)  # type: ignore[arg-type]  # it has what is asked of it
    assert (found.documents, found.stated, found.candidates, found.extracted) == (3, 5, 4, 3)
    assert found.precision.value == pytest.approx(2 / 3)
    assert found.recall.value == pytest.approx(2 / 5)
    assert found.f1.value == pytest.approx(2 * 2 / (3 + 5))
    assert found.auc.value == pytest.approx(2 / 3)
    for figure in (found.precision, found.recall, found.f1):
        assert 0 <= figure.low <= figure.value <= figure.high <= 1
    assert found.curve.recall.max() == pytest.approx(3 / 5), "what is no candidate stays missed"
    assert len(found.facts()["curve"]) == 4


def test_one_document_has_no_interval_and_none_stated_is_refused() -> None:
    doc = Document.make("x")
    found = score(Fixed((answer([0.9], [True], 1),)), [doc])  # type: ignore[arg-type]  # it has what is asked of it
    assert (found.f1.low, found.f1.high) == (1.0, 1.0)
    with pytest.raises(DataError, match="state no relation 'localises'"):
        score(Fixed((answer([0.9], [False], 0),)), [doc])  # type: ignore[arg-type]  # it has what is asked of it
