"""Estimated quality of each source, from the posterior of a MultiHMM, without gold.

T tokens, S sources, E labels, L tags in IOB2, K states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chaffinch.kernels import Floats, forward_backward
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.model import Model
from chaffinch.models.votes.multihmm.patterns import LETTERS, observe, state_tags
from chaffinch.models.votes.multihmm.spans import Spans, list_proposals


@dataclass(frozen=True, slots=True, eq=False)
class SourceEstimate:
    """The estimated quality of one source; (E,) by label, NaN where there is nothing to measure."""

    source: str
    weight: float  # exponent of its likelihood, for its dependence on others
    silence: float  # weight of its silence, where others vote
    span_precision: Floats  # (E,)
    span_recall: Floats  # (E,)
    token_precision: Floats  # (E,)
    token_recall: Floats  # (E,)
    rates: Floats  # (L,) how often it votes on a token with this tag
    confusion: Floats  # (L, L) row: true tag, column: its vote, if it votes


def estimates(model: Model, vote_matrix: VoteMatrix) -> list[SourceEstimate]:
    """Return each source's weights, and the precision, recall and confusion that the model expects on these votes."""
    vote_matrix = model.select_votes(vote_matrix)
    seen, E = observe(vote_matrix), len(model.names)
    chains = model.chains(vote_matrix, seen)
    marginals = forward_backward(chains.batch, pairs=False).states
    by_row = seen.by_row(marginals, chains.tokens)
    by_row[:, 0] += np.bincount(seen.rows[chains.outside], minlength=len(by_row))
    by_letter = by_row[:, 1:].reshape(len(by_row), E, LETTERS)
    in_label = by_letter.sum(axis=2)  # (P, E)
    begun = by_letter[:, :, [0, 3]].sum(axis=(0, 2))
    first, end, label, source = list_proposals(vote_matrix)
    every = Spans(first, end, label, np.ones(len(first), np.int64))
    chances = chains.span_chances(marginals, every)
    rates, confusion = _by_tag(model, by_row.sum(axis=0))
    out = []
    for k, name in enumerate(model.sources):
        votes = (seen.votes[:, k] - 1) // LETTERS
        hits = np.array([in_label[votes == e, e].sum() for e in range(E)])
        said = np.array([float(seen.counts[votes == e].sum()) for e in range(E)])
        mine = source == k
        right, all_mine = (np.bincount(label[mine], mass, E).astype(float) for mass in (chances[mine], None))
        out.append(
            SourceEstimate(
                name, float(model.weights.sources[k]), float(model.weights.silence[k]),
                _ratio(right, all_mine), _ratio(right, begun), _ratio(hits, said),
                _ratio(hits, in_label.sum(axis=0)), rates[k], confusion[k],
            )
        )  # fmt: skip
    return out


def _by_tag(model: Model, mass: Floats) -> tuple[Floats, Floats]:
    """Return ((S, L) rates, (S, L, L) confusions) by IOB2 tag, with states weighted by their mass (K,)."""
    tag_of = state_tags(len(model.names))
    member = (tag_of[:, None] == np.arange(tag_of.max() + 1)).astype(float)  # (K, L)
    shares = (mass + 1e-9)[:, None] * member
    shares /= shares.sum(axis=0)
    return model.tables.rates @ shares, np.einsum("kl,skj,jm->slm", shares, model.tables.confusion, member)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; NaN where the whole is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
