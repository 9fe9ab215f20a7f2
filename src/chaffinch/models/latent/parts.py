"""The parts of spans: runs of tokens in one state.

N tokens with pads between sentences, Y states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Ints
from chaffinch.models.core.labels import Fitted, Labels, pieces_of
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document, Span
from chaffinch.text.span import find_overlap


class LatentModel(Protocol):
    """The operations that `parts` needs of a model whose tags have several states."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the labels of spans, without O."""

    @property
    def labels(self) -> Labels:
        """Return the tags and states."""

    def reading(self, docs: Sequence[Document]) -> LatentReader:
        """Return a reader of the documents' lattices."""


def state_names(labels: Labels) -> tuple[str, ...]:
    """Return each state's name, LABEL/NUMBER, numbered from 1 among the states of its label (all its tags).

    >>> state_names(Labels(("PER",), "IOB2", subs=(1, 2, 2)))
    ('O/1', 'PER/1', 'PER/2', 'PER/3', 'PER/4')
    """
    counts, names = Counter[str](), []
    for tag in labels.tag_of.tolist():
        label = labels.tags[tag][2:] or "O"
        counts[label] += 1
        names.append(f"{label}/{counts[label]}")
    return tuple(names)


def tag_name(labels: Labels, tag: int) -> str:
    """Return the name of tag number `tag`; in the scheme "runs", where a label has one tag, the label's name."""
    name = labels.tags[tag]
    return name[2:] if labels.scheme == "runs" and tag else name


def parts(
    model: LatentModel, doc: Document, spans: Sequence[Span], *, source: str, category: Callable[[str], str] = str
) -> list[Span]:
    """Return sorted parts of spans: runs in one state of the best path; DataError for overlaps or unknown labels.

    A part's label is its span's label and the number of the state, PER/2. States are numbered from 1 within a label;
    where first tokens have separate states, as in an HMM with sub-tags or with classes IOB2, those come first.
    Every token of a span is in one part, except tokens in no sentence, which have no state. `source` is the method,
    the source of the parts; `category` maps a label to the chain's label for it.
    """
    clash = find_overlap(spans)
    if clash is not None:
        a, b = clash
        raise DataError(
            f"spans [{a.start}, {a.end}) {a.label} and [{b.start}, {b.end}) {b.label} overlap; resolve overlaps first "
            "(chaffinch.resolve)"
        )
    labels, reading = model.labels, model.reading([doc])
    unknown = sorted({span.label for span in spans} - set(model.names))
    if unknown:
        raise DataError(f"the model has no label {unknown[0]!r}; it has {', '.join(model.names)}")
    index = {span.label: labels.names.index(category(span.label)) for span in spans}
    pieces = pieces_of(doc, spans, index, Fitted())
    tags = reading.seen.spread([labels.encode(pieces, len(doc.tokens))]).astype(np.int64)
    first = np.searchsorted(labels.tag_of, np.arange(len(labels.tags)))
    states = np.where(reading.seen.types > 0, first[tags] + reading.paths(tags), -1)
    by_token = np.full(len(doc.tokens), -1, np.int64)
    by_token[reading.seen.sources] = states[reading.seen.places]
    names = state_names(labels)
    numbers = {label: _numbers(names, labels.names[number]) for label, number in index.items()}
    return sorted(part for span in spans for part in _parts_of(doc, span, by_token, numbers[span.label], source))


def _numbers(names: Sequence[str], label: str) -> list[str]:
    """Return for each state name LABEL/NUMBER its number as text if it is of this label, else ""."""
    split = [name.rpartition("/") for name in names]
    return [number if owner == label else "" for owner, _, number in split]


def _parts_of(doc: Document, span: Span, states: Ints, numbers: Sequence[str], source: str) -> list[Span]:
    """Return a span's runs of tokens in one state as spans LABEL/NUMBER, cut to the span; other tokens are left out."""
    begin = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
    end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
    out = []
    for state, run in groupby(range(begin, end), key=lambda token: int(states[token])):
        tokens = list(run)
        first, last = max(int(doc.tokens[tokens[0], 0]), span.start), min(int(doc.tokens[tokens[-1], 1]), span.end)
        if state >= 0 and numbers[state]:  # else the token is in no sentence, or in a span before that cuts it as well
            out.append(Span(first, last, f"{span.label}/{numbers[state]}", source=source))
    return out
