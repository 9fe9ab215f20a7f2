"""A learnt HMM of many sources on disk, so that votes on other documents are joined in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ModelError
from chaffinch.models.multihmm import Model
from chaffinch.text import Document

KIND = "multihmm"


def save(model: Model, path: str | Path, *, docs: Sequence[Document] = (), corpus: str = "") -> Manifest:
    """Writes one file, complete or not at all. It holds names of sources and numbers, no words of documents."""
    manifest = Manifest(
        KIND, asdict(model.config), model.names, corpus=corpus, documents=len(docs),
        patients=len({doc.patient for doc in docs}),
    )  # fmt: skip
    try:
        return bundle.save(path, manifest, *model.arrays())
    except OSError as error:
        raise ModelError(f"cannot be written ({error.strerror}); an older file is as it was", path=path) from None


def load(path: str | Path) -> Model:
    """The model of a file that `save` wrote."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {found.manifest.kind!r}, not {KIND!r}", path=bundle.find(path))
    try:
        return Model.of(found)
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None
