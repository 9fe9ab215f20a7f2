"""Votes as observations of a conditional HMM, and its constant tables: first from a majority vote, then by EM.

T tokens, S sources, L tags, J symbols of a source: the tags, and silence where that is one; R rows of transitions: L,
or one where tokens are independent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Floats, Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import span_f1
from chaffinch.models.latent.span_probabilities import runs_inside
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.matrix import SILENT, VoteMatrix

EPSILON = 0.01  # weight of "not an entity" under the published rule for silent sources
DIAGONAL = 9.0  # prior counts of the true symbol per 1 over all symbols together; higher trusts sources more


class TokenInput(NamedTuple):
    """The votes of sources on some tokens, as input of a chain."""

    symbols: Floats  # (T, S, J) the weight of each symbol
    powers: Floats  # (T, S) how much each vote counts; 0 leaves it out
    voted: Bools  # (T,) some source calls the token an entity
    fixed: Floats | None = None  # (T, L) log-likelihoods of a constant HMM; layers add to them

    def part(self, tokens: Ints) -> TokenInput:
        """Return the input of some of the tokens, by number."""
        fixed = None if self.fixed is None else self.fixed[tokens]
        return TokenInput(self.symbols[tokens], self.powers[tokens], self.voted[tokens], fixed)


class TokenTables(NamedTuple):
    """Probabilities for all tokens, or expected counts before normalisation."""

    moves: Floats  # (R, L)
    votes: Floats  # (S, L, J)


def observe(vote_matrix: VoteMatrix, config: CHMM) -> TokenInput:
    """Return votes as weighted symbols, silence as the settings say; DataError for an unknown `reliable` source.

    >>> said = np.array([[1, -1], [-1, -1]], np.int16)
    >>> vote_matrix = VoteMatrix(("a", "b"), ("X",), said, np.array([0, 2]), np.array([0, 2]))
    >>> observe(vote_matrix, CHMM.published()).symbols.round(2).tolist()
    [[[0.0, 1.0, 0.0], [0.01, 0.33, 0.33]], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]
    """
    codes, L = vote_matrix.codes.astype(np.int64), 1 + 2 * len(vote_matrix.names)
    for name in config.reliable:
        if name not in vote_matrix.sources:
            raise DataError(f"reliable names source {name!r}; there is {', '.join(vote_matrix.sources) or 'none'}")
    J = L + (config.silence == "weighed")
    silent = codes == SILENT
    symbols = np.eye(L, J)[np.where(silent, 0, codes)]
    for name, rows in vote_matrix.soft.items():
        column = vote_matrix.sources.index(name)
        said = rows.sum(axis=1) > 0
        symbols[said, column, :L] = rows[said] / rows[said].sum(axis=1, keepdims=True)
    voted = np.asarray((codes > 0).any(axis=1))
    powers = np.ones(codes.shape)
    if config.silence == "published":
        keeps = np.array([name in config.reliable for name in vote_matrix.sources], np.bool_)
        symbols[(codes <= 0) & voted[:, None] & ~keeps] = np.append(EPSILON, np.full(L - 1, (1 - EPSILON) / L))
    else:  # where all are silent, silence counts in full: otherwise any token could be an entity
        tempered = silent & ~silent.all(axis=1, keepdims=True)
        if config.silence == "weighed":
            symbols[silent] = np.eye(J)[L]
        powers[tempered] = config.silence_weight if config.silence == "weighed" else 0.0
    return TokenInput(symbols, powers, voted)


def majority_tags(vote_matrix: VoteMatrix) -> Ints:
    """Return (T,) each token's majority tag, the lowest of equals; O only where no source votes for an entity."""
    counts = np.stack([(vote_matrix.codes == tag).sum(axis=1) for tag in range(1 + 2 * len(vote_matrix.names))], axis=1)
    counts[:, 0] = 0
    return np.asarray(counts.argmax(axis=1))


def first_tables(vote_matrix: VoteMatrix, seen: TokenInput, config: CHMM) -> TokenTables:
    """Return smoothed tables of moves and votes, counted as if the majority tags were the truth."""
    tags = majority_tags(vote_matrix)
    chances = np.eye(1 + 2 * len(vote_matrix.names))[tags]
    before = np.roll(tags, 1)
    before[vote_matrix.bounds[:-1][np.diff(vote_matrix.bounds) > 0]] = 0  # z_0 is O
    moves = np.zeros((chances.shape[1], chances.shape[1]))
    np.add.at(moves, (before, tags), 1.0)
    said = seen.symbols * (seen.powers > 0)[:, :, None]
    said = said / np.maximum(said.sum(axis=2, keepdims=True), 1e-30)
    votes = np.einsum("ti,tsj->sij", chances, said)
    counts = TokenTables(moves.sum(axis=0, keepdims=True) if config.iid else moves, votes)
    return maximise(counts, transition_mask(vote_matrix, config), max(config.prior, 0.1), None)


def transition_mask(vote_matrix: VoteMatrix, config: CHMM) -> Bools:
    """Return (L, L) which tag may follow which, all with `valid` off; with `iid`, (1, L) all."""
    L = 1 + 2 * len(vote_matrix.names)
    if config.iid:
        return np.ones((1, L), np.bool_)
    return np.array(vote_matrix.labels.follows[:L]) if config.valid else np.ones((L, L), np.bool_)


def maximise(counts: TokenTables, may: Bools, prior: float, before: TokenTables | None) -> TokenTables:
    """Return tables of highest posterior given expected counts and prior; a row of zeros keeps that of `before`."""
    L, J = counts.votes.shape[1:]
    confusion_prior = np.full((L, J), 1.0 / J) + DIAGONAL * np.eye(L, J)
    new_tables = TokenTables(
        _shares(np.where(may, counts.moves + prior / L, 0.0)), _shares(counts.votes + prior * confusion_prior)
    )  # fmt: skip
    if before is None:
        return new_tables
    return TokenTables(*(np.where(np.isnan(new), old, new) for new, old in zip(new_tables, before, strict=True)))


def _shares(counts: Floats) -> Floats:
    """Return counts divided by their sum over the last axis; NaN where that is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def repair_tags(tags: Ints, bounds: Ints) -> Ints:
    """Return the tags with every I that does not continue an entity of its label turned into a B.

    >>> repair_tags(np.array([2, 2, 0, 4]), np.array([0, 2, 4])).tolist()
    [1, 2, 0, 3]
    """
    out, inside = tags.copy(), (tags > 0) & (tags % 2 == 0)
    before = np.roll(tags, 1)
    before[bounds[:-1][np.diff(bounds) > 0]] = 0
    out[inside & (before != tags) & (before != tags - 1)] -= 1
    return out


def f1_of_tags(names: tuple[str, ...], bounds: Ints, gold: Ints, predicted: Ints) -> float:
    """Return F1 of the spans of predicted tags (T,) against gold; no span crosses a sentence's end (`bounds`)."""
    labels = Labels(names, "IOB2")
    spans = []
    for tags in (gold, predicted):
        starts, ends = runs_inside(labels, tags, bounds)
        spans.append(list(zip(starts.tolist(), ends.tolist(), tags[starts].tolist(), strict=True)))
    return span_f1(spans[:1], spans[1:])
