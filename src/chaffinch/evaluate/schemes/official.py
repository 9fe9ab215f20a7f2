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

from chaffinch.evaluate.counts import Item, MatchCounts, Tally, count_sets, count_tallies, rates
from chaffinch.evaluate.pairing import Pair
from chaffinch.evaluate.schemes.spans import boundaries, span_items
from chaffinch.text import Document, Span

# A span's label is the TYPE of the XML; its element name follows from it.
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
_SLACK = 2  # characters by which the end of a relaxed match may be off, as in the official scorer


def i2b2_strict(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Return counts of tags with right start, end and TYPE (any case), as the i2b2 scorer does; macro by document.

    With `hipaa`, only tags of HIPAA types are counted.

    >>> note = Document.make("Dr. Penn")
    >>> i2b2_strict([Pair(note, (Span(4, 8, "DOCTOR"),), (Span(4, 8, "doctor"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    return _macro_over_documents(count_sets((_tags(pair.gold, hipaa), _tags(pair.predicted, hipaa)) for pair in pairs))


def i2b2_token(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Return counts, macro by document, of ASCII words in spans, right by offsets and TYPE; `hipaa`: HIPAA alone."""
    return _macro_over_documents(
        count_sets(
            (set(_tokens(pair.document, pair.gold, hipaa)), set(_tokens(pair.document, pair.predicted, hipaa)))
            for pair in pairs
        )
    )


def i2b2_relaxed(pairs: Iterable[Pair], *, hipaa: bool = False) -> MatchCounts:
    """Return counts of tags with right start and TYPE and an end off by two at most; `hipaa`: HIPAA types only.

    The scorer puts tags that are "equal" in this sense into Python sets, so of two such tags on one side only the
    first is kept (here: the shorter; there: the first in the file), a tag may match two on the other side, and hits
    are counted on the side with fewer tags. tp + fp can therefore be less than the number of predictions.

    >>> note = Document.make("Dr. Penn's notes")
    >>> i2b2_relaxed([Pair(note, (Span(4, 8, "DOCTOR"),), (Span(4, 10, "DOCTOR"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    return _macro_over_documents(
        count_tallies(_tally_relaxed(_distinct(pair.gold, hipaa), _distinct(pair.predicted, hipaa)) for pair in pairs)
    )


def _tally_relaxed(gold: Sequence[Item], found: Sequence[Item]) -> Tally:
    """Return labels of hits, false alarms, misses; tags match within `_SLACK`; hits are of the side with fewer."""
    right_gold, right_found = _match_each(gold, found), _match_each(found, gold)
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


def _match_each(tags: Sequence[Item], others: Sequence[Item]) -> list[bool]:
    """Tell for each tag whether one of the others has its label and start, and its end within `_SLACK`."""
    ends = defaultdict(list)
    for label, start, end in others:
        ends[label, start].append(end)
    return [any(abs(end - other) <= _SLACK for other in ends.get((label, start), ())) for label, start, end in tags]


def _distinct(spans: Sequence[Span], hipaa: bool) -> list[Item]:
    """Return the sorted tags without those "equal" (label, start, end within `_SLACK`) to one kept before."""
    kept: dict[tuple[str, int], list[int]] = defaultdict(list)
    for label, start, end in sorted(_tags(spans, hipaa)):
        if all(abs(end - other) > _SLACK for other in kept[label, start]):
            kept[label, start].append(end)
    return [(label, start, end) for (label, start), ends in kept.items() for end in ends]


def _tags(spans: Sequence[Span], hipaa: bool) -> set[Item]:
    """Return (TYPE in capitals, start, end) of the spans; with `hipaa`, of HIPAA types only."""
    return {(s.label.upper(), s.start, s.end) for s in spans if not hipaa or _is_hipaa(s.label)}


def _tokens(doc: Document, spans: Sequence[Span], hipaa: bool) -> Iterator[Item]:
    """Yield (label, start, end) of each run of ASCII letters and digits in the spans; one empty run if it has none."""
    for span in spans:
        if hipaa and not _is_hipaa(span.label):
            continue
        found = [m.span() for m in _I2B2_TOKEN.finditer(doc.text, span.start, span.end)]
        # A tag without any letter or digit has one token all the same: an empty one, at its end.
        for start, end in found or [(span.end, span.end)]:
            yield span.label, start, end


def _is_hipaa(label: str) -> bool:
    """Tell whether the i2b2 scorer counts a label as a HIPAA type."""
    # The scorer recognises DATE and AGE by their element, whatever the case of TYPE.
    return label in I2B2_HIPAA or label.upper() in ("DATE", "AGE")


def _macro_over_documents(counts: MatchCounts) -> MatchCounts:
    """Return the counts, macro scores set to run over documents, with their standard deviations as facts.

    A document with nothing to find and nothing found has precision and recall 0, as in the scorer.
    """
    spread = rates(counts.values.sum(axis=1)).std(axis=0) if len(counts.values) else np.zeros(3)
    facts = {"precision_sd": float(spread[0]), "recall_sd": float(spread[1])}
    return replace(counts, macro="documents", facts=facts)


def meddocan_ner(pairs: Iterable[Pair], *, sentences: Mapping[str, int] | None = None) -> MatchCounts:
    """Return counts of spans with right start, end and label (subtrack 1); the fact `leak` is misses per sentence.

    The scorer counts the lines of sentence files that came with the corpus; give those numbers by document id.
    Without them the sentences of our documents are counted, and `leak` differs a little from the official one.
    """
    listed = list(pairs)
    counts = count_sets((span_items(pair.gold), span_items(pair.predicted)) for pair in listed)
    docs = [pair.document for pair in listed]
    total = sum(len(doc.sentences) if sentences is None else sentences[doc.id] for doc in docs)
    misses = int(counts.values[..., 2].sum())
    return replace(counts, facts={"leak": misses / total if total else 0.0, "sentences": total})


def meddocan_spans(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of spans with right start and end, whatever the label (subtrack 2, strict)."""
    return count_sets((boundaries(pair.gold), boundaries(pair.predicted)) for pair in pairs)


def meddocan_merged(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of boundaries that are right as given, or after neighbours are merged (subtrack 2, merged).

    Neighbours are spans with no letter or digit between them. Hits are the boundaries right without merging, and the
    merged ones that are right: two neighbours found one by one are three hits. What lies inside a hit is no miss on
    either side. A span inside another cuts the merged one short.

    >>> note = Document.make("Ann Lee")
    >>> pair = Pair(note, (Span(0, 3, "N"), Span(4, 7, "N")), (Span(0, 3, "N"), Span(4, 7, "N")))
    >>> meddocan_merged([pair]).values.tolist()
    [[[3, 0, 0]]]
    """
    return count_tallies(map(_tally_merged, pairs))


def _tally_merged(pair: Pair) -> Tally:
    """Return a document's hits (as given or merged), and those false alarms and misses that lie inside no hit."""
    gold, predicted = boundaries(pair.gold), boundaries(pair.predicted)
    text = pair.document.text
    hits = (gold & predicted) | (_merge_neighbours(text, pair.gold) & _merge_neighbours(text, pair.predicted))
    return Tally(
        [""] * len(hits),
        [""] * sum(not _is_inside(item, hits) for item in predicted - gold),
        [""] * sum(not _is_inside(item, hits) for item in gold - predicted),
        [""] * len(gold),
        [""] * len(predicted),
    )


def _merge_neighbours(text: str, spans: Sequence[Span]) -> set[Item]:
    """Merge spans with no letter or digit between them; return their boundaries as items without labels."""
    merged: list[Item] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if merged and not any(map(str.isalnum, text[merged[-1][2] : start])):
            merged[-1] = ("", merged[-1][1], end)
        else:
            merged.append(("", start, end))
    return set(merged)


def _is_inside(item: Item, hits: set[Item]) -> bool:
    """Tell whether an item lies inside one of the hits."""
    return any(start <= item[1] and item[2] <= end for _, start, end in hits)
