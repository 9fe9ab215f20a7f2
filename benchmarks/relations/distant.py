"""The part of the relation benchmark about known tuples: noise and its estimate, and learning from noisy labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.relations.data import Sample, split
from chaffinch.relations import Extraction, train
from chaffinch.relations.candidates import candidates
from chaffinch.relations.distant import audit, label, names_of
from chaffinch.relations.distant import sample as drawn
from chaffinch.relations.evaluate.ranking import auc

AUDITED = 100


def rows(sample: Sample) -> list[dict[str, Any]]:
    """Both kinds of noise, estimated and true; extractors learnt from noisy and from gold labels, tested on gold."""
    schema = sample.schema
    known = {
        pair
        for doc in sample.docs for own in doc.relations for spans in schema.tuples(own)
        for pair in _pairs(names_of(doc, spans[0]), names_of(doc, spans[1]))
    }  # fmt: skip
    noisy = label(sample.docs, sorted(known), schema, layer="gold")
    truth = [
        {schema.key(one.spans) for one in candidates(doc, schema, layer="gold") if one.stated} for doc in sample.docs
    ]
    every = [
        (one.stated, schema.key(one.spans) in truth[n])
        for n, doc in enumerate(noisy) for one in candidates(doc, schema, layer="gold")
    ]  # fmt: skip
    labelled, others = [right for said, right in every if said], [right for said, right in every if not said]
    judged = [(one, schema.key(one.spans) in truth[n]) for n, one in drawn(noisy, schema, AUDITED, layer="gold")]
    found = audit(judged, noisy, schema, layer="gold")
    out: list[dict[str, Any]] = []
    kinds = (
        ("labelled, not stated", found.wrong, 1 - np.mean(labelled)),
        ("stated, not labelled", found.missed, np.mean(others)),
    )
    for name, share, true in kinds:
        out.append({
            "corpus": "LocText", "system": f"noise: {name}", "estimate": round(share.value, 4),
            "low": round(share.low, 4), "high": round(share.high, 4), "truth": round(float(true), 4),
        })  # fmt: skip
    for name, docs in (("learnt from noisy labels", noisy), ("learnt from gold labels", sample.docs)):
        out.append(_learnt(name, sample, docs))
    return out


def _pairs(first: frozenset[str], second: frozenset[str]) -> list[tuple[str, str]]:
    return [(a, b) for a in first for b in second]


def _learnt(name: str, sample: Sample, docs: list[Any]) -> dict[str, Any]:
    scores: list[float] = []
    taken: list[bool] = []
    right: list[bool] = []
    known = {doc.id: doc for doc in docs}
    for fold in sorted(set(sample.fold)):
        inside, held = split(sample, fold)
        extractor = train([known[doc.id] for doc in inside], sample.schema, Extraction(layer="gold"))
        for found in extractor.score_candidates(held):
            scores += [score for _, score in found]
            taken += [score >= extractor.threshold for _, score in found]
            right += [one.stated for one, _ in found]
    own, truth = np.array(taken), np.array(right)
    f1 = 2 * int((own & truth).sum()) / max(int(own.sum() + truth.sum()), 1)
    return {"corpus": "LocText", "system": name, "AUC": round(auc(np.array(scores), truth), 4), "F1": round(f1, 4)}
