"""Nothing in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Remove:
    """Takes the identifier out; blanks around it stay."""

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 3

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        return ""
