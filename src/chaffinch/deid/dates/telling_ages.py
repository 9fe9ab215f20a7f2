"""Dates that tell of an age over a limit: a policy that hides such ages hides these dates as well.

A date tells of an age by its distance to the last date in any of the patient's notes. It is hidden

- if more whole years than the limit may lie between the two. Days are compared where days are known, else the first
  day that the one may mean and the last day that the other may mean; where only years go out, years are compared;
- if it is a birth date and no other date is later, for then nobody can say how old the patient is;
- if it is a birth date that cannot be read;
- if its year has two digits, may be of the century before, and then tells of such an age: a recent year of birth, or a
  year later than all years of four digits that no other date is within a year of;
- if it counts more years than the limit (95 years ago).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.ages import capped_age
from chaffinch.deid.dates.points import AHEAD, LATEST, Order
from chaffinch.deid.dates.shift import ORDERS, Parsed
from chaffinch.text import Span

OLDEST_TOLD = 89  # the greatest age that may be told, 45 CFR 164.514(b)(2)(i)(C)
FULL_YEAR = re.compile(r"(?<![0-9])(?:1[89]|2[01])[0-9]{2}(?![0-9])")
_BIRTH = re.compile(
    r"\b(?:born|birth(?!\s?(?:place|weight|control|mark|defect))\w*|[dy]\.?o\.?b\b|geb\b|geboren\w*|geburt(?!sort)\w*|"
    r"nacid[oa]s?|naci[oó]|nac\.|nacimiento)|(?<![\w.])(?-i:b)\.\s?(?:(?:in|on|circa|ca\.?)\s)?\Z|[(,]\s?(?-i:b)[\s:]{0,2}\Z",
    re.IGNORECASE,
)
_BIRTH_AFTER = re.compile(r"\s?[(\[]\s?(?:born|(?:date\sof\s)?birth|d\.?o\.?b)\b", re.IGNORECASE)
_COUNT = re.compile(r"year|yr|año|jahr", re.IGNORECASE)
_REACH, _NEAR = 60, 30  # characters before a date; of these, with blanks as one, those where a word for birth counts
_OLDEST = 115  # years; hardly anybody is older
_LATEST = 2199  # of years; later ones are other numbers
_NEVER = date.min


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """The greatest age in years that dates may tell; with `by_year`, all that goes out of a date is its year."""

    years: int
    by_year: bool = False


@dataclass(frozen=True, slots=True)
class DatedText:
    """The text of a date in a note: what it tells, and whether words beside it say that somebody was born then.

    `order` is the order of day, month and year that the note's dates tell, if they do.
    """

    text: str = field(repr=False)
    birth: bool = False
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The days that the dates of a patient's notes tell, each the last that its date may mean.

    `events` are those of dates that are no birth, `last` is the last day of all. `last_year` is the last year of events
    that is written with four digits, or None.
    """

    last: date = field(default=_NEVER, repr=False)
    events: frozenset[date] = field(default=frozenset(), repr=False)
    last_year: int | None = field(default=None, repr=False)

    @property
    def reference_year(self) -> int | None:
        """The year around which years of two digits lie, where that is later than they are read without one."""
        return self.last_year if self.last_year is not None and self.last_year + AHEAD > LATEST else None

    def without(self, day: date) -> Timeline | None:
        """Return the timeline without a day that is later than all years of four digits and apart from other days.

        If its year has two digits, it may be of the century before. None if it is not such a day.
        """
        if self.last_year is None or day.year <= self.last_year:
            return None
        others = self.events - {day}
        if any(abs(other.year - day.year) <= 1 for other in others):
            return None
        return replace(self, last=max(others, default=_NEVER))


@dataclass(frozen=True, slots=True)
class _Reach:
    """The first and the last day that a date may mean; `short` if all its years have two digits."""

    first: date
    last: date
    short: bool


def dated_texts(text: str, spans: Iterable[Span]) -> list[DatedText]:
    """Return the dates of a note from the spans of its dates, sorted by place.

    >>> note = "DOB 3/4/1925, seen 5/6/2015"
    >>> [dated.birth for dated in dated_texts(note, [Span(4, 12, "DATE"), Span(19, 27, "DATE")])]
    [True, False]
    """
    places = [(span.start, span.end) for span in spans]
    order = dates.order_of(text[start:end] for start, end in places)
    found: list[DatedText] = []
    done = 0
    for start, end in places:
        before = " ".join(("." + text[max(done, start - _REACH) : start] + ".").split())[1:-1][-_NEAR:]
        after = _BIRTH_AFTER.match(text, end)
        birth = after is not None or _BIRTH.search(before) is not None
        found.append(DatedText(text[start:end], birth, order))
        done = after.end() if after else end
    return found


def patient_timeline(found: Collection[DatedText]) -> Timeline:
    """Return what all dates of a patient's notes tell of time."""
    plain = [(dated, _reach(dated, None)) for dated in found]
    years = [reach.last.year for dated, reach in plain if reach and not reach.short and not dated.birth]
    first = Timeline(last_year=max((year for year in years if year <= _LATEST), default=None))
    events, births = {_NEVER}, {_NEVER}
    for dated in found:
        reach = _reach(dated, first.reference_year)
        if reach is not None and reach.last.year <= _LATEST:
            if not dated.birth:
                events.add(reach.last)
            elif not reach.short:
                births.add(reach.last)
    return replace(first, last=max(events | births), events=frozenset(events - {_NEVER}))


def find_old_dates(
    text: str, spans: Sequence[Span], limit_of: Callable[[str], AgeLimit | None], timeline: Timeline | None = None
) -> tuple[set[int], Timeline]:
    """Return where the dates of a note start that tell of an age over the limit of their label, and the timeline.

    `spans` are those of the note's dates, sorted; without a timeline of the patient's notes, the note stands alone.
    """
    found = dated_texts(text, spans)
    times = patient_timeline(found) if timeline is None else timeline
    limits = {label: limit_of(label) for label in {span.label for span in spans}}
    pairs = ((span, dated, limits[span.label]) for span, dated in zip(spans, found, strict=True))
    return {span.start for span, dated, limit in pairs if limit and tells_age_over(dated, limit, times)}, times


def tells_age_over(dated: DatedText, limit: AgeLimit, timeline: Timeline) -> bool:
    """Return whether a date tells, or may tell, of an age over the limit."""
    if _COUNT.search(dated.text) and capped_age(dated.text, limit.years) not in (None, dated.text):
        return True
    reach = _reach(dated, timeline.reference_year)
    if reach is None:
        return dated.birth and not _is_readable(dated)
    if dated.birth:
        last_event = max(timeline.events, default=_NEVER)
        if last_event < reach.first and (not reach.short or limit.by_year or last_event == _NEVER):
            return True
    age = _greatest_age(reach, limit, timeline)
    if age > limit.years or not reach.short:
        return age > limit.years
    before = timeline if dated.birth else timeline.without(reach.last)
    return before is not None and limit.years < _greatest_age(reach, limit, before) + 100 <= _OLDEST


def _greatest_age(reach: _Reach, limit: AgeLimit, timeline: Timeline) -> int:
    """Return the whole years that may lie between a date and the last day; where only years go out, between years."""
    first, last = reach.first, timeline.last
    return last.year - first.year - (not limit.by_year and (last.month, last.day) < (first.month, first.day))


def _is_readable(dated: DatedText) -> bool:
    return dates.parse(dated.text, order=dated.order or "mdy") is not None


def _reach(dated: DatedText, reference_year: int | None) -> _Reach | None:
    """Return the days that a date may mean, in any order that the note allows; None if it tells no year."""
    orders = (dated.order,) if dated.order else ORDERS[:2]
    readings = [dates.parse(dated.text, order=order, reference_year=reference_year) for order in orders]
    known = [parsed for parsed in readings if parsed is not None]
    if not known:
        years = [int(year) for year in FULL_YEAR.findall(dated.text)]
        return _Reach(date(min(years), 1, 1), date(max(years), 12, 31), short=False) if years else None
    spans = [span for parsed in known for span in _spans(parsed)]
    if not spans:
        return None
    short = all(
        place.pad < 4
        for parsed in known for point in parsed.points for place in point.fields if place.role in ("year", "decade")
    )  # fmt: skip
    return _Reach(min(first for first, _ in spans), max(last for _, last in spans), short)


def _spans(parsed: Parsed) -> Sequence[tuple[date, date]]:
    """Return the first and last days of the points whose year is told; a decade surely has its first year."""
    spans = []
    for point in parsed.points:
        span = point.span() if point.year_known else None
        if span is not None:
            last = date(span[0].year, 12, 31) if point.precision == "decade" else span[1]
            spans.append((span[0], last))
    return spans
