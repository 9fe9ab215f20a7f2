"""Calibrated probability that an extraction is right: a logistic regression on figures of its reading.

The path's share of the model's probability is overconfident: words are not independent. Fit it on readings of sentences
that the model did not learn from (`choice.cross_validate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from chaffinch.errors import DataError
from chaffinch.kernels import Floats
from chaffinch.models.phrasehmm.model import PhraseReading

RIDGE = 1.0  # on the weights of standardised figures, not the constant; higher pulls chances to the mean
STEPS = 50  # most Newton steps
LOWEST, HIGHEST = -50.0, 20.0  # figures are clipped to this range; narrower limits the effect of outliers


class Platt(NamedTuple):
    """Platt scaling: weights of a constant, the label posterior, the odds per segment and the length of a sentence."""

    weights: Floats  # (4,)
    centre: Floats  # (3,)
    scale: Floats  # (3,)

    def __call__(self, reading: PhraseReading) -> float:
        """Return the probability that the reading is right."""
        return float(self.chances([reading])[0])

    def chances(self, readings: Sequence[PhraseReading]) -> Floats:
        """Return the probability that each reading is right (B,)."""
        figures = (_figures(readings) - self.centre) / self.scale
        return np.asarray(expit(self.weights[0] + figures @ self.weights[1:]))

    def array(self) -> Floats:
        """Return the numbers of the calibration for a model file (10,)."""
        return np.concatenate(self)

    @classmethod
    def of(cls, array: Floats) -> Platt:
        """Return the calibration of a model file's ten numbers, as `array` returns them."""
        return cls(array[:4], array[4:7], array[7:10])


def calibrate(readings: Sequence[PhraseReading], right: Sequence[bool]) -> Platt:
    """Return Platt's calibration fitted to readings, right or wrong; DataError without any, or for unequal counts."""
    if not readings or len(readings) != len(right):
        raise DataError(f"{len(readings)} readings and {len(right)} answers; give one answer for each, at least one")
    figures = _figures(readings)
    centre, scale = figures.mean(axis=0), figures.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(figures)), (figures - centre) / scale])
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
    """Return (B, 3) label posterior, odds and log of the length of each reading, clipped, for the calibration."""
    rows = [(reading.log_label_posterior, reading.odds, np.log1p(len(reading.labels))) for reading in readings]
    return np.asarray(np.clip(np.array(rows, float).reshape(-1, 3), LOWEST, HIGHEST))
