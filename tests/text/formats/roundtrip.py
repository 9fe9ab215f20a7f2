"""The law every format obeys: what is written and read back is the same in every part whose loss was not reported."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import Any

from chaffinch.text import Document, Span
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


PLACES = frozenset({"spans", "relations"})
TEXT = frozenset({"text", "tokens"})
# What each loss excuses, and nothing else: parts of a document as `kept` names them.
LOSS_PARTS: dict[str, frozenset[str]] = {
    "groups (patients)": frozenset({"group"}),
    "meta fields": frozenset({"meta"}),
    "that meta fields were absent (they come back empty)": frozenset({"meta"}),
    "types of meta fields (they come back as text)": frozenset({"meta"}),
    "numbers that are not finite (they come back as null)": frozenset({"meta"}),
    "columns between token and tag": frozenset({"meta"}),
    "columns that are empty or hold tabs, line feeds or a mark": frozenset({"meta"}),
    "marks and separators as they were": frozenset({"meta"}),
    "soft layers": frozenset({"soft"}),
    "layers": frozenset({"layer names", "spans"}),
    "layers other than the one written": frozenset({"layer names"}),
    "layers that are neither gold nor a source": frozenset({"other layers"}),
    "names of layers": frozenset({"layer names"}),
    "that sources were absent (they come back as silent)": frozenset({"silent sources"}),
    "that there was no layer (an empty one comes back)": frozenset({"layer names"}),
    "the lack of a layer (read as an empty one)": frozenset({"layer names"}),
    "scores of spans": frozenset({"score"}),
    "sources of spans": frozenset({"source"}),
    "concepts of spans": frozenset({"concept"}),
    "concepts with blanks or empty parts": frozenset({"concept"}),
    "tabs and line ends in concepts": frozenset({"concept"}),
    "characters of labels": frozenset({"label"}),
    "labels that are empty or hold tabs, line feeds or a mark": frozenset({"label"}),
    "labels with blanks (written with _)": frozenset({"label"}),
    "tabs and line ends in labels": frozenset({"label"}),
    "roles with blanks (written with _)": frozenset({"relations"}),
    "relations": frozenset({"relations"}),
    "details of relations": frozenset({"relations"}),
    "roles of relations": frozenset({"relations"}),
    "concepts of relations": frozenset({"relations"}),
    "scores and sources of relations": frozenset({"relations"}),
    "relations over spans that are not written": frozenset({"relations"}),
    "relations that are not between two concepts": frozenset({"relations"}),
    "relations that are not between two spans of the layer written": frozenset({"relations"}),
    "given tokens and sentences": frozenset({"tokens"}),
    "that tokens were computed (they come back as given)": frozenset({"tokens"}),
    "sentence bounds": frozenset({"tokens"}),
    "spans that cover no token": PLACES,
    "spans without a label": PLACES,
    "spans moved to token edges": PLACES,
    "spans cut at sentence ends": PLACES,
    "overlapping spans (the longest is kept)": PLACES,
    "white space between tokens": TEXT | PLACES,
    "text outside tokens": TEXT | PLACES,
    "tokens that are empty or hold tabs, line feeds or a mark": TEXT | PLACES,
    "line ends (written as blanks)": TEXT,
    "characters XML cannot hold (written as U+FFFD)": TEXT,
    "characters of fields that XML cannot hold (written as U+FFFD)": frozenset(
        {"id", "group", "label", "source", "concept", "relations"}
    ),
    "ids": frozenset({"id"}),
    "empty ids": frozenset({"id"}),
}
_SPAN_PARTS = ("label", "score", "source", "concept")


def kept(doc: Document, lost: frozenset[str]) -> dict[str, Any]:
    """All parts of a document that are not lost, as plain values; relations without what their spans have lost."""

    def span_values(span: Span) -> tuple[object, ...]:
        return (span.start, span.end, *(getattr(span, part) for part in _SPAN_PARTS if part not in lost))

    layers = {
        name: [span_values(span) for span in spans]
        for name, spans in doc.layers.items()
        if ("other layers" not in lost or name == "gold" or name.startswith("source:"))
        and ("silent sources" not in lost or spans or not name.startswith("source:"))
    }
    if "layer names" in lost:  # the one that is written, by whatever name
        layers = {"": [span_values(span) for span in doc.layer()] if doc.layers else []}
    relations = [
        (
            relation.label if "label" not in lost else "",
            relation.score,
            relation.source,
            [(a.role, a.concept, [span_values(span) for span in a.spans]) for a in relation.arguments],
        )
        for relation in doc.relations
    ]
    parts = {
        "id": doc.id,
        "text": doc.text,
        "group": doc.group,
        "meta": dict(doc.meta),
        "tokens": (doc.given, doc.tokens.tolist(), doc.sentences.tolist()),
        "spans": layers,
        "soft": {name: (soft.labels, soft.values.tolist()) for name, soft in doc.soft.items()},
        "relations": relations,
    }
    return {name: value for name, value in parts.items() if name not in lost}


def assert_kept_or_reported(documents: list[Document], form: str) -> None:
    """As many documents come back, each equal in every part that no reported loss names."""
    back, losses = through(documents, form)
    unknown = [what for what in losses.counts if what not in LOSS_PARTS]
    assert not unknown, f"say in LOSS_PARTS what these losses excuse: {unknown}"
    lost = frozenset().union(*(LOSS_PARTS[what] for what in losses.counts))
    assert [kept(doc, lost) for doc in back] == [kept(doc, lost) for doc in documents], dict(losses.counts)


def assert_kept(documents: list[Document], form: str) -> None:
    """Nothing was reported as lost, and the same documents come back."""
    back, losses = through(documents, form)
    assert not losses.counts
    assert [exact(doc) for doc in back] == [exact(doc) for doc in documents]
