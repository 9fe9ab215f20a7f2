"""The GENIA treebank: sentences, tokens with parts of speech, and constituents of MEDLINE abstracts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.formats._shared.xml import Element, parse
from chaffinch.text.formats.base import Entry
from recipes.corpora._common import attribute, files


def read(path: Path) -> Iterator[Document]:
    """One document per abstract: sentences of title and abstract one below the other, with given tokens.

    `meta["columns"]` is {"1": one part of speech per token}, as column files are read, with the corpus's tags
    (PERIOD, LRB and PRPP where Penn has ".", "-LRB-" and "PRP$"). The layer "constituents" has a span per phrase
    that has words. Equal spans do not tell which one is inside, and a trace has no words, so `meta["constituents"]`
    keeps the trees themselves: a list in the order of the opening brackets of [parent, category, first token, end
    token, attributes], where parent is an index into this list (-1 for the top of a sentence), tokens count through
    the document, a null element has first = end and the attribute "null", and the other attributes (role, syn, id,
    ref, …) are as in the corpus.
    `meta["split"]` is McClosky's, where the `.pmids` lists lie beside the archive.
    """
    found = files(path, lambda entry: entry.suffix in {".xml", ".pmids"}, "treebank XML")
    splits = _splits([file for file in found if file.suffix == ".pmids"])
    for file in found:
        if file.suffix == ".xml":
            try:
                yield _document(parse(file.content(), file.where), splits)
            except DataError as error:
                raise error.at(file.where) from None


def _splits(lists: Sequence[Entry]) -> dict[int, str]:
    """The split of each PubMed id; a list is called mclosky_train.pmids."""
    found: dict[int, str] = {}
    for file in lists:
        for number, line in file.lines():
            if line.strip():
                if not line.strip().isdecimal():
                    raise DataError("expected one PubMed id per line", path=file.where, line=number)
                found[int(line)] = PurePosixPath(file.stem).name.partition("_")[2]
    return found


@dataclass(slots=True)
class _Trees:
    """What is gathered on the walk through the trees of a document."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    tokens: list[tuple[int, int]] = field(default_factory=list)
    pos: list[str] = field(default_factory=list)
    constituents: list[list[Any]] = field(default_factory=list)

    def write(self, piece: str | None) -> None:
        if piece:
            self.pieces.append(piece)
            self.length += len(piece)

    def walk(self, node: Element, parent: int) -> None:
        """Adds a phrase or a token, and what follows it."""
        if node.tag == "tok":
            start = self.length
            self.write(node.text)
            self.tokens.append((start, self.length))
            self.pos.append(attribute(node, "cat"))
        elif node.tag == "cons":
            own = len(self.constituents)
            rest = {str(key): str(value) for key, value in node.attrib.items() if key != "cat"}
            entry = [parent, attribute(node, "cat"), len(self.tokens), 0, rest]
            self.constituents.append(entry)
            self.write(node.text)
            for child in node:
                self.walk(child, own)
            entry[3] = len(self.tokens)
        else:
            raise DataError(f"a <{node.tag}> is neither a phrase nor a token")
        self.write(node.tail)

    def spans(self) -> Iterator[Span]:
        for _, category, first, end, _ in self.constituents:
            if end > first:
                yield Span(self.tokens[first][0], self.tokens[end - 1][1], category)


def _document(root: Element, splits: dict[int, str]) -> Document:
    trees = _Trees()
    sentences: list[tuple[int, int]] = []
    for sentence in root.iter("sentence"):
        if sentences:
            trees.write("\n")
        start = trees.length
        for child in sentence:
            trees.walk(child, -1)
        sentences.append((start, trees.length))
    name = (root.findtext(".//PMID") or "").strip()
    if not name.isdecimal():
        raise DataError("has no PMID")
    meta: dict[str, Any] = {"columns": {"1": trees.pos}, "constituents": trees.constituents}
    if int(name) in splits:
        meta["split"] = splits[int(name)]
    return Document.make(
        "".join(trees.pieces),
        id=name,
        layers={"constituents": trees.spans()},
        meta=meta,
        tokens=trees.tokens,
        sentences=sentences,
    )
