"""Remove the identifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Remove:
    """Operator that deletes the identifier; blanks around it stay."""

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the empty string."""
        return ""
