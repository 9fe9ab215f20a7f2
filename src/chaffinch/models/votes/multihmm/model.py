"""A learnt HMM of many sources, and what it makes of votes.

T tokens, S sources, K states, L tags in IOB2, D documents, n spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import DataError, ModelError
from chaffinch.kernels import Floats, Ints, forward_backward, viterbi
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.chains import Chains
from chaffinch.models.votes.multihmm.config import MultiHMM
from chaffinch.models.votes.multihmm.patterns import LETTERS, VotePatterns, coarse, observe, states
from chaffinch.models.votes.multihmm.spans import candidates, most
from chaffinch.models.votes.multihmm.tables import SourceWeights, VoteTables

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
    tables: VoteTables
    weights: SourceWeights
    trace: Floats  # what EM climbed: the log-likelihood and the log of the prior, before each pass

    def fitting(self, vote_matrix: VoteMatrix) -> VoteMatrix:
        """The votes of the model's sources; DataError if labels or rules are others."""
        if vote_matrix.names != self.names or vote_matrix.rules != self.rules:
            raise DataError(
                f"votes have {len(vote_matrix.names)} labels and {len(vote_matrix.rules)} linking rules; the model "
                f"knows {len(self.names)} and {len(self.rules)}, or others: give it votes with the same"
            )
        return vote_matrix.choose(self.sources)

    def chains(self, vote_matrix: VoteMatrix, seen: VotePatterns) -> Chains:
        """The chains of states of votes that fit."""
        return Chains.of(self.tables, self.weights, vote_matrix, seen)

    def posterior(self, vote_matrix: VoteMatrix) -> Result:
        """The tags, the chances of all tags, and the log-likelihood of the votes on every document."""
        vote_matrix = self.fitting(vote_matrix)
        own = self.chains(vote_matrix, observe(vote_matrix))
        found = forward_backward(own.batch, pairs=False)
        spans = candidates(vote_matrix)
        if self.config.decode == "viterbi" or self.rules:
            best = own.spans(states(self.names).run_arrays(viterbi(own.batch).states.astype(np.int32)))
            spans = best if self.config.decode == "viterbi" else spans.joined(best)
        if self.config.decode == "spans":
            spans = most(spans, own.span_chances(found.states, spans) - self.config.threshold)
        chances = np.zeros((len(vote_matrix), 1 + 2 * len(self.names)))
        chances[own.outside, 0] = 1.0
        for state, tag in enumerate(coarse(len(self.names)).tolist()):
            chances[own.tokens, tag] += found.states[:, state]
        return Result(spans.tags(len(vote_matrix)), chances, own.log_likelihoods(found.log_z, vote_matrix.documents))

    def state(self) -> State:
        """Return everything but the config, for a model file."""
        out: dict[str, NDArray[Any]] = {f"tables.{name}": getattr(self.tables, name) for name in _TABLES}
        out |= {"weights.sources": self.weights.sources, "weights.silence": self.weights.silence}
        out |= {"weights.voted": np.array([self.weights.voted_is_entity]), "trace": self.trace}
        return State(out, {"names": self.names, "sources": self.sources, "rules": self.rules})

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file; ModelError if its pieces do not fit together."""
        arrays = state.arrays
        try:
            config = msgspec.convert(state.config, MultiHMM)
            names, sources, rules = (tuple(state.strings[name]) for name in ("names", "sources", "rules"))
            tables = VoteTables(*(arrays[f"tables.{name}"].astype(float) for name in _TABLES))
            voted = bool(arrays["weights.voted"][0])
            own, still = (arrays[f"weights.{name}"].astype(float) for name in ("sources", "silence"))
            weights = SourceWeights(own, still, voted, reading=True)
            model = cls(config, names, sources, rules, tables, weights, arrays["trace"])
        except (KeyError, TypeError, IndexError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, fit it anew") from None
        K, E, S = 1 + LETTERS * len(names), len(names), len(sources)
        shapes = ((K, K), (S, K), (S, E, 1 + E), (S, LETTERS, LETTERS), (S, K), (len(rules), 2))
        if tuple(getattr(tables, name).shape for name in _TABLES) != shapes or len(model.weights.sources) != S:
            raise ModelError("its tables do not fit its labels and sources; copy the file again, or fit it anew")
        return model
