"""The second stage over taggers: its features, worked by hand, and what it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.token_scores import TokenIndex, mean
from chaffinch.deid.detect.voices.stacking import LEAST, MOST, Stack, count_features, doubtful_tokens
from chaffinch.errors import ModelError
from chaffinch.text import Document, Soft

LABELS = ("CITY", "DOCTOR")
DOCS = [Document.make("Penn saw Penn"), Document.make("Salem penn")]


def softs_of(*chances: list[float]) -> list[Soft]:
    """Soft labels of one tagger per list; of an identifier, three quarters are DOCTOR."""
    rows = ([[1 - chance, chance / 4, 3 * chance / 4] for chance in row] for row in chances)
    return [Soft(("O", *LABELS), np.array(row).reshape(-1, 3)) for row in rows]


def stack_of(offset: float, taggers: int = 2) -> Stack:
    """A stack that adds the same to the log-odds of every doubtful token."""
    size = count_features(taggers, len(LABELS))
    net = (np.zeros((size, 3)), np.zeros(3), np.zeros(3), np.array([offset]))
    return Stack(LABELS, taggers, np.zeros(size), np.ones(size), *net)


def log_odds(chance: float) -> float:
    return float(np.log(chance / (1 - chance)))


def test_features_of_doubtful_tokens_are_these() -> None:
    index = TokenIndex.of(DOCS)
    softs = softs_of([0.5, 0.0, 0.7, 0.9, 0.2], [0.3, 0.0, 0.9, 1.0, 0.4])
    tokens, rows = doubtful_tokens(index, softs, mean(softs), LABELS)
    assert tokens.tolist() == [0, 2, 4]  # the means are .4 0 .8 .95 .3
    assert rows.shape == (3, count_features(2, len(LABELS)))
    first = rows[0].tolist()
    low = log_odds(1e-4)
    assert first[:5] == pytest.approx([log_odds(0.4), log_odds(0.5), log_odds(0.3), log_odds(0.3), log_odds(0.5)])
    assert first[5:11] == pytest.approx([np.log(1e-4), low, np.log(1e-4), log_odds(0.8), np.log(1e-4), np.log(1e-4)])
    assert first[11:14] == pytest.approx(np.sqrt([0.6, 0.1, 0.3]))
    assert first[14:17] == [0, 0, 0]  # no token is before it in its note
    assert first[17:20] == pytest.approx([1, 0, 0])
    assert first[20:24] == pytest.approx([2 / 8, 0, log_odds(0.8), log_odds(0.8)])
    assert first[24] == pytest.approx(5 / 3)  # one of three tokens is likely an identifier
    assert rows[2, 20:24].tolist() == pytest.approx([1 / 8, 1, 0, 0])  # "penn" of another note is another word


def test_only_the_chances_of_doubtful_tokens_change_and_types_keep_their_shares() -> None:
    low, high = LEAST - 0.001, MOST + 0.001
    index, softs = TokenIndex.of(DOCS), softs_of([low, 0.5, 0.1, high, 0.95], [low, 0.3, 0.1, high, 0.95])
    before, after = mean(softs), stack_of(np.log(3.0)).rescore(index, softs)
    odds = after.values[:, 1:].sum(axis=1) / after.values[:, 0]
    np.testing.assert_allclose(odds, [low / (1 - low), 3 * 0.4 / 0.6, 3 * 0.1 / 0.9, high / (1 - high), 19])
    np.testing.assert_allclose(after.values[:, 2] / after.values[:, 1], 3.0)
    np.testing.assert_allclose(after.values.sum(axis=1), 1.0)
    np.testing.assert_allclose(stack_of(0.0).rescore(index, softs).values, before.values, rtol=0, atol=1e-12)


def test_labels_that_the_stack_does_not_know_change_nothing() -> None:
    index, softs = TokenIndex.of(DOCS), softs_of([0.5, 0.1, 0.6, 0.3, 0.2], [0.3, 0.1, 0.9, 0.4, 0.4])
    renamed = [Soft(("O", "CITY", "WARD"), soft.values) for soft in softs]
    _, rows = doubtful_tokens(index, renamed, mean(renamed), LABELS)
    _, known = doubtful_tokens(index, softs, mean(softs), LABELS)
    doctor = [13, 16, 19]  # the columns of DOCTOR: of the token, and of those before and after it
    assert not rows[:, doctor].any()
    np.testing.assert_array_equal(np.delete(rows, doctor, axis=1), np.delete(known, doctor, axis=1))


def test_with_another_number_of_taggers_the_mean_counts() -> None:
    softs = softs_of([0.5, 0.1, 0.6, 0.3, 0.2])
    assert stack_of(3.0).rescore(TokenIndex.of(DOCS), softs) == mean(softs)


def test_no_doubtful_token_is_no_error() -> None:
    empty = TokenIndex.of([Document.make("")])
    assert stack_of(1.0).rescore(empty, softs_of([], [])).values.shape == (0, 3)


def test_a_file_brings_back_the_stack(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = count_features(2, len(LABELS))
    stack = replace(stack_of(0.5), inner=rng.normal(size=(size, 3)), outer=rng.normal(size=3))
    Model(stack=stack).save(tmp_path / "a.cfm")
    again = load(tmp_path / "a.cfm").stack
    assert again is not None
    softs = softs_of([0.5, 0.1, 0.6, 0.3, 0.2], [0.3, 0.1, 0.9, 0.4, 0.4])
    assert again.rescore(TokenIndex.of(DOCS), softs) == stack.rescore(TokenIndex.of(DOCS), softs)
    Model(stack=replace(stack, taggers=3)).save(tmp_path / "b.cfm")
    with pytest.raises(ModelError, match="does not fit its taggers"):
        load(tmp_path / "b.cfm")


def test_a_detector_with_another_stack_has_another_digest() -> None:
    digests = {HybridDetector(Model(stack=stack)).digest for stack in (None, stack_of(0.5), stack_of(0.6))}
    assert len(digests) == 3


def test_a_token_gets_the_same_bits_whatever_tokens_are_beside_it() -> None:
    rng = np.random.default_rng(5)
    size = count_features(2, 20)
    net = (rng.normal(size=(size, 96)), rng.normal(size=96), rng.normal(size=96), np.array([0.25]))
    stack = Stack(tuple(map(str, range(20))), 2, rng.normal(size=size), np.exp(rng.normal(size=size)), *net)
    rows = rng.normal(size=(150, size))
    alone = np.concatenate([stack.log_odds(row[None]) for row in rows])
    expected = np.maximum((rows - stack.centre) / stack.scale @ stack.inner + stack.bias, 0.0) @ stack.outer + 0.25
    np.testing.assert_allclose(alone, expected, rtol=1e-12)
    for count in (2, 47, 48, 49, 150):
        chosen = rng.permutation(150)[:count]
        np.testing.assert_array_equal(stack.log_odds(rows[chosen]), alone[chosen])
