"""Token and tag lists as in datasets of the Hugging Face hub: one JSON object per line.

{"id": "7", "tokens": ["IL-2", "gene"], "ner_tags": ["B-DNA", "I-DNA"]}; tags may be called "tags" or "labels", and
be integers whose names the user gives. Other fields, such as "pos_tags", are meta fields and are written back. A
document of several sentences has their sizes in "sentences"; without it, the record is one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.json_records import (
    convert,
    first_object,
    flat_fields,
    group_of,
    id_of,
    meta_of,
    object_units,
    write_lines,
)
from chaffinch.text.formats._shared.token_tags import (
    TAG,
    lay_out,
    note_fields,
    note_layout,
    sentence_sizes,
    spans_of_tags,
    tags_of,
)
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Unit

_TAGS = ("ner_tags", "tags", "labels")
_RESERVED = ("id", "tokens", "sentences")


@dataclass(frozen=True, slots=True)
class TokenLists:
    """The format of token and tag lists in JSON lines, as in Hugging Face datasets."""

    name: str = "hf"
    about: str = "JSON lines with token and tag lists (Hugging Face datasets)"
    folder: bool = False
    suffixes: tuple[str, ...] = (".hf.jsonl", ".jsonl", ".ndjson", ".json")
    can: ClassVar[Capabilities] = Capabilities("line", 1, needs_tokens=True, names_tags=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file's first line is an object with a list of words called "tokens", and no "layers"."""
        record = first_object(entry, head)
        if record is None or "layers" in record or not isinstance(record.get("tokens"), list):
            return False
        return all(isinstance(token, str) for token in record["tokens"])

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per line that is not blank; tokens are given."""
        return object_units(files, partial(document_of, options=options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a line per document, with IOB2 tags if it has layers; count losses; return how many documents."""
        return write_lines(documents, target, lambda doc: _record(doc, options))


def document_of(record: Mapping[str, Any], number: str, options: ReadOptions) -> Document:
    """Return the document of token and tag lists; `number` is its id if it has none; DataError without tokens."""
    if "tokens" not in record:
        raise DataError(f'has no "tokens"; expected an object with "tokens" and one of {", ".join(_TAGS)}')
    words = convert(record["tokens"], list[str])
    sizes = read_sizes(record, len(words))
    text, tokens, sentences = lay_out(words, sizes)
    key = next((key for key in _TAGS if isinstance(record.get(key), list)), None)
    layers = {}
    if key is not None:
        tags = _tag_names(key, convert(record[key], list[str | int]), options.tag_names, len(words))
        layers[options.layer] = spans_of_tags(tags, tokens, [len(tags)])
    return Document.make(
        text,
        id=id_of(record, number),
        group=group_of(record),
        meta=meta_of(record, (*_RESERVED, key)),
        layers=layers,
        tokens=tokens,
        sentences=sentences,
        max_chars=options.max_chars,
    )


def read_sizes(record: Mapping[str, Any], length: int) -> list[int]:
    """Return the sizes in "sentences", else one sentence for all; DataError unless they add up to `length`."""
    if "sentences" not in record:
        return [length] if length else []
    sizes = convert(record["sentences"], list[int])
    if any(size < 1 for size in sizes) or sum(sizes) != length:
        raise DataError(f'"sentences" must be the sizes of the sentences and add up to the {length} tokens')
    return sizes


def _tag_names(key: str, tags: Sequence[str | int], names: Sequence[str], length: int) -> list[str]:
    """Return the tags as text, integers replaced by their `names`; DataError if invalid or not `length` of them."""
    if len(tags) != length:
        raise DataError(f'{len(tags)} tags in "{key}" for {length} tokens; there must be one tag per token')
    if not names and any(isinstance(tag, int) for tag in tags):
        raise DataError(
            f'the tags in "{key}" are numbers; give their names in order: --tag-names O,B-X,I-X,… (in train: --set '
            "tag_names=O,B-X,I-X,…)"
        )
    named = []
    for index, tag in enumerate(tags):
        if isinstance(tag, int) and not 0 <= tag < len(names):
            raise DataError(f'tag {index} in "{key}" is {tag}, but --tag-names gives {len(names)} names, from 0 on')
        name = names[tag] if isinstance(tag, int) else tag
        if not TAG.fullmatch(name):
            raise DataError(f'tag {index} in "{key}" is not O, nor one of B-, I-, E-, S- and a label')
        named.append(name)
    return named


def _record(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a document as a record of token and tag lists (IOB2), tags only with a layer; count losses."""
    words, sizes = doc.words(), sentence_sizes(doc)
    note_layout(doc, words, sizes, options.losses)
    reserved = (*_RESERVED, "ner_tags") if doc.layers else (*_RESERVED, *_TAGS)
    record: dict[str, Any] = {"id": doc.id, "tokens": words}
    if doc.layers:
        spans = options.spans(doc)
        record["ner_tags"] = tags_of(doc, spans, options, "IOB2", [len(words)])
        note_fields(doc, spans, options)
    else:
        note_fields(doc, (), options)
    if len(sizes) > 1:
        record["sentences"] = sizes
    return record | flat_fields(doc, reserved, options.losses)


HF = TokenLists()
FORMATS = (HF,)
