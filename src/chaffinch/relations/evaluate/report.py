"""What training tells: how well candidates are ranked in folds over documents, beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.evaluate.ranking import Quality, auc

DRAWS = 200


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in AUC, own less baseline, with an interval from drawing documents anew."""

    value: float
    low: float
    high: float


class Judged(NamedTuple):
    """What an extractor says of a document whose relations are known: scores, whether right, and how many to find."""

    scores: Floats
    right: Bools
    stated: int


class Rates(NamedTuple):
    """Counts of tuples that are right, found and stated."""

    hits: int
    found: int
    stated: int

    @property
    def precision(self) -> float:
        """The share of those found that is right; 0 if none is found."""
        return self.hits / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of those stated that is found; 0 if none is stated."""
        return self.hits / self.stated if self.stated else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.found + self.stated
        return 2 * self.hits / total if total else 0.0

    def facts(self) -> dict[str, float]:
        """The three figures by name."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of cross-validation of whole tuples, the threshold or rule chosen on the same folds.

    `every` is what it gives to call every tuple that could be one related, which asks no model; None where entities
    are not seen. `missed` stated tuples lie in no one sentence.
    """

    documents: int
    missed: int
    own: Rates
    every: Rates | None
    floor: int
    representation: str
    sentences: RelationReport | None = (
        None  # of the extractor for sentences, where tuples of concepts are merged from it
    )

    @property
    def loses(self) -> bool:
        """Whether calling every tuple related is better."""
        return self.every is not None and self.every.f1 > self.own.f1

    def facts(self) -> dict[str, Any]:
        """All figures as plain values."""
        plain = {name: getattr(self, name) for name in ("documents", "missed", "floor", "representation", "loses")}
        every = self.every.facts() if self.every else None
        sentences = {"sentences": self.sentences.facts()} if self.sentences else {}
        return {**plain, "stated": self.own.stated, "own": self.own.facts(), "every": every, **sentences}

    def __str__(self) -> str:
        lines = [
            f"{self.own.stated:,} stated tuples in {self.documents:,} documents; {self.missed:,} in no one sentence",
            f"{'':14}  precision  recall     F1",
        ]
        for name, own in (("this extractor", self.own), ("every tuple", self.every)):
            if own is not None:
                lines.append(f"{name:14}  {own.precision:9.3f}  {own.recall:6.3f}  {own.f1:5.3f}")
        if self.loses:
            lines.append("To call every tuple of entities related is better on your documents: try the mode entities.")
        if self.sentences is not None:
            lines += ["Sentences:", *str(self.sentences).splitlines()]
        else:
            lines += [f"representation: {self.representation}", kept_words(self.floor)]
        return "\n".join(lines)


def kept_words(floor: int) -> str:
    """What a model file tells of the documents it was learnt from."""
    if floor > 1:
        return f"The model file holds words that {floor} documents or more have (floor {floor})."
    return (
        "The model file holds words of single documents (floor 1). If these are confidential, so is the file; "
        "train with floor 2 or more (--floor) to leave such words out."
    )


@dataclass(frozen=True, slots=True)
class RelationReport:
    """Figures of cross-validation; `missed` stated tuples are no candidates, as their mentions are in no one sentence.

    `own` is the extractor, `baseline` logistic regression over the words of each zone, both on the same folds.
    """

    documents: int
    candidates: int
    stated: int
    missed: int
    strength: float
    own: Quality
    baseline: Quality
    gap: Gap
    floor: int = 1  # documents or patients that show each feature
    representation: str = "phrase"

    @property
    def loses(self) -> bool:
        """Whether the baseline ranks better."""
        return self.gap.value < 0

    def facts(self) -> dict[str, Any]:
        """All figures as plain values."""
        names = ("documents", "candidates", "stated", "missed", "strength", "floor", "representation")
        out = {name: getattr(self, name) for name in names}
        qualities = {"own": self.own._asdict(), "baseline": self.baseline._asdict()}
        return {**out, **qualities, "gap": asdict(self.gap), "loses": self.loses}

    def __str__(self) -> str:
        lines = [
            f"{self.candidates:,} candidates in {self.documents:,} documents, {self.stated:,} of them stated; "
            f"{self.missed:,} stated tuples lie in no one sentence",
            f"{'':14}   AUC    F1   precision at recall .1",
        ]
        for name, own in (("this extractor", self.own), ("bag of words", self.baseline)):
            lines.append(f"{name:14}  {own.auc:.3f}  {own.f1:.3f}  {own.precision_at:.3f}")
        lines.append(f"AUC over the baseline: {self.gap.value:+.3f} ({self.gap.low:+.3f} to {self.gap.high:+.3f})")
        if self.loses:
            lines.append('The bag of words ranks better on your documents: train with views=("words",) instead.')
        lines.append(kept_words(self.floor))
        return "\n".join(lines)


def gap(own: Floats, other: Floats, right: Bools, groups: Sequence[str], *, draws: int = DRAWS, seed: int = 0) -> Gap:
    """The difference in AUC of two scorings of the same candidates, documents drawn anew for both together."""
    value = auc(own, right) - auc(other, right)
    names, number = np.unique(np.array(groups), return_inverse=True)
    rows = [np.flatnonzero(number == n) for n in range(len(names))]
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws if len(names) > 1 else 0):
        chosen = np.concatenate([rows[n] for n in rng.integers(len(names), size=len(names))])
        drawn.append(auc(own[chosen], right[chosen]) - auc(other[chosen], right[chosen]))
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist() if drawn else (value, value)
    return Gap(value, low, high)
