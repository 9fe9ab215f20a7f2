"""A second stage over the soft labels of several taggers (stacked generalisation, Wolpert 1992).

    doubtful tokens  →  chances by tagger, of tokens around, of the same word in the note  →  a small net  →  log-odds

Taggers read a sentence; whether a doubtful word is an identifier often shows in the line before or where the word comes
again. The net learns from soft labels of taggers that did not learn from the note (`deid.training.stacking`). Only the
chance of an identifier changes, types keep their shares. N tokens of all documents, D doubtful ones, S taggers, F
features, H hidden units, L labels, the first of which is O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chaffinch.bundle import State
from chaffinch.bundle.state import Array
from chaffinch.deid.detect import token_scores
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.errors import ModelError
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.text import Soft

# Tokens with a chance between these are doubtful: one in eight. On dev writers .005 and .98 are no better, and hold
# twice as many tokens; outside, hardly a chance crosses a threshold of the dial.
LEAST, MOST = 0.02, 0.9
REACH = 3  # tokens on either side whose log-odds are features
SUREST = 1e-4  # chances are clipped to [SUREST, 1 - SUREST]: beyond, their log-odds say nothing about a neighbour
MANY = 8  # times that a word occurs, at and above which it is as frequent as can be
SHARE = 5.0  # times the share of likely identifiers among the tokens of a note: brings it to the order of 1

# Rows of a product, the last of which are zeros where there are fewer: a matrix product rounds a row differently near
# the end of a number of rows that its vectors do not divide. 48 is a multiple of the vectors of all processors.
_TILE = 48

_ARRAYS = ("centre", "scale", "inner", "bias", "outer", "offset")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stack:
    """A net with one hidden layer that adds to the log-odds of doubtful tokens."""

    labels: tuple[str, ...]  # (L,) of the soft labels it reads, sorted, without O
    taggers: int
    centre: Floats  # (F,) mean of the features
    scale: Floats  # (F,) their spread
    inner: Floats  # (F, H)
    bias: Floats  # (H,)
    outer: Floats  # (H,)
    offset: Floats  # (1,)

    def rescore(self, index: TokenIndex, softs: Sequence[Soft]) -> Soft:
        """Return (N, L) the taggers' mean soft labels, with new chances for doubtful tokens if `taggers` are as learnt.

        A model with another number of taggers gets the mean.
        """
        soft = token_scores.mean(softs)
        if len(softs) != self.taggers:
            return soft
        tokens, rows = doubtful_tokens(index, softs, soft, self.labels)
        if not len(tokens):
            return soft
        return with_odds(soft, tokens, rows[:, 0] + self.log_odds(rows))

    def log_odds(self, rows: Floats) -> Floats:
        """Return (D,) what to add to the mean log-odds of tokens with these features (D, F).

        A token's answer has the same bits whatever tokens are beside it.
        """
        scaled = (rows - self.centre) / self.scale
        out = np.zeros(len(rows))
        for first in range(0, len(rows), _TILE):
            part = scaled[first : first + _TILE]
            tile = np.zeros((_TILE, scaled.shape[1]))
            tile[: len(part)] = part
            hidden = np.maximum(tile @ self.inner + self.bias, 0.0)
            out[first : first + _TILE] = (hidden * self.outer).sum(axis=1)[: len(part)]
        return np.asarray(out + self.offset)

    def state(self) -> State:
        """Return the learnt arrays and the labels, for saving."""
        return State({name: getattr(self, name) for name in _ARRAYS}, {"labels": self.labels})

    @classmethod
    def of(cls, state: State, taggers: int) -> Stack:
        """Rebuild a stack from its arrays and labels; ModelError if their sizes do not fit."""
        arrays: dict[str, Array] = {name: state.arrays[name] for name in _ARRAYS}
        stack = cls(tuple(state.strings["labels"]), taggers, **arrays)
        size, hidden = count_features(taggers, len(stack.labels)), len(stack.bias)
        wanted = {"centre": (size,), "scale": (size,), "inner": (size, hidden), "outer": (hidden,), "offset": (1,)}
        if any(arrays[name].shape != shape for name, shape in wanted.items()):
            raise ModelError("the stack of this model does not fit its taggers; take the file of its maker, or retrain")
        return stack


def count_features(taggers: int, labels: int) -> int:
    """Return F, the number of features for that many taggers and labels (without O)."""
    return 1 + taggers + 2 + 2 * REACH + 3 * (1 + labels) + 4 + 1


def doubtful_tokens(index: TokenIndex, softs: Sequence[Soft], soft: Soft, labels: Sequence[str]) -> tuple[Ints, Floats]:
    """Return (D,) the numbers of doubtful tokens, and (D, F) their features, the first of which is the mean log-odds.

    `softs` are the soft labels of each tagger, `soft` is their mean; `labels` are those that features tell apart.
    """
    chances = 1.0 - soft.values[:, 0]
    tokens = np.flatnonzero((chances > LEAST) & (chances < MOST))
    odds = to_log_odds(chances)
    voices = np.stack([to_log_odds(1.0 - each.values[tokens, 0]) for each in softs], axis=1)
    bounds = np.array(index.bounds)
    owner = np.searchsorted(bounds, tokens, side="right") - 1
    columns = [odds[tokens, None], voices, voices.min(axis=1, keepdims=True), voices.max(axis=1, keepdims=True)]
    places = {step: tokens + step for step in range(-REACH, REACH + 1)}
    inside = {step: (place >= bounds[owner]) & (place < bounds[owner + 1]) for step, place in places.items()}
    outside = np.log(SUREST)
    for step in (-1, 1, -2, 2, -3, 3):
        columns.append(np.where(inside[step], odds[np.where(inside[step], places[step], 0)], outside)[:, None])
    known = [soft.labels.index(name) if name in soft.labels else -1 for name in ("O", *labels)]
    for step in (0, -1, 1):
        near = soft.values[np.where(inside[step], places[step], 0)]
        shares = np.stack([near[:, column] if column >= 0 else np.zeros(len(near)) for column in known], axis=1)
        columns.append(np.sqrt(np.maximum(shares, 0.0)) * inside[step][:, None])
    likely = np.concatenate([[0], np.cumsum(chances > 0.5)])
    share = SHARE * (likely[bounds[1:]] - likely[bounds[:-1]]) / np.maximum(np.diff(bounds), 1)
    return tokens, np.concatenate([*columns, _same_word(index, odds, tokens), share[owner, None]], axis=1)


def _same_word(index: TokenIndex, odds: Floats, tokens: Ints) -> Floats:
    """Return (D, 4) of each token's word in its note: frequency, if once, mean odds of its others, highest of all."""
    group, count = np.full(len(odds), -1), 0  # the number of the word in its note, for words of doubtful tokens
    begins = np.searchsorted(tokens, index.bounds).tolist()
    for number, (first, end) in enumerate(pairwise(index.bounds)):
        if begins[number] == begins[number + 1]:
            continue
        words = [word.lower() for word in index.docs[number].words()]
        numbers: dict[str, int] = {}
        for token in tokens[begins[number] : begins[number + 1]].tolist():
            numbers.setdefault(words[token - first], count + len(numbers))
        group[first:end] = [numbers.get(word, -1) for word in words]
        count += len(numbers)
    held = np.flatnonzero(group >= 0)
    times, sums = np.bincount(group[held], minlength=count), np.bincount(group[held], odds[held], count)
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, group[held], odds[held])
    word = group[tokens]
    others = times[word] - 1
    mean = np.where(others > 0, (sums[word] - odds[tokens]) / np.maximum(others, 1), 0.0)
    often = np.minimum(times[word], MANY) / MANY
    return np.stack([often, others == 0, mean, np.where(others > 0, highest[word], 0.0)], axis=1)


def with_odds(soft: Soft, tokens: Ints, odds: Floats) -> Soft:
    """Return soft labels (N, L) with these log-odds (D,) of an identifier for tokens (D,); types keep their shares."""
    before, after = 1.0 - soft.values[tokens, 0], 1.0 / (1.0 + np.exp(-odds))
    values = soft.values.copy()
    values[tokens, 1:] *= (after / before)[:, None]
    values[tokens, 0] = 1.0 - after
    return Soft(soft.labels, values)


def to_log_odds(chances: Floats) -> Floats:
    """Return the log-odds of chances, clipped to stay finite."""
    held = np.clip(chances, SUREST, 1.0 - SUREST)
    return np.asarray(np.log(held) - np.log1p(-held))
