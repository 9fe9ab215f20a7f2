"""How likely an extraction is right: a logistic regression on what the model says of it.

The model's own share of paths is far too sure of itself: words are not independent. Fit it on readings of sentences
that the model did not learn from (`phrasehmm_choice.crossed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from chaffinch.errors import DataError
from chaffinch.kernels import Floats
from chaffinch.models.phrasehmm.model import PhraseReading

RIDGE = 1.0  # on the weights of standardised figures; the constant is free
STEPS = 50
LOWEST, HIGHEST = -50.0, 20.0  # figures beyond are as good as these


class Platt(NamedTuple):
    """Weights of the label posterior, the odds per segment and the length of a sentence, after a constant."""

    weights: Floats  # (4,)
    centre: Floats  # (3,)
    scale: Floats  # (3,)

    def __call__(self, reading: PhraseReading) -> float:
        """The chance that what was read is right."""
        return float(self.chances([reading])[0])

    def chances(self, readings: Sequence[PhraseReading]) -> Floats:
        """(B,) the same for many."""
        told = (_figures(readings) - self.centre) / self.scale
        return np.asarray(expit(self.weights[0] + told @ self.weights[1:]))

    def array(self) -> Floats:
        """(10,) for a model file."""
        return np.concatenate(self)

    @classmethod
    def of(cls, array: Floats) -> Platt:
        """The calibration of what `array` gave."""
        return cls(array[:4], array[4:7], array[7:10])


def calibrate(readings: Sequence[PhraseReading], right: Sequence[bool]) -> Platt:
    """The calibration under which the rights and wrongs of these readings are likeliest, less a penalty."""
    if not readings or len(readings) != len(right):
        raise DataError(f"{len(readings)} readings and {len(right)} answers; give one answer for each, at least one")
    told = _figures(readings)
    centre, scale = told.mean(axis=0), told.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(told)), (told - centre) / scale])
    truth = np.asarray(right, float)
    truth = np.clip(truth, 0.5 / (len(truth) + 1), 1 - 0.5 / (len(truth) + 1))  # never quite sure
    weights, ridge = np.zeros(4), RIDGE * np.diag([0.0, 1.0, 1.0, 1.0])
    for _ in range(STEPS):
        chances = expit(design @ weights)
        slope = design.T @ (truth - chances) - ridge @ weights
        curve = (design * (chances * (1 - chances))[:, None]).T @ design + ridge
        change = np.linalg.solve(curve + 1e-9 * np.eye(4), slope)
        weights += np.clip(change, -2.0, 2.0)
        if np.abs(change).max() < 1e-9:
            break
    return Platt(weights, centre, scale)


def _figures(readings: Sequence[PhraseReading]) -> Floats:
    """(B, 3) the three figures of each reading."""
    rows = [(own.log_label_posterior, own.odds, np.log1p(len(own.labels))) for own in readings]
    return np.asarray(np.clip(np.array(rows, float).reshape(-1, 3), LOWEST, HIGHEST))
