"""Settings with which a few notes are enough to learn from."""

from __future__ import annotations

from dataclasses import replace

from chaffinch.deid.training.learn import ENGLISH, DetectorLesson

QUICK = DetectorLesson((
    replace(ENGLISH[0], dropout=0.1, cutoff=1, private=False),
    replace(ENGLISH[1], min_count=1, min_patients=1, floor=1, private=False),
))  # fmt: skip
