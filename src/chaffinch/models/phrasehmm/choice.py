"""Cross-validation by group, and the choice of a representation by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from chaffinch.models.phrasehmm.fit import PhraseHMM, Sentence, fit
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.models.phrasehmm.segments import Representation


def folds(groups: Sequence[str], count: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield (numbers to learn from, numbers to read) for up to `count` folds; a group is never in both."""
    names = sorted(set(groups))
    fold_of = {
        names[n]: rank % count for rank, n in enumerate(np.random.default_rng(seed).permutation(len(names)).tolist())
    }
    for fold in range(min(count, len(names))):
        held_out = [n for n, name in enumerate(groups) if fold_of[name] == fold]
        yield [n for n, name in enumerate(groups) if fold_of[name] != fold], held_out


def cross_validate(
    sentences: Sequence[Sentence], domains: Sequence[str], config: PhraseHMM, *, groups: Sequence[str], count: int = 5
) -> list[PhraseReading]:
    """Return each sentence's reading, in order, by a model that learnt from other groups; DataError if it cannot."""
    out: dict[int, PhraseReading] = {}
    for learn, held_out in folds(groups, count, config.seed):
        model = fit([sentences[n] for n in learn], domains, config, groups=[groups[n] for n in learn])
        out.update(zip(held_out, model.readings([sentences[n] for n in held_out]), strict=True))
    return [out[n] for n in range(len(sentences))]


class Choice(NamedTuple):
    """The chosen representation, and the F1 of arguments of each candidate."""

    representation: Representation
    scores: dict[Representation, float]


def choose(
    candidates: Mapping[Representation, Sequence[Sentence]], domains: Sequence[str], config: PhraseHMM, *,
    groups: Sequence[str], count: int = 3,
) -> Choice:  # fmt: skip
    """Return the representation of best cross-validated F1 of arguments, the earlier of equals, and all scores."""
    scores: dict[Representation, float] = {}
    for name, sentences in candidates.items():
        readings = cross_validate(sentences, domains, replace(config, representation=name), groups=groups, count=count)
        scores[name] = argument_f1(sentences, readings)
    return Choice(max(scores, key=lambda name: scores[name]), scores)


def argument_f1(sentences: Sequence[Sentence], readings: Sequence[PhraseReading]) -> float:
    """Return F1 of labelled runs of segments, exactly matched; readings without a relation find none; 0 without runs.

    >>> from chaffinch.models.phrasehmm.choice import _runs
    >>> sorted(_runs([0, 1, 1, 0, 2]))
    [(1, 3, 1), (4, 5, 2)]
    """
    right = predicted = known = 0
    for sentence, reading in zip(sentences, readings, strict=True):
        truth, guess = _runs(sentence.labels), _runs(reading.labels) if reading.extracted else set()
        right, predicted, known = right + len(truth & guess), predicted + len(guess), known + len(truth)
    return 2.0 * right / (predicted + known) if predicted + known else 0.0


def _runs(labels: Sequence[int]) -> set[tuple[int, int, int]]:
    """Return (start, end, label) of the runs of equal labels except 0."""
    out, begin = set(), 0
    for label, run in groupby(labels):
        end = begin + len(list(run))
        if label:
            out.add((begin, end, label))
        begin = end
    return out
