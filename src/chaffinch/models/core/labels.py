"""Labels, tags and states: what a chain's states mean, and conversion between spans and states.

T tokens, K states, L tags. Tag 0 is O, outside. With `pairs` a state is a pair of tags, the one before and this one,
so that features can have weights for pairs; pairs with one tag share a column. With `subs` a tag has several states,
its sub-tags, which the labels leave open and a model learns to distinguish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.kernels.linear import States
from chaffinch.text import Document, Span
from chaffinch.text.span import find_overlap

Scheme: TypeAlias = Literal["IOBES", "IOB2", "tokens", "runs"]
Ints: TypeAlias = NDArray[np.int64]
Piece: TypeAlias = tuple[int, int, int]  # first token, one past the last, number of the label

SCHEMES: tuple[Scheme, ...] = ("IOBES", "IOB2", "tokens")
MOST_STATES = 4096  # of a model file: tables of states by states are built of them, 128 MB each
_LETTERS = {"IOBES": "BIES", "IOB2": "BI", "tokens": "S", "runs": "I"}


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of a tagger and the tags that encode them on tokens.

    >>> Labels(("DNA", "RNA"), "IOB2").tags
    ('O', 'B-DNA', 'I-DNA', 'B-RNA', 'I-RNA')
    """

    names: tuple[str, ...]
    scheme: Scheme = "IOBES"
    pairs: bool = False
    subs: tuple[int, ...] = ()  # (L,) states of each tag; empty: one
    moves: bool = True  # moves between states have weights; without, pairs have those of features only
    tags: tuple[str, ...] = field(init=False)  # L
    tag_of: Ints = field(init=False, repr=False)  # (K,) the tag of each state
    state_of: Ints = field(init=False, repr=False)  # (L, L) the (first) state of a tag after another, or -1
    states: States = field(init=False, repr=False)
    follows: NDArray[np.bool_] = field(init=False, repr=False)  # (L+2, L) which tag may follow; may begin; may end

    def __post_init__(self) -> None:
        """Derive tags, states, the tag of each state, and which may follow which in the scheme."""
        letters = _LETTERS[self.scheme]
        tags = ("O", *(f"{letter}-{name}" for name in self.names for letter in letters))
        follows = np.array([[_follows(a, b, self.scheme) for b in tags] for a in (*tags, "O")])
        ends = np.array([_follows(tag, "O", self.scheme) for tag in tags])
        L = len(tags)
        pairs = [(b, b) for b in range(L) for _ in range(self.subs[b] if self.subs else 1)]
        if self.pairs:
            pairs = [(a, b) for b in range(L) for a in range(L) if follows[a, b]]
        tag_of = np.array([b for _, b in pairs], np.int64)
        state_of = np.full((L, L), -1, np.int64)
        for state, (a, b) in reversed(list(enumerate(pairs))):
            state_of[a if self.pairs else slice(None), b] = state
        if not self.pairs:
            state_of[~follows[:L]] = -1
        moves = np.zeros((len(pairs) + 2, len(pairs)), np.bool_)
        before = np.array([a for a, _ in pairs], np.int64)
        moves[:-2] = follows[tag_of][:, tag_of] & ((not self.pairs) | (before == tag_of[:, None]))
        moves[-2] = follows[L][tag_of] & ((not self.pairs) | (before == 0))
        moves[-1] = ends[tag_of]
        shared = len(pairs) + tag_of if self.pairs else None
        states = States.of(tag_of, moves, shared)
        for name, value in (("tags", tags), ("tag_of", tag_of), ("state_of", state_of), ("states", states)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "follows", np.vstack([follows, ends]))

    def encode(self, pieces: Sequence[Piece], length: int) -> Ints:
        """Return (length,) each token's tag number in the scheme, from runs (first, end, label number); 0 is O."""
        tags, size = np.zeros(length, np.int64), len(_LETTERS[self.scheme])
        for first, end, label in pieces:
            tag = 1 + label * size
            if self.scheme == "IOBES":
                tags[first:end] = tag + 1
                tags[first], tags[end - 1] = tag, tag + 2
                if end - first == 1:
                    tags[first] = tag + 3
            else:
                tags[first:end] = tag + size - 1
                tags[first] = tag
        return tags

    def to_states(self, tags: Ints, first: NDArray[np.bool_]) -> Ints:
        """Return (N,) the states of tags (N,), -1 where a tag may not follow; `first` marks sentence beginnings."""
        before = np.zeros_like(tags)
        before[1:] = tags[:-1]
        before[first] = 0
        return np.asarray(self.state_of[before, tags])

    def runs(self, states: NDArray[np.int32]) -> list[tuple[int, int, str]]:
        """Return the runs (first token, end, label) of states, which must be possible for a document."""
        starts, ends, label = self.run_arrays(states)
        names = [self.names[number] for number in label.tolist()]
        return list(zip(starts.tolist(), ends.tolist(), names, strict=True))

    def run_arrays(self, states: NDArray[np.int32]) -> tuple[Ints, Ints, Ints]:
        """Return (first tokens, ends, label numbers) of all runs of states, which must be possible."""
        tags, size = self.tag_of[states], len(_LETTERS[self.scheme])
        where = np.flatnonzero(tags)
        letter = (tags[where] - 1) % size
        if self.scheme == "IOBES":  # B, I, E, S
            starts, ends = where[(letter == 0) | (letter == 3)], where[letter >= 2] + 1
        elif self.scheme == "IOB2":  # B, I
            starts = where[letter == 0]
            goes_on = np.zeros(len(tags) + 1, np.bool_)
            goes_on[where[letter == 1]] = True
            ends = where[~goes_on[where + 1]] + 1
        elif self.scheme == "runs":
            padded = np.concatenate([[0], tags, [0]])
            starts = where[tags[where] != padded[where]]
            ends = where[tags[where] != padded[where + 2]] + 1
        else:
            starts, ends = where, where + 1
        return starts, ends, (tags[starts] - 1) // size


def _follows(a: str, b: str, scheme: Scheme) -> bool:
    """Tell whether tag b may follow tag a in the scheme; "O" is also the edge of a sentence."""
    if scheme == "runs":
        return True
    if b[0] in "OBS":
        return scheme != "IOBES" or a[0] in "OES"
    return a[0] in "BI" and a[2:] == b[2:]


@dataclass(slots=True)
class Fitted:
    """Counts of the spans that were adjusted to tokens: widened to token edges, cut at sentence ends, or dropped."""

    widened: int = 0
    cut: int = 0
    dropped: int = 0

    def summary(self) -> dict[str, float]:
        """Return the counts above 0, under the names that a manifest's metrics use."""
        names = {
            "spans widened to whole tokens": self.widened,
            "spans cut at sentence ends": self.cut,
            "spans dropped": self.dropped,
        }
        return {name: float(number) for name, number in names.items() if number}


def pieces_of(doc: Document, spans: Sequence[Span], index: dict[str, int], fitted: Fitted) -> list[Piece]:
    """Return spans as (first token, end, label number), cut at sentence ends; count changes in `fitted`; or DataError.

    A span that covers part of a token is widened to the whole token; one that then overlaps an earlier span, or covers
    no token, is dropped. `index` numbers the labels; `fitted` counts the spans changed in each way.
    """
    clash = find_overlap(spans)
    if clash is not None:
        a, b = clash
        raise DataError(
            f"spans [{a.start}, {a.end}) {a.label} and [{b.start}, {b.end}) {b.label} overlap, which a tagger cannot "
            "learn; resolve overlaps first (chaffinch.resolve), or train on one layer at a time"
        )
    pieces: list[Piece] = []
    if not spans:
        return pieces
    firsts, ends = doc.token_ranges(spans).T
    edges, last = doc.sentence_tokens()[:, 1], 0
    sentences = np.searchsorted(edges, np.stack([firsts, ends - 1]), side="right").T
    rows = zip(spans, firsts.tolist(), ends.tolist(), sentences.tolist(), strict=True)
    for span, first, end, (first_sentence, last_sentence) in rows:
        if first >= end or first < last:
            fitted.dropped += 1
            continue
        fitted.widened += int(doc.tokens[first, 0] != span.start or doc.tokens[end - 1, 1] != span.end)
        fitted.cut += first_sentence != last_sentence
        cuts = [first, *edges[first_sentence:last_sentence].tolist(), end]
        pieces += [(a, b, index[span.label]) for a, b in pairwise(cuts) if b > a]
        last = end
    return pieces
