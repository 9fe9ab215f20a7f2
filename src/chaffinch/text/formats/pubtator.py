"""PubTator: one text file of many documents, each a title, an abstract, mentions and relations between concepts.

    227508|t|Naloxone reverses the antihypertensive effect of clonidine.
    227508|a|In unanesthetized, spontaneously hypertensive rats …
    227508<tab>0<tab>8<tab>Naloxone<tab>Chemical<tab>D009270
    227508<tab>CID<tab>D008750<tab>D007022

Offsets count the title, one character between, and the abstract. That character is a line feed here, and neither part
can hold one, so the first line of a text is its title; an empty abstract adds nothing. The optional seventh column
(what each concept of a composite mention stands for) is kept in the document's meta as "individual_mentions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import (
    by_concept,
    check_place,
    check_quote,
    note_no_layer,
    note_relation,
    whole,
)
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, Writing
from chaffinch.text.formats.units import Record, Unit, record_units
from chaffinch.text.span import Argument, Relation, Span

_HEADER = re.compile(r"([^|\t]+)\|([a-z]+)\|(.*)", re.DOTALL)
_START = re.compile(rb"\s*[^|\s]+\|t\|")
_INDIVIDUAL = "individual_mentions"
_ENDS = "[\r\n]"
_BREAKS = "[\t\r\n]"


@dataclass(slots=True)
class _Block:
    """One document while its lines are read."""

    id: str
    line: int
    title: str
    abstract: str | None = None
    spans: list[Span] = field(default_factory=list)
    individual: list[list[Any]] = field(default_factory=list)
    relations: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"{self.title}\n{self.abstract}" if self.abstract else self.title


@dataclass(frozen=True, slots=True)
class PubTator:
    """The format itself."""

    name: str = "pubtator"
    about: str = "PubTator: titles and abstracts with mentions, concepts and relations"
    folder: bool = False
    suffixes: tuple[str, ...] = (".pubtator", ".txt")
    can: ClassVar[Capabilities] = Capabilities("stream")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """A first line with an id and |t|."""
        return _START.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def units(self, files: Sequence[Entry], how: ReadOptions) -> Iterator[Unit]:
        """Yield the documents of each file, one after the other."""
        for file in files:
            yield from record_units(file, _blocks(file, how), partial(_document, how))

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """One block of lines per document, and an empty line after each."""
        count = 0
        with target.open("w", encoding="utf-8", newline="") as stream:
            for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
                how.drop(doc, "group", "soft", "given")
                note_no_layer(doc, how)
                stream.writelines(f"{line}\n" for line in (*_lines(doc, how), ""))
        return count


def _blocks(file: Entry, how: ReadOptions) -> Iterator[Record[_Block]]:
    block: _Block | None = None
    line = 0
    try:
        for line, content in file.lines():
            header = _HEADER.fullmatch(content)
            if header and header[2] == "t":
                if block:
                    yield Record(block.id, block.line, block)
                block = _Block(header[1], line, header[3])
            elif content.strip():
                _take(block, content, header, how)
    except DataError as error:
        raise error.at(file.where, line) from None
    if block:
        yield Record(block.id, block.line, block)


def _take(block: _Block | None, content: str, header: re.Match[str] | None, how: ReadOptions) -> None:
    """Puts a line that is not a title into the block it belongs to."""
    columns = content.split("\t")
    if block is None or (header[1] if header else columns[0]) != block.id:
        raise DataError("belongs to no document: its id is not that of the |t| line above it")
    if header:
        if header[2] != "a" or block.abstract is not None or block.spans or block.relations:
            raise DataError("one |t| line and one |a| line, then mentions and relations, are expected")
        block.abstract = header[3]
    elif len(columns) >= 5 and columns[1].isdecimal() and columns[2].isdecimal():
        _take_mention(block, columns, how)
    elif len(columns) in (4, 5) and not columns[1].isdecimal():
        block.relations.append((columns[1], columns[2], columns[3]))
        how.losses.add("fifth columns of relations", len(columns) == 5)
    else:
        raise DataError(
            f"has {len(columns)} columns; a mention is: id, start, end, text, type, concept (tabs between), "
            "a relation: id, type, concept, concept"
        )


def _take_mention(block: _Block, columns: Sequence[str], how: ReadOptions) -> None:
    start, end, text = whole(columns[1], "the start"), whole(columns[2], "the end"), block.text
    check_place(start, end, text)
    check_quote(columns[3], [text[start:end]], start, end)
    block.spans.append(Span(start, end, columns[4], concept=columns[5] if len(columns) > 5 else ""))
    if len(columns) > 6 and columns[6]:
        block.individual.append([start, end, columns[4], columns[6]])
    how.losses.add("columns after the seventh", max(0, len(columns) - 7))


def _document(how: ReadOptions, name: str, block: _Block) -> Document:
    mentions = by_concept(sorted(block.spans))
    return Document.make(
        block.text,
        id=name,
        meta={_INDIVIDUAL: block.individual} if block.individual else {},
        layers={how.layer: block.spans},
        relations=[_relation(label, concepts, mentions) for label, *concepts in block.relations],
        split=how.split,
        max_chars=how.max_chars,
    )


def _relation(label: str, concepts: Sequence[str], mentions: Mapping[str, tuple[Span, ...]]) -> Relation:
    """A relation between concepts, with all their mentions; the roles are the mentions' labels if these tell apart."""
    spans = [mentions.get(concept, ()) for concept in concepts]
    labels = [{span.label for span in found} for found in spans]
    told = all(len(one) == 1 for one in labels) and labels[0] != labels[1]
    roles = [next(iter(one)) for one in labels] if told else ["Arg1", "Arg2"]
    return Relation(label, tuple(map(Argument, roles, spans, concepts)))


def _lines(doc: Document, how: Writing) -> Iterator[str]:
    """The lines of one document; a line end that has no place is written as a blank, so that offsets stay."""
    spans = how.spans(doc)
    how.drop_from_spans(spans, "score", "source")
    name = _clean(doc.id, r"[|\t\r\n\ufeff]", "ids", how) or "_"
    how.losses.add("empty ids", not doc.id)
    cut = doc.text.find("\n") if doc.text.find("\n") < len(doc.text) - 1 else -1
    title = doc.text[:cut] if cut >= 0 else doc.text
    abstract = doc.text[cut + 1 :] if cut >= 0 else ""
    for kind, part in (("t", title), ("a", abstract)):
        yield f"{name}|{kind}|" + _clean(part, _ENDS, "line ends (written as blanks)", how)
    individual = _individual(doc, spans, how)
    written = []
    for span in spans:
        quote = re.sub(_BREAKS, " ", doc.text[span.start : span.end])
        label = _clean(span.label, _BREAKS, "tabs and line ends in labels", how)
        concept = _clean(span.concept, _BREAKS, "tabs and line ends in concepts", how)
        written.append(Span(span.start, span.end, label, concept=concept))
        more = individual.get((span.start, span.end, span.label))
        yield "\t".join([name, str(span.start), str(span.end), quote, label, concept, *([more] if more else [])])
    mentions = by_concept(written)
    for relation in doc.relations:
        concepts = _concepts(relation)
        if concepts is None:
            how.losses.add("relations that are not between two concepts")
            continue
        label = _clean(relation.label, _BREAKS, "tabs and line ends in labels", how)
        note_relation(relation, _relation(label, concepts, mentions), how)
        yield "\t".join([name, label, *concepts])


def _concepts(relation: Relation) -> list[str] | None:
    """The two concepts of a relation: those it names, or the one that all mentions of an argument share."""
    concepts: list[str] = []
    for argument in relation.arguments:
        shared = {argument.concept} if argument.concept else {span.concept for span in argument.spans}
        concepts += shared if len(shared) == 1 else {""}
    usable = len(concepts) == 2 and all(concepts) and not any(re.search(_BREAKS, one) for one in concepts)
    return concepts if usable and relation.label and not relation.label.isdecimal() else None


def _individual(doc: Document, spans: Sequence[Span], how: Writing) -> dict[tuple[int, int, str], str]:
    """The seventh columns that the meta holds, by place and label; what belongs to no span, and other meta, is lost."""
    held = doc.meta.get(_INDIVIDUAL, ())
    places = {(span.start, span.end, span.label) for span in spans}
    found: dict[tuple[int, int, str], str] = {}
    for item in held if isinstance(held, Sequence) else ():
        match item:
            case [int(start), int(end), str(label), str(text)] if text and not re.search(_BREAKS, text):
                if (start, end, label) in places:
                    found.setdefault((start, end, label), text)
    whole_field = bool(held) and [[*place, text] for place, text in found.items()] == held
    how.losses.add("meta fields", len(doc.meta) - whole_field)
    return found


def _clean(text: str, pattern: str, what: str, how: Writing) -> str:
    """The text with a blank for each character that would break the line, and an account of them."""
    kept, replaced = re.subn(pattern, " ", text)
    how.losses.add(what, replaced)
    return kept


PUBTATOR = PubTator()
FORMATS = (PUBTATOR,)
