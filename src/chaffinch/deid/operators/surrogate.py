"""An invented value of the same kind, the patient's own: the same wherever the original turns up again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from chaffinch.deid import surrogate
from chaffinch.deid.acting import Memory, Seen
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind
from chaffinch.deid.operators.tag import named


@dataclass(frozen=True, slots=True)
class Surrogate:
    """Draws a value by the secret, the patient, the kind and the text; were it the original itself, a tag.

    Ages and dates have operators of their own.
    """

    only: ClassVar[tuple[str, ...]] = ()
    never: ClassVar[tuple[str, ...]] = ("AGE", "DATE")
    keyed: ClassVar[bool] = True
    hides: ClassVar[int] = 2

    def __call__(self, seen: Seen, memory: Memory) -> str:
        return _drawn(seen.text, seen.kind, seen.patient, memory.secret) or f"[{named(seen)}]"


@lru_cache(maxsize=4096)  # a patient's documents mostly follow one another
def _drawn(text: str, kind: Kind, patient: str, secret: Secret) -> str:
    """The surrogate; nothing if it were the original."""
    drawn = surrogate.surrogate(text, kind, patient, secret)
    return "" if drawn.casefold().split() == text.casefold().split() else drawn
