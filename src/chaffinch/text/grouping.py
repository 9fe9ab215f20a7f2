"""Assignment of documents to patients: by a table of ids, or by a pattern on the id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from chaffinch.errors import ConfigError
from chaffinch.text.document import Document
from chaffinch.text.regex import compile_pattern


@dataclass(frozen=True, slots=True)
class Grouping:
    """A rule that assigns a patient: from the table, else what the pattern finds in the id (its group, or all of it).

    A document that neither names keeps its patient. `option` is the caller's name for the pattern, for messages.

    >>> Grouping(r"^(\\w+)-")(Document.make("Dr. Penn came.", id="p1-04")).group
    'p1'
    """

    pattern: str | None = None
    table: Mapping[str, str] | None = field(default=None, repr=False)
    option: str = "--group"

    def __post_init__(self) -> None:
        """Raise ConfigError, which names the option, if the pattern is no regular expression."""
        if self.pattern:
            compile_pattern(self.pattern, False, f"{self.option} {self.pattern!r} is not a regular expression")

    def __bool__(self) -> bool:
        """Tell whether there is a pattern or a table to group by."""
        return self.pattern is not None or self.table is not None

    def find(self, name: str) -> str | None:
        """Return the patient that pattern or table assigns to a document of this id; None if neither does."""
        group = self.table.get(name) if self.table else None
        if group is None and self.pattern:
            match = compile_pattern(self.pattern, False).search(name)
            group = match.group(1 if match.re.groups else 0) if match else None
        return group or None

    def __call__(self, doc: Document) -> Document:
        """Return the document with the patient that the rule assigns; unchanged if it assigns none."""
        group = self.find(doc.id)
        return doc if group is None else replace(doc, group=group)

    def assign(self, documents: Iterable[Document], *, must: bool = True) -> Iterator[Document]:
        """Yield the documents with their patients; with `must`, ConfigError at the end if the rule assigned none."""
        number = assigned = 0
        for number, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            grouped = self(doc)
            assigned += grouped is not doc
            yield grouped
        if must and self and number and not assigned:
            raise ConfigError(self.explain_no_effect(number))

    def explain_no_effect(self, documents: int) -> str:
        """Return the error message for a rule that assigned no patient to any of this number of documents."""
        if self.table is not None:
            return (
                f"{self.option}: none of the {len(self.table):,} ids in the table is the id of one of the "
                f"{documents:,} documents; ids are file names without suffix, or those of the id column"
            )
        return (
            f"{self.option} {self.pattern!r} matches the id of none of the {documents:,} documents; correct the "
            "pattern, or give an existing file of lines: id, tab, patient"
        )
