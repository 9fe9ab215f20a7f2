"""Replace the identifier by an invented value of the same kind, the same for every mention in a patient's notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.kinds import HANDLING
from chaffinch.deid.release.replace import FoundIdentifier, Memory
from chaffinch.deid.surrogates import surrogate


@dataclass(frozen=True, slots=True)
class Surrogate:
    """Operator that draws a value from the secret, the patient, the kind and the text.

    By chance it may be the original: if that were excluded, the value that never turns up would be the original.
    Ages and dates have separate operators.
    """

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = tuple(name for name, row in HANDLING.items() if row.surrogate is None)
    needs_secret: ClassVar[bool] = True
    hides: ClassVar[int] = 2

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return an invented value of the same kind and form, always the same for equal texts of a patient."""
        drawn = memory.names.drawn
        text = seen.plain
        key = (text, seen.kind.name)
        if key not in drawn:
            drawn[key] = surrogate.surrogate(text, seen.kind, seen.patient, memory.secret, names=memory.names)
        return drawn[key]
