"""A trained MultiHMM: posteriors of votes, and storage.

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
from chaffinch.models.votes.multihmm.patterns import LETTERS, VotePatterns, observe, state_tags, states
from chaffinch.models.votes.multihmm.spans import best_spans, candidates
from chaffinch.models.votes.multihmm.tables import SourceWeights, VoteTables

_TABLES = ("trans", "rates", "types", "letters", "outside", "links")


class VotePosterior(NamedTuple):
    """The result of aggregation: tags, probabilities of tags, and log-likelihoods."""

    tags: Ints  # (T,)
    chances: Floats  # (T, L)
    log_likelihood: Floats  # (D,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained MultiHMM: the tables, and the weight of each source."""

    config: MultiHMM
    names: tuple[str, ...]
    sources: tuple[str, ...]  # those with a vote in training
    rules: tuple[str, ...]
    tables: VoteTables
    weights: SourceWeights
    trace: Floats  # the objective of EM, log-likelihood plus log prior, before each pass

    def select_votes(self, vote_matrix: VoteMatrix) -> VoteMatrix:
        """Return the votes of the model's sources; DataError if labels or rules differ, or a source is missing."""
        if vote_matrix.names != self.names or vote_matrix.rules != self.rules:
            raise DataError(
                f"votes have {len(vote_matrix.names)} labels and {len(vote_matrix.rules)} linking rules; the model "
                f"knows {len(self.names)} and {len(self.rules)}, or other ones: give it votes with the same"
            )
        return vote_matrix.choose(self.sources)

    def chains(self, vote_matrix: VoteMatrix, seen: VotePatterns) -> Chains:
        """Return the lattices of votes, which must come from `select_votes`, and the tokens outside of them."""
        return Chains.of(self.tables, self.weights, vote_matrix, seen)

    def posterior(self, vote_matrix: VoteMatrix) -> VotePosterior:
        """Return tags, (T, 1 + 2 E) tag probabilities, and each document's log-likelihood; DataError if unfit."""
        vote_matrix = self.select_votes(vote_matrix)
        chains = self.chains(vote_matrix, observe(vote_matrix))
        post = forward_backward(chains.batch, pairs=False)
        spans = candidates(vote_matrix)
        if self.config.decode == "viterbi" or self.rules:
            best = chains.spans(states(self.names).run_arrays(viterbi(chains.batch).states.astype(np.int32)))
            spans = best if self.config.decode == "viterbi" else spans.union(best)
        if self.config.decode == "spans":
            spans = best_spans(spans, chains.span_chances(post.states, spans) - self.config.threshold)
        chances = np.zeros((len(vote_matrix), 1 + 2 * len(self.names)))
        chances[chains.outside, 0] = 1.0
        for state, tag in enumerate(state_tags(len(self.names)).tolist()):
            chances[chains.tokens, tag] += post.states[:, state]
        return VotePosterior(
            spans.tags(len(vote_matrix)), chances, chains.log_likelihoods(post.log_z, vote_matrix.documents)
        )

    def state(self) -> State:
        """Return everything except the config, for a model file."""
        out: dict[str, NDArray[Any]] = {f"tables.{name}": getattr(self.tables, name) for name in _TABLES}
        out |= {"weights.sources": self.weights.sources, "weights.silence": self.weights.silence}
        out |= {"weights.voted": np.array([self.weights.voted_is_entity]), "trace": self.trace}
        return State(out, {"names": self.names, "sources": self.sources, "rules": self.rules})

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; ModelError if its parts are missing or do not fit together."""
        arrays = state.arrays
        try:
            config = msgspec.convert(state.config, MultiHMM)
            names, sources, rules = (tuple(state.strings[name]) for name in ("names", "sources", "rules"))
            tables = VoteTables(*(arrays[f"tables.{name}"].astype(float) for name in _TABLES))
            voted = bool(arrays["weights.voted"][0])
            source_weights, silence = (arrays[f"weights.{name}"].astype(float) for name in ("sources", "silence"))
            weights = SourceWeights(source_weights, silence, voted, reading=True)
            model = cls(config, names, sources, rules, tables, weights, arrays["trace"])
        except (KeyError, TypeError, IndexError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, fit it again") from None
        K, E, S = 1 + LETTERS * len(names), len(names), len(sources)
        shapes = ((K, K), (S, K), (S, E, 1 + E), (S, LETTERS, LETTERS), (S, K), (len(rules), 2))
        if tuple(getattr(tables, name).shape for name in _TABLES) != shapes or len(model.weights.sources) != S:
            raise ModelError("its tables do not fit its labels and sources; copy the file again, or fit it again")
        return model
