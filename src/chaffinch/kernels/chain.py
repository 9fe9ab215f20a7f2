"""Sums over all paths of a chain: the posterior, its pairs, and both summed by tag.

T tokens, K states, S tags; B sequences of N tokens in a batch. The kernel chooses the arithmetic: loops over states,
matrix products or lists of allowed states, scaled or in log-space. The choice depends on the sequence alone, so a
sequence's results are the same, to the last bit, alone or in a batch. Marginals have an absolute error below 1e-9.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels._chain._layout import as_batch
from chaffinch.kernels.lattice import Batch, Floats, Ints, Lattice, Posterior, TagPosterior


@overload
def forward_backward(lattice: Lattice, *, pairs: bool = True) -> Posterior[float]:
    """Return the posterior of one lattice, log Z a float."""


@overload
def forward_backward(lattice: Batch, *, pairs: bool = True) -> Posterior[Floats]:
    """Return the posterior of a batch, log Z an array (B,)."""


def forward_backward(lattice: Lattice | Batch, *, pairs: bool = True) -> Posterior[float] | Posterior[Floats]:
    """Return log Z, state marginals, and pair marginals summed over all positions; InfeasibleError without a path.

    State marginals have the shape of `emit`; a lattice without any possible path raises `InfeasibleError`. With
    `pairs=False`, which saves a third of the time, pair marginals have the shape (0, 0).

    >>> log = np.log
    >>> lattice = Lattice(log([.5, .5]), log([[.9, .1], [.2, .8]]), log([[.7, .1], [.7, .1], [.3, .6]]), np.zeros(2))
    >>> post = forward_backward(lattice)
    >>> float(np.exp(post.log_z).round(5)), post.states[0].round(3).tolist()
    (0.07912, [0.944, 0.056])
    """
    from chaffinch.kernels._chain._dispatch import solve

    batch, many = as_batch(lattice), isinstance(lattice, Batch)
    states, log_z = np.zeros(batch.emit.size), np.zeros(len(batch))
    K = len(batch.start) if pairs else 0
    summed = np.zeros((K, K))
    for steps in solve(batch, states, log_z, many=many, pairs="sum" if pairs else "none"):
        if pairs:
            steps.add_pairs(summed)
    if many:
        return Posterior(log_z, states.reshape(batch.emit.shape), summed)
    return Posterior(float(log_z[0]), states.reshape(batch.emit.shape), summed)


@overload
def log_partition(lattice: Lattice) -> float:
    """Return log Z of one lattice."""


@overload
def log_partition(lattice: Batch) -> Floats:
    """Return log Z (B,) of a batch."""


def log_partition(lattice: Lattice | Batch) -> float | Floats:
    """Return log Z alone: a float, or (B,) for a batch; InfeasibleError if no path is possible.

    >>> round(log_partition(Lattice(np.zeros(2), np.zeros((2, 2)), np.zeros((3, 2)), np.zeros(2))), 9)
    2.079441542
    """
    from chaffinch.kernels._chain._dispatch import solve

    batch = as_batch(lattice)
    log_z = np.zeros(len(batch))
    for _ in solve(batch, np.zeros(batch.emit.size), log_z, many=isinstance(lattice, Batch), pairs="none"):
        pass
    return log_z if isinstance(lattice, Batch) else float(log_z[0])


def pair_marginals(lattice: Lattice | Batch) -> Floats:
    """Return pair marginals of every step, (T-1, K, K), or (N, K, K) for a batch, at second tokens; InfeasibleError.

    >>> pair_marginals(Lattice(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2))).tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    from chaffinch.kernels._chain._dispatch import solve

    batch, K, many = as_batch(lattice), len(lattice.start), isinstance(lattice, Batch)
    out = np.zeros((batch.bounds[-1], K, K))
    for steps in solve(batch, np.zeros(batch.emit.size), np.zeros(len(batch)), many=many, pairs="each"):
        steps.put_pairs(out)
    return out if many else out[1:]


@overload
def group(lattice: Lattice, tags: Ints, *, pairs: bool = True) -> TagPosterior[float]:
    """Return the posterior of one lattice by tag, log Z a float."""


@overload
def group(lattice: Batch, tags: Ints, *, pairs: bool = True) -> TagPosterior[Floats]:
    """Return the posterior of a batch by tag, log Z an array (B,)."""


def group(lattice: Lattice | Batch, tags: Ints, *, pairs: bool = True) -> TagPosterior[float] | TagPosterior[Floats]:
    """Return the posterior with states summed by tag, `tags` (K,) from 0 to S-1; DataError, or InfeasibleError.

    It is fastest if the states of a tag are consecutive. With `pairs=False`, which saves most of the time, pairs have
    the shape (0, 0, 0).

    >>> lattice = Lattice(np.zeros(3), np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(3))
    >>> group(lattice, np.array([0, 0, 1])).pairs.round(4).tolist()
    [[[0.4444, 0.2222], [0.2222, 0.1111]]]
    """
    from chaffinch.kernels._chain._dispatch import solve

    batch, many, K = as_batch(lattice), isinstance(lattice, Batch), len(lattice.start)
    tags = np.ascontiguousarray(tags, dtype=np.int64)
    if tags.shape != (K,) or tags.min() < 0:
        raise DataError(f"tags must name a tag, from 0 up, for each of {K} states, got shape {tags.shape}")
    S, N = int(tags.max()) + 1, int(batch.bounds[-1])
    ends = np.append(np.flatnonzero(np.diff(tags)) + 1, K)
    stop = ends[np.searchsorted(ends, np.arange(K), side="right")]
    states, log_z = np.zeros(batch.emit.size), np.zeros(len(batch))
    tag_pairs = np.zeros((N, S, S) if pairs else (0, 0, 0))
    for steps in solve(batch, states, log_z, many=many, pairs="each" if pairs else "none"):
        if pairs:
            steps.put_tag_pairs(tags, stop, tag_pairs)
    summed = np.zeros((N, S))
    if batch.active is None and np.array_equal(tags, np.arange(K)):
        summed = states.reshape(N, K)  # every state is a tag of its own
    elif batch.active is None:
        for state, tag in enumerate(tags.tolist()):
            summed[:, tag] += states.reshape(N, K)[:, state]
    else:
        cells = np.repeat(np.arange(N) * S, batch.active.widths) + tags[batch.active.cells]
        summed += np.bincount(cells, states, N * S).reshape(N, S)
    if many:
        return TagPosterior(log_z, summed, tag_pairs)
    return TagPosterior(float(log_z[0]), summed, tag_pairs[1:])


@overload
def project(lattice: Lattice, tags: Ints) -> Lattice:
    """Return the nearest chain over tags as a lattice."""


@overload
def project(lattice: Batch, tags: Ints) -> Batch:
    """Return the nearest chain over tags as a batch."""


def project(lattice: Lattice | Batch, tags: Ints) -> Lattice | Batch:
    """Return the Markov chain over tags nearest to the posterior in KL: a lattice of S states, log Z 0; or an error.

    DataError if the tags do not fit the states, InfeasibleError if no path is possible.

    It has the posterior's tag marginals and tag-pair marginals; a tag impossible at a position has `-inf` there.

    >>> lattice = Lattice(np.zeros(3), np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(3))
    >>> np.exp(project(lattice, np.array([0, 0, 1])).trans).round(4).tolist()
    [[[0.6667, 0.3333], [0.6667, 0.3333]]]
    """
    batch = as_batch(lattice)
    by_tag = group(batch, tags)
    S, starts = by_tag.states.shape[1], batch.bounds[:-1][np.diff(batch.bounds) > 0]
    emit, none = np.zeros_like(by_tag.states), np.zeros(S)
    with np.errstate(divide="ignore", invalid="ignore"):
        emit[starts] = np.log(by_tag.states[starts])
        rows = by_tag.pairs.sum(axis=2, keepdims=True)
        trans = np.where(by_tag.pairs > 0, np.log(by_tag.pairs) - np.log(rows), -np.inf)
    if isinstance(lattice, Batch):
        return Batch(none, trans, emit, none, batch.bounds)
    return Lattice(none, trans[1:], emit, none)
