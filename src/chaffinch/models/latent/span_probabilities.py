"""Confidence of a chain with sub-tags: exact span probabilities, and a calibration learnt on unseen text.

N tokens, S tags, Z states, n spans.
"""

from __future__ import annotations

import numpy as np

from chaffinch.kernels import Active, Batch, Floats, Ints, log_partition
from chaffinch.models.core.confidence import Calibration, HeldOut, best_scale, calibrate_on, scale_batch
from chaffinch.models.core.labels import Labels


def run_chances(batch: Batch, labels: Labels, tags: Ints, starts: Ints, ends: Ints) -> Floats:
    """Return (n,) each run's exact probability that its tokens have these tags (N,) and the span ends there.

    The runs are tokens starts to ends. Where spans are runs of one tag, a span must not begin earlier either.
    """
    if not len(starts):
        return np.zeros(0)
    S, sentence = len(labels.tags), np.searchsorted(batch.bounds, starts, side="right") - 1
    states = [np.flatnonzero(labels.tag_of == tag) for tag in range(S)]
    lists = [*states, np.arange(len(labels.tag_of))]
    goes_on = np.array([_inner(labels, tag) for tag in range(S)])
    lists += [np.flatnonzero(labels.tag_of != tag) for tag in goes_on]  # list S + 1 + tag: not its continuation
    first, last = batch.bounds[sentence], batch.bounds[sentence + 1]
    sizes = last - first
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    token = np.arange(bounds[-1]) + np.repeat(first - bounds[:-1], sizes)
    run = np.repeat(np.arange(len(starts)), sizes)
    which = np.full(len(token), S)
    inside = (token >= starts[run]) & (token < ends[run])
    which[inside] = tags[token[inside]]
    beside = token == ends[run]
    if labels.scheme == "runs":
        beside |= token == starts[run] - 1
    which[beside] = S + 1 + tags[starts[run[beside]]]
    active = Active.of(lists, which)
    cells = np.repeat(token, active.widths), active.cells
    clamped = Batch(batch.start, batch.trans, batch.emit[cells], batch.end, bounds, active)
    whole = log_partition(batch)[sentence]
    return np.asarray(np.exp(np.minimum(log_partition(clamped) - whole, 0.0)))


def _inner(labels: Labels, tag: int) -> int:
    """Return the number of the I- tag that continues a span of this tag; -1 for O, which nothing continues."""
    name = labels.tags[tag]
    if name == "O":
        return -1
    return labels.tags.index(f"I-{name[2:]}")


def hold_out(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> HeldOut:
    """Return held-out sentences' best scale and a judge of their `found` spans; gold and found are tags (N,)."""
    states = [np.flatnonzero(labels.tag_of == tag) for tag in range(len(labels.tags))]
    active = Active.of(states, gold)
    emit = batch.emit[np.repeat(np.arange(len(gold)), active.widths), active.cells]
    clamped = Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, active)
    plain = Labels(labels.names, labels.scheme)
    starts, ends = runs_inside(plain, found, batch.bounds)
    right = set(zip(*runs_inside(plain, gold, batch.bounds), strict=True))
    same = [run in right and gold[run[0]] == found[run[0]] for run in zip(starts, ends, strict=True)]
    hits = np.array(same, np.float64)

    def judge(scale: float) -> tuple[Floats, Floats]:
        """Return (n,) the chances of the predicted spans with scores scaled, and whether each is right."""
        return run_chances(scale_batch(batch, scale), labels, found, starts, ends), hits

    return HeldOut(best_scale(batch, lambda scale: float(log_partition(scale_batch(clamped, scale)).sum())), judge)


def calibrate(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> Calibration:
    """Return the calibration of a chain, fitted on sentences it did not learn from; gold and found are tags (N,)."""
    return calibrate_on([hold_out(batch, labels, gold, found)])


def runs_inside(plain: Labels, tags: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Return (first tokens, ends) of all runs of tags (N,); no run crosses a sentence's edge (`bounds`)."""
    position = np.arange(len(tags)) + np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    padded = np.zeros(len(tags) + len(bounds), np.int32)
    padded[position] = tags
    starts, ends, _ = plain.run_arrays(padded)
    before = np.zeros(len(padded) + 1, np.int64)
    before[position] = np.arange(len(tags))
    return before[starts], before[ends - 1] + 1
