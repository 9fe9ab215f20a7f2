"""Single paths of a chain: the best, the n best, and paths drawn from the posterior.

T tokens, K states; B sequences of N tokens in a batch; M cells.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.kernels._chain._layout import Part, as_batch, as_writable, parts, raise_infeasible
from chaffinch.kernels.lattice import Batch, Floats, Ints, Lattice, Path


@overload
def viterbi(lattice: Lattice) -> Path[float]:
    """Return the best path of one lattice, its score a float."""


@overload
def viterbi(lattice: Batch) -> Path[Floats]:
    """Return the best paths of a batch, their scores an array (B,)."""


def viterbi(lattice: Lattice | Batch) -> Path[float] | Path[Floats]:
    """Return the best path and its score, of equal predecessors the lowest state; InfeasibleError without a path.

    >>> lattice = Lattice(np.zeros(2), np.array([[0., -2.], [-2., 0.]]), np.array([[0., 1.], [.5, 0.]]), np.zeros(2))
    >>> path = viterbi(lattice)
    >>> path.score, path.states.tolist()
    (1.0, [1, 1])
    """
    from chaffinch.kernels._chain import _viterbi

    batch, many = as_batch(lattice), isinstance(lattice, Batch)
    states, score = np.zeros(batch.bounds[-1], np.int64), np.zeros(len(batch))
    workspace = _viterbi.ViterbiWorkspace(batch)
    for part in parts(batch):
        result = workspace.run(part)
        _check(batch, part, result.score, many=many)
        states[part.tokens], score[part.sequences] = result.states, result.score
    return Path(score, states) if many else Path(float(score[0]), states)


def best_paths(lattice: Lattice, n: int) -> list[Path[float]]:
    """Return the n best paths, best first, fewer if fewer are possible; ConfigError for n < 1, or InfeasibleError.

    >>> lattice = Lattice(np.zeros(2), np.zeros((2, 2)), np.array([[0., 1.], [.5, 0.]]), np.zeros(2))
    >>> [(path.score, path.states.tolist()) for path in best_paths(lattice, 2)]
    [(1.5, [1, 0]), (1.0, [1, 1])]
    """
    from chaffinch.kernels._chain import _log_space

    if n < 1:
        raise ConfigError(f"n must be at least 1, got {n}")
    T = len(lattice)
    if T == 0:
        return [Path(0.0, np.zeros(0, np.int64))]
    part, trans, emit = _single_part(lattice)
    best, sources = np.empty((len(emit) + 1, n)), np.zeros((len(emit) + 1, n, 2), np.int64)
    _log_space.rank_paths(part.layout, trans, emit, as_writable(lattice.end), best, sources)
    if best[-1, 0] == -np.inf:
        viterbi(lattice)  # raises, and names the token that no path reaches
    states = np.zeros((int(np.count_nonzero(best[-1] > -np.inf)), T), np.int64)
    _log_space.trace_paths(part.layout, sources, states)
    return [Path(float(score), path) for score, path in zip(best[-1], states, strict=False)]


def sample(lattice: Lattice, rng: np.random.Generator, n: int) -> Ints:
    """Draw n independent paths (n, T) from the posterior with `rng`; ConfigError for n < 0, InfeasibleError if no path.

    >>> lattice = Lattice(np.array([0., -np.inf]), np.zeros((2, 2)), np.zeros((3, 2)), np.zeros(2))
    >>> sample(lattice, np.random.default_rng(0), 5)[:, 0].tolist()
    [0, 0, 0, 0, 0]
    """
    from chaffinch.kernels._chain import _log_space

    if n < 0:
        raise ConfigError(f"n must be at least 0, got {n}")
    T = len(lattice)
    paths = np.zeros((n, T), np.int64)
    if T == 0:
        return paths
    part, trans, emit = _single_part(lattice)
    lay, forward = part.layout, np.full(len(emit), -np.inf)
    dead_end = _log_space.log_forward(lay, trans, emit, 0, forward, np.zeros(len(lattice.end)))
    if dead_end >= 0:
        raise_infeasible(-dead_end - 1, 0, T, many=False)
    step = np.broadcast_to(lattice.end, (1, len(lattice.end)))
    for t in range(T - 1, -1, -1):
        here = lay.pool[lay.first[t] : lay.first[t] + lay.width[t]]
        weights = forward[lay.at[t] : lay.at[t + 1]] + step[:, here]
        if not np.isfinite(weights.max(axis=1)).all():
            raise_infeasible(-T - 1, 0, T, many=False)
        share = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)
        drawn = (share <= rng.random(n)[:, None] * share[:, -1:]).sum(axis=1)
        paths[:, t] = here[np.minimum(drawn, len(here) - 1)]
        step = trans[0 if len(trans) == 1 else t][:, paths[:, t]].T
    return paths


def _single_part(lattice: Lattice) -> tuple[Part, Floats, Floats]:
    """Return (a non-empty lattice as the only part of a batch, its transitions, its emissions with start added)."""
    batch = as_batch(lattice)
    trans = as_writable(batch.trans[None] if batch.trans.ndim == 2 else batch.trans)
    part = next(parts(batch))
    emit, first = part.emit.copy(), part.layout.pool[part.layout.first[0] :][: part.layout.width[0]]
    emit[: part.layout.width[0]] += batch.start[first]
    return part, trans, emit


def _check(batch: Batch, part: Part, scores: Floats, *, many: bool) -> None:
    """Raise InfeasibleError for the part's first sequence with a score of -inf, naming the token no path reaches."""
    from chaffinch.kernels._chain import _log_space

    for b in np.flatnonzero(scores == -np.inf):
        sequence = part.sequence(int(b))
        single, trans, emit = _single_part(batch[sequence])
        forward, T = np.full(len(emit), -np.inf), len(single.layout.width)
        dead_end = _log_space.log_forward(single.layout, trans, emit, 0, forward, np.zeros(len(batch.end)))
        raise_infeasible(-(dead_end if dead_end >= 0 else T) - 1, sequence, T, many=many)
