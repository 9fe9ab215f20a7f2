"""Cross-validation by group, and the representation it prefers."""

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
    """Sentences to learn from and sentences to read, `count` times; no group is in both."""
    names = sorted(set(groups))
    place = {names[n]: at % count for at, n in enumerate(np.random.default_rng(seed).permutation(len(names)).tolist())}
    for fold in range(min(count, len(names))):
        own = [n for n, name in enumerate(groups) if place[name] == fold]
        yield [n for n, name in enumerate(groups) if place[name] != fold], own


def crossed(
    sentences: Sequence[Sentence], domains: Sequence[str], config: PhraseHMM, *, groups: Sequence[str], count: int = 5
) -> list[PhraseReading]:
    """Each sentence read by a model that learnt from other groups."""
    out: dict[int, PhraseReading] = {}
    for learn, own in folds(groups, count, config.seed):
        model = fit([sentences[n] for n in learn], domains, config, groups=[groups[n] for n in learn])
        out.update(zip(own, model.readings([sentences[n] for n in own]), strict=True))
    return [out[n] for n in range(len(sentences))]


class Choice(NamedTuple):
    """A representation, and the F1 of arguments that each one reached."""

    representation: Representation
    scores: dict[Representation, float]


def choose(
    candidates: Mapping[Representation, Sequence[Sentence]], domains: Sequence[str], config: PhraseHMM, *,
    groups: Sequence[str], count: int = 3,
) -> Choice:  # fmt: skip
    """The representation whose arguments are found best in cross-validation by group; ties go to the earlier."""
    scores: dict[Representation, float] = {}
    for name, sentences in candidates.items():
        readings = crossed(sentences, domains, replace(config, representation=name), groups=groups, count=count)
        scores[name] = argument_f1(sentences, readings)
    return Choice(max(scores, key=lambda name: scores[name]), scores)


def argument_f1(sentences: Sequence[Sentence], readings: Sequence[PhraseReading]) -> float:
    """F1 of runs of segments with one label, of the sentences in which the relation is found; runs must be the same.

    >>> from chaffinch.models.phrasehmm.choice import _runs
    >>> sorted(_runs([0, 1, 1, 0, 2]))
    [(1, 3, 1), (4, 5, 2)]
    """
    right = found = known = 0
    for own, reading in zip(sentences, readings, strict=True):
        truth, said = _runs(own.labels), _runs(reading.labels) if reading.extracted else set()
        right, found, known = right + len(truth & said), found + len(said), known + len(truth)
    return 2.0 * right / (found + known) if found + known else 0.0


def _runs(labels: Sequence[int]) -> set[tuple[int, int, int]]:
    out, at = set(), 0
    for label, run in groupby(labels):
        end = at + len(list(run))
        if label:
            out.add((at, end, label))
        at = end
    return out
