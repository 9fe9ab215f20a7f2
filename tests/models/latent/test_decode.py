"""Decoders of tags with latent sub-tags, against the sum over every path of states, written out as one big table."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError, InfeasibleError
from chaffinch.kernels import Batch, best_paths, project
from chaffinch.kernels.lattice import Bools, Floats, Ints, Lattice
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent import layout as decoding_parts
from chaffinch.models.latent.decode import DECODERS, Decoded, Decoder, decode, tag_chances
from tests.kernels import oracle

MODELS, SEED = 600, 11
S, K, N, V = 3, 3, 6, 6
TAGS = np.repeat(np.arange(S), K)


def every_tagging(lattice: Lattice, tags: Ints) -> Floats:
    """p(s | w) as a table with one axis per token and one entry per tag: every sequence of tags, its states summed."""
    emit, trans = np.exp(lattice.emit - lattice.emit.max(axis=1, keepdims=True)), np.exp(lattice.trans)
    of_tag = [np.flatnonzero(tags == s) for s in range(tags.max() + 1)]
    prefixes = np.exp(lattice.start) * emit[0]  # one axis per token before, and the states of the last
    for row in emit[1:]:
        prefixes = np.stack([prefixes[..., states] @ trans[states] * row for states in of_tag], axis=-2)
    prefixes = prefixes * np.exp(lattice.end)
    whole = np.stack([prefixes[..., states].sum(axis=-1) for states in of_tag], axis=-1)
    return np.asarray(whole / whole.sum())


def best_tagging(chances: Floats) -> tuple[int, ...]:
    return tuple(int(s) for s in np.unravel_index(int(chances.argmax()), chances.shape))


def marginal(chances: Floats, *tokens: int) -> Floats:
    return np.asarray(chances.sum(axis=tuple(n for n in range(chances.ndim) if n not in tokens)))


def alone(batch: Batch) -> Lattice:
    return batch[0]


def sparse_model(rng: np.random.Generator, sub_tags: int = K) -> tuple[Batch, Ints]:
    """A drawn model with a sentence drawn from it, and the sentence's words."""
    Z = S * sub_tags
    start = rng.dirichlet(np.ones(Z))
    to_tag = rng.dirichlet(np.full(S, 0.3), Z)
    to_sub_tag = rng.dirichlet(np.full(sub_tags, 0.3), (Z, S))
    trans = (to_tag[:, :, None] * to_sub_tag).reshape(Z, Z)
    emission = rng.dirichlet(np.full(V, 0.3), Z)
    state, words = int(rng.choice(Z, p=start)), []
    for _ in range(N):
        words.append(int(rng.choice(V, p=emission[state] / emission[state].sum())))
        state = int(rng.choice(Z, p=trans[state] / trans[state].sum()))
    with np.errstate(divide="ignore"):
        return Batch(
            np.log(start), np.log(trans), np.log(emission[:, words].T), np.zeros(Z), np.array([0, N])
        ), np.array(words)


@dataclass(frozen=True)
class Trial:
    batch: Batch
    words: Ints
    chances: Floats  # p(s | w)
    found: dict[Decoder, Decoded]

    def exact(self, how: Decoder) -> float:
        return float(self.chances[tuple(self.found[how].tags)])


@functools.cache
def trials() -> tuple[Trial, ...]:
    rng, out = np.random.default_rng(SEED), []
    for i in range(MODELS):
        batch, words = sparse_model(rng)
        found = {how: decode(batch, TAGS, how, words=words, exact_chance=i % 10 == 0) for how in DECODERS}
        out.append(Trial(batch, words, every_tagging(alone(batch), TAGS), found))
    return tuple(out)


def agreement(how: Decoder) -> float:
    return float(np.mean([tuple(t.found[how].tags) == best_tagging(t.chances) for t in trials()]))


def sentences(
    rng: np.random.Generator, lengths: list[int], sizes: list[int], spread: float = 1.5
) -> tuple[Batch, Ints]:
    """Random potentials for sentences of these lengths and tags of these many states."""
    Z, bounds = sum(sizes), np.cumsum([0, *lengths])
    start, trans, emit, end = (rng.normal(0, spread, shape) for shape in (Z, (Z, Z), (bounds[-1], Z), Z))
    return Batch(start, trans, emit, end, bounds), np.repeat(np.arange(len(sizes)), sizes)


def check_chances(batch: Batch, tags: Ints, found: Decoded) -> None:
    for i in range(len(batch)):
        mine = tuple(found.tags[batch.bounds[i] : batch.bounds[i + 1]])
        expected = every_tagging(batch[i], tags)[mine] if mine else 1.0
        assert found.chance[i] == pytest.approx(expected, abs=1e-9)


def test_the_oracle_agrees_with_listing_every_path_of_states() -> None:
    batch, tags = sentences(np.random.default_rng(1), [4], [2, 1, 1])
    listing = oracle.listing(batch[0]).tagged(tags.tolist())
    expected = np.zeros((3,) * 4)
    for score, path in listing.paths:
        expected[path] += np.exp(score - listing.log_z)
    np.testing.assert_allclose(every_tagging(batch[0], tags), expected, rtol=0, atol=1e-12)


def test_with_one_sub_tag_each_the_decoders_agree() -> None:
    rng, tags = np.random.default_rng(2), np.arange(S)
    for _ in range(60):
        batch, _ = sparse_model(rng, sub_tags=1)
        best = best_tagging(every_tagging(batch[0], tags))
        for how in ("joint", "kl", "kl+rerank", "brute", "tag-viterbi"):
            assert tuple(decode(batch, tags, how).tags) == best


def test_the_projected_chain_has_the_pairs_of_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "PRUNE", 0.0)
    batch, tags = sentences(np.random.default_rng(3), [2, 5, 1], [3, 1, 2])
    known = decoding_parts.TagPosterior.of(batch, decoding_parts.StateLayout.of(batch, tags))
    likely = Decoded(known.chances.argmax(axis=1), np.zeros(3))
    chain, kept = decoding._project(known, np.arange(3), likely)
    assert (kept == np.arange(3)).all()
    for i, (lo, hi) in enumerate(itertools.pairwise(batch.bounds.tolist())):
        chances = every_tagging(batch[i], tags)
        q = np.zeros(chances.shape)
        for s in itertools.product(range(3), repeat=hi - lo):
            steps = [chain.trans[lo + n, s[n - 1], s[n]] for n in range(1, hi - lo)]
            q[s] = np.exp(chain.emit[lo, s[0]] + sum(steps))
        for n in range(hi - lo - 1):
            np.testing.assert_allclose(marginal(q, n, n + 1), marginal(chances, n, n + 1), rtol=0, atol=1e-9)
        np.testing.assert_allclose(marginal(q, 0), marginal(chances, 0), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("how", "share"), [("joint", 0.868), ("kl", 0.920), ("kl-pooled", 0.568), ("kl+rerank", 1.0), ("posterior", 0.745)]
)
def test_decoders_find_the_best_tags_as_often_as_reported(how: Decoder, share: float) -> None:
    assert agreement(how) == pytest.approx(share, abs=0.04)


def test_the_order_of_the_decoders() -> None:
    assert agreement("joint") <= agreement("kl") <= agreement("kl+rerank")
    assert agreement("kl+rerank") >= 0.99
    assert agreement("tag-viterbi") > agreement("kl-pooled")
    assert agreement("brute") == 1.0


def test_reranking_never_loses_to_the_projection() -> None:
    for trial in trials():
        assert trial.exact("kl+rerank") >= trial.exact("kl") * (1 - 1e-9)


def test_chances_of_drawn_models_are_exact() -> None:
    for trial in trials()[::10]:
        for how in DECODERS:
            assert trial.found[how].chance[0] == pytest.approx(trial.exact(how), abs=1e-9)


def test_pooled_decoding_is_the_best_path_of_the_pooled_tables() -> None:
    rng = np.random.default_rng(18)
    batch, tags = sentences(rng, [5] * 20, [3, 2, 2])
    words = rng.integers(0, 3, 100)
    found = decode(batch, tags, "kl-pooled", words=words).tags.reshape(20, 5)
    for i, said in enumerate(words.reshape(20, 5).tolist()):
        chances = every_tagging(batch[i], tags)
        p1 = np.stack([marginal(chances, n) for n in range(5)])
        moves = np.sum([marginal(chances, n, n + 1) for n in range(4)], axis=0) / p1[:4].sum(axis=0)[:, None]
        emission = [p1[np.array(said) == said[n]].sum(axis=0) / p1.sum(axis=0) for n in range(5)]
        scores = {
            s: p1[0][s[0]]
            * np.prod([moves[a, b] for a, b in itertools.pairwise(s)])
            * np.prod([emission[n][s[n]] for n in range(5)])
            for s in itertools.product(range(3), repeat=5)
        }
        assert tuple(found[i]) == max(scores, key=lambda s: scores[s])


def test_tag_chances_are_the_marginals_of_tags() -> None:
    batch, tags = sentences(np.random.default_rng(4), [3, 0, 1, 5], [4, 2, 2, 1])
    p1 = tag_chances(batch, tags)
    for i, lo in enumerate(batch.bounds[:-1]):
        for n in range(len(batch[i])):
            np.testing.assert_allclose(p1[lo + n], marginal(every_tagging(batch[i], tags), n), rtol=0, atol=1e-9)


@pytest.mark.parametrize("cost_ratio", [0.5, 1.0, 3.0])
def test_posterior_decoding_has_the_most_right_tokens_of_all_valid_sequences(cost_ratio: float) -> None:
    rng = np.random.default_rng(5)
    mended = 0
    for _ in range(40):
        batch, tags = sentences(rng, [4, 1, 3], [3, 2, 1])
        follows = rng.random((5, 3)) < 0.6
        follows[:, 0] = True
        p1, free = tag_chances(batch, tags), decode(batch, tags, "posterior", cost_ratio=cost_ratio)
        gains = p1 * np.array([1.0, cost_ratio, cost_ratio])
        found = decode(batch, tags, "posterior", follows=follows, cost_ratio=cost_ratio)
        mended += int((found.tags != free.tags).any())
        for lo, hi in itertools.pairwise(batch.bounds.tolist()):
            mine, best = tuple(found.tags[lo:hi]), most_right(gains[lo:hi], follows)
            assert valid(mine, follows)
            assert gained(gains[lo:hi], mine) == pytest.approx(best, abs=1e-12)
    assert mended > 10


def valid(tags: tuple[int, ...], follows: Bools) -> bool:
    S = follows.shape[1]
    steps = all(follows[a, b] for a, b in itertools.pairwise(tags))
    return bool(follows[S, tags[0]] and follows[S + 1, tags[-1]] and steps)


def gained(gains: Floats, tags: tuple[int, ...]) -> float:
    return float(sum(gains[n, s] for n, s in enumerate(tags)))


def most_right(gains: Floats, follows: Bools) -> float:
    every = itertools.product(range(gains.shape[1]), repeat=len(gains))
    return max(gained(gains, tags) for tags in every if valid(tags, follows))


def test_a_dearer_miss_never_loses_an_identifier() -> None:
    batch, tags = sentences(np.random.default_rng(6), [12] * 20, [3, 2, 2])
    before, shares = np.zeros(len(batch.emit), np.bool_), []
    for cost_ratio in (0.1, 0.5, 1.0, 2.0, 5.0, 50.0):
        marked = decode(batch, tags, "posterior", cost_ratio=cost_ratio).tags > 0
        assert marked[before].all()
        before = marked
        shares.append(float(marked.mean()))
    assert shares[0] < shares[2] < shares[-1]


@pytest.mark.parametrize("cost_ratio", [0.25, 1.0, 4.0])
def test_of_two_tags_the_identifier_needs_one_over_one_plus_the_cost_ratio(cost_ratio: float) -> None:
    batch, tags = sentences(np.random.default_rng(7), [15] * 10, [3, 2])
    identifier = tag_chances(batch, tags)[:, 1] > 1 / (1 + cost_ratio)
    assert (decode(batch, tags, "posterior", cost_ratio=cost_ratio).tags == identifier).all()


@pytest.mark.parametrize("how", ["kl+rerank", "kl", "brute"])
@pytest.mark.parametrize("spread", [0.3, 1.0, 2.5])
def test_the_fast_path_changes_no_answer(how: Decoder, spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, tags = sentences(np.random.default_rng(8), [3, 7, 0, 1, 5] * 12, [4, 2, 2, 3], spread)
    fast = decode(batch, tags, how, exact_chance=True)
    monkeypatch.setattr(decoding, "SURE", 0.0)  # no sentence is sure
    monkeypatch.setattr(decoding_parts, "PAIR_CELLS", 200)  # and few go together
    monkeypatch.setattr(decoding_parts, "TILE", 7)
    slow = decode(batch, tags, how, exact_chance=True)
    assert (fast.tags == slow.tags).all()
    np.testing.assert_allclose(fast.chance, slow.chance, rtol=1e-9, atol=0)


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_search_is_as_good_as_ranking_the_whole_projection(spread: float) -> None:
    batch, tags = sentences(np.random.default_rng(9), [7] * 30, [4, 2, 2], spread)
    reranked, projected = decode(batch, tags), decode(batch, tags, "kl")
    for i, lo in enumerate(batch.bounds[:-1].tolist()):
        ranked = [tuple(path.states) for path in best_paths(project(batch[i], tags), 10)]
        chances = every_tagging(batch[i], tags)
        assert tuple(projected.tags[lo : lo + 7]) == ranked[0]
        mine = chances[tuple(reranked.tags[lo : lo + 7])]
        assert mine >= max(chances[path] for path in ranked) * (1 - 1e-9)


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.5])
def test_brute_force_finds_the_best_of_all(spread: float) -> None:
    batch, tags = sentences(np.random.default_rng(10), [1, 4, 6, 0, 6] * 4, [4, 2, 3], spread)
    found = decode(batch, tags, "brute")
    for i, (lo, hi) in enumerate(itertools.pairwise(batch.bounds.tolist())):
        assert lo == hi or tuple(found.tags[lo:hi]) == best_tagging(every_tagging(batch[i], tags))


def test_brute_force_hands_over_when_there_is_too_much_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LISTED", 1)
    monkeypatch.setattr(decoding, "SURE", 0.0)
    batch, tags = sentences(np.random.default_rng(12), [5] * 20, [3, 2, 2], 0.5)
    found, prefixes = decode(batch, tags, "brute"), decode(batch, tags, "tag-viterbi")
    assert (found.tags == prefixes.tags).mean() > 0.9  # but for sentences with one way left


def test_prefixes_are_kept_one_per_tag() -> None:
    batch, tags = sentences(np.random.default_rng(13), [5] * 15, [3, 2, 1])
    found = decode(batch, tags, "tag-viterbi").tags.reshape(15, 5)
    of_tag = [np.flatnonzero(tags == s) for s in range(3)]
    for i in range(15):
        lattice = batch[i]
        kept: dict[int, tuple[tuple[int, ...], Floats]] = {
            s: ((s,), (lattice.start + lattice.emit[0])[of_tag[s]]) for s in range(3)
        }
        for n in range(1, 5):
            extra = lattice.emit[n] + (lattice.end if n == 4 else 0.0)
            following: dict[int, tuple[tuple[int, ...], Floats]] = {}
            for s in range(3):
                options: list[tuple[float, tuple[int, ...], Floats]] = []
                for before, (prefix, scores) in kept.items():
                    moves = scores[:, None] + lattice.trans[np.ix_(of_tag[before], of_tag[s])]
                    vector = np.log(np.exp(moves).sum(axis=0)) + extra[of_tag[s]]
                    options.append((float(np.log(np.exp(vector).sum())), (*prefix, s), vector))
                best = max(options, key=lambda option: option[0])
                following[s] = best[1:]
            kept = following
        finals = {prefix: float(np.log(np.exp(scores).sum())) for prefix, scores in kept.values()}
        assert tuple(found[i]) == max(finals, key=lambda prefix: finals[prefix])


@pytest.mark.parametrize("how", DECODERS)
def test_short_empty_and_impossible(how: Decoder) -> None:
    rng = np.random.default_rng(14)
    batch, tags = sentences(rng, [0, 1, 4, 0, 1, 3, 5, 2], [3, 2, 2])
    trans, emit, start = batch.trans.copy(), batch.emit.copy(), batch.start.copy()
    trans[rng.random(trans.shape) < 0.2] = -np.inf
    emit[rng.random(emit.shape) < 0.2] = -np.inf
    trans[np.arange(7), np.arange(7)], trans[0], start[0] = 0.0, 0.0, 0.0  # so that something is always possible
    emit[:, 0] = 0.0
    emit[6:9, :3], emit[6:9, 5:] = -np.inf, -np.inf  # the sentence of three tokens: only tag 1
    emit[6:9, 3:5], start[3] = 0.0, 0.0
    batch = Batch(start, trans, emit, batch.end, batch.bounds)
    words = rng.integers(0, 3, len(emit))
    found = decode(batch, tags, how, words=words, exact_chance=True)
    assert found.tags.shape == (16,)
    assert found.tags[6:9].tolist() == [1, 1, 1]
    assert found.chance[[0, 3]].tolist() == [1.0, 1.0]
    check_chances(batch, tags, found)
    if how == "kl-pooled":
        return
    for i, (lo, hi) in enumerate(itertools.pairwise(batch.bounds.tolist())):  # neighbours change nothing
        one = Batch(start, trans, emit[lo:hi], batch.end, np.array([0, hi - lo]))
        assert decode(one, tags, how, words=words[lo:hi]).tags.tolist() == found.tags[lo:hi].tolist(), i


def test_tags_possible_pair_by_pair_but_not_together_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tag 1 is entered by its first state and left by its second, so that 0 1 0 is no path; 0 1 1 and 1 1 0 are."""
    never = -np.inf
    trans = np.full((3, 3), never)
    trans[0, 1] = trans[1, 1] = trans[2, 2] = trans[2, 0] = 0.0
    emit = np.array([[0.0, 0.0, 0.0], [never, 0.0, 0.0], [0.0, 0.0, 0.0]])
    batch = Batch(np.array([0.0, never, 0.0]), trans, emit, np.array([0.0, 0.0, never]), np.array([0, 3]))
    tags = np.array([0, 1, 1])
    for how in ("kl+rerank", "brute", "joint"):
        found = decode(batch, tags, how, exact_chance=True)
        assert found.tags.tolist() in ([0, 1, 1], [1, 1, 0])
        assert found.chance[0] == pytest.approx(0.5)
    monkeypatch.setattr(decoding, "BEST", 1)
    assert decode(batch, tags).chance[0] == pytest.approx(0.5)  # though the projection ranks 0 1 0 first
    assert decode(batch, tags, "posterior", exact_chance=True).chance[0] == 0.0


def test_a_sentence_without_any_path_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_parts, "TILE", 1)
    batch, tags = sentences(np.random.default_rng(15), [2, 2], [2, 1])
    emit = batch.emit.copy()
    emit[2] = -np.inf
    for how in DECODERS:
        with pytest.raises(InfeasibleError, match="sequence 1 of 2 tokens has no possible path"):
            decode(
                Batch(batch.start, batch.trans, emit, batch.end, batch.bounds), tags, how, words=np.zeros(4, np.int64)
            )


def test_what_cannot_be_is_refused() -> None:
    batch, tags = sentences(np.random.default_rng(16), [2], [2, 1])
    for wrong in ([0, 2, 2], [1, 1, 2], [0, 1, 0], [0, 1]):
        with pytest.raises(DataError, match="tags must rise"):
            decode(batch, np.array(wrong))
    with pytest.raises(DataError, match="follows must have shape"):
        decode(batch, tags, "posterior", follows=np.ones((2, 2), np.bool_))
    with pytest.raises(ConfigError, match="kl-pooled needs words"):
        decode(batch, tags, "kl-pooled")
    with pytest.raises(ConfigError, match="cost_ratio"):
        decode(batch, tags, "posterior", cost_ratio=0.0)
    with pytest.raises(ConfigError, match="decoder must be one of"):
        decode(batch, tags, "greedy")  # type: ignore[arg-type]  # on purpose


def test_an_empty_batch_has_no_tags() -> None:
    batch, tags = sentences(np.random.default_rng(17), [], [2, 1])
    for how in DECODERS:
        found = decode(batch, tags, how, words=np.zeros(0, np.int64), exact_chance=True)
        assert found.tags.shape == (0,)
        assert found.chance.shape == (0,)
