"""Documents to candidates and their frames; parts of speech and chunks are added where there is a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from chaffinch.models.phrasehmm.chunker import CHUNKS, POS
from chaffinch.models.phrasehmm.segments import Representation, parses
from chaffinch.relations.candidates import Candidate, Scene, scenes
from chaffinch.relations.features.frames import Frame, frames
from chaffinch.relations.schema import Schema
from chaffinch.text import Document


class Read(NamedTuple):
    """A document's candidates and their frames."""

    candidates: list[Candidate]
    frames: list[Frame]


def read(docs: Sequence[Document], schema: Schema, layer: str | None, representation: Representation) -> list[Read]:
    """The candidates of documents with their frames; sentences without a candidate are not parsed."""
    staged = [(doc, scenes(doc, schema, layer=layer)) for doc in docs]
    out = []
    for (doc, own), parsed in zip(staged, parses([_lone(doc, own) for doc, own in staged]), strict=True):
        pairs = zip(own, parsed, strict=True)
        found = [frame for scene, parse in pairs for frame in frames(doc, scene, parse, schema, representation)]
        out.append(Read([one for scene in own for one in scene.candidates], found))
    return out


def _lone(doc: Document, own: Sequence[Scene]) -> Document:
    """The document with its sentences that have candidates alone, and no layers but parts of speech and chunks."""
    tokens = np.concatenate([doc.tokens[:0], *(doc.tokens[scene.first : scene.end] for scene in own)])
    layers = {name: doc.layers[name] for name in (POS, CHUNKS) if name in doc.layers}
    sentences = doc.sentences[np.array([scene.sentence for scene in own], np.int64)]
    return replace(doc, tokens=tokens, sentences=sentences, layers=layers, given=True, soft={})
