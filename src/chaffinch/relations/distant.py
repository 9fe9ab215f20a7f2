"""Training data from known tuples: sentences that name all members of a tuple are taken to state the relation.

That is how the publication made its corpora. Some such sentences do not state it, and some others do; an audit of a
sample says how many.
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
    """Noise of both kinds: the share of labelled candidates that do not state the relation, and of the others that do.

    `stated` estimates how many candidates state it, from both.
    """

    wrong: Share
    missed: Share
    stated: float


def names(doc: Document, span: Span) -> frozenset[str]:
    """What a mention is known as: its concepts, and its words without regard to case and white space."""
    return frozenset(concepts_of(span)) | {" ".join(doc.text[span.start : span.end].casefold().split())}


def label(
    docs: Iterable[Document], known: Iterable[Sequence[str]], schema: Schema, *, layer: str | None = None
) -> list[Document]:
    """The documents with a relation wherever all members of a known tuple are mentioned in one sentence.

    Members are concepts or names. What the documents stated of this relation before is dropped.
    """
    tuples = {_key(tuple(" ".join(part.split()) for part in own), schema) for own in known}
    for own in tuples:
        if len(own) != len(schema.roles):
            raise DataError(f"a known tuple has {len(own)} members and the schema {len(schema.roles)} roles")
    if not tuples:
        raise ConfigError("no known tuples were given; each has one name or concept per role")
    folded = {_key(tuple(part.casefold() for part in own), schema) for own in tuples}
    out = []
    for doc in docs:
        found = [
            schema.relation(one.spans, source=SOURCE)
            for one in candidates(doc, schema, layer=layer)
            if _matches(doc, one, schema, tuples, folded)
        ]
        others = tuple(own for own in doc.relations if own.label != schema.name)
        out.append(replace(doc, relations=(*others, *found)))
    return out


def _key(members: tuple[str, ...], schema: Schema) -> tuple[str, ...]:
    return tuple(sorted(members)) if schema.symmetric else members


def _matches(
    doc: Document, one: Candidate, schema: Schema, tuples: set[tuple[str, ...]], folded: set[tuple[str, ...]]
) -> bool:
    for chosen in product(*(sorted(names(doc, span)) for span in one.spans)):
        key = _key(chosen, schema)
        if key in tuples or _key(tuple(part.casefold() for part in chosen), schema) in folded:
            return True
    return False


def sample(
    docs: Sequence[Document], schema: Schema, count: int, *, layer: str | None = None, seed: int = 0
) -> list[tuple[int, Candidate]]:
    """Candidates to judge by hand, half of them labelled, half not, drawn at random: document number and candidate."""
    every = [(n, one) for n, doc in enumerate(docs) for one in candidates(doc, schema, layer=layer)]
    rng = np.random.default_rng(seed)
    out: list[tuple[int, Candidate]] = []
    for stated in (True, False):
        own = [pair for pair in every if pair[1].stated is stated]
        chosen = rng.permutation(len(own))[: count // 2]
        out += [own[n] for n in sorted(chosen.tolist())]
    return out


def audit(
    judged: Iterable[tuple[Candidate, bool]], docs: Iterable[Document], schema: Schema, *, layer: str | None = None
) -> Audit:
    """Noise of both kinds, from candidates of a sample with the truth about each."""
    answers: dict[bool, list[bool]] = {True: [], False: []}
    for one, truth in judged:
        answers[one.stated].append(truth)
    if not answers[True] or not answers[False]:
        raise DataError("the audit needs judged candidates of both kinds, labelled and not; draw a larger sample")
    labelled = unlabelled = 0
    for doc in docs:
        for one in candidates(doc, schema, layer=layer):
            labelled, unlabelled = labelled + one.stated, unlabelled + (not one.stated)
    wrong = wilson(answers[True].count(False), len(answers[True]))
    missed = wilson(answers[False].count(True), len(answers[False]))
    return Audit(wrong, missed, labelled * (1 - wrong.value) + unlabelled * missed.value)


def wilson(hits: int, count: int) -> Share:
    """A share with Wilson's 95 % interval.

    >>> [round(own, 3) for own in wilson(0, 10)[:3]]
    [0.0, 0.0, 0.278]
    """
    z, value = 1.959964, hits / count
    centre = (value + z * z / (2 * count)) / (1 + z * z / count)
    half = z * (value * (1 - value) / count + z * z / (4 * count * count)) ** 0.5 / (1 + z * z / count)
    return Share(value, max(0.0, centre - half), min(1.0, centre + half), count)
