"""What a limit on the doubt about classes costs and saves under the policy limited-dataset, with deid-en.

Counted are direct identifiers (names, numbers, contacts, streets, hospitals, organisations) that are released because
the detector called them something the policy keeps, and dates, ages and places that are hidden though the policy keeps
them. The notes are generated ones, with names that the model has not seen, and those written to look at: nothing is
reported on them, so `chaffinch.deid.detect.class_doubt.LIMIT` may be chosen here. A limit of 2 is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.deid.data import written
from chaffinch import Document, Span
from chaffinch.deid.detect.class_doubt import settle_classes
from chaffinch.deid.detect.detector import LAYER, detector
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.policy import Policy
from chaffinch.deid.synth import notes as synth

LIMITS = (2.0, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
DIRECT_CATEGORIES, DIRECT_KINDS = ("NAME", "CONTACT", "ID"), ("STREET", "HOSPITAL", "ORGANIZATION")
POLICY = "limited-dataset"


def count_by_limit() -> list[dict[str, float]]:
    """Return the counts at every limit; no test notes are read."""
    policy = Policy.read(POLICY)
    gold = [
        *synth.notes(200, 3, seed=4711, style="varied", names="held-out"),
        *synth.notes(60, 2, seed=4712, names="held-out"),
        *written("dev"),
    ]
    found = list(detector("deid-en")(replace(doc, layers={}) for doc in gold))
    return [{"notes": len(gold), "limit": limit, **_counts(gold, found, policy, limit)} for limit in LIMITS]


def _counts(gold: Sequence[Document], found: Sequence[Document], policy: Policy, limit: float) -> dict[str, int]:
    """Count identifiers that are released and should not be, and those that are hidden and need not be."""
    released = hidden = may_stay = 0
    for doc, read in zip(gold, found, strict=True):
        before = [span for span in read.layer(LAYER) if not policy.hides(span.label)]
        after = [span for span in settle_classes(read, LAYER, policy, limit=limit) if not policy.hides(span.label)]
        for span in doc.layer("gold"):
            if _is_direct(span):
                released += _touched(span, after)
            elif not policy.hides(span.label) and _touched(span, before):
                may_stay += 1
                hidden += not _touched(span, after)
    return {"direct released": released, "hidden": hidden, "of": may_stay}


def _is_direct(span: Span) -> bool:
    kind = kind_of(span.label)
    return kind.category in DIRECT_CATEGORIES or kind.name in DIRECT_KINDS


def _touched(span: Span, others: Sequence[Span]) -> bool:
    return any(map(span.overlaps, others))
