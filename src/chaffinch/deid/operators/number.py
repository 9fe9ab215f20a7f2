"""Replace the identifier by its kind and a number (`[DOCTOR-1]`), which distinguishes identifiers in a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_choice
from chaffinch.deid.operators.tag import NAMINGS, tag_name
from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Number:
    """Operator that numbers the different texts of a kind in document order; the same text gets the same number.

    Numbers restart in every document, so that they do not depend on the order of documents.
    """

    by: str = "kind"
    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown naming in `by`."""
        check_choice(self.by, "by", NAMINGS)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return a tag as [DOCTOR-2]: the text's rank, whatever its case, among the document's texts of that tag."""
        name = tag_name(seen, self.by)
        return f"[{name}-{memory.number(name, seen.plain)}]"
