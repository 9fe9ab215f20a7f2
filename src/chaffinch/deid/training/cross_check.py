"""What adaptation gains, measured on reviewed notes not learnt from, and what a number of notes can show.

reviewed notes  →  folds by patient  →  for each: adapt to the others  →  old and new model on the fold
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.detect.model import Model
from chaffinch.deid.detect.token_scores import Flags, token_flags
from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.training.adapt import FEWEST_PATIENTS, SiteLesson, adapt
from chaffinch.deid.training.learn import ProgressCallback
from chaffinch.text import Document, Span

FOLDS = 2  # each fold takes one more adaptation
CONFIDENCE = 0.9  # of the highest recall that so many identifiers can promise


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Recall and precision of words on reviewed notes that were not learnt from, before and after adaptation."""

    notes: int
    identifiers: int  # words of them
    recall_before: float
    recall_after: float
    precision_before: float
    precision_after: float


def cross_check(
    notes: Sequence[Document],
    model: Model,
    gold: Sequence[Document],
    *,
    lesson: SiteLesson | None = None,
    seed: int = 0,
    lists: WordLists | None = None,
    tell: ProgressCallback | None = None,
) -> CrossCheck | None:
    """Return recall and precision before and after adapting, on reviewed patients left out; None below four.

    Notes of a fold are left out of both the reviewed and the other notes, so that nothing of them is learnt. Takes
    twice as long as `adapt`.
    """
    patients = sorted({doc.patient for doc in gold})
    if len(patients) < FEWEST_PATIENTS or not any(doc.layer() for doc in gold):
        return None
    counts = np.zeros((2, 2), np.int64)  # old and new model: hits, flagged
    total = 0
    for fold in range(FOLDS):
        held = set(patients[fold::FOLDS])
        tested = [doc for doc in gold if doc.patient in held]
        left_out = {doc.id for doc in tested}
        others = [doc for doc in notes if doc.id not in left_out and (doc.group is None or doc.group not in held)]
        learnt = [doc for doc in gold if doc.patient not in held]
        new = adapt(others, model, gold=learnt, lesson=lesson, seed=seed, lists=lists, tell=tell)
        right = _flags(tested, [doc.layer() for doc in tested])
        total += int(right.sum())
        bare = [replace(doc, layers={}, soft={}, relations=()) for doc in tested]
        for row, each in enumerate((model, new)):
            found = _flags(tested, [doc.layer(LAYER) for doc in HybridDetector(each)(bare)])
            counts[row] += int((found & right).sum()), int(found.sum())
    recalls, precisions = counts[:, 0] / max(total, 1), counts[:, 0] / np.maximum(counts[:, 1], 1)
    return CrossCheck(len(gold), total, *map(float, recalls), *map(float, precisions))


def _flags(docs: Sequence[Document], spans: Sequence[Sequence[Span]]) -> Flags:
    """Return for all words of the documents, punctuation left out, whether a span touches them."""
    parts = [np.zeros(0, np.bool_)]
    for doc, found in zip(docs, spans, strict=True):
        written = np.array([any(map(str.isalnum, word)) for word in doc.words()], np.bool_)
        parts.append(token_flags(doc, found)[written])
    return np.concatenate(parts)


def highest_promise(identifiers: int) -> float:
    """Return the highest recall that a number of reviewed identifiers can promise (90 % confidence), if all are found.

    >>> [round(highest_promise(number), 3) for number in (22, 45, 230)]
    [0.901, 0.95, 0.99]
    """
    return float((1.0 - CONFIDENCE) ** (1.0 / identifiers)) if identifiers else 0.0


def describe_limits(reviewed: Sequence[Document]) -> list[str]:
    """Return in sentences what adaptation can do, and show, with these reviewed notes."""
    patients, identifiers = len({doc.patient for doc in reviewed}), sum(len(doc.layer()) for doc in reviewed)
    if not reviewed:
        return [
            "No note was reviewed: taggers learn from votes, the dial is set on votes and generated notes, and nothing "
            "says how good it is on yours. Review notes of four patients or more (deid sample), and give them with "
            "--gold."
        ]
    promise = (
        f"{identifiers:,} reviewed identifiers can promise a recall of {highest_promise(identifiers):.3f} at most "
        "(90 % confidence, if none was missed)."
    )
    if patients < FEWEST_PATIENTS:
        return [
            f"Reviewed notes of {patients} patients are learnt from; they are too few to set the dial without "
            "generated notes, and to check the result on notes that were not learnt from: review those of "
            f"{FEWEST_PATIENTS} or more.",
            promise,
        ]
    return [promise]
