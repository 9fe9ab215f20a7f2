"""Training of the second stage over taggers (`deid.detect.voices.stacking`) on notes that they did not learn from.

    notes by source  →  taggers of the other folds read each fold  →  doubtful tokens  →  a net with one hidden layer

N tokens, D doubtful ones, F features, H hidden units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chaffinch.checks import check_fractions, check_wholes
from chaffinch.deid.detect import cues, token_scores
from chaffinch.deid.detect.model import Model, upper_if_caseless
from chaffinch.deid.detect.token_scores import Flags, TokenIndex
from chaffinch.deid.detect.voices.stacking import Stack, doubtful_tokens
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.training.learn import GOLD
from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.text import Document, Soft
from chaffinch.text.view import ShownDocument

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # of Adam, as published (Kingma and Ba 2015)


@dataclass(frozen=True, slots=True)
class StackLesson:
    """How the net learns: by Adam, in steps that fall to 0."""

    nets: int = 3  # which start elsewhere, and are averaged, so that less depends on the seed
    hidden: int = 32  # of each net; 16 are as good on dev writers, without a hidden layer there is hardly a gain
    epochs: int = 12
    batch: int = 512
    rate: float = 0.002
    decay: float = 0.001  # of the weights, in every step
    dropout: float = 0.1  # of hidden units
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError for a size that is not positive, or a share that is not between 0 and 1."""
        check_wholes(self, "nets", "hidden", "epochs", "batch", least=1)
        check_fractions(self, "rate", "decay", "dropout")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StackSample:
    """Doubtful tokens of notes, as taggers read them that did not learn from these notes."""

    rows: Floats  # (D, F)
    gold: Flags  # (D,)


def stack_sample(
    model: Model, docs: Iterable[Document], labels: Sequence[str], lists: WordLists | None = None
) -> StackSample:
    """Return doubtful tokens of documents with a layer "gold", new to the model that reads them; DataError if none."""
    parts = [_read(model, list(part), labels, lists or word_lists()) for part in batches(docs, BATCH_TOKENS)]
    if not parts:
        raise DataError("there are no notes for the second stage to learn from; give notes with a gold layer")
    return StackSample(np.concatenate([part.rows for part in parts]), np.concatenate([part.gold for part in parts]))


def _read(model: Model, docs: Sequence[Document], labels: Sequence[str], lists: WordLists) -> StackSample:
    """Return the doubtful tokens of a batch of documents."""
    shown = [ShownDocument.of(replace(doc, layers={GOLD: tuple(doc.layer(GOLD))})).shown for doc in docs]
    bare = (replace(doc, layers={}) for doc in shown)
    prepared = list(cues.with_cues(map(upper_if_caseless, bare) if model.rules else bare, lists))
    index = TokenIndex.of(prepared)
    softs = []
    for tagger in model.taggers:
        rows = [rows for _, rows in tagger.read(prepared)]
        softs.append(Soft(("O", *tagger.labels), np.concatenate(rows)))
    tokens, features = doubtful_tokens(index, softs, token_scores.mean(softs), labels)
    return StackSample(features, index.flags([doc.layer(GOLD) for doc in shown])[tokens])


def fit_stack(
    samples: Sequence[StackSample], labels: Sequence[str], taggers: int, lesson: StackLesson | None = None
) -> Stack:
    """Fit a stack on doubtful tokens, the mean of the lesson's nets; DataError if all are identifiers, or none."""
    plan = lesson or StackLesson()
    rows = np.concatenate([sample.rows for sample in samples])
    gold = np.concatenate([sample.gold for sample in samples]).astype(np.float64)
    if not 0 < gold.sum() < len(gold):
        raise DataError("the doubtful words of the notes are all identifiers or none; give more notes")
    centre, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-3  # a feature that never varies adds nothing
    scaled = (rows - centre) / scale
    nets = [_fit_net(scaled, rows[:, 0], gold, plan, number) for number in range(plan.nets)]
    inner, bias, outer, offset = (
        np.concatenate([net.weights[part] for net in nets], axis=-1) for part in range(len(nets[0].weights))
    )
    mean = (outer / plan.nets, np.array([offset.mean()]))
    return Stack(tuple(labels), taggers, centre, scale, inner, bias, *mean)


@dataclass(slots=True)
class _Net:
    """The weights of a net while it learns, and what Adam remembers of their gradients."""

    weights: list[Floats]  # inner (F, H), bias (H,), outer (H,), offset (1,)
    firsts: list[Floats]
    seconds: list[Floats]
    steps: int = 0

    @classmethod
    def draw(cls, features: int, hidden: int, rng: np.random.Generator) -> _Net:
        """Return a net with small random weights, which adds nothing at first."""
        inner = rng.normal(0.0, np.sqrt(1.0 / features), (features, hidden))
        weights = [inner, np.zeros(hidden), np.zeros(hidden), np.zeros(1)]
        return cls(weights, [np.zeros_like(part) for part in weights], [np.zeros_like(part) for part in weights])

    def gradients(self, rows: Floats, odds: Floats, gold: Floats, kept: Floats) -> list[Floats]:
        """Return the gradients of the mean log-loss on tokens (B, F); `kept` (B, H) is 0 for units left out."""
        inner, bias, outer, offset = self.weights
        hidden = np.maximum(rows @ inner + bias, 0.0) * kept
        chances = 1.0 / (1.0 + np.exp(-np.clip(odds + hidden @ outer + offset, -50.0, 50.0)))
        error = (chances - gold) / len(gold)
        back = error[:, None] * outer * kept * (hidden > 0)
        return [rows.T @ back, back.sum(axis=0), hidden.T @ error, np.array([error.sum()])]

    def step(self, gradients: Sequence[Floats], rate: float, decay: float) -> None:
        """Move the weights by one step of Adam with decoupled decay (Loshchilov and Hutter 2019)."""
        self.steps += 1
        for number, slope in enumerate(gradients):
            self.firsts[number] = _FIRST * self.firsts[number] + (1.0 - _FIRST) * slope
            self.seconds[number] = _SECOND * self.seconds[number] + (1.0 - _SECOND) * slope**2
            first = self.firsts[number] / (1.0 - _FIRST**self.steps)
            second = self.seconds[number] / (1.0 - _SECOND**self.steps)
            moved = first / (np.sqrt(second) + _TINY) + decay * self.weights[number]
            self.weights[number] = self.weights[number] - rate * moved


def _fit_net(rows: Floats, odds: Floats, gold: Floats, lesson: StackLesson, number: int) -> _Net:
    """Return a net fitted on scaled features (D, F) and mean log-odds (D,)."""
    rng = np.random.default_rng([lesson.seed, number])
    net = _Net.draw(rows.shape[1], lesson.hidden, rng)
    total = lesson.epochs * -(-len(gold) // lesson.batch)
    for chosen in _minibatches(len(gold), lesson, rng):
        kept = (rng.random((len(chosen), lesson.hidden)) >= lesson.dropout) / (1.0 - lesson.dropout)
        rate = lesson.rate * (1.0 - net.steps / total)
        net.step(net.gradients(rows[chosen], odds[chosen], gold[chosen], kept), rate, lesson.decay)
    return net


def _minibatches(size: int, lesson: StackLesson, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield the numbers of tokens batch by batch, shuffled in every epoch."""
    for _ in range(lesson.epochs):
        order = rng.permutation(size)
        yield from (order[start : start + lesson.batch] for start in range(0, size, lesson.batch))
