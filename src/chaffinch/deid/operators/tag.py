"""`[DOCTOR]`: the name of the kind in brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_choice
from chaffinch.deid.release.replace import FoundIdentifier, Memory

NAMINGS = ("kind", "category", "label")


@dataclass(frozen=True, slots=True)
class Tag:
    """Names what was there: its kind (DOCTOR), its category (NAME), or the label as the layer has it."""

    by: str = "kind"
    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __post_init__(self) -> None:
        check_choice(self.by, "by", NAMINGS)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        return f"[{named(seen, self.by)}]"


def named(seen: FoundIdentifier, by: str = "kind") -> str:
    """The name of an identifier's kind, of its category, or its label."""
    return {"kind": seen.kind.name, "category": seen.kind.category, "label": seen.label}[by]
