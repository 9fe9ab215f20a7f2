"""What moving dates does to the notes of patients: distances between full dates, and partial dates beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import combinations

from chaffinch import Document
from chaffinch.deid.dates import Parsed, days_for, parse
from chaffinch.deid.keys import Secret


@dataclass(frozen=True, slots=True)
class Moved:
    """Counts over all patients."""

    pairs: int
    unequal: int  # pairs of full dates whose distance changed
    partial: int
    incompatible: int  # partial dates that do not fit the day they would stand for
    tagged: int  # dates that cannot be read, which are tagged instead
    dates: int


def check(docs: Iterable[Document], secret: Secret) -> Moved:
    """The counts of the gold dates of documents, each patient's moved by the patient's days.

    A partial date stands for the days it may mean; one of these days, moved, must be one that the moved text may mean.
    """
    patients: defaultdict[str, list[str]] = defaultdict(list)
    for doc in docs:
        patients[doc.patient] += [doc.text[own.start : own.end] for own in doc.layer("gold") if own.label == "DATE"]
    pairs = unequal = partial = incompatible = tagged = 0
    for patient, texts in patients.items():
        days = days_for(secret, patient)
        full: list[tuple[date, date]] = []
        for text in texts:
            before = parse(text)
            moved = None if before is None else before.shifted(days)
            if before is None or moved is None:
                tagged += 1
                continue
            after = parse(moved)
            if before.dates and after is not None and len(after.dates) == len(before.dates):
                full += zip(before.dates, after.dates, strict=True)
            elif before.dates:
                unequal += 1
            else:
                partial += 1
                incompatible += not _fits(before, after, days)
        for one, two in combinations(full, 2):
            pairs += 1
            unequal += (two[0] - one[0]) != (two[1] - one[1])
    return Moved(pairs, unequal, partial, incompatible, tagged, sum(map(len, patients.values())))


def _fits(before: Parsed, after: Parsed | None, days: int) -> bool:
    """Whether some day that a partial date may mean, moved, is a day that the moved text may mean."""
    if after is None or len(after.points) != len(before.points):
        return False
    for one, two in zip(before.points, after.points, strict=True):
        old, new = one.span(), two.span()
        if old is None or new is None:
            continue  # a weekday or a span of time: no year tells its days
        first, last = (day + timedelta(days) for day in old)
        if first > new[1] or last < new[0]:
            return False
    return True
