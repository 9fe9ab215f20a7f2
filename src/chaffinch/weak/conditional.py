"""Votes joined by a conditional HMM, which sees the words through their embeddings.

T tokens, D numbers of an embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaffinch.models import chmm
from chaffinch.models.chmm_config import CHMM
from chaffinch.models.parts import Watcher
from chaffinch.text import Document
from chaffinch.weak.aggregate import joint, with_rules
from chaffinch.weak.students import Embedder
from chaffinch.weak.votes import ballots, with_labels


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Conditional:
    """A learnt conditional HMM and the embedder of its words."""

    model: chmm.Model
    embedder: Embedder


def fit(
    docs: Sequence[Document], config: CHMM | None = None, *, fit_on: Sequence[Document] | None = None,
    sources: Sequence[str] | None = None, watcher: Watcher | None = None, embedder: Embedder | None = None,
) -> Conditional:  # fmt: skip
    """What a conditional HMM learns from the votes on documents, or on those of `fit_on`.

    The embedder is the packaged one, of the extra `minilm`, unless another is given.
    """
    if embedder is None:
        from chaffinch.features import embed

        embedder = embed.Embedder.load()
    votes = joint(docs, fit_on, sources)
    return Conditional(chmm.fit(votes, _rows(docs if fit_on is None else fit_on, embedder), config, watcher=watcher),
                       embedder)  # fmt: skip


def apply(docs: Sequence[Document], own: Conditional, *, layer: str) -> list[Document]:
    """The documents with a layer and soft labels of what it makes of their sources."""
    model = own.model
    found = ballots(docs, sources=model.sources, labels=model.names)
    if model.constant is not None:
        found = with_rules(found, model.constant.rules)
    result = model.posterior(found, _rows(docs, own.embedder))
    return with_labels(docs, found, result.tags, result.chances, layer=layer)


def _rows(docs: Sequence[Document], embedder: Embedder) -> NDArray[np.float32]:
    """(T, D) the embeddings of all tokens."""
    return np.concatenate([embedder(doc) for doc in docs]) if docs else np.zeros((0, 1), np.float32)
