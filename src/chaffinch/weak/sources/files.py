"""Annotation files, from a crowd or a language model: one source for every annotator.

One JSON object per line: {"document": id, "start": 3, "end": 8, "label": "Drug", "annotator": "ann", "text": "…"}.
Offsets count code points and the end is exclusive; "annotator" and "text" may be left out. "text", if
given, must equal the text at those offsets. A span that does not fit is counted, never moved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.checks import check_flags, check_name
from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.formats._shared.json_records import convert, records
from chaffinch.text.formats.walk import entries
from chaffinch.weak.sources.base import UNFIT, SourceKind

OTHER_TEXT = "span whose text differs"


class Line(msgspec.Struct):
    """One line of the file; other fields are ignored."""

    document: str | int
    start: int
    end: int
    label: str
    annotator: str | int | None = None
    text: str | None = None
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """A span of the file, with its text if the file has it; None if its offsets are those of no span."""

    span: Span | None
    text: str | None = field(default=None, repr=False)

    def fault(self, doc: Document) -> str | None:
        """Return why an annotated span does not fit the document's text; None if it does."""
        if self.span is None or not self.span.start < self.span.end <= len(doc.text):
            return UNFIT
        wrong = self.text is not None and doc.text[self.span.start : self.span.end] != self.text
        return OTHER_TEXT if wrong else None


@dataclass(frozen=True, slots=True)
class Annotations(SourceKind):
    """Spans that one annotator gave to documents, by document id. Build them with `read_annotations`."""

    kind: ClassVar[str] = "spans"
    beyond_data: ClassVar[str] = "spans of certain documents"
    file_fields: ClassVar[tuple[str, ...]] = ("path",)

    name: str
    places: Mapping[str, tuple[Place, ...]] = field(repr=False)
    _: KW_ONLY
    negative_reliable: bool = False

    def __post_init__(self) -> None:
        """Check the settings; raise ConfigError for an invalid one."""
        check_name(self.name, "name")
        check_flags(self, "negative_reliable")

    def __call__(self, doc: Document) -> list[Span]:
        """Return the file's spans for this document that fit its text."""
        fitting = (place.span for place in self.places.get(doc.id, ()) if place.fault(doc) is None)
        return [span for span in fitting if span is not None]

    @classmethod
    def factory(cls) -> Callable[..., Any]:
        """Return `read_annotations`, which makes a source for every annotator of a file."""
        return read_annotations

    def misfits(self, doc: Document) -> Counter[str]:
        """Count the spans that do not fit the document, by reason."""
        faults = (place.fault(doc) for place in self.places.get(doc.id, ()))
        return Counter(fault for fault in faults if fault is not None)

    def hint(self, docs: Sequence[Document]) -> str:
        """Return a hint if its file names none of the documents; "" otherwise."""
        known = sum(doc.id in self.places for doc in docs)
        return "" if known else "its file names none of these documents; compare the ids"

    @property
    def documents(self) -> frozenset[str]:
        """Return the ids of the documents that have spans."""
        return frozenset(self.places)


def read_annotations(name: str, path: str | Path, *, negative_reliable: bool = False) -> list[Annotations]:
    """Return the sources of an annotation file: NAME, or NAME/ANNOTATOR for each; DataError if it is bad or empty."""
    check_name(name, "name")
    found: dict[str, defaultdict[str, list[Place]]] = {}
    for file in entries(Path(path)):
        for number, record in records(file):
            try:
                line = convert(record, Line)
            except DataError as error:
                raise error.at(file.where, number) from None
            source = name if line.annotator is None else f"{name}/{line.annotator}"
            if not line.label.strip() or not source.isprintable():
                raise DataError(
                    "has an empty label, or an annotator with unprintable characters", path=file.where, line=number
                )
            valid = 0 <= line.start <= line.end
            place = Place(Span(line.start, line.end, line.label, line.score) if valid else None, line.text)
            found.setdefault(source, defaultdict(list))[str(line.document)].append(place)
    if not found:
        raise DataError("has no spans; leave this source out", path=path)
    return [
        Annotations(source, {doc: tuple(spans) for doc, spans in places.items()}, negative_reliable=negative_reliable)
        for source, places in sorted(found.items())
    ]
