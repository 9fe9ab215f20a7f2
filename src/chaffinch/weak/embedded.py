"""Aggregation of votes by a conditional HMM (CHMM), which reads words through their embeddings.

T tokens, D dimensions of an embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import MissingExtraError, ModelError
from chaffinch.models.core.training import Watcher
from chaffinch.models.votes.chmm import fit as chmm
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.text import Document
from chaffinch.weak.votes import collect_votes, tags_of_layer, with_labels

Embedder: TypeAlias = Callable[[Document], NDArray[np.float32]]  # (T, D) of a document

PROBE = "Aspirin 20 mg was given for severe renal failure."  # its mean embedding identifies an embedder
NEAR = 1e-2  # tolerance of the probe: the same embedder gives slightly different numbers on other machines
_PROBE = "probe"
GOLD = "gold"  # the layer by which dev documents judge


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedCHMM:
    """A fitted conditional HMM with its embedder; called with documents it aggregates their votes."""

    model: chmm.Model
    embedder: Embedder

    @property
    def config(self) -> CHMM:
        """Return the settings of the model."""
        return self.model.config

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels of the model."""
        return self.model.names

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the sources that the model was fitted to."""
        return self.model.sources

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with `layer` added: aggregated spans, and soft labels of all tokens."""
        votes = collect_votes(docs, sources=self.sources, labels=self.names).with_rules(self.model.rules)
        result = self.model.posterior(votes, rows_of(docs, self.embedder, len(self.model.mean)))
        return with_labels(docs, votes, result.tags, result.chances, layer=layer)

    def state(self) -> State:
        """Return the weights, and the probe by which the embedder is recognised; the embedder is not saved."""
        return self.model.state().merge(State({_PROBE: probe_embedder(self.embedder)}))

    @classmethod
    def of(cls, state: State, embedder: Embedder | None = None) -> FittedCHMM:
        """Rebuild the model with `embedder`, None: the packaged one; ModelError if it lacks or fitting had another."""
        model = chmm.Model.of(state)
        if embedder is None:
            try:
                embedder = load_packaged_embedder()
            except MissingExtraError as error:
                raise ModelError(
                    f"needs an encoder, and {error.package} is not installed; "
                    f"run: pip install 'chaffinch[{error.extra}]', or give the embedder that it was fitted with"
                ) from None
        expected, probe = state.arrays.get(_PROBE), probe_embedder(embedder)
        if expected is None or expected.shape != probe.shape or not np.allclose(expected, probe, rtol=NEAR, atol=NEAR):
            raise ModelError("was fitted with another embedder; give that one as `embedder`, or fit it again")
        return cls(model, embedder)


def fit(
    votes: VoteMatrix, docs: Sequence[Document], config: CHMM | None = None, *, watcher: Watcher | None = None,
    embedder: Embedder | None = None, dev: Sequence[Document] = (),
) -> FittedCHMM:  # fmt: skip
    """Return a conditional HMM fitted to the votes and the tokens' embeddings, with its embedder (None: packaged).

    `embedder` defaults to the packaged one, of the extra `minilm`. Documents of `dev`, with votes and a layer `gold`,
    choose the epoch; without them the likelihood of held-out votes does.
    """
    embedder = load_packaged_embedder() if embedder is None else embedder
    judge = _judge(votes, dev, embedder) if dev else None
    return FittedCHMM(chmm.fit(votes, rows_of(docs, embedder), config, dev=judge, watcher=watcher), embedder)


def _judge(votes: VoteMatrix, dev: Sequence[Document], embedder: Embedder) -> chmm.Dev:
    """Return the votes, embeddings and gold tags of dev documents, with the sources, rules and labels of the votes."""
    found = collect_votes(dev, sources=votes.sources, labels=votes.names).with_rules(votes.rules)
    return chmm.Dev(found, rows_of(dev, embedder), tags_of_layer(dev, GOLD, votes.names))


def load_packaged_embedder() -> Embedder:
    """Load the embedder of the packaged encoder; raise MissingExtraError without its extra."""
    from chaffinch.features import embed

    return embed.Embedder.load()


def rows_of(docs: Sequence[Document], embedder: Embedder, D: int = 1) -> NDArray[np.float32]:
    """Return (T, D) the embeddings of all tokens of all documents; (0, D) without documents."""
    return np.concatenate([embedder(doc) for doc in docs]) if docs else np.zeros((0, D), np.float32)


def probe_embedder(embedder: Embedder) -> NDArray[np.float32]:
    """Return (D,) the mean embedding of a fixed sentence, by which an embedder is recognised."""
    return np.asarray(embedder(Document.make(PROBE)).mean(axis=0), np.float32)
