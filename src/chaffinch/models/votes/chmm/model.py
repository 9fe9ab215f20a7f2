"""A trained conditional HMM: posteriors of votes, and storage.

T tokens, D numbers of an embedding, S sources, L tags, J symbols of a source, R rows of transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import DataError, ModelError
from chaffinch.kernels import forward_backward, viterbi
from chaffinch.models.latent.layout import chunks, tokens_of
from chaffinch.models.votes.chmm import constant as bridge
from chaffinch.models.votes.chmm.chain import Chain, evaluate_chain, read_batch
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.chmm.layer import Rows, Weights
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables, observe, repair_tags
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.model import VotePosterior

_CONSTANT, _LAYERS = "constant", "layers"  # parts of a file


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained conditional HMM: the chain, and the scaling of embeddings."""

    config: CHMM
    names: tuple[str, ...]
    sources: tuple[str, ...]  # those it has parameters for
    constant: bridge.Model | None  # the MultiHMM whose tables the chain has
    chain: Chain
    mean: Rows  # (D,)
    scale: Rows  # (D,)

    def select_votes(self, vote_matrix: VoteMatrix) -> VoteMatrix:
        """Return the votes of the model's sources; DataError if labels or sources do not fit those of the model."""
        if self.constant is not None:
            return self.constant.select_votes(vote_matrix)
        if (vote_matrix.sources, vote_matrix.names) != (self.sources, self.names):
            raise DataError(
                f"votes are of {len(vote_matrix.sources)} sources on {len(vote_matrix.names)} labels; the model knows "
                f"{len(self.sources)} on {len(self.names)}, or other ones: give the same ones in the same order"
            )
        return vote_matrix

    def observe(self, vote_matrix: VoteMatrix) -> TokenInput:
        """Return the votes, which must come from `select_votes`, as symbols, powers and fixed logs for the chain."""
        return (
            observe(vote_matrix, self.config) if self.constant is None else bridge.observe(self.constant, vote_matrix)
        )

    def posterior(self, vote_matrix: VoteMatrix, embeddings: Rows) -> VotePosterior:
        """Return tags, (T, 1 + 2 E) tag probabilities, and each document's log-likelihood; DataError if unfit."""
        vote_matrix = self.select_votes(vote_matrix)
        check(vote_matrix, embeddings, len(self.mean))
        tags, chances = np.zeros(len(vote_matrix), np.int64), np.zeros((len(vote_matrix), 1 + 2 * len(self.names)))
        log_likelihood = np.zeros(len(vote_matrix.bounds) - 1)
        seen, rows = self.observe(vote_matrix), self.scale_rows(embeddings)
        for sentences in chunks(np.arange(len(log_likelihood)), vote_matrix.bounds, self.chain.tile):
            tokens, bounds = tokens_of(vote_matrix.bounds, sentences)
            batch = read_batch(self.chain, evaluate_chain(self.chain, rows[tokens], seen.part(tokens)), bounds)
            post = forward_backward(batch, pairs=False)
            log_likelihood[sentences] = post.log_z
            if self.constant is None:
                chances[tokens], tags[tokens] = post.states, repair_tags(viterbi(batch).states, bounds)
            else:
                part = replace(
                    vote_matrix, codes=vote_matrix.codes[tokens], bounds=bounds, documents=bounds, soft={}, rules=()
                )
                chances[tokens] = bridge.chances(self.constant, post.states)
                tags[tokens] = bridge.decode_tags(self.constant, part, batch, post.states)
        before = np.append(0.0, np.cumsum(log_likelihood))
        return VotePosterior(tags, chances, np.diff(before[np.searchsorted(vote_matrix.bounds, vote_matrix.documents)]))

    def scale_rows(self, embeddings: Rows) -> Rows:
        """Return embeddings scaled to mean 0 and deviation 1 on the training tokens."""
        return (embeddings - self.mean) / self.scale

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the names of the linking rules that the model uses, those of its constant HMM."""
        return () if self.constant is None else self.constant.rules

    def state(self) -> State:
        """Return everything except the config, for a model file."""
        chain = self.chain
        out: dict[str, NDArray[Any]] = {"mean": self.mean, "scale": self.scale, "end": chain.end}
        out |= {"tables.moves": chain.tables.moves, "tables.votes": chain.tables.votes}
        out |= {"base.moves": chain.base.moves, "base.votes": chain.base.votes}
        state = State(out, {"names": self.names, "sources": self.sources})
        state = state.with_child(_LAYERS, State(chain.weights or {}))
        return state if self.constant is None else state.with_child(_CONSTANT, self.constant.state())

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; ModelError if its parts are missing or do not fit together."""
        arrays = state.arrays
        try:
            config = msgspec.convert(state.config, CHMM)
            names, sources = (tuple(state.strings[name]) for name in ("names", "sources"))
            tables, base = (
                TokenTables(arrays[f"{part}.moves"], arrays[f"{part}.votes"]) for part in ("tables", "base")
            )
            strict = config.voted_is_entity and config.constant is None
            weights = dict(state.child(_LAYERS).arrays) or None
            chain = Chain(tables, weights, config.weight, base, strict, arrays["end"])
            mean, scale, constant = arrays["mean"], arrays["scale"], None
            if config.constant is not None:
                constant = bridge.Model.of(state.child(_CONSTANT, config=state.config["constant"]))
        except (KeyError, TypeError, msgspec.ValidationError):
            raise ModelError("its settings cannot be read; it was made by another version, fit it again") from None
        model = cls(config, names, sources, constant, chain, mean, scale)
        if not _fits(model):
            raise ModelError("its tables do not fit its labels and sources; copy the file again, or fit it again")
        return model


def check(vote_matrix: VoteMatrix, embeddings: Rows, D: int) -> None:
    """Raise DataError unless embeddings are a row of D finite numbers for every token; D = -1 never fits."""
    if embeddings.shape != (len(vote_matrix), D):
        wanted = f"({len(vote_matrix)}, {'D' if D < 0 else D})"
        raise DataError(f"embeddings have shape {embeddings.shape}; votes and model need {wanted}")
    if not np.isfinite(embeddings).all():
        raise DataError("embeddings contain NaN or infinite numbers; compute them again")


def _fits(model: Model) -> bool:
    """Tell whether all arrays have the shapes that settings, labels and sources require."""
    chain, config, E, S = model.chain, model.config, len(model.names), len(model.sources)
    if model.constant is None:
        L = 1 + 2 * E
        J = L + (config.silence == "weighed")
    else:
        if (model.constant.names, model.constant.sources) != (model.names, model.sources):
            return False
        L = len(model.constant.tables.trans)
        J = L + 1
    moves, votes = (1 if config.iid else L, L), (S, L, J)
    base = votes if config.offset else (1, 1, 1)
    shapes = (*(table.shape for table in (*chain.tables, *chain.base)), chain.end.shape, model.scale.shape)
    if shapes != (moves, votes, moves, base, (L,), model.mean.shape) or model.mean.ndim != 1:
        return False
    return chain.weights is None or _layers_fit(chain.weights, len(model.mean), moves[0] * L, S * L * J)


def _layers_fit(weights: Weights, D: int, A: int, B: int) -> bool:
    """Tell whether the weights' shapes map D numbers to A logits of transitions and B of confusions."""
    shapes = {name: array.shape for name, array in weights.items()}
    wide = {"moves": (D, A), "moves bias": (A,), "votes bias": (B,)}
    if "narrow" not in weights:
        return shapes == wide | {"votes": (D, B)}
    rank = shapes["narrow"][-1]
    return shapes == wide | {"narrow": (D, rank), "votes": (rank, B)}
