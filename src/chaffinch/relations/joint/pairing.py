"""Pairing: labelled segments are combined into tuples.

Where the model has found segments for each role, these rules decide which of them belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal, TypeAlias, get_args

from chaffinch.errors import ConfigError

Pairing: TypeAlias = Literal["order", "cross", "nearest", "posterior"]
PAIRINGS: tuple[Pairing, ...] = get_args(Pairing)
Segments: TypeAlias = Sequence[int]  # numbers of segments, rising
Score: TypeAlias = Callable[[tuple[int, ...]], float]


def tuples(found: Sequence[Segments], pairing: Pairing = "order", score: Score | None = None) -> list[tuple[int, ...]]:
    """Return tuples of one segment per role by the pairing; [] if a role has none; ConfigError if a score is missing.

    "order", as published: the n-th segments of all roles belong together, and the last of a shorter list is repeated.
    "cross": all combinations. "nearest": each segment of the role with the most goes with the nearest of the others.
    "posterior": the same, but with the combination of the highest `score`.

    >>> tuples([[1, 4], [7]])
    [(1, 7), (4, 7)]
    >>> tuples([[1, 8], [2, 7]], "nearest")
    [(1, 2), (8, 7)]
    """
    if not all(found):
        return []
    if pairing == "order":
        return [tuple(numbers[min(n, len(numbers) - 1)] for numbers in found) for n in range(max(map(len, found)))]
    if pairing == "cross":
        return list(product(*found))
    if pairing == "posterior" and score is None:
        raise ConfigError('pairing "posterior" needs a score of tuples')
    rank = _nearness if pairing == "nearest" or score is None else score
    most = max(range(len(found)), key=lambda role: (len(found[role]), -role))
    out = []
    for segment in found[most]:
        others = product(*(numbers if role != most else [segment] for role, numbers in enumerate(found)))
        out.append(max(others, key=lambda chosen: (rank(chosen), [-n for n in chosen])))
    return list(dict.fromkeys(out))


def _nearness(chosen: tuple[int, ...]) -> float:
    """Return minus the distance in segments between the outermost arguments, as a sort key."""
    return -float(max(chosen) - min(chosen))
