"""The tags that training labels allow at each token, possibly weighted, in the forms that learners use.

N tokens with pads between sentences, M without; S tags, Z states.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError, InfeasibleError
from chaffinch.kernels import Active, Batch, Floats, Ints, log_partition
from chaffinch.kernels.lattice import Bools
from chaffinch.kernels.linear import Target
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evidence:
    """The tags each token may have, and log weights where soft labels weight them."""

    task: Task
    plain: Labels  # states are tags
    bounds: Ints  # sentence b is tokens bounds[b] to bounds[b+1] of the M
    allowed: Bools  # (M, S)
    logs: Floats | None  # (M, S)

    @classmethod
    def of(cls, task: Task, plain: Labels) -> Evidence:
        """Return the tags that a task's tokens may have, with weights; DataError if a sentence allows no sequence."""
        seen, S, target = task.seen, len(plain.tags), task.target(plain)
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        if task.soft is None:
            allowed = np.zeros((len(seen.places), S), np.bool_)
            allowed[np.arange(len(allowed)), target.gold[seen.places]] = True
            return cls(task, plain, bounds, allowed, None)
        weights = target.weights[target.which[seen.places], :S].astype(float)
        allowed = weights > 0
        with np.errstate(divide="ignore"):
            logs = np.where(allowed, np.log(weights), 0.0)
        evidence = cls(task, plain, bounds, allowed, logs if logs.any() else None)
        evidence.check()
        return evidence

    def check(self) -> None:
        """Raise DataError, with the document's number, if some sentence allows no sequence of tags."""
        S, moves = len(self.plain.tags), np.where(self.plain.follows, 0.0, -np.inf)
        start, trans, end = moves[S], moves[:S], moves[S + 1]
        emit = np.where(self.allowed, 0.0, -np.inf)
        try:
            log_partition(Batch(start, trans, emit, end, self.bounds))
        except InfeasibleError:
            for sentence, (first, last) in enumerate(pairwise(self.bounds.tolist())):
                try:
                    log_partition(Batch(start, trans, emit[first:last], end, np.array([0, last - first])))
                except InfeasibleError:
                    number = self.task.number(int(self.task.seen.owners[self.task.seen.begins[sentence]]))
                    raise DataError(
                        f"document {number}: the soft labels of a sentence allow no sequence of tags; allow more there"
                    ) from None

    @property
    def inside(self) -> Bools:
        """Return (N,) which tokens are known to be in a span: O is not allowed; False at pads."""
        return self.spread(~self.allowed[:, 0]).astype(np.bool_)

    @property
    def tags(self) -> Ints:
        """Return (N,) the tag of each token, or the first of several; 0 at pads."""
        return self.spread(self.allowed.argmax(axis=1))

    def spread(self, values: NDArray[Any]) -> Ints:
        """Return (N,) the values of tokens (M,), as integers, at their positions among pads, which get 0."""
        out = np.zeros(len(self.task.seen.types), np.int64)
        out[self.task.seen.places] = values
        return out

    @property
    def untagged(self) -> Bools:
        """Return (B,) which sentences have no known tag: every token may have any; False for empty ones."""
        known = np.append(0, np.cumsum(~self.allowed.all(axis=1)))[self.bounds]
        return np.asarray((np.diff(known) == 0) & (np.diff(self.bounds) > 0))

    @property
    def occurs(self) -> Bools:
        """Return (S+1, S) whether some sentence allows tag b after tag a; row S: b at its beginning."""
        first = np.zeros(len(self.allowed), np.bool_)
        first[self.bounds[:-1]] = True
        here = self.allowed.astype(np.float32)
        pairs = here[:-1][~first[1:]].T @ here[1:][~first[1:]]
        return np.vstack([pairs > 0, here[first].sum(axis=0) > 0])

    @property
    def follows(self) -> Bools:
        """Return (S+1, S+1) which tag may follow which: row S begins a sentence, column S ends it."""
        S = len(self.plain.tags)
        follows = np.zeros((S + 1, S + 1), np.bool_)
        follows[:, :S], follows[:S, S] = self.plain.follows[:-1], self.plain.follows[-1]
        return follows

    def lists(self) -> tuple[list[Ints], Ints]:
        """Return (lists of allowed tags, each single tag first; (M,) the number of each token's list)."""
        S = self.allowed.shape[1]
        sets, which = _distinct(self.allowed)
        several = sets.sum(axis=1) > 1
        number = np.where(several, S - 1 + np.cumsum(several), sets.argmax(axis=1))
        return [np.array([tag]) for tag in range(S)] + [np.flatnonzero(row) for row in sets[several]], number[which]

    def active(self, labels: Labels) -> tuple[Active, Floats | None]:
        """Return the states, sub-tags too, that each token may take, and each cell's log weight, None if all are 0."""
        lists, which = self.lists()
        active = Active.of([np.flatnonzero(np.isin(labels.tag_of, tags)) for tags in lists], which)
        if self.logs is None:
            return active, None
        return active, self.logs[np.repeat(np.arange(len(which)), active.widths), labels.tag_of[active.cells]]

    def target(self, labels: Labels) -> Target:
        """Return the training target: per token the weights of its allowed tags' states, for the model to choose."""
        rows = self.allowed if self.logs is None else np.where(self.allowed, np.exp(self.logs), 0.0)
        distinct, which = _distinct(rows)
        weights = np.zeros((1 + len(distinct), labels.states.W), np.float32)
        weights[1:, : labels.states.K] = distinct[:, labels.tag_of]
        gold = np.where(self.task.seen.types > 0, -1, 0)
        return Target(
            gold.astype(np.int32), self.spread(1 + which).astype(np.int32), weights, np.ones(len(weights), np.bool_)
        )


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct rows, and each row's index among them; found by a random projection, not by sorting."""
    number, which = np.unique(rows @ np.random.default_rng(0).random(rows.shape[1]), return_inverse=True)
    first = np.zeros(len(number), np.int64)
    first[which[::-1]] = np.arange(len(rows))[::-1]
    return rows[first], which
