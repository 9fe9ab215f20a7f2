"""Votes joined by a conditional HMM (CHMM), which sees the words through their embeddings.

T tokens, D numbers of an embedding.
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
from chaffinch.weak.votes import collect_votes, with_labels

Embedder: TypeAlias = Callable[[Document], NDArray[np.float32]]  # (T, D) of a document

PROBE = "Aspirin 20 mg was given for severe renal failure."  # what tells one embedder from another
NEAR = 1e-2  # by as much the same embedder's numbers may differ, elsewhere
_PROBE = "probe"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedCHMM:
    """A learnt conditional HMM and the embedder of its words; called with documents it joins their votes."""

    model: chmm.Model
    embedder: Embedder

    @property
    def config(self) -> CHMM:
        """What was chosen."""
        return self.model.config

    @property
    def names(self) -> tuple[str, ...]:
        """The labels it knows."""
        return self.model.names

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources it knows something of."""
        return self.model.sources

    def __call__(self, docs: Sequence[Document], layer: str) -> list[Document]:
        """Return the documents with a layer, and soft labels, of what the model makes of their votes."""
        votes = collect_votes(docs, sources=self.sources, labels=self.names).with_rules(self.model.rules)
        result = self.model.posterior(votes, rows_of(docs, self.embedder, len(self.model.mean)))
        return with_labels(docs, votes, result.tags, result.chances, layer=layer)

    def state(self) -> State:
        """Return what it learnt and how the embedder reads a sentence of ours; the embedder itself is in no file."""
        return self.model.state().merged(State({_PROBE: probed(self.embedder)}))

    @classmethod
    def of(cls, state: State, embedder: Embedder | None = None) -> FittedCHMM:
        """Return what a file holds, with the embedder it learnt with: the packaged one, unless another is given."""
        model = chmm.Model.of(state)
        if embedder is None:
            try:
                embedder = packaged()
            except MissingExtraError as error:
                raise ModelError(
                    f"reads words by an encoder, and {error.package} is not installed; "
                    f"run: pip install 'chaffinch[{error.extra}]', or give the embedder that it was fitted with"
                ) from None
        expected, own = state.arrays.get(_PROBE), probed(embedder)
        if expected is None or expected.shape != own.shape or not np.allclose(expected, own, rtol=NEAR, atol=NEAR):
            raise ModelError("was fitted with another embedder; give that one as `embedder`, or fit it anew")
        return cls(model, embedder)


def fit(
    votes: VoteMatrix, docs: Sequence[Document], config: CHMM | None = None, *, watcher: Watcher | None = None,
    embedder: Embedder | None = None,
) -> FittedCHMM:  # fmt: skip
    """What a conditional HMM learns from the votes on documents.

    The embedder is the packaged one, of the extra `minilm`, unless another is given.
    """
    embedder = packaged() if embedder is None else embedder
    return FittedCHMM(chmm.fit(votes, rows_of(docs, embedder), config, watcher=watcher), embedder)


def packaged() -> Embedder:
    """The embedder of the packaged encoder; MissingExtraError without it."""
    from chaffinch.features import embed

    return embed.Embedder.load()


def rows_of(docs: Sequence[Document], embedder: Embedder, D: int = 1) -> NDArray[np.float32]:
    """(T, D) the embeddings of all tokens; D is needed if there is no document."""
    return np.concatenate([embedder(doc) for doc in docs]) if docs else np.zeros((0, D), np.float32)


def probed(embedder: Embedder) -> NDArray[np.float32]:
    """(D,) the mean embedding of the words of a sentence."""
    return np.asarray(embedder(Document.make(PROBE)).mean(axis=0), np.float32)
