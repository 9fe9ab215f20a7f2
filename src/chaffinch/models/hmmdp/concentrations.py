"""How strong the priors of symbols and of tags are, learnt from the counts: Minka's fixed point.

R rows of counts, V symbols of one kind; S tags, Z states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import digamma

from chaffinch.kernels import Floats
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.variational import Counts, Globals, Shape, tag_counts

STEPS = 5  # at a time; the counts change again before the next
LEAST, MOST = 1e-4, 1e4  # counts that are all alike, or all of one symbol, have no finite optimum
NOTHING = 1e-8  # a smaller count was never seen


def fixed_point(counts: Floats, alpha: float, *, base: Floats | None = None, steps: int = STEPS) -> float:
    """The concentration after so many steps, none of which lowers the Dirichlet-multinomial likelihood of the counts.

    Rows of `counts` (R, V) are drawn with parameters alpha * base; `base` is (V,) or (R, V), 0 where a symbol cannot
    be, and 1 by default. Counts that are not whole are taken as they are. Without counts, alpha is what it was.

    >>> round(fixed_point(np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), 1.0, steps=200), 3)
    0.549
    """
    weights = np.broadcast_to(np.float64(1.0) if base is None else base, counts.shape)
    seen = (counts > NOTHING) & (weights > 0)
    own, share = counts[seen], weights[seen]
    totals, mass = np.where(seen, counts, 0.0).sum(axis=1), weights.sum(axis=1)
    totals, mass = totals[totals > 0], mass[totals > 0]
    low, high = min(LEAST, alpha), max(MOST, alpha)
    for _ in range(steps):
        # A cell that was never seen adds psi(alpha) - psi(alpha) = 0 above, but its share of the mass below.
        above = float(share @ (digamma(own + alpha * share) - digamma(alpha * share)))
        below = float(mass @ (digamma(totals + alpha * mass) - digamma(alpha * mass)))
        if not (0 < above < np.inf and 0 < below < np.inf):
            break
        alpha = min(max(alpha * above / below, low), high)
    return alpha


def learnt(q: Globals, counts: Counts) -> Globals:
    """The same q with concentrations that fit the counts better; its Dirichlets follow with the next global step."""
    priors = replace(q.priors, alpha_T=_of_tags(q.shape, counts, q.priors.alpha_T))
    return replace(q, priors=priors, emissions=_of_symbols(q.emissions, counts))


def _of_tags(shape: Shape, counts: Counts, alpha: float) -> float:
    """The concentration of the next tag, over the tags that may follow."""
    return fixed_point(tag_counts(shape, counts), alpha, base=shape.follows[shape.tags].astype(np.float64))


def _of_symbols(emissions: Emissions, counts: Counts) -> Emissions:
    """The emissions with a concentration of its own for each kind; counts are tempered as they are in the bound."""
    temper = emissions.temper
    pairs = zip(counts.emit, emissions.alphas, strict=True)
    return replace(emissions, learnt=tuple(fixed_point(temper * own.T, temper * old) / temper for own, old in pairs))
