"""What training tells: how well candidates are ranked in folds over documents, beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.ranking import Quality, auc

DRAWS = 200


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in AUC, own less baseline, with an interval from drawing documents anew."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Report:
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

    @property
    def loses(self) -> bool:
        """Whether the baseline ranks better."""
        return self.gap.value < 0

    def facts(self) -> dict[str, Any]:
        """All figures as plain values."""
        out = {name: getattr(self, name) for name in ("documents", "candidates", "stated", "missed", "strength")}
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
