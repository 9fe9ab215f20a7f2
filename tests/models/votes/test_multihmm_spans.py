"""Spans of votes, soft votes and linking rules, against hand-worked cases and listing every choice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from chaffinch.kernels import forward_backward
from chaffinch.models.votes.multihmm.fit import MultiHMM, estimates, fit
from chaffinch.models.votes.multihmm.patterns import observe, tags_to_states
from chaffinch.models.votes.multihmm.spans import Spans, best_spans, candidates, list_proposals, resolve_overlaps
from tests.models.votes.test_multihmm import STATES, log_score, random_model, said
from tests.models.votes.votes import by_hand, drawn


def test_spans_of_sources_by_hand() -> None:
    spans = {"a": [(0, 2, "A"), (2, 3, "A"), (5, 6, "O")], "b": [(0, 2, "A"), (3, 5, "B")], "c": []}
    votes = by_hand(6, spans, bounds=(4,))
    found = candidates(votes)
    rows = zip(found.first.tolist(), found.end.tolist(), found.label.tolist(), found.votes.tolist(), strict=True)
    assert list(rows) == [(0, 2, 0, 2), (2, 3, 0, 1), (3, 4, 1, 1), (4, 5, 1, 1)]  # none crosses a sentence
    assert list_proposals(votes)[3].tolist() == [0, 0, 1, 1, 1]


def test_states_of_tags_by_hand() -> None:
    tags = np.array([1, 2, 2, 0, 1, 1, 2, 4, 3, 4])
    want = ["B-A", "I-A", "E-A", "O", "S-A", "B-A", "E-A", "S-B", "S-B", "S-B"]
    assert [STATES[state] for state in tags_to_states(tags, np.array([0, 9, 10])).tolist()] == want


@pytest.mark.parametrize("longest", [True, False])
def test_settling_goes_greedily_by_the_order(longest: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        first, size = rng.integers(0, 20, 12), rng.integers(1, 5, 12)
        spans = Spans.distinct(first, first + size, rng.integers(0, 2, 12), rng.integers(1, 4, 12))
        rows = list(
            zip(spans.first.tolist(), spans.end.tolist(), spans.label.tolist(), spans.votes.tolist(), strict=True)
        )

        def order(row: tuple[int, int, int, int]) -> tuple[int, ...]:
            a, b, label, votes = row
            return (a - b, -votes, a, label) if longest else (-votes, a - b, a, label)

        kept: list[tuple[int, int, int, int]] = []
        for row in sorted(rows, key=order):
            if all(row[1] <= a or b <= row[0] for a, b, *_ in kept):
                kept.append(row)
        found = resolve_overlaps(spans, longest=longest)
        assert list(zip(found.first.tolist(), found.end.tolist(), found.label.tolist(), strict=True)) == sorted(
            row[:3] for row in kept
        )


def test_most_is_the_best_of_all_choices() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        first, size = rng.integers(0, 9, 8), rng.integers(1, 4, 8)
        spans = Spans.distinct(first, first + size, rng.integers(0, 2, 8))
        gains = rng.normal(size=len(spans))
        rows = list(zip(spans.first.tolist(), spans.end.tolist(), gains.tolist(), strict=True))
        best = max(
            sum(row[2] for row in choice)
            for n in range(len(rows) + 1)
            for choice in itertools.combinations(rows, n)
            if all(p[1] <= q[0] or q[1] <= p[0] for p, q in itertools.combinations(choice, 2))
        )
        found = best_spans(spans, gains)
        keys = list(zip(spans.first.tolist(), spans.end.tolist(), spans.label.tolist(), strict=True))
        own = [
            keys.index(key) for key in zip(found.first.tolist(), found.end.tolist(), found.label.tolist(), strict=True)
        ]
        assert (found.first[1:] >= found.end[:-1]).all()
        np.testing.assert_allclose(gains[own].sum(), best, rtol=0, atol=1e-12)


def test_chances_of_spans_agree_with_listing_every_path() -> None:
    votes = by_hand(7, {"s0": [(0, 3, "A"), (4, 5, "B")], "s1": [(1, 3, "A"), (4, 7, "B")]}, bounds=(3,))
    model, told = random_model(np.random.default_rng(6), 2, silence=1.0, voted=False), said(votes)
    chains = model.chains(votes, observe(votes))
    marginals = forward_backward(chains.batch, pairs=False).states
    wanted = [(0, 3, 0), (0, 1, 1), (1, 3, 0), (4, 7, 1), (4, 6, 0), (6, 7, 1)]
    first, end, label = np.array(wanted).T
    found = chains.span_chances(marginals, Spans(first, end, label, np.ones(6, np.int64)))
    for chance, (a, b, name) in zip(found.tolist(), wanted, strict=True):
        at, stop = (0, 3) if a < 3 else (3, 7)
        letters = "S" if b - a == 1 else "B" + "I" * (b - a - 2) + "E"
        want = tuple(f"{letter}-{'AB'[name]}" for letter in letters)
        inside = total = 0.0
        for path in itertools.product(STATES, repeat=stop - at):
            weight = np.exp(log_score(model, votes, told, list(path), at))
            total += weight
            inside += weight * (path[a - at : b - at] == want)
        np.testing.assert_allclose(chance, inside / total, rtol=0, atol=1e-9)


def test_soft_votes_that_are_certain_equal_hard_ones() -> None:
    votes, _ = drawn(
        np.random.default_rng(13), recall=(0.8, 0.6, 0.7), stray=(0.05, 0.02, 0.1), sentences=60, longest=1
    )
    rows = np.eye(5)[np.maximum(votes.codes[:, 1], 0)] * (votes.codes[:, 1:2] >= 0)
    soft = replace(votes, soft={"s1": rows})
    # a soft vote says no more than a tag in IOB2: equal where the place in a span is as certain
    hard, same = fit(votes), fit(soft)
    assert (hard.posterior(votes).tags == same.posterior(soft).tags).mean() > 0.995
    np.testing.assert_allclose(same.tables.types[1], hard.tables.types[1], rtol=0, atol=0.02)
    np.testing.assert_allclose(same.tables.rates[1, 0], hard.tables.rates[1, 0], rtol=0, atol=0.02)


def test_em_climbs_with_soft_votes_and_links_too() -> None:
    rng = np.random.default_rng(14)
    votes, _ = drawn(rng, recall=(0.8, 0.6), stray=(0.05, 0.1), sentences=60)
    rows = rng.dirichlet(np.ones(5), len(votes)) * (votes.codes[:, 1:2] >= 0)
    codes = votes.codes.copy()
    codes[:, 1] = np.where(codes[:, 1] >= 0, rows.argmax(axis=1), -1)
    links = rng.integers(-1, 2, (len(votes), 2)).astype(np.int8)
    trace = fit(
        replace(votes, codes=codes, soft={"s1": rows}, rules=("x", "y"), links=links), MultiHMM(passes=20)
    ).trace
    assert np.diff(trace).min() > -1e-7


def test_a_soft_vote_weighs_by_its_certainty() -> None:
    votes, _ = drawn(np.random.default_rng(15), recall=(0.9, 0.9), stray=(0.02, 0.02), sentences=80, longest=1)
    said_a = (votes.codes[:, 1] == 1)[:, None]
    chances = []
    for sure in (0.95, 0.6):
        rows = np.where(said_a, [0, sure, 0, 1 - sure, 0], np.eye(5)[np.maximum(votes.codes[:, 1], 0)])
        rows = rows * (votes.codes[:, 1:2] >= 0)
        soft = replace(votes, soft={"s1": rows})
        alone = said_a[:, 0] & (votes.codes[:, 0] < 0)
        chances.append(fit(soft).posterior(soft).chances[alone, 1].mean())
    assert chances[0] > chances[1] + 0.1


def test_linking_rules_recover_what_votes_alone_cannot() -> None:
    """One source knows words but not which belong together, another knows some spans; a rule links the words."""
    rng = np.random.default_rng(16)
    votes, tags = drawn(rng, recall=(0.0, 0.4), stray=(0.0, 0.0), sentences=300)
    codes = votes.codes.copy()
    words = (tags > 0) & (rng.random(len(tags)) < 0.95)
    codes[words, 0] = tags[words] - (tags[words] % 2 == 0)  # every word by itself: B
    inside, begins = (tags > 0) & (tags % 2 == 0), tags % 2 == 1
    links = np.zeros((len(tags), 1), np.int8)
    links[inside & (rng.random(len(tags)) < 0.95), 0] = 1
    links[begins & (rng.random(len(tags)) < 0.5), 0] = -1
    plain = replace(votes, codes=codes)
    with_rule = replace(plain, rules=("phrase",), links=links)
    model = fit(with_rule)
    unseen = (tags > 0) & (codes[:, 1] < 0)
    assert (fit(plain).posterior(plain).tags == tags)[unseen].mean() < 0.7
    assert (model.posterior(with_rule).tags == tags)[unseen].mean() > 0.9
    assert model.tables.links.min() > 0.8


def test_estimates_have_one_row_per_source_and_label() -> None:
    votes = by_hand(12, {"s0": [(1, 3, "A")], "s1": [(1, 3, "A"), (6, 7, "A")]})
    first, second = estimates(fit(votes), votes)
    assert (first.source, second.source) == ("s0", "s1")
    assert np.isnan(first.span_precision[1])  # it never says B
    assert 0 <= second.token_recall[0] <= 1
    np.testing.assert_allclose(first.confusion.sum(axis=1), 1, rtol=0, atol=1e-12)
