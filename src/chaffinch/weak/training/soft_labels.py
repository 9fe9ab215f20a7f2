"""Soft labels that students and aggregators exchange: distributions over tags, from spans and probabilities.

T tokens, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chaffinch.kernels.lattice import Floats
from chaffinch.models.core.labels import Labels
from chaffinch.text import Document, Soft, Span


def as_tags(doc: Document, spans: Sequence[Span], chances: Floats, names: Sequence[str]) -> Soft:
    """Return soft IOB2 tags (T, 1 + 2L) from probabilities (T, 1 + L) of O and labels; spans say where B- is sure.

    A span begins at its first token. At other tokens, the share of the begin tag is the probability that the token
    before has another label.
    """
    out = np.zeros((len(chances), 1 + 2 * len(names)))
    out[:, 0] = chances[:, 0]
    begins = {(first, span.label) for span, first in zip(spans, doc.token_ranges(spans)[:, 0].tolist(), strict=True)}
    for number, name in enumerate(names):
        label_chances = chances[:, 1 + number]
        share = 1.0 - np.append(0.0, label_chances[:-1])
        share[[t for t, label in begins if label == name]] = 1.0
        out[:, 1 + 2 * number] = label_chances * share
        out[:, 2 + 2 * number] = label_chances * (1.0 - share)
    return Soft(Labels(tuple(names), "IOB2").tags, out)


def one_hot_tags(doc: Document, layer: str, names: Sequence[str]) -> Soft:
    """Return the IOB2 tags of a layer's spans as soft labels of probability 1."""
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
