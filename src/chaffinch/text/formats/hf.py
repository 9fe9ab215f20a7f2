"""Token and tag lists, as datasets of the Hugging Face hub have them: one JSON object per line.

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
    first_object,
    flat_fields,
    group_of,
    id_of,
    meta_of,
    object_units,
    typed,
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
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, Writing
from chaffinch.text.formats.units import Unit

_TAGS = ("ner_tags", "tags", "labels")
_OWN = ("id", "tokens", "sentences")


@dataclass(frozen=True, slots=True)
class TokenLists:
    """The format itself."""

    name: str = "hf"
    about: str = "JSON lines with token and tag lists (Hugging Face datasets)"
    folder: bool = False
    suffixes: tuple[str, ...] = (".hf.jsonl", ".jsonl", ".ndjson", ".json")
    can: ClassVar[Capabilities] = Capabilities("line", 1, needs_tokens=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Lines of objects with a list of words called "tokens"."""
        record = first_object(entry, head)
        if record is None or "layers" in record or not isinstance(record.get("tokens"), list):
            return False
        return all(isinstance(token, str) for token in record["tokens"])

    def units(self, files: Sequence[Entry], how: ReadOptions) -> Iterator[Unit]:
        """Yield one document per line; tokens are given."""
        return object_units(files, partial(document_of, how=how))

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """One line per document, with IOB2 tags as text; a document without layers has no tags."""
        return write_lines(documents, target, lambda doc: _record(doc, how))


def document_of(record: Mapping[str, Any], number: str, how: ReadOptions) -> Document:
    """The document of a record of token and tag lists; one without an id is called by its number."""
    if "tokens" not in record:
        raise DataError(f'has no "tokens"; expected an object with "tokens" and one of {", ".join(_TAGS)}')
    words = typed(record["tokens"], list[str])
    sizes = read_sizes(record, len(words))
    text, tokens, sentences = lay_out(words, sizes)
    key = next((key for key in _TAGS if isinstance(record.get(key), list)), None)
    layers = {}
    if key is not None:
        tags = _tag_names(key, typed(record[key], list[str | int]), how.tag_names, len(words))
        layers[how.layer] = spans_of_tags(tags, tokens, [len(tags)])
    return Document.make(
        text,
        id=id_of(record, number),
        group=group_of(record),
        meta=meta_of(record, (*_OWN, key)),
        layers=layers,
        tokens=tokens,
        sentences=sentences,
        max_chars=how.max_chars,
    )


def read_sizes(record: Mapping[str, Any], length: int) -> list[int]:
    """The sizes of the sentences of a token list: those in its "sentences", else all in one."""
    if "sentences" not in record:
        return [length] if length else []
    sizes = typed(record["sentences"], list[int])
    if any(size < 1 for size in sizes) or sum(sizes) != length:
        raise DataError(f'"sentences" must be the sizes of the sentences and add up to the {length} tokens')
    return sizes


def _tag_names(key: str, tags: Sequence[str | int], names: Sequence[str], length: int) -> list[str]:
    if len(tags) != length:
        raise DataError(f'{len(tags)} tags in "{key}" for {length} tokens; there must be one tag per token')
    if not names and any(isinstance(tag, int) for tag in tags):
        raise DataError(f'the tags in "{key}" are numbers; give their names in order: --tag-names O,B-X,I-X,…')
    named = []
    for index, tag in enumerate(tags):
        if isinstance(tag, int) and not 0 <= tag < len(names):
            raise DataError(f'tag {index} in "{key}" is {tag}, but --tag-names gives {len(names)} names, from 0 on')
        name = names[tag] if isinstance(tag, int) else tag
        if not TAG.fullmatch(name):
            raise DataError(f'tag {index} in "{key}" is not O, nor one of B-, I-, E-, S- and a label')
        named.append(name)
    return named


def _record(doc: Document, how: Writing) -> dict[str, Any]:
    words, sizes = doc.words(), sentence_sizes(doc)
    note_layout(doc, words, sizes, how.losses)
    own = (*_OWN, "ner_tags") if doc.layers else (*_OWN, *_TAGS)
    record: dict[str, Any] = {"id": doc.id, "tokens": words}
    if doc.layers:
        spans = how.spans(doc)
        record["ner_tags"] = tags_of(doc, spans, how, "IOB2", [len(words)])
        note_fields(doc, spans, how)
    else:
        note_fields(doc, (), how)
    if len(sizes) > 1:
        record["sentences"] = sizes
    return record | flat_fields(doc, own, how.losses)


HF = TokenLists()
FORMATS = (HF,)
