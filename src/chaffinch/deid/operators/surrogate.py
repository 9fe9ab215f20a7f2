"""An invented value of the same kind, the patient's own: the same wherever the original turns up again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid import surrogate
from chaffinch.deid.acting import Memory, Seen
from chaffinch.deid.operators.tag import named


@dataclass(frozen=True, slots=True)
class Surrogate:
    """Draws a value by the secret, the patient, the kind and the text; were it the original itself, a tag.

    Ages and dates have operators of their own.
    """

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ("AGE", "DATE")
    keyed: ClassVar[bool] = True

    def __call__(self, seen: Seen, memory: Memory) -> str:
        return memory.once(("surrogate", seen.patient, seen.kind, seen.text), lambda: _drawn(seen, memory))


def _drawn(seen: Seen, memory: Memory) -> str:
    drawn = surrogate.surrogate(seen.text, seen.kind, seen.patient, memory.secret)
    return f"[{named(seen)}]" if drawn.casefold().split() == seen.text.casefold().split() else drawn
