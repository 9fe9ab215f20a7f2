"""The second stage as published: a chain over tokens that sees a segmentation, and gives each segment one class.

N tokens with pads between sentences, M without, K states: pairs of classes, O among them. Tokens outside of segments
are O; the first token of a segment has any class; the others have that of the token before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chaffinch.features.observe import Column, Observed
from chaffinch.kernels import Batch, Floats, group, viterbi
from chaffinch.kernels.linear import Places
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.resources import SEGMENTATION
from chaffinch.models.core.runs import Bias, Run
from chaffinch.models.core.tasks import Task

FIRST, INNER = 1, 2  # tags of a segmentation; 0 is outside


def labels_of(names: tuple[str, ...]) -> Labels:
    """Return the labels of the second stage: pairs of classes, without weights of moves from pair to pair."""
    return Labels(names, "tokens", pairs=True, moves=False)


def segmentation(seen: Observed, labels: Labels, states: Places) -> Column:
    """Return the tags of a first stage as a column, seen from one token before to one after."""
    return Column(SEGMENTATION, np.where(seen.types > 0, 1 + labels.tag_of[states], 0).astype(np.uint64))


def tags_of(task: Task) -> Places:
    """Return (N,) the class of each token, 1 + the number of its label; 0 outside of spans and at pads."""
    rows = []
    for pieces, doc in zip(task.pieces, task.docs, strict=True):
        tags = np.zeros(len(doc.tokens), np.int64)
        for first, end, label in pieces:
            tags[first:end] = 1 + label
        rows.append(tags)
    return task.seen.spread(rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenClasses:
    """The segments of a reading, and chains over their classes."""

    seen: Observed
    labels: Labels
    batch: Batch  # clamped to what the segments allow
    tags: Places  # (M,) of the segmentation

    @classmethod
    def of(
        cls, part: Linear, seen: Observed, columns: list[Column], first_stage: tuple[Labels, Places],
        bias: Bias = None, scale: float = 1.0,
    ) -> TokenClasses:  # fmt: skip
        """Return the chains of `part` over tokens, restricted by the segments that the first stage's states make."""
        labels, states = first_stage
        tags = labels.tag_of[states[seen.places]].astype(np.int32)
        batch = part.batch(seen, [*columns, segmentation(seen, labels, states)], bias, scale=scale)
        before, after = np.zeros(part.labels.states.K, np.int64), part.labels.tag_of
        a, b = np.nonzero(part.labels.state_of >= 0)
        before[part.labels.state_of[a, b]] = a
        allowed = np.stack([after == 0, after > 0, (after > 0) & (before == after)])
        return cls(seen, part.labels, batch.clamp(allowed[tags]), tags)

    def starts(self) -> Places:
        """Return the index of the first token of each segment, pads not counted."""
        return np.flatnonzero(self.tags == FIRST).astype(np.int32)

    def runs(self) -> list[list[Run]]:
        """Return each document's labelled runs: the segments, each with the best class."""
        classes = self.labels.tag_of[viterbi(self.batch).states] if len(self.tags) else self.tags
        starts, inner = self.starts(), np.append(self.tags == INNER, False)
        ends = np.flatnonzero((self.tags > 0) & ~inner[1:]) + 1
        edges = np.cumsum([0, *self.seen.sizes])
        out: list[list[Run]] = [[] for _ in self.seen.sizes]
        owners = self.seen.owners[self.seen.places]
        for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
            owner = int(owners[first])
            source = int(self.seen.sources[first] - edges[owner])
            out[owner].append((source, source + end - first, self.labels.names[int(classes[first]) - 1]))
        return out

    def chances(self) -> Floats:
        """Return (M, 1 + L) the probability of each class given the segments."""
        if not len(self.tags):
            return np.zeros((0, 1 + len(self.labels.names)))
        return np.asarray(group(self.batch, self.labels.tag_of, pairs=False).states)
