"""Graphs that a bound settles: every labelling is listed, and none may beat or equal the labels found."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment.graph import ALIKE, Graphs
from chaffinch.models.alignment.objective import CliqueWeights, default_weights

L = 3


def _random_graphs(rng: np.random.Generator) -> tuple[Graphs, np.ndarray, np.ndarray, np.ndarray]:
    """Return graphs of two to five occurrences with labels found, scores (M, L) and which nodes are free."""
    free_sizes = rng.integers(1, 5, 40)
    fixed = rng.integers(0, 3, 40) + (free_sizes == 1)
    graph = np.repeat(np.arange(40), free_sizes + fixed)
    M = len(graph)
    places = np.arange(M) - np.repeat(np.cumsum(free_sizes + fixed) - free_sizes - fixed, free_sizes + fixed)
    free = places < free_sizes[graph]
    candidates = np.ones((M, L), np.bool_)
    sizes = np.bincount(graph)[graph]
    found = np.where(rng.random(40)[graph] < 0.7, rng.integers(0, L, 40)[graph], rng.integers(0, L, M))
    unary = rng.normal(0, 3, (M, L))
    unary[np.arange(M), found] += rng.choice([0.0, 6.0, 9.0], 40)[graph]
    barred = (rng.random(M) < 0.3) & (found > 0)
    unary[barred, 0] = -np.inf
    graphs = Graphs(np.arange(M), graph, sizes, candidates, np.zeros((len(ALIKE), M), np.int64))
    return graphs, found, unary, free


def _best_by_listing(weights: CliqueWeights, size: int, unary: np.ndarray) -> list[tuple[float, tuple[int, ...]]]:
    """Return all labellings of some nodes with their scores, the best first, by the formula of the score."""
    same, differ = weights.same[:, 0], weights.differ[0]

    def worth(a: int, b: int) -> float:
        return float(same[min(a, 1)]) if a == b else float(differ) if a and b else 0.0

    scored = [
        (
            sum(float(unary[o, y]) for o, y in enumerate(labels))
            + sum(worth(labels[o], labels[p]) for o, p in combinations(range(len(labels)), 2)) / (size - 1),
            labels,
        )
        for labels in product(range(L), repeat=len(unary))
    ]
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("differ", [0.0, -1.5, 3.0])
def test_the_labels_of_a_settled_graph_are_the_best_of_all(differ: float) -> None:
    rng = np.random.default_rng(5)
    default = default_weights()
    weights = CliqueWeights(default.unary, default.same, np.array([differ]), default.lexical)
    settled_graphs = 0
    for _ in range(10):
        graphs, found, unary, free = _random_graphs(rng)
        settled = alignment._find_settled_nodes(weights, graphs, found, unary, free)
        for number in np.unique(graphs.graph[settled & free]).tolist():
            nodes = np.flatnonzero((graphs.graph == number) & free)
            best, second = _best_by_listing(weights, int(graphs.sizes[nodes[0]]), unary[nodes])[:2]
            assert best[1] == tuple(found[nodes].tolist())
            assert best[0] > second[0]
            settled_graphs += 1
    assert settled_graphs > 40


def test_graphs_with_likenesses_are_not_settled() -> None:
    graphs, found, unary, free = _random_graphs(np.random.default_rng(5))
    default = default_weights()
    weights = CliqueWeights(default.unary, default.same + 0.1, default.differ, default.lexical)
    assert not alignment._find_settled_nodes(weights, graphs, found, unary, free).any()
