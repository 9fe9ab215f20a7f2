"""Reports of training: cross-validated scores over documents, next to the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.evaluate.ranking import Quality, auc

DRAWS = 200  # bootstrap samples of documents; more give steadier intervals and take longer


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in AUC, extractor minus baseline, with a bootstrap interval over documents."""

    value: float
    low: float
    high: float


class TupleScores(NamedTuple):
    """Scores of one document whose relations are known, whether each tuple is right, and how many are stated."""

    scores: Floats
    right: Bools
    stated: int


class Rates(NamedTuple):
    """Counts of tuples: right among the found, found, and stated."""

    hits: int
    found: int
    stated: int

    @property
    def precision(self) -> float:
        """Return the share of found tuples that are right; 0 if none is found."""
        return self.hits / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Return the share of stated tuples that are found; 0 if none is stated."""
        return self.hits / self.stated if self.stated else 0.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall; 0 if nothing is found or stated."""
        total = self.found + self.stated
        return 2 * self.hits / total if total else 0.0

    def facts(self) -> dict[str, float]:
        """Return precision, recall and F1 by name."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True, slots=True)
class Summary:
    """Cross-validated scores of whole tuples; the threshold or rule was chosen on the same folds.

    `every` has the scores of calling every candidate related, without a model; None where the model does not see
    entities. The arguments of `missed` stated tuples do not share a sentence.
    """

    documents: int
    missed: int
    rates: Rates
    every: Rates | None
    floor: int
    representation: str
    sentences: RelationReport | None = None  # of the sentence extractor whose results are merged by concept

    @property
    def loses(self) -> bool:
        """Tell whether calling every tuple related has a higher F1; False if `every` is None."""
        return self.every is not None and self.every.f1 > self.rates.f1

    def facts(self) -> dict[str, Any]:
        """Return all figures as plain values; "own" are the extractor's, "every" those of calling all related."""
        plain = {name: getattr(self, name) for name in ("documents", "missed", "floor", "representation", "loses")}
        every = self.every.facts() if self.every else None
        sentences = {"sentences": self.sentences.facts()} if self.sentences else {}
        return {**plain, "stated": self.rates.stated, "own": self.rates.facts(), "every": every, **sentences}

    def __str__(self) -> str:
        """Return a table of precision, recall and F1, with hints if the extractor loses and on kept words."""
        lines = [
            f"{self.rates.stated:,} stated tuples in {self.documents:,} documents; {self.missed:,} in no one sentence",
            f"{'':14}  precision  recall     F1",
        ]
        for name, rates in (("this extractor", self.rates), ("every tuple", self.every)):
            if rates is not None:
                lines.append(f"{name:14}  {rates.precision:9.3f}  {rates.recall:6.3f}  {rates.f1:5.3f}")
        if self.loses:
            lines.append("To call every tuple of entities related is better on your documents: try the mode entities.")
        if self.sentences is not None:
            lines += ["Sentences:", *str(self.sentences).splitlines()]
        else:
            lines += [f"representation: {self.representation}", kept_words(self.floor)]
        return "\n".join(lines)


def kept_words(floor: int) -> str:
    """Return a sentence on which training words the model file holds; with a warning if the floor is below 2."""
    if floor > 1:
        return f"The model file holds words that {floor} documents or more have (floor {floor})."
    return (
        "The model file holds words of single documents (floor 1). If these are confidential, so is the file; "
        "train with floor 2 or more (--floor) to leave such words out."
    )


@dataclass(frozen=True, slots=True)
class RelationReport:
    """Cross-validated figures; the mentions of `missed` stated tuples share no sentence, so they are no candidates.

    `quality` is that of the extractor, `baseline` of a logistic regression over the words of each zone, on the same
    folds.
    """

    documents: int
    candidates: int
    stated: int
    missed: int
    strength: float
    quality: Quality
    baseline: Quality
    gap: Gap
    floor: int = 1  # documents or patients that show each feature
    representation: str = "phrase"

    @property
    def loses(self) -> bool:
        """Tell whether the baseline has the higher AUC."""
        return self.gap.value < 0

    def facts(self) -> dict[str, Any]:
        """Return all figures as plain values; "own" are the extractor's, "baseline" the bag of words'."""
        names = ("documents", "candidates", "stated", "missed", "strength", "floor", "representation")
        out = {name: getattr(self, name) for name in names}
        qualities = {"own": self.quality._asdict(), "baseline": self.baseline._asdict()}
        return {**out, **qualities, "gap": asdict(self.gap), "loses": self.loses}

    def __str__(self) -> str:
        """Return a table of AUC, F1 and precision of extractor and baseline, the gap, and hints."""
        lines = [
            f"{self.candidates:,} candidates in {self.documents:,} documents, {self.stated:,} of them stated; "
            f"{self.missed:,} stated tuples lie in no one sentence",
            f"{'':14}   AUC    F1   precision at recall .1",
        ]
        for name, quality in (("this extractor", self.quality), ("bag of words", self.baseline)):
            lines.append(f"{name:14}  {quality.auc:.3f}  {quality.f1:.3f}  {quality.precision_at:.3f}")
        lines.append(f"AUC over the baseline: {self.gap.value:+.3f} ({self.gap.low:+.3f} to {self.gap.high:+.3f})")
        if self.loses:
            lines.append('The bag of words ranks better on your documents: train with views=("words",) instead.')
        lines.append(kept_words(self.floor))
        return "\n".join(lines)


def gap(
    first: Floats, second: Floats, right: Bools, groups: Sequence[str], *, draws: int = DRAWS, seed: int = 0
) -> Gap:
    """Return AUC of `first` less that of `second` on the same candidates, with bounds of a bootstrap over groups.

    With one group the bounds are the value.
    """
    value = auc(first, right) - auc(second, right)
    names, number = np.unique(np.array(groups), return_inverse=True)
    rows = [np.flatnonzero(number == n) for n in range(len(names))]
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws if len(names) > 1 else 0):
        chosen = np.concatenate([rows[n] for n in rng.integers(len(names), size=len(names))])
        drawn.append(auc(first[chosen], right[chosen]) - auc(second[chosen], right[chosen]))
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist() if drawn else (value, value)
    return Gap(value, low, high)
