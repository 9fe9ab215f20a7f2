"""Every path of a small lattice, listed one by one in plain Python, and what follows from the list.

T tokens, K states, S tags. Nothing here shares code with the kernels. Beside it: lattices for hypothesis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from chaffinch.kernels import Batch, Clique, Floats, Lattice

NEVER = -math.inf


@dataclass(frozen=True)
class Listing:
    """Every possible path with its score, best first; equal scores in order of states."""

    tokens: int
    states: int
    paths: list[tuple[float, tuple[int, ...]]]

    @property
    def log_z(self) -> float:
        top = self.paths[0][0]
        return top + math.log(math.fsum(math.exp(score - top) for score, _ in self.paths))

    def expect(self, shape: tuple[int, ...], where: Callable[[tuple[int, ...]], list[tuple[int, ...]]]) -> Floats:
        """The expected number of times a path passes each place; `where` lists the places a path passes."""
        out = np.zeros(shape)
        log_z = self.log_z
        for score, path in self.paths:
            for place in where(path):
                out[place] += math.exp(score - log_z)
        return out

    def state_marginals(self) -> Floats:
        return self.expect((self.tokens, self.states), lambda path: list(enumerate(path)))

    def pair_marginals(self) -> Floats:
        shape = (max(self.tokens - 1, 0), self.states, self.states)
        return self.expect(shape, lambda path: [(t, *pair) for t, pair in enumerate(itertools.pairwise(path))])

    def tagged(self, tags: list[int]) -> Listing:
        """The same paths seen as paths of tags, not yet added up."""
        return Listing(self.tokens, max(tags) + 1, [(s, tuple(tags[x] for x in path)) for s, path in self.paths])


def score(lattice: Lattice, path: tuple[int, ...]) -> float:
    if not path:
        return 0.0
    total = float(lattice.start[path[0]])
    for t, state in enumerate(path):
        total += float(lattice.emit[t, state])
        if t > 0:
            table = lattice.trans if lattice.trans.ndim == 2 else lattice.trans[t - 1]
            total += float(table[path[t - 1], state])
    return total + float(lattice.end[path[-1]])


def listing(lattice: Lattice) -> Listing:
    T, K = lattice.emit.shape
    every = [(score(lattice, path), path) for path in itertools.product(range(K), repeat=T)]
    possible = [(s, path) for s, path in every if s > NEVER]
    return Listing(T, K, sorted(possible, key=lambda item: (-item[0], item[1])))


def clique_scores(clique: Clique) -> list[tuple[float, tuple[int, ...]]]:
    m, C = clique.unary.shape
    found = []
    for labels in itertools.product(range(C), repeat=m):
        total = sum(float(clique.unary[o, labels[o]]) for o in range(m))
        for o, p in itertools.combinations(range(m), 2):
            table = clique.pairwise if clique.pairwise.ndim == 2 else clique.pairwise[o, p]
            total += float(table[labels[o], labels[p]]) / (m - 1)
        found.append((total, labels))
    return found


@st.composite
def lattices(draw: DrawFn, *, tokens: int = 5, states: int = 4, spreads: tuple[float, ...] = (3.0, 1000.0)) -> Lattice:
    """Small lattices: few or many impossible entries, one table or one per step, tame or wild potentials."""
    T, K = draw(st.integers(0, tokens)), draw(st.integers(1, states))
    spread, per_step = draw(st.sampled_from(spreads)), draw(st.booleans())
    seed, never = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))
    rng = np.random.default_rng(seed)

    def table(*shape: int) -> Floats:
        values = rng.normal(0.0, spread / 2, shape)
        return np.where(rng.random(shape) < never, NEVER, values)

    steps = (max(T - 1, 0), K, K) if per_step else (K, K)
    return Lattice(table(K), table(*steps), table(T, K), table(K))


@st.composite
def batches(draw: DrawFn, *, states: int = 4) -> Batch:
    """Batches of up to six sequences, some empty, some of one token; all possible."""
    K, B = draw(st.integers(1, states)), draw(st.integers(1, 6))
    lengths = draw(st.lists(st.integers(0, 5), min_size=B, max_size=B))
    spread, per_token = draw(st.sampled_from([3.0, 1000.0])), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N = sum(lengths)
    trans = rng.normal(0.0, spread / 2, (N, K, K) if per_token else (K, K))
    start, emit, end = (rng.normal(0.0, spread / 2, shape) for shape in ((K,), (N, K), (K,)))
    return Batch(start, trans, emit, end, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
