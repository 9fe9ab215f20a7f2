"""The order in which notes are read: most expected misses first, with a random note in between again and again.

A detector that is sure of itself where it is blind has a low expected number of misses there. The random stratum shows
such blind spots: its notes come at regular places of the queue, whatever their risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Stratum = Literal["risk", "random"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A note that waits: its number, its expected missed identifiers, and a number from 0 to 1 drawn by key."""

    note: int
    expected: float
    draw: float


@dataclass(frozen=True, slots=True)
class Place:
    """A note at its place of the queue, and the stratum that put it there."""

    note: int
    stratum: Stratum


def stratum_of(draw: float, share: float) -> Stratum:
    """Return "random" if a note's draw is below the share, else "risk"."""
    return "random" if draw < share else "risk"


def reading_order(notes: Iterable[Waiting], share: float) -> tuple[Place, ...]:
    """Return the queue: most expected misses first, mixed with a share of notes drawn at random.

    >>> [place.note for place in reading_order([Waiting(1, 0.1, 0.9), Waiting(2, 3.0, 0.8), Waiting(3, 0, 0.2)], 0.5)]
    [2, 3, 1]
    """
    rows = list(notes)
    random = sorted((row for row in rows if stratum_of(row.draw, share) == "random"), key=lambda row: row.draw)
    risky = sorted(
        (row for row in rows if stratum_of(row.draw, share) == "risk"), key=lambda row: (-row.expected, row.draw)
    )
    return tuple(_interleave(risky, random, share))


def _interleave(risky: Sequence[Waiting], random: Sequence[Waiting], share: float) -> Iterable[Place]:
    """Yield places, a `share` of them from `random`, the others from `risky`, until both are used up."""
    i = j = 0
    for position in range(len(risky) + len(random)):
        turn = math.floor((position + 1) * share) > math.floor(position * share)
        if j < len(random) and (turn or i == len(risky)):
            yield Place(random[j].note, "random")
            j += 1
        else:
            yield Place(risky[i].note, "risk")
            i += 1
