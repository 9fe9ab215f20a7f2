"""UIMA CAS JSON 0.4.0, as INCEpTION imports and exports it: a folder with one .json file per document.

`%TYPES` describes the types, `%FEATURE_STRUCTURES` has the text (a "sofa") and the annotations, `%VIEWS` says which of
them are of which text; the first view counts. See `_shared.uima` for what becomes a span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.json_records import parse_object
from chaffinch.text.formats._shared.standoff import whole_number
from chaffinch.text.formats._shared.uima import ENTITY, VIEW, Annotation, annotations_of, document_of, text_units
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions, output_file
from chaffinch.text.formats.units import Unit, file_units

_SOFA = "uima.cas.Sofa"
_TEXT_FEATURE = {"%RANGE": "uima.cas.String"}
_TYPES = {
    ENTITY: {
        "%NAME": ENTITY,
        "%SUPER_TYPE": "uima.tcas.Annotation",
        "value": {"%NAME": "value", **_TEXT_FEATURE},
        "identifier": {"%NAME": "identifier", **_TEXT_FEATURE},
    }
}


@dataclass(frozen=True, slots=True)
class UimaJson:
    """The UIMA CAS JSON format."""

    name: str = "uima-json"
    about: str = "UIMA CAS JSON as INCEpTION imports and exports it, one file per document"
    folder: bool = True
    suffixes: tuple[str, ...] = (".json",)
    can: ClassVar[Capabilities] = Capabilities("file", exact=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is a JSON object with the types or the feature structures of a CAS."""
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return start.startswith(b"{") and (b'"%TYPES"' in head or b'"%FEATURE_STRUCTURES"' in head)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per file: a document that is parsed when the unit is read."""
        return file_units(files, partial(_parse, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a folder of .json files named by id; count losses; return how many documents; DataError: bad id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            output_file(target, doc.id, ".json").write_bytes(msgspec.json.encode(_cas(doc, options)))
        return count


def _parse(options: ReadOptions, name: str, where: str, content: bytes) -> Document:
    """Return the document, with the id `name`, of a file's bytes; DataError with `where` if it is broken."""
    record = parse_object(content.removeprefix(b"\xef\xbb\xbf"), where)
    try:
        structures = list(_structures(record.get("%FEATURE_STRUCTURES")))
        number, text = _text(structures, record.get("%VIEWS"))
        return document_of(text, _annotations(structures, number, options), name, options)
    except DataError as error:
        raise error.at(where) from None


def _structures(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield feature structures, of a list or of an object by id; raise DataError for anything else."""
    rows = [{"%ID": key, **row} for key, row in value.items()] if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError('has no list "%FEATURE_STRUCTURES"; export it as UIMA CAS JSON')
    yield from rows


def _text(structures: Sequence[Mapping[str, Any]], views: Any) -> tuple[str, str]:
    """Return the id (of its sofa) and the text of the first view; raise DataError if there is none."""
    sofas = {str(row.get("%ID")): row for row in structures if row.get("%TYPE") == _SOFA}
    first = views.get(VIEW) if isinstance(views, dict) else None
    chosen = str(first.get("%SOFA")) if isinstance(first, dict) else next(iter(sofas), "")
    text = sofas.get(chosen, {}).get("sofaString")
    if not isinstance(text, str):
        raise DataError("has no text (sofaString) in its first view")
    return chosen, text


def _annotations(structures: Iterable[Mapping[str, Any]], sofa: str, options: ReadOptions) -> Iterator[Annotation]:
    """Yield the annotations of the view `sofa`; count those of other views as lost; DataError for bad offsets."""
    for row in structures:
        if "begin" not in row and "end" not in row:
            continue  # no annotation of a stretch
        if str(row.get("@sofa")) != sofa:
            options.losses.add("annotations of other views")
            continue
        begin, end = (whole_number(row.get(key, 0), key) for key in ("begin", "end"))
        known = {key: value for key, value in row.items() if not key.startswith(("%", "@")) and isinstance(value, str)}
        is_relation = any(key.startswith("@") and key != "@sofa" for key in row) and "@Governor" in row
        yield Annotation(str(row.get("%TYPE", "")), begin, end, known, is_relation)


def _cas(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a document as the JSON object of a CAS; count what it cannot hold."""
    rows: list[dict[str, Any]] = [
        {"%TYPE": one.type, "@sofa": 1, "begin": one.begin, "end": one.end, **one.features}
        for one in annotations_of(doc, options)
    ]
    whole = {"%TYPE": "uima.tcas.DocumentAnnotation", "@sofa": 1, "begin": 0, "end": text_units(doc.text)}
    rows = [whole | {"language": "x-unspecified"}, *rows]
    sofa = {"%ID": 1, "%TYPE": _SOFA, "sofaNum": 1, "sofaID": VIEW, "mimeType": "text", "sofaString": doc.text}
    numbered = [{"%ID": number, **row} for number, row in enumerate(rows, start=2)]
    members = [row["%ID"] for row in numbered]
    return {
        "%TYPES": _TYPES,
        "%FEATURE_STRUCTURES": [sofa, *numbered],
        "%VIEWS": {VIEW: {"%SOFA": 1, "%MEMBERS": members}},
    }


FORMATS = (UimaJson(),)
