"""Documents to candidates and their frames; parts of speech and chunks are added where there is a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chaffinch.models.chunker import CHUNKS, POS
from chaffinch.models.phrase_segments import Representation, parsed
from chaffinch.relations.candidates import Candidate, Scene, scenes
from chaffinch.relations.frames import Frame, frames
from chaffinch.relations.schema import Schema
from chaffinch.text import Document


class Read(NamedTuple):
    """A document's candidates and their frames."""

    candidates: list[Candidate]
    frames: list[Frame]


def read(docs: Sequence[Document], schema: Schema, layer: str | None, representation: Representation) -> list[Read]:
    """The candidates of documents with their frames; sentences without a candidate are not parsed."""
    staged = [(doc, scenes(doc, schema, layer=layer)) for doc in docs]
    ready = _parsed(staged)
    out = []
    for doc, (_, own) in zip(ready, staged, strict=True):
        found = [frame for scene in own for frame in frames(doc, scene, schema, representation)]
        out.append(Read([one for scene in own for one in scene.candidates], found))
    return out


def _parsed(staged: Sequence[tuple[Document, list[Scene]]]) -> list[Document]:
    """The documents with parts of speech and chunks, at least in the sentences that have candidates."""
    parts = []
    for doc, own in staged:
        if not own or {POS, CHUNKS} <= doc.layers.keys():
            parts.append(replace(doc, layers={POS: (), CHUNKS: (), **doc.layers}))
            continue
        tokens = np.concatenate([doc.tokens[scene.first : scene.end] for scene in own])
        layers = {name: doc.layers[name] for name in (POS, CHUNKS) if name in doc.layers}
        sentences = doc.sentences[[scene.sentence for scene in own]]
        parts.append(replace(doc, tokens=tokens, sentences=sentences, layers=layers, given=True, soft={}))
    out = []
    for (doc, _), ready in zip(staged, parsed(parts), strict=True):
        out.append(replace(doc, layers={**doc.layers, POS: ready.layers[POS], CHUNKS: ready.layers[CHUNKS]}))
    return out
