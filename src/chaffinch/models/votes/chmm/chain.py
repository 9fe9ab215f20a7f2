"""The chain of a conditional HMM: transitions and likelihoods per token, exact posteriors, and gradients.

z_0 precedes each sentence and is almost surely O; the first token's transition leads from it. Gradients are
those of the expected log-likelihood with posteriors fixed, which equal those of the likelihood itself.

T tokens in B sentences, S sources, L tags, J symbols, R rows of transitions: L, or 1 where tokens are independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, group
from chaffinch.models.votes.chmm import layer as chmm_net
from chaffinch.models.votes.chmm.layer import Rows, Weights, softmax
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables

MAX_NUMBERS = 2_000_000  # of per-token tables in memory at once; larger needs more memory
START = 1e-6  # probability of each tag except O before a sentence; higher lets more sentences begin with I


class Chain(NamedTuple):
    """Parameters of a chain: tables for all tokens, layers that read embeddings with their share, and base logs."""

    tables: TokenTables
    weights: Weights | None
    share: float  # of the layers
    base: TokenTables  # logs that logits are added to: of tables, or 0; -inf is impossible
    strict: bool  # a token that some source calls an entity is one
    end: Floats  # (L,) 0 where a sentence may end, else -inf

    @property
    def tile(self) -> int:
        """Return how many tokens' probabilities may be in memory at once, at least 1."""
        return max(MAX_NUMBERS // (self.tables.votes.size + self.tables.moves.size), 1)


class ChainProbabilities(NamedTuple):
    """The transition and vote probabilities of a chain at some tokens."""

    moves: Floats  # (T, R, L) by the layers; or (1, R, L) without
    votes: Rows  # (T, S, L, J); or (1, S, L, J)
    mixed: Floats  # (T or 1, R, L) tables and layers, mixed by share
    factors: Floats  # (T, S, L) the probability of each source's vote
    emit: Floats  # (T, L) their weighted logs, summed over sources


class ChainPosterior(NamedTuple):
    """Posterior of some sentences under the chain, with expected counts and gradients."""

    log_likelihood: Floats  # (B,)
    chances: Floats  # (T, L)
    counts: TokenTables  # of the tables
    slopes: Weights  # of the log-likelihood, in the layers' weights; none without layers


def evaluate_chain(chain: Chain, rows: Rows, seen: TokenInput) -> ChainProbabilities:
    """Return the probabilities of transitions into tokens with embeddings `rows` (T, D), and of the votes on them."""
    R, L = chain.tables.moves.shape
    S, _, J = chain.tables.votes.shape
    moves, votes = chain.tables.moves[None], chain.tables.votes[None]
    if chain.weights is not None:
        up, down = chmm_net.logits(chain.weights, rows)
        moves = softmax(up.reshape(-1, R, L), chain.base.moves).astype(np.float64)
        votes = softmax(down.reshape(-1, S, L, J), chain.base.votes)
    share = chain.share if chain.weights is not None else 0.0
    mixed = (1 - share) * chain.tables.moves + share * moves
    factors = (1 - share) * np.einsum("sij,tsj->tsi", chain.tables.votes, seen.symbols)
    if share:
        factors = factors + share * (votes @ seen.symbols.astype(votes.dtype)[:, :, :, None])[..., 0]
    emit = _sum_log_factors(factors, seen)
    if seen.fixed is not None:
        plain = _sum_log_factors(np.einsum("sij,tsj->tsi", chain.tables.votes, seen.symbols), seen) if share else emit
        emit = seen.fixed + emit - plain
    if chain.strict:
        emit[seen.voted, 0] = -np.inf
    return ChainProbabilities(moves, votes, mixed, factors, emit)


def _sum_log_factors(factors: Floats, seen: TokenInput) -> Floats:
    """Return the sum over sources of the logs of factors, each times the power of its vote (T, L)."""
    powers = seen.powers[:, :, None]
    with np.errstate(divide="ignore"):
        return np.asarray((np.where(powers > 0, np.log(factors), 0.0) * powers).sum(axis=1))


def batch_of(chain: Chain, probs: ChainProbabilities, bounds: Ints) -> tuple[Batch, Ints]:
    """Return (sentences as lattices that begin with z_0, an added state before; the positions of their tokens (T,))."""
    T, L = probs.emit.shape
    B = len(bounds) - 1
    positions = np.arange(T) + np.repeat(np.arange(1, B + 1), np.diff(bounds))
    emit, trans = np.zeros((T + B, L)), np.zeros((T + B, L, L))
    with np.errstate(divide="ignore"):
        emit[positions], trans[positions] = probs.emit, np.log(probs.mixed)
    return Batch(_start(L), trans, emit, chain.end, bounds + np.arange(B + 1)), positions


def read_batch(chain: Chain, probs: ChainProbabilities, bounds: Ints) -> Batch:
    """Return sentences as lattices without z_0 (the state before the first token), which is summed out."""
    T, L = probs.emit.shape
    first, emit = bounds[:-1][np.diff(bounds) > 0], probs.emit.copy()
    mixed = np.broadcast_to(probs.mixed, (T, *probs.mixed.shape[1:]))
    with np.errstate(divide="ignore"):
        emit[first] += np.log(
            np.einsum("i,tij->tj", np.exp(_start(L)), np.broadcast_to(mixed[first], (len(first), L, L)))
        )
        trans = np.log(np.broadcast_to(mixed, (T, L, L)))
    return Batch(np.zeros(L), trans, emit, chain.end, bounds)


def _start(L: int) -> Floats:
    """Return (L,) the log-probabilities of z_0, the state before a sentence: nearly surely O."""
    return np.asarray(np.log(np.append(1.0 - (L - 1) * START, np.full(L - 1, START))))


def expect(chain: Chain, rows: Rows, seen: TokenInput, bounds: Ints) -> ChainPosterior:
    """Return sentences' posterior, expected counts of the tables, and the layers' gradient ({} without them)."""
    probs = evaluate_chain(chain, rows, seen)
    batch, positions = batch_of(chain, probs, bounds)
    post = group(batch, np.arange(probs.emit.shape[1]))
    chances, pairs = post.states[positions], post.pairs[positions]
    if chain.tables.moves.shape[0] == 1:
        pairs = pairs.sum(axis=1, keepdims=True)
    share = chain.share if chain.weights is not None else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(pairs > 0, pairs / probs.mixed, 0.0)
        weighted = chances[:, None, :] * seen.powers[:, :, None]
        said = np.where(weighted > 0, weighted / probs.factors, 0.0)  # (T, S, L)
    counts = TokenTables(
        (1 - share) * chain.tables.moves * moved.sum(axis=0),
        (1 - share) * chain.tables.votes * np.einsum("tsi,tsj->sij", said, seen.symbols),
    )
    if chain.weights is None or not share:
        return ChainPosterior(post.log_z, chances, counts, {})
    up = share * probs.moves * moved
    up -= probs.moves * up.sum(axis=2, keepdims=True)
    dtype = probs.votes.dtype
    right = (share * said[:, :, :, None]).astype(dtype) * seen.symbols.astype(dtype)[:, :, None, :]
    right -= (probs.votes[..., None, :] @ right[..., None])[..., 0]
    down = probs.votes * right
    return ChainPosterior(
        post.log_z, chances, counts, chmm_net.weight_gradient(chain.weights, rows, _flat(up), _flat(down))
    )


def warm_start_gradient(chain: Chain, rows: Rows, seen: TokenInput) -> Weights:
    """Return the weights' gradient of minus the mean squared error of layers' probabilities from the tables."""
    probs, T = evaluate_chain(chain, rows, seen), len(rows)
    out = []
    for actual, target in ((probs.moves, chain.tables.moves), (probs.votes, chain.tables.votes)):
        slope = 2.0 * (target - actual) / T
        out.append(_flat(actual * (slope - (slope * actual).sum(axis=-1, keepdims=True))))
    return chmm_net.weight_gradient(chain.weights or {}, rows, *out)


def _flat(values: Floats) -> Floats:
    """Return an array with all axes but the first merged into one."""
    return values.reshape(len(values), int(np.prod(values.shape[1:])))
