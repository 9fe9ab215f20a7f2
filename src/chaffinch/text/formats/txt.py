"""Plain text: a folder of .txt files, one document each, every byte kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions, decode, output_file, write_text
from chaffinch.text.formats.units import Unit, file_units


@dataclass(frozen=True, slots=True)
class PlainText:
    """The plain text format, which holds only text."""

    name: str = "txt"
    about: str = "a folder of plain text files"
    folder: bool = True
    suffixes: tuple[str, ...] = (".txt",)
    can: ClassVar[Capabilities] = Capabilities("file", 5, exact=True, layers="none", annotated_as="brat")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file ends in .txt; the more special formats are tried before."""
        return entry.suffix == ".txt"

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per file; the document's id is the file's name without the suffix."""
        return file_units(files, partial(_document, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a folder of .txt files named by id; all else is lost; return how many documents; DataError: bad id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            options.drop(doc, "group", "meta", "layers", "soft", "relations", "given")
            write_text(output_file(target, doc.id, ".txt"), doc.text)
        return count


def _document(options: ReadOptions, stem: str, where: str, content: bytes) -> Document:
    """Return a document of the file's decoded text, its id `stem`; DataError with `where` if it cannot be decoded."""
    try:
        return Document.make(decode(content, where), id=stem, split=options.split, max_chars=options.max_chars)
    except DataError as error:
        raise error.at(where) from None


TXT = PlainText()
FORMATS = (TXT,)
