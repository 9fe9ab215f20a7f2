"""Training of joint extractors: representation, rule and calibration are chosen by cross-validation over documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.phrasehmm import fit as phrasehmm
from chaffinch.models.phrasehmm.choice import choose, cross_validate
from chaffinch.models.phrasehmm.encoding import UNKNOWN
from chaffinch.models.phrasehmm.fit import Model, Sentence
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation, add_parses
from chaffinch.models.phrasehmm.selection import calibrate
from chaffinch.relations.candidates import candidates
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.extractor import HeldOutScores
from chaffinch.relations.evaluate.report import Rates, Summary
from chaffinch.relations.joint.extractor import JointExtractor, PairingRule, assemble_tuples, confidence_of, right_ones
from chaffinch.relations.joint.segments import Line, lines
from chaffinch.relations.schema import Schema
from chaffinch.text import Document

# The grid that cross-validation searches for the rule with the best F1; higher values are stricter.
LEADS = (-16.0, -12.0, -8.0, -4.0, -2.0, 0.0, 2.0)  # log-likelihood of the positive model minus that of the null model
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.5)  # probabilities from which a segment is an argument


def train_joint(docs: Iterable[Document], schema: Schema, config: Extraction | None = None) -> JointExtractor:
    """Return an extractor that finds arguments too, trained; DataError if all or no sentences relate; or ConfigError.

    Tuples whose mentions lie in different sentences are not used; `across` counts them. The representation "auto" is
    chosen by cross-validation over documents.
    """
    chosen = config or Extraction(mode="joint")
    if chosen.mode != "joint":
        raise ConfigError(f'train_joint trains extractors of the mode "joint", but config.mode is {chosen.mode!r}')
    documents = add_parses(docs)
    kinds = REPRESENTATIONS if chosen.hmm.representation == "auto" else (chosen.hmm.representation,)
    inputs = {
        kind: [list(lines(doc, schema, _with_representation(chosen, kind))) for doc in documents] for kind in kinds
    }
    groups = [doc.patient for doc, sentences in zip(documents, inputs[kinds[0]], strict=True) for _ in sentences]
    floor = chosen.floor_for(len({doc.patient for doc in documents}))
    flat = {
        kind: _replace_rare_words([line.input for sentences in found for line in sentences], groups, floor)
        for kind, found in inputs.items()
    }
    _check(flat[kinds[0]], schema, groups)
    best = choose(flat, schema.roles, chosen.hmm, groups=groups).representation if len(kinds) > 1 else kinds[0]
    final = _with_representation(chosen, best)
    model = phrasehmm.fit(flat[best], schema.roles, final.hmm, groups=groups)
    within = sum(len(line.stated) for sentences in inputs[best] for line in sentences)
    keys = [{schema.key(spans) for relation in doc.relations for spans in schema.tuples(relation)} for doc in documents]
    across = sum(map(len, keys)) - within
    readings = cross_validate(
        flat[best], schema.roles, final.hmm, groups=groups, count=min(final.folds, len(set(groups)))
    )
    pairs = [(doc, line) for doc, sentences in zip(documents, inputs[best], strict=True) for line in sentences]
    read = [HeldOutReading(doc, line, reading) for (doc, line), reading in zip(pairs, readings, strict=True)]
    rule = choose_rule(read, schema, final) if final.labels == "chances" else None
    return _extractor(read, documents, schema, final, (model, rule, max(across, 0), floor))


def _extractor(
    read: Sequence[HeldOutReading], docs: Sequence[Document], schema: Schema, config: Extraction,
    learnt: tuple[Model, PairingRule | None, int, int],
) -> JointExtractor:  # fmt: skip
    """Return the extractor, calibrated, with report; `learnt`: model, rule, tuples across sentences, word floor."""
    model, rule, across, floor = learnt
    judged = [(item.reading, _judge(item, schema, config, rule)) for item in read]
    kept = [(reading, right) for reading, right in judged if right]
    calibration = calibrate([reading for reading, _ in kept], [any(right) for _, right in kept]) if kept else None
    scores = [confidence_of(calibration, reading) for reading, right in kept for _ in right]
    truth = [hit for _, right in kept for hit in right]
    stated = sum(len(item.line.stated) for item in read) + across
    found, every = Rates(sum(truth), len(truth), stated), _rates_of_all_candidates(docs, schema, config, stated)
    report = Summary(len(docs), across, found, every, floor, config.hmm.representation)
    metrics = {"F1": found.f1} | ({"F1 of every tuple": every.f1} if every else {})
    manifest = Manifest(
        "relations", labels=(schema.name,), seed=config.hmm.seed, documents=len(docs),
        patients=len({doc.patient for doc in docs}), vocabulary_floor=floor, metrics=metrics,
    )  # fmt: skip
    held = HeldOutScores(np.array(scores, np.float64), np.array(truth, bool))
    return JointExtractor(schema, config, model, rule, calibration, across, 0.0, held, report, manifest)


def _rates_of_all_candidates(docs: Sequence[Document], schema: Schema, config: Extraction, stated: int) -> Rates | None:
    """Return the rates if every candidate were called related; None if entities are not masked."""
    if not config.mask:
        return None
    found = [candidate.stated for doc in docs for candidate in candidates(doc, schema, layer=config.layer)]
    return Rates(sum(found), len(found), stated)


def _replace_rare_words(sentences: Sequence[Sentence], groups: Sequence[str], floor: int) -> list[Sentence]:
    """Return the sentences with words of fewer than `floor` groups replaced by the unknown word."""
    if floor == 1:
        return list(sentences)
    users: dict[str, set[str]] = {}
    for sentence, group in zip(sentences, groups, strict=True):
        for part in sentence.words:
            for word in part:
                users.setdefault(word, set()).add(group)
    rare = {word for word, groups_of in users.items() if len(groups_of) < floor}
    return [
        sentence._replace(words=[[UNKNOWN if word in rare else word for word in part] for part in sentence.words])
        for sentence in sentences
    ]


def _with_representation(config: Extraction, kind: Representation) -> Extraction:
    """Return the config with another representation of segments."""
    return replace(config, hmm=replace(config.hmm, representation=kind))


def _check(sentences: Sequence[Sentence], schema: Schema, groups: Sequence[str]) -> None:
    """Raise DataError unless some sentences state the relation, some do not, and there are two or more groups."""
    if not any(sentence.positive for sentence in sentences):
        raise DataError(f"no sentence holds all arguments of a relation {schema.name!r}; the mode joint needs some")
    if all(sentence.positive for sentence in sentences):
        raise DataError("every sentence states the relation; add sentences that do not state it")
    if len(set(groups)) < 2:
        raise DataError("all documents belong to one patient, and cross-validation needs two or more; add documents")


class HeldOutReading(NamedTuple):
    """A sentence with the reading of a model that had not seen its document."""

    doc: Document
    line: Line
    reading: PhraseReading


def choose_rule(held: Sequence[HeldOutReading], schema: Schema, config: Extraction) -> PairingRule:
    """Return the rule of largest F1 of tuples on held-out readings; of equally good rules the strictest."""
    stated = sum(len(item.line.stated) for item in held)
    best, reached = PairingRule(0.0, 0.5), -1.0
    for lead in reversed(LEADS):
        for level in reversed(LEVELS):
            rule = PairingRule(lead, level)
            found = [_judge(item, schema, config, rule) for item in held]
            hits, number = sum(map(sum, found)), sum(map(len, found))
            f1 = 2 * hits / max(number + stated, 1)
            if f1 > reached:
                best, reached = rule, f1
    return best


def _judge(held: HeldOutReading, schema: Schema, config: Extraction, rule: PairingRule | None) -> list[bool]:
    """Return whether each distinct tuple of a held-out reading is stated; the rule, if any, labels it first."""
    reading = held.reading if rule is None else rule.apply(held.reading, len(schema.roles))
    found = assemble_tuples(held.doc, held.line, reading, schema, config)
    keys = dict.fromkeys(schema.key(item.spans) for item in found)
    return right_ones(list(keys), held.line.stated, exact=config.mask)
