"""Candidates of documents with their frames; only sentences with candidates are tagged and chunked."""

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


class DocumentCandidates(NamedTuple):
    """The candidates of a document and their frames."""

    candidates: list[Candidate]
    frames: list[Frame]


def read_candidates(
    docs: Sequence[Document], schema: Schema, layer: str | None, representation: Representation
) -> list[DocumentCandidates]:
    """Return each document's candidates with their frames; sentences without a candidate are not parsed."""
    staged = [(doc, scenes(doc, schema, layer=layer)) for doc in docs]
    out = []
    reduced = [_keep_candidate_sentences(doc, staged_scenes) for doc, staged_scenes in staged]
    for (doc, doc_scenes), parsed in zip(staged, parses(reduced), strict=True):
        pairs = zip(doc_scenes, parsed, strict=True)
        found = [frame for scene, parse in pairs for frame in frames(doc, scene, parse, schema, representation)]
        found_candidates = [candidate for scene in doc_scenes for candidate in scene.candidates]
        out.append(DocumentCandidates(found_candidates, found))
    return out


def _keep_candidate_sentences(doc: Document, kept: Sequence[Scene]) -> Document:
    """Return the document with only the sentences of `kept`, and only the layers of parts of speech and chunks."""
    tokens = np.concatenate([doc.tokens[:0], *(doc.tokens[scene.first : scene.end] for scene in kept)])
    layers = {name: doc.layers[name] for name in (POS, CHUNKS) if name in doc.layers}
    sentences = doc.sentences[np.array([scene.sentence for scene in kept], np.int64)]
    return replace(doc, tokens=tokens, sentences=sentences, layers=layers, given=True, soft={})
