"""The chain of a conditional HMM: its transitions and likelihoods token by token, exact posteriors, and gradients.

z_0 stands before each sentence and is O but for a trifle; the first token's transition leads from it. Gradients are
those of the expected log-likelihood with posteriors held, which are those of the likelihood itself.

T tokens in B sentences, S sources, L tags, J symbols, R rows of transitions: L, or 1 where tokens are independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, group
from chaffinch.models.votes.chmm import layer as chmm_net
from chaffinch.models.votes.chmm.layer import Rows, Weights, softmax
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables

HELD = 2_000_000  # numbers
START = 1e-6  # the chance of each tag but O before a sentence


class Chain(NamedTuple):
    """What a chain is made of: tables for all tokens, a share of layers that read embeddings, and what they add to."""

    tables: TokenTables
    weights: Weights | None
    share: float  # of the layers
    base: TokenTables  # logs that logits are added to: of tables, or 0; -inf is impossible
    strict: bool  # a token that some source calls an entity is one
    end: Floats  # (L,) 0 where a sentence may end, else -inf

    @property
    def tile(self) -> int:
        """Tokens whose probabilities are held at once."""
        return max(HELD // (self.tables.votes.size + self.tables.moves.size), 1)


class Laid(NamedTuple):
    """A chain laid over tokens."""

    moves: Floats  # (T, R, L) by the layers; or (1, R, L) without
    votes: Rows  # (T, S, L, J); or (1, S, L, J)
    mixed: Floats  # (T or 1, R, L) both parts together
    factors: Floats  # (T, S, L) the probability of each source's vote
    emit: Floats  # (T, L) its logs, summed


class ChainPosterior(NamedTuple):
    """What the votes on some sentences make of the chain."""

    log_likelihood: Floats  # (B,)
    chances: Floats  # (T, L)
    counts: TokenTables  # of the tables
    slopes: Weights  # of the log-likelihood, in the layers' weights; none without layers


def lay(chain: Chain, rows: Rows, seen: TokenInput) -> Laid:
    """The probabilities of transitions into tokens with embeddings (T, D), and of the votes on them."""
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
    emit = _summed(factors, seen)
    if seen.fixed is not None:
        plain = _summed(np.einsum("sij,tsj->tsi", chain.tables.votes, seen.symbols), seen) if share else emit
        emit = seen.fixed + emit - plain
    if chain.strict:
        emit[seen.voted, 0] = -np.inf
    return Laid(moves, votes, mixed, factors, emit)


def _summed(factors: Floats, seen: TokenInput) -> Floats:
    """(T, L) the logs of factors, as often as each vote counts."""
    powers = seen.powers[:, :, None]
    with np.errstate(divide="ignore"):
        return np.asarray((np.where(powers > 0, np.log(factors), 0.0) * powers).sum(axis=1))


def batch_of(chain: Chain, laid: Laid, bounds: Ints) -> tuple[Batch, Ints]:
    """Sentences as lattices with z_0 before them, and where their tokens stand; an empty one has z_0 alone."""
    T, L = laid.emit.shape
    B = len(bounds) - 1
    places = np.arange(T) + np.repeat(np.arange(1, B + 1), np.diff(bounds))
    emit, trans = np.zeros((T + B, L)), np.zeros((T + B, L, L))
    with np.errstate(divide="ignore"):
        emit[places], trans[places] = laid.emit, np.log(laid.mixed)
    return Batch(_start(L), trans, emit, chain.end, bounds + np.arange(B + 1)), places


def read_batch(chain: Chain, laid: Laid, bounds: Ints) -> Batch:
    """The same sentences without z_0, which is summed out."""
    T, L = laid.emit.shape
    first, emit = bounds[:-1][np.diff(bounds) > 0], laid.emit.copy()
    mixed = np.broadcast_to(laid.mixed, (T, *laid.mixed.shape[1:]))
    with np.errstate(divide="ignore"):
        emit[first] += np.log(
            np.einsum("i,tij->tj", np.exp(_start(L)), np.broadcast_to(mixed[first], (len(first), L, L)))
        )
        trans = np.log(np.broadcast_to(mixed, (T, L, L)))
    return Batch(np.zeros(L), trans, emit, chain.end, bounds)


def _start(L: int) -> Floats:
    """(L,) the log chances of z_0."""
    return np.asarray(np.log(np.append(1.0 - (L - 1) * START, np.full(L - 1, START))))


def expect(chain: Chain, rows: Rows, seen: TokenInput, bounds: Ints) -> ChainPosterior:
    """The posterior of some sentences, and all that is learnt from it."""
    laid = lay(chain, rows, seen)
    batch, places = batch_of(chain, laid, bounds)
    found = group(batch, np.arange(laid.emit.shape[1]))
    chances, pairs = found.states[places], found.pairs[places]
    if chain.tables.moves.shape[0] == 1:
        pairs = pairs.sum(axis=1, keepdims=True)
    share = chain.share if chain.weights is not None else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(pairs > 0, pairs / laid.mixed, 0.0)
        weighed = chances[:, None, :] * seen.powers[:, :, None]
        said = np.where(weighed > 0, weighed / laid.factors, 0.0)  # (T, S, L)
    counts = TokenTables(
        (1 - share) * chain.tables.moves * moved.sum(axis=0),
        (1 - share) * chain.tables.votes * np.einsum("tsi,tsj->sij", said, seen.symbols),
    )
    if chain.weights is None or not share:
        return ChainPosterior(found.log_z, chances, counts, {})
    up = share * laid.moves * moved
    up -= laid.moves * up.sum(axis=2, keepdims=True)
    own = laid.votes.dtype
    right = (share * said[:, :, :, None]).astype(own) * seen.symbols.astype(own)[:, :, None, :]
    right -= (laid.votes[..., None, :] @ right[..., None])[..., 0]
    down = laid.votes * right
    return ChainPosterior(found.log_z, chances, counts, chmm_net.slopes(chain.weights, rows, _flat(up), _flat(down)))


def towards(chain: Chain, rows: Rows, seen: TokenInput) -> Weights:
    """The gradient of minus the mean square by which the layers' probabilities miss the tables (warm start)."""
    laid, T = lay(chain, rows, seen), len(rows)
    out = []
    for found, wanted in ((laid.moves, chain.tables.moves), (laid.votes, chain.tables.votes)):
        slope = 2.0 * (wanted - found) / T
        out.append(_flat(found * (slope - (slope * found).sum(axis=-1, keepdims=True))))
    return chmm_net.slopes(chain.weights or {}, rows, *out)


def _flat(values: Floats) -> Floats:
    return values.reshape(len(values), int(np.prod(values.shape[1:])))
