"""Columns of tables and fields of records: which ones the user names, and which ones a document was made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

BETWEEN = "\n\n"  # between the texts of several columns in one document: the end of a paragraph


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns that the user names: of the texts, of the id and of the patient; what is not named is looked for."""

    texts: tuple[str, ...] = ()
    id: str | None = None
    patient: str | None = None

    def __bool__(self) -> bool:
        """Tell whether any column was chosen: text, id or patient."""
        return bool(self.texts or self.id or self.patient)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all column names that the user gave: of the texts, then of the id and the patient."""
        return (*self.texts, *(name for name in (self.id, self.patient) if name is not None))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a document was made of; the writer of the same `format` can keep their names.

    `texts` has the name of each text column, and where its text ends in that of the document. `fields` are the meta
    fields that are columns of their own.

    >>> Columns("csv", (("findings", 5), ("impression", 11))).cut("Well.\\n\\nHome")
    {'findings': 'Well.', 'impression': 'Home'}
    """

    format: str
    texts: tuple[tuple[str, int], ...]
    id: str | None = None
    patient: str | None = None
    fields: tuple[str, ...] = ()

    def cut(self, text: str) -> dict[str, str]:
        """Return {column name: its part of the joined text}, without the break between columns."""
        start, texts = 0, {}
        for name, end in self.texts:
            texts[name] = text[start:end]
            start = end + len(BETWEEN)
        return texts

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts (start, end) of [start, end) of the joined text that lie in one column each; [] if none."""
        first, found = 0, []
        for _, last in self.texts:
            if max(start, first) < min(end, last):
                found.append((max(start, first), min(end, last)))
            first = last + len(BETWEEN)
        return found

    def move(self, changes: Iterable[tuple[int, int, int, int]]) -> Columns:
        """Return the columns of a text after replacements (start, end, new start, new end), each inside one column.

        A change has start and end in the old text, and in the new one.
        """
        moved = sorted(changes)
        ends = [end + _shift_before(moved, end) for _, end in self.texts]
        return replace(self, texts=tuple((name, end) for (name, _), end in zip(self.texts, ends, strict=True)))


def _shift_before(changes: Sequence[tuple[int, int, int, int]], place: int) -> int:
    """Return by how many characters the changes that end at or before the offset `place` move it."""
    return sum((out_end - out_start) - (end - start) for start, end, out_start, out_end in changes if end <= place)
