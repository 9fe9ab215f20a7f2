"""Shift dates by a number of days per patient; the distance between two dates stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from chaffinch.checks import check_choice, check_flags, check_wholes
from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.points import Order
from chaffinch.deid.operators.tag import tag_name
from chaffinch.deid.release.replace import FoundIdentifier, Memory


@dataclass(frozen=True, slots=True)
class Shift:
    """Operator that shifts dates by `least` to `most` days; with `weeks`, by whole weeks, so that weekdays stay.

    A date that cannot be read becomes a tag. Shifts close to whole years are never drawn (`dates.shift_sizes`).
    `order` is that of numbers (03/04/1998) in documents whose dates are all ambiguous: mdy, dmy or ymd.
    """

    weeks: bool = False
    order: Order = "mdy"
    least: int = dates.LEAST_DAYS
    most: int = dates.MOST_DAYS
    only: ClassVar[tuple[str, ...]] = ("DATE",)
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = True
    hides: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_choice(self.order, "order", get_args(Order))
        check_wholes(self, "least", "most")
        check_flags(self, "weeks")
        dates.shift_sizes(self.least, self.most, weeks=self.weeks)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        order = order_in(memory, self.order)
        year = memory.once(("usual year", order), lambda: dates.usual_year(memory.dates, order=order))
        days = memory.once(
            ("days", seen.patient, self),
            lambda: dates.days_for(memory.secret, seen.patient, weeks=self.weeks, least=self.least, most=self.most),
        )
        shifted = dates.shift(seen.plain, days, reference_year=year, order=order)
        return f"[{tag_name(seen)}]" if shifted is None else shifted


def order_in(memory: Memory, default: Order) -> Order:
    """Return the order of day, month and year that the document's dates imply, or the default."""
    return memory.once("order", lambda: dates.order_of(memory.dates)) or default
