"""`[DOCTOR-1]`: the name of the kind and a number that tells the identifiers of one document apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_choice
from chaffinch.deid.operators.tag import NAMINGS, named
from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Number:
    """Counts the different texts of a kind in the order in which the document has them; the same text, same number.

    Numbers start anew in every document, so that they do not depend on which document comes first.
    """

    by: str = "kind"
    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __post_init__(self) -> None:
        check_choice(self.by, "by", NAMINGS)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        name = named(seen, self.by)
        return f"[{name}-{memory.number(name, seen.text)}]"
