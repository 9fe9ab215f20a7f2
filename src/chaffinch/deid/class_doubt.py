"""Doubt about the class of an identifier: what a policy leaves readable must surely be of that class.

A span that the policy keeps, generalises or shifts is one of its class only by some chance. Where the classes that the
policy hides better have `LIMIT` or more of it together, the strictest plausible one of them takes the span over.

The chances are a soft layer beside the layer of spans, which a detector fills before it makes its soft labels sure of
what it found. A document without it has the soft labels of the layer itself, or else the scores of the spans.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from chaffinch.deid.detect_soft import runs
from chaffinch.deid.kinds import kind_of
from chaffinch.text import Document, Soft, Span

if TYPE_CHECKING:
    from chaffinch.deid.policy import Policy
    from chaffinch.kernels.lattice import Floats, Ints

# With deid-en on 780 notes that nobody reports on, the policy limited-dataset released this many direct identifiers
# and hid this many of 4,720 dates, ages and places that it may keep (`chaffinch bench deid_keep --split dev`):
#     @@TABLE@@
LIMIT = 0.3
PLAUSIBLE = 0.1  # the least chance of a class that may take a span over, if one of them has it: a third of the limit
_HIDDEN = 2  # operators that hide this much leave nothing readable, so the class of their spans need not be sure


def class_layer(layer: str) -> str:
    """Return the name of the soft layer with the chances of classes that belongs to a layer of spans."""
    return f"{layer}:class"


@lru_cache(maxsize=4096)
def wider_class(label: str) -> str:
    """Return the class of what looked like one of a label and is not: its category, or OTHER.

    >>> wider_class("CITY"), wider_class("DATE")
    ('LOCATION', 'OTHER')
    """
    kind = kind_of(label)
    return kind.category if kind.category != kind.name else "OTHER"


def settle_classes(doc: Document, layer: str | None, policy: Policy) -> tuple[Span, ...]:
    """Return the spans of a layer, those with a doubtful class under the strictest plausible one.

    Only spans with an operator that leaves a part of them readable change. Doing it twice changes nothing more.
    """
    spans = doc.layer(layer)
    hides = {label: policy.hides(label) for label in dict.fromkeys(span.label for span in spans)}
    readable = [span for span in spans if hides[span.label] < _HIDDEN]
    if not readable:
        return spans
    soft = _class_chances(doc, layer)
    settled: dict[int, Span] = {}
    for span, (first, end) in zip(readable, runs(doc, readable).tolist(), strict=True):
        if soft is None or first == end:
            label = _settle_by_score(span, policy)
        else:
            label = _settle_by_chances(span.label, soft.values[first:end], soft.labels, policy)
        if label != span.label:
            settled[id(span)] = Span(span.start, span.end, label, span.score, span.source)
    return tuple(settled.get(id(span), span) for span in spans) if settled else spans


def _class_chances(doc: Document, layer: str | None) -> Soft | None:
    if not doc.soft:
        return None
    name = layer if layer is not None else next(iter(doc.layers)) if len(doc.layers) == 1 else "gold"
    return doc.soft.get(class_layer(name), doc.soft.get(name))


def _settle_by_score(span: Span, policy: Policy) -> str:
    """Return the class of a span whose score is the chance of its label."""
    wider = wider_class(span.label)
    return wider if 1.0 - span.score >= LIMIT and policy.hides(wider) > policy.hides(span.label) else span.label


def _settle_by_chances(label: str, rows: Floats, labels: tuple[str, ...], policy: Policy) -> str:
    """Return the class of a span with a label and with the chances (tokens, L) of its tokens."""
    ranks = _ranks(policy, labels)
    rank = policy.hides(label)
    while rank < _HIDDEN:
        better = ranks > rank
        risks = rows[:, better].sum(axis=1)
        row = rows[risks.argmax()]
        if risks.max() < LIMIT:
            break
        floor = min(PLAUSIBLE, float(row[better].max()))
        chosen = max(
            (place for place in np.flatnonzero(better).tolist() if row[place] >= floor),
            key=lambda place: (ranks[place], row[place], -place),
        )
        label, rank = labels[chosen], int(ranks[chosen])
    return label


@lru_cache(maxsize=256)
def _ranks(policy: Policy, labels: tuple[str, ...]) -> Ints:
    """Return (L,) how much of each class the policy hides; -1 for what is no identifier."""
    return np.array([-1 if label == "O" else policy.hides(label) for label in labels], np.int64)
