"""spaCy's DocBin: the binary files of `spacy train`, all documents of a file in one compressed block.

Layers are the groups of `doc.spans`, with their scores and sources as attributes and concepts as knowledge base ids.
The layer gold, if its spans do not overlap, is also `doc.ents`, which files from elsewhere have instead. A text comes
back exactly; tokens are cut where a span begins or ends inside one. Id, patient and meta fields are user data.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text.document import Document
from chaffinch.text.formats import jsonl
from chaffinch.text.formats._shared.json_records import default_id, note_numbers, span_record
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Record, Unit, record_units
from chaffinch.text.span import Span, find_overlap

_ID, _PATIENT, _META, _GIVEN = "chaffinch_id", "chaffinch_patient", "chaffinch_meta", "chaffinch_given"  # user data
_GOLD = "gold"
_ZLIB = 0x78  # the first byte of what zlib compresses
_FIRST_KEY = b"\xa7version"  # in MessagePack, after one byte with the number of keys
_MOST_TIMES = 100  # a file that unpacks to more than so many times its size is refused, as archives are
_ALWAYS = 32_000_000  # bytes to which every file may unpack, as archives may


@dataclass(frozen=True, slots=True)
class DocBinFormat:
    """The DocBin format; needs spaCy, the extra `spacy`."""

    name: str = "docbin"
    about: str = "spaCy's DocBin, as `spacy train` reads it; layers are groups of doc.spans, gold is doc.ents too"
    folder: bool = False
    suffixes: tuple[str, ...] = (".spacy",)
    can: ClassVar[Capabilities] = Capabilities(exact=True, layers="many", span_sources=True, votes=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is compressed MessagePack whose first key is that of a DocBin."""
        if not head or head[0] != _ZLIB:
            return False
        try:
            return zlib.decompressobj().decompress(head, 64)[1:].startswith(_FIRST_KEY)
        except zlib.error:
            return False

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document of spaCy; one that cannot be read fails, and all that follow are lost with it."""
        for file in files:
            yield from record_units(file, _records(file, files, options), partial(_document, options), "document")

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write all documents, held in memory till then; count losses; return how many it wrote; MissingExtraError."""
        spacy = _spacy()
        vocabulary = spacy.vocab.Vocab()
        box = spacy.tokens.DocBin(store_user_data=True)
        for doc in documents:
            options.drop(doc, "soft", "relations")
            note_numbers(doc, options.losses)
            made = _to_spacy(doc, spacy, vocabulary)
            if doc.given:
                back = _record(made, _GOLD)
                options.losses.add("given tokens and sentences", back["tokens"] != doc.tokens.tolist())
                options.losses.add("sentence bounds", back["sentences"] != doc.sentences.tolist())
            box.add(made)
        target.write_bytes(box.to_bytes())
        return len(box)


def _spacy() -> Any:
    """Import spaCy and return it; raise MissingExtraError without it."""
    try:
        import spacy
    except ImportError:
        raise MissingExtraError("spacy", "spacy") from None
    return spacy


def _to_spacy(doc: Document, spacy: Any, vocabulary: Any) -> Any:
    """Return a spaCy document of the same text: tokens cut at span edges, layers as spans, gold as entities too.

    Id, patient, meta and whether tokens are given are its user data.
    """
    words, blanks, starts = _cut_text(doc)
    begins = set(doc.sentences[:, 0].tolist()) if doc.given and len(doc.sentences) else set()
    made = spacy.tokens.Doc(
        vocabulary,
        words=words,
        spaces=blanks,
        sent_starts=[start in begins for start in starts] if begins else None,
        user_data={
            _ID: doc.id,
            _PATIENT: doc.group,
            _META: msgspec.json.encode(dict(doc.meta)).decode(),
            _GIVEN: doc.given,
        },
    )
    for name, spans in doc.layers.items():
        made.spans[name] = [made.char_span(each.start, each.end, each.label, each.concept) for each in spans]
        made.spans[name].attrs["scores"] = [float(each.score) for each in spans]
        made.spans[name].attrs["sources"] = [each.source for each in spans]
    gold = doc.layers.get(_GOLD, ())
    if gold and find_overlap(gold) is None and all(each.label for each in gold):
        made.set_ents(list(made.spans[_GOLD]))
    return made


def _cut_text(doc: Document) -> tuple[list[str], list[bool], list[int]]:
    """Return (words that make up the text, whether each is followed by a blank that is no word, where each starts)."""
    spans = [span for layer in doc.layers.values() for span in layer]
    starts, ends = {span.start for span in spans}, {span.end for span in spans}
    edges = {0, len(doc.text), *starts, *ends, *doc.tokens.ravel().tolist()}
    words: list[tuple[int, str]] = []
    blanks: list[bool] = []
    for start, end in pairwise(sorted(edges)):
        word = doc.text[start:end]
        if word == " " and words and not blanks[-1] and start not in starts and end not in ends:
            blanks[-1] = True
        else:
            words.append((start, word))
            blanks.append(False)
    return [word for _, word in words], blanks, [start for start, _ in words]


def _records(file: Entry, files: Sequence[Entry], options: ReadOptions) -> Iterator[Record[dict[str, Any]]]:
    """Yield a file's documents as objects of our JSON lines; DataError if unreadable, MissingExtraError if no spaCy."""
    spacy = _spacy()
    content = file.content()
    _check_size(content)
    number = 0
    try:
        for number, doc in enumerate(spacy.tokens.DocBin().from_bytes(content).get_docs(spacy.vocab.Vocab())):
            yield Record(default_id(files, file, number), None, _record(doc, options.layer))
    except Exception as error:  # whatever spaCy raises for bytes that are no DocBin
        raise DataError(f"is no DocBin file that spaCy reads ({type(error).__name__}); write it again") from None


def _check_size(content: bytes) -> None:
    """Raise DataError if the content is not compressed, or unpacks to far more than its size."""
    unpack = zlib.decompressobj()
    try:
        unpack.decompress(content, max(_MOST_TIMES * len(content), _ALWAYS))
    except zlib.error:
        raise DataError("is no DocBin file, or a damaged one; write it again") from None
    if unpack.unconsumed_tail:
        raise DataError(f"unpacks to more than {_MOST_TIMES} times its size; it may be meant to harm")


def _record(doc: Any, layer: str) -> dict[str, Any]:
    """Return a spaCy document as an object of our JSON lines, its entities as `layer` unless a group has that name."""
    layers = {name: _spans(group, group.attrs) for name, group in doc.spans.items()}
    if doc.ents and layer not in layers:
        layers[layer] = _spans(doc.ents, {})
    data = doc.user_data
    record = {"id": data.get(_ID), "text": doc.text, "group": data.get(_PATIENT), "layers": layers}
    if isinstance(data.get(_META), str):
        record["meta"] = msgspec.json.decode(data[_META], type=dict[str, Any])
    if data.get(_GIVEN, True):
        record["tokens"] = [[token.idx, token.idx + len(token)] for token in doc if not token.text.isspace()]
        if doc.has_annotation("SENT_START"):
            record["sentences"] = list(filter(None, map(_trim, doc.sents)))
    return record


def _trim(sentence: Any) -> list[int] | None:
    """Return where the words of a sentence begin and end; None if it has none."""
    words = [token for token in sentence if not token.text.isspace()]
    return [words[0].idx, words[-1].idx + len(words[-1])] if words else None


def _spans(spans: Iterable[Any], attributes: Any) -> list[dict[str, Any]]:
    """Return spans of spaCy as JSON objects, with the scores and sources in a group's attributes if they fit."""
    found = list(spans)
    scores, sources = (attributes.get(name) for name in ("scores", "sources"))
    return [
        span_record(
            Span(
                each.start_char,
                each.end_char,
                each.label_,
                float(scores[n]) if scores is not None and len(scores) == len(found) else 1.0,
                str(sources[n]) if sources is not None and len(sources) == len(found) else "",
                each.kb_id_,
            )
        )
        for n, each in enumerate(found)
    ]


def _document(options: ReadOptions, name: str, record: dict[str, Any]) -> Document:
    """Return the document of a record of our JSON lines; `name` is its id if it has none; DataError if unfit."""
    return jsonl.document_of(record, name, options)


FORMATS = (DocBinFormat(),)
