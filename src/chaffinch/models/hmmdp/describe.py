"""Descriptions of a model's sub-tags, and of the path through them that explains a span.

Sub-tags are described by the generative chain: what they emit, follow and lead to. Paths and probabilities are those of
the whole model, with its discriminative stage if it has one.

S tags, Z states, V symbols, T tokens of one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from chaffinch.errors import DataError
from chaffinch.features.symbols import SIGNATURE, WORD
from chaffinch.kernels import Batch, Floats, Ints, Lattice
from chaffinch.models.core.runs import locate_span, spans_near
from chaffinch.models.hmmdp.emissions import BackOff
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.latent.describe_words import Lead, PathStep, Subtag, SubtagPath, Use, name_of
from chaffinch.models.latent.paths import AFTER, BEFORE, compare_readings, span_masks
from chaffinch.text import Document, Span

__all__ = ["Subtag", "SubtagPath", "Use", "explain", "subtags", "use"]

WORDS, SIGNATURES, NEIGHBOURS = 8, 4, 4  # most items listed per sub-tag
LEAST = 0.5  # least expected tokens of a listed symbol; a sub-tag with fewer tokens in all has no neighbours listed
SELDOM = 0.01  # neighbours with a smaller probability are not listed
IN_USE = 1.0  # tokens above which a sub-tag counts as used
BEGIN, END = "begin", "end"
TINY = sys.float_info.min  # divisor in place of a sum of 0


def subtags(model: Model) -> tuple[Subtag, ...]:
    """Return a description of every sub-tag, by tag: use, words, signatures, neighbours."""
    chain = _Chain.from_model(model)
    return tuple(chain.subtag(state) for state in range(len(chain.names)))


def use(model: Model) -> tuple[Use, ...]:
    """Return how each tag uses its sub-tags: their number, those in use, perplexity and tokens."""
    rows = []
    for tag, name in enumerate(model.labels.tags):
        mass = model.portrait.mass[model.labels.tag_of == tag]
        total = float(mass.sum())
        shares = mass[mass > 0] / total if total > 0 else np.ones(0)
        perplexity = float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0
        rows.append(Use(name, len(mass), int((mass > IN_USE).sum()), perplexity, total))
    return tuple(rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Chain:
    """The generative chain as probabilities."""

    model: Model
    names: tuple[str, ...]  # Z
    moves: Floats  # (Z+1, Z+1) row Z: the beginning; column Z: the end. Rows sum to 1
    uses: Floats  # (Z+1,) how often each row is used: tokens of a state; for the beginning, sentences

    @classmethod
    def from_model(cls, model: Model) -> _Chain:
        """Return a model's chain with transition rows scaled to sum to 1, names of states, and their expected uses."""
        tables, tag_of = model.tables, model.labels.tag_of
        rows = np.vstack([tables.trans, tables.start]), np.append(tables.end, -np.inf)[:, None]
        moves = np.exp(np.hstack(rows))
        moves /= np.maximum(moves.sum(axis=1, keepdims=True), TINY)
        numbers = np.arange(len(tag_of)) - np.searchsorted(tag_of, tag_of) + 1
        names = [name_of(model.labels.tags[tag], number) for tag, number in zip(tag_of, numbers.tolist(), strict=True)]
        sentences = float(model.portrait.mass @ moves[:-1, -1])
        return cls(model, tuple(names), moves, np.append(model.portrait.mass, sentences))

    def subtag(self, state: int) -> Subtag:
        """Return a state's description: use, words, signatures, neighbours (none if it is hardly used)."""
        model, mass, tag_of = self.model, self.model.portrait.mass, self.model.labels.tag_of
        tag = tag_of[state]
        words, signatures = self._symbols_of(state)
        flow = self.uses * self.moves[:, state]
        before = zip((*self.names, BEGIN), flow / max(flow.sum(), TINY), strict=True)
        total = max(float(mass[tag_of == tag].sum()), TINY)
        return Subtag(
            model.labels.tags[tag], state - int(np.searchsorted(tag_of, tag)) + 1, float(mass[state]),
            float(mass[state]) / total, _largest(words, WORDS, LEAST / max(mass[state], LEAST)),
            _largest(signatures, SIGNATURES, LEAST / max(mass[state], LEAST)),
            _largest(before, NEIGHBOURS, SELDOM) if mass[state] >= LEAST else (),
            _largest(self.leads(state), NEIGHBOURS, SELDOM) if mass[state] >= LEAST else (),
        )  # fmt: skip

    def leads(self, state: int) -> Iterator[tuple[str, float]]:
        """Return (tag or "end", probability that it follows the state) for every tag."""
        sums = np.bincount(np.append(self.model.labels.tag_of, len(self.model.labels.tags)), self.moves[state])
        return zip((*self.model.labels.tags, END), sums.tolist(), strict=True)

    def _symbols_of(self, state: int) -> tuple[Iterator[tuple[str, float]], Iterator[tuple[str, float]]]:
        """Return the words and the signatures of a state with their probabilities; symbol 0, any other, is left out."""
        model, symbols = self.model, self.model.symbols
        tables = [_probabilities(table[:, state].astype(float) / model.emissions.temper) for table in model.tables.emit]
        words, signatures = tables[0], tables[min(SIGNATURE, len(tables) - 1)]
        if isinstance(model.emissions, BackOff):
            words, signatures = words * tables[-1][0], signatures * tables[-1][1]
        elif len(tables) == 1:  # signatures come after the words of one table
            signatures = words[symbols.sizes[WORD] :]
        count = 1 + len(symbols.words)
        return zip(symbols.words, words[1:count], strict=True), zip(symbols.signatures, signatures[1:], strict=True)


def _probabilities(logs: Floats) -> Floats:
    """Return the probabilities, summing to 1, that are proportional to the exponentials of `logs`."""
    values = np.exp(logs - logs.max())
    return np.asarray(values / values.sum())


def _largest(items: Iterable[tuple[str, float]], most: int, least: float) -> tuple[tuple[str, float], ...]:
    """Return up to `most` items of the largest values, none below `least`; of equal ones the first."""
    kept = [(name, float(value)) for name, value in items if value >= least]
    return tuple(sorted(kept, key=lambda item: -item[1])[:most])


def explain(model: Model, doc: Document, span: Span) -> SubtagPath:
    """Return the best path through sub-tags that has a span, even if it does not win; DataError for unknown labels."""
    if span.label not in model.names:
        raise DataError(f"the model has no label {span.label!r}; it has {', '.join(model.names)}")
    category = span.label if model.config.rules is None else model.config.rules.category(span.label)
    seen, parts = model.batches([doc])
    sentence, offset, first, end = locate_span(doc, span, seen)
    lattice, labels = _sentence((batch for batch, _ in parts), sentence), model.labels
    size = end - first
    with_span, without = span_masks(labels, labels.names.index(category), offset, offset + size, len(lattice))
    path, other, chance, ratio = compare_readings(lattice, labels, with_span, without)
    shift = first - offset  # from tokens of the sentence to tokens of the document
    runs = [(a + shift, b + shift, name) for a, b, name in labels.runs(other.astype(np.int32))]
    runner_up = spans_near(doc, model.name_categories([doc], [runs])[0], first, end)
    window = range(max(offset - BEFORE, 0), min(offset + size + AFTER, len(path)))
    steps, leads = _path_steps(model, doc, path, window, shift)
    return SubtagPath(span, steps, leads, chance, runner_up, ratio, model.latent is not None)


def _sentence(batches: Iterable[Batch], number: int) -> Lattice:
    """Return the lattice of sentence `number` (from 0, over all batches); IndexError beyond the last."""
    for batch in batches:
        if number < len(batch):
            return batch[number]
        number -= len(batch)
    raise IndexError(number)


def _path_steps(
    model: Model, doc: Document, path: Ints, window: range, shift: int
) -> tuple[tuple[PathStep, ...], tuple[Lead, ...]]:
    """Return (steps of a sentence's path in a window, its sub-tags with the chance of the tag that follows).

    Token t of the sentence is token t + shift of the document.
    """
    chain, labels = _Chain.from_model(model), model.labels
    steps, onward = [], dict[int, dict[str, float]]()
    for t in window:
        state = int(path[t])
        tag = int(labels.tag_of[state])
        begin, stop = doc.tokens[t + shift].tolist()
        number = state - int(np.searchsorted(labels.tag_of, tag)) + 1
        steps.append(PathStep(" ".join(doc.text[begin:stop].split()), labels.tags[tag], number, begin, stop))
        if labels.subs[tag] > 1:
            next_tag = labels.tags[labels.tag_of[path[t + 1]]] if t + 1 < len(path) else END
            onward.setdefault(state, {})[next_tag] = dict(chain.leads(state))[next_tag]
    leads = [Lead(chain.subtag(state), tuple(following.items())) for state, following in onward.items()]
    return tuple(steps), tuple(leads)
