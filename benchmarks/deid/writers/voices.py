"""Score the voices of a detector's model one by one, in pairs and all together, token by token.

A voice is a tagger or the contextual reader; rules count for none of them. Several taggers give their mean, as the
detector takes it; all of them have the second stage as well and, without the reader, the glance. The reader joins them
as in `deid.detect.voices.context`. Each set of voices is scored at the thresholds that flag given shares of the
identifier words of these very notes: the figures compare voices and promise nothing.
N tokens of all notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from benchmarks.deid.scores import written
from benchmarks.hmmdp.scores import covered
from chaffinch import Document, Span
from chaffinch.deid.detect import token_scores
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.model import Model
from chaffinch.deid.detect.voices.context import join
from chaffinch.kernels import Floats
from chaffinch.text import Soft

READER: Final = "reader"
LEVELS: Final = (0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99)


def score_voices(model: Model, docs: Sequence[Document]) -> Iterator[tuple[str, float, list[list[Span]]]]:
    """Yield for every set of voices and every level its name, the level, and one span per flagged word by note."""
    bare = [replace(doc, layers={}) for doc in docs]
    voices = read_voices(model, bare)
    words = np.concatenate([written(doc) for doc in docs])
    gold = np.concatenate([covered(doc, doc.layer("gold")) for doc in docs]) & words
    for size in range(1, len(voices) + 1):
        for names in combinations(voices, size):
            joint = join_voices({name: voices[name] for name in names}, model, bare)
            chances = np.where(words, 1.0 - joint.values[:, 0], -1)
            for level in LEVELS:
                threshold = np.sort(chances[gold])[::-1][int(np.ceil(level * gold.sum())) - 1]
                yield " + ".join(names), level, _spans(docs, chances >= threshold)


def read_voices(model: Model, docs: Sequence[Document]) -> dict[str, Soft]:
    """Return the soft labels (N, labels) of every voice by its name."""
    voices = {}
    for tagger in model.taggers:
        alone = HybridDetector(replace(model, taggers=(tagger,), context=None, glance=None))
        voices[tagger.manifest.kind] = alone.soft_labels(docs)
    if model.context is not None:
        voices[READER] = model.context.read(docs)
    return voices


def join_voices(voices: Mapping[str, Soft], model: Model, docs: Sequence[Document]) -> Soft:
    """Return the voices that read the documents as one, in the way the detector joins them."""
    fast = [soft for name, soft in voices.items() if name != READER]
    if not fast:
        return voices[READER]
    joint = token_scores.mean(fast)
    if len(fast) == len(model.taggers):  # second stage and glance stand over all of them
        prepared = HybridDetector(model).prepare(docs)
        asked = model if READER in voices else model.fast()  # which has a glance in place of the reader
        joint = asked.join_taggers(token_scores.TokenIndex.of(prepared), docs, fast)
    if model.context is None or READER not in voices:
        return joint
    return join(joint, voices[READER], weight=model.context.weight, types=model.context.types)


def _spans(docs: Sequence[Document], flags: Floats) -> list[list[Span]]:
    out, first = [], 0
    for doc in docs:
        own = flags[first : first + len(doc.tokens)]
        out.append([Span(start, end, "PHI") for start, end in doc.tokens[own].tolist()])
        first += len(doc.tokens)
    return out
