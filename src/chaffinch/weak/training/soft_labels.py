"""Soft labels as students and aggregators exchange them: distributions over tags, from spans and chances.

T tokens, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chaffinch.kernels.lattice import Floats
from chaffinch.models.core.labels import Labels
from chaffinch.text import Document, Soft, Span


def as_tags(doc: Document, spans: Sequence[Span], chances: Floats, names: Sequence[str]) -> Soft:
    """Return distributions over tags from chances (T, 1 + L) of O and labels: a span begins where it was read to begin.

    Elsewhere a token begins a span as far as the one before it is of another label.
    """
    out = np.zeros((len(chances), 1 + 2 * len(names)))
    out[:, 0] = chances[:, 0]
    begins = {(first, span.label) for span, first in zip(spans, doc.token_ranges(spans)[:, 0].tolist(), strict=True)}
    for number, name in enumerate(names):
        own = chances[:, 1 + number]
        share = 1.0 - np.append(0.0, own[:-1])
        share[[t for t, label in begins if label == name]] = 1.0
        out[:, 1 + 2 * number], out[:, 2 + 2 * number] = own * share, own * (1.0 - share)
    return Soft(Labels(tuple(names), "IOB2").tags, out)


def hardened(doc: Document, layer: str, names: Sequence[str]) -> Soft:
    """Return one tag per token, as a soft layer: that of the spans of a layer."""
    labels = Labels(tuple(names), "IOB2")
    out = np.zeros((len(doc.tokens), len(labels.tags)))
    out[:, 0] = 1.0
    spans = doc.layer(layer)
    for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
        if first < end:
            number = names.index(span.label)
            out[first:end] = np.eye(len(labels.tags))[2 + 2 * number]
            out[first] = np.eye(len(labels.tags))[1 + 2 * number]
    return Soft(labels.tags, out)
