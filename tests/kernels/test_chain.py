"""Sums over paths against listing every path. T tokens, K states, S tags."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaffinch.errors import DataError, InfeasibleError
from chaffinch.kernels import (
    Active,
    Batch,
    Floats,
    Lattice,
    forward_backward,
    group,
    log_partition,
    pair_marginals,
    project,
    viterbi,
)
from chaffinch.kernels._chain import _layout as plan
from tests.kernels import oracle

close = np.testing.assert_allclose


def wide_batch(K: int, lengths: list[int], *, seed: int = 0, spread: float = 3.0) -> Batch:
    rng = np.random.default_rng(seed)
    N = sum(lengths)
    start, trans, emit, end = (rng.normal(0.0, spread, shape) for shape in ((K,), (K, K), (N, K), (K,)))
    return Batch(start, trans, emit, end, np.concatenate([[0], np.cumsum(lengths)]))


def log_space(lattice: Lattice) -> tuple[float, Floats, Floats]:
    """Log Z, state marginals and summed pairs of a lattice too large to list, by the recursion, in numpy and logs."""
    T, _ = lattice.emit.shape
    forward, backward = np.empty_like(lattice.emit), np.empty_like(lattice.emit)
    forward[0], backward[-1] = lattice.start + lattice.emit[0], lattice.end
    for t in range(1, T):
        forward[t] = lattice.emit[t] + np.logaddexp.reduce(forward[t - 1][:, None] + lattice.trans, axis=0)
    for t in range(T - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(lattice.trans + lattice.emit[t + 1] + backward[t + 1], axis=1)
    log_z = float(np.logaddexp.reduce(forward[-1] + lattice.end))
    pairs = np.zeros_like(lattice.trans)
    for t in range(T - 1):
        pairs += np.exp(forward[t][:, None] + lattice.trans + lattice.emit[t + 1] + backward[t + 1] - log_z)
    return log_z, np.exp(forward + backward - log_z), pairs


@given(oracle.lattices())
@settings(max_examples=150, deadline=None)
def test_forward_backward_agrees_with_listing_every_path(lattice: Lattice) -> None:
    listed = oracle.listing(lattice)
    assume(listed.paths)
    post = forward_backward(lattice)
    close(post.log_z, listed.log_z, rtol=1e-12, atol=1e-9)
    close(post.states, listed.state_marginals(), rtol=0, atol=1e-9)
    close(post.pairs, listed.pair_marginals().sum(axis=0), rtol=0, atol=1e-9)
    close(pair_marginals(lattice), listed.pair_marginals(), rtol=0, atol=1e-9)
    assert log_partition(lattice) == post.log_z


@given(oracle.lattices())
@settings(max_examples=80, deadline=None)
def test_pairs_sum_to_states(lattice: Lattice) -> None:
    assume(oracle.listing(lattice).paths)
    post, pairs = forward_backward(lattice), pair_marginals(lattice)
    close(pairs.sum(axis=2), post.states[:-1], rtol=0, atol=1e-9)
    close(pairs.sum(axis=1), post.states[1:], rtol=0, atol=1e-9)


@given(oracle.lattices(spreads=(3.0,)), st.data())
@settings(max_examples=40, deadline=None)
def test_marginals_are_the_slope_of_log_z(lattice: Lattice, data: st.DataObject) -> None:
    assume(len(lattice) and oracle.listing(lattice).paths)
    t = data.draw(st.integers(0, len(lattice) - 1))
    x = data.draw(st.integers(0, lattice.emit.shape[1] - 1))
    assume(lattice.emit[t, x] > -np.inf)
    step, bump = 1e-5, np.zeros_like(lattice.emit)
    bump[t, x] = step
    up = Lattice(lattice.start, lattice.trans, lattice.emit + bump, lattice.end)
    down = Lattice(lattice.start, lattice.trans, lattice.emit - bump, lattice.end)
    slope = (log_partition(up) - log_partition(down)) / (2 * step)
    close(forward_backward(lattice).states[t, x], slope, rtol=0, atol=1e-6)


@pytest.mark.parametrize("spread", [1.0, 30.0, 100.0, 300.0, 1000.0])
@pytest.mark.parametrize("K", [5, 24, 37])
def test_scaled_and_log_space_agree_at_any_spread(K: int, spread: float) -> None:
    batch = wide_batch(K, [1, 12, 7], seed=K, spread=spread)
    post, total = forward_backward(batch), np.zeros((K, K))
    for b in range(3):
        log_z, states, pairs = log_space(batch[b])
        total += pairs
        close(post.log_z[b], log_z, rtol=1e-12, atol=1e-8)
        close(post.states[batch.bounds[b] : batch.bounds[b + 1]], states, rtol=0, atol=1e-8)
    close(post.pairs, total, rtol=0, atol=1e-8)
    close(pair_marginals(batch).sum(axis=0), total, rtol=0, atol=1e-8)


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("K", [2, 20])
def test_a_path_that_is_unlikely_for_long_is_not_lost(K: int, per_step: bool) -> None:
    """The last state falls e^-1200 behind, but nothing else may end, or start: underflow must not decide."""
    trans = np.where(np.eye(K) > 0, 0.0, -np.inf)
    emit, only = np.zeros((12, K)), np.full(K, -np.inf)
    emit[:, -1], only[-1] = -100.0, 0.0
    steps = np.tile(trans, (11, 1, 1)) if per_step else trans
    for start, end in ((np.zeros(K), only), (only, np.zeros(K))):
        post = forward_backward(Lattice(start, steps, emit, end))
        assert post.log_z == pytest.approx(-1200.0)
        close(post.states, np.tile(np.arange(K) == K - 1, (12, 1)), rtol=0, atol=1e-12)


def test_end_potentials_are_scaled_among_the_allowed_states_only() -> None:
    end = np.array([0.0, -500.0, -502.0])
    active = Active.of([[1, 2]], which=[0, 0])
    post = forward_backward(Lattice(np.zeros(3), np.zeros((3, 3)), np.zeros(4), end, active))
    close(post.states[2:], [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], rtol=0, atol=1e-12)


@given(oracle.batches())
@settings(max_examples=80, deadline=None)
def test_a_batch_is_its_sequences(batch: Batch) -> None:
    post, pairs = forward_backward(batch), pair_marginals(batch)
    total = np.zeros_like(post.pairs)
    for b in range(len(batch)):
        lo, hi = batch.bounds[b], batch.bounds[b + 1]
        alone = forward_backward(batch[b])
        assert alone.log_z == post.log_z[b]
        assert np.array_equal(alone.states, post.states[lo:hi])
        if hi > lo:
            close(pairs[lo + 1 : hi], oracle.listing(batch[b]).pair_marginals(), rtol=0, atol=1e-9)
            assert not pairs[lo].any()
        total += alone.pairs
    close(post.pairs, total, rtol=0, atol=1e-9)


@pytest.mark.parametrize("K", [3, 9, 29, 64])
@pytest.mark.parametrize("spread", [3.0, 200.0])
def test_numbers_do_not_depend_on_neighbours(K: int, spread: float) -> None:
    rng = np.random.default_rng(K)
    batch = wide_batch(K, rng.integers(0, 30, 45).tolist(), seed=K, spread=spread)
    post, path = forward_backward(batch), viterbi(batch)
    by_tag = group(batch, np.arange(K) // 3)
    for chosen in (range(45), rng.permutation(45)[:17], [44], [3, 44]):
        part = Batch.of([batch[int(b)] for b in chosen])
        again, again_path, again_tag = forward_backward(part), viterbi(part), group(part, np.arange(K) // 3)
        for i, b in enumerate(chosen):
            here, there = slice(*part.bounds[i : i + 2]), slice(*batch.bounds[b : b + 2])
            assert again.log_z[i] == post.log_z[b]
            assert np.array_equal(again.states[here], post.states[there])
            assert np.array_equal(again_tag.states[here], by_tag.states[there])
            assert np.array_equal(again_tag.pairs[here], by_tag.pairs[there])
            assert again_path.score[i] == path.score[b]
            assert np.array_equal(again_path.states[here], path.states[there])


@pytest.mark.parametrize("K", [6, 20])
def test_where_a_batch_is_cut_changes_nothing(monkeypatch: pytest.MonkeyPatch, K: int) -> None:
    batch = wide_batch(K, [4, 9, 0, 3, 30, 1, 8, 2, 5], seed=3)
    whole = forward_backward(batch)
    monkeypatch.setattr(plan, "PART_CELLS", 20)
    monkeypatch.setattr(plan, "PART_LIMIT", 200)
    cut = forward_backward(batch)
    assert np.array_equal(whole.states, cut.states)
    assert np.array_equal(whole.log_z, cut.log_z)
    close(whole.pairs, cut.pairs, rtol=0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 20, 40]), st.sampled_from([1, 4]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_masks_and_lists_give_equal_results(seed: int, K: int, width: int, per_token: bool) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 8, 5)
    bounds, N = np.concatenate([[0], np.cumsum(lengths)]), int(lengths.sum())
    trans = rng.normal(0.0, 2.0, (N, K, K) if per_token else (K, K))
    emit, start, end = rng.normal(0.0, 2.0, (N, K)), rng.normal(size=K), rng.normal(size=K)
    allowed = np.zeros((N, K), np.bool_)
    for n in range(N):
        allowed[n, rng.choice(K, min(width, K), replace=False)] = True
    masked = Batch(start, trans, emit, end, bounds).clamp(allowed)
    listed = Batch(start, trans, emit[allowed], end, bounds, Active.from_mask(allowed))
    one, other = forward_backward(masked), forward_backward(listed)
    close(one.log_z, other.log_z, rtol=0, atol=1e-9)
    close(one.states[allowed], other.states, rtol=0, atol=1e-9)
    assert not one.states[~allowed].any()
    close(one.pairs, other.pairs, rtol=0, atol=1e-9)
    close(pair_marginals(masked), pair_marginals(listed), rtol=0, atol=1e-9)
    tags = np.arange(K) % 3
    close(group(masked, tags).pairs, group(listed, tags).pairs, rtol=0, atol=1e-9)
    close(group(masked, tags).states, group(listed, tags).states, rtol=0, atol=1e-9)
    assert np.array_equal(viterbi(masked).states, viterbi(listed).states)
    close(viterbi(masked).score, viterbi(listed).score, rtol=0, atol=1e-9)
    for b in range(len(listed)):
        assert forward_backward(listed[b]).log_z == other.log_z[b]


def test_tokens_may_share_lists() -> None:
    """As in training with known tags: one list of neighbouring states per tag, many steps between the same two."""
    rng = np.random.default_rng(4)
    lists = [range(6), range(6, 9), range(9, 20)]
    tags, bounds = rng.integers(0, 3, 90), np.array([0, 40, 41, 90])
    active = Active.of([list(states) for states in lists], which=tags)
    listed = Batch(
        rng.normal(size=20),
        rng.normal(size=(20, 20)),
        rng.normal(size=int(active.at[-1])),
        np.zeros(20),
        bounds,
        active,
    )
    full = Batch(listed.start, listed.trans, active.dense(listed.emit, 20, -np.inf), listed.end, bounds)
    total, post = np.zeros((20, 20)), forward_backward(listed)
    for b in range(3):
        log_z, states, pairs = log_space(full[b])
        total += pairs
        close(post.log_z[b], log_z, rtol=0, atol=1e-9)
        close(active.dense(post.states, 20)[bounds[b] : bounds[b + 1]], states, rtol=0, atol=1e-9)
    close(post.pairs, total, rtol=0, atol=1e-9)


def test_lists_cost_their_own_lengths_and_mix_with_full_sequences() -> None:
    """Check that a sequence masked to few states and a free one take different forms and keep their positions."""
    batch = wide_batch(30, [6, 6, 6], seed=1)
    allowed = np.ones((18, 30), np.bool_)
    allowed[6:12] = np.arange(30) < 4
    mixed = batch.clamp(allowed)
    assert [part.form for part in plan.parts(mixed)] == [plan.Form.ROWS, plan.Form.LISTS]
    post = forward_backward(mixed)
    for b in range(3):
        log_z, states, _ = log_space(mixed[b])
        close(post.log_z[b], log_z, rtol=0, atol=1e-9)
        close(post.states[6 * b : 6 * b + 6], states, rtol=0, atol=1e-9)


@given(oracle.lattices(), st.data())
@settings(max_examples=100, deadline=None)
def test_group_and_project_agree_with_listing(lattice: Lattice, data: st.DataObject) -> None:
    listed = oracle.listing(lattice)
    assume(listed.paths)
    K = lattice.emit.shape[1]
    tags = data.draw(st.lists(st.integers(0, 2), min_size=K, max_size=K))
    seen = listed.tagged(tags)
    by_tag = group(lattice, np.array(tags))
    close(by_tag.states, seen.state_marginals(), rtol=0, atol=1e-9)
    close(by_tag.pairs, seen.pair_marginals(), rtol=0, atol=1e-9)
    assert np.array_equal(group(lattice, np.array(tags), pairs=False).states, by_tag.states)
    chain = project(lattice, np.array(tags))
    close(log_partition(chain), 0.0, rtol=0, atol=1e-9)
    close(forward_backward(chain).states, seen.state_marginals(), rtol=0, atol=1e-9)
    close(pair_marginals(chain), seen.pair_marginals(), rtol=0, atol=1e-9)


def test_project_of_a_batch_is_the_batch_of_projections() -> None:
    batch, tags = wide_batch(7, [3, 0, 5], seed=5), np.array([0, 0, 1, 1, 1, 2, 2])
    chains = project(batch, tags)
    for b in range(3):
        close(forward_backward(chains[b]).states, group(batch[b], tags).states, rtol=0, atol=1e-9)


def test_an_empty_sequence_has_one_empty_path() -> None:
    lattice = Lattice(np.full(2, -np.inf), np.zeros((2, 2)), np.zeros((0, 2)), np.full(2, -np.inf))
    post = forward_backward(lattice)
    assert post.log_z == 0.0
    assert post.states.shape == (0, 2)
    assert not post.pairs.any()
    assert pair_marginals(lattice).shape == (0, 2, 2)
    assert group(lattice, np.array([0, 0])).states.shape == (0, 1)


def test_one_token_needs_no_transition() -> None:
    lattice = Lattice(np.zeros(2), np.full((2, 2), -np.inf), np.log([[0.25, 0.75]]), np.zeros(2))
    post = forward_backward(lattice)
    close(post.states, [[0.25, 0.75]], rtol=0, atol=1e-12)
    assert post.log_z == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("K", [2, 30])
def test_an_impossible_sequence_is_named_with_the_place_where_it_dies(K: int) -> None:
    batch = wide_batch(K, [3, 4, 2])
    allowed = np.ones((9, K), np.bool_)
    allowed[5] = False
    for call in (forward_backward, viterbi, log_partition, pair_marginals):
        with pytest.raises(InfeasibleError, match=r"sequence 1 .*token 2"):
            call(batch.clamp(allowed))
    ending = Batch(batch.start, batch.trans, batch.emit, np.full(K, -np.inf), batch.bounds)
    for call in (forward_backward, viterbi):
        with pytest.raises(InfeasibleError, match=r"sequence 0 .*no state may end"):
            call(ending)
        with pytest.raises(InfeasibleError, match="the sequence of 3 tokens"):
            call(ending[0])


def test_tags_must_fit() -> None:
    with pytest.raises(DataError, match="each of 3 states"):
        group(wide_batch(3, [2])[0], np.array([0, 1]))


def test_read_only_arrays_are_as_good() -> None:
    batch = wide_batch(3, [4])
    for array in (batch.start, batch.trans, batch.emit, batch.end):
        array.flags.writeable = False
    assert forward_backward(batch).log_z == forward_backward(wide_batch(3, [4])).log_z
    assert np.array_equal(viterbi(batch).states, viterbi(wide_batch(3, [4])).states)
