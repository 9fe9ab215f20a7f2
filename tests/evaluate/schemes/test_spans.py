"""Span scores against other people's scorers, listing every matching, and cases worked by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from nervaluate import Evaluator
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as lenient_seqeval
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_seqeval
from seqeval.scheme import IOB2

from chaffinch.evaluate import Pair, Pairs, Table, score
from chaffinch.evaluate.schemes.spans import count_exact, count_relaxed, count_strict, overlap_indices
from chaffinch.text import Document, Span
from chaffinch.text.tags import Run, runs, valid_runs
from tests.evaluate.strategies import pairs

Tags = list[str]
LABELS = ("protein", "DNA", "cell_type")


def drawn_tags(rng: np.random.Generator, letters: str, length: int) -> Tags:
    """Tags at random: many are broken."""
    kinds = ["O", *(f"{letter}-{label}" for letter in letters for label in LABELS)]
    chance = np.array([0.3, *[0.7 / (len(kinds) - 1)] * (len(kinds) - 1)])
    return [str(tag) for tag in rng.choice(kinds, size=length, p=chance)]


@cache
def drawn_sequences(number: int, letters: str) -> tuple[list[Tags], list[Tags]]:
    """Gold and predicted tags; half of the predicted ones are gold with a few tags changed."""
    rng = np.random.default_rng(5)
    gold = [drawn_tags(rng, letters, int(rng.integers(1, 13))) for _ in range(number)]
    found = []
    for tags in gold:
        other = drawn_tags(rng, letters, len(tags))
        keep = rng.random(len(tags)) < (0.85 if rng.random() < 0.5 else 0.0)
        found.append([a if kept else b for a, b, kept in zip(tags, other, keep, strict=True)])
    return gold, found


def tokens_as_characters(found: list[Run]) -> tuple[Span, ...]:
    return tuple(Span(begin, end, label) for begin, end, label in found)


def strict_table(gold: list[list[Run]], found: list[list[Run]]) -> Table:
    document = Document.make("x" * 13)
    items = tuple(
        Pair(document, tokens_as_characters(a), tokens_as_characters(b)) for a, b in zip(gold, found, strict=True)
    )
    return score(Pairs(items), intervals=False)["strict"]


def assert_same(table: Table, theirs: dict[str | None, tuple[Any, ...]]) -> None:
    """Label by label, micro and macro, as seqeval's precision, recall, F1 and support."""
    precision, recall, f1, support = (np.asarray(part) for part in theirs[None])
    ours = list(table.labels.values())
    np.testing.assert_allclose([s.precision for s in ours], precision, rtol=0, atol=1e-12)
    np.testing.assert_allclose([s.recall for s in ours], recall, rtol=0, atol=1e-12)
    np.testing.assert_allclose([s.f1 for s in ours], f1, rtol=0, atol=1e-12)
    assert [s.gold for s in ours] == support.tolist()
    for mean, mine in (("micro", table.micro), ("macro", table.macro)):
        np.testing.assert_allclose((mine.precision, mine.recall, mine.f1), theirs[mean][:3], rtol=0, atol=1e-12)


def test_strict_scores_of_ten_thousand_sequences_agree_with_seqeval_in_strict_mode() -> None:
    gold, found = drawn_sequences(10_000, "BI")
    size = 40  # in a small group a label is now and then absent on one side
    for first in range(0, 10_000, size):
        a, b = gold[first : first + size], found[first : first + size]
        theirs = {
            mean: strict_seqeval(a, b, average=mean, scheme=IOB2, zero_division=0) for mean in (None, "micro", "macro")
        }
        assert_same(strict_table([valid_runs(t, "IOB2") for t in a], [valid_runs(t, "IOB2") for t in b]), theirs)


def test_scores_of_ten_thousand_sequences_agree_with_seqeval_in_lenient_mode() -> None:
    gold, found = drawn_sequences(10_000, "BIES")
    theirs = {mean: lenient_seqeval(gold, found, average=mean, zero_division=0) for mean in (None, "micro", "macro")}
    assert_same(strict_table([runs(t) for t in gold], [runs(t) for t in found]), theirs)


def test_lenient_runs_are_the_entities_of_seqeval() -> None:
    for tags in drawn_sequences(10_000, "BIES")[0]:
        assert [(label, begin, end - 1) for begin, end, label in runs(tags)] == get_entities(tags)


@cache
def nervaluate_documents() -> tuple[list[list[Span]], list[list[Span]]]:
    """400 documents of spans eight characters apart, each moved, re-labelled, dropped or kept by itself.

    Spans of one side never overlap and none overlaps two of the other: nervaluate marks a gold span as used by the
    first prediction that overlaps it, right or wrong, so elsewhere its counts depend on the order of the predictions
    ("strict", "exact"), and its "ent_type" is a greedy matching where ours is a maximum one.
    """
    rng = np.random.default_rng(11)
    golds, founds = [], []
    for _ in range(400):
        gold, found = [], []
        for start in range(10, 90, 8):
            span = Span(start, start + int(rng.integers(2, 5)), str(rng.choice(LABELS)))
            fate = rng.integers(5)
            if fate != 4:
                gold.append(span)
            if fate in (1, 4):
                found.append(Span(span.start + int(rng.integers(-1, 2)), span.end, span.label))
            elif fate == 2:
                found.append(Span(span.start, span.end, str(rng.choice(LABELS))))
            elif fate == 3:
                found.append(span)
        golds.append(gold)
        founds.append(found)
    return golds, founds


@pytest.mark.parametrize(("theirs", "ours"), [("strict", "strict"), ("exact", "exact"), ("ent_type", "relaxed")])
def test_scores_agree_with_nervaluate(theirs: str, ours: str) -> None:
    golds, founds = nervaluate_documents()

    def inclusive(side: list[list[Span]]) -> list[list[dict[str, object]]]:
        return [[{"label": s.label, "start": s.start, "end": s.end - 1} for s in spans] for spans in side]

    # Overlap there is at least 1 % of the gold span, which one character of these short spans always is.
    result = Evaluator(inclusive(golds), inclusive(founds), tags=list(LABELS), loader="dict").evaluate()
    expected = result["overall"][theirs]
    document = Document.make("x" * 100)
    items = tuple(Pair(document, tuple(a), tuple(b)) for a, b in zip(golds, founds, strict=True))
    mine = score(Pairs(items), scheme=ours, intervals=False).micro
    assert mine.tp == expected.correct
    np.testing.assert_allclose(
        (mine.precision, mine.recall, mine.f1), (expected.precision, expected.recall, expected.f1), rtol=0, atol=1e-12
    )


def test_relaxed_uses_no_span_twice() -> None:
    doc = Document.make("Ann Lee Ann Lee")
    whole, halves = (Span(0, 15, "N"),), (Span(0, 7, "N"), Span(8, 15, "N"))
    assert count_relaxed([Pair(doc, halves, whole)]).values.tolist() == [[[1, 0, 1]]]
    assert count_relaxed([Pair(doc, whole, halves)]).values.tolist() == [[[1, 1, 0]]]


def test_relaxed_finds_the_matching_that_taking_exact_spans_first_would_miss() -> None:
    # The long gold span must go to the late prediction, so that the short one can have the exact-looking one.
    gold, found = (Span(0, 10, "N"), Span(5, 8, "N")), (Span(0, 10, "N"), Span(9, 12, "N"))
    assert count_relaxed([Pair(Document.make("x" * 12), gold, found)]).values.tolist() == [[[2, 0, 0]]]


def most_matches(edges: frozenset[tuple[int, int]]) -> int:
    """The size of the largest one-to-one choice of edges, by trying every one."""
    if not edges:
        return 0
    i, j = edge = min(edges)
    without = most_matches(edges - {edge})
    return max(without, 1 + most_matches(frozenset(e for e in edges if e[0] != i and e[1] != j)))


@given(pairs())
def test_relaxed_is_a_maximum_matching(one: Pair) -> None:
    edges = frozenset(
        (i, j)
        for i, a in enumerate(one.gold)
        for j, b in enumerate(one.predicted)
        if a.overlaps(b) and a.label == b.label
    )
    assert int(count_relaxed([one]).values[..., 0].sum()) == most_matches(edges)


@given(pairs())
def test_overlapping_lists_every_overlap(one: Pair) -> None:
    expected = [(i, j) for i, a in enumerate(one.gold) for j, b in enumerate(one.predicted) if a.overlaps(b)]
    assert list(overlap_indices(one.gold, one.predicted)) == expected


@given(pairs())
def test_counts_add_up_and_relaxed_is_never_below_strict(one: Pair) -> None:
    for count in (count_strict, count_relaxed):
        counts = count([one])
        tp, fp, fn = counts.values.sum(axis=(0, 1)).tolist()
        assert (tp + fn, tp + fp) == (len(one.gold), len(one.predicted)) == tuple(counts.sizes.sum(axis=0).tolist())
    assert (count_strict([one]).values[..., 0] <= count_relaxed([one]).values[..., 0]).all()
    assert count_exact([one]).values[..., 0].sum() <= len({(s.start, s.end) for s in one.gold})


def test_exact_looks_at_places_alone() -> None:
    gold, found = (Span(0, 3, "A"), Span(4, 6, "A")), (Span(0, 3, "B"), Span(4, 7, "A"))
    assert count_exact([Pair(Document.make("abc defg"), gold, found)]).values.tolist() == [[[1, 1, 1]]]
