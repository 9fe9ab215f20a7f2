"""Replace the identifier by the name of its kind in brackets (`[DOCTOR]`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_choice
from chaffinch.deid.release.replace import FoundIdentifier, Memory

NAMINGS = ("kind", "category", "label")


@dataclass(frozen=True, slots=True)
class Tag:
    """Operator that writes the kind (DOCTOR), the category (NAME) or the layer's label in brackets."""

    by: str = "kind"
    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown naming in `by`."""
        check_choice(self.by, "by", NAMINGS)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the tag of the identifier's kind or category, such as [DOCTOR]."""
        return f"[{tag_name(seen, self.by)}]"


def tag_name(seen: FoundIdentifier, by: str = "kind") -> str:
    """Return the name that `by` asks for: that of an identifier's kind, of its category, or its label."""
    return {"kind": seen.kind.name, "category": seen.kind.category, "label": seen.label}[by]
