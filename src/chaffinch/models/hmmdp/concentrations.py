"""Estimation of the Dirichlet concentrations of symbols and tags from expected counts: Minka's fixed point.

R rows of counts, V symbols of one kind; S tags, Z states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chaffinch.kernels import Floats
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.gamma_functions import digamma
from chaffinch.models.hmmdp.variational import Counts, Globals, Shape, tag_counts

STEPS = 5  # per call; more would fit counts that the next pass changes anyway
LEAST, MOST = 1e-4, 1e4  # limits: rows that are all alike, or all of one symbol, have no finite positive optimum
NOTHING = 1e-8  # a smaller expected count is treated as 0


def iterate_fixed_point(counts: Floats, alpha: float, *, base: Floats | None = None, steps: int = STEPS) -> float:
    """Return the concentration after `steps` fixed-point steps, each raising the Dirichlet-multinomial likelihood.

    Rows of `counts` (R, V) are drawn with parameters alpha * base; `base` is (V,) or (R, V), 0 where a symbol cannot
    be, and 1 by default. Fractional counts are used as they are. Without counts, alpha is returned unchanged.

    >>> round(iterate_fixed_point(np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), 1.0, steps=200), 3)
    0.549
    """
    weights = np.broadcast_to(np.float64(1.0) if base is None else base, counts.shape)
    seen = (counts > NOTHING) & (weights > 0)
    cells, share = counts[seen], weights[seen]
    totals, mass = np.where(seen, counts, 0.0).sum(axis=1), weights.sum(axis=1)
    totals, mass = totals[totals > 0], mass[totals > 0]
    low, high = min(LEAST, alpha), max(MOST, alpha)
    for _ in range(steps):
        # A cell that was never seen adds psi(alpha) - psi(alpha) = 0 above, but its share of the mass below.
        above = float(share @ (digamma(cells + alpha * share) - digamma(alpha * share)))
        below = float(mass @ (digamma(totals + alpha * mass) - digamma(alpha * mass)))
        if not (0 < above < np.inf and 0 < below < np.inf):
            break
        alpha = min(max(alpha * above / below, low), high)
    return alpha


def learn_concentrations(q: Globals, counts: Counts) -> Globals:
    """Return q with concentrations of tags and symbols refitted to counts; its Dirichlets are left as they are."""
    priors = replace(q.priors, alpha_T=_tag_concentration(q.shape, counts, q.priors.alpha_T))
    return replace(q, priors=priors, emissions=_learn_symbol_concentrations(q.emissions, counts))


def _tag_concentration(shape: Shape, counts: Counts, alpha: float) -> float:
    """Return the Dirichlet concentration of tag transitions refitted to the counts, over the tags that may follow."""
    return iterate_fixed_point(tag_counts(shape, counts), alpha, base=shape.follows[shape.tags].astype(np.float64))


def _learn_symbol_concentrations(emissions: Emissions, counts: Counts) -> Emissions:
    """Return the emissions with a refitted concentration for each kind of symbol; counts are tempered."""
    temper = emissions.temper
    pairs = zip(counts.emit, emissions.alphas, strict=True)
    alphas = tuple(iterate_fixed_point(temper * table.T, temper * old) / temper for table, old in pairs)
    return replace(emissions, learnt_alphas=alphas)
