"""The conditional HMM: against enumeration, finite differences, hand-worked tables, and data drawn from known rules."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from chaffinch import bundle
from chaffinch.bundle import Manifest, State
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels import Floats, Ints
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.votes.chmm import chain as chmm_chain
from chaffinch.models.votes.chmm import fit as chmm
from chaffinch.models.votes.chmm import layer as chmm_net
from chaffinch.models.votes.chmm import tables as chmm_tables
from chaffinch.models.votes.chmm.chain import Chain
from chaffinch.models.votes.chmm.fit import CHMM
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.config import MultiHMM

OWN = CHMM(constant=None)
PLAIN = CHMM(constant=None, weight=0.0, silence="abstain", voted_is_entity=False, valid=False, prior=0.0, passes=1)


def make_votes(codes: NDArray[np.int64], lengths: list[int], names: tuple[str, ...] = ("X",)) -> VoteMatrix:
    """Votes on sentences of those lengths, each a document."""
    bounds = np.cumsum([0, *lengths])
    sources = tuple(f"s{k}" for k in range(codes.shape[1]))
    return VoteMatrix(sources, names, codes.astype(np.int16), bounds, bounds)


def random_chain(rng: np.random.Generator, D: int, S: int, L: int, share: float, *, offset: bool) -> Chain:
    tables = TokenTables(rng.dirichlet(np.ones(L), L), rng.dirichlet(np.ones(L), (S, L)))
    base = TokenTables(np.log(tables.moves), np.log(tables.votes)) if offset else TokenTables(*np.zeros((2, 1, 1)))
    weights = chmm_net.initial_weights(D, L * L, S * L * L, None, rng, zero=False)
    weights = {name: own + rng.normal(size=own.shape) * 0.3 for name, own in weights.items()}
    return Chain(tables, weights, share, base, strict=False, end=np.zeros(L))


def random_seen(rng: np.random.Generator, T: int, S: int, L: int) -> TokenInput:
    symbols = rng.dirichlet(np.ones(L), (T, S))
    hard = rng.random((T, S)) < 0.6
    symbols[hard] = np.eye(L)[rng.integers(L, size=int(hard.sum()))]
    return TokenInput(symbols, rng.choice([0.0, 0.3, 1.0], size=(T, S)), np.zeros(T, np.bool_))


def listed(chain: Chain, rows: Floats, seen: TokenInput) -> tuple[float, Floats, Floats]:
    """By listing every path, z_0 included: log-likelihood, tag chances (T, L), pair chances (T, L, L)."""
    (L, _), T = chain.tables.moves.shape, len(rows)
    S = chain.tables.votes.shape[0]
    weights = chain.weights or {}
    psi, phi = np.zeros((T, L, L)), np.zeros((T, L))
    for t in range(T):
        up = (rows[t] @ weights["moves"] + weights["moves bias"]).reshape(L, L) + chain.base.moves
        down = (rows[t] @ weights["votes"] + weights["votes bias"]).reshape(S, L, L) + chain.base.votes
        for i in range(L):
            soft = np.exp(up[i]) / np.exp(up[i]).sum()
            psi[t, i] = (1 - chain.share) * chain.tables.moves[i] + chain.share * soft
            phi[t, i] = 1.0
            for k in range(S):
                soft = np.exp(down[k, i]) / np.exp(down[k, i]).sum()
                mixed = (1 - chain.share) * chain.tables.votes[k, i] + chain.share * soft
                phi[t, i] *= (mixed @ seen.symbols[t, k]) ** seen.powers[t, k]
    start = np.append(1 - (L - 1) * chmm_chain.START, np.full(L - 1, chmm_chain.START))
    total, states, pairs = 0.0, np.zeros((T, L)), np.zeros((T, L, L))
    for path in itertools.product(range(L), repeat=T + 1):
        chance = start[path[0]] * np.prod([psi[t, path[t], path[t + 1]] * phi[t, path[t + 1]] for t in range(T)])
        total += chance
        for t in range(T):
            states[t, path[t + 1]] += chance
            pairs[t, path[t], path[t + 1]] += chance
    return float(np.log(total)), states / total, pairs / total


@pytest.mark.parametrize(("share", "offset"), [(1.0, False), (1.0, True), (0.4, True)])
def test_posteriors_agree_with_listing_every_path(share: float, offset: bool) -> None:
    rng = np.random.default_rng(1)
    chain, rows, seen = (
        random_chain(rng, 3, 2, 3, share, offset=offset),
        rng.normal(size=(4, 3)),
        random_seen(rng, 4, 2, 3),
    )
    found = chmm_chain.expect(chain, rows, seen, np.array([0, 4]))
    log_z, states, pairs = listed(chain, rows, seen)
    np.testing.assert_allclose(found.log_likelihood, [log_z], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.chances, states, rtol=0, atol=1e-9)
    laid = chmm_chain.evaluate_chain(chain, rows, seen)
    batch, places = chmm_chain.batch_of(chain, laid, np.array([0, 4]))
    from chaffinch.kernels import pair_marginals

    np.testing.assert_allclose(pair_marginals(batch)[places], pairs, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("share", "offset"), [(1.0, False), (1.0, True), (0.4, True)])
def test_the_gradient_with_posteriors_held_is_that_of_the_likelihood(share: float, offset: bool) -> None:
    rng = np.random.default_rng(2)
    chain, rows, seen = (
        random_chain(rng, 3, 2, 3, share, offset=offset),
        rng.normal(size=(7, 3)),
        random_seen(rng, 7, 2, 3),
    )
    bounds = np.array([0, 4, 4, 7])
    slopes = chmm_chain.expect(chain, rows, seen, bounds).slopes
    assert chain.weights is not None
    for name, own in chain.weights.items():
        for place in list(np.ndindex(own.shape))[:: max(own.size // 12, 1)]:
            values, kept = [], own[place]
            for step in (1e-5, -1e-5):
                own[place] = kept + step
                values.append(chmm_chain.expect(chain, rows, seen, bounds).log_likelihood.sum())
            own[place] = kept
            assert slopes[name][place] == pytest.approx((values[0] - values[1]) / 2e-5, abs=2e-6), name


def test_the_gradient_goes_through_a_narrow_layer() -> None:
    rng = np.random.default_rng(3)
    weights = chmm_net.initial_weights(4, 9, 18, 2, rng, zero=False)
    rows, up, down = rng.normal(size=(5, 4)), rng.normal(size=(5, 9)), rng.normal(size=(5, 18))
    slopes = chmm_net.weight_gradient(weights, rows, up, down)
    for name, own in weights.items():
        place = tuple(size // 2 for size in own.shape)
        values, kept = [], own[place]
        for step in (1e-6, -1e-6):
            own[place] = kept + step
            found = chmm_net.logits(weights, rows)
            values.append((found[0] * up).sum() + (found[1] * down).sum())
        own[place] = kept
        assert slopes[name][place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7), name


def test_a_batch_is_its_sentences() -> None:
    rng = np.random.default_rng(4)
    chain, rows, seen = random_chain(rng, 3, 2, 3, 1.0, offset=True), rng.normal(size=(9, 3)), random_seen(rng, 9, 2, 3)
    bounds = np.array([0, 5, 6, 6, 9])
    found = chmm_chain.expect(chain, rows, seen, bounds)
    alone = [
        chmm_chain.expect(chain, rows[a:b], seen.part(np.arange(a, b)), np.array([0, b - a]))
        for a, b in itertools.pairwise(bounds.tolist())
    ]
    np.testing.assert_array_equal(found.log_likelihood, np.concatenate([own.log_likelihood for own in alone]))
    np.testing.assert_array_equal(found.chances, np.concatenate([own.chances for own in alone]))
    for name, own in found.slopes.items():
        np.testing.assert_allclose(own, sum(one.slopes[name] for one in alone), rtol=0, atol=1e-12)


def baum_welch(tables: TokenTables, symbols: Floats) -> TokenTables:
    """One M-step on one sentence, straight from the textbook, with z_0 = O before it."""
    T, L = len(symbols), len(tables.moves)
    phi = np.prod(np.einsum("sij,tsj->tsi", tables.votes, symbols), axis=1)
    start = np.append(1 - (L - 1) * chmm_chain.START, np.full(L - 1, chmm_chain.START))
    alpha, beta = np.zeros((T + 1, L)), np.ones((T + 1, L))
    alpha[0] = start
    for t in range(1, T + 1):
        alpha[t] = phi[t - 1] * (tables.moves.T @ alpha[t - 1])
    for t in range(T, 0, -1):
        beta[t - 1] = tables.moves @ (phi[t - 1] * beta[t])
    total = alpha[T].sum()
    pairs = sum(np.outer(alpha[t], phi[t] * beta[t + 1]) * tables.moves / total for t in range(T))
    gamma = alpha[1:] * beta[1:] / total
    votes = np.einsum("ti,tsj->sij", gamma, symbols)
    return TokenTables(pairs / pairs.sum(axis=1, keepdims=True), votes / votes.sum(axis=2, keepdims=True))


def test_weight_0_is_the_multi_source_hmm() -> None:
    rng = np.random.default_rng(5)
    votes = make_votes(rng.integers(0, 3, size=(12, 2)), [12])
    config = replace(PLAIN, passes=60)
    rows = rng.normal(size=(12, 2))
    seen = chmm_tables.observe(votes, config)
    first = chmm_tables.first_tables(votes, seen, config)
    once, often = (chmm.fit(votes, rows, replace(config, passes=passes)).chain.tables for passes in (1, 60))
    for mine, theirs in zip(once, baum_welch(first, seen.symbols), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10)
    for mine, theirs in zip(often, baum_welch(often, seen.symbols), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-3)


def test_em_never_lowers_the_likelihood() -> None:
    rng = np.random.default_rng(6)
    votes, rows = make_votes(rng.integers(-1, 3, size=(60, 3)), [20, 0, 15, 25]), rng.normal(size=(60, 4))
    for config in (PLAIN, replace(PLAIN, iid=True), replace(PLAIN, silence="weighed", valid=True)):
        seen = [
            chmm.fit(votes, rows, replace(config, passes=passes)).posterior(votes, rows).log_likelihood.sum()
            for passes in range(1, 7)
        ]
        assert (np.diff(seen) > -1e-9).all()


def test_weight_0_for_layers_that_add_nothing() -> None:
    rng = np.random.default_rng(7)
    votes, rows = make_votes(rng.integers(-1, 3, size=(40, 3)), [20, 20]), rng.normal(size=(40, 4))
    constant = chmm.fit(votes, rows, replace(OWN, weight=0.0)).posterior(votes, rows)
    offset = chmm.fit(votes, rows, replace(OWN, rate=0.0, epochs=1)).posterior(votes, rows)
    for mine, theirs in zip(offset, constant, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("config", [CHMM(weight=0.0), CHMM(rate=0.0, epochs=1)])
@pytest.mark.parametrize("rules", [MultiHMM(), MultiHMM(decode="viterbi", silence=0.5, voted_is_entity=True)])
def test_layers_that_add_nothing_leave_the_multi_source_hmm(config: CHMM, rules: MultiHMM) -> None:
    rng = np.random.default_rng(7)
    said = np.where(rng.random((90, 3)) < 0.5, -1, rng.integers(0, 5, size=(90, 3)))
    soft = rng.dirichlet(np.ones(5), 90) * (said[:, [2]] >= 0)
    said[:, 2] = np.where(said[:, 2] >= 0, soft.argmax(axis=1), -1)
    links = rng.integers(-1, 2, size=(90, 1)).astype(np.int8)
    votes = replace(make_votes(said, [20, 30, 0, 40], ("X", "Y")), soft={"s2": soft}, rules=("r",), links=links)
    rows = rng.normal(size=(90, 4))
    hmm = multihmm.fit(votes, rules)
    expected = hmm.posterior(votes)
    found = chmm.fit(votes, rows, replace(config, constant=rules)).posterior(votes, rows)
    np.testing.assert_array_equal(found.tags, expected.tags)
    np.testing.assert_allclose(found.chances, expected.chances, rtol=0, atol=1e-4)  # z_0 is O but for a trifle
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=0, atol=1e-3)


def test_the_gradient_on_top_of_the_multi_source_hmm() -> None:
    rng = np.random.default_rng(17)
    said = np.where(rng.random((30, 2)) < 0.5, -1, rng.integers(0, 3, size=(30, 2)))
    votes, rows = make_votes(said, [12, 18]), rng.normal(size=(30, 3))
    model = chmm.fit(votes, rows, CHMM(rate=0.02, epochs=2, held_out=0.0, ridge=0.0))
    seen, chain = model.observe(votes), model.chain
    assert chain.weights is not None
    slopes = chmm_chain.expect(chain, model.scale_rows(rows), seen, votes.bounds).slopes
    for name, own in chain.weights.items():
        for place in list(np.ndindex(own.shape))[:: max(own.size // 8, 1)]:
            values, kept = [], own[place]
            for step in (1e-5, -1e-5):
                own[place] = kept + step
                values.append(model.posterior(votes, rows).log_likelihood.sum())
            own[place] = kept
            assert slopes[name][place] == pytest.approx((values[0] - values[1]) / 2e-5, abs=2e-6), name


@pytest.mark.parametrize("config", [CHMM(), OWN, CHMM.published(), CHMM(iid=True), replace(OWN, iid=True)])
def test_one_source_alone_is_the_answer(config: CHMM) -> None:
    tags = np.array([0, 1, 2, 2, 0, 1, 0, 0, 3, 4, 0, 1])
    votes = make_votes(tags[:, None], [7, 5], ("X", "Y"))
    rows = np.random.default_rng(8).normal(size=(12, 3))
    np.testing.assert_array_equal(chmm.fit(votes, rows, config).posterior(votes, rows).tags, tags)


def test_a_source_with_identity_confusions_leaves_no_doubt() -> None:
    rng = np.random.default_rng(18)
    tags = np.array([0, 1, 2, 2, 0, 1])
    seen = chmm_tables.observe(make_votes(tags[:, None], [6]), OWN)
    chain = random_chain(rng, 3, 1, 3, 0.0, offset=True)
    sure = chain._replace(tables=TokenTables(chain.tables.moves, np.eye(3)[None]), weights=None)
    found = chmm_chain.expect(sure, rng.normal(size=(6, 3)), seen, np.array([0, 6]))
    np.testing.assert_allclose(found.chances, np.eye(3)[tags], rtol=0, atol=1e-12)


def test_silence_by_each_rule() -> None:
    """Two labels' tags O, B, I; source 1 votes B, source 2 says nothing, source 3 "not an entity"; then nobody."""
    votes = make_votes(np.array([[1, -1, 0], [-1, -1, 0], [-1, -1, -1]]), [3])
    third = 0.99 / 3
    published = chmm_tables.observe(votes, CHMM.published())
    np.testing.assert_allclose(published.symbols[0], [[0.0, 1, 0], [0.01, third, third], [0.01, third, third]])
    np.testing.assert_allclose(published.symbols[1:], np.broadcast_to([1.0, 0, 0], (2, 3, 3)))
    assert (published.powers == 1).all()
    kept = chmm_tables.observe(votes, replace(CHMM.published(), reliable=("s2",)))
    np.testing.assert_allclose(kept.symbols[0], [[0.0, 1, 0], [0.01, third, third], [1.0, 0, 0]])
    abstain = chmm_tables.observe(votes, OWN)
    np.testing.assert_array_equal(abstain.powers, [[1, 0, 1], [0, 0, 1], [1, 1, 1]])
    np.testing.assert_allclose(abstain.symbols[0, 2], [1, 0, 0])
    np.testing.assert_allclose(abstain.symbols[2], np.broadcast_to([1.0, 0, 0], (3, 3)))
    weighed = chmm_tables.observe(votes, replace(OWN, silence="weighed", silence_weight=0.2))
    np.testing.assert_allclose(weighed.powers[0], [1, 0.2, 1])
    np.testing.assert_allclose(weighed.symbols[0], [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    with pytest.raises(DataError, match="reliable names source 's9'"):
        chmm_tables.observe(votes, replace(OWN, reliable=("s9",)))


def test_soft_votes_are_distributions() -> None:
    soft = np.array([[0.2, 0.8, 0.0], [0.0, 0.0, 0.0]])
    votes = replace(make_votes(np.array([[1], [-1]]), [2]), soft={"s0": soft})
    seen = chmm_tables.observe(votes, OWN)
    np.testing.assert_allclose(seen.symbols[0, 0], soft[0])
    np.testing.assert_allclose(seen.symbols[1, 0], [1, 0, 0])  # nothing but silence


def test_no_votes_at_all_is_outside() -> None:
    rows = np.zeros((6, 2))
    votes = make_votes(np.full((6, 2), -1), [4, 2])
    for config in (replace(OWN, epochs=2), CHMM.published(), replace(OWN, silence="weighed", epochs=1)):
        found = chmm.fit(votes, rows, config).posterior(votes, rows)
        assert (found.tags == 0).all()
        assert np.isfinite(found.chances).all()


def test_empty_input() -> None:
    votes, rows = make_votes(np.zeros((0, 2), np.int64), []), np.zeros((0, 3))
    found = chmm.fit(votes, rows, OWN).posterior(votes, rows)
    assert found.tags.shape == (0,)
    assert found.chances.shape == (0, 3)
    assert found.log_likelihood.shape == (0,)


def test_a_voted_token_is_an_entity_if_that_is_asked() -> None:
    rng = np.random.default_rng(9)
    codes = np.where(rng.random((200, 3)) < 0.2, rng.integers(1, 3, size=(200, 3)), -1)
    votes, rows = make_votes(codes, [100, 100]), rng.normal(size=(200, 2))
    found = chmm.fit(votes, rows, replace(OWN, epochs=1)).posterior(votes, rows)
    assert (found.tags[(codes > 0).any(axis=1)] > 0).all()


def test_a_long_sentence_stays_finite_in_single_precision() -> None:
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(5_000, 8)).astype(np.float32)
    votes = make_votes(rng.integers(-1, 3, size=(5_000, 4)), [5_000])
    found = chmm.fit(votes, rows, replace(OWN, epochs=2, passes=2, rate=0.01, held_out=0.0)).posterior(votes, rows)
    assert np.isfinite(found.chances).all()
    assert np.isfinite(found.log_likelihood).all()
    np.testing.assert_allclose(found.chances.sum(axis=1), 1.0, rtol=0, atol=1e-9)


def test_layers_begin_at_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    votes, rows = make_votes(rng.integers(-1, 3, size=(300, 3)), [100] * 3), rng.normal(size=(300, 4))
    config = replace(CHMM.published(rate=0.02, batch=1), warm=40)
    told: dict[int, float] = {}
    kept = chmm_chain.expect

    def watched(chain: Chain, own: Floats, seen: TokenInput, bounds: Ints) -> chmm_chain.ChainPosterior:
        laid = chmm_chain.evaluate_chain(chain, own, seen)
        missed = np.square(laid.votes - chain.tables.votes).sum(axis=(1, 2, 3)).mean()
        told.setdefault(warm, float(missed))
        return kept(chain, own, seen, bounds)

    monkeypatch.setattr(chmm, "expect", watched)
    for warm in (0, 40):
        chmm.fit(votes, rows, replace(config, warm=warm, epochs=1, held_out=0.0))
    assert told[40] < 0.2 * told[0] < 0.1


def test_the_warm_gradient_is_that_of_the_squares() -> None:
    rng = np.random.default_rng(12)
    chain, rows, seen = (
        random_chain(rng, 3, 2, 3, 1.0, offset=False),
        rng.normal(size=(5, 3)),
        random_seen(rng, 5, 2, 3),
    )
    slopes = chmm_chain.warm_start_gradient(chain, rows, seen)

    def value() -> float:
        laid = chmm_chain.evaluate_chain(chain, rows, seen)
        squares = np.square(laid.moves - chain.tables.moves).sum() + np.square(laid.votes - chain.tables.votes).sum()
        return -float(squares) / len(rows)

    assert chain.weights is not None
    for name, own in chain.weights.items():
        place = tuple(size // 3 for size in own.shape)
        values, kept = [], own[place]
        for step in (1e-6, -1e-6):
            own[place] = kept + step
            values.append(value())
        own[place] = kept
        assert slopes[name][place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7), name


def drawn(seed: int, sentences: int) -> tuple[VoteMatrix, Floats, Ints]:
    """Votes on tags from a chain; in one kind of context two sources are right and two invent, in the other not.

    Embeddings show the kind of context, and nothing of the tags.
    """
    rng = np.random.default_rng(seed)
    moves = np.array([[0.8, 0.2, 0.0], [0.3, 0.0, 0.7], [0.6, 0.0, 0.4]])
    tags, kinds, lengths = [], [], []
    for _ in range(sentences):
        now, kind, length = 0, rng.integers(2), 20
        for _ in range(length):
            now = int(rng.choice(3, p=moves[now]))
            kind = 1 - kind if rng.random() < 0.1 else kind
            tags.append(now)
            kinds.append(kind)
        lengths.append(length)
    gold, kind_of = np.array(tags), np.array(kinds)
    codes = np.zeros((len(gold), 4), np.int64)
    for source in range(4):
        right = rng.random(len(gold)) < np.where(kind_of == source % 2, 0.92, 0.4)
        codes[:, source] = np.where(right, gold, rng.integers(0, 3, size=len(gold)))
    rows = np.stack([kind_of - 0.5, *rng.normal(size=(3, len(gold)))], axis=1)
    return make_votes(codes, lengths), rows, gold


def test_context_tells_which_source_to_trust() -> None:
    votes, rows, gold = drawn(1, 120)
    config = replace(OWN, voted_is_entity=False, rate=0.02, epochs=15, ridge=1e-4)
    scores = {}
    for name, own in {"chmm": config, "hmm": replace(config, weight=0.0), "iid": replace(config, iid=True)}.items():
        found = chmm.fit(votes, rows, own).posterior(votes, rows)
        picked = found.chances[np.arange(len(gold)), gold]
        scores[name] = (float((found.tags == gold).mean()), float(np.log(np.maximum(picked, 1e-12)).mean()))
    for other, margin in {"hmm": 0.05, "iid": 0.01}.items():
        assert scores["chmm"][0] > scores[other][0] + margin, scores  # tags
        assert scores["chmm"][1] > scores[other][1] + margin, scores  # soft labels


def drawn_spans(seed: int, sentences: int) -> tuple[VoteMatrix, Floats, Ints]:
    """Spans of one to three tokens; by the kind of sentence, a source finds nearly all of them or invents its own."""
    rng, N = np.random.default_rng(seed), 20
    gold, codes = np.zeros(sentences * N, np.int64), np.full((sentences * N, 4), -1)
    kinds = rng.integers(2, size=sentences)

    def put(tags: Ints, first: int, size: int) -> None:
        tags[first : first + size] = 2
        tags[first] = 1

    for sentence in range(sentences):
        at = sentence * N
        spans = [(at + place + int(rng.integers(2)), int(rng.integers(1, 4))) for place in (0, 5, 10, 15)]
        true = [span for span in spans if rng.random() < 0.5]
        for span in true:
            put(gold, *span)
        for source in range(4):
            good = kinds[sentence] == source % 2
            found = [span for span in true if rng.random() < (0.95 if good else 0.5)]
            for _ in range(rng.poisson(0.1 if good else 1.5)):
                put(codes[:, source], at + int(rng.integers(N - 3)), int(rng.integers(1, 4)))
            for span in found:
                put(codes[:, source], *span)
    rows = np.stack([np.repeat(kinds - 0.5, N), *rng.normal(size=(3, len(gold)))], axis=1)
    return make_votes(codes, [N] * sentences), rows, gold


def test_context_helps_the_multi_source_hmm() -> None:
    votes, rows, gold = drawn_spans(4, 300)
    hmm = multihmm.fit(votes)
    before = hmm.posterior(votes)
    config = CHMM(rate=0.02, ridge=1e-4, epochs=20, patience=20, batch=16)
    after = chmm.fit(votes, rows, config, constant=hmm).posterior(votes, rows)
    f1 = [chmm_tables.f1_of_tags(("X",), votes.bounds, gold, own.tags) for own in (before, after)]
    sure = [float(np.log(np.maximum(own.chances[np.arange(len(gold)), gold], 1e-9)).mean()) for own in (before, after)]
    assert f1[1] > f1[0] + 0.2, f1
    assert sure[1] > sure[0] + 0.5, sure


def test_the_best_epoch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, rows, gold = drawn(2, 20)
    config = replace(OWN, voted_is_entity=False, rate=0.02, epochs=6, patience=2)
    real = chmm.fit(votes, rows, config, dev=chmm.Dev(votes, rows, gold))
    right = chmm_tables.f1_of_tags(("X",), votes.bounds, gold, real.posterior(votes, rows).tags)
    before = chmm.fit(votes, rows, replace(config, weight=0.0)).posterior(votes, rows).tags
    assert right >= chmm_tables.f1_of_tags(("X",), votes.bounds, gold, before)
    watcher, scores = Watcher(), iter([0.1, 0.5, 0.3, 0.2, 0.9])
    monkeypatch.setattr(chmm._Task, "score", lambda *_: next(scores))
    model = chmm.fit(votes, rows, config, watcher=watcher)
    monkeypatch.undo()
    assert watcher.scores["epochs of layers"] == 1.0  # and two more that were no better
    assert next(scores) == 0.9
    once = chmm.fit(votes, rows, replace(config, epochs=1))
    assert model.chain.weights is not None
    assert once.chain.weights is not None
    for name, own in model.chain.weights.items():
        np.testing.assert_array_equal(own, once.chain.weights[name])


def test_dev_tags_stop_the_published_system_at_its_best_epoch() -> None:
    """The oracle is the list of scores told; a run whose gold is empty keeps the state before the first epoch."""
    votes, rows, gold = drawn(2, 30)
    config = replace(CHMM.published(rate=0.05), epochs=12)
    told = list[Progress]()
    model = chmm.fit(votes, rows, config, dev=chmm.Dev(votes, rows, gold), watcher=Watcher(told.append))
    scores = [one.score for one in told]
    start = chmm.fit(votes, rows, replace(config, epochs=1), dev=chmm.Dev(votes, rows, np.zeros_like(gold)))
    first = chmm_tables.f1_of_tags(("X",), votes.bounds, gold, start.posterior(votes, rows).tags)
    every = [first, *(0.0 if score is None else score for score in scores)]
    best = max(range(len(every)), key=lambda epoch: (every[epoch], -epoch))
    assert len(scores) == min(best + config.patience, config.epochs)
    found = chmm_tables.f1_of_tags(("X",), votes.bounds, gold, model.posterior(votes, rows).tags)
    assert len(scores) < config.epochs
    assert found == every[best] > 0.0
    again = chmm.fit(votes, rows, config, dev=chmm.Dev(votes, rows, gold))
    assert model.chain.weights is not None
    assert again.chain.weights is not None
    for name, own in model.chain.weights.items():
        np.testing.assert_array_equal(own, again.chain.weights[name])


@pytest.mark.parametrize(("config", "stage"), [(CHMM(), "multihmm"), (OWN, "tables")])
def test_an_interrupt_before_the_layers_keeps_what_is_learnt_and_learns_no_layers(config: CHMM, stage: str) -> None:
    votes, rows, _ = drawn(3, 30)
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 2:
            raise KeyboardInterrupt

    watcher = Watcher(tell)
    model = chmm.fit(votes, rows, config, watcher=watcher)
    assert watcher.interrupted
    assert len(told) == 2, "no epoch of layers began"
    if stage == "tables":
        twice = chmm.fit(votes, rows, replace(config, passes=2, weight=0.0))
        np.testing.assert_array_equal(model.chain.tables.votes, twice.chain.tables.votes)
    assert model.posterior(votes, rows).tags.shape == (len(votes),)


def test_adam_by_hand() -> None:
    weights: chmm_net.Weights = {"moves": np.array([1.0])}
    adam = chmm_net.Adam(rate=0.1, ridge=0.5)
    adam.step(weights, {"moves": np.array([3.0])})  # slope 3 - 2 * 0.5 * 1 = 2: a step of the rate
    assert weights["moves"][0] == pytest.approx(1.1)
    adam.step(weights, {"moves": np.array([0.1])})  # slope 0.1 - 1.1 = -1
    mean, square = (0.9 * 0.2 - 0.1) / 0.19, (0.999 * 0.004 + 0.001) / (1 - 0.999**2)
    assert weights["moves"][0] == pytest.approx(1.1 + 0.1 * mean / square**0.5)


def test_the_same_seed_gives_the_same_model() -> None:
    votes, rows, _ = drawn(3, 20)
    config = replace(OWN, voted_is_entity=False, rate=0.02, epochs=2)
    one, other = (chmm.fit(votes, rows, config).posterior(votes, rows) for _ in range(2))
    np.testing.assert_array_equal(one.chances, other.chances)


def kept(model: chmm.Model, path: Path) -> State:
    """Return what is in a file of the model."""
    state = model.state()
    bundle.save(path, Manifest("chmm", asdict(model.config), model.names), state.arrays, state.strings)
    return bundle.load(path).state


def linked_votes(rng: np.random.Generator) -> tuple[VoteMatrix, Floats]:
    """Votes of two plain sources and a soft one, words of a linking rule, and embeddings in single precision."""
    said = np.where(rng.random((60, 3)) < 0.5, -1, rng.integers(0, 5, size=(60, 3)))
    soft = rng.dirichlet(np.ones(5), 60) * (said[:, [2]] >= 0)
    said[:, 2] = np.where(said[:, 2] >= 0, soft.argmax(axis=1), -1)
    links = rng.integers(-1, 2, size=(60, 1)).astype(np.int8)
    votes = replace(make_votes(said, [20, 0, 40], ("X", "Y")), soft={"s2": soft}, rules=("r",), links=links)
    return votes, rng.normal(size=(60, 4)).astype(np.float32)


@pytest.mark.parametrize("iid", [False, True])
@pytest.mark.parametrize(
    "config",
    [CHMM(), replace(OWN, weight=0.5), replace(OWN, silence="weighed", rank=2), CHMM(weight=0.0), CHMM.published(),
     CHMM(constant=MultiHMM(silence=0.5, voted_is_entity=True, decode="viterbi"), weight=0.3)],
    ids=["multihmm", "plain", "weighed", "no layers", "published", "half a multihmm"],
)  # fmt: skip
def test_a_saved_model_reads_alike(config: CHMM, iid: bool, tmp_path: Path) -> None:
    votes, rows = linked_votes(np.random.default_rng(19))
    model = chmm.fit(votes, rows, replace(config, iid=iid, epochs=2, passes=2, warm=0, rate=0.05, held_out=0.0))
    again = chmm.Model.of(kept(model, tmp_path / "m.cfm"))
    assert (again.config, again.sources, again.names, again.rules) == (
        model.config, model.sources, model.names, model.rules
    )  # fmt: skip
    for one, other in zip(model.posterior(votes, rows), again.posterior(votes, rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_a_model_on_an_hmm_that_was_learnt_elsewhere_is_kept_with_that_one(tmp_path: Path) -> None:
    votes, rows = linked_votes(np.random.default_rng(20))
    hmm = multihmm.fit(votes, MultiHMM(silence=0.2, threshold=0.1))
    model = chmm.fit(votes, rows, replace(OWN, epochs=1, weight=0.5, offset=True), constant=hmm)
    again = chmm.Model.of(kept(model, tmp_path / "m.cfm"))
    assert again.config.constant == hmm.config
    for one, other in zip(model.posterior(votes, rows), again.posterior(votes, rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    with pytest.raises(ConfigError, match="use offset=True"):
        chmm.fit(votes, rows, CHMM.published(), constant=hmm)


def test_a_file_holds_no_more_than_names_and_numbers(tmp_path: Path) -> None:
    votes, rows = linked_votes(np.random.default_rng(21))
    found = kept(chmm.fit(votes, rows, CHMM(epochs=1)), tmp_path / "m.cfm")
    words = {word for own in found.strings.values() for word in own}
    assert words == {*votes.sources, *votes.names, *votes.rules}


@pytest.mark.parametrize("config", [CHMM(epochs=1), replace(OWN, epochs=1)])
def test_a_file_whose_pieces_do_not_fit_is_refused(config: CHMM, tmp_path: Path) -> None:
    votes, rows = linked_votes(np.random.default_rng(22))
    found = kept(chmm.fit(votes, rows, config), tmp_path / "m.cfm")
    for name in ("tables.moves", "tables.votes", "base.votes", "end", "scale", "layers.moves", "layers.votes bias"):
        wrong = replace(found, arrays={**found.arrays, name: found.arrays[name][..., :-1]})
        with pytest.raises(ModelError, match="do not fit"):
            chmm.Model.of(wrong)
        lacking = {own: array for own, array in found.arrays.items() if own != name}
        with pytest.raises(ModelError):
            chmm.Model.of(replace(found, arrays=lacking))
    strings = {**found.strings, "sources": votes.sources[::-1][1:]}
    with pytest.raises(ModelError, match="do not fit"):
        chmm.Model.of(replace(found, strings=strings))
    with pytest.raises(ModelError, match="settings cannot be read"):
        chmm.Model.of(replace(found, config={"weight": "much"}))


def test_what_does_not_fit_is_refused() -> None:
    votes = make_votes(np.zeros((4, 2), np.int64), [4])
    with pytest.raises(DataError, match=r"embeddings have shape \(3, 2\); votes and model need \(4, 2\)"):
        chmm.fit(votes, np.zeros((3, 2)), OWN)
    with pytest.raises(DataError, match="contain NaN"):
        chmm.fit(votes, np.full((4, 2), np.nan), OWN)
    model = chmm.fit(votes, np.zeros((4, 2)), replace(OWN, weight=0.0))
    with pytest.raises(DataError, match="the model knows"):
        model.posterior(votes.choose(["s1", "s0"]), np.zeros((4, 2)))
    for wrong in (
        {"weight": 1.5},
        {"offset": False},
        {"silence": "loud"},
        {"batch": 0},
        {"rank": -1},
        {"rate": -1.0},
        {"seed": -1},
    ):
        with pytest.raises(ConfigError):
            CHMM(**wrong)


def test_a_bottleneck_comes_with_many_confusions_and_never_where_it_is_switched_off() -> None:
    rng = np.random.default_rng(0)
    many = chmm_net.FEW + 1
    assert "narrow" in chmm_net.initial_weights(4, 9, many, None, rng, zero=False)
    assert "narrow" not in chmm_net.initial_weights(4, 9, chmm_net.FEW, None, rng, zero=False)
    plain = chmm_net.initial_weights(4, 9, many, CHMM.published().rank, rng, zero=False)
    assert "narrow" not in plain
    assert plain["votes"].shape == (4, many)
