"""`[DOCTOR]`: the name of the kind in brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.release.replace import FoundIdentifier, Memory
from chaffinch.errors import ConfigError

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
        check_naming(self.by)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        return f"[{named(seen, self.by)}]"


def check_naming(by: str) -> None:
    """Refuses a way of naming that there is not."""
    if by not in NAMINGS:
        raise ConfigError(f"by must be one of {', '.join(NAMINGS)}, got {by!r}")


def named(seen: FoundIdentifier, by: str = "kind") -> str:
    """The name of an identifier's kind, of its category, or its label."""
    return {"kind": seen.kind.name, "category": seen.kind.category, "label": seen.label}[by]
