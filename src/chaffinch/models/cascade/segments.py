"""The second stage of the published cascade: a chain over the segments of a sentence, with a class for rejection.

M segments, N tokens with pads between sentences. Segments become the tokens of a new set of observations; tag O
rejects a segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.features import observe as window
from chaffinch.features.observe import Observed
from chaffinch.kernels.linear import Places
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.runs import Run

# Edges between the ten levels of certainty that are features of a segment. Finer levels need more text to learn from.
MARGINS = np.array([-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0, 4.0])


def find_segments(labels: Labels, states: Places) -> NDArray[np.int64]:
    """Return (M, 2) the segments of a reading: first token and one past the last, among tokens with pads."""
    return np.array([(first, end) for first, end, _ in labels.runs(states)], np.int64).reshape(-1, 2)


def margins(segments: NDArray[np.int64], certain: NDArray[np.float32]) -> Places:
    """Return (M,) the certainty of each segment's least certain token, as a level from 0 to 9."""
    if len(segments) == 0:
        return np.zeros(0, np.int32)
    least = np.minimum.reduceat(np.append(certain, np.float32(0)), segments.ravel())[::2]
    return np.digitize(least, MARGINS).astype(np.int32)


def observe(seen: Observed, segments: NDArray[np.int64], levels: Places) -> Observed:
    """Return segments as the tokens of new observations, with features by word and by `levels` of certainty."""
    from chaffinch.features._compiled import _segments, _words

    M = len(segments)
    sizes = segments[:, 1] - segments[:, 0]
    keys = np.empty(int(sizes.sum()) * (_words.AFFIX + 3) + M * (_words.MOST + _segments.FIXED), np.uint64)
    lists = np.zeros(M + 2, np.int32)
    described = _segments.TypeFeatures(seen.lists, seen.keys, seen.kinds)
    Q = _segments.segment_features(segments.astype(np.int32), levels, seen.words, seen.types, described, keys, lists)
    sentence = np.searchsorted(seen.begins, segments[:, 0], side="right")
    fresh = np.flatnonzero(np.diff(sentence, prepend=-1))
    lengths = np.diff(np.append(fresh, M))
    ends = np.cumsum(lengths + 1)
    places = np.arange(M) + np.repeat(np.arange(1, len(fresh) + 1), lengths)
    types, owners = np.zeros(M + len(fresh) + 1, np.int32), np.zeros(M + len(fresh) + 1, np.int32)
    types[places] = np.arange(1, M + 1)
    owners[1:] = np.repeat(seen.owners[segments[fresh, 0]], lengths + 1) if M else 0
    return replace(
        seen, types=types, owners=owners, begins=(ends - lengths).astype(np.int32), ends=ends.astype(np.int32),
        places=places.astype(np.int32), sources=np.arange(M), sizes=np.array([M]),
        words=np.zeros(len(types), np.uint64), lists=lists, keys=keys[:Q].copy(),
        kinds=np.full(Q, window.SEGMENT, np.uint8),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentSpans:
    """The segments of a reading with their observations."""

    base: Observed
    segments: NDArray[np.int64]  # (M, 2)
    seen: Observed

    def label_runs(self, classifier: Linear, states: Places) -> list[list[Run]]:
        """Return each document's runs: the segments with the classes of `states`, without rejected ones."""
        tags = classifier.labels.tag_of[states[self.seen.places]]
        first = np.searchsorted(self.base.places, self.segments)  # pads drop out
        starts = np.cumsum([0, *self.base.sizes])
        out: list[list[Run]] = [[] for _ in self.base.sizes]
        owners = self.base.owners[self.segments[:, 0]]
        for (a, b), tag, owner in zip(first.tolist(), tags.tolist(), owners.tolist(), strict=True):
            if tag:
                source = int(self.base.sources[a] - starts[owner])
                out[owner].append((source, source + b - a, classifier.labels.names[tag - 1]))
        return out


def observe_reading(seen: Observed, labels: Labels, states: Places, certain: NDArray[np.float32]) -> SegmentSpans:
    """Return the segments that a reading found, with their observations."""
    segments = find_segments(labels, states)
    return SegmentSpans(seen, segments, observe(seen, segments, margins(segments, certain)))


def examples(
    seen: Observed, segments: NDArray[np.int64], gold: Mapping[tuple[int, int], int], certain: NDArray[np.float32]
) -> tuple[Observed, Places, int]:
    """Return (observations of found, then of right segments; their class tags; number of sentences of found ones).

    The third value is the number of sentences of the first kind. A segment that is not one of the right ones has tag 0:
    from these the classifier learns to reject.
    """
    right = np.array(sorted(gold), np.int64).reshape(-1, 2)
    both = [observe(seen, edges, margins(edges, certain)) for edges in (segments, right)]
    tags = [np.zeros(len(observed.types), np.int32) for observed in both]
    for observed, tag, edges in zip(both, tags, (segments, right), strict=True):
        tag[observed.places] = [gold.get((a, b), -1) + 1 for a, b in edges.tolist()]
    one, other = both
    shift, V, Q = len(one.types) - 1, len(one.lists) - 2, int(one.lists[-1])
    combined = replace(
        one,
        types=np.concatenate([one.types, np.where(other.types > 0, other.types + V, 0)[1:]]).astype(np.int32),
        owners=np.concatenate([one.owners, other.owners[1:]]),
        begins=np.concatenate([one.begins, other.begins + shift]).astype(np.int32),
        ends=np.concatenate([one.ends, other.ends + shift]).astype(np.int32),
        places=np.concatenate([one.places, other.places + shift]).astype(np.int32),
        sources=np.arange(len(segments) + len(right)),
        sizes=np.array([len(segments) + len(right)]),
        words=np.concatenate([one.words, other.words[1:]]),
        lists=np.concatenate([one.lists, other.lists[2:] + Q]).astype(np.int32),
        keys=np.concatenate([one.keys, other.keys]),
        kinds=np.concatenate([one.kinds, other.kinds]),
    )
    return combined, np.concatenate([tags[0], tags[1][1:]]), len(one.begins)


def gold_segments(seen: Observed, pieces: Sequence[Sequence[tuple[int, int, int]]]) -> dict[tuple[int, int], int]:
    """Return {(first, end): label number} of the spans, among tokens with pads, without those outside sentences."""
    position = np.full(int(seen.sizes.sum()) + 1, -1)
    position[seen.sources] = seen.places
    starts = np.cumsum([0, *seen.sizes])
    out = {}
    for spans, start in zip(pieces, starts, strict=False):
        for first, end, label in spans:
            begin = int(position[start + first])
            if begin >= 0:
                out[begin, begin + end - first] = label
    return out


def observe_gold(seen: Observed, gold: Mapping[tuple[int, int], int], certain: NDArray[np.float32]) -> SegmentSpans:
    """Return the right segments with their observations, as if a first stage had found them."""
    right = np.array(sorted(gold), np.int64).reshape(-1, 2)
    return SegmentSpans(seen, right, observe(seen, right, margins(right, certain)))
