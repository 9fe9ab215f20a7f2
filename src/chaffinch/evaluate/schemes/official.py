"""The scores of two shared tasks as their official scorers compute them, oddities included.

i2b2 2014 de-identification: github.com/kotfic/i2b2_evaluation_scripts (Python 2, classes.py and tags.py).
MEDDOCAN 2019: github.com/PlanTL-GOB-ES/MEDDOCAN-Evaluation-Script (classes.py). Both score only documents that are
in gold and in the predictions; callers leave the others out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from chaffinch.evaluate.counts import Item, MatchCounts, Tally, of_sets, of_tallies, rates
from chaffinch.evaluate.pairing import Pair
from chaffinch.evaluate.schemes.spans import items, places
from chaffinch.text import Document, Span

# A span's label is the TYPE of the XML; the element it stands in follows from it.
_TYPES = {
    "NAME": ("PATIENT", "DOCTOR", "USERNAME"),
    "PROFESSION": ("PROFESSION",),
    "LOCATION": (
        *("ROOM", "DEPARTMENT", "HOSPITAL", "ORGANIZATION", "STREET"),
        *("CITY", "STATE", "COUNTRY", "ZIP", "LOCATION-OTHER"),
    ),
    "AGE": ("AGE",),
    "DATE": ("DATE",),
    "CONTACT": ("PHONE", "FAX", "EMAIL", "URL", "IPADDR"),
    "ID": (
        *("SSN", "MEDICALRECORD", "HEALTHPLAN", "ACCOUNT", "LICENSE"),
        *("VEHICLE", "DEVICE", "BIOID", "IDNUM"),
    ),
    "OTHER": ("OTHER",),
}
I2B2_TAGS: Mapping[str, str] = {kind: tag for tag, kinds in _TYPES.items() for kind in kinds}

# The task's page lists ID/IDNUM too, but the scorer's pattern for it ends in a blank, which no TYPE does.
I2B2_HIPAA = frozenset(
    [
        *("PATIENT", "AGE", "CITY", "STREET", "ZIP", "ORGANIZATION", "DATE", "PHONE", "FAX", "EMAIL"),
        *("SSN", "MEDICALRECORD", "HEALTHPLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "BIOID"),
    ]
)
_I2B2_TOKEN = re.compile("[a-zA-Z0-9]+")
_SLACK = 2  # characters by which the end of a relaxed match may be off


def i2b2_strict(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Start, end and TYPE are right; upper and lower case of TYPE are one.

    >>> note = Document.make("Dr. Penn")
    >>> i2b2_strict([Pair(note, (Span(4, 8, "DOCTOR"),), (Span(4, 8, "doctor"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    return _by_document(of_sets((_tags(one.gold, hipaa), _tags(one.predicted, hipaa)) for one in pairs))


def i2b2_token(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Each run of ASCII letters and digits inside a span has the right place and TYPE."""
    return _by_document(
        of_sets(
            (set(_tokens(one.document, one.gold, hipaa)), set(_tokens(one.document, one.predicted, hipaa)))
            for one in pairs
        )
    )


def i2b2_relaxed(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Start and TYPE are right and the end is off by two characters at most.

    The scorer puts tags that are "equal" in this sense into Python sets, so of two such tags on one side only the
    first is kept (here: the shorter; there: the first in the file), a tag may answer two on the other side, and hits
    are counted on the side with fewer tags. tp + fp can therefore be less than the number of predictions.

    >>> note = Document.make("Dr. Penn's notes")
    >>> i2b2_relaxed([Pair(note, (Span(4, 8, "DOCTOR"),), (Span(4, 10, "DOCTOR"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    return _by_document(
        of_tallies(_relaxed_tally(_distinct(one.gold, hipaa), _distinct(one.predicted, hipaa)) for one in pairs)
    )


def _relaxed_tally(gold: Sequence[Item], found: Sequence[Item]) -> Tally:
    right_gold, right_found = _answered(gold, found), _answered(found, gold)
    gold_labels, found_labels = [tag[0] for tag in gold], [tag[0] for tag in found]
    # CPython walks the smaller set of an intersection, and the second one of two that are equally large.
    labels, right = (gold_labels, right_gold) if len(gold) < len(found) else (found_labels, right_found)
    return Tally(
        [label for label, hit in zip(labels, right, strict=True) if hit],
        [label for label, hit in zip(found_labels, right_found, strict=True) if not hit],
        [label for label, hit in zip(gold_labels, right_gold, strict=True) if not hit],
        gold_labels,
        found_labels,
    )


def _answered(tags: Sequence[Item], others: Sequence[Item]) -> list[bool]:
    """For each tag, whether one of the others has its label and start, and nearly its end."""
    ends = defaultdict(list)
    for label, start, end in others:
        ends[label, start].append(end)
    return [any(abs(end - other) <= _SLACK for other in ends.get((label, start), ())) for label, start, end in tags]


def _distinct(spans: Sequence[Span], hipaa: bool) -> list[Item]:
    """The tags that are left when each is dropped that is "equal" to one kept before."""
    kept: dict[tuple[str, int], list[int]] = defaultdict(list)
    for label, start, end in sorted(_tags(spans, hipaa)):
        if all(abs(end - other) > _SLACK for other in kept[label, start]):
            kept[label, start].append(end)
    return [(label, start, end) for (label, start), ends in kept.items() for end in ends]


def _tags(spans: Sequence[Span], hipaa: bool) -> set[Item]:
    return {(s.label.upper(), s.start, s.end) for s in spans if not hipaa or _is_hipaa(s.label)}


def _tokens(doc: Document, spans: Sequence[Span], hipaa: bool) -> Iterator[Item]:
    for span in spans:
        if hipaa and not _is_hipaa(span.label):
            continue
        found = [m.span() for m in _I2B2_TOKEN.finditer(doc.text, span.start, span.end)]
        # A tag without any letter or digit has one token all the same: an empty one, at its end.
        for start, end in found or [(span.end, span.end)]:
            yield span.label, start, end


def _is_hipaa(label: str) -> bool:
    # DATE and AGE are known by their element, whatever the case of TYPE.
    return label in I2B2_HIPAA or label.upper() in ("DATE", "AGE")


def _by_document(counts: MatchCounts) -> MatchCounts:
    """Macro scores over documents: F1 of the mean precision and the mean recall, with standard deviations.

    A document with nothing to find and nothing found has precision and recall 0, as in the scorer.
    """
    spread = rates(counts.values.sum(axis=1)).std(axis=0) if len(counts.values) else np.zeros(3)
    facts = {"precision_sd": float(spread[0]), "recall_sd": float(spread[1])}
    return replace(counts, macro="documents", facts=facts)


def meddocan_ner(pairs: Iterable[Pair], *, sentences: Mapping[str, int] | None = None) -> MatchCounts:
    """Subtrack 1: start, end and label are right; `leak` is false negatives per sentence.

    The scorer counts the lines of sentence files that came with the corpus; give those numbers by document id.
    Without them the sentences of our documents are counted, and `leak` differs a little from the official one.
    """
    held = list(pairs)
    counts = of_sets((items(one.gold), items(one.predicted)) for one in held)
    docs = [one.document for one in held]
    total = sum(len(doc.sentences) if sentences is None else sentences[doc.id] for doc in docs)
    misses = int(counts.values[..., 2].sum())
    return replace(counts, facts={"leak": misses / total if total else 0.0, "sentences": total})


def meddocan_spans(pairs: Iterable[Pair]) -> MatchCounts:
    """Subtrack 2, strict: start and end are right, whatever the label."""
    return of_sets((places(one.gold), places(one.predicted)) for one in pairs)


def meddocan_merged(pairs: Iterable[Pair]) -> MatchCounts:
    """Subtrack 2, merged: neighbours with no letter or digit between them may also be right as one span.

    Hits are the places right as they stand, and the merged places that are right: two neighbours found one by one
    are three hits. What lies inside a hit is no miss on either side. A span inside another cuts the merged one short.

    >>> note = Document.make("Ann Lee")
    >>> one = Pair(note, (Span(0, 3, "N"), Span(4, 7, "N")), (Span(0, 3, "N"), Span(4, 7, "N")))
    >>> meddocan_merged([one]).values.tolist()
    [[[3, 0, 0]]]
    """
    return of_tallies(map(_merged_tally, pairs))


def _merged_tally(one: Pair) -> Tally:
    gold, found = places(one.gold), places(one.predicted)
    hits = (gold & found) | (_merged(one.document.text, one.gold) & _merged(one.document.text, one.predicted))
    return Tally(
        [""] * len(hits),
        [""] * sum(not _contained(place, hits) for place in found - gold),
        [""] * sum(not _contained(place, hits) for place in gold - found),
        [""] * len(gold),
        [""] * len(found),
    )


def _merged(text: str, spans: Sequence[Span]) -> set[Item]:
    merged: list[Item] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if merged and not any(map(str.isalnum, text[merged[-1][2] : start])):
            merged[-1] = ("", merged[-1][1], end)
        else:
            merged.append(("", start, end))
    return set(merged)


def _contained(place: Item, hits: set[Item]) -> bool:
    return any(start <= place[1] and place[2] <= end for _, start, end in hits)
