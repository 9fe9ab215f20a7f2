"""Doubt about the class of an identifier: a policy may leave a span readable only if its class is near certain.

The class of a span that the policy keeps, generalises or shifts is uncertain. If the classes that the policy hides
better have a joint probability of `LIMIT` or more, the span gets the strictest plausible class among them.

The probabilities are a soft layer next to the layer of spans. A detector fills it before it raises its soft labels to
the spans it found. Without that layer, the soft labels of the span layer count, or else the scores of the spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chaffinch.deid.kinds import kind_of
from chaffinch.text import Document, Soft, Span

if TYPE_CHECKING:
    from chaffinch.deid.policy import Policy
    from chaffinch.kernels.lattice import Floats, Ints

# `chaffinch bench deid --only keep` counts, on 756 notes that nothing is reported on, the direct identifiers that the
# policy limited-dataset releases with deid-en, and those of 4,733 dates, ages and places that it hides without need:
#     limit      none   0.5   0.4   0.3  0.25   0.2  0.15   0.1  0.05
#     released     58    25    19    12    12    11     8     6     5
#     hidden        0    29    51    79    94   132   182   250   387
# A released name does more harm than a hidden date: at 0.15 one date in 26 is hidden, and a seventh of the leaks
# is left. Lower limits stop few more leaks, and would hide what good patterns find without a model.
LIMIT = 0.15
PLAUSIBLE = 0.05  # the least chance of a class that may replace another, if any class reaches it: a third of the limit
LEAVES_NOTHING = 2  # operators that hide this much leave nothing readable, so the class of their spans may be doubtful


def class_layer(layer: str) -> str:
    """Return the name of the soft layer with the class probabilities of a span layer: "deid" gives "deid:class"."""
    return f"{layer}:class"


@lru_cache(maxsize=4096)
def wider_class(label: str) -> str:
    """Return the class to fall back on if a label is doubtful: its category, or OTHER if it is its own category.

    >>> wider_class("CITY"), wider_class("DATE")
    ('LOCATION', 'OTHER')
    """
    kind = kind_of(label)
    return kind.category if kind.category != kind.name else "OTHER"


class _Hides(dict[str, int]):
    """How much a policy hides of each label; computed on first use."""

    def __init__(self, policy: Policy) -> None:
        """Start without labels; each is looked up in the policy when it is first asked for."""
        super().__init__()
        self._policy = policy

    def __missing__(self, label: str) -> int:
        """Look up the rank of how much the policy hides of a label, store it and return it."""
        self[label] = self._policy.hides(label)
        return self[label]


@lru_cache(maxsize=64)
def _hiding_table(policy: Policy) -> _Hides:
    """Return the table {label: how much the policy hides of it}, cached by policy."""
    return _Hides(policy)


def settle_classes(doc: Document, layer: str | None, policy: Policy, *, limit: float = LIMIT) -> tuple[Span, ...]:
    """Return a layer's spans, relabelled with the strictest plausible class where their label is too doubtful.

    Only spans whose operator leaves a part readable can change. Applying it twice changes nothing more.
    """
    spans = doc.layer(layer)
    hides = _hiding_table(policy)
    readable = [span for span in spans if hides[span.label] < LEAVES_NOTHING]
    if not readable:
        return spans
    soft = _class_chances(doc, layer)
    if soft is None:
        classes = [_settle_by_score(span, hides, limit) for span in readable]
    else:
        classes = list(_settle_by_chances(doc, readable, soft, hides, limit))
    changed = {
        id(span): Span(span.start, span.end, label, span.score, span.source)
        for span, label in zip(readable, classes, strict=True)
        if label != span.label
    }
    return tuple(changed.get(id(span), span) for span in spans) if changed else spans


def _class_chances(doc: Document, layer: str | None) -> Soft | None:
    """Return a layer's class probabilities, else its soft labels, else None."""
    if not doc.soft:
        return None
    name = layer if layer is not None else next(iter(doc.layers)) if len(doc.layers) == 1 else "gold"
    return doc.soft.get(class_layer(name), doc.soft.get(name))


def _settle_by_score(span: Span, hides: _Hides, limit: float) -> str:
    """Return the span's label, or its wider class if 1 - score reaches the limit and the policy hides that better."""
    wider = wider_class(span.label)
    return wider if 1.0 - span.score >= limit and hides[wider] > hides[span.label] else span.label


def _settle_by_chances(doc: Document, spans: Sequence[Span], soft: Soft, hides: _Hides, limit: float) -> Iterator[str]:
    """Yield each span's label, or the plausible class hidden most if better hidden ones reach the limit at a token."""
    ranks = np.array([-1 if label == "O" else hides[label] for label in soft.labels], np.int64)
    risks = soft.values @ (ranks[:, None] > np.arange(LEAVES_NOTHING))  # (T, ranks) the chance of classes hidden better
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        label, rank = span.label, hides[span.label]
        if first == end:
            label, rank = _settle_by_score(span, hides, limit), LEAVES_NOTHING
        while rank < LEAVES_NOTHING:
            riskiest = first + int(risks[first:end, rank].argmax()) if end > first + 1 else first
            if risks[riskiest, rank] < limit:
                break
            chosen = _strictest(soft.values[riskiest], ranks, rank)
            label, rank = soft.labels[chosen], int(ranks[chosen])
        yield label


def _strictest(row: Floats, ranks: Ints, rank: int) -> int:
    """Return the index of the plausible class hidden most, above `rank`; of ties the likeliest."""
    better = np.flatnonzero(ranks > rank).tolist()
    floor = min(PLAUSIBLE, max(row[label] for label in better))
    return max((label for label in better if row[label] >= floor), key=lambda label: (ranks[label], row[label], -label))
