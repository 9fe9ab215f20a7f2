"""The score of a labelling of repeated words, and learning its weights by pseudo-likelihood.

Score of a labelling y of one word's m occurrences (o, p), a clique:

    sum_o f(y_o, o) . unary + sum_{o<p} g(y_o, y_p, o, p) . pair / (m - 1)

M nodes of all graphs, L labels, of which number 0 is "O", A kinds of likeness, B buckets of log-odds, F lexical
features, K lexical observations of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import Floats, Ints
from chaffinch.models.alignment.graph import ALIKE, Flags, Keys, RepeatedWords

EDGES = np.array([-9.0, -7.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0])  # of log-odds
B = len(EDGES) + 1
SMALLEST = 1e-6  # probabilities are clipped to this distance from 0 and 1, so that log-odds are finite
ROUNDS = 200  # most iterations of L-BFGS
# Default weights, chosen on cross-fitted notes of MEDDOCAN: two occurrences agree on O, or on an identifier; a node
# keeps the identifier that the tagger found.
AGREE, KEPT = (2.0, 4.0), 6.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CliqueWeights:
    """The weights of the score. Row 0 of `unary` and `same` is for O, row 1 for any identifier."""

    unary: Floats  # (2, 2 + B) a bias; the tagger chose the label; by the tagger's log-odds for the label
    same: Floats  # (2, A) two occurrences have this label and are alike
    differ: Floats  # (1,) two occurrences have different identifiers
    lexical: Floats  # (F, L) by the words and shapes around the occurrence

    def pairs(self, labels: Ints) -> Floats:
        """Return (A, C, C) the score of two of these labels together, for each kind of likeness."""
        found = labels > 0
        out = self.same.T[:, found.astype(np.int64), None] * np.eye(len(labels))
        out[0] += self.differ * (found[:, None] & found & ~np.eye(len(labels), dtype=np.bool_))
        return np.asarray(out)

    def flat(self) -> Floats:
        """Return all weights in one row (a copy)."""
        return np.concatenate([self.unary.ravel(), self.same.ravel(), self.differ, self.lexical.ravel()])

    def like(self, flat: Floats) -> CliqueWeights:
        """Return weights of the same shapes as these, cut from one flat row."""
        sizes = [self.unary.size, self.same.size, self.differ.size]
        unary, same, differ, lexical = np.split(flat, np.cumsum(sizes))
        return CliqueWeights(
            unary.reshape(self.unary.shape), same.reshape(self.same.shape), differ, lexical.reshape(self.lexical.shape)
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nodes:
    """Occurrences as inputs of the score."""

    tags: Ints  # (M,) the tagger's labels
    buckets: Ints  # (M, L) of the log-odds
    shares: Floats  # (A, M, L) of the other occurrences
    features: Ints  # (M, K) rows of the lexical weights; F where there is none

    @classmethod
    def of(cls, words: RepeatedWords, tokens: Ints, shares: Floats, features: Ints) -> Nodes:
        """Return these tokens (M,) of graphs as nodes: tags, bins of log-odds, shares of labels, lexical features."""
        chances = np.clip(words.chances[tokens], SMALLEST, 1.0 - SMALLEST)
        buckets = np.searchsorted(EDGES, np.log(chances) - np.log1p(-chances), side="right")
        return cls(words.tags[tokens], buckets, shares, features)

    @classmethod
    def concatenate(cls, parts: Sequence[Nodes]) -> Nodes:
        """Return the nodes of several patients as one."""
        return cls(
            np.concatenate([part.tags for part in parts]),
            np.concatenate([part.buckets for part in parts]),
            np.concatenate([part.shares for part in parts], axis=1),
            np.concatenate([part.features for part in parts]),
        )

    def select(self, where: Flags) -> Nodes:
        """Return the nodes where the mask (M,) is True."""
        return Nodes(self.tags[where], self.buckets[where], self.shares[:, where], self.features[where])

    def scores(self, weights: CliqueWeights) -> Floats:
        """Return (M, L) the scores of labels at every node, given the shares of labels among the other occurrences."""
        out = np.where(np.arange(self.buckets.shape[1]) > 0, weights.unary[1, 0], weights.unary[0, 0])
        out = out + np.concatenate(
            [weights.unary[0, 2 + self.buckets[:, :1]], weights.unary[1, 2 + self.buckets[:, 1:]]], axis=1
        )
        rows = np.arange(len(self.tags))
        out[rows, self.tags] += weights.unary[np.minimum(self.tags, 1), 1]
        out += np.tensordot(weights.same[1], self.shares, 1)
        out[:, 0] += (weights.same[0] - weights.same[1]) @ self.shares[:, :, 0]
        out[:, 1:] += weights.differ * self.others()
        if len(weights.lexical):
            padded = np.concatenate([weights.lexical, np.zeros((1, weights.lexical.shape[1]))])
            for column in self.features.T:
                out += padded[column]
        return np.asarray(out)

    def others(self) -> Floats:
        """Return (M, L - 1): per label but O, the share of other occurrences with a different label that is not O."""
        found = self.shares[0, :, 1:]
        return np.asarray(found.sum(axis=1, keepdims=True) - found)

    def gradient(self, weights: CliqueWeights, pull: Floats) -> CliqueWeights:
        """Return the sum of `pull` (M, L) times the gradient of the scores, in the shapes of the weights."""
        unary = np.zeros_like(weights.unary)
        chosen = pull[np.arange(len(self.tags)), self.tags]
        for row, columns in ((0, slice(0, 1)), (1, slice(1, None))):
            part, bucket = pull[:, columns], self.buckets[:, columns]
            unary[row, 0] = part.sum()
            unary[row, 1] = chosen[(self.tags > 0) == bool(row)].sum()
            unary[row, 2:] = np.bincount(bucket.ravel(), weights=part.ravel(), minlength=B)
        outside = self.shares[:, :, 0] @ pull[:, 0]
        same = np.stack([outside, self.shares.reshape(len(ALIKE), -1) @ pull.ravel() - outside])
        differ = np.array([(self.others() * pull[:, 1:]).sum()])
        return CliqueWeights(unary, same, differ, self._lexical_gradient(weights, pull))

    def _lexical_gradient(self, weights: CliqueWeights, pull: Floats) -> Floats:
        """Return the gradient of the lexical weights: the pull of every node, summed over its features."""
        from scipy.sparse import csr_matrix

        F = len(weights.lexical)
        M, K = self.features.shape
        if not F:
            return np.zeros_like(weights.lexical)
        shown = (np.ones(M * K), self.features.ravel(), np.arange(0, M * K + 1, K))
        return np.asarray((csr_matrix(shown, shape=(M, F + 1)).T @ pull)[:F])


def objective(
    weights: CliqueWeights, nodes: Nodes, candidates: Flags, gold: Ints, *, penalty: float, prior: CliqueWeights
) -> tuple[float, CliqueWeights]:
    """Return minus the log pseudo-likelihood of the gold labels (M,), with its penalty, and the gradient.

    A gold label must be among the candidates (M, L). The penalty is on the square of the distance to the prior.
    """
    scores = np.where(candidates, nodes.scores(weights), -np.inf)
    top = scores.max(axis=1, keepdims=True)
    chances = np.exp(scores - top)
    totals = chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(gold))
    value = (np.log(totals) + top)[:, 0].sum() - scores[rows, gold].sum()
    pull = chances / totals
    pull[rows, gold] -= 1.0
    away = weights.flat() - prior.flat()
    slope = nodes.gradient(weights, pull).flat() + penalty * away
    return float(value + penalty / 2 * (away @ away)), weights.like(slope)


def learn(nodes: Nodes, candidates: Flags, gold: Ints, *, penalty: float, prior: CliqueWeights) -> CliqueWeights:
    """Return weights that maximise the penalised pseudo-likelihood of gold labels, given the graph's others; L-BFGS."""
    from scipy.optimize import minimize

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient at these weights, as flat arrays."""
        value, slope = objective(prior.like(flat), nodes, candidates, gold, penalty=penalty, prior=prior)
        return value, slope.flat()

    found = minimize(loss, prior.flat(), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    return prior.like(np.asarray(found.x))


def vocabulary(keys: Keys, hidden: Flags, patients: Ints, floor: int) -> Keys:
    """Return the keys (M, K), sorted, shown not `hidden` (M, K) by `floor` or more distinct `patients` (M,)."""
    owner = np.broadcast_to(patients[:, None], keys.shape)[~hidden]
    pairs = np.unique(np.stack([keys[~hidden], owner.astype(np.uint64)], axis=1), axis=0)
    known, users = np.unique(pairs[:, 0], return_counts=True)
    return np.asarray(known[users >= floor])


def look_up(vocabulary: Keys, keys: Keys) -> Ints:
    """Return each key's number in a sorted vocabulary, or the vocabulary's length if it is not there."""
    index = np.searchsorted(vocabulary, keys)
    if not len(vocabulary):
        return np.zeros(keys.shape, np.int64)
    found = vocabulary[np.minimum(index, len(vocabulary) - 1)] == keys
    return np.where(found, index, len(vocabulary))


def default_weights() -> CliqueWeights:
    """Return weights that need no training: the tagger's log-odds, a bonus for its identifiers, and agreement.

    Chosen on cross-fitted notes of MEDDOCAN. Likenesses have weight 0, so that inference by label counts is exact.
    """
    middle = np.concatenate([[EDGES[0] - 1], (EDGES[:-1] + EDGES[1:]) / 2, [EDGES[-1] + 1]])
    unary = np.stack([np.concatenate([[0.0, kept], middle / 2]) for kept in (0.0, KEPT)])
    same = np.zeros((2, len(ALIKE)))
    same[:, 0] = AGREE
    return CliqueWeights(unary, same, np.zeros(1), np.zeros((0, 1)))
