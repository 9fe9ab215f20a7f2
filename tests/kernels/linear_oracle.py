"""Linear chains the slow way: every path of a sentence with its features counted in a dictionary.

T tokens, K states, W columns. A cell is ("row", row, column) or ("move", from, to). Nothing here shares code with the
kernels. Beside it: small random models for hypothesis.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from chaffinch.kernels.lattice import Floats
from chaffinch.kernels.linear import Learner, Objective, SparseInput, States, Steps, Target, Weights

Cell = tuple[str, int, int]
Route = tuple[int, ...]


def spoken(seen: SparseInput, s: int, t: int) -> list[int]:
    """The weight rows that speak for token t of sentence s: a feature at offset o has row (first row) + o - first."""
    begin, T = int(seen.begins[s]), int(seen.ends[s] - seen.begins[s])
    found = []
    for offset in range(-2, 3):
        if not -1 <= t + offset <= T:
            continue  # beyond the pad
        n = begin + t + offset
        v = int(seen.types[n])
        for q in range(int(seen.lists[v]), int(seen.lists[v + 1])):
            if seen.first[q] <= offset < seen.first[q] + seen.width[q]:
                found.append(int(seen.rows[q]) + offset - int(seen.first[q]))
        for c in range(seen.columns.shape[1]) if t + offset < T else ():  # a pad's columns are the next sentence's
            low, size = int(seen.column_first[c]), int(seen.column_width[c])
            if seen.columns[n, c] >= 0 and low <= offset < low + size:
                found.append(int(seen.columns[n, c]) + offset - low)
    return found


def columns_of(states: States, x: int) -> list[int]:
    """The columns that a state reads."""
    return [x] if states.shared[x] < 0 else [x, int(states.shared[x])]


def features(seen: SparseInput, states: States, s: int, path: Route) -> Counter[Cell]:
    """How often a labelling shows each cell."""
    found: Counter[Cell] = Counter()
    for t, x in enumerate(path):
        for row in spoken(seen, s, t):
            found.update(("row", row, column) for column in columns_of(states, x))
    found.update(("move", a, b) for a, b in zip((states.K, *path), path, strict=False))
    found["move", states.K + 1, path[-1]] += 1
    return found


def weight(weights: Weights, states: States, cell: Cell) -> float:
    which, a, b = cell
    return float((weights.rows if which == "row" else weights.moves)[a * states.W + b])


def score(weights: Weights, states: States, shown: Counter[Cell]) -> float:
    return math.fsum(times * weight(weights, states, cell) for cell, times in shown.items())


def routes(seen: SparseInput, states: States, s: int) -> list[Route]:
    """Every labelling of sentence s that the moves allow."""
    T, allowed = int(seen.ends[s] - seen.begins[s]), states.moves.reshape(-1, states.W) == 0
    found = []
    for path in itertools.product(range(states.K), repeat=T):
        steps = zip((states.K, *path), path, strict=False)
        if all(allowed[a, b] for a, b in steps) and allowed[states.K + 1, path[-1]]:
            found.append(path)
    return found


def local_score(weights: Weights, seen: SparseInput, states: States, s: int, t: int, x: int) -> float:
    cells = [("row", row, column) for row in spoken(seen, s, t) for column in columns_of(states, x)]
    return math.fsum(weight(weights, states, cell) for cell in cells)


@dataclass(frozen=True, repr=False)
class Case:
    """A small model, what it sees, and what it should learn."""

    seen: SparseInput
    states: States
    weights: Weights
    target: Target

    def learner(
        self, objective: Objective, *, C: float = 0.1, rate: float = 0.1, augmented: bool = True,
        second: bool = False, moves: bool = True,
    ) -> Learner:  # fmt: skip
        steps = Steps(C, rate, augmented, second, moves)
        learner = Learner(len(self.weights.rows) // self.states.W, self.states, objective=objective, steps=steps)
        learner.restart(self.weights)
        return learner

    def gold(self, s: int) -> Route:
        return tuple(self.target.gold[self.seen.begins[s] : self.seen.ends[s]].tolist())

    def chances(self, s: int) -> dict[Route, float]:
        """How likely each labelling is, given what is known: see `Target`. Empty if nothing is possible."""
        begin, T = int(self.seen.begins[s]), int(self.seen.ends[s] - self.seen.begins[s])
        gold, which = self.target.gold[begin : begin + T].tolist(), self.target.which[begin : begin + T].tolist()
        free = [gold[t] < 0 and bool(self.target.free[which[t]]) for t in range(T)]
        found = {}
        for path in routes(self.seen, self.states, s):
            known = 0.0
            for t, x in enumerate(path):
                share = float(x == gold[t]) if gold[t] >= 0 else float(self.target.weights[which[t], x])
                known += math.log(share) if share else -math.inf
                known += local_score(self.weights, self.seen, self.states, s, t, x) if free[t] else 0.0
            if any(free):
                shown = features(self.seen, self.states, s, path)
                moves = Counter({cell: times for cell, times in shown.items() if cell[0] == "move"})
                known += score(self.weights, self.states, moves)
            if known > -math.inf:
                found[path] = known
        top = max(found.values(), default=0.0)
        total = math.fsum(math.exp(known - top) for known in found.values())
        return {path: math.exp(known - top) / total for path, known in found.items()}


def as_arrays(case: Case, change: dict[Cell, float], start: Weights | None = None) -> Weights:
    """Weights (of the case, unless given) with a change at some cells."""
    start, W = start or case.weights, case.states.W
    rows, moves = start.rows.astype(np.float64), start.moves.astype(np.float64)
    for (which, a, b), value in change.items():
        (rows if which == "row" else moves)[a * W + b] += value
    return Weights(rows.astype(np.float32), moves.astype(np.float32))


@st.composite
def cases(draw: DrawFn, *, soft: bool = False, sentences: int = 3) -> Case:
    """Models of 2 to 5 states with forbidden moves, 1 to 3 sentences, lists and columns at random offsets."""
    K, shared = draw(st.integers(2, 4 if soft else 5)), draw(st.booleans())
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=sentences))
    return build(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), K, lengths, shared=shared, soft=soft)


def build(rng: np.random.Generator, K: int, lengths: list[int], *, shared: bool = False, soft: bool = False) -> Case:
    """A random case; it can always stay in state 0."""
    V, C, R = 4, 2, 30
    ends = np.cumsum(np.array(lengths) + 1)
    begins, N = ends - lengths, int(ends[-1]) + 1
    types = rng.integers(1, V, N)
    types[[0, *ends]] = 0
    lists = np.concatenate([[0], np.cumsum(rng.integers(0, 4, V))])
    Q = int(lists[-1])
    first, column_first = rng.integers(-2, 3, Q), rng.integers(-2, 3, C)
    width = np.array([rng.integers(1, 4 - low) for low in first], np.int64)
    column_width = np.array([rng.integers(1, 4 - low) for low in column_first], np.int64)
    columns = np.where(rng.random((N, C)) < 0.3, -1, rng.integers(0, R - 5, (N, C)))
    seen = SparseInput(
        begins.astype(np.int32), ends.astype(np.int32), types.astype(np.int32), lists.astype(np.int32),
        rng.integers(0, R - 5, Q).astype(np.int32), first.astype(np.int8), width.astype(np.int8),
        columns.astype(np.int32), column_first.astype(np.int8), column_width.astype(np.int8),
    )  # fmt: skip
    moves = rng.random((K + 2, K)) < 0.75
    moves[[0, K, K + 1], 0] = True
    label = rng.integers(0, max(2, K - 1), K)
    states = States.of(label, moves, K + label if shared else None)
    rows = rng.normal(0, 0.5, R * states.W).astype(np.float32)
    weights = Weights(rows, states.moves + rng.normal(0, 0.5, len(states.moves)).astype(np.float32))
    gold = np.zeros(N, np.int32)
    case = Case(
        seen,
        states,
        weights,
        Target(gold, np.zeros(N, np.int32), np.zeros((0, states.W), np.float32), np.zeros(0, np.bool_)),
    )
    for s in range(len(lengths)):
        every = routes(seen, states, s)
        gold[seen.begins[s] : seen.ends[s]] = every[rng.integers(len(every))]
    return replace(case, target=_soften(rng, case)) if soft else case


def _soften(rng: np.random.Generator, case: Case) -> Target:
    """Sentence by sentence: hard and free tokens mixed, or distributions throughout."""
    N, K = len(case.target.gold), case.states.K
    gold, which = case.target.gold.copy(), np.arange(N, dtype=np.int32)
    rows, free = np.zeros((N, case.states.W), np.float32), np.zeros(N, np.bool_)
    for begin, end in zip(case.seen.begins.tolist(), case.seen.ends.tolist(), strict=True):
        mixed = rng.random() < 0.5
        for n in range(begin, end):
            right = int(gold[n])
            if mixed and rng.random() < 0.4:
                continue
            if mixed:
                rows[n, :K] = rng.random(K) < 0.6
                rows[n, right], free[n] = 1.0, True
            else:
                rows[n, :K] = rng.dirichlet(np.ones(K)) * (rng.random(K) < 0.8)
                rows[n, right] += 0.05
            gold[n] = -1
    return Target(gold, which, rows, free)


def table(case: Case, s: int) -> tuple[list[Route], list[Cell], Floats]:
    """All labellings, all cells, and how often each labelling shows each cell."""
    every = routes(case.seen, case.states, s)
    shown = [features(case.seen, case.states, s, path) for path in every]
    cells = sorted(set().union(*shown))
    return every, cells, np.array([[counts[cell] for cell in cells] for counts in shown], np.float64)


def cost(case: Case, s: int, right: Route, path: Route) -> float:
    """How wrong a labelling is: one per wrong label, or by how much the right state is likelier."""
    total, begin = 0.0, int(case.seen.begins[s])
    for t, (a, b) in enumerate(zip(right, path, strict=True)):
        if case.target.gold[begin + t] >= 0:
            total += float(case.states.label[a] != case.states.label[b])
        else:
            row = case.target.weights[case.target.which[begin + t]]
            total += max(0.0, float(row[a]) - float(row[b]))
    return total


def toy(T: int = 6, sentences: int = 4) -> tuple[SparseInput, States, Target]:
    """Two words that say which of two labels a token has."""
    rng = np.random.default_rng(3)
    ends = (np.arange(sentences, dtype=np.int32) + 1) * np.int32(T + 1)
    types = rng.integers(1, 3, sentences * (T + 1) + 1).astype(np.int32)
    types[:: T + 1] = 0
    empty = np.zeros((len(types), 0), np.int32), np.zeros(0, np.int8), np.zeros(0, np.int8)
    lists, rows = np.array([0, 0, 1, 2], np.int32), np.array([0, 1], np.int32)
    seen = SparseInput(ends - T, ends, types, lists, rows, np.zeros(2, np.int8), np.ones(2, np.int8), *empty)
    states = States.of(np.arange(2), np.ones((4, 2), np.bool_))
    gold = np.maximum(types - 1, 0).astype(np.int32)
    return seen, states, Target(gold, np.zeros_like(gold), np.zeros((0, states.W), np.float32), np.zeros(0, np.bool_))


def same(one: Weights, other: Weights, atol: float = 2e-5) -> None:
    np.testing.assert_allclose(one.rows, other.rows, rtol=0, atol=atol)
    np.testing.assert_allclose(one.moves, other.moves, rtol=0, atol=atol)
