"""A learnt aggregator on disk, so that votes on other documents are joined in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ModelError
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.text import Document
from chaffinch.weak.aggregate import Learnt
from chaffinch.weak.embedded import Conditional
from chaffinch.weak.training.students import Embedder

MULTIHMM, CHMM = "multihmm", "chmm"  # kinds of files


def kind_of(model: Learnt) -> str:
    """The name of its method, which its file bears."""
    return CHMM if isinstance(model, Conditional) else MULTIHMM


def save(model: Learnt, path: str | Path, *, docs: Sequence[Document] = (), corpus: str = "") -> Manifest:
    """Writes one file, complete or not at all. It holds names of sources and numbers, no words of documents.

    Of a conditional HMM the embedder is not in it.
    """
    seed = model.config.seed if isinstance(model, Conditional) else 0
    manifest = Manifest(
        kind_of(model), asdict(model.config), model.names, seed, corpus, len(docs), len({doc.patient for doc in docs}),
    )  # fmt: skip
    state = model.state()
    return bundle.save(path, manifest, state.arrays, state.strings)


def load(path: str | Path, *, embedder: Embedder | None = None) -> Learnt:
    """The aggregator of a file that `save` wrote.

    A conditional HMM gets the packaged embedder; if it was fitted with another, that one must be given.
    """
    found = bundle.load(path)
    kind, place = found.manifest.kind, bundle.find(path)
    if kind not in (MULTIHMM, CHMM):
        raise ModelError(
            f"is a tagger of kind {kind!r}, no aggregator of votes ({MULTIHMM}, {CHMM}); read it with chaffinch.load, "
            "or use it with chaffinch tag",
            path=place,
        )
    try:
        return multihmm.Model.of(found.state) if kind == MULTIHMM else Conditional.of(found.state, embedder)
    except ModelError as error:
        raise ModelError(error.message, path=error.path or place) from None
