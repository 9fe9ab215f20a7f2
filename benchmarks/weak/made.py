"""Generated votes whose truth is known: sources whose reliability depends on context, and rules that link tokens.

T tokens, S sources.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch import CHMM
from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.chmm import fit as chmm
from chaffinch.models.votes.chmm.tables import f1_of_tags
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.weak.vote_rules import LongestSpan, SpanVote

NAMES = ("X",)
LENGTH = 20  # tokens of a sentence
SENTENCES = 400
MISJUDGED = 0.3  # of spans that a source finds have an end that is drawn anew, in the harder of two kinds of data
CONDITIONAL = CHMM(rate=0.02, ridge=1e-4, epochs=20, patience=20, batch=16)  # as the generated data want it


class Made(NamedTuple):
    """Votes, what shows the context of each token, and the right tags."""

    votes: VoteMatrix
    rows: Floats  # (T, D)
    tags: Ints  # (T,)


def context(seed: int, ends: float = 0.0, sentences: int = SENTENCES) -> dict[str, float]:
    """Strict F1 of each system where context tells which sources to trust; `ends` is the share of misjudged ends."""
    made = by_context(seed, sentences, ends)
    hmm = multihmm.fit(made.votes)
    found = {"MultiHMM": hmm.posterior(made.votes).tags}
    for name, config in {"i.i.d. CHMM": replace(CONDITIONAL, iid=True, seed=seed),
                         "CHMM": replace(CONDITIONAL, seed=seed)}.items():  # fmt: skip
        model = chmm.fit(made.votes, made.rows, config, constant=hmm)
        found[name] = model.posterior(made.votes, made.rows).tags
    found["SpanVote"] = SpanVote().spans(made.votes).tags(len(made.votes))
    return {name: f1_of_tags(NAMES, made.votes.bounds, made.tags, tags) for name, tags in found.items()}


def links(seed: int, sentences: int = SENTENCES) -> dict[str, float]:
    """Strict F1 with and without the words of linking rules, and of rules that join votes."""
    made = linked(seed, sentences)
    alone = replace(made.votes, rules=(), links=np.zeros((0, 0), np.int8))
    found = {
        "MultiHMM, votes alone": multihmm.fit(alone).posterior(alone).tags,
        "MultiHMM with linking rules": multihmm.fit(made.votes).posterior(made.votes).tags,
        "SpanVote": SpanVote().spans(alone).tags(len(alone)),
        "LongestSpan": LongestSpan().spans(alone).tags(len(alone)),
    }
    return {name: f1_of_tags(NAMES, alone.bounds, made.tags, tags) for name, tags in found.items()}


def by_context(seed: int, sentences: int, ends: float) -> Made:
    """Four sources; by the kind of sentence two find nearly all spans and two invent; rows show the kind, and noise.

    Every source misjudges the ends of a share of spans.
    """
    rng = np.random.default_rng(seed)
    tags, codes = np.zeros(sentences * LENGTH, np.int64), np.full((sentences * LENGTH, 4), -1, np.int16)
    kinds = rng.integers(2, size=sentences)
    for sentence in range(sentences):
        at = sentence * LENGTH
        places = [(at + place + int(rng.integers(2)), int(rng.integers(1, 4))) for place in (0, 5, 10, 15)]
        true = [span for span in places if rng.random() < 0.5]
        for span in true:
            _put(tags, *span)
        for source in range(4):
            good = kinds[sentence] == source % 2
            for _ in range(rng.poisson(0.1 if good else 1.5)):
                _put(codes[:, source], at + int(rng.integers(LENGTH - 3)), int(rng.integers(1, 4)))
            for span in true:
                if rng.random() < (0.95 if good else 0.5):
                    _put(codes[:, source], span[0], _misjudged(span[1], ends, rng))
    rows = np.stack([np.repeat(kinds - 0.5, LENGTH), *rng.normal(size=(3, len(tags)))], axis=1)
    return Made(_vote_matrix(codes), rows, tags)


def linked(seed: int, sentences: int) -> Made:
    """Three sources that see single tokens of entities of one to four; a rule links most neighbours inside of them.

    No source ever votes for a whole entity of several tokens. The rule errs at one pair of others in fifty.
    """
    rng = np.random.default_rng(seed)
    tags, codes = np.zeros(sentences * LENGTH, np.int64), np.full((sentences * LENGTH, 3), -1, np.int16)
    said = np.zeros((len(tags), 1), np.int8)
    said[rng.random(len(tags)) < 0.02] = 1
    for sentence in range(sentences):
        for place in (0, 5, 10, 15):
            first, size = sentence * LENGTH + place + int(rng.integers(2)), int(rng.integers(1, 5))
            if rng.random() < 0.5:
                continue
            _put(tags, first, min(size, 4))
            said[first + 1 : first + size, 0] = rng.random(size - 1) < 0.95
            for source in range(3):
                seen = first + np.flatnonzero(rng.random(size) < 0.8)
                codes[seen, source] = 1
    for source in range(3):
        codes[(tags == 0) & (rng.random(len(tags)) < 0.01), source] = 1
    votes = _vote_matrix(codes)
    said[votes.bounds[:-1]] = 0
    return Made(replace(votes, rules=("phrase",), links=said), np.zeros((len(tags), 1)), tags)


def _misjudged(size: int, ends: float, rng: np.random.Generator) -> int:
    """The length that a source gives a span: one token more or less, at times."""
    return max(1, size + int(rng.integers(-1, 2))) if rng.random() < ends else size


def _put(tags: NDArray[np.integer], first: int, size: int) -> None:
    tags[first : first + size] = 2
    tags[first] = 1


def _vote_matrix(codes: NDArray[np.int16]) -> VoteMatrix:
    bounds = np.arange(0, len(codes) + 1, LENGTH)
    return VoteMatrix(tuple(f"s{k}" for k in range(codes.shape[1])), NAMES, codes, bounds, bounds)
