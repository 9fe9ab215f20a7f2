"""brat standoff: a folder with a .txt and an .ann file for each document.

Kept: text-bound annotations (T), their concepts (N lines), binary relations (R) with their roles. A document has
no field for events, attributes, notes and equivalences, which are counted as losses of reading. brat writes a span
over a line end as one fragment per line ("0 4;5 9"): that is one span here. Fragments with words between them are
read as the span that covers them all, and counted, since a span has no holes; for de-identification it is the safe
choice, and it is what most other tools expect.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, TypeAlias

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import check_offsets, check_quote, note_relation, whole_number
from chaffinch.text.formats.base import (
    Capabilities,
    Entry,
    Losses,
    ReadOptions,
    WriteOptions,
    decode,
    output_file,
    write_text,
)
from chaffinch.text.formats.units import Unit, failing_unit
from chaffinch.text.span import Argument, Relation, Span

Roles: TypeAlias = list[tuple[str, str]]  # role and id of each argument

_LINE = re.compile(rb"[TREAMN#]\d+\t\S|\*\t\S")
_BLANK = re.compile(r"\s")
_NOT_KEPT = {
    "E": "events (their triggers are kept)",
    "A": "attributes",
    "M": "attributes",
    "#": "notes",
    "*": "equivalences",
}
_PREFIX = "concept:"  # brat wants DATABASE:ID; a concept without a colon gets this in front


@dataclass(slots=True)
class _Annotations:
    """The lines of one .ann file, by kind, before ids are looked up."""

    spans: dict[str, Span] = field(default_factory=dict)
    concepts: dict[str, list[str]] = field(default_factory=dict)
    relations: list[tuple[int, str, Roles]] = field(default_factory=list)  # line, label, roles


@dataclass(frozen=True, slots=True)
class Brat:
    """The brat standoff format."""

    name: str = "brat"
    about: str = "brat standoff: a folder of .txt and .ann files"
    folder: bool = True
    suffixes: tuple[str, ...] = (".ann", ".txt")
    can: ClassVar[Capabilities] = Capabilities("file", exact=True, needs_layer=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is an .ann file that is empty or whose first line is an annotation."""
        start = head.removeprefix(b"\xef\xbb\xbf").strip()
        return entry.suffix == ".ann" and (not start or _LINE.match(start) is not None)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per .txt file, with a layer if there is an .ann file; a lone .ann file is a unit that fails."""
        texts = {file.stem: file for file in files if file.suffix != ".ann"}
        annotations = {file.stem: file for file in files if file.suffix == ".ann"}
        for stem, file in texts.items():
            annotated = annotations.get(stem)
            parse = partial(_parse_pair, stem, file.where, None if annotated is None else annotated.where, options)
            yield Unit(file.name, stem, partial(_read_pair, file, annotated), parse)
        for stem, file in annotations.items():
            if stem not in texts:
                error = DataError("has no .txt file beside it; name the folder that holds both", path=file.where)
                yield failing_unit(file.name, error)

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write .txt and, with layers, .ann files by id; count losses; return how many documents; DataError: bad id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            options.drop(doc, "group", "meta", "soft", "given")
            write_text(output_file(target, doc.id, ".txt"), doc.text)
            if doc.layers:
                write_text(output_file(target, doc.id, ".ann"), _lines(doc, options))
            else:
                options.drop(doc, "relations")
        return count


def _read_pair(text: Entry, annotated: Entry | None) -> bytes:
    """Return the length of the .txt file in eight bytes, its content, and the content of the .ann file."""
    first = text.content()
    return len(first).to_bytes(8, "big") + first + (b"" if annotated is None else annotated.content())


def _parse_pair(stem: str, where: str, annotated: str | None, options: ReadOptions, content: bytes) -> Document:
    """Return the document of `_read_pair`'s bytes, spans and relations if annotated; count losses; or DataError."""
    end = 8 + int.from_bytes(content[:8], "big")
    text = decode(content[8:end], where)
    layers, relations = {}, []
    if annotated is not None:
        found = _parse(Entry(stem, annotated, lambda: io.BytesIO(content[end:])), text, options.losses)
        spans = {
            key: Span(span.start, span.end, span.label, concept="|".join(found.concepts.get(key, ())))
            for key, span in found.spans.items()
        }
        options.losses.add("concepts of events", sum(key not in spans for key in found.concepts))
        layers = {options.layer: spans.values()}
        relations = [_relation(line, spans, annotated, options.losses) for line in found.relations]
    try:
        return Document.make(
            text,
            id=stem,
            layers=layers,
            relations=[relation for relation in relations if relation is not None],
            split=options.split,
            max_chars=options.max_chars,
        )
    except DataError as error:
        raise error.at(where) from None


def _parse(file: Entry, text: str, losses: Losses) -> _Annotations:
    """Return the T, N and R lines of an .ann file, parsed; count other known kinds as lost; DataError if unknown."""
    found = _Annotations()
    for number, line in file.lines():
        if not line.strip():
            continue
        key, _, rest = line.partition("\t")
        try:
            match key[0]:
                case "T":
                    found.spans[key] = _span(rest, text, losses)
                case "N":
                    target, concept = _concept(rest, losses)
                    found.concepts.setdefault(target, []).append(concept)
                case "R":
                    label, *roles = rest.partition("\t")[0].split(" ")
                    found.relations.append((number, label, [_role(part) for part in roles if part]))
                case kind if kind in _NOT_KEPT:
                    losses.add(_NOT_KEPT[kind])
                case _:
                    raise DataError("starts with none of T, R, N, E, A, M, # and *; is this a brat file?")
        except DataError as error:
            raise error.at(file.where, number) from None
    return found


def _span(rest: str, text: str, losses: Losses) -> Span:
    """Return the span that covers a T line's fragments; count holes as lost; DataError if malformed or misquoted."""
    columns = rest.split("\t", 1)
    label, _, places = columns[0].partition(" ")
    if len(columns) != 2 or not label or not places:
        raise DataError("a T line must be: id <tab> LABEL START END <tab> text")
    fragments = []
    for fragment in places.split(";"):
        ends = fragment.split()
        if len(ends) != 2:
            raise DataError("a T line needs a start and an end for every fragment, as in: 0 5;8 12")
        start, end = whole_number(ends[0], "the start"), whole_number(ends[1], "the end")
        check_offsets(start, end, text)
        fragments.append((start, end))
    first, last = min(start for start, _ in fragments), max(end for _, end in fragments)
    check_quote(columns[1], [text[a:b] for a, b in fragments], first, last)
    ordered = sorted(fragments)
    gaps = (text[a:b] for (_, a), (b, _) in pairwise(ordered))
    losses.add("holes of discontinuous spans (read as the span that covers them)", any(gap.strip() for gap in gaps))
    return Span(first, last, label)


def _concept(rest: str, losses: Losses) -> tuple[str, str]:
    """Return (target, concept) of "Reference TARGET DATABASE:ID<tab>NAME"; count the name as lost; or DataError."""
    columns = rest.split("\t", 1)
    parts = columns[0].split(" ")
    if len(parts) != 3 or not parts[2]:
        raise DataError("an N line must be: id <tab> Reference TARGET DATABASE:ID <tab> name")
    losses.add("names of concepts", len(columns) == 2 and bool(columns[1]))
    return parts[1], parts[2].removeprefix(_PREFIX)


def _role(part: str) -> tuple[str, str]:
    """Return (role, id) of a part of an R line such as "Arg1:T1"; DataError if it is malformed."""
    role, colon, key = part.rpartition(":")
    if not colon or not role or not key:
        raise DataError("an R line must be: id <tab> LABEL Arg1:T1 Arg2:T2")
    return role, key


def _relation(parsed: tuple[int, str, Roles], spans: dict[str, Span], where: str, losses: Losses) -> Relation | None:
    """Return the relation of a parsed R line; None, counted as lost, if it is between events; DataError if broken."""
    line, label, roles = parsed
    if any(key.startswith("E") for _, key in roles):
        losses.add("relations between events")
        return None
    if not label or any(key not in spans for _, key in roles):
        raise DataError("the relation has no label, or names a T line that does not exist", path=where, line=line)
    return Relation(label, tuple(Argument(role, (spans[key],)) for role, key in roles))


def _lines(doc: Document, options: WriteOptions) -> str:
    """Return the content of the .ann file, T lines, then N, then R; count as lost what brat cannot hold."""
    spans = options.spans(doc)
    options.drop_from_spans(spans, "score", "source")
    lines, concepts, written = [], [], []
    for number, span in enumerate(spans, start=1):
        label = _word(span.label, "labels with blanks (written with _)", options)
        places, quote = _places(span, doc.text)
        lines.append(f"T{number}\t{label} {places}\t{quote}\n")
        kept = _writable(span.concept, options)
        concepts += [(number, part) for part in kept]
        written.append(Span(span.start, span.end, label, concept="|".join(kept)))
    lines += [f"N{n}\tReference T{target} {_reference(part)}\t\n" for n, (target, part) in enumerate(concepts, start=1)]
    ids: dict[Span, int] = {}
    for number, span in enumerate(spans):
        ids.setdefault(span, number)
    count = 0
    for relation in doc.relations:
        line = _relation_line(relation, ids, written, options)
        count += bool(line)
        lines += [f"R{count}\t{line}\n"] if line else []
    return "".join(lines)


def _places(span: Span, text: str) -> tuple[str, str]:
    """Return the offsets of a span, one fragment per line of text, and its quoted text; edges keep their line ends."""
    inner = text[span.start : span.end]
    cuts = [0, len(inner)]
    for gap in re.finditer(r"[\r\n]+", inner):
        if gap.start() > 0 and gap.end() < len(inner):
            cuts[-1:-1] = [gap.start(), gap.end()]
    fragments = list(zip(cuts[::2], cuts[1::2], strict=True))
    places = ";".join(f"{span.start + a} {span.start + b}" for a, b in fragments)
    return places, " ".join(re.sub(r"[\t\r\n]", " ", inner[a:b]) for a, b in fragments)


def _writable(concept: str, options: WriteOptions) -> list[str]:
    """Return the concepts of a span, one N line each; none, counted as a loss, if they have blanks or empty parts."""
    parts = concept.split("|") if concept else []
    if all(parts) and not _BLANK.search(concept):
        return parts
    options.losses.add("concepts with blanks or empty parts")
    return []


def _reference(concept: str) -> str:
    """Return a concept as DATABASE:ID, with `_PREFIX` for a database if it has none."""
    plain = ":" in concept[1:-1] and not concept.startswith(_PREFIX)
    return concept if plain else _PREFIX + concept


def _relation_line(relation: Relation, ids: dict[Span, int], written: Sequence[Span], options: WriteOptions) -> str:
    """Return the R line of a relation without its number; "", counted as a loss, unless it is between two spans."""
    arguments = relation.arguments
    if len(arguments) != 2 or any(len(a.spans) != 1 or a.spans[0] not in ids for a in arguments):
        options.losses.add("relations that are not between two spans of the layer written")
        return ""
    label = _word(relation.label, "labels with blanks (written with _)", options)
    roles = [_word(a.role, "roles with blanks (written with _)", options) for a in arguments]
    numbers = [ids[a.spans[0]] for a in arguments]
    as_read = tuple(Argument(role, (written[n],)) for role, n in zip(roles, numbers, strict=True))
    note_relation(relation, Relation(label, as_read), options)
    return label + "".join(f" {role}:T{n + 1}" for role, n in zip(roles, numbers, strict=True))


def _word(label: str, what: str, options: WriteOptions) -> str:
    """Return a label with _ for blanks, which would end it, and "_" if empty; count a change as a loss `what`."""
    word = _BLANK.sub("_", label) or "_"
    options.losses.add(what, word != label)
    return word


BRAT = Brat()
FORMATS = (BRAT,)
