"""Finding arguments with a phrase HMM, and with entities of our tagger."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.relations.data import Sample, split
from chaffinch import Cascade, Document, Relation, Span
from chaffinch import train as train_tagger
from chaffinch.relations import Extraction, train, train_joint
from chaffinch.relations.candidates import candidates


def arguments(sample: Sample) -> list[dict[str, Any]]:
    """The joint mode, learnt for each fold from the others; and every pair of entities, which asks no model."""
    hits = found = stated = every = 0
    for fold in sorted(set(sample.fold)):
        known, held = split(sample, fold)
        extractor = train_joint(known, sample.schema)
        for doc in held:
            truth = {one.spans for one in candidates(doc, sample.schema, layer="gold") if one.stated}
            said = {tuple(own.spans[0] for own in one.arguments) for one in extractor.extract(doc)}
            hits, found, stated = hits + len(said & truth), found + len(said), stated + len(truth)
            every += len(candidates(doc, sample.schema, layer="gold"))
    return [
        _row("joint, entities masked", hits, found, stated),
        _row("every pair of entities", stated, every, stated),
    ]


def tagged(sample: Sample) -> dict[str, Any]:
    """Entities of a tagger learnt from the same folds; an argument is right if it overlaps the stated one."""
    hits = found = stated = 0
    for fold in sorted(set(sample.fold)):
        known, held = split(sample, fold)
        plain = [replace(doc, layers={"gold": _apart(doc)}) for doc in known]
        tagger = train_tagger(plain, Cascade())
        extractor = train(known, sample.schema, Extraction(layer="gold"))
        for doc in held:
            truth = [one.spans for one in candidates(doc, sample.schema, layer="gold") if one.stated]
            bare = tagger(replace(doc, layers={}))
            own = replace(doc, layers={"gold": bare.layer(tagger.layer)}, relations=())
            said = extractor.extract(own)
            right = {n for n, spans in enumerate(truth) if any(_over(one, spans) for one in said)}
            hits, found, stated = hits + len(right), found + len(said), stated + len(truth)
    return _row("entities of our own tagger", hits, max(found, hits), stated)


def _apart(doc: Document) -> tuple[Span, ...]:
    from chaffinch import resolve

    return resolve(doc.layers["gold"])


def _over(one: Relation, spans: tuple[Span, ...]) -> bool:
    return all(own.spans[0].overlaps(span) for own, span in zip(one.arguments, spans, strict=True))


def _row(name: str, hits: int, found: int, stated: int) -> dict[str, Any]:
    figures = {
        "precision": hits / max(found, 1),
        "recall": hits / max(stated, 1),
        "F1": 2 * hits / max(found + stated, 1),
    }
    return {"corpus": "LocText", "system": name, **{key: round(value, 4) for key, value in figures.items()}}
