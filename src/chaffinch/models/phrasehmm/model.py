"""A trained phrase HMM: its readings of sentences, and storage.

T segments, D domains, K states, B sentences, N words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import DataError, ModelError
from chaffinch.kernels import Floats, Ints, forward_backward, log_partition, viterbi
from chaffinch.models.phrasehmm.chain import PhraseTables, batch_of, expand, select_sentences
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.encoding import (
    Allowed,
    Sentence,
    Symbols,
    Text,
    check,
    free,
    states_with_labels,
    text_of,
)
from chaffinch.models.phrasehmm.states import ANY, ARGUMENT, NULL, POSITIVE, States


class PhraseReading(NamedTuple):
    """A model's reading of a sentence; the deciding model is the positive one, or with `combined` the combined one."""

    positive: float  # log P(words | positive model); -inf if it has no path
    null: float  # log P(words | null model)
    labels: tuple[int, ...]  # (T,) along the best path of the deciding model
    extracted: bool  # whether the relation is found: both conditions, or only the path of the combined model
    log_confidence: float  # of that path: log of its share of all paths
    log_label_posterior: float  # of those labels: log of the share of all paths that have them
    odds: float  # (positive - null) per segment
    chances: Floats  # (T, D) probability of each segment being an argument of each domain, in the deciding model
    arguments: tuple[tuple[bool, ...], ...] = ()  # (T,) the words of the arguments, where states have chains of words

    @property
    def confidence(self) -> float:
        """Return the best path's share of the probability of all paths, from 0 (there is none) to 1."""
        return float(np.exp(self.log_confidence))


class _Side(NamedTuple):
    """One sub-model's reading of sentences."""

    log_z: Floats  # (B,) with the chance of the sub-model
    score: Floats  # (B,) of the best path
    path: Ints  # (N,) expanded states of the best path, -1 where there is none
    states: Floats  # (N, D) chances of domains at each word


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained phrase HMM: states, symbols, tables, and the held-out log P(labels | words) of training."""

    config: PhraseHMM
    states: States
    symbols: Symbols
    tables: PhraseTables
    held_out: Floats = field(default_factory=lambda: np.zeros(0))  # at the start and after each epoch, if any was tried
    kept: int = 0  # epochs of discriminative training that were kept

    @property
    def domains(self) -> tuple[str, ...]:
        """Return the names of the relation's domains; domain a has the label `1 << a`."""
        return self.states.domains

    @property
    def log_priors(self) -> Floats:
        """Return (2,) the log-probabilities of the positive and the null model; -inf for an absent one."""
        start = np.exp(self.tables.moves[-1, :-1])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log([start[self.states.sub == sub].sum() for sub in (POSITIVE, NULL)]))

    def text(self, sentences: Sequence[Sentence]) -> Text:
        """Return the sentences as arrays of this model's symbols; DataError if their fields do not fit together."""
        check(sentences, len(self.domains))
        return text_of(sentences, self.states, self.symbols, masked=self.config.entities)

    def read(self, sentence: Sentence) -> PhraseReading:
        """Return the reading of one sentence; its labels are ignored; DataError if its fields do not fit."""
        return self.readings([sentence])[0]

    def readings(self, sentences: Sequence[Sentence]) -> list[PhraseReading]:
        """Return each sentence's reading: labels, chances, log-odds; given labels are ignored; DataError if unfit."""
        if not sentences:
            return []
        text = self.text(sentences)
        sides = [self._side(text, sub) for sub in (POSITIVE, NULL)]
        labels, best, total, chances = self._decide(text, *sides)
        clamp = states_with_labels(self.states, text.with_labels(labels), ANY if self.config.combined else POSITIVE)
        logs = np.stack([best, self._log_z(text, clamp)]) - np.where(np.isfinite(total), total, 0.0)
        known = np.stack([side.log_z for side in sides]) - self.log_priors[:, None]
        inner = sides[POSITIVE].path % self.states.inner
        out = []
        for b, sentence in enumerate(sentences):
            begin, end = int(text.bounds[b]), int(text.bounds[b + 1])
            firsts = begin + np.flatnonzero(text.first[begin:end])
            segment_labels = tuple(labels[firsts].tolist())
            inside = _arguments(sentence, segment_labels, inner[begin:end]) if self.states.unlabelled_inner else ()
            out.append(self._reading(segment_labels, known[:, b], logs[:, b], chances[firsts], inside))
        return out

    def _reading(
        self,
        labels: tuple[int, ...],
        known: Floats,
        logs: Floats,
        chances: Floats,
        inside: tuple[tuple[bool, ...], ...],
    ) -> PhraseReading:
        """Return one reading; extracted if all domains have labels and, unless combined, positive leads by enough."""
        positive, null = known.tolist()
        gap = _gap(positive, null)
        complete = bool(labels) and int(np.bitwise_or.reduce(labels)) == self.states.all_domains
        extracted = complete and (self.config.combined or gap > self.config.threshold)
        odds = gap / max(len(labels), 1)
        return PhraseReading(positive, null, labels, extracted, float(logs[0]), float(logs[1]), odds, chances, inside)

    def pair_score(self, sentence: Sentence, labels: Sequence[int]) -> float:
        """Return log P(words, these labels | positive model) - log P(words | null model); -inf without a path."""
        return float(self.pair_scores([sentence._replace(labels=tuple(labels))])[0])

    def pair_scores(self, sentences: Sequence[Sentence]) -> Floats:
        """Return `pair_score` of each sentence with its labels (B,); -inf where the positive model has no such path."""
        text = self.text(sentences)
        if len(text.bounds) == 1:
            return np.zeros(0)
        null = self._log_z(text, free(self.states, text, NULL))
        known = states_with_labels(self.states, text, POSITIVE, lenient=True)
        return np.asarray(self._log_z(text, known) - null - self.log_priors[POSITIVE] + self.log_priors[NULL])

    def _log_z(self, text: Text, allowed: Allowed) -> Floats:
        """Return (B,) log-likelihoods over allowed states, sub-model's probability included; -inf without a path."""
        out = np.full(len(text.bounds) - 1, -np.inf)
        where = np.flatnonzero(allowed.possible)
        if len(where):
            out[where] = log_partition(batch_of(self.tables, *select_sentences(text, allowed, where)))
        return out

    def _side(self, text: Text, sub: int) -> _Side:
        """Return by one sub-model scores (-inf: no path), best expanded states, chances of domains (0 if null)."""
        B, N, D = len(text.bounds) - 1, len(text.first), len(self.domains)
        side = _Side(np.full(B, -np.inf), np.full(B, -np.inf), np.full(N, -1), np.zeros((N, D)))
        allowed = free(self.states, text, sub)
        where = np.flatnonzero(allowed.possible)
        if not len(where):
            return side
        part, active = select_sentences(text, allowed, where)
        batch = batch_of(self.tables, part, active, expand(self.tables))
        post, path = forward_backward(batch, pairs=False), viterbi(batch)
        words = np.repeat(allowed.possible, np.diff(text.bounds))
        side.log_z[where], side.score[where], side.path[words] = post.log_z, path.score, path.states
        if sub == POSITIVE:
            label = np.repeat(self.states.label, self.states.inner)[
                active.cells % (self.states.size * self.states.inner)
            ]
            word = np.repeat(np.arange(len(part.first)), active.widths)
            for domain in range(D):
                mine = np.where(label >> domain & 1, post.states, 0.0)
                side.states[words, domain] = np.bincount(word, mine, len(part.first))
        return side

    def _decide(self, text: Text, positive: _Side, null: _Side) -> tuple[Ints, Floats, Floats, Floats]:
        """Return (labels (N,), best and total scores (B,), chances (N, D)); if combined, null may win: no labels."""
        half = self.states.size * self.states.inner
        state = np.where(positive.path < 0, 0, positive.path % half) // self.states.inner
        labels = np.where(positive.path < 0, 0, self.states.label[state])
        if not self.config.combined:
            return labels, positive.score, positive.log_z, positive.states
        lengths = np.diff(text.bounds)
        labels = np.where(np.repeat(null.score > positive.score, lengths), 0, labels)
        total = np.logaddexp(positive.log_z, null.log_z)
        share = np.exp(np.where(np.isfinite(total), positive.log_z - total, -np.inf))
        chances = positive.states * np.repeat(share, lengths)[:, None]
        return labels, np.maximum(positive.score, null.score), total, chances

    def state(self) -> State:
        """Return everything except the config, for a model file."""
        arrays: dict[str, NDArray[Any]] = {
            "states": self.states.array(), "inner_states": np.array([self.states.unlabelled_inner]),
            "moves": self.tables.moves, "inner": self.tables.inner, "held_out": self.held_out,
            "kept": np.array([self.kept]),
        }  # fmt: skip
        strings = {"types": self.states.types, "domains": self.states.domains, "kinds": self.symbols.kinds}
        for kind, names, table in zip(*self.symbols, self.tables.emissions, strict=True):
            strings[f"symbols.{kind}"], arrays[f"emissions.{kind}"] = names, table
        return State(arrays, strings)

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; ModelError if its parts are missing or do not fit together."""
        arrays, strings = state.arrays, state.strings
        try:
            config = PhraseHMM(**state.config)
            types, domains, kinds = (tuple(strings[name]) for name in ("types", "domains", "kinds"))
            sub, kind, label, zone = np.asarray(arrays["states"], np.int64).reshape(-1, 4).T
            states = States(types, domains, sub, kind, label, zone, int(arrays["inner_states"][0]))
            symbols = Symbols(kinds, tuple(tuple(strings[f"symbols.{name}"]) for name in kinds))
            emissions = tuple(np.asarray(arrays[f"emissions.{name}"], float) for name in kinds)
            tables = PhraseTables(np.asarray(arrays["moves"], float), np.asarray(arrays["inner"], float), emissions)
            held_out = np.asarray(arrays["held_out"], float)
            model = cls(config, states, symbols, tables, held_out, int(arrays["kept"][0]))
            wanted = PhraseTables.zeros(states, symbols.sizes)
        except (KeyError, TypeError, IndexError, ValueError):
            raise ModelError("its settings cannot be read; it was made by another version, train it again") from None
        if [table.shape for table, _ in tables.rows()] != [table.shape for table, _ in wanted.rows()]:
            raise ModelError("its tables do not fit its states and words; copy the file again, or train it again")
        return model


def _gap(positive: float, null: float) -> float:
    """Return the positive model's log-likelihood less the null model's, perhaps ±inf; 0 if neither has a path."""
    return float(positive - null) if max(positive, null) > -np.inf else 0.0


def _arguments(sentence: Sentence, labels: Sequence[int], inner: Ints) -> tuple[tuple[bool, ...], ...]:
    """Return for each segment which of its words are in the argument's inner state; all False if unlabelled."""
    out, first = [], 0
    for label, part in zip(labels, sentence.words, strict=True):
        word_states = inner[first : first + len(part)]
        out.append(tuple((word_states == ARGUMENT).tolist()) if label else (False,) * len(part))
        first += len(part)
    return tuple(out)


def check_domains(domains: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the domains as a tuple; raise DataError unless there are 1 to 8."""
    if not 1 <= len(domains) <= 8:
        raise DataError(f"a relation has 1 to 8 domains, got {len(domains)}")
    return tuple(domains)
