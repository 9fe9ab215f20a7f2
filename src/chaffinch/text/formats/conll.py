"""Column files: a token per line, its tag in the last column, a blank line after each sentence.

A line with a tab is split at tabs, any other at spaces, so that a token may hold every character except those. The
columns in between (part of speech, chunk) are kept per token in the meta field "columns": {"1": […], "2": […]}.
Documents begin at a line "-DOCSTART- …" or "###MEDLINE:<id>"; a file without such lines is one document, named after
the file, unless `ReadOptions.documents` cuts it into documents of some sentences each. The meta field "conll" keeps a
mark or separator that differs from the one we would write, so that a file in canonical layout comes back byte for byte
under the same name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, TextIO
from urllib.parse import quote, unquote

from chaffinch.errors import ConfigError, DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.token_tags import (
    TAG,
    lay_out,
    note_fields,
    note_layout,
    sentence_sizes,
    spans_of_tags,
    tags_of,
)
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Record, Unit, record_units
from chaffinch.text.tags import Scheme

_DOCSTART = "-DOCSTART-"
_MEDLINE = "###MEDLINE:"
_UNSAFE = re.compile(r"[\s%\x00-\x1f]")
_PLAIN_ROWS = 3  # a file without a mark needs as many rows to be recognised; fewer may be prose: "Vitamin B-12"
_DAMAGE = 2  # characters in which a mark may be wrong and is still taken for one; more would match words
_FITTING_SHARE = 0.9  # of rows with a tag: lower takes more prose for columns, higher refuses files with a few bad rows


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Separator and number of columns, the same for all rows of a file."""

    separator: str = "\t"
    width: int = 2

    def mark(self, name: str, otherwise: str) -> str:
        """Return a document's -DOCSTART- line, with the id `name` unless the reader would assign it (`otherwise`)."""
        filling = ["O"] * max(1, self.width - 2)
        if name == otherwise:
            return self.separator.join([_DOCSTART, *(["-X-"] if self.width > 2 else []), *filling])
        safe = _UNSAFE.sub(lambda match: quote(match[0], safe=""), name)
        return self.separator.join([_DOCSTART, f"id={safe}", *filling])


@dataclass(slots=True)
class _Block:
    """The rows of one document while a file is read."""

    number: int
    line: int = 1
    mark: str | None = None
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    between: list[list[str]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    open: int = 0  # tokens before the sentence that is being read
    layout: ColumnLayout = field(default_factory=ColumnLayout)

    def end_sentence(self) -> None:
        """End the sentence under way and note its size, if it has tokens."""
        if len(self.words) > self.open:
            self.sizes.append(len(self.words) - self.open)
            self.open = len(self.words)

    def record(self, otherwise: str, layout: ColumnLayout | None) -> Record[_Block]:
        """End the last sentence, keep the layout, return the block as a record; `otherwise` is a default id."""
        self.end_sentence()
        self.layout = layout or ColumnLayout()
        return Record(otherwise, self.line, self)


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A column format, written in one tag scheme and read in any."""

    name: str
    about: str
    scheme: Scheme
    suffixes: tuple[str, ...]
    folder: bool = False
    can: ClassVar[Capabilities] = Capabilities("stream", 4, needs_tokens=True, cuts=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell, for IOB2 only, whether there are marks or many rows, most equally wide and with a tag at the end."""
        if self.scheme != "IOB2":
            return False
        lines = head.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
        rows = [_cells(line.removesuffix("\r")) for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
        marks = sum(_is_mark(row) for row in rows)
        rows = [row for row in rows if not _is_mark(row)]
        fitting = sum(len(row) == len(rows[0]) > 1 and TAG.fullmatch(row[-1]) is not None for row in rows)
        return (marks > 0 or len(rows) >= _PLAIN_ROWS) and len(rows) > 0 and fitting >= _FITTING_SHARE * len(rows)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document between -DOCSTART- marks; without marks, per file or as the options say."""
        stems = Counter(file.stem for file in files)
        for file in files:
            name = file.stem if stems[file.stem] == 1 else file.name
            yield from record_units(file, _blocks(file, name, options), partial(_document, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a file in the first document's layout, marks if needed; count losses; return how many documents."""
        waiting = iter(documents)
        ahead = list(islice(waiting, 2))
        stem = str(PurePosixPath(target.name).with_suffix(""))
        layout = _layout(ahead[0]) if ahead else ColumnLayout()
        count = 0
        with target.open("w", encoding="utf-8", newline="") as stream:
            for count, doc in enumerate(chain(ahead, waiting), start=1):
                bare = len(ahead) == 1 and doc.id == stem and _can_be_bare(doc)
                mark = None if bare else _mark(doc, f"{stem}-{count}", layout)
                self._write_document(stream, doc, mark, layout, options)
        return count

    def _write_document(
        self, stream: TextIO, doc: Document, mark: str | None, layout: ColumnLayout, options: WriteOptions
    ) -> None:
        """Write a document's mark and rows to the stream; count what the format cannot hold."""
        words, sizes = doc.words(), sentence_sizes(doc)
        note_layout(doc, words, sizes, options.losses)
        spans = options.spans(doc)
        options.losses.add("that there was no layer (an empty one comes back)", not doc.layers)
        options.drop(doc, "group")
        note_fields(doc, spans, options)
        clean = [replace(span, label=_clean(span.label, layout, options.losses, "labels")) for span in spans]
        tags = tags_of(doc, clean, options, self.scheme, sizes)
        between = _middle_columns(doc, layout, options.losses)
        _note_meta_losses(doc, mark, layout, options.losses)
        kept = [_clean(word, layout, options.losses, "tokens") for word in words]
        rows = map(layout.separator.join, zip(kept, *between, tags, strict=True))
        if mark is not None:
            stream.write(mark + "\n\n")
        for size in sizes:
            stream.write("\n".join(islice(rows, size)) + "\n\n")


def _blocks(file: Entry, name: str, options: ReadOptions) -> Iterator[Record[_Block]]:
    """Yield a file's documents, cut at -DOCSTART- or by sentences (then noted in `cut`); DataError or ConfigError."""
    layout: ColumnLayout | None = None
    known = {"O"}
    block = _Block(1)
    for number, line in file.lines():
        cells = _cells(line)
        if not any(cells):
            block.end_sentence()
            continue
        if _is_mark(cells):
            if options.asks_to_cut:
                raise ConfigError(f"{file.where}: -DOCSTART- separates its documents already; leave out --documents")
            if block.words or block.mark is not None:
                yield block.record(f"{name}-{block.number}", layout)
                block = _Block(block.number + 1)
            block.line, block.mark = number, line
            continue
        if layout is None:
            layout = ColumnLayout("\t" if "\t" in line else " ", max(2, len(cells)))
        _check_row(cells, layout, file, number)
        if cells[-1] not in known:
            _check_tag(cells[-1], file, number)
            known.add(cells[-1])
        if block.mark is None and len(block.sizes) == options.sentences:  # full, and another sentence begins
            options.cut.add(file.name)
            yield block.record(f"{name}-{block.number}", layout)
            block = _Block(block.number + 1, number)
        block.words.append(cells[0])
        block.tags.append(cells[-1])
        if layout.width > 2:
            block.between.append(cells[1:-1])
    if block.words or block.mark is not None:
        otherwise = name if block.number == 1 and block.mark is None else f"{name}-{block.number}"
        yield block.record(otherwise, layout)


def _check_row(cells: Sequence[str], layout: ColumnLayout, file: Entry, number: int) -> None:
    """Raise DataError for a damaged mark, a row of another width than the first, or one without a token."""
    fault = ""
    if _is_damaged_mark(cells[0]):
        fault = f"looks like a damaged {_DOCSTART} line; correct it, else two documents would be one"
    elif len(cells) != layout.width:
        fault = f"{len(cells)} columns where {layout.width} were expected; every row must have as many as the first"
    elif not cells[0]:
        fault = "the first column, the token, is empty; correct the row"
    if fault:
        raise DataError(fault, path=file.where, line=number)


def _is_damaged_mark(word: str) -> bool:
    """Tell whether a token is nearly "-DOCSTART-": other case, dashes or blanks, or two wrong characters.

    >>> [_is_damaged_mark(word) for word in ("-DOCSTAR-", "DOCSTART", "-docstart-", "-DQCSTART-", "-X-", "DOCTOR")]
    [True, True, True, True, False, False]
    """
    upper = word.upper()
    similar = "DOC" in upper or "START" in upper or "-" in upper
    if abs(len(word) - len(_DOCSTART)) > _DAMAGE or not similar:
        return False
    return _distance(upper, _DOCSTART) <= _DAMAGE


def _distance(first: str, second: str) -> int:
    """Return the edit distance of two texts: characters changed, added or removed."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def _cells(line: str) -> list[str]:
    """Split a line at tabs, or at blanks if it has no tab; other white space belongs to tokens."""
    # Never str.split(): a no-break space or a line separator is part of a token.
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


def _is_mark(cells: Sequence[str]) -> bool:
    """Tell whether cells are a line that begins a document: -DOCSTART-, or an id of MEDLINE alone."""
    return cells[0] == _DOCSTART or (len(cells) == 1 and cells[0].startswith(_MEDLINE)) if cells else False


def _id_of_mark(mark: str, otherwise: str) -> str:
    """Return the id in a mark, or `otherwise` if it has none."""
    cells = _cells(mark)
    if cells[0] != _DOCSTART:
        return cells[0].removeprefix(_MEDLINE)
    return unquote(cells[1].removeprefix("id=")) if len(cells) > 1 and cells[1].startswith("id=") else otherwise


def _check_tag(tag: str, file: Entry, number: int) -> None:
    """Raise DataError, without the tag in it, if the tag is not O, nor B-, I-, E- or S- with a label."""
    # The tag is not quoted: where columns are missing, it is a word of the document.
    if not TAG.fullmatch(tag):
        message = "the last column is not a tag: O, or one of B-, I-, E-, S- and a label; check the columns"
        raise DataError(message, path=file.where, line=number)


def _document(options: ReadOptions, otherwise: str, block: _Block) -> Document:
    """Return a block's document: other columns, odd mark or separator as meta; `otherwise` is the id without one."""
    layout = block.layout
    text, tokens, sentences = lay_out(block.words, block.sizes)
    name = otherwise if block.mark is None else _id_of_mark(block.mark, otherwise)
    details = {} if block.mark in (None, layout.mark(name, otherwise)) else {"mark": block.mark}
    if layout.separator != "\t" and block.words:
        details["separator"] = layout.separator
    meta: dict[str, Any] = {"conll": details} if details else {}
    if block.between:
        meta["columns"] = {str(i): list(column) for i, column in enumerate(zip(*block.between, strict=True), start=1)}
    layers = {options.layer: spans_of_tags(block.tags, tokens, block.sizes)}
    return Document.make(
        text, id=name, meta=meta, layers=layers, tokens=tokens, sentences=sentences, max_chars=options.max_chars
    )


def _conll_meta(doc: Document) -> Mapping[str, Any]:
    """Return the meta field "conll" if it is a mapping, else an empty one."""
    details = doc.meta.get("conll")
    return details if isinstance(details, Mapping) else {}


def _columns(doc: Document) -> list[list[str]] | None:
    """Return the meta's columns between token and tag, [] without any; None if they do not fit the tokens."""
    columns = doc.meta.get("columns", {})
    if not isinstance(columns, Mapping) or list(columns) != [str(i) for i in range(1, len(columns) + 1)]:
        return None
    fitting = all(
        isinstance(column, list) and len(column) == len(doc.tokens) > 0 and all(isinstance(c, str) for c in column)
        for column in columns.values()
    )
    return list(columns.values()) if fitting else None


def _layout(doc: Document) -> ColumnLayout:
    """Return the layout that a document was read with; tabs and two columns if it has none."""
    return ColumnLayout(" " if _conll_meta(doc).get("separator") == " " else "\t", 2 + len(_columns(doc) or ()))


def _middle_columns(doc: Document, layout: ColumnLayout, losses: Losses) -> list[list[str]]:
    """Return the document's columns between token and tag, cut or filled with "_" to the layout; count losses."""
    columns = _columns(doc)
    wanted = layout.width - 2
    if columns is None or (len(columns) != wanted and len(doc.tokens)) or ("columns" in doc.meta and not columns):
        losses.add("columns between token and tag")
    columns = (columns or [])[:wanted]
    kept = [[_clean(cell, layout, losses, "columns") for cell in column] for column in columns]
    return kept + [["_"] * len(doc.tokens)] * (wanted - len(columns))


def _mark(doc: Document, otherwise: str, layout: ColumnLayout) -> str:
    """Return the -DOCSTART- line as it was read if it still gives the document's id, else a new one."""
    mark = _conll_meta(doc).get("mark")
    if not isinstance(mark, str) or "\n" in mark or mark.endswith("\r") or not _is_mark(_cells(mark)):
        return layout.mark(doc.id, otherwise)
    return mark if _id_of_mark(mark, otherwise) == doc.id else layout.mark(doc.id, otherwise)


def _can_be_bare(doc: Document) -> bool:
    """Tell whether a document can be read back without a mark: it has tokens, and none came with it."""
    # Without a mark, an empty document would not be there, and a leading byte order mark would be dropped.
    return len(doc.tokens) > 0 and not doc.words()[0].startswith("\ufeff") and "mark" not in _conll_meta(doc)


def _note_meta_losses(doc: Document, mark: str | None, layout: ColumnLayout, losses: Losses) -> None:
    """Count as lost other meta fields, and a mark or separator that is not written as it was read."""
    others = [name for name in doc.meta if name not in ("conll", "columns")]
    losses.add("meta fields", len(others))
    details: dict[str, Any] = dict(_conll_meta(doc))
    wanted = {"separator": layout.separator} if layout.separator != "\t" and len(doc.tokens) else {}
    if details.pop("mark", mark) != mark or details != wanted or ("conll" in doc.meta and not _conll_meta(doc)):
        losses.add("marks and separators as they were")


def _clean(cell: str, layout: ColumnLayout, losses: Losses, what: str) -> str:
    """Return a cell with "_" for what would break a row (separators, nothing, a mark); count a change as lost."""
    bad = "\t\n" if layout.separator == "\t" else "\t\n "
    kept = cell.translate(dict.fromkeys(map(ord, bad), "_")) if any(c in cell for c in bad) else cell
    if what == "labels":
        kept = kept.replace("\r", "_")
    if what == "tokens" and (kept == _DOCSTART or _is_damaged_mark(kept)):
        kept = "_" * len(kept)
    elif not (kept or (what == "columns" and layout.separator == "\t")):
        kept = "_" + kept[1:]
    losses.add(f"{what} that are empty or hold tabs, line feeds or a mark", kept != cell)
    return kept


_SUFFIXES = (".conll", ".iob", ".iob2", ".iobes", ".iob1", ".bio", ".tsv", ".txt", ".train", ".testa", ".testb")
CONLL = ColumnFormat("conll", "columns of tokens and IOB2 tags, a blank line between sentences", "IOB2", _SUFFIXES)
IOB1 = ColumnFormat("iob1", "the same with IOB1 tags, as CoNLL-2003 has them", "IOB1", (".iob1", *_SUFFIXES))
IOBES = ColumnFormat("iobes", "the same with IOBES tags", "IOBES", (".iobes", *_SUFFIXES))
FORMATS = (CONLL, IOB1, IOBES)
