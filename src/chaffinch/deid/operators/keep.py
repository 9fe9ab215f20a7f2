"""Keep the identifier unchanged, where a policy allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Keep:
    """Operator that leaves the text unchanged; the replacement is recorded nevertheless."""

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 0

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the identifier's text unchanged."""
        return seen.text
