"""spaCy's DocBin files: documents with their tokens and layers as `doc.spans`, for training and back."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text import Corpus, Document, Span
from chaffinch.text.formats.base import atomic_output
from chaffinch.text.span import find_overlap

try:
    import spacy
    from spacy.tokens import Doc, DocBin
except ImportError:
    raise MissingExtraError("spacy", "spacy") from None

_ID, _PATIENT = "chaffinch_id", "chaffinch_patient"  # in the user data of a spaCy document
_MOST_TIMES = 100  # a file that unpacks to more than so many times its size is refused, as archives are


def write_docbin(documents: Iterable[Document], path: str | Path, *, ents: str | None = "gold") -> int:
    """Write documents atomically to a DocBin file; return their number; DataError if a span ends inside a token.

    Each layer is a group of `doc.spans`; the layer `ents`, if a document has it and its spans do not overlap, is also
    `doc.ents`. Texts come back exactly. Raise DataError for a span that ends inside a token.
    """
    vocabulary = spacy.blank("xx").vocab
    box = DocBin(store_user_data=True)
    for doc in documents:
        box.add(_to_spacy(doc, vocabulary, ents))
    with atomic_output(Path(path)) as part:
        part.write_bytes(box.to_bytes())
    return len(box)


def read_docbin(path: str | Path, *, ents: str = "gold") -> Corpus:
    """Return a corpus of a DocBin file, read on iteration (DataError); `doc.ents` is layer `ents` if there is none."""
    file = Path(path)

    def walk() -> Iterator[Document]:
        """Read the file and yield its documents as ours; raise DataError if spaCy cannot read it."""
        content = file.read_bytes()
        _check_size(content, file)
        try:
            docs = list(DocBin().from_bytes(content).get_docs(spacy.blank("xx").vocab))
        except Exception as error:  # whatever spaCy raises for bytes that are no DocBin
            raise DataError(f"is no DocBin file that spaCy reads ({type(error).__name__})", path=file) from None
        for number, doc in enumerate(docs):
            yield _from_spacy(doc, str(number), ents)

    return Corpus(walk, "docbin")


def _check_size(content: bytes, file: Path) -> None:
    """Raise DataError if the content is not compressed, or unpacks to far more than its size."""
    unpack = zlib.decompressobj()
    try:
        unpack.decompress(content, _MOST_TIMES * max(len(content), 1))
    except zlib.error:
        raise DataError("is no DocBin file", path=file) from None
    if unpack.unconsumed_tail:
        raise DataError(f"unpacks to more than {_MOST_TIMES} times its size; it may be meant to harm", path=file)


def _to_spacy(doc: Document, vocabulary: Any, ents: str | None) -> Any:
    """Return a document of spaCy with the same text: its tokens, and what lies between them as tokens of their own."""
    words: list[str] = []
    blanks: list[bool] = []
    at = 0
    for start, end in [*doc.tokens.tolist(), (len(doc.text), len(doc.text))]:
        gap = doc.text[at:start]
        if gap.startswith(" ") and words:
            blanks[-1], gap = True, gap[1:]
        for word in filter(None, (gap, doc.text[start:end])):
            words.append(word)
            blanks.append(False)
        at = end
    made = Doc(vocabulary, words=words, spaces=blanks, user_data={_ID: doc.id, _PATIENT: doc.group})
    for name, spans in doc.layers.items():
        made.spans[name] = [_char_span(made, span) for span in spans]
    if ents is not None and ents in doc.layers and find_overlap(doc.layers[ents]) is None:
        made.set_ents(list(made.spans[ents]))
    return made


def _char_span(doc: Any, span: Span) -> Any:
    """Return a span of spaCy; raise DataError if its edges are no edges of tokens."""
    found = doc.char_span(span.start, span.end, span.label)
    if found is None:
        raise DataError(
            f"span [{span.start}, {span.end}) ends inside a token, and DocBin holds spans of tokens; widen it"
        )
    return found


def _from_spacy(doc: Any, number: str, ents: str) -> Document:
    """Return a spaCy document as ours: spans, entities as layer `ents` if not there, tokens without spaces."""
    layers = {name: [_span(each) for each in group] for name, group in doc.spans.items()}
    if doc.ents and ents not in layers:
        layers[ents] = [_span(each) for each in doc.ents]
    tokens = [(token.idx, token.idx + len(token)) for token in doc if not token.is_space]
    return Document.make(
        doc.text, id=doc.user_data.get(_ID, number), group=doc.user_data.get(_PATIENT), layers=layers, tokens=tokens
    )


def _span(span: Any) -> Span:
    """Return a span of ours."""
    return Span(span.start_char, span.end_char, span.label_)
