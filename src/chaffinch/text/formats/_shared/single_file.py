"""A format with one file per document, written to one file instead of a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Capabilities, Entry, Format, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Unit


@dataclass(frozen=True, slots=True)
class SingleFile:
    """The format of one document: what it reads and holds is as in `form`, and its output is one file."""

    form: Format
    folder: bool = False

    @property
    def name(self) -> str:
        """Return the name of the format that is wrapped."""
        return self.form.name

    @property
    def about(self) -> str:
        """Return one line that describes the format, as the list of formats shows it."""
        return self.form.about

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the suffixes of the files that the format reads, the typical one first."""
        return self.form.suffixes

    @property
    def can(self) -> Capabilities:
        """Return what the format that is wrapped can hold and how it is read."""
        return self.form.can

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether the format recognises a file; `head` is its first bytes."""
        return self.form.recognises(entry, head)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit for each document of the files, as the format that is wrapped does."""
        return self.form.units(files, options)

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write the only document as a file; return how many (0: no file is made); DataError for several."""
        with tempfile.TemporaryDirectory(prefix=".chaffinch-", dir=target.parent) as folder:
            count = self.form.write(documents, Path(folder) / "output", options)
            files = [path for path in (Path(folder) / "output").rglob("*") if path.is_file()]
            if len(files) > 1:
                raise DataError(f"{count} documents are {len(files)} files of {self.name}; write to a folder")
            for path in files:
                os.replace(path, target)  # noqa: PTH105  (one atomic call)
        return count


def has_one_file(form: Format) -> bool:
    """Tell whether a format writes each document as exactly one file of a folder."""
    return form.folder and form.can.unit == "file" and len(form.suffixes) == 1
