"""ASQ-PHI: synthetic clinical queries with lists of identifiers that have no offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.formats._shared.json_records import parse_object
from chaffinch.text.formats.base import Entry
from recipes.corpora._common import files

_QUERY, _TAGS = "===QUERY===", "===PHI_TAGS==="
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")  # one character for one, so that offsets stay


def read(path: Path) -> Iterator[Document]:
    """One document per query; the identifiers are looked for in its text.

    Longer values are placed first. A value is placed wherever it stands as whole words (no letter or digit
    touches it) and does not overlap a value placed before: a repeated value is marked each time, and a hospital's
    name inside a record number is part of the number only. Curly and straight quotation marks are alike. A value
    that stands nowhere is an error. So there is at least one span per distinct value; `meta["values"]` is the
    number of values listed.
    """
    for file in files(path, lambda entry: entry.head().lstrip().startswith(_QUERY.encode()), "ASQ-PHI file"):
        for number, (line, query, tags) in enumerate(_blocks(file)):
            try:
                yield _document(str(number), query, tags)
            except DataError as error:
                raise error.at(file.where, line) from None


def _blocks(file: Entry) -> Iterator[tuple[int, str, list[dict[str, Any]]]]:
    """The line, the text and the tags of each query."""
    query: list[str] = []
    tags: list[dict[str, Any]] = []
    begin, in_tags = 0, False
    for number, line in file.lines():
        if line == _QUERY:
            if begin:
                yield begin, "\n".join(query), tags
            begin, query, tags, in_tags = number, [], [], False
        elif line == _TAGS:
            in_tags = True
        elif not in_tags:
            query.append(line)
        elif line.strip():
            tags.append(parse_object(line, file.where, number))
    yield begin, "\n".join(query), tags


def _document(name: str, query: str, tags: Sequence[Mapping[str, Any]]) -> Document:
    try:
        values = [(str(tag["value"]), str(tag["identifier_type"])) for tag in tags]
    except KeyError:
        raise DataError("a tag has no value or no identifier_type") from None
    return Document.make(query, id=name, layers={"gold": place(query, values)}, meta={"values": len(values)})


def place(text: str, values: Sequence[tuple[str, str]]) -> list[Span]:
    """The spans of (value, label) pairs in a text, longest value first.

    >>> place("Seen at LGH, number LGH-7", [("LGH", "PLACE"), ("LGH-7", "ID")])  # doctest: +ELLIPSIS
    [Span(start=20, end=25, label='ID', ...), Span(start=8, end=11, label='PLACE', ...)]
    """
    plain = text.translate(_STRAIGHT)
    placed: list[Span] = []
    for value, label in sorted(dict.fromkeys(values), key=lambda pair: -len(pair[0])):
        pattern = rf"(?<![^\W_]){re.escape(value.translate(_STRAIGHT))}(?![^\W_])"
        spans = [Span(*match.span(), label) for match in re.finditer(pattern, plain)]
        free = [span for span in spans if not any(span.overlaps(other) for other in placed)]
        if not free:
            raise DataError(f"a value of type {label} does not stand in the query on its own")
        placed += free
    return placed
