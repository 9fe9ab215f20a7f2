"""The phrase HMM's part of the relation benchmark: finding arguments, and the publication's comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.relations.data import Sample, split
from chaffinch import Cascade, Document, Relation, Span
from chaffinch import train as train_tagger
from chaffinch.models.phrasehmm.choice import cross_validate
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.relations import Extraction, train, train_joint
from chaffinch.relations.candidates import candidates
from chaffinch.relations.joint.extractor import assemble_tuples
from chaffinch.relations.joint.segments import lines

FOLDS = 5
POINTS = 60  # of a curve


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


@dataclass(frozen=True, slots=True)
class Curved:
    """A model's end point and curve."""

    name: str
    hits: int
    found: int
    stated: int
    curve: list[tuple[float, float]]

    def row(self) -> dict[str, Any]:
        """The end point."""
        return _row(f"published: {self.name}", self.hits, self.found, self.stated)


def published(sample: Sample) -> list[Curved]:
    """All models of the comparison, folds by document; a tuple is right if its segments contain the arguments."""
    out = []
    for masked in (False, True):
        for name in ("phrase", "pos", "token 1", "token 2"):
            out.append(_compared(sample, name, PhraseHMM.published(name), masked))
        out.append(_compared(sample, "phrase, combined", PhraseHMM.published("phrase", combined=True), masked))
        krogh = PhraseHMM.published("phrase", combined=True, trainer="krogh")
        out.append(_compared(sample, "phrase, combined, Krogh", krogh, masked))
    return out


def _compared(sample: Sample, name: str, hmm: PhraseHMM, masked: bool) -> Curved:
    config = Extraction(mode="joint", mask=masked, pairing="order", labels="path", hmm=hmm)
    flat = [(doc, line) for doc in sample.docs for line in lines(doc, sample.schema, config)]
    inputs, groups = [line.input for _, line in flat], [doc.id for doc, _ in flat]
    readings = cross_validate(inputs, sample.schema.roles, hmm, groups=groups, count=FOLDS)
    scored: list[tuple[float, bool]] = []
    stated = 0
    for (doc, line), reading in zip(flat, readings, strict=True):
        stated += len(line.stated)
        for one in assemble_tuples(doc, line, reading, sample.schema, config):
            right = any(_contains(one.spans, key) for key in line.stated)
            scored.append((reading.log_confidence, right))
    scored.sort(key=lambda own: -own[0])
    hits = np.cumsum([right for _, right in scored])
    count = min(POINTS, len(scored))
    places = sorted({round(n * (len(scored) - 1) / max(count - 1, 1)) for n in range(count)})
    curve = [(float(hits[n] / max(stated, 1)), float(hits[n] / (n + 1))) for n in places]
    kind = f"{name}{', entities masked' if masked else ''}"
    return Curved(kind, int(hits[-1]) if scored else 0, len(scored), stated, curve)


def _contains(spans: tuple[Span, ...], key: tuple[tuple[int, int], ...]) -> bool:
    return all(span.start <= start and end <= span.end for span, (start, end) in zip(spans, key, strict=True))
