"""Single paths of a chain: the best, the n best, and paths drawn from the posterior.

T tokens, K states; B sequences of N tokens in a batch; M cells.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.kernels._chain._layout import Part, as_batch, fail, parts, writable
from chaffinch.kernels.lattice import Batch, Floats, Ints, Lattice, Path


@overload
def viterbi(lattice: Lattice) -> Path[float]: ...
@overload
def viterbi(lattice: Batch) -> Path[Floats]: ...
def viterbi(lattice: Lattice | Batch) -> Path[float] | Path[Floats]:
    """The best path and its score; of equal predecessors the lowest state wins.

    >>> lattice = Lattice(np.zeros(2), np.array([[0., -2.], [-2., 0.]]), np.array([[0., 1.], [.5, 0.]]), np.zeros(2))
    >>> path = viterbi(lattice)
    >>> path.score, path.states.tolist()
    (1.0, [1, 1])
    """
    from chaffinch.kernels._chain import _viterbi as _best

    batch, many = as_batch(lattice), isinstance(lattice, Batch)
    states, score = np.zeros(batch.bounds[-1], np.int64), np.zeros(len(batch))
    room = _best.ViterbiWorkspace(batch)
    for part in parts(batch):
        found = room.run(part)
        _check(batch, part, found.score, many=many)
        states[part.tokens], score[part.sequences] = found.states, found.score
    return Path(score, states) if many else Path(float(score[0]), states)


def best_paths(lattice: Lattice, n: int) -> list[Path[float]]:
    """The n best paths, best first; fewer when fewer are possible.

    >>> lattice = Lattice(np.zeros(2), np.zeros((2, 2)), np.array([[0., 1.], [.5, 0.]]), np.zeros(2))
    >>> [(path.score, path.states.tolist()) for path in best_paths(lattice, 2)]
    [(1.5, [1, 0]), (1.0, [1, 1])]
    """
    from chaffinch.kernels._chain import _log_space as _logs

    if n < 1:
        raise ConfigError(f"n must be at least 1, got {n}")
    T = len(lattice)
    if T == 0:
        return [Path(0.0, np.zeros(0, np.int64))]
    part, trans, emit = _alone(lattice)
    best, sources = np.empty((len(emit) + 1, n)), np.zeros((len(emit) + 1, n, 2), np.int64)
    _logs.rank_paths(part.layout, trans, emit, writable(lattice.end), best, sources)
    if best[-1, 0] == -np.inf:
        viterbi(lattice)  # says where it died
    states = np.zeros((int(np.count_nonzero(best[-1] > -np.inf)), T), np.int64)
    _logs.trace_paths(part.layout, sources, states)
    return [Path(float(score), own) for score, own in zip(best[-1], states, strict=False)]


def sample(lattice: Lattice, rng: np.random.Generator, n: int) -> Ints:
    """(n, T) paths drawn from the posterior, independently.

    >>> lattice = Lattice(np.array([0., -np.inf]), np.zeros((2, 2)), np.zeros((3, 2)), np.zeros(2))
    >>> sample(lattice, np.random.default_rng(0), 5)[:, 0].tolist()
    [0, 0, 0, 0, 0]
    """
    from chaffinch.kernels._chain import _log_space as _logs

    if n < 0:
        raise ConfigError(f"n must be at least 0, got {n}")
    T = len(lattice)
    paths = np.zeros((n, T), np.int64)
    if T == 0:
        return paths
    part, trans, emit = _alone(lattice)
    lay, forward = part.layout, np.full(len(emit), -np.inf)
    died = _logs.log_forward(lay, trans, emit, 0, forward, np.zeros(len(lattice.end)))
    if died >= 0:
        fail(-died - 1, 0, T, many=False)
    step = np.broadcast_to(lattice.end, (1, len(lattice.end)))
    for t in range(T - 1, -1, -1):
        here = lay.pool[lay.first[t] : lay.first[t] + lay.width[t]]
        weights = forward[lay.at[t] : lay.at[t + 1]] + step[:, here]
        if not np.isfinite(weights.max(axis=1)).all():
            fail(-T - 1, 0, T, many=False)
        share = np.cumsum(np.exp(weights - weights.max(axis=1, keepdims=True)), axis=1)
        drawn = (share <= rng.random(n)[:, None] * share[:, -1:]).sum(axis=1)
        paths[:, t] = here[np.minimum(drawn, len(here) - 1)]
        step = trans[0 if len(trans) == 1 else t][:, paths[:, t]].T
    return paths


def _alone(lattice: Lattice) -> tuple[Part, Floats, Floats]:
    """The lattice as the one part of a batch of one; its transitions; its emissions with the start in them."""
    batch = as_batch(lattice)
    trans = writable(batch.trans[None] if batch.trans.ndim == 2 else batch.trans)
    part = next(parts(batch))
    emit, first = part.emit.copy(), part.layout.pool[part.layout.first[0] :][: part.layout.width[0]]
    emit[: part.layout.width[0]] += batch.start[first]
    return part, trans, emit


def _check(batch: Batch, part: Part, scores: Floats, *, many: bool) -> None:
    """Raises for the first sequence without a path, naming where it died."""
    from chaffinch.kernels._chain import _log_space as _logs

    for b in np.flatnonzero(scores == -np.inf):
        sequence = part.sequence(int(b))
        alone, trans, emit = _alone(batch[sequence])
        forward, T = np.full(len(emit), -np.inf), len(alone.layout.width)
        died = _logs.log_forward(alone.layout, trans, emit, 0, forward, np.zeros(len(batch.end)))
        fail(-(died if died >= 0 else T) - 1, sequence, T, many=many)
