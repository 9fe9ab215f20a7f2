"""What the readers share: choosing files, parsing them safely, and documents whose sentences are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.errors import DataError
from chaffinch.text import Document, Relation, Span
from chaffinch.text.formats._shared.xml import Element
from chaffinch.text.formats.base import Entry
from chaffinch.text.formats.walk import entries
from chaffinch.text.tokens import token_offsets


def files(path: Path, keep: Callable[[Entry], bool], what: str) -> list[Entry]:
    """The files of a corpus behind a folder, an archive or one file, sorted by name; none at all is an error."""
    found = [entry for entry in entries(path) if keep(entry)]
    if not found:
        raise DataError(f"holds no {what}; check the path", path=path)
    return found


def parse_json(entry: Entry) -> Any:
    """The content of a JSON file."""
    try:
        return msgspec.json.decode(entry.content())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("is not valid JSON", path=entry.where) from None


def attribute(node: Element, name: str) -> str:
    """A required attribute."""
    value = node.get(name)
    if value is None:
        raise DataError(f"a <{node.tag}> has no {name!r}")
    return value


def with_sentences(
    text: str,
    sentences: Iterable[tuple[int, int]],
    *,
    id: str,  # noqa: A002  (the field's name)
    gold: Iterable[Span],
    relations: Iterable[Relation] = (),
    meta: Mapping[str, Any],
) -> Document:
    """A document with the corpus's own sentences.

    The corpus gives no tokens, so they are made here and handed over as given: JSONL keeps sentences only
    together with tokens, and a sentence of the corpus must never be cut anew.
    """
    return Document.make(
        text,
        id=id,
        layers={"gold": gold},
        relations=relations,
        meta=meta,
        tokens=token_offsets(text),
        sentences=sentences,
    )


def one_sentence(
    text: str,
    *,
    id: str,  # noqa: A002  (the field's name)
    gold: Sequence[Span],
    relations: Iterable[Relation] = (),
    meta: Mapping[str, Any],
) -> Document:
    """A document that is one sentence, whatever a splitter would make of it."""
    return with_sentences(text, [(0, len(text))], id=id, gold=gold, relations=relations, meta=meta)
