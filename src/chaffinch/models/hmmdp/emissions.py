"""Emissions of a state: one word symbol, a tempered product of symbols, or a word that backs off to its signature.

Z states, V symbols of one kind, F kinds, N tokens, M cells: one per token and allowed state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from chaffinch.kernels import Active, add_rows, sum_rows
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.hmmdp.gamma_functions import digamma, gammaln

Known: TypeAlias = Ints  # (N, F) the symbol of each kind at each token
Tables: TypeAlias = tuple[Floats, ...]  # (V, Z) each

SWITCH = 1.0  # Beta(1, 1), uniform, prior of the share of words that back off


@dataclass(frozen=True, slots=True, eq=False)
class Emissions:
    """Dirichlet rows over the symbols of each kind; the likelihood of each kind is raised to the power `temper`.

    Counts and priors are tempered alike, so that learning raises the bound of the tempered likelihood.
    """

    sizes: tuple[int, ...]  # V of each kind
    alpha: float  # of all kinds, until it is learnt
    temper: float = 1.0
    learnt_alphas: tuple[float, ...] = ()  # alpha of each kind, once it is learnt

    @property
    def alphas(self) -> tuple[float, ...]:
        """Return the concentration of each table's Dirichlets: learnt, else the prior's."""
        return self.learnt_alphas or (self.alpha,) * len(self.sizes)

    def posterior(self, counts: Tables) -> Tables:
        """Return the Dirichlet parameters given expected counts, one table (V, Z) per kind."""
        return tuple(self.temper * (alpha + table) for table, alpha in zip(counts, self.alphas, strict=True))

    def logs(self, q: Tables) -> Tables:
        """Return the tempered expected logs (V, Z) of each table, given its Dirichlet parameters."""
        pairs = zip(q, self.alphas, strict=True)
        return tuple(self.temper * _expected_logs(table, self.temper * alpha) for table, alpha in pairs)

    def log_means(self, q: Tables) -> Tables:
        """Return the tempered logs of the means (V, Z) of each table, given its Dirichlet parameters."""
        return tuple(self.temper * np.log(table / table.sum(axis=0)) for table in q)

    def divergence(self, q: Tables) -> float:
        """Return the KL divergence of the posterior tables from the prior, summed."""
        return sum(_divergence(table, self.temper * alpha) for table, alpha in zip(q, self.alphas, strict=True))

    def cells(self, logs: Tables, known: Known, active: Active) -> Floats:
        """Return the log-potential of each cell (M,), given tables of logs and every token's symbols."""
        out = np.zeros(int(active.at[-1]))
        for kind, table in enumerate(logs):
            add_rows(active, known[:, kind], table, out)
        return out

    def dense(self, logs: Tables, known: Known) -> Floats:
        """Return the log-potential of every state at every token (N, Z)."""
        out = logs[0][known[:, 0]]
        for kind, table in enumerate(logs[1:], start=1):
            out = out + table[known[:, kind]]
        return np.asarray(out)

    def counts(self, logs: Tables, known: Known, active: Active, weight: Floats) -> Tables:
        """Return expected counts (V, Z) of symbols by state for each kind, given the weight of each cell (M,)."""
        return tuple(_count_symbols(table.shape, known[:, kind], active, weight) for kind, table in enumerate(logs))


@dataclass(frozen=True, slots=True, eq=False)
class BackOff(Emissions):
    """Mixture per state of a word emitted as itself and a word drawn from its signature, with a learnt share.

    Kinds are words, where 0 is any other word, and signatures. A third table holds the shares: row 0 words, row 1
    signatures. A word drawn from its signature is any of the signature's `types`.
    """

    types: Ints = None  # type: ignore[assignment]  # (V,) words of each signature

    @property
    def alphas(self) -> tuple[float, ...]:
        """Return the concentrations of words, signatures and the switch between them."""
        words, signatures = self.learnt_alphas[:2] or (self.alpha, self.alpha)
        return words, signatures, SWITCH

    def _parts(self, logs: Tables, known: Known, active: Active) -> tuple[Floats, Floats]:
        """Return two (M,) log-potentials of cells: the word emitted as itself, and drawn from its signature."""
        words, signatures, switch = logs
        direct, drawn = np.zeros((2, int(active.at[-1])))
        add_rows(
            active, known[:, 0], np.vstack([np.full((1, words.shape[1]), -np.inf), (words + switch[0])[1:]]), direct
        )
        add_rows(active, known[:, 1], signatures + switch[1] - np.log(self.types)[:, None], drawn)
        return direct, drawn

    def cells(self, logs: Tables, known: Known, active: Active) -> Floats:
        """Return the log emission of every active cell (M,): by word or by signature, added in probability."""
        return np.asarray(np.logaddexp(*self._parts(logs, known, active)))

    def dense(self, logs: Tables, known: Known) -> Floats:
        """Return (T, K) log-probabilities of tokens in states: the word drawn directly, or by its signature."""
        words, signatures, switch = logs
        direct = np.where(known[:, :1] > 0, switch[0] + words[known[:, 0]], -np.inf)
        drawn = switch[1] + signatures[known[:, 1]] - np.log(self.types[known[:, 1]])[:, None]
        return np.asarray(np.logaddexp(direct, drawn))

    def counts(self, logs: Tables, known: Known, active: Active, weight: Floats) -> Tables:
        """Return expected counts (V, Z) of words and signatures, and (2, Z) of the switch between them."""
        direct, drawn = self._parts(logs, known, active)
        share = weight * np.exp(drawn - np.logaddexp(direct, drawn))
        words = _count_symbols(logs[0].shape, known[:, 0], active, weight - share)
        signatures = _count_symbols(logs[1].shape, known[:, 1], active, share)
        return words, signatures, np.stack([words.sum(axis=0), signatures.sum(axis=0)])


def _expected_logs(q: Floats, prior: float) -> Floats:
    """Return E log (V, Z) under Dirichlets q; entries equal to the prior, most of them, share one digamma."""
    out = np.full(q.shape, digamma(prior))
    seen = q != prior
    out[seen] = digamma(q[seen])
    return np.asarray(out - digamma(q.sum(axis=0)))


def _count_symbols(shape: tuple[int, ...], symbol: Ints, active: Active, weight: Floats) -> Floats:
    """Return (symbols, states) the cell weights of all tokens, summed by symbol and state."""
    out = np.zeros(shape)
    sum_rows(active, symbol, weight, out)
    return out


def sum_by_number(numbers: Ints, weights: Floats, count: int) -> Floats:
    """Return the sum of the weights of each number below `count` (count,)."""
    return np.asarray(np.bincount(numbers, weights, count), np.float64)


def _divergence(q: Floats, prior: float) -> float:
    """Return the sum over states of KL(Dir(q) || Dir(prior, ..., prior)); q is (V, Z)."""
    V, Z = q.shape
    total, seen = q.sum(axis=0), q != prior
    entries = q[seen]
    out = gammaln(total).sum() - Z * gammaln(V * prior) + len(entries) * gammaln(prior) - gammaln(entries).sum()
    out += ((entries - prior) * digamma(entries)).sum() - ((total - V * prior) * digamma(total)).sum()
    return float(out)
