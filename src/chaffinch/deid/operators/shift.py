"""Shift dates by a number of days per patient; the distance between two dates stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from chaffinch.checks import check_choice, check_flags, check_wholes
from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.order import count_orders, settle_order
from chaffinch.deid.dates.points import Order
from chaffinch.deid.operators.tag import tag_name
from chaffinch.deid.release.replace import FoundIdentifier, Memory

AMBIGUOUS = "ambiguous"  # what is recorded in place of "shift" for a date that nobody can order


@dataclass(frozen=True, slots=True)
class Shift:
    """Operator that shifts dates by `least` to `most` days; with `weeks`, by whole weeks, so that weekdays stay.

    A date that cannot be read becomes a tag. Shifts close to whole years are never drawn (`dates.shift_sizes`).
    `order` is that of numbers (03/04/1998) where neither the note's nor the patient's dates tell it: mdy, dmy, ymd, or
    auto for that of the job. If nothing tells it, an ambiguous date becomes a tag, and is recorded as "ambiguous".
    """

    weeks: bool = False
    order: Order | Literal["auto"] = "auto"
    least: int = dates.LEAST_DAYS
    most: int = dates.MOST_DAYS
    only: ClassVar[tuple[str, ...]] = ("DATE",)
    never: ClassVar[tuple[str, ...]] = ()
    needs_secret: ClassVar[bool] = True
    hides: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown order or an impossible range of days."""
        check_choice(self.order, "order", ("auto", *get_args(Order)))
        check_wholes(self, "least", "most")
        check_flags(self, "weeks")
        dates.shift_sizes(self.least, self.most, weeks=self.weeks)

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        """Return the date moved by the patient's days; a tag if unreadable or ambiguous (set in `memory.outcome`)."""
        order = order_in(memory, self.order)
        first = order or "mdy"
        year = memory.once(("usual year", first), lambda: dates.usual_year(memory.dates, order=first))
        days = memory.once(
            ("days", seen.patient, self),
            lambda: dates.days_for(memory.secret, seen.patient, weeks=self.weeks, least=self.least, most=self.most),
        )
        text = seen.plain
        shifted = dates.shift(text, days, reference_year=year, order=first)
        if order is None and shifted != dates.shift(text, days, reference_year=year, order="dmy"):
            memory.outcome, shifted = AMBIGUOUS, None
        return f"[{tag_name(seen)}]" if shifted is None else shifted


def order_in(memory: Memory, order: Order | Literal["auto"]) -> Order | None:
    """Return the order of day and month: the note's, the patient's, else `order` or, if auto, the job's; or None."""
    found = memory.once("order", lambda: settle_order(count_orders(memory.dates))) or memory.orders.patient
    return found or (memory.orders.job if order == "auto" else order)
