"""What a state shows: a word symbol, a tempered product of several symbols, or a word that backs off to its signature.

Z states, V symbols of one kind, F kinds, N tokens, M cells: one per token and allowed state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import digamma, gammaln

from chaffinch.kernels import Active, add_rows, sum_rows
from chaffinch.kernels.lattice import Floats, Ints

Known: TypeAlias = Ints  # (N, F) the symbol of each kind at each token
Tables: TypeAlias = tuple[Floats, ...]  # (V, Z) each

SWITCH = 1.0  # Beta prior of backing off


@dataclass(frozen=True, slots=True, eq=False)
class Emissions:
    """Dirichlet rows over symbols, one kind after another, each worth `temper` of a likelihood.

    Counts and priors are tempered alike, so that learning climbs the bound of the tempered likelihood.
    """

    sizes: tuple[int, ...]  # V of each kind
    alpha: float  # of all kinds, at first
    temper: float = 1.0
    learnt: tuple[float, ...] = ()  # alpha of each kind, once it was learnt

    @property
    def alphas(self) -> tuple[float, ...]:
        """The concentration of each table's Dirichlets."""
        return self.learnt or (self.alpha,) * len(self.sizes)

    def posterior(self, counts: Tables) -> Tables:
        """The Dirichlet parameters after those counts."""
        return tuple(self.temper * (alpha + own) for own, alpha in zip(counts, self.alphas, strict=True))

    def logs(self, q: Tables) -> Tables:
        """Expected logs, tempered."""
        pairs = zip(q, self.alphas, strict=True)
        return tuple(self.temper * _expected(own, self.temper * alpha) for own, alpha in pairs)

    def log_means(self, q: Tables) -> Tables:
        """Logs of means, tempered."""
        return tuple(self.temper * np.log(own / own.sum(axis=0)) for own in q)

    def divergence(self, q: Tables) -> float:
        """KL from the prior."""
        return sum(_divergence(own, self.temper * alpha) for own, alpha in zip(q, self.alphas, strict=True))

    def cells(self, logs: Tables, known: Known, active: Active) -> Floats:
        """(M,) the log-potential of each cell."""
        out = np.zeros(int(active.at[-1]))
        for kind, table in enumerate(logs):
            add_rows(active, known[:, kind], table, out)
        return out

    def dense(self, logs: Tables, known: Known) -> Floats:
        """(N, Z) the log-potential of every state at every token."""
        out = logs[0][known[:, 0]]
        for kind, table in enumerate(logs[1:], start=1):
            out = out + table[known[:, kind]]
        return np.asarray(out)

    def counts(self, logs: Tables, known: Known, active: Active, weight: Floats) -> Tables:
        """Expected counts of symbols and states, given the weight of each cell (M,)."""
        return tuple(_counted(table.shape, known[:, kind], active, weight) for kind, table in enumerate(logs))


@dataclass(frozen=True, slots=True, eq=False)
class BackOff(Emissions):
    """A word of its own, or a word drawn from its signature: a mixture per state, with a learnt share.

    Kinds are words, where 0 is any other word, and signatures. A third table holds the shares: row 0 words, row 1
    signatures. A word drawn from its signature is any of the signature's `types`.
    """

    types: Ints = None  # type: ignore[assignment]  # (V,) words of each signature

    @property
    def alphas(self) -> tuple[float, ...]:
        words, signatures = self.learnt[:2] or (self.alpha, self.alpha)
        return words, signatures, SWITCH

    def _parts(self, logs: Tables, known: Known, active: Active) -> tuple[Floats, Floats]:
        """(M,) the log-potentials of a word by itself, and of the same word drawn from its signature."""
        words, signatures, switch = logs
        own, drawn = np.zeros((2, int(active.at[-1])))
        add_rows(active, known[:, 0], np.vstack([np.full((1, words.shape[1]), -np.inf), (words + switch[0])[1:]]), own)
        add_rows(active, known[:, 1], signatures + switch[1] - np.log(self.types)[:, None], drawn)
        return own, drawn

    def cells(self, logs: Tables, known: Known, active: Active) -> Floats:
        return np.asarray(np.logaddexp(*self._parts(logs, known, active)))

    def dense(self, logs: Tables, known: Known) -> Floats:
        words, signatures, switch = logs
        own = np.where(known[:, :1] > 0, switch[0] + words[known[:, 0]], -np.inf)
        drawn = switch[1] + signatures[known[:, 1]] - np.log(self.types[known[:, 1]])[:, None]
        return np.asarray(np.logaddexp(own, drawn))

    def counts(self, logs: Tables, known: Known, active: Active, weight: Floats) -> Tables:
        own, drawn = self._parts(logs, known, active)
        share = weight * np.exp(drawn - np.logaddexp(own, drawn))
        words = _counted(logs[0].shape, known[:, 0], active, weight - share)
        signatures = _counted(logs[1].shape, known[:, 1], active, share)
        return words, signatures, np.stack([words.sum(axis=0), signatures.sum(axis=0)])


def _expected(q: Floats, prior: float) -> Floats:
    """E log under Dir(q); most entries are the prior's, and share its digamma."""
    out = np.full(q.shape, digamma(prior))
    seen = q != prior
    out[seen] = digamma(q[seen])
    return np.asarray(out - digamma(q.sum(axis=0)))


def _counted(shape: tuple[int, ...], symbol: Ints, active: Active, weight: Floats) -> Floats:
    out = np.zeros(shape)
    sum_rows(active, symbol, weight, out)
    return out


def by_number(numbers: Ints, weights: Floats, count: int) -> Floats:
    """(count,) the weights summed by number."""
    return np.asarray(np.bincount(numbers, weights, count), np.float64)


def _divergence(q: Floats, prior: float) -> float:
    """The sum over states of KL(Dir(q) || Dir(prior, ..., prior)); q is (V, Z)."""
    V, Z = q.shape
    total, seen = q.sum(axis=0), q != prior
    own = q[seen]
    out = gammaln(total).sum() - Z * gammaln(V * prior) + len(own) * gammaln(prior) - gammaln(own).sum()
    out += ((own - prior) * digamma(own)).sum() - ((total - V * prior) * digamma(total)).sum()
    return float(out)
