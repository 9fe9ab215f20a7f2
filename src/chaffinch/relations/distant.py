"""Distant supervision: a sentence that mentions all members of a known tuple is taken to state the relation.

The publication made its corpora in this way. Some of these sentences do not state the relation, and some others do;
the audit of a sample estimates how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from chaffinch.errors import ConfigError, DataError
from chaffinch.relations.candidates import Candidate, candidates
from chaffinch.relations.concepts import concepts_of
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Span

SOURCE = "distant"


class Share(NamedTuple):
    """An estimated share with a 95 % interval (Wilson)."""

    value: float
    low: float
    high: float
    sample: int


@dataclass(frozen=True, slots=True)
class Audit:
    """Label noise of both kinds: the share of wrong labels, and the share of missed relations among the others.

    `stated` is the number of candidates that state the relation, estimated from both.
    """

    wrong: Share
    missed: Share
    stated: float


def names_of(doc: Document, span: Span) -> frozenset[str]:
    """Return the names of a mention: its concepts, and its text with case folded and white space collapsed."""
    return frozenset(concepts_of(span)) | {" ".join(doc.text[span.start : span.end].casefold().split())}


def label(
    docs: Iterable[Document], known: Iterable[Sequence[str]], schema: Schema, *, layer: str | None = None
) -> list[Document]:
    """Return copies, the schema's relations replaced by one per candidate of known names; ConfigError or DataError.

    `known` are tuples of concepts or names, one per role. ConfigError if there are none, DataError for one of another
    number of members.
    """
    tuples = {_key(tuple(" ".join(part.split()) for part in members), schema) for members in known}
    for members in tuples:
        if len(members) != len(schema.roles):
            raise DataError(f"a known tuple has {len(members)} members and the schema {len(schema.roles)} roles")
    if not tuples:
        raise ConfigError("no known tuples were given; each has one name or concept per role")
    folded = {_key(tuple(part.casefold() for part in members), schema) for members in tuples}
    out = []
    for doc in docs:
        found = [
            schema.relation(candidate.spans, source=SOURCE)
            for candidate in candidates(doc, schema, layer=layer)
            if _matches(doc, candidate, schema, tuples, folded)
        ]
        others = tuple(relation for relation in doc.relations if relation.label != schema.name)
        out.append(replace(doc, relations=(*others, *found)))
    return out


def _key(members: tuple[str, ...], schema: Schema) -> tuple[str, ...]:
    """Return a tuple of names as a key: sorted if the relation is symmetric, else as it is."""
    return tuple(sorted(members)) if schema.symmetric else members


def _matches(
    doc: Document, candidate: Candidate, schema: Schema, tuples: set[tuple[str, ...]], folded: set[tuple[str, ...]]
) -> bool:
    """Tell whether some names of the mentions are a tuple in `tuples`, or, casefolded, one in `folded`."""
    for chosen in product(*(sorted(names_of(doc, span)) for span in candidate.spans)):
        key = _key(chosen, schema)
        if key in tuples or _key(tuple(part.casefold() for part in chosen), schema) in folded:
            return True
    return False


def sample(
    docs: Sequence[Document], schema: Schema, count: int, *, layer: str | None = None, seed: int = 0
) -> list[tuple[int, Candidate]]:
    """Draw up to `count` candidates to judge, half of them stated, half not; return (document number, candidate)."""
    every = [(n, candidate) for n, doc in enumerate(docs) for candidate in candidates(doc, schema, layer=layer)]
    rng = np.random.default_rng(seed)
    out: list[tuple[int, Candidate]] = []
    for stated in (True, False):
        pool = [pair for pair in every if pair[1].stated is stated]
        chosen = rng.permutation(len(pool))[: count // 2]
        out += [pool[n] for n in sorted(chosen.tolist())]
    return out


def audit(
    judged: Iterable[tuple[Candidate, bool]], docs: Iterable[Document], schema: Schema, *, layer: str | None = None
) -> Audit:
    """Return the estimated shares of wrong and missed labels, from judged candidates; DataError without both kinds."""
    answers: dict[bool, list[bool]] = {True: [], False: []}
    for candidate, truth in judged:
        answers[candidate.stated].append(truth)
    if not answers[True] or not answers[False]:
        raise DataError("the audit needs judged candidates of both kinds, labelled and not; draw a larger sample")
    labelled = unlabelled = 0
    for doc in docs:
        for candidate in candidates(doc, schema, layer=layer):
            labelled, unlabelled = labelled + candidate.stated, unlabelled + (not candidate.stated)
    wrong = wilson(answers[True].count(False), len(answers[True]))
    missed = wilson(answers[False].count(True), len(answers[False]))
    return Audit(wrong, missed, labelled * (1 - wrong.value) + unlabelled * missed.value)


def wilson(hits: int, count: int) -> Share:
    """Return hits / count with Wilson's 95 % interval; `count` must be above 0.

    >>> [round(value, 3) for value in wilson(0, 10)[:3]]
    [0.0, 0.0, 0.278]
    """
    z, value = 1.959964, hits / count
    centre = (value + z * z / (2 * count)) / (1 + z * z / count)
    half = z * (value * (1 - value) / count + z * z / (4 * count * count)) ** 0.5 / (1 + z * z / count)
    return Share(value, max(0.0, centre - half), min(1.0, centre + half), count)
