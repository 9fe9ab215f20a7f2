"""Estimates of residual leaks: expected leaks from the detector, a sample to review, and bounds from the review.

probabilities  →  risk  →  sample  →  (someone reads)  →  estimate  →  sentence

risks = [risk(Left(doc.id, len(doc.tokens), left_probabilities)) for doc in ...]
drawn = sample({row.id: row.tokens for row in risks}, {row.id: row.expected for row in risks}, 300, seed=7)
print(estimate(drawn, reviewed, reader=Reader(recall=0.95, planted=200)).sentence())
"""

from chaffinch.deid.leakage.bounds import leaking_upper, leaks_upper, notes_upper
from chaffinch.deid.leakage.estimate import Figure, LeakEstimate, Leaks, Reader, Reviewed, estimate
from chaffinch.deid.leakage.risk import (
    Bin,
    ExpectedLeaks,
    Left,
    Risk,
    RiskCalibration,
    RiskSums,
    calibration,
    expected,
    queue,
    risk,
    sum_chances,
)
from chaffinch.deid.leakage.sample import QUANTILES, Allocation, Sample, Stratum, sample
from chaffinch.deid.leakage.size import sample_size

__all__ = [
    "QUANTILES",
    "Allocation",
    "Bin",
    "ExpectedLeaks",
    "Figure",
    "LeakEstimate",
    "Leaks",
    "Left",
    "Reader",
    "Reviewed",
    "Risk",
    "RiskCalibration",
    "RiskSums",
    "Sample",
    "Stratum",
    "calibration",
    "estimate",
    "expected",
    "leaking_upper",
    "leaks_upper",
    "notes_upper",
    "queue",
    "risk",
    "sample",
    "sample_size",
    "sum_chances",
]
