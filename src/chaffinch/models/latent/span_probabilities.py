"""How sure a chain with sub-tags is of a span: exact probabilities, and a calibration learnt on text it did not see.

N tokens, S tags, Z states, n spans.
"""

from __future__ import annotations

import numpy as np

from chaffinch.kernels import Active, Batch, Floats, Ints, log_partition
from chaffinch.models.core.confidence import Calibration, best_scale, judged, scaled
from chaffinch.models.core.labels import Labels


def run_chances(batch: Batch, labels: Labels, tags: Ints, starts: Ints, ends: Ints) -> Floats:
    """(n,) the exact probability of each run: its tokens have these tags (N,), and the span goes no further.

    Where spans are runs of one tag, neither does it begin earlier.
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
    """The tag that goes on with a span of this one, or -1."""
    name = labels.tags[tag]
    if name == "O":
        return -1
    return labels.tags.index(f"I-{name[2:]}")


def calibrate(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> Calibration:
    """The calibration of a chain on sentences it did not learn from; gold and found are tags (N,)."""
    states = [np.flatnonzero(labels.tag_of == tag) for tag in range(len(labels.tags))]
    active = Active.of(states, gold)
    emit = batch.emit[np.repeat(np.arange(len(gold)), active.widths), active.cells]
    clamped = Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, active)
    scale = best_scale(batch, lambda scale: float(log_partition(scaled(clamped, scale)).sum()))
    plain = Labels(labels.names, labels.scheme)
    starts, ends = runs_inside(plain, found, batch.bounds)
    chances = run_chances(scaled(batch, scale), labels, found, starts, ends)
    right = set(zip(*runs_inside(plain, gold, batch.bounds), strict=True))
    same = [run in right and gold[run[0]] == found[run[0]] for run in zip(starts, ends, strict=True)]
    return judged(scale, chances, np.array(same, np.float64))


def runs_inside(plain: Labels, tags: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """First tokens and ends of all runs of tags (N,), none of which crosses a sentence's edge."""
    place = np.arange(len(tags)) + np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    padded = np.zeros(len(tags) + len(bounds), np.int32)
    padded[place] = tags
    starts, ends, _ = plain.run_arrays(padded)
    before = np.zeros(len(padded) + 1, np.int64)
    before[place] = np.arange(len(tags))
    return before[starts], before[ends - 1] + 1
