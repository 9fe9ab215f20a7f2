"""Round identifiers: ages over 89 become 90+, ZIP codes their first three digits, dates their year.

The rounding of a kind is in its row of `deid/kinds.py`. A text that cannot be read becomes a tag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaffinch.checks import check_wholes
from chaffinch.deid.dates.telling_ages import HIPAA_MAX_AGE
from chaffinch.deid.kinds import HANDLING, handling_of
from chaffinch.deid.operators.tag import tag_name
from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Generalise:
    """Operator that rounds ages, ZIP codes and dates; `over` is the greatest age that is kept.

    Dates that reveal an age over it never come here: `telling_ages` hides them, whatever the operator for dates.
    """

    over: int = HIPAA_MAX_AGE
    only: ClassVar[tuple[str, ...]] = tuple(name for name, row in HANDLING.items() if row.rounding)
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = False
    hides: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Raise ConfigError unless `over` is a whole number of at least 1."""
        check_wholes(self, "over", least=1)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the identifier rounded as its kind allows (ZIP, year, age); a tag if it cannot be read."""
        rounding = handling_of(seen.kind).rounding
        rounded = rounding(seen.plain, self.over, memory.reference_year) if rounding else None
        return f"[{tag_name(seen)}]" if rounded is None else rounded
