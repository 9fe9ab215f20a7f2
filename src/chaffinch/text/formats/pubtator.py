"""PubTator: one text file of many documents, each a title, an abstract, mentions and relations between concepts.

    227508|t|Naloxone reverses the antihypertensive effect of clonidine.
    227508|a|In unanesthetized, spontaneously hypertensive rats …
    227508<tab>0<tab>8<tab>Naloxone<tab>Chemical<tab>D009270
    227508<tab>CID<tab>D008750<tab>D007022

Offsets count the title, one character between, and the abstract. That character is a line feed here, and neither part
can hold one, so the first line of a text is its title; an empty abstract adds nothing. The optional seventh column
(the text of each concept in a composite mention) is kept in the document's meta as "individual_mentions".
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
    check_offsets,
    check_quote,
    mentions_by_concept,
    note_no_layer,
    note_relation,
    whole_number,
)
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
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
        """Return title and abstract with a line end between them, or the title alone if there is no abstract."""
        return f"{self.title}\n{self.abstract}" if self.abstract else self.title


@dataclass(frozen=True, slots=True)
class PubTator:
    """The PubTator format."""

    name: str = "pubtator"
    about: str = "PubTator: titles and abstracts with mentions, concepts and relations"
    folder: bool = False
    suffixes: tuple[str, ...] = (".pubtator", ".txt")
    can: ClassVar[Capabilities] = Capabilities("stream")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether the first line of a file has an id and |t|."""
        return _START.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document of each file, one after the other."""
        for file in files:
            yield from record_units(file, _blocks(file, options), partial(_document, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a block of lines per document, an empty line after each; count losses; return how many documents."""
        count = 0
        with target.open("w", encoding="utf-8", newline="") as stream:
            for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
                options.drop(doc, "group", "soft", "given")
                note_no_layer(doc, options)
                stream.writelines(f"{line}\n" for line in (*_lines(doc, options), ""))
        return count


def _blocks(file: Entry, options: ReadOptions) -> Iterator[Record[_Block]]:
    """Yield the documents of a file, each from its |t| line to the next one; DataError for a line that fits none."""
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
                _take(block, content, header, options)
    except DataError as error:
        raise error.at(file.where, line) from None
    if block:
        yield Record(block.id, block.line, block)


def _take(block: _Block | None, content: str, header: re.Match[str] | None, options: ReadOptions) -> None:
    """Add a line that is no title to the block: abstract, mention or relation; count losses; DataError for others."""
    columns = content.split("\t")
    if block is None or (header[1] if header else columns[0]) != block.id:
        raise DataError("belongs to no document: its id is not that of the |t| line above it")
    if header:
        if header[2] != "a" or block.abstract is not None or block.spans or block.relations:
            raise DataError("one |t| line and one |a| line, then mentions and relations, are expected")
        block.abstract = header[3]
    elif len(columns) >= 5 and columns[1].isdecimal() and columns[2].isdecimal():
        _take_mention(block, columns, options)
    elif len(columns) in (4, 5) and not columns[1].isdecimal():
        block.relations.append((columns[1], columns[2], columns[3]))
        options.losses.add("fifth columns of relations", len(columns) == 5)
    else:
        raise DataError(
            f"has {len(columns)} columns; a mention is: id, start, end, text, type, concept (tabs between), "
            "a relation: id, type, concept, concept"
        )


def _take_mention(block: _Block, columns: Sequence[str], options: ReadOptions) -> None:
    """Add a mention's span and seventh column to the block; count columns after it as lost; DataError if it misfits."""
    start, end, text = whole_number(columns[1], "the start"), whole_number(columns[2], "the end"), block.text
    check_offsets(start, end, text)
    check_quote(columns[3], [text[start:end]], start, end)
    block.spans.append(Span(start, end, columns[4], concept=columns[5] if len(columns) > 5 else ""))
    if len(columns) > 6 and columns[6]:
        block.individual.append([start, end, columns[4], columns[6]])
    options.losses.add("columns after the seventh", max(0, len(columns) - 7))


def _document(options: ReadOptions, name: str, block: _Block) -> Document:
    """Return the document of a block of lines: text, spans as a layer, relations with all mentions."""
    mentions = mentions_by_concept(sorted(block.spans))
    return Document.make(
        block.text,
        id=name,
        meta={_INDIVIDUAL: block.individual} if block.individual else {},
        layers={options.layer: block.spans},
        relations=[_relation(label, concepts, mentions) for label, *concepts in block.relations],
        split=options.split,
        max_chars=options.max_chars,
    )


def _relation(label: str, concepts: Sequence[str], mentions: Mapping[str, tuple[Span, ...]]) -> Relation:
    """Return a relation of two concepts with their mentions; roles are the labels if they differ, else Arg1, Arg2."""
    spans = [mentions.get(concept, ()) for concept in concepts]
    labels = [{span.label for span in found} for found in spans]
    distinct = all(len(names) == 1 for names in labels) and labels[0] != labels[1]
    roles = [next(iter(names)) for names in labels] if distinct else ["Arg1", "Arg2"]
    return Relation(label, tuple(map(Argument, roles, spans, concepts)))


def _lines(doc: Document, options: WriteOptions) -> Iterator[str]:
    """Yield the lines of one document; line ends that cannot be kept become blanks; count what is lost."""
    spans = options.spans(doc)
    options.drop_from_spans(spans, "score", "source")
    name = _clean(doc.id, r"[|\t\r\n\ufeff]", "ids", options) or "_"
    options.losses.add("empty ids", not doc.id)
    cut = doc.text.find("\n") if doc.text.find("\n") < len(doc.text) - 1 else -1
    title = doc.text[:cut] if cut >= 0 else doc.text
    abstract = doc.text[cut + 1 :] if cut >= 0 else ""
    for kind, part in (("t", title), ("a", abstract)):
        yield f"{name}|{kind}|" + _clean(part, _ENDS, "line ends (written as blanks)", options)
    individual = _individual(doc, spans, options)
    written = []
    for span in spans:
        quote = re.sub(_BREAKS, " ", doc.text[span.start : span.end])
        label = _clean(span.label, _BREAKS, "tabs and line ends in labels", options)
        concept = _clean(span.concept, _BREAKS, "tabs and line ends in concepts", options)
        written.append(Span(span.start, span.end, label, concept=concept))
        more = individual.get((span.start, span.end, span.label))
        yield "\t".join([name, str(span.start), str(span.end), quote, label, concept, *([more] if more else [])])
    mentions = mentions_by_concept(written)
    for relation in doc.relations:
        concepts = _concepts(relation)
        if concepts is None:
            options.losses.add("relations that are not between two concepts")
            continue
        label = _clean(relation.label, _BREAKS, "tabs and line ends in labels", options)
        note_relation(relation, _relation(label, concepts, mentions), options)
        yield "\t".join([name, label, *concepts])


def _concepts(relation: Relation) -> list[str] | None:
    """Return the concepts of the two arguments: named, or shared by all mentions; None if they cannot be written."""
    concepts: list[str] = []
    for argument in relation.arguments:
        shared = {argument.concept} if argument.concept else {span.concept for span in argument.spans}
        concepts += shared if len(shared) == 1 else {""}
    usable = len(concepts) == 2 and all(concepts) and not any(re.search(_BREAKS, concept) for concept in concepts)
    return concepts if usable and relation.label and not relation.label.isdecimal() else None


def _individual(doc: Document, spans: Sequence[Span], options: WriteOptions) -> dict[tuple[int, int, str], str]:
    """Return {(start, end, label): seventh column} in the meta, for spans there are; count other meta as lost."""
    stored = doc.meta.get(_INDIVIDUAL, ())
    keys = {(span.start, span.end, span.label) for span in spans}
    found: dict[tuple[int, int, str], str] = {}
    for item in stored if isinstance(stored, Sequence) else ():
        match item:
            case [int(start), int(end), str(label), str(text)] if text and not re.search(_BREAKS, text):
                if (start, end, label) in keys:
                    found.setdefault((start, end, label), text)
    whole_field = bool(stored) and [[*key, text] for key, text in found.items()] == stored
    options.losses.add("meta fields", len(doc.meta) - whole_field)
    return found


def _clean(text: str, pattern: str, what: str, options: WriteOptions) -> str:
    """Return the text, a blank for each character that matches the pattern; count them as lost under `what`."""
    kept, replaced = re.subn(pattern, " ", text)
    options.losses.add(what, replaced)
    return kept


PUBTATOR = PubTator()
FORMATS = (PUBTATOR,)
