"""A linear chain over sparse features: training its weights, rounding them, and decoding with them.

N tokens with pads between sentences, K states, R weight rows of W columns, F features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import check_forms
from chaffinch.errors import ConfigError, ModelError
from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import COUNT, Vocabulary
from chaffinch.kernels import linear
from chaffinch.kernels.lattice import Batch
from chaffinch.kernels.linear import Learner, Objective, Places, Singles, SparseInput, States, Steps, Target, Weights
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.sparse_weights import SparseWeights

Arrays: TypeAlias = dict[str, NDArray[Any]]
Goal: TypeAlias = Objective | Literal["lbfgs"]  # online, or the likelihood of all sentences at once

WORD_KINDS = (1, 2)  # kinds of features that identify the word: drop-out hides these
LONGEST = 1_000  # longer sentences are cut for training: a step's memory grows with the tokens of its sentence
TILE = 8_000  # tokens whose potentials are in memory at once; larger needs more memory and leaves the cache
BLOCK = 20_000  # weight rows rounded at a time, so that rounding needs no second table
NGRAM_COLUMNS = 2  # the first columns are bigrams and trigrams, hidden with any of their words


class Schedule(Protocol):
    """The training settings that a learner needs."""

    @property
    def objective(self) -> Goal:
        """Return what training maximises: pa, crf, adagrad or lbfgs."""

    @property
    def epochs(self) -> int:
        """Return how often training walks over all sentences, at most."""

    @property
    def aggressiveness(self) -> float:
        """Return the largest step of a passive-aggressive update."""

    @property
    def rate(self) -> float:
        """Return the learning rate of gradient steps."""

    @property
    def violator(self) -> str:
        """Return which wrong reading an update compares with: best, second or cost."""

    @property
    def dropout(self) -> float:
        """Return the share of tokens whose words are hidden in an epoch."""

    @property
    def seed(self) -> int:
        """Return the seed of shuffling and dropout."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linear:
    """A linear chain: labels, features and their weights; those of a loaded chain are sparse."""

    labels: Labels
    vocabulary: Vocabulary
    stored: Weights | SparseWeights

    @property
    def weights(self) -> Weights:
        """Return the weights of all features, in rows as the vocabulary numbers them; of a loaded chain, a copy."""
        return self.stored.dense() if isinstance(self.stored, SparseWeights) else self.stored

    def row(self, feature: int, number: int) -> Singles:
        """Return (W,) a weight row of a feature; its first row is number 0."""
        if isinstance(self.stored, SparseWeights):
            return self.stored.table().row(feature, number)
        first = (int(self.vocabulary.rows[feature]) + number) * self.labels.states.W
        return self.stored.rows[first : first + self.labels.states.W]

    def view(
        self, seen: Observed, columns: Sequence[Column], bias: Mapping[str, float] | None = None
    ) -> tuple[SparseInput, Weights]:
        """Return the observations as numbers of weight rows, and the table of these rows, with `bias` added by label.

        The rows of a loaded chain are numbered as they are first used, not as its vocabulary does.
        """
        if isinstance(self.stored, SparseWeights):
            table = self.stored.table()
            view = self.vocabulary.view(seen, columns, table.place)
            return view, self._add_bias(table.weights, bias)
        return self.vocabulary.view(seen, columns), self._add_bias(self.stored, bias)

    def decode(self, seen: Observed, columns: Sequence[Column], bias: Mapping[str, float] | None = None) -> Places:
        """Return (N,) the best state of every token by its features, `bias` added by label; 0 at pads."""
        return linear.decode(*self.view(seen, columns, bias), self.labels.states)

    def batch(
        self, seen: Observed, columns: Sequence[Column], bias: Mapping[str, float] | None = None, *, scale: float = 1.0
    ) -> Batch:
        """Return the sentences as lattices, with `bias` added by label, then log-potentials times `scale`."""
        return linear.batch(*self.view(seen, columns, bias), self.labels.states, scale=scale)

    def batches(
        self,
        seen: Observed,
        columns: Sequence[Column],
        bias: Mapping[str, float] | None = None,
        *,
        scale: float = 1.0,
        by_word: bool = False,
    ) -> Iterator[Batch]:
        """Yield what `batch` returns in parts, each of whole sentences with about `TILE` tokens.

        `by_word` says that the features of a type are those that `observe` gives its word, so that sums can be kept.
        """
        view, weights, by_type = self._view_and_sums(seen, columns, bias, by_word)
        for part in _tiles(view):
            yield linear.batch(part, weights, self.labels.states, scale=scale, by_type=by_type)

    def decode_with_batches(
        self, seen: Observed, columns: Sequence[Column], *, scale: float = 1.0, by_word: bool = False
    ) -> tuple[Places, Iterator[Batch]]:
        """Return what `decode` and `batches` do; the features are looked up once."""
        view, weights, by_type = self._view_and_sums(seen, columns, None, by_word)
        states = self.labels.states
        tiles = (linear.batch(part, weights, states, scale=scale, by_type=by_type) for part in _tiles(view))
        return linear.decode(view, weights, states, by_type=by_type), tiles

    def _view_and_sums(
        self, seen: Observed, columns: Sequence[Column], bias: Mapping[str, float] | None, by_word: bool
    ) -> tuple[SparseInput, Weights, Singles]:
        """Return what `view` does, and the summed scores of its types; of words that were read before, kept sums."""
        stored, states = self.stored, self.labels.states
        if by_word and isinstance(stored, SparseWeights):
            table = stored.table()

            def sum_types(types: NDArray[np.int64]) -> Singles:
                """Return the summed scores of some types."""
                return linear.sum_by_type(self.vocabulary.view_types(seen, types, table.place), table.weights, states)

            found = stored.words.look_up(seen, sum_types)
            if found is not None:
                view = self.vocabulary.view_tokens(seen, found[1][seen.types], columns, table.place)
                return view, self._add_bias(table.weights, bias), found[0]
        view, weights = self.view(seen, columns, bias)
        return view, weights, linear.sum_by_type(view, weights, states)

    def _add_bias(self, weights: Weights, bias: Mapping[str, float] | None) -> Weights:
        """Return the weights with each label's bias added to moves and beginnings into its states ("O": outside)."""
        if not bias:
            return weights
        tags = np.array([bias.get(tag[2:] or "O", 0.0) for tag in self.labels.tags], np.float32)
        states = self.labels.states
        moves = weights.moves.reshape(states.K + 2, states.W).copy()
        moves[: states.K + 1, : states.K] += tags[self.labels.tag_of]
        return Weights(weights.rows, moves.ravel())

    def expand_to(self, labels: Labels, vocabulary: Vocabulary) -> Weights:
        """Return these weights in the layout of larger `labels` and `vocabulary`; 0 for what these add."""
        old, new = self.labels, labels
        where = np.array([new.tags.index(tag) for tag in old.tags])
        state = np.arange(old.states.K)
        if old is not new and (old.tags, old.subs) != (new.tags, new.subs):
            state = np.array([new.state_of[where[a], where[b]] for a, b in _pairs(old)])
        columns = state if not old.pairs else np.concatenate([state, new.states.K + where])
        size = old.states.K + len(old.tags) * old.pairs
        rows, weights = np.zeros((vocabulary.height, new.states.W), np.float32), self.weights
        found = vocabulary.find(self.vocabulary.keys)
        count = COUNT[self.vocabulary.kinds].astype(np.int64)
        first = np.repeat(vocabulary.rows[found] - self.vocabulary.rows[:-1], count)
        places = first + np.arange(self.vocabulary.height)
        rows[places[:, None], columns] = weights.rows.reshape(-1, old.states.W)[:, :size]
        moves = new.states.moves.reshape(new.states.K + 2, -1).copy()
        edges = np.append(state, [new.states.K, new.states.K + 1])
        moves[edges[:, None], state] = weights.moves.reshape(old.states.K + 2, -1)[:, : old.states.K]
        return Weights(rows.ravel(), moves.ravel())

    def arrays(self) -> Arrays:
        """Return the features' keys and kinds, the weights that are not 0, row by row, and moves, for a model file."""
        W, stored = self.labels.states.W, self.stored
        if isinstance(stored, SparseWeights):
            sizes, columns, values = stored.sizes, stored.columns, stored.values
        else:
            table = stored.rows.reshape(-1, W)
            row, column = np.nonzero(table)
            number = np.uint16 if W > 255 else np.uint8
            sizes, columns = np.bincount(row, minlength=len(table)).astype(number), column.astype(number)
            values = table[row, column].astype(np.float16)
        kept: Arrays = {"keys": self.vocabulary.keys, "kinds": self.vocabulary.kinds}
        return {**kept, "sizes": sizes, "columns": columns, "values": values, "moves": stored.moves}

    @classmethod
    def of(cls, labels: Labels, arrays: Mapping[str, NDArray[Any]]) -> Linear:
        """Return the linear model of such arrays; ModelError if they do not fit the labels or each other."""
        moves = labels.states.moves
        try:
            check_forms(arrays, keys="u8", kinds="u1", values="f", moves="f")
            vocabulary = Vocabulary(arrays["keys"], arrays["kinds"])
            fits = len(arrays["moves"]) == len(moves) and len(arrays["keys"]) == len(arrays["kinds"])
            fits = (
                fits
                and arrays["moves"].max(initial=0) < np.inf
                and np.isneginf(arrays["moves"][moves == -np.inf]).all()
            )
            if fits:
                return cls(labels, vocabulary, SparseWeights.of(vocabulary, labels.states.W, arrays))
        except (KeyError, IndexError):
            pass
        raise ModelError("its weights do not fit its labels; copy the file again, or retrain the model")


def _tiles(view: SparseInput) -> Iterator[SparseInput]:
    """Yield the observations of consecutive sentences of about `TILE` tokens each."""
    before = np.concatenate([[0], np.cumsum((view.ends - view.begins).astype(np.int64))])
    cuts = np.unique(np.searchsorted(before, np.arange(0, before[-1] + TILE, TILE)))
    for first, end in pairwise(np.minimum(cuts, len(before) - 1).tolist()):
        yield view._replace(begins=view.begins[first:end], ends=view.ends[first:end])


def _pairs(labels: Labels) -> list[tuple[int, int]]:
    """Return (previous tag, tag) of every state; without pairs as states, the first tag that may come before."""
    before = [int(np.flatnonzero((labels.state_of == state).any(axis=1))[0]) for state in range(labels.states.K)]
    return list(zip(before, labels.tag_of.tolist(), strict=True))


Watch: TypeAlias = Callable[[int, float, Learner], bool]  # epoch, loss, learner; True to stop


def train(
    view: SparseInput,
    kinds: NDArray[np.uint8],
    target: Target,
    learner: Learner,
    schedule: Schedule,
    watch: Watch | None = None,
) -> Weights:
    """Return averaged weights after all epochs, sentences shuffled, words dropped; `watch` returns True to stop.

    `kinds` are those of the listed features. With drop-out, in every epoch a random share of tokens is read as unknown
    words: without the features that identify the word, and without the n-grams it is part of.
    """
    rng = np.random.default_rng(schedule.seed)
    view = _in_pieces(view, target, learner.states)
    both = _with_twins(view, np.isin(kinds, WORD_KINDS)) if schedule.dropout else view
    for epoch in range(schedule.epochs):
        seen = _hide(both, rng.random(len(view.types)) < schedule.dropout) if schedule.dropout else view
        loss = learner.walk(seen, target, rng.permutation(len(view.begins)))
        if watch is not None and watch(epoch, loss, learner):
            break
    return learner.finish()


def _in_pieces(view: SparseInput, target: Target, states: States) -> SparseInput:
    """Return the view with sentences over `LONGEST` tokens cut, where one tag may end and another begin a sentence."""
    if view.longest <= LONGEST:
        return view
    moves = np.isfinite(states.moves.reshape(states.K + 2, states.W))
    known = np.maximum(target.gold, 0)
    free = target.gold < 0
    ends, starts = free | moves[states.K + 1, known], free | moves[states.K, known]
    pieces: list[tuple[int, int]] = []
    for first, end in zip(view.begins.tolist(), view.ends.tolist(), strict=True):
        cuts = [first]
        for n in (first + 1 + np.flatnonzero(ends[first : end - 1] & starts[first + 1 : end])).tolist():
            if n - cuts[-1] >= LONGEST // 2 and end - cuts[-1] > LONGEST:
                cuts.append(n)
        pieces += pairwise([*cuts, end])
    begins, stops = np.array(pieces, np.int32).T
    return view._replace(begins=np.ascontiguousarray(begins), ends=np.ascontiguousarray(stops))


def learner_for(height: int, labels: Labels, schedule: Schedule) -> Learner:
    """Return a learner for `height` weight rows by the schedule; ConfigError for the objective lbfgs."""
    violator = schedule.violator
    steps = Steps(schedule.aggressiveness, schedule.rate, violator == "cost", violator == "second", labels.moves)
    if schedule.objective == "lbfgs":
        raise ConfigError("objective 'lbfgs' learns from all sentences at once; use one of pa, crf, adagrad here")
    return Learner(height, labels.states, objective=schedule.objective, steps=steps)


def _with_twins(view: SparseInput, named: NDArray[np.bool_]) -> SparseInput:
    """Return the view with a twin v + V of each type v, without the features marked `named` that identify it."""
    kept = np.concatenate([[0], np.cumsum(~named)])
    twins = view.lists[-1] + kept[view.lists[1:]]
    arrays = [np.concatenate([array, array[~named]]) for array in (view.rows, view.first, view.width)]
    lists = np.concatenate([view.lists, twins]).astype(np.int32)
    return view._replace(lists=lists, rows=arrays[0], first=arrays[1], width=arrays[2])


def _hide(view: SparseInput, hidden: NDArray[np.bool_]) -> SparseInput:
    """Return the view with hidden tokens (N,) replaced by their twins, without n-grams that contain such tokens."""
    V = (len(view.lists) - 1) // 2
    columns = view.columns.copy()
    columns[hidden, :NGRAM_COLUMNS] = -1
    columns[:-1][hidden[1:], :NGRAM_COLUMNS] = -1
    columns[:-2][hidden[2:], 1:NGRAM_COLUMNS] = -1
    return view._replace(types=np.where(hidden, view.types + V, view.types).astype(np.int32), columns=columns)


def round_weights(labels: Labels, vocabulary: Vocabulary, weights: Weights, *, least: float) -> Linear:
    """Return the chain rounded as saved, without weights below `least` and unused features; overwrites `weights`."""
    W = labels.states.W
    table = weights.rows.reshape(-1, W)
    for first in range(0, len(table), BLOCK):
        rows = table[first : first + BLOCK]
        rows[np.abs(rows) < least] = 0.0
        rows[:] = rows.astype(np.float16)
    used = np.add.reduceat(table.any(axis=1), vocabulary.rows[:-1]) > 0 if len(vocabulary) else np.zeros(0, bool)
    kept = np.repeat(used, COUNT[vocabulary.kinds])
    smaller = Vocabulary(vocabulary.keys[used], vocabulary.kinds[used])
    return Linear(labels, smaller, Weights(np.ascontiguousarray(table[kept]).ravel(), weights.moves))


def drop_small_weights(part: Linear, least: float) -> Linear:
    """Return the part without weights below `least` and unused features; may overwrite the weights of `part`."""
    return round_weights(part.labels, part.vocabulary, part.weights, least=least)
