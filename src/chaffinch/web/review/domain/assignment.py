"""Who reads which note: by quota, never two arms of one note to one reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A reader: the name, the most notes to be assigned (None: no limit), and how many are assigned already."""

    name: str
    quota: int | None = None
    load: int = 0


@dataclass(frozen=True, slots=True)
class NeedsReaders:
    """A note that needs readers: its number, a number from 0 to 1 drawn by key, and who reads it already by arm."""

    note: int
    draw: float
    readers: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ReadingTask:
    """One arm of a note (1, 2, …) assigned to a reader."""

    note: int
    reader: str
    arm: int


def assign(notes: Iterable[NeedsReaders], readers: Sequence[Reviewer], *, arms: int) -> tuple[ReadingTask, ...]:
    """Return tasks that give each note up to `arms` readers, those with the least used quotas, while quotas last.

    The reader with the smallest share of the quota used comes first. Which of a note's readers gets which arm depends
    on the note's draw, so that no reader always has the arm that may be without suggestions.

    >>> assign([NeedsReaders(1, 0.2, {})], [Reviewer("ann"), Reviewer("bob")], arms=2)
    (ReadingTask(note=1, reader='ann', arm=1), ReadingTask(note=1, reader='bob', arm=2))
    """
    loads = {reader.name: reader.load for reader in readers}
    quotas = {reader.name: reader.quota for reader in readers}
    tasks: list[ReadingTask] = []
    for note in notes:
        free = [arm for arm in range(1, arms + 1) if arm not in note.readers]
        able = [
            name
            for name, quota in quotas.items()
            if name not in note.readers.values() and (quota is None or loads[name] < quota)
        ]
        able.sort(key=lambda name: (_quota_share(loads[name], quotas[name]), name))
        chosen = able[: len(free)]
        if note.draw * 1000 % 2 >= 1:  # the parity of the third digit: independent enough of the stratum
            chosen.reverse()
        for arm, name in zip(free, chosen, strict=False):  # fewer readers than arms leave arms free
            tasks.append(ReadingTask(note.note, name, arm))
            loads[name] += 1
    return tuple(tasks)


def _quota_share(load: int, quota: int | None) -> float:
    """Return the used part of a quota, load / quota; without a quota, of one of a million."""
    return load / (quota or 1_000_000)
