"""NIST IE-ER 1999: newswire with unclosed SGML-like tags for names, times and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from recipes.corpora._common import files

_DOC = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL)
_NUMBER = re.compile(r"<DOCNO>\s*(\S+)\s*</DOCNO>")
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_MARKUP = re.compile(
    r'<b_(?P<entity>\w+) type="(?P<label>\w+)"(?P<rest>[^>]*)>|<e_(?P<entity_end>\w+)>'
    r"|<(?P<section>[A-Z_]+)>|</(?P<section_end>[A-Z_]+)>|&AMP;"
)
_EXTRA = re.compile(r'(\w+)="([^"]*)"')


def read(path: Path) -> Iterator[Document]:
    """One document per story: everything in BODY (headline, text, wire notes) without its tags.

    Characters are latin-1; &AMP; becomes &, other wire codes stay. `meta["sections"]` lists
    [name, start, end] of HEADLINE, TEXT and ANNOTATION. Labels are the types (PERSON, DATE, …). A tag inside
    another is a span of its own, even if both say the same. `meta["extra"]` lists [start, end, label, attributes]
    of entities that the scorer may skip (status="opt") or that have another right answer (alt="…").
    """
    for file in files(path, lambda entry: b"<IEER_DOC" in entry.head(), "IEER file"):
        try:
            for story in _DOC.finditer(file.content().decode("latin-1")):
                yield _document(story[1])
        except DataError as error:
            raise error.at(file.where) from None


def _document(story: str) -> Document:
    number, body = _NUMBER.search(story), _BODY.search(story)
    if number is None or body is None:
        raise DataError("a story has no DOCNO or no BODY")
    text, spans, meta = _strip(body[1])
    return Document.make(text, id=number[1], layers={"gold": spans}, meta=meta)


def _strip(body: str) -> tuple[str, list[Span], dict[str, Any]]:
    """The text without tags, the entities and the sections."""
    kept: list[str] = []
    spans: list[Span] = []
    sections: list[list[Any]] = []
    extra: list[list[Any]] = []
    opened: list[tuple[int, re.Match[str]]] = []
    last = length = 0
    for tag in _MARKUP.finditer(body):
        piece = body[last : tag.start()] + ("" if tag.lastgroup else "&")
        kept.append(piece)
        length += len(piece)
        last = tag.end()
        if tag["entity"] or tag["section"]:
            opened.append((length, tag))
        elif tag.lastgroup:
            start, opening = opened.pop() if opened else (0, tag)
            if (opening["entity"], opening["section"]) != (tag["entity_end"], tag["section_end"]):
                raise DataError(f"a tag that ends {tag[tag.lastgroup]} does not end what was opened last")
            if tag["section_end"]:
                sections.append([tag["section_end"], start, length])
                continue
            spans.append(Span(start, length, opening["label"]))
            if attributes := dict(_EXTRA.findall(opening["rest"])):
                extra.append([start, length, opening["label"], attributes])
    kept.append(body[last:])
    if opened:
        raise DataError(f"{len(opened)} tags are not closed")
    return "".join(kept), spans, {"sections": sections, **({"extra": extra} if extra else {})}
