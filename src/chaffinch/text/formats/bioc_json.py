"""BioC JSON: one file with a collection, as PMC, PubTator and the bioc library write it; see `bioc` for losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.bioc import parse_record, to_record
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Record, Unit, record_units

_HEADER = b'{"bioctype":"BioCCollection","source":"","date":"","key":"","version":"1.0","infons":{},"documents":['


@dataclass(frozen=True, slots=True)
class BiocJson:
    """The BioC JSON format."""

    name: str = "bioc-json"
    about: str = "BioC JSON: a collection of documents with passages, annotations and relations"
    folder: bool = False
    suffixes: tuple[str, ...] = (".json", ".jsonl")
    can: ClassVar[Capabilities] = Capabilities("record")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is JSON with "passages", or with "documents" and "infons"."""
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return start.startswith((b"{", b"[")) and (
            b'"passages"' in head or (b'"documents"' in head and b'"infons"' in head)
        )

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document of each file: a collection, a list (of either), or one document on each line."""
        for file in files:
            yield from record_units(file, _records(file), partial(parse_record, options), "document")

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write one collection to `target`, a line per document; count losses; return the number of documents."""
        count = 0
        with target.open("wb") as stream:
            stream.write(_HEADER)
            for count, doc in enumerate(documents, start=1):
                record = {"bioctype": "BioCDocument"} | to_record(doc, options, keeps=_keeps)
                stream.write((b",\n" if count > 1 else b"\n") + msgspec.json.encode(record))
            stream.write(b"\n]}\n")
        return count


def _keeps(value: object) -> bool:
    """Tell whether a value comes back from JSON with the same type and value; False for None."""
    try:
        back: object = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, msgspec.MsgspecError, OverflowError, RecursionError):
        return False
    return value is not None and type(back) is type(value) and back == value


def _records(file: Entry) -> Iterator[Record[dict[str, Any]]]:
    """Yield the documents of one JSON value, or else of JSON lines; DataError if one has no "passages"."""
    try:
        content = msgspec.json.decode(file.content().removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield from _record_lines(file)
        return
    parts = content if isinstance(content, list) else [content]
    for record in (record for part in parts for record in _documents(part)):
        if not isinstance(record, dict) or "passages" not in record:
            raise DataError('holds something other than documents with "passages"', path=file.where)
        yield Record(str(record.get("id", "")), None, record)


def _documents(part: Any) -> list[Any]:
    """Return a JSON object's "documents", or its only value if that is a list; with "passages", the object alone."""
    if isinstance(part, dict) and "passages" not in part:
        lists = [part["documents"]] if "documents" in part else list(part.values())
        if len(lists) == 1 and isinstance(lists[0], list):
            return lists[0]
    return [part]


def _record_lines(file: Entry) -> Iterator[Record[dict[str, Any]]]:
    """Yield the document of each line that is not blank; DataError if it is not JSON with "passages"."""
    for number, line in file.lines():
        if line.strip():
            try:
                record = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                raise DataError("is not valid JSON; check it with: jq . FILE", path=file.where, line=number) from None
            if not isinstance(record, dict) or "passages" not in record:
                raise DataError('is not a document with "passages"', path=file.where, line=number)
            yield Record(str(record.get("id", "")), number, record)


BIOC_JSON = BiocJson()
FORMATS = (BIOC_JSON,)
