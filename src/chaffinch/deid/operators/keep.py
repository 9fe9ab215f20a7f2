"""The identifier as it stands, for what a policy allows to stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Keep:
    """Leaves the text alone; the replacement is recorded all the same."""

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 0

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        return seen.text
