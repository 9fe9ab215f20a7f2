"""The two objectives of a class HMM as optimisation problems: states that generate words, or a CRF over states.

M tokens, V types, F features, R weight rows, Y states, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from chaffinch import languages
from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import COUNT, LEXICAL, Vocabulary
from chaffinch.features.word_types import IDENTITY, with_features
from chaffinch.kernels import Active, Floats, Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.classhmm.conditional import Conditional
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.generative import ClassLayout, Likelihood, Text
from chaffinch.models.classhmm.model import Model, Portrait, WordEmissions, feature_sets, matrix_of, round_to_float32
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.lbfgs import Function
from chaffinch.models.core.linear import round_weights
from chaffinch.models.core.resources import Resources, columns_of
from chaffinch.models.core.training import LEAST

SPREAD = 0.1  # standard deviation of first weights; 0 would leave all states of a class equal for good


class Problem(Protocol):
    """An optimisation problem: its objective, its first weights, and the model of given weights."""

    def objective(self, kappa: float, sentences: Bools | None = None) -> Function:
        """Return a function from weights to value and gradient, on some sentences or all."""
        ...

    def start(self, rng: np.random.Generator) -> Floats:
        """Return random first weights as one vector."""
        ...

    def model(self, x: Floats, trace: Sequence[float]) -> Model:
        """Return the model of those weights, rounded as it will be saved."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ground:
    """The common basis of both problems: documents, the allowed states of their tokens, and settings."""

    config: ClassHMM
    evidence: Evidence
    seen: Observed
    labels: Labels
    active: Active
    logs: Floats | None

    @classmethod
    def of(cls, config: ClassHMM, evidence: Evidence) -> Ground:
        """Observe the task's documents with the settings' features; derive states, and those each token may take."""
        plain, spc = evidence.plain, config.states_per_class
        subs = (config.outside_states or spc, *[spc] * (len(plain.tags) - 1))
        labels = Labels(plain.names, plain.scheme, subs=subs)
        seen = with_features(evidence.task.seen, config.features, languages.pack(config.language))
        return cls(config, evidence, seen, labels, *evidence.active(labels))

    def vocabulary(self, columns: Sequence[Column] = ()) -> Vocabulary:
        """Return the features that enough tokens of enough patients show; private models hide words in spans."""
        hidden = self.evidence.inside if self.config.private else None
        patients = self.evidence.task.patients
        return vocabulary.learn(
            self.seen, columns, patients=patients, hidden=hidden, cutoff=self.config.cutoff, floor=self.floor
        )

    @property
    def floor(self) -> int:
        """Return how many patients must have shown a feature."""
        return self.evidence.task.floor(self.config.floor)

    def problem(self, resources: Resources) -> Problem:
        """Return the optimisation problem of the configured objective: conditional (crf) or generative."""
        if self.config.objective == "crf":
            return Field.of(self, resources)
        return Generated.of(self)

    def tokens(self, sentences: Bools) -> tuple[Ints, Ints]:
        """Return the tokens of the sentences where the mask is True, and the bounds of those sentences among them."""
        lengths = np.diff(self.evidence.bounds)
        return np.flatnonzero(np.repeat(sentences, lengths)), np.concatenate([[0], np.cumsum(lengths[sentences])])

    def find_allowed_states(self, tokens: Ints) -> tuple[Active, Floats | None]:
        """Return the states that these tokens may take, and the log weights of their cells, None if all are 0."""
        active = Active(self.active.states, self.active.bounds, self.active.which[tokens])
        if self.logs is None:
            return active, None
        chosen = np.zeros(len(self.active.which), np.bool_)
        chosen[tokens] = True
        return active, self.logs[np.repeat(chosen, self.active.widths)]

    def first_weights(self, size: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Return random weights (rows, Y) near 0; exactly 0 for the state of a class that has only one."""
        several = np.bincount(self.labels.tag_of)[self.labels.tag_of] > 1
        return np.asarray(rng.normal(0.0, SPREAD, size) * several)

    def first_moves(self, moves: Floats) -> Floats:
        """Add 1, in place, to left-right moves if that is the topology; return the moves.

        The bonus is for going to the next state of the same class, and for entering a class at its first state.
        """
        Y, of = self.labels.states.K, self.labels.tag_of
        if self.config.topology == "left-right":
            following = np.flatnonzero(of[1:] == of[:-1])
            moves[following, following + 1] += 1.0
            first = np.diff(of, prepend=-1) > 0
            moves[Y, :Y][first] += 1.0
            for state in range(Y):
                moves[state, :Y][first & (of != of[state])] += 1.0
        return moves

    def base(self, trace: Sequence[float]) -> Model:
        """Return a model without weights, with `trace` as the course of its objective."""
        names, language = self.evidence.plain.names, self.config.language
        portrait = Portrait(np.zeros(self.labels.states.K), np.array(trace), np.zeros(0))
        model = Model(self.config, names, self.labels, languages.pack(language), portrait, floor=self.floor)
        return replace(model, pack_files=languages.files_to_bundle(language))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Generated:
    """The problem of states that generate words: types of words are sets of features."""

    ground: Ground
    vocabulary: Vocabulary
    matrix: csr_array  # (V, F)
    transposed: csr_array
    rows: Ints  # (M,)
    layout: ClassLayout

    @classmethod
    def of(cls, ground: Ground) -> Generated:
        """Learn the vocabulary, reduce tokens to sets of features, and return the generative problem."""
        config, labels = ground.config, ground.labels
        known = ground.vocabulary()
        sets, rows = _types(ground.seen, known, config.replicas, config.seed)
        matrix = matrix_of(sets, len(known))
        Y, finite = labels.states.K, np.isfinite(labels.states.moves.reshape(labels.states.K + 2, -1))
        moves = np.zeros((Y + 1, Y + 1), np.bool_)
        moves[: Y + 1, :Y], moves[:Y, Y] = finite[: Y + 1, :Y], finite[Y + 1, :Y]
        layout = ClassLayout.of(labels.tag_of, moves, shared=config.shared)
        return cls(ground, known, matrix, csr_array(matrix.T), rows, layout)

    def objective(self, kappa: float, sentences: Bools | None = None) -> Likelihood:
        """Return the penalised likelihood of some sentences, or of all, as a callable of the weights."""
        ground = self.ground
        chosen = np.ones(len(ground.evidence.bounds) - 1, np.bool_) if sentences is None else sentences
        untagged = chosen & ground.evidence.untagged
        named = np.isin(self.vocabulary.kinds, IDENTITY)
        penalty = np.where(named, kappa * ground.config.identity, kappa)
        return Likelihood(
            self.text(chosen & ~untagged), self.transposed, self.layout, ground.config.conditional, penalty, kappa,
            self.text(untagged) if untagged.any() else None, self.share(chosen, untagged),
        )  # fmt: skip

    def share(self, chosen: Bools, untagged: Bools) -> float:
        """Return an untagged sentence's weight, at most 1: in all, they weigh a set share of the tagged tokens."""
        lengths = np.diff(self.ground.evidence.bounds)
        few = self.ground.config.untagged * lengths[chosen & ~untagged].sum() / max(lengths[untagged].sum(), 1)
        return float(min(few, 1.0)) if (chosen & ~untagged).any() else 1.0

    def text(self, sentences: Bools) -> Text:
        """Return these sentences as input of the likelihood: feature sets, bounds and allowed states."""
        tokens, bounds = self.ground.tokens(sentences)
        return Text(self.matrix, self.rows[tokens], bounds, *self.ground.find_allowed_states(tokens))

    def start(self, rng: np.random.Generator) -> Floats:
        """Return random weights of states and zeros for classes, as one vector."""
        Y, objective = self.layout.Y, self.objective(0.0)
        parts = [np.zeros(size) for size in objective.sizes]
        parts[0] = self.ground.first_weights((len(self.vocabulary), Y), rng).ravel()
        moves = np.zeros((Y + 1, Y + 1))
        moves[:, :Y] = self.ground.first_weights((Y + 1, Y), rng)
        parts[2] = self.ground.first_moves(moves).ravel()
        return np.concatenate(parts)

    def model(self, x: Floats, trace: Sequence[float]) -> Model:
        """Return the model of those weights, rounded as it will be saved."""
        tables, _ = self.objective(0.0).tables(x)
        return replace(self.ground.base(trace), words=WordEmissions(self.vocabulary, round_to_float32(tables)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field:
    """The problem of a conditional random field over the states, with features in a word's context."""

    ground: Ground
    resources: Resources
    stops: NDArray[np.uint64]
    vocabulary: Vocabulary
    columns: list[Column]

    @classmethod
    def of(cls, ground: Ground, resources: Resources) -> Field:
        """Learn stop words and vocabulary, and return the conditional (crf) problem."""
        task = ground.evidence.task
        stops = window.stop_words(ground.seen, ground.evidence.inside, patients=task.patients, floor=ground.floor)
        columns = columns_of(ground.seen, task.docs, stops, (), resources)
        return cls(ground, resources, stops, ground.vocabulary(columns), columns)

    def objective(self, kappa: float, sentences: Bools | None = None) -> Conditional:
        """Return the penalised conditional likelihood of some sentences, or of all, as a callable of the weights."""
        ground, states = self.ground, self.ground.labels.states
        view, known = self.vocabulary.view(ground.seen, self.columns), (ground.active, ground.logs)
        if sentences is not None:
            view, known = (
                view.choose(np.flatnonzero(sentences)),
                ground.find_allowed_states(ground.tokens(sentences)[0]),
            )
        named = np.isin(self.vocabulary.kinds, list(LEXICAL - _AFFIXES))
        penalty = np.repeat(np.where(named, kappa * ground.config.identity, kappa), COUNT[self.vocabulary.kinds])
        penalty = np.append(penalty, np.full(states.K + 2, kappa))
        return Conditional(view, states, ground.labels.tag_of, *known, penalty, ground.config.shared)

    def start(self, rng: np.random.Generator) -> Floats:
        """Return random weights of states and zeros for classes, as one vector."""
        R, Y = self.vocabulary.height, self.ground.labels.states.K
        by_state = self.ground.first_weights((R + Y + 2, Y), rng)
        by_state[R:] = self.ground.first_moves(by_state[R:])
        C = int(self.ground.labels.tag_of.max()) + 1 if self.ground.config.shared else 0
        return np.append(by_state, np.zeros((R + Y + 2) * C))

    def model(self, x: Floats, trace: Sequence[float]) -> Model:
        """Return the model of these weights, rounded as it will be saved, the smallest dropped."""
        weights = self.objective(0.0).weights(x)
        crf = round_weights(self.ground.labels, self.vocabulary, weights, least=LEAST["crf"])
        return replace(self.ground.base(trace), crf=crf, stops=self.stops, resources=self.resources)


_AFFIXES = frozenset({window.PREFIX, window.SUFFIX, window.GRAM})


def _types(seen: Observed, known: Vocabulary, replicas: float, seed: int) -> tuple[list[tuple[int, ...]], Ints]:
    """Return distinct feature sets, and each token's set (M,); a share of words seen once are read as unknown.

    Of tokens whose word occurs once, the share `replicas` shows the features of an unknown word: all except its name.
    """
    sets, unknown = feature_sets(seen, known), feature_sets(seen, known, unknown=True)
    numbers: dict[tuple[int, ...], int] = {}
    set_of_type = np.array([numbers.setdefault(found, len(numbers)) for found in sets], np.int64)
    types = seen.types[seen.places].astype(np.int64)
    rows = set_of_type[types]
    alone = np.flatnonzero(np.bincount(types, minlength=len(sets))[types] == 1)
    for token in alone[np.random.default_rng(seed).random(len(alone)) < replicas].tolist():
        replica = unknown[types[token]]
        rows[token] = numbers.setdefault(replica, len(numbers))
    used, rows = np.unique(rows, return_inverse=True)
    listed = list(numbers)
    return [listed[number] for number in used.tolist()], rows
