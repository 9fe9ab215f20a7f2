"""Plain text: a folder of .txt files, one document each, every byte kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, Writing, decode, file_of, write_text
from chaffinch.text.formats.units import Unit, file_units


@dataclass(frozen=True, slots=True)
class PlainText:
    """The format itself; it has no place for anything but text."""

    name: str = "txt"
    about: str = "a folder of plain text files"
    folder: bool = True
    suffixes: tuple[str, ...] = (".txt",)
    can: ClassVar[Capabilities] = Capabilities("file", 5, exact=True, layers="none", annotated_as="brat")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Any .txt file that nothing else claims."""
        return entry.suffix == ".txt"

    def units(self, files: Sequence[Entry], how: ReadOptions) -> Iterator[Unit]:
        """Yield one document per file; its id is the file's name without the suffix."""
        return file_units(files, partial(_document, how))

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """One file per document, named by its id."""
        target.mkdir()
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            how.drop(doc, "group", "meta", "layers", "soft", "relations", "given")
            write_text(file_of(target, doc.id, ".txt"), doc.text)
        return count


def _document(how: ReadOptions, stem: str, where: str, content: bytes) -> Document:
    try:
        return Document.make(decode(content, where), id=stem, split=how.split, max_chars=how.max_chars)
    except DataError as error:
        raise error.at(where) from None


TXT = PlainText()
FORMATS = (TXT,)
