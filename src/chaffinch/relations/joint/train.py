"""Learning an extractor that finds the arguments itself: representation, rule and calibration by folds of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.phrasehmm import fit as phrasehmm
from chaffinch.models.phrasehmm.choice import choose, crossed
from chaffinch.models.phrasehmm.encoding import UNKNOWN
from chaffinch.models.phrasehmm.fit import Model, Sentence
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation, parsed
from chaffinch.models.phrasehmm.selection import calibrate
from chaffinch.relations.candidates import candidates
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.extractor import Scored
from chaffinch.relations.evaluate.report import Rates, Summary
from chaffinch.relations.joint.extractor import JointExtractor, PairingRule, assembled, right_ones, scored_by
from chaffinch.relations.joint.segments import Line, lines
from chaffinch.relations.schema import Schema
from chaffinch.text import Document

LEADS = (-16.0, -12.0, -8.0, -4.0, -2.0, 0.0, 2.0)  # what the positive model may be ahead by, in log-likelihood
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.5)  # chances from which on a segment is an argument


def train_joint(docs: Iterable[Document], schema: Schema, config: Extraction | None = None) -> JointExtractor:
    """An extractor that finds arguments by itself, learnt from documents with relations.

    Tuples whose mentions lie in different sentences cannot be learnt from; `across` counts them. The representation
    "auto" is chosen by folds over documents.
    """
    chosen = config or Extraction(mode="joint")
    if chosen.mode != "joint":
        raise ConfigError(f'train_joint learns extractors of the mode "joint", and the settings say {chosen.mode!r}')
    held = parsed(docs)
    kinds = REPRESENTATIONS if chosen.hmm.representation == "auto" else (chosen.hmm.representation,)
    inputs = {kind: [list(lines(doc, schema, _with(chosen, kind))) for doc in held] for kind in kinds}
    groups = [doc.patient for doc, own in zip(held, inputs[kinds[0]], strict=True) for _ in own]
    floor = chosen.floor_for(len({doc.patient for doc in held}))
    flat = {
        kind: _common([line.input for own in found for line in own], groups, floor) for kind, found in inputs.items()
    }
    _check(flat[kinds[0]], schema, groups)
    best = choose(flat, schema.roles, chosen.hmm, groups=groups).representation if len(kinds) > 1 else kinds[0]
    final = _with(chosen, best)
    model = phrasehmm.fit(flat[best], schema.roles, final.hmm, groups=groups)
    lying = sum(len(line.stated) for own in inputs[best] for line in own)
    across = sum(len({schema.key(one) for own in doc.relations for one in schema.tuples(own)}) for doc in held) - lying
    readings = crossed(flat[best], schema.roles, final.hmm, groups=groups, count=min(final.folds, len(set(groups))))
    pairs = [(doc, line) for doc, own in zip(held, inputs[best], strict=True) for line in own]
    read = [Held(doc, line, reading) for (doc, line), reading in zip(pairs, readings, strict=True)]
    rule = chosen_rule(read, schema, final) if final.labels == "chances" else None
    return _extractor(read, held, schema, final, (model, rule, max(across, 0), floor))


def _extractor(
    read: Sequence[Held], docs: Sequence[Document], schema: Schema, config: Extraction,
    learnt: tuple[Model, PairingRule | None, int, int],
) -> JointExtractor:  # fmt: skip
    """The extractor, with what its folds say of it."""
    model, rule, across, floor = learnt
    judged = [(own, _judged(own, schema, config, rule)) for own in read]
    kept = [(own.reading, right) for own, right in judged if right]
    calibration = calibrate([own for own, _ in kept], [any(right) for _, right in kept]) if kept else None
    scores = [scored_by(calibration, reading) for reading, right in kept for _ in right]
    truth = [hit for _, right in kept for hit in right]
    stated = sum(len(own.line.stated) for own in read) + across
    found, every = Rates(sum(truth), len(truth), stated), _every(docs, schema, config, stated)
    report = Summary(len(docs), across, found, every, floor, config.hmm.representation)
    metrics = {"F1": found.f1} | ({"F1 of every tuple": every.f1} if every else {})
    manifest = Manifest(
        "relations", labels=(schema.name,), seed=config.hmm.seed, documents=len(docs),
        patients=len({doc.patient for doc in docs}), vocabulary_floor=floor, metrics=metrics,
    )  # fmt: skip
    held = Scored(np.array(scores, np.float64), np.array(truth, bool))
    return JointExtractor(schema, config, model, rule, calibration, across, 0.0, held, report, manifest)


def _every(docs: Sequence[Document], schema: Schema, config: Extraction, stated: int) -> Rates | None:
    """What it gives to call every tuple of entities of a sentence related; None if entities are not seen."""
    if not config.mask:
        return None
    found = [one.stated for doc in docs for one in candidates(doc, schema, layer=config.layer)]
    return Rates(sum(found), len(found), stated)


def _common(sentences: Sequence[Sentence], groups: Sequence[str], floor: int) -> list[Sentence]:
    """The sentences without words that fewer than `floor` groups have."""
    if floor == 1:
        return list(sentences)
    users: dict[str, set[str]] = {}
    for own, group in zip(sentences, groups, strict=True):
        for part in own.words:
            for word in part:
                users.setdefault(word, set()).add(group)
    rare = {word for word, own in users.items() if len(own) < floor}
    return [
        own._replace(words=[[UNKNOWN if word in rare else word for word in part] for part in own.words])
        for own in sentences
    ]


def _with(config: Extraction, kind: Representation) -> Extraction:
    return replace(config, hmm=replace(config.hmm, representation=kind))


def _check(sentences: Sequence[Sentence], schema: Schema, groups: Sequence[str]) -> None:
    if not any(own.positive for own in sentences):
        raise DataError(f"no sentence holds all arguments of a relation {schema.name!r}; the mode joint needs some")
    if all(own.positive for own in sentences):
        raise DataError("every sentence states the relation, so there is nothing to tell them from; add others")
    if len(set(groups)) < 2:
        raise DataError("all documents belong to one group, and folds need two or more; add documents")


class Held(NamedTuple):
    """A sentence with the reading of a model that had not seen its document."""

    doc: Document
    line: Line
    reading: PhraseReading


def chosen_rule(held: Sequence[Held], schema: Schema, config: Extraction) -> PairingRule:
    """The rule with the largest F1 of tuples on readings held out; the stricter one of two alike."""
    stated = sum(len(own.line.stated) for own in held)
    best, reached = PairingRule(0.0, 0.5), -1.0
    for lead in reversed(LEADS):
        for level in reversed(LEVELS):
            rule = PairingRule(lead, level)
            found = [_judged(own, schema, config, rule) for own in held]
            hits, number = sum(map(sum, found)), sum(map(len, found))
            f1 = 2 * hits / max(number + stated, 1)
            if f1 > reached:
                best, reached = rule, f1
    return best


def _judged(own: Held, schema: Schema, config: Extraction, rule: PairingRule | None) -> list[bool]:
    """For each tuple of a reading whether it is right."""
    reading = own.reading if rule is None else rule.apply(own.reading, len(schema.roles))
    found = dict.fromkeys(schema.key(one.spans) for one in assembled(own.doc, own.line, reading, schema, config))
    return right_ones(list(found), own.line.stated, exact=config.mask)
