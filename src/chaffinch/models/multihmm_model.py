"""A learnt HMM of many sources, and what it makes of votes.

T tokens, S sources, K states, L tags in IOB2, D documents, n spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import Bundle
from chaffinch.errors import DataError, ModelError
from chaffinch.kernels import Batch, Floats, Ints, forward_backward, pair_marginals, viterbi
from chaffinch.models.ballots import Ballots
from chaffinch.models.multihmm_config import MultiHMM
from chaffinch.models.multihmm_spans import Spans, candidates, most
from chaffinch.models.multihmm_tables import Tables, Weights, potentials
from chaffinch.models.multihmm_votes import LETTERS, Seen, coarse, observe, states

TILE = 4_000  # tokens whose pairs of states are held at once
_TABLES = ("trans", "rates", "types", "letters", "outside", "links")


class Result(NamedTuple):
    """What a model makes of votes."""

    tags: Ints  # (T,)
    chances: Floats  # (T, L)
    log_likelihood: Floats  # (D,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt: the tables, and how much each source counts."""

    config: MultiHMM
    names: tuple[str, ...]
    sources: tuple[str, ...]  # that ever spoke
    rules: tuple[str, ...]
    tables: Tables
    weights: Weights
    trace: Floats  # what EM climbed: the log-likelihood and the log of the prior, before each pass

    def fitting(self, ballots: Ballots) -> Ballots:
        """The votes of the model's sources; DataError if labels or rules are others."""
        if ballots.names != self.names or ballots.rules != self.rules:
            raise DataError(
                f"votes have {len(ballots.names)} labels and {len(ballots.rules)} linking rules; the model knows "
                f"{len(self.names)} and {len(self.rules)}, or others: give it votes with the same"
            )
        return ballots.choose(self.sources)

    def batch(self, ballots: Ballots, seen: Seen) -> Batch:
        """The chain of states of votes that fit."""
        return chain(self.tables, self.weights, self.names, ballots.bounds, seen)

    def posterior(self, ballots: Ballots) -> Result:
        """The tags, the chances of all tags, and the log-likelihood of the votes on every document."""
        ballots = self.fitting(ballots)
        batch = self.batch(ballots, observe(ballots))
        found = forward_backward(batch, pairs=False)
        tag_of = coarse(len(self.names))
        best = Spans.distinct(*states(self.names).run_arrays(viterbi(batch).states.astype(np.int32)))
        if self.config.decode == "spans":
            own = candidates(ballots)
            every = Spans.distinct(
                *(np.append(getattr(own, at), getattr(best, at)) for at in ("first", "end", "label"))
            )
            best = most(every, span_chances(batch, found.states, every) - self.config.threshold)
        tags = best.tags(len(ballots))
        chances = np.zeros((len(ballots), 1 + 2 * len(self.names)))
        for state, tag in enumerate(tag_of.tolist()):
            chances[:, tag] += found.states[:, state]
        before = np.append(0.0, np.cumsum(found.log_z))
        ends = before[np.searchsorted(ballots.bounds, ballots.documents)]
        return Result(tags, chances, np.diff(ends))

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
        """Everything but the config, for a model file."""
        out: dict[str, NDArray[Any]] = {f"tables.{name}": getattr(self.tables, name) for name in _TABLES}
        out |= {"weights.sources": self.weights.sources, "weights.silence": self.weights.silence}
        out |= {"weights.voted": np.array([self.weights.voted_is_entity]), "trace": self.trace}
        return out, {"names": self.names, "sources": self.sources, "rules": self.rules}

    @classmethod
    def of(cls, found: Bundle) -> Model:
        """The model of a file; ModelError if its pieces do not fit together."""
        try:
            config = msgspec.convert(found.manifest.config, MultiHMM)
            names, sources, rules = (tuple(found.strings[name]) for name in ("names", "sources", "rules"))
            tables = Tables(*(found.arrays[f"tables.{name}"].astype(float) for name in _TABLES))
            voted = bool(found.arrays["weights.voted"][0])
            own, still = (found.arrays[f"weights.{name}"].astype(float) for name in ("sources", "silence"))
            model = cls(config, names, sources, rules, tables, Weights(own, still, voted, True), found.arrays["trace"])
        except (KeyError, TypeError, IndexError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, fit it anew") from None
        K, E, S = 1 + LETTERS * len(names), len(names), len(sources)
        shapes = ((K, K), (S, K), (S, E, 1 + E), (S, LETTERS, LETTERS), (S, K), (len(rules), 2))
        if tuple(getattr(tables, name).shape for name in _TABLES) != shapes or len(model.weights.sources) != S:
            raise ModelError("its tables do not fit its labels and sources; copy the file again, or fit it anew")
        return model


def chain(tables: Tables, weights: Weights, names: tuple[str, ...], bounds: Ints, seen: Seen) -> Batch:
    """The lattices of all sentences; every sentence begins after O, and no entity is cut off at its end."""
    K = len(tables.trans)
    with np.errstate(divide="ignore"):
        log_trans = np.log(tables.trans)
    end = np.where(states(names).follows[K + 1], 0.0, -np.inf)
    return Batch(log_trans[0], log_trans, potentials(tables, weights, seen), end, bounds)


def span_chances(batch: Batch, marginals: Floats, spans: Spans) -> Floats:
    """(n,) the probability that exactly this span is an entity of its label, from the marginals (T, K)."""
    at = 1 + LETTERS * spans.label
    single = spans.end - spans.first == 1
    out = np.where(single, marginals[spans.first, at + 3 * single], marginals[spans.first, at])
    if single.all():
        return out
    which = np.searchsorted(batch.bounds, spans.first, side="right") - 1
    for sentences, own, shift in _tiles(batch, np.unique(which[~single])):
        pairs = pair_marginals(own)
        inside = np.flatnonzero(~single & np.isin(which, sentences))
        offset = shift[np.searchsorted(sentences, which[inside])]
        out[inside] = chances_along(pairs, marginals, spans[inside], offset)
    return out


def chances_along(pairs: Floats, marginals: Floats, spans: Spans, offset: Ints) -> Floats:
    """(n,) the chances of spans of several tokens; `offset` takes a token to its place among the pairs (m, K, K)."""
    begin = 1 + LETTERS * spans.label
    chance, state = marginals[spans.first, begin], begin
    for step in range(1, int((spans.end - spans.first).max())):
        place = spans.first + step
        left = place < spans.end
        token = np.where(left, place, spans.first)
        to = np.where(place == spans.end - 1, begin + 2, begin + 1)
        leaving = marginals[token - 1 * left, state]
        moved = pairs[token - offset, state, to]
        share = np.divide(moved, leaving, out=np.zeros_like(moved), where=leaving > 0)
        chance = np.where(left, chance * np.minimum(share, 1.0), chance)
        state = np.where(left, to, state)
    return chance


def _tiles(batch: Batch, sentences: Ints) -> Iterator[tuple[Ints, Batch, Ints]]:
    """Some sentences, as batches of about a tile: their numbers, the batch, and how far each was moved."""
    sizes = np.diff(batch.bounds)[sentences]
    cuts = np.unique(np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum() + TILE, TILE)))
    for first, end in pairwise(np.unique(np.append(np.append(0, cuts), len(sentences))).tolist()):
        some, lengths = sentences[first:end], sizes[first:end]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shift = batch.bounds[some] - bounds[:-1]
        tokens = np.repeat(shift, lengths) + np.arange(bounds[-1])
        yield some, Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds), shift
