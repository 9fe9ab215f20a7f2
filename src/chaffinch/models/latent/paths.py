"""A span against its alternatives: the best path through states with the span and the best without it.

T tokens of one sentence, Z states.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Ints, Lattice, log_partition
from chaffinch.kernels.lattice import Bools
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import best_path

BEFORE, AFTER = 3, 2  # tokens of a path on either side of its span


def compare_readings(
    lattice: Lattice, labels: Labels, with_span: Bools, without: Sequence[Bools]
) -> tuple[Ints, Ints, float, float]:
    """Return (best path with a span, without; the span's chance; odds of the first's tags against the other's)."""
    chosen = best_path(lattice, with_span)
    others = [found for allowed in without if (found := best_path(lattice, allowed)) is not None]
    if chosen is None or not others:
        raise DataError("the span cannot be compared with another reading, because no other tag is possible there")
    path, other = chosen[1], max(others, key=lambda scored: scored[0])[1]
    chance = float(np.exp(min(log_partition(lattice.clamp(with_span)) - log_partition(lattice), 0.0)))
    ratio = float(np.exp(np.clip(_log_chance(lattice, labels, path) - _log_chance(lattice, labels, other), -700, 700)))
    return path, other, chance, ratio


def span_masks(labels: Labels, label: int, first: int, end: int, T: int) -> tuple[Bools, list[Bools]]:
    """Return (states allowed (T, Z) with the span; masks that together allow the readings without it).

    A reading has the span if the span's tokens have its tags and the span does not continue.
    """
    tags, Z = labels.encode([(first, end, label)], T), len(labels.tag_of)
    same = labels.tag_of[None, :] == tags[:, None]
    inner = f"I-{labels.names[label]}"  # what a span goes on with
    goes_on = labels.tag_of == labels.tags.index(inner)
    with_span, without = np.ones((T, Z), np.bool_), []
    conditions = [(t, same[t]) for t in range(first, end)]
    conditions += [(end, ~goes_on)] if end < T else []
    for t, holds in conditions:
        with_span[t] &= holds
        fails = np.ones((T, Z), np.bool_)
        fails[t] = ~holds
        without.append(fails)
    return with_span, without


def _log_chance(lattice: Lattice, labels: Labels, path: Ints) -> float:
    """Return the log weight of a path's tags, all states with these tags summed."""
    return log_partition(lattice.clamp(labels.tag_of[None, :] == labels.tag_of[path][:, None]))
