"""The document: an immutable text with offsets, layers of spans, soft labels and relations.

T tokens, S sentences, L labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError, LimitError
from chaffinch.text.columns import Columns
from chaffinch.text.sentences import line_offsets, sentence_offsets
from chaffinch.text.span import Relation, Span
from chaffinch.text.tokens import RangeMode, ranges_of_spans, token_offsets

Offsets: TypeAlias = NDArray[np.int32]  # (T, 2) start and end of each token or sentence, in code points
Splitter: TypeAlias = Literal["prose", "lines"]

_UNCUT = ContextVar("uncut", default=False)  # whether documents are made without tokens and sentences
MAX_CHARS = 10_000_000  # longer texts are refused, to bound memory; users can raise it (--max-chars)


@dataclass(frozen=True, slots=True, eq=False)
class Soft:
    """Token distributions: `values[t, l]` is the probability of `labels[l]` at token t; shape (T, L)."""

    labels: tuple[str, ...]
    values: NDArray[np.float64]

    def __eq__(self, other: object) -> bool:
        """Tell whether labels and values are equal; NotImplemented for an object of another class."""
        if not isinstance(other, Soft):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One text with its tokens, sentences, layers of spans, soft labels and relations.

    Build it with `make`; `with_layer` and `with_soft` return changed copies. `group` is the patient; None means that
    the document is a group by itself. `given` is true if the tokens came with the format and must never be recomputed.
    """

    id: str
    text: str = field(repr=False)
    group: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tokens: Offsets = field(default_factory=lambda: np.zeros((0, 2), np.int32), repr=False)
    sentences: Offsets = field(default_factory=lambda: np.zeros((0, 2), np.int32), repr=False)
    layers: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    soft: Mapping[str, Soft] = field(default_factory=dict, repr=False)
    relations: tuple[Relation, ...] = ()
    given: bool = field(default=False, repr=False)
    columns: Columns | None = field(default=None, repr=False)  # of a table; no part of what a document is

    @classmethod
    def make(
        cls,
        text: str,
        *,
        id: str = "",  # noqa: A002  (the field's name)
        group: str | None = None,
        meta: Mapping[str, Any] | None = None,
        layers: Mapping[str, Iterable[Span]] | None = None,
        relations: Iterable[Relation] = (),
        soft: Mapping[str, Soft] | None = None,
        tokens: Iterable[tuple[int, int]] | Offsets | None = None,
        sentences: Iterable[tuple[int, int]] | Offsets | None = None,
        split: Splitter = "prose",
        max_chars: int = MAX_CHARS,
        columns: Columns | None = None,
    ) -> Document:
        """Return a checked document, tokens and sentences computed if not given; DataError if a part is wrong.

        >>> doc = Document.make("Dr. Penn saw her.", layers={"gold": [Span(4, 8, "DOCTOR")]})
        >>> [doc.text[a:b] for a, b in doc.tokens]
        ['Dr.', 'Penn', 'saw', 'her', '.']
        """
        check_text(text, max_chars=max_chars)
        if _UNCUT.get():
            checked = {name: _sort_spans(spans, len(text)) for name, spans in (layers or {}).items()}
            return cls(id, text, group, dict(meta or {}), layers=checked, columns=columns)
        given = tokens is not None
        token_array = _offsets(tokens, len(text), "token") if tokens is not None else token_offsets(text)
        if sentences is not None:
            cuts = _offsets(sentences, len(text), "sentence")
        else:
            cuts = line_offsets(text, token_array) if split == "lines" else sentence_offsets(text, token_array)
        checked = {name: _sort_spans(spans, len(text)) for name, spans in (layers or {}).items()}
        soft = dict(soft or {})
        for labels in soft.values():  # messages show no name of a layer and no label: they are text of the file
            if labels.values.shape != (len(token_array), len(labels.labels)):
                shape, expected = labels.values.shape, (len(token_array), len(labels.labels))
                raise DataError(f"a soft layer has shape {shape}; {expected} fits the tokens and labels")
        return cls(
            id, text, group, dict(meta or {}), token_array, cuts, checked, soft, tuple(relations), given, columns
        )

    @property
    def patient(self) -> str:
        """Return the key that must stay on one side of any split: the group, else the document's id."""
        return self.id if self.group is None else self.group

    def words(self) -> list[str]:
        """Return the text of every token, in order."""
        text = self.text
        return [text[start:end] for start, end in self.tokens.tolist()]

    def sentence_tokens(self) -> NDArray[np.int64]:
        """Return (S, 2) half-open token indices of each sentence; a token belongs to the sentence it starts in."""
        starts = np.searchsorted(self.tokens[:, 0], self.sentences[:, 0], side="left")
        ends = np.searchsorted(self.tokens[:, 0], self.sentences[:, 1], side="left")
        return np.stack([starts, ends], axis=1)

    def token_ranges(
        self, spans: Sequence[Span] | NDArray[np.integer], mode: RangeMode = "touch"
    ) -> NDArray[np.int64]:  # fmt: skip
        """Return (n, 2) half-open token indices of n spans or rows (start, end): by `mode` touched, inside, or exact.

        "touch": the tokens that share a character with the span. "inside": the tokens that lie wholly in it. "exact":
        the tokens that it covers from edge to edge, if both its edges are token edges. A span that has no such token
        has an empty range, whose two numbers are equal.

        >>> doc = Document.make("Dr. Penn saw her.")
        >>> cuts_two_tokens = [Span(5, 10, "DOCTOR")]
        >>> doc.token_ranges(cuts_two_tokens).tolist(), doc.token_ranges(cuts_two_tokens, "exact").tolist()
        ([[1, 3]], [[2, 2]])
        """
        if isinstance(spans, np.ndarray):
            starts, ends = spans.astype(np.int32, copy=False).T
        else:
            starts = np.array([span.start for span in spans], np.int32)
            ends = np.array([span.end for span in spans], np.int32)
        return ranges_of_spans(self.tokens, starts, ends, mode)

    def with_layer(self, name: str, spans: Iterable[Span]) -> Document:
        """Return a copy with this layer of spans added, or replaced; DataError if one is empty or outside the text."""
        layers = {**self.layers, name: _sort_spans(spans, len(self.text))}
        return Document(
            self.id, self.text, self.group, self.meta, self.tokens, self.sentences, layers, self.soft, self.relations,
            self.given, self.columns,
        )  # fmt: skip

    def with_soft(self, name: str, soft: Soft) -> Document:
        """Return a copy with this soft layer added, or replaced; DataError unless it has one row per token."""
        if len(soft.values) != len(self.tokens):
            raise DataError(f"the soft layer has {len(soft.values)} rows for {len(self.tokens)} tokens")
        return Document(
            self.id, self.text, self.group, self.meta, self.tokens, self.sentences, self.layers,
            {**self.soft, name: soft}, self.relations, self.given, self.columns,
        )  # fmt: skip

    def layer(self, name: str | None = None) -> tuple[Span, ...]:
        """Return the spans of a layer, by default "gold" or the only one, () without layers; DataError if not there."""
        if name is None:
            name = "gold" if "gold" in self.layers or len(self.layers) != 1 else next(iter(self.layers))
            if name not in self.layers and self.layers:
                raise DataError(f"{count_layers(self.layers)} and none is called gold; name one")
            return self.layers.get(name, ())
        if name not in self.layers:
            raise DataError(f"there is no layer {name!r}; the document has {count_layers(self.layers)}")
        return self.layers[name]

    def _repr_html_(self) -> str:
        """Return the text with its spans marked, for a notebook, which shows it because its user asked for it."""
        from chaffinch.text.markup import document_html

        return document_html(self)

    def __eq__(self, other: object) -> bool:
        """Tell whether all fields except `columns` are equal; NotImplemented for an object of another class."""
        if not isinstance(other, Document):
            return NotImplemented
        return (
            (self.id, self.text, self.group, self.given) == (other.id, other.text, other.group, other.given)
            and (self.meta, self.layers, self.relations) == (other.meta, other.layers, other.relations)
            and np.array_equal(self.tokens, other.tokens)
            and np.array_equal(self.sentences, other.sentences)
            and self.soft == other.soft
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@contextmanager
def uncut_documents() -> Iterator[None]:
    """Make `Document.make` skip tokens, sentences, soft labels and relations inside the block.

    For callers that need ids, patients, fields or texts only: to cut a text costs far more than to read it.
    """
    before = _UNCUT.set(True)
    try:
        yield
    finally:
        _UNCUT.reset(before)


def check_text(text: str, *, max_chars: int) -> None:
    """Raise LimitError if a text is over the limit, DataError if it is not valid Unicode (lone surrogates)."""
    if len(text) > max_chars:
        raise LimitError(f"{len(text):,} characters, the limit is {max_chars:,}; raise it with --max-chars")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            position = error.start
            raise DataError(f"character {position} is half of a surrogate pair; re-encode the text as UTF-8") from None


def _sort_spans(spans: Iterable[Span], length: int) -> tuple[Span, ...]:
    """Return the spans sorted, () if there are none; DataError if one is empty or outside a text of this length."""
    ordered = tuple(spans)
    if not ordered:
        return ordered
    if any(b.start < a.end for a, b in pairwise(ordered)):  # disjoint and in order is the usual case
        ordered = tuple(sorted(ordered))
    for span in ordered:
        if not 0 <= span.start < span.end <= length:
            raise DataError(
                f"span [{span.start}, {span.end}) does not fit a text of {length} characters; offsets count code "
                "points from 0, the end is exclusive"
            )
    return ordered


def _offsets(pairs: Iterable[tuple[int, int]] | Offsets, length: int, what: str) -> Offsets:
    """Return pairs as an array (n, 2); DataError, which names `what`, unless they rise inside the text's length."""
    array = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs), np.int32).reshape(-1, 2)
    flat = array.ravel()
    if len(flat) and (flat[0] < 0 or flat[-1] > length or np.any(np.diff(flat) < 0)):
        raise DataError(f"{what} offsets must rise and stay inside the {length} characters of the text")
    return array


def count_layers(names: Collection[str]) -> str:
    """Return how many layers there are, in words for a message; only "gold" is named, as other names are a user's text.

    >>> count_layers(["gold", "ward 4"]), count_layers(["ward 4"]), count_layers([])
    ("2 layers, 'gold' among them", '1 layer', 'no layer')
    """
    number = f"{len(names) or 'no'} layer{'s' if len(names) > 1 else ''}"
    return f"{number}, 'gold' among them" if "gold" in names else number
