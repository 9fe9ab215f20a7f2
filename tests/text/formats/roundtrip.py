"""The law every format obeys: what is written and read back is the same, or the loss was reported."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import Any

from chaffinch.text import Document
from chaffinch.text.formats import Losses, ReadOptions, read, write


def exact(doc: Document) -> dict[str, Any]:
    """Everything in a document as plain values, scores and sources included, which equality leaves out."""
    return {
        "id": doc.id,
        "text": doc.text,
        "group": doc.group,
        "meta": dict(doc.meta),
        "tokens": doc.tokens.tolist(),
        "sentences": doc.sentences.tolist(),
        "layers": {name: [astuple(span) for span in spans] for name, spans in doc.layers.items()},
        "soft": {name: (soft.labels, soft.values.tolist()) for name, soft in doc.soft.items()},
        "relations": [astuple(relation) for relation in doc.relations],
        "given": doc.given,
    }


def through(documents: list[Document], form: str, how: ReadOptions | None = None) -> tuple[list[Document], Losses]:
    """The documents after one way to disk and back, and the reported losses."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        losses = write(documents, path, format=form)
        return list(read(path, format=form, how=how)), losses


def assert_kept_or_reported(documents: list[Document], form: str) -> None:
    """Either nothing was lost and the same documents come back, or at least one loss was reported."""
    back, losses = through(documents, form)
    assert losses or [exact(doc) for doc in back] == [exact(doc) for doc in documents]


def assert_kept(documents: list[Document], form: str) -> None:
    """Nothing was reported as lost, and the same documents come back."""
    back, losses = through(documents, form)
    assert not losses.counts
    assert [exact(doc) for doc in back] == [exact(doc) for doc in documents]
