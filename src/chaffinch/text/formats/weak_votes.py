"""Votes of many weak sources, as in the CHMM and WRENCH data sets: JSON items of tokens, gold and votes.

{"0": {"label": [[start, end, type], …], "data": {"text": [tokens]}, "weak_labels": [[[start, end, type], …], …]}}
with one list per source and offsets that count tokens; or with IOB2 tags: "label" has one per token, and
"weak_labels" one per token and source. The names of the sources are the "lf" of a meta.json beside the file (nothing
else in it is read: some hold scores computed from gold); without it they are called 0, 1, ….

Each source is a layer "source:<name>", empty where it abstained. An item is one sentence, unless its data has the
sizes of its "sentences", which we write where there are several; "id" and "group" are ours too, other fields of the
data are meta fields. The output is a folder with documents.json and meta.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document, Offsets
from chaffinch.text.formats._shared.json_records import (
    convert,
    flat_fields,
    group_of,
    id_of,
    meta_of,
    parse_object,
    spool,
)
from chaffinch.text.formats._shared.token_tags import (
    TAG,
    lay_out,
    note_layout,
    sentence_sizes,
    spans_of_tags,
    token_runs,
)
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
from chaffinch.text.formats.hf import read_sizes
from chaffinch.text.formats.units import BOM, Record, Unit, record_units
from chaffinch.text.span import Span

_PREFIX = "source:"
_META = "meta.json"
_RESERVED = ("text", "id", "sentences")
_ITEMS = re.compile(rb'\{\s*"[^"]*"\s*:\s*\{')
_HEAD = 1 << 22  # bytes searched for "weak_labels"; a first item longer than this is not recognised


class FileNames(msgspec.Struct):
    """The only field of a meta.json that is read."""

    lf: list[str]


class VotedSentence(msgspec.Struct):
    """One item; "weak_labels" has a list per source, or a list of tags per token."""

    data: dict[str, Any]
    label: list[Any] | None = None
    weak_labels: list[list[Any]] = []


@dataclass(frozen=True, slots=True)
class WeakLabels:
    """The JSON format of weak votes."""

    name: str = "weak"
    about: str = "JSON with the votes of weak sources on tokens (CHMM, WRENCH)"
    folder: bool = True
    suffixes: tuple[str, ...] = (".json",)
    can: ClassVar[Capabilities] = Capabilities("record", needs_tokens=True, votes=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is an object of objects, with "weak_labels" near its beginning."""
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return _ITEMS.match(start) is not None and (b'"weak_labels"' in head or b'"weak_labels"' in entry.head(_HEAD))

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per item, named by its key, with the file's name before it if there are several files."""
        items = [file for file in files if PurePosixPath(file.name).name != _META]
        metas = {str(PurePosixPath(file.name).parent): file for file in files if file not in items}
        for file in items:
            meta = metas.get(str(PurePosixPath(file.name).parent))
            prefix = "" if len(items) == 1 else f"{file.stem}-"
            yield from record_units(file, _records(file, meta, prefix), partial(_parse_item, options), "item")

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a folder: documents.json by number, meta.json with sources; count losses; return how many documents."""
        target.mkdir()
        encoder = msgspec.json.Encoder()
        count = 0
        sources: dict[str, None] = {}  # in the order of their first use
        with spool(target) as items:
            for doc in documents:
                sources |= dict.fromkeys(name for name in doc.layers if name.startswith(_PREFIX))
                items.add(_item(doc, options))
            with (target / "documents.json").open("wb") as stream:
                stream.write(b"{")
                for count, item in enumerate(items, start=1):
                    votes = item.pop("votes")
                    options.losses.add("that sources were absent (they come back as silent)", len(sources) - len(votes))
                    item["weak_labels"] = [votes.get(name, []) for name in sources]
                    stream.write(b'%s"%d":%s' % (b",\n" if count > 1 else b"\n", count - 1, encoder.encode(item)))
                stream.write(b"\n}\n")
        names = [name.removeprefix(_PREFIX) for name in sources]
        (target / _META).write_bytes(encoder.encode({"lf": names, "num_lf": len(names)}) + b"\n")
        return count


def _records(file: Entry, meta: Entry | None, prefix: str) -> Iterator[Record[tuple[list[str] | None, Any]]]:
    """Yield a record per item of a file, with the sources' names if known; DataError unless it is a JSON object."""
    names = _source_names(file, meta)
    for key, item in parse_object(file.content().removeprefix(BOM), file.where).items():
        yield Record(prefix + key, None, (names, item))


def _parse_item(options: ReadOptions, name: str, value: tuple[list[str] | None, Any]) -> Document:
    """Return the document of an item, `name` its default id; DataError if a field is wrong."""
    names, item = value
    return _document(convert(item, VotedSentence), name, names, options)


def _source_names(file: Entry, meta: Entry | None) -> list[str] | None:
    """Return the sources in the meta.json given or beside the file; None without one; DataError if malformed."""
    where, content = "", b""
    beside = Path(file.where).parent / _META
    if meta is not None:
        where, content = meta.where, meta.content()
    elif "!" not in file.where and beside.is_file():
        where, content = str(beside), beside.read_bytes()
    if not where:
        return None
    try:
        return msgspec.json.decode(content, type=FileNames).lf
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError('must be a JSON object with the names of the sources in "lf"', path=where) from None


def _document(item: VotedSentence, key: str, names: Sequence[str] | None, options: ReadOptions) -> Document:
    """Return an item's document, a layer of votes per source (`names`, or numbers); DataError if counts differ."""
    words = convert(item.data.get("text"), list[str])
    sizes = read_sizes(item.data, len(words))
    text, tokens, sentences = lay_out(words, sizes)
    votes = item.weak_labels
    if any(isinstance(tag, str) for row in votes for tag in row):
        votes = _by_source(votes, len(words))
    if names is None:
        names = [str(index) for index in range(len(votes))]
    elif len(names) != len(votes):
        raise DataError(f"{len(votes)} sources where meta.json names {len(names)}; put the right meta.json beside it")
    labels = {} if item.label is None else {options.layer: item.label}
    labels |= {_PREFIX + name: vote for name, vote in zip(names, votes, strict=True)}
    return Document.make(
        text,
        id=id_of(item.data, key),
        group=group_of(item.data),
        meta=meta_of(item.data, _RESERVED),
        layers={name: list(_spans(found, tokens)) for name, found in labels.items()},
        tokens=tokens,
        sentences=sentences,
        max_chars=options.max_chars,
    )


def _by_source(rows: Sequence[Sequence[Any]], length: int) -> list[list[Any]]:
    """Turn a row of tags per token into a list of tags per source; DataError unless `length` rows of one size."""
    if len(rows) != length or len({len(row) for row in rows}) > 1:
        raise DataError(f'"weak_labels" must have {length} rows, one per token, with one tag per source in each')
    return [list(column) for column in zip(*rows, strict=True)]


def _spans(found: Sequence[Any], tokens: Offsets) -> Iterator[Span]:
    """Yield the spans of [first, end, label] token lists, or of tags per token; DataError if they do not fit."""
    if any(isinstance(tag, str) for tag in found):
        tags = convert(found, list[str])
        if len(tags) != len(tokens) or not all(map(TAG.fullmatch, tags)):
            raise DataError(f"expected {len(tokens)} tags, one per token: O, or one of B-, I-, E-, S- and a label")
        yield from spans_of_tags(tags, tokens, [len(tags)])
        return
    for first, last, label in convert(found, list[tuple[int, int, str]]):
        if not 0 <= first < last <= len(tokens):
            raise DataError(f"span [{first}, {last}) does not fit {len(tokens)} tokens; the end is exclusive")
        yield Span(int(tokens[first, 0]), int(tokens[last - 1, 1]), label)


def _item(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a document as an item, its votes by source name in "votes"; count what it cannot hold."""
    words, sizes = doc.words(), sentence_sizes(doc)
    note_layout(doc, words, sizes, options.losses)
    options.drop(doc, "soft", "relations")
    gold = options.layer or "gold"
    options.losses.add("names of layers", gold != "gold" and gold in doc.layers)
    item: dict[str, Any] = {}
    if gold in doc.layers:
        item["label"] = _runs(doc, gold, options)
    data: dict[str, Any] = {"text": words, "id": doc.id}
    if len(sizes) > 1:
        data["sentences"] = sizes
    item["data"] = data | flat_fields(doc, _RESERVED, options.losses)
    sources = [name for name in doc.layers if name.startswith(_PREFIX) and name != gold]
    options.losses.add("layers that are neither gold nor a source", len(doc.layers) - len(sources) - ("label" in item))
    item["votes"] = {name: _runs(doc, name, options) for name in sources}
    return item


def _runs(doc: Document, name: str, options: WriteOptions) -> list[tuple[int, int, str]]:
    """Return (first token, end, label) of a layer's spans; count as lost what these cannot hold."""
    spans: Mapping[str, Sequence[Span]] = doc.layers
    options.drop_from_spans(spans[name], "score", "source", "concept")
    return token_runs(doc, spans[name], options.losses)


WEAK = WeakLabels()
FORMATS = (WEAK,)
