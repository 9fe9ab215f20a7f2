"""Assignment of documents to patients: by a table of ids, or by a pattern on the id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
        if self.pattern:
            compile_pattern(self.pattern, False, f"{self.option} {self.pattern!r} is not a regular expression")

    def __call__(self, doc: Document) -> Document:
        """Return the document with the patient that the rule assigns, if any."""
        group = self.table.get(doc.id) if self.table else None
        if group is None and self.pattern:
            match = compile_pattern(self.pattern, False).search(doc.id)
            group = match.group(1 if match.re.groups else 0) if match else None
        return doc if group is None else replace(doc, group=group)
